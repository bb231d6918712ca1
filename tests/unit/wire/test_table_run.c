/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a table: heads and sections, and sections that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/little.h"
#include "wire/table_run.h"

static const struct wf_row_shape shape = {.dim = 2, .state_floats = 1};

static void
head_and_sections_are_read_as_they_were_written(void **state)
{
	uint8_t bytes[256] = {0};
	const struct wf_run_head head = {
		.request_id = 0x0102030405060708,
		.bytes = 77,
		.step = 0x21222324,
		.next = {.partition = 1023, .kind = WF_RUN_ROWS, .key = 0x1112131415161718},
	};
	struct wf_run_head back;
	struct wf_run_section section = {.partition = 9, .kind = WF_RUN_COUNTERS, .count = 3};
	uint64_t used = 0;
	(void)state;
	wf_run_head_put(&head, bytes);
	wf_run_head_get(bytes, &back);
	assert_true(back.request_id == head.request_id && back.bytes == head.bytes);
	assert_true(back.next.partition == head.next.partition && back.next.key == head.next.key);
	assert_int_equal(back.next.kind, head.next.kind);
	assert_int_equal(back.step, head.step);
	assert_int_equal(bytes[0], 8); /* little-endian */
	wf_run_section_put(&section, bytes);
	section = (struct wf_run_section){.partition = 10, .kind = WF_RUN_ROWS, .count = 2};
	wf_run_section_put(&section, bytes + 22);
	uint64_t all = 22 + WF_RUN_SECTION_BYTES + 2 * wf_row_record_bytes(&shape);
	assert_int_equal(wf_run_section_get(&shape, bytes, all, &used, &section), WEFT_OK);
	assert_true(section.partition == 9 && section.kind == WF_RUN_COUNTERS);
	assert_true(section.count == 3 && section.bytes == 6 && used == 22);
	assert_int_equal(wf_run_section_get(&shape, bytes, all, &used, &section), WEFT_OK);
	assert_true(section.partition == 10 && section.kind == WF_RUN_ROWS && section.count == 2);
	assert_true(section.at == bytes + 38 && used == all);
}

static void
sections_that_cannot_be_are_refused(void **state)
{
	static const struct {
		uint32_t partition, kind, count;
		uint64_t all;
		const char *text;
	} wrong[] = {
		{0, WF_RUN_ROWS, 0, 15, "15 bytes behind"},
		{1024, WF_RUN_ROWS, 0, 16, "partition 1024"},
		{0, 0, 0, 16, "kind 0"},
		{0, 3, 0, 16, "kind 3"},
		{7, WF_RUN_ROWS, 1, 16 + 27, "1 items of 28 bytes in partition 7"},
		{7, WF_RUN_COUNTERS, 4, 16 + 7, "4 items of 2 bytes"},
		{7, WF_RUN_ROWS, UINT32_MAX, 64, "beyond its end"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t bytes[64] = {0};
		uint64_t used = 0;
		struct wf_run_section section = {.partition = wrong[i].partition,
						 .kind = wrong[i].kind,
						 .count = wrong[i].count};
		wf_run_section_put(&section, bytes);
		assert_int_equal(wf_run_section_get(&shape, bytes, wrong[i].all, &used, &section),
				 WEFT_DATA);
		assert_non_null(strstr(wf_error_record()->text, wrong[i].text));
		assert_true(used == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_and_sections_are_read_as_they_were_written),
		cmocka_unit_test(sections_that_cannot_be_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
