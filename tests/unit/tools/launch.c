/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's parts that start nothing: lines, argument lists, ports, sorting options, plans,
 * and the exit codes. Thread: main. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/assert.h"
#include "base/exit_code.h"
#include "tools/launch/lines.h"
#include "tools/launch/plan.h"
#include "tools/launch/ports.h"
#include "tools/launch/program.h"
#include "tools/launch/seating.h"
#include "tools/launch/split.h"

/* ---- lines ---- */

struct seen {
	char text[8][WF_LINE_BYTES];
	unsigned count;
};

static void
take(void *arg, const char *text)
{
	struct seen *seen = arg;

	assert_true(seen->count < WF_ARRAY_COUNT(seen->text));
	snprintf(seen->text[seen->count++], WF_LINE_BYTES, "%s", text);
}

static void
lines_come_whole_however_they_arrive(void **state)
{
	static const char text[] = "first\n\nthird line\nno newline";
	static struct seen seen;
	static struct wf_lines lines;

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		memset(&seen, 0, sizeof(seen));
		memset(&lines, 0, sizeof(lines));
		for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
			size_t left = sizeof(text) - 1 - at;
			wf_lines_feed(&lines, text + at, left < piece ? left : piece, take, &seen);
		}
		assert_int_equal(seen.count, 3);
		wf_lines_end(&lines, take, &seen);
		wf_lines_end(&lines, take, &seen);
		assert_int_equal(seen.count, 4);
		assert_string_equal(seen.text[0], "first");
		assert_string_equal(seen.text[1], "");
		assert_string_equal(seen.text[2], "third line");
		assert_string_equal(seen.text[3], "no newline");
	}
}

static void
a_line_too_long_comes_in_pieces_and_a_nul_does_not_end_it(void **state)
{
	static struct seen seen;
	static struct wf_lines lines;
	static char text[2 * WF_LINE_BYTES];

	memset(text, 'x', sizeof(text));
	text[1] = '\0';
	wf_lines_feed(&lines, text, sizeof(text), take, &seen);
	wf_lines_end(&lines, take, &seen);
	assert_int_equal(seen.count, 3);
	assert_int_equal(strlen(seen.text[0]), WF_LINE_BYTES - 1);
	assert_int_equal(strlen(seen.text[1]), WF_LINE_BYTES - 1);
	assert_int_equal(strlen(seen.text[2]), 2);
	assert_int_equal(seen.text[0][1], '?');
}

/* ---- args ---- */

static void
an_argument_list_keeps_its_texts_and_says_when_it_is_full(void **state)
{
	static struct wf_args args;
	char word[] = "--port=7";

	wf_args_init(&args);
	wf_args_add(&args, "--port=%d", 7);
	wf_args_borrow(&args, word);
	assert_int_equal(args.count, 2);
	assert_string_equal(args.argv[0], args.argv[1]);
	assert_null(args.argv[2]);
	assert_int_equal(wf_args_check(&args), WEFT_OK);
	for (unsigned i = 0; i < WF_ARGS_MAX; i++) {
		wf_args_borrow(&args, word);
	}
	assert_int_equal(args.count, WF_ARGS_MAX - 1);
	assert_null(args.argv[WF_ARGS_MAX - 1]);
	assert_int_equal(wf_args_check(&args), WEFT_INVALID);

	wf_args_init(&args);
	for (unsigned i = 0; i < 20; i++) {
		wf_args_add(&args, "%01000d", 0);
	}
	assert_int_equal(args.count, WF_ARGS_TEXT_BYTES / 1001);
	assert_int_equal(wf_args_check(&args), WEFT_INVALID);
}

/* ---- ports ---- */

/* A port that the system picked, listening. */
static int
hold_port(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void
a_port_in_use_is_named_and_stepped_over(void **state)
{
	struct wf_host at = {.name = "127.0.0.1"};
	char name[16];

	int fd = hold_port(&at.port);
	snprintf(name, sizeof(name), "%u", at.port);
	assert_int_equal(wf_ports_probe(&at, 1), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), name));
	if (at.port > 65000) {
		at.port -= 2; /* room for steps above */
	}
	uint16_t held = at.port;
	assert_int_equal(wf_ports_find(&at, 3), WEFT_OK);
	assert_true(at.port > held);
	assert_int_equal((at.port - held) % 3, 0);
	close(fd);
}

/* On an address of this process alone, so that the last port is nobody else's. */
static void
there_is_no_step_above_the_last_port(void **state)
{
	struct wf_host at = {.port = 65535};
	struct sockaddr_in last = {.sin_family = AF_INET, .sin_port = htons(65535)};
	unsigned pid = (unsigned)getpid();

	snprintf(at.name, sizeof(at.name), "127.77.%u.%u", pid / 254 % 256, 1 + pid % 254);
	assert_int_equal(inet_pton(AF_INET, at.name, &last.sin_addr), 1);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&last, sizeof(last)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(wf_ports_find(&at, 1), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "no free port from "));
	assert_non_null(strstr(weft_last_error(), at.name));
	assert_int_equal(at.port, 65535);
	close(fd);
}

static void
ports_and_addresses_that_cannot_be_are_refused(void **state)
{
	struct wf_host at = {.name = "127.0.0.1", .port = 65535};

	assert_int_equal(wf_ports_probe(&at, 2), WEFT_INVALID);
	at.port = 0;
	assert_int_equal(wf_ports_probe(&at, 1), WEFT_INVALID);
	at = (struct wf_host){.name = "192.0.2.1", .port = 20000};
	assert_int_equal(wf_ports_probe(&at, 1), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "192.0.2.1"));
}

/* ---- split ---- */

static const struct wf_option own_table[] = {
	{.name = "pservers", .type = WF_OPTION_U64, .offset = 0},
};
static const struct wf_option pserver_table[] = {
	{.name = "slot_count", .type = WF_OPTION_U64, .offset = 0},
	{.name = "pin", .type = WF_OPTION_STRING, .offset = 8},
	{.name = "pservers", .type = WF_OPTION_U64, .offset = 16},
};
static const struct wf_option trainer_table[] = {
	{.name = "pin", .type = WF_OPTION_STRING, .offset = 0},
	{.name = "quick", .type = WF_OPTION_BOOL, .offset = 8},
	{.name = "slice_bytes", .type = WF_OPTION_BYTES, .offset = 16},
};

static const struct wf_option program_table[] = {
	{.name = "pin", .type = WF_OPTION_STRING, .offset = 0},
};

static enum weft_status
split(int argc, const char *const *words, struct wf_split *out)
{
	static uint64_t target[4];
	static enum wf_option_origin origin[4];
	static const char *env_name[4];
	static char text[16][32];
	static struct wf_option_file file;
	const struct wf_options any = {.program = "weft launch",
				       .target = target,
				       .origin = origin,
				       .env_name = env_name,
				       .file = &file};
	struct wf_split_tables tables = {
		.own = any, .pserver = any, .trainer = any, .program = any};
	char *argv[17] = {0};

	tables.own.table = own_table;
	tables.own.option_count = WF_ARRAY_COUNT(own_table);
	tables.pserver.table = pserver_table;
	tables.pserver.option_count = WF_ARRAY_COUNT(pserver_table);
	tables.trainer.table = trainer_table;
	tables.trainer.option_count = WF_ARRAY_COUNT(trainer_table);
	tables.program.table = program_table;
	tables.program.option_count = WF_ARRAY_COUNT(program_table);
	for (int i = 0; i < argc; i++) {
		snprintf(text[i], sizeof(text[i]), "%s", words[i]);
		argv[i] = text[i];
	}
	return wf_split_arguments(&tables, argc, argv, out);
}

static void
holds(const struct wf_args *args, const char *expected)
{
	char joined[1024] = "";
	size_t used = 0;

	for (unsigned i = 0; i < args->count; i++) {
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s",
					 i > 0 ? " " : "", args->argv[i]);
	}
	assert_string_equal(joined, expected);
}

static void
each_option_goes_to_those_who_know_it(void **state)
{
	static const char *const words[] = {
		"launch",        "--pservers=2", "--slot_count", "4",     "--pin=off", "--quick",
		"--slice-bytes", "256",          "--",           "train", "m",         "--x"};
	static struct wf_split out;

	assert_int_equal(split(WF_ARRAY_COUNT(words), words, &out), WEFT_OK);
	holds(&out.own, "launch --pservers=2");
	holds(&out.pserver, "pserver --slot_count 4 --pin=off");
	holds(&out.trainer, "train m --pin=off --quick --slice-bytes 256 --x");
	assert_true(out.has_trainer);
}

static void
the_file_of_options_goes_to_all(void **state)
{
	static const char *const apart[] = {"launch", "--config", "a", "--", "train", "m"};
	static const char *const joined[] = {"launch", "--config=a", "--quick", "--", "train", "m"};
	static const char *const slip[] = {"launch", "--confg=a", "--", "train", "m"};
	static struct wf_split out;

	assert_int_equal(split(WF_ARRAY_COUNT(apart), apart, &out), WEFT_OK);
	holds(&out.own, "launch --config a");
	holds(&out.pserver, "pserver --config a");
	holds(&out.trainer, "train m --config a");
	assert_int_equal(split(WF_ARRAY_COUNT(joined), joined, &out), WEFT_OK);
	holds(&out.own, "launch --config=a");
	holds(&out.pserver, "pserver --config=a");
	holds(&out.trainer, "train m --config=a --quick");
	assert_int_equal(split(WF_ARRAY_COUNT(slip), slip, &out), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "did you mean --config"));
}

static void
what_nobody_knows_or_stands_in_the_wrong_place_is_refused(void **state)
{
	static const char *const unknown[] = {"launch", "--slot_cuont=4", "--", "train", "m"};
	static const char *const stray[] = {"launch", "m", "--", "train", "m"};
	static const char *const no_command[] = {"launch", "--"};
	static const char *const no_model[] = {"launch", "--", "train", "--quick"};
	static const char *const given[] = {"launch", "--", "train", "m", "--trainer-id", "3"};
	static const char *const none[] = {"launch", "--pservers=1"};
	static struct wf_split out;

	assert_int_equal(split(5, unknown, &out), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "did you mean --slot_count"));
	assert_int_equal(split(5, stray, &out), WEFT_INVALID);
	assert_int_equal(split(2, no_command, &out), WEFT_INVALID);
	assert_int_equal(split(4, no_model, &out), WEFT_INVALID);
	assert_int_equal(split(6, given, &out), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--trainer-id"));
	assert_int_equal(split(2, none, &out), WEFT_OK);
	assert_false(out.has_trainer);
}

/* Whatever is behind it is its own, even what launch itself gives to `weft train`. */
static void
any_other_command_is_a_program_with_settings_of_a_session(void **state)
{
	static const char *const words[] = {"launch",  "--pin",        "off", "--slot_count=4",
					    "--",      "python3",      "a b", "--",
					    "--pin=3", "--trainer_id", "x"};
	static const char *const not_its[] = {"launch", "--quick", "--", "python3"};
	static struct wf_split out;

	assert_int_equal(split(WF_ARRAY_COUNT(words), words, &out), WEFT_OK);
	assert_true(out.has_trainer);
	holds(&out.program, "python3 a b -- --pin=3 --trainer_id x");
	assert_int_equal(out.program.count, 6);
	holds(&out.trainer, "train --pin off");
	holds(&out.pserver, "pserver --pin off --slot_count=4");
	assert_int_equal(split(WF_ARRAY_COUNT(not_its), not_its, &out), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--quick"));
	assert_int_equal(split(5, (const char *const[]){"launch", "--", "train", "m", "-q"}, &out),
			 WEFT_OK);
	assert_int_equal(out.program.count, 0);
}

/* ---- plan ---- */

static void
pservers_stand_side_by_side_and_trainers_know_them_all(void **state)
{
	static struct wf_child_spec spec[4];
	static struct wf_args pserver;
	static struct wf_args trainer;
	const struct wf_plan_opts opts = {.pservers = 2,
					  .trainers = 2,
					  .ports_num = 2,
					  .ports_num_for_sparse = 1,
					  .listen = {.name = "0.0.0.0", .port = 8000},
					  .pserver_args = &pserver,
					  .trainer_args = &trainer};

	wf_args_init(&pserver);
	wf_args_add(&pserver, "pserver");
	wf_args_init(&trainer);
	wf_args_add(&trainer, "train");
	wf_args_add(&trainer, "m");
	assert_int_equal(wf_plan_port_count(&opts), 6);
	assert_int_equal(wf_plan_job(&opts, spec), WEFT_OK);
	holds(&spec[1].args, "weft pserver --listen=0.0.0.0 --port=8003 --ports_num=2 "
			     "--ports_num_for_sparse=1 --num_gradient_servers=2 "
			     "--registrar=127.0.0.1:8000 --once");
	holds(&spec[3].args,
	      "weft train m --no-local --no-sequential --trainer_id=1 --num_gradient_servers=2 "
	      "--pservers=127.0.0.1:8000,127.0.0.1:8003 --ports_num=2 "
	      "--ports_num_for_sparse=1");
	assert_string_equal(spec[3].name, "trainer 1");
	assert_false(spec[1].is_worker);
	assert_true(spec[2].is_worker && spec[2].owns_stdout);
	assert_true(spec[3].is_worker && !spec[3].owns_stdout);
}

static void
a_program_gets_the_job_by_variables(void **state)
{
	static struct wf_child_spec spec[2];
	static struct wf_args pserver;
	static struct wf_args words;
	static struct wf_args settings;
	const struct wf_plan_opts opts = {.pservers = 1,
					  .trainers = 1,
					  .ports_num = 1,
					  .ports_num_for_sparse = 2,
					  .listen = {.name = "::", .port = 8000},
					  .pserver_args = &pserver,
					  .trainer_args = &words,
					  .program = "/bin/train",
					  .variables = &settings};

	setenv("PYTHONUNBUFFERED", "", 1);
	wf_args_init(&pserver);
	wf_args_init(&words);
	wf_args_add(&words, "train");
	wf_args_add(&words, "--x");
	wf_args_init(&settings);
	wf_plan_variable(&settings, "peer_timeout", "7s");
	wf_plan_variable(&settings, "pservers", "elsewhere"); /* overridden, as it comes first */
	assert_int_equal(wf_plan_job(&opts, spec), WEFT_OK);
	assert_null(spec[0].program);
	holds(&spec[0].variables, "WEFT_ROLE=pserver WEFT_RANK=0");
	assert_string_equal(spec[1].program, "/bin/train");
	holds(&spec[1].args, "train --x");
	assert_int_equal(wf_plan_set(&spec[1], "spin", "0"), WEFT_OK);
	holds(&spec[1].args, "train --x");
	holds(&spec[1].variables,
	      "WEFT_ROLE=trainer WEFT_RANK=0 WEFT_PEER_TIMEOUT=7s WEFT_PSERVERS=elsewhere "
	      "WEFT_TRAINER_ID=0 WEFT_NUM_GRADIENT_SERVERS=1 "
	      "WEFT_PSERVERS=[::1]:8000 WEFT_PORT=8000 WEFT_PORTS_NUM=1 "
	      "WEFT_PORTS_NUM_FOR_SPARSE=2 PADDLE_INIT_TRAINER_ID=0 "
	      "PADDLE_INIT_NUM_GRADIENT_SERVERS=1 PADDLE_INIT_PSERVERS=[::1]:8000 "
	      "PADDLE_INIT_PORT=8000 PADDLE_INIT_PORTS_NUM=1 "
	      "PADDLE_INIT_PORTS_NUM_FOR_SPARSE=2 WEFT_SPIN=0");
	assert_true(spec[1].is_worker && spec[1].owns_stdout);
	unsetenv("PYTHONUNBUFFERED");
}

/* A long value reaches the program whole; one without room is refused. */
static void
no_setting_of_a_program_is_cut(void **state)
{
	static struct wf_program_options set;
	static struct wf_args variables;
	static char option[WF_ARGS_TEXT_BYTES + 16];
	char train[] = "train";
	char *argv[] = {train, option, NULL};
	static const struct {
		size_t bytes;
		enum weft_status status;
	} cases[] = {{5000, WEFT_OK}, {WF_ARGS_TEXT_BYTES, WEFT_INVALID}};

	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		int used = snprintf(option, sizeof(option), "--pservers=");
		memset(option + used, 'a', cases[i].bytes);
		option[(size_t)used + cases[i].bytes] = '\0';
		wf_program_options_init(&set);
		assert_int_equal(wf_program_options_parse(&set, 2, argv), WEFT_OK);
		wf_args_init(&variables);
		wf_program_options_export(&set, &variables);
		assert_int_equal(wf_args_check(&variables), cases[i].status);
		if (cases[i].status == WEFT_OK) {
			assert_int_equal(strlen(variables.argv[0]),
					 strlen("WEFT_PSERVERS=") + cases[i].bytes);
		}
	}
}

static void
a_program_gets_no_empty_variable(void **state)
{
	static struct wf_program_options set;
	char train[] = "train";
	char empty[] = "--pin=";
	char given[] = "--pin=off";
	char *argv[] = {train, empty, given, NULL};

	(void)state;
	wf_program_options_init(&set);
	assert_int_equal(wf_program_options_parse(&set, 2, argv), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "--pin=: a program gets its settings by"));
	assert_int_equal(wf_program_options_parse(&set, 3, argv), WEFT_OK);
	assert_int_equal(wf_program_options_parse(&set, 1, argv), WEFT_OK);
}

/* A script with this text, which may be executed: what finding it says; "": it is found. */
static const char *
find_script(const char *text)
{
	char path[] = "/tmp/weft_scriptXXXXXX";
	char found[64];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	enum weft_status st = wf_program_find(path, found, sizeof(found));
	unlink(path);
	return st == WEFT_OK ? "" : weft_last_error();
}

static void
a_script_is_refused_by_its_interpreter_s_name(void **state)
{
	(void)state;
	assert_string_equal(find_script("#!/bin/sh\n"), "");
	assert_string_equal(find_script("#! \t/bin/sh -e\n"), "");
	assert_string_equal(find_script("#!"), "");
	assert_string_equal(find_script(""), "");
	assert_string_equal(find_script("no script"), "");
	assert_non_null(strstr(find_script("#!/no/such/python -u\nx"),
			       "names the interpreter /no/such/python, which does not exist"));
	assert_non_null(strstr(find_script("#!/etc/passwd\n"),
			       "names the interpreter /etc/passwd, which cannot be executed"));
	assert_non_null(strstr(find_script("#!/etc\n"),
			       "names the interpreter /etc, which cannot be executed"));
	assert_non_null(strstr(find_script("#!/bin/sh\r\n"),
			       "interpreter /bin/sh, which is followed by a carriage return"));
}

/* ---- seating ---- */

static void
expect_pin(const struct wf_seating *seating, uint32_t process, const char *wanted)
{
	char pin[64];

	assert_int_equal(wf_seating_pin(seating, process, pin, sizeof(pin)), WEFT_OK);
	assert_string_equal(pin, wanted);
}

static void
each_process_gets_a_list_of_its_own(void **state)
{
	const struct wf_topo_source source = {.synthetic = "node:2 core:3 pu:2"};
	struct wf_env *env = NULL;
	struct wf_topo *topo = NULL;
	struct wf_seating seating;
	char narrow[3];
	struct wf_seating_job job = {
		.pservers = 2, .dense = 1, .sparse = 1, .trainers = 1, .compute = 1, .progress = 1};

	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	assert_int_equal(wf_topo_open(env, &source, &topo), WEFT_OK);
	assert_int_equal(wf_seating_plan(topo, &job, &seating), WEFT_OK);
	assert_int_equal(seating.seat_count, 6);
	expect_pin(&seating, 0, "0,6");
	expect_pin(&seating, 1, "2,8");
	expect_pin(&seating, 2, "10,4");
	assert_int_equal(wf_seating_pin(&seating, 2, narrow, sizeof(narrow)), WEFT_INVALID);
	wf_seating_fini(&seating);

	job.trainers = 10;
	assert_int_equal(wf_seating_plan(topo, &job, &seating), WEFT_OK);
	assert_int_equal(seating.share, WF_SEAT_NOTHING);
	expect_pin(&seating, 0, "off");
	expect_pin(&seating, 11, "off");
	wf_seating_fini(&seating);

	assert_int_equal(wf_seating_plan(topo, &(struct wf_seating_job){0}, &seating), WEFT_OK);
	assert_int_equal(seating.seat_count, 0);
	wf_seating_fini(&seating);
	wf_topo_close(topo);
	wf_env_system_destroy(env);
}

/* ---- exit codes ---- */

static void
every_status_has_the_exit_code_that_scripts_rely_on(void **state)
{
	static const struct {
		enum weft_status status;
		int code;
	} expected[] = {
		{WEFT_OK, 0},           {WEFT_AGAIN, 75},    {WEFT_INVALID, 64},
		{WEFT_NOMEM, 70},       {WEFT_TIMEOUT, 69},  {WEFT_UNAVAILABLE, 69},
		{WEFT_REFUSED, 69},     {WEFT_MISMATCH, 64}, {WEFT_PROTOCOL, 69},
		{WEFT_LOST, 69},        {WEFT_ABORTED, 69},  {WEFT_CLOSED, 69},
		{WEFT_IO, 74},          {WEFT_DATA, 65},     {WEFT_PERM, 77},
		{WEFT_UNSUPPORTED, 64}, {WEFT_INTERNAL, 70}, {WEFT_ROLLED_BACK, 75},
	};

	assert_int_equal(WF_ARRAY_COUNT(expected), WEFT_STATUS_COUNT);
	for (size_t i = 0; i < WF_ARRAY_COUNT(expected); i++) {
		assert_int_equal(wf_exit_code(expected[i].status), expected[i].code);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_whole_however_they_arrive),
		cmocka_unit_test(a_line_too_long_comes_in_pieces_and_a_nul_does_not_end_it),
		cmocka_unit_test(an_argument_list_keeps_its_texts_and_says_when_it_is_full),
		cmocka_unit_test(a_port_in_use_is_named_and_stepped_over),
		cmocka_unit_test(there_is_no_step_above_the_last_port),
		cmocka_unit_test(ports_and_addresses_that_cannot_be_are_refused),
		cmocka_unit_test(each_option_goes_to_those_who_know_it),
		cmocka_unit_test(the_file_of_options_goes_to_all),
		cmocka_unit_test(what_nobody_knows_or_stands_in_the_wrong_place_is_refused),
		cmocka_unit_test(any_other_command_is_a_program_with_settings_of_a_session),
		cmocka_unit_test(a_program_gets_the_job_by_variables),
		cmocka_unit_test(no_setting_of_a_program_is_cut),
		cmocka_unit_test(a_program_gets_no_empty_variable),
		cmocka_unit_test(a_script_is_refused_by_its_interpreter_s_name),
		cmocka_unit_test(pservers_stand_side_by_side_and_trainers_know_them_all),
		cmocka_unit_test(each_process_gets_a_list_of_its_own),
		cmocka_unit_test(every_status_has_the_exit_code_that_scripts_rely_on),
	};

	return cmocka_run_group_tests_name("tools_launch", tests, NULL, NULL);
}
