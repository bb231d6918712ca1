/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the models with tables, at dense tensors and at rows, agree with finite differences
 * of the cost. */
#include "tests/unit/train/setup.h"

#include <math.h>

#include "base/rng.h"
#include "trainer/models/auc.h"
#include "trainer/models/model.h"

#define ROWS 10
#define SLOTS 3
#define FEATURES 2
#define CLASSES 5
#define TABLE_ROWS 6
#define ENTRIES_MAX (ROWS * SLOTS * 3)
#define VALUES_MAX 1024
#define WORK_MAX 4096
#define CANARY 12345.0f /* in work memory that a call must not touch */

/* Dense tensors, then the tables' rows, all in one array, so that one loop checks every value. */
struct bench {
	struct wf_model model;
	float value[VALUES_MAX], grad[VALUES_MAX], scrap[VALUES_MAX];
	size_t count;
	size_t tensor_at[WF_MODEL_TENSORS_MAX], table_at[WF_MODEL_TABLES_MAX];
	float x[ROWS * FEATURES], y[ROWS];
	uint32_t first[ROWS * SLOTS + 1];
	uint32_t place[ENTRIES_MAX];
	float weight[ENTRIES_MAX];
	float entry_grad[WF_MODEL_TABLES_MAX][ENTRIES_MAX * 8];
	float score[ROWS];
	float work[WORK_MAX];
};

static struct bench bench;

static void
fill_bags(struct wf_rng *rng)
{
	uint32_t entries = 0;
	for (size_t bag = 0; bag < ROWS * SLOTS; bag++) {
		for (uint64_t left = wf_rng_below(rng, 4); left > 0; left--) {
			bench.place[entries] = (uint32_t)wf_rng_below(rng, TABLE_ROWS);
			bench.weight[entries] = 0.5f + (float)wf_rng_f64(rng);
			entries++;
		}
		bench.first[bag + 1] = entries;
	}
}

static void
bench_init(const struct wf_model *model)
{
	struct wf_rng rng;
	uint64_t seed = test_seed();
	float *param[WF_MODEL_TENSORS_MAX];

	memset(&bench, 0, sizeof(bench));
	bench.model = *model;
	for (unsigned t = 0; t < model->tensor_count; t++) {
		bench.tensor_at[t] = bench.count;
		param[t] = bench.value + bench.count;
		bench.count += wf_model_tensor_count(model, t);
	}
	wf_rng_init(&rng, seed, 99);
	for (unsigned t = 0; t < model->table_count; t++) {
		const size_t values = (size_t)TABLE_ROWS * model->table[t].width;
		bench.table_at[t] = bench.count;
		wf_model_fill_uniform(&rng, 0.5f, bench.value + bench.count, values);
		bench.count += values;
	}
	assert_true(bench.count <= VALUES_MAX);
	assert_true(wf_model_work_count(model, ROWS) <= WORK_MAX);
	model->ops->init(model, seed, param);
	fill_bags(&rng);
	for (size_t i = 0; i < ROWS * FEATURES; i++) {
		bench.x[i] = (float)wf_rng_f64(&rng) - 0.5f;
	}
	const uint32_t classes = model->features > 0 ? 2 : CLASSES;
	for (size_t i = 0; i < ROWS; i++) {
		bench.y[i] = (float)wf_rng_below(&rng, classes);
	}
}

/* The cost of some rows; their dense gradients go to `grad`, their entries' to bench.entry_grad. */
static double
cost_of(float *grad, size_t row, size_t rows)
{
	const float *param[WF_MODEL_TENSORS_MAX];
	float *tensor_grad[WF_MODEL_TENSORS_MAX];
	const float *table_row[WF_MODEL_TABLES_MAX];
	const uint32_t *place[WF_MODEL_TABLES_MAX];
	float *entry_grad[WF_MODEL_TABLES_MAX];

	for (unsigned t = 0; t < bench.model.tensor_count; t++) {
		param[t] = bench.value + bench.tensor_at[t];
		tensor_grad[t] = grad + bench.tensor_at[t];
	}
	for (unsigned t = 0; t < bench.model.table_count; t++) {
		table_row[t] = bench.value + bench.table_at[t];
		entry_grad[t] = bench.entry_grad[t];
		place[t] = bench.place;
	}
	const struct wf_model_bags bags = {
		.first = bench.first + row * bench.model.slots,
		.place = place,
		.weight = bench.weight,
		.row = table_row,
		.entry_grad = entry_grad,
		.score = bench.score,
	};
	const struct wf_model_call call = {
		.param = param,
		.grad = tensor_grad,
		.x = bench.x + row * bench.model.features,
		.y = bench.y + row,
		.rows = rows,
		.work = bench.work,
		.bags = &bags,
	};
	const size_t work_count = wf_model_work_count(&bench.model, rows);
	for (size_t i = work_count; i < WORK_MAX; i++) {
		bench.work[i] = CANARY;
	}
	double cost = bench.model.ops->gradient(&bench.model, &call);
	for (size_t i = work_count; i < WORK_MAX; i++) {
		assert_true(bench.work[i] == CANARY);
	}
	return cost;
}

static void
merge(float *grad)
{
	for (unsigned t = 0; t < bench.model.table_count; t++) {
		wf_model_merge_rows(
			bench.entry_grad[t], bench.place, bench.first[ROWS * bench.model.slots],
			bench.model.table[t].width, grad + bench.table_at[t], TABLE_ROWS);
	}
}

static double
cost_at(size_t idx, float value)
{
	const float old = bench.value[idx];
	bench.value[idx] = value;
	double cost = cost_of(bench.scrap, 0, ROWS);
	bench.value[idx] = old;
	return cost;
}

/* As in test_models.c: central or to one side, because of ReLU's bend. */
static bool
agrees(size_t idx, double middle, float h)
{
	const float at = bench.value[idx];
	const double up = cost_at(idx, at + h);
	const double down = cost_at(idx, at - h);
	const double quotient[] = {
		(up - down) / ((double)(at + h) - (double)(at - h)),
		(up - middle) / ((double)(at + h) - (double)at),
		(middle - down) / ((double)at - (double)(at - h)),
	};
	for (size_t i = 0; i < sizeof(quotient) / sizeof(quotient[0]); i++) {
		const double error = fabs(quotient[i] - (double)bench.grad[idx]);
		if (error < 3e-3 * (1.0 + fabs(quotient[i]))) {
			return true;
		}
	}
	return false;
}

/* With ReLU one value in fifty may have bends on both sides; without, none. */
static void
check_gradient(void)
{
	size_t wrong = 0;
	const double middle = cost_of(bench.grad, 0, ROWS);
	merge(bench.grad);
	for (size_t i = 0; i < bench.count; i++) {
		wrong += !agrees(i, middle, 0x1p-8f) && !agrees(i, middle, 0x1p-10f) &&
			 !agrees(i, middle, 0x1p-11f);
	}
	if (wrong * 50 > bench.count || (bench.model.activation == WF_MODEL_SIGMOID && wrong > 0)) {
		fail_msg("%zu of %zu values differ from finite differences", wrong, bench.count);
	}
}

static void
use_ngram(const char *hidden)
{
	struct wf_model model;
	assert_ok(wf_model_ngram_init(&(struct wf_model_opts){.classes = CLASSES,
							      .hidden = hidden,
							      .slots = SLOTS,
							      .embedding = 4,
							      .kernels = wf_kernels_ref()},
				      &model));
	bench_init(&model);
}

static void
use_ctr(const char *hidden, uint32_t embedding, uint32_t features)
{
	struct wf_model model;
	assert_ok(wf_model_ctr_init(&(struct wf_model_opts){.features = features,
							    .hidden = hidden,
							    .slots = SLOTS,
							    .embedding = embedding,
							    .kernels = wf_kernels_ref()},
				    &model));
	bench_init(&model);
	for (size_t i = 0; i < ROWS; i++) {
		bench.y[i] = bench.y[i] > 0.0f ? 1.0f : 0.0f;
	}
}

static void
ngram_gradient_is_the_costs_derivative(void **state)
{
	static const char *const hidden[] = {"", "7", "6,5"};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		use_ngram(hidden[i]);
		check_gradient();
	}
}

static void
ctr_gradient_is_the_costs_derivative(void **state)
{
	static const struct {
		const char *hidden;
		uint32_t embedding, features;
	} cases[] = {
		{"8,6", 3, FEATURES}, {"8", 3, 0}, {"", 3, FEATURES},
		{"", 0, FEATURES},    {"", 0, 0},  {"5", 0, FEATURES},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		use_ctr(cases[i].hidden, cases[i].embedding, cases[i].features);
		check_gradient();
	}
}

/* What the threads of a trainer rely on: entries keep their places, however the rows are cut. */
static void
parts_of_a_batch_fill_in_the_same_entries(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		if (kind == 0) {
			use_ngram("7");
		} else {
			use_ctr("8", 3, FEATURES);
		}
		double whole = cost_of(bench.grad, 0, ROWS);
		merge(bench.grad);
		memset(bench.entry_grad, 0, sizeof(bench.entry_grad));
		double cost = cost_of(bench.scrap, 0, 4);
		cost += cost_of(bench.scrap, 4, ROWS - 4);
		merge(bench.scrap);
		assert_true(fabs(cost - whole) < 1e-4);
		for (size_t i = bench.table_at[0]; i < bench.count; i++) {
			assert_true(fabsf(bench.scrap[i] - bench.grad[i]) < 1e-4f);
		}
	}
}

static void
scores_add_up_to_the_cost(void **state)
{
	double sum = 0.0;
	use_ngram("7");
	double cost = cost_of(bench.grad, 0, ROWS);
	for (size_t row = 0; row < ROWS; row++) {
		sum -= (double)bench.score[row];
	}
	assert_true(fabs(cost - sum) < 1e-4);
	use_ctr("8", 3, FEATURES);
	cost = cost_of(bench.grad, 0, ROWS);
	sum = 0.0;
	for (size_t row = 0; row < ROWS; row++) {
		double z = (double)bench.score[row];
		sum += log1p(exp(bench.y[row] > 0.0f ? -z : z));
	}
	assert_true(fabs(cost - sum) < 1e-4);
}

static void
far_log_odds_do_not_overflow(void **state)
{
	use_ctr("", 0, 0);
	bench.y[0] = 0.0f;
	bench.y[1] = 1.0f;
	for (int sign = -1; sign <= 1; sign += 2) {
		bench.value[0] = 1e6f * (float)sign;
		double cost = cost_of(bench.grad, 0, ROWS);
		assert_true(isfinite(cost) && cost > 1e5);
		assert_true(fabsf(bench.grad[0]) <= (float)ROWS);
	}
}

static void
a_nan_row_shows_in_the_gradient(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		if (kind == 0) {
			use_ngram("7");
		} else {
			use_ctr("8", 3, FEATURES);
		}
		for (size_t t = 0; t < bench.model.table_count; t++) {
			bench.value[bench.table_at[t]] = __builtin_nanf("");
		}
		bench.place[0] = 0;
		double cost = cost_of(bench.grad, 0, ROWS);
		assert_true(isnan(cost));
		assert_true(wf_kernels_ref()->count_nonfinite(bench.grad, bench.table_at[0]) > 0);
	}
}

static void
rows_are_merged_in_the_order_of_their_entries(void **state)
{
	/* In another order the small one would be lost. */
	static const float entry_grad[] = {0x1p24f, 5.0f, -0x1p24f, 7.0f, 1.0f, 0.0f};
	static const uint32_t place[] = {2, 2, 2};
	float row_grad[3 * 2] = {9, 9, 9, 9, 9, 9};
	wf_model_merge_rows(entry_grad, place, 3, 2, row_grad, 3);
	assert_true(row_grad[0] == 0.0f && row_grad[3] == 0.0f);
	assert_true(row_grad[4] == 1.0f && row_grad[5] == 12.0f);
}

static void
auc_is_the_share_of_pairs_in_order(void **state)
{
	struct wf_rng rng;
	struct wf_auc_row row[60];
	double pairs = 0.0;
	double ordered = 0.0;

	wf_rng_init(&rng, test_seed(), 5);
	for (size_t i = 0; i < 60; i++) {
		row[i].score = (float)wf_rng_below(&rng, 20);
		row[i].y = (float)(i % 3 == 0);
	}
	for (size_t i = 0; i < 60; i++) {
		for (size_t j = 0; j < 60; j++) {
			if (row[i].y > row[j].y) {
				pairs += 1.0;
				ordered += row[i].score > row[j].score    ? 1.0
					   : row[i].score == row[j].score ? 0.5
									  : 0.0;
			}
		}
	}
	assert_true(fabs(wf_auc(row, 60) - ordered / pairs) < 1e-12);
}

static void
auc_of_what_cannot_be_ordered_is_said(void **state)
{
	struct wf_auc_row one_class[] = {{1.0f, 1.0f}, {2.0f, 1.0f}};
	struct wf_auc_row perfect[] = {{1.0f, 1.0f}, {-2.0f, 0.0f}};
	struct wf_auc_row nan[] = {{__builtin_nanf(""), 1.0f}, {2.0f, 0.0f}};
	assert_true(wf_auc(one_class, 2) == 0.5);
	assert_true(wf_auc(perfect, 2) == 1.0);
	assert_true(isnan(wf_auc(nan, 2)));
}

static void
the_originals_word2vec_has_its_sizes(void **state)
{
	struct wf_model model;
	size_t count = 0;
	assert_ok(wf_model_ngram_init(&(struct wf_model_opts){.classes = 2073,
							      .hidden = "256",
							      .slots = 4,
							      .embedding = 32,
							      .kernels = wf_kernels_ref()},
				      &model));
	for (unsigned t = 0; t < model.tensor_count; t++) {
		count += wf_model_tensor_count(&model, t);
	}
	assert_int_equal(count, 565785);
	assert_int_equal(model.table_count, 1);
	assert_string_equal(model.table[0].name, "proj");
	assert_int_equal(model.table[0].width, 32);
}

static void
sigmoid_weights_start_within_glorots_limit(void **state)
{
	use_ngram("20");
	const float limit = sqrtf(6.0f / (SLOTS * 4 + 20));
	float most = 0.0f;
	for (size_t i = 0; i < wf_model_tensor_count(&bench.model, 0); i++) {
		most = fabsf(bench.value[i]) > most ? fabsf(bench.value[i]) : most;
	}
	assert_true(most <= limit && most > 0.9f * limit);
	for (size_t i = 0; i < 20; i++) {
		assert_true(bench.value[bench.tensor_at[1] + i] == 0.0f);
	}
}

static void
hidden_layers_need_something_below(void **state)
{
	struct wf_model model;
	const struct wf_model_opts nothing = {.hidden = "8", .slots = 1};
	const struct wf_model_opts bad = {.hidden = "x", .slots = 1, .embedding = 4};
	assert_refused(wf_model_ctr_init(&nothing, &model), WEFT_INVALID, "hidden=8: there is");
	assert_refused(wf_model_ctr_init(&bad, &model), WEFT_INVALID, "hidden=x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ngram_gradient_is_the_costs_derivative),
		cmocka_unit_test(ctr_gradient_is_the_costs_derivative),
		cmocka_unit_test(parts_of_a_batch_fill_in_the_same_entries),
		cmocka_unit_test(scores_add_up_to_the_cost),
		cmocka_unit_test(far_log_odds_do_not_overflow),
		cmocka_unit_test(a_nan_row_shows_in_the_gradient),
		cmocka_unit_test(rows_are_merged_in_the_order_of_their_entries),
		cmocka_unit_test(auc_is_the_share_of_pairs_in_order),
		cmocka_unit_test(auc_of_what_cannot_be_ordered_is_said),
		cmocka_unit_test(the_originals_word2vec_has_its_sizes),
		cmocka_unit_test(sigmoid_weights_start_within_glorots_limit),
		cmocka_unit_test(hidden_layers_need_something_below),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
