/* SPDX-License-Identifier: Apache-2.0 */
/* Each form of the kernels against values worked out by hand, in f64 or in closed form: sums,
 * clipping, and the optimizers without a decaying mean of squares. Thread: one. */
#include "tests/unit/kernels/bench.h"

#include "base/assert.h"

static void
sgd_goes_down_the_gradient(void **state)
{
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){0.25f, 0.5f}, 2);
	b.apply.rate = 0.1f;
	assert_int_equal(form(state)->apply[WF_SGD](&b.apply), 0);
	expect_all(b.param, 1.0 - 0.1 * 0.75, 1e-7);
	expect_all(b.m, 0.0, 0);
	expect_all(b.v, 0.0, 0);
}

static void
sgd_with_decay_pulls_towards_zero(void **state)
{
	struct bench b;
	bench_init(&b, 2.0f, (const float[]){0.5f}, 1);
	b.apply.rate = 0.125f;
	b.apply.decay = 0.25f;
	form(state)->apply[WF_SGD](&b.apply);
	expect_all(b.param, 2.0 - 0.125 * (0.5 + 0.25 * 2.0), 0); /* exact in f32 */

	/* Without a gradient each step multiplies by 1 - rate decay. */
	bench_init(&b, 1.0f, (const float[]){0.0f}, 1);
	b.apply.rate = 0.1f;
	b.apply.decay = 0.5f;
	for (int step = 0; step < 50; step++) {
		form(state)->apply[WF_SGD](&b.apply);
	}
	expect_all(b.param, pow(0.95, 50), 1e-6);
}

static void
the_divisor_makes_a_mean_of_the_sum(void **state)
{
	struct bench b;
	bench_init(&b, 0.0f, (const float[]){3.0f, 5.0f, 7.0f, 9.0f}, 4);
	b.apply.rate = 1.0f;
	b.apply.divisor = 32.0f;
	form(state)->apply[WF_SGD](&b.apply);
	expect_all(b.param, -24.0 / 32.0, 0);
}

static void
clipping_holds_for_the_mean_on_both_sides(void **state)
{
	const double given[] = {8.0, -8.0, 1.0, 2.0, -2.0, 0.0};
	const double want[] = {2.0, -2.0, 0.5, 1.0, -1.0, 0.0};
	for (size_t i = 0; i < WF_ARRAY_COUNT(given); i++) {
		struct bench b;
		bench_init(&b, 0.0f, (const float[]){(float)given[i]}, 1);
		b.apply.rate = 1.0f;
		b.apply.divisor = 2.0f;
		b.apply.clip = 2.0f;
		form(state)->apply[WF_SGD](&b.apply);
		expect_all(b.param, -want[i], 0);
	}
}

static void
decay_is_not_clipped(void **state)
{
	struct bench b;
	bench_init(&b, 4.0f, (const float[]){10.0f}, 1);
	b.apply.rate = 0.5f;
	b.apply.clip = 1.0f;
	b.apply.decay = 0.5f;
	form(state)->apply[WF_SGD](&b.apply);
	expect_all(b.param, 4.0 - 0.5 * (1.0 + 0.5 * 4.0), 0);
}

/* With a constant gradient g: m_t = -rate g (1 - mu^t) / (1 - mu), w_t = w_0 + m_1 + ... + m_t. */
static void
momentum_follows_the_geometric_series(void **state)
{
	struct bench b;
	const double mu = 0.5;
	double m = 0.0;
	double w = 1.0;
	bench_init(&b, 1.0f, (const float[]){0.25f, 0.5f, 0.25f}, 3);
	b.apply.rate = 0.125f;
	b.apply.momentum = (float)mu;
	for (int t = 1; t <= 10; t++) {
		assert_int_equal(form(state)->apply[WF_MOMENTUM](&b.apply), 0);
		m = -0.125 * 1.0 * (1.0 - pow(mu, t)) / (1.0 - mu);
		w += m;
		expect_all(b.m, m, 1e-7);
		expect_all(b.param, w, 1e-6);
	}
	expect_all(b.v, 0.0, 0);
}

static void
momentum_zero_is_sgd(void **state)
{
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	b.apply.rate = 0.25f;
	b.apply.decay = 0.5f;
	form(state)->apply[WF_MOMENTUM](&b.apply);
	expect_all(b.param, 1.0 - 0.25 * (0.5 + 0.5 * 1.0), 0);
	expect_all(b.m, -0.25, 0);
}

/* With a constant gradient both corrected means are constant: each step is rate * sign(g). */
static void
adam_takes_even_steps_under_a_constant_gradient(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct bench b;
	opts.method.kind = WF_ADAM;
	bench_init(&b, 1.0f, (const float[]){-0.03f, -0.01f}, 2);
	for (unsigned t = 1; t <= 400; t++) {
		wf_apply_scalars(&opts, 1e-3, t, &b.apply);
		assert_int_equal(form(state)->apply[WF_ADAM](&b.apply), 0);
		expect_all(b.param, 1.0 + 1e-3 * t, 2e-6 + 2e-7 * t);
	}
}

/* Two steps written out. */
static void
adam_with_decay_equals_the_formula_in_f64(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct bench b;
	double w = 2.0;
	double m = 0.0;
	double v = 0.0;
	opts.method.kind = WF_ADAM;
	opts.set.epsilon = 0.125; /* large enough to be seen */
	bench_init(&b, 2.0f, (const float[]){0.5f}, 1);
	b.apply.decay = 0.25f;
	for (unsigned t = 1; t <= 2; t++) {
		wf_apply_scalars(&opts, 0.5, t, &b.apply);
		form(state)->apply[WF_ADAM](&b.apply);

		double d = 0.5 + 0.25 * w;
		m = 0.9 * m + 0.1 * d;
		v = 0.999 * v + 0.001 * d * d;
		double a = 0.5 * sqrt(1.0 - pow(0.999, t)) / (1.0 - pow(0.9, t));
		w -= a * m / (sqrt(v) + 0.125);
		expect_all(b.m, m, 1e-7);
		expect_all(b.v, v, 1e-7);
		expect_all(b.param, w, 1e-5); /* 0.999 as f32 leaves 1.3e-5 of 1 - beta2 */
	}
}

/* Sutskever's formulation, in f64, of f(x) = x^2 / 4: v = mu v - rate f'(theta + mu v), theta =
 * theta + v. The parameter is theta + mu v, the point at which the gradient is taken. The gradient
 * of f comes from the trainers, or from a decay of 0.5: both enter alike. */
static void
nesterov_takes_its_gradient_at_the_point_ahead(void **state)
{
	for (int by_decay = 0; by_decay <= 1; by_decay++) {
		struct bench b;
		const double mu = 0.75;
		double theta = 1.0;
		double v = 0.0;
		bench_init(&b, 1.0f, (const float[]){0.0f}, 1);
		b.apply.rate = 0.125f;
		b.apply.momentum = (float)mu;
		b.apply.decay = by_decay ? 0.5f : 0.0f;
		for (int t = 1; t <= 40; t++) {
			fill(b.grad[0], by_decay ? 0.0f : 0.5f * b.param[0]);
			assert_int_equal(form(state)->apply[WF_NESTEROV](&b.apply), 0);
			v = mu * v - 0.125 * 0.5 * (theta + mu * v);
			theta += v;
			expect_all(b.m, v, 1e-6);
			expect_all(b.param, theta + mu * v, 1e-6);
		}
		expect_all(b.v, 0.0, 0);
	}
}

static void
nesterov_without_momentum_is_sgd(void **state)
{
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	b.apply.rate = 0.25f;
	b.apply.decay = 0.5f;
	form(state)->apply[WF_NESTEROV](&b.apply);
	expect_all(b.param, 1.0 - 0.25 * (0.5 + 0.5 * 1.0), 0);
}

/* With a constant gradient g the sum of squares is t g^2. */
static void
adagrad_divides_by_the_root_of_all_squares_so_far(void **state)
{
	struct bench b;
	const double g = 0.75;
	double w = 2.0;
	bench_init(&b, 2.0f, (const float[]){0.5f, 0.25f}, 2);
	b.apply.rate = 0.125f;
	b.apply.epsilon = 0.25f; /* large enough to be seen where it stands */
	for (int t = 1; t <= 100; t++) {
		assert_int_equal(form(state)->apply[WF_ADAGRAD](&b.apply), 0);
		w -= 0.125 * g / sqrt(t * g * g + 0.25);
		expect_all(b.m, t * g * g, 0); /* exact in f32 */
		expect_all(b.param, w, 1e-5);
	}
	expect_all(b.v, 0.0, 0);
}

/* It is divided by the root as the gradient is, but its square is not added up. */
static void
adagrads_decay_enters_the_step_and_not_the_sum_of_squares(void **state)
{
	struct bench b;
	double w = 4.0;
	bench_init(&b, 4.0f, (const float[]){0.5f}, 1);
	b.apply.rate = 0.25f;
	b.apply.epsilon = 0.0625f;
	b.apply.decay = 0.125f;
	for (int t = 1; t <= 3; t++) {
		form(state)->apply[WF_ADAGRAD](&b.apply);
		w -= 0.25 * (0.5 + 0.125 * w) / sqrt(0.25 * t + 0.0625);
		expect_all(b.m, 0.25 * t, 0);
		expect_all(b.param, w, 1e-6);
	}
}

static void
adagrad_leaves_what_never_had_a_gradient(void **state)
{
	struct bench b;
	bench_init(&b, 1.5f, (const float[]){0.0f}, 1);
	b.apply.rate = 0.5f;
	b.apply.epsilon = 1e-6f;
	assert_int_equal(form(state)->apply[WF_ADAGRAD](&b.apply), 0);
	expect_all(b.param, 1.5, 0);
	expect_all(b.m, 0.0, 0);
}

/* Three steps written out. */
static void
adamw_equals_the_formula_in_f64(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct bench b;
	double w = 2.0;
	double m = 0.0;
	double v = 0.0;
	opts.method.kind = WF_ADAMW;
	opts.set.epsilon = 0.125;
	bench_init(&b, 2.0f, (const float[]){0.5f}, 1);
	b.apply.decay = 0.25f;
	for (unsigned t = 1; t <= 3; t++) {
		wf_apply_scalars(&opts, 0.5, t, &b.apply);
		form(state)->apply[WF_ADAMW](&b.apply);

		m = 0.9 * m + 0.1 * 0.5;
		v = 0.999 * v + 0.001 * 0.5 * 0.5;
		double a = 0.5 * sqrt(1.0 - pow(0.999, t)) / (1.0 - pow(0.9, t));
		w -= a * m / (sqrt(v) + 0.125) + 0.5 * 0.25 * w;
		expect_all(b.m, m, 1e-7);
		expect_all(b.v, v, 1e-7);
		expect_all(b.param, w, 1e-5);
	}
}

/* Without a gradient each step multiplies by 1 - rate decay; the first bias-corrected rate would
 * be less than a third of the rate. */
static void
adamws_decay_takes_the_rate_of_the_schedule(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct bench b;
	opts.method.kind = WF_ADAMW;
	bench_init(&b, 1.0f, (const float[]){0.0f}, 1);
	b.apply.decay = 0.5f;
	for (unsigned t = 1; t <= 50; t++) {
		wf_apply_scalars(&opts, 0.1, t, &b.apply);
		form(state)->apply[WF_ADAMW](&b.apply);
		expect_all(b.param, pow(0.95, t), 1e-6);
	}
	expect_all(b.m, 0.0, 0);
	expect_all(b.v, 0.0, 0);
}

static void
adamw_without_decay_is_adam(void **state)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	struct bench adam;
	struct bench adamw;
	bench_init(&adam, 1.0f, (const float[]){0.3f, -0.7f}, 2);
	bench_init(&adamw, 1.0f, (const float[]){0.3f, -0.7f}, 2);
	for (unsigned t = 1; t <= 20; t++) {
		fill(adam.grad[1], 0.1f * (float)t - 1.0f);
		fill(adamw.grad[1], 0.1f * (float)t - 1.0f);
		opts.method.kind = WF_ADAM;
		wf_apply_scalars(&opts, 0.01, t, &adam.apply);
		form(state)->apply[WF_ADAM](&adam.apply);
		opts.method.kind = WF_ADAMW;
		wf_apply_scalars(&opts, 0.01, t, &adamw.apply);
		form(state)->apply[WF_ADAMW](&adamw.apply);
		assert_memory_equal(adam.param, adamw.param, sizeof(adam.param));
		assert_memory_equal(adam.m, adamw.m, sizeof(adam.m));
		assert_memory_equal(adam.v, adamw.v, sizeof(adam.v));
	}
	assert_true(adam.param[0] != 1.0f);
}

/* 1e8 + 1 is 1e8 in f32: the order shows. */
static void
gradients_are_added_from_the_first_to_the_last(void **state)
{
	struct {
		unsigned count;
		float grad[GRADS];
		double sum;
	} const cases[] = {
		{1, {7.0f}, 7.0},
		{2, {1e8f, 1.0f}, 1e8},
		{3, {1e8f, 1.0f, -1e8f}, 0.0},
		{3, {1e8f, -1e8f, 1.0f}, 1.0},
		{4, {1e8f, 1.0f, -1e8f, 1.0f}, 1.0}, /* in pairs it would be 0 */
		{4, {1.0f, 1e8f, 1.0f, -1e8f}, 0.0},
		{5, {1e8f, -1e8f, 1.0f, 1.0f, 1.0f}, 3.0},
		{9, {1.0f, 1e8f, -1e8f, 1.0f, 1e8f, 1.0f, -1e8f, 1.0f, 1.0f}, 2.0},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct bench b;
		float out[COUNT];
		bench_init(&b, 0.0f, cases[i].grad, cases[i].count);
		b.apply.rate = 1.0f;
		form(state)->apply[WF_SGD](&b.apply);
		expect_all(b.param, -cases[i].sum, 0);

		form(state)->sum(out, b.grads, cases[i].count, COUNT);
		expect_all(out, cases[i].sum, 0);
		form(state)->mean(out, b.grads, cases[i].count, 1.0f, COUNT);
		expect_all(out, cases[i].sum, 0);
		form(state)->mean(out, b.grads, cases[i].count, 4.0f, COUNT);
		expect_all(out, cases[i].sum / 4, 0);
		form(state)->sum(b.grad[0], b.grads, cases[i].count, COUNT);
		expect_all(b.grad[0], cases[i].sum, 0);
	}
}

static void
a_sum_that_is_not_finite_leaves_its_element_alone(void **state)
{
	/* Two gradients whose sum is not finite, or only looks as if it were not. */
	const float pair[][2] = {{NAN, 1.0f},       {1.0f, NAN},           {INFINITY, 1.0f},
				 {1.0f, -INFINITY}, {INFINITY, -INFINITY}, {3e38f, 3e38f},
				 {-3e38f, -3e38f},  {3e38f, -3e38f}};
	const size_t bad = 7;
	const size_t at[] = {1, 3, 5, 9, 11, 16, 36, 13}; /* in vectors and in the rest */

	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		struct bench b;
		bench_init(&b, 1.0f, (const float[]){0.5f, 0.5f}, 2);
		fill(b.m, 0.25f);
		fill(b.v, 0.25f);
		b.apply.rate = 0.5f;
		b.apply.clip = 10.0f; /* does not make a number of an infinity */
		b.apply.momentum = b.apply.beta1 = b.apply.beta2 = b.apply.rho = 0.5f;
		b.apply.square_share = b.apply.torch.rest1 = b.apply.torch.rest2 =
			b.apply.torch.root_share = 0.5f;
		b.apply.torch.carried = b.apply.torch.fresh = b.apply.torch.direct =
			b.apply.torch.onward = 0.5f;
		b.apply.epsilon = 1e-8f;
		for (size_t i = 0; i < WF_ARRAY_COUNT(at); i++) {
			b.grad[0][at[i]] = pair[i][0];
			b.grad[1][at[i]] = pair[i][1];
		}
		assert_int_equal(form(state)->apply[kind](&b.apply), bad);
		for (size_t i = 0; i < bad; i++) {
			assert_true(b.param[at[i]] == 1.0f);
			assert_true(b.m[at[i]] == 0.25f && b.v[at[i]] == 0.25f);
			b.param[at[i]] = b.param[0];
		}
		b.param[at[bad]] = b.param[0]; /* a finite sum of another size */
		assert_true(b.param[0] < 1.0f);
		expect_all(b.param, (double)b.param[0], 0);
	}
}

/* A bench in which each method moves. */
static void
init_mover(struct bench *b, float w, float g)
{
	bench_init(b, w, (const float[]){g}, 1);
	fill(b->m, 0.25f);
	fill(b->v, 0.25f);
	b->apply.rate = b->apply.plain_rate = 0.5f;
	b->apply.momentum = b->apply.beta1 = b->apply.beta2 = b->apply.rho = 0.5f;
	b->apply.square_share = b->apply.torch.rest1 = b->apply.torch.rest2 =
		b->apply.torch.root_share = 0.5f;
	b->apply.torch.carried = b->apply.torch.fresh = b->apply.torch.direct =
		b->apply.torch.onward = 0.5f;
	b->apply.epsilon = 1e-8f;
}

/* The squares of 2e19 and 3e38 are beyond f32. The methods without squares just go on. */
static void
an_element_whose_square_overflows_stays_as_it_is(void **state)
{
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		const bool squares = kind == WF_ADAM || kind == WF_ADAMW || kind == WF_ADAGRAD ||
				     kind == WF_DECAYED_ADAGRAD || kind == WF_RMSPROP ||
				     kind == WF_ADADELTA;
		const bool torch = kind == WF_TORCH_ADAM || kind == WF_TORCH_ADAMW;
		struct bench b;
		init_mover(&b, 1.0f, 0.5f);
		b.grad[0][3] = 2e19f;
		b.grad[0][36] = -3e38f;
		size_t skipped = form(state)->apply[kind](&b.apply);
		assert_int_equal(skipped, squares ? 2 : torch ? 1 : 0);
		for (size_t i = 3; i < COUNT && squares; i += 33) {
			assert_true(b.param[i] == 1.0f && b.m[i] == 0.25f && b.v[i] == 0.25f);
		}
		assert_int_equal(form(state)->count_nonfinite(b.param, COUNT), 0);
		assert_int_equal(form(state)->count_nonfinite(b.m, COUNT), 0);
		assert_int_equal(form(state)->count_nonfinite(b.v, COUNT), 0);
		assert_true(b.param[0] != 1.0f && b.param[35] == b.param[0]);
	}
}

/* A step that is too long for f32, by the rate or by what the state has become. */
static void
a_step_out_of_f32_is_not_made(void **state)
{
	const enum wf_optimizer kinds[] = {WF_SGD, WF_MOMENTUM, WF_NESTEROV, WF_TORCH_MOMENTUM,
					   WF_TORCH_SGD};
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		struct bench b;
		init_mover(&b, 1.0f, 0.5f);
		b.param[7] = b.param[33] = -3e38f;
		b.grad[0][7] = b.grad[0][33] = 3e38f;
		assert_int_equal(form(state)->apply[kinds[i]](&b.apply), 2);
		assert_true(b.param[7] == -3e38f && b.param[33] == -3e38f);
		assert_true(b.m[7] == 0.25f && b.m[33] == 0.25f);
	}
	struct bench b;
	init_mover(&b, 1.0f, 1.5e19f);
	fill(b.m, 3e38f); /* one square more, and the sum is beyond f32 */
	assert_int_equal(form(state)->apply[WF_ADAGRAD](&b.apply), COUNT);
	expect_all(b.param, 1.0, 0);
	expect_all(b.m, (double)3e38f, 0);
}

/* That of clip_norm, where the norm is. */
static void
a_divisor_may_be_beyond_f32(void **state)
{
	struct bench b;
	bench_init(&b, 0.0f, (const float[]){3e38f}, 1);
	b.apply.rate = 1.0f;
	wf_apply_divide_by(&b.apply, 1.5e39);
	assert_int_equal(form(state)->apply[WF_SGD](&b.apply), 0);
	expect_all(b.param, -0.2, 1e-7);
	bench_init(&b, 0.0f, (const float[]){3.0f}, 1);
	b.apply.rate = 1.0f;
	wf_apply_divide_by(&b.apply, 1.5);
	assert_int_equal(form(state)->apply[WF_SGD](&b.apply), 0);
	expect_all(b.param, -2.0, 0);
}

/* Of a tensor that is only reduced: what is not finite is a result like any other. The three values
 * give other bits if they are added in another order, divided first, or multiplied by a third. */
static void
a_mean_is_the_sum_divided_and_whatever_is_not_finite_passes(void **state)
{
	const float values[3] = {0.7f, 0.9f, 0.3f};
	const size_t at[] = {0, 7, 15, 16, 36}; /* in vectors and in the rest */
	struct bench b;
	float out[COUNT];
	bench_init(&b, 0.0f, values, 3);
	b.grad[1][at[0]] = NAN;
	b.grad[2][at[1]] = INFINITY;
	b.grad[0][at[2]] = -INFINITY;
	b.grad[0][at[3]] = b.grad[1][at[3]] = 3e38f; /* the sum alone is beyond f32 */
	b.grad[0][at[4]] = b.grad[1][at[4]] = b.grad[2][at[4]] = -0.0f;
	form(state)->mean(out, b.grads, 3, 3.0f, COUNT);
	assert_true(isnan(out[at[0]]) && out[at[1]] == INFINITY && out[at[2]] == -INFINITY);
	assert_true(out[at[3]] == INFINITY && out[at[4]] == 0 && signbit(out[at[4]]));
	for (size_t i = 0; i < WF_ARRAY_COUNT(at); i++) {
		out[at[i]] = out[1];
	}
	float sum = values[0] + values[1];
	sum = sum + values[2];
	expect_all(out, (double)(sum / 3.0f), 0);
	assert_true(sum / 3.0f != sum * (1.0f / 3.0f));
}

static void
elements_that_are_not_finite_are_counted(void **state)
{
	float array[COUNT];
	fill(array, 3.4e38f);
	assert_int_equal(form(state)->count_nonfinite(array, COUNT), 0);
	array[0] = NAN;
	array[7] = INFINITY;
	array[15] = -INFINITY;
	array[36] = -NAN;
	assert_int_equal(form(state)->count_nonfinite(array, COUNT), 4);
	assert_int_equal(form(state)->count_nonfinite(array, 36), 3);
	assert_int_equal(form(state)->count_nonfinite(array, 0), 0);
}

static void
no_elements_are_no_work(void **state)
{
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	b.apply.count = 0;
	b.apply.rate = 1.0f;
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		assert_int_equal(form(state)->apply[kind](&b.apply), 0);
	}
	form(state)->sum(b.param, b.grads, 1, 0);
	form(state)->mean(b.param, b.grads, 1, 3.0f, 0);
	form(state)->exp_f32(b.param, b.param, 0);
	form(state)->log_f32(b.param, b.param, 0);
	expect_all(b.param, 1.0, 0);
}

static void
forms_are_found_by_name(void **state)
{
	assert_ptr_equal(wf_kernels_by_name("ref"), wf_kernels_ref());
	assert_ptr_equal(wf_kernels_by_name("auto"), wf_kernels_best());
	assert_null(wf_kernels_by_name("avx5"));
	assert_null(wf_kernels_by_name(""));
	assert_string_equal(wf_kernels_ref()->name, "ref");
	const char *const wide[] = {"avx2", "avx512"};
	const struct wf_kernels *last = wf_kernels_ref();
	for (size_t i = 0; i < WF_ARRAY_COUNT(wide); i++) {
		const struct wf_kernels *found = wf_kernels_by_name(wide[i]);
		if (found != NULL) {
			assert_string_equal(found->name, wide[i]);
			last = found;
		}
	}
	/* The widest, or where that does not win the one before it. */
	assert_true(wf_kernels_best() == last || wf_kernels_best() == wf_kernels_by_name("avx2"));
}

static int
run_for(const char *name)
{
	const struct wf_kernels *kernels = wf_kernels_by_name(name);
	if (kernels == NULL) {
		print_message("form %s is not offered here\n", name);
		return 0;
	}
	/* cmocka passes state without const; no test writes to it. */
	void *given = (void *)(uintptr_t)kernels;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(sgd_goes_down_the_gradient, given),
		cmocka_unit_test_prestate(sgd_with_decay_pulls_towards_zero, given),
		cmocka_unit_test_prestate(the_divisor_makes_a_mean_of_the_sum, given),
		cmocka_unit_test_prestate(clipping_holds_for_the_mean_on_both_sides, given),
		cmocka_unit_test_prestate(decay_is_not_clipped, given),
		cmocka_unit_test_prestate(momentum_follows_the_geometric_series, given),
		cmocka_unit_test_prestate(momentum_zero_is_sgd, given),
		cmocka_unit_test_prestate(adam_takes_even_steps_under_a_constant_gradient, given),
		cmocka_unit_test_prestate(adam_with_decay_equals_the_formula_in_f64, given),
		cmocka_unit_test_prestate(nesterov_takes_its_gradient_at_the_point_ahead, given),
		cmocka_unit_test_prestate(nesterov_without_momentum_is_sgd, given),
		cmocka_unit_test_prestate(adagrad_divides_by_the_root_of_all_squares_so_far, given),
		cmocka_unit_test_prestate(adagrads_decay_enters_the_step_and_not_the_sum_of_squares,
					  given),
		cmocka_unit_test_prestate(adagrad_leaves_what_never_had_a_gradient, given),
		cmocka_unit_test_prestate(adamw_equals_the_formula_in_f64, given),
		cmocka_unit_test_prestate(adamws_decay_takes_the_rate_of_the_schedule, given),
		cmocka_unit_test_prestate(adamw_without_decay_is_adam, given),
		cmocka_unit_test_prestate(gradients_are_added_from_the_first_to_the_last, given),
		cmocka_unit_test_prestate(a_sum_that_is_not_finite_leaves_its_element_alone, given),
		cmocka_unit_test_prestate(an_element_whose_square_overflows_stays_as_it_is, given),
		cmocka_unit_test_prestate(a_step_out_of_f32_is_not_made, given),
		cmocka_unit_test_prestate(a_divisor_may_be_beyond_f32, given),
		cmocka_unit_test_prestate(
			a_mean_is_the_sum_divided_and_whatever_is_not_finite_passes, given),
		cmocka_unit_test_prestate(elements_that_are_not_finite_are_counted, given),
		cmocka_unit_test_prestate(no_elements_are_no_work, given),
		cmocka_unit_test(forms_are_found_by_name),
	};
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(void)
{
	int failed = run_for("ref");
	failed += run_for("avx2");
	return failed + run_for("avx512");
}
