/* SPDX-License-Identifier: Apache-2.0 */
/* With dense_equivalent, rows that are touched now and then follow a dense run that moves every row
 * at every step. Tolerance: 1e-5 of values about 1 after 1,000 steps (momentum up to 0.9); what
 * differs is rounding, of one power instead of many steps; 6e-5 where the dense run rounds the same
 * way at every step. Thread: one. */
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
/* Where every step rounds the same way: half a unit in the last place for each of them. */
#define TOLERANCE_WORST (STEPS * 0x1p-24)

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
	opts.row.set.learning_rate = 0.05;
	opts.row.set.momentum = 0.9;
	opts.row.set.dense_equivalent = true;
	return opts;
}

static void
compare(struct wf_table *table, const struct dense *dense, uint64_t step, double tolerance)
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
		if (!(error <= tolerance * (1.0 + fabs((double)dense->value[i])))) {
			fail_msg("step %llu, element %zu: %.9g, dense %.9g",
				 (unsigned long long)step, i, (double)out[i],
				 (double)dense->value[i]);
		}
	}
}

#define SAMPLES 10u /* of each step */

static double
rate_of(const struct wf_table_opts *opts, uint64_t step)
{
	return wf_row_rate(&opts->row, (step - 1) * SAMPLES, SAMPLES);
}

static void
push_some(struct wf_table *table, struct dense *dense, struct wf_rng *rng,
	  const struct wf_table_opts *opts, uint64_t step)
{
	uint64_t key[TOUCHED];
	float grad[TOUCHED][DIM];
	struct wf_table_batch batch = {.key = key, .grad = grad[0], .count = TOUCHED};
	struct wf_table_push push = {.step = step,
				     .rate = rate_of(opts, step),
				     .divisor = 1.0f,
				     .batch = &batch,
				     .batch_count = 1};

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
				 .decay = (float)opts->row.set.decay,
				 .momentum = (float)opts->row.set.momentum,
				 .rho = (float)opts->row.set.rho,
				 .epsilon = (float)opts->row.set.epsilon};

	wf_rng_init(&rng, 5, kind);
	open_dense(&dense, opts);
	for (uint64_t step = 1; step <= STEPS; step++) {
		push_some(table, &dense, &rng, opts, step);
		apply.square_share = step == 1 ? 1.0f : 1.0f - apply.rho;
		(void)wf_kernels_ref()->apply[kind](&apply);
		if (step % 37 == 0) {
			compare(table, &dense, step, TOLERANCE);
		}
	}
	wf_table_destroy(table);
}

static void
momentum_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_MOMENTUM);
	follow_dense_kernel(&opts, WF_MOMENTUM);
	opts.row.set.decay = 0.02;
	follow_dense_kernel(&opts, WF_MOMENTUM);
}

static void
sparse_momentum_follows_the_dense_kernel_unasked(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SPARSE_MOMENTUM);
	opts.row.set.dense_equivalent = false;
	opts.row.set.decay = 0.01;
	follow_dense_kernel(&opts, WF_MOMENTUM);
}

static void
sgd_with_decay_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	opts.row.set.decay = 0.02;
	follow_dense_kernel(&opts, WF_SGD);
}

static void
adagrad_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_ADAGRAD);
	follow_dense_kernel(&opts, WF_ADAGRAD);
}

/* A row's first square counts in full in the job's first step only: all rows were there. */
static void
rmsprop_follows_the_dense_kernel(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_RMSPROP);
	opts.row.set.epsilon = 1e-3;
	follow_dense_kernel(&opts, WF_RMSPROP);
}

/* What the dense lanes have no kernel for: every row pushed at every step. */
static void
follow_rows_pushed_always(const struct wf_table_opts *opts, double tolerance)
{
	static struct dense dense;
	struct wf_table_opts lazy = *opts;
	lazy.row.set.dense_equivalent = false;
	struct wf_table *table = bed_table(env, opts);
	struct wf_table *always = bed_table(env, &lazy);
	uint64_t key[KEYS];
	struct wf_rng rng;

	wf_rng_init(&rng, 6, 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	struct wf_table_batch batch = {.key = key, .grad = dense.grad, .count = KEYS};
	struct wf_table_push push = {.divisor = 1.0f, .batch = &batch, .batch_count = 1};
	for (uint64_t step = 1; step <= STEPS; step++) {
		push_some(table, &dense, &rng, opts, step);
		push.step = step;
		push.rate = rate_of(opts, step);
		assert_int_equal(wf_table_push(always, &push), WEFT_OK);
		if (step % 37 == 0) {
			assert_int_equal(bed_look(always, key, KEYS, dense.value, false), WEFT_OK);
			compare(table, &dense, step, tolerance);
		}
	}
	wf_table_destroy(table);
	wf_table_destroy(always);
}

static void
l1_and_l2_follow_rows_pushed_always(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	opts.row.set.l1 = 0.01;
	opts.row.set.l2 = 0.01;
	follow_rows_pushed_always(&opts, TOLERANCE);
	opts = opts_of(WF_ROW_MOMENTUM);
	opts.row.set.l2 = 0.01;
	follow_rows_pushed_always(&opts, TOLERANCE);
}

static void
ftrl_and_rmsprop_follow_rows_pushed_always(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_FTRL);
	opts.init.kind = WF_INIT_ZERO;
	opts.row.set.l1 = 0.05;
	opts.row.set.l2 = 0.01;
	follow_rows_pushed_always(&opts, TOLERANCE);
	opts.row.kind = WF_ROW_FTRL_GROUP;
	opts.row.set.l21 = 0.1;
	follow_rows_pushed_always(&opts, TOLERANCE);
	opts = opts_of(WF_ROW_RMSPROP);
	opts.row.set.epsilon = 1e-3;
	follow_rows_pushed_always(&opts, TOLERANCE);
}

static void
adagrad_and_rmsprop_with_l1_l2_and_decay_follow_rows_pushed_always(void **state)
{
	static const enum wf_row_optimizer kinds[] = {WF_ROW_ADAGRAD, WF_ROW_ADAGRAD_ROWWISE,
						      WF_ROW_RMSPROP};
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		struct wf_table_opts opts = opts_of(kinds[i]);
		opts.row.set.epsilon = 1e-3;
		opts.row.set.l1 = 0.01;
		opts.row.set.l2 = 0.01;
		follow_rows_pushed_always(&opts, TOLERANCE_WORST);
		if (kinds[i] != WF_ROW_RMSPROP) {
			opts.row.set.l1 = 0.0;
			opts.row.set.decay = 0.02;
			follow_rows_pushed_always(&opts, TOLERANCE_WORST);
		}
	}
}

static void
follow_under(struct wf_table_opts opts, enum wf_schedule schedule, double a, double b)
{
	opts.row.schedule = schedule;
	opts.row.set.schedule_a = a;
	opts.row.set.schedule_b = b;
	opts.row.set.l2 = 0.01;
	assert_true(wf_row_motion_varies(&opts.row));
	follow_rows_pushed_always(&opts, TOLERANCE_WORST);
}

/* Rows are up to 1,000 steps behind: in the same block of steps, in the one before, and further. */
static void
rows_follow_a_dense_run_under_a_schedule(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	opts.row.set.decay = 0.02;
	opts.row.set.l1 = 0.01;
	follow_under(opts, WF_SCHEDULE_POLY, 0.001, 0.5);
	opts.row.set.l1 = 0.0;
	opts.row.kind = WF_ROW_MOMENTUM;
	follow_under(opts, WF_SCHEDULE_LINEAR, 1e-6, 0.01);
	opts.row.kind = WF_ROW_SPARSE_MOMENTUM;
	follow_under(opts, WF_SCHEDULE_EXP, 0.5, 5000.0);
	opts.row.set.decay = 0.0;
	opts.row.set.l1 = 0.01;
	opts.row.kind = WF_ROW_ADAGRAD;
	follow_under(opts, WF_SCHEDULE_DISCEXP, 0.5, 3000.0);
	opts.row.set.epsilon = 1e-3;
	opts.row.kind = WF_ROW_RMSPROP;
	follow_under(opts, WF_SCHEDULE_WARMUP, 2000.0, 0.0);
}

static void
expect_refused(enum weft_status st, enum weft_status want, const char *words)
{
	assert_int_equal(st, want);
	assert_non_null(strstr(weft_last_error(), words));
}

static void
what_a_schedule_needs_is_asked_for(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	struct wf_table *table = NULL;
	const uint64_t key = 3;
	const float grad[DIM] = {1.0f};
	opts.row.set.learning_rate = 1.0; /* what bed_push pushes with */
	opts.row.set.l2 = 0.01;
	opts.row.schedule = WF_SCHEDULE_POLY;
	opts.evict.age_steps = 10;
	expect_refused(wf_table_create(env, &opts, &table), WEFT_UNSUPPORTED, "eviction by age");
	opts.evict.age_steps = 0;
	opts.evict.at_cap = true; /* rows would take all of it, and a step be lost soon after */
	opts.memory_cap_bytes = 64u << 20;
	expect_refused(wf_table_create(env, &opts, &table), WEFT_UNSUPPORTED,
		       "eviction at the cap");
	opts.evict.at_cap = false;
	opts.memory_cap_bytes = 0;
	table = bed_table(env, &opts);
	assert_int_equal(bed_push(table, 1, &key, 1, grad), WEFT_OK);
	expect_refused(bed_push(table, 3, &key, 1, grad), WEFT_INVALID, "every step");
	assert_int_equal(bed_push(table, 2, &key, 0, grad), WEFT_OK);
	uint64_t cursor = 0;
	struct wf_table_row row;
	float seen[DIM];
	assert_true(wf_table_next(table, &cursor, &row)); /* as of now: nobody else can tell */
	assert_int_equal(row.stamp, 2);
	assert_int_equal(bed_look(table, &key, 1, seen, false), WEFT_OK);
	assert_memory_equal(row.floats, seen, sizeof(seen));
	wf_table_destroy(table);
	table = bed_table(env, &opts);
	expect_refused(wf_table_set_step(table, 9), WEFT_UNSUPPORTED, "are not saved");
	assert_int_equal(wf_table_set_step(table, 0), WEFT_OK);
	wf_table_destroy(table);
}

/* A cap without room for the next 256 steps refuses the push, and nothing has changed. */
static void
steps_that_cannot_be_kept_refuse_the_push(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_SGD);
	const uint64_t key = 3;
	const float grad[DIM] = {1.0f};
	opts.entries_max = 10;
	opts.row.set.learning_rate = 1.0;
	opts.row.set.l2 = 0.01;
	opts.row.schedule = WF_SCHEDULE_POLY;
	struct wf_table *table = bed_table(env, &opts);
	const uint64_t before = bed_stat(table, WF_TABLE_MEMORY_BYTES);
	assert_int_equal(bed_push(table, 1, &key, 0, grad), WEFT_OK);
	const uint64_t block = bed_stat(table, WF_TABLE_MEMORY_BYTES) - before;
	wf_table_destroy(table);
	assert_in_range(block, 256u * 64u, 257u * 64u + 1024u);
	opts.memory_cap_bytes = before + block + block / 2;
	table = bed_table(env, &opts);
	for (uint64_t step = 1; step <= 256; step++) {
		assert_int_equal(bed_push(table, step, &key, 0, grad), WEFT_OK);
	}
	expect_refused(bed_push(table, 257, &key, 0, grad), WEFT_NOMEM,
		       "no memory to keep step 257");
	assert_non_null(strstr(weft_last_error(), "raise the memory cap, or take lazy rows"));
	assert_int_equal(wf_table_step(table), 256);
	wf_table_destroy(table);
}

/* Reading leaves no trace, so that who evaluates changes nothing for who trains. */
static void
reading_in_between_changes_no_bit(void **state)
{
	struct wf_table_opts opts = opts_of(WF_ROW_MOMENTUM);
	opts.row.set.decay = 0.01;
	opts.row.set.learning_rate = 1.0; /* what bed_push pushes with */
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
		cmocka_unit_test(rmsprop_follows_the_dense_kernel),
		cmocka_unit_test(ftrl_and_rmsprop_follow_rows_pushed_always),
		cmocka_unit_test(
			adagrad_and_rmsprop_with_l1_l2_and_decay_follow_rows_pushed_always),
		cmocka_unit_test(rows_follow_a_dense_run_under_a_schedule),
		cmocka_unit_test(what_a_schedule_needs_is_asked_for),
		cmocka_unit_test(steps_that_cannot_be_kept_refuse_the_push),
		cmocka_unit_test(reading_in_between_changes_no_bit),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
