/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of hist: buckets to the bit, quantiles within their bound, sums and differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/rng.h"

static struct wf_hist hist;
static struct wf_hist_view view, other;

static int
set_up(void **state)
{
	memset(&hist, 0, sizeof(hist));
	return 0;
}

static void
buckets_follow_each_other_without_gap_or_overlap(void **state)
{
	assert_true(wf_hist_bucket_first(0) == 0);
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		uint64_t first = wf_hist_bucket_first(i), last = wf_hist_bucket_last(i);
		assert_true(first <= last);
		assert_int_equal(wf_hist_bucket(first), i);
		assert_int_equal(wf_hist_bucket(last), i);
		if (i > 0) {
			assert_true(wf_hist_bucket_last(i - 1) + 1 == first);
		}
		/* As wide as one 64th of its lowest value, or as narrow as one value. */
		assert_true(last - first <= first / 64);
	}
	assert_true(wf_hist_bucket_last(WF_HIST_BUCKETS - 1) == UINT64_MAX);
}

static void
bounds_of_buckets_are_these(void **state)
{
	static const struct {
		uint64_t value, first, last;
	} bound[] = {
		{0, 0, 0},
		{127, 127, 127},
		{128, 128, 129},
		{129, 128, 129},
		{255, 254, 255},
		{256, 256, 259},
		{1000, 1000, 1007},
		{1000000, 999424, 1007615},
		{1000000000, 998244352, 1006632959},
		{1ull << 63, 1ull << 63, (1ull << 63) + (1ull << 57) - 1},
		{UINT64_MAX, UINT64_MAX - (1ull << 57) + 1, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
		unsigned bucket = wf_hist_bucket(bound[i].value);
		assert_true(wf_hist_bucket_first(bucket) == bound[i].first);
		assert_true(wf_hist_bucket_last(bucket) == bound[i].last);
	}
}

static void
an_empty_histogram_has_quantile_zero(void **state)
{
	wf_hist_snapshot(&hist, &view);
	assert_true(view.count == 0);
	assert_true(wf_hist_quantile(&view, 0) == 0 && wf_hist_quantile(&view, 1) == 0);
}

static void
quantiles_of_small_values_are_exact(void **state)
{
	for (uint64_t value = 1; value <= 100; value++) {
		wf_hist_record(&hist, value);
	}
	wf_hist_snapshot(&hist, &view);
	assert_true(view.count == 100);
	assert_true(wf_hist_quantile(&view, 0) == 1);
	assert_true(wf_hist_quantile(&view, 0.01) == 1);
	assert_true(wf_hist_quantile(&view, 0.5) == 50);
	assert_true(wf_hist_quantile(&view, 0.501) == 51);
	assert_true(wf_hist_quantile(&view, 0.99) == 99);
	assert_true(wf_hist_quantile(&view, 1) == 100);
}

static int
ascending(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

#define VALUES 5000u

static void
a_quantile_is_the_true_one_or_at_most_a_64th_above(void **state)
{
	static uint64_t value[VALUES];
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 1;
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	for (unsigned i = 0; i < VALUES; i++) {
		value[i] = wf_rng_u64(&rng) >> wf_rng_below(&rng, 64); /* of every length */
		wf_hist_record(&hist, value[i]);
	}
	qsort(value, VALUES, sizeof(value[0]), ascending);
	wf_hist_snapshot(&hist, &view);
	for (unsigned rank = 1; rank <= VALUES; rank++) {
		uint64_t truth = value[rank - 1];
		/* Between two ranks, so that no rounding of the share matters. */
		uint64_t said = wf_hist_quantile(&view, ((double)rank - 0.5) / VALUES);
		if (said < truth || said - truth > truth / 64) {
			fail_msg("WEFT_SEED=%" PRIu64 ": rank %u is %" PRIu64 ", said %" PRIu64,
				 seed, rank, truth, said);
		}
	}
}

static void
views_add_up_and_a_difference_is_what_came_between(void **state)
{
	static struct wf_hist second;
	memset(&second, 0, sizeof(second));
	for (unsigned i = 0; i < 10; i++) {
		wf_hist_record(&hist, 5);
		wf_hist_record(&second, 100);
	}
	wf_hist_snapshot(&hist, &view);
	wf_hist_snapshot(&second, &other);
	wf_hist_merge(&view, &other);
	assert_true(view.count == 20);
	assert_true(wf_hist_quantile(&view, 0.5) == 5 && wf_hist_quantile(&view, 0.51) == 100);

	wf_hist_record(&second, 7);
	wf_hist_snapshot(&second, &view);
	wf_hist_since(&view, &other);
	assert_true(view.count == 1);
	assert_true(wf_hist_quantile(&view, 0) == 7 && wf_hist_quantile(&view, 1) == 7);
	wf_hist_snapshot(&second, &other);
	wf_hist_snapshot(&second, &view);
	wf_hist_since(&view, &other);
	assert_true(view.count == 0 && wf_hist_quantile(&view, 1) == 0);
}

#define EVENTS 100000u

static void *
record_events(void *arg)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		wf_hist_record(arg, i % 1000);
	}
	return NULL;
}

static void
another_thread_loses_no_value(void **state)
{
	pthread_t writer;
	uint64_t last = 0;
	assert_int_equal(pthread_create(&writer, NULL, record_events, &hist), 0);
	do {
		wf_hist_snapshot(&hist, &view);
		assert_true(view.count >= last && view.count <= EVENTS);
		last = view.count;
	} while (last < EVENTS);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_true(view.bucket[3] == EVENTS / 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_follow_each_other_without_gap_or_overlap),
		cmocka_unit_test(bounds_of_buckets_are_these),
		cmocka_unit_test_setup(an_empty_histogram_has_quantile_zero, set_up),
		cmocka_unit_test_setup(quantiles_of_small_values_are_exact, set_up),
		cmocka_unit_test_setup(a_quantile_is_the_true_one_or_at_most_a_64th_above, set_up),
		cmocka_unit_test_setup(views_add_up_and_a_difference_is_what_came_between, set_up),
		cmocka_unit_test_setup(another_thread_loses_no_value, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
