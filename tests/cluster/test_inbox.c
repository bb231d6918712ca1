/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs over lanes whose inbox has room for a few slices, or for one, with tensors pushed in any
 * order by each trainer in each step, under seeded delays, cuts, refusals and stalls: each job ends
 * with the bits of the same job over lanes with room for all, and no lane copies more aside than it
 * may. In half of them tensors have priorities, which change no bit either, and in half they travel
 * in 16 bits: what leaves again after a cut has the bits that it had. Usage: test_inbox
 * [FIRST COUNT]; WEFT_SEED=S runs one seed, WEFT_LONG ten times as many, and WEFT_CLUSTER_LOG=1
 * shows the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/settings.h"
#include "pserver/lane.h"
#include "tests/cluster/drawn.h"
#include "tests/support/sweep.h"
#include "weft/weft.h"

#define PSERVERS_MAX 2u
#define TRAINERS_MAX CREW_TRAINERS_MAX
#define PASSES DRAWN_PASSES
#define STEPS_MAX 5u
#define TENSORS_MAX 6u
#define SLICE_FLOATS 64u
#define SLICE_BYTES (SLICE_FLOATS * sizeof(float))

struct run {
	struct crew crew;
	struct drawn drawn;
	enum weft_dense_mode mode;
	enum weft_dense_wire wire;
	enum weft_rounding rounding;
	uint32_t room; /* slices that a lane may hold; 0: all */
	int32_t priority[TENSORS_MAX];
	bool mixed; /* the last tensor is applied as its gradients come */

	/* What happens. */
	uint64_t digest[TRAINERS_MAX];
	uint64_t announced, held, waits_announce, waits_inbox, parked;
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS_MAX];
	struct wf_rng rng;
};

static uint64_t
inbox_bytes(const struct run *run)
{
	uint64_t slice_bytes = run->wire == WEFT_WIRE_F32 ? SLICE_BYTES : SLICE_BYTES / 2;
	return run->room * run->crew.trainers * slice_bytes;
}

static void
add_counts(struct crew *crew, struct wf_server *server)
{
	struct run *run = crew->run;
	for (uint32_t i = 0; i < wf_server_lane_count(server); i++) {
		const struct wf_stats *stats = wf_server_stats(server, i);
		uint64_t peak = wf_stats_get(stats, WF_LANE_PARK_PEAK_BYTES);
		run->announced += wf_stats_get(stats, WF_LANE_SLICE_ANNOUNCED_COUNT);
		run->held += wf_stats_get(stats, WF_LANE_SLICE_HELD_COUNT);
		run->waits_announce += wf_stats_get(stats, WF_LANE_WAIT_ANNOUNCE_COUNT);
		run->waits_inbox += wf_stats_get(stats, WF_LANE_WAIT_INBOX_COUNT);
		run->parked += wf_stats_get(stats, WF_LANE_SLICE_PARKED_COUNT);
		if (run->room > 0 && peak > inbox_bytes(run) && run->crew.why[0] == '\0') {
			(void)snprintf(run->crew.why, sizeof(run->crew.why),
				       "lane %u parked %" PRIu64 " bytes of %" PRIu64, i, peak,
				       inbox_bytes(run));
		}
	}
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = SLICE_BYTES;
	opts.progress = WEFT_PROGRESS_CALLER;
	opts.dense_mode = run->mode;
	opts.dense_wire = run->wire;
	opts.dense_rounding = run->rounding;
	opts.rounding_seed = run->crew.seed;
	opts.local_steps = run->mode == WEFT_DENSE_LOCAL ? 2 : 0;
	opts.optimizer.method = run->mode == WEFT_DENSE_LOCAL ? "sgd" : "adam";
	opts.optimizer.learning_rate = 0.01;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	for (uint32_t i = 0; i < run->drawn.tensors && st == WEFT_OK; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", i);
		const struct weft_tensor_opts tensor = {
			.name = name,
			.rows = run->drawn.count[i],
			.priority = run->priority[i],
			.mode = run->mixed && i == run->drawn.tensors - 1 ? WEFT_TENSOR_ASYNC
									  : WEFT_TENSOR_AS_SESSION,
		};
		st = weft_tensor_add(m->session, &tensor, &m->tensor[i]);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* All tensors in any order; between two pushes the world goes on, or not. */
static enum weft_status
push_all(struct member *m)
{
	uint32_t order[TENSORS_MAX];
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < m->run->drawn.tensors; i++) {
		uint32_t at = (uint32_t)wf_rng_below(&m->rng, i + 1);
		order[i] = order[at];
		order[at] = i;
	}
	for (uint32_t i = 0; i < m->run->drawn.tensors && st == WEFT_OK; i++) {
		st = weft_push(m->tensor[order[i]]);
		for (uint64_t turns = wf_rng_below(&m->rng, 3); turns > 0 && st == WEFT_OK;
		     turns--) {
			st = weft_poll(m->session);
		}
	}
	return st;
}

static enum weft_status
train(struct member *m)
{
	uint32_t done = 0;
	enum weft_status st = WEFT_OK;
	for (uint32_t pass = 0; pass < PASSES && st == WEFT_OK; pass++) {
		for (uint32_t step = 0; step < m->run->drawn.steps[pass][m->idx] && st == WEFT_OK;
		     step++) {
			drawn_gradients(&m->run->drawn, m->run->crew.seed, m->idx, done++,
					m->tensor);
			st = weft_step(m->session, 1 + m->idx, 0);
			st = st == WEFT_OK ? push_all(m) : st;
			st = st == WEFT_OK ? weft_wait_all(m->session) : st;
		}
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	}
	/* Of what is summed: an order of arrival changes no bit of it. */
	m->run->digest[m->idx] = drawn_digest(
		&m->run->drawn, m->run->drawn.tensors - (m->run->mixed ? 1 : 0), m->tensor);
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct member *m = &member;
	wf_rng_init(&m->rng, seat->crew->seed, 60 + m->idx);
	enum weft_status st = open_session(m, env);
	st = st == WEFT_OK ? train(m) : st;
	(void)crew_end_session(seat, m->session, st);
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 53);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.crew.seed = seed,
		.mode = wf_rng_below(&rng, 6) == 0 ? WEFT_DENSE_LOCAL : WEFT_DENSE_SYNC,
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, PSERVERS_MAX),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 2),
		.crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, TRAINERS_MAX),
		.drawn.tensors = 1 + (uint32_t)wf_rng_below(&rng, TENSORS_MAX),
		.crew.slot_count = 1u << wf_rng_below(&rng, 3),
		.room = 1 + (uint32_t)wf_rng_below(&rng, 3),
		.crew.transport = wf_rng_below(&rng, 2) == 0 ? "sim" : "sim-auto",
		.crew.run_trainer = run_trainer,
		.crew.look = add_counts,
	};
	for (uint32_t i = 0; i < run->drawn.tensors; i++) {
		/* The first is as long as a slice at least: room is counted in these. */
		run->drawn.count[i] = (i == 0 ? SLICE_FLOATS * PSERVERS_MAX * 2 : 1) +
				      (uint32_t)wf_rng_below(&rng, 10 * SLICE_FLOATS);
	}
	drawn_steps(&rng, run->crew.trainers, STEPS_MAX, 0, &run->drawn);
	run->mixed = run->mode == WEFT_DENSE_SYNC && run->drawn.tensors > 1 &&
		     wf_rng_below(&rng, 5) == 0;
	bool ranks = wf_rng_below(&rng, 2) == 0;
	for (uint32_t i = 0; i < run->drawn.tensors && ranks; i++) {
		run->priority[i] = (int32_t)wf_rng_below(&rng, 5) - 2;
	}
	if (wf_rng_below(&rng, 2) == 0) {
		run->wire = wf_rng_below(&rng, 2) == 0 ? WEFT_WIRE_BF16 : WEFT_WIRE_F16;
		run->rounding = (enum weft_rounding)wf_rng_below(&rng, 2);
	}
	crew_draw_world(&rng, calm, 8000, 200, &run->crew);
	run->crew.world.second_cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(&rng, 8000);
	run->crew.world.second_cut_max = 1 + (uint32_t)wf_rng_below(&rng, 40);
}

/* The same job, undisturbed, over lanes with room for all. */
static void
make_plain(struct run *run)
{
	run->room = 0;
	memset(run->priority, 0, sizeof(run->priority));
	run->crew.transport = "sim";
	run->crew.world = (struct wf_world_opts){
		.seed = 1,
		.delay_min_ns = WF_NS_PER_US,
		.delay_max_ns = WF_NS_PER_US,
		.log_fd = -1,
	};
}

static bool
play(struct run *run, uint64_t *cuts)
{
	run->crew.run = run;
	run->crew.inbox_bytes = inbox_bytes(run);
	return crew_ends_well(&run->crew, cuts);
}

/* Each push of each slice was announced, or there was room for all; once, unless its path broke. */
static bool
compare(struct run *run, const struct run *plain, uint64_t cuts)
{
	if (!drawn_compare(&run->crew, run->digest, plain->digest[0])) {
		return false;
	}
	bool counts = plain->announced == 0 && plain->held == 0 && run->held <= run->announced &&
		      run->waits_announce + run->waits_inbox <= run->announced &&
		      (cuts > 0 || run->held * run->crew.trainers >= run->announced);
	if (!counts) {
		(void)snprintf(run->crew.why, sizeof(run->crew.why), "counters do not add up");
	}
	return counts;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0, cuts = 0, announced = 0, waits_announce = 0, waits_inbox = 0,
		 parked = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run, plain;
		uint64_t run_cuts = 0;
		draw(seed, &run);
		plain = run;
		make_plain(&plain);
		if (!play(&plain, &run_cuts) || !play(&run, &run_cuts) ||
		    !compare(&run, &plain, run_cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (mode %d, %u pservers, %u lanes, %u trainers, %u slots, "
				     "room %u, wire %d, %s): %s%s; repeat: WEFT_SEED=%" PRIu64
				     " test_inbox\n",
				     seed, (int)run.mode, run.crew.pservers, run.crew.lanes,
				     run.crew.trainers, run.crew.slot_count, run.room,
				     (int)run.wire, run.crew.transport, plain.crew.why,
				     run.crew.why, seed);
		}
		cuts += run_cuts;
		announced += run.announced;
		waits_announce += run.waits_announce;
		waits_inbox += run.waits_inbox;
		parked += run.parked;
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " slices announced, waited: %" PRIu64 " for other trainers, %" PRIu64
		     " for room; %" PRIu64 " parked\n",
		     sweep.count, failed, cuts, announced, waits_announce, waits_inbox, parked);
	/* A sweep that injected nothing proves nothing. */
	bool enough = sweep.is_part || sweep.count < 20 ||
		      (cuts > 0 && waits_announce > 0 && waits_inbox > 0 && parked > 0);
	return failed == 0 && enough ? 0 : 1;
}
