/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_life: what a connection does in each state (transport/life.h), and how it ends.
 * Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void
tcp_fini(struct wf_life *life)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	struct wf_tcp *t = c->t;
	struct wf_env *env = t->medium.transport.env;
	wf_tcp_conn_close(c);
	wf_look_up_abandon(&c->look_up, &c->t->orphans);
	wf_free(env, c->tx.entry, (t->entry_mask + 1) * sizeof(*c->tx.entry));
	wf_free(env, c->tx.piece, (t->piece_mask + 1) * sizeof(*c->tx.piece));
	wf_free(env, c->tx.ring, WF_TCP_RING_BYTES);
	wf_free(env, c->rx.buffer, WF_TCP_RX_BYTES);
}

/* Sends it at once, as far as the kernel has room. */
static void
send_control(struct wf_tcp_conn *c)
{
	uint32_t left = c->tx.control_bytes - c->tx.control_sent;
	ssize_t n = send(c->fd, c->control + c->tx.control_sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);
	wf_tcp_control_sent(c, n > 0 ? (uint32_t)n : 0);
}

static void
tcp_deny(struct wf_life *life, const char *why)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	if (c->tx.control_bytes == 0) { /* otherwise it has got its verdict */
		wf_tcp_control(c, WF_TCP_CLOSE, why, strlen(why));
	}
	send_control(c);
}

static void
tcp_on_handshake(struct wf_life *life)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	c->rx.readable = true;
	wf_tcp_shake_read(c);
	wf_tcp_conn_ready(c); /* in case the whole hello has arrived */
}

/* If this end closes at once, sends a CLOSE if the stream is between two frames. */
static void
tcp_cut(struct wf_life *life, enum wf_life_state before)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	bool spoken = before == WF_LIFE_UP || (before == WF_LIFE_SHAKING && !life->incoming);
	bool between_frames = wf_tcp_tx_cut(c);
	if (life->disconnected && spoken && c->tx.error == 0 && between_frames) {
		wf_tcp_control(c, WF_TCP_CLOSE, NULL, 0);
		send_control(c);
	}
	wf_tcp_conn_close(c);
	wf_look_up_abandon(&c->look_up, &c->t->orphans);
	c->rx.put_open = false;
}

static void
drain(struct wf_tcp_conn *c)
{
	wf_tcp_discard(c);
	if (c->life.state == WF_LIFE_DRAINING) {
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
	if (c->life.state == WF_LIFE_DRAINING && wf_tcp_tx_idle(c) && c->tx.error == 0) {
		/* Closing now could reset the stream and take back what was sent. */
		shutdown(c->fd, SHUT_WR);
		wf_life_enter(&c->life, WF_LIFE_LINGERING);
	}
}

static bool
tcp_finish(struct wf_life *life, struct wf_events *events)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	wf_tcp_emit_lost(c, events);
	return c->tx.done == c->tx.posted;
}

static void
tcp_visit(struct wf_life *life, struct wf_events *events)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	switch (life->state) {
	case WF_LIFE_CONNECTING:
		wf_tcp_connect_visit(c);
		break;
	case WF_LIFE_SHAKING:
		wf_tcp_flush(c);
		wf_tcp_shake_read(c);
		break;
	case WF_LIFE_WAITING:
		wf_tcp_waiting_read(c);
		break;
	case WF_LIFE_UP:
		wf_tcp_visit_up(c, events);
		break;
	case WF_LIFE_DRAINING:
	case WF_LIFE_LINGERING:
		drain(c);
		if (life->state < WF_LIFE_DYING) {
			wf_tcp_emit_done(c, events);
		}
		break;
	case WF_LIFE_DECIDED:
	case WF_LIFE_ENDING:
	case WF_LIFE_DYING:
	case WF_LIFE_DEAD:
		break;
	}
}

/* The time for one address is over. */
static const char *
tcp_late(struct wf_life *life)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	if (c->look_up != NULL) {
		return "the name was not looked up";
	}
	if (life->deadline_ns == life->attempt_ns) {
		return "not connected";
	}
	wf_tcp_conn_close(c);
	c->connect_error = ETIMEDOUT;
	wf_tcp_connect_next(c);
	return NULL;
}

static void
tcp_up(struct wf_life *life)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	life->medium->loop.timer_ns =
		0; /* the handshake's deadline may have been the only one: recomputes the timer */
	wf_tcp_host_watch(c->t);
	if (c->tx.writable) {
		wf_tcp_watch_room(c, false);
	}
}

const struct wf_life_ops wf_tcp_life_ops = {
	.conn_bytes = sizeof(struct wf_tcp_conn),
	.ready = wf_life_ready,
	.visit = tcp_visit,
	.late = tcp_late,
	.up = tcp_up,
	.answer = wf_tcp_answer,
	.on_handshake = tcp_on_handshake,
	.deny = tcp_deny,
	.cut = tcp_cut,
	.finish = tcp_finish,
	.fini = tcp_fini,
};
