/* SPDX-License-Identifier: Apache-2.0 */
/* The backend on devices that lie: each test is something that a kind of real device does, or that
 * happens to it, and that soft devices do not show. In a simulated world. Thread: one. */
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/double/verbs/conf_fake.h"
#include "tests/double/verbs/fake.h"
#include "tests/conformance/conformance.h"
#include "transport/verbs/verbs_internal.h"

static void
on(const char *url, bool (*body)(struct conf *t))
{
	assert_true(conf_fake_run(url, body));
}

/* ---- what a keepalive carries ---- */

/* After a message, so that something stands where the next work request will. */
static bool
idle_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_send_all(t, p.cc, 1, 300));
	CHECK(conf_send_all(t, p.sc, 1, 300));
	conf_fake_pass(t, 30 * WF_NS_PER_S);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
	return conf_send_all(t, p.cc, 2, 300) &&
	       conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL && fake_seen.stale == 0;
}

static void
idle_connection_stays_where_devices_take_a_piece_that_is_none(void **state)
{
	on("fake-irdma", idle_body);
}

/* ---- queues that cannot be read ---- */

static bool
poll_error_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	uint64_t begin_ns = wf_now_ns(t->env);
	fake_break_polls();
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_LOST);
	CHECK(strstr(down->why, "fake0: a completion queue cannot be read (ibv_poll_cq: -2)") !=
	      NULL);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < WF_VERBS_DRAINED_NS); /* it is not waited for */
	/* It is left: who connects now opens it anew. */
	return conf_join(t, p.server, p.client, &p) && conf_send_all(t, p.cc, 1, 300) &&
	       conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL;
}

static void
device_whose_queue_cannot_be_read_is_named_and_left(void **state)
{
	on("fake-mlx5", poll_error_body);
}

/* The request was accepted, and before the answer is read the device fails. */
static bool
answer_behind_body(struct conf *t)
{
	struct wf_conn *conn = NULL;
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, "ok", 2) == WEFT_OK);
	uint64_t begin_ns = wf_now_ns(t->env);
	fake_break_polls(); /* both ends share it here: the server has its own end of it */
	const struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	CHECK(strstr(down->why, "a completion queue cannot be read") != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < 50 * WF_NS_PER_MS);
	CHECK(conf_count(client, conn, WF_EVENT_UP) == 0);
	return conf_await(t, server, up->conn, WF_EVENT_DOWN) != NULL;
}

static void
answer_that_comes_behind_the_end_is_not_heard(void **state)
{
	on("fake-mlx5", answer_behind_body);
	on("fake-irdma", answer_behind_body);
}

/* ---- what a peer counts ---- */

static bool
backwards_body(struct conf *t)
{
	struct pair p;
	struct wf_transport_info info;
	CHECK(conf_pair(t, NULL, &p));
	uint64_t *written = &((struct wf_verbs_conn *)p.cc)->tx.put_bytes;
	*written += 100000;
	CHECK(conf_send_all(t, p.cc, 1, 300));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL);
	wf_transport_query(p.server->transport, &info);
	CHECK(info.bytes_received >= 100000);
	*written -= 50000;
	CHECK(conf_send_all(t, p.cc, 2, 300));
	const struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_PROTOCOL);
	CHECK(strstr(down->why, "goes backwards") != NULL);
	wf_transport_query(p.server->transport, &info);
	CHECK(info.bytes_received >= 100000);
	return conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL;
}

static void
peer_that_takes_back_what_it_has_written_goes_down(void **state)
{
	on("fake-mlx5", backwards_body);
}

/* ---- receive buffers ---- */

static unsigned
list_of(const struct wf_verbs_rx_list *list, const struct wf_verbs_queues *q)
{
	unsigned count = 0;
	for (const struct wf_verbs_rx *rx = list->first; rx != NULL; rx = rx->next) {
		count += rx->chunk->queues == q && rx->chunk->conn == NULL ? 1 : 0;
	}
	return count;
}

/* Those of one shared queue: with the device, or held here. */
static bool
books_of_queue_balance(const struct wf_verbs *t, const struct wf_verbs_queues *q)
{
	unsigned made = q->shares_used * q->dev->caps.rx_share;
	unsigned posted = fake_srq_left(q->srq);
	unsigned held = list_of(&q->fresh, q) + list_of(&t->lent, q);
	for (uint32_t i = 0; i < wf_places_table(&t->medium.places); i++) {
		held += t->conn[i] != NULL ? list_of(&t->conn[i]->rx.list, q) : 0;
	}
	if (posted + held != made) {
		fprintf(stderr, "%u buffers posted + %u held, %u made\n", posted, held, made);
	}
	return posted + held == made;
}

static bool
books_balance(const struct node *n)
{
	const struct wf_verbs *t = (const struct wf_verbs *)n->transport;
	for (const struct wf_verbs_queues *q = t->queues; q != NULL; q = q->next) {
		if (q->srq != NULL && !books_of_queue_balance(t, q)) {
			return false;
		}
	}
	for (uint32_t i = 0; i < wf_places_table(&t->medium.places); i++) {
		const struct wf_verbs_conn *c = t->conn[i];
		if (c != NULL && c->link.qp != NULL && c->link.queues->srq == NULL) {
			CHECK(c->rx.posted == fake_qp_left(c->link.qp));
		}
	}
	return true;
}

/* Notices that the server does not look at, and then it ends the connection. */
static bool
live_and_end(struct conf *t, struct pair *p)
{
	struct wf_grant_key key;
	CHECK(conf_grant_place(p->server, p->sc, 0, 4096, &key));
	for (unsigned i = 0; i < 20; i++) {
		struct wf_op put = conf_put_op(p->client, &key, 0, 8, i);
		put.tag = i;
		CHECK(conf_post(p->cc, &put));
	}
	for (unsigned i = 0; i < 20; i++) {
		(void)conf_poll(t, p->client);
		conf_rest(t);
	}
	CHECK(books_balance(p->server));
	wf_transport_disconnect(p->sc, WF_DISCONNECT_NOW);
	CHECK(books_balance(p->server));
	CHECK(conf_await(t, p->client, p->cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, p->server, p->sc, WF_EVENT_DOWN) != NULL);
	conf_settle(t);
	return books_balance(p->server) && books_balance(p->client);
}

/* What one connection leaves behind is what the next one receives with. */
static bool
lives_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p;
	CHECK(server != NULL && client != NULL);
	for (unsigned life = 0; life < 4; life++) {
		CHECK(conf_join(t, server, client, &p));
		CHECK(live_and_end(t, &p));
	}
	CHECK(conf_join(t, server, client, &p));
	for (unsigned i = 0; i < 100; i++) {
		CHECK(conf_send_all(t, p.cc, i, 300));
	}
	CHECK(conf_await_count(t, server, p.sc, WF_EVENT_MSG, 100));
	return fake_seen.dry == 0 && fake_seen.lost == 0 && fake_seen.unread == 0;
}

static bool
late_lives_body(struct conf *t)
{
	const struct fake_knobs knobs = {
		.seed = t->seed, .work_ns = 50 * WF_NS_PER_US, .completion_ns = 30 * WF_NS_PER_MS};
	fake_turn_knobs(&knobs);
	bool passed = lives_body(t);
	fake_turn_knobs(NULL);
	return passed;
}

static void
ended_connections_lose_no_receive_buffers(void **state)
{
	for (const struct fake_habits *h = fake_habits; h->name != NULL; h++) {
		char url[32];
		(void)snprintf(url, sizeof(url), "fake-%s", h->name);
		on(url, lives_body);
		on(url, late_lives_body);
	}
}

/* ---- devices that do not say when a queue pair has ended ---- */

static bool
silent_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p;
	uint64_t span_ns[5];
	CHECK(server != NULL && client != NULL);
	fake_device.silent_last = true;
	for (unsigned life = 0; life < 5; life++) {
		CHECK(conf_join(t, server, client, &p));
		uint64_t begin_ns = wf_now_ns(t->env);
		wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
		span_ns[life] = wf_now_ns(t->env) - begin_ns;
		CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
		CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
	}
	for (unsigned i = 0; i < 3; i++) {
		CHECK(span_ns[i] >= WF_VERBS_DRAINED_NS && span_ns[i] < 2 * WF_VERBS_DRAINED_NS);
	}
	CHECK(span_ns[3] < WF_NS_PER_MS && span_ns[4] < WF_NS_PER_MS);
	return true;
}

static void
device_that_tells_of_no_end_is_waited_for_a_while(void **state)
{
	on("fake-mlx5", silent_body);
}

static unsigned
undrained_of(const struct node *n)
{
	const struct wf_verbs *t = (const struct wf_verbs *)n->transport;
	return t->device[0]->undrained;
}

/* The client ends each connection, so that the server's end waits between its polls. */
static bool
now_and_then_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p;
	CHECK(server != NULL && client != NULL);
	for (unsigned life = 0; life < 3 * WF_VERBS_UNDRAINED_MAX; life++) {
		bool silent = life % 2 == 0;
		CHECK(conf_join(t, server, client, &p));
		fake_device.silent_last = silent;
		wf_transport_disconnect(p.cc, WF_DISCONNECT_NOW);
		CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
		CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
		CHECK(undrained_of(server) == (silent ? 1 : 0));
	}
	return true;
}

static void
device_that_tells_of_most_ends_is_waited_for_always(void **state)
{
	on("fake-mlx5", now_and_then_body);
}

/* The server takes no turn from the end of a connection until long after the device has told of it,
 * and what it finds then are messages of another one. */
static bool
late_look_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = t->seed, .completion_ns = 40 * WF_NS_PER_MS};
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p, other;
	CHECK(server != NULL && client != NULL);
	CHECK(conf_join(t, server, client, &other) && conf_join(t, server, client, &p));
	conf_settle(t);
	fake_turn_knobs(&knobs);
	CHECK(conf_send(p.sc, 1, 300) == WEFT_OK);
	struct wf_verbs_conn *c = (struct wf_verbs_conn *)p.sc;
	wf_verbs_conn_end(c, WEFT_LOST, "as if the peer had gone");
	CHECK(!wf_verbs_sq_is_ended(&c->tx.sq));
	uint64_t until_ns = wf_now_ns(t->env) + 2 * WF_VERBS_DRAINED_NS;
	for (unsigned i = 0; wf_now_ns(t->env) < until_ns; i++) {
		(void)!conf_send(other.cc, i, 300);
		(void)conf_poll(t, client);
		conf_rest(t);
	}
	CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
	fake_turn_knobs(NULL);
	CHECK(undrained_of(server) == 0);
	return true;
}

static void
end_that_was_told_while_nobody_looked_was_told(void **state)
{
	on("fake-mlx5", late_look_body);
	on("fake-bnxt", late_look_body);
}

/* What the device did not take is not waited for. */
static bool
refused_work_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	struct wf_verbs_conn *c = (struct wf_verbs_conn *)p.cc;
	c->tx.sq.depth *= 4; /* more than the device was asked for */
	for (unsigned i = 0; i < c->tx.sq.depth && c->life.state == WF_LIFE_UP; i++) {
		wf_verbs_ask_alive(c);
	}
	CHECK(c->life.state == WF_LIFE_ENDING && c->end.status == WEFT_LOST);
	uint64_t begin_ns = wf_now_ns(t->env);
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && strstr(down->why, "took no more work") != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < WF_VERBS_DRAINED_NS / 2);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(undrained_of(p.client) == 0);
	return true;
}

static void
work_that_a_device_does_not_take_is_not_waited_for(void **state)
{
	on("fake-mlx5", refused_work_body);
	on("fake-rxe", refused_work_body);
}

/* It is known of this one. */
static bool
never_says_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	uint64_t begin_ns = wf_now_ns(t->env);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	CHECK(wf_now_ns(t->env) - begin_ns < WF_NS_PER_MS);
	return conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL;
}

static void
device_that_never_tells_of_an_end_is_not_waited_for(void **state)
{
	on("fake-rxe", never_says_body);
}

static unsigned
sets_of(const struct node *n)
{
	unsigned count = 0;
	const struct wf_verbs *t = (const struct wf_verbs *)n->transport;
	for (const struct wf_verbs_queues *q = t->queues; q != NULL; q = q->next) {
		count++;
	}
	return count;
}

/* Beside a connection that keeps the queues, another one ends, of which the device tells or not. */
static bool
end_beside_another(struct conf *t, struct node *server, struct node *client, bool silent)
{
	struct pair other, p;
	CHECK(conf_join(t, server, client, &other) && conf_join(t, server, client, &p));
	fake_device.silent_last = silent;
	uint64_t begin_ns = wf_now_ns(t->env);
	wf_transport_disconnect(p.sc, WF_DISCONNECT_NOW);
	uint64_t span_ns = wf_now_ns(t->env) - begin_ns;
	CHECK(span_ns >= (silent ? WF_VERBS_DRAINED_NS : 0) && span_ns < 2 * WF_VERBS_DRAINED_NS);
	CHECK(silent || span_ns < WF_VERBS_DRAINED_NS);
	CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
	fake_device.silent_last = false;
	conf_settle(t);
	return true;
}

/* One end that it tells of makes up for those before. However often that is, no more than so many
 * sets of queues wait for their last connection. */
static bool
forgiven_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p;
	CHECK(server != NULL && client != NULL);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(end_beside_another(t, server, client, true));
		CHECK(end_beside_another(t, server, client, true));
		CHECK(end_beside_another(t, server, client, false));
	}
	CHECK(conf_join(t, server, client, &p));
	return sets_of(server) == WF_VERBS_RETIRED_MAX + 1;
}

static void
device_that_tells_again_is_forgiven(void **state)
{
	on("fake-mlx5", forgiven_body);
}

/* ---- buffers that a device never tells of ---- */

/* The completions of 20 notices are not there when the server ends the connection, and go with its
 * queue pair. */
static bool
lose_buffers(struct conf *t, struct pair *p)
{
	const struct fake_knobs knobs = {.seed = 1, .completion_ns = 1000 * WF_NS_PER_S};
	struct wf_grant_key key;
	CHECK(conf_grant_place(p->server, p->sc, 0, 4096, &key));
	conf_settle(t);
	fake_turn_knobs(&knobs);
	for (unsigned i = 0; i < 20; i++) {
		struct wf_op put = conf_put_op(p->client, &key, 0, 8, i);
		CHECK(conf_post(p->cc, &put));
	}
	(void)conf_poll(t, p->client);
	conf_fake_pass(t, WF_NS_PER_MS);
	wf_transport_disconnect(p->sc, WF_DISCONNECT_NOW);
	fake_turn_knobs(NULL);
	CHECK(fake_seen.lost >= 20);
	CHECK(conf_await(t, p->server, p->sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, p->client, p->cc, WF_EVENT_DOWN) != NULL);
	conf_settle(t);
	return true;
}

static bool
lost_buffers_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct pair p, other, next;
	CHECK(server != NULL && client != NULL);
	/* The last connection of its queues. */
	CHECK(conf_join(t, server, client, &p) && lose_buffers(t, &p));
	CHECK(sets_of(server) == 0);
	/* Beside another one, which keeps them: who comes next is elsewhere. */
	CHECK(conf_join(t, server, client, &other) && conf_join(t, server, client, &p));
	CHECK(sets_of(server) == 1 && lose_buffers(t, &p));
	CHECK(conf_join(t, server, client, &next) && sets_of(server) == 2);
	CHECK(conf_send_all(t, other.cc, 1, 300));
	CHECK(conf_await(t, server, other.sc, WF_EVENT_MSG) != NULL);
	for (unsigned i = 0; i < 100; i++) {
		CHECK(conf_send_all(t, next.cc, i, 300));
	}
	CHECK(conf_await_count(t, server, next.sc, WF_EVENT_MSG, 100));
	wf_transport_disconnect(other.cc, WF_DISCONNECT_NOW);
	CHECK(conf_await(t, server, other.sc, WF_EVENT_DOWN) != NULL);
	conf_settle(t);
	CHECK(sets_of(server) == 1 && books_balance(server));
	fake_seen.lost = 0; /* they went with their queues */
	return fake_seen.dry == 0;
}

static void
queue_that_may_have_lost_buffers_takes_no_more_connections(void **state)
{
	on("fake-mlx5", lost_buffers_body);
	on("fake-bnxt", lost_buffers_body);
}

/* ---- calls that fail ---- */

static uint64_t nomem_at;
static bool nomem_met; /* there were so many calls */

/* An end has its connection, or knows why not. */
static bool
is_settled(struct node *n, const struct wf_conn *conn)
{
	const struct seen *down = conf_nth(n, conn, WF_EVENT_DOWN, 0);
	CHECK(down == NULL || down->why[0] != '\0');
	return down != NULL || conf_count(n, conn, WF_EVENT_UP) > 0;
}

/* Connects; until the client's end has its connection, or knows why not. */
static bool
try_once(struct conf *t, struct node *server, struct node *client, struct wf_conn **conn)
{
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, conn) == WEFT_OK);
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	while (!is_settled(client, *conn)) {
		struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
		if (up != NULL && !up->used) {
			up->used = true;
			(void)!wf_transport_answer(up->conn, true, NULL, 0);
		}
		conf_pump(t);
		CHECK(wf_now_ns(t->env) < limit_ns);
	}
	return true;
}

/* One call of all that a connection takes fails. It comes up or says why, and the next one is as
 * if nothing had been. */
static bool
nomem_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = 1, .nomem_at = nomem_at};
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	struct wf_grant_key key;
	struct pair p;
	CHECK(server != NULL && client != NULL);
	fake_turn_knobs(&knobs);
	CHECK(try_once(t, server, client, &conn));
	struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
	if (up != NULL && conf_count(server, up->conn, WF_EVENT_DOWN) == 0) {
		(void)!conf_grant_place(server, up->conn, 0, 4096, &key);
	}
	for (unsigned i = 0; i < 40 && conf_count(client, conn, WF_EVENT_DOWN) == 0; i++) {
		(void)!conf_send(conn, i, 300);
		conf_pump(t);
	}
	if (conf_count(client, conn, WF_EVENT_DOWN) == 0) {
		wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	}
	CHECK(conf_await(t, client, conn, WF_EVENT_DOWN) != NULL);
	CHECK(up == NULL || conf_await(t, server, up->conn, WF_EVENT_DOWN) != NULL);
	nomem_met = fake_happened.nomem > 0;
	fake_turn_knobs(NULL);
	conf_settle(t);
	conf_forget(server);
	conf_forget(client);
	return conf_join(t, server, client, &p) && conf_send_all(t, p.cc, 1, 300) &&
	       conf_await(t, server, p.sc, WF_EVENT_MSG) != NULL;
}

/* The device has no memory for a grant: nobody's fault, so the connection is lost, with the cause.
 */
static bool
grant_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = 1, .nomem_at = 1};
	struct wf_grant grant = {.kind = WF_GRANT_PLACE, .bytes = 4096};
	struct wf_grant_key key;
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	grant.region = p.server->region;
	fake_turn_knobs(&knobs);
	CHECK(wf_transport_grant(p.sc, &grant, &key) == WEFT_CLOSED);
	fake_turn_knobs(NULL);
	const struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_LOST);
	CHECK(strstr(down->why, "Cannot allocate memory") != NULL);
	return conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL;
}

static void
grant_that_the_device_has_no_memory_for_loses_the_connection(void **state)
{
	on("fake-mlx5", grant_body);
	on("fake-irdma", grant_body);
}

static void
call_that_fails_costs_one_connection_at_most(void **state)
{
	static const char *const urls[] = {"fake-mlx5", "fake-irdma", "fake-cxgb4", "fake-rxe"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(urls); i++) {
		for (nomem_at = 1, nomem_met = true; nomem_met; nomem_at++) {
			on(urls[i], nomem_body);
		}
		assert_true(nomem_at > 20); /* the calls of two ends */
	}
}

/* ---- registrations that take long ---- */

/* Longer than an attempt may: the connection is up all the same, and what the peer was granted is
 * written. */
static bool
slow_body(struct conf *t)
{
	const struct fake_knobs knobs = {.seed = 2, .register_ns = 20 * WF_NS_PER_S};
	const struct wf_transport_opts opts = {.connect_timeout_ns = 2 * WF_NS_PER_S};
	struct wf_grant_key key;
	struct pair p;
	fake_turn_knobs(&knobs);
	uint64_t begin_ns = wf_now_ns(t->env);
	CHECK(conf_pair(t, &opts, &p));
	CHECK(fake_happened.slow >= 1 && wf_now_ns(t->env) - begin_ns > 2 * WF_NS_PER_S);
	CHECK(conf_grant_place(p.server, p.sc, 0, 4096, &key));
	CHECK(conf_send_all(t, p.sc, 1, 300)); /* behind the grant, as who says the key does */
	uint64_t limit_ns = wf_now_ns(t->env) + 30 * WF_NS_PER_S;
	while (conf_count(p.client, p.cc, WF_EVENT_MSG) == 0) {
		CHECK(wf_now_ns(t->env) < limit_ns);
		conf_pump(t);
	}
	struct wf_op put = conf_put_op(p.client, &key, 0, 4096, 1);
	conf_fill(p.client->memory, 4096, 7);
	CHECK(conf_post_all(t, p.cc, &put));
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_PUT) != NULL);
	fake_turn_knobs(NULL);
	return conf_is_filled(p.server->memory, 4096, 7);
}

static void
connections_outlive_registrations_that_take_long(void **state)
{
	on("fake-mlx5", slow_body);
	on("fake-irdma", slow_body);
}

/* ---- memory that may not be locked ---- */

/* Root is not limited, so this is not root's. */
static void
give_up_the_right_to_lock(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	assert_int_equal(syscall(SYS_capget, &head, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &head, data), 0);
}

static uint64_t memlock_bytes; /* the limit of this connection */
static unsigned refused_queues, refused_pairs, refused_memory;

/* The limit and what raises it, in what an end says of something that could not be made. */
static bool
names_the_limit(const char *why)
{
	char limit[64];
	(void)snprintf(limit, sizeof(limit), "the limit is %" PRIu64 " KiB", memlock_bytes / 1024);
	refused_queues += strstr(why, "queue of ") != NULL ? 1 : 0;
	refused_pairs += strstr(why, "a queue pair") != NULL ? 1 : 0;
	refused_memory += strstr(why, "of memory") != NULL ? 1 : 0;
	bool named = strstr(why, limit) != NULL &&
		     strstr(why, "raise it: ulimit -l unlimited") != NULL &&
		     strstr(why, "--ulimit memlock=-1") != NULL;
	if (!named) {
		fprintf(stderr, "limit of %" PRIu64 " bytes: %s\n", memlock_bytes, why);
	}
	return named;
}

/* What the end says that could not make something; NULL: both could. */
static bool
see_limit(struct conf *t, struct node *server, struct node *client, const char **why)
{
	static struct wf_transport_info info;
	struct wf_conn *conn = NULL;
	CHECK(try_once(t, server, client, &conn));
	const struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
	const struct seen *down = conf_nth(client, conn, WF_EVENT_DOWN, 0);
	*why = down != NULL ? down->why : NULL;
	if (down == NULL) {
		return conf_send_all(t, conn, 1, 300) &&
		       conf_await(t, server, up->conn, WF_EVENT_MSG) != NULL;
	}
	wf_transport_query(server->transport, &info);
	if (up != NULL) {
		down = conf_await(t, server, up->conn, WF_EVENT_DOWN);
		CHECK(down != NULL);
		*why = down->why;
	} else if (info.strangers_refused > 0) { /* the client hears the beginning of it */
		*why = info.last_stranger;
	}
	return names_the_limit(*why);
}

/* One connection under the limit, and if it is not up, one with more room. */
static bool
memlock_body(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	const char *why = NULL;
	struct pair p;
	CHECK(server != NULL && client != NULL);
	fake_device.memlock_bytes = memlock_bytes;
	bool seen = see_limit(t, server, client, &why);
	fake_device.memlock_bytes = 0;
	CHECK(seen);
	if (why == NULL) {
		memlock_bytes = 0;
		return true;
	}
	/* What is more than the limit all by itself is not even tried. */
	uint64_t needed = fake_seen.memlock_bytes;
	memlock_bytes = needed > memlock_bytes ? needed : NODE_REGION_BYTES;
	conf_settle(t);
	conf_forget(server);
	conf_forget(client);
	return conf_join(t, server, client, &p) && conf_send_all(t, p.cc, 1, 300) &&
	       conf_await(t, server, p.sc, WF_EVENT_MSG) != NULL;
}

/* The limit is raised by what failed last, so each call of both ends that locks memory fails once.
 */
static void
connection_that_meets_the_limit_of_locked_memory_names_it(void **state)
{
	give_up_the_right_to_lock();
	for (const struct fake_habits *h = fake_habits; h->name != NULL; h++) {
		char url[32];
		unsigned turns = 0;
		refused_queues = 0;
		refused_pairs = 0;
		refused_memory = 0;
		(void)snprintf(url, sizeof(url), "fake-%s", h->name);
		for (memlock_bytes = 1; memlock_bytes != 0; turns++) {
			assert_true(turns < 100);
			on(url, memlock_body);
		}
		assert_int_equal(refused_queues, !h->counts_queues ? 0 : h->shared_queue ? 6 : 4);
		assert_int_equal(refused_pairs, h->counts_queues ? 2 : 0);
		assert_true(refused_memory >= 5);
		assert_int_equal(refused_queues + refused_pairs + refused_memory + 1, turns);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_connection_stays_where_devices_take_a_piece_that_is_none),
		cmocka_unit_test(device_whose_queue_cannot_be_read_is_named_and_left),
		cmocka_unit_test(answer_that_comes_behind_the_end_is_not_heard),
		cmocka_unit_test(peer_that_takes_back_what_it_has_written_goes_down),
		cmocka_unit_test(ended_connections_lose_no_receive_buffers),
		cmocka_unit_test(device_that_tells_of_no_end_is_waited_for_a_while),
		cmocka_unit_test(device_that_tells_of_most_ends_is_waited_for_always),
		cmocka_unit_test(end_that_was_told_while_nobody_looked_was_told),
		cmocka_unit_test(work_that_a_device_does_not_take_is_not_waited_for),
		cmocka_unit_test(device_that_never_tells_of_an_end_is_not_waited_for),
		cmocka_unit_test(device_that_tells_again_is_forgiven),
		cmocka_unit_test(queue_that_may_have_lost_buffers_takes_no_more_connections),
		cmocka_unit_test(grant_that_the_device_has_no_memory_for_loses_the_connection),
		cmocka_unit_test(call_that_fails_costs_one_connection_at_most),
		cmocka_unit_test(connections_outlive_registrations_that_take_long),
		cmocka_unit_test(connection_that_meets_the_limit_of_locked_memory_names_it),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
