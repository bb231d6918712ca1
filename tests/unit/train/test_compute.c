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

static struct wf_bag_batch
rows_from(size_t first, size_t rows)
{
	return (struct wf_bag_batch){
		.features = FEATURES, .rows = rows, .x = x + first * FEATURES, .y = y + first};
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
		const struct wf_bag_batch some = rows_from(0, rows);
		result.cost = wf_compute_gradient(compute, &(struct wf_batch){.rows = &some}, param,
						  grad);
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
a_test_sums_over_the_rows_it_is_given(void **state)
{
	const struct wf_model model = make_rows_and_model();
	static const float w[FEATURES] = {0};
	static const float b[1] = {0};
	const float *const param[] = {w, b};
	struct wf_compute *compute = NULL;
	const struct wf_bag_batch last = rows_from(ROWS - 2, 2);
	assert_ok(wf_compute_create(
		*state,
		&(struct wf_compute_opts){.model = &model, .thread_count = 1, .batch_rows = 1},
		&compute));
	double want = (double)y[ROWS - 2] * (double)y[ROWS - 2] +
		      (double)y[ROWS - 1] * (double)y[ROWS - 1];
	assert_true(wf_compute_test(compute, &(struct wf_batch){.rows = &last}, param) == want);
	wf_compute_destroy(compute);
}

#define SLOTS 2
#define KEYS 7
#define WIDTH 3

/* Rows with bags, each entry with the row of its key. */
struct bags {
	uint32_t first[ROWS * SLOTS + 1];
	uint64_t key[2 * ROWS * SLOTS];
	uint32_t place[2 * ROWS * SLOTS];
	float weight[2 * ROWS * SLOTS];
	float deep[KEYS * WIDTH], wide[KEYS];
	float deep_grad[2 * ROWS * SLOTS * WIDTH], wide_grad[2 * ROWS * SLOTS];
	float fc_w[SLOTS * WIDTH + FEATURES], fc_b[1];
};

static void
fill(struct bags *bags)
{
	struct wf_rng rng;
	uint32_t entries = 0;
	wf_rng_init(&rng, test_seed(), 3);
	for (size_t bag = 0; bag < ROWS * SLOTS; bag++) {
		for (uint64_t left = wf_rng_below(&rng, 3); left > 0; left--) {
			bags->place[entries] = (uint32_t)wf_rng_below(&rng, KEYS);
			bags->key[entries] = bags->place[entries];
			bags->weight[entries++] = (float)wf_rng_f64(&rng);
		}
		bags->first[bag + 1] = entries;
	}
	wf_model_fill_uniform(&rng, 0.5f, bags->deep, KEYS * WIDTH);
	wf_model_fill_uniform(&rng, 0.5f, bags->wide, KEYS);
	wf_model_fill_uniform(&rng, 0.5f, bags->fc_w, SLOTS * WIDTH + FEATURES);
}

/* What threads leave at entries and in dense gradients. */
struct seen {
	float deep[2 * ROWS * SLOTS * WIDTH], wide[2 * ROWS * SLOTS];
	float fc_w[SLOTS * WIDTH + FEATURES], fc_b[1];
	double cost;
};

static void
look(struct wf_env *env, const struct wf_model *model, struct bags *bags, unsigned threads,
     struct seen *out)
{
	const struct wf_bag_batch rows = {.slots = SLOTS,
					  .features = FEATURES,
					  .rows = ROWS,
					  .first = bags->first,
					  .key = bags->key,
					  .weight = bags->weight,
					  .x = x,
					  .y = y};
	const struct wf_batch batch = {.rows = &rows,
				       .row = {bags->wide, bags->deep},
				       .place = {bags->place, bags->place},
				       .entry_grad = {out->wide, out->deep}};
	const float *const param[] = {bags->fc_w, bags->fc_b};
	float *const grad[] = {out->fc_w, out->fc_b};
	struct wf_compute *compute = NULL;
	assert_ok(wf_compute_create(env,
				    &(struct wf_compute_opts){.model = model,
							      .thread_count = threads,
							      .batch_rows = ROWS},
				    &compute));
	out->cost = wf_compute_gradient(compute, &batch, param, grad);
	wf_compute_destroy(compute);
}

static void
threads_share_the_entries_of_a_batch(void **state)
{
	static struct bags bags;
	static struct seen one, many;
	struct wf_model model = make_rows_and_model();
	for (size_t i = 0; i < ROWS; i++) {
		y[i] = y[i] < 0.5f ? 0.0f : 1.0f;
	}
	assert_ok(wf_model_ctr_init(&(struct wf_model_opts){.features = FEATURES,
							    .slots = SLOTS,
							    .embedding = WIDTH,
							    .kernels = wf_kernels_best()},
				    &model));
	fill(&bags);
	look(*state, &model, &bags, 1, &one);
	for (unsigned threads = 2; threads <= 5; threads++) {
		many = (struct seen){0};
		look(*state, &model, &bags, threads, &many);
		assert_true(many.cost - one.cost < 1e-3 && one.cost - many.cost < 1e-3);
		for (size_t i = 0; i < sizeof(one) / sizeof(float) - 2; i++) {
			float error = ((float *)&many)[i] - ((float *)&one)[i];
			assert_true(error < 1e-3f && error > -1e-3f);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_change_no_more_than_rounding),
		cmocka_unit_test(threads_that_never_got_work_end_too),
		cmocka_unit_test(a_test_sums_over_the_rows_it_is_given),
		cmocka_unit_test(threads_share_the_entries_of_a_batch),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
