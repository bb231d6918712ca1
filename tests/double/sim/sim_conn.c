/* SPDX-License-Identifier: Apache-2.0 */
/* sim_conn: one end of a link: the operations that it accepted, and how it goes down.
 *
 * An end goes down in two steps. When the time comes, what is not DONE becomes LOST and DOWN is
 * queued; the peer's bytes keep landing until poll delivers that DOWN. Thread: the world's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/double/sim/sim.h"

#define DRAIN_NS_MAX WF_NS_PER_S

static void attempt_times_out(struct wf_due *due);
static void down_fires(struct wf_due *due);

struct wf_sim_conn *
wf_sim_conn_create(struct wf_sim_transport *transport, struct wf_sim_link *link, unsigned side)
{
	WF_ASSERT(link->end[side] == NULL);
	struct wf_sim_conn *conn = wf_sim_zalloc(sizeof(*conn));
	wf_conn_init(&conn->base, &transport->base);
	conn->transport = transport;
	conn->link = link;
	conn->side = side;
	conn->attempt.fire = attempt_times_out;
	conn->down.fire = down_fires;
	link->end[side] = conn;
	conn->next = transport->conns;
	if (transport->conns != NULL) {
		transport->conns->prev = conn;
	}
	transport->conns = conn;
	bool has_place = wf_places_claim(&transport->places, &conn->place);
	WF_ASSERT(has_place);
	return conn;
}

void
wf_sim_conn_free(struct wf_sim_conn *conn)
{
	wf_sim_grants_free(conn);
	free(conn);
}

/* --- operations --- */

void
wf_sim_op_free(struct wf_sim_op *op)
{
	struct wf_sim_conn *conn = op->event.conn;
	wf_due_cancel(&conn->transport->world->heap, &op->due);
	wf_sim_event_drop(&op->event);
	if (op->frame != NULL) {
		op->frame->op = NULL;
	}
	if (op->prev != NULL) {
		op->prev->next = op->next;
	} else {
		conn->ops = op->next;
	}
	if (op->next != NULL) {
		op->next->prev = op->prev;
	} else {
		conn->ops_tail = op->prev;
	}
	conn->op_count--;
	free(op);
}

/* A caller that writes to what it has lent is found here, whether or not a part was read since. */
static void
check_lent(const struct wf_sim_op *op)
{
	if (op->source != NULL && !op->event.conn->transport->world->opts.writes_lent) {
		bool lent_buffer_is_unchanged =
			wf_crc32c(0, op->source, op->bytes) == op->source_crc;
		WF_ASSERT(lent_buffer_is_unchanged);
	}
}

static void
finish(struct wf_sim_op *op, enum weft_status status)
{
	check_lent(op);
	wf_due_cancel(&op->event.conn->transport->world->heap, &op->due);
	if (op->frame != NULL) {
		op->frame->op = NULL;
		op->frame = NULL;
	}
	op->status = status;
	wf_sim_event_push(op->event.conn, &op->event, WF_EVENT_DONE);
}

static void
op_is_done(struct wf_due *due)
{
	struct wf_sim_op *op = WF_SIM_OUTER(struct wf_sim_op, due, due);
	if (op->frame != NULL) {
		wf_sim_frame_read(op->frame);
	}
	finish(op, WEFT_OK);
}

static struct wf_sim_op *
add_op(struct wf_sim_conn *conn, uint64_t cookie)
{
	struct wf_sim_op *op = wf_sim_zalloc(sizeof(*op));
	op->due.fire = op_is_done;
	op->event.conn = conn;
	op->cookie = cookie;
	op->prev = conn->ops_tail;
	if (conn->ops_tail != NULL) {
		conn->ops_tail->next = op;
	} else {
		conn->ops = op;
	}
	conn->ops_tail = op;
	conn->op_count++;
	return op;
}

/* DONE says nothing about the peer: it comes early, about with the event, or well after it. */
static uint64_t
draw_done_ns(struct wf_world *world, uint64_t event_ns)
{
	uint64_t now_ns = world->now_ns;
	switch (wf_sim_draw(world, 0, 3)) {
	case 0:
		return wf_sim_draw(world, now_ns, now_ns + (event_ns - now_ns) / 4);
	case 1:
		return wf_sim_draw(world, event_ns, event_ns + world->opts.delay_max_ns);
	default:
		return wf_sim_draw(world, now_ns, event_ns);
	}
}

static void
take_send(struct wf_sim_conn *conn, const struct wf_op *op)
{
	struct wf_world *world = conn->transport->world;
	struct wf_sim_op *own = add_op(conn, op->cookie);
	uint64_t event_ns = world->now_ns + world->opts.delay_max_ns;
	if (conn->link->end[!conn->side] != NULL) {
		struct wf_sim_frame *frame =
			wf_sim_frame_create(conn->link, !conn->side, WF_SIM_MSG, op->body_bytes);
		frame->head = *op->head;
		frame->head.version = WF_WIRE_VERSION;
		frame->head.body_bytes = op->body_bytes;
		if (op->body_bytes > 0) {
			memcpy(frame->body, op->body, op->body_bytes);
		}
		frame->head.payload_crc = (op->head->flags & WF_HEAD_PAYLOAD_CRC) != 0
						  ? wf_crc32c(0, frame->body, op->body_bytes)
						  : 0;
		wf_sim_frame_send(frame);
		event_ns = frame->due.at_ns;
	}
	wf_due_add(&world->heap, &own->due, draw_done_ns(world, event_ns));
	conn->transport->info.msgs_sent++;
	conn->transport->info.bytes_sent += WF_HEAD_BYTES + op->body_bytes;
}

static bool
is_in_region(const struct wf_sim_transport *t, const struct wf_op *op)
{
	if (op->region >= t->region_count || t->regions[op->region].base == NULL) {
		return false;
	}
	const struct wf_region *region = &t->regions[op->region];
	uintptr_t base = (uintptr_t)region->base;
	uintptr_t src = (uintptr_t)op->src;
	return src >= base && op->bytes <= region->bytes && src - base <= region->bytes - op->bytes;
}

/* Sends the frame of a PUT. NULL: nobody will see it. */
static struct wf_sim_frame *
send_put(struct wf_sim_conn *conn, const struct wf_op *op)
{
	struct wf_sim_conn *peer = conn->link->end[!conn->side];
	if (peer == NULL) {
		return NULL;
	}
	struct wf_sim_frame *frame =
		wf_sim_frame_create(conn->link, !conn->side, WF_SIM_PUT, op->bytes);
	frame->source = op->src;
	frame->tag = op->tag;
	wf_sim_grant_resolve(peer, op, frame);
	wf_sim_frame_send(frame);
	return frame;
}

/* Reads all of it now, and reports so: its source is not lent, and it is no operation whose DONE is
 * to come. */
static void
take_copied_put(struct wf_sim_conn *conn, const struct wf_op *op)
{
	struct wf_sim_frame *frame = send_put(conn, op);
	if (frame != NULL && frame->bad == NULL) {
		wf_sim_frame_scatter(frame, conn->transport->world->now_ns);
		wf_sim_frame_read(frame);
	}
	*op->copied = true;
}

static void
take_lent_put(struct wf_sim_conn *conn, const struct wf_op *op)
{
	struct wf_world *world = conn->transport->world;
	struct wf_sim_op *own = add_op(conn, op->cookie);
	own->region = op->region;
	own->source = op->src;
	own->bytes = op->bytes;
	own->source_crc = wf_crc32c(0, op->src, op->bytes);
	uint64_t event_ns = world->now_ns + world->opts.delay_max_ns;
	uint64_t done_ns = draw_done_ns(world, event_ns);
	struct wf_sim_frame *frame = send_put(conn, op);
	if (frame != NULL) {
		done_ns = draw_done_ns(world, frame->due.at_ns);
	}
	if (frame != NULL && frame->bad == NULL) {
		frame->op = own;
		own->frame = frame;
		wf_sim_frame_scatter(frame, done_ns);
	}
	wf_due_add(&world->heap, &own->due, done_ns);
}

static void
take_put(struct wf_sim_conn *conn, const struct wf_op *op)
{
	bool copies = op->copied != NULL && wf_sim_chance(conn->transport->world, 1, 2);
	(copies ? take_copied_put : take_lent_put)(conn, op);
	conn->transport->info.puts_sent++;
	conn->transport->info.bytes_sent += op->bytes;
}

enum weft_status
wf_sim_conn_take(struct wf_sim_conn *conn, const struct wf_op *op)
{
	WF_ASSERT(conn->state == WF_SIM_UP);
	if (op->kind == WF_OP_SEND) {
		take_send(conn, op);
		return WEFT_OK;
	}
	if (!is_in_region(conn->transport, op)) {
		return wf_fail(WEFT_INVALID, "put to %s: %llu bytes at %p are outside region %u",
			       conn->peer, (unsigned long long)op->bytes, op->src, op->region);
	}
	take_put(conn, op);
	return WEFT_OK;
}

/* --- going down --- */

/* What was sent will itself tell the peer that this end has gone. */
static bool
farewell_is_flying(const struct wf_sim_link *link, unsigned to)
{
	const struct wf_sim_frame *last = link->dir[to].tail;
	return last != NULL && !last->lost && last->due.at_ns <= link->dir[to].cutoff_ns &&
	       (last->kind == WF_SIM_FIN || last->kind == WF_SIM_REFUSAL);
}

static void
tell_peer(struct wf_sim_link *link, unsigned to)
{
	struct wf_sim_conn *peer = link->end[to];
	if (peer != NULL && peer->down.place == 0 && !farewell_is_flying(link, to)) {
		wf_sim_conn_lose(peer, WEFT_LOST, "connection lost");
	}
}

static void
go_down(struct wf_sim_conn *conn)
{
	struct wf_world *world = conn->transport->world;
	WF_ASSERT(conn->state != WF_SIM_DOWN);
	conn->state = WF_SIM_DOWN;
	wf_due_cancel(&world->heap, &conn->attempt);
	wf_due_cancel(&world->heap, &conn->down);
	wf_sim_dir_drop_unread(conn->link, !conn->side);
	for (struct wf_sim_op *op = conn->ops; op != NULL; op = op->next) {
		if (!op->event.queued) {
			finish(op, WEFT_LOST);
		}
	}
	wf_sim_trace(world, world->now_ns);
	wf_sim_trace(world, conn->link->id << 8 | conn->side << 7 | (unsigned)conn->down_status);
	wf_sim_event_push(conn, &conn->down_event, WF_EVENT_DOWN);
	tell_peer(conn->link, !conn->side);
}

static void
down_fires(struct wf_due *due)
{
	go_down(WF_SIM_OUTER(struct wf_sim_conn, down, due));
}

static void
attempt_times_out(struct wf_due *due)
{
	struct wf_sim_conn *conn = WF_SIM_OUTER(struct wf_sim_conn, attempt, due);
	WF_ASSERT(conn->state == WF_SIM_CONNECTING);
	wf_sim_conn_down_at(conn, due->at_ns, WEFT_TIMEOUT, "no answer in time");
}

static void
set_cause(struct wf_sim_conn *conn, enum weft_status status, const char *what)
{
	bool is_ours = conn->state == WF_SIM_CLOSING;
	conn->down_status = is_ours ? WEFT_CLOSED : status;
	(void)snprintf(conn->why, sizeof(conn->why), "%.200s: %.50s", conn->peer,
		       is_ours ? "closed by this end" : what);
}

void
wf_sim_conn_down_at(struct wf_sim_conn *conn, uint64_t at_ns, enum weft_status status,
		    const char *what)
{
	struct wf_world *world = conn->transport->world;
	if (conn->state == WF_SIM_DOWN || (conn->down.place != 0 && conn->down.at_ns <= at_ns)) {
		return;
	}
	set_cause(conn, status, what);
	if (at_ns <= world->now_ns) {
		go_down(conn);
	} else {
		wf_due_add(&world->heap, &conn->down, at_ns);
	}
}

void
wf_sim_conn_refuse(struct wf_sim_conn *conn, const char *what)
{
	struct wf_world *world = conn->transport->world;
	WF_ASSERT(conn->state != WF_SIM_DOWN);
	set_cause(conn, WEFT_PROTOCOL, what);
	wf_due_add(&world->heap, &conn->down, world->now_ns); /* before the peer is told */
	wf_sim_conn_lose(conn->link->end[!conn->side],
			 wf_sim_chance(world, 1, 2) ? WEFT_PROTOCOL : WEFT_LOST, what);
	go_down(conn);
}

void
wf_sim_conn_lose(struct wf_sim_conn *conn, enum weft_status status, const char *what)
{
	if (conn == NULL || conn->state == WF_SIM_DOWN) {
		return;
	}
	struct wf_world *world = conn->transport->world;
	struct wf_sim_dir *dir = &conn->link->dir[conn->side];
	uint64_t news_ns = wf_sim_clear_ns(conn->link, conn->side, world->now_ns);
	uint64_t down_ns = wf_sim_draw(world, news_ns, news_ns + world->opts.down_delay_max_ns);
	uint64_t cutoff_ns = wf_sim_draw(world, news_ns, down_ns);
	dir->cutoff_ns = cutoff_ns < dir->cutoff_ns ? cutoff_ns : dir->cutoff_ns;
	if (conn->state == WF_SIM_CONNECTING) {
		status = WEFT_UNAVAILABLE;
	}
	wf_sim_conn_down_at(conn, down_ns, status, what);
}

static void
drain(struct wf_sim_conn *conn)
{
	struct wf_world *world = conn->transport->world;
	struct wf_sim_frame *fin = wf_sim_frame_create(conn->link, !conn->side, WF_SIM_FIN, 0);
	wf_sim_frame_send(fin);
	uint64_t at_ns = fin->due.at_ns;
	for (const struct wf_sim_op *op = conn->ops; op != NULL; op = op->next) {
		if (op->due.place != 0 && op->due.at_ns > at_ns) {
			at_ns = op->due.at_ns;
		}
	}
	at_ns += wf_sim_draw(world, 0, world->opts.delay_max_ns);
	uint64_t latest_ns = world->now_ns + DRAIN_NS_MAX;
	wf_sim_conn_down_at(conn, at_ns < latest_ns ? at_ns : latest_ns, WEFT_CLOSED, "");
}

void
wf_sim_conn_close(struct wf_sim_conn *conn, enum wf_disconnect how)
{
	if (conn->state == WF_SIM_DOWN) {
		return;
	}
	struct wf_world *world = conn->transport->world;
	bool was_up = conn->state == WF_SIM_UP;
	bool was_closing = conn->state == WF_SIM_CLOSING;
	conn->state = WF_SIM_CLOSING;
	wf_due_cancel(&world->heap, &conn->attempt);
	if (conn->down.place != 0) {
		conn->down_status = WEFT_CLOSED;
	}
	wf_sim_events_purge(conn->transport, conn);
	if (how == WF_DISCONNECT_DRAIN && was_closing) {
		return;
	}
	if (how == WF_DISCONNECT_DRAIN && was_up && conn->link->end[!conn->side] != NULL) {
		drain(conn);
		return;
	}
	wf_sim_conn_lose(conn->link->end[!conn->side],
			 wf_sim_chance(world, 1, 2) ? WEFT_CLOSED : WEFT_LOST, "the peer closed");
	uint64_t late_ns = wf_sim_draw(world, 0, world->opts.down_delay_max_ns);
	wf_sim_conn_down_at(conn, world->now_ns + late_ns, WEFT_CLOSED, "");
}

void
wf_sim_conn_detach(struct wf_sim_conn *conn)
{
	struct wf_sim_transport *t = conn->transport;
	struct wf_sim_link *link = conn->link;
	wf_due_cancel(&t->world->heap, &conn->attempt);
	wf_due_cancel(&t->world->heap, &conn->down);
	wf_sim_event_drop(&conn->down_event);
	while (conn->ops != NULL) {
		wf_sim_op_free(conn->ops);
	}
	wf_sim_dir_drop_unread(link, !conn->side);
	wf_sim_dir_clear(link, conn->side);
	if (conn->prev != NULL) {
		conn->prev->next = conn->next;
	} else {
		t->conns = conn->next;
	}
	if (conn->next != NULL) {
		conn->next->prev = conn->prev;
	}
	conn->next = NULL;
	conn->prev = NULL;
	wf_places_leave(&t->places, &conn->place);
	link->end[conn->side] = NULL;
	conn->state = WF_SIM_DOWN;
	conn->link = NULL;
	tell_peer(link, !conn->side);
	wf_sim_link_settle(link);
}
