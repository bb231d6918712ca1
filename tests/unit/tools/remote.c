/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a launch on several hosts that start nothing: lists of hosts, frames, and who
 * reaches whom. Thread: main. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/assert.h"
#include "tools/launch/frame.h"
#include "tools/launch/hosts.h"
#include "tools/launch/plan.h"
#include "tools/launch/reach.h"

/* ---- hosts ---- */

static struct wf_hosts hosts;

static void
a_list_of_hosts_has_users_ports_and_addresses(void **state)
{
	(void)state;
	assert_int_equal(
		wf_hosts_parse("gpu1, root@10.0.0.7:2222,[fe80::1%eth0]:22,::1,gpu1", &hosts),
		WEFT_OK);
	assert_int_equal(hosts.count, 4);
	assert_int_equal(hosts.entry_count, 5);
	assert_string_equal(hosts.host[0].at.name, "gpu1");
	assert_string_equal(hosts.host[0].user, "");
	assert_int_equal(hosts.host[0].at.port, 0);
	assert_string_equal(hosts.host[1].user, "root");
	assert_string_equal(hosts.host[1].at.name, "10.0.0.7");
	assert_int_equal(hosts.host[1].at.port, 2222);
	assert_string_equal(hosts.host[2].at.name, "fe80::1%eth0");
	assert_int_equal(hosts.host[2].at.port, 22);
	assert_string_equal(hosts.host[3].at.name, "::1");
	assert_int_equal(hosts.entry[3], 3);
	assert_int_equal(hosts.entry[4], 0); /* the first one again */
}

static void
a_user_or_a_port_makes_another_host(void **state)
{
	(void)state;
	assert_int_equal(wf_hosts_parse("a,b@a,a:23,c@a,a", &hosts), WEFT_OK);
	assert_int_equal(hosts.count, 4);
	assert_int_equal(hosts.entry[4], 0);
}

static void
what_a_shell_or_ssh_could_misread_is_no_host(void **state)
{
	static const char *const bad[] = {
		"",         "a,",      ",a",   "a,,b",     "-oProxyCommand=x",
		"a;id",     "$(id)",   "a b",  "a'b",      "`id`",
		"x@",       "@a",      "-l@a", "a;b@c",    "a@b@-c",
		"a:0x7",    "a:70000", "[::1", "user@a/b", "a\nb",
		"u u@host", "u$@host", "a&b",  "a|b",      "a>b",
	};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		if (wf_hosts_parse(bad[i], &hosts) != WEFT_INVALID) {
			fail_msg("'%s' is accepted", bad[i]);
		}
	}
	char user[2 * WF_HOSTS_USER_BYTES + 8];
	memset(user, 'u', sizeof(user));
	snprintf(user + WF_HOSTS_USER_BYTES, 3, "@a");
	assert_int_equal(wf_hosts_parse(user, &hosts), WEFT_INVALID);
}

static void
a_file_of_hosts_has_slots_and_comments(void **state)
{
	(void)state;
	assert_int_equal(wf_hosts_parse_file("machines",
					     "# all of them\r\n\n a slots=2 # two\nb\r\n\ta\n"
					     "root@[::1]:7\tslots=1",
					     &hosts),
			 WEFT_OK);
	assert_int_equal(hosts.count, 3);
	assert_int_equal(hosts.entry_count, 5);
	assert_int_equal(hosts.entry[1], 0);
	assert_int_equal(hosts.entry[2], 1);
	assert_int_equal(hosts.entry[3], 0);
	assert_int_equal(hosts.host[2].at.port, 7);
}

static void
a_mistake_in_a_file_of_hosts_has_its_line(void **state)
{
	static const char *const bad[] = {"\na slots=0",  "\na slots=",
					  "\na slots=-1", "\na slots=257",
					  "\na slots=1x", "\na max_slots=2",
					  "\na b",        "\n-a",
					  "\na slots=+1", "\na slots=99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		if (wf_hosts_parse_file("f", bad[i], &hosts) != WEFT_INVALID ||
		    strncmp(weft_last_error(), "f:2: ", 5) != 0) {
			fail_msg("%s: %s", bad[i], weft_last_error());
		}
	}
	assert_int_equal(wf_hosts_parse_file("f", "# none\n", &hosts), WEFT_INVALID);
	assert_int_equal(wf_hosts_parse_file("f", "a slots=256\nb", &hosts), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "more than 256"));
	assert_int_equal(wf_hosts_read("/nowhere/machines", &hosts), WEFT_IO);
	assert_int_equal(wf_hosts_read("/proc/self/exe", &hosts), WEFT_INVALID);
}

/* ---- frames ---- */

static struct wf_frame_writer writer;
static struct wf_frame_stream stream;

static void
receive(const void *bytes, size_t count)
{
	size_t room;
	void *to = wf_frame_room(&stream, &room);

	assert_true(count <= room);
	memcpy(to, bytes, count);
	wf_frame_received(&stream, count);
}

static void
write_process(void)
{
	struct wf_args args;

	wf_args_init(&args);
	wf_args_add(&args, "two words");
	wf_args_add(&args, "%s", "");
	wf_frame_begin(&writer, WF_FRAME_PROCESS);
	wf_frame_add_number(&writer, 0xfedcba98);
	wf_frame_add_text(&writer, "it's \"quoted\" $HOME\n");
	wf_frame_add_texts(&writer, &args);
	assert_int_equal(wf_frame_end(&writer), WEFT_OK);
}

static void
check_process(struct wf_frame *frame)
{
	struct wf_args args;

	assert_int_equal(frame->type, WF_FRAME_PROCESS);
	assert_int_equal(wf_frame_read_number(frame), 0xfedcba98);
	assert_string_equal(wf_frame_read_text(frame), "it's \"quoted\" $HOME\n");
	wf_frame_read_texts(frame, &args);
	assert_int_equal(args.count, 2);
	assert_string_equal(args.argv[0], "two words");
	assert_string_equal(args.argv[1], "");
	assert_null(args.argv[2]);
	assert_int_equal(wf_frame_check(frame), WEFT_OK);
}

static void
frames_come_whole_however_they_arrive(void **state)
{
	struct wf_frame frame;

	(void)state;
	memset(&stream, 0, sizeof(stream));
	write_process();
	for (int twice = 0; twice < 2; twice++) {
		for (size_t i = 0; i < writer.used; i++) {
			assert_int_equal(wf_frame_next(&stream, &frame), WEFT_AGAIN);
			receive(writer.bytes + i, 1);
		}
		assert_int_equal(wf_frame_next(&stream, &frame), WEFT_OK);
		check_process(&frame);
	}
	receive(writer.bytes, writer.used);
	receive(writer.bytes, writer.used);
	assert_int_equal(wf_frame_next(&stream, &frame), WEFT_OK);
	check_process(&frame);
	assert_int_equal(wf_frame_next(&stream, &frame), WEFT_OK);
	check_process(&frame);
	assert_int_equal(wf_frame_next(&stream, &frame), WEFT_AGAIN);
}

static enum weft_status
next_of(const char *bytes, size_t count)
{
	struct wf_frame frame;

	memset(&stream, 0, sizeof(stream));
	receive(bytes, count);
	return wf_frame_next(&stream, &frame);
}

static void
what_is_no_frame_is_refused_at_once(void **state)
{
	(void)state;
	assert_int_equal(next_of("W", 1), WEFT_PROTOCOL); /* of "Welcome" */
	assert_int_equal(next_of("\0", 1), WEFT_PROTOCOL);
	assert_int_equal(next_of("\1\0\0\0\0\0\0", 7), WEFT_AGAIN);
	assert_int_equal(next_of("\1\0\0\0\0\0\0\0", 8), WEFT_OK);
	assert_int_equal(next_of("\1\1\0\0\0\0\0\0", 8), WEFT_PROTOCOL);
	assert_int_equal(next_of("\1\0\0\1\0\0\0\0", 8), WEFT_PROTOCOL);
	assert_int_equal(next_of("\1\0\0\0\0\0\4\0", 8), WEFT_AGAIN); /* the longest */
	assert_int_equal(next_of("\1\0\0\0\1\0\4\0", 8), WEFT_PROTOCOL);
	assert_int_equal(next_of("\1\0\0\0\xff\xff\xff\xff", 8), WEFT_PROTOCOL);
	const char after[] = {WF_FRAME_TYPE_END, 0};
	assert_int_equal(next_of(after, 1), WEFT_PROTOCOL);
}

/* A frame whose body has these bytes; its memory ends where they do. */
static struct wf_frame
frame_of(uint8_t *body, size_t bytes)
{
	return (struct wf_frame){.type = WF_FRAME_PROCESS, .body = body, .left = bytes};
}

static void
a_body_that_lies_about_its_lengths_gives_nothing(void **state)
{
	static const struct {
		const char *bytes;
		size_t count;
	} texts[] = {
		{"", 0},
		{"\1\0\0", 3},
		{"\3\0\0\0abc", 7},    /* no NUL behind it */
		{"\4\0\0\0abc\0", 8},  /* longer than what is there */
		{"\3\0\0\0a\0c\0", 8}, /* a NUL within */
		{"\3\0\0\0abcd", 8},   /* something else at its end */
		{"\xff\xff\xff\xff"
		 "a",
		 5}, /* its length and a NUL wrap around */
	};
	struct wf_args args;

	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(texts); i++) {
		uint8_t *body = malloc(texts[i].count + 1);
		assert_non_null(body);
		memcpy(body, texts[i].bytes, texts[i].count);
		struct wf_frame frame = frame_of(body, texts[i].count);
		assert_string_equal(wf_frame_read_text(&frame), "");
		assert_true(frame.bad);
		assert_int_equal(wf_frame_read_number(&frame), 0);
		assert_int_equal(wf_frame_check(&frame), WEFT_PROTOCOL);
		free(body);
	}
	uint8_t many[] = {WF_ARGS_MAX & 255, WF_ARGS_MAX >> 8, 0, 0};
	struct wf_frame frame = frame_of(many, sizeof(many));
	wf_frame_read_texts(&frame, &args);
	assert_int_equal(wf_frame_check(&frame), WEFT_PROTOCOL);
	uint8_t more[] = {2, 0, 0, 0, 0, 0, 0, 0, 0};
	frame = frame_of(more, sizeof(more)); /* one of two texts */
	wf_frame_read_texts(&frame, &args);
	assert_int_equal(wf_frame_check(&frame), WEFT_PROTOCOL);
	frame = frame_of(more, sizeof(more)); /* bytes that nobody has asked for */
	assert_int_equal(wf_frame_read_number(&frame), 2);
	assert_int_equal(wf_frame_check(&frame), WEFT_PROTOCOL);
}

static void
a_frame_that_is_too_long_is_not_sent(void **state)
{
	static char text[WF_FRAME_BODY_BYTES + 1];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	wf_frame_begin(&writer, WF_FRAME_PROCESS);
	wf_frame_add_text(&writer, text);
	assert_int_equal(wf_frame_end(&writer), WEFT_INVALID);
	wf_frame_begin(&writer, WF_FRAME_DATA);
	wf_frame_add_bytes(&writer, text, WF_FRAME_BODY_BYTES);
	assert_int_equal(wf_frame_end(&writer), WEFT_OK);
	wf_frame_add_bytes(&writer, text, 1);
	assert_int_equal(wf_frame_end(&writer), WEFT_INVALID);
}

/* ---- who reaches whom ---- */

static struct wf_env *env;

/* A port of 127.0.0.1 that nobody listens on, and others after it. */
static uint16_t
free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void
a_port_that_is_reached_and_one_that_is_not_are_told_apart(void **state)
{
	static struct wf_reach reach;
	struct wf_host all[3];
	struct wf_reach_result found;

	(void)state;
	uint16_t port = free_port();
	assert_int_equal(wf_reach_listen(&reach, "192.0.2.1 127.0.0.1", port, port, 1, &all[0]),
			 WEFT_OK);
	assert_string_equal(all[0].name, "127.0.0.1"); /* the first is none of this host */
	assert_int_equal(all[0].port, port);
	all[1] = all[0];
	all[2] = all[0];
	uint64_t deadline_ns = wf_now_ns(env) + 20 * WF_NS_PER_S;
	assert_int_equal(wf_reach_connect(env, all, 2, deadline_ns, &found), WEFT_OK);
	assert_int_equal(found.failed, 2);
	all[1].port = free_port();
	assert_int_equal(wf_reach_connect(env, all, 3, deadline_ns, &found), WEFT_OK);
	assert_int_equal(found.failed, 1);
	assert_non_null(strstr(found.why, "refused"));
	snprintf(all[2].name, sizeof(all[2].name), "no.address");
	all[1] = all[0];
	assert_int_equal(wf_reach_connect(env, all, 3, deadline_ns, &found), WEFT_OK);
	assert_int_equal(found.failed, 2);
	wf_reach_close(&reach);
	assert_int_equal(wf_reach_connect(env, all, 1, deadline_ns, &found), WEFT_OK);
	assert_int_equal(found.failed, 0);
}

static void
a_want_of_descriptors_is_named_as_such(void **state)
{
	static struct wf_reach reach;
	struct wf_reach_result found;
	struct wf_host all[64];
	struct rlimit before;

	(void)state;
	uint16_t port = free_port();
	for (size_t i = 0; i < WF_ARRAY_COUNT(all); i++) {
		snprintf(all[i].name, sizeof(all[i].name), "127.0.0.1");
		all[i].port = port;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	const struct rlimit few = {32, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(wf_reach_listen(&reach, "127.0.0.1", 20000, UINT16_MAX, 64, &all[0]),
			 WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "64 ports need as many descriptors"));
	assert_non_null(strstr(weft_last_error(), "have 32 ('ulimit -n'"));
	assert_int_equal(reach.count, 0);
	assert_int_equal(wf_reach_listen(&reach, "127.0.0.1", port, port, 1, &all[0]), WEFT_OK);
	assert_int_equal(wf_reach_connect(env, all, 64, wf_now_ns(env) + 20 * WF_NS_PER_S, &found),
			 WEFT_IO);
	assert_non_null(strstr(weft_last_error(), "ulimit -n"));
	wf_reach_close(&reach);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void
a_busy_port_is_stepped_over_within_the_range(void **state)
{
	static struct wf_reach busy, reach;
	struct wf_host at;

	(void)state;
	uint16_t port = free_port();
	assert_int_equal(wf_reach_listen(&busy, "127.0.0.1", port, port, 1, &at), WEFT_OK);
	assert_int_equal(wf_reach_listen(&reach, "127.0.0.1", port, port, 1, &at),
			 WEFT_UNAVAILABLE);
	assert_int_equal(reach.count, 0);
	assert_int_equal(wf_reach_listen(&reach, "127.0.0.1", port, (uint16_t)(port + 40), 2, &at),
			 WEFT_OK);
	assert_true(at.port > port);
	assert_int_equal(reach.count, 2);
	assert_int_equal(wf_reach_listen(&reach, "192.0.2.1 nonsense", port, port, 1, &at),
			 WEFT_INVALID);
	assert_int_equal(wf_reach_listen(&reach, "127.0.0.1", port, port, 0, &at), WEFT_INVALID);
	assert_int_equal(
		wf_reach_listen(&reach, "127.0.0.1", port, port, WF_REACH_LISTENERS_MAX, &at),
		WEFT_INVALID);
	wf_reach_close(&reach);
	wf_reach_close(&busy);
}

static void
loopback_is_no_address_for_other_hosts(void **state)
{
	char out[64];

	(void)state;
	assert_true(wf_reach_is_loopback("127.0.1.1"));
	assert_true(wf_reach_is_loopback("::1"));
	assert_true(wf_reach_is_loopback("::ffff:127.0.0.1"));
	assert_false(wf_reach_is_loopback("10.0.0.1"));
	assert_false(wf_reach_is_loopback("2001:db8::1"));
	assert_false(wf_reach_is_loopback("localhost"));
	assert_int_equal(wf_reach_resolve("192.0.2.7", out, sizeof(out)), WEFT_OK);
	assert_string_equal(out, "192.0.2.7");
	assert_int_equal(wf_reach_resolve("127.0.0.1", out, sizeof(out)), WEFT_UNAVAILABLE);
	assert_int_equal(wf_reach_resolve("no host", out, sizeof(out)), WEFT_UNAVAILABLE);
}

/* ---- the plan ---- */

static bool
has_argument(const struct wf_args *args, const char *text)
{
	for (unsigned i = 0; i < args->count; i++) {
		if (strcmp(args->argv[i], text) == 0) {
			return true;
		}
	}
	return false;
}

static void
each_pserver_listens_where_its_host_is_reached(void **state)
{
	static struct wf_child_spec spec[3];
	const struct wf_host at[] = {{"10.0.0.1", 7000}, {"2001:db8::1", 7002}};
	struct wf_args none;

	(void)state;
	wf_args_init(&none);
	const struct wf_plan_opts opts = {.pservers = 2,
					  .trainers = 1,
					  .ports_num = 1,
					  .ports_num_for_sparse = 1,
					  .pserver_at = at,
					  .pserver_args = &none,
					  .trainer_args = &none};
	assert_int_equal(wf_plan_job(&opts, spec), WEFT_OK);
	assert_true(has_argument(&spec[0].args, "--listen=10.0.0.1"));
	assert_true(has_argument(&spec[0].args, "--port=7000"));
	assert_true(has_argument(&spec[1].args, "--listen=2001:db8::1"));
	assert_true(has_argument(&spec[1].args, "--port=7002"));
	assert_true(has_argument(&spec[2].args, "--pservers=10.0.0.1:7000,[2001:db8::1]:7002"));
}

static void
a_path_that_a_shell_would_change_is_refused(void **state)
{
	static const char *const bad[] = {"",        "-x",     "a b", "$HOME/weft",
					  "weft;id", "~/weft", "a'b"};

	(void)state;
	assert_int_equal(wf_hosts_check_path("/opt/weft-1.0/bin/weft"), WEFT_OK);
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		assert_int_equal(wf_hosts_check_path(bad[i]), WEFT_INVALID);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_hosts_has_users_ports_and_addresses),
		cmocka_unit_test(a_user_or_a_port_makes_another_host),
		cmocka_unit_test(what_a_shell_or_ssh_could_misread_is_no_host),
		cmocka_unit_test(a_file_of_hosts_has_slots_and_comments),
		cmocka_unit_test(a_mistake_in_a_file_of_hosts_has_its_line),
		cmocka_unit_test(frames_come_whole_however_they_arrive),
		cmocka_unit_test(what_is_no_frame_is_refused_at_once),
		cmocka_unit_test(a_body_that_lies_about_its_lengths_gives_nothing),
		cmocka_unit_test(a_frame_that_is_too_long_is_not_sent),
		cmocka_unit_test(a_port_that_is_reached_and_one_that_is_not_are_told_apart),
		cmocka_unit_test(a_want_of_descriptors_is_named_as_such),
		cmocka_unit_test(a_busy_port_is_stepped_over_within_the_range),
		cmocka_unit_test(loopback_is_no_address_for_other_hosts),
		cmocka_unit_test(each_pserver_listens_where_its_host_is_reached),
		cmocka_unit_test(a_path_that_a_shell_would_change_is_refused),
	};

	if (wf_env_system_create(WF_LOG_INFO, -1, &env) != WEFT_OK) {
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
