/* SPDX-License-Identifier: Apache-2.0 */
/* With dense_equivalent, rows that are touched now and then follow a dense run that moves every row
 * at every step. Tolerance: 1e-5 of values about 1 after 1,000 steps (momentum up to 0.9); what
 * differs is rounding, of one power instead of many steps. Thread: one. */
#include "tests/unit/sparse/bed.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

#define KEYS 64u
#define DIM 4u
#define STEPS 1000u
#define TOUCHED 3u
#define TOLERANCE 1e-5

static struct wf_env *env;

static int
open_env(void **state)
{
	return wf_env_system_create(WF_LOG_WARN, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
close_env(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

/* All rows as one dense tensor each of values and states. */
struct dense {
	float value[KEYS * DIM], state[2][KEYS * DIM], grad[KEYS * DIM];
};

static struct wf_table_opts
opts_of(enum wf_row_optimizer kind)
{
	struct wf_table_opts opts = bed_opts();
	opts.row.kind = kind;
	opts.row.learning_rate = 0.05;
	opts.row.momentum = 0.9;
	opts.row.dense_equivalent = true;
	return opts;
}

static void
compare(struct wf_table *table, const struct dense *dense, uint64_t step)
{
	uint64_t key[KEYS];
	float out[KEYS * DIM];
	for (uint64_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	/* The last keys were never touched: not there, but moved all the same. */
	assert_int_equal(bed_look(table, key, KEYS, out, step % 2 == 0), WEFT_OK);
	for (size_t i = 0; i < KEYS * DIM; i++) {
		double error = fabs((double)out[i] - (double)dense->value[i]);
		if (!(error <= TOLERANCE * (1.0 + fabs((double)dense->value[i])))) {
			fail_msg("step %llu, element %zu: %.9g, dense %.9g",
				 (unsigned long long)step, i, (double)out[i],
				 (double)dense->value[i]);
		}
	}
}

static void
push_some(struct wf_table *table, struct dense *dense, struct wf_rng *rng, uint64_t step)
{
	uint64_t key[TOUCHED];
	float grad[TOUCHED][DIM];
	struct wf_table_batch batch = {.key = key, .grad = grad[0], .count = TOUCHED};
	struct wf_table_push push = {
		.step = step, .rate = 0.05, .divisor = 1.0f, .batch = &batch, .batch_count = 1};

	memset(dense->grad, 0, sizeof(dense->grad));
	for (size_t n = 0; n < TOUCHED; n++) {
		/* Keys of their own, in the first three quarters. */
		key[n] = n * KEYS / 4 + wf_rng_below(rng, KEYS / 4);
		for (size_t i = 0; i < DIM; i++) {
			grad[n][i] = (float)(wf_rng_f64(rng) - 0.5);
			dense->grad[key[n] * DIM + i] = grad[n][i];
		}
	}
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
}

static void
open_dense(struct dense *dense, const struct wf_table_opts *opts)
{
	memset(dense, 0, sizeof(*dense));
	for (uint64_t k = 0; k < KEYS; k++) {
		wf_init_values(&opts->init, k, dense->value + k * DIM, DIM);
	}
}

/* The dense lanes' own kernels. */
static void
follow_dense_kernel(const struct wf_table_opts *opts, enum wf_optimizer kind)
{
	static struct dense dense;
	const float *grad = dense.grad;
	struct wf_table *table = bed_table(env, opts);
	struct wf_rng rng;
	struct wf_apply apply = {.param = dense.value,
				 .state = {dense.state[0], dense.state[1]},
				 .grad = &grad,
				 .grad_count = 1,
				 .count = KEYS * DIM,
				 .divisor = 1.0f,
				 .rate = 0.05f,
				 .plain_rate = 0.05f,
				 .decay = (float)opts->row.decay,
				 .momentum = (float)opts->row.momentum,
				 .epsilon = (float)opts->row.epsilon};

	wf_rng_init(&rng, 5, kind);
	open_dense(&dense, opts);
	for (uint64_t step = 1; step <= STEPS; step++) {
		push_some(table, &dense, &rng, step);
		(void)wf_kernels_ref()->apply[kind](&apply);
		if (step % 37 == 0) {
			compare(table, &dense, step);
		}
	}
	wf_table_destroy(table);
}

static void
momentum_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_MOMENTUM);
	follow_dense_kernel(&opts, WF_MOMENTUM);
	opts.row.decay = 0.02;
	follow_dense_kernel(&opts, WF_MOMENTUM);
}

static void
sparse_momentum_follows_the_dense_kernel_unasked(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SPARSE_MOMENTUM);
	opts.row.dense_equivalent = false;
	opts.row.decay = 0.01;
	follow_dense_kernel(&opts, WF_MOMENTUM);
}

static void
sgd_with_decay_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	opts.row.decay = 0.02;
	follow_dense_kernel(&opts, WF_SGD);
}

static void
adagrad_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_ADAGRAD);
	follow_dense_kernel(&opts, WF_ADAGRAD);
}

/* What the dense lanes have no kernel for: every row pushed at every step. */
static void
follow_rows_pushed_always(const struct wf_table_opts *opts)
{
	static struct dense dense;
	struct wf_table_opts lazy = *opts;
	lazy.row.dense_equivalent = false;
	struct wf_table *table = bed_table(env, opts);
	struct wf_table *always = bed_table(env, &lazy);
	uint64_t key[KEYS];
	struct wf_rng rng;

	wf_rng_init(&rng, 6, 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	struct wf_table_batch batch = {.key = key, .grad = dense.grad, .count = KEYS};
	struct wf_table_push push = {
		.rate = 0.05, .divisor = 1.0f, .batch = &batch, .batch_count = 1};
	for (uint64_t step = 1; step <= STEPS; step++) {
		push_some(table, &dense, &rng, step);
		push.step = step;
		assert_int_equal(wf_table_push(always, &push), WEFT_OK);
		if (step % 37 == 0) {
			assert_int_equal(bed_look(always, key, KEYS, dense.value, false), WEFT_OK);
			compare(table, &dense, step);
		}
	}
	wf_table_destroy(table);
	wf_table_destroy(always);
}

static void
l1_and_l2_follow_rows_pushed_always(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	opts.row.l1 = 0.01;
	opts.row.l2 = 0.01;
	follow_rows_pushed_always(&opts);
	opts = opts_of(WF_ROW_MOMENTUM);
	opts.row.l2 = 0.01;
	follow_rows_pushed_always(&opts);
}

static void
ftrl_and_rmsprop_follow_rows_pushed_always(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_FTRL);
	opts.init.kind = WF_INIT_ZERO;
	opts.row.l1 = 0.05;
	opts.row.l2 = 0.01;
	follow_rows_pushed_always(&opts);
	opts.row.kind = WF_ROW_FTRL_GROUP;
	opts.row.l21 = 0.1;
	follow_rows_pushed_always(&opts);
	opts = opts_of(WF_ROW_RMSPROP);
	opts.row.epsilon = 1e-3;
	follow_rows_pushed_always(&opts);
}

/* Reading leaves no trace, so that who evaluates changes nothing for who trains. */
static void
reading_in_between_changes_no_bit(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_MOMENTUM);
	opts.row.decay = 0.01;
	opts.row.learning_rate = 1.0; /* what bed_push pushes with */
	struct wf_table *read = bed_table(env, &opts);
	struct wf_table *unread = bed_table(env, &opts);
	const uint64_t key[2] = {3, 4};
	const float grad[8] = {0.1f, -0.2f, 0.3f, 0.7f, 1.0f, 0.9f, 0.8f, 0.7f};
	float out[2][8];

	for (uint64_t step = 1; step < 100; step += 7) {
		for (unsigned n = 0; n < 3; n++) {
			assert_int_equal(bed_look(read, key, 2, out[0], true), WEFT_OK);
		}
		assert_int_equal(bed_push(read, step, key, 1 + step % 2, grad), WEFT_OK);
		assert_int_equal(bed_push(unread, step, key, 1 + step % 2, grad), WEFT_OK);
	}
	assert_int_equal(bed_look(read, key, 2, out[0], true), WEFT_OK);
	assert_int_equal(bed_look(unread, key, 2, out[1], true), WEFT_OK);
	assert_memory_equal(out[0], out[1], sizeof(out[0]));
	wf_table_destroy(read);
	wf_table_destroy(unread);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(momentum_follows_the_dense_kernel),
		cmocka_unit_test(sparse_momentum_follows_the_dense_kernel_unasked),
		cmocka_unit_test(sgd_with_decay_follows_the_dense_kernel),
		cmocka_unit_test(adagrad_follows_the_dense_kernel),
		cmocka_unit_test(l1_and_l2_follow_rows_pushed_always),
		cmocka_unit_test(ftrl_and_rmsprop_follow_rows_pushed_always),
		cmocka_unit_test(reading_in_between_changes_no_bit),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
