/* SPDX-License-Identifier: Apache-2.0 */
/* shm_life: what a connection does in each state (transport/life.h), and how it ends.
 *
 * The socket stays open, and the peer's memory mapped, until the connection is freed, by the poll
 * after the one that delivered DOWN: the peer learns from the end of the socket that its memory is
 * not read any more. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <unistd.h>

static void
shm_fini(struct wf_life *life)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	struct wf_shm *t = c->t;
	struct wf_env *env = t->medium.transport.env;
	wf_shm_foreign_close(c);
	wf_shm_segment_close(c);
	if (c->fd >= 0) {
		wf_loop_close_fd(&t->medium.loop, &c->fd);
	}
	if (t->visit_next == life) {
		t->visit_next = life->next;
	}
	wf_free(env, c->tx.entry, t->medium.opts.op_max * sizeof(*c->tx.entry));
	wf_free(env, c->tx.ring, WF_SHM_MSG_RING_BYTES);
}

static void
shm_ready(struct wf_life *life)
{
	wf_shm_of(life->conn.transport)->medium.loop.left =
		true; /* each poll visits all connections that do not rest */
}

/* Reports the end to the peer. */
static void
publish_closing(struct wf_shm_conn *c, enum wf_shm_closing closing)
{
	/* S4: the end that consumes a published PUT reads this word afterwards. */
	atomic_store_explicit(&c->own->closing, (uint32_t)closing, memory_order_seq_cst);
	wf_shm_conn_kick(c);
}

static void
shm_on_handshake(struct wf_life *life)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	c->readable = true;
	wf_shm_shake_read(c);
}

static void
shm_cut(struct wf_life *life, enum wf_life_state before)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	bool drained = before == WF_LIFE_DRAINING && wf_shm_tx_idle(c);
	bool ours = life->disconnected || life->refused;
	if (c->segment != NULL && c->fd >= 0) {
		publish_closing(c, drained ? WF_SHM_ORDERLY : ours ? WF_SHM_NOW : WF_SHM_BROKEN);
	}
	c->rx.put_open = false;
	c->rx.put_src = NULL;
	if (c->segment == NULL && c->fd >= 0) { /* nothing of the peer's memory is mapped here */
		wf_loop_close_fd(&c->t->medium.loop, &c->fd);
	}
	if (life->visible) { /* the longest wait for slots that the peer holds */
		wf_life_deadline(life, wf_now_ns(c->t->medium.transport.env) +
					       c->t->medium.opts.peer_timeout_ns);
	}
}

static void
drain(struct wf_shm_conn *c, struct wf_events *events)
{
	wf_shm_complete(c);
	wf_shm_flush(c);
	wf_shm_receive(c, events, true);
	if (c->life.state == WF_LIFE_DRAINING && wf_shm_tx_idle(c)) {
		wf_life_lost(&c->life, WEFT_CLOSED, "");
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
	if (c->life.state == WF_LIFE_UP) {
		wf_shm_receive(c, events, false);
	}
}

/* Waits for what the peer still reads, until it has gone or has not been running for too long. */
static bool
shm_finish(struct wf_life *life, struct wf_events *events)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	for (unsigned i = 0; i < WF_SHM_MAIL_BUDGET && c->readable && !c->eof; i++) {
		struct wf_shm_mail mail;
		int got = wf_shm_receive_mail(c->fd, &mail);
		c->readable = got > 0;
		c->eof = got < 0;
		if (got > 0 && mail.fd >= 0) {
			(void)close(mail.fd);
		}
	}
	c->t->medium.loop.left |= c->readable && !c->eof;
	bool over = wf_shm_give_up(c, !c->eof && wf_loop_now_ns(&c->t->medium.loop) <
							 c->life.deadline_ns);
	wf_shm_emit_done(c, events);
	return over && c->tx.done.first == NULL;
}

static void
shm_visit(struct wf_life *life, struct wf_events *events)
{
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	if (life->state == WF_LIFE_SHAKING || life->state == WF_LIFE_WAITING) {
		wf_shm_shake_read(c);
	} else if (life->state == WF_LIFE_UP) {
		serve(c, events);
	} else if (life->state == WF_LIFE_DRAINING) {
		wf_shm_read_socket(c);
		if (life->state == WF_LIFE_DRAINING) {
			drain(c, events);
		}
	}
}

void
wf_shm_conn_visit(struct wf_shm_conn *c, struct wf_events *events)
{
	if (c->life.state == WF_LIFE_UP) { /* the most frequent case */
		serve(c, events);
	}
	if (c->life.state != WF_LIFE_UP && !wf_events_full(events)) {
		wf_life_visit(&c->life, events);
	}
	if (c->tx.done.first != NULL) {
		c->t->medium.loop.left = true;
	}
	if (c->tx.dirty && c->fd >= 0) {
		wf_shm_conn_kick(c);
	}
}

/* The listener's queue was full, or the time has passed. */
static const char *
shm_late(struct wf_life *life)
{
	if (life->deadline_ns == life->attempt_ns) {
		return "the listener accepted no connection";
	}
	wf_shm_connect_try(wf_shm_conn_of(&life->conn));
	return NULL;
}

const struct wf_life_ops wf_shm_life_ops = {
	.conn_bytes = sizeof(struct wf_shm_conn),
	.ready = shm_ready,
	.visit = shm_visit,
	.late = shm_late,
	.answer = wf_shm_answer,
	.on_handshake = shm_on_handshake,
	.deny = wf_shm_deny,
	.cut = shm_cut,
	.finish = shm_finish,
	.fini = shm_fini,
};
