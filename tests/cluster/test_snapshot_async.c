/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous and bounded jobs whose pservers take snapshots, and which are killed again and
 * again, under seeded delays, cuts and stalls; all of the job is started again, with another
 * number of lanes; or only the one that was killed is, and the others go back. Element i of a
 * tensor belongs to trainer i modulo their number, which adds n to it in its n-th step, so a value
 * shows exactly which steps of its trainer were applied to it, if they were applied in their order
 * and once. In each snapshot, every slice must have the steps that its versions claim, and those
 * before its trainers' positions; at the end every element has all steps of its trainer once. In
 * bounded jobs no trainer is further ahead than the bound, before and after a restart. Usage:
 * test_snapshot_async [FIRST COUNT]; WEFT_SEED=S runs one seed, WEFT_LONG ten times as many, and
 * WEFT_CLUSTER_LOG=1 shows the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "base/settings.h"
#include "pserver/lane.h"
#include "saved/part.h"
#include "saved/snapshot.h"
#include "tests/cluster/drawn.h"
#include "tests/cluster/killed.h"
#include "tests/support/sweep.h"
#include "weft/restart.h"
#include "weft/weft.h"
#include "wire/little.h"

#define PASSES DRAWN_PASSES
#define STEPS_MAX 12u
#define TENSORS_MAX 4u
#define SLICE_FLOATS 64u
#define RUNS_MAX 5u     /* of a job, of which the last is not killed */
#define SLICES_MAX 128u /* of a job */

struct run {
	struct crew crew;
	struct killed job;
	struct drawn drawn;
	enum weft_dense_mode mode;
	uint32_t staleness;

	struct wf_env *files;

	/* What happens. */
	struct drawn_place at[CREW_TRAINERS_MAX]; /* which each has begun to push; or begins at */
	bool out[CREW_TRAINERS_MAX];              /* it has ended the pass */
	struct wf_snapshot_id newest; /* with which the run has to begin; step 0: none */
	uint64_t digest[CREW_TRAINERS_MAX];
	uint64_t ahead; /* slices in snapshots that have more than a position */
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_tensor *tensor[TENSORS_MAX];
	struct drawn_place at;
};

__attribute__((format(printf, 2, 3))) static void
complain(struct run *run, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (run->crew.why[0] == '\0') {
		(void)vsnprintf(run->crew.why, sizeof(run->crew.why), format, args);
	}
	va_end(args);
}

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct run *run = crew->run;
	out->slot_bytes_max = 1u << 20;
	killed_fill_server(&run->job, out);
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = SLICE_FLOATS * sizeof(float);
	opts.dense_mode = run->mode;
	opts.dense_staleness = run->staleness;
	opts.optimizer.learning_rate = 1;
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
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* Steps of the trainer in the passes before this place, and in its own. */
static uint32_t
steps_before(const struct run *run, uint32_t trainer, struct drawn_place at)
{
	uint32_t steps = at.step;
	for (uint32_t pass = 0; pass < at.pass; pass++) {
		steps += run->drawn.steps[pass][trainer];
	}
	return steps;
}

/* Nobody in this pass has pushed too little for this trainer to have its answer. */
static void
check_bound(const struct member *m)
{
	struct run *run = m->run;
	for (uint32_t t = 0; t < run->crew.trainers && run->mode == WEFT_DENSE_BOUNDED; t++) {
		const struct drawn_place *other = &run->at[t];
		bool counts =
			other->pass < m->at.pass || (other->pass == m->at.pass && !run->out[t]);
		uint32_t pushed = other->pass < m->at.pass ? 0 : other->step;
		if (counts && pushed + run->staleness < m->at.step) {
			complain(run,
				 "step %u of pass %u of trainer %u was answered, trainer %u has "
				 "pushed %u",
				 m->at.step, m->at.pass, m->idx, t, pushed);
		}
	}
}

static enum weft_status
step(struct member *m)
{
	struct run *run = m->run;
	const float number = (float)steps_before(run, m->idx, m->at) + 1;
	for (uint32_t t = 0; t < run->drawn.tensors; t++) {
		float *grad = weft_tensor_grad(m->tensor[t]);
		for (uint32_t i = 0; i < run->drawn.count[t]; i++) {
			grad[i] = i % run->crew.trainers == m->idx ? -number : 0;
		}
	}
	m->at.step++;
	run->at[m->idx] = m->at;
	enum weft_status st = weft_session_position(m->session, &m->at, sizeof(m->at));
	st = st == WEFT_OK ? weft_exchange(m->session, 1, 0) : st;
	if (st == WEFT_OK) {
		check_bound(m);
	}
	return st;
}

/* Where the trainer goes on. One whose position is of an earlier pass has no data in this one. */
static void
find_place(struct member *m)
{
	struct weft_resumed resumed;
	bool is_resumed = drawn_find_place(&m->run->drawn, m->idx, m->session, &resumed, &m->at);
	m->run->job.resumed += is_resumed ? 1 : 0;
	if (m->run->job.goes_back) {
		return;
	}
	if (is_resumed != (m->run->newest.step != 0)) {
		complain(m->run, "trainer %u began %s a snapshot", m->idx,
			 is_resumed ? "with" : "without");
	}
	if (is_resumed && memcmp(&m->at, &m->run->at[m->idx], sizeof(m->at)) != 0) {
		complain(m->run,
			 "trainer %u goes on after step %u of pass %u, its position is %u, %u",
			 m->idx, m->at.step, m->at.pass, m->run->at[m->idx].step,
			 m->run->at[m->idx].pass);
	}
}

static float
sum_of(uint64_t steps)
{
	return (float)(steps * (steps + 1) / 2);
}

static void
check_end(struct member *m)
{
	struct run *run = m->run;
	for (uint32_t t = 0; t < run->drawn.tensors; t++) {
		const float *value = weft_tensor_param(m->tensor[t]);
		for (uint32_t i = 0; i < run->drawn.count[t]; i++) {
			uint32_t owner = i % run->crew.trainers;
			uint32_t steps =
				steps_before(run, owner, (struct drawn_place){.pass = PASSES});
			if (value[i] != sum_of(steps)) {
				complain(run,
					 "element %u of tensor %u is %g, with %u steps of trainer "
					 "%u it is %g",
					 i, t, (double)value[i], steps, owner,
					 (double)sum_of(steps));
			}
		}
	}
}

static enum weft_status
train(void *arg)
{
	struct member *m = arg;
	enum weft_status st = WEFT_OK;
	find_place(m);
	while (m->at.pass < PASSES && st == WEFT_OK) {
		m->run->out[m->idx] = false;
		m->run->at[m->idx] = m->at;
		while (m->at.step < m->run->drawn.steps[m->at.pass][m->idx] && st == WEFT_OK) {
			st = step(m);
		}
		m->run->out[m->idx] = st == WEFT_OK;
		st = st == WEFT_OK ? weft_pass_end(m->session) : st;
		m->at.pass++;
		m->at.step = 0;
	}
	if (st == WEFT_OK) {
		check_end(m);
	}
	m->run->digest[m->idx] = drawn_digest(&m->run->drawn, m->run->drawn.tensors, m->tensor);
	return st;
}

/* The first epoch of the job as it is now: the one after the newest record of an end. */
static uint64_t
find_first_epoch(const struct run *run)
{
	const uint64_t count = killed_count_records(&run->job);
	uint64_t first = 1;
	for (uint64_t epoch = 1; epoch <= count; epoch++) {
		first = killed_has_ended(&run->job, epoch) ? epoch + 1 : first;
	}
	return first;
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

/* ---- what a snapshot has ---- */

struct slice {
	struct wf_part_block block;
	float value[SLICE_FLOATS];
	bool has_versions;
};

struct content {
	struct run *run;
	const struct wf_manifest *manifest;
	struct slice slice[SLICES_MAX];
	uint32_t count;
};

/* The versions claim what the values show. */
static void
check_versions(struct content *content, struct slice *slice, const uint8_t *payload)
{
	struct run *run = content->run;
	const uint32_t trainers = run->crew.trainers;
	uint64_t version = 0;
	bool is_ahead = false;
	slice->has_versions = true;
	for (uint32_t t = 0; t < trainers; t++) {
		uint64_t steps = wf_load_u64(payload + 16 + 8 * (size_t)t);
		version += steps;
		is_ahead = is_ahead || steps > content->manifest->parts.position[t].made;
		if (steps < content->manifest->parts.position[t].made) {
			complain(run,
				 "a slice has %" PRIu64 " steps of trainer %u, which goes on "
				 "after %" PRIu64,
				 steps, t, content->manifest->parts.position[t].made);
		}
	}
	run->ahead += is_ahead ? 1 : 0;
	if (version != wf_load_u64(payload)) {
		complain(run, "a slice is of version %" PRIu64 " and has %" PRIu64 " steps",
			 wf_load_u64(payload), version);
	}
	for (uint32_t i = 0; i < slice->block.count; i++) {
		uint64_t owner = (slice->block.first + i) % trainers;
		uint64_t steps = wf_load_u64(payload + 16 + 8 * owner);
		if (slice->value[i] != sum_of(steps)) {
			complain(run,
				 "an element is %g in a slice with %" PRIu64
				 " steps of trainer %" PRIu64,
				 (double)slice->value[i], steps, owner);
		}
	}
}

static struct slice *
find_slice(struct content *content, const struct wf_part_block *block)
{
	for (uint32_t i = 0; i < content->count; i++) {
		if (content->slice[i].block.item == block->item &&
		    content->slice[i].block.first == block->first) {
			return &content->slice[i];
		}
	}
	return NULL;
}

static enum weft_status
read_block(struct content *content, struct wf_part_reader *reader,
	   const struct wf_part_block *block)
{
	uint8_t payload[16 + 8 * CREW_TRAINERS_MAX];
	if (block->kind == WF_PART_SLICE) {
		WF_ASSERT(content->count < SLICES_MAX && block->count <= SLICE_FLOATS);
		struct slice *slice = &content->slice[content->count++];
		slice->block = *block;
		return wf_part_read(reader, slice->value, block->bytes);
	}
	struct slice *slice = find_slice(content, block);
	if (block->kind != WF_PART_VERSIONS || slice == NULL || block->bytes > sizeof(payload)) {
		complain(content->run, "a block of kind %u", block->kind);
		return wf_part_skip(reader);
	}
	enum weft_status st = wf_part_read(reader, payload, block->bytes);
	if (st == WEFT_OK) {
		check_versions(content, slice, payload);
	}
	return st;
}

static void
check_part(struct content *content, const char *path)
{
	struct wf_part_reader *reader = NULL;
	struct wf_part_block block;
	enum weft_status st = wf_part_open(content->run->files, wf_saved_posix(), path, &reader);
	while (st == WEFT_OK) {
		st = wf_part_next(reader, &block);
		st = st == WEFT_OK ? read_block(content, reader, &block) : st;
	}
	wf_part_close(reader);
	if (st != WEFT_CLOSED) {
		complain(content->run, "%s: %.100s", path, weft_last_error());
	}
}

/* What trainers begin with, and whether position and steps agree. */
static void
note_positions(struct run *run, const struct wf_manifest *manifest)
{
	uint32_t passes = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		const struct wf_manifest_position *position = &manifest->parts.position[t];
		run->at[t] = (struct drawn_place){0};
		run->out[t] = false;
		if (position->bytes == 4 + sizeof(struct drawn_place)) {
			memcpy(&run->at[t], position->position + 4, sizeof(struct drawn_place));
			uint32_t pass = wf_load_u32(position->position);
			passes = pass > passes ? pass : passes;
		}
		if (steps_before(run, t, run->at[t]) != position->made) {
			complain(run, "trainer %u has made %" PRIu64 " steps at step %u of pass %u",
				 t, position->made, run->at[t].step, run->at[t].pass);
		}
	}
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		if (run->at[t].pass + 1 < passes) {
			/* It had no data in this pass: all of its steps were before it. */
			run->at[t].pass = passes - 1;
			run->at[t].step = run->drawn.steps[passes - 1][t];
			run->out[t] = true;
			if (run->at[t].step != 0) {
				complain(run, "trainer %u loses a pass", t);
			}
		}
	}
}

static void
check_snapshot(struct run *run)
{
	struct wf_snapshot *snapshot = NULL;
	struct content *content = calloc(1, sizeof(*content));
	enum weft_status st = wf_snapshot_open(run->files, wf_saved_posix(), run->job.dir,
					       run->newest, &snapshot);
	WF_ASSERT(st == WEFT_OK && content != NULL);
	content->run = run;
	content->manifest = wf_snapshot_manifest(snapshot);
	if (!content->manifest->parts.is_vector) {
		complain(run, "the snapshot is no vector");
	}
	for (uint32_t i = 0; i < content->manifest->parts.part_count; i++) {
		char path[WF_SAVED_PATH_BYTES];
		WF_ASSERT(wf_snapshot_part_path(snapshot, i, path) == WEFT_OK);
		check_part(content, path);
	}
	for (uint32_t i = 0; i < content->count; i++) {
		if (!content->slice[i].has_versions) {
			complain(run, "a slice has no version");
		}
	}
	note_positions(run, content->manifest);
	wf_snapshot_close(snapshot);
	free(content);
}

/* ---- runs ---- */

/* What the next run has to begin with. No part is damaged, so it is the newest. */
static void
prepare(struct run *run)
{
	struct wf_snapshot_list list = {0};
	enum weft_status st = wf_snapshot_list(run->files, wf_saved_posix(), run->job.dir, &list);
	WF_ASSERT(st == WEFT_OK);
	run->newest = (struct wf_snapshot_id){0};
	memset(run->at, 0, sizeof(run->at));
	memset(run->out, 0, sizeof(run->out));
	if (list.count > 0 && list.id[0].epoch >= find_first_epoch(run)) {
		run->newest = list.id[0];
		check_snapshot(run);
	}
	wf_snapshot_list_fini(run->files, &list);
}

static bool
play(struct run *run, uint64_t *cuts)
{
	run->crew.run = run;
	return crew_ends_well(&run->crew, cuts);
}

static bool
play_with_kills(struct run *run, uint64_t *cuts, uint64_t *killed)
{
	bool ended = false;
	for (uint32_t runs = 0; !ended && runs < RUNS_MAX && run->crew.why[0] == '\0'; runs++) {
		killed_begin_run(&run->crew, runs, RUNS_MAX);
		prepare(run);
		ended = run->crew.why[0] == '\0' && play(run, cuts);
		*killed += ended ? 0 : 1;
	}
	return ended && run->crew.why[0] == '\0' &&
	       drawn_compare(&run->crew, run->digest, run->digest[0]);
}

/* The job again, in which some are killed and started again, and the others go back. */
static bool
play_with_lives(struct run *run, uint64_t expected, uint64_t *cuts)
{
	run->crew.run = run;
	return killed_play_lives(&run->job, &run->crew, run->digest, expected, cuts);
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 79);
	bool calm = wf_rng_below(&rng, 4) == 0;
	*run = (struct run){0};
	killed_draw(&rng, seed, &run->crew);
	run->crew.run_trainer = run_trainer;
	run->crew.fill_server = fill_server;
	run->mode = wf_rng_below(&rng, 2) == 0 ? WEFT_DENSE_ASYNC : WEFT_DENSE_BOUNDED;
	run->staleness = run->mode == WEFT_DENSE_BOUNDED ? 1 + (uint32_t)wf_rng_below(&rng, 3) : 0;
	run->drawn.tensors = 1 + (uint32_t)wf_rng_below(&rng, TENSORS_MAX);
	run->job.snapshot_steps = 1 + wf_rng_below(&rng, 4);
	run->job.keep = 1 + (uint32_t)wf_rng_below(&rng, 3);
	for (uint32_t i = 0; i < run->drawn.tensors; i++) {
		run->drawn.count[i] = (i == 0 ? 2 * SLICE_FLOATS : 1) +
				      (uint32_t)wf_rng_below(&rng, 6 * SLICE_FLOATS);
	}
	drawn_steps(&rng, run->crew.trainers, STEPS_MAX, 1, &run->drawn);
	run->job.ring_bytes = wf_rng_below(&rng, 3) == 0 ? 0 : 4096;
	static const uint64_t rates[] = {0, 0, 10000, 30000};
	run->job.rate = rates[wf_rng_below(&rng, WF_ARRAY_COUNT(rates))];
	run->crew.kill_within_ns =
		(20 + wf_rng_below(&rng, run->job.rate == 0 ? 200 : 2000)) * WF_NS_PER_MS;
	crew_draw_world(&rng, calm, 3000, 100, &run->crew);
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0, cuts = 0, killed = 0, resumed = 0, ahead = 0, rejoined = 0;
	struct wf_env *files = NULL;
	if (wf_env_system_create(WF_LOG_WARN, 2, &files) != WEFT_OK) {
		return 1;
	}
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run, lives;
		draw(seed, &run);
		run.files = files;
		lives = run;
		if (!killed_make_dir(&run.job) || !play_with_kills(&run, &cuts, &killed) ||
		    !play_with_lives(&lives, run.digest[0], &cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64 " (%u pservers, %u lanes, %u trainers, "
				     "%u tensors, staleness %u, ring %" PRIu64
				     "): %s%s; repeat: WEFT_SEED=%" PRIu64 " test_snapshot_async\n",
				     seed, run.crew.pservers, run.crew.lanes, run.crew.trainers,
				     run.drawn.tensors, run.staleness, run.job.ring_bytes,
				     run.crew.why, lives.crew.why, seed);
		}
		killed_remove_dir(&run.job);
		resumed += run.job.resumed;
		ahead += run.ahead;
		rejoined += lives.job.rejoined;
	}
	wf_env_system_destroy(files);
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " runs killed, %" PRIu64 " trainers began with a snapshot, in which %" PRIu64
		     " slices were ahead of a position; with survivors %" PRIu64
		     " trainers went back\n",
		     sweep.count, failed, cuts, killed, resumed, ahead, rejoined);
	/* A sweep that injected nothing proves nothing. */
	bool enough = sweep.is_part || sweep.count < 20 ||
		      (cuts > 0 && killed > sweep.count / 2 && resumed > sweep.count / 2 &&
		       ahead > sweep.count && rejoined > sweep.count / 2);
	return failed == 0 && enough ? 0 : 1;
}
