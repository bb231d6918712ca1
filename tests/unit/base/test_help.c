/* SPDX-License-Identifier: Apache-2.0 */
/* The page of --help: texts fill the width once, groups keep their order, and every option appears
 * once. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/options_internal.h"

struct values {
	uint64_t port, count;
	double rate;
	bool once, quiet, verbose;
	const char *method;
};

static const struct wf_option table[] = {
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, port),
	 .initial = "7164",
	 .max = 65535,
	 .help = "The first port of the lanes, whose text was broken in its source\n"
		 "in the middle of a sentence, where the page does not break it at all widths."},
	{.name = "count",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, count),
	 .min = 1,
	 .help = "How many."},
	{.name = "rate",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct values, rate),
	 .initial = "0.5",
	 .fmin = 0,
	 .fmax = 1,
	 .heading = "Job", /* but a group names it */
	 .help = "How fast."},
	{.name = "quiet",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct values, quiet),
	 .heading = "Log",
	 .help = "Log errors only."},
	{.name = "verbose",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct values, verbose),
	 .heading = "Job",
	 .help = "Log everything."},
	{.name = "once",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct values, once),
	 .help = "End with the first job."},
	{.name = "method",
	 .type = WF_OPTION_CHOICE,
	 .offset = offsetof(struct values, method),
	 .initial = "sgd",
	 .choices = "sgd|momentum|nesterov|adagrad|decayed_adagrad|rmsprop|adadelta|adam|adamw",
	 .help = "The optimizer."},
};

static const struct wf_help_group groups[] = {
	{"Job", "once port"},
	{"Optimizer", "method rate"},
	{.title = "Log"},
};

static void
print_models(FILE *out)
{
	(void)fputs("  linear   a line\n", out);
}

static const struct wf_help page = {
	.usage = "weft test [options]",
	.about = "Does nothing, in as many words as it takes to fill more than one line of a page.",
	.list_title = "Models",
	.print_list = print_models,
	.examples = "  weft test port       a line of an example that stays as it is written\n"
		    "  weft test",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  always",
};

static char text[16384];

static FILE *
open_text(void)
{
	text[0] = '\0';
	FILE *out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	return out;
}

static const char *
print_text(unsigned columns, unsigned indent, const char *source)
{
	FILE *out = open_text();
	wf_help_print_text(out, columns, indent, source);
	assert_int_equal(fclose(out), 0);
	return text;
}

static const char *
print_page(const struct wf_help *help, unsigned columns)
{
	const struct wf_options options = {
		.table = table,
		.option_count = (unsigned)WF_ARRAY_COUNT(table),
		.program = "weft test",
		.help = help,
	};
	FILE *out = open_text();
	wf_option_print_page(&options, out, columns);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* No line is longer, and the first word of each line of a paragraph had no room on the one before.
 * Paragraphs of options begin at column 6, and nothing else does. */
static void
assert_filled(const char *at, unsigned columns)
{
	static const char indent[] = "      ";
	unsigned compared = 0;
	while (*at != '\0') {
		size_t bytes = strcspn(at, "\n");
		const char *next = at + bytes + 1;
		assert_true(bytes <= columns);
		if (strncmp(at, indent, 6) == 0 && strncmp(next, indent, 6) == 0) {
			assert_true(bytes + 1 + strcspn(next + 6, " \n") > columns);
			compared++;
		}
		at = next;
	}
	assert_true(compared > 0);
}

static void
paragraphs_fill_lines_and_stay_apart(void **state)
{
	assert_string_equal(print_text(20, 2, "one two three\nfour five six\n\nseven"),
			    "  one two three four\n  five six\n\n  seven\n");
	assert_string_equal(print_text(12, 0, "a 1234567890123 b"), "a\n1234567890123\nb\n");
	assert_string_equal(print_text(12, 4, "1234567890123 b"), "    1234567890123\n    b\n");
	assert_string_equal(print_text(12, 4, ""), "");
	assert_string_equal(print_text(5, 0, "12345 12 34"), "12345\n12 34\n");
}

static void
a_line_that_begins_with_a_blank_stays_as_it_is(void **state)
{
	assert_string_equal(
		print_text(12, 0, "one two\n  weft  a   row that is long\n  b\nthree four five"),
		"one two\n  weft  a   row that is long\n  b\nthree four\nfive\n");
}

static void
what_is_no_terminal_has_80_columns(void **state)
{
	FILE *out = open_text();
	assert_int_equal(wf_help_columns(out), 80);
	assert_int_equal(fclose(out), 0);
	out = tmpfile();
	assert_non_null(out);
	assert_int_equal(wf_help_columns(out), 80);
	assert_int_equal(fclose(out), 0);
}

static void
a_terminal_has_its_own_columns_within_bounds(void **state)
{
	static const unsigned short given[] = {1, 39, 40, 93, 120, 121, 1000, 0};
	static const unsigned wanted[] = {40, 40, 40, 93, 120, 120, 120, 80};
	int fd = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(fd >= 0);
	assert_int_equal(unlockpt(fd), 0);
	int end = open(ptsname(fd), O_RDWR | O_NOCTTY);
	assert_true(end >= 0);
	FILE *out = fdopen(end, "w");
	assert_non_null(out);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(given); i++) {
		const struct winsize size = {.ws_row = 24, .ws_col = given[i]};
		assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
		assert_int_equal(wf_help_columns(out), wanted[i]);
	}
	assert_int_equal(fclose(out), 0);
	assert_int_equal(close(fd), 0);
}

static void
a_page_fills_its_width_and_breaks_no_line_twice(void **state)
{
	for (unsigned columns = 40; columns <= 120; columns++) {
		assert_filled(print_page(NULL, columns), columns);
	}
}

/* Where each of the words begins, in this order. */
static void
assert_in_order(const char *at, const char *const word[], unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const char *found = strstr(at, word[i]);
		if (found == NULL) {
			fail_msg("'%s' is not behind '%.60s'", word[i], at);
		}
		at = found + strlen(word[i]);
	}
}

static void
parts_and_groups_stand_in_their_order(void **state)
{
	static const char *const order[] = {
		"Usage: weft test [options]\n",
		"\nDoes nothing, ",
		"\nExamples:\n  weft test port       a line",
		"\nModels:\n  linear",
		"\nJob:\n  --[no-]once\n",
		"\n  --port=N\n",
		"\n  --[no-]verbose\n", /* by its heading */
		"\nOptimizer:\n  --method=",
		"\n  --rate=X\n",
		"\nLog:\n  --[no-]quiet\n",
		"\nOther options:\n  --count=N\n",
		"\nGeneral:\n",
		"  -h, --help\n",
		"\nExit codes:\n   0  always\n",
	};
	const char *whole = print_page(&page, 80);
	assert_in_order(whole, order, (unsigned)WF_ARRAY_COUNT(order));
	for (unsigned i = 0; i < WF_ARRAY_COUNT(table); i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "%s%s",
			       table[i].type == WF_OPTION_BOOL ? "--[no-]" : "--", table[i].name);
		const char *first = strstr(whole, name);
		assert_non_null(first);
		assert_null(strstr(first + 1, name));
	}
}

static void
without_groups_all_options_stand_under_one_heading(void **state)
{
	static const char *const order[] = {"\nOptions:\n  --port=N\n", "--count=N\n", "--rate=X\n",
					    "--[no-]once\n", "--method="};
	assert_in_order(print_page(NULL, 80), order, (unsigned)WF_ARRAY_COUNT(order));
	assert_null(strstr(text, "Other options"));
	assert_null(strstr(text, "Usage"));
	assert_null(strstr(text, "Exit codes"));
}

static void
limits_defaults_and_long_choices_are_sentences(void **state)
{
	print_page(NULL, 120);
	assert_non_null(strstr(text, " From 0 to 65535. Default: 7164.\n"));
	assert_non_null(strstr(text, "      How many. At least 1.\n"));
	assert_non_null(strstr(text, "      How fast. From 0 to 1. Default: 0.5.\n"));
	assert_non_null(strstr(text, "  --method=sgd|momentum|nesterov|"));
	print_page(NULL, 60);
	assert_non_null(strstr(text, "\n  --method=NAME\n      The optimizer. One of sgd, "));
	assert_non_null(strstr(text, "adam and\n      adamw. Default: sgd.\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paragraphs_fill_lines_and_stay_apart),
		cmocka_unit_test(a_line_that_begins_with_a_blank_stays_as_it_is),
		cmocka_unit_test(what_is_no_terminal_has_80_columns),
		cmocka_unit_test(a_terminal_has_its_own_columns_within_bounds),
		cmocka_unit_test(a_page_fills_its_width_and_breaks_no_line_twice),
		cmocka_unit_test(parts_and_groups_stand_in_their_order),
		cmocka_unit_test(without_groups_all_options_stand_under_one_heading),
		cmocka_unit_test(limits_defaults_and_long_choices_are_sentences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
