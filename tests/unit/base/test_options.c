/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of options: every type, every source, every refusal, and the texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options.h"

struct values {
	bool use_gpu;
	bool once;
	uint64_t ports_num;
	uint64_t port;
	uint64_t free_number;
	double rate;
	double ratio;
	uint64_t slice_bytes;
	uint64_t timeout_ns;
	const char *listen;
	const char *transport;
};

static const struct wf_option table[] = {
	{.name = "use_gpu",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct values, use_gpu),
	 .means = "no GPU",
	 .help = "Accepted when false."},
	{.name = "once",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct values, once),
	 .initial = "true",
	 .help = "End after one job."},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, ports_num),
	 .initial = "1",
	 .min = 1,
	 .max = 64,
	 .means = "dense lanes per pserver",
	 .help = "Dense lanes, one port and one thread each; the words of this help are many, so "
		 "that the line has to be broken somewhere.\nA second line."},
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, port),
	 .initial = "7164",
	 .max = 65535,
	 .help = "First port."},
	{.name = "free_number",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, free_number)},
	{.name = "rate",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct values, rate),
	 .help = "Any."},
	{.name = "ratio",
	 .type = WF_OPTION_F64,
	 .offset = offsetof(struct values, ratio),
	 .initial = "1.5",
	 .fmin = 0.5,
	 .fmax = 2,
	 .help = "Half to two."},
	{.name = "slice-bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = offsetof(struct values, slice_bytes),
	 .initial = "256KiB",
	 .min = 16,
	 .max = 1 << 20,
	 .help = "Cut."},
	{.name = "timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = offsetof(struct values, timeout_ns),
	 .initial = "10s",
	 .min = 1000000,
	 .help = "How long."},
	{.name = "listen",
	 .type = WF_OPTION_STRING,
	 .offset = offsetof(struct values, listen),
	 .initial = "127.0.0.1",
	 .metavar = "ADDR",
	 .means = "address of the lanes"},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = offsetof(struct values, transport),
	 .initial = "auto",
	 .choices = "auto|tcp|sim",
	 .help = "How."},
};

#define COUNT ((unsigned)WF_ARRAY_COUNT(table))
#define POSITIONAL_MAX 2

static struct values values;
static enum wf_option_origin origin[COUNT];
static const char *env_name[COUNT];
static const char *positional[POSITIONAL_MAX];
static struct wf_options options;

static void
clear_environment(void)
{
	(void)clearenv();
}

static int
set_up(void **state)
{
	clear_environment();
	memset(&values, 0xff, sizeof(values));
	options = (struct wf_options){
		.table = table,
		.option_count = COUNT,
		.program = "weft pserver",
		.target = &values,
		.origin = origin,
		.env_name = env_name,
		.positional = positional,
		.positional_max = POSITIONAL_MAX,
	};
	return 0;
}

/* Parse up to 4 arguments; NULL ends them. */
static enum weft_status
parse(char *a, char *b, char *c, char *d)
{
	char program[] = "weft";
	char *argv[] = {program, a, b, c, d, NULL};
	int argc = 0;
	while (argv[argc] != NULL) {
		argc++;
	}
	return wf_options_parse(&options, argc, argv);
}

static enum weft_status
parse_one(const char *text)
{
	static char copies[64][128]; /* strings are borrowed: they must outlive the call */
	static unsigned used;
	char *copy = copies[used++ % 64];
	(void)snprintf(copy, sizeof(copies[0]), "%s", text);
	return parse(copy, NULL, NULL, NULL);
}

#define ARG(text) ((char[]){text}) /* argv is not const */

static void
defaults_are_set_when_nothing_is_given(void **state)
{
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_OK);
	assert_false(values.use_gpu);
	assert_true(values.once);
	assert_int_equal(values.ports_num, 1);
	assert_int_equal(values.port, 7164);
	assert_int_equal(values.free_number, 0);
	assert_true(values.rate >= 0.0 && values.rate <= 0.0);
	assert_true(values.ratio >= 1.5 && values.ratio <= 1.5);
	assert_int_equal(values.slice_bytes, 256 << 10);
	assert_int_equal(values.timeout_ns, 10000000000);
	assert_string_equal(values.listen, "127.0.0.1");
	assert_string_equal(values.transport, "auto");
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(origin[i], WF_ORIGIN_DEFAULT);
		assert_null(env_name[i]);
	}
	assert_false(options.help_wanted);
	assert_int_equal(options.positional_count, 0);
}

static void
all_spellings_of_an_option_are_read(void **state)
{
	assert_int_equal(parse(ARG("--ports_num=2"), NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 2);
	assert_int_equal(parse(ARG("--ports-num=3"), NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 3);
	assert_int_equal(parse(ARG("--ports_num"), ARG("4"), NULL, NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 4);
	assert_int_equal(parse(ARG("--slice_bytes=64"), NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.slice_bytes, 64);
	assert_int_equal(parse(ARG("--use_gpu"), NULL, NULL, NULL), WEFT_OK);
	assert_true(values.use_gpu);
	assert_int_equal(parse(ARG("--no-once"), NULL, NULL, NULL), WEFT_OK);
	assert_false(values.once);
	assert_int_equal(parse(ARG("--no_use-gpu"), NULL, NULL, NULL), WEFT_OK);
	assert_false(values.use_gpu);
	assert_int_equal(wf_options_origin(&options, "use_gpu"), WF_ORIGIN_ARGUMENT);
	assert_int_equal(wf_options_origin(&options, "use-gpu"), WF_ORIGIN_ARGUMENT);
	assert_int_equal(wf_options_origin(&options, "once"), WF_ORIGIN_DEFAULT);
}

static void
booleans_are_read_in_any_case(void **state)
{
	static const char *const yes[] = {"true", "True", "TRUE", "1", "on", "yes", "YES"};
	static const char *const no[] = {"false", "False", "FALSE", "0", "off", "no", "No"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(yes); i++) {
		char text[32];
		(void)snprintf(text, sizeof(text), "--use_gpu=%s", yes[i]);
		assert_int_equal(parse_one(text), WEFT_OK);
		assert_true(values.use_gpu);
		(void)snprintf(text, sizeof(text), "--use_gpu=%s", no[i]);
		assert_int_equal(parse_one(text), WEFT_OK);
		assert_false(values.use_gpu);
	}
}

static void
sizes_are_read_with_their_suffixes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"--slice_bytes=16", 16},           {"--slice_bytes=64K", 65536},
		{"--slice_bytes=64KiB", 65536},     {"--slice_bytes=1M", 1 << 20},
		{"--slice_bytes=1MiB", 1 << 20},    {"--slice_bytes=1mib", 1 << 20},
		{"--slice_bytes=1048576", 1 << 20},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(parse_one(cases[i].text), WEFT_OK);
		assert_int_equal(values.slice_bytes, cases[i].bytes);
	}
}

static void
durations_are_read_with_their_suffixes(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"--timeout=2", 2000000000},
		{"--timeout=0.1", 100000000},
		{"--timeout=1.5s", 1500000000},
		{"--timeout=00:00:07", 7000000000},
		{"--timeout=0:01:05", 65000000000},
		{"--timeout=20ms", 20000000},
		{"--timeout=5000us", 5000000},
		{"--timeout=2m", 120000000000},
		{"--timeout=0.5m", 30000000000},
		{"--timeout=1.0000000019", 1000000001},
		{"--timeout=1000.5us", 1000500},
		{"--timeout=0.33333333333333333333333s", 333333333},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(parse_one(cases[i].text), WEFT_OK);
		assert_int_equal(values.timeout_ns, cases[i].ns);
	}
}

static void
numbers_are_read_to_their_limits(void **state)
{
	assert_int_equal(parse_one("--free_number=18446744073709551615"), WEFT_OK);
	assert_true(values.free_number == UINT64_MAX);
	assert_int_equal(parse_one("--port=65535"), WEFT_OK);
	assert_int_equal(values.port, 65535);
	assert_int_equal(parse_one("--port=0"), WEFT_OK);
	assert_int_equal(values.port, 0);
	assert_int_equal(parse_one("--rate=-1e-3"), WEFT_OK);
	assert_true(values.rate < -0.0009 && values.rate > -0.0011);
	assert_int_equal(parse(ARG("--rate"), ARG("-2"), NULL, NULL), WEFT_OK);
	assert_true(values.rate < -1.9 && values.rate > -2.1);
	assert_int_equal(parse_one("--ratio=2"), WEFT_OK);
	assert_int_equal(parse_one("--ratio=0.5"), WEFT_OK);
}

static void
bad_values_are_refused_with_option_value_and_remedy(void **state)
{
	static const struct {
		const char *text;
		const char *remedy;
	} cases[] = {
		{"--use_gpu=maybe", "true or false"},
		{"--use_gpu=", "true or false"},
		{"--ports_num=0", "a whole number, from 1 to 64"},
		{"--ports_num=65", "from 1 to 64"},
		{"--ports_num=", "from 1 to 64"},
		{"--ports_num=2x", "from 1 to 64"},
		{"--ports_num=+2", "from 1 to 64"},
		{"--ports_num=-2", "from 1 to 64"},
		{"--ports_num= 2", "from 1 to 64"},
		{"--ports_num=0x2", "from 1 to 64"},
		{"--ports_num=2.0", "from 1 to 64"},
		{"--ports_num=18446744073709551617", "from 1 to 64"},
		{"--free_number=18446744073709551616", "a whole number"},
		{"--rate=abc", "a finite number"},
		{"--rate=", "a finite number"},
		{"--rate=nan", "a finite number"},
		{"--rate=inf", "a finite number"},
		{"--rate=1e999", "a finite number"},
		{"--rate=1e", "a finite number"},
		{"--rate=0x10", "a finite number"},
		{"--rate= 1", "a finite number"},
		{"--ratio=2.01", "from 0.5 to 2"},
		{"--ratio=0", "from 0.5 to 2"},
		{"--slice_bytes=8", "from 16 to 1MiB"},
		{"--slice_bytes=2M", "from 16 to 1MiB"},
		{"--slice_bytes=64KB", "a size like"},
		{"--slice_bytes=K", "a size like"},
		{"--slice_bytes=1.5M", "a size like"},
		{"--slice_bytes=17179869184G", "a size like"},
		{"--timeout=0", "a duration like 50us, 20ms, 1.5s or 2m, at least 1ms"},
		{"--timeout=10h", "a duration like"},
		{"--timeout=.5", "a duration like"},
		{"--timeout=1.s", "a duration like"},
		{"--timeout=1 s", "a duration like"},
		{"--timeout=99999999999999999m", "a duration like"},
		{"--timeout=18446744073.8s", "a duration like"},
		{"--timeout=01:00", "a duration like"},
		{"--timeout=1:2:03", "a duration like"},
		{"--timeout=00:60:00", "a duration like"},
		{"--timeout=00:00:60", "a duration like"},
		{"--timeout=00:00:01s", "a duration like"},
		{"--timeout=00:00:1.5", "a duration like"},
		{"--timeout=0-24:00:01", "a duration like"},
		{"--timeout=-00:00:01", "a duration like"},
		{"--timeout=:00:01", "a duration like"},
		{"--timeout=5124095576030432:00:00", "a duration like"},
		{"--transport=udp", "one of auto|tcp|sim"},
		{"--transport=TCP", "one of auto|tcp|sim"},
		{"--transport=", "one of auto|tcp|sim"},
		{"--transport=auto|tcp", "one of auto|tcp|sim"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(parse_one(cases[i].text), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].remedy));
		assert_ptr_equal(strstr(weft_last_error(), "weft pserver: --"), weft_last_error());
		assert_non_null(strchr(cases[i].text, '='));
		assert_non_null(strstr(weft_last_error(), strchr(cases[i].text, '=')));
	}
}

static void
a_missing_value_is_refused(void **state)
{
	assert_int_equal(parse_one("--ports_num"), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--ports_num needs a value: a whole number"));
	assert_int_equal(parse(ARG("--listen"), ARG("--once"), NULL, NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--listen needs a value"));
	assert_int_equal(parse(ARG("--listen"), ARG("--"), NULL, NULL), WEFT_INVALID);
	assert_int_equal(parse_one("--listen=--once"), WEFT_OK);
	assert_string_equal(values.listen, "--once");
	assert_int_equal(parse_one("--listen="), WEFT_OK);
	assert_string_equal(values.listen, "");
}

static void
no_form_takes_no_value_and_only_booleans_have_it(void **state)
{
	assert_int_equal(parse_one("--no-once=true"), WEFT_INVALID);
	assert_non_null(
		strstr(weft_last_error(), "--no-once takes no value; it means --once=false"));
	assert_int_equal(parse_one("--no-port"), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "unknown option --no-port"));
	assert_int_equal(parse_one("--no-"), WEFT_INVALID);
	assert_int_equal(parse_one("--no"), WEFT_INVALID);
}

static void
unknown_options_are_answered_with_the_nearest_name(void **state)
{
	static const struct {
		const char *text;
		const char *suggestion;
	} cases[] = {
		{"--prots_num=2", "unknown option --prots_num; did you mean --ports_num?"},
		{"--port_num", "did you mean --ports_num?"},
		{"--Ports_Num=1", "did you mean --ports_num?"},
		{"--slicebytes=1", "did you mean --slice-bytes?"},
		{"--nouse_gpu", "did you mean --use_gpu?"},
		{"--trans=tcp", "did you mean --transport?"},
		{"--prot", "did you mean --port?"},
		{"-port=1", "unknown option -port; did you mean --port?"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(parse_one(cases[i].text), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), cases[i].suggestion));
	}
}

static void
what_is_like_nothing_gets_no_suggestion(void **state)
{
	char big[120];
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	memcpy(big, "--ports_num", 11);
	assert_int_equal(parse_one("--zzzzzz"), WEFT_INVALID);
	assert_null(strstr(weft_last_error(), "did you mean"));
	assert_non_null(strstr(weft_last_error(), "unknown option --zzzzzz (--help lists all)"));
	assert_int_equal(parse_one(big), WEFT_INVALID);
	assert_null(strstr(weft_last_error(), "did you mean"));
	assert_int_equal(parse_one("--=1"), WEFT_INVALID);
	assert_int_equal(parse_one("-x"), WEFT_INVALID);
}

static void
unknown_options_can_be_left_alone(void **state)
{
	options.ignore_unknown = true;
	assert_int_equal(parse(ARG("--zzz=1"), ARG("-q"), ARG("--ports_num=2"), NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 2);
	assert_int_equal(options.positional_count, 0);
	assert_int_equal(parse_one("--ports_num=x"), WEFT_INVALID);
}

static void
the_last_of_several_wins(void **state)
{
	assert_int_equal(parse(ARG("--port=1"), ARG("--once"), ARG("--port=2"), ARG("--no-once")),
			 WEFT_OK);
	assert_int_equal(values.port, 2);
	assert_false(values.once);
}

static void
positional_arguments_are_kept_in_order(void **state)
{
	assert_int_equal(parse(ARG("train"), ARG("--port=1"), ARG("linear"), NULL), WEFT_OK);
	assert_int_equal(options.positional_count, 2);
	assert_string_equal(positional[0], "train");
	assert_string_equal(positional[1], "linear");
	assert_int_equal(values.port, 1);
	assert_int_equal(parse(ARG("-"), ARG("-5"), NULL, NULL), WEFT_OK);
	assert_int_equal(options.positional_count, 2);
	assert_int_equal(parse(ARG("a"), ARG("b"), ARG("c"), NULL), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "unexpected argument \"c\""));
	assert_int_equal(parse(ARG("--once"), ARG("false"), NULL, NULL), WEFT_OK);
	assert_string_equal(positional[0], "false"); /* a boolean takes no next argument */
}

static void
nothing_after_two_dashes_is_an_option(void **state)
{
	assert_int_equal(parse(ARG("--port=1"), ARG("--"), ARG("--port=2"), ARG("--")), WEFT_OK);
	assert_int_equal(values.port, 1);
	assert_int_equal(options.positional_count, 2);
	assert_string_equal(positional[0], "--port=2");
	assert_string_equal(positional[1], "--");
	assert_int_equal(parse(ARG("--"), ARG("--help"), NULL, NULL), WEFT_OK);
	assert_false(options.help_wanted);
	assert_int_equal(parse_one("--"), WEFT_OK);
	assert_int_equal(options.positional_count, 0);
}

static void
help_is_given_even_beside_mistakes(void **state)
{
	assert_int_equal(parse_one("--help"), WEFT_OK);
	assert_true(options.help_wanted);
	assert_int_equal(parse(ARG("linear"), ARG("-h"), NULL, NULL), WEFT_OK);
	assert_true(options.help_wanted);
	assert_string_equal(positional[0], "linear");
	assert_int_equal(parse(ARG("--zzz"), ARG("--help"), NULL, NULL), WEFT_OK);
	assert_true(options.help_wanted);
	assert_int_equal(setenv("WEFT_PORT", "bad", 1), 0);
	assert_int_equal(parse_one("--help"), WEFT_OK);
	assert_true(options.help_wanted);
	clear_environment();
	assert_int_equal(parse(ARG("--listen"), ARG("-h"), NULL, NULL), WEFT_OK);
	assert_false(options.help_wanted);
	assert_string_equal(values.listen, "-h");
}

static void
the_environment_stands_between_default_and_argument(void **state)
{
	assert_int_equal(setenv("PADDLE_INIT_PORTS_NUM", "5", 1), 0);
	assert_int_equal(setenv("PADDLE_INIT_USE_GPU", "False", 1), 0);
	assert_int_equal(setenv("WEFT_SLICE_BYTES", "32KiB", 1), 0);
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 5);
	assert_int_equal(values.slice_bytes, 32768);
	assert_false(values.use_gpu);
	assert_int_equal(wf_options_origin(&options, "ports_num"), WF_ORIGIN_ENV);
	assert_int_equal(wf_options_origin(&options, "use_gpu"), WF_ORIGIN_ENV);
	assert_string_equal(env_name[2], "PADDLE_INIT_PORTS_NUM=5");

	assert_int_equal(setenv("WEFT_PORTS_NUM", "6", 1), 0);
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.ports_num, 6);
	assert_string_equal(env_name[2], "WEFT_PORTS_NUM=6");

	assert_int_equal(parse_one("--ports_num=7"), WEFT_OK);
	assert_int_equal(values.ports_num, 7);
	assert_int_equal(wf_options_origin(&options, "ports_num"), WF_ORIGIN_ARGUMENT);
	assert_null(env_name[2]);
}

static void
an_empty_variable_counts_as_not_set(void **state)
{
	assert_int_equal(setenv("WEFT_PORT", "", 1), 0);
	assert_int_equal(setenv("PADDLE_INIT_PORT", "9", 1), 0);
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(values.port, 9);
}

static void
a_bad_variable_is_refused_by_its_own_name(void **state)
{
	assert_int_equal(setenv("PADDLE_INIT_PORTS_NUM", "many", 1), 0);
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_INVALID);
	assert_string_equal(weft_last_error(),
			    "weft pserver: PADDLE_INIT_PORTS_NUM=many in the environment (sets "
			    "--ports_num): must be a whole number, from 1 to 64");
}

static void
an_option_is_known_with_whether_it_takes_the_next_argument(void **state)
{
	static const struct {
		const char *text;
		bool known;
		bool next;
	} cases[] = {
		{"--ports_num=2", true, false},
		{"--ports-num", true, true},
		{"--once", true, false},
		{"--no-once", true, false},
		{"--once=false", true, false},
		{"--listen", true, true},
		{"--no-port", false, false},
		{"--zzz", false, false},
		{"--port_nu", false, false},
		{"ports_num", false, false},
		{"--", false, false},
		{"-", false, false},
		{"", false, false},
		{"-port", false, false},
		{"--help", false, false},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		bool next = false;
		assert_int_equal(wf_options_knows(&options, cases[i].text, &next), cases[i].known);
		assert_int_equal(next, cases[i].next);
	}
}

static void
what_old_names_were_understood_as_is_a_line_each(void **state)
{
	char line[256];
	assert_int_equal(parse(NULL, NULL, NULL, NULL), WEFT_OK);
	assert_int_equal(wf_options_understood(&options, line, sizeof(line)), 0);
	assert_string_equal(line, "");

	assert_int_equal(setenv("PADDLE_INIT_PORTS_NUM", "2", 1), 0);
	assert_int_equal(parse(ARG("--use_gpu=False"), ARG("--port=1"), ARG("--listen=::"), NULL),
			 WEFT_OK);
	assert_int_equal(wf_options_understood(&options, line, sizeof(line)), 3);
	assert_string_equal(line, "use_gpu=false (argument) no GPU\n"
				  "ports_num=2 (PADDLE_INIT_PORTS_NUM) dense lanes per pserver\n"
				  "listen=:: (argument) address of the lanes");

	char small[12];
	assert_int_equal(wf_options_understood(&options, small, sizeof(small)), 3);
	assert_string_equal(small, "use_gpu=fal");
	char one[1];
	assert_int_equal(wf_options_understood(&options, one, sizeof(one)), 3);
	assert_string_equal(one, "");
}

static void
help_names_every_option_within_80_columns(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	wf_options_print_help(&options, out);
	assert_int_equal(fclose(out), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_non_null(strstr(text, table[i].name));
	}
	assert_non_null(strstr(text, "\n  --listen=ADDR\n"));
	assert_non_null(strstr(text, "\n  --transport=auto|tcp|sim\n"));
	assert_non_null(strstr(text, "  --[no-]use_gpu\n"));
	assert_non_null(strstr(text, "somewhere. A second line. From 1\n      to 64. "
				     "Default: 1.\n"));
	assert_non_null(strstr(text, " 256KiB.\n"));
	assert_non_null(strstr(text, "WEFT_"));
	unsigned lines = 0;
	for (const char *at = text; *at != '\0'; at++, lines++) {
		size_t columns = strcspn(at, "\n");
		assert_true(columns <= 80);
		assert_true(columns == 0 || at[columns - 1] != ' ');
		at += columns;
		assert_int_equal(*at, '\n');
	}
	assert_true(lines > COUNT * 2);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_are_set_when_nothing_is_given, set_up),
		cmocka_unit_test_setup(all_spellings_of_an_option_are_read, set_up),
		cmocka_unit_test_setup(booleans_are_read_in_any_case, set_up),
		cmocka_unit_test_setup(sizes_are_read_with_their_suffixes, set_up),
		cmocka_unit_test_setup(durations_are_read_with_their_suffixes, set_up),
		cmocka_unit_test_setup(numbers_are_read_to_their_limits, set_up),
		cmocka_unit_test_setup(bad_values_are_refused_with_option_value_and_remedy, set_up),
		cmocka_unit_test_setup(a_missing_value_is_refused, set_up),
		cmocka_unit_test_setup(no_form_takes_no_value_and_only_booleans_have_it, set_up),
		cmocka_unit_test_setup(unknown_options_are_answered_with_the_nearest_name, set_up),
		cmocka_unit_test_setup(what_is_like_nothing_gets_no_suggestion, set_up),
		cmocka_unit_test_setup(unknown_options_can_be_left_alone, set_up),
		cmocka_unit_test_setup(the_last_of_several_wins, set_up),
		cmocka_unit_test_setup(positional_arguments_are_kept_in_order, set_up),
		cmocka_unit_test_setup(nothing_after_two_dashes_is_an_option, set_up),
		cmocka_unit_test_setup(help_is_given_even_beside_mistakes, set_up),
		cmocka_unit_test_setup(the_environment_stands_between_default_and_argument, set_up),
		cmocka_unit_test_setup(an_empty_variable_counts_as_not_set, set_up),
		cmocka_unit_test_setup(a_bad_variable_is_refused_by_its_own_name, set_up),
		cmocka_unit_test_setup(an_option_is_known_with_whether_it_takes_the_next_argument,
				       set_up),
		cmocka_unit_test_setup(what_old_names_were_understood_as_is_a_line_each, set_up),
		cmocka_unit_test_setup(help_names_every_option_within_80_columns, set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
