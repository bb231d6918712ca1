/* SPDX-License-Identifier: Apache-2.0 */
/* sim_net: links between two ends, and the frames that fly over them.
 *
 * A frame is an event at the other end, in post order. The bytes of a PUT fly apart from it, each
 * part at instants of its own: read out of the source between taking and DONE, written into the
 * target between reading and the event. Thread: the world's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/double/sim/sim.h"

/* --- links --- */

static void
cut_fires(struct wf_due *due)
{
	wf_sim_link_cut(WF_SIM_OUTER(struct wf_sim_link, cut, due));
}

struct wf_sim_link *
wf_sim_link_create(struct wf_world *world, unsigned net, const struct wf_host *target)
{
	struct wf_sim_link *link = wf_sim_zalloc(sizeof(*link));
	link->world = world;
	link->id = ++world->link_count;
	link->net = net;
	link->target = *target;
	link->cut.fire = cut_fires;
	link->dir[0].cutoff_ns = WF_NEVER;
	link->dir[1].cutoff_ns = WF_NEVER;
	link->next = world->links;
	if (world->links != NULL) {
		world->links->prev = link;
	}
	world->links = link;
	return link;
}

void
wf_sim_link_free(struct wf_sim_link *link)
{
	WF_ASSERT(link->end[0] == NULL && link->end[1] == NULL);
	struct wf_world *world = link->world;
	wf_due_cancel(&world->heap, &link->cut);
	wf_sim_dir_clear(link, 0);
	wf_sim_dir_clear(link, 1);
	if (link->prev != NULL) {
		link->prev->next = link->next;
	} else {
		world->links = link->next;
	}
	if (link->next != NULL) {
		link->next->prev = link->prev;
	}
	free(link);
}

void
wf_sim_link_settle(struct wf_sim_link *link)
{
	if (link->end[0] == NULL && link->end[1] == NULL) {
		wf_sim_link_free(link);
	}
}

void
wf_sim_link_cut(struct wf_sim_link *link)
{
	struct wf_world *world = link->world;
	wf_due_cancel(&world->heap, &link->cut);
	world->stats.cuts++;
	world->stats.second_cuts += link->net;
	wf_sim_trace(world, link->id);
	for (unsigned side = 0; side < 2; side++) {
		wf_sim_conn_lose(link->end[side], WEFT_LOST, "the connection was cut");
	}
	if (link->end[1] == NULL) {
		link->dir[1].cutoff_ns = world->now_ns; /* a hello that does not arrive */
	}
}

/* The frame that has just been sent may be the one after which the connection breaks. */
static void
maybe_cut(struct wf_sim_link *link, uint64_t event_ns)
{
	struct wf_world *world = link->world;
	const struct wf_world_opts *opts = &world->opts;
	bool second = link->net == 1;
	uint32_t max = second ? opts->second_cut_max : opts->cut_max;
	if (link->cut.place != 0 || (max > 0 && world->cuts_drawn[link->net] >= max)) {
		return;
	}
	uint32_t rate = second ? opts->second_cut_per_million : opts->cut_per_million;
	if (wf_sim_chance(world, rate, 1000000)) {
		world->cuts_drawn[link->net]++;
		wf_due_add(&world->heap, &link->cut, wf_sim_draw(world, world->now_ns, event_ns));
	}
}

/* --- frames --- */

static void frame_fires(struct wf_due *due);

struct wf_sim_frame *
wf_sim_frame_create(struct wf_sim_link *link, unsigned to, enum wf_sim_frame_kind kind,
		    size_t body_bytes)
{
	struct wf_sim_frame *frame = wf_sim_zalloc(sizeof(*frame) + body_bytes);
	frame->due.fire = frame_fires;
	frame->link = link;
	frame->to = to;
	frame->kind = kind;
	frame->body_bytes = body_bytes;
	return frame;
}

static void
unlink_frame(struct wf_sim_frame *frame)
{
	struct wf_sim_dir *dir = &frame->link->dir[frame->to];
	if (frame->prev != NULL) {
		frame->prev->next = frame->next;
	} else if (dir->head == frame) {
		dir->head = frame->next;
	} else {
		return; /* not in the list */
	}
	if (frame->next != NULL) {
		frame->next->prev = frame->prev;
	} else {
		dir->tail = frame->prev;
	}
	frame->next = NULL;
	frame->prev = NULL;
}

/* Takes it out of everything that knows it but the list of spent frames. */
static void
detach_frame(struct wf_sim_frame *frame)
{
	struct wf_due_heap *heap = &frame->link->world->heap;
	wf_due_cancel(heap, &frame->due);
	for (unsigned i = 0; i < frame->part_count; i++) {
		wf_due_cancel(heap, &frame->part[i].due);
	}
	wf_sim_event_drop(&frame->event);
	if (frame->op != NULL) {
		frame->op->frame = NULL;
		frame->op = NULL;
	}
	unlink_frame(frame);
}

void
wf_sim_frame_free(struct wf_sim_frame *frame)
{
	detach_frame(frame);
	free(frame);
}

void
wf_sim_frame_send(struct wf_sim_frame *frame)
{
	struct wf_world *world = frame->link->world;
	struct wf_sim_dir *dir = &frame->link->dir[frame->to];
	uint64_t at_ns = world->now_ns +
			 wf_sim_draw(world, world->opts.delay_min_ns, world->opts.delay_max_ns);
	if (at_ns < dir->last_ns) {
		at_ns = dir->last_ns; /* order within a connection */
	}
	at_ns = wf_sim_clear_ns(frame->link, frame->to, at_ns);
	if (frame->kind == WF_SIM_HELLO) { /* which follows a handshake in both directions */
		at_ns = wf_sim_clear_ns(frame->link, !frame->to, at_ns);
	}
	dir->last_ns = at_ns;
	frame->prev = dir->tail;
	if (dir->tail != NULL) {
		dir->tail->next = frame;
	} else {
		dir->head = frame;
	}
	dir->tail = frame;
	world->stats.frames++;
	wf_due_add(&world->heap, &frame->due, at_ns);
	maybe_cut(frame->link, at_ns);
}

/* --- the bytes of a PUT --- */

static void
read_part(struct wf_sim_part *part)
{
	WF_ASSERT(part->state == WF_SIM_UNREAD);
	struct wf_sim_frame *frame = part->frame;
	memcpy(frame->body + part->offset, frame->source + part->offset, part->bytes);
	part->state = WF_SIM_READ;
}

static void
land_part(struct wf_sim_part *part)
{
	WF_ASSERT(part->state == WF_SIM_READ);
	struct wf_sim_frame *frame = part->frame;
	struct wf_world *world = frame->link->world;
	memcpy(frame->target + part->offset, frame->body + part->offset, part->bytes);
	part->state = WF_SIM_LANDED;
	wf_sim_trace(world, world->now_ns ^ (frame->link->id << 48));
	wf_sim_trace(world, part->offset);
}

static void
part_fires(struct wf_due *due)
{
	struct wf_sim_part *part = WF_SIM_OUTER(struct wf_sim_part, due, due);
	if (part->state == WF_SIM_UNREAD) {
		read_part(part);
		wf_due_add(&part->frame->link->world->heap, &part->due, part->land_ns);
		return;
	}
	land_part(part);
}

void
wf_sim_frame_read(struct wf_sim_frame *frame)
{
	struct wf_due_heap *heap = &frame->link->world->heap;
	for (unsigned i = 0; i < frame->part_count; i++) {
		struct wf_sim_part *part = &frame->part[i];
		if (part->state == WF_SIM_UNREAD) {
			read_part(part);
			wf_due_add(heap, &part->due, part->land_ns);
		}
	}
}

/* Up to `max` parts of at least one byte, cut at drawn places. */
static unsigned
cut_in_parts(struct wf_sim_frame *frame, unsigned max)
{
	struct wf_world *world = frame->link->world;
	uint64_t at = 0;
	unsigned count = 0;
	while (at < frame->body_bytes) {
		uint64_t left = frame->body_bytes - at;
		uint64_t bytes = count + 1 == max ? left : wf_sim_draw(world, 1, left);
		frame->part[count++] = (struct wf_sim_part){
			.due.fire = part_fires, .frame = frame, .offset = at, .bytes = bytes};
		at += bytes;
	}
	return count;
}

void
wf_sim_frame_scatter(struct wf_sim_frame *frame, uint64_t read_by_ns)
{
	struct wf_world *world = frame->link->world;
	uint64_t event_ns = frame->due.at_ns;
	unsigned max = 1;
	if (frame->body_bytes > 1 && wf_sim_chance(world, world->opts.split_per_mille, 1000)) {
		max = (unsigned)wf_sim_draw(world, 2, WF_SIM_PART_MAX);
		world->stats.splits++;
	}
	frame->part_count = cut_in_parts(frame, max);
	read_by_ns = read_by_ns < event_ns ? read_by_ns : event_ns;
	for (unsigned i = 0; i < frame->part_count; i++) {
		struct wf_sim_part *part = &frame->part[i];
		uint64_t read_ns = wf_sim_draw(world, world->now_ns, read_by_ns);
		part->land_ns = wf_sim_draw(world, read_ns, event_ns);
		wf_due_add(&world->heap, &part->due, read_ns);
	}
}

/* Before the event: all bytes are there, and those of this PUT where two overlap. */
static void
land_all(struct wf_sim_frame *frame)
{
	wf_sim_frame_read(frame);
	for (unsigned i = 0; i < frame->part_count; i++) {
		struct wf_sim_part *part = &frame->part[i];
		wf_due_cancel(&frame->link->world->heap, &part->due);
		part->state = WF_SIM_READ;
		land_part(part);
	}
}

/* --- arrival --- */

static bool
is_unread(const struct wf_sim_frame *frame)
{
	for (unsigned i = 0; i < frame->part_count; i++) {
		if (frame->part[i].state == WF_SIM_UNREAD) {
			return true;
		}
	}
	return false;
}

void
wf_sim_dir_drop_unread(struct wf_sim_link *link, unsigned to)
{
	struct wf_due_heap *heap = &link->world->heap;
	bool lost = false;
	for (struct wf_sim_frame *f = link->dir[to].head; f != NULL; f = f->next) {
		lost = lost || is_unread(f);
		f->lost = f->lost || lost;
		for (unsigned i = 0; i < f->part_count; i++) {
			if (f->part[i].state == WF_SIM_UNREAD) {
				wf_due_cancel(heap, &f->part[i].due);
			}
		}
	}
}

void
wf_sim_dir_clear(struct wf_sim_link *link, unsigned to)
{
	while (link->dir[to].head != NULL) {
		wf_sim_frame_free(link->dir[to].head);
	}
}

struct wf_sim_listener *
wf_sim_listener_find(struct wf_world *world, unsigned net, const char *host, uint16_t port)
{
	struct wf_sim_listener *at = world->listeners;
	while (at != NULL && (at->port != port || at->transport->net != net ||
			      strcmp(at->transport->proc->host, host) != 0)) {
		at = at->next;
	}
	return at;
}

static uint32_t
refuse_rate(const struct wf_sim_link *link)
{
	const struct wf_world_opts *opts = &link->world->opts;
	return link->net == 1 ? opts->second_refuse_per_mille : opts->refuse_per_mille;
}

/* A connect reaches the host it was for. */
static void
hello_arrives(struct wf_sim_frame *frame)
{
	struct wf_sim_link *link = frame->link;
	struct wf_world *world = link->world;
	struct wf_sim_conn *from = link->end[0];
	WF_ASSERT(from != NULL && link->end[1] == NULL);
	if (from->state != WF_SIM_CONNECTING) {
		wf_sim_frame_free(frame); /* given up meanwhile */
		return;
	}
	struct wf_sim_listener *listener =
		wf_sim_listener_find(world, link->net, link->target.name, link->target.port);
	const char *what = NULL;
	if (wf_sim_chance(world, refuse_rate(link), 1000)) {
		world->stats.refusals++;
		world->stats.second_refusals += link->net;
		what = "connection refused";
	} else if (listener == NULL) {
		what = "nobody listens there";
	} else if (frame->body_bytes > listener->transport->opts.blob_max) {
		listener->transport->info.strangers_refused++;
		what = "it takes no hello that long";
	} else if (listener->transport->places.conn_count >= listener->transport->opts.conn_max) {
		struct wf_transport_info *info = &listener->transport->info;
		info->strangers_refused++;
		(void)snprintf(info->last_stranger, sizeof(info->last_stranger),
			       "%.200s: conn_max %u reached", from->transport->proc->host,
			       listener->transport->opts.conn_max);
		what = "it has no room for another connection";
	}
	if (what != NULL) {
		uint64_t back_ns =
			wf_sim_draw(world, world->opts.delay_min_ns, world->opts.delay_max_ns);
		wf_sim_conn_down_at(from, world->now_ns + back_ns, WEFT_UNAVAILABLE, what);
		wf_sim_frame_free(frame);
		return;
	}
	struct wf_sim_conn *conn = wf_sim_conn_create(listener->transport, link, 1);
	(void)snprintf(conn->peer, sizeof(conn->peer), "%.255s:%u", from->transport->proc->host,
		       (unsigned)(32768 + link->id % 16384));
	conn->state = WF_SIM_INCOMING;
	unlink_frame(frame);
	wf_sim_event_push(conn, &frame->event, WF_EVENT_UP);
}

static void
trace_arrival(const struct wf_sim_frame *frame)
{
	struct wf_world *world = frame->link->world;
	wf_sim_trace(world, world->now_ns);
	wf_sim_trace(world, frame->link->id << 8 | (unsigned)frame->kind << 1 | frame->to);
	wf_sim_trace(world, frame->body_bytes);
	/* Not what a hello says: a process number in it would make equal runs look different. */
	if (frame->kind == WF_SIM_MSG || frame->kind == WF_SIM_PUT) {
		wf_sim_trace(world, wf_crc32c(0, frame->body, frame->body_bytes));
	}
}

static void
put_arrives(struct wf_sim_conn *conn, struct wf_sim_frame *frame)
{
	if (frame->bad != NULL) {
		conn->transport->info.protocol_errors++;
		wf_sim_conn_refuse(conn, frame->bad);
		wf_sim_frame_free(frame);
		return;
	}
	land_all(frame);
	conn->transport->info.puts_received++;
	conn->transport->info.bytes_received += frame->body_bytes;
	if (frame->in_slot) {
		wf_sim_grant_hold(conn, frame);
	}
	if (frame->op != NULL) {
		frame->op->frame = NULL;
		frame->op = NULL;
	}
	unlink_frame(frame);
	wf_sim_event_push(conn, &frame->event, WF_EVENT_PUT);
}

/* Longer than this end takes. */
static void
refuse_verdict(struct wf_sim_conn *conn, struct wf_sim_frame *frame)
{
	wf_sim_frame_free(frame);
	wf_sim_conn_refuse(conn, "its verdict is too long");
}

static void
arrive(struct wf_sim_conn *conn, struct wf_sim_frame *frame)
{
	uint64_t now_ns = frame->link->world->now_ns;
	switch (frame->kind) {
	case WF_SIM_VERDICT:
		if (frame->body_bytes > conn->transport->opts.blob_max) {
			refuse_verdict(conn, frame);
			break;
		}
		wf_due_cancel(&frame->link->world->heap, &conn->attempt);
		conn->state = WF_SIM_ANSWERED;
		unlink_frame(frame);
		wf_sim_event_push(conn, &frame->event, WF_EVENT_UP);
		break;
	case WF_SIM_REFUSAL:
		if (frame->body_bytes > conn->transport->opts.blob_max) {
			refuse_verdict(conn, frame);
			break;
		}
		memcpy(conn->blob, frame->body, frame->body_bytes);
		conn->blob_bytes = frame->body_bytes;
		wf_sim_conn_down_at(conn, now_ns, WEFT_REFUSED, "the peer refused");
		wf_sim_frame_free(frame);
		break;
	case WF_SIM_MSG:
		conn->transport->info.msgs_received++;
		conn->transport->info.bytes_received += WF_HEAD_BYTES + frame->body_bytes;
		unlink_frame(frame);
		wf_sim_event_push(conn, &frame->event, WF_EVENT_MSG);
		break;
	case WF_SIM_PUT:
		put_arrives(conn, frame);
		break;
	case WF_SIM_FIN:
		wf_sim_conn_down_at(conn, now_ns, WEFT_CLOSED, "the peer closed");
		wf_sim_frame_free(frame);
		break;
	case WF_SIM_HELLO:
	default:
		WF_ASSERT(!"a hello goes elsewhere");
	}
}

static void
frame_fires(struct wf_due *due)
{
	struct wf_sim_frame *frame = WF_SIM_OUTER(struct wf_sim_frame, due, due);
	struct wf_sim_link *link = frame->link;
	uint64_t now_ns = link->world->now_ns;
	struct wf_sim_conn *conn = link->end[frame->to];
	trace_arrival(frame);
	if (frame->lost || now_ns > link->dir[frame->to].cutoff_ns) {
		wf_sim_frame_free(frame);
		return;
	}
	if (frame->kind == WF_SIM_HELLO) {
		hello_arrives(frame);
		return;
	}
	WF_ASSERT(conn != NULL); /* what flies to an end that is gone has been dropped */
	if (conn->state == WF_SIM_DOWN || conn->state == WF_SIM_CLOSING) {
		wf_sim_frame_free(frame);
		return;
	}
	arrive(conn, frame);
}
