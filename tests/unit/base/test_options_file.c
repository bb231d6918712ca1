/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the file of --config: what is read, which value wins, each refusal by line, and that the
 * output of --print_options is such a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/options.h"

struct values {
	bool once;
	uint64_t ports_num;
	uint64_t port;
	double rate;
	uint64_t slice_bytes;
	uint64_t timeout_ns;
	const char *listen;
	const char *transport;
};

static const struct wf_option table[] = {
	{.name = "once", .type = WF_OPTION_BOOL, .offset = offsetof(struct values, once)},
	{.name = "ports_num",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, ports_num),
	 .initial = "1",
	 .min = 1,
	 .max = 64,
	 .means = "dense lanes per pserver"},
	{.name = "port",
	 .type = WF_OPTION_U64,
	 .offset = offsetof(struct values, port),
	 .initial = "7164",
	 .max = 65535},
	{.name = "rate", .type = WF_OPTION_F64, .offset = offsetof(struct values, rate)},
	{.name = "slice-bytes",
	 .type = WF_OPTION_BYTES,
	 .offset = offsetof(struct values, slice_bytes),
	 .initial = "256KiB"},
	{.name = "timeout",
	 .type = WF_OPTION_DURATION,
	 .offset = offsetof(struct values, timeout_ns),
	 .initial = "10s"},
	{.name = "listen", .type = WF_OPTION_STRING, .offset = offsetof(struct values, listen)},
	{.name = "transport",
	 .type = WF_OPTION_CHOICE,
	 .offset = offsetof(struct values, transport),
	 .initial = "auto",
	 .choices = "auto|tcp|sim"},
};

#define COUNT ((unsigned)WF_ARRAY_COUNT(table))

static struct values values;
static enum wf_option_origin origin[COUNT];
static const char *env_name[COUNT];
static struct wf_option_file file;
static struct wf_options options;
static char path[] = "/tmp/weft_options_XXXXXX";
static char argument[64];

static int
set_up(void **state)
{
	(void)clearenv();
	memset(&values, 0xff, sizeof(values));
	options = (struct wf_options){
		.table = table,
		.option_count = COUNT,
		.program = "weft pserver",
		.target = &values,
		.origin = origin,
		.env_name = env_name,
		.file = &file,
	};
	return 0;
}

static int
make_file(void **state)
{
	int fd = mkstemp(path);
	if (fd < 0) {
		return -1;
	}
	(void)snprintf(argument, sizeof(argument), "--config=%s", path);
	return close(fd);
}

static int
remove_file(void **state)
{
	return unlink(path);
}

static void
write_bytes(const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(close(fd), 0);
}

/* Parse up to 3 arguments behind --config; NULL ends them. */
static enum weft_status
parse(const char *text, char *a, char *b)
{
	char program[] = "weft";
	char *argv[] = {program, argument, a, b, NULL};
	int argc = 0;
	while (argv[argc] != NULL) {
		argc++;
	}
	write_bytes(text, strlen(text));
	return wf_options_parse(&options, argc, argv);
}

#define ARG(text) ((char[]){text})

/* "weft pserver: FILE:" and the rest. */
static void
check_error(const char *rest)
{
	char wanted[WF_ERROR_BYTES];
	(void)snprintf(wanted, sizeof(wanted), "weft pserver: %s:%s", path, rest);
	assert_string_equal(weft_last_error(), wanted);
}

static void
every_type_is_read_from_a_file(void **state)
{
	assert_int_equal(parse("# a job\n"
			       "once = Yes\r\n"
			       "\n"
			       "  ports-num=2   # behind a blank\n"
			       "\tport =\t65535\t\n"
			       "rate = 1e-7\n"
			       "slice_bytes = 64KiB\n"
			       "timeout = 1.5s\n"
			       "listen = \"a # b \" # and a comment\n"
			       "transport = tcp", /* no newline at the end */
			       NULL, NULL),
			 WEFT_OK);
	assert_true(values.once);
	assert_int_equal(values.ports_num, 2);
	assert_int_equal(values.port, 65535);
	assert_true(values.rate >= 1e-7 && values.rate <= 1e-7);
	assert_int_equal(values.slice_bytes, 65536);
	assert_int_equal(values.timeout_ns, 1500000000);
	assert_string_equal(values.listen, "a # b ");
	assert_string_equal(values.transport, "tcp");
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(origin[i], WF_ORIGIN_FILE);
	}
	assert_int_equal(file.line[0], 2);
	assert_int_equal(file.line[1], 4);
	assert_int_equal(file.line[COUNT - 1], 10);
	assert_string_equal(options.config, path);
}

static void
values_without_quotes_are_taken_as_they_stand(void **state)
{
	assert_int_equal(parse("listen = a#b = \"c\" [d]\n", NULL, NULL), WEFT_OK);
	assert_string_equal(values.listen, "a#b = \"c\" [d]");
	assert_int_equal(parse("listen =\n", NULL, NULL), WEFT_OK);
	assert_string_equal(values.listen, "");
	assert_int_equal(parse("listen = # nothing\n", NULL, NULL), WEFT_OK);
	assert_string_equal(values.listen, "");
	assert_int_equal(parse("listen = \"\"\n", NULL, NULL), WEFT_OK);
	assert_string_equal(values.listen, "");
	assert_int_equal(parse("\xef\xbb\xbflisten = \xc3\xa9\n", NULL, NULL), WEFT_OK);
	assert_string_equal(values.listen, "\xc3\xa9");
}

static void
arguments_win_over_the_environment_and_that_over_the_file(void **state)
{
	const char *text = "port = 1\nports_num = 2\nrate = 3\n";
	assert_int_equal(setenv("PADDLE_INIT_PORTS_NUM", "4", 1), 0);
	assert_int_equal(setenv("WEFT_RATE", "5", 1), 0);
	assert_int_equal(parse(text, ARG("--rate=6"), NULL), WEFT_OK);
	assert_int_equal(values.port, 1);
	assert_int_equal(values.ports_num, 4);
	assert_true(values.rate >= 6 && values.rate <= 6);
	assert_int_equal(wf_options_origin(&options, "port"), WF_ORIGIN_FILE);
	assert_int_equal(wf_options_origin(&options, "ports_num"), WF_ORIGIN_ENV);
	assert_int_equal(wf_options_origin(&options, "rate"), WF_ORIGIN_ARGUMENT);
	assert_int_equal(wf_options_origin(&options, "listen"), WF_ORIGIN_DEFAULT);
}

static void
the_environment_may_name_the_file_and_an_argument_another(void **state)
{
	char *none[] = {ARG("weft"), NULL};
	char *empty[] = {ARG("weft"), ARG("--config="), NULL};
	char *apart[] = {ARG("weft"), ARG("--listen"), ARG("--config"), ARG("--config"), path,
			 NULL};
	write_bytes("port = 9\n", 9);
	assert_int_equal(setenv("WEFT_CONFIG", path, 1), 0);
	assert_int_equal(wf_options_parse(&options, 1, none), WEFT_OK);
	assert_int_equal(values.port, 9);
	assert_int_equal(wf_options_parse(&options, 2, empty), WEFT_OK);
	assert_int_equal(values.port, 7164);
	assert_int_equal(file.line[2], 0);
	(void)clearenv();
	/* "--listen --config" is a forgotten value, not a file that is called so. */
	assert_int_equal(wf_options_parse(&options, 5, apart), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--listen needs a value"));
	assert_int_equal(values.port, 9);
	assert_int_equal(setenv("PADDLE_INIT_CONFIG", path, 1), 0);
	assert_int_equal(wf_options_parse(&options, 1, none), WEFT_OK);
	assert_int_equal(values.port, 9);
}

static void
sections_are_for_the_commands_that_they_name(void **state)
{
	const char *text = "port = 1\n"
			   "[train]\n"
			   "port = 2\nno_option_of_pserver = 3\n"
			   "[ train\tpserver ] # both\n"
			   "port = 4\n"
			   "[launch]\n"
			   "port = 5\n";
	assert_int_equal(parse(text, NULL, NULL), WEFT_OK);
	assert_int_equal(values.port, 4);
	assert_int_equal(file.line[2], 6);
	options.program = "weft demo";
	assert_int_equal(parse(text, NULL, NULL), WEFT_OK);
	assert_int_equal(values.port, 1);
	options.program = "weft launch";
	assert_int_equal(parse(text, NULL, NULL), WEFT_OK);
	assert_int_equal(values.port, 5);
}

static void
mistakes_are_refused_by_file_and_line(void **state)
{
	static const struct {
		const char *text;
		const char *error; /* behind "weft pserver: FILE:" */
	} cases[] = {
		{"\n\nports_num = many\n",
		 "3: ports_num = many: must be a whole number, from 1 to 64"},
		{"ports_num =", "1: ports_num = : must be a whole number, from 1 to 64"},
		{"[train pserver]\nprot = 1\n",
		 "2: unknown option prot; did you mean port? (--help lists all)"},
		{"num_passes = 1\n",
		 "1: unknown option num_passes (--help lists all); what is for another command "
		 "goes below the others, under its [COMMAND]"},
		{"[pserver]\n--port = 1\n",
		 "2: unknown option --port; did you mean port? (--help lists all)"},
		{"[pserver]\nzzzzz = 1\n", "2: unknown option zzzzz (--help lists all)"},
		{"config = other\n", "1: config is for the command line, not for a file"},
		{"print-options = 1\n", "1: print-options is for the command line, not for a file"},
		{"port = 1\n\nport = 2\n", "3: port is on line 1 already; keep one"},
		{"port = 1\n[pserver]\nport = 2\nport = 3\n",
		 "4: port is on line 3 already; keep one"},
		{"once\n", "1: \"once\": write name = value, [COMMAND] or # comment"},
		{"= 1\n", "1: \"\": write name = value, [COMMAND] or # comment"},
		{"a b = 1\n", "1: \"a b\": write name = value, [COMMAND] or # comment"},
		{"port 1 # = 2\n", "1: \"port 1 #\": write name = value, [COMMAND] or # comment"},
		{"listen = \"a\n", "1: listen: a value that begins with \" ends at the next one, "
				   "and only a comment may follow"},
		{"listen = \"a\"b\n", "1: listen: a value that begins with \" ends at the next "
				      "one, and only a comment may follow"},
		{"listen = \"a\"#b\n", "1: listen: a value that begins with \" ends at the next "
				       "one, and only a comment may follow"},
		{"[pserver\n", "1: [pserver: a section begins with one line, [COMMAND]"},
		{"[train] x\n", "1: [train] x: a section begins with one line, [COMMAND]"},
		{"port = 1 \x01\n", "1: byte 0x01 in column 10: a file of options is plain text"},
		{"\nlisten = \x7f\n", "2: byte 0x7f in column 10: a file of options is plain text"},
		{"port = 1\r\r\n", "1: byte 0x0d in column 9: a file of options is plain text"},
	};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(parse(cases[i].text, NULL, NULL), WEFT_INVALID);
		check_error(cases[i].error);
	}
	static const char *const heads[] = {"[trian]\n", "[]\n", "[train trian]\n", "[ ]\n"};
	for (unsigned i = 0; i < WF_ARRAY_COUNT(heads); i++) {
		assert_int_equal(parse(heads[i], NULL, NULL), WEFT_INVALID);
		assert_non_null(strstr(weft_last_error(), ":1: there is no section ["));
		assert_non_null(strstr(weft_last_error(), " pserver train launch "));
	}
}

static void
a_nul_byte_is_refused_like_any_control_character(void **state)
{
	char *argv[] = {ARG("weft"), argument, NULL};
	write_bytes("port\0 = 1\n", 10);
	assert_int_equal(wf_options_parse(&options, 2, argv), WEFT_INVALID);
	check_error("1: byte 0x00 in column 5: a file of options is plain text");
}

static void
a_file_is_read_up_to_its_limit_and_not_beyond(void **state)
{
	static char text[WF_OPTION_FILE_BYTES + 1];
	char *argv[] = {ARG("weft"), argument, NULL};
	memset(text, ' ', sizeof(text));
	memcpy(text, "port = 8\n#", 10);
	write_bytes(text, sizeof(text) - 1);
	assert_int_equal(wf_options_parse(&options, 2, argv), WEFT_OK);
	assert_int_equal(values.port, 8);
	write_bytes(text, sizeof(text));
	assert_int_equal(wf_options_parse(&options, 2, argv), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), ": longer than 16384 bytes"));
	memset(text, '\n', sizeof(text)); /* as many lines as there can be */
	memcpy(text + sizeof(text) - 7, "port=3", 6);
	write_bytes(text, sizeof(text) - 1);
	assert_int_equal(wf_options_parse(&options, 2, argv), WEFT_OK);
	assert_int_equal(file.line[2], WF_OPTION_FILE_BYTES - 5);
}

static void
what_cannot_be_read_is_refused_by_its_name(void **state)
{
	char *folder[] = {ARG("weft"), ARG("--config=/"), NULL};
	char *missing[] = {ARG("weft"), ARG("--config=/no/such/file"), NULL};
	char *python[] = {ARG("weft"), ARG("--config=/no/such/trainer_config.py"), NULL};
	assert_int_equal(wf_options_parse(&options, 2, folder), WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "weft pserver: --config=/: "));
	assert_int_equal(wf_options_parse(&options, 2, missing), WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "--config=/no/such/file: No such file"));
	assert_int_equal(wf_options_parse(&options, 2, python), WEFT_UNSUPPORTED);
	assert_non_null(strstr(weft_last_error(), "trainer_config.py: a model written in Python"));
}

static void
without_memory_for_a_file_there_is_no_such_option(void **state)
{
	char *argv[] = {ARG("weft"), argument, NULL};
	char *confg[] = {ARG("weft"), ARG("--confg=x"), NULL};
	bool next = false;
	assert_true(wf_options_knows(&options, "--config", &next));
	assert_true(next);
	assert_true(wf_options_knows(&options, "--print-options", &next));
	assert_false(next);
	assert_int_equal(wf_options_parse(&options, 2, confg), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "did you mean --config?"));
	options.file = NULL;
	assert_int_equal(setenv("WEFT_CONFIG", "/no/such/file", 1), 0);
	assert_int_equal(wf_options_parse(&options, 2, argv), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "unknown option --config"));
	assert_false(wf_options_knows(&options, "--config", &next));
}

static void
the_understood_line_names_file_and_line(void **state)
{
	char line[256];
	char wanted[256];
	assert_int_equal(parse("\nports_num = 2\n", NULL, NULL), WEFT_OK);
	assert_int_equal(wf_options_understood(&options, line, sizeof(line)), 1);
	(void)snprintf(wanted, sizeof(wanted), "ports_num=2 (%s:2) dense lanes per pserver", path);
	assert_string_equal(line, wanted);
}

static char *
print(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	wf_options_print(&options, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
what_is_printed_says_where_each_value_came_from(void **state)
{
	char wanted[256];
	assert_int_equal(setenv("WEFT_PORT", "7", 1), 0);
	assert_int_equal(parse("listen = \" a#\"\n", ARG("--rate=0.1"), ARG("--print_options")),
			 WEFT_OK);
	assert_true(options.print_wanted);
	char *text = print();
	assert_int_equal(strncmp(text, "# weft pserver\n[pserver]\n", 25), 0);
	assert_non_null(
		strstr(text, "\nport = 7                                        # WEFT_PORT\n"));
	assert_non_null(
		strstr(text, "\nrate = 0.1                                      # argument\n"));
	assert_non_null(
		strstr(text, "\n# slice-bytes = 256KiB                          # default\n"));
	(void)snprintf(wanted, sizeof(wanted),
		       "\nlisten = \" a#\"                                  # %s:1\n", path);
	assert_non_null(strstr(text, wanted));
	free(text);
}

static void
what_is_printed_is_a_file_that_gives_the_same_values(void **state)
{
	assert_int_equal(setenv("WEFT_LISTEN", "\"x", 1), 0);
	assert_int_equal(setenv("WEFT_RATE", "0.12345678901234567", 1), 0);
	assert_int_equal(setenv("WEFT_SLICE_BYTES", "3K", 1), 0);
	assert_int_equal(setenv("WEFT_TIMEOUT", "1234us", 1), 0);
	assert_int_equal(setenv("WEFT_ONCE", "on", 1), 0);
	assert_int_equal(setenv("WEFT_TRANSPORT", "sim", 1), 0);
	assert_int_equal(parse("", NULL, NULL), WEFT_OK);
	/* No file can hold this one: it is left out, with a reason. */
	char *text = print();
	assert_non_null(strstr(text, "\n# listen = a value that needs quotes and has one"));
	free(text);
	assert_int_equal(setenv("WEFT_LISTEN", "a\nport = 1", 1), 0);
	assert_int_equal(parse("", NULL, NULL), WEFT_OK);
	text = print();
	assert_non_null(strstr(text, "\n# listen = a value with control characters"));
	free(text);
	assert_int_equal(setenv("WEFT_LISTEN", " [a]#", 1), 0);
	assert_int_equal(parse("", NULL, NULL), WEFT_OK);
	const struct values before = values;
	char listen[16];
	(void)snprintf(listen, sizeof(listen), "%s", values.listen);
	text = print();
	(void)clearenv();
	assert_int_equal(parse(text, NULL, NULL), WEFT_OK);
	free(text);
	assert_string_equal(values.listen, listen);
	assert_string_equal(values.transport, "sim");
	assert_int_equal(memcmp(&values, &before, offsetof(struct values, listen)), 0);
}

static void
help_tells_of_the_file(void **state)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	wf_options_print_help(&options, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "\n  --config=FILE\n"));
	assert_non_null(strstr(text, "\n  --print_options\n"));
	for (const char *at = text; *at != '\0'; at++) {
		size_t columns = strcspn(at, "\n");
		assert_true(columns <= 80);
		at += columns;
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_type_is_read_from_a_file, set_up),
		cmocka_unit_test_setup(values_without_quotes_are_taken_as_they_stand, set_up),
		cmocka_unit_test_setup(arguments_win_over_the_environment_and_that_over_the_file,
				       set_up),
		cmocka_unit_test_setup(the_environment_may_name_the_file_and_an_argument_another,
				       set_up),
		cmocka_unit_test_setup(sections_are_for_the_commands_that_they_name, set_up),
		cmocka_unit_test_setup(mistakes_are_refused_by_file_and_line, set_up),
		cmocka_unit_test_setup(a_nul_byte_is_refused_like_any_control_character, set_up),
		cmocka_unit_test_setup(a_file_is_read_up_to_its_limit_and_not_beyond, set_up),
		cmocka_unit_test_setup(what_cannot_be_read_is_refused_by_its_name, set_up),
		cmocka_unit_test_setup(without_memory_for_a_file_there_is_no_such_option, set_up),
		cmocka_unit_test_setup(the_understood_line_names_file_and_line, set_up),
		cmocka_unit_test_setup(what_is_printed_says_where_each_value_came_from, set_up),
		cmocka_unit_test_setup(what_is_printed_is_a_file_that_gives_the_same_values,
				       set_up),
		cmocka_unit_test_setup(help_tells_of_the_file, set_up),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
