/* SPDX-License-Identifier: Apache-2.0 */
/* What a device tells of itself and of its queue pairs, besides completions: whom it concerns ends,
 * or asks, and nobody else. In a simulated world. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/double/verbs/conf_fake.h"
#include "tests/double/verbs/fake.h"
#include "transport/verbs/verbs_internal.h"

static void
on(const char *url, bool (*body)(struct conf *t))
{
	assert_true(conf_fake_run(url, body));
}

static enum ibv_event_type said; /* what the server's device, or both, say */
static enum weft_status said_status;
static const char *said_why;

static bool
said_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	const struct wf_verbs_conn *c = (const struct wf_verbs_conn *)p.sc;
	uint64_t begin_ns = wf_now_ns(t->env);
	if (said_status == WEFT_PROTOCOL || said == IBV_EVENT_QP_FATAL) {
		fake_say_of(c->link.qp, said);
	} else {
		fake_say(said);
	}
	const struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == said_status);
	CHECK(strstr(down->why, said_why) != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < 3 * WF_VERBS_VERDICT_NS);
	return conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL;
}

static void
connection_ends_by_what_its_device_says(void **state)
{
	static const struct {
		enum ibv_event_type type;
		enum weft_status status;
		const char *why;
	} says[] = {
		{IBV_EVENT_QP_FATAL, WEFT_LOST, "the queue pair broke"},
		{IBV_EVENT_QP_REQ_ERR, WEFT_PROTOCOL, "fake0 refused what the peer sent"},
		{IBV_EVENT_QP_ACCESS_ERR, WEFT_PROTOCOL, "fake0 refused what the peer sent"},
		{IBV_EVENT_CQ_ERR, WEFT_LOST, "fake0: one of its queues is broken"},
		{IBV_EVENT_SRQ_ERR, WEFT_LOST, "fake0: one of its queues is broken"},
		{IBV_EVENT_DEVICE_FATAL, WEFT_LOST, "fake0: the device reports a fatal error"},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(says); i++) {
		said = says[i].type;
		said_status = says[i].status;
		said_why = says[i].why;
		on("fake-mlx5", said_body);
		on("fake-irdma", said_body);
	}
}

/* Who is idle hears nothing of the peer anyway, and asks for it as soon as the port is down. */
static bool
port_body(struct conf *t)
{
	const struct wf_transport_opts opts = {.peer_timeout_ns = 120 * WF_NS_PER_S};
	struct pair p;
	CHECK(conf_pair(t, &opts, &p));
	conf_fake_pass(t, WF_NS_PER_S);
	uint64_t begin_ns = wf_now_ns(t->env);
	fake_break_ports(60 * WF_NS_PER_S);
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && strstr(down->why, "transport retry counter exceeded") != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < 4 * WF_NS_PER_S);
	return conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL;
}

static void
idle_connection_asks_for_its_peer_when_the_port_is_down(void **state)
{
	on("fake-mlx5", port_body);
}

/* The next work request takes the device of who posts it away, with all that is on it. */
static bool
removed_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = 1, .remove_per_million = 1000000, .breaks_max = 1};
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	const struct wf_verbs *server = (const struct wf_verbs *)p.server->transport;
	CHECK(server->listener_count == 1 && server->listener[0].id != NULL);
	fake_turn_knobs(&knobs);
	CHECK(conf_send(p.sc, 1, 300) == WEFT_OK);
	const struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_LOST);
	CHECK(fake_happened.removals == 1);
	fake_turn_knobs(NULL);
	conf_settle(t);
	/* A kernel that removes it waits for who still holds on to it. */
	CHECK(server->listener[0].id == NULL);
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX; i++) {
		CHECK(server->device[i] == NULL);
	}
	return conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL;
}

static void
removed_device_is_held_by_nobody(void **state)
{
	on("fake-mlx5", removed_body);
	on("fake-cxgb4", removed_body);
}

/* The clock is looked at in one of some polls: this end has stood still since, and what it finds
 * first is that the queue pair broke. Why, the connection manager may say. */
static bool
verdict_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	conf_settle(t);
	const struct wf_verbs *server = (const struct wf_verbs *)p.server->transport;
	struct wf_verbs_conn *c = (struct wf_verbs_conn *)p.sc;
	for (unsigned i = 0; i < 1000 && wf_loop_turns_blind(&server->medium.loop) != 1; i++) {
		(void)conf_poll(t, p.server);
	}
	CHECK(wf_loop_turns_blind(&server->medium.loop) == 1);
	wf_wait(t->env, -1, wf_now_ns(t->env) + WF_NS_PER_S);
	wf_verbs_conn_suspect(c);
	(void)conf_poll(t, p.server);
	CHECK(c->life.state == WF_LIFE_ENDING && c->end.verdict_waits);
	CHECK(c->life.deadline_ns > wf_now_ns(t->env) + WF_VERBS_VERDICT_NS / 2);
	return conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL;
}

static void
verdict_is_waited_for_from_when_it_was_missed(void **state)
{
	on("fake-rxe", verdict_body);
}

/* Whoever waits for no answer any more has nothing to wait for: its place is another one's. */
static bool
look_up_body(struct conf *t)
{
	const struct wf_transport_opts opts = {.conn_max = 1};
	const struct wf_host to = {.name = "localhost", .port = 7164};
	struct node *client = conf_node(t, &opts);
	CHECK(client != NULL);
	const struct wf_verbs *verbs = (const struct wf_verbs *)client->transport;
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &to, NULL, 0, NULL, &conn) == WEFT_OK);
	CHECK(((const struct wf_verbs_conn *)conn)->attempt.look_up != NULL);
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	(void)conf_poll(t, client); /* no time passes: the helper thread is not done */
	CHECK(conf_count(client, conn, WF_EVENT_DOWN) == 1);
	(void)conf_poll(t, client);
	CHECK(verbs->orphans != NULL && !verbs->orphans->task.done);
	CHECK(verbs->medium.conn_count == 0);
	conf_settle(t);
	CHECK(verbs->orphans == NULL);
	return true;
}

static void
look_up_that_nobody_waits_for_holds_no_place(void **state)
{
	(void)state;
	on("fake-mlx5", look_up_body);
}

/* A device that completes nothing and reports nothing: what it owes comes after an hour. */
static bool
nothing_completes_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = 1, .completion_ns = 3600 * WF_NS_PER_S};
	const uint64_t tries_ns = 4 * 7 * (4096ull << 16); /* of ack_timeout=16,retry=6 */
	const uint64_t limit_ns = 10 * WF_NS_PER_S + tries_ns;
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 4096, &key));
	conf_settle(t);
	fake_turn_knobs(&knobs);
	uint64_t begin_ns = wf_now_ns(t->env);
	struct wf_op put = conf_put_op(p.client, &key, 0, 8, 0);
	CHECK(conf_post(p.cc, &put));
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	uint64_t span_ns = wf_now_ns(t->env) - begin_ns;
	CHECK(down != NULL && down->status == WEFT_TIMEOUT);
	CHECK(strstr(down->why, "fake0 has neither completed a request nor reported an error "
				"for 17516 ms") != NULL);
	CHECK(span_ns >= limit_ns && span_ns < limit_ns + 5 * WF_NS_PER_S);
	fake_turn_knobs(NULL);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	conf_fake_pass(t, WF_NS_PER_S);
	fake_seen.lost = 0; /* it went with its queue */
	return conf_is_done_once(p.client, p.cc, 1);
}

static void
device_that_completes_nothing_ends_its_connection(void **state)
{
	on("fake-mlx5", nothing_completes_body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_ends_by_what_its_device_says),
		cmocka_unit_test(idle_connection_asks_for_its_peer_when_the_port_is_down),
		cmocka_unit_test(removed_device_is_held_by_nobody),
		cmocka_unit_test(verdict_is_waited_for_from_when_it_was_missed),
		cmocka_unit_test(look_up_that_nobody_waits_for_holds_no_place),
		cmocka_unit_test(device_that_completes_nothing_ends_its_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
