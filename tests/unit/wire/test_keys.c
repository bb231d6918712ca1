/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/keys. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/rng.h"
#include "tests/unit/wire/refused.h"
#include "wire/keys.h"

#define KEYS 3000u

/* Into exact copies, so that a sanitizer sees what lies beside them. */
static void
assert_comes_back(enum wf_key_coding coding, const uint64_t *key, size_t count)
{
	size_t bytes = wf_keys_bytes(coding, key, count);
	uint8_t *in = malloc(bytes + 1);
	uint64_t *out = malloc((count + 1) * sizeof(*out));

	assert_non_null(in);
	assert_non_null(out);
	assert_int_equal(wf_keys_encode(coding, key, count, in + 1), bytes);
	struct wf_keys_in code = {.coding = coding, .at = in + 1, .bytes = bytes, .count = count};
	assert_int_equal(wf_keys_decode(&code, out), WEFT_OK);
	assert_memory_equal(out, key, count * sizeof(*out));
	free(in);
	free(out);
}

static void
every_coding_brings_every_key_back(void **state)
{
	const uint64_t ends[] = {0,         1, 127, 128, 16383, 16384, 1ull << 63, UINT64_MAX - 1,
				 UINT64_MAX};

	for (unsigned coding = 0; coding < WF_KEYS_CODING_COUNT; coding++) {
		assert_comes_back((enum wf_key_coding)coding, ends, 0);
		for (size_t i = 0; i < 9; i++) {
			assert_comes_back((enum wf_key_coding)coding, ends + i, 9 - i);
			assert_comes_back((enum wf_key_coding)coding, ends + i, 1);
		}
	}
}

static void
keys_of_every_density_come_back(void **state)
{
	static uint64_t key[KEYS];
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 1;
	struct wf_rng rng;

	print_message("WEFT_SEED=%" PRIu64 "\n", seed);
	wf_rng_init(&rng, seed, 0);
	for (unsigned bits = 1; bits <= 52; bits++) {
		uint64_t at = wf_rng_below(&rng, 1ull << bits);
		for (size_t i = 0; i < KEYS; i++) {
			key[i] = at;
			at += 1 + wf_rng_below(&rng, 1ull << bits);
		}
		assert_comes_back(WF_KEYS_RAW, key, KEYS);
		assert_comes_back(WF_KEYS_DELTA, key, KEYS);
		assert_true(wf_keys_bytes(WF_KEYS_DELTA, key, KEYS) <=
			    KEYS * (size_t)((bits + 6) / 7) + WF_KEY_DELTA_BYTES_MAX);
	}
}

static void
neighbours_take_a_byte_each(void **state)
{
	const uint64_t key[] = {300, 301, 302, 430, 559};
	const uint8_t expected[] = {0xac, 0x02, 0x00, 0x00, 0x7f, 0x80, 0x01};
	uint8_t out[sizeof(expected)];

	assert_int_equal(wf_keys_bytes(WF_KEYS_DELTA, key, 5), sizeof(expected));
	assert_int_equal(wf_keys_encode(WF_KEYS_DELTA, key, 5, out), sizeof(expected));
	assert_memory_equal(out, expected, sizeof(expected));
}

static void
wrong_bytes_are_refused_by_name(void **state)
{
	static const struct {
		enum wf_key_coding coding;
		uint8_t bytes[24];
		size_t length, count;
		const char *text;
	} wrong[] = {
		{WF_KEYS_RAW, {0}, 15, 2, "2 keys in 15 bytes"},
		{WF_KEYS_RAW, {0}, 17, 2, "2 keys in 17 bytes"},
		{WF_KEYS_RAW, {0}, 8, SIZE_MAX / 8 + 2, "keys in 8 bytes"},
		{WF_KEYS_RAW, {0}, 16, 2, "key 1 is not above"},
		{WF_KEYS_RAW, {1}, 16, 2, "key 1 is not above"},
		{WF_KEYS_DELTA, {0}, 1, 2, "2 keys in 1 bytes"},
		{WF_KEYS_DELTA, {0}, 2, 1, "1 keys take 1 bytes, but there are 2"},
		{WF_KEYS_DELTA, {0x00, 0x80}, 2, 2, "key 1 does not end"},
		{WF_KEYS_DELTA, {0x80, 0x00}, 2, 1, "key 0 is longer than it has to be"},
		{WF_KEYS_DELTA, {0x81, 0x80, 0x00}, 3, 1, "key 0 is longer than it has to be"},
		{WF_KEYS_DELTA,
		 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02},
		 10,
		 1,
		 "key 0 is above 64 bits"},
		{WF_KEYS_DELTA,
		 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00},
		 11,
		 1,
		 "key 0 is above 64 bits"},
		{WF_KEYS_DELTA,
		 {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00},
		 11,
		 2,
		 "key 1 is above 64 bits"},
		{WF_KEYS_ANY, {0}, 15, 2, "2 keys in 15 bytes"},
		{WF_KEYS_CODING_COUNT, {0}, 8, 1, "coding is 3"},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t key[4];
		uint8_t *exact = malloc(wrong[i].length);
		assert_non_null(exact);
		memcpy(exact, wrong[i].bytes, wrong[i].length);
		struct wf_keys_in in = {.coding = wrong[i].coding,
					.at = exact,
					.bytes = wrong[i].length,
					.count = wrong[i].count};
		assert_refused(wf_keys_decode(&in, key), WEFT_PROTOCOL, wrong[i].text);
		free(exact);
	}
}

static void
the_highest_key_can_follow_any(void **state)
{
	/* 2^64 - 2, then a difference of 1. */
	const uint8_t bytes[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00};
	uint64_t key[2];
	struct wf_keys_in in = {
		.coding = WF_KEYS_DELTA, .at = bytes, .bytes = sizeof(bytes), .count = 2};

	assert_int_equal(wf_keys_decode(&in, key), WEFT_OK);
	assert_true(key[0] == UINT64_MAX - 1 && key[1] == UINT64_MAX);
}

static void
keys_in_any_order_come_back_as_they_were(void **state)
{
	const uint64_t key[] = {7, UINT64_MAX, 0, 7, 7, 3};

	assert_comes_back(WF_KEYS_ANY, key, sizeof(key) / sizeof(key[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_coding_brings_every_key_back),
		cmocka_unit_test(keys_of_every_density_come_back),
		cmocka_unit_test(neighbours_take_a_byte_each),
		cmocka_unit_test(wrong_bytes_are_refused_by_name),
		cmocka_unit_test(keys_in_any_order_come_back_as_they_were),
		cmocka_unit_test(the_highest_key_can_follow_any),
	};
	return cmocka_run_group_tests_name("wire keys", tests, NULL, NULL);
}
