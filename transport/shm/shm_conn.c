/* SPDX-License-Identifier: Apache-2.0 */
/* shm_conn: the states of a connection, and its end.
 *
 *   CONNECTING - SHAKING - DECIDED - UP           connecting end
 *                SHAKING - DECIDED - WAITING - UP accepting end
 *   UP - DRAINING - DYING - DEAD; any - DYING - DEAD
 *
 * The socket stays open, and the peer's memory mapped, until the connection is freed, by the poll
 * after the one that delivered DOWN: that the socket closes is how the peer knows that nothing of
 * its memory is looked at any more. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct wf_shm_conn *
wf_shm_conn_create(struct wf_shm *t, bool incoming)
{
	struct wf_shm_conn *c = wf_zalloc(t->transport.env, sizeof(*c));
	if (c == NULL) {
		return NULL;
	}
	if (incoming) {
		wf_places_come(&t->places, &c->place, c);
	} else if (wf_places_table_is_full(&t->places) || !wf_places_take(&t->places, &c->place)) {
		wf_free(t->transport.env, c, sizeof(*c));
		return NULL;
	}
	WF_ASSERT(t->conn_count < wf_places_table(&t->places));
	c->conn.transport = &t->transport;
	c->source = (struct wf_shm_source){.kind = WF_SHM_SOURCE_CONN, .owner = c};
	c->t = t;
	wf_grants_init(&c->grants, t->transport.env, &t->regions, c->peer);
	c->incoming = incoming;
	c->fd = -1;
	c->segment_fd = -1;
	c->state = WF_SHM_CONNECTING;
	c->deadline_ns = WF_NEVER;
	c->idx = t->conn_count;
	t->conn[t->conn_count++] = c;
	return c;
}

enum weft_status
wf_shm_conn_buffers(struct wf_shm_conn *c)
{
	struct wf_env *env = c->t->transport.env;
	uint32_t op_max = c->t->opts.op_max;
	c->tx.entry = wf_zalloc_array(env, op_max, sizeof(*c->tx.entry));
	c->tx.ring = wf_zalloc(env, WF_SHM_MSG_RING_BYTES);
	if (c->tx.entry == NULL || c->tx.ring == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory for the connection's buffers, %zu bytes",
			       c->peer, op_max * sizeof(*c->tx.entry) + WF_SHM_MSG_RING_BYTES);
	}
	for (uint32_t i = op_max; i-- > 0;) {
		c->tx.entry[i].next = c->tx.free;
		c->tx.free = &c->tx.entry[i];
	}
	return WEFT_OK;
}

void
wf_shm_conn_destroy(struct wf_shm_conn *c)
{
	struct wf_shm *t = c->t;
	struct wf_env *env = t->transport.env;
	wf_shm_foreign_close(c);
	wf_shm_segment_close(c);
	if (c->fd >= 0) {
		(void)close(c->fd); /* epoll forgets it */
	}
	wf_places_leave(&t->places, &c->place);
	t->conn[c->idx] = t->conn[--t->conn_count];
	t->conn[c->idx]->idx = c->idx;
	wf_free(env, c->tx.entry, t->opts.op_max * sizeof(*c->tx.entry));
	wf_free(env, c->tx.ring, WF_SHM_MSG_RING_BYTES);
	wf_free(env, c, sizeof(*c));
}

void
wf_shm_conn_deadline(struct wf_shm_conn *c, uint64_t deadline_ns)
{
	c->deadline_ns = deadline_ns;
	wf_shm_timer_before(c->t, deadline_ns);
}

void
wf_shm_conn_kick(struct wf_shm_conn *c)
{
	c->tx.dirty = false;
	/* K1, K2: the sleeper raises its flag, then reads the doorbell. */
	(void)atomic_fetch_add_explicit(&c->own->doorbell, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&c->peer_end->sleeping, memory_order_seq_cst) != 0 &&
	    atomic_exchange_explicit(&c->peer_end->sleeping, 0, memory_order_seq_cst) != 0) {
		wf_shm_send_wake(c->fd);
	}
}

/* Tell the peer. */
static void
say_last_word(struct wf_shm_conn *c, enum wf_shm_closing closing)
{
	/* S4: who consumes a published PUT looks at this word afterwards. */
	atomic_store_explicit(&c->own->closing, (uint32_t)closing, memory_order_seq_cst);
	wf_shm_conn_kick(c);
}

static void
count_down(struct wf_shm_conn *c)
{
	struct wf_shm *t = c->t;
	if (!c->visible) {
		wf_shm_stranger(t, c->why);
	} else if (c->down_status == WEFT_PROTOCOL) {
		t->info.protocol_errors++;
	}
	if (c->was_up) {
		t->info.conns_down++;
		t->up_count--;
	}
}

void
wf_shm_conn_down(struct wf_shm_conn *c, enum weft_status status, const char *format, ...)
{
	if (c->state >= WF_SHM_DYING) {
		return;
	}
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* A name may be as long as the line: both get their part. */
	snprintf(c->why, sizeof(c->why), "%.110s: %.140s", c->peer, text);
	c->down_status = status;
	bool drained = c->state == WF_SHM_DRAINING && wf_shm_tx_idle(c);
	if (c->segment != NULL && c->fd >= 0) {
		say_last_word(c, drained           ? WF_SHM_ORDERLY
				 : c->disconnected ? WF_SHM_NOW
						   : WF_SHM_BROKEN);
	}
	c->rx.put_open = false;
	c->rx.put_src = NULL;
	wf_grants_drop(&c->grants);
	count_down(c);
	wf_places_end(&c->t->places, &c->place);
	c->deadline_ns = WF_NEVER;
	c->t->work_left = true;
	if (c->visible) {
		c->state = WF_SHM_DYING;
		/* How long to wait for slots that the peer holds. */
		wf_shm_conn_deadline(c,
				     wf_now_ns(c->t->transport.env) + c->t->opts.peer_timeout_ns);
	} else {
		c->state = WF_SHM_DEAD;
		c->t->dead_waiting = true;
	}
}

void
wf_shm_conn_ended(struct wf_shm_conn *c, enum wf_shm_closing closing)
{
	if (c->disconnected) {
		wf_shm_conn_down(c, WEFT_CLOSED, "closed by this end");
	} else if (!c->incoming && c->state < WF_SHM_UP) {
		wf_shm_conn_down(c, WEFT_UNAVAILABLE, "the peer closed instead of answering");
	} else if (closing == WF_SHM_ORDERLY || closing == WF_SHM_NOW) {
		wf_shm_conn_down(c, WEFT_CLOSED, "closed by the peer");
	} else if (closing == WF_SHM_BROKEN) {
		wf_shm_conn_down(c, WEFT_LOST, "the peer broke the connection off");
	} else {
		wf_shm_conn_down(c, WEFT_LOST, "the peer's process closed without warning");
	}
}

void
wf_shm_conn_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	struct wf_shm_conn *c = wf_shm_conn_of(conn);
	if (c->state >= WF_SHM_DYING) {
		return;
	}
	if (how == WF_DISCONNECT_DRAIN && c->state >= WF_SHM_UP) {
		if (c->state == WF_SHM_UP) {
			c->disconnected = true;
			c->state = WF_SHM_DRAINING;
			wf_shm_conn_deadline(c, wf_now_ns(c->t->transport.env) + WF_SHM_DRAIN_NS);
			c->t->work_left = true;
		}
		return;
	}
	c->disconnected = true;
	wf_shm_conn_down(c, WEFT_CLOSED, "closed by this end");
}

static void
drain(struct wf_shm_conn *c, struct wf_events *events)
{
	wf_shm_complete(c);
	wf_shm_flush(c);
	wf_shm_receive(c, events, true);
	if (c->state == WF_SHM_DRAINING && wf_shm_tx_idle(c)) {
		wf_shm_conn_down(c, WEFT_CLOSED, "closed by this end");
	}
	wf_shm_emit_done(c, events);
}

static void
serve(struct wf_shm_conn *c, struct wf_events *events)
{
	if (c->readable) {
		wf_shm_read_socket(c);
	}
	if (c->tx.ref_count > 0) {
		wf_shm_complete(c);
	}
	if (c->tx.queue.first != NULL) {
		wf_shm_flush(c);
	}
	if (c->tx.done.first != NULL) {
		wf_shm_emit_done(c, events);
	}
	if (c->state == WF_SHM_UP) {
		wf_shm_receive(c, events, false);
	}
}

/* What the peer still reads may take until it has gone, or stood still for too long. */
static void
die(struct wf_shm_conn *c, struct wf_events *events)
{
	for (unsigned i = 0; i < WF_SHM_MAIL_BUDGET && c->readable && !c->eof; i++) {
		struct wf_shm_mail mail;
		int got = wf_shm_receive_mail(c->fd, &mail);
		c->readable = got > 0;
		c->eof = got < 0;
		if (got > 0 && mail.fd >= 0) {
			(void)close(mail.fd);
		}
	}
	c->t->work_left |= c->readable && !c->eof;
	bool over = wf_shm_give_up(c, !c->eof && c->t->now_ns < c->deadline_ns);
	wf_shm_emit_done(c, events);
	if (!over || c->tx.done.first != NULL || wf_events_full(events)) {
		c->t->work_left |= over;
		return;
	}
	struct wf_event *event = wf_events_add(events, &c->conn, WF_EVENT_DOWN);
	event->down.status = c->down_status;
	event->down.why = c->why;
	if (c->down_status == WEFT_REFUSED) {
		event->down.blob = c->shake.blob;
		event->down.blob_bytes = c->shake.blob_bytes;
	}
	c->state = WF_SHM_DEAD;
	c->t->dead_waiting = true;
}

static void
visit_state(struct wf_shm_conn *c, struct wf_events *events)
{
	switch (c->state) {
	case WF_SHM_CONNECTING:
	case WF_SHM_DEAD:
		break;
	case WF_SHM_SHAKING:
		wf_shm_shake_read(c);
		break;
	case WF_SHM_DECIDED:
		wf_shm_shake_emit(c, events);
		break;
	case WF_SHM_WAITING:
		wf_shm_shake_read(c);
		break;
	case WF_SHM_UP:
		serve(c, events);
		break;
	case WF_SHM_DRAINING:
		wf_shm_read_socket(c);
		if (c->state == WF_SHM_DRAINING) {
			drain(c, events);
		}
		break;
	case WF_SHM_DYING:
		die(c, events);
		break;
	}
}

void
wf_shm_conn_visit(struct wf_shm_conn *c, struct wf_events *events)
{
	enum wf_shm_state before;
	do {
		before = c->state;
		visit_state(c, events);
	} while (c->state != before && !wf_events_full(events));
	if (c->state != before) {
		c->t->work_left = true;
	}
	if (c->state == WF_SHM_DECIDED || c->tx.done.first != NULL) {
		c->t->work_left = true;
	}
	if (c->tx.dirty && c->fd >= 0) {
		wf_shm_conn_kick(c);
	}
}

uint64_t
wf_shm_conn_due_ns(const struct wf_shm_conn *c)
{
	return c->state == WF_SHM_DEAD ? WF_NEVER : c->deadline_ns;
}

void
wf_shm_conn_expire(struct wf_shm_conn *c)
{
	const struct wf_transport_opts *opts = &c->t->opts;
	if (c->t->now_ns < c->deadline_ns) {
		return;
	}
	if (c->state == WF_SHM_CONNECTING && c->t->now_ns < c->attempt_ns) {
		wf_shm_connect_try(c);
	} else if (c->state == WF_SHM_SHAKING && c->incoming) {
		wf_shm_conn_down(c, WEFT_TIMEOUT, "no hello within %llu ms",
				 (unsigned long long)(opts->handshake_timeout_ns / WF_NS_PER_MS));
	} else if (c->state == WF_SHM_CONNECTING || c->state == WF_SHM_SHAKING) {
		wf_shm_conn_down(c, WEFT_TIMEOUT, "connected, but not answered within %llu ms",
				 (unsigned long long)(opts->connect_timeout_ns / WF_NS_PER_MS));
	} else if (c->state == WF_SHM_DRAINING) {
		wf_shm_conn_ended(c, WF_SHM_OPEN);
	}
}
