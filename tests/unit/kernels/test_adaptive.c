/* SPDX-License-Identifier: Apache-2.0 */
/* Each form of the kernels: optimizers with decaying means, Adamax, torch's momentum, and L1,
 * against closed forms, against the formulas written out in f64, and against trajectories that
 * another program made. Thread: one. */
#include "tests/unit/kernels/bench.h"

#include "base/assert.h"
#include "tests/unit/kernels/trajectories.h"

static struct wf_optimizer_opts
opts_of(enum wf_optimizer kind)
{
	struct wf_optimizer_opts opts = wf_optimizer_defaults();
	opts.method.kind = kind;
	return opts;
}

static void
step(const struct wf_kernels *kernels, const struct wf_optimizer_opts *opts, double rate,
     unsigned t, struct bench *b)
{
	wf_apply_scalars(opts, rate, t, &b->apply);
	assert_int_equal(kernels->apply[opts->method.kind](&b->apply), 0);
}

/* The mean of squares is g^2 from the first step on, so all steps are the same. */
static void
decayed_adagrad_takes_even_steps_under_a_constant_gradient(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_DECAYED_ADAGRAD);
	struct bench b;
	const double each = 0.125 * 0.75 / sqrt(0.75 * 0.75 + 0.25);
	opts.set.epsilon = 0.25; /* large enough to be seen where it stands */
	bench_init(&b, 2.0f, (const float[]){0.5f, 0.25f}, 2);
	for (unsigned t = 1; t <= 100; t++) {
		step(form(state), &opts, 0.125, t, &b);
		expect_all(b.m, 0.75 * 0.75, 1e-6);
		expect_all(b.param, 2.0 - t * each, 1e-5);
	}
	expect_all(b.v, 0.0, 0);
}

/* Decay is in the step, not in the mean, which falls by rho where there is no gradient. */
static void
decayed_adagrad_forgets_and_its_decay_is_not_squared(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_DECAYED_ADAGRAD);
	struct bench b;
	double w = 4.0;
	opts.set.epsilon = 0.0625;
	opts.set.rho = 0.5;
	bench_init(&b, 4.0f, (const float[]){1.0f}, 1);
	b.apply.decay = 0.125f;
	step(form(state), &opts, 0.25, 1, &b);
	w -= 0.25 * (1.0 + 0.125 * w) / sqrt(1.0 + 0.0625);
	fill(b.grad[0], 0.0f);
	for (unsigned t = 2; t <= 20; t++) {
		step(form(state), &opts, 0.25, t, &b);
		w -= 0.25 * 0.125 * w / sqrt(pow(0.5, t - 1) + 0.0625);
		expect_all(b.m, pow(0.5, t - 1), 0); /* exact in f32 */
		expect_all(b.param, w, 1e-6);
	}
}

/* The squares' mean is g^2 throughout; that of the gradients g (1 - rho^t). */
static void
rmsprop_divides_by_the_standard_deviation(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_RMSPROP);
	struct bench b;
	const double g = -0.5;
	double w = 1.0;
	opts.set.rho = 0.75;
	opts.set.epsilon = 0.0625;
	bench_init(&b, 1.0f, (const float[]){(float)g}, 1);
	for (unsigned t = 1; t <= 40; t++) {
		step(form(state), &opts, 0.03125, t, &b);
		double mean = g * (1.0 - pow(0.75, t));
		w -= 0.03125 * g / sqrt(g * g - mean * mean + 0.0625);
		expect_all(b.m, g * g, 1e-7);
		expect_all(b.v, mean, 1e-6);
		expect_all(b.param, w, 1e-5);
	}
}

/* Rates are without a unit: a gradient 1,000 times as large makes the same step, where epsilon
 * does not count. */
static void
steps_do_not_depend_on_the_size_of_gradients(void **state)
{
	const enum wf_optimizer kinds[] = {WF_RMSPROP, WF_DECAYED_ADAGRAD};
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		struct wf_optimizer_opts opts = opts_of(kinds[i]);
		struct bench small;
		struct bench large;
		opts.set.epsilon = 1e-12;
		bench_init(&small, 1.0f, (const float[]){0.5f}, 1);
		bench_init(&large, 1.0f, (const float[]){512.0f}, 1);
		for (unsigned t = 1; t <= 20; t++) {
			fill(small.grad[0], 0.25f * (float)(t % 5) - 0.4f);
			fill(large.grad[0], 1024.0f * small.grad[0][0]);
			step(form(state), &opts, 0.01, t, &small);
			step(form(state), &opts, 0.01, t, &large);
			expect_all(large.param, (double)small.param[0], 1e-5);
		}
	}
}

/* Under the root nothing is below 0, whatever rounding does: equal gradients have no variance. */
static void
rmsprops_variance_is_not_negative(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_RMSPROP);
	struct bench b;
	opts.set.rho = 0.1;
	opts.set.epsilon = 1e-30;
	bench_init(&b, 1.0f, (const float[]){0.1f}, 1);
	for (unsigned t = 1; t <= 200; t++) {
		step(form(state), &opts, 1e-30, t, &b);
		assert_true(b.param[0] == b.param[0]);
	}
}

/* Zeiler's algorithm 1 in f64, with a rate of 1. */
static void
adadelta_equals_its_algorithm_in_f64(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_ADADELTA);
	struct bench b;
	double w = 0.5;
	double squares = 0.0;
	double steps = 0.0;
	opts.set.epsilon = 1e-3;
	opts.set.rho = 0.75;
	bench_init(&b, 0.5f, (const float[]){0.0f}, 1);
	for (unsigned t = 1; t <= 60; t++) {
		double g = 0.25 * (t % 7) - 0.5;
		fill(b.grad[0], (float)g);
		step(form(state), &opts, 1.0, t, &b);
		squares = 0.75 * squares + 0.25 * g * g;
		double x = -sqrt(steps + 1e-3) / sqrt(squares + 1e-3) * g;
		steps = 0.75 * steps + 0.25 * x * x;
		w += x;
		expect_all(b.m, squares, 1e-6);
		expect_all(b.v, steps, 1e-6);
		expect_all(b.param, w, 1e-5);
	}
}

/* m is g (1 - beta1^t), and u is |g|: each corrected step is rate sign(g). */
static void
adamax_takes_even_steps_under_a_constant_gradient(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_ADAMAX);
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){-0.03f, -0.01f}, 2);
	for (unsigned t = 1; t <= 400; t++) {
		step(form(state), &opts, 1e-3, t, &b);
		expect_all(b.param, 1.0 + 1e-3 * t, 2e-6 + 2e-7 * t);
		expect_all(b.v, 0.04, 1e-7);
	}
}

/* A large gradient is forgotten by beta2 a step, and no faster. */
static void
adamaxs_norm_falls_by_beta2_and_not_below_the_gradient(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_ADAMAX);
	struct bench b;
	opts.set.beta2 = 0.5;
	bench_init(&b, 0.0f, (const float[]){-64.0f}, 1);
	for (unsigned t = 1; t <= 20; t++) {
		step(form(state), &opts, 1e-3, t, &b);
		double falling = 64.0 * pow(0.5, t - 1);
		expect_all(b.v, falling > 0.25 ? falling : 0.25, 0);
		fill(b.grad[0], t % 2 == 0 ? 0.25f : -0.25f);
	}
}

/* The original divides 0 by 0 here. */
static void
adamax_leaves_what_never_had_a_gradient(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_ADAMAX);
	struct bench b;
	bench_init(&b, 1.5f, (const float[]){0.0f}, 1);
	for (unsigned t = 1; t <= 3; t++) {
		step(form(state), &opts, 0.5, t, &b);
		expect_all(b.param, 1.5, 0);
		expect_all(b.m, 0.0, 0);
		expect_all(b.v, 0.0, 0);
	}
}

/* With a constant gradient g the first step makes m = -rate g, and mu m - (1 - mu) rate g is the
 * same again. */
static void
torch_momentum_moves_by_the_rate_alone_under_a_constant_gradient(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_TORCH_MOMENTUM);
	struct bench b;
	opts.set.momentum = 0.75;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	for (unsigned t = 1; t <= 20; t++) {
		step(form(state), &opts, 0.125, t, &b);
		expect_all(b.m, -0.0625, 1e-7);
		expect_all(b.param, 1.0 - 0.0625 * t, 1e-6);
	}
}

/* Dampened by 1/4, which the first step is not; then Nesterov's, which is ahead by mu m; then
 * without momentum, which leaves m. All values are exact. */
static void
torch_sgd_has_the_dampening_and_the_look_ahead_of_pytorch(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_TORCH_SGD);
	struct bench b;
	opts.set.momentum = 0.5;
	opts.dampening = 0.25;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	step(form(state), &opts, 0.125, 1, &b);
	expect_all(b.m, 0.5, 0);
	expect_all(b.param, 1.0 - 0.0625, 0);
	step(form(state), &opts, 0.25, 2, &b);
	expect_all(b.m, 0.25 + 0.375, 0);
	expect_all(b.param, 0.9375 - 0.25 * 0.625, 0);
	opts.dampening = 0;
	opts.is_nesterov = true;
	step(form(state), &opts, 0.25, 3, &b);
	expect_all(b.m, 0.3125 + 0.5, 0);
	expect_all(b.param, 0.78125 - 0.25 * (0.5 + 0.40625), 0);
	opts.set.momentum = 0;
	step(form(state), &opts, 1.0, 4, &b);
	expect_all(b.m, 0.8125, 0);
	expect_all(b.param, 0.5546875 - 0.5, 0);
}

/* L1 is a step of its own after the optimizer's, for all of them. */
static void
l1_moves_by_the_plain_rate_and_stops_at_zero(void **state)
{
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		struct wf_optimizer_opts opts = opts_of((enum wf_optimizer)kind);
		struct bench b;
		bench_init(&b, 0.0f, (const float[]){0.0f}, 1);
		for (size_t i = 0; i < COUNT; i++) {
			b.param[i] = i % 3 == 0 ? 1.0f : i % 3 == 1 ? -1.0f : 0.09f;
		}
		b.apply.l1 = 0.5f;
		for (unsigned t = 1; t <= 3; t++) {
			step(form(state), &opts, 0.25, t, &b);
			for (size_t i = 0; i < COUNT; i++) {
				double left = 1.0 - 0.125 * t;
				double want = i % 3 == 0 ? left : i % 3 == 1 ? -left : 0.0;
				assert_true(fabs((double)b.param[i] - want) < 1e-6);
			}
		}
	}
}

/* Whoever is not finite is not moved either. */
static void
l1_leaves_an_element_whose_gradient_is_not_finite(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_MOMENTUM);
	struct bench b;
	bench_init(&b, 1.0f, (const float[]){0.5f}, 1);
	b.grad[0][5] = NAN;
	b.grad[0][36] = INFINITY;
	b.apply.l1 = 0.5f;
	wf_apply_scalars(&opts, 0.25, 1, &b.apply);
	assert_int_equal(form(state)->apply[WF_MOMENTUM](&b.apply), 2);
	assert_true(b.param[5] == 1.0f && b.param[36] == 1.0f);
	assert_true(b.param[0] == 1.0f - 0.125f - 0.125f);
}

/* No L1, no difference: not in the sign of a zero either. */
static void
l1_of_zero_changes_no_bit(void **state)
{
	struct wf_optimizer_opts opts = opts_of(WF_SGD);
	struct bench b;
	bench_init(&b, 0.0f, (const float[]){0.0f}, 1);
	fill(b.param, -0.0f);
	step(form(state), &opts, 0.25, 1, &b);
	assert_true(signbit(b.param[0]) && signbit(b.param[36]));
}

static void
every_optimizer_follows_the_trajectory_of_its_paper(void **state)
{
	for (unsigned kind = 0; kind < WF_OPTIMIZER_COUNT; kind++) {
		for (unsigned l1 = 0; l1 < 2; l1++) {
			struct wf_optimizer_opts opts = trajectory_opts;
			struct bench b;
			opts.method.kind = (enum wf_optimizer)kind;
			bench_init(&b, (float)TRAJECTORY_START, (const float[]){0.0f}, 1);
			b.apply.decay = (float)opts.set.decay;
			b.apply.l1 = l1 == 1 ? (float)TRAJECTORY_L1 : 0.0f;
			for (unsigned t = 1; t <= TRAJECTORY_STEPS; t++) {
				fill(b.grad[0], (float)trajectory_gradient[t - 1]);
				step(form(state), &opts, opts.set.learning_rate, t, &b);
				expect_all(b.param, trajectory[kind][l1][t - 1], 2e-6);
			}
		}
	}
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
#define IN_FORM(test) cmocka_unit_test_prestate(test, given)
	const struct CMUnitTest tests[] = {
		IN_FORM(decayed_adagrad_takes_even_steps_under_a_constant_gradient),
		IN_FORM(decayed_adagrad_forgets_and_its_decay_is_not_squared),
		IN_FORM(rmsprop_divides_by_the_standard_deviation),
		IN_FORM(steps_do_not_depend_on_the_size_of_gradients),
		IN_FORM(rmsprops_variance_is_not_negative),
		IN_FORM(adadelta_equals_its_algorithm_in_f64),
		IN_FORM(adamax_takes_even_steps_under_a_constant_gradient),
		IN_FORM(adamaxs_norm_falls_by_beta2_and_not_below_the_gradient),
		IN_FORM(adamax_leaves_what_never_had_a_gradient),
		IN_FORM(torch_momentum_moves_by_the_rate_alone_under_a_constant_gradient),
		IN_FORM(torch_sgd_has_the_dampening_and_the_look_ahead_of_pytorch),
		IN_FORM(l1_moves_by_the_plain_rate_and_stops_at_zero),
		IN_FORM(l1_leaves_an_element_whose_gradient_is_not_finite),
		IN_FORM(l1_of_zero_changes_no_bit),
		IN_FORM(every_optimizer_follows_the_trajectory_of_its_paper),
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
