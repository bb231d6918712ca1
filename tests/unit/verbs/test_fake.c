/* SPDX-License-Identifier: Apache-2.0 */
/* The backend on a device that is none (fake.h): what it asks of the libraries. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/double/verbs/fake.h"
#include "tests/conformance/conformance.h"
#include "transport/verbs/verbs_internal.h"

#define ROUNDS 64u

static const struct wf_env_ops *system_ops; /* where a test drives the clock; else NULL */

static bool
run(bool (*body)(struct conf *t))
{
	static struct conf conf;
	conf = (struct conf){.transport = "verbs", .host = "127.0.0.1", .seed = 1, .poll_max = 64};
	fake_seen = (struct fake_seen){.vector = -1};
	if (wf_env_system_create(WF_LOG_ERROR, 2, &conf.env) != WEFT_OK) {
		return false;
	}
	bool passed = body(&conf) && !conf.failed;
	while (conf.node_count > 0) {
		conf_node_close(&conf, &conf.node[--conf.node_count]);
	}
	if (system_ops != NULL) {
		conf.env->ops = system_ops;
		system_ops = NULL;
	}
	wf_env_system_destroy(conf.env);
	return passed;
}

static bool
join(struct conf *t, const char *settings, struct pair *p)
{
	t->verbs = settings;
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	return conf_join(t, server, client, p);
}

/* ROUNDS PUTs of 8 bytes and as many SENDs to and fro, one at a time. */
static bool
ping_pong(struct conf *t, const struct pair *p)
{
	struct wf_grant_key key[2];
	CHECK(conf_grant_place(p->server, p->sc, 0, 4096, &key[0]));
	CHECK(conf_grant_place(p->client, p->cc, 0, 4096, &key[1]));
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct wf_op there = conf_put_op(p->client, &key[0], 0, 8, i);
		struct wf_op back = conf_put_op(p->server, &key[1], 0, 8, i);
		there.tag = i + 1; /* the immediate */
		back.tag = i + 1;
		CHECK(conf_post_all(t, p->cc, &there));
		CHECK(conf_await(t, p->server, p->sc, WF_EVENT_PUT) != NULL);
		CHECK(conf_post_all(t, p->sc, &back));
		CHECK(conf_await(t, p->client, p->cc, WF_EVENT_PUT) != NULL);
	}
	struct wf_head head = {.service = WF_SERVICE_CONTROL, .type = 1};
	uint8_t body[8] = {1};
	struct wf_op send = {.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = 8};
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK(conf_post_all(t, p->cc, &send));
		CHECK(conf_await(t, p->server, p->sc, WF_EVENT_MSG) != NULL);
		CHECK(conf_post_all(t, p->sc, &send));
		CHECK(conf_await(t, p->client, p->cc, WF_EVENT_MSG) != NULL);
	}
	return true;
}

static bool
small_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "", &p));
	return ping_pong(t, &p);
}

static void
small_operations_go_to_and_fro(void **state)
{
	assert_true(run(small_body));
}

/* A work request takes the place of another one, and nothing of that. */
static bool
grant_after_puts_body(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(join(t, "", &p));
	CHECK(ping_pong(t, &p));
	CHECK(conf_grant_place(p.client, p.cc, 8192, 4096, &key));
	struct wf_op put = conf_put_op(p.server, &key, 0, 4096, 1);
	CHECK(conf_post_all(t, p.sc, &put));
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_PUT) != NULL);
	CHECK(conf_grant_place(p.client, p.cc, 16384, 4096, &key));
	return conf_grant_place(p.server, p.sc, 16384, 4096, &key);
}

static void
windows_are_bound_after_puts_with_immediates(void **state)
{
	assert_true(run(grant_after_puts_body));
}

static void
a_vector_follows_the_cpu_then_the_lane(void **state)
{
	struct wf_verbs_settings s = {.vector = -1, .lane = 3};
	assert_int_equal(wf_verbs_vector(&s, -1, 8), 3);
	assert_int_equal(wf_verbs_vector(&s, -1, 2), 1);
	assert_int_equal(wf_verbs_vector(&s, 13, 8), 5);
	s.vector = 6;
	assert_int_equal(wf_verbs_vector(&s, 13, 8), 6);
	assert_int_equal(wf_verbs_vector(&s, 13, 4), 2);
	assert_int_equal(wf_verbs_vector(&s, 13, 0), 0); /* a device that has none to choose from */
}

static bool
vector_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "vector=6", &p));
	CHECK(fake_seen.vector == 6 % fake_device.vectors);
	CHECK(fake_seen.cq_count == 4);
	return true;
}

static bool
bound_body(struct conf *t)
{
	struct pair p;
	cpu_set_t before;
	cpu_set_t one;
	CPU_ZERO(&one);
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	int cpu = sched_getcpu();
	CHECK(cpu >= 0);
	CPU_SET((unsigned)cpu, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	bool joined = join(t, "lane=1", &p);
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
	CHECK(joined);
	CHECK(fake_seen.vector == cpu % fake_device.vectors);
	return true;
}

static void
completion_queues_have_the_vector_of_their_lane(void **state)
{
	assert_true(run(vector_body));
	assert_true(run(bound_body));
}

/* The service level of the path is kept, but where one is asked for. */
static bool
level_of_the_path_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "", &p));
	CHECK(fake_seen.sl == fake_device.path_sl);
	CHECK(fake_seen.tos == 0);
	return true;
}

static bool
level_asked_for_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "sl=5,tclass=104", &p));
	CHECK(fake_seen.sl == 5);
	CHECK(fake_seen.tos ==
	      104); /* the connection manager's packets too, and its choice of path */
	return true;
}

static void
service_level_is_that_of_the_path_or_as_asked_for(void **state)
{
	fake_device.path_sl = 3;
	bool kept = run(level_of_the_path_body);
	bool changed = run(level_asked_for_body);
	fake_device.path_sl = 0;
	assert_true(kept);
	assert_true(changed);
}

/* ---- what is lost ---- */

static struct wf_env_ops driven_ops;
static uint64_t driven_ns;

static uint64_t
driven_now_ns(struct wf_env *env)
{
	return driven_ns;
}

/* The helper thread gets the time that it needs. */
static void
driven_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	driven_ns = deadline_ns > driven_ns ? deadline_ns : driven_ns;
	system_ops->wait(env, -1, system_ops->now_ns(env) + 10 * WF_NS_PER_US);
}

/* From here on time passes when the test says so, and where somebody waits. */
static void
drive_clock(struct conf *t)
{
	system_ops = t->env->ops;
	driven_ops = *system_ops;
	driven_ns = driven_ops.now_ns(t->env);
	driven_ops.now_ns = driven_now_ns;
	driven_ops.wait = driven_wait;
	t->env->ops = &driven_ops;
}

/* So many turns of both, which take no time. */
static void
turn(struct conf *t, struct node *a, struct node *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		(void)conf_poll(t, a);
		(void)conf_poll(t, b);
	}
}

/* The same, while time passes. */
static void
pass(struct conf *t, struct node *a, struct node *b, uint64_t span_ns)
{
	for (uint64_t left_ns = span_ns; left_ns > 0; left_ns -= 100 * WF_NS_PER_MS) {
		driven_ns += 100 * WF_NS_PER_MS;
		turn(t, a, b, 1);
	}
	turn(t, a, b, 50);
}

/* An attempt, up to its first request: the time that registering takes is not counted. */
static bool
begin_attempt(struct conf *t, struct node *node[2], struct wf_conn **conn, size_t hello_bytes)
{
	static const uint8_t hello[256];
	t->verbs = "";
	node[0] = conf_server(t, NULL);
	node[1] = conf_node(t, NULL);
	CHECK(node[0] != NULL && node[1] != NULL);
	drive_clock(t);
	CHECK(wf_transport_connect(node[1]->transport, &node[0]->at, hello, hello_bytes, NULL,
				   conn) == WEFT_OK);
	while (fake_seen.requests == 0) {
		(void)conf_poll(t, node[1]);
		conf_rest(t);
	}
	return true;
}

static bool
lost_request(struct conf *t, uint64_t still_ns)
{
	struct node *node[2];
	struct wf_conn *conn = NULL;
	CHECK(begin_attempt(t, node, &conn, 0));
	driven_ns += still_ns;
	pass(t, node[0], node[1], 2600 * WF_NS_PER_MS); /* of an attempt of 5 s */
	CHECK(fake_seen.requests == 2);
	struct seen *up = conf_await(t, node[0], NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	return conf_await(t, node[1], conn, WF_EVENT_UP) != NULL;
}

static bool
lost_request_body(struct conf *t)
{
	return lost_request(t, 0);
}

/* Both ends stood still until the limit was over: no reason to give up. */
static bool
lost_request_late_body(struct conf *t)
{
	return lost_request(t, 6 * WF_NS_PER_S);
}

static bool
lost_requests_body(struct conf *t)
{
	struct node *node[2];
	struct wf_conn *conn = NULL;
	CHECK(begin_attempt(t, node, &conn, 0));
	const struct seen *down = conf_await(t, node[1], conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_TIMEOUT);
	CHECK(strstr(down->why, "two requests were not answered within 5000 ms") != NULL);
	return fake_seen.requests == 2;
}

static void
lost_request_is_made_once_more(void **state)
{
	fake_device.lost_requests = 1;
	bool found = run(lost_request_body);
	fake_device.lost_requests = 1;
	bool found_late = run(lost_request_late_body);
	fake_device.lost_requests = 2;
	bool timed_out = run(lost_requests_body);
	fake_device.lost_requests = 0;
	assert_true(found);
	assert_true(found_late);
	assert_true(timed_out);
}

/* The accepting end stood still: of two requests only that is shown which somebody waits for. */
static bool
late_request_body(struct conf *t)
{
	struct node *node[2];
	struct wf_conn *conn = NULL;
	CHECK(begin_attempt(t, node, &conn, 0));
	pass(t, node[1], node[1], 2600 * WF_NS_PER_MS);
	CHECK(fake_seen.requests == 2);
	struct seen *up = conf_await(t, node[0], NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	CHECK(conf_await(t, node[1], conn, WF_EVENT_UP) != NULL);
	return conf_count(node[0], NULL, WF_EVENT_UP) == 1 &&
	       conf_count(node[0], NULL, WF_EVENT_DOWN) == 0;
}

static void
withdrawn_request_is_not_shown(void **state)
{
	assert_true(run(late_request_body));
}

/* Who has the request's reply, and waits for the caller there, does not ask again. */
static bool
late_answer_body(struct conf *t)
{
	struct node *node[2];
	struct wf_conn *conn = NULL;
	CHECK(begin_attempt(t, node, &conn, 256)); /* too long for a request */
	struct seen *up = conf_await(t, node[0], NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	pass(t, node[0], node[1], 3 * WF_NS_PER_S);
	CHECK(conf_count(node[1], conn, WF_EVENT_DOWN) == 0 && fake_seen.requests == 1);
	CHECK(wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	return conf_await(t, node[1], conn, WF_EVENT_UP) != NULL;
}

static void
request_that_was_replied_to_is_not_repeated(void **state)
{
	assert_true(run(late_answer_body));
}

static bool
stale_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "", &p));
	return fake_seen.requests == 2;
}

static bool
stale_twice_body(struct conf *t)
{
	struct node *node[2];
	struct wf_conn *conn = NULL;
	CHECK(begin_attempt(t, node, &conn, 0));
	const struct seen *down = conf_await(t, node[1], conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	return strstr(down->why, "takes it for an older connection (status 10)") != NULL;
}

static void
request_that_is_taken_for_an_old_one_is_made_once_more(void **state)
{
	fake_device.stale_requests = 1;
	bool found = run(stale_body);
	fake_device.stale_requests = 2;
	bool refused = run(stale_twice_body);
	fake_device.stale_requests = 0;
	assert_true(found);
	assert_true(refused);
}

static bool
would_wake(struct node *n)
{
	struct pollfd fd = {.fd = wf_transport_wait_fd(n->transport), .events = POLLIN};
	return poll(&fd, 1, 0) == 1;
}

/* Both queues of it armed, and nothing there. Returns when it has to look again, which is counted
 * from the clock of its last poll. */
static uint64_t
go_to_sleep(struct conf *t, struct node *n)
{
	uint64_t deadline_ns = 0;
	(void)conf_poll(t, n);
	do {
		(void)wf_transport_arm(n->transport, &deadline_ns);
		/* Something that is due at once may give no event. */
	} while (conf_poll(t, n) > 0 || would_wake(n) || deadline_ns <= driven_ns);
	return deadline_ns;
}

static bool
wakeup_body(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	struct wf_transport_info info;
	CHECK(join(t, "", &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 4096, &key));
	drive_clock(t);
	struct wf_op put = conf_put_op(p.client, &key, 0, 8, 1);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t wake_ns = go_to_sleep(t, p.server);
		fake_device.lost_events = i == 0 ? 1 : 0;
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(would_wake(p.server) == (i == 2)); /* by its event again */
		CHECK(wake_ns > driven_ns && wake_ns <= driven_ns + WF_VERBS_EVENT_NS);
		driven_ns = wake_ns;
		turn(t, p.server, p.client, 3);
		CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == i + 1);
	}
	wf_transport_query(p.server->transport, &info);
	return info.wakeups_lost == 1;
}

static void
lost_event_of_a_completion_delays_and_does_not_hang(void **state)
{
	bool passed = run(wakeup_body);
	fake_device.lost_events = 0;
	assert_true(passed);
}

/* ---- few buffers ---- */

static bool
drain_body(struct conf *t)
{
	const unsigned count = 64;
	struct pair p;
	CHECK(join(t, "credits=4,srq=off,mw=off", &p));
	for (unsigned i = 0; i < count; i++) {
		CHECK(conf_send(p.cc, i, 8) == WEFT_OK);
	}
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	const struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == count);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == count);
	for (unsigned i = 0; i < count; i++) {
		CHECK(conf_nth(p.client, p.cc, WF_EVENT_DONE, i)->status == WEFT_OK);
	}
	return true;
}

/* Credits come back to who drains, in more buffers than it has at a time. */
static void
buffers_are_posted_again_while_draining(void **state)
{
	assert_true(run(drain_body));
}

/* The peer took everything in while this end stood still, and said so. */
static bool
stood_still_body(struct conf *t)
{
	struct pair p;
	CHECK(join(t, "credits=4,srq=off,mw=off", &p));
	drive_clock(t);
	for (unsigned i = 0; i < 8; i++) {
		CHECK(conf_send(p.cc, i, 8) == WEFT_OK);
	}
	for (unsigned i = 0; i < 2; i++) { /* the peer polls not yet, so four of them wait */
		driven_ns += 900 * WF_NS_PER_MS;
		for (unsigned poll = 0; poll < 20; poll++) {
			(void)conf_poll(t, p.client);
		}
	}
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	for (unsigned poll = 0; poll < 20; poll++) {
		(void)conf_poll(t, p.server);
	}
	driven_ns += 20 * WF_NS_PER_S;
	turn(t, p.client, p.client, 20);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	turn(t, p.client, p.server, 50);
	return conf_count(p.server, p.sc, WF_EVENT_MSG) == 8;
}

static void
peer_is_heard_before_it_is_called_late(void **state)
{
	assert_true(run(stood_still_body));
}

/* Links that wait for a hello that does not come: who says nothing for longest makes room, and a
 * peer is let in beside them. */
static bool
silent_links_body(struct conf *t)
{
	const struct wf_transport_opts few = {
		.conn_max = 1, .newcomer_max = 8, .handshake_timeout_ns = 3600 * WF_NS_PER_S};
	uint8_t hello[200] = {0};
	struct node *server = conf_server(t, &few);
	struct node *idle = conf_node(t, NULL);
	struct node *peer = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	struct wf_transport_info info;
	CHECK(server != NULL && idle != NULL && peer != NULL);
	for (unsigned i = 0; i < 12; i++) {
		CHECK(wf_transport_connect(idle->transport, &server->at, hello, sizeof(hello), NULL,
					   &conn) == WEFT_OK);
	}
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	while (fake_seen.requests < 12) {
		CHECK(wf_now_ns(t->env) < limit_ns);
		if (conf_poll(t, idle) == 0) { /* and never again: no hello follows */
			conf_rest(t);
		}
	}
	do {
		CHECK(wf_now_ns(t->env) < limit_ns);
		conf_rest(t);
		(void)conf_poll(t, server);
		wf_transport_query(server->transport, &info);
	} while (info.strangers_refused < 4);
	CHECK(info.strangers_refused == 4);
	CHECK(strstr(info.last_stranger, "no room") != NULL);
	CHECK(wf_transport_connect(peer->transport, &server->at, NULL, 0, NULL, &conn) == WEFT_OK);
	while (conf_count(peer, conn, WF_EVENT_UP) == 0) {
		CHECK(wf_now_ns(t->env) < limit_ns);
		struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
		if (up != NULL && !up->used) {
			up->used = true;
			CHECK(wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
		}
		if (conf_poll(t, server) + conf_poll(t, peer) == 0) {
			conf_rest(t);
		}
	}
	return conf_count(peer, conn, WF_EVENT_UP) == 1;
}

static void
silent_links_keep_nobody_out(void **state)
{
	assert_true(run(silent_links_body));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_operations_go_to_and_fro),
		cmocka_unit_test(windows_are_bound_after_puts_with_immediates),
		cmocka_unit_test(a_vector_follows_the_cpu_then_the_lane),
		cmocka_unit_test(completion_queues_have_the_vector_of_their_lane),
		cmocka_unit_test(service_level_is_that_of_the_path_or_as_asked_for),
		cmocka_unit_test(lost_request_is_made_once_more),
		cmocka_unit_test(withdrawn_request_is_not_shown),
		cmocka_unit_test(request_that_was_replied_to_is_not_repeated),
		cmocka_unit_test(request_that_is_taken_for_an_old_one_is_made_once_more),
		cmocka_unit_test(lost_event_of_a_completion_delays_and_does_not_hang),
		cmocka_unit_test(buffers_are_posted_again_while_draining),
		cmocka_unit_test(peer_is_heard_before_it_is_called_late),
		cmocka_unit_test(silent_links_keep_nobody_out),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
