/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals and cuts: what both ends see of them, on every backend. One thread. */
#include "tests/unit/fault/fault_rig.h"

static bool
refuse_own_connects(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	behind(t, "refuse@connect:1-2");
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	for (unsigned i = 0; i < 2; i++) {
		int mine = 0;
		struct wf_conn *conn = NULL;
		unsigned taken = 9;
		CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, &mine, &conn) ==
		      WEFT_OK);
		CHECK(conn->user == &mine);
		CHECK(post_messages(conn, 1, &taken) == WEFT_CLOSED && taken == 0);
		CHECK(ended(t, conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_UNAVAILABLE, true));
	}
	conf_settle(t);
	CHECK(server->seen_count == 0 && client->seen_count == 2);
	CHECK(injected(client, WF_FAULT_REFUSE) == 2);
	struct wf_transport_info info;
	wf_transport_query(client->transport, &info);
	CHECK(info.conns_down == 2 && info.conns_up == 0);
	struct pair p;
	CHECK(conf_join(t, server, client, &p));
	return true;
}

static void
refused_connects_never_reach_the_peer(void **state)
{
	(void)state;
	everywhere(refuse_own_connects);
}

static bool
refuse_incoming(struct conf *t)
{
	behind(t, "refuse@accept:1");
	struct node *server = conf_server(t, NULL);
	behind(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &conn) ==
	      WEFT_OK);
	CHECK(ended(t, conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_UNAVAILABLE, false));
	conf_settle(t);
	CHECK(server->seen_count == 0 && injected(server, WF_FAULT_REFUSE) == 1);
	struct pair p;
	CHECK(conf_join(t, server, client, &p));
	return true;
}

static void
refused_incoming_connections_are_never_shown(void **state)
{
	(void)state;
	everywhere(refuse_incoming);
}

static bool
disconnect_a_refused_one(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	behind(t, "refuse=100%,delay=5ms");
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	wf_transport_disconnect(conn, WF_DISCONNECT_DRAIN);
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	conf_settle(t);
	CHECK(client->seen_count == 1);
	return true;
}

static void
refused_connects_can_be_disconnected(void **state)
{
	(void)state;
	everywhere(disconnect_a_refused_one);
}

static bool
cut_after_the_third_operation(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, NULL, "cut@op:3", &p));
	unsigned taken = 0, all = 0;
	for (int tries = 0; tries < 100 && all < 3; tries++) { /* sim takes fewer by itself */
		CHECK(post_messages(p.cc, 8, &taken) == WEFT_AGAIN);
		all += taken;
	}
	CHECK(all == 3);
	CHECK(post_messages(p.cc, 1, &taken) == WEFT_CLOSED && taken == 0);
	struct wf_grant_key key;
	CHECK(!conf_grant_place(p.client, p.cc, 0, 10, &key));
	CHECK(ended(t, conf_await(t, p.client, p.cc, WF_EVENT_DOWN), WEFT_LOST, true));
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 3);
	struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && (down->status == WEFT_CLOSED || down->status == WEFT_LOST));
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) <= 3);
	CHECK(injected(p.client, WF_FAULT_CUT) == 1);
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 1);
	conf_forget(p.server);
	conf_forget(p.client);
	CHECK(conf_join(t, p.server, p.client, &p));
	CHECK(conf_send_all(t, p.cc, 5, 50));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 5, 50));
	return true;
}

static void
a_cut_falls_between_two_operations_of_one_post(void **state)
{
	(void)state;
	everywhere(cut_after_the_third_operation);
}

/* The bytes of what is held in slots stay through a cut. */
static bool
cut_at_the_second_put(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(faulty_pair(t, "cut@put:2,delay@put:2:20ms,delay@down:1:20ms", NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 9000, 4, &key));
	for (uint32_t i = 0; i < 4; i++) {
		conf_fill(p.client->memory + i * 9000, 9000, i);
		struct wf_op put = conf_put_op(p.client, &key, i * 9000, 9000, i);
		put.tag = wf_tag(i, 0);
		CHECK(conf_post_all(t, p.cc, &put));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, 2));
	bool over = false;
	while (!over) {
		for (unsigned i = 0; i < 2; i++) {
			const struct seen *put = conf_nth(p.server, p.sc, WF_EVENT_PUT, i);
			CHECK(conf_is_filled(put->data, 9000, i));
		}
		over = conf_count(p.server, p.sc, WF_EVENT_DOWN) == 1;
		conf_pump(t);
	}
	CHECK(ended(t, conf_nth(p.server, p.sc, WF_EVENT_DOWN, 0), WEFT_LOST, true));
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_is_done_once(p.client, p.cc, 4));
	return true;
}

static void
slots_keep_their_bytes_through_a_cut(void **state)
{
	(void)state;
	everywhere(cut_at_the_second_put);
}

/* As a caller that sleeps; `limit_ns` is not to be reached. */
static bool
sleep_until_down(struct conf *t, struct node *n)
{
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	int fd = wf_transport_wait_fd(n->transport);
	while (conf_count(n, NULL, WF_EVENT_DOWN) == 0) {
		uint64_t deadline_ns = 0;
		(void)wf_transport_arm(n->transport, &deadline_ns);
		if (conf_poll(t, n) > 0) {
			continue;
		}
		wf_wait(t->env, fd, deadline_ns < limit_ns ? deadline_ns : limit_ns);
		CHECK(wf_now_ns(t->env) < limit_ns);
	}
	return true;
}

static bool
cut_at_a_time(struct conf *t)
{
	struct pair p[2];
	CHECK(faulty_pair(t, NULL, "cut@ms:300", &p[0]));
	CHECK(conf_join(t, p[0].server, p[0].client, &p[1]));
	CHECK(sleep_until_down(t, p[0].client));
	CHECK(conf_await_count(t, p[0].client, NULL, WF_EVENT_DOWN, 2));
	CHECK(ended(t, conf_nth(p[0].client, p[0].cc, WF_EVENT_DOWN, 0), WEFT_LOST, true));
	CHECK(ended(t, conf_nth(p[0].client, p[1].cc, WF_EVENT_DOWN, 0), WEFT_LOST, true));
	conf_forget(p[0].server);
	CHECK(conf_join(t, p[0].server, p[0].client, &p[1])); /* once is enough */
	CHECK(injected(p[0].client, WF_FAULT_CUT) == 2);
	return true;
}

static void
a_cut_at_a_time_takes_every_connection_and_wakes_a_sleeper(void **state)
{
	(void)state;
	in_world(cut_at_a_time);
}

static bool
cut_before_up(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	behind(t, "cut@ms:20");
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	CHECK(sleep_until_down(t, client)); /* nobody answers */
	CHECK(ended(t, conf_nth(client, conn, WF_EVENT_DOWN, 0), WEFT_UNAVAILABLE, true));
	CHECK(client->seen_count == 1);
	return true;
}

static void
an_attempt_that_is_cut_is_unavailable(void **state)
{
	(void)state;
	everywhere(cut_before_up);
}

/* UP is held back when the cut comes: it is not taken back. */
static bool
cut_behind_a_held_up(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	behind(t, "cut@up:1,delay@up:1:20ms");
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, "yes", 3) == WEFT_OK);
	CHECK(ended(t, conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_LOST, true));
	CHECK(client->seen_count == 2 && client->seen[0].kind == WF_EVENT_UP);
	CHECK(client->seen[0].byte_count == 3 && memcmp(client->seen[0].bytes, "yes", 3) == 0);
	return true;
}

static void
a_cut_does_not_take_up_back(void **state)
{
	(void)state;
	everywhere(cut_behind_a_held_up);
}

static bool
cut_unanswered(struct conf *t)
{
	behind(t, "cut@up:1");
	struct node *server = conf_server(t, NULL);
	behind(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	if (conf_count(server, sc, WF_EVENT_DOWN) == 0) { /* else it may be gone by now */
		CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_CLOSED);
	}
	CHECK(ended(t, conf_await(t, server, sc, WF_EVENT_DOWN), WEFT_LOST, true));
	CHECK(ended(t, conf_await(t, client, conn, WF_EVENT_DOWN), WEFT_UNAVAILABLE, false));
	return true;
}

static void
an_incoming_connection_may_be_cut_before_its_answer(void **state)
{
	(void)state;
	everywhere(cut_unanswered);
}

static bool
cut_and_disconnect(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, NULL, "cut@op:1", &p));
	unsigned taken = 0;
	CHECK(post_messages(p.cc, 1, &taken) == WEFT_OK && taken == 1);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	return true;
}

static void
who_disconnects_what_was_cut_sees_closed(void **state)
{
	(void)state;
	everywhere(cut_and_disconnect);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_connects_never_reach_the_peer),
		cmocka_unit_test(refused_incoming_connections_are_never_shown),
		cmocka_unit_test(refused_connects_can_be_disconnected),
		cmocka_unit_test(a_cut_falls_between_two_operations_of_one_post),
		cmocka_unit_test(slots_keep_their_bytes_through_a_cut),
		cmocka_unit_test(a_cut_at_a_time_takes_every_connection_and_wakes_a_sleeper),
		cmocka_unit_test(an_attempt_that_is_cut_is_unavailable),
		cmocka_unit_test(a_cut_does_not_take_up_back),
		cmocka_unit_test(an_incoming_connection_may_be_cut_before_its_answer),
		cmocka_unit_test(who_disconnects_what_was_cut_sees_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
