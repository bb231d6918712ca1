/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of crc32c: published vectors, and all forms against a definition bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"

static uint32_t
by_definition(const unsigned char *bytes, size_t count)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < count; i++) {
		crc ^= bytes[i];
		for (unsigned bit = 0; bit < 8; bit++) {
			crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
		}
	}
	return ~crc;
}

static void
expect_all(const void *bytes, size_t count, uint32_t expected)
{
	assert_int_equal(wf_crc32c(0, bytes, count), expected);
	assert_int_equal(wf_crc32c_table(0, bytes, count), expected);
	assert_int_equal(wf_crc32c_long(0, bytes, count), expected);
}

static void
the_vectors_of_rfc_3720_hold(void **state)
{
	unsigned char bytes[32];
	memset(bytes, 0, sizeof(bytes));
	expect_all(bytes, sizeof(bytes), 0x8a9136aau);
	memset(bytes, 0xff, sizeof(bytes));
	expect_all(bytes, sizeof(bytes), 0x62a8ab43u);
	for (unsigned i = 0; i < 32; i++) {
		bytes[i] = (unsigned char)i;
	}
	expect_all(bytes, sizeof(bytes), 0x46dd794eu);
	for (unsigned i = 0; i < 32; i++) {
		bytes[i] = (unsigned char)(31 - i);
	}
	expect_all(bytes, sizeof(bytes), 0x113fdb5cu);
	expect_all("123456789", 9, 0xe3069283u);
	expect_all("", 0, 0);
}

static void
every_byte_length_and_alignment_gives_the_defined_value(void **state)
{
	unsigned char bytes[320];
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(i * 167 + 13);
	}
	for (unsigned start = 0; start < 9; start++) {
		assert_int_equal(wf_crc32c_head(bytes + start),
				 by_definition(bytes + start, WF_CRC32C_HEAD_BYTES));
		for (unsigned count = 0; count <= 260; count++) {
			expect_all(bytes + start, count, by_definition(bytes + start, count));
		}
	}
}

/* What is folded 256 bytes at a time, with any rest. */
static void
every_length_of_a_long_text_gives_the_defined_value(void **state)
{
	unsigned char bytes[1200];
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(i * i >> 3);
	}
	for (unsigned count = 500; count <= 1100; count++) {
		const unsigned char *at = bytes + count % 17;
		assert_int_equal(wf_crc32c_long(0, at, count), by_definition(at, count));
	}
}

static void
a_sum_continues_where_it_was_cut(void **state)
{
	const char text[] = "one slice after another";
	size_t count = sizeof(text) - 1;
	uint32_t whole = wf_crc32c(0, text, count);
	for (size_t cut = 0; cut <= count; cut++) {
		uint32_t first = wf_crc32c(0, text, cut);
		assert_int_equal(wf_crc32c(first, text + cut, count - cut), whole);
		assert_int_equal(wf_crc32c_table(first, text + cut, count - cut), whole);
	}
}

static void
a_long_sum_continues_where_it_was_cut(void **state)
{
	unsigned char bytes[2500];
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (unsigned char)(i * i >> 3);
	}
	uint32_t whole = by_definition(bytes, sizeof(bytes));
	for (size_t cut = 0; cut <= sizeof(bytes); cut += 7) {
		uint32_t first = wf_crc32c_long(0, bytes, cut);
		assert_int_equal(wf_crc32c_long(first, bytes + cut, sizeof(bytes) - cut), whole);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_vectors_of_rfc_3720_hold),
		cmocka_unit_test(every_byte_length_and_alignment_gives_the_defined_value),
		cmocka_unit_test(every_length_of_a_long_text_gives_the_defined_value),
		cmocka_unit_test(a_sum_continues_where_it_was_cut),
		cmocka_unit_test(a_long_sum_continues_where_it_was_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
