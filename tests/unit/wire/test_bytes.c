/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/bytes. */
#include <float.h>
#include <stdlib.h>

#include "tests/unit/wire/refused.h"
#include "wire/bytes.h"

static void
every_type_comes_back_with_its_extremes(void **state)
{
	uint8_t buffer[128];
	const double number[] = {0.0, -0.0, DBL_MAX, DBL_TRUE_MIN, -1.5};
	struct wf_writer w = {.base = buffer, .capacity = sizeof(buffer)};

	wf_put_u8(&w, UINT8_MAX);
	wf_put_u16(&w, UINT16_MAX);
	wf_put_u32(&w, UINT32_MAX);
	wf_put_u64(&w, UINT64_MAX);
	wf_put_u64(&w, 0);
	for (size_t i = 0; i < 5; i++) {
		wf_put_f64(&w, number[i]);
	}
	wf_put_string(&w, "");
	wf_put_string(&w, " ~");
	wf_put_bytes(&w, "\0\xff", 2);
	assert_false(w.bad);

	struct wf_reader r = {.base = buffer, .bytes = w.used};
	char text[3];
	uint8_t raw[2];
	assert_int_equal(wf_get_u8(&r), UINT8_MAX);
	assert_int_equal(wf_get_u16(&r), UINT16_MAX);
	assert_int_equal(wf_get_u32(&r), UINT32_MAX);
	assert_true(wf_get_u64(&r) == UINT64_MAX);
	assert_true(wf_get_u64(&r) == 0);
	for (size_t i = 0; i < 5; i++) {
		double got = wf_get_f64(&r);
		assert_memory_equal(&got, &number[i], sizeof(got));
	}
	wf_get_string(&r, text, sizeof(text));
	assert_string_equal(text, "");
	wf_get_string(&r, text, sizeof(text));
	assert_string_equal(text, " ~");
	assert_false(wf_reader_done(&r));
	wf_get_bytes(&r, raw, 2);
	assert_memory_equal(raw, "\0\xff", 2);
	assert_true(wf_reader_done(&r));
}

static void
integers_are_little_endian(void **state)
{
	uint8_t buffer[15];
	static const uint8_t expected[15] = {1,    0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f,
					     0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08};
	struct wf_writer w = {.base = buffer, .capacity = sizeof(buffer)};

	wf_put_u8(&w, 1);
	wf_put_u16(&w, 0x0203);
	wf_put_u32(&w, 0x04050607);
	wf_put_u64(&w, 0x08090a0b0c0d0e0f);
	assert_false(w.bad);
	assert_memory_equal(buffer, expected, sizeof(expected));
}

static void
a_writer_that_is_full_writes_nothing_more(void **state)
{
	uint8_t buffer[8];
	memset(buffer, 0xee, sizeof(buffer));
	struct wf_writer w = {.base = buffer, .capacity = 5};

	wf_put_u32(&w, 0);
	wf_put_u16(&w, 0);
	assert_true(w.bad);
	assert_int_equal(w.used, 4);
	wf_put_u8(&w, 0); /* would fit */
	wf_put_bytes(&w, "", 0);
	assert_int_equal(w.used, 4);
	for (size_t i = 4; i < sizeof(buffer); i++) {
		assert_int_equal(buffer[i], 0xee);
	}
}

static void
a_text_longer_than_its_length_field_is_bad(void **state)
{
	size_t length = UINT16_MAX + 1u;
	char *text = malloc(length + 1);
	uint8_t *buffer = malloc(length + 2);
	assert_non_null(text);
	assert_non_null(buffer);
	memset(text, 'x', length);
	text[length] = '\0';

	struct wf_writer w = {.base = buffer, .capacity = length + 2};
	wf_put_string(&w, text);
	assert_true(w.bad);
	text[length - 1] = '\0';
	struct wf_writer again = {.base = buffer, .capacity = length + 2};
	wf_put_string(&again, text);
	assert_false(again.bad);
	assert_int_equal(again.used, 2 + UINT16_MAX);
	free(buffer);
	free(text);
}

static void
a_reader_at_its_end_gives_zeros(void **state)
{
	uint8_t buffer[3] = {0xff, 0xff, 0xff};
	struct wf_reader r = {.base = buffer, .bytes = sizeof(buffer)};
	uint8_t raw[4] = {7, 7, 7, 7};
	char text[4] = "abc";

	assert_int_equal(wf_get_u32(&r), 0);
	assert_true(r.bad);
	assert_int_equal(wf_get_u8(&r), 0); /* would be there */
	assert_true(wf_get_u64(&r) == 0);
	wf_get_bytes(&r, raw, sizeof(raw));
	assert_int_equal(raw[0], 7);
	wf_get_string(&r, text, sizeof(text));
	assert_string_equal(text, "");
	assert_false(wf_reader_done(&r));
	assert_int_equal(r.used, 0);
}

/* Reads "ab" + `byte` with room for `capacity`. */
static bool
text_is_bad(uint8_t byte, size_t capacity, size_t bytes)
{
	uint8_t buffer[5] = {3, 0, 'a', 'b', byte};
	char text[8] = "unread";
	struct wf_reader r = {.base = buffer, .bytes = bytes};

	wf_get_string(&r, text, capacity);
	if (r.bad) {
		assert_string_equal(text, "");
	}
	return r.bad;
}

static void
only_printable_texts_that_fit_are_read(void **state)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		bool printable = byte >= 0x20 && byte <= 0x7e;
		assert_int_equal(text_is_bad((uint8_t)byte, 4, 5), !printable);
	}
	assert_true(text_is_bad('c', 3, 5));
	assert_true(text_is_bad('c', 1, 5));
	for (size_t bytes = 0; bytes < 5; bytes++) {
		assert_true(text_is_bad('c', 4, bytes));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_comes_back_with_its_extremes),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(a_writer_that_is_full_writes_nothing_more),
		cmocka_unit_test(a_text_longer_than_its_length_field_is_bad),
		cmocka_unit_test(a_reader_at_its_end_gives_zeros),
		cmocka_unit_test(only_printable_texts_that_fit_are_read),
	};
	return cmocka_run_group_tests_name("wire bytes", tests, NULL, NULL);
}
