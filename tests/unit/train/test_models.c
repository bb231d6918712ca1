/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients agree with finite differences of the cost, the closed form with the known figures. */
#include "tests/unit/train/setup.h"

#include <math.h>

#include "base/rng.h"
#include "trainer/models/least_squares.h"
#include "trainer/models/model.h"
#include "trainer/readers/sheet.h"

#define ROWS 12
#define FEATURES 5
#define PARAMS_MAX 4096
#define WORK_MAX 8192

struct bench {
	struct wf_model model;
	float param_memory[PARAMS_MAX], grad_memory[PARAMS_MAX], scrap_memory[PARAMS_MAX];
	float *param[WF_MODEL_TENSORS_MAX];
	float *grad[WF_MODEL_TENSORS_MAX];
	float *scrap[WF_MODEL_TENSORS_MAX];
	float x[ROWS * FEATURES], y[ROWS];
	float work[WORK_MAX];
	size_t count;
};

static struct bench bench;

static void
bench_init(const struct wf_model *model, uint32_t classes)
{
	struct wf_rng rng;
	uint64_t seed = test_seed();
	memset(&bench, 0, sizeof(bench));
	bench.model = *model;
	for (unsigned t = 0; t < model->tensor_count; t++) {
		bench.param[t] = bench.param_memory + bench.count;
		bench.grad[t] = bench.grad_memory + bench.count;
		bench.scrap[t] = bench.scrap_memory + bench.count;
		bench.count += wf_model_tensor_count(model, t);
	}
	assert_true(bench.count <= PARAMS_MAX);
	assert_true(wf_model_work_count(model, ROWS) <= WORK_MAX);
	model->ops->init(model, seed, bench.param);
	wf_rng_init(&rng, seed, 99);
	for (size_t i = 0; i < ROWS * FEATURES; i++) {
		bench.x[i] = (float)wf_rng_f64(&rng) - 0.5f;
	}
	for (size_t i = 0; i < ROWS; i++) {
		bench.y[i] = classes == 0 ? 3.0f * (float)wf_rng_f64(&rng)
					  : (float)wf_rng_below(&rng, classes);
	}
}

static double
cost_and(float *const *grad, size_t first, size_t rows)
{
	const struct wf_model_call call = {
		.param = (const float *const *)bench.param,
		.grad = grad,
		.x = bench.x + first * FEATURES,
		.y = bench.y + first,
		.rows = rows,
		.work = bench.work,
	};
	return bench.model.ops->gradient(&bench.model, &call);
}

static double
cost_at(size_t idx, float value)
{
	float old = bench.param_memory[idx];
	bench.param_memory[idx] = value;
	double cost = cost_and(bench.scrap, 0, ROWS);
	bench.param_memory[idx] = old;
	return cost;
}

/* Whether the gradient of an element is the difference quotient over a step `h`, central or to one
 * side. Its error is h or h^2 times the cost's bending, and the cost's rounding over h. */
static bool
agrees(size_t idx, double middle, float h)
{
	const float at = bench.param_memory[idx];
	const double up = cost_at(idx, at + h);
	const double down = cost_at(idx, at - h);
	const double quotient[] = {
		(up - down) / ((double)(at + h) - (double)(at - h)),
		(up - middle) / ((double)(at + h) - (double)at),
		(middle - down) / ((double)at - (double)(at - h)),
	};
	for (size_t i = 0; i < sizeof(quotient) / sizeof(quotient[0]); i++) {
		double error = quotient[i] - (double)bench.grad_memory[idx];
		double scale = 1.0 + (quotient[i] < 0 ? -quotient[i] : quotient[i]);
		if (error < 3e-3 * scale && error > -3e-3 * scale) {
			return true;
		}
	}
	return false;
}

/* A step may cross the bend of a ReLU, where the cost has no derivative: then a shorter one is
 * tried, and one element in fifty may have bends on both sides even so. */
static void
check_gradient(void)
{
	size_t wrong = 0;
	const double middle = cost_and(bench.grad, 0, ROWS);
	for (size_t i = 0; i < bench.count; i++) {
		wrong += !agrees(i, middle, 0x1p-8f) && !agrees(i, middle, 0x1p-10f) &&
			 !agrees(i, middle, 0x1p-11f);
	}
	if (wrong * 50 > bench.count) {
		fail_msg("%zu of %zu elements differ from finite differences", wrong, bench.count);
	}
}

/* (cost(p + e g) - cost(p - e g)) / 2e = |g|^2, with e |g| = 2^-6. For costs without bends. */
static void
check_gradient_along_itself(void)
{
	static float before[PARAMS_MAX];
	double square = 0.0;
	double side[2];
	(void)cost_and(bench.grad, 0, ROWS);
	memcpy(before, bench.param_memory, sizeof(before));
	for (size_t i = 0; i < bench.count; i++) {
		square += (double)bench.grad_memory[i] * (double)bench.grad_memory[i];
	}
	const double e = 0x1p-6 / sqrt(square);
	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < bench.count; i++) {
			double step = (s == 0 ? e : -e) * (double)bench.grad_memory[i];
			bench.param_memory[i] = (float)((double)before[i] + step);
		}
		side[s] = cost_and(bench.scrap, 0, ROWS);
	}
	memcpy(bench.param_memory, before, sizeof(before));
	double ratio = (side[0] - side[1]) / (2 * e) / square;
	if (!(ratio > 0.999 && ratio < 1.001)) {
		fail_msg("the cost grows by %g of what the gradient says", ratio);
	}
}

static void
use_linear(void)
{
	struct wf_model model;
	assert_ok(wf_model_linear_init(
		&(struct wf_model_opts){.features = FEATURES, .kernels = wf_kernels_ref()},
		&model));
	bench_init(&model, 0);
}

static void
use_mlp(const char *hidden)
{
	struct wf_model model;
	assert_ok(wf_model_mlp_init(&(struct wf_model_opts){.features = FEATURES,
							    .classes = 4,
							    .hidden = hidden,
							    .kernels = wf_kernels_ref()},
				    &model));
	bench_init(&model, 4);
}

static void
linear_gradient_is_the_costs_derivative(void **state)
{
	use_linear();
	check_gradient();
	check_gradient_along_itself();
}

static void
mlp_gradient_is_the_costs_derivative(void **state)
{
	static const char *const hidden[] = {"", "7", "9,6", "8,8,8"};
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		use_mlp(hidden[i]);
		check_gradient();
		if (hidden[i][0] == '\0') {
			check_gradient_along_itself();
		}
	}
}

static void
a_batch_is_the_sum_of_its_parts(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		if (kind == 0) {
			use_linear();
		} else {
			use_mlp("9,6");
		}
		double whole = cost_and(bench.grad, 0, ROWS);
		double cost = cost_and(bench.scrap, 0, 5);
		float part[PARAMS_MAX];
		memcpy(part, bench.scrap_memory, sizeof(part));
		cost += cost_and(bench.scrap, 5, ROWS - 5);
		assert_true(cost - whole < 1e-4 && whole - cost < 1e-4);
		for (size_t i = 0; i < bench.count; i++) {
			float error = part[i] + bench.scrap_memory[i] - bench.grad_memory[i];
			assert_true(error < 1e-3f && error > -1e-3f);
		}
	}
}

static void
a_nan_parameter_shows_in_the_gradient(void **state)
{
	use_mlp("7");
	bench.param[0][3] = __builtin_nanf("");
	(void)cost_and(bench.grad, 0, ROWS);
	assert_true(wf_kernels_ref()->count_nonfinite(bench.grad_memory, bench.count) > 0);
}

static void
mlp_by_default_has_3010_parameters(void **state)
{
	struct wf_model model;
	size_t count = 0;
	assert_ok(wf_model_mlp_init(
		&(struct wf_model_opts){
			.features = 64, .classes = 10, .hidden = "40", .kernels = wf_kernels_ref()},
		&model));
	for (unsigned t = 0; t < model.tensor_count; t++) {
		count += wf_model_tensor_count(&model, t);
	}
	assert_int_equal(count, 3010);
	assert_string_equal(model.tensor[0].name, "fc1_w");
	assert_string_equal(model.tensor[3].name, "fc2_b");
}

static void
widths_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {"0",
					  "a",
					  "-3",
					  "3,",
					  ",3",
					  "3,,4",
					  "3 4",
					  "70000",
					  "99999999999999999999999",
					  "1,2,3,4,5,6,7,8,9"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wf_model model;
		const struct wf_model_opts opts = {.features = 3, .classes = 2, .hidden = bad[i]};
		assert_refused(wf_model_mlp_init(&opts, &model), WEFT_INVALID, bad[i]);
	}
}

static void
the_closed_form_has_the_known_errors(void **state)
{
	char path[WF_DATA_PATH_BYTES];
	struct wf_dataset data;
	struct wf_least_squares solution;
	assert_ok(wf_data_find("housing.csv", path));
	assert_ok(wf_sheet_read(*state, path, &(struct wf_sheet_opts){.kind = WF_SHEET_HOUSING},
				&data));
	assert_ok(wf_least_squares_solve(*state, &data, &solution));
	assert_true(solution.train > 22.775 && solution.train < 22.785);
	assert_true(solution.test > 32.795 && solution.test < 32.805);
	wf_dataset_fini(*state, &data);
}

static void
columns_that_depend_on_one_another_have_no_closed_form(void **state)
{
	float x[10 * 2];
	float y[10];
	struct wf_least_squares solution;
	for (int row = 0; row < 10; row++) {
		x[2 * row] = (float)row;
		x[2 * row + 1] = 2.0f * (float)row;
		y[row] = (float)row;
	}
	const struct wf_dataset data = {.features = 2, .rows = 10, .train_rows = 8, .x = x, .y = y};
	assert_refused(wf_least_squares_solve(*state, &data, &solution), WEFT_DATA, "column 2");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linear_gradient_is_the_costs_derivative),
		cmocka_unit_test(mlp_gradient_is_the_costs_derivative),
		cmocka_unit_test(a_batch_is_the_sum_of_its_parts),
		cmocka_unit_test(a_nan_parameter_shows_in_the_gradient),
		cmocka_unit_test(mlp_by_default_has_3010_parameters),
		cmocka_unit_test(widths_that_are_none_are_refused),
		cmocka_unit_test(the_closed_form_has_the_known_errors),
		cmocka_unit_test(columns_that_depend_on_one_another_have_no_closed_form),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
