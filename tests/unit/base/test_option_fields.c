/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of options whose values are in a program's own struct: narrow fields, enums, checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options_internal.h"

/* Structs of programs have narrower fields than the types of options. */
enum mode { MODE_SYNC, MODE_ASYNC, MODE_BOUNDED };

struct narrow {
	uint16_t port;
	uint16_t behind_port; /* guards: nothing is written here */
	uint32_t ports_num;
	uint32_t behind_ports_num;
	int skip;
	uint32_t behind_skip;
	enum mode mode;
	uint32_t behind_mode;
	double rate;
	uint64_t timeout_ns;
};

static const struct wf_option narrow_table[] = {
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct narrow, port),
	 .bytes = sizeof(uint16_t),
	 .initial = "7164"},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct narrow, ports_num),
	 .bytes = sizeof(uint32_t),
	 .initial = "1",
	 .min = 1,
	 .max = 256},
	{.name = "skip",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct narrow, skip),
	 .bytes = sizeof(int)},
	{.name = "mode",
	 .type = WF_OPTION_ENUM,
	 .offset = offsetof(struct narrow, mode),
	 .initial = "async",
	 .means = "when it is applied",
	 .choices = "sync|async|bounded"},
	{.name = "rate",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct narrow, rate),
	 .initial = "0.5",
	 .fmax = 1},
	{.name = "timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = offsetof(struct narrow, timeout_ns),
	 .initial = "3s",
	 .min = 1000},
};

#define NARROW_COUNT ((unsigned)WF_ARRAY_COUNT(narrow_table))

static struct wf_options options;

static enum weft_status
parse_narrow(struct narrow *out, const char *text)
{
	static char copy[64];
	static enum wf_option_origin origins[NARROW_COUNT];
	static const char *variables[NARROW_COUNT];
	char program[] = "weft";
	char *argv[] = {program, copy, NULL};
	(void)snprintf(copy, sizeof(copy), "%s", text);
	memset(out, 0xa5, sizeof(*out));
	options = (struct wf_options){.table = narrow_table,
				      .option_count = NARROW_COUNT,
				      .program = "weft narrow",
				      .target = out,
				      .origin = origins,
				      .env_name = variables};
	enum weft_status st = wf_options_parse(&options, 2, argv);
	assert_int_equal(out->behind_port, 0xa5a5);
	assert_int_equal(out->behind_ports_num, 0xa5a5a5a5);
	assert_int_equal(out->behind_skip, 0xa5a5a5a5);
	assert_int_equal(out->behind_mode, 0xa5a5a5a5);
	return st;
}

static void
narrow_fields_are_filled_and_nothing_beside_them(void **state)
{
	struct narrow narrow;
	assert_int_equal(parse_narrow(&narrow, "--port=65535"), WEFT_OK);
	assert_int_equal(narrow.port, 65535);
	assert_int_equal(narrow.ports_num, 1);
	assert_int_equal(narrow.skip, 0);
	assert_int_equal(narrow.mode, MODE_ASYNC);
	assert_int_equal(parse_narrow(&narrow, "--ports_num=256"), WEFT_OK);
	assert_int_equal(narrow.port, 7164);
	assert_int_equal(narrow.ports_num, 256);
	assert_int_equal(parse_narrow(&narrow, "--skip"), WEFT_OK);
	assert_int_equal(narrow.skip, 1);
	static const char *const word[] = {"--mode=sync", "--mode=async", "--mode=bounded"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(word); i++) {
		char text[WF_ERROR_BYTES] = "";
		assert_int_equal(parse_narrow(&narrow, word[i]), WEFT_OK);
		assert_int_equal(narrow.mode, i);
		assert_int_equal(wf_options_understood(&options, text, sizeof(text)), 1);
		assert_non_null(strstr(text, word[i] + strlen("--")));
	}
}

static void
what_a_field_cannot_hold_is_refused(void **state)
{
	static const struct {
		const char *text;
		const char *remedy;
	} cases[] = {
		{"--port=65536", "a whole number, from 0 to 65535"},
		{"--ports_num=4294967297", "from 1 to 256"},
		{"--mode=bound", "one of sync|async|bounded"},
		{"--mode=boundedly", "one of sync|async|bounded"},
		{"--mode=1", "one of sync|async|bounded"},
		{"--mode=", "one of sync|async|bounded"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		struct narrow narrow;
		assert_int_equal(parse_narrow(&narrow, cases[i].text), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].remedy));
	}
}

static enum weft_status
check_narrow(const struct narrow *narrow)
{
	return wf_option_check(narrow_table, NARROW_COUNT, narrow);
}

static void
a_struct_that_a_program_filled_in_is_checked(void **state)
{
	struct narrow narrow;
	wf_option_defaults(narrow_table, NARROW_COUNT, &narrow);
	assert_int_equal(check_narrow(&narrow), WEFT_OK);
	struct narrow bad = narrow;
	bad.skip = -7; /* true, as in C */
	assert_int_equal(check_narrow(&bad), WEFT_OK);
	bad.ports_num = 257;
	assert_int_equal(check_narrow(&bad), WEFT_INVALID);
	assert_string_equal(weft_last_error(),
			    "ports_num 257: must be a whole number, from 1 to 256");
	bad = narrow;
	bad.mode = (enum mode)3;
	assert_int_equal(check_narrow(&bad), WEFT_INVALID);
	assert_string_equal(weft_last_error(), "mode 3: must be one of sync|async|bounded");
	bad = narrow;
	bad.timeout_ns = 999;
	assert_int_equal(check_narrow(&bad), WEFT_INVALID);
	assert_string_equal(weft_last_error(),
			    "timeout 0.999us: must be a duration like 50us, 20ms, 1.5s or 2m, at "
			    "least 1us");
	static const double wrong[] = {1.5, -0.25, (double)NAN, (double)INFINITY};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(wrong); i++) {
		bad = narrow;
		bad.rate = wrong[i];
		assert_int_equal(check_narrow(&bad), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), "must be a number, from 0 to 1"));
	}
}

/* A duration that a word may stand for. */
static void
a_word_may_stand_for_no_number(void **state)
{
	static const struct wf_option spin = {
		.name = "spin",
		.type = WF_OPTION_DURATION,
		.initial = "auto",
		.word = "auto",
		.max = 1000000000,
	};
	uint64_t value = 0;
	char text[32];
	wf_option_defaults(&spin, 1, &value);
	assert_true(value == UINT64_MAX);
	assert_int_equal(wf_option_check(&spin, 1, &value), WEFT_OK);
	wf_option_value(&spin, &value, text, sizeof(text));
	assert_string_equal(text, "auto");
	value = UINT64_MAX - 1;
	assert_int_equal(wf_option_check(&spin, 1, &value), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "or 2m, from 0s to 1s; or auto"));
	struct wf_option plain = spin;
	plain.word = NULL;
	value = UINT64_MAX;
	assert_int_equal(wf_option_check(&plain, 1, &value), WEFT_INVALID);
}

static void
a_number_may_be_negative(void **state)
{
	static const struct wf_option priority = {.name = "priority", .type = WF_OPTION_I32};
	static const struct {
		const char *text;
		int32_t value;
	} good[] = {
		{"0", 0},
		{"7", 7},
		{"-7", -7},
		{"2147483647", INT32_MAX},
		{"-2147483648", INT32_MIN},
	};
	static const char *const bad[] = {"",    "-",          "--1",         "+1",  "1.5",
					  "1e3", "2147483648", "-2147483649", " 1 ", "high"};
	struct {
		int32_t value, behind;
	} target = {.value = 99, .behind = 99};
	char text[WF_OPTION_ALLOWED_BYTES];
	for (unsigned i = 0; i < WF_ARRAY_COUNT(good); i++) {
		assert_true(wf_option_store(&priority, good[i].text, &target));
		assert_int_equal(target.value, good[i].value);
		wf_option_value(&priority, &target, text, sizeof(text));
		assert_string_equal(text, good[i].text);
		assert_int_equal(wf_option_check(&priority, 1, &target), WEFT_OK);
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		assert_false(wf_option_store(&priority, bad[i], &target));
		assert_int_equal(target.value, INT32_MIN);
	}
	assert_int_equal(target.behind, 99);
	wf_option_allowed(&priority, text, sizeof(text));
	assert_string_equal(text, "a whole number, from -2147483648 to 2147483647");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(narrow_fields_are_filled_and_nothing_beside_them),
		cmocka_unit_test(what_a_field_cannot_hold_is_refused),
		cmocka_unit_test(a_struct_that_a_program_filled_in_is_checked),
		cmocka_unit_test(a_word_may_stand_for_no_number),
		cmocka_unit_test(a_number_may_be_negative),
	};
	(void)clearenv();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
