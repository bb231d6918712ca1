/* SPDX-License-Identifier: Apache-2.0 */
/* A shape has one spelling, and what no array can have is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/shape.h"

#define TEN "1,1,1,1,1,1,1,1,1,1,"
#define THIRTY_ONE TEN TEN TEN "1,"

static void
what_is_parsed_is_formatted_as_it_was(void **state)
{
	static const struct {
		const char *text;
		unsigned dims;
		uint64_t elements;
	} cases[] = {
		{"()", 0, 1},
		{"7", 1, 7},
		{"0", 1, 0},
		{"4,3,3,3", 4, 108},
		{"5,0,2", 3, 0},
		{"9223372036854775807", 1, INT64_MAX},
		{"9223372036854775807,0", 2, 0},
		{"4294967296,2147483647", 2, UINT64_C(4294967296) * 2147483647},
		{THIRTY_ONE "9223372036854775807", 32, INT64_MAX},
	};
	char text[WF_SHAPE_TEXT_BYTES];
	struct wf_shape shape;

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_true(wf_shape_parse(cases[i].text, &shape));
		assert_int_equal(shape.dims, cases[i].dims);
		assert_int_equal(wf_shape_elements(&shape), cases[i].elements);
		wf_shape_format(&shape, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void
other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"(",
		"( )",
		"(4,3)",
		"4,",
		",4",
		"4,,3",
		"4, 3",
		" 4",
		"-1",
		"+1",
		"04",
		"00",
		"4x3",
		"0x4",
		"1e3",
		"9223372036854775808",
		"18446744073709551617",
		"4294967296,2147483648",
		"4294967296,0,4294967296", /* NumPy refuses it, too */
		THIRTY_ONE "1,1",
	};
	struct wf_shape shape;

	for (size_t i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		if (wf_shape_parse(texts[i], &shape)) {
			fail_msg("\"%s\" is accepted", texts[i]);
		}
	}
}

/* The bound of WF_SHAPE_TEXT_BYTES: dimensions of two digits that use up the 63 bits. */
static void
the_longest_text_has_room(void **state)
{
	struct wf_shape shape = {0};
	char text[WF_SHAPE_TEXT_BYTES];

	for (unsigned i = 0; i < 18; i++) {
		assert_true(wf_shape_add(&shape, 10));
	}
	while (shape.dims < WF_SHAPE_DIMS_MAX) {
		assert_true(wf_shape_add(&shape, 0));
	}
	assert_false(wf_shape_add(&shape, 1));
	wf_shape_format(&shape, text);
	assert_int_equal(strlen(text), 2 * 18 + 14 + 31);
	assert_true(wf_shape_parse(text, &shape));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_parsed_is_formatted_as_it_was),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(the_longest_text_has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
