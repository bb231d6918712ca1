/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_conn: the states of a connection, and its end.
 *
 *   RESOLVING - CONNECTING - SHAKING - DECIDED - UP           connecting end
 *                            SHAKING - DECIDED - WAITING - UP accepting end
 *   UP - DRAINING - LINGERING - DYING - DEAD; any - DYING - DEAD
 *
 * Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

struct wf_tcp_conn *
wf_tcp_conn_create(struct wf_tcp *t, bool incoming)
{
	struct wf_tcp_conn *c = wf_zalloc(t->transport.env, sizeof(*c));
	if (c == NULL) {
		return NULL;
	}
	if (incoming) {
		wf_places_come(&t->places, &c->place, c);
	} else if (!wf_places_take(&t->places, &c->place)) {
		wf_free(t->transport.env, c, sizeof(*c));
		return NULL;
	}
	c->conn.transport = &t->transport;
	c->source = (struct wf_tcp_source){.kind = WF_TCP_SOURCE_CONN, .owner = c};
	c->t = t;
	wf_grants_init(&c->grants, t->transport.env, &t->regions, c->peer);
	c->incoming = incoming;
	c->fd = -1;
	c->state = WF_TCP_RESOLVING;
	c->deadline_ns = WF_NEVER;
	c->shake_need = WF_HEAD_BYTES;
	c->next = t->conns;
	c->prev_next = &t->conns;
	if (t->conns != NULL) {
		t->conns->prev_next = &c->next;
	}
	t->conns = c;
	return c;
}

enum weft_status
wf_tcp_conn_buffers(struct wf_tcp_conn *c)
{
	struct wf_env *env = c->t->transport.env;
	c->tx.entry = wf_zalloc_array(env, c->t->entry_mask + 1, sizeof(*c->tx.entry));
	c->tx.piece = wf_zalloc_array(env, wf_tcp_piece_mask(c->t) + 1, sizeof(*c->tx.piece));
	c->tx.ring = wf_zalloc(env, WF_TCP_RING_BYTES);
	c->rx.buffer = wf_zalloc(env, WF_TCP_RX_BYTES);
	if (c->tx.entry == NULL || c->tx.piece == NULL || c->tx.ring == NULL ||
	    c->rx.buffer == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory for the connection's buffers, %zu bytes",
			       c->peer,
			       (size_t)(c->t->entry_mask + 1) * sizeof(*c->tx.entry) +
				       (wf_tcp_piece_mask(c->t) + 1) * sizeof(*c->tx.piece) +
				       WF_TCP_RING_BYTES + WF_TCP_RX_BYTES);
	}
	return WEFT_OK;
}

static void
socket_close(struct wf_tcp_conn *c)
{
	if (c->fd >= 0) {
		close(c->fd); /* epoll forgets it */
		c->fd = -1;
	}
}

void
wf_tcp_conn_destroy(struct wf_tcp_conn *c)
{
	struct wf_tcp *t = c->t;
	struct wf_env *env = t->transport.env;
	socket_close(c);
	wf_tcp_resolve_abandon(c);
	*c->prev_next = c->next;
	if (c->next != NULL) {
		c->next->prev_next = c->prev_next;
	}
	wf_places_leave(&t->places, &c->place);
	wf_free(env, c->tx.entry, (t->entry_mask + 1) * sizeof(*c->tx.entry));
	wf_free(env, c->tx.piece, (wf_tcp_piece_mask(t) + 1) * sizeof(*c->tx.piece));
	wf_free(env, c->tx.ring, WF_TCP_RING_BYTES);
	wf_free(env, c->rx.buffer, WF_TCP_RX_BYTES);
	wf_free(env, c, sizeof(*c));
}

void
wf_tcp_conn_deadline(struct wf_tcp_conn *c, uint64_t deadline_ns)
{
	c->deadline_ns = deadline_ns;
	wf_tcp_timer_before(c->t, deadline_ns);
}

static void
count_down(struct wf_tcp_conn *c)
{
	struct wf_tcp *t = c->t;
	if (!c->visible) {
		wf_tcp_stranger(t, c->why);
	} else if (c->down_status == WEFT_PROTOCOL) {
		t->info.protocol_errors++;
	}
	if (c->was_up) {
		t->info.conns_down++;
	}
}

void
wf_tcp_conn_down(struct wf_tcp_conn *c, enum weft_status status, const char *format, ...)
{
	if (c->state >= WF_TCP_DYING) {
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
	socket_close(c);
	wf_places_end(&c->t->places, &c->place);
	wf_tcp_resolve_abandon(c);
	c->rx.put_open = false;
	wf_grants_drop(&c->grants);
	count_down(c);
	if (c->visible) {
		c->state = WF_TCP_DYING;
		wf_tcp_conn_ready(c);
	} else {
		c->state = WF_TCP_DEAD;
		c->t->dead_waiting = true;
	}
}

void
wf_tcp_conn_broken(struct wf_tcp_conn *c, int err)
{
	const char *text = err == 0 ? "the peer closed without warning" : strerror(err);
	if (c->disconnected || c->refused) {
		wf_tcp_conn_down(c, WEFT_CLOSED, "%s by this end",
				 c->refused ? "refused" : "closed");
	} else if (!c->incoming && c->state < WF_TCP_UP) {
		wf_tcp_conn_down(c, WEFT_UNAVAILABLE, "ended before it was answered: %s", text);
	} else if (err == ETIMEDOUT) {
		wf_tcp_conn_down(c, WEFT_TIMEOUT, "the host is silent");
	} else {
		wf_tcp_conn_down(c, WEFT_LOST, "%s", text);
	}
}

/* A CLOSE right now, if the stream is between two frames and the kernel has room. */
static void
close_at_once(struct wf_tcp_conn *c)
{
	bool spoken = c->state == WF_TCP_UP || (c->state == WF_TCP_SHAKING && !c->incoming);
	if (!spoken || c->tx.error != 0 || !wf_tcp_tx_between_frames(c)) {
		return;
	}
	wf_tcp_control(c, WF_TCP_CLOSE, NULL, 0);
	ssize_t n = send(c->fd, c->control, c->tx.control_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	wf_tcp_control_sent(c, n > 0 ? (uint32_t)n : 0);
}

void
wf_tcp_conn_turn_away(struct wf_tcp_conn *c, const char *format, ...)
{
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (c->tx.control_bytes == 0) { /* else it has had its verdict */
		wf_tcp_control(c, WF_TCP_CLOSE, text, strlen(text));
	}
	uint32_t left = c->tx.control_bytes - c->tx.control_sent;
	ssize_t n = send(c->fd, c->control + c->tx.control_sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
	wf_tcp_control_sent(c, n > 0 ? (uint32_t)n : 0);
	wf_tcp_conn_down(c, c->refused ? WEFT_CLOSED : WEFT_UNAVAILABLE, "%s", text);
}

void
wf_tcp_conn_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	if (c->state >= WF_TCP_DYING) {
		return;
	}
	if (how == WF_DISCONNECT_DRAIN && c->state >= WF_TCP_UP) {
		if (c->state == WF_TCP_UP) {
			c->disconnected = true;
			c->state = WF_TCP_DRAINING;
			wf_tcp_conn_deadline(c, wf_now_ns(c->t->transport.env) + WF_TCP_DRAIN_NS);
			wf_tcp_conn_ready(c);
		}
		return;
	}
	close_at_once(c);
	c->disconnected = true;
	wf_tcp_conn_down(c, WEFT_CLOSED, "closed by this end");
}

static void
drain(struct wf_tcp_conn *c)
{
	wf_tcp_discard(c);
	if (c->state == WF_TCP_DRAINING) {
		wf_tcp_flush(c);
		if (c->tx.error != 0) {
			wf_tcp_conn_broken(c, c->tx.error);
			return;
		}
		if (wf_tcp_tx_idle(c) && !c->last_queued) {
			wf_tcp_control(c, WF_TCP_CLOSE, NULL, 0);
			c->last_queued = true;
			wf_tcp_flush(c);
		}
	}
	if (c->state == WF_TCP_DRAINING && wf_tcp_tx_idle(c) && c->tx.error == 0) {
		/* Closing now could reset the stream and take back what was sent. */
		shutdown(c->fd, SHUT_WR);
		c->state = WF_TCP_LINGERING;
	}
}

static void
emit_down(struct wf_tcp_conn *c, struct wf_events *events)
{
	wf_tcp_emit_done(c, events, WEFT_LOST);
	if (c->tx.done < c->tx.posted || wf_events_full(events)) {
		return;
	}
	struct wf_event *event = wf_events_add(events, &c->conn, WF_EVENT_DOWN);
	event->down.status = c->down_status;
	event->down.why = c->why;
	if (c->down_status == WEFT_REFUSED) {
		event->down.blob = c->shake + WF_HEAD_BYTES;
		event->down.blob_bytes = c->shake_head.body_bytes;
	}
	c->state = WF_TCP_DEAD;
	c->t->dead_waiting = true;
}

static void
visit_up(struct wf_tcp_conn *c, struct wf_events *events)
{
	wf_tcp_flush(c);
	if (c->tx.done < c->tx.sent) {
		wf_tcp_emit_done(c, events, WEFT_OK);
	}
	if (c->rx.readable || c->rx.stalled) {
		wf_tcp_receive(c, events);
	}
}

/* All states but UP, which most visits find. Not inlined: these should be short. */
__attribute__((noinline)) static void
visit_state(struct wf_tcp_conn *c, struct wf_events *events)
{
	switch (c->state) {
	case WF_TCP_RESOLVING:
		wf_tcp_resolve_visit(c);
		break;
	case WF_TCP_CONNECTING:
		wf_tcp_connect_visit(c);
		break;
	case WF_TCP_SHAKING:
		wf_tcp_flush(c);
		wf_tcp_shake_read(c);
		break;
	case WF_TCP_DECIDED:
		wf_tcp_shake_emit(c, events);
		break;
	case WF_TCP_WAITING:
		wf_tcp_waiting_read(c);
		break;
	case WF_TCP_DRAINING:
	case WF_TCP_LINGERING:
		drain(c);
		if (c->state == WF_TCP_DRAINING || c->state == WF_TCP_LINGERING) {
			wf_tcp_emit_done(c, events, WEFT_OK);
		}
		break;
	case WF_TCP_DYING:
		emit_down(c, events);
		break;
	case WF_TCP_UP:
	case WF_TCP_DEAD:
		break;
	}
}

static bool
has_work(const struct wf_tcp_conn *c)
{
	switch (c->state) {
	case WF_TCP_RESOLVING:
	case WF_TCP_CONNECTING:
	case WF_TCP_DEAD:
		return false;
	case WF_TCP_DECIDED:
	case WF_TCP_DYING:
		return true;
	case WF_TCP_SHAKING:
	case WF_TCP_WAITING:
	case WF_TCP_UP:
	case WF_TCP_DRAINING:
	case WF_TCP_LINGERING:
		break;
	}
	return c->rx.readable || c->rx.stalled || c->tx.done < c->tx.sent ||
	       (c->tx.writable && !wf_tcp_tx_idle(c));
}

void
wf_tcp_conn_visit(struct wf_tcp_conn *c, struct wf_events *events)
{
	enum wf_tcp_state before;
	do {
		before = c->state;
		if (before == WF_TCP_UP) {
			visit_up(c, events);
		} else {
			visit_state(c, events);
		}
	} while (c->state != before && !wf_events_full(events));
	if (has_work(c)) {
		wf_tcp_conn_ready(c);
	}
}

uint64_t
wf_tcp_conn_due_ns(const struct wf_tcp_conn *c)
{
	switch (c->state) {
	case WF_TCP_RESOLVING:
	case WF_TCP_CONNECTING:
	case WF_TCP_SHAKING:
	case WF_TCP_DRAINING:
	case WF_TCP_LINGERING:
		return c->deadline_ns;
	case WF_TCP_DECIDED:
	case WF_TCP_WAITING:
	case WF_TCP_UP:
	case WF_TCP_DYING:
	case WF_TCP_DEAD:
		break;
	}
	return WF_NEVER;
}

static void
expire_connecting(struct wf_tcp_conn *c)
{
	if (wf_tcp_now_ns(c->t) < c->attempt_ns) {
		socket_close(c);
		c->connect_error = ETIMEDOUT;
		wf_tcp_connect_next(c);
		return;
	}
	wf_tcp_conn_down(c, WEFT_TIMEOUT, "%s took longer than %llu ms",
			 c->state == WF_TCP_RESOLVING ? "looking the name up" : "connecting",
			 (unsigned long long)(c->t->opts.connect_timeout_ns / WF_NS_PER_MS));
}

void
wf_tcp_conn_expire(struct wf_tcp_conn *c)
{
	const struct wf_transport_opts *opts = &c->t->opts;
	if (c->state == WF_TCP_RESOLVING || c->state == WF_TCP_CONNECTING) {
		expire_connecting(c);
	} else if (c->state == WF_TCP_SHAKING && c->incoming) {
		wf_tcp_conn_down(c, WEFT_TIMEOUT, "no whole hello within %llu ms, but %u bytes",
				 (unsigned long long)(opts->handshake_timeout_ns / WF_NS_PER_MS),
				 c->shake_got);
	} else if (c->state == WF_TCP_SHAKING) {
		wf_tcp_conn_down(c, WEFT_TIMEOUT, "connected, but not answered within %llu ms",
				 (unsigned long long)(opts->connect_timeout_ns / WF_NS_PER_MS));
	} else {
		wf_tcp_conn_broken(c, 0); /* what was to be sent, or the peer's end, did not come */
	}
}
