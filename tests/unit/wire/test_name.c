/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of names: every byte at every length that can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "wire/name.h"

static void
every_length_from_one_on_that_leaves_room_for_nul_is_a_name(void **state)
{
	char name[WF_TENSOR_NAME_BYTES] = {0};
	(void)state;
	assert_int_equal(wf_name_check("table", name), WEFT_INVALID);
	assert_string_equal(weft_last_error(),
			    "table: its name has 0 characters, must be 1 to 127");
	for (size_t i = 0; i < WF_TENSOR_NAME_BYTES - 1; i++) {
		name[i] = 'a';
		assert_int_equal(wf_name_check("table", name), WEFT_OK);
	}
	name[WF_TENSOR_NAME_BYTES - 1] = 'a';
	assert_int_equal(wf_name_check("tensor 3", name), WEFT_INVALID);
	assert_string_equal(weft_last_error(),
			    "tensor 3: its name has 128 characters, must be 1 to 127");
}

static void
only_printable_ascii_without_the_space_is_in_a_name(void **state)
{
	(void)state;
	for (unsigned byte = 1; byte < 256; byte++) {
		char name[WF_TENSOR_NAME_BYTES] = {'a', (char)byte, 'b'};
		bool may = byte >= '!' && byte <= '~';
		assert_int_equal(wf_name_check("table", name), may ? WEFT_OK : WEFT_INVALID);
	}
	char name[WF_TENSOR_NAME_BYTES] = "a b";
	assert_int_equal(wf_name_check("table", name), WEFT_INVALID);
	assert_string_equal(
		weft_last_error(),
		"table: byte 1 of its name is 0x20, must be printable ASCII and no space");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_from_one_on_that_leaves_room_for_nul_is_a_name),
		cmocka_unit_test(only_printable_ascii_without_the_space_is_in_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
