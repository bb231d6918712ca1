/* SPDX-License-Identifier: Apache-2.0 */
/* First values: distributed as they should be, the same whoever asks, and as promised. Thread:
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "sparse/table/init.h"

#define DIM 64
#define KEYS 2000

static void
normal_numbers_lie_where_the_distribution_says(void **state)
{
	double before = -1e300;
	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 99991) {
		double z = wf_init_normal((uint32_t)bits);
		double share = ((double)bits + 0.5) * 0x1p-32;
		double smaller = z < 0.0 ? share : 1.0 - share;
		double found = 0.5 * erfc(fabs(z) * sqrt(0.5));
		/* An error of 1e-6 in z is one of 1e-6 times the density, relative to the tail. */
		assert_true(fabs(found - smaller) <= smaller * 1e-5);
		assert_true(z >= before);
		before = z;
	}
	assert_true(wf_init_normal(0) > -6.4 && wf_init_normal(0) < -6.2);
	assert_true(wf_init_normal(UINT32_MAX) > 6.2 && wf_init_normal(UINT32_MAX) < 6.4);
}

/* Sums of the values and of their squares. */
static void
moments(const struct wf_init *init, double *mean, double *deviation)
{
	float row[DIM];
	double sum = 0.0;
	double squares = 0.0;
	for (uint64_t key = 0; key < KEYS; key++) {
		wf_init_values(init, key, row, DIM);
		for (size_t i = 0; i < DIM; i++) {
			sum += (double)row[i];
			squares += (double)row[i] * (double)row[i];
		}
	}
	double n = (double)KEYS * DIM;
	*mean = sum / n;
	*deviation = sqrt(squares / n - *mean * *mean);
}

static void
moments_are_those_asked_for(void **state)
{
	struct wf_init init = {.kind = WF_INIT_NORMAL, .a = 0.5, .b = 2.0, .seed = 1};
	double mean;
	double deviation;
	moments(&init, &mean, &deviation);
	/* Six deviations of a mean of 128,000. */
	assert_true(fabs(mean - 0.5) < 6.0 * 2.0 / 357.0);
	assert_true(fabs(deviation - 2.0) < 6.0 * 2.0 / 357.0);
	init = (struct wf_init){.kind = WF_INIT_UNIFORM, .a = -1.0, .b = 2.0, .seed = 1};
	moments(&init, &mean, &deviation);
	assert_true(fabs(mean - 0.5) < 0.015);
	assert_true(fabs(deviation - 3.0 / sqrt(12.0)) < 0.015);
	init.kind = WF_INIT_ZERO;
	moments(&init, &mean, &deviation);
	assert_true(mean == 0.0 && deviation == 0.0);
}

static void
uniform_numbers_stay_within_their_limits(void **state)
{
	struct wf_init init = {.kind = WF_INIT_UNIFORM, .a = -0.25, .b = 0.75, .seed = 3};
	float row[DIM];
	for (uint64_t key = 0; key < KEYS; key++) {
		wf_init_values(&init, key, row, DIM);
		for (size_t i = 0; i < DIM; i++) {
			assert_true(row[i] >= -0.25f && row[i] <= 0.75f);
		}
	}
}

static void
values_differ_by_seed_table_key_and_column(void **state)
{
	struct wf_init init = {.kind = WF_INIT_NORMAL, .b = 1.0, .seed = 5, .table = 1};
	float row[4][DIM];
	wf_init_values(&init, 7, row[0], DIM);
	wf_init_values(&init, 8, row[1], DIM);
	init.table = 2;
	wf_init_values(&init, 7, row[2], DIM);
	init.table = 1;
	init.seed = 6;
	wf_init_values(&init, 7, row[3], DIM);
	for (size_t a = 0; a < 4; a++) {
		for (size_t b = 0; b < a; b++) {
			for (size_t i = 0; i < DIM; i++) {
				assert_true(row[a][i] != row[b][i]);
			}
		}
		for (size_t i = 1; i < DIM; i++) {
			assert_true(row[a][i] != row[a][i - 1]);
		}
	}
}

static void
a_shorter_row_is_the_beginning_of_a_longer_one(void **state)
{
	struct wf_init init = {.kind = WF_INIT_UNIFORM, .b = 1.0, .seed = 5};
	float all[DIM];
	wf_init_values(&init, UINT64_MAX, all, DIM);
	for (size_t dim = 1; dim <= DIM; dim++) {
		float row[DIM];
		wf_init_values(&init, UINT64_MAX, row, dim);
		assert_memory_equal(row, all, dim * sizeof(float));
	}
}

/* A saved table of another version goes on with the same values for new keys. */
static void
first_values_are_a_promise(void **state)
{
	struct wf_init init = {.kind = WF_INIT_NORMAL, .b = 1.0, .seed = 2016, .table = 3};
	float row[5];
	wf_init_values(&init, 0x0123456789abcdefu, row, 5);
	static const float normal[5] = {-0x1.d4f178p-1f, -0x1.1b0124p-1f, -0x1.d9d44p-2f,
					0x1.d17894p-1f, 0x1.67eaap+0f};
	assert_memory_equal(row, normal, sizeof(normal));
	init = (struct wf_init){.kind = WF_INIT_UNIFORM, .a = -1.0, .b = 1.0, .seed = 2016};
	wf_init_values(&init, 1, row, 2);
	static const float uniform[2] = {-0x1.6a8238p-1f, -0x1.b7b558p-1f};
	assert_memory_equal(row, uniform, sizeof(uniform));
}

static void
settings_outside_their_limits_are_refused(void **state)
{
	static const struct wf_init bad[] = {
		{.kind = WF_INIT_COUNT},
		{.kind = WF_INIT_UNIFORM, .a = 1.0, .b = 0.0},
		{.kind = WF_INIT_NORMAL, .b = -1.0},
		{.kind = WF_INIT_NORMAL, .a = (double)NAN},
		{.kind = WF_INIT_UNIFORM, .b = (double)INFINITY},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		assert_int_equal(wf_init_check(&bad[i]), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), "give"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_numbers_lie_where_the_distribution_says),
		cmocka_unit_test(moments_are_those_asked_for),
		cmocka_unit_test(uniform_numbers_stay_within_their_limits),
		cmocka_unit_test(values_differ_by_seed_table_key_and_column),
		cmocka_unit_test(a_shorter_row_is_the_beginning_of_a_longer_one),
		cmocka_unit_test(first_values_are_a_promise),
		cmocka_unit_test(settings_outside_their_limits_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
