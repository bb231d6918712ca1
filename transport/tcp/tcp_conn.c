/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_conn: a connection's buffers, its events from epoll, and the end of its stream. Its behaviour
 * in each state is in tcp_life.c. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Records the events of a connection. */
static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	struct wf_tcp_conn *c = WF_LOOP_OWNER(source, struct wf_tcp_conn, source);
	const uint32_t over = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
	if ((mask & EPOLLOUT) != 0 && c->tx.error == 0) {
		c->tx.writable = true;
	}
	if ((mask & (EPOLLIN | over)) != 0) {
		c->rx.readable = true;
	}
	if ((mask & over) != 0) {
		c->rx.hung_up = true;
	}
	wf_tcp_conn_ready(c);
}

void
wf_tcp_conn_init(struct wf_tcp_conn *c)
{
	c->source.notify = notify;
	c->t = wf_tcp_of(c->life.conn.transport);
	c->fd = -1;
	c->shake_need = WF_HEAD_BYTES;
}

enum weft_status
wf_tcp_conn_buffers(struct wf_tcp_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	c->tx.entry = wf_zalloc_array(env, c->t->entry_mask + 1, sizeof(*c->tx.entry));
	c->tx.piece = wf_zalloc_array(env, c->t->piece_mask + 1, sizeof(*c->tx.piece));
	c->tx.ring = wf_zalloc(env, WF_TCP_RING_BYTES);
	c->rx.buffer = wf_zalloc(env, WF_TCP_RX_BYTES);
	if (c->tx.entry == NULL || c->tx.piece == NULL || c->tx.ring == NULL ||
	    c->rx.buffer == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: no memory for the connection's buffers, %zu bytes",
			       c->life.peer,
			       (size_t)(c->t->entry_mask + 1) * sizeof(*c->tx.entry) +
				       (c->t->piece_mask + 1) * sizeof(*c->tx.piece) +
				       WF_TCP_RING_BYTES + WF_TCP_RX_BYTES);
	}
	return WEFT_OK;
}

void
wf_tcp_conn_close(struct wf_tcp_conn *c)
{
	if (c->fd >= 0) {
		wf_loop_close_fd(&c->t->medium.loop, &c->fd);
	}
}

void
wf_tcp_conn_broken(struct wf_tcp_conn *c, int err)
{
	if (err == ETIMEDOUT) {
		wf_life_lost(&c->life, WEFT_TIMEOUT, "the host is silent");
	} else {
		wf_life_lost(&c->life, WEFT_LOST,
			     err == 0 ? "the peer closed without warning" : strerror(err));
	}
}

void
wf_tcp_watch_room(struct wf_tcp_conn *c, bool wanted)
{
	uint32_t mask = WF_TCP_EDGES | (wanted ? EPOLLOUT : 0u);
	wf_loop_watch_change(&c->t->medium.loop, c->fd, mask, &c->source);
	c->room_watched = wanted;
}
