/* SPDX-License-Identifier: Apache-2.0 */
/* shm_conn: a connection's buffers, how it wakes its peer, and how it ends. Its behaviour in each
 * state is in shm_life.c. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	struct wf_shm_conn *c = WF_LOOP_OWNER(source, struct wf_shm_conn, source);
	/* The peer has cleared it, and has sent a byte for that, which need not be read now. */
	bool rung = c->t->flags_are_up && c->segment != NULL &&
		    atomic_load_explicit(&c->own->sleeping, memory_order_relaxed) == 0;
	if (!rung || mask != EPOLLIN || c->life.state != WF_LIFE_UP) {
		c->readable = true;
	}
	/* No sleep may follow an armed poll that leaves a flag down. */
	c->t->medium.loop.left |= rung;
}

void
wf_shm_conn_rung(struct wf_shm_conn *c)
{
	c->rings_unread++;
	if (c->rings_unread >= WF_SHM_RINGS_UNREAD_MAX || c->life.state != WF_LIFE_UP) {
		c->readable = true;
	}
}

void
wf_shm_conn_init(struct wf_shm_conn *c)
{
	c->source.notify = notify;
	c->t = wf_shm_of(c->life.conn.transport);
	c->fd = -1;
	c->segment_fd = -1;
}

enum weft_status
wf_shm_conn_buffers(struct wf_shm_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	uint32_t op_max = c->t->medium.opts.op_max;
	c->tx.entry = wf_zalloc_array(env, op_max, sizeof(*c->tx.entry));
	c->tx.ring = wf_zalloc(env, WF_SHM_MSG_RING_BYTES);
	if (c->tx.entry == NULL || c->tx.ring == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory for the connection's buffers, %zu bytes",
			       c->life.peer, op_max * sizeof(*c->tx.entry) + WF_SHM_MSG_RING_BYTES);
	}
	for (uint32_t i = op_max; i-- > 0;) {
		c->tx.entry[i].next = c->tx.free;
		c->tx.free = &c->tx.entry[i];
	}
	return WEFT_OK;
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

void
wf_shm_conn_ended(struct wf_shm_conn *c, enum wf_shm_closing closing)
{
	if (closing == WF_SHM_ORDERLY || closing == WF_SHM_NOW) {
		wf_life_lost(&c->life, WEFT_CLOSED, "closed by the peer");
	} else if (closing == WF_SHM_BROKEN) {
		wf_life_lost(&c->life, WEFT_LOST, "the peer ended the connection after an error");
	} else {
		wf_life_lost(&c->life, WEFT_LOST, "the peer's process closed without warning");
	}
}
