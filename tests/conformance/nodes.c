/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: opening, pumping and looking, on whatever backend. Thread: the case's. */
#include "tests/conformance/conformance.h"

#include <stdlib.h>

#define AWAIT_LIMIT_NS (60 * WF_NS_PER_S)
#define REST_NS (500 * WF_NS_PER_US)
#define SETTLE_RESTS 40
#define MARK_SERVICE WF_SERVICE_CONTROL

static void
complain(struct conf *t, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, weft_last_error());
	t->failed = true;
}

struct node *
conf_node(struct conf *t, const struct wf_transport_opts *opts)
{
	struct wf_transport_opts full = {0};
	if (opts != NULL) {
		full = *opts;
	}
	full.env = t->env;
	full.verbs = t->verbs;
	full.paths = t->paths;
	full.secret_file = full.secret_file != NULL ? full.secret_file : t->secret_file;
	if (t->node_count == NODE_MAX) {
		complain(t, "too many nodes");
		return NULL;
	}
	struct node *n = &t->node[t->node_count];
	*n = (struct node){0};
	if (t->env->ops->slab_open(t->env, NODE_REGION_BYTES, -1, &n->slab) != WEFT_OK ||
	    wf_transport_open(t->transport, &full, &n->transport) != WEFT_OK) {
		complain(t, "open");
		return NULL;
	}
	n->memory = n->slab.base;
	t->node_count++;
	struct wf_region region = {.base = n->memory, .bytes = NODE_REGION_BYTES};
	region.memfd = t->private_memory ? -1 : n->slab.memfd;
	if (wf_transport_region_add(n->transport, &region, &n->region) != WEFT_OK) {
		complain(t, "region_add");
		return NULL;
	}
	return n;
}

struct node *
conf_server(struct conf *t, const struct wf_transport_opts *opts)
{
	struct node *n = conf_node(t, opts);
	if (n == NULL) {
		return NULL;
	}
	snprintf(n->at.name, sizeof(n->at.name), "%s", t->host);
	if (wf_transport_listen(n->transport, &n->at, &n->at.port) != WEFT_OK) {
		complain(t, "listen");
		return NULL;
	}
	return n;
}

void
conf_node_close(struct conf *t, struct node *n)
{
	wf_transport_close(n->transport);
	n->transport = NULL;
	t->env->ops->slab_close(t->env, &n->slab);
	n->memory = NULL;
	conf_forget(n);
}

void
conf_forget(struct node *n)
{
	for (size_t i = 0; i < n->seen_count; i++) {
		free(n->seen[i].bytes);
	}
	free(n->seen);
	n->seen = NULL;
	n->seen_count = 0;
	memset(n->counted, 0, sizeof(n->counted));
	memset(n->looked_at, 0, sizeof(n->looked_at));
	n->seen_max = 0;
}

static void
keep_bytes(struct seen *s, const uint8_t *bytes, size_t count)
{
	s->byte_count = count;
	s->bytes = malloc(count + 1);
	if (s->bytes != NULL && count > 0) {
		memcpy(s->bytes, bytes, count);
	}
}

static void
keep(struct seen *s, const struct wf_event *event)
{
	*s = (struct seen){.kind = event->kind, .conn = event->conn};
	switch (event->kind) {
	case WF_EVENT_UP:
		s->incoming = event->up.incoming;
		keep_bytes(s, event->up.blob, event->up.blob_bytes);
		break;
	case WF_EVENT_DOWN:
		s->status = event->down.status;
		snprintf(s->why, sizeof(s->why), "%s", event->down.why);
		keep_bytes(s, event->down.blob, event->down.blob_bytes);
		break;
	case WF_EVENT_MSG:
		s->head = *event->msg.head;
		keep_bytes(s, event->msg.body, event->msg.head->body_bytes);
		break;
	case WF_EVENT_PUT:
		s->tag = event->put.tag;
		s->data = event->put.data;
		s->put_bytes = event->put.bytes;
		break;
	case WF_EVENT_DONE:
		s->cookie = event->done.cookie;
		s->status = event->done.status;
		break;
	}
}

static struct seen *
seen_add(struct conf *t, struct node *n)
{
	if (n->seen_count == n->seen_max) {
		size_t max = n->seen_max == 0 ? 256 : n->seen_max * 2;
		struct seen *more = realloc(n->seen, max * sizeof(*more));
		if (more == NULL) {
			complain(t, "no memory for events");
			abort();
		}
		n->seen = more;
		n->seen_max = max;
	}
	return &n->seen[n->seen_count++];
}

unsigned
conf_poll(struct conf *t, struct node *n)
{
	struct wf_event event[64];
	unsigned count = 0;
	if (wf_transport_poll(n->transport, event, t->poll_max, &count) != WEFT_OK ||
	    count > t->poll_max) {
		complain(t, "poll");
		return 0;
	}
	for (unsigned i = 0; i < count; i++) {
		keep(seen_add(t, n), &event[i]);
	}
	return count;
}

static unsigned
poll_all(struct conf *t)
{
	unsigned count = 0;
	for (unsigned i = 0; i < t->node_count; i++) {
		if (t->node[i].transport != NULL) {
			count += conf_poll(t, &t->node[i]);
		}
	}
	return count;
}

void
conf_rest(struct conf *t)
{
	wf_wait(t->env, -1, wf_now_ns(t->env) + REST_NS);
}

void
conf_pump(struct conf *t)
{
	if (poll_all(t) == 0) {
		conf_rest(t);
	}
}

void
conf_settle(struct conf *t)
{
	for (int rests = 0; rests < SETTLE_RESTS; rests++) {
		if (poll_all(t) > 0) {
			rests = 0;
		}
		conf_rest(t);
	}
}

static bool
matches(const struct seen *s, const struct wf_conn *conn, enum wf_event_kind kind)
{
	return s->kind == kind && (conn == NULL || s->conn == conn);
}

static struct seen *
take_seen(struct node *n, const struct wf_conn *conn, enum wf_event_kind kind)
{
	for (size_t i = 0; i < n->seen_count; i++) {
		struct seen *s = &n->seen[i];
		if (!s->used && matches(s, conn, kind)) {
			s->used = true;
			return s;
		}
	}
	return NULL;
}

/* What may be the reason. */
static void
print_downs(unsigned idx, const struct node *n)
{
	for (size_t i = 0; i < n->seen_count; i++) {
		if (n->seen[i].kind == WF_EVENT_DOWN) {
			fprintf(stderr, "node %u: down: %s, %s\n", idx,
				weft_status_name(n->seen[i].status), n->seen[i].why);
		}
	}
}

struct seen *
conf_await(struct conf *t, struct node *n, const struct wf_conn *conn, enum wf_event_kind kind)
{
	uint64_t limit_ns = wf_now_ns(t->env) + AWAIT_LIMIT_NS;
	struct seen *s = take_seen(n, conn, kind);
	while (s == NULL && wf_now_ns(t->env) < limit_ns) {
		conf_pump(t);
		s = take_seen(n, conn, kind);
	}
	if (s == NULL) {
		fprintf(stderr, "no event of kind %d came\n", (int)kind);
		for (unsigned i = 0; i < t->node_count; i++) {
			print_downs(i, &t->node[i]);
		}
		t->failed = true;
	}
	return s;
}

/* The cursor on events of this kind of a connection, which are looked at in their order: a search
 * that began at the first event each time would take most of a test's time. */
static struct cursor *
cursor_on(struct cursor *cursors, const struct wf_conn *conn, enum wf_event_kind kind)
{
	struct cursor *c = &cursors[kind];
	if (c->conn != conn) {
		*c = (struct cursor){.conn = conn};
	}
	return c;
}

unsigned
conf_count(struct node *n, const struct wf_conn *conn, enum wf_event_kind kind)
{
	struct cursor *c = cursor_on(n->counted, conn, kind);
	for (; c->at < n->seen_count; c->at++) {
		c->before += matches(&n->seen[c->at], conn, kind) ? 1 : 0;
	}
	return c->before;
}

struct seen *
conf_nth(struct node *n, const struct wf_conn *conn, enum wf_event_kind kind, unsigned idx)
{
	struct cursor *c = cursor_on(n->looked_at, conn, kind);
	if (idx < c->before) {
		*c = (struct cursor){.conn = conn};
	}
	for (; c->at < n->seen_count; c->at++) {
		if (matches(&n->seen[c->at], conn, kind)) {
			if (c->before == idx) {
				return &n->seen[c->at];
			}
			c->before++;
		}
	}
	return NULL;
}

bool
conf_await_count(struct conf *t, struct node *n, const struct wf_conn *conn,
		 enum wf_event_kind kind, unsigned count)
{
	uint64_t limit_ns = wf_now_ns(t->env) + AWAIT_LIMIT_NS;
	while (conf_count(n, conn, kind) < count && wf_now_ns(t->env) < limit_ns) {
		conf_pump(t);
	}
	unsigned got = conf_count(n, conn, kind);
	if (got < count) {
		fprintf(stderr, "%u events of kind %d, and %u were due\n", got, (int)kind, count);
	}
	return got >= count;
}

bool
conf_join(struct conf *t, struct node *server, struct node *client, struct pair *out)
{
	*out = (struct pair){.server = server, .client = client};
	if (wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &out->cc) !=
	    WEFT_OK) {
		complain(t, "connect");
		return false;
	}
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	if (up == NULL) {
		return false;
	}
	out->sc = up->conn;
	if (wf_transport_answer(out->sc, true, "ok", 2) != WEFT_OK) {
		complain(t, "answer");
		return false;
	}
	return conf_await(t, client, out->cc, WF_EVENT_UP) != NULL;
}

bool
conf_pair(struct conf *t, const struct wf_transport_opts *opts, struct pair *out)
{
	struct node *server = conf_server(t, opts);
	struct node *client = conf_node(t, opts);
	return server != NULL && client != NULL && conf_join(t, server, client, out);
}

bool
conf_grant_place(struct node *n, struct wf_conn *conn, uint64_t offset, uint64_t bytes,
		 struct wf_grant_key *key)
{
	struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = n->region, .offset = offset, .bytes = bytes};
	return wf_transport_grant(conn, &grant, key) == WEFT_OK;
}

bool
conf_grant_slots(struct node *n, struct wf_conn *conn, uint64_t slot_bytes, uint32_t slot_count,
		 struct wf_grant_key *key)
{
	struct wf_grant grant = {.kind = WF_GRANT_SLOTS,
				 .region = n->region,
				 .bytes = slot_bytes,
				 .slot_count = slot_count};
	return wf_transport_grant(conn, &grant, key) == WEFT_OK;
}

/* The bytes of all marks are drawn once, because tests fill and compare hundreds of MB. A mark
 * begins somewhere among them; their number is a prime, so that bytes at a wrong place differ. */
#define DRAWN_BYTES 65521u

static const uint8_t *
drawn_bytes(void)
{
	static uint8_t drawn[DRAWN_BYTES];
	static bool is_drawn;
	for (uint64_t i = 0; i < DRAWN_BYTES && !is_drawn; i++) {
		const uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
		drawn[i] = (uint8_t)(((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u) >> 56);
	}
	is_drawn = true;
	return drawn;
}

/* The first byte of a mark is this one of them. */
static size_t
begin_of(uint64_t mark)
{
	return (size_t)((mark % DRAWN_BYTES + 1) * 40503u % DRAWN_BYTES);
}

void
conf_fill(uint8_t *out, size_t bytes, uint64_t mark)
{
	const uint8_t *drawn = drawn_bytes();
	size_t at = begin_of(mark);
	for (size_t done = 0; done < bytes; at = 0) {
		const size_t left = DRAWN_BYTES - at;
		const size_t part = bytes - done < left ? bytes - done : left;
		memcpy(out + done, drawn + at, part);
		done += part;
	}
}

bool
conf_is_filled(const uint8_t *in, size_t bytes, uint64_t mark)
{
	const uint8_t *drawn = drawn_bytes();
	size_t at = begin_of(mark);
	for (size_t done = 0; done < bytes; at = 0) {
		const size_t left = DRAWN_BYTES - at;
		const size_t part = bytes - done < left ? bytes - done : left;
		if (memcmp(in + done, drawn + at, part) != 0) {
			fprintf(stderr, "bytes %zu to %zu of %zu differ\n", done, done + part,
				bytes);
			return false;
		}
		done += part;
	}
	return true;
}

/* Taking fewer than there is room for is allowed, so one AGAIN does not mean that the queue is
 * full; this many do. */
static enum weft_status
post_one(struct wf_conn *conn, const struct wf_op *op)
{
	unsigned taken = 0;
	enum weft_status st = WEFT_AGAIN;
	for (int i = 0; i < 50 && st == WEFT_AGAIN; i++) {
		st = wf_transport_post(conn, op, 1, &taken);
	}
	return st;
}

enum weft_status
conf_send(struct wf_conn *conn, uint64_t mark, size_t bytes)
{
	uint8_t body[WF_MSG_BODY_MAX];
	conf_fill(body, bytes, mark);
	struct wf_head head = {.service = MARK_SERVICE, .type = 7, .request_id = mark};
	struct wf_op op = {.kind = WF_OP_SEND,
			   .cookie = mark,
			   .head = &head,
			   .body = body,
			   .body_bytes = bytes};
	return post_one(conn, &op);
}

bool
conf_send_all(struct conf *t, struct wf_conn *conn, uint64_t mark, size_t bytes)
{
	uint64_t limit_ns = wf_now_ns(t->env) + AWAIT_LIMIT_NS;
	enum weft_status st = conf_send(conn, mark, bytes);
	while (st == WEFT_AGAIN && wf_now_ns(t->env) < limit_ns) {
		conf_pump(t);
		st = conf_send(conn, mark, bytes);
	}
	if (st != WEFT_OK) {
		fprintf(stderr, "send: %s, %s\n", weft_status_name(st), weft_last_error());
	}
	return st == WEFT_OK;
}

bool
conf_is_message(const struct seen *seen, uint64_t mark, size_t bytes)
{
	return seen != NULL && seen->kind == WF_EVENT_MSG && seen->head.request_id == mark &&
	       seen->head.type == 7 && seen->byte_count == bytes &&
	       conf_is_filled(seen->bytes, bytes, mark);
}

struct wf_op
conf_put_op(const struct node *n, const struct wf_grant_key *key, uint64_t src_offset,
	    uint64_t bytes, uint64_t cookie)
{
	return (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = cookie,
		.region = n->region,
		.src = n->memory + src_offset,
		.bytes = bytes,
		.key = *key,
	};
}

bool
conf_post(struct wf_conn *conn, const struct wf_op *op)
{
	enum weft_status st = post_one(conn, op);
	if (st != WEFT_OK) {
		fprintf(stderr, "post: %s, %s\n", weft_status_name(st), weft_last_error());
	}
	return st == WEFT_OK;
}

bool
conf_post_all(struct conf *t, struct wf_conn *conn, const struct wf_op *op)
{
	uint64_t limit_ns = wf_now_ns(t->env) + AWAIT_LIMIT_NS;
	enum weft_status st = post_one(conn, op);
	while (st == WEFT_AGAIN && wf_now_ns(t->env) < limit_ns) {
		conf_pump(t);
		st = post_one(conn, op);
	}
	if (st != WEFT_OK) {
		fprintf(stderr, "post: %s, %s\n", weft_status_name(st), weft_last_error());
	}
	return st == WEFT_OK;
}

bool
conf_is_done_once(struct node *n, const struct wf_conn *conn, unsigned count)
{
	bool complete = conf_count(n, conn, WF_EVENT_DONE) == count;
	uint8_t *times = calloc(count + 1, 1);
	for (unsigned i = 0; times != NULL && i < count && complete; i++) {
		const struct seen *done = conf_nth(n, conn, WF_EVENT_DONE, i);
		complete = done != NULL && done->cookie < count && times[done->cookie]++ == 0;
	}
	free(times);
	return complete;
}
