/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of rng: reference values, ranges, and what a shuffle keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "base/rng.h"

static void
splitmix64_gives_the_reference_values(void **state)
{
	/* The values commonly given for seed 1234567. */
	static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
					    9817491932198370423u, 4593380528125082431u,
					    16408922859458223821u};
	uint64_t at = 1234567;
	for (unsigned i = 0; i < 5; i++) {
		assert_true(wf_splitmix64(&at) == expected[i]);
	}
}

static void
xoshiro256starstar_gives_the_reference_values(void **state)
{
	/* State 1, 2, 3, 4. */
	static const uint64_t expected[] = {
		11520u,
		0u,
		1509978240u,
		1215971899390074240u,
		1216172134540287360u,
		607988272756665600u,
		16172922978634559625u,
		8476171486693032832u,
		10595114339597558777u,
		2904607092377533576u,
	};
	struct wf_rng rng = {{1, 2, 3, 4}};
	for (unsigned i = 0; i < 10; i++) {
		assert_true(wf_rng_u64(&rng) == expected[i]);
	}
}

static void
the_sequence_of_a_seed_does_not_change(void **state)
{
	/* Our own seeding: results of jobs depend on it. */
	struct wf_rng rng;
	wf_rng_init(&rng, 1, 0);
	assert_true(wf_rng_u64(&rng) == 0xee127fe613436e33u);
	wf_rng_init(&rng, 0, 0);
	assert_true(wf_rng_u64(&rng) == 0xfb5405f7bd79c540u);
	wf_rng_init(&rng, 1, 2);
	assert_true(wf_rng_u64(&rng) == 0x84f02f195ab5fd66u);
}

static void
seed_and_stream_are_not_interchangeable(void **state)
{
	enum { N = 40 };
	uint64_t first[N][N];
	for (uint64_t seed = 0; seed < N; seed++) {
		for (uint64_t stream = 0; stream < N; stream++) {
			struct wf_rng rng;
			wf_rng_init(&rng, seed, stream);
			first[seed][stream] = wf_rng_u64(&rng);
		}
	}
	const uint64_t *flat = &first[0][0];
	for (unsigned i = 0; i < N * N; i++) {
		for (unsigned j = 0; j < i; j++) {
			assert_true(flat[i] != flat[j]);
		}
	}
}

static void
below_stays_below_and_reaches_everything(void **state)
{
	struct wf_rng rng;
	unsigned seen[7] = {0};
	wf_rng_init(&rng, 5, 0);
	for (unsigned i = 0; i < 7000; i++) {
		uint64_t value = wf_rng_below(&rng, 7);
		assert_true(value < 7);
		seen[value]++;
	}
	for (unsigned i = 0; i < 7; i++) {
		assert_in_range(seen[i], 850, 1150); /* 5 standard deviations; the seed is fixed */
	}
	for (unsigned i = 0; i < 100; i++) {
		assert_true(wf_rng_below(&rng, 1) == 0);
		assert_true(wf_rng_below(&rng, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
	}
}

static void
below_draws_again_where_a_remainder_would_be_favoured(void **state)
{
	/* 2^64 mod bound is 2^63 - 1 here, so about half of all draws are refused. */
	const uint64_t bound = (UINT64_C(1) << 63) + 1;
	struct wf_rng rng;
	struct wf_rng plain;
	wf_rng_init(&rng, 9, 0);
	plain = rng;
	uint64_t value = wf_rng_below(&rng, bound);
	uint64_t draw = 0;
	do {
		draw = wf_rng_u64(&plain);
	} while (draw < (UINT64_C(1) << 63) - 1);
	assert_true(value == draw % bound);
	assert_memory_equal(&rng, &plain, sizeof(rng));
}

static void
f64_is_53_bits_in_the_unit_interval(void **state)
{
	struct wf_rng rng;
	struct wf_rng same;
	double sum = 0;
	wf_rng_init(&rng, 3, 1);
	same = rng;
	for (unsigned i = 0; i < 10000; i++) {
		double value = wf_rng_f64(&rng);
		assert_true(value >= 0.0 && value < 1.0);
		assert_true(value * 0x1.0p53 == (double)(wf_rng_u64(&same) >> 11));
		sum += value;
	}
	assert_true(sum > 4900 && sum < 5100);
}

static void
a_shuffle_keeps_every_index(void **state)
{
	enum { N = 100 };
	uint32_t index[N];
	bool seen[N] = {false};
	unsigned moved = 0;
	struct wf_rng rng;
	wf_rng_init(&rng, 1, 1);
	for (uint32_t i = 0; i < N; i++) {
		index[i] = i;
	}
	wf_rng_shuffle(&rng, index, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_true(index[i] < N);
		assert_false(seen[index[i]]);
		seen[index[i]] = true;
		moved += index[i] != i;
	}
	assert_true(moved > N / 2);
	wf_rng_shuffle(&rng, index, 0);
	wf_rng_shuffle(&rng, NULL, 0);
	wf_rng_shuffle(&rng, index, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splitmix64_gives_the_reference_values),
		cmocka_unit_test(xoshiro256starstar_gives_the_reference_values),
		cmocka_unit_test(the_sequence_of_a_seed_does_not_change),
		cmocka_unit_test(seed_and_stream_are_not_interchangeable),
		cmocka_unit_test(below_stays_below_and_reaches_everything),
		cmocka_unit_test(below_draws_again_where_a_remainder_would_be_favoured),
		cmocka_unit_test(f64_is_53_bits_in_the_unit_interval),
		cmocka_unit_test(a_shuffle_keeps_every_index),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
