/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in which one trainer has another setting than the rest, under seeded delays, cuts, refusals
 * and stalls: all end within seconds, with its name and both values, and report it while they wait;
 * if the same trainer reconnects with the right setting in time, all train. A job that runs without
 * it, of asynchronous tables, continues. Thread: one. */
#include <setjmp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/support/crew.h"
#include "weft/sparse.h"

#define TRAINERS 3u
#define SEEDS 100u
#define STEPS 5u
/* Of the trainer that comes last, after the others' first step has begun. */
#define LATE_NS (500 * WF_NS_PER_MS)

struct job {
	struct crew crew;
	uint32_t odd;        /* who differs */
	uint64_t after_ns;   /* it comes back so long after its refusal; 0: it does not */
	unsigned mismatches; /* trainers that ended so, naming trainer and setting; the others' */
	unsigned lines;      /* of waits with both, */
	unsigned at_once;    /* and of the news themselves */
	uint64_t odd_ns;     /* when who differs began */
	uint64_t last_ns;    /* when the last one ended */
	bool right;          /* it came back and was let in; */
	unsigned waits;      /* lines about waits since then; and */
	unsigned stale;      /* lines that name it all the same */
};

static bool
is_named(const struct job *job, const char *text)
{
	char who[32];
	(void)snprintf(who, sizeof(who), "trainer %u on ", job->odd);
	return strstr(text, who) != NULL && strstr(text, "has seed=2, trainer ") != NULL;
}

static void
hear_line(void *arg, enum weft_log_level level, const char *line)
{
	struct job *job = arg;
	(void)level;
	bool named = is_named(job, line);
	job->waits += job->right && strstr(line, " waits, ") != NULL ? 1 : 0;
	job->stale += named && job->right ? 1 : 0;
	job->lines += named && strstr(line, " waits, ") != NULL ? 1 : 0;
	job->at_once += named && strstr(line, "the job waits for trainer ") != NULL ? 1 : 0;
}

/* The caller drives. */
static void
spend(struct weft_session *session, struct wf_env *env, uint64_t ns)
{
	for (uint64_t i = 0; i < 10; i++) {
		wf_wait(env, -1, wf_now_ns(env) + ns / 10);
		enum weft_status st = weft_poll(session);
		(void)st; /* the next call says it again */
	}
}

static enum weft_status
train(struct job *job, uint32_t idx, struct wf_env *env, const char *words)
{
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor = NULL;
	const struct weft_tensor_opts w = {.name = "w", .rows = 100};
	crew_fill_opts(&job->crew, idx, &opts);
	opts.slice_bytes = 64;
	opts.compared = words;
	opts.log = hear_line;
	opts.log_arg = job;
	enum weft_status st = wf_session_open_in(env, &opts, &session);
	if (st != WEFT_OK) {
		return st;
	}
	st = weft_tensor_add(session, &w, &tensor);
	if (st == WEFT_OK) {
		st = weft_session_seal(session);
	}
	if (st == WEFT_OK) {
		st = weft_session_start(session);
	}
	if (st == WEFT_OK && idx == job->odd) { /* the others wait for it, and say so */
		spend(session, env, WF_NS_PER_S / 2);
		job->right = true;
		spend(session, env, 8 * WF_NS_PER_S);
	}
	for (uint32_t i = 0; i < STEPS && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	if (st == WEFT_OK) {
		return weft_session_close(session);
	}
	const struct wf_error first = *wf_error_record();
	weft_session_abort(session, st, first.text);
	*wf_error_record() = first;
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct job *job = seat->crew->run;
	bool odd = seat->idx == job->odd;
	wf_wait(env, -1, wf_now_ns(env) + (odd ? LATE_NS : 0)); /* may end early */
	job->odd_ns = odd ? wf_now_ns(env) : job->odd_ns;
	enum weft_status st = train(job, seat->idx, env, odd ? "seed=2" : "seed=1");
	if (st == WEFT_MISMATCH && is_named(job, weft_last_error())) {
		job->mismatches++;
	} else if (st != WEFT_OK) {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	if (odd && job->after_ns != 0) {
		wf_wait(env, -1, wf_now_ns(env) + job->after_ns);
		st = train(job, seat->idx, env, "seed=1");
	}
	seat->crew->ended += st == WEFT_OK ? 1 : 0;
	job->last_ns = wf_now_ns(env);
	return 0;
}

static void
play(uint64_t seed, uint64_t after_ns, struct job *job)
{
	struct wf_world_stats stats;
	struct wf_rng rng;
	*job = (struct job){.odd = (uint32_t)(seed % TRAINERS), .after_ns = after_ns};
	job->crew = (struct crew){
		.seed = seed,
		.transport = "sim",
		.pservers = 2,
		.trainers = TRAINERS,
		.slot_count = 4,
		.lanes = 2,
		.ends_badly = after_ns == 0,
		.run_trainer = run_trainer,
		.run = job,
	};
	wf_rng_init(&rng, seed, 1);
	crew_draw_world(&rng, false, 500, 200, &job->crew);
	enum weft_status st = crew_play(&job->crew, &stats);
	if (st != WEFT_OK || job->crew.why[0] != '\0') {
		fail_msg("seed %" PRIu64 ": %s", seed, job->crew.why);
	}
}

static void
who_differs_ends_the_job_within_seconds_by_its_name(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct job job;
		play(seed, 0, &job);
		assert_int_equal(job.mismatches, TRAINERS);
		assert_int_equal(job.crew.ended, 0);
		/* The others have it at once, and in their lines about the wait, after two seconds.
		 */
		assert_true(job.at_once >= TRAINERS - 1 && job.lines >= TRAINERS - 1);
		assert_true(job.last_ns >= job.odd_ns + 3 * WF_NS_PER_S);
		assert_true(job.last_ns < job.odd_ns + 6 * WF_NS_PER_S);
	}
}

static void
who_comes_back_as_it_should_be_trains_with_the_rest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct job job;
		play(seed, WF_NS_PER_S, &job);
		assert_int_equal(job.mismatches, 1);
		assert_int_equal(job.crew.ended, TRAINERS);
		assert_int_equal(job.stale, 0);
		assert_true(job.waits > 0);
	}
}

/* Of jobs with a table. */
struct rows_run {
	bool tensor_leads; /* what is applied as pushes come: the tensor, or the table */
	unsigned refused;  /* how often, and */
	uint64_t refused_ns, ended_ns; /* when; and when trainer 0 had ended for it */
};

/* A session with a table, not sealed. */
static enum weft_status
open_rows(const struct crew_seat *seat, struct wf_env *env, const char *words,
	  struct weft_session **session, struct weft_table **table)
{
	struct weft_session_opts opts;
	struct weft_table_opts rows_opts;
	const struct rows_run *run = seat->crew->run;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.compared = words;
	opts.dense_mode = run->tensor_leads ? WEFT_DENSE_ASYNC : WEFT_DENSE_SYNC;
	opts.sparse_mode = run->tensor_leads ? WEFT_SPARSE_SYNC : WEFT_SPARSE_ASYNC;
	opts.slice_bytes = 64;
	weft_table_opts_init(&rows_opts);
	rows_opts.name = "rows";
	rows_opts.dim = 2;
	rows_opts.batch_keys_max = 64;
	enum weft_status st = wf_session_open_in(env, &opts, session);
	return st == WEFT_OK ? weft_table_add(*session, &rows_opts, table) : st;
}

static enum weft_status
end_rows(struct weft_session *session, enum weft_status st)
{
	if (st == WEFT_OK) {
		return weft_session_close(session);
	}
	const struct wf_error first = *wf_error_record();
	weft_session_abort(session, st, first.text);
	*wf_error_record() = first;
	return st;
}

/* A step of it. */
static enum weft_status
push_rows(struct weft_session *session, struct weft_table *table, struct weft_tensor *w)
{
	static const uint64_t key[3] = {1, 2, 300};
	static const float grad[3 * 2];
	struct weft_rows *rows = NULL;
	enum weft_status st = weft_rows_pull(table, key, 3, WEFT_ROWS_CREATE, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? weft_step(session, 1, 0) : st;
	st = st == WEFT_OK ? weft_rows_push(rows, grad, NULL, NULL) : st;
	st = st == WEFT_OK && w != NULL ? weft_push(w) : st;
	st = st == WEFT_OK ? weft_wait_all(session) : st;
	weft_rows_free(rows);
	return st;
}

/* A job of tables alone, which trainer 0 begins by itself. */
static enum weft_status
train_rows(const struct crew_seat *seat, struct wf_env *env, const char *words)
{
	struct weft_session *session = NULL;
	struct weft_table *table = NULL;
	enum weft_status st = open_rows(seat, env, words, &session, &table);
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? weft_session_start(session) : st;
	for (uint32_t i = 0; i < 5 * STEPS && st == WEFT_OK; i++) {
		st = push_rows(session, table, NULL);
		if (st == WEFT_OK) {
			spend(session, env, WF_NS_PER_S / 2);
		}
	}
	return end_rows(session, st);
}

/* The same beside a tensor; for one of the two trainer 0 needs the other one. */
static enum weft_status
train_both(const struct crew_seat *seat, struct wf_env *env, const char *words)
{
	const struct weft_tensor_opts w_opts = {.name = "w", .rows = 16};
	struct weft_session *session = NULL;
	struct weft_table *table = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = open_rows(seat, env, words, &session, &table);
	st = st == WEFT_OK ? weft_tensor_add(session, &w_opts, &w) : st;
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? weft_session_start(session) : st;
	for (uint32_t i = 0; i < STEPS && st == WEFT_OK; i++) {
		st = push_rows(session, table, w);
	}
	return end_rows(session, st);
}

static void
wait_all_of(struct wf_env *env, uint64_t ns)
{
	uint64_t until_ns = wf_now_ns(env) + ns;
	while (wf_now_ns(env) < until_ns) {
		wf_wait(env, -1, until_ns); /* may end early */
	}
}

/* Trainer 1 is refused, and comes as it should twice the time later that it has to come right. */
static int
run_rows_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct rows_run *run = seat->crew->run;
	if (seat->idx == 1) {
		wait_all_of(env, 2 * WF_NS_PER_S);
		run->refused += train_rows(seat, env, "seed=2") == WEFT_MISMATCH ? 1 : 0;
		wait_all_of(env, 6 * WF_NS_PER_S);
	}
	if (train_rows(seat, env, "seed=1") == WEFT_OK) {
		seat->crew->ended++;
	} else {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	return 0;
}

/* Its trainers are the test's. */
static enum weft_status
play_rows(uint64_t seed, struct crew *crew)
{
	struct wf_world_stats stats;
	crew->seed = seed;
	crew->world = (struct wf_world_opts){.seed = seed,
					     .delay_min_ns = WF_NS_PER_US,
					     .delay_max_ns = 2 * WF_NS_PER_MS,
					     .log_fd = -1};
	crew->transport = "sim";
	crew->pservers = 1;
	crew->trainers = 2;
	crew->slot_count = 4;
	crew->lanes = 2;
	crew->sparse = &wf_sparse_service;
	return crew_play(crew, &stats);
}

/* Whichever lane it was refused by; the dense one knows nothing of tables. */
static void
a_job_of_tables_that_runs_is_not_ended_by_who_is_refused(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rows_run run = {0};
		struct crew crew = {.run_trainer = run_rows_trainer, .run = &run};
		enum weft_status st = play_rows(seed, &crew);
		if (st != WEFT_OK || crew.why[0] != '\0') {
			fail_msg("seed %" PRIu64 ": %s", seed, crew.why);
		}
		assert_int_equal(run.refused, 1);
		assert_int_equal(crew.ended, 2);
	}
}

/* Trainer 1 is refused, and does not come again. */
static int
run_half_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct rows_run *run = seat->crew->run;
	bool odd = seat->idx == 1;
	if (odd) {
		wait_all_of(env, 2 * WF_NS_PER_S);
	}
	if (train_both(seat, env, odd ? "seed=2" : "seed=1") == WEFT_MISMATCH) {
		*(odd ? &run->refused_ns : &run->ended_ns) = wf_now_ns(env);
	} else {
		crew_complain(seat->crew, "trainer", seat->idx);
	}
	return 0;
}

/* The tables have gone a step ahead, and the tensor cannot, or the other way round: the job ends,
 * and soon, although the lanes of those that can may be all that has heard of who was refused. */
static void
a_job_that_is_half_of_tables_is_ended_by_who_is_refused(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 120; seed++) {
		struct rows_run run = {.tensor_leads = seed % 2 == 0};
		struct crew crew = {
			.run_trainer = run_half_trainer, .run = &run, .ends_badly = true};
		enum weft_status st = play_rows(seed, &crew);
		if (st != WEFT_OK || strncmp(crew.why, "trainer", 7) == 0) {
			fail_msg("seed %" PRIu64 ": %s", seed, crew.why);
		}
		assert_true(run.refused_ns > 0 && run.ended_ns >= run.refused_ns);
		assert_true(run.ended_ns < run.refused_ns + 4 * WF_NS_PER_S);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_differs_ends_the_job_within_seconds_by_its_name),
		cmocka_unit_test(who_comes_back_as_it_should_be_trains_with_the_rest),
		cmocka_unit_test(a_job_of_tables_that_runs_is_not_ended_by_who_is_refused),
		cmocka_unit_test(a_job_that_is_half_of_tables_is_ended_by_who_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
