/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with a table in every mode, under seeded delays, cuts, refusals and stalls: each push counts
 * once, whatever order lanes apply them in, or is dropped for its lag, on all lanes or on none.
 * Rows count how often their key was pushed: sums of whole numbers, which no order changes. Some
 * jobs have a tensor besides, which is clipped by its norm and averaged: the rows have no part in
 * that. Usage: test_modes [FIRST COUNT]; WEFT_SEED=S runs one seed, and WEFT_CLUSTER_LOG=1 shows
 * the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/support/crew.h"
#include "weft/sparse.h"

#define KEYS 64u /* there are */
#define STEPS_MAX 12u
#define BATCH_MAX 24u
#define CLIP_NORM 0.5

struct run {
	struct crew crew;
	enum weft_sparse_mode mode;
	uint32_t staleness;
	double discard_ratio;
	uint32_t steps[CREW_TRAINERS_MAX];
	bool prefetch;
	bool dense;                                     /* there is a tensor, too */
	bool dropped[CREW_TRAINERS_MAX][STEPS_MAX + 1]; /* by step */
	uint32_t drops;
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_table *table;
	struct weft_tensor *tensor; /* NULL: none */
};

/* Keys of a trainer's step, some of them twice. */
static uint32_t
keys_of(const struct run *run, uint32_t trainer, uint64_t step, uint64_t *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->crew.seed, 1000 * (trainer + 1) + step);
	uint32_t count = (uint32_t)wf_rng_below(&rng, BATCH_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = wf_rng_below(&rng, KEYS);
	}
	return count;
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	struct weft_table_opts table;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = 256; /* there are no tensors, but the lane compares */
	opts.sparse_mode = run->mode;
	opts.sparse_staleness = run->staleness;
	opts.keep_state = run->dense;
	opts.sparse_discard_ratio = run->discard_ratio;
	opts.optimizer.learning_rate = 1;
	opts.optimizer.clip_norm = run->dense ? CLIP_NORM : 0;
	opts.optimizer.average_window = run->dense ? 1 : 0;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	if (st == WEFT_OK && run->dense) {
		const struct weft_tensor_opts tensor = {.name = "w", .rows = 1};
		st = weft_tensor_add(m->session, &tensor, &m->tensor);
	}
	weft_table_opts_init(&table);
	table.name = "counts";
	table.dim = 3;
	table.batch_keys_max = KEYS;
	table.optimizer.method = "sgd";
	table.optimizer.learning_rate = 1;
	if (st == WEFT_OK) {
		st = weft_table_add(m->session, &table, &m->table);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
pull(struct member *m, uint64_t step, struct weft_rows **out)
{
	uint64_t key[BATCH_MAX];
	uint32_t count = keys_of(m->run, m->idx, step, key);
	return weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, out);
}

/* `rows` of the batch of a step; pushes_lost went from `lost` to what it is: by none or all. */
static enum weft_status
note_drop(struct member *m, uint64_t step, uint32_t rows, uint64_t lost)
{
	struct weft_sparse_stats stats = {.struct_bytes = sizeof(stats)};
	enum weft_status st = weft_sparse_stats(m->session, &stats);
	if (st != WEFT_OK || stats.pushes_lost == lost) {
		return st;
	}
	m->run->dropped[m->idx][step] = true;
	m->run->drops++;
	return stats.pushes_lost == lost + rows
		       ? WEFT_OK
		       : wf_fail(WEFT_DATA, "step %" PRIu64 ": %" PRIu64 " of %u rows were dropped",
				 step, stats.pushes_lost - lost, rows);
}

static enum weft_status
push_and_wait(struct member *m, uint64_t step, struct weft_rows *rows, const float *grad)
{
	struct weft_sparse_stats stats = {.struct_bytes = sizeof(stats)};
	uint32_t count = weft_rows_count(rows);
	enum weft_status st = weft_sparse_stats(m->session, &stats);
	if (st == WEFT_OK) {
		st = weft_rows_push(rows, grad, NULL, NULL);
	}
	if (st == WEFT_OK && m->tensor != NULL) {
		*weft_tensor_grad(m->tensor) = -1;
		st = weft_push(m->tensor);
	}
	if (st == WEFT_OK) {
		st = weft_wait_all(m->session);
	}
	return st == WEFT_OK ? note_drop(m, step, count, stats.pushes_lost) : st;
}

static enum weft_status
train(struct member *m)
{
	const struct run *run = m->run;
	float grad[BATCH_MAX * 3];
	struct weft_rows *next = NULL;
	for (uint32_t i = 0; i < BATCH_MAX * 3; i++) {
		grad[i] = -1;
	}
	enum weft_status st = WEFT_OK;
	for (uint64_t step = 1; step <= run->steps[m->idx] && st == WEFT_OK; step++) {
		struct weft_rows *rows = next;
		next = NULL;
		st = rows == NULL ? pull(m, step, &rows) : WEFT_OK;
		if (st == WEFT_OK) {
			st = weft_rows_wait(rows);
		}
		if (st == WEFT_OK) {
			st = weft_step(m->session, 1, 0);
		}
		if (st == WEFT_OK && run->prefetch && step < run->steps[m->idx]) {
			st = pull(m, step + 1, &next);
		}
		if (st == WEFT_OK) {
			st = push_and_wait(m, step, rows, grad);
		}
	}
	return st == WEFT_OK ? weft_pass_end(m->session) : st;
}

/* All that was pushed is in the rows, and nothing else. */
static enum weft_status
compare(struct member *m)
{
	const struct run *run = m->run;
	uint64_t key[KEYS];
	uint32_t expected[KEYS] = {0};
	struct weft_rows *rows = NULL;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		for (uint64_t step = 1; step <= run->steps[t]; step++) {
			uint32_t count = keys_of(run, t, step, key);
			for (uint32_t i = 0; i < count && !run->dropped[t][step]; i++) {
				expected[key[i]]++;
			}
		}
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	enum weft_status st = weft_rows_pull(m->table, key, KEYS, 0, &rows);
	if (st == WEFT_OK) {
		st = weft_rows_wait(rows);
	}
	for (uint32_t k = 0; k < KEYS && st == WEFT_OK; k++) {
		float value = weft_rows_values(rows)[weft_rows_place(rows)[k] * 3];
		if (value != (float)expected[k]) {
			st = wf_fail(WEFT_DATA, "key %u was pushed %u times, its row says %g", k,
				     expected[k], (double)value);
		}
	}
	weft_rows_free(rows);
	return st;
}

/* Each step, of one trainer or more, was CLIP_NORM long. */
static enum weft_status
compare_tensor(struct member *m)
{
	const struct run *run = m->run;
	uint32_t steps = 0;
	float average = 0;
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		steps = run->steps[t] > steps ? run->steps[t] : steps;
	}
	enum weft_status st = weft_pull_state(m->session);
	if (st == WEFT_OK) {
		st = weft_tensor_average(m->tensor, &average);
	}
	float value = *weft_tensor_param(m->tensor);
	float mean = (float)(CLIP_NORM * (steps + 1) / 2);
	if (st == WEFT_OK && (value != (float)(CLIP_NORM * steps) || average != mean)) {
		st = wf_fail(WEFT_DATA, "after %u steps of %g the tensor is %g, its average %g",
			     steps, CLIP_NORM, (double)value, (double)average);
	}
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member member = {.run = seat->crew->run, .idx = seat->idx};
	struct member *m = &member;
	enum weft_status st = open_session(m, env);
	if (st == WEFT_OK) {
		st = train(m);
	}
	if (st == WEFT_OK) {
		st = compare(m);
	}
	if (st == WEFT_OK && m->tensor != NULL) {
		st = compare_tensor(m);
	}
	if (st == WEFT_OK) {
		st = weft_barrier(m->session);
	}
	(void)crew_end_session(seat, m->session, st);
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 41);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.crew.seed = seed,
		.crew.transport = "sim",
		.crew.sparse = &wf_sparse_service,
		.mode = (enum weft_sparse_mode)wf_rng_below(&rng, 3),
		.crew.pservers = 1 + (uint32_t)wf_rng_below(&rng, CREW_PSERVERS_MAX),
		.crew.lanes = 1 + (uint32_t)wf_rng_below(&rng, 2),
		.crew.trainers = 1 + (uint32_t)wf_rng_below(&rng, CREW_TRAINERS_MAX),
		.crew.slot_count = 1u << wf_rng_below(&rng, 4),
		.prefetch = wf_rng_below(&rng, 2) == 0,
	};
	run->staleness = run->mode == WEFT_SPARSE_BOUNDED ? (uint32_t)wf_rng_below(&rng, 4) : 0;
	if (run->mode != WEFT_SPARSE_SYNC && seed % 3 == 0) {
		run->discard_ratio = (double)(1 + seed / 3 % 2) / run->crew.trainers + 1e-9;
	}
	for (uint32_t t = 0; t < run->crew.trainers; t++) {
		run->steps[t] = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
	}
	run->dense = seed % 4 == 1;
	crew_draw_world(&rng, calm, 30000, 200, &run->crew);
	run->crew.run_trainer = run_trainer;
	run->crew.run = run;
}

int
main(int argc, char **argv)
{
	const char *one = getenv("WEFT_SEED");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
	uint64_t failed = 0;
	uint64_t cuts = 0;
	uint64_t drops = 0; /* of batches that went to several lanes */
	first = one != NULL ? strtoull(one, NULL, 0) : first;
	count = one != NULL ? 1 : count;
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct run run;
		draw(seed, &run);
		bool ended = crew_ends_well(&run.crew, &cuts);
		drops += run.crew.pservers * run.crew.lanes > 1 ? run.drops : 0;
		if (!ended) {
			failed++;
			(void)printf(
				"FAILED seed %" PRIu64
				" (mode %d, staleness %u, %u pservers, %u lanes, %u trainers, "
				"%u slots, prefetch %d, tensor %d): %s; repeat: WEFT_SEED=%" PRIu64
				" test_modes\n",
				seed, (int)run.mode, run.staleness, run.crew.pservers,
				run.crew.lanes, run.crew.trainers, run.crew.slot_count,
				run.prefetch, run.dense, run.crew.why, seed);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " batches dropped on several lanes\n",
		     count, failed, cuts, drops);
	/* A sweep that injected nothing proves nothing. */
	return failed == 0 && (count < 20 || (cuts > 0 && drops > 0)) ? 0 : 1;
}
