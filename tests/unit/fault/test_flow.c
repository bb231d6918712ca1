/* SPDX-License-Identifier: Apache-2.0 */
/* Delays, splits, short posts and stalls: their effects, and that the contract still holds where
 * the conformance suite does not look. One thread. */
#include "tests/unit/fault/fault_rig.h"

static bool
delay_one_put(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(faulty_pair(t, "delay@put:1:40ms", NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 100, &key));
	uint64_t from_ns = wf_now_ns(t->env);
	struct wf_op put = conf_put_op(p.client, &key, 0, 100, 0);
	CHECK(conf_post_all(t, p.cc, &put));
	CHECK(conf_send_all(t, p.cc, 1, 3000));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 3000));
	CHECK(wf_now_ns(t->env) - from_ns >= 40 * WF_NS_PER_MS);
	CHECK(p.server->seen[p.server->seen_count - 2].kind == WF_EVENT_PUT);
	CHECK(injected(p.server, WF_FAULT_DELAY) == 1);
	return true;
}

static void
what_comes_behind_a_delayed_event_waits_for_it(void **state)
{
	(void)state;
	everywhere(delay_one_put);
}

/* The connection within is UP; this one is not, for who is above. */
static bool
delay_up(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	behind(t, "delay@up:1:10s");
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, "yes", 3) == WEFT_OK);
	struct wf_conn *sc = up->conn;
	CHECK(conf_send(sc, 1, 10) == WEFT_OK);
	CHECK(await_injected(t, client, WF_FAULT_DELAY, 1));
	struct wf_grant_key key;
	unsigned taken = 9;
	CHECK(post_messages(conn, 1, &taken) == WEFT_INVALID && taken == 0);
	CHECK(!conf_grant_place(client, conn, 0, 100, &key));
	CHECK(client->seen_count == 0);
	CHECK(conf_is_message(conf_await(t, client, conn, WF_EVENT_MSG), 1, 10));
	CHECK(client->seen_count == 2 && client->seen[0].kind == WF_EVENT_UP);
	CHECK(client->seen[0].byte_count == 3);
	CHECK(conf_send(conn, 2, 10) == WEFT_OK);
	return true;
}

static void
until_a_delayed_up_is_there_nothing_can_be_posted(void **state)
{
	(void)state;
	in_world(delay_up);
}

static bool
arm_with_a_held_event(struct conf *t)
{
	const uint64_t delay_ns = 2 * WF_NS_PER_MS;
	struct pair p;
	CHECK(faulty_pair(t, "delay@msg:1:2ms", NULL, &p));
	CHECK(conf_send_all(t, p.cc, 1, 10));
	CHECK(await_injected(t, p.server, WF_FAULT_DELAY, 1));
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 0);
	uint64_t deadline_ns = 0;
	(void)wf_transport_arm(p.server->transport, &deadline_ns);
	CHECK(deadline_ns <= wf_now_ns(t->env) + delay_ns);
	CHECK(conf_poll(t, p.server) == 0);
	while (wf_now_ns(t->env) < deadline_ns) { /* a wait may return early */
		wf_wait(t->env, wf_transport_wait_fd(p.server->transport), deadline_ns);
	}
	CHECK(conf_poll(t, p.server) == 1);
	return true;
}

static void
a_sleeper_wakes_when_a_held_event_is_due(void **state)
{
	(void)state;
	in_world(arm_with_a_held_event);
}

static bool
delay_none(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, "delay@msg:1000:2ms", NULL, &p));
	conf_settle(t);
	CHECK(conf_send_all(t, p.cc, 1, 10));
	for (int i = 0; i < 20; i++) { /* it arrives */
		(void)conf_poll(t, p.client);
		conf_rest(t);
	}
	CHECK(conf_poll(t, p.server) == 1);
	CHECK(conf_is_message(conf_nth(p.server, p.sc, WF_EVENT_MSG, 0), 1, 10));
	return true;
}

static void
what_is_not_delayed_is_there_in_the_turn_that_it_came_in(void **state)
{
	(void)state;
	in_world(delay_none);
}

static bool
delay_one_of_two_connections(struct conf *t)
{
	struct pair slow, quick;
	CHECK(faulty_pair(t, "delay@msg:1:10s", NULL, &slow));
	CHECK(conf_join(t, slow.server, slow.client, &quick));
	uint64_t from_ns = wf_now_ns(t->env);
	CHECK(conf_send_all(t, slow.cc, 1, 10));
	CHECK(await_injected(t, slow.server, WF_FAULT_DELAY, 1));
	CHECK(conf_send_all(t, quick.cc, 2, 20));
	CHECK(conf_is_message(conf_await(t, slow.server, quick.sc, WF_EVENT_MSG), 2, 20));
	CHECK(conf_count(slow.server, slow.sc, WF_EVENT_MSG) == 0);
	CHECK(wf_now_ns(t->env) - from_ns < 10 * WF_NS_PER_S);
	CHECK(conf_is_message(conf_await(t, slow.server, slow.sc, WF_EVENT_MSG), 1, 10));
	return true;
}

static void
a_delay_holds_up_its_own_connection_only(void **state)
{
	(void)state;
	in_world(delay_one_of_two_connections);
}

static bool
delay_first_done(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, NULL, "delay@done:1:10s", &p));
	CHECK(conf_send_all(t, p.cc, 0, 8));
	CHECK(await_injected(t, p.client, WF_FAULT_DELAY, 1));
	CHECK(conf_send_all(t, p.cc, 1, 8));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 2));
	CHECK(conf_nth(p.client, p.cc, WF_EVENT_DONE, 0)->cookie == 1);
	CHECK(conf_nth(p.client, p.cc, WF_EVENT_DONE, 1)->cookie == 0);
	return true;
}

static void
dones_overtake_a_delayed_done(void **state)
{
	(void)state;
	in_world(delay_first_done);
}

/* DONE is not there for who posts before it is there for who sees. */
static bool
fill_while_dones_are_held(struct conf *t)
{
	struct wf_transport_opts opts = {.op_max = 4};
	struct pair p;
	struct node *server = conf_server(t, NULL);
	behind(t, "delay@done:1-4:10s");
	struct node *client = conf_node(t, &opts);
	CHECK(server != NULL && client != NULL && conf_join(t, server, client, &p));
	for (uint64_t i = 0; i < 4; i++) {
		CHECK(conf_send(p.cc, i, 10) == WEFT_OK);
	}
	CHECK(await_injected(t, client, WF_FAULT_DELAY, 4));
	CHECK(conf_count(client, p.cc, WF_EVENT_DONE) == 0);
	CHECK(conf_send(p.cc, 4, 10) == WEFT_AGAIN);
	struct wf_transport_info info;
	wf_transport_query(client->transport, &info);
	CHECK(info.posts_again >= 1);
	CHECK(conf_await_count(t, client, p.cc, WF_EVENT_DONE, 4));
	CHECK(conf_send(p.cc, 4, 10) == WEFT_OK);
	return true;
}

static void
no_more_than_op_max_are_taken_while_dones_are_held_back(void **state)
{
	(void)state;
	in_world(fill_while_dones_are_held);
}

static bool
disconnect_before_what_is_held(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, "delay@msg:1-9:10s", NULL, &p));
	for (uint64_t i = 0; i < 5; i++) {
		CHECK(conf_send_all(t, p.cc, i, 100));
	}
	CHECK(await_injected(t, p.server, WF_FAULT_DELAY, 5));
	uint64_t from_ns = wf_now_ns(t->env);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(wf_now_ns(t->env) - from_ns < 10 * WF_NS_PER_S); /* it did not wait for them */
	conf_settle(t);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 0);
	return true;
}

static void
disconnect_drops_what_is_held_back(void **state)
{
	(void)state;
	in_world(disconnect_before_what_is_held);
}

static bool
disconnect_before_a_held_down(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, NULL, "delay@down:1:100ms", &p));
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	CHECK(await_injected(t, p.client, WF_FAULT_DELAY, 1));
	unsigned taken = 9;
	if (conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0) { /* else this machine is slow */
		struct wf_path_info path;
		CHECK(post_messages(p.cc, 1, &taken) == WEFT_CLOSED && taken == 0);
		wf_transport_path(p.cc, &path);
		CHECK(path.name != NULL && path.why != NULL);
		wf_transport_release(p.cc, 0);
		wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
		struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
		CHECK(down != NULL && down->status == WEFT_CLOSED);
	}
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 1);
	return true;
}

static void
a_connection_whose_down_is_held_back_is_closed_but_there(void **state)
{
	(void)state;
	everywhere(disconnect_before_a_held_down);
}

/* More than is kept: the oldest go early, in order, and nothing stands still. */
static bool
hold_more_than_there_is_room_for(struct conf *t)
{
	enum { COUNT = 700 };
	struct pair p;
	CHECK(faulty_pair(t, "delay@msg:1-700:10s", NULL, &p));
	uint64_t from_ns = wf_now_ns(t->env);
	for (uint64_t i = 0; i < COUNT; i++) {
		CHECK(conf_send_all(t, p.cc, i, 500));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 100));
	CHECK(wf_now_ns(t->env) - from_ns < 10 * WF_NS_PER_S);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, COUNT));
	for (unsigned i = 0; i < COUNT; i++) {
		CHECK(conf_is_message(conf_nth(p.server, p.sc, WF_EVENT_MSG, i), i, 500));
	}
	return true;
}

static void
a_full_hold_lets_the_oldest_go(void **state)
{
	(void)state;
	in_world(hold_more_than_there_is_room_for);
}

static bool
post_shortly(struct conf *t)
{
	enum { COUNT = 40 };
	struct pair p;
	CHECK(faulty_pair(t, NULL, "short=100%", &p));
	unsigned all = 0, posts = 0;
	while (all < COUNT) {
		unsigned taken = 99;
		unsigned before = conf_count(p.client, p.cc, WF_EVENT_DONE);
		enum weft_status st = post_messages(p.cc, COUNT - all, &taken);
		CHECK(st == WEFT_AGAIN || (st == WEFT_OK && COUNT - all == 1));
		CHECK(taken < COUNT - all || st == WEFT_OK);
		CHECK(taken > 0 || before < all); /* a DONE is to come */
		all += taken;
		posts++;
		conf_pump(t);
	}
	CHECK(injected(p.client, WF_FAULT_SHORT) >= 1 && posts > 1);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, COUNT));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, COUNT));
	return true;
}

static void
a_short_post_leaves_some_and_promises_a_done(void **state)
{
	(void)state;
	everywhere(post_shortly);
}

static bool
post_in_parts(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, NULL, "split@post:1", &p));
	unsigned all = 0;
	while (all < 20) {
		unsigned taken = 0;
		enum weft_status st = post_messages(p.cc, 20 - all, &taken);
		CHECK(st == WEFT_OK || st == WEFT_AGAIN);
		all += taken;
		conf_pump(t);
	}
	CHECK(injected(p.client, WF_FAULT_SPLIT) == 1);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 20));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 20));
	return true;
}

static void
a_split_post_loses_nothing(void **state)
{
	(void)state;
	everywhere(post_in_parts);
}

static bool
poll_in_parts(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, "split=100%", NULL, &p));
	t->poll_max = 2; /* so that each poll that brings something brings one of two */
	for (uint64_t i = 0; i < 60; i++) {
		CHECK(conf_send_all(t, p.cc, i, 10));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 60));
	for (unsigned i = 0; i < 60; i++) {
		CHECK(conf_is_message(conf_nth(p.server, p.sc, WF_EVENT_MSG, i), i, 10));
	}
	CHECK(injected(p.server, WF_FAULT_SPLIT) > 0);
	return true;
}

static void
a_split_poll_loses_nothing(void **state)
{
	(void)state;
	everywhere(poll_in_parts);
}

/* As a process that is stopped: events wait, and the deadline is the end of the stall. */
static bool
stall_a_receiver(struct conf *t)
{
	const uint64_t lasts_ns = 50 * WF_NS_PER_MS;
	struct pair p;
	CHECK(faulty_pair(t, "stall@ms:100:50ms", NULL, &p));
	CHECK(await_injected(t, p.server, WF_FAULT_STALL, 1));
	uint64_t from_ns = wf_now_ns(t->env); /* at most a rest after it began */
	CHECK(conf_send_all(t, p.cc, 1, 10));
	uint64_t deadline_ns = 0;
	(void)wf_transport_arm(p.server->transport, &deadline_ns);
	CHECK(deadline_ns > from_ns && deadline_ns <= from_ns + lasts_ns);
	while (wf_now_ns(t->env) < deadline_ns) {
		CHECK(conf_poll(t, p.server) == 0);
		conf_poll(t, p.client);
		wf_wait(t->env, -1, wf_now_ns(t->env) + WF_NS_PER_MS);
	}
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 10));
	CHECK(injected(p.server, WF_FAULT_STALL) == 1);
	return true;
}

static void
a_stalled_end_moves_nothing_until_its_deadline(void **state)
{
	(void)state;
	in_world(stall_a_receiver);
}

static bool
stall_by_poll_and_chance(struct conf *t)
{
	struct pair p;
	CHECK(faulty_pair(t, "stall@poll:3-4:2ms", "stall=50%:1ms", &p));
	for (uint64_t i = 0; i < 30; i++) {
		CHECK(conf_send_all(t, p.cc, i, 10));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 30));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 30));
	CHECK(injected(p.server, WF_FAULT_STALL) == 2);
	CHECK(injected(p.client, WF_FAULT_STALL) > 0);
	return true;
}

static void
stalls_come_by_poll_and_by_chance(void **state)
{
	(void)state;
	everywhere(stall_by_poll_and_chance);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_behind_a_delayed_event_waits_for_it),
		cmocka_unit_test(until_a_delayed_up_is_there_nothing_can_be_posted),
		cmocka_unit_test(a_sleeper_wakes_when_a_held_event_is_due),
		cmocka_unit_test(what_is_not_delayed_is_there_in_the_turn_that_it_came_in),
		cmocka_unit_test(a_delay_holds_up_its_own_connection_only),
		cmocka_unit_test(dones_overtake_a_delayed_done),
		cmocka_unit_test(no_more_than_op_max_are_taken_while_dones_are_held_back),
		cmocka_unit_test(disconnect_drops_what_is_held_back),
		cmocka_unit_test(a_connection_whose_down_is_held_back_is_closed_but_there),
		cmocka_unit_test(a_full_hold_lets_the_oldest_go),
		cmocka_unit_test(a_short_post_leaves_some_and_promises_a_done),
		cmocka_unit_test(a_split_post_loses_nothing),
		cmocka_unit_test(a_split_poll_loses_nothing),
		cmocka_unit_test(a_stalled_end_moves_nothing_until_its_deadline),
		cmocka_unit_test(stalls_come_by_poll_and_by_chance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
