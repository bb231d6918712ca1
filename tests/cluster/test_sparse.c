/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with tables, with and without tensors, under seeded delays, splits, cuts, refusals, paths
 * that break and stalls: each trainer receives the bits of plain tables in a sequential run, over
 * any number of lanes, with any window, with prefetch and without. A process that dies ends the job
 * for all within a bound. Usage: test_sparse FIRST COUNT [kill | differ | modes | restore | keep];
 * WEFT_SEED=S runs one seed, WEFT_LONG ten times as many, and WEFT_CLUSTER_LOG=1 shows the log
 * lines of all processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "tests/support/fleet.h"
#include "tests/support/sweep.h"
#include "tests/unit/sparse_client/sparse_job.h"

#define PSERVERS_MAX 3u
#define UNTIL_NS (900 * WF_NS_PER_S)

struct run {
	struct fleet fleet;
	struct sparse_job job, other; /* other: what trainer 1 declares, if it differs */
	bool differs;
	const char *transport;
	uint32_t slot_count;
	uint64_t slot_bytes, reconnect_ns;
	struct wf_rng starts; /* when processes begin */

	struct sparse_seen trainer[SPARSE_TRAINERS_MAX];
};

WF_STATIC_ASSERT(SPARSE_TRAINERS_MAX <= FLEET_TRAINERS_MAX, "each has a seat");

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	const struct run *run = seat->fleet->run;
	struct wf_server_opts opts;
	fleet_server_opts(env, run->transport, &opts);
	opts.session.ports_num = run->job.ports_num;
	opts.session.ports_num_for_sparse = run->job.ports_num_for_sparse;
	opts.sparse = &wf_sparse_service;
	opts.session.num_gradient_servers = run->job.trainers;
	opts.slot_count = run->slot_count;
	opts.slot_bytes_max = run->slot_bytes;
	opts.max_shard_bytes = 64u << 20;
	opts.session.reconnect_timeout_ns = run->reconnect_ns;
	fleet_serve(seat, &opts, NULL);
	return 0;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	struct run *run = seat->fleet->run;
	bool other = run->differs && seat->idx == 1;
	struct sparse_seen *seen = &run->trainer[seat->idx];
	sparse_job_train(other ? &run->other : &run->job, env, seat->idx, seen);
	fleet_note(seat, env, seen->status);
	return 0;
}

static uint64_t
draw_start(struct fleet *fleet, uint32_t i)
{
	struct run *run = fleet->run;
	(void)i;
	return wf_rng_below(&run->starts, 200 * WF_NS_PER_MS);
}

/* Everything that must change nothing. */
static void
draw(uint64_t seed, struct run *run)
{
	static const char *const lists[] = {"ps0", "ps0,ps1", "ps0,ps1,ps2"};
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 31);
	bool calm = wf_rng_below(&rng, 5) == 0;
	bool second = wf_rng_below(&rng, 2) == 0;
	memset(run, 0, sizeof(*run));
	sparse_job_draw(seed, &run->job);
	sparse_job_draw_wire(&run->job);
	run->fleet = (struct fleet){
		.pservers = 1 + (uint32_t)wf_rng_below(&rng, PSERVERS_MAX),
		.run_pserver = run_pserver,
		.run_trainer = run_trainer,
		.start_ns = draw_start,
		.until_ns = UNTIL_NS,
		.kill_pserver = FLEET_NOBODY,
		.kill_trainer = FLEET_NOBODY,
	};
	run->slot_count = 1u << wf_rng_below(&rng, 5);
	run->slot_bytes = wf_rng_below(&rng, 3) == 0 ? 1024 : 4096;
	run->transport = second ? "sim-auto" : "sim";
	run->reconnect_ns = 3 * WF_NS_PER_S;
	run->job.transport = run->transport;
	run->job.pservers = lists[run->fleet.pservers - 1];
	run->job.ports_num = 1 + (uint32_t)wf_rng_below(&rng, 2);
	run->job.ports_num_for_sparse = 1 + (uint32_t)wf_rng_below(&rng, 3);
	run->job.prefetch = wf_rng_below(&rng, 2) == 0;
	run->job.raw_keys = wf_rng_below(&rng, 4) == 0;
	run->job.tensors = wf_rng_below(&rng, 2) == 0;
	run->job.in_order = seed % 3 == 0;
	run->fleet.world = (struct wf_world_opts){
		.seed = seed,
		.delay_min_ns = WF_NS_PER_US,
		.delay_max_ns = (1 + wf_rng_below(&rng, 2000)) * WF_NS_PER_US,
		.split_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 500),
		.cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(&rng, 30000),
		.cut_max = calm ? 1 : 1 + (uint32_t)wf_rng_below(&rng, 40),
		.refuse_per_mille =
			calm ? 0 : (uint32_t)wf_rng_below(&rng, WF_WORLD_REFUSE_PER_MILLE_MAX),
		.down_delay_max_ns = wf_rng_below(&rng, 50) * WF_NS_PER_MS,
		.stall_max_ns = calm ? 0 : wf_rng_below(&rng, 20) * WF_NS_PER_MS,
		.stall_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 20),
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1,
	};
	if (second && !calm) {
		run->fleet.world.second_cut_per_million = (uint32_t)wf_rng_below(&rng, 30000);
		run->fleet.world.second_cut_max = 1 + (uint32_t)wf_rng_below(&rng, 40);
		run->fleet.world.second_refuse_per_mille = (uint32_t)wf_rng_below(&rng, 300);
	}
}

static bool
run_world(struct run *run)
{
	run->fleet.run = run;
	run->fleet.trainers = run->job.trainers;
	wf_rng_init(&run->starts, run->fleet.world.seed, 32);
	enum weft_status st = fleet_run(&run->fleet);
	return st == WEFT_OK || st == WEFT_TIMEOUT;
}

static const char *
what_is_wrong(const struct run *run, const uint64_t *digest)
{
	static char why[700];
	if (run->fleet.timed_out) {
		return run->fleet.stuck;
	}
	for (uint32_t t = 0; t < run->job.trainers; t++) {
		const struct sparse_seen *seen = &run->trainer[t];
		bool lost = seen->pushes_lost > 0 && run->job.discard_ratio == 0;
		if (seen->status != WEFT_OK || lost || seen->digest != digest[t] ||
		    seen->dense_digest != run->trainer[0].dense_digest) {
			(void)snprintf(why, sizeof(why),
				       "trainer %u: %s, %" PRIu64 " pushes lost, digest %" PRIx64
				       ", sequential %" PRIx64,
				       t, seen->status == WEFT_OK ? "ended well" : seen->why,
				       seen->pushes_lost, seen->digest, digest[t]);
			return why;
		}
	}
	for (uint32_t i = 0; i < run->fleet.pservers; i++) {
		if (run->fleet.pserver[i].status != WEFT_OK) {
			(void)snprintf(why, sizeof(why), "pserver %u: %s", i,
				       run->fleet.pserver[i].text);
			return why;
		}
	}
	return NULL;
}

/* Over all seeds. */
struct sum {
	uint64_t frames, cuts, refusals, splits, second_cuts, pulls_repeated, pushes_repeated, lost;
	uint64_t parts_ahead;
};

static bool
check_seed(uint64_t seed, struct wf_env *env, struct sum *sum)
{
	uint64_t digest[SPARSE_TRAINERS_MAX];
	struct run run;
	draw(seed, &run);
	if (sparse_job_sequential(&run.job, env, digest) != WEFT_OK || !run_world(&run)) {
		(void)printf("seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	sum->frames += run.fleet.stats.frames;
	sum->cuts += run.fleet.stats.cuts;
	sum->refusals += run.fleet.stats.refusals;
	sum->splits += run.fleet.stats.splits;
	sum->second_cuts += run.fleet.stats.second_cuts;
	for (uint32_t t = 0; t < run.job.trainers; t++) {
		sum->pulls_repeated += run.trainer[t].pulls_repeated;
		sum->pushes_repeated += run.trainer[t].pushes_repeated;
		sum->parts_ahead += run.trainer[t].parts_ahead;
	}
	const char *wrong = what_is_wrong(&run, digest);
	if (wrong != NULL) {
		(void)printf("FAILED seed %" PRIu64
			     " (%s, %u pservers, %u trainers, %u and %u lanes, %u slots of %" PRIu64
			     ", prefetch %d, tensors %d, %" PRIu64 " cuts): %s; repeat: "
			     "WEFT_SEED=%" PRIu64 " test_sparse\n",
			     seed, run.transport, run.fleet.pservers, run.job.trainers,
			     run.job.ports_num, run.job.ports_num_for_sparse, run.slot_count,
			     run.slot_bytes, run.job.prefetch, run.job.tensors,
			     run.fleet.stats.cuts + run.fleet.stats.second_cuts, wrong, seed);
	}
	return wrong == NULL;
}

/* No cuts, no refusals: what ends the job is what the test does. */
static void
calm_down(struct run *run)
{
	run->fleet.world.cut_per_million = 0;
	run->fleet.world.second_cut_per_million = 0;
	run->fleet.world.refuse_per_mille = 0;
	run->fleet.world.second_refuse_per_mille = 0;
}

/* How many ended with an error; -1: one that no peer's end should give. */
static int
count_failures(const struct run *run)
{
	int failures = 0;
	for (uint32_t t = 0; t < run->job.trainers; t++) {
		enum weft_status st = run->trainer[t].status;
		bool odd = st == WEFT_PROTOCOL || st == WEFT_INTERNAL || st == WEFT_INVALID ||
			   (st != WEFT_OK && run->trainer[t].why[0] == '\0');
		if (run->fleet.trainer[t].returned && odd) {
			(void)printf("trainer %u: %s: %s\n", t, weft_status_name(st),
				     run->trainer[t].why);
			return -1;
		}
		failures += run->fleet.trainer[t].returned && st != WEFT_OK ? 1 : 0;
	}
	return failures;
}

/* Asynchronous and bounded: what comes depends on who is first, but everybody ends well; and of one
 * trainer that looks at nothing ahead the bits are those of the sequential run. */
static bool
check_mode(uint64_t seed, struct wf_env *env, struct sum *sum)
{
	uint64_t digest[SPARSE_TRAINERS_MAX];
	struct run run;
	draw(seed, &run);
	run.job.tensors = false;
	run.job.mode = seed % 2 == 0 ? WEFT_SPARSE_ASYNC : WEFT_SPARSE_BOUNDED;
	run.job.staleness = run.job.mode == WEFT_SPARSE_BOUNDED ? seed / 2 % 3 : 0;
	if (sparse_job_sequential(&run.job, env, digest) != WEFT_OK || !run_world(&run)) {
		(void)printf("seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	sum->frames += run.fleet.stats.frames;
	sum->cuts += run.fleet.stats.cuts;
	bool same = run.job.trainers == 1 && !run.job.prefetch;
	for (uint32_t t = 0; t < run.job.trainers && !same; t++) {
		digest[t] = run.trainer[t].digest;
	}
	const char *wrong = what_is_wrong(&run, digest);
	if (wrong != NULL) {
		(void)printf("FAILED seed %" PRIu64 " mode %d, staleness %u: %s\n", seed,
			     (int)run.job.mode, run.job.staleness, wrong);
	}
	return wrong == NULL;
}

/* In two jobs, with other lanes and pservers, and what the first left to the second: the bits of
 * one job. The cuts are in saving and restoring too. */
static bool
check_restore(uint64_t seed, struct sum *sum)
{
	static struct sparse_kept kept;
	uint64_t digest[SPARSE_TRAINERS_MAX];
	struct run whole, first, second;
	draw(seed, &whole);
	draw(seed + 1000000, &first);
	draw(seed + 2000000, &second);
	whole.job.tensors = true;
	whole.job.passes = 2;
	whole.job.digest_pass = 1;
	struct run *const part[] = {&first, &second};
	for (uint32_t i = 0; i < 2; i++) {
		struct sparse_job job = whole.job;
		job.pservers = part[i]->job.pservers;
		job.transport = part[i]->job.transport;
		job.ports_num = part[i]->job.ports_num;
		job.ports_num_for_sparse = part[i]->job.ports_num_for_sparse;
		job.prefetch = part[i]->job.prefetch;
		part[i]->job = job;
	}
	memset(&kept, 0, sizeof(kept));
	first.job.passes = 1;
	first.job.to = &kept;
	second.job.first_pass = 1;
	second.job.from = &kept;
	bool ran = run_world(&whole) && run_world(&first) && run_world(&second);
	bool same = true;
	for (uint32_t t = 0; t < whole.job.trainers; t++) {
		digest[t] = whole.trainer[t].digest;
		same = same && second.trainer[t].dense_digest == whole.trainer[t].dense_digest;
		sum->pulls_repeated += first.trainer[t].pulls_repeated;
	}
	sum->frames += first.fleet.stats.frames + second.fleet.stats.frames;
	sum->cuts += first.fleet.stats.cuts + second.fleet.stats.cuts;
	const char *wrong = what_is_wrong(&whole, digest);
	for (uint32_t t = 0; t < first.job.trainers && wrong == NULL; t++) {
		wrong = first.trainer[t].status != WEFT_OK ? first.trainer[t].why : NULL;
	}
	wrong = wrong == NULL && first.fleet.timed_out ? first.fleet.stuck : wrong;
	wrong = wrong == NULL ? what_is_wrong(&second, digest) : wrong;
	wrong = wrong == NULL && !same ? "other tensors" : wrong;
	if (!ran || wrong != NULL) {
		(void)printf("FAILED seed %" PRIu64 ": saved with %u x %u sparse lanes, restored "
			     "with %u x %u: %s; repeat: WEFT_SEED=%" PRIu64
			     " test_sparse 1 1 restore\n",
			     seed, first.fleet.pservers, first.job.ports_num_for_sparse,
			     second.fleet.pservers, second.job.ports_num_for_sparse,
			     wrong == NULL ? weft_last_error() : wrong, seed);
	}
	return ran && wrong == NULL;
}

/* Asynchronous and bounded: which bits there are depends on who is first, but what one job left is
 * what another begins with, over other lanes: sparse_job compares them when they are put back. */
static bool
check_keep(uint64_t seed, struct sum *sum)
{
	static struct sparse_kept kept;
	uint64_t digest[SPARSE_TRAINERS_MAX];
	struct run first, second;
	draw(seed, &first);
	draw(seed + 2000000, &second);
	first.job.tensors = true;
	first.job.passes = 1 + seed % 2;
	first.job.mode = seed % 2 == 0 ? WEFT_SPARSE_ASYNC : WEFT_SPARSE_BOUNDED;
	first.job.staleness = first.job.mode == WEFT_SPARSE_BOUNDED ? seed / 2 % 3 : 0;
	first.job.discard_ratio = seed / 4 % 2 == 0 ? 0 : 0.5;
	struct sparse_job job = first.job;
	job.pservers = second.job.pservers;
	job.transport = second.job.transport;
	job.ports_num = second.job.ports_num;
	job.ports_num_for_sparse = second.job.ports_num_for_sparse;
	job.prefetch = second.job.prefetch;
	job.first_pass = first.job.passes;
	job.passes = first.job.passes + 1;
	second.job = job;
	memset(&kept, 0, sizeof(kept));
	first.job.to = &kept;
	second.job.from = &kept;
	bool ran = run_world(&first) && run_world(&second);
	const char *wrong = NULL;
	for (uint32_t n = 0; n < 2 && wrong == NULL; n++) {
		const struct run *run = n == 0 ? &first : &second;
		for (uint32_t t = 0; t < run->job.trainers; t++) {
			digest[t] = run->trainer[t].digest;
			sum->pulls_repeated += run->trainer[t].pulls_repeated;
			sum->lost += run->trainer[t].pushes_lost;
		}
		sum->frames += run->fleet.stats.frames;
		sum->cuts += run->fleet.stats.cuts;
		wrong = what_is_wrong(run, digest);
	}
	if (!ran || wrong != NULL) {
		(void)printf("FAILED seed %" PRIu64 " mode %d: kept with %u x %u sparse lanes, put "
			     "back with %u x %u: %s; repeat: WEFT_SEED=%" PRIu64
			     " test_sparse 1 1 keep\n",
			     seed, (int)first.job.mode, first.fleet.pservers,
			     first.job.ports_num_for_sparse, second.fleet.pservers,
			     second.job.ports_num_for_sparse,
			     wrong == NULL ? weft_last_error() : wrong, seed);
	}
	return ran && wrong == NULL;
}

/* Nobody waits for ever, not even a pserver that nobody reached. */
static bool
all_ended(const struct run *run)
{
	for (uint32_t i = 0; i < run->fleet.pservers; i++) {
		if (!run->fleet.pserver[i].returned && i != run->fleet.kill_pserver) {
			return false;
		}
	}
	for (uint32_t t = 0; t < run->job.trainers; t++) {
		if (!run->fleet.trainer[t].returned && t != run->fleet.kill_trainer) {
			return false;
		}
	}
	return true;
}

/* One process is gone at a moment: the others end within a bound. */
static bool
check_kill(uint64_t seed, struct sum *sum)
{
	struct run run;
	struct wf_rng rng;
	draw(seed, &run);
	calm_down(&run);
	wf_rng_init(&rng, seed, 33);
	bool trainer = wf_rng_below(&rng, 2) == 0;
	run.fleet.kill_ns = (100 + wf_rng_below(&rng, 200)) * WF_NS_PER_MS;
	run.fleet.kill_trainer =
		trainer ? (uint32_t)wf_rng_below(&rng, run.job.trainers) : FLEET_NOBODY;
	run.fleet.kill_pserver =
		trainer ? FLEET_NOBODY : (uint32_t)wf_rng_below(&rng, run.fleet.pservers);
	/* A pserver that is killed before anybody reached it is waited for. */
	run.job.connect_timeout_ns = 5 * WF_NS_PER_S;
	if (!run_world(&run)) {
		(void)printf("seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	int failures = count_failures(&run);
	sum->cuts += failures > 0 ? 1 : 0;
	sum->frames += run.fleet.stats.frames;
	if (!all_ended(&run) || failures < 0) {
		(void)printf("FAILED seed %" PRIu64 ": %s %u dies at %" PRIu64 " ms: %s\n", seed,
			     trainer ? "trainer" : "pserver",
			     trainer ? run.fleet.kill_trainer : run.fleet.kill_pserver,
			     (uint64_t)(run.fleet.kill_ns / WF_NS_PER_MS), run.fleet.stuck);
		return false;
	}
	return true;
}

/* Trainer 1 declares a table otherwise: the job does not begin, and both are told what differs. */
static bool
check_difference(uint64_t seed, struct sum *sum)
{
	struct run run;
	draw(seed, &run);
	calm_down(&run);
	if (run.job.trainers < 2) {
		return true;
	}
	run.other = run.job;
	run.differs = true;
	struct sparse_table_kind *kind = &run.other.table[seed % run.job.table_count];
	switch (seed % 4) {
	case 0:
		kind->dim++;
		break;
	case 1:
		kind->method = strcmp(kind->method, "sgd") == 0 ? "adagrad" : "sgd";
		break;
	case 2:
		kind->wire = kind->wire == WEFT_VALUES_BF16 ? WEFT_VALUES_F16 : WEFT_VALUES_BF16;
		break;
	default:
		run.other.table_count++;
		run.other.table[run.job.table_count] = run.job.table[0];
		break;
	}
	run.job.connect_timeout_ns = 5 * WF_NS_PER_S;
	run.other.connect_timeout_ns = 5 * WF_NS_PER_S;
	bool ran = run_world(&run);
	unsigned mismatches = 0;
	unsigned named = 0;
	unsigned well = 0;
	for (uint32_t t = 0; t < run.job.trainers; t++) {
		const struct sparse_seen *seen = &run.trainer[t];
		well += seen->status == WEFT_OK ? 1 : 0;
		mismatches += seen->status == WEFT_MISMATCH ? 1 : 0;
		named += strstr(seen->why, "declare the same tables") != NULL ? 1 : 0;
	}
	sum->cuts++;
	sum->frames += run.fleet.stats.frames;
	if (!ran || !all_ended(&run) || well > 0 || mismatches == 0 || named == 0) {
		(void)printf("FAILED seed %" PRIu64 ": a difference: %u ended well, %u with "
			     "mismatch, %u name it: %s; trainer 0: %s; trainer 1: %s\n",
			     seed, well, mismatches, named, run.fleet.stuck, run.trainer[0].why,
			     run.trainer[1].why);
		return false;
	}
	return true;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	const char *mode = argc > 3 ? argv[3] : "";
	bool kill = strcmp(mode, "kill") == 0;
	bool differ = strcmp(mode, "differ") == 0;
	bool modes = strcmp(mode, "modes") == 0;
	bool restore = strcmp(mode, "restore") == 0;
	bool keep = strcmp(mode, "keep") == 0;
	struct wf_env *env = NULL;
	struct sum sum = {0};
	uint64_t failed = 0;
	if (wf_env_system_create(WF_LOG_WARN, 2, &env) != WEFT_OK) {
		return 1;
	}
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		bool good = kill      ? check_kill(seed, &sum)
			    : differ  ? check_difference(seed, &sum)
			    : modes   ? check_mode(seed, env, &sum)
			    : restore ? check_restore(seed, &sum)
			    : keep    ? check_keep(seed, &sum)
				      : check_seed(seed, env, &sum);
		failed += good ? 0 : 1;
	}
	wf_env_system_destroy(env);
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " frames, %" PRIu64
		     " cuts, %" PRIu64 " on the second network, %" PRIu64 " refusals, %" PRIu64
		     " splits; pulls said again %" PRIu64 ", pushes %" PRIu64
		     "; parts ahead %" PRIu64 "\n",
		     sweep.count, failed, sum.frames, sum.cuts, sum.second_cuts, sum.refusals,
		     sum.splits, sum.pulls_repeated, sum.pushes_repeated, sum.parts_ahead);
	/* A sweep that injected nothing proves nothing. */
	bool idle = !sweep.is_part && sweep.count >= 20 &&
		    (sum.cuts == 0 || sum.frames == 0 || (keep && sum.lost == 0) ||
		     (mode[0] == '\0' && (sum.pulls_repeated == 0 || sum.pushes_repeated == 0 ||
					  sum.parts_ahead == 0)));
	return failed == 0 && !idle ? 0 : 1;
}
