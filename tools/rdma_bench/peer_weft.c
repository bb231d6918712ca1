/* SPDX-License-Identifier: Apache-2.0 */
/* peer_weft: a path through a transport of weft, as its users have it: PUTs into a place that the
 * other end granted, messages, and one post for everything that is sent together. */
#include <string.h>

#include "base/assert.h"
#include "tools/rdma_bench/peer.h"
#include "transport/transport.h"
#include "wire/bytes.h"

#define EVENTS_MAX 64u
#define JOIN_NS (20 * WF_NS_PER_S)
#define SILENCE_NS (60 * WF_NS_PER_S) /* legs without weft run in between */
#define TOKEN_BYTES 8u
#define OPS_MAX 256u
#define OWN_COOKIE UINT64_MAX /* of operations that are no messages of the leg */

enum message {
	DATA = 1,
	KEY,  /* body: the key of the place */
	TOLD, /* request_id: how many have come */
};

struct weft_path {
	struct wf_peer_path path; /* first */
	struct wf_transport *transport;
	struct wf_conn *conn; /* NULL: not UP */
	struct wf_slab slab;  /* src, dst */
	uint32_t region;
	struct wf_grant_key key; /* the other end's */
	bool has_key;
	struct wf_op op; /* of the leg */
};

static struct weft_path *
weft_of(struct wf_peer_path *path)
{
	return (struct weft_path *)path;
}

static const char *
weft_name(const struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	return "weft";
}

/* The common fields of all messages of a leg, so that a message has only its necessary costs. */
static void
make_op(struct weft_path *w)
{
	static const struct wf_head head = {.service = WF_SERVICE_CONTROL, .type = DATA};
	const struct wf_peer_leg *leg = w->path.leg;
	w->op = (struct wf_op){.kind = WF_OP_PUT, .region = w->region, .bytes = leg->bytes};
	w->op.key = w->key;
	if (leg->op == WF_PEER_SEND) {
		w->op = (struct wf_op){.kind = WF_OP_SEND, .head = &head, .body_bytes = leg->bytes};
	}
}

static void
weft_begin(struct wf_peer_path *path)
{
	/* A place holds a message until the next one is put there, so it is checked before. */
	path->room = path->leg->verify && path->leg->op == WF_PEER_PUT ? WF_PEER_DEPTH_MAX : 0;
	make_op(weft_of(path));
}

static void
fill_op(const struct weft_path *w, uint64_t number, struct wf_op *op)
{
	const struct wf_peer_path *path = &w->path;
	uint8_t *src = wf_peer_src(path, number);
	*op = w->op;
	op->cookie = number;
	op->body = src;
	op->src = src;
	op->offset = (uint64_t)(src - path->areas.src);
	op->tag = wf_tag((uint32_t)(number & (path->areas.count - 1)), 0);
}

static enum weft_status
weft_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct weft_path *w = weft_of(path);
	struct wf_op ops[WF_PEER_TOGETHER];
	unsigned got = 0;
	WF_ASSERT(count > 0 && count <= WF_PEER_TOGETHER);
	for (uint64_t i = 0; i < count; i++) {
		fill_op(w, first + i, &ops[i]);
	}
	enum weft_status st = wf_transport_post(w->conn, ops, (unsigned)count, &got);
	*taken = got;
	return st == WEFT_AGAIN ? WEFT_OK : st;
}

/* A message of the path's own. */
static enum weft_status
send_own(struct weft_path *w, const struct wf_head *head, const void *body, size_t bytes,
	 bool *taken)
{
	const struct wf_op op = {
		.kind = WF_OP_SEND,
		.cookie = OWN_COOKIE,
		.head = head,
		.body = body,
		.body_bytes = bytes,
	};
	unsigned got = 0;
	enum weft_status st = wf_transport_post(w->conn, &op, 1, &got);
	w->path.busy += got;
	*taken = got == 1;
	return st == WEFT_AGAIN ? WEFT_OK : st;
}

static enum weft_status
weft_report(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	const struct wf_head head = {
		.service = WF_SERVICE_CONTROL, .type = TOLD, .request_id = count};
	return send_own(weft_of(path), &head, NULL, 0, taken);
}

static enum weft_status
on_message(struct weft_path *w, const struct wf_head *head, const uint8_t *body)
{
	struct wf_peer_path *path = &w->path;
	path->moved = true;
	if (head->type == DATA && path->leg != NULL && head->body_bytes == path->leg->bytes) {
		return wf_peer_on_message(path, body);
	}
	if (head->type == KEY && head->body_bytes == sizeof(w->key.bytes)) {
		memcpy(w->key.bytes, body, sizeof(w->key.bytes));
		w->has_key = true;
		return WEFT_OK;
	}
	if (head->type == TOLD && head->request_id <= path->sent) {
		path->peer_has = head->request_id;
		return WEFT_OK;
	}
	return wf_fail(WEFT_PROTOCOL, "a message of type %u with %llu bytes is not expected here",
		       head->type, (unsigned long long)head->body_bytes);
}

static bool
is_the_client(const struct weft_path *w, const struct wf_event *event)
{
	struct wf_reader r = {.base = event->up.blob, .bytes = event->up.blob_bytes};
	return w->conn == NULL && wf_get_u64(&r) == w->path.end->plan.token && wf_reader_done(&r);
}

static enum weft_status
on_up(struct weft_path *w, const struct wf_event *event)
{
	bool right = !event->up.incoming || is_the_client(w, event);
	w->path.moved = true;
	if (right) {
		w->conn = event->conn;
	}
	return event->up.incoming ? wf_transport_answer(event->conn, right, NULL, 0) : WEFT_OK;
}

static enum weft_status
on_event(struct weft_path *w, const struct wf_event *event)
{
	struct wf_peer_path *path = &w->path;
	switch (event->kind) {
	case WF_EVENT_UP:
		return on_up(w, event);
	case WF_EVENT_DOWN:
		if (event->conn == w->conn || path->end->client) {
			w->conn = NULL;
			return wf_fail(event->down.status, "%s", event->down.why);
		}
		return WEFT_OK; /* a stranger's */
	case WF_EVENT_MSG:
		return on_message(w, event->msg.head, event->msg.body);
	case WF_EVENT_PUT:
		return wf_peer_on_message(path, wf_peer_dst(path, path->received));
	case WF_EVENT_DONE:
		path->moved = true;
		if (event->done.cookie == OWN_COOKIE) {
			path->busy--;
		} else {
			path->done++;
		}
		return WEFT_OK;
	}
	return WEFT_OK;
}

static enum weft_status
weft_progress(struct wf_peer_path *path)
{
	struct weft_path *w = weft_of(path);
	struct wf_event events[EVENTS_MAX];
	unsigned count = 0;
	enum weft_status st = wf_transport_poll(w->transport, events, EVENTS_MAX, &count);
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		st = on_event(w, &events[i]);
	}
	return st;
}

static void
weft_close(struct wf_peer_path *path)
{
	struct weft_path *w = weft_of(path);
	struct wf_env *env = path->end->env;
	wf_transport_close(w->transport);
	if (w->slab.base != NULL) {
		env->ops->slab_close(env, &w->slab);
	}
	wf_peer_path_fini(path);
	wf_free(env, w, sizeof(*w));
}

static const struct wf_peer_path_ops weft_ops = {
	.name = weft_name,
	.begin = weft_begin,
	.send = weft_send,
	.report = weft_report,
	.progress = weft_progress,
	.close = weft_close,
};

/* ---- before the first leg ---- */

static enum weft_status
open_transport(struct weft_path *w)
{
	static const char *const names[] = {
		[WF_PEER_TCP] = "tcp", [WF_PEER_SHM] = "shm", [WF_PEER_VERBS] = "verbs"};
	const struct wf_peer_end *end = w->path.end;
	const struct wf_transport_opts opts = {
		.env = end->env,
		.conn_max = 16,
		.op_max = OPS_MAX,
		.put_bytes_max = end->plan.bytes_max,
		.peer_timeout_ns = SILENCE_NS,
		.connect_timeout_ns = JOIN_NS,
		.congestion = end->congestion,
		.verbs = end->verbs[0] != '\0' ? end->verbs : NULL,
	};
	return wf_transport_open(names[end->plan.over], &opts, &w->transport);
}

static enum weft_status
open_memory(struct weft_path *w)
{
	struct wf_env *env = w->path.end->env;
	uint64_t half = w->path.areas.half_bytes;
	enum weft_status st = env->ops->slab_open(env, 2 * half, -1, &w->slab);
	if (st != WEFT_OK) {
		return st;
	}
	memset(w->slab.base, 1, 2 * half); /* nothing is measured on memory that is not there */
	w->path.areas.src = w->slab.base;
	w->path.areas.dst = w->path.areas.src + half;
	const struct wf_region region = {
		.base = w->slab.base, .bytes = w->slab.bytes, .memfd = w->slab.memfd};
	return wf_transport_region_add(w->transport, &region, &w->region);
}

static void
host_of(const struct wf_peer_end *end, struct wf_host *out)
{
	*out = (struct wf_host){.port = (uint16_t)(end->port + 1)};
	(void)snprintf(out->name, sizeof(out->name), "%s", end->address);
}

static enum weft_status
start(struct weft_path *w)
{
	const struct wf_peer_end *end = w->path.end;
	struct wf_host host;
	uint8_t hello[TOKEN_BYTES];
	struct wf_writer writer = {.base = hello, .capacity = sizeof(hello)};
	uint16_t port = 0;
	host_of(end, &host);
	if (!end->client) {
		return wf_transport_listen(w->transport, &host, &port);
	}
	struct wf_conn *conn = NULL;
	wf_put_u64(&writer, end->plan.token);
	return wf_transport_connect(w->transport, &host, hello, sizeof(hello), NULL, &conn);
}

enum weft_status
wf_peer_weft_open(struct wf_peer_end *end, struct wf_peer_path **out)
{
	struct weft_path *w = wf_zalloc(end->env, sizeof(*w));
	if (w == NULL) {
		return wf_fail(WEFT_NOMEM, "a path: %zu bytes", sizeof(*w));
	}
	*out = &w->path;
	enum weft_status st = wf_peer_path_init(&w->path, &weft_ops, end);
	if (st == WEFT_OK) {
		st = open_transport(w);
	}
	if (st == WEFT_OK) {
		st = open_memory(w);
	}
	return st == WEFT_OK && !end->client ? start(w) : st;
}

/* Polls until `is_there`, as long as the other side lives, and for JOIN_NS. */
static enum weft_status
poll_until(struct weft_path *w, bool (*is_there)(const struct weft_path *w))
{
	struct wf_peer_end *end = w->path.end;
	uint64_t deadline_ns = wf_now_ns(end->env) + JOIN_NS;
	enum weft_status st = WEFT_OK;
	while (st == WEFT_OK && !is_there(w)) {
		st = weft_progress(&w->path);
		if (st == WEFT_OK) {
			st = wf_peer_control_look(&end->control);
		}
		if (st == WEFT_OK && wf_now_ns(end->env) > deadline_ns) {
			st = wf_fail(WEFT_TIMEOUT, "no connection over weft within %llu s",
				     JOIN_NS / WF_NS_PER_S);
		}
	}
	return st;
}

static bool
is_up(const struct weft_path *w)
{
	return w->conn != NULL;
}

static bool
has_key(const struct weft_path *w)
{
	return w->has_key && w->path.busy == 0;
}

static enum weft_status
grant(struct weft_path *w)
{
	const struct wf_head head = {.service = WF_SERVICE_CONTROL, .type = KEY};
	const struct wf_grant place = {
		.kind = WF_GRANT_PLACE,
		.region = w->region,
		.offset = (uint64_t)(w->path.areas.dst - (uint8_t *)w->slab.base),
		.bytes = w->path.areas.half_bytes,
	};
	struct wf_grant_key key;
	bool taken = false;
	enum weft_status st = wf_transport_grant(w->conn, &place, &key);
	while (st == WEFT_OK && !taken) {
		st = send_own(w, &head, key.bytes, sizeof(key.bytes), &taken);
		if (st == WEFT_OK && !taken) {
			st = weft_progress(&w->path);
		}
	}
	return st;
}

enum weft_status
wf_peer_weft_join(struct wf_peer_path *path)
{
	struct weft_path *w = weft_of(path);
	enum weft_status st = path->end->client ? start(w) : WEFT_OK;
	if (st == WEFT_OK) {
		st = poll_until(w, is_up);
	}
	if (st == WEFT_OK) {
		st = grant(w);
	}
	return st == WEFT_OK ? poll_until(w, has_key) : st;
}
