/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest keys, the exponent of their law, and how evenly load lies. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sparse/table/hot.h"

#define RANKS 20000
#define DRAWS (1 << 22)
#define GUIDES 4096

static double cumulative[RANKS];
static size_t guide[GUIDES]; /* where the search for a draw of i / GUIDES and more begins */

/* Key 1000 + rank with a weight of (rank + 1)^-s. */
static void
feed_zipf(struct wf_hot *hot, double s)
{
	struct wf_rng rng;
	double sum = 0.0;

	wf_rng_init(&rng, 11, 0);
	for (size_t i = 0; i < RANKS; i++) {
		sum += pow((double)(i + 1), -s);
		cumulative[i] = sum;
	}
	for (size_t i = 0, rank = 0; i < GUIDES; i++) {
		while (cumulative[rank] < (double)i / GUIDES * sum) {
			rank++;
		}
		guide[i] = rank;
	}
	for (size_t draw = 0; draw < DRAWS; draw++) {
		const double drawn = wf_rng_f64(&rng);
		size_t rank = guide[(size_t)(drawn * GUIDES)];
		while (cumulative[rank] < drawn * sum) {
			rank++;
		}
		uint64_t key = 1000 + rank;
		wf_hot_add(hot, &key, 1);
	}
}

static void
the_hottest_keys_come_out_in_order(void **state)
{
	static struct wf_hot hot;
	struct wf_hot_key top[10];
	memset(&hot, 0, sizeof(hot));
	feed_zipf(&hot, 1.2);
	assert_int_equal(hot.sample_count, DRAWS / WF_HOT_SAMPLE);
	assert_int_equal(wf_hot_top(&hot, top, 10), 10);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(top[i].key, 1000 + i);
		double weight = pow((double)(i + 1), -1.2) / cumulative[RANKS - 1];
		double want = weight * (double)hot.sample_count;
		assert_true(fabs((double)top[i].count - want) <
			    6.0 * sqrt(want) + (double)top[i].over);
	}
}

static void
the_exponent_is_estimated(void **state)
{
	static struct wf_hot hot;
	for (double s = 0.8; s < 1.5; s += 0.2) {
		memset(&hot, 0, sizeof(hot));
		feed_zipf(&hot, s);
		double found = wf_hot_zipf(&hot);
		if (fabs(found - s) > 0.1) {
			fail_msg("exponent %.2f estimated as %.3f", s, found);
		}
	}
}

static void
keys_that_are_all_alike_have_no_exponent(void **state)
{
	static struct wf_hot hot;
	memset(&hot, 0, sizeof(hot));
	for (uint64_t key = 0; key < 1 << 20; key++) {
		wf_hot_add(&hot, &key, 1);
	}
	assert_true(wf_hot_zipf(&hot) == -1.0);
}

static void
batches_of_any_size_give_the_same_samples(void **state)
{
	static struct wf_hot one;
	static struct wf_hot many;
	static uint64_t key[10000];
	memset(&one, 0, sizeof(one));
	memset(&many, 0, sizeof(many));
	for (uint64_t i = 0; i < 10000; i++) {
		key[i] = i * i % 97;
	}
	wf_hot_add(&one, key, 10000);
	for (size_t first = 0, count = 0; first < 10000; first += count) {
		count = first % 130 < 10000 - first ? first % 130 + 1 : 10000 - first;
		count = count > 10000 - first ? 10000 - first : count;
		wf_hot_add(&many, key + first, count);
	}
	assert_memory_equal(&one, &many, sizeof(one));
}

static void
imbalance_is_the_most_by_the_mean(void **state)
{
	const uint64_t even[4] = {5, 5, 5, 5};
	const uint64_t uneven[4] = {0, 0, 20, 0};
	const uint64_t none[4] = {0};
	assert_true(wf_hot_imbalance(even, 4) == 1.0);
	assert_true(wf_hot_imbalance(uneven, 4) == 4.0);
	assert_true(wf_hot_imbalance(none, 4) == 0.0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_hottest_keys_come_out_in_order),
		cmocka_unit_test(the_exponent_is_estimated),
		cmocka_unit_test(keys_that_are_all_alike_have_no_exponent),
		cmocka_unit_test(batches_of_any_size_give_the_same_samples),
		cmocka_unit_test(imbalance_is_the_most_by_the_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
