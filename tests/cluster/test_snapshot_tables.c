/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with a tensor and tables whose pservers take snapshots, and which are killed again and
 * again, a trainer, a pserver or all, under seeded delays, cuts and stalls. All of the job is
 * started again, with another number of sparse lanes, and the last run ends with the bits of one
 * that was never disturbed, in all rows. Usage: test_snapshot_tables [FIRST COUNT]; WEFT_SEED=S
 * runs one seed, WEFT_LONG ten times as many. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "pserver/lane.h"
#include "sparse/server/service.h"
#include "tests/cluster/drawn.h"
#include "tests/cluster/killed.h"
#include "tests/support/sweep.h"
#include "weft/restart.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define TRAINERS_MAX CREW_TRAINERS_MAX
#define STEPS_MAX 24u
#define TABLES 2u
#define KEYS 1000u
#define BATCH_MAX 60u
#define DIM_MAX 6u
#define FULL_STREAM 74u /* of the seed */
#define RUNS_MAX 4u     /* of a job, of which the last is not killed */

struct run {
	struct crew crew;
	struct killed job;
	struct weft_table_opts table[TABLES];
	uint32_t steps[TRAINERS_MAX];

	/* What happens. */
	uint64_t digest[TRAINERS_MAX];
};

struct member {
	struct run *run;
	uint32_t idx;
	uint32_t step; /* that it has made */
	struct weft_session *session;
	struct weft_tensor *tensor;
	struct weft_table *table[TABLES];
};

static void
fill_server(const struct crew *crew, struct wf_server_opts *out)
{
	const struct run *run = crew->run;
	killed_fill_server(&run->job, out);
}

static void
add_counts(struct crew *crew, struct wf_server *server)
{
	struct run *run = crew->run;
	killed_add_waits(&run->job, server, 1); /* sparse ones */
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	const struct weft_tensor_opts tensor = {.name = "w", .rows = 1};
	struct weft_session_opts opts;
	crew_fill_opts(&run->crew, m->idx, &opts);
	opts.slice_bytes = 256;
	opts.optimizer.learning_rate = 0.1;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	st = st == WEFT_OK ? weft_tensor_add(m->session, &tensor, &m->tensor) : st;
	for (uint32_t i = 0; i < TABLES && st == WEFT_OK; i++) {
		st = weft_table_add(m->session, &run->table[i], &m->table[i]);
	}
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

/* Keys and factors that depend on the job, the trainer and the step alone. */
static uint32_t
draw_batch(const struct member *m, uint32_t table, uint64_t *key, float *factor)
{
	struct wf_rng rng;
	wf_rng_init(&rng, m->run->crew.seed, 100000 * (table + 1) + 1000 * (m->idx + 1) + m->step);
	uint32_t count = (uint32_t)wf_rng_below(&rng, BATCH_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		key[i] = wf_rng_below(&rng, KEYS);
	}
	*factor = (float)(wf_rng_f64(&rng) - 0.5);
	return count;
}

/* Gradients that depend on the rows, so that one wrong bit spreads. */
static enum weft_status
push_rows(struct member *m, uint32_t table, struct weft_rows **batch)
{
	static float grad[BATCH_MAX * DIM_MAX], show[BATCH_MAX];
	const uint32_t dim = m->run->table[table].dim;
	uint64_t key[BATCH_MAX];
	float factor = 0;
	uint32_t count = draw_batch(m, table, key, &factor);
	struct weft_rows *rows = *batch;
	const float *value = weft_rows_values(rows);
	*batch = NULL;
	for (uint32_t i = 0; i < count; i++) {
		const float *row = value + (size_t)weft_rows_place(rows)[i] * dim;
		for (uint32_t d = 0; d < dim; d++) {
			grad[i * dim + d] = 0.1f * row[d] + factor;
		}
		show[i] = 1.0f;
	}
	return weft_rows_push(rows, grad, show, NULL);
}

static enum weft_status
pull_rows(struct member *m, uint32_t table, struct weft_rows **out)
{
	uint64_t key[BATCH_MAX];
	float factor = 0;
	uint32_t count = draw_batch(m, table, key, &factor);
	enum weft_status st = weft_rows_pull(m->table[table], key, count, WEFT_ROWS_CREATE, out);
	return st == WEFT_OK ? weft_rows_wait(*out) : st;
}

static enum weft_status
step(struct member *m)
{
	struct weft_rows *rows[TABLES] = {0};
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < TABLES && st == WEFT_OK; i++) {
		st = pull_rows(m, i, &rows[i]);
	}
	const uint32_t after = m->step + 1;
	st = st == WEFT_OK ? weft_session_position(m->session, &after, sizeof(after)) : st;
	st = st == WEFT_OK ? weft_step(m->session, 1 + m->idx, 0) : st;
	for (uint32_t i = 0; i < TABLES && st == WEFT_OK; i++) {
		st = push_rows(m, i, &rows[i]);
	}
	if (st == WEFT_OK) {
		*weft_tensor_grad(m->tensor) = 0.3f * *weft_tensor_param(m->tensor) - 1.0f;
		st = weft_push(m->tensor);
	}
	m->step = after;
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

/* The values of all keys, in pieces, and the tensor. */
static enum weft_status
read_all(struct member *m)
{
	uint64_t *digest = &m->run->digest[m->idx];
	enum weft_status st = WEFT_OK;
	*digest = drawn_add_bits(DRAWN_DIGEST, weft_tensor_param(m->tensor), 1);
	for (uint32_t i = 0; i < TABLES; i++) {
		for (uint64_t at = 0; at < KEYS && st == WEFT_OK; at += 50) {
			static float value[50 * DIM_MAX];
			uint64_t key[50];
			struct weft_rows *rows = NULL;
			for (uint32_t k = 0; k < 50; k++) {
				key[k] = at + k;
			}
			st = weft_rows_pull(m->table[i], key, 50, 0, &rows);
			st = st == WEFT_OK ? weft_rows_wait(rows) : st;
			st = st == WEFT_OK ? weft_rows_gather(rows, value) : st;
			weft_rows_free(rows);
			*digest = drawn_add_bits(*digest, value, (size_t)50 * m->run->table[i].dim);
		}
	}
	return st;
}

static enum weft_status
train(void *arg)
{
	struct member *m = arg;
	struct weft_resumed resumed;
	enum weft_status st = WEFT_OK;
	m->step = 0;
	if (weft_session_resumed(m->session, &resumed)) {
		m->run->job.resumed++;
		if (resumed.position_bytes == sizeof(m->step)) {
			memcpy(&m->step, resumed.position, sizeof(m->step));
		}
	}
	while (m->step < m->run->steps[m->idx] && st == WEFT_OK) {
		st = step(m);
	}
	st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	return st == WEFT_OK ? read_all(m) : st;
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
draw_table(struct wf_rng *rng, uint32_t idx, struct weft_table_opts *out)
{
	static const char *const method[] = {"sgd", "adagrad", "adam", "ftrl", "rmsprop"};
	weft_table_opts_init(out);
	out->name = idx == 0 ? "words" : "items"; /* not in the order of a manifest */
	out->dim = 1 + (uint32_t)wf_rng_below(rng, DIM_MAX);
	out->batch_keys_max = BATCH_MAX;
	out->optimizer.method = method[wf_rng_below(rng, WF_ARRAY_COUNT(method))];
	out->optimizer.learning_rate = 0.05;
	if (wf_rng_below(rng, 2) == 0) { /* by the samples of all steps so far */
		out->optimizer.schedule = "poly";
		out->optimizer.schedule_a = 0.1;
		out->optimizer.schedule_b = 0.5;
	}
	out->init = "uniform";
	out->init_a = -0.5;
	out->init_b = 0.5;
	out->rest = (enum weft_value_format)wf_rng_below(rng, 3);
	if (wf_rng_below(rng, 4) == 0) {
		out->vocabulary = KEYS;
		return;
	}
	if (wf_rng_below(rng, 2) == 0) {
		out->admit_count = 2;
		/* 32 KiB of counters, or 4 MiB, which is more than small rings. */
		out->admit_slots = wf_rng_below(rng, 2) == 0 ? 16 : 2048;
	}
	if (wf_rng_below(rng, 2) == 0) {
		out->evict_age_steps = 2 + wf_rng_below(rng, 4);
	}
	if (wf_rng_below(rng, 3) == 0) {
		out->evict_score_least = 0.2;
		out->evict_fade = 0.7;
		out->evict_fade_steps = 2;
	}
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 72);
	bool calm = wf_rng_below(&rng, 4) == 0;
	*run = (struct run){0};
	killed_draw(&rng, seed, &run->crew);
	run->crew.sparse = &wf_sparse_service;
	run->crew.run_trainer = run_trainer;
	run->crew.fill_server = fill_server;
	run->crew.look = add_counts;
	run->job.snapshot_steps = 1 + wf_rng_below(&rng, 5);
	run->job.keep = 2;
	struct wf_rng own; /* the rest of a job does not depend on it */
	wf_rng_init(&own, seed, FULL_STREAM);
	run->job.full = 1 + (uint32_t)wf_rng_below(&own, 5);
	/* Two blocks of rows, or room for all. The default's 64 MiB, whose pages cost more than the
	 * rest of a job, in a few. */
	run->job.ring_bytes = 600000;
	if (wf_rng_below(&rng, 3) == 0) {
		run->job.ring_bytes = seed % 16 == 0 ? 0 : (uint64_t)2 << 20;
	}
	for (uint32_t i = 0; i < TABLES; i++) {
		draw_table(&rng, i, &run->table[i]);
	}
	for (uint32_t i = 0; i < run->crew.trainers; i++) {
		run->steps[i] = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
	}
	static const uint64_t rates[] = {0, 1000000, 4000000, 40000000};
	run->job.rate = rates[wf_rng_below(&rng, WF_ARRAY_COUNT(rates))];
	if (run->table[0].admit_slots > 16 && run->crew.lanes == 1) { /* steps wait for room */
		run->job.ring_bytes = 600000;
		run->job.rate = 4000000;
	}
	crew_draw_world(&rng, calm, 3000, 100, &run->crew);
}

/* Plays the job once. Returns whether it has ended well. */
static bool
play(struct run *run, uint64_t *cuts)
{
	run->crew.run = run;
	return crew_ends_well(&run->crew, cuts);
}

/* Kills the job again and again, and lets it end. */
static bool
play_with_kills(struct run *run, const struct run *plain, uint64_t *cuts, uint64_t *killed)
{
	uint32_t runs = 0;
	bool ended = false;
	while (!ended && runs < RUNS_MAX && run->crew.why[0] == '\0') {
		killed_begin_run(&run->crew, runs, RUNS_MAX);
		ended = play(run, cuts);
		*killed += ended ? 0 : 1;
		runs++;
	}
	return ended && drawn_compare(&run->crew, run->digest, plain->digest[0]);
}

/* The job again, in which some are killed and started again, and the others go back. */
static bool
play_with_lives(struct run *run, uint64_t expected, uint64_t *cuts)
{
	run->crew.run = run;
	return killed_play_lives(&run->job, &run->crew, run->digest, expected, cuts);
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 60, 10);
	uint64_t failed = 0, cuts = 0, killed = 0, resumed = 0, waits = 0, rejoined = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		struct run run, plain, lives;
		draw(seed, &run);
		plain = run;
		lives = run;
		if (!killed_make_dir(&run.job) || !play(&plain, &cuts) ||
		    !play_with_kills(&run, &plain, &cuts, &killed) ||
		    !play_with_lives(&lives, plain.digest[0], &cuts)) {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (%u pservers, %u trainers): %s%s%s; repeat: "
				     "WEFT_SEED=%" PRIu64 " test_snapshot_tables\n",
				     seed, run.crew.pservers, run.crew.trainers, plain.crew.why,
				     run.crew.why, lives.crew.why, seed);
		}
		killed_remove_dir(&run.job);
		resumed += run.job.resumed;
		waits += run.job.waits;
		rejoined += lives.job.rejoined;
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts, %" PRIu64
		     " runs killed, %" PRIu64 " trainers began with a snapshot, %" PRIu64
		     " applies of rows waited for room; with survivors %" PRIu64
		     " trainers went back\n",
		     sweep.count, failed, cuts, killed, resumed, waits, rejoined);
	/* A sweep that injected nothing proves nothing. */
	bool enough = sweep.is_part || sweep.count < 20 ||
		      (cuts > 0 && killed > sweep.count / 2 && resumed > sweep.count / 3 &&
		       waits > 0 && rejoined > sweep.count / 2);
	return failed == 0 && enough ? 0 : 1;
}
