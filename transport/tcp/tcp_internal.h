/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_internal: what the files of the tcp backend share.
 *
 * A connection is one stream of frames: a 64-byte head (wire/head.h) and body_bytes behind it.
 * Messages are frames of their own service; the frames below have service TRANSPORT. Thread: the
 * transport's owner, except for the run of a look-up. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/env.h"
#include "transport/address.h"
#include "transport/congestion.h"
#include "transport/doors.h"
#include "transport/life.h"
#include "wire/head.h"

/* Types of frames of service TRANSPORT. */
enum wf_tcp_frame {
	WF_TCP_HELLO = 1,  /* connecting end, first; body: the hello */
	WF_TCP_ACCEPT = 2, /* accepting end, first; body: the verdict */
	WF_TCP_REFUSE = 3, /* accepting end, first and last; body: the verdict */
	WF_TCP_PUT = 4, /* slice: tag, region: grant, offset, request_id: nonce; body: the bytes */
	/* The last frame of an end that closes in good order. Instead of an answer its body is the
	 * reason. */
	WF_TCP_CLOSE = 5,
};

/* In the head of a HELLO, where no peer of weft reads it: two empty lines. A server of another kind
 * that reads lines answers them, and can be named by its answer. */
#define WF_TCP_LINE_ENDS 0x0a0d0a0d0a0d0a0dull /* "\r\n\r\n\r\n\r\n", little-endian */

/* Bytes to read ahead while PUTs arrive, whose payload is read straight into its place. */
#define WF_TCP_RX_BULK_BYTES 4096u
/* The receive buffer of a connection: a PUT of 64 KiB with its head, and some more. */
#define WF_TCP_RX_BYTES (65536u + WF_TCP_RX_BULK_BYTES)
#define WF_TCP_RING_BYTES (256u << 10) /* operations accepted and not yet sent, per connection */
#define WF_TCP_HEADS_MAX 256u          /* the most MSG events of one poll */
#define WF_TCP_RX_BUDGET (512u << 10)  /* bytes that one connection may receive per poll */
#define WF_TCP_TX_BUDGET (1u << 20)    /* bytes that one connection may send per poll */

#define WF_TCP_BLOB_FRAME_BYTES (WF_HEAD_BYTES + WF_BLOB_ROOM)

struct wf_tcp;
struct wf_tcp_conn;

/* An operation that was accepted and gets a DONE. It is out once the kernel has its whole frame. */
struct wf_tcp_entry {
	uint64_t cookie;
	uint64_t begin, end; /* positions of its frame in the stream that is sent */
	uint32_t ring_end;   /* the ring is free up to here once it is out */
};

/* posted >= done; entry i is at i & entry_mask. */
struct wf_tcp_tx {
	struct wf_tcp_entry *entry; /* [entry_mask + 1] */
	uint64_t posted, done;
	uint64_t cut; /* entries before it were out when the connection was cut; 0 until then */
	/* Bytes of the stream that is sent: accepted, and out. */
	uint64_t taken_bytes, sent_bytes;
	struct iovec *piece; /* pieces of the entries that are not out; i is at i & piece_mask */
	uint64_t piece_first, piece_end;
	uint8_t *ring; /* WF_TCP_RING_BYTES */
	/* In use from tail to head. tail advances only when room is needed: then the space of the
	 * entries before `freed` is free. Positions grow, modulo 2^32, until the ring is empty. */
	uint64_t freed;
	uint32_t ring_head, ring_tail;
	/* Hello, verdict or CLOSE: sent before the entries, none of which is partly out. */
	uint32_t control_bytes, control_sent;
	bool writable;
	int error; /* errno that ended sending; 0: none */
};

struct wf_tcp_rx {
	uint8_t *buffer; /* WF_TCP_RX_BYTES */
	uint32_t begin, end;
	uint64_t lent_turn; /* the poll whose events point into the buffer */
	bool readable;      /* recv has not returned EAGAIN since the last edge */
	bool hung_up;       /* the edge reported the end of the stream: read up to it */
	bool was_empty;     /* recv has returned EAGAIN since it last returned bytes */
	uint64_t put_bytes; /* the payload of the last frame, if that was a PUT; otherwise 0 */
	bool stalled;       /* a whole frame has arrived and waits for room for its event */
	/* The PUT whose payload is awaited. */
	bool put_open;
	struct wf_landing put; /* while put_open */
};

/* Whether the peer's host answers: tcp_host.c. */
struct wf_tcp_host {
	uint64_t arrived_bytes; /* the part of tx.sent_bytes that is known to have arrived */
	uint64_t asked_ns; /* since when the kernel has probed without an answer; 0: it has not */
};

struct wf_tcp_conn {
	struct wf_life life; /* first */
	struct wf_loop_source source;
	bool last_queued;  /* CLOSE or REFUSE */
	bool room_watched; /* epoll reports room to send */
	int fd;            /* -1: none */
	struct wf_tcp *t;

	struct wf_tcp_tx tx;
	struct wf_tcp_rx rx;
	struct wf_tcp_host host;

	/* The peer's first frame; its body is the blob of UP or DOWN. */
	uint8_t shake[WF_TCP_BLOB_FRAME_BYTES];
	uint32_t shake_got, shake_need;
	struct wf_head shake_head;
	uint8_t control[WF_TCP_BLOB_FRAME_BYTES];

	/* Connecting end: first the name is looked up, then its addresses are tried. */
	struct wf_look_up *look_up; /* NULL once the addresses are known */
	struct wf_addresses addresses;
	unsigned address_next;
	int connect_error; /* errno of the last address */
};

struct wf_tcp {
	struct wf_medium medium; /* first */
	struct wf_congestion congestion;
	uint64_t entry_mask; /* op_max, rounded up to a power of two, less 1 */
	/* The mask for four times as many: an operation has at most two pieces, and what is copied
	 * between two, or goes round the ring, is another one. */
	uint64_t piece_mask;
	uint64_t body_max; /* the longest body of any frame */
	struct wf_doors doors;
	struct wf_look_up *orphans; /* look-ups that were abandoned */

	/* When to check the hosts of connections that are UP; WF_NEVER: there are none. It is kept
	 * apart from the loop's timer, because it is no reason to read the clock in every poll. */
	uint64_t look_ns;
	unsigned heads_used;
	struct wf_head heads[WF_TCP_HEADS_MAX]; /* heads of the messages of this poll */
};

static inline struct wf_tcp *
wf_tcp_of(struct wf_transport *transport)
{
	return (struct wf_tcp *)transport;
}

static inline struct wf_tcp_conn *
wf_tcp_conn_of(struct wf_conn *conn)
{
	return (struct wf_tcp_conn *)conn;
}

/* The events of a connection, each reported once per edge. Room to send is watched only while there
 * may be none. */
#define WF_TCP_EDGES (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* tcp_life.c: what a connection does in each state, and how it ends. */
extern const struct wf_life_ops wf_tcp_life_ops;

/* tcp_conn.c */
/* Sets what is not zero in a new connection. */
void wf_tcp_conn_init(struct wf_tcp_conn *c);
/* Allocates the buffers of a connection that has a peer. WEFT_NOMEM: the text has the bytes. */
enum weft_status wf_tcp_conn_buffers(struct wf_tcp_conn *c);
/* The next poll visits it. */
static inline void
wf_tcp_conn_ready(struct wf_tcp_conn *c)
{
	wf_loop_push(&c->t->medium.loop, &c->life.ready);
}
void wf_tcp_conn_close(struct wf_tcp_conn *c);
/* Takes the connection down because the stream failed with errno `err`. */
void wf_tcp_conn_broken(struct wf_tcp_conn *c, int err) __attribute__((cold));
/* Switches whether epoll reports room to send. */
void wf_tcp_watch_room(struct wf_tcp_conn *c, bool wanted);

/* tcp_handshake.c */
enum weft_status wf_tcp_connect(struct wf_transport *transport, const struct wf_host *to,
				const void *hello, size_t hello_bytes, void *user,
				struct wf_conn **out);
/* Queues the verdict. */
bool wf_tcp_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes);
/* Tries the remaining addresses. */
void wf_tcp_connect_next(struct wf_tcp_conn *c);
void wf_tcp_connect_visit(struct wf_tcp_conn *c);
/* Reads up to the first frame. */
void wf_tcp_shake_read(struct wf_tcp_conn *c);
/* Reads from a connection that waits for its answer: the stream may end, and nothing else may
 * arrive. */
void wf_tcp_waiting_read(struct wf_tcp_conn *c);

/* tcp_host.c */
/* Begins to watch the hosts: a connection is UP. */
void wf_tcp_host_watch(struct wf_tcp *t);
/* When it is due: takes down connections whose host does not answer. */
void wf_tcp_host_look(struct wf_tcp *t);

/* tcp_listen.c */
enum weft_status wf_tcp_listen(struct wf_transport *transport, const struct wf_host *at,
			       uint16_t *port);
void wf_tcp_doors_init(struct wf_tcp *t);
/* Sets the options of every stream. A failure does no harm. */
void wf_tcp_socket_options(struct wf_tcp *t, int fd);
/* Adopts a connected socket as an incoming connection; closes it on failure. */
void wf_tcp_adopt(struct wf_tcp *t, int fd, const struct sockaddr_storage *peer);

/* tcp_grant.c: regions and grants */
enum weft_status wf_tcp_region_add(struct wf_transport *transport, const struct wf_region *region,
				   uint32_t *out);
void wf_tcp_region_remove(struct wf_transport *transport, uint32_t region);
void wf_tcp_release(struct wf_conn *conn, uint32_t slot);

/* tcp_send.c */
enum weft_status wf_tcp_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
			     unsigned *taken);
/* Queues hello, verdict or CLOSE. */
void wf_tcp_control(struct wf_tcp_conn *c, enum wf_tcp_frame type, const void *body, size_t bytes);
static inline bool
wf_tcp_tx_idle(const struct wf_tcp_conn *c)
{
	return c->tx.sent_bytes == c->tx.taken_bytes;
}
/* `bytes` of the control frame are out. */
static inline void
wf_tcp_control_sent(struct wf_tcp_conn *c, uint32_t bytes)
{
	c->t->medium.info.bytes_sent += bytes;
	c->tx.control_sent += bytes;
	c->tx.sent_bytes += bytes;
}
/* Gives up the entries that are not out: they are lost. Returns whether the stream ends between two
 * frames, so that a CLOSE may follow. */
bool wf_tcp_tx_cut(struct wf_tcp_conn *c);
void wf_tcp_flush_now(struct wf_tcp_conn *c);
/* Passes bytes to the kernel until it accepts no more or the budget is used up. */
static inline void
wf_tcp_flush(struct wf_tcp_conn *c)
{
	if (c->tx.writable && !wf_tcp_tx_idle(c)) {
		wf_tcp_flush_now(c);
	}
}
/* Whether an operation is out whose DONE was not delivered. */
static inline bool
wf_tcp_has_done(const struct wf_tcp_conn *c)
{
	const struct wf_tcp_tx *tx = &c->tx;
	return tx->done != tx->posted &&
	       tx->entry[tx->done & c->t->entry_mask].end <= tx->sent_bytes;
}
/* Delivers DONE for what is out. */
void wf_tcp_emit_done(struct wf_tcp_conn *c, struct wf_events *events);
/* After the cut: delivers DONE for everything. */
void wf_tcp_emit_lost(struct wf_tcp_conn *c, struct wf_events *events);

/* tcp_recv.c */
/* Reads frames and delivers them until the socket is empty, the events are full or the budget is
 * used up. */
void wf_tcp_receive(struct wf_tcp_conn *c, struct wf_events *events);
/* Reads and discards; takes the connection down at the end of the stream. */
void wf_tcp_discard(struct wf_tcp_conn *c);
/* Whether a frame has begun and not ended. */
bool wf_tcp_rx_partial(const struct wf_tcp_conn *c);

/* UP: sends what is posted, and delivers what has arrived. */
static inline void
wf_tcp_visit_up(struct wf_tcp_conn *c, struct wf_events *events)
{
	wf_tcp_flush(c);
	if (c->tx.done != c->tx.posted) {
		wf_tcp_emit_done(c, events);
	}
	if (c->rx.readable || c->rx.stalled) {
		wf_tcp_receive(c, events);
	}
}
