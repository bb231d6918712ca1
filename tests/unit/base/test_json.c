/* SPDX-License-Identifier: Apache-2.0 */
/* What is JSON is read as it stands, what is none is bad, and nesting has a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

static struct wf_json
over(const char *text)
{
	return (struct wf_json){.from = text, .at = text, .end = text + strlen(text)};
}

static void
a_number_has_the_value_that_it_shows(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {{"0", 0},         {"-0", 0},    {" 12", 12},       {"-1.5", -1.5},
		    {"0.25", 0.25},   {"1e3", 1e3}, {"2.5E-2", 0.025}, {"1e+2", 100},
		    {"1e308", 1e308}, {"1e-400", 0}};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		struct wf_json json = over(rows[i].text);
		double value = wf_json_real(&json);
		assert_true(value == rows[i].value);
		assert_true(wf_json_is_done(&json));
	}
}

static void
what_is_no_finite_number_of_json_is_bad(void **state)
{
	static const char *const texts[] = {
		"",
		"-",
		"+1",
		"01",
		"1.",
		".5",
		"1e",
		"1e+",
		"1e400",
		"-1e400",
		"NaN",
		"nan",
		"Infinity",
		"-Infinity",
		"0x10",
		"null",
		"\"1\"",
		"[1]",
		"1111111111111111111111111111111111111111111111111111111111111111111111",
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		struct wf_json json = over(texts[i]);
		(void)wf_json_real(&json);
		assert_false(wf_json_is_done(&json));
	}
}

static void
a_number_ends_where_the_text_does(void **state)
{
	static const char text[] = "123456";
	struct wf_json json = {.from = text, .at = text, .end = text + 3};
	(void)state;
	assert_true(wf_json_real(&json) == 123);
	assert_true(wf_json_is_done(&json));
}

static void
a_value_of_any_kind_is_skipped_as_a_whole(void **state)
{
	static const char *const texts[] = {
		"1",
		"-1.5e3",
		"\"a\\\"]}\"",
		"true",
		"false",
		"null",
		"[]",
		"{}",
		"[1, [2, {\"a\": [], \"b\": {}}], \"]\"]",
		"{\"a\": {\"b\": [1, 2, {\"c\": null}]}, \"d\": true}",
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		char text[128];
		snprintf(text, sizeof(text), "[%s, 7]", texts[i]);
		struct wf_json json = over(text);
		wf_json_need(&json, '[');
		wf_json_skip(&json);
		wf_json_need(&json, ',');
		assert_int_equal(wf_json_number(&json), 7);
		wf_json_need(&json, ']');
		assert_true(wf_json_is_done(&json));
	}
}

static void
what_is_no_value_is_not_skipped(void **state)
{
	static const char *const texts[] = {
		"",      "[",       "{",        "[1",     "[1,",         "[1,]",    "[,1]",
		"[1 2]", "{\"a\"}", "{\"a\":}", "{1: 2}", "{\"a\": 1,}", "[1}",     "{\"a\": 1]",
		"tru",   "nul",     "\"a",      "[\"a]",  "NaN",         "[1e400]",
	};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		struct wf_json json = over(texts[i]);
		wf_json_skip(&json);
		assert_false(wf_json_is_done(&json));
	}
}

static void
nesting_is_bounded(void **state)
{
	(void)state;
	for (unsigned depth = WF_JSON_DEPTH_MAX; depth <= WF_JSON_DEPTH_MAX + 1; depth++) {
		char text[4 * WF_JSON_DEPTH_MAX];
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		text[2 * depth] = '\0';
		struct wf_json json = over(text);
		wf_json_skip(&json);
		assert_int_equal(wf_json_is_done(&json), depth <= WF_JSON_DEPTH_MAX);
	}
}

static void
what_is_printed_is_one_text_again(void **state)
{
	static const char wild[] = "a\"b\\c\n\x1b[31m\x7f\xc3\xa4";
	static const char expected[] = "\"a\\\"b\\\\c\\u000a\\u001b[31m\\u007f\\u00c3\\u00a4\"";
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	(void)state;
	assert_non_null(out);
	wf_json_print_text(out, wild);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_has_the_value_that_it_shows),
		cmocka_unit_test(what_is_no_finite_number_of_json_is_bad),
		cmocka_unit_test(a_number_ends_where_the_text_does),
		cmocka_unit_test(a_value_of_any_kind_is_skipped_as_a_whole),
		cmocka_unit_test(what_is_no_value_is_not_skipped),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(what_is_printed_is_one_text_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
