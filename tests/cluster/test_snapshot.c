/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose pservers take snapshots, and which are killed again and again: a trainer, a pserver or
 * all, at a time of chance, under seeded delays, cuts and stalls. All of the job is started
 * again, with another number of lanes and other slices, and the last run ends with the bits of one
 * that was never disturbed. Numbers of the optimizer change on the way, the ring for copies is
 * small and the disk slow in some jobs. Between two runs the newest snapshot may be damaged, and be
 * whole again before the run after that: by then the job stands on another one, and must not go
 * back to it. Each run has to begin with the snapshot that this test finds by itself in the
 * directory. Usage: test_snapshot [FIRST COUNT]; WEFT_SEED=S runs one seed, WEFT_LONG ten times as
 * many, and WEFT_CLUSTER_LOG=1 shows the log lines of all processes. Thread: one. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rng.h"
#include "base/settings.h"
#include "pserver/lane.h"
#include "tests/cluster/drawn.h"
#include "tests/cluster/killed.h"
#include "tests/support/sweep.h"
#include "weft/restart.h"
#include "weft/weft.h"

#define TRAINERS_MAX CREW_TRAINERS_MAX
#define PASSES DRAWN_PASSES
#define STEPS_MAX 12u
#define TENSORS_MAX 5u
#define SLICE_FLOATS 64u
#define SLICE_BYTES (SLICE_FLOATS * sizeof(float))
#define RUNS_MAX 5u /* of a job, of which the last is not killed */
#define SNAPSHOTS_MAX 64u

struct run {
	struct crew crew;
	struct killed job;
	struct drawn drawn;
	enum weft_dense_wire wire;
	double clip_norm;
	bool averages;
	uint32_t change_step; /* of the first pass: the rate changes, and beta1 later; 0: neither */
	bool changes_first;   /* the rate of each life, before its first step */
	uint64_t slice_bytes; /* of this run */
	uint32_t stop_after;  /* steps, after which a trainer gives up; 0: it does not */

	/* What happens. */
	uint64_t digest[TRAINERS_MAX];
	uint64_t expected; /* the step that they have to begin with; 0: none */
	uint64_t damaged;  /* runs that found the newest snapshot damaged */
};

/* A snapshot that has a manifest. */
struct found {
	uint64_t epoch, step;
};

/* What the test knows of the job's history. */
struct history {
	/* [epoch]: what it began with; step 0: nothing. A run may record its end, too. */
	struct found base[2 * RUNS_MAX + 2];
	uint64_t epoch;    /* the newest */
	struct found hurt; /* was damaged; step 0: none */
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS_MAX];
	struct drawn_place at;
	bool has_changed; /* with changes_first: in this life */
};

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct run *run = crew->run;
	out->slot_bytes_max = 1u << 20;
	killed_fill_server(&run->job, out);
}

static void
add_counts(struct crew *crew, struct wf_server *server)
{
	struct run *run = crew->run;
	killed_add_waits(&run->job, server, 0);
}

static enum weft_status
change_rate(struct member *m)
{
	m->has_changed = true;
	return weft_tensor_change(m->tensor[0], "learning_rate", 0.003);
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = run->slice_bytes;
	opts.dense_wire = run->wire;
	opts.optimizer.method = "adam";
	opts.optimizer.learning_rate = 0.01;
	opts.optimizer.schedule = "poly";
	opts.optimizer.schedule_a = 0.05;
	opts.optimizer.schedule_b = 0.5;
	opts.optimizer.clip_norm = run->clip_norm;
	opts.optimizer.average_window = run->averages ? 0.5 : 0;
	opts.optimizer.max_average_window = run->averages ? 8 : 0;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	for (uint32_t i = 0; i < run->drawn.tensors && st == WEFT_OK; i++) {
		char name[8];
		(void)snprintf(name, sizeof(name), "t%u", i);
		const struct weft_tensor_opts tensor = {.name = name, .rows = run->drawn.count[i]};
		st = weft_tensor_add(m->session, &tensor, &m->tensor[i]);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	if (st == WEFT_OK && run->changes_first) {
		st = change_rate(m);
	}
	for (uint32_t t = 0; t < run->drawn.tensors && st == WEFT_OK; t++) {
		for (uint32_t i = 0; i < run->drawn.count[t]; i++) {
			weft_tensor_param(m->tensor[t])[i] = (float)(i % 7) - (float)m->idx;
		}
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* Steps of the passes before this place, of this trainer. */
static uint32_t
steps_before(const struct member *m)
{
	uint32_t steps = m->at.step;
	for (uint32_t pass = 0; pass < m->at.pass; pass++) {
		steps += m->run->drawn.steps[pass][m->idx];
	}
	return steps;
}

/* All trainers change the rate before the same step, in which all of them take part, and beta1
 * before the first of the second pass. */
static enum weft_status
change(struct member *m)
{
	const uint32_t rate_step = m->run->change_step;
	if (rate_step > 0 && m->at.pass == 1 && m->at.step == 0) {
		return weft_tensor_change(m->tensor[0], "beta1", 0.5);
	}
	bool is_due = m->run->changes_first ? !m->has_changed
					    : m->at.pass == 0 && m->at.step + 1 == rate_step;
	return is_due ? change_rate(m) : WEFT_OK;
}

static enum weft_status
step(struct member *m)
{
	drawn_gradients(&m->run->drawn, m->run->crew.seed, m->idx, steps_before(m), m->tensor);
	enum weft_status st = change(m);
	if (m->run->stop_after != 0 && steps_before(m) == m->run->stop_after) {
		return WEFT_CLOSED;
	}
	m->at.step++;
	st = st == WEFT_OK ? weft_session_position(m->session, &m->at, sizeof(m->at)) : st;
	st = st == WEFT_OK ? weft_step(m->session, 1 + m->idx, 0) : st;
	for (uint32_t t = 0; t < m->run->drawn.tensors && st == WEFT_OK; t++) {
		st = weft_push(m->tensor[t]);
	}
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

static void
find_place(struct member *m)
{
	struct weft_resumed resumed;
	bool is_resumed = drawn_find_place(&m->run->drawn, m->idx, m->session, &resumed, &m->at);
	m->run->job.resumed += is_resumed ? 1 : 0;
	if (!m->run->job.goes_back && (is_resumed ? resumed.step : 0) != m->run->expected) {
		(void)snprintf(m->run->crew.why, sizeof(m->run->crew.why),
			       "trainer %u began after step %" PRIu64 ", not %" PRIu64, m->idx,
			       is_resumed ? resumed.step : 0, m->run->expected);
	}
}

static enum weft_status
train(void *arg)
{
	struct member *m = arg;
	enum weft_status st = WEFT_OK;
	find_place(m);
	while (m->at.pass < PASSES && st == WEFT_OK) {
		while (m->at.step < m->run->drawn.steps[m->at.pass][m->idx] && st == WEFT_OK) {
			st = step(m);
		}
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
		m->at.pass++;
		m->at.step = 0;
	}
	m->run->digest[m->idx] = drawn_digest(&m->run->drawn, m->run->drawn.tensors, m->tensor);
	m->has_changed = false; /* it may go back */
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct run *run = seat->crew->run;
	struct member member;
	enum weft_status st;
	do {
		member = (struct member){.run = run, .idx = seat->idx};
		st = open_session(&member, env);
		st = st == WEFT_OK ? killed_train(&run->job, member.session, train, &member) : st;
	} while (killed_end_session(&run->job, seat, member.session, st));
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 71);
	bool calm = wf_rng_below(&rng, 4) == 0;
	*run = (struct run){0};
	killed_draw(&rng, seed, &run->crew);
	run->crew.run_trainer = run_trainer;
	run->crew.fill_server = fill_server;
	run->crew.look = add_counts;
	run->drawn.tensors = 1 + (uint32_t)wf_rng_below(&rng, TENSORS_MAX);
	run->job.snapshot_steps = 1 + wf_rng_below(&rng, 5);
	run->job.keep = 1 + (uint32_t)wf_rng_below(&rng, 3);
	run->slice_bytes = SLICE_BYTES;
	for (uint32_t i = 0; i < run->drawn.tensors; i++) {
		run->drawn.count[i] = (i == 0 ? 2 * SLICE_FLOATS : 1) +
				      (uint32_t)wf_rng_below(&rng, 6 * SLICE_FLOATS);
	}
	drawn_steps(&rng, run->crew.trainers, STEPS_MAX, 1, &run->drawn);
	uint64_t kind = wf_rng_below(&rng, 6);
	run->wire = kind == 0 ? WEFT_WIRE_BF16 : WEFT_WIRE_F32;
	run->clip_norm = kind == 1 ? 0.5 : 0;
	run->averages = kind == 2;
	run->change_step = kind == 3 ? 1 : 0; /* all trainers have a first step */
	/* Three arrays of state with room for two slices, or for all. */
	run->job.ring_bytes = wf_rng_below(&rng, 3) == 0 ? 0 : 14 * SLICE_BYTES;
	static const uint64_t rates[] = {0, 0, 10000, 30000};
	run->job.rate = rates[wf_rng_below(&rng, WF_ARRAY_COUNT(rates))];
	run->crew.kill_within_ns =
		(20 + wf_rng_below(&rng, run->job.rate == 0 ? 200 : 2000)) * WF_NS_PER_MS;
	crew_draw_world(&rng, calm, 3000, 100, &run->crew);
}

/* Plays the job once. Returns whether it has ended well. */
static bool
play(struct run *run, uint64_t *cuts)
{
	run->crew.run = run;
	return crew_ends_well(&run->crew, cuts);
}

/* The snapshots in the directory that have a manifest. */
static uint32_t
find_all(const struct run *run, struct found out[SNAPSHOTS_MAX])
{
	uint32_t count = 0;
	DIR *dir = opendir(run->job.dir);
	WF_ASSERT(dir != NULL);
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		char path[400];
		struct found *found = &out[count];
		(void)snprintf(path, sizeof(path), "%s/%s/manifest", run->job.dir, entry->d_name);
		if (sscanf(entry->d_name, "epoch-%" SCNu64 "-step-%" SCNu64, &found->epoch,
			   &found->step) == 2 &&
		    access(path, F_OK) == 0) {
			WF_ASSERT(count + 1 < SNAPSHOTS_MAX);
			count++;
		}
	}
	(void)closedir(dir);
	return count;
}

/* Is it of the history that remains? Each epoch stands on what it began with. */
static bool
is_of_history(const struct history *history, const struct found *found)
{
	for (uint64_t epoch = history->epoch; epoch > 0; epoch = history->base[epoch].epoch) {
		uint64_t last = epoch == history->epoch ? UINT64_MAX : 0;
		for (uint64_t e = history->epoch; e > epoch; e = history->base[e].epoch) {
			last = history->base[e].step; /* of the epoch that stands on this one */
		}
		if (found->epoch == epoch) {
			return found->step <= last;
		}
	}
	return false;
}

/* What the next run has to begin with; step 0: nothing. */
static struct found
find_newest(const struct run *run, const struct history *history)
{
	struct found all[SNAPSHOTS_MAX];
	struct found newest = {0};
	uint32_t count = find_all(run, all);
	for (uint32_t i = 0; i < count; i++) {
		bool hurt = history->hurt.step != 0 && all[i].epoch == history->hurt.epoch &&
			    all[i].step == history->hurt.step;
		bool newer = all[i].epoch > newest.epoch ||
			     (all[i].epoch == newest.epoch && all[i].step > newest.step);
		newest = newer && !hurt && is_of_history(history, &all[i]) ? all[i] : newest;
	}
	return newest;
}

/* The path of a dense lane's part. */
static bool
find_part(const struct run *run, const struct found *found, uint64_t lane, char out[160])
{
	(void)snprintf(out, 160, "%s/epoch-%05" PRIu64 "-step-%010" PRIu64 "/dense-%" PRIu64,
		       run->job.dir, found->epoch, found->step, lane);
	return access(out, F_OK) == 0;
}

/* Flips a bit in the middle of a part, of any lane; once more, and it is whole. */
static void
damage(const struct run *run, const struct found *found)
{
	char path[160];
	uint8_t byte = 0;
	uint64_t lanes = 0;
	while (find_part(run, found, lanes, path)) {
		lanes++;
	}
	WF_ASSERT(lanes > 0 && find_part(run, found, found->step % lanes, path));
	int fd = open(path, O_RDWR);
	off_t at = lseek(fd, 0, SEEK_END) / 2;
	WF_ASSERT(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 4;
	WF_ASSERT(pwrite(fd, &byte, 1, at) == 1);
	(void)close(fd);
}

/* Before the run `runs`: what it has to begin with, and sometimes damage. */
static void
prepare(struct run *run, struct history *history, uint32_t runs)
{
	if (history->hurt.step != 0) {
		damage(run, &history->hurt); /* it is whole again */
		history->hurt = (struct found){0};
	}
	history->epoch = killed_count_records(&run->job);
	bool ended = killed_has_ended(&run->job, history->epoch);
	struct found newest = ended ? (struct found){0} : find_newest(run, history);
	if (newest.step != 0 && (run->crew.seed + runs) % 3 == 0) {
		history->hurt = newest;
		struct found older = find_newest(run, history);
		history->hurt = older.step != 0 ? newest : (struct found){0};
		if (older.step != 0) {
			damage(run, &newest);
			newest = older;
			run->damaged++;
		}
	}
	run->expected = newest.step;
	WF_ASSERT(history->epoch + 1 < WF_ARRAY_COUNT(history->base));
	history->base[history->epoch + 1] = newest; /* if it lives to make its record */
}

static bool
check_kept(struct run *run, const struct history *history)
{
	struct found all[SNAPSHOTS_MAX];
	uint32_t count = find_all(run, all);
	uint32_t of_history = 0;
	for (uint32_t i = 0; i < count; i++) {
		of_history += is_of_history(history, &all[i]) ? 1 : 0;
	}
	/* One more may be there between the manifest and the removal. */
	if (of_history > run->job.keep + (run->crew.victim != CREW_TRAINER ? 1 : 0)) {
		(void)snprintf(run->crew.why, sizeof(run->crew.why),
			       "%u snapshots are kept, not %u", of_history, run->job.keep);
	}
	return run->crew.why[0] == '\0';
}

/* Kills the job again and again, and lets it end. Afterwards the same begins anew. */
static bool
play_with_kills(struct run *run, const struct run *plain, uint64_t *cuts, uint64_t *killed)
{
	struct history history = {0};
	uint32_t runs = 0;
	bool ended = false;
	while (!ended && runs < RUNS_MAX && run->crew.why[0] == '\0') {
		static const uint64_t floats[] = {SLICE_FLOATS, 48, 96, 256};
		run->slice_bytes = sizeof(float) * floats[(run->crew.seed + runs) % 4];
		run->job.ring_bytes = run->job.ring_bytes != 0 ? 14 * run->slice_bytes : 0;
		killed_begin_run(&run->crew, runs, RUNS_MAX);
		prepare(run, &history, runs);
		ended = play(run, cuts) && check_kept(run, &history);
		*killed += ended ? 0 : 1;
		runs++;
	}
	if (!ended || !drawn_compare(&run->crew, run->digest, plain->digest[0])) {
		return false;
	}
	if (killed_may_go_on(&run->crew)) {
		return true;
	}
	run->expected = 0;
	run->crew.kills = false;
	return play(run, cuts) && drawn_compare(&run->crew, run->digest, plain->digest[0]);
}

/* The job again, in which some are killed and started again, and the others go back. */
static bool
play_with_lives(struct run *run, uint64_t expected, uint64_t *cuts)
{
	run->crew.run = run;
	return killed_play_lives(&run->job, &run->crew, run->digest, expected, cuts);
}

/* The next run of a job, which stops after so many steps. `expected` is what the one after it has
 * to begin with. */
static bool
play_until(struct run *run, uint32_t stop_after, struct history *history, uint64_t *cuts)
{
	history->epoch++;
	run->crew.kills = true;                        /* it may end badly, */
	run->crew.kill_within_ns = 3600 * WF_NS_PER_S; /* and nobody is killed */
	run->stop_after = stop_after;
	bool ended = play(run, cuts);
	run->stop_after = 0;
	run->crew.kills = false;
	const struct found newest = find_newest(run, history);
	history->base[history->epoch + 1] = newest;
	run->expected = newest.step;
	return !ended && newest.epoch == history->epoch;
}

static bool
play_once(struct run *run, uint64_t *cuts)
{
	struct history history = {0};
	return play_until(run, 18, &history, cuts);
}

/* Two trainers with 20 steps, without faults, and a snapshot of each step. */
static bool
prepare_two(struct run *run)
{
	draw(1, run);
	run->crew.trainers = 2;
	run->crew.lanes = 1;
	run->crew.world =
		(struct wf_world_opts){.seed = 1,
				       .delay_min_ns = WF_NS_PER_MS,
				       .delay_max_ns = 3 * WF_NS_PER_MS,
				       .log_level = WF_LOG_INFO,
				       .log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1};
	run->wire = WEFT_WIRE_F32;
	run->averages = false;
	run->clip_norm = 0;
	run->change_step = 0;
	run->job.rate = 0;
	run->job.ring_bytes = 0;
	run->job.snapshot_steps = 1;
	run->drawn.tensors = 1;
	for (uint32_t t = 0; t < 2; t++) {
		run->drawn.steps[0][t] = 20;
		run->drawn.steps[1][t] = 1;
	}
	return killed_make_dir(&run->job);
}

/* As many as are to be kept are. */
static bool
check_keep(uint32_t keep, uint64_t *cuts)
{
	struct run run;
	struct found all[SNAPSHOTS_MAX];
	bool ok = prepare_two(&run);
	run.job.keep = keep;
	ok = ok && play_once(&run, cuts);
	uint32_t count = ok ? find_all(&run, all) : 0;
	ok = ok && count == keep && run.expected >= 15;
	killed_remove_dir(&run.job);
	if (!ok) {
		(void)printf("FAILED: with keep %u there are %u, the newest of step %" PRIu64 "\n",
			     keep, count, run.expected);
	}
	return ok;
}

/* A tensor of one long slice, saved by one lane, is loaded by three in short ones. */
static bool
check_long(uint64_t *cuts)
{
	struct run run, plain;
	bool ok = prepare_two(&run);
	run.drawn.count[0] = 50000;
	run.slice_bytes = 1u << 20;
	plain = run;
	plain.job.dir[0] = '\0';
	ok = ok && play(&plain, cuts) && play_once(&run, cuts);
	run.slice_bytes = 4096;
	run.crew.lanes = 3;
	ok = ok && play(&run, cuts) && drawn_compare(&run.crew, run.digest, plain.digest[0]) &&
	     run.job.resumed == 2;
	killed_remove_dir(&run.job);
	if (!ok) {
		(void)printf("FAILED: one long slice: %s%s\n", plain.crew.why, run.crew.why);
	}
	return ok;
}

/* Two of the three lanes have no slice of the first tensor. Its rate changes in the first run, and
 * its beta1 in the second; both are in force in the third. */
static bool
check_changes(uint64_t *cuts)
{
	struct run run, plain;
	struct history history = {0};
	bool ok = prepare_two(&run);
	run.crew.pservers = 1;
	run.crew.lanes = 3;
	run.change_step = 2;
	run.drawn.tensors = 2;
	run.drawn.count[0] = SLICE_FLOATS;
	run.drawn.count[1] = 6 * SLICE_FLOATS;
	for (uint32_t t = 0; t < 2; t++) {
		run.drawn.steps[0][t] = 10;
		run.drawn.steps[1][t] = 20;
	}
	plain = run;
	plain.job.dir[0] = '\0';
	ok = ok && play(&plain, cuts) && play_until(&run, 8, &history, cuts) &&
	     play_until(&run, 20, &history, cuts) && run.expected > 10 && play(&run, cuts) &&
	     drawn_compare(&run.crew, run.digest, plain.digest[0]) && run.job.resumed == 4;
	killed_remove_dir(&run.job);
	if (!ok) {
		(void)printf("FAILED: changes of two runs: %s%s\n", plain.crew.why, run.crew.why);
	}
	return ok;
}

/* Some are killed while the others start, and are started again. The trainers change the rate
 * before they start, or when they have gone back later. */
static bool
check_changes_first(uint64_t *cuts)
{
	bool ok = true;
	for (uint64_t seed = 1; seed <= 20 && ok; seed++) {
		struct run run, plain;
		ok = prepare_two(&run);
		killed_remove_dir(&run.job); /* it gets another one */
		run.changes_first = true;
		run.crew.seed = seed;
		run.crew.kill_within_ns = 20 * WF_NS_PER_MS;
		plain = run;
		plain.job.dir[0] = '\0';
		ok = ok && play(&plain, cuts) && play_with_lives(&run, plain.digest[0], cuts);
		if (!ok) {
			(void)printf("FAILED: changes before the start, seed %" PRIu64 ": %s%s\n",
				     seed, plain.crew.why, run.crew.why);
		}
	}
	return ok;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0, cuts = 0, killed = 0, resumed = 0, damaged = 0, waits = 0;
	uint64_t rejoined = 0, anew = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run, plain, lives;
		draw(seed, &run);
		plain = run;
		lives = run;
		if (!killed_make_dir(&run.job) || !play(&plain, &cuts) ||
		    !play_with_kills(&run, &plain, &cuts, &killed) ||
		    !play_with_lives(&lives, plain.digest[0], &cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64 " (%u pservers, %u lanes, %u trainers, "
				     "%u tensors, wire %d, ring %" PRIu64
				     "): %s%s%s; repeat: WEFT_SEED=%" PRIu64 " test_snapshot\n",
				     seed, run.crew.pservers, run.crew.lanes, run.crew.trainers,
				     run.drawn.tensors, (int)run.wire, run.job.ring_bytes,
				     plain.crew.why, run.crew.why, lives.crew.why, seed);
		}
		killed_remove_dir(&run.job);
		resumed += run.job.resumed;
		damaged += run.damaged;
		waits += run.job.waits;
		rejoined += lives.job.rejoined;
		anew += lives.job.anew;
	}
	for (uint32_t keep = 1; keep <= 3; keep++) {
		failed += check_keep(keep, &cuts) ? 0 : 1;
	}
	failed += check_long(&cuts) ? 0 : 1;
	failed += check_changes(&cuts) ? 0 : 1;
	failed += check_changes_first(&cuts) ? 0 : 1;
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " runs killed, %" PRIu64 " trainers began with a snapshot, %" PRIu64
		     " times the newest was damaged, %" PRIu64
		     " applies waited for room; with survivors %" PRIu64
		     " trainers went back, %" PRIu64 " began anew\n",
		     sweep.count, failed, cuts, killed, resumed, damaged, waits, rejoined, anew);
	/* A sweep that injected nothing proves nothing. */
	bool enough = sweep.is_part || sweep.count < 20 ||
		      (cuts > 0 && killed > sweep.count / 2 && resumed > sweep.count / 2 &&
		       damaged > 0 && waits > 0 && rejoined > sweep.count / 2 && anew > 0);
	return failed == 0 && enough ? 0 : 1;
}
