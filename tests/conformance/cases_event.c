/* SPDX-License-Identifier: Apache-2.0 */
/* cases_event: C21 to C28 and C43 to C47, what poll brings, in which order, and sleeping.
 * Thread: the case's. */
#include "tests/conformance/conformance.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "transport/ops.h"

static bool
messages_and_puts_keep_their_order(struct conf *t)
{
	enum { COUNT = 400 };
	static bool is_put[COUNT];
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 1 << 20, &key));
	for (uint32_t i = 0; i < COUNT; i++) {
		is_put[i] = wf_rng_below(&t->rng, 2) == 0;
		if (is_put[i]) {
			uint64_t bytes = 1 + wf_rng_below(&t->rng, 30000);
			struct wf_op put = conf_put_op(p.client, &key, 0, bytes, i);
			put.tag = wf_tag(i, i);
			CHECK(conf_post_all(t, p.cc, &put));
		} else {
			CHECK(conf_send_all(t, p.cc, i, wf_rng_below(&t->rng, 2000)));
		}
	}
	CHECK(conf_send_all(t, p.cc, COUNT, 0));
	while (conf_nth(p.server, p.sc, WF_EVENT_MSG, 0) == NULL ||
	       p.server->seen[p.server->seen_count - 1].head.request_id != COUNT) {
		CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
		conf_pump(t);
	}
	uint32_t i = 0;
	for (size_t at = 0; at < p.server->seen_count && i < COUNT; at++) {
		const struct seen *s = &p.server->seen[at];
		if (s->kind == WF_EVENT_PUT) {
			CHECK(is_put[i] && s->tag == wf_tag(i, i));
			i++;
		} else if (s->kind == WF_EVENT_MSG) {
			CHECK(!is_put[i] && s->head.request_id == i);
			i++;
		}
	}
	CHECK(i == COUNT);
	return true;
}

static bool
messages_of_every_size_arrive(struct conf *t)
{
	static const size_t sizes[] = {0, 1, 2, 7, 63, 64, 65, 1000, 4031, 4032};
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	unsigned count = 0;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, count++) {
		CHECK(conf_send_all(t, p.cc, i, sizes[i]));
		CHECK(conf_send_all(t, p.sc, i, sizes[i]));
	}
	CHECK(conf_send(p.cc, 0, 4032) == WEFT_OK);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, count));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_MSG, count));
	for (unsigned i = 0; i < count; i++) {
		CHECK(conf_is_message(conf_nth(p.server, p.sc, WF_EVENT_MSG, i), i, sizes[i]));
		CHECK(conf_is_message(conf_nth(p.client, p.cc, WF_EVENT_MSG, i), i, sizes[i]));
	}
	static const uint8_t body[4033];
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = sizeof(body)};
	unsigned taken = 0;
	CHECK(wf_transport_post(p.cc, &op, 1, &taken) == WEFT_INVALID);
	return true;
}

static bool
head_fields_arrive_as_posted(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	for (int flags = 0; flags <= WF_HEAD_PAYLOAD_CRC; flags++) {
		struct wf_head head = {
			.service = WF_SERVICE_SPARSE,
			.type = 200,
			.flags = (uint8_t)flags,
			.request_id = 0x1122334455667788u,
			.step = UINT64_MAX,
			.slice = 0xfffffff0u,
			.region = 0x80000001u,
			.offset = 0xaabbccddeeff0011u,
			.epoch = 42,
		};
		struct wf_op op = {.kind = WF_OP_SEND, .head = &head, .body = "xyz"};
		op.body_bytes = 3;
		CHECK(conf_post(p.cc, &op));
		const struct seen *msg = conf_await(t, p.server, p.sc, WF_EVENT_MSG);
		CHECK(msg != NULL);
		CHECK(msg->head.service == head.service && msg->head.type == head.type);
		CHECK(msg->head.flags == head.flags && msg->head.body_bytes == 3);
		CHECK(msg->head.request_id == head.request_id && msg->head.step == head.step);
		CHECK(msg->head.slice == head.slice && msg->head.region == head.region);
		CHECK(msg->head.offset == head.offset && msg->head.epoch == head.epoch);
		CHECK(memcmp(msg->bytes, "xyz", 3) == 0);
	}
	return true;
}

/* A message says how many PUTs went before it: all their bytes must be there when it comes. */
static bool
bytes_of_earlier_puts_are_visible(struct conf *t)
{
	const uint64_t each = 3000;
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 256 * each, &key));
	for (uint32_t i = 0; i < 256; i++) {
		conf_fill(p.client->memory + i * each, each, i);
	}
	uint32_t checked = 0;
	for (uint32_t i = 0; i < 256; i++) {
		struct wf_op put = conf_put_op(p.client, &key, i * each, each, i);
		put.offset = i * each;
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(conf_send_all(t, p.cc, i, 0));
		uint32_t seen = conf_count(p.server, p.sc, WF_EVENT_MSG);
		for (; checked < seen; checked++) {
			CHECK(conf_is_filled(p.server->memory + checked * each, each, checked));
		}
	}
	while (checked < 256) {
		CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, checked + 1));
		CHECK(conf_is_filled(p.server->memory + checked * each, each, checked));
		checked++;
	}
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == 256);
	return true;
}

static bool
put_lands(struct conf *t, const struct pair *p, const struct wf_grant_key *key, uint64_t bytes)
{
	struct wf_op put = conf_put_op(p->client, key, 5, bytes, bytes);
	put.offset = 3;
	put.tag = (uint32_t)bytes;
	conf_fill(p->client->memory + 5, bytes, bytes);
	CHECK(conf_post_all(t, p->cc, &put));
	struct seen *event = conf_await(t, p->server, p->sc, WF_EVENT_PUT);
	CHECK(event != NULL && event->tag == (uint32_t)bytes);
	CHECK(conf_is_filled(p->server->memory + 64 + 3, bytes, bytes));
	CHECK(conf_await(t, p->client, p->cc, WF_EVENT_DONE) != NULL);
	return true;
}

static bool
puts_of_every_size_land(struct conf *t)
{
	static const uint64_t sizes[] = {1,     2,     63,    64,    65,     4032,    4096,
					 65471, 65472, 65536, 65537, 262144, 1000003, 9u << 20};
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 64, 10u << 20, &key));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CHECK(put_lands(t, &p, &key, sizes[i]));
	}
	for (int i = 0; i < 50; i++) {
		CHECK(put_lands(t, &p, &key, 1 + wf_rng_below(&t->rng, 200000)));
	}
	for (unsigned i = 0; i < 64; i++) {
		CHECK(p.server->memory[i] == 0);
	}
	return true;
}

/* Looks at the pointers themselves, at the last moment that is allowed. */
static bool
event_pointers_live_until_the_next_poll(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	const unsigned count = 500;
	unsigned sent = 0, got = 0, empty = 0;
	while (got < count && empty < 100000) {
		while (sent < count && conf_send(p.cc, sent, (sent * 37) % 4033) == WEFT_OK) {
			sent++;
		}
		conf_poll(t, p.client);
		struct wf_event event[32];
		unsigned n = 0;
		CHECK(wf_transport_poll(p.server->transport, event, 32, &n) == WEFT_OK);
		conf_poll(t, p.client);
		for (unsigned i = 0; i < n; i++) {
			CHECK(event[i].kind == WF_EVENT_MSG);
			CHECK(event[i].msg.head->request_id == got);
			CHECK(event[i].msg.head->body_bytes == (got * 37) % 4033);
			CHECK(conf_is_filled(event[i].msg.body, (got * 37) % 4033, got));
			got++;
		}
		if (n == 0) {
			empty++;
			conf_rest(t);
		}
	}
	CHECK(got == count);
	return true;
}

static bool
put_event_has_data_only_for_slots(struct conf *t)
{
	struct pair p;
	struct wf_grant_key place, slots;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 1000, &place));
	CHECK(conf_grant_slots(p.client, p.cc, 1000, 4, &slots));
	struct wf_op put = conf_put_op(p.client, &place, 8000, 1000, 1);
	put.tag = 0xdeadbeef;
	CHECK(conf_post(p.cc, &put));
	conf_fill(p.server->memory + 8000, 900, 5);
	put = conf_put_op(p.server, &slots, 8000, 900, 2);
	put.tag = wf_tag(3, 1);
	CHECK(conf_post(p.sc, &put));
	struct seen *event = conf_await(t, p.server, p.sc, WF_EVENT_PUT);
	CHECK(event != NULL && event->data == NULL && event->tag == 0xdeadbeef);
	event = conf_await(t, p.client, p.cc, WF_EVENT_PUT);
	CHECK(event != NULL && event->data != NULL && event->tag == wf_tag(3, 1));
	CHECK(conf_is_filled(event->data, 900, 5));
	wf_transport_release(p.cc, 3);
	return true;
}

static bool
down_is_last(struct node *n, const struct wf_conn *conn)
{
	CHECK(conf_count(n, conn, WF_EVENT_DOWN) == 1);
	bool down = false;
	for (size_t i = 0; i < n->seen_count; i++) {
		CHECK(n->seen[i].conn != conn || !down);
		down = down || (n->seen[i].conn == conn && n->seen[i].kind == WF_EVENT_DOWN);
	}
	return true;
}

/* Traffic both ways, then an end; afterwards nothing changes in what was granted. */
static bool
down_comes_last_and_once(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 8u << 20, &key));
	memset(p.client->memory, 0x55, 8u << 20);
	for (unsigned i = 0; i < 6; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 8u << 20, i);
		CHECK(conf_post(p.cc, &put));
		CHECK(conf_send(p.cc, i, 100) == WEFT_OK);
		CHECK(conf_send(p.sc, i, 100) == WEFT_OK);
	}
	conf_poll(t, p.client);
	conf_poll(t, p.server);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	memset(p.server->memory, 0x77, 8u << 20);
	conf_settle(t);
	for (unsigned i = 0; i < 8u << 20; i++) {
		CHECK(p.server->memory[i] == 0x77);
	}
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DOWN, 1));
	CHECK(down_is_last(p.server, p.sc) && down_is_last(p.client, p.cc));
	return true;
}

static bool
down_names_the_peer(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	char port[16];
	snprintf(port, sizeof(port), ":%u", p.server->at.port);
	CHECK(down != NULL && strstr(down->why, t->host) != NULL);
	CHECK(strstr(down->why, port) != NULL && strchr(down->why, '\n') == NULL);
	down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && strstr(down->why, t->host) != NULL);
	return true;
}

static bool
poll_writes_no_more_than_it_was_given(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_grant_slots(p.server, p.sc, 100, 64, &key));
	for (uint32_t i = 0; i < 60; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 100, i);
		put.tag = wf_tag(i, 0);
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(conf_send_all(t, p.cc, i, 10));
	}
	t->poll_max = 1;
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 60));
	CHECK(conf_count(p.server, p.sc, WF_EVENT_PUT) == 60);
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 120));
	wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	return true;
}

/* Both send until neither queue takes more, and only then begin to poll. */
static bool
full_queues_both_ways_do_not_deadlock(struct conf *t)
{
	const uint64_t bytes = 4u << 20;
	const unsigned count = 24;
	struct wf_transport_opts opts = {.op_max = 24};
	struct pair p;
	struct wf_grant_key to_server, to_client;
	CHECK(conf_pair(t, &opts, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, bytes, &to_server));
	CHECK(conf_grant_place(p.client, p.cc, 0, bytes, &to_client));
	conf_fill(p.client->memory + bytes, bytes, 1);
	conf_fill(p.server->memory + bytes, bytes, 2);
	for (unsigned i = 0; i < count; i++) {
		struct wf_op put = conf_put_op(p.client, &to_server, bytes, bytes, i);
		CHECK(conf_post(p.cc, &put));
		put = conf_put_op(p.server, &to_client, bytes, bytes, i);
		CHECK(conf_post(p.sc, &put));
	}
	CHECK(conf_send(p.cc, 1, 1) == WEFT_AGAIN && conf_send(p.sc, 1, 1) == WEFT_AGAIN);
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, count));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_PUT, count));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, count));
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_DONE, count));
	CHECK(conf_is_filled(p.server->memory, bytes, 1));
	CHECK(conf_is_filled(p.client->memory, bytes, 2));
	return true;
}

/* One descriptor over those of both; -1 where there is none. */
static int
join_fds(const struct node *a, const struct node *b)
{
	int fd = wf_transport_wait_fd(a->transport);
	if (fd < 0) {
		return -1;
	}
	int both = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	(void)epoll_ctl(both, EPOLL_CTL_ADD, fd, &event);
	(void)epoll_ctl(both, EPOLL_CTL_ADD, wf_transport_wait_fd(b->transport), &event);
	return both;
}

/* As a caller sleeps: arm, poll, and wait only if that was empty; at once after a quiet arm, unless
 * it waits for a DONE. */
static bool
sleep_until_event(struct conf *t, struct node *n, enum wf_event_kind kind)
{
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	int fd = wf_transport_wait_fd(n->transport);
	while (conf_count(n, NULL, kind) == 0) {
		uint64_t deadline_ns = 0;
		bool quiet = wf_transport_arm(n->transport, &deadline_ns);
		bool polls = !quiet || kind == WF_EVENT_DONE;
		if (polls && conf_poll(t, n) > 0) {
			continue;
		}
		deadline_ns = deadline_ns < limit_ns ? deadline_ns : limit_ns;
		if (quiet) {
			wf_transport_wait(n->transport, deadline_ns);
		} else {
			wf_wait(t->env, fd, deadline_ns);
		}
		conf_poll(t, n);
		CHECK(wf_now_ns(t->env) < limit_ns); /* woken by the event, not by the limit */
	}
	CHECK(fd == wf_transport_wait_fd(n->transport));
	return true;
}

/* The same, with `other` asleep beside it: a handshake may take several ways. */
static bool
sleep_until_up(struct conf *t, struct node *n, struct node *other)
{
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	int fd = join_fds(n, other);
	bool in_time = true;
	while (conf_count(n, NULL, WF_EVENT_UP) == 0 && in_time) {
		uint64_t deadline_ns[2] = {0};
		(void)wf_transport_arm(n->transport, &deadline_ns[0]);
		(void)wf_transport_arm(other->transport, &deadline_ns[1]);
		if (conf_poll(t, n) + conf_poll(t, other) > 0) {
			continue;
		}
		uint64_t soonest_ns =
			deadline_ns[0] < deadline_ns[1] ? deadline_ns[0] : deadline_ns[1];
		wf_wait(t->env, fd, soonest_ns < limit_ns ? soonest_ns : limit_ns);
		in_time = wf_now_ns(t->env) < limit_ns;
	}
	if (fd >= 0) {
		(void)close(fd);
	}
	CHECK(in_time);
	return true;
}

static bool
armed_transport_wakes_for_an_event(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	CHECK(sleep_until_up(t, server, client));
	struct wf_conn *sc = server->seen[0].conn;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(sleep_until_up(t, client, server));
	struct wf_grant_key key;
	CHECK(conf_grant_place(server, sc, 0, 1000, &key));
	struct wf_op put = conf_put_op(client, &key, 0, 1000, 1);
	CHECK(conf_post(conn, &put));
	CHECK(sleep_until_event(t, client, WF_EVENT_DONE));
	CHECK(sleep_until_event(t, server, WF_EVENT_PUT));
	CHECK(conf_send(sc, 1, 100) == WEFT_OK);
	conf_poll(t, server);
	CHECK(sleep_until_event(t, client, WF_EVENT_MSG));
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	CHECK(sleep_until_event(t, client, WF_EVENT_DOWN));
	CHECK(sleep_until_event(t, server, WF_EVENT_DOWN));
	return true;
}

static bool
what_was_posted_leaves_with_a_quiet_arm(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	conf_settle(t);
	for (unsigned i = 1; i <= 3; i++) {
		uint64_t deadline_ns = 0;
		CHECK(conf_send(p.cc, i, 100) == WEFT_OK);
		if (!wf_transport_arm(p.client->transport, &deadline_ns)) {
			conf_poll(t, p.client);
		}
		/* From here on it is the other end alone that polls. */
		CHECK(sleep_until_event(t, p.server, WF_EVENT_MSG));
		conf_forget(p.server);
		CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, i));
	}
	return true;
}

static bool
counters_count(struct conf *t)
{
	struct pair p;
	struct wf_grant_key key;
	struct wf_transport_opts opts = {.put_bytes_max = 1 << 20};
	CHECK(conf_pair(t, &opts, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, 1000, &key));
	for (uint64_t i = 0; i < 10; i++) {
		struct wf_op put = conf_put_op(p.client, &key, 0, 1000, i);
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(conf_send_all(t, p.cc, i, 100));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 10));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, 20));
	struct wf_transport_info a, b;
	wf_transport_query(p.client->transport, &a);
	wf_transport_query(p.server->transport, &b);
	CHECK(strcmp(a.name, t->transport) == 0 && a.put_bytes_max == 1 << 20);
	CHECK(a.conns_up == 1 && b.conns_up == 1 && a.conns_down == 0 && b.conns_down == 0);
	CHECK(a.msgs_sent == 10 && a.puts_sent == 10);
	CHECK(b.msgs_received == 10 && b.puts_received == 10);
	CHECK(a.bytes_sent >= 10 * 1100 && b.bytes_received >= 10 * 1100);
	CHECK(a.protocol_errors == 0 && b.protocol_errors == 0 && b.strangers_refused == 0);
	struct wf_op put = conf_put_op(p.client, &key, 0, 1001, 1);
	CHECK(conf_post(p.cc, &put));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	wf_transport_query(p.client->transport, &a);
	wf_transport_query(p.server->transport, &b);
	CHECK(b.protocol_errors == 1 && b.conns_down == 1 && a.conns_down == 1);
	return true;
}

static bool
adds_up(const struct wf_transport_info *info)
{
	uint64_t sent = 0;
	uint64_t received = 0;
	CHECK(info->path_count >= 1 && info->path_count <= WF_PATHS_MAX);
	for (unsigned i = 0; i < info->path_count; i++) {
		CHECK(info->path[i].name != NULL && info->path[i].conns_broken == 0);
		sent += info->path[i].bytes_sent;
		received += info->path[i].bytes_received;
	}
	CHECK(sent == info->bytes_sent && received == info->bytes_received);
	return true;
}

static bool
bytes_are_those_of_the_paths(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	for (uint64_t i = 0; i < 10; i++) {
		CHECK(conf_send_all(t, p.cc, i, 100));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 10));
	struct wf_transport_info info;
	wf_transport_query(p.client->transport, &info);
	CHECK(adds_up(&info) && info.bytes_sent >= 1000);
	wf_transport_query(p.server->transport, &info);
	CHECK(adds_up(&info) && info.bytes_received >= 1000);
	return true;
}

static bool
connection_names_its_path(struct conf *t)
{
	struct pair p;
	struct wf_path_info client, server;
	struct wf_transport_info info;
	CHECK(conf_pair(t, NULL, &p));
	wf_transport_path(p.cc, &client);
	wf_transport_path(p.sc, &server);
	CHECK(client.name[0] != '\0' && strcmp(client.name, server.name) == 0);
	CHECK(client.in_place == server.in_place);
	wf_transport_query(p.server->transport, &info);
	CHECK(!server.in_place || info.in_place);
	CHECK(client.why[0] != '\0' && strchr(client.why, '\n') == NULL);
	CHECK(server.why[0] != '\0' && strchr(server.why, '\n') == NULL);
	return true;
}

/* One turn of the client by another thread: it takes the transport over, and gives it back. */
struct turn {
	struct conf *t;
	struct pair *pair;
	uint64_t mark;
	enum weft_status st;
};

static void *
post_and_poll(void *arg)
{
	struct turn *turn = arg;
	turn->st = conf_send(turn->pair->cc, turn->mark, 700);
	(void)conf_poll(turn->t, turn->pair->client);
	return NULL;
}

static void *
kick(void *arg)
{
	wf_transport_kick(arg);
	return NULL;
}

static bool
run_elsewhere(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, run, arg) == 0 && pthread_join(thread, NULL) == 0;
}

static bool
the_owner_may_change_between_two_calls(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	for (uint64_t i = 0; i < 20; i++) {
		struct turn turn = {t, &p, i, WEFT_INTERNAL};
		uint64_t deadline_ns = 0;
		(void)wf_transport_arm(p.client->transport, &deadline_ns); /* by the first owner */
		CHECK(run_elsewhere(post_and_poll, &turn));
		CHECK(turn.st == WEFT_OK);
		CHECK(conf_send(p.sc, 100 + i, 90) == WEFT_OK);
		CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), i, 700));
		CHECK(conf_is_message(conf_await(t, p.client, p.cc, WF_EVENT_MSG), 100 + i, 90));
	}
	return true;
}

/* The wait of an armed transport ends at once: by the slot, or by a call of another thread. */
static bool
ends_the_wait(struct conf *t, bool kicked)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	conf_settle(t);
	struct wf_transport *idle = p.server->transport;
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t deadline_ns = 0;
		(void)wf_transport_arm(idle, &deadline_ns);
		CHECK(conf_poll(t, p.server) == 0);
		if (kicked) {
			CHECK(run_elsewhere(kick, idle));
			wf_transport_wait(idle, limit_ns);
		} else {
			idle->ops->wake(idle);
			wf_wait(t->env, wf_transport_wait_fd(idle), limit_ns);
		}
		CHECK(wf_now_ns(t->env) < limit_ns);
		CHECK(conf_poll(t, p.server) == 0);
	}
	return true;
}

static bool
wake_ends_the_wait(struct conf *t)
{
	return ends_the_wait(t, false);
}

static bool
a_kick_by_any_thread_ends_the_wait(struct conf *t)
{
	return ends_the_wait(t, true);
}

const struct conf_case conf_event_cases[] = {
	CASE(messages_and_puts_keep_their_order),
	CASE(messages_of_every_size_arrive),
	CASE(head_fields_arrive_as_posted),
	CASE(bytes_of_earlier_puts_are_visible),
	CASE(puts_of_every_size_land),
	CASE(event_pointers_live_until_the_next_poll),
	CASE(put_event_has_data_only_for_slots),
	CASE(down_comes_last_and_once),
	CASE(down_names_the_peer),
	CASE(poll_writes_no_more_than_it_was_given),
	CASE(full_queues_both_ways_do_not_deadlock),
	CASE(armed_transport_wakes_for_an_event),
	CASE(what_was_posted_leaves_with_a_quiet_arm),
	CASE(counters_count),
	CASE(bytes_are_those_of_the_paths),
	CASE(connection_names_its_path),
	CASE(wake_ends_the_wait),
	CASE(the_owner_may_change_between_two_calls),
	CASE(a_kick_by_any_thread_ends_the_wait),
	{0},
};
