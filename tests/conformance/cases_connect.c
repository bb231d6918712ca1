/* SPDX-License-Identifier: Apache-2.0 */
/* cases_connect: C1 to C12, how connections come about. Thread: the case's. */
#include "tests/conformance/conformance.h"

#include "transport/ops.h"

static bool
poll_of_an_idle_transport_is_empty(struct conf *t)
{
	struct node *n = conf_server(t, NULL);
	CHECK(n != NULL);
	for (int i = 0; i < 5; i++) {
		CHECK(conf_poll(t, n) == 0);
	}
	return true;
}

static bool
connect_comes_up_with_the_verdict(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, "hello you", 9, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->incoming);
	CHECK(up->byte_count == 9 && memcmp(up->bytes, "hello you", 9) == 0);
	CHECK(wf_transport_answer(up->conn, true, "welcome", 7) == WEFT_OK);
	up = conf_await(t, client, conn, WF_EVENT_UP);
	CHECK(up != NULL && !up->incoming);
	CHECK(up->byte_count == 7 && memcmp(up->bytes, "welcome", 7) == 0);
	conf_settle(t);
	CHECK(server->seen_count == 1 && client->seen_count == 1);
	return true;
}

static bool
connect_to_nobody_is_unavailable(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_host gone = server->at;
	conf_node_close(t, server);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &gone, NULL, 0, NULL, &conn) == WEFT_OK);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	CHECK(down->why[0] != '\0' && down->byte_count == 0);
	conf_settle(t);
	CHECK(client->seen_count == 1);
	return true;
}

static bool
hello_arrives(struct conf *t, struct node *server, struct node *client, size_t bytes)
{
	uint8_t hello[WF_BLOB_MAX];
	uint8_t verdict[WF_BLOB_MAX];
	conf_fill(hello, bytes, bytes);
	conf_fill(verdict, bytes, bytes + 1);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, hello, bytes, NULL, &conn) ==
	      WEFT_OK);
	memset(hello, 0, sizeof(hello));
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->byte_count == bytes);
	CHECK(conf_is_filled(up->bytes, bytes, bytes));
	const struct wf_conn *incoming = up->conn;
	CHECK(wf_transport_answer(up->conn, bytes % 2 == 0, verdict, bytes) == WEFT_OK);
	memset(verdict, 0, sizeof(verdict));
	struct seen *end =
		conf_await(t, client, conn, bytes % 2 == 0 ? WF_EVENT_UP : WF_EVENT_DOWN);
	CHECK(end != NULL && end->byte_count == bytes);
	CHECK(conf_is_filled(end->bytes, bytes, bytes + 1));
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	CHECK(conf_await_count(t, server, incoming, WF_EVENT_DOWN, 1));
	CHECK(conf_await_count(t, client, conn, WF_EVENT_DOWN, 1));
	conf_forget(server);
	conf_forget(client);
	return true;
}

static bool
hello_and_verdict_of_every_size_arrive(struct conf *t)
{
	static const size_t sizes[] = {0, 1, 2, 63, 64, 65, 511, 512, 960, 1023, 1024};
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CHECK(hello_arrives(t, server, client, sizes[i]));
	}
	for (int i = 0; i < 10; i++) {
		size_t bytes = (size_t)wf_rng_below(&t->rng, WF_BLOB_MAX + 1);
		CHECK(hello_arrives(t, server, client, bytes));
	}
	return true;
}

static bool
hello_and_verdict_over_the_limit_are_invalid(struct conf *t)
{
	static const uint8_t blob[WF_BLOB_MAX + 1];
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, blob, sizeof(blob), NULL,
				   &conn) == WEFT_INVALID);
	CHECK(conn == NULL);
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 1, NULL, &conn) ==
	      WEFT_INVALID);
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	CHECK(wf_transport_answer(sc, true, blob, sizeof(blob)) == WEFT_INVALID);
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_INVALID);
	CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
	return true;
}

static bool
incoming_connection_waits_for_its_answer(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	CHECK(conf_send(conn, 1, 1) == WEFT_INVALID);
	CHECK(wf_transport_answer(conn, true, NULL, 0) == WEFT_INVALID);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	struct wf_grant_key key;
	CHECK(conf_send(sc, 1, 1) == WEFT_INVALID);
	CHECK(!conf_grant_place(server, sc, 0, 100, &key));
	CHECK(!conf_grant_place(client, conn, 0, 100, &key));
	conf_settle(t);
	CHECK(server->seen_count == 1 && client->seen_count == 0);
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, server, sc, WF_EVENT_DOWN);
	CHECK(down != NULL);
	CHECK(down->status == WEFT_CLOSED || down->status == WEFT_LOST);
	return true;
}

static bool
answer_may_come_after_other_traffic(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct node *other = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL && other != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *late = up->conn;
	struct pair pair;
	CHECK(conf_join(t, server, other, &pair));
	for (uint64_t i = 0; i < 20; i++) {
		CHECK(conf_send_all(t, pair.cc, i, 300));
	}
	CHECK(conf_await_count(t, server, pair.sc, WF_EVENT_MSG, 20));
	CHECK(conf_count(client, conn, WF_EVENT_UP) == 0);
	CHECK(wf_transport_answer(late, true, NULL, 0) == WEFT_OK);
	CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
	CHECK(conf_send_all(t, conn, 5, 5));
	CHECK(conf_is_message(conf_await(t, server, late, WF_EVENT_MSG), 5, 5));
	return true;
}

static bool
accepting_end_may_post_right_after_its_answer(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	struct wf_grant_key key;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(conf_grant_place(server, sc, 0, 100, &key));
	CHECK(conf_send(sc, 3, 33) == WEFT_OK);
	struct seen *msg = conf_await(t, client, conn, WF_EVENT_MSG);
	CHECK(conf_is_message(msg, 3, 33));
	CHECK(client->seen[0].kind == WF_EVENT_UP);
	return true;
}

static bool
refused_peer_gets_the_verdict(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, "me", 2, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	CHECK(wf_transport_answer(sc, false, "not you", 7) == WEFT_OK);
	CHECK(conf_send(sc, 1, 1) == WEFT_CLOSED);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_REFUSED);
	CHECK(down->byte_count == 7 && memcmp(down->bytes, "not you", 7) == 0);
	down = conf_await(t, server, sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED && down->byte_count == 0);
	CHECK(conf_count(client, conn, WF_EVENT_UP) == 0);
	return true;
}

/* An attempt of attempt_ns that nobody answers ends in time. *out: what the server saw of it, or
 * NULL where its hello did not arrive before. */
static bool
let_time_out(struct conf *t, struct node *server, uint64_t attempt_ns, struct seen **out)
{
	const struct wf_transport_opts opts = {.connect_timeout_ns = attempt_ns};
	struct node *client = conf_node(t, &opts);
	CHECK(client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	const struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_TIMEOUT);
	conf_settle(t);
	*out = conf_nth(server, NULL, WF_EVENT_UP, 0);
	return true;
}

/* How long a hello takes is the machine's: where the shortest attempt ends before, a longer one
 * follows. */
static bool
unanswered_connect_times_out(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	CHECK(server != NULL);
	struct seen *up = NULL;
	for (uint64_t times = 1; up == NULL && times <= 64; times *= 8) {
		CHECK(let_time_out(t, server, times * t->hasty_ns, &up));
	}
	CHECK(up != NULL);
	const struct seen *down = conf_await(t, server, up->conn, WF_EVENT_DOWN);
	CHECK(down != NULL);
	CHECK(down->status == WEFT_LOST || down->status == WEFT_CLOSED);
	return true;
}

static bool
listener_that_goes_away_makes_connects_unavailable(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *early = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &early) ==
	      WEFT_OK);
	CHECK(conf_await(t, server, NULL, WF_EVENT_UP) != NULL); /* and no answer */
	struct wf_conn *late = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &late) ==
	      WEFT_OK);
	conf_poll(t, client);
	conf_node_close(t, server);
	struct seen *down = conf_await(t, client, early, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	down = conf_await(t, client, late, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	return true;
}

static bool
listening_on_a_port_in_use_is_unavailable(struct conf *t)
{
	struct node *first = conf_server(t, NULL);
	struct node *second = conf_node(t, NULL);
	CHECK(first != NULL && second != NULL);
	CHECK(first->at.port != 0);
	uint16_t port = 0;
	CHECK(wf_transport_listen(second->transport, &first->at, &port) == WEFT_UNAVAILABLE);
	CHECK(port == 0);
	char text[16];
	snprintf(text, sizeof(text), ":%u", first->at.port);
	CHECK(strstr(weft_last_error(), t->host) != NULL);
	CHECK(strstr(weft_last_error(), text) != NULL);
	struct wf_host any = first->at;
	any.port = 0;
	CHECK(wf_transport_listen(second->transport, &any, &port) == WEFT_OK);
	CHECK(port != 0 && port != first->at.port);
	return true;
}

static bool
user_pointer_of_a_connection_is_the_callers(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	int mine = 0;
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, &mine, &conn) ==
	      WEFT_OK);
	CHECK(conn->user == &mine && conn->transport == client->transport);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	CHECK(sc->user == NULL && sc->transport == server->transport);
	sc->user = t;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
	CHECK(conf_send_all(t, conn, 1, 10));
	CHECK(conf_await(t, server, sc, WF_EVENT_MSG) != NULL);
	CHECK(conn->user == &mine && sc->user == t);
	return true;
}

/* Polls by hand: the pointer lives between two polls of this transport only. */
static bool
calls_between_down_and_the_next_poll_are_harmless(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	struct wf_grant_key key;
	CHECK(conf_grant_slots(p.client, p.cc, 64, 4, &key));
	p.cc->user = t;
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	bool down = false;
	for (int i = 0; i < 100000 && !down; i++) {
		conf_poll(t, p.server);
		conf_poll(t, p.client);
		down = conf_count(p.client, p.cc, WF_EVENT_DOWN) == 1;
		if (!down) {
			conf_rest(t);
		}
	}
	CHECK(down && p.cc->user == t);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	wf_transport_release(p.cc, 3);
	CHECK(conf_send(p.cc, 1, 1) == WEFT_CLOSED);
	conf_settle(t);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 1);
	return true;
}

static bool
connections_are_bounded(struct conf *t)
{
	struct wf_transport_opts few = {.conn_max = 2};
	struct node *server = conf_server(t, &few);
	struct node *client = conf_node(t, &few);
	struct node *third = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL && third != NULL);
	struct pair pair[2];
	CHECK(conf_join(t, server, client, &pair[0]));
	CHECK(conf_join(t, server, client, &pair[1]));
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_NOMEM);
	CHECK(wf_transport_connect(third->transport, &server->at, NULL, 0, NULL, &conn) == WEFT_OK);
	struct seen *down = conf_await(t, third, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	CHECK(t->loses_reasons || strstr(down->why, "no room") != NULL);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 2);
	CHECK(conf_send_all(t, pair[0].cc, 1, 100));
	CHECK(conf_send_all(t, pair[1].cc, 2, 100));
	CHECK(conf_is_message(conf_await(t, server, pair[0].sc, WF_EVENT_MSG), 1, 100));
	CHECK(conf_is_message(conf_await(t, server, pair[1].sc, WF_EVENT_MSG), 2, 100));
	return true;
}

/* Poll these two alone until `n` has seen that many. */
static bool
await_by_hand(struct conf *t, struct node *a, struct node *b, struct node *n,
	      enum wf_event_kind kind, unsigned count)
{
	for (int i = 0; i < 100000 && conf_count(n, NULL, kind) < count; i++) {
		if (conf_poll(t, a) + conf_poll(t, b) == 0) {
			conf_rest(t);
		}
	}
	return conf_count(n, NULL, kind) >= count;
}

/* They do not poll, so they do not go by themselves. */
static bool
who_was_refused_keeps_nobody_out(struct conf *t)
{
	struct wf_transport_opts few = {.conn_max = 1, .newcomer_max = 2};
	struct node *server = conf_server(t, &few);
	CHECK(server != NULL);
	for (unsigned i = 1; i <= 5; i++) {
		struct wf_conn *conn = NULL;
		struct node *client = conf_node(t, NULL);
		CHECK(client != NULL);
		CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
		      WEFT_OK);
		CHECK(await_by_hand(t, server, client, server, WF_EVENT_UP, i));
		struct wf_conn *sc = conf_nth(server, NULL, WF_EVENT_UP, i - 1)->conn;
		CHECK(wf_transport_answer(sc, false, NULL, 0) == WEFT_OK);
	}
	struct node *member = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	CHECK(member != NULL);
	CHECK(wf_transport_connect(member->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	CHECK(await_by_hand(t, server, member, server, WF_EVENT_UP, 6));
	struct wf_conn *sc = conf_nth(server, NULL, WF_EVENT_UP, 5)->conn;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(await_by_hand(t, server, member, member, WF_EVENT_UP, 1));
	CHECK(conf_send_all(t, conn, 1, 100));
	CHECK(conf_is_message(conf_await(t, server, sc, WF_EVENT_MSG), 1, 100));
	return true;
}

#define MANY 40

static bool
many_connections_carry_their_own_traffic(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	static struct pair pair[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		CHECK(conf_join(t, server, client, &pair[i]));
	}
	for (uint64_t round = 0; round < 10; round++) {
		for (unsigned i = 0; i < MANY; i++) {
			CHECK(conf_send_all(t, pair[i].cc, i * 100 + round, 50 * round));
			CHECK(conf_send_all(t, pair[i].sc, 7000 + i * 100 + round, 5));
		}
	}
	for (unsigned i = 0; i < MANY; i++) {
		CHECK(conf_await_count(t, server, pair[i].sc, WF_EVENT_MSG, 10));
		CHECK(conf_await_count(t, client, pair[i].cc, WF_EVENT_MSG, 10));
		for (unsigned round = 0; round < 10; round++) {
			CHECK(conf_is_message(conf_nth(server, pair[i].sc, WF_EVENT_MSG, round),
					      i * 100 + round, (size_t)50 * round));
			CHECK(conf_is_message(conf_nth(client, pair[i].cc, WF_EVENT_MSG, round),
					      7000 + i * 100 + round, 5));
		}
	}
	return true;
}

static bool
one_bad_peer_harms_nobody_else(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *good = conf_node(t, NULL);
	struct node *bad = conf_node(t, NULL);
	CHECK(server != NULL && good != NULL && bad != NULL);
	struct pair good_pair, bad_pair;
	struct wf_grant_key good_key, bad_key;
	CHECK(conf_join(t, server, good, &good_pair));
	CHECK(conf_join(t, server, bad, &bad_pair));
	CHECK(conf_grant_place(server, good_pair.sc, 0, 4096, &good_key));
	CHECK(conf_grant_place(server, bad_pair.sc, 4096, 4096, &bad_key));
	conf_fill(good->memory, 4096, 1);
	struct wf_op put = conf_put_op(bad, &bad_key, 0, 4096, 1);
	put.offset = 1;
	CHECK(conf_post(bad_pair.cc, &put));
	put = conf_put_op(good, &good_key, 0, 4096, 2);
	CHECK(conf_post(good_pair.cc, &put));
	struct seen *down = conf_await(t, server, bad_pair.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	CHECK(conf_await(t, server, good_pair.sc, WF_EVENT_PUT) != NULL);
	CHECK(conf_is_filled(server->memory, 4096, 1));
	CHECK(conf_send_all(t, good_pair.cc, 3, 30));
	CHECK(conf_is_message(conf_await(t, server, good_pair.sc, WF_EVENT_MSG), 3, 30));
	CHECK(conf_count(server, good_pair.sc, WF_EVENT_DOWN) == 0);
	return true;
}

/* The busy one always has more to send; the other's single message must come through meanwhile. */
static bool
busy_connection_does_not_starve_another(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *busy = conf_node(t, NULL);
	struct node *calm = conf_node(t, NULL);
	CHECK(server != NULL && busy != NULL && calm != NULL);
	struct pair busy_pair, calm_pair;
	CHECK(conf_join(t, server, busy, &busy_pair));
	CHECK(conf_join(t, server, calm, &calm_pair));
	t->poll_max = 4;
	uint64_t mark = 0;
	for (int i = 0; i < 2000 && conf_send(busy_pair.cc, mark, 4000) == WEFT_OK; i++) {
		mark++;
	}
	CHECK(conf_send(calm_pair.cc, 1, 8) == WEFT_OK);
	unsigned rounds = 0;
	while (conf_count(server, calm_pair.sc, WF_EVENT_MSG) == 0 && rounds < 20000) {
		while (conf_send(busy_pair.cc, mark, 4000) == WEFT_OK) {
			mark++;
		}
		conf_poll(t, busy);
		conf_poll(t, calm);
		if (conf_poll(t, server) == 0) {
			conf_rest(t);
		}
		rounds++;
	}
	CHECK(conf_count(server, calm_pair.sc, WF_EVENT_MSG) == 1);
	return true;
}

const struct conf_case conf_connect_cases[] = {
	CASE(poll_of_an_idle_transport_is_empty),
	CASE(connect_comes_up_with_the_verdict),
	CASE(connect_to_nobody_is_unavailable),
	CASE(hello_and_verdict_of_every_size_arrive),
	CASE(hello_and_verdict_over_the_limit_are_invalid),
	CASE(incoming_connection_waits_for_its_answer),
	CASE(answer_may_come_after_other_traffic),
	CASE(accepting_end_may_post_right_after_its_answer),
	CASE(refused_peer_gets_the_verdict),
	CASE(unanswered_connect_times_out),
	CASE(listener_that_goes_away_makes_connects_unavailable),
	CASE(listening_on_a_port_in_use_is_unavailable),
	CASE(user_pointer_of_a_connection_is_the_callers),
	CASE(calls_between_down_and_the_next_poll_are_harmless),
	CASE(connections_are_bounded),
	CASE(who_was_refused_keeps_nobody_out),
	CASE(many_connections_carry_their_own_traffic),
	CASE(one_bad_peer_harms_nobody_else),
	CASE(busy_connection_does_not_starve_another),
	{0},
};
