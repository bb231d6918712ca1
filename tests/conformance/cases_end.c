/* SPDX-License-Identifier: Apache-2.0 */
/* cases_end: C38 to C42, how connections end. Thread: the case's. */
#include "tests/conformance/conformance.h"

static bool
ends_closed(struct conf *t, struct node *n, const struct wf_conn *conn)
{
	struct seen *down = conf_await(t, n, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	conf_settle(t);
	CHECK(conf_count(n, conn, WF_EVENT_DOWN) == 1);
	return true;
}

static bool
disconnect_twice(struct conf *t, struct node *n, struct wf_conn *conn, enum wf_disconnect how)
{
	wf_transport_disconnect(conn, how);
	wf_transport_disconnect(conn, how);
	return ends_closed(t, n, conn);
}

/* Straight after connect, before the answer at either end, and while it is UP. */
static bool
disconnect_in_each_state(struct conf *t, enum wf_disconnect how)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	CHECK(disconnect_twice(t, client, conn, how));
	conf_forget(client);
	conf_forget(server);
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	CHECK(disconnect_twice(t, server, up->conn, how));
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	conf_settle(t);
	conf_forget(client);
	conf_forget(server);
	struct pair p;
	CHECK(conf_join(t, server, client, &p));
	CHECK(disconnect_twice(t, client, p.cc, how));
	CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
	return true;
}

static bool
disconnect_works_in_every_state(struct conf *t)
{
	return disconnect_in_each_state(t, WF_DISCONNECT_NOW) &&
	       disconnect_in_each_state(t, WF_DISCONNECT_DRAIN);
}

static bool
after_disconnect_only_done_and_down_come(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 1000, &key));
	for (uint64_t i = 0; i < 50; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 1000, i);
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(conf_send_all(t, p.cc, i, 500));
		CHECK(conf_send_all(t, p.sc, i, 500));
	}
	size_t seen = p.server->seen_count;
	wf_transport_disconnect(p.sc, WF_DISCONNECT_DRAIN);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	for (; seen < p.server->seen_count; seen++) {
		enum wf_event_kind kind = p.server->seen[seen].kind;
		CHECK(kind == WF_EVENT_DONE || kind == WF_EVENT_DOWN);
	}
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_MSG, 50));
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 100);
	return true;
}

/* Also while the peer sends, so that the stream ends with bytes unread at this end. It is more than
 * a medium holds, and little beside what a busy machine moves within the second that it has. */
static bool
drain_delivers_what_was_taken(struct conf *t)
{
	const uint64_t bytes = 1u << 18;
	struct pair p;
	struct wf_grant_key to_server, to_client;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 8 * bytes, &to_server));
	CHECK(conf_grant_place(p.client, p.cc, 16 * bytes, bytes, &to_client));
	for (uint64_t i = 0; i < 8; i++) {
		conf_fill(p.client->memory + i * bytes, bytes, i);
		struct wf_op put = conf_put_op(p.client, &to_server, i * bytes, bytes, i);
		put.offset = i * bytes;
		CHECK(conf_post(p.cc, &put));
		CHECK(conf_send(p.cc, i, 1000) == WEFT_OK);
		put = conf_put_op(p.server, &to_client, 16 * bytes, bytes, i);
		CHECK(conf_post(p.sc, &put));
	}
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == 8);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 8);
	for (uint64_t i = 0; i < 8; i++) {
		CHECK(conf_is_message(conf_nth(p.server, p.sc, WF_EVENT_MSG, (unsigned)i), i,
				      1000));
		CHECK(conf_is_filled(p.server->memory + i * bytes, bytes, i));
	}
	down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 16);
	for (unsigned i = 0; i < 16; i++) {
		CHECK(conf_nth(p.client, p.cc, WF_EVENT_DONE, i)->status == WEFT_OK);
	}
	return true;
}

static bool
now_stops_at_once(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 16u << 20, &key));
	for (uint64_t i = 0; i < 10; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 16u << 20, i);
		CHECK(conf_post(p.cc, &put));
	}
	CHECK(conf_send(p.cc, 1, 10) == WEFT_OK);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL);
	CHECK(down->status == WEFT_CLOSED || down->status == WEFT_LOST);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) < 10);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DONE) == 11);
	return true;
}

static bool
peer_that_closes_in_mid_transfer_leaves_no_operation_behind(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 16u << 20, &key));
	for (uint64_t i = 0; i < 10; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 16u << 20, i);
		CHECK(conf_post(p.cc, &put));
	}
	for (uint64_t i = 0; i < 20; i++) {
		CHECK(conf_send(p.sc, i, 2000) == WEFT_OK);
	}
	conf_poll(t, p.client);
	conf_poll(t, p.server);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_DRAIN);
	struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_CLOSED);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_MSG) == 20);
	CHECK(conf_is_done_once(p.client, p.cc, 10));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	return true;
}

static bool
closing_a_transport_takes_its_connections_down(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct pair p[3];
	for (int i = 0; i < 3; i++) {
		CHECK(conf_join(t, server, client, &p[i]));
		CHECK(conf_send(p[i].cc, 1, 1000) == WEFT_OK);
	}
	conf_node_close(t, server);
	for (int i = 0; i < 3; i++) {
		struct seen *down = conf_await(t, client, p[i].cc, WF_EVENT_DOWN);
		CHECK(down != NULL);
		CHECK(down->status == WEFT_CLOSED || down->status == WEFT_LOST);
	}
	return true;
}

#define STILL_MESSAGES_MAX 20000u

/* Post messages until this end has been full for a while. Returns how many were taken. */
static unsigned
fill_way(struct conf *t, struct node *n, struct wf_conn *conn)
{
	unsigned count = 0;
	for (unsigned full = 0; full < 20 && count < STILL_MESSAGES_MAX;) {
		enum weft_status st = conf_send(conn, count, WF_MSG_BODY_MAX);
		if (st == WEFT_OK) {
			count++;
			full = 0;
		} else {
			conf_poll(t, n);
			conf_rest(t);
			full++;
		}
	}
	return count;
}

/* Short, but longer than an answer of a device takes beside the bytes of the case. */
static uint64_t
peer_timeout_ns(const struct conf *t)
{
	return 200 * WF_NS_PER_MS + 2 * t->hasty_ns;
}

static bool
stays_up(struct node *n, const struct wf_conn *conn)
{
	const struct seen *down = conf_nth(n, conn, WF_EVENT_DOWN, 0);
	if (down != NULL) {
		fprintf(stderr, "down: %s, %s\n", weft_status_name(down->status), down->why);
	}
	return down == NULL;
}

/* A connection of which one end takes no turn for a while, or neither does. */
struct still {
	bool server_polls, client_polls;
	struct pair pair;
	struct wf_grant_key key;
	unsigned sent; /* messages that the server has not taken in */
};

#define STILL_BYTES (16u << 20)
#define STILL_COUNT 3u

static bool
still_connect(struct conf *t, struct still *s)
{
	const struct wf_transport_opts opts = {.peer_timeout_ns = peer_timeout_ns(t)};
	struct pair *p = &s->pair;
	return conf_pair(t, &opts, p) &&
	       conf_grant_place(p->server, p->sc, 0, STILL_BYTES, &s->key);
}

/* Messages and a PUT that the peer does not take in, nor a rest of them that this end has. */
static bool
still_fill(struct conf *t, struct still *s)
{
	struct pair *p = &s->pair;
	conf_fill(p->client->memory, STILL_BYTES, 7);
	struct wf_op put = conf_put_op(p->client, &s->key, 0, STILL_BYTES, 0);
	CHECK(conf_post(p->cc, &put));
	s->sent = fill_way(t, p->client, p->cc);
	return true;
}

/* Let several times peer_timeout pass for all of them at once. */
static bool
stand_still(struct conf *t, const struct still *still)
{
	uint64_t until_ns = wf_now_ns(t->env) + 3 * peer_timeout_ns(t);
	while (wf_now_ns(t->env) < until_ns) {
		for (unsigned i = 0; i < STILL_COUNT; i++) {
			if (still[i].server_polls) {
				conf_poll(t, still[i].pair.server);
			}
			if (still[i].client_polls) {
				conf_poll(t, still[i].pair.client);
			}
		}
		conf_rest(t);
	}
	for (unsigned i = 0; i < STILL_COUNT; i++) {
		const struct pair *p = &still[i].pair;
		CHECK(stays_up(p->server, p->sc) && stays_up(p->client, p->cc));
	}
	return true;
}

/* All of it arrives, and the connection works both ways. */
static bool
still_goes_on(struct conf *t, const struct still *s)
{
	const struct pair *p = &s->pair;
	CHECK(conf_await_count(t, p->server, p->sc, WF_EVENT_MSG, s->sent));
	for (unsigned i = 0; i < s->sent; i++) {
		CHECK(conf_is_message(conf_nth(p->server, p->sc, WF_EVENT_MSG, i), i,
				      WF_MSG_BODY_MAX));
	}
	CHECK(conf_count(p->server, p->sc, WF_EVENT_PUT) == 1);
	CHECK(conf_is_filled(p->server->memory, STILL_BYTES, 7));
	CHECK(conf_send_all(t, p->sc, 1, 100));
	CHECK(conf_is_message(conf_await(t, p->client, p->cc, WF_EVENT_MSG), 1, 100));
	return true;
}

static bool
end_that_does_not_poll_keeps_its_connections(struct conf *t)
{
	struct still still[STILL_COUNT] = {{.client_polls = true}, {.server_polls = true}, {0}};
	for (unsigned i = 0; i < STILL_COUNT; i++) {
		CHECK(still_connect(t, &still[i]));
	}
	for (unsigned i = 0; i < STILL_COUNT; i++) {
		CHECK(still_fill(t, &still[i]));
	}
	CHECK(stand_still(t, still));
	for (unsigned i = 0; i < STILL_COUNT; i++) {
		CHECK(still_goes_on(t, &still[i]));
	}
	return true;
}

const struct conf_case conf_end_cases[] = {
	CASE(disconnect_works_in_every_state),
	CASE(after_disconnect_only_done_and_down_come),
	CASE(drain_delivers_what_was_taken),
	CASE(now_stops_at_once),
	CASE(peer_that_closes_in_mid_transfer_leaves_no_operation_behind),
	CASE(closing_a_transport_takes_its_connections_down),
	CASE(end_that_does_not_poll_keeps_its_connections),
	{0},
};
