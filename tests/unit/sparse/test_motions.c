/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without a gradient are made up for as one by one, at one rate and under a schedule; and
 * what has no closed form is refused before anything changes. Thread: one. */
#include "sparse/table/motions.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "tests/unit/sparse/bed.h"

#define DIM 3u
#define STEPS 600u /* more than stand ready made, and than a block of missed steps */

static struct bed_budget bed;

static int
set_up(void **state)
{
	(void)state;
	return bed_budget_init(&bed);
}

static int
tear_down(void **state)
{
	(void)state;
	return bed_budget_fini(&bed);
}

/* sgd with decay at rate 0.1; a schedule makes rates differ. */
static struct wf_row_opts
shrinking(bool varies)
{
	struct wf_row_opts opts = wf_row_defaults();
	opts.set.learning_rate = 0.1;
	opts.set.decay = 0.01;
	opts.set.dense_equivalent = true;
	if (varies) {
		opts.schedule = WF_SCHEDULE_LINEAR;
		opts.set.schedule_a = 1e-6;
		opts.set.schedule_b = 0.01;
	}
	assert_int_equal(wf_row_check(&opts), WEFT_OK);
	assert_int_equal(wf_row_motion_varies(&opts), varies);
	return opts;
}

static double
rate_of(uint32_t step)
{
	return 0.1 / (1.0 + step % 7);
}

static void
assert_near(float value, double expected)
{
	if (fabs((double)value - expected) > 1e-6) {
		fail_msg("%.9g, but %.9g was expected", (double)value, expected);
	}
}

static void
rows_of_a_lazy_table_stay_still(void **state)
{
	const struct wf_row_opts opts = wf_row_defaults();
	const struct wf_motions_step step = {.last = 3, .step = 9, .rate = 123.0};
	struct wf_motions motions;
	(void)state;
	assert_true(wf_motions_init(&motions, &bed.budget, &opts));
	assert_true(wf_motions_are_still(&motions));
	assert_int_equal(bed.budget.used_bytes, 0);
	assert_int_equal(wf_motions_check(&motions, &step), WEFT_OK);
	assert_int_equal(wf_motions_reserve(&motions, &step), WEFT_OK);
	wf_motions_add(&motions, 123.0);
	assert_int_equal(bed.budget.used_bytes, 0);
	wf_motions_fini(&motions);
}

/* What one step does is worked out here, in f64. */
static void
steps_missed_are_made_up_for_as_one_by_one(void **state)
{
	(void)state;
	for (int varies = 0; varies < 2; varies++) {
		const struct wf_row_opts opts = shrinking(varies != 0);
		struct wf_motions motions;
		double kept[STEPS + 1]; /* of 1 by the last n steps */
		assert_true(wf_motions_init(&motions, &bed.budget, &opts));
		assert_false(wf_motions_are_still(&motions));
		for (uint32_t last = 0; last < STEPS; last++) {
			const struct wf_motions_step step = {
				.last = last, .step = last + 1, .rate = 0.1};
			assert_int_equal(wf_motions_reserve(&motions, &step), WEFT_OK);
			wf_motions_add(&motions, varies ? rate_of(last + 1) : 0.1);
		}
		kept[0] = 1.0;
		for (uint32_t n = 1; n <= STEPS; n++) {
			double rate = varies ? rate_of(STEPS + 1 - n) : 0.1;
			kept[n] = kept[n - 1] * (1.0 - rate * 0.01);
		}
		for (uint32_t n = 0; n <= STEPS; n++) {
			float row[DIM] = {1.0f, -2.0f, 0.0f};
			float out[DIM];
			wf_motions_look(&motions, n, out, row, DIM);
			assert_near(row[1], -2.0);
			wf_motions_move(&motions, n, row, DIM);
			assert_memory_equal(out, row, sizeof(row));
			assert_near(row[0], kept[n]);
			assert_near(row[1], -2.0 * kept[n]);
			assert_near(row[2], 0.0);
		}
		wf_motions_fini(&motions);
		assert_int_equal(bed.budget.used_bytes, 0);
	}
}

static void
what_has_no_closed_form_is_refused(void **state)
{
	const struct wf_row_opts constant = shrinking(false);
	const struct wf_row_opts varying = shrinking(true);
	struct wf_motions_step step = {.table = 7, .last = 4, .step = 6, .rate = 0.1};
	struct wf_motions motions;
	(void)state;
	assert_true(wf_motions_init(&motions, &bed.budget, &constant));
	assert_int_equal(wf_motions_check(&motions, &step), WEFT_OK);
	step.rate = 0.2;
	assert_int_equal(wf_motions_check(&motions, &step), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "table 7: rate 0.2, but steps missed are made "
						  "up for at 0.1"));
	wf_motions_fini(&motions);
	assert_true(wf_motions_init(&motions, &bed.budget, &varying));
	assert_int_equal(wf_motions_check(&motions, &step), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "push of step 6 after step 4"));
	step.step = 5;
	assert_int_equal(wf_motions_check(&motions, &step), WEFT_OK);
	wf_motions_fini(&motions);
}

static void
a_step_that_cannot_be_kept_changes_nothing(void **state)
{
	const struct wf_row_opts opts = shrinking(true);
	const struct wf_motions_step step = {.table = 7, .last = 0, .step = 1, .rate = 0.1};
	struct wf_motions motions;
	(void)state;
	wf_failing_env_fail(&bed.failing, 1, false);
	assert_false(wf_motions_init(&motions, &bed.budget, &opts));
	wf_motions_fini(&motions);
	assert_true(wf_motions_init(&motions, &bed.budget, &opts));
	bed.budget.cap_bytes = bed.budget.used_bytes;
	assert_int_equal(wf_motions_reserve(&motions, &step), WEFT_NOMEM);
	assert_non_null(strstr(weft_last_error(), "no memory to keep step 1"));
	assert_non_null(strstr(weft_last_error(), "raise the memory cap"));
	assert_int_equal(bed.budget.used_bytes, bed.budget.cap_bytes);
	bed.budget.cap_bytes = UINT64_MAX;
	assert_int_equal(wf_motions_reserve(&motions, &step), WEFT_OK);
	wf_motions_fini(&motions);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_of_a_lazy_table_stay_still),
		TEST(steps_missed_are_made_up_for_as_one_by_one),
		TEST(what_has_no_closed_form_is_refused),
		TEST(a_step_that_cannot_be_kept_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
