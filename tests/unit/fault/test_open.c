/* SPDX-License-Identifier: Apache-2.0 */
/* Names and nesting, memory, the line at close, and that a seed decides everything. One thread. */
#include "tests/unit/fault/fault_rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/support/failing_env.h"

static struct wf_env *
system_env(int log_fd)
{
	struct wf_env *env = NULL;
	assert_int_equal(wf_env_system_create(WF_LOG_DEBUG, log_fd, &env), WEFT_OK);
	return env;
}

static void
names_that_are_wrong_say_what_to_write(void **state)
{
	static const struct {
		const char *name;
		enum weft_status status;
		const char *text;
	} rows[] = {
		{"fault", WEFT_INVALID, "fault+tcp, say"},
		{"fault+", WEFT_INVALID, "wraps another"},
		{"fault()", WEFT_INVALID, "wraps another"},
		{"fault(seed=1)tcp", WEFT_INVALID, "wraps another"},
		{"fault(seed=1+tcp", WEFT_INVALID, "\")\" is missing"},
		{"fault(sead=1)+tcp", WEFT_INVALID, "\"sead=1\""},
		{"fault+pigeon", WEFT_UNSUPPORTED, "\"pigeon\" is not built in"},
		{"fault+fault(cut=1)+tcp", WEFT_INVALID, "\"cut=1\""},
		{"faulty", WEFT_UNSUPPORTED, "\"faulty\" is not built in"},
	};
	(void)state;
	struct wf_failing_env counting;
	struct wf_env *env = system_env(-1);
	wf_failing_env_init(&counting, env);
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		struct wf_transport_opts opts = {.env = &counting.env};
		struct wf_transport *none = NULL;
		assert_int_equal(wf_transport_open(rows[i].name, &opts, &none), rows[i].status);
		if (strstr(weft_last_error(), rows[i].text) == NULL) {
			fail_msg("%s: %s", rows[i].name, weft_last_error());
		}
		assert_null(none);
	}
	assert_true(wf_failing_env_is_clean(&counting));
	wf_env_system_destroy(env);
}

static void
a_name_has_a_limit(void **state)
{
	(void)state;
	char name[2048] = "";
	for (int i = 0; i < 150; i++) {
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "fault()+");
	}
	(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "tcp");
	struct wf_env *env = system_env(-1);
	struct wf_transport_opts opts = {.env = env};
	struct wf_transport *none = NULL;
	assert_int_equal(wf_transport_open(name, &opts, &none), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "bytes; at most"));
	wf_env_system_destroy(env);
}

static void
too_little_memory_is_an_error_without_leaks(void **state)
{
	(void)state;
	struct wf_failing_env failing;
	struct wf_env *env = system_env(-1);
	struct wf_transport *transport = NULL;
	uint64_t nth = 1;
	wf_failing_env_init(&failing, env);
	for (; nth < 100 && transport == NULL; nth++) {
		struct wf_transport_opts opts = {.env = &failing.env};
		wf_failing_env_fail(&failing, nth, false);
		enum weft_status st = wf_transport_open("fault+fault+tcp", &opts, &transport);
		assert_int_equal(st, failing.failed > 0 ? WEFT_NOMEM : WEFT_OK);
		assert_true(transport != NULL || wf_failing_env_is_clean(&failing));
	}
	assert_in_range(nth, 6, 99);
	wf_transport_close(transport);
	assert_true(wf_failing_env_is_clean(&failing));
	wf_env_system_destroy(env);
}

/* The line at close is all that is said. */
static void
closing_says_what_was_injected(void **state)
{
	(void)state;
	int ends[2];
	char text[1024] = "";
	assert_int_equal(pipe(ends), 0);
	struct wf_env *env = system_env(ends[1]);
	struct wf_transport_opts opts = {.env = env};
	struct wf_transport *transport = NULL;
	struct wf_conn *conn = NULL;
	const struct wf_host nobody = {.name = "127.0.0.1", .port = 1};
	assert_int_equal(wf_transport_open("fault(refuse=100%)+tcp", &opts, &transport), WEFT_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wf_transport_connect(transport, &nobody, NULL, 0, NULL, &conn),
				 WEFT_OK);
	}
	wf_transport_close(transport);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, " D transport fault: injected refuse 3 delay 0 cut 0 split 0 "
				     "short 0 stall 0 as fault(refuse=100%)+tcp\n"));
	wf_env_system_destroy(env);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void
only_a_wrapper_counts_faults(void **state)
{
	(void)state;
	struct wf_env *env = system_env(-1);
	struct wf_transport_opts opts = {.env = env};
	struct wf_transport *plain = NULL, *wrapped = NULL;
	struct wf_fault_counts counts;
	struct wf_transport_info info;
	assert_int_equal(wf_transport_open("tcp", &opts, &plain), WEFT_OK);
	assert_int_equal(wf_transport_open("fault(cut=1%)+fault+tcp", &opts, &wrapped), WEFT_OK);
	assert_false(wf_fault_query(plain, &counts));
	assert_true(wf_fault_query(wrapped, &counts));
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		assert_int_equal(counts.injected[i], 0);
		assert_non_null(wf_fault_kind_name((enum wf_fault_kind)i));
	}
	wf_transport_query(wrapped, &info);
	assert_string_equal(info.name, "fault(cut=1%)+fault+tcp");
	wf_transport_close(plain);
	wf_transport_close(wrapped);
	wf_env_system_destroy(env);
}

static void
a_spec_before_the_paths_of_paths_wraps_all_of_it(void **state)
{
	static const struct {
		const char *paths, *name;
		unsigned path_count;
	} rows[] = {
		{"auto", "paths", 2},
		{"fault+auto", "fault+paths", 2},
		{"fault(cut=1%,split=2%)+fault+tcp", "fault(cut=1%,split=2%)+fault+paths", 1},
		{"fault+tcp,fault+shm", "paths", 2},
	};
	static const char *const wrong[] = {"fault(cut=1+tcp", "fault(cut=1)+auto", "fault+",
					    "fault", "fault+pigeon"};
	(void)state;
	struct wf_env *env = system_env(-1);
	struct wf_transport *transport = NULL;
	for (size_t i = 0; i < WF_ARRAY_COUNT(rows); i++) {
		struct wf_transport_opts opts = {.env = env, .paths = rows[i].paths};
		struct wf_transport_info info;
		assert_int_equal(wf_transport_open("paths", &opts, &transport), WEFT_OK);
		wf_transport_query(transport, &info);
		assert_string_equal(info.name, rows[i].name);
		assert_int_equal(info.path_count, rows[i].path_count);
		wf_transport_close(transport);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(wrong); i++) {
		struct wf_transport_opts opts = {.env = env, .paths = wrong[i]};
		assert_int_not_equal(wf_transport_open("paths", &opts, &transport), WEFT_OK);
		assert_non_null(strstr(weft_last_error(), "transport"));
	}
	wf_env_system_destroy(env);
}

/* Everything that an event says, in the order in which they come. */
static uint64_t
hash_seen(const struct node *n)
{
	uint64_t hash = n->seen_count;
	for (size_t i = 0; i < n->seen_count; i++) {
		const struct seen *s = &n->seen[i];
		hash ^= (uint64_t)s->kind * 31 + s->cookie * 7 + (uint64_t)s->status * 131 +
			s->head.request_id * 17 + s->tag;
		hash = wf_splitmix64(&hash);
	}
	return hash;
}

struct play {
	const char *spec;
	uint64_t hash, end_ns;
	unsigned kinds; /* that were injected, a bit each */
};
static struct play play; /* the body has no argument of its own */

/* A client that comes back until all of its messages have been taken. */
static bool
play_once(struct conf *t)
{
	enum { COUNT = 300 };
	behind(t, play.spec);
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	t->poll_max = 3; /* so that polls are split */
	uint64_t sent = 0;
	struct wf_conn *conn = NULL;
	for (unsigned attempt = 0; sent < COUNT && attempt < 500; attempt++) {
		conf_forget(server);
		conf_forget(client);
		CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
		      WEFT_OK);
		bool over = false, answered = false;
		while (!over && sent < COUNT) {
			conf_pump(t);
			const struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
			if (up != NULL && !answered && server->seen_count == 1) {
				enum weft_status st = wf_transport_answer(up->conn, true, NULL, 0);
				CHECK(st == WEFT_OK || st == WEFT_CLOSED);
				answered = true;
			}
			over = conf_count(client, conn, WF_EVENT_DOWN) > 0;
			bool is_up = conf_count(client, conn, WF_EVENT_UP) > 0;
			for (int i = 0; i < 4 && is_up && !over && sent < COUNT; i++) {
				sent += conf_send(conn, sent, 40) == WEFT_OK ? 1 : 0;
			}
		}
		conf_settle(t);
		play.hash = play.hash * 31 + hash_seen(server) + hash_seen(client);
	}
	CHECK(sent == COUNT);
	play.end_ns = wf_now_ns(t->env);
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		enum wf_fault_kind kind = (enum wf_fault_kind)i;
		play.kinds |= injected(client, kind) + injected(server, kind) > 0 ? 1u << i : 0;
	}
	return true;
}

#define ALL_FAULTS "refuse=20%,delay=2ms,cut=1%,split=30%,short=20%,stall=5%:2ms"

static struct play
played(unsigned seed)
{
	char spec[128];
	(void)snprintf(spec, sizeof(spec), "seed=%u,%s", seed, ALL_FAULTS);
	play = (struct play){.spec = spec};
	in_world(play_once);
	play.spec = NULL;
	return play;
}

static void
on_sim_a_seed_gives_the_same_run(void **state)
{
	(void)state;
	unsigned kinds = 0, others = 0;
	struct play before = {0};
	for (unsigned seed = 1; seed <= 8; seed++) {
		struct play first = played(seed);
		struct play again = played(seed);
		assert_true(first.hash == again.hash && first.end_ns == again.end_ns);
		others += first.hash != before.hash || first.end_ns != before.end_ns ? 1 : 0;
		before = first;
		kinds |= first.kinds;
	}
	assert_int_equal(others, 8);
	assert_int_equal(kinds, (1u << WF_FAULT_KINDS) - 1);
}

static bool
play_nested(struct conf *t)
{
	behind(t, "seed=1,delay=1ms,split=50%)+fault(seed=2,delay=1ms,short=50%,cut@msg:50");
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p;
	CHECK(server != NULL && client != NULL && conf_join(t, server, client, &p));
	for (uint64_t i = 0; i < 50; i++) {
		CHECK(conf_send_all(t, p.cc, i, 60));
	}
	CHECK(ended(t, conf_await(t, server, p.sc, WF_EVENT_DOWN), WEFT_LOST, true));
	CHECK(conf_count(server, p.sc, WF_EVENT_MSG) == 50);
	CHECK(injected(server, WF_FAULT_CUT) == 0); /* the inner one did */
	return true;
}

static void
wrappers_wrap_wrappers(void **state)
{
	(void)state;
	everywhere(play_nested);
}

/* Counts what is asked of it while messages go to and fro. */
static bool
send_without_memory(struct conf *t)
{
	struct wf_failing_env counting;
	struct wf_env *env = t->env;
	struct pair p;
	wf_failing_env_init(&counting, env);
	t->env = &counting.env;
	CHECK(faulty_pair(t, ALL_FAULTS ",seed=9,cut=0%,refuse=0%",
			  ALL_FAULTS ",seed=9,cut=0%,refuse=0%", &p));
	wf_failing_env_fail(&counting, 0, false);
	for (uint64_t i = 0; i < 300; i++) {
		CHECK(conf_send_all(t, p.cc, i, 60));
		CHECK(conf_send_all(t, p.sc, i, 2000));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 300));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_MSG, 300));
	CHECK(counting.asked == 0);
	CHECK(injected(p.server, WF_FAULT_DELAY) > 0 && injected(p.client, WF_FAULT_DELAY) > 0);
	while (t->node_count > 0) {
		conf_node_close(t, &t->node[--t->node_count]);
	}
	CHECK(wf_failing_env_is_clean(&counting));
	t->env = env;
	return true;
}

static void
between_up_and_down_no_memory_is_taken(void **state)
{
	(void)state;
	assert_true(conf_run("tcp", 1, send_without_memory));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_are_wrong_say_what_to_write),
		cmocka_unit_test(a_name_has_a_limit),
		cmocka_unit_test(too_little_memory_is_an_error_without_leaks),
		cmocka_unit_test(closing_says_what_was_injected),
		cmocka_unit_test(only_a_wrapper_counts_faults),
		cmocka_unit_test(a_spec_before_the_paths_of_paths_wraps_all_of_it),
		cmocka_unit_test(on_sim_a_seed_gives_the_same_run),
		cmocka_unit_test(wrappers_wrap_wrappers),
		cmocka_unit_test(between_up_and_down_no_memory_is_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
