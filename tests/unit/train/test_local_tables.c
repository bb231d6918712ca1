/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a sequential run, against sums written out by hand: within a trainer by entry, then by
 * trainer, applied once, with the rate and divisor of the step. */
#include "tests/unit/train/setup.h"

#include "trainer/program/local_tables.h"
#include "trainer/program/saving_tables.h"

#define ENTRIES 4
#define WIDTH 2

/* A job of a model with one table of rows of two zeros, whose step subtracts the gradient. */
struct stage {
	struct wf_train_opts opts;
	struct wf_run job;
	struct wf_source source;
	uint32_t first[ENTRIES + 1];
	uint64_t key[ENTRIES];
	float weight[ENTRIES];
	float grad[ENTRIES * WIDTH];
	struct wf_bag_batch rows;
	struct wf_batch batch;
};

static struct wf_local_tables *
stage_init(struct stage *stage, struct wf_env *env)
{
	struct wf_local_tables *tables = NULL;

	*stage = (struct stage){.opts = {.admit_probability = 1.0}};
	stage->job = (struct wf_run){
		.opts = &stage->opts,
		.env = env,
		.kernels = wf_kernels_best(),
		.terms.row_optimizer = wf_row_defaults(),
		.seed = 1,
		.model = {.table_count = 1, .table = {{.name = "t", .width = WIDTH}}},
		.batches.entries_max = ENTRIES,
		.data.source = &stage->source,
	};
	stage->job.terms.row_optimizer.set.learning_rate = 1.0;
	stage->rows = (struct wf_bag_batch){
		.slots = 1, .first = stage->first, .key = stage->key, .weight = stage->weight};
	stage->batch = (struct wf_batch){.rows = &stage->rows, .entry_grad = {stage->grad}};
	assert_ok(wf_local_tables_create(&stage->job, 2, &tables));
	return tables;
}

/* A batch of rows with one key each, and its push; gradients of the second column are negated. */
static void
push(struct stage *stage, struct wf_local_tables *tables, uint32_t trainer, size_t count,
     const uint64_t *key, const float *grad)
{
	stage->rows.rows = count;
	for (uint32_t i = 0; i < count; i++) {
		stage->first[i + 1] = i + 1;
		stage->key[i] = key[i];
		stage->grad[i * WIDTH] = grad[i];
		stage->grad[i * WIDTH + 1] = -grad[i];
	}
	assert_ok(wf_local_tables_pull(tables, &stage->batch));
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(stage->batch.place[0][i], i);
	}
	wf_local_tables_push(tables, trainer, &stage->batch);
}

static void
row_is(struct wf_local_tables *tables, uint64_t key, float value)
{
	float row[WIDTH] = {9, 9};
	assert_ok(wf_local_tables_rows(tables, 0, &key, 1, row));
	assert_true(row[0] == value && row[1] == -value);
}

static void
gradients_are_summed_by_entry_then_by_trainer(void **state)
{
	struct stage stage;
	struct wf_local_tables *tables = stage_init(&stage, *state);
	uint64_t skipped = 0;

	/* Within trainer 0: (2^24 + 1) - 2^24 = 0 in f32; in another order it would be 1. */
	push(&stage, tables, 0, 4, (const uint64_t[]){7, 3, 7, 7},
	     (const float[]){0x1p24f, 5.0f, 1.0f, -0x1p24f});
	/* Trainer 1's own sum is 2 before it meets trainer 0's. */
	push(&stage, tables, 1, 3, (const uint64_t[]){7, 8, 7}, (const float[]){1.0f, 4.0f, 1.0f});
	assert_ok(wf_local_tables_apply(tables, &(struct wf_local_step){.step = 1, .samples = 7},
					&skipped));
	row_is(tables, 7, -2.0f);
	row_is(tables, 3, -5.0f);
	row_is(tables, 8, -4.0f);
	row_is(tables, 9, 0.0f);
	assert_int_equal(skipped, 0);
	wf_local_tables_destroy(tables);
}

static void
a_trainer_out_of_data_adds_nothing(void **state)
{
	struct stage stage;
	struct wf_local_tables *tables = stage_init(&stage, *state);
	uint64_t skipped = 0;

	push(&stage, tables, 0, 1, (const uint64_t[]){1}, (const float[]){1.0f});
	push(&stage, tables, 1, 1, (const uint64_t[]){1}, (const float[]){2.0f});
	assert_ok(wf_local_tables_apply(tables, &(struct wf_local_step){.step = 1, .samples = 2},
					&skipped));
	push(&stage, tables, 1, 1, (const uint64_t[]){1}, (const float[]){4.0f});
	assert_ok(wf_local_tables_apply(
		tables, &(struct wf_local_step){.step = 2, .samples_before = 2, .samples = 1},
		&skipped));
	row_is(tables, 1, -7.0f);
	/* A step in which nobody has a key changes nothing. */
	push(&stage, tables, 0, 0, NULL, NULL);
	assert_ok(wf_local_tables_apply(
		tables, &(struct wf_local_step){.step = 3, .samples_before = 3, .samples = 1},
		&skipped));
	row_is(tables, 1, -7.0f);
	wf_local_tables_destroy(tables);
}

static void
mean_divides_by_the_samples_of_the_step(void **state)
{
	struct stage stage;
	struct wf_local_tables *tables = stage_init(&stage, *state);
	uint64_t skipped = 0;

	stage.job.terms.is_mean = true;
	push(&stage, tables, 0, 1, (const uint64_t[]){1}, (const float[]){8.0f});
	assert_ok(wf_local_tables_apply(tables, &(struct wf_local_step){.step = 1, .samples = 4},
					&skipped));
	row_is(tables, 1, -2.0f);
	wf_local_tables_destroy(tables);
}

static void
what_is_not_finite_ends_the_run_or_is_counted(void **state)
{
	struct stage stage;
	struct wf_local_tables *tables = stage_init(&stage, *state);
	uint64_t skipped = 0;

	push(&stage, tables, 0, 1, (const uint64_t[]){1}, (const float[]){__builtin_inff()});
	assert_refused(wf_local_tables_apply(
			       tables, &(struct wf_local_step){.step = 1, .samples = 1}, &skipped),
		       WEFT_DATA, "table t: 2 gradient elements");
	wf_local_tables_destroy(tables);
	tables = stage_init(&stage, *state);
	stage.job.terms.is_skipping = true;
	skipped = 5;
	push(&stage, tables, 0, 1, (const uint64_t[]){1}, (const float[]){__builtin_inff()});
	assert_ok(wf_local_tables_apply(tables, &(struct wf_local_step){.step = 1, .samples = 1},
					&skipped));
	assert_int_equal(skipped, 7);
	row_is(tables, 1, 0.0f);
	wf_local_tables_destroy(tables);
}

static void
more_keys_than_a_step_can_have_are_refused(void **state)
{
	struct stage stage;
	struct wf_local_tables *tables = stage_init(&stage, *state);
	struct wf_local_tables *other = NULL;

	stage.job.batches.entries_max = 1u << 22;
	assert_refused(wf_local_tables_create(&stage.job, 5, &other), WEFT_INVALID, "batch_size");
	assert_null(other);
	stage.job.batches.entries_max = ENTRIES;
	wf_local_tables_destroy(tables);
	wf_local_tables_destroy(NULL);
}

/* Of a saved row: neither state nor past nor scores. */
static void
a_beginning_has_the_values_of_a_row_alone(void **state)
{
	const float floats[] = {1, 2, 3};
	struct wf_row_record row = {
		.key = 7, .stamp = 5, .born = 2, .show = 4, .click = 1, .floats = floats};
	static struct wf_row_initial initial = {.dim = 2, .floats = 4};

	(void)state;
	wf_row_initial_apply(&initial, &row);
	assert_int_equal(row.key, 7);
	assert_int_equal(row.stamp, 0);
	assert_int_equal(row.born, 0);
	assert_true(row.show == 0 && row.click == 0);
	assert_true(row.floats[0] == 1 && row.floats[1] == 2);
	assert_true(row.floats[2] == 0 && row.floats[3] == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_are_summed_by_entry_then_by_trainer),
		cmocka_unit_test(a_trainer_out_of_data_adds_nothing),
		cmocka_unit_test(mean_divides_by_the_samples_of_the_step),
		cmocka_unit_test(what_is_not_finite_ends_the_run_or_is_counted),
		cmocka_unit_test(more_keys_than_a_step_can_have_are_refused),
		cmocka_unit_test(a_beginning_has_the_values_of_a_row_alone),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
