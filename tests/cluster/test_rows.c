/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are pulled and not waited for before the trainer goes on or ends its pass: whatever is
 * sent first, and however often paths break, they come as they are after the step that they were
 * pulled for. Each step adds 1 to every value, so a value is the number of its step.
 * Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/support/crew.h"
#include "weft/sparse.h"

#define TABLES 10u /* with flags by turns they make more requests than may be unanswered */
#define KEYS 16u
#define DIM 4u
#define STEPS 4u
#define CUT_PER_MILLION 30000u

struct job {
	struct crew crew;
	uint32_t tables; /* that are used */
	bool ends;       /* trainer 0 pulls the last rows and ends its pass before the others */
	uint64_t cuts;   /* of all its runs */
};

struct member {
	const struct job *job;
	struct weft_session *session;
	struct weft_table *table[TABLES];
	struct weft_rows *late[TABLES]; /* not waited for yet */
};

static enum weft_status
open_session(struct wf_env *env, uint32_t idx, struct member *m)
{
	struct weft_session_opts opts;
	struct weft_table_opts table;
	crew_fill_opts(&m->job->crew, idx, &opts);
	opts.slice_bytes = 4096;
	enum weft_status st = wf_session_open_in(env, &opts, &m->session);
	weft_table_opts_init(&table);
	table.dim = DIM;
	table.batch_keys_max = KEYS;
	table.optimizer.method = "sgd";
	table.optimizer.learning_rate = 1;
	for (uint32_t t = 0; t < TABLES && st == WEFT_OK; t++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "t%u", t);
		table.name = name;
		st = weft_table_add(m->session, &table, &m->table[t]);
	}
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
pull(const struct member *m, uint32_t t, struct weft_rows **out)
{
	uint64_t key[KEYS];
	for (uint32_t i = 0; i < KEYS; i++) {
		key[i] = 100 - 3 * i;
	}
	const unsigned order = t % 2 == 0 ? WEFT_ROWS_IN_ORDER : 0;
	return weft_rows_pull(m->table[t], key, KEYS, WEFT_ROWS_CREATE | order, out);
}

static enum weft_status
pull_late(struct member *m)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t t = 0; t < m->job->tables && st == WEFT_OK; t++) {
		st = pull(m, t, &m->late[t]);
	}
	return st;
}

/* Waits for those that are late. They are rows of the step. */
static enum weft_status
check_late(struct member *m, uint32_t step)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t t = 0; t < m->job->tables && st == WEFT_OK; t++) {
		st = weft_rows_wait(m->late[t]);
		for (uint32_t i = 0; i < KEYS * DIM && st == WEFT_OK; i++) {
			const float value = weft_rows_values(m->late[t])[i];
			if (value != (float)step) {
				st = wf_fail(WEFT_DATA, "table %u: %g in rows of step %u", t,
					     (double)value, step);
			}
		}
		weft_rows_free(m->late[t]);
	}
	return st;
}

/* A step that adds 1 to every value. */
static enum weft_status
one_step(struct member *m)
{
	struct weft_rows *rows[TABLES];
	float grad[KEYS * DIM];
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < KEYS * DIM; i++) {
		grad[i] = -1.0f / (float)m->job->crew.trainers;
	}
	for (uint32_t t = 0; t < m->job->tables && st == WEFT_OK; t++) {
		st = pull(m, t, &rows[t]);
	}
	for (uint32_t t = 0; t < m->job->tables && st == WEFT_OK; t++) {
		st = weft_rows_wait(rows[t]);
	}
	st = st == WEFT_OK ? pull_late(m) : st;
	st = st == WEFT_OK ? weft_step(m->session, 1, 0) : st;
	for (uint32_t t = 0; t < m->job->tables && st == WEFT_OK; t++) {
		st = weft_rows_push(rows[t], grad, NULL, NULL);
	}
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

/* Steps of which trainer 0 is not. */
static enum weft_status
go_on(const struct member *m)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t step = 0; step < STEPS && st == WEFT_OK; step++) {
		st = weft_step(m->session, 1, 0); /* without rows */
		st = st == WEFT_OK ? weft_wait_all(m->session) : st;
	}
	return st;
}

static enum weft_status
train(struct member *m, bool is_first)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t step = 1; step <= STEPS && st == WEFT_OK; step++) {
		st = one_step(m);
		st = st == WEFT_OK ? check_late(m, step - 1) : st;
	}
	if (st != WEFT_OK || !m->job->ends) {
		return st == WEFT_OK ? weft_pass_end(m->session) : st;
	}
	st = is_first ? pull_late(m) : go_on(m);
	st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	return st == WEFT_OK && is_first ? check_late(m, STEPS) : st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member m = {.job = seat->crew->run};
	enum weft_status st = open_session(env, seat->idx, &m);
	st = st == WEFT_OK ? train(&m, seat->idx == 0) : st;
	(void)crew_end_session(seat, m.session, st);
	return 0;
}

static void
play(struct job *job, uint64_t seed, uint32_t trainers, bool calm)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 91);
	job->crew = (struct crew){
		.seed = seed,
		.transport = "sim",
		.pservers = 1,
		.trainers = trainers,
		.lanes = 2,
		.sparse = &wf_sparse_service,
		.run_trainer = run_trainer,
		.run = job,
	};
	crew_draw_world(&rng, calm, CUT_PER_MILLION, 300, &job->crew);
	job->crew.world.cut_per_million = calm ? 0 : CUT_PER_MILLION;
	if (!crew_ends_well(&job->crew, &job->cuts)) {
		print_error("seed %llu: %s\n", (unsigned long long)seed, job->crew.why);
		fail();
	}
}

/* Nothing of them is sent before the push, because the caller drives and more tables could be
 * pulled. */
static void
rows_that_are_not_waited_for_come_as_of_their_step(void **state)
{
	(void)state;
	struct job job = {.tables = 1};
	play(&job, 1, 1, true);
}

static void
more_of_them_than_a_lane_is_asked_for_at_once_come_as_of_their_step(void **state)
{
	(void)state;
	struct job job = {.tables = TABLES};
	play(&job, 1, 2, true);
}

static void
paths_that_break_change_nothing_in_them(void **state)
{
	(void)state;
	struct job job = {0};
	for (uint64_t seed = 1; seed <= 40; seed++) {
		job.tables = seed % 2 == 0 ? TABLES : 1;
		play(&job, seed, 1 + seed % 2, false);
	}
	assert_true(job.cuts > 0);
}

static void
a_pass_ends_behind_the_pulls_that_were_made_before(void **state)
{
	(void)state;
	struct job job = {.tables = TABLES, .ends = true};
	for (uint64_t seed = 1; seed <= 40; seed++) {
		play(&job, seed, 2, seed % 2 == 0);
	}
	assert_true(job.cuts > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_are_not_waited_for_come_as_of_their_step),
		cmocka_unit_test(
			more_of_them_than_a_lane_is_asked_for_at_once_come_as_of_their_step),
		cmocka_unit_test(paths_that_break_change_nothing_in_them),
		cmocka_unit_test(a_pass_ends_behind_the_pulls_that_were_made_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
