/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a batch on one thread and on several: the same up to rounding, the same bits each
 * time, also when there are more threads than rows. */
#include "tests/unit/train/setup.h"

#include "base/rng.h"
#include "trainer/program/compute.h"

#define FEATURES 6
#define ROWS 40

static float x[ROWS * FEATURES];
static float y[ROWS];

struct result {
	float w[FEATURES];
	float b[1];
	double cost;
};

static struct wf_model
make_rows_and_model(void)
{
	struct wf_model model;
	struct wf_rng rng;
	wf_rng_init(&rng, test_seed(), 0);
	for (size_t i = 0; i < ROWS * FEATURES; i++) {
		x[i] = (float)wf_rng_f64(&rng) - 0.5f;
	}
	for (size_t i = 0; i < ROWS; i++) {
		y[i] = (float)wf_rng_f64(&rng);
	}
	assert_ok(wf_model_linear_init(
		&(struct wf_model_opts){.features = FEATURES, .kernels = wf_kernels_best()},
		&model));
	return model;
}

static struct result
gradient(struct wf_env *env, const struct wf_model *model, unsigned threads, size_t rows)
{
	static const float w[FEATURES] = {0.5f, -1.0f, 2.0f, 0.25f, 0.0f, 1.0f};
	static const float b[1] = {0.1f};
	const float *const param[] = {w, b};
	struct result result = {0};
	float *const grad[] = {result.w, result.b};
	struct wf_compute *compute = NULL;
	assert_ok(wf_compute_create(env,
				    &(struct wf_compute_opts){.model = model,
							      .thread_count = threads,
							      .batch_rows = ROWS},
				    &compute));
	for (int again = 0; again < 50; again++) {
		struct result last = result;
		result.cost = wf_compute_gradient(
			compute, &(struct wf_batch){.x = x, .y = y, .rows = rows}, param, grad);
		if (again > 0) {
			assert_memory_equal(&last, &result, sizeof(last));
		}
	}
	wf_compute_destroy(compute);
	return result;
}

static void
threads_change_no_more_than_rounding(void **state)
{
	static const size_t rows_of[] = {1, 2, 3, 5, ROWS - 1, ROWS};
	const struct wf_model model = make_rows_and_model();
	for (size_t r = 0; r < sizeof(rows_of) / sizeof(rows_of[0]); r++) {
		const struct result one = gradient(*state, &model, 1, rows_of[r]);
		for (unsigned threads = 2; threads <= 5; threads++) {
			const struct result many = gradient(*state, &model, threads, rows_of[r]);
			for (int i = 0; i < FEATURES; i++) {
				float error = many.w[i] - one.w[i];
				assert_true(error < 1e-3f && error > -1e-3f);
			}
			assert_true(many.b[0] - one.b[0] < 1e-3f);
			assert_true(one.b[0] - many.b[0] < 1e-3f);
			assert_true(many.cost - one.cost < 1e-3 && one.cost - many.cost < 1e-3);
		}
	}
}

static void
threads_that_never_got_work_end_too(void **state)
{
	const struct wf_model model = make_rows_and_model();
	struct wf_compute *compute = NULL;
	assert_ok(wf_compute_create(
		*state,
		&(struct wf_compute_opts){.model = &model, .thread_count = 4, .batch_rows = 1},
		&compute));
	wf_compute_destroy(compute);
	wf_compute_destroy(NULL);
}

static void
the_test_figure_is_over_the_test_rows_alone(void **state)
{
	const struct wf_model model = make_rows_and_model();
	static const float w[FEATURES] = {0};
	static const float b[1] = {0};
	const float *const param[] = {w, b};
	struct wf_compute *compute = NULL;
	const struct wf_dataset data = {
		.features = FEATURES, .rows = ROWS, .train_rows = ROWS - 2, .x = x, .y = y};
	assert_ok(wf_compute_create(
		*state,
		&(struct wf_compute_opts){.model = &model, .thread_count = 1, .batch_rows = 1},
		&compute));
	double want = ((double)y[ROWS - 2] * (double)y[ROWS - 2] +
		       (double)y[ROWS - 1] * (double)y[ROWS - 1]) /
		      2.0;
	assert_true(wf_compute_test(compute, &data, param) == want);
	wf_compute_destroy(compute);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_change_no_more_than_rounding),
		cmocka_unit_test(threads_that_never_got_work_end_too),
		cmocka_unit_test(the_test_figure_is_over_the_test_rows_alone),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
