/* SPDX-License-Identifier: Apache-2.0 */
/* What transport/paths remembers of a path that broke, and how long it goes from rail to rail: on
 * connections that are made up, for no network does this on demand. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/paths/paths_internal.h"

static const struct wf_backend kind = {
	.name = "verbs", .is_path = true, .path_id = WF_PATH_VERBS, .rdma = true, .may_hang = true};
static struct wf_env *env;
static struct wf_paths paths;
static struct wf_path path = {.kind = &kind};

static int
set_up(void **state)
{
	paths = (struct wf_paths){.opts = {.path_retry_ns = 1000 * WF_NS_PER_S}};
	wf_places_init(&paths.conns.places, 4, 4);
	if (wf_env_system_create(WF_LOG_ERROR, -1, &env) != WEFT_OK) {
		return -1;
	}
	paths.transport.env = env;
	return 0;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static struct wf_paths_conn
conn_to(const char *host)
{
	struct wf_paths_conn m = {.t = &paths, .path = &path, .attempt = {.to = {.port = 7164}}};
	(void)snprintf(m.attempt.to.name, sizeof(m.attempt.to.name), "%s", host);
	return m;
}

static bool
is_broken(const struct wf_paths_conn *m)
{
	return wf_paths_is_broken(&paths, &path, &m->attempt.to);
}

static void
a_breaking_is_forgiven_by_who_it_happened_to(void **state)
{
	struct wf_paths_conn first = conn_to("a");
	struct wf_paths_conn second = conn_to("a");
	wf_paths_broke(&first, "gone");
	assert_true(is_broken(&first));
	wf_paths_broke(&second, "gone again"); /* the same place */
	wf_paths_forgive(&first);
	assert_true(is_broken(&second));
	wf_paths_forgive(&second);
	assert_false(is_broken(&second));
}

/* So many that the place of the first is taken by another peer's. */
static void
a_place_that_was_taken_over_is_not_forgiven(void **state)
{
	struct wf_paths_conn first = conn_to("a");
	struct wf_paths_conn other = first;
	wf_paths_broke(&first, "gone");
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		char host[16];
		(void)snprintf(host, sizeof(host), "b%u", i);
		other = conn_to(host);
		wf_paths_broke(&other, "gone");
	}
	assert_false(is_broken(&first));
	assert_true(is_broken(&other));
	wf_paths_forgive(&first);
	for (unsigned i = 0; i < WF_PATHS_BROKEN_MAX; i++) {
		assert_non_null(paths.broken.at[i].path);
	}
}

static void
leave_alone(struct wf_conn *conn, enum wf_disconnect how)
{
	(void)conn;
	(void)how;
}

static const struct wf_transport_ops inner_ops = {.disconnect = leave_alone};
static struct wf_transport inner = {.ops = &inner_ops};
static struct wf_conn boot = {.transport = &inner};
static struct wf_conn fast = {.transport = &inner};

/* On its way over the path, and the peer has gone if there is no bootstrap any more. */
static struct wf_paths_conn
upgrading(const char *host, bool peer_is_there)
{
	struct wf_paths_conn m = conn_to(host);
	(void)snprintf(m.attempt.peer, sizeof(m.attempt.peer), "%s", host);
	m.state = WF_PATHS_UPGRADING;
	m.fast = &fast;
	m.boot = peer_is_there ? &boot : NULL;
	if (!peer_is_there) {
		wf_paths_conn_cause(&m, WEFT_UNAVAILABLE, "the peer closed without warning");
	}
	return m;
}

/* Which peer it was is said once, whoever said it first. */
static void
a_cause_names_the_peer_once(void **state)
{
	struct wf_paths_conn bare = upgrading("a:1", true);
	struct wf_paths_conn named = upgrading("a:1", true);
	wf_paths_conn_cause(&bare, WEFT_LOST, "the line broke");
	wf_paths_conn_cause(&named, WEFT_LOST, "a:1: the line broke");
	assert_string_equal(bare.end.why, "a:1: the line broke");
	assert_string_equal(named.end.why, "a:1: the line broke");
}

/* Its time is over at this end. */
static void
a_silent_path_is_to_blame_while_the_peer_is_there(void **state)
{
	struct wf_paths_conn there = upgrading("a", true);
	struct wf_paths_conn gone = upgrading("b", false);
	wf_paths_conn_expire(&there);
	wf_paths_conn_expire(&gone);
	assert_true(is_broken(&there));
	assert_false(is_broken(&gone));
	assert_int_equal(there.end.cause, WEFT_TIMEOUT);
	assert_int_equal(gone.end.cause, WEFT_UNAVAILABLE);
}

/* The path's transport says so. */
static void
a_path_that_says_that_it_is_silent_is_to_blame_while_the_peer_is_there(void **state)
{
	struct wf_paths_conn there = upgrading("a", true);
	struct wf_paths_conn gone = upgrading("b", false);
	struct wf_event event = {.kind = WF_EVENT_DOWN, .conn = &fast};
	event.down.status = WEFT_TIMEOUT;
	event.down.why = "the request was not answered";
	struct wf_event other = event;
	assert_true(wf_paths_conn_inner_down(&there, &event));
	assert_true(wf_paths_conn_inner_down(&gone, &other));
	assert_true(is_broken(&there));
	assert_false(is_broken(&gone));
	assert_int_equal(event.down.status, WEFT_TIMEOUT);
	assert_int_equal(other.down.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(other.down.why, "the peer closed without warning"));
}

/* What is said to the ticket, where the bootstrap has gone before. */
static struct wf_event
refused_without_bootstrap(struct wf_paths_conn *m, const struct wf_path_head *no)
{
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_event event = {.kind = WF_EVENT_DOWN, .conn = &fast};
	event.down.status = WEFT_REFUSED;
	event.down.why = "refused by the peer";
	event.down.blob = blob;
	event.down.blob_bytes = wf_path_encode(no, blob);
	assert_true(wf_paths_conn_inner_down(m, &event));
	return event;
}

/* It had: so it knows of no ticket any more. That there is no room is why it has gone. */
static void
what_ended_the_bootstrap_is_the_cause_unless_the_path_says_it_itself(void **state)
{
	const struct wf_path_head unknown = {.kind = WF_PATH_NO, .text = "its ticket is unknown"};
	const struct wf_path_head full = {
		.kind = WF_PATH_NO, .reason = WF_PATH_FULL, .text = "no room beside 7"};
	struct wf_paths_conn first = upgrading("a", false);
	struct wf_event down = refused_without_bootstrap(&first, &unknown);
	assert_int_equal(down.down.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(down.down.why, "the peer closed without warning"));
	struct wf_paths_conn second = upgrading("b", false);
	down = refused_without_bootstrap(&second, &full);
	assert_int_equal(down.down.status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(down.down.why, "no room beside 7"));
}

static void
no_rail_is_begun_when_the_attempt_is_over(void **state)
{
	struct wf_paths_conn m = conn_to("a");
	m.rails.count = 3;
	m.rails.next = 1; /* the first one has been tried */
	for (unsigned i = 0; i < m.rails.count; i++) {
		m.rails.offer[i] = (struct wf_path_offer){.path = WF_PATH_VERBS, .port = 1};
		(void)snprintf(m.rails.offer[i].host, sizeof(m.rails.offer[i].host), "10.9.%u.1",
			       i);
	}
	m.attempt.end_ns = wf_now_ns(env);
	assert_false(wf_paths_rails_next(&m));
	assert_int_equal(m.rails.next, 1);
	assert_int_equal(m.end.cause, WEFT_TIMEOUT);
	assert_non_null(strstr(m.end.why, "over 1 of 3 rails"));
}

/* One rail after the other, and with the last of them the path. */
static void
a_rail_that_broke_is_left_out_by_itself(void **state)
{
	struct wf_paths_conn m = conn_to("a");
	m.rails.count = 2;
	for (unsigned i = 0; i < m.rails.count; i++) {
		m.rails.offer[i] = (struct wf_path_offer){.path = WF_PATH_VERBS, .port = 1};
		(void)snprintf(m.rails.offer[i].host, sizeof(m.rails.offer[i].host), "10.9.%u.1",
			       i);
	}
	for (m.rails.idx = 0; m.rails.idx < m.rails.count; m.rails.idx++) {
		struct wf_host rail = {.port = 1};
		(void)snprintf(rail.name, sizeof(rail.name), "10.9.%u.1", m.rails.idx);
		assert_false(is_broken(&m));
		assert_false(wf_paths_is_broken(&paths, &path, &rail));
		wf_paths_broke(&m, "gone");
		assert_true(wf_paths_is_broken(&paths, &path, &rail));
	}
	assert_true(is_broken(&m));
}

static void
why_paths_were_left_out_is_told_of_each(void **state)
{
	char text[WF_PATH_TEXT_BYTES] = "";
	wf_paths_left_out(text, "shm: another host");
	assert_string_equal(text, "shm: another host");
	wf_paths_left_out(text, "verbs: no device");
	assert_string_equal(text, "shm: another host; verbs: no device");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_breaking_is_forgiven_by_who_it_happened_to),
		TEST(a_place_that_was_taken_over_is_not_forgiven),
		TEST(a_rail_that_broke_is_left_out_by_itself),
		TEST(why_paths_were_left_out_is_told_of_each),
		TEST(a_cause_names_the_peer_once),
		TEST(a_silent_path_is_to_blame_while_the_peer_is_there),
		TEST(a_path_that_says_that_it_is_silent_is_to_blame_while_the_peer_is_there),
		TEST(what_ended_the_bootstrap_is_the_cause_unless_the_path_says_it_itself),
		TEST(no_rail_is_begun_when_the_attempt_is_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
