/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a step that is counted in half: trainer 1 pushes its last step to pserver 0 alone, and
 * dies. Trainer 0 is out of data, and the lane of pserver 1 takes that step as well, without
 * gradients; or it is in the step, too. Each step pushes the same gradient to all keys, and the
 * last one of trainer 1 none, so rows of both lanes are alike. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/settings.h"
#include "sparse/server/service.h"
#include "tests/cluster/half.h"
#include "weft/sparse.h"

#define DIM 2u
#define KEYS 64u
#define VALUES 128u /* of the tensor, in slices of both pservers */

struct job {
	struct crew crew;
	bool moves;     /* rows move by themselves, at a rate that follows from all samples */
	bool is_late;   /* pserver 1 learns late that trainer 1 is to be dropped, */
	bool is_slow;   /* or takes long to end its connection */
	bool goes_on;   /* trainer 0 waits for no rows before its next step */
	bool is_in;     /* trainer 0 has data for that step, too */
	bool has_ended; /* trainer 0 */
	uint32_t record_count;
};

struct member {
	struct job *job;
	struct wf_env *env;
	struct weft_session *session;
	struct weft_table *table;
	struct weft_tensor *tensor; /* NULL: none */
};

static enum weft_status
open_session(struct member *m, uint32_t idx)
{
	struct weft_session_opts opts;
	struct weft_table_opts table;
	crew_fill_opts(&m->job->crew, idx, &opts);
	opts.slice_bytes = VALUES / 8 * sizeof(float);
	opts.optimizer.learning_rate = 0.5;
	opts.optimizer.schedule = "warmup";
	opts.optimizer.schedule_a = 100;
	weft_table_opts_init(&table);
	table.name = "rows";
	table.dim = DIM;
	table.batch_keys_max = KEYS;
	table.optimizer.method = "sgd";
	table.optimizer.learning_rate = 0.5;
	if (m->job->moves) {
		table.optimizer.dense_equivalent = 1;
		table.optimizer.l2 = 0.1;
		table.optimizer.schedule = "warmup"; /* the step's own samples count */
		table.optimizer.schedule_a = 100;
	}
	const struct weft_tensor_opts tensor = {.name = "values", .rows = VALUES};
	enum weft_status st = wf_session_open_in(m->env, &opts, &m->session);
	if (st == WEFT_OK && m->job->is_in) {
		st = weft_tensor_add(m->session, &tensor, &m->tensor);
	}
	st = st == WEFT_OK ? weft_table_add(m->session, &table, &m->table) : st;
	st = st == WEFT_OK ? weft_session_seal(m->session) : st;
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
pull(const struct member *m, uint32_t count, struct weft_rows **out)
{
	uint64_t key[KEYS];
	for (uint32_t i = 0; i < count; i++) {
		key[i] = i;
	}
	return weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, out);
}

static enum weft_status
step(const struct member *m, uint32_t keys)
{
	float grad[KEYS * DIM];
	struct weft_rows *rows = NULL;
	for (uint32_t i = 0; i < KEYS * DIM; i++) {
		grad[i] = -1;
	}
	enum weft_status st = pull(m, keys, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? weft_step(m->session, 1, 0) : st;
	if (st == WEFT_OK && m->tensor != NULL) {
		for (uint32_t i = 0; i < VALUES; i++) {
			weft_tensor_grad(m->tensor)[i] = keys > 0 ? -1 : 0;
		}
		st = weft_push(m->tensor);
	}
	st = st == WEFT_OK ? weft_rows_push(rows, grad, NULL, NULL) : st;
	return st == WEFT_OK ? weft_wait_all(m->session) : st;
}

static enum weft_status
check_alike(const float *value, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (value[i] != value[0] || value[i] <= 0) {
			return wf_fail(WEFT_DATA, "value %u of %u is %g, value 0 is %g", i, count,
				       (double)value[i], (double)value[0]);
		}
	}
	return WEFT_OK;
}

static enum weft_status
check_rows(const struct member *m)
{
	struct weft_rows *rows = NULL;
	enum weft_status st = pull(m, KEYS, &rows);
	st = st == WEFT_OK ? weft_rows_wait(rows) : st;
	st = st == WEFT_OK ? check_alike(weft_rows_values(rows), KEYS * DIM) : st;
	if (st == WEFT_OK && m->tensor != NULL) {
		st = check_alike(weft_tensor_param(m->tensor), VALUES);
	}
	weft_rows_free(rows);
	return st;
}

static enum weft_status
on_partition(void *arg, const struct weft_table_partition *partition)
{
	(void)arg;
	(void)partition;
	return WEFT_OK;
}

static enum weft_status
on_record(void *arg, const struct weft_table_record *record)
{
	struct job *job = arg;
	(void)record;
	job->record_count++;
	return WEFT_OK;
}

/* As a program saves it. */
static enum weft_status
read_table(const struct member *m)
{
	const struct weft_table_reader to = {
		.partition = on_partition, .record = on_record, .arg = m->job};
	uint64_t step = 0;
	enum weft_status st = weft_table_step(m->table, &step);
	st = st == WEFT_OK ? weft_table_read(m->table, &to) : st;
	if (st == WEFT_OK && step != HALF_LAST) {
		st = wf_fail(WEFT_DATA, "the table is of step %u", (unsigned)step);
	}
	return st;
}

static enum weft_status
train_to_its_end(const struct member *m)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 1; i <= HALF_LAST && st == WEFT_OK; i++) {
		half_wait_until(m->env, i * HALF_STEP_NS);
		st = step(m, i == HALF_LAST ? 0 : KEYS);
	}
	return st == WEFT_OK ? weft_pass_end(m->session) : st;
}

static enum weft_status
train_to_the_end_of_all(const struct member *m)
{
	enum weft_status st = WEFT_OK;
	const uint32_t steps = m->job->is_in ? HALF_LAST : HALF_LAST - 1;
	for (uint32_t i = 1; i <= steps && st == WEFT_OK; i++) {
		half_wait_until(m->env, i * HALF_STEP_NS);
		st = step(m, KEYS);
	}
	st = st == WEFT_OK ? weft_pass_end(m->session) : st;
	if (st == WEFT_OK) {
		st = m->job->goes_on ? step(m, 0) : read_table(m);
	}
	st = st == WEFT_OK ? step(m, KEYS) : st;
	st = st == WEFT_OK ? check_rows(m) : st;
	m->job->has_ended = st == WEFT_OK;
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member m = {.job = seat->crew->run, .env = env};
	enum weft_status st = open_session(&m, seat->idx);
	if (st == WEFT_OK) {
		st = seat->idx == 0 ? train_to_the_end_of_all(&m) : train_to_its_end(&m);
	}
	(void)crew_end_session(seat, m.session, st);
	return 0;
}

static void
disturb(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc)
{
	const struct job *job = crew->run;
	half_disturb(crew, world, proc);
	if (job->is_late) { /* it has reported before that is delayed */
		half_delay(world, "ps1", "ps0", HALF_KILL_NS, HALF_LOST_NS + 2 * WF_NS_PER_S);
		half_delay(world, "ps0", "ps1", HALF_LOST_NS + WF_NS_PER_S,
			   HALF_LOST_NS + 3 * WF_NS_PER_S);
	}
}

/* To its good end. */
static void
play(struct job *job)
{
	struct wf_world_stats stats = {0};
	half_begin(&job->crew);
	job->crew.sparse = &wf_sparse_service;
	job->crew.disturb = disturb;
	job->crew.world.down_delay_max_ns = job->is_slow ? WF_NS_PER_S : 0;
	job->crew.run_trainer = run_trainer;
	job->crew.run = job;
	enum weft_status st = crew_play(&job->crew, &stats);
	const bool is_meant =
		half_has_line(&job->crew, "trainer 1 takes no part from step 3 on, and has made 3 "
					  "steps here") &&
		half_has_line(&job->crew, "trainer 1 takes no part from step 3 on, and has made 2 "
					  "steps here");
	half_end(&job->crew);
	if (!job->has_ended) {
		print_error("%s\n", job->crew.why);
	}
	assert_int_equal(st, WEFT_OK);
	assert_true(job->has_ended);
	assert_true(is_meant);
}

static void
tables_of_all_lanes_are_of_the_same_step(void **state)
{
	(void)state;
	struct job job = {0};
	play(&job);
	assert_int_equal(job.record_count, KEYS);
}

static void
rows_that_move_by_themselves_stay_alike(void **state)
{
	(void)state;
	struct job job = {.moves = true, .goes_on = true};
	play(&job);
}

/* One lane has the samples of both trainers in its sum, and the other one learns them. */
static void
rates_stay_alike_in_a_step_that_others_are_in(void **state)
{
	(void)state;
	struct job job = {.moves = true, .goes_on = true, .is_in = true};
	play(&job);
}

/* What the trainer sends then names a step that others would not be in yet. */
static void
a_pass_ends_when_all_lanes_have_dropped_who_is_lost(void **state)
{
	(void)state;
	struct job late = {.is_late = true, .goes_on = true};
	struct job slow = {.is_slow = true, .goes_on = true};
	struct job read = {.is_slow = true};
	play(&late);
	play(&slow);
	play(&read);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_all_lanes_are_of_the_same_step),
		cmocka_unit_test(rows_that_move_by_themselves_stay_alike),
		cmocka_unit_test(rates_stay_alike_in_a_step_that_others_are_in),
		cmocka_unit_test(a_pass_ends_when_all_lanes_have_dropped_who_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
