/* SPDX-License-Identifier: Apache-2.0 */
/* peer: see the header. Thread: the test's. */
#include "tests/support/peer.h"

#include <string.h>
#include <sys/mman.h>

#define LANE_PID 1u
#define QUEUE_BYTES (PEER_OPS_MAX * sizeof(struct peer_op))

#define CHECK_PEER(peer, condition)                                                                \
	script_check((peer)->script, (condition), #condition, __FILE__, __LINE__)

static void
init(struct peer *peer, struct script *script)
{
	peer->script = script;
	peer->tamper_at = INT32_MIN;
	/* Few of its pages are used; malloc would fill them all where MALLOC_PERTURB_ is set. */
	void *pages = mmap(NULL, QUEUE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, (off_t)0);
	CHECK_PEER(peer, pages != MAP_FAILED);
	peer->queue = pages;
}

void
peer_open_at(struct peer *peer, struct script *script, struct wf_transport *transport)
{
	init(peer, script);
	peer->is_lane = true;
	peer->transport = transport;
}

void
peer_open(struct peer *peer, struct script *script, const char *paths, size_t slab_bytes)
{
	struct wf_env *env = script->env;
	const struct wf_transport_opts opts = {.env = env, .paths = paths};
	init(peer, script);
	CHECK_PEER(peer, wf_transport_open("paths", &opts, &peer->transport) == WEFT_OK);
	CHECK_PEER(peer, env->ops->slab_open(env, slab_bytes, -1, &peer->slab) == WEFT_OK);
	const struct wf_region region = {peer->slab.base, peer->slab.bytes, -1};
	CHECK_PEER(peer,
		   wf_transport_region_add(peer->transport, &region, &peer->region) == WEFT_OK);
}

void
peer_close(struct peer *peer)
{
	if (peer->script == NULL) {
		return;
	}
	struct wf_env *env = peer->script->env;
	if (!peer->is_lane) {
		wf_transport_close(peer->transport);
		env->ops->slab_close(env, &peer->slab);
	}
	CHECK_PEER(peer, munmap(peer->queue, QUEUE_BYTES) == 0);
	*peer = (struct peer){0};
}

/* --- saying --- */

static void
drop_queue(struct peer *peer)
{
	while (peer->queue_count > 0) {
		const struct wf_op *op = &peer->queue[peer->queue_first].op;
		peer->queue_first = (peer->queue_first + 1) % PEER_OPS_MAX;
		peer->queue_count--;
		if (op->cookie != 0 && peer->ops->done != NULL) {
			peer->ops->done(peer, op->cookie);
		}
	}
}

static void
begin_path(struct peer *peer)
{
	drop_queue(peer);
	peer->up = false;
	peer->down = false;
	peer->granted = false;
	peer->resumed = false;
	for (uint32_t i = 0; i < WF_GRANT_SLOT_COUNT_MAX; i++) {
		peer->buffer[i] = PEER_BUFFER_FREE;
	}
}

void
peer_connect(struct peer *peer)
{
	uint8_t hello[WF_HELLO_MAX];
	peer->hello.path++;
	int used = (int)wf_hello_encode(&peer->hello, hello);
	if (peer->tamper_at != INT32_MIN) {
		int at = peer->tamper_at < 0 ? used + peer->tamper_at : peer->tamper_at;
		hello[at] = peer->tamper_byte;
	}
	begin_path(peer);
	CHECK_PEER(peer, wf_transport_connect(peer->transport, &peer->to, hello, (size_t)used, peer,
					      &peer->conn) == WEFT_OK);
}

void
peer_accept(struct peer *peer, struct wf_conn *conn, const struct wf_hello *hello,
	    const struct wf_welcome *welcome)
{
	uint8_t verdict[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(welcome, verdict);
	begin_path(peer);
	conn->user = peer;
	peer->conn = conn;
	peer->hello = *hello;
	peer->up = true;
	CHECK_PEER(peer, wf_transport_answer(conn, true, verdict, used) == WEFT_OK);
}

void
peer_disconnect(struct peer *peer, enum wf_disconnect how)
{
	if (peer->conn != NULL) {
		wf_transport_disconnect(peer->conn, how);
	}
}

void
peer_flush(struct peer *peer)
{
	while (peer->conn != NULL && peer->queue_count > 0) {
		struct peer_op *next = &peer->queue[peer->queue_first];
		if (next->op.kind == WF_OP_SEND) {
			next->op.head = &next->msg.head;
			next->op.body = next->msg.body;
		}
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(peer->conn, &next->op, 1, &taken);
		CHECK_PEER(peer, st != WEFT_INVALID);
		if (st == WEFT_CLOSED || st == WEFT_INVALID) {
			drop_queue(peer);
		}
		if (taken == 0) {
			return;
		}
		peer->queue_first = (peer->queue_first + 1) % PEER_OPS_MAX;
		peer->queue_count--;
	}
}

static struct peer_op *
add_op(struct peer *peer, const struct wf_op *op)
{
	CHECK_PEER(peer, peer->queue_count < PEER_OPS_MAX);
	if (peer->conn == NULL || peer->queue_count == PEER_OPS_MAX) {
		return NULL;
	}
	struct peer_op *added =
		&peer->queue[(peer->queue_first + peer->queue_count++) % PEER_OPS_MAX];
	added->op = *op;
	return added;
}

bool
peer_post(struct peer *peer, const struct wf_op *op)
{
	bool added = add_op(peer, op) != NULL;
	peer_flush(peer);
	return added;
}

void
peer_send(struct peer *peer, const struct wf_msg *msg)
{
	const struct wf_op op = {.kind = WF_OP_SEND, .body_bytes = msg->body_bytes};
	struct peer_op *added = add_op(peer, &op);
	if (added != NULL) {
		added->msg = *msg;
		peer_flush(peer);
	}
}

void
peer_grant_place(struct peer *peer, uint8_t place, uint64_t offset, uint64_t bytes)
{
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE, .region = peer->region, .offset = offset, .bytes = bytes};
	struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_PLACE, .place = place, .bytes = bytes};
	struct wf_grant_key key;
	struct wf_msg out;
	bool granted =
		peer->conn != NULL && wf_transport_grant(peer->conn, &grant, &key) == WEFT_OK;
	CHECK_PEER(peer, granted);
	if (!granted) {
		return;
	}
	memcpy(msg.key, key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &out);
	peer_send(peer, &out);
}

static void
send_goodbye(struct peer *peer, bool leaves)
{
	const struct wf_msg_goodbye msg = {.ack = false, .leaves = leaves};
	struct wf_msg out;
	wf_msg_goodbye_encode(&msg, &out);
	peer_send(peer, &out);
}

void
peer_goodbye(struct peer *peer)
{
	send_goodbye(peer, false);
}

void
peer_leave(struct peer *peer)
{
	send_goodbye(peer, true);
}

void
peer_beat(struct peer *peer, bool asks, bool itself)
{
	uint32_t pid = peer->is_lane ? LANE_PID : peer->hello.pid;
	const struct wf_msg_beat msg = {.asks = asks, .itself = itself, .pid = pid};
	struct wf_msg out;
	wf_msg_beat_encode(&msg, &out);
	peer_send(peer, &out);
}

/* --- the window --- */

uint32_t
peer_free_buffer(const struct peer *peer)
{
	uint32_t i = 0;
	while (i < peer->slot_count && peer->buffer[i] != PEER_BUFFER_FREE) {
		i++;
	}
	return i;
}

void
peer_free_label(struct peer *peer, uint64_t label)
{
	for (uint32_t i = 0; i < peer->slot_count; i++) {
		if (peer->buffer[i] == label) {
			peer->buffer[i] = PEER_BUFFER_FREE;
		}
	}
}

/* --- hearing --- */

/* A lane acknowledges GOODBYE, and a trainer the acknowledgement. */
static enum weft_status
recv_goodbye(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct wf_msg_goodbye goodbye;
	enum weft_status st = wf_msg_goodbye_decode(head, body, &goodbye);
	peer->goodbye_heard = st == WEFT_OK && (goodbye.ack || peer->is_lane);
	if (peer->goodbye_heard && goodbye.ack != peer->is_lane) {
		struct wf_msg out;
		goodbye.ack = true;
		wf_msg_goodbye_encode(&goodbye, &out);
		peer_send(peer, &out);
	}
	return st;
}

static enum weft_status
recv_beat(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	enum weft_status st = wf_msg_beat_decode(head, body, &peer->beat);
	peer->beats++;
	if (peer->beat.asks && !peer->asleep) {
		peer_beat(peer, false, true);
	}
	return st;
}

static enum weft_status
recv_grant(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	enum weft_status st = wf_msg_grant_decode(head, body, &peer->grant);
	CHECK_PEER(peer, !peer->granted);
	CHECK_PEER(peer, peer->is_lane == (peer->grant.kind == WF_GRANT_WIRE_PLACE));
	peer->granted = st == WEFT_OK;
	peer->slot_count = peer->is_lane ? peer->slot_count : peer->grant.slot_count;
	return st;
}

/* Each buffer is one that was in use. */
static enum weft_status
recv_credit(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	struct wf_msg_credit msg = {0};
	enum weft_status st = wf_msg_credit_decode(head, body, &msg);
	for (uint32_t i = 0; i < msg.count; i++) {
		CHECK_PEER(peer, msg.buffer[i] < peer->slot_count);
		CHECK_PEER(peer, peer->buffer[msg.buffer[i]] != PEER_BUFFER_FREE);
		peer->buffer[msg.buffer[i]] = PEER_BUFFER_FREE;
		peer->credits++;
	}
	return st;
}

static enum weft_status
recv_steps(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	enum weft_status st = peer->is_lane ? wf_msg_have_decode(head, body, &peer->steps)
					    : wf_msg_resume_decode(head, body, &peer->steps);
	peer->resumed = st == WEFT_OK && peer->steps.last;
	if (st == WEFT_OK && peer->ops->steps != NULL) {
		peer->ops->steps(peer);
	}
	return st;
}

static enum weft_status
recv_control(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	switch (head->type) {
	case WF_MSG_GOODBYE:
		return recv_goodbye(peer, head, body);
	case WF_MSG_ABORT:
		peer->aborted = true;
		return wf_msg_abort_decode(head, body, &peer->abort);
	case WF_MSG_ABSENT:
		peer->absents++;
		return wf_msg_absent_decode(head, body, &peer->absent);
	case WF_MSG_REDUCED:
		peer->reduced_count++;
		return wf_msg_reduced_decode(head, body, &peer->reduced);
	case WF_MSG_BEAT:
		return recv_beat(peer, head, body);
	case WF_MSG_GRANT:
		return recv_grant(peer, head, body);
	case WF_MSG_RESUME:
	case WF_MSG_HAVE:
		return recv_steps(peer, head, body);
	case WF_MSG_CREDIT:
		return recv_credit(peer, head, body);
	default:
		return peer->ops->recv(peer, head, body);
	}
}

static enum weft_status
end_path(struct peer *peer, const struct wf_event *event)
{
	peer->down = true;
	peer->down_status = event->down.status;
	peer->conn = NULL;
	drop_queue(peer);
	if (peer->ops->down != NULL) {
		peer->ops->down(peer);
	}
	return event->down.status == WEFT_REFUSED
		       ? wf_welcome_decode(event->down.blob, event->down.blob_bytes, &peer->welcome)
		       : WEFT_OK;
}

void
peer_event(struct peer *peer, const struct wf_event *event)
{
	enum weft_status st = WEFT_OK;
	if (event->kind == WF_EVENT_DONE && event->done.cookie != 0 && peer->ops->done != NULL) {
		peer->ops->done(peer, event->done.cookie);
	}
	if (event->conn != peer->conn) {
		return;
	}
	switch (event->kind) {
	case WF_EVENT_UP:
		peer->up = true;
		st = wf_welcome_decode(event->up.blob, event->up.blob_bytes, &peer->welcome);
		break;
	case WF_EVENT_DOWN:
		st = end_path(peer, event);
		break;
	case WF_EVENT_MSG:
		st = event->msg.head->service == WF_SERVICE_CONTROL
			     ? recv_control(peer, event->msg.head, event->msg.body)
			     : peer->ops->recv(peer, event->msg.head, event->msg.body);
		break;
	case WF_EVENT_PUT:
		CHECK_PEER(peer, peer->ops->put != NULL);
		if (peer->ops->put != NULL) {
			peer->ops->put(peer, event);
		}
		break;
	case WF_EVENT_DONE:
	default:
		break;
	}
	CHECK_PEER(peer, st == WEFT_OK);
}

unsigned
peer_poll(struct peer *peer)
{
	struct wf_event events[16];
	unsigned count = 0;
	peer_flush(peer);
	CHECK_PEER(peer, wf_transport_poll(peer->transport, events, 16, &count) == WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		peer_event(peer, &events[i]);
	}
	return count;
}
