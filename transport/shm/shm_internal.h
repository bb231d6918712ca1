/* SPDX-License-Identifier: Apache-2.0 */
/* shm_internal: what the files of the shm backend share.
 *
 * A connection consists of a Unix socket, over which both ends meet, pass descriptors and wake each
 * other, and a segment: a sealed memfd with two ways, one for each direction. A way is a ring of
 * cells that one end fills and the other empties. The peer may write to a segment at any time, so
 * its contents are copied first, then checked, then used. Thread: the transport's owner. */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "base/assert.h"
#include "base/env.h"
#include "transport/doors.h"
#include "transport/life.h"
#include "wire/head.h"

#define WF_SHM_CELLS 512u                  /* cells of a way; a power of two */
#define WF_SHM_INLINE_BYTES 64u            /* payload within a cell */
#define WF_SHM_DATA_BYTES (256u << 10)     /* space for longer payloads of a way */
#define WF_SHM_CHUNK_BYTES (32u << 10)     /* part of a PUT that is copied through that space */
#define WF_SHM_COPY_BYTES 4096u            /* PUTs up to this are copied, longer ones published */
#define WF_SHM_REFS 1024u                  /* published PUTs not yet completed, per way */
#define WF_SHM_MSG_RING_BYTES (256u << 10) /* messages accepted while the way is full */
#define WF_SHM_PEER_BYTES_MAX (1ull << 42) /* address space for the regions of one peer */
#define WF_SHM_MSGS_MAX 256u               /* the most MSG events of one poll */
#define WF_SHM_BODIES_BYTES (256u << 10)   /* and their bodies */
/* Bytes that one connection may deliver per poll: a slice and its head, so that its answer is on
 * its way before the next slice is looked at. */
#define WF_SHM_RX_BUDGET ((256u << 10) + WF_HEAD_BYTES)
#define WF_SHM_MAIL_BUDGET 64u      /* packets and wake-ups that are read of it per poll */
#define WF_SHM_RINGS_READ 16u       /* wake-ups that are read in one call */
#define WF_SHM_RINGS_UNREAD_MAX 32u /* then those of a connection are read */
#define WF_SHM_LOOK_NS WF_NS_PER_MS /* how often a busy transport looks at its sockets */
#define WF_SHM_CONNECT_RETRY_NS (2 * WF_NS_PER_MS) /* the listener's queue is full */
#define WF_SHM_LINE 128 /* two cache lines: processors fetch them in pairs */

/* ---- the segment ---- */

enum wf_shm_kind {
	WF_SHM_MSG = 1,
	WF_SHM_PUT = 2,  /* with its payload, the first part of it, or its location */
	WF_SHM_MORE = 3, /* the next part of the preceding PUT */
};

enum wf_shm_where {
	WF_SHM_INLINE = 1, /* in the cell */
	WF_SHM_DATA = 2,   /* in the way's data */
	WF_SHM_REF = 3,    /* PUT: in the sender's region; the completion returns `op` */
};

struct wf_shm_msg {
	uint8_t kind, where, service, type;
	uint8_t flags, unused[3];
	uint32_t bytes, data_at;
	uint32_t slice, region;
	uint64_t request_id, step, offset, epoch;
};

struct wf_shm_put {
	uint8_t kind, where, unused[2];
	uint32_t tag;
	uint32_t grant;
	uint32_t region;     /* REF: its id */
	uint32_t op;         /* REF: returned in the completion */
	uint32_t part_bytes; /* INLINE and DATA: bytes of this cell */
	uint64_t bytes;      /* of the whole PUT */
	uint64_t offset;     /* within the grant, or within its slot */
	uint64_t at;         /* DATA: in the way's data; REF: in the region */
	uint64_t nonce;      /* of the grant */
};

union wf_shm_note {
	struct wf_shm_msg msg;
	struct wf_shm_put put;
};
WF_STATIC_ASSERT(sizeof(union wf_shm_note) == 56, "a note and its sequence fill a cache line");

struct wf_shm_cell {
	alignas(WF_SHM_LINE) _Atomic uint64_t seq; /* position + 1 once the note is complete */
	union wf_shm_note note;
	uint8_t data[WF_SHM_INLINE_BYTES];
};
WF_STATIC_ASSERT(sizeof(struct wf_shm_cell) == WF_SHM_LINE, "no padding");

/* One direction. */
struct wf_shm_way {
	/* Written by the end that empties the way. */
	alignas(WF_SHM_LINE) _Atomic uint64_t consumed; /* number of cells emptied */
	/* High half: number of the completion + 1; low half: `op`. */
	alignas(WF_SHM_LINE) _Atomic uint64_t completion[WF_SHM_REFS];
	/* Written by the end that fills the way. */
	struct wf_shm_cell cell[WF_SHM_CELLS];
	alignas(WF_SHM_LINE) uint8_t data[WF_SHM_DATA_BYTES];
};

enum wf_shm_closing {
	WF_SHM_OPEN = 0,
	WF_SHM_ORDERLY = 1, /* the way has the last cells, and all of them are valid */
	WF_SHM_NOW = 2,     /* published PUTs that are not consumed are void */
	WF_SHM_BROKEN = 3,  /* as NOW, and the peer ended because of an error */
};

/* The state of one end, written by it unless noted. */
struct wf_shm_end {
	/* Incremented after a write that the other end should look at. */
	alignas(WF_SHM_LINE) _Atomic uint64_t doorbell;
	/* 1: this end sleeps, or is about to; cleared by the end that wakes it. */
	alignas(WF_SHM_LINE) _Atomic uint32_t sleeping;
	alignas(WF_SHM_LINE) _Atomic uint32_t closing; /* enum wf_shm_closing */
};

/* Index 0 is the connecting end, and the way that it fills. */
struct wf_shm_segment {
	struct wf_shm_end end[2];
	struct wf_shm_way way[2];
};

/* ---- the socket ---- */

#define WF_SHM_MAGIC 0x4d485357u /* "WSHM" */
#define WF_SHM_VERSION 1u

enum wf_shm_packet_type {
	WF_SHM_HELLO = 1,  /* connecting end, first; with the segment; blob: the hello */
	WF_SHM_ACCEPT = 2, /* accepting end; blob: the verdict */
	WF_SHM_REFUSE = 3, /* accepting end, last; blob: the verdict */
	WF_SHM_DENY = 4,   /* accepting end, first and last; blob: the reason as text */
	WF_SHM_REGION = 5, /* either end, once UP; with a region's memfd */
};

struct wf_shm_packet {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t blob_bytes;
	uint32_t region; /* REGION: its id */
	uint64_t bytes;  /* HELLO: size of the segment; REGION: size of the region */
	uint8_t blob[WF_BLOB_ROOM];
};
#define WF_SHM_PACKET_BYTES offsetof(struct wf_shm_packet, blob)

/* What was received: a packet, or the byte that wakes. */
struct wf_shm_mail {
	struct wf_shm_packet packet;
	bool wake;
	int fd;       /* the descriptor that came with it; -1: none */
	bool fd_lost; /* one was sent, but this process may have no more of them */
};

/* ---- private ---- */

struct wf_shm;
struct wf_shm_conn;

/* The id of a region between processes: its number, and the generation of that number. A peer has
 * at most as many regions as this end may have. */
static inline uint32_t
wf_shm_region_id(uint32_t number, uint64_t generation)
{
	return (uint32_t)(generation << 8) | number;
}
WF_STATIC_ASSERT(WF_REGIONS_MAX < 1u << 8, "a number fits below the generation");

/* A region of the peer, mapped read-only. */
struct wf_shm_foreign {
	const uint8_t *base; /* NULL: none */
	size_t bytes;
	uint32_t id;   /* the peer's id */
	uint32_t held; /* number of slots whose bytes lie in it */
};

struct wf_shm_slot {
	struct wf_shm_foreign *foreign; /* the bytes lie there; NULL: in this end's memory */
	uint32_t op;                    /* foreign: completed by the release */
};

enum wf_shm_entry_state {
	WF_SHM_ENTRY_FREE,
	WF_SHM_ENTRY_QUEUED,    /* not, or not completely, in the way */
	WF_SHM_ENTRY_COPIED,    /* PUT: completely in the way; it is DONE */
	WF_SHM_ENTRY_PUBLISHED, /* REF: until its completion */
	WF_SHM_ENTRY_DONE,      /* its event waits for room */
};

/* An operation that was accepted. */
struct wf_shm_entry {
	uint64_t cookie;
	uint8_t state; /* enum wf_shm_entry_state */
	bool is_put;
	bool lost; /* DONE LOST */
	uint32_t region;
	uint32_t tag, grant;
	uint64_t nonce;
	const uint8_t *src; /* PUT */
	uint64_t bytes;     /* length of body or PUT */
	uint64_t offset;
	uint64_t sent;     /* PUT: bytes already written to the way */
	uint64_t ring_at;  /* SEND: where head and body lie */
	uint64_t ring_end; /* SEND: the ring is free up to here once it is published */
	uint64_t position; /* PUBLISHED: position of its cell */
	struct wf_shm_entry *next;
};

struct wf_shm_list {
	struct wf_shm_entry *first, *last;
};

struct wf_shm_tx {
	struct wf_shm_entry *entry; /* [op_max] */
	struct wf_shm_entry *free;
	struct wf_shm_list queue, done;
	uint32_t ref_count;            /* entries PUBLISHED */
	uint64_t published;            /* cells filled */
	uint64_t consumed;             /* cells emptied by the peer, as last read */
	uint64_t completed;            /* completions read */
	uint64_t data_head, data_tail; /* positions in the way's data, which only grow */
	/* For each cell: the data is free up to here once it is consumed. */
	uint64_t data_end[WF_SHM_CELLS];
	uint8_t *ring;                 /* WF_SHM_MSG_RING_BYTES */
	uint64_t ring_head, ring_tail; /* positions only grow */
	/* By number - 1: generation that the peer has; 0: none. */
	uint64_t exported[WF_REGIONS_MAX];
	bool dirty; /* the doorbell is due */
};

struct wf_shm_rx {
	uint64_t next;       /* cell */
	uint64_t completed;  /* completions written */
	uint64_t rung;       /* `next` when the doorbell last reported room to the peer */
	uint64_t rung_bytes; /* bytes of payload received since */
	/* The PUT whose payload is being copied. */
	bool put_open;
	struct wf_landing put;  /* while put_open */
	const uint8_t *put_src; /* REF into a place; NULL: parts come in cells */
	uint32_t put_op;
	struct wf_shm_foreign foreign[WF_REGIONS_MAX]; /* by number of the id - 1 */
	uint64_t foreign_bytes;
};

struct wf_shm_conn {
	struct wf_life life; /* first */
	struct wf_loop_source source;
	bool readable;         /* the socket has to be read, until it returns EAGAIN */
	uint32_t rings_unread; /* bytes that the peer has sent to wake this end, and left there */
	bool eof;              /* the peer has closed its end of the socket */
	int fd;                /* -1: none */
	struct wf_shm *t;

	/* Segment; NULL until there is one. */
	struct wf_shm_segment *segment;
	int segment_fd; /* connecting end, until the hello is sent */
	struct wf_shm_end *own, *peer_end;
	struct wf_shm_way *tx_way, *rx_way;
	struct wf_shm_tx tx;
	struct wf_shm_rx rx;

	struct wf_shm_slot slot[WF_SLOT_COUNT_MAX];

	/* Connecting end: the hello, then the verdict; accepting end: the hello. */
	struct wf_shm_packet shake;
};

struct wf_shm {
	struct wf_medium medium; /* first */
	struct wf_doors doors;
	/* The connection with which the next poll begins; NULL: the first. */
	struct wf_life *visit_next;
	struct wf_log_limit export_log;

	uint64_t look_ns;     /* when to look at the sockets next */
	uint64_t looked_turn; /* the poll in or after which everything was looked at last */
	bool flags_are_up;    /* `sleeping` of this end was raised in every segment */
	unsigned msg_count;
	uint32_t body_bytes;
	struct wf_head heads[WF_SHM_MSGS_MAX];
	uint8_t bodies[WF_SHM_BODIES_BYTES];
};

static inline struct wf_shm *
wf_shm_of(struct wf_transport *transport)
{
	return (struct wf_shm *)transport;
}

static inline struct wf_shm_conn *
wf_shm_conn_of(struct wf_conn *conn)
{
	return (struct wf_shm_conn *)conn;
}

/* shm.c */
/* The events of a socket, each reported once per edge. */
#define WF_SHM_EDGES (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* shm_life.c: what a connection does in each state, and how it ends. */
extern const struct wf_life_ops wf_shm_life_ops;
/* One turn: does what the state requires. */
void wf_shm_conn_visit(struct wf_shm_conn *c, struct wf_events *events);

/* shm_conn.c */
/* Sets what is not zero in a new connection. */
void wf_shm_conn_init(struct wf_shm_conn *c);
/* Allocates the buffers of a connection that has a peer. WEFT_NOMEM: the text has the bytes. */
enum weft_status wf_shm_conn_buffers(struct wf_shm_conn *c);
/* Takes the connection down because the peer ended: as its `closing` says, or because its socket
 * closed. */
void wf_shm_conn_ended(struct wf_shm_conn *c, enum wf_shm_closing closing);
/* Whether it is UP and waits for its peer: a visit would find nothing to do but to ring and to
 * deliver DONEs. */
static inline bool
wf_shm_conn_waits(const struct wf_shm_conn *c)
{
	if (c->life.state != WF_LIFE_UP || c->readable || c->eof || c->tx.ref_count > 0 ||
	    c->tx.queue.first != NULL) {
		return false;
	}
	const struct wf_shm_cell *cell = &c->rx_way->cell[c->rx.next % WF_SHM_CELLS];
	/* S1: publish. A visit reads both again, and observes S4. */
	return atomic_load_explicit(&cell->seq, memory_order_acquire) != c->rx.next + 1 &&
	       atomic_load_explicit(&c->peer_end->closing, memory_order_acquire) == WF_SHM_OPEN;
}
/* Whether a visit would find nothing to do at all. */
static inline bool
wf_shm_conn_rests(const struct wf_shm_conn *c)
{
	return !c->tx.dirty && c->tx.done.first == NULL && wf_shm_conn_waits(c);
}
/* The peer has rung while this end slept, or was about to: a byte is on the socket, or about to be.
 */
void wf_shm_conn_rung(struct wf_shm_conn *c);
/* Rings the doorbell, and wakes the peer if it sleeps. */
void wf_shm_conn_kick(struct wf_shm_conn *c);

/* shm_handshake.c */
enum weft_status wf_shm_connect(struct wf_transport *transport, const struct wf_host *to,
				const void *hello, size_t hello_bytes, void *user,
				struct wf_conn **out);
/* Sends the verdict. */
bool wf_shm_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes);
/* Tries once to connect; afterwards it is CONNECTING, SHAKING or down. */
void wf_shm_connect_try(struct wf_shm_conn *c);
/* Reads up to the first packet, and detects what may not follow it. */
void wf_shm_shake_read(struct wf_shm_conn *c);
void wf_shm_deny(struct wf_life *life, const char *why);

/* shm_listen.c */
enum weft_status wf_shm_listen(struct wf_transport *transport, const struct wf_host *at,
			       uint16_t *port);
void wf_shm_doors_init(struct wf_shm *t);
/* Adopts a connected socket as an incoming connection; closes it on failure. */
void wf_shm_adopt(struct wf_shm *t, int fd, const struct wf_host *at);
/* shm_name.c: names of this host, and which processes may connect. */
/* Checks that it is a name of this host. WEFT_UNAVAILABLE: it is not; the text has the reason. */
enum weft_status wf_shm_name_check(const char *what, const struct wf_host *host,
				   bool any_too) WEFT_MUST_CHECK;
/* Writes the socket address of a port; returns its length. */
struct sockaddr_un;
unsigned wf_shm_address(uint16_t port, struct sockaddr_un *out);
/* Checks that this process and the one behind the socket may share memory. WEFT_PERM: they may not;
 * the text names both. */
enum weft_status wf_shm_peer_check(int fd, pid_t *pid) WEFT_MUST_CHECK;

/* shm_socket.c */
/* Returns 0, or errno. Never blocks. */
int wf_shm_send(int fd, const struct wf_shm_packet *packet, int pass_fd);
void wf_shm_send_wake(int fd);
/* Returns 1: mail; 0: none now; -1: the socket has ended; -2: what was received is no packet, see
 * weft_last_error. */
int wf_shm_receive_mail(int fd, struct wf_shm_mail *out);
/* Checks that what was received is a packet. WEFT_PROTOCOL: the text names the field and its value.
 */
enum weft_status wf_shm_packet_check(const struct wf_shm_packet *packet,
				     size_t bytes) WEFT_MUST_CHECK;
/* Reads what the socket has, once UP. */
void wf_shm_read_socket(struct wf_shm_conn *c);

/* shm_segment.c */
/* Creates the segment, a sealed memfd. */
enum weft_status wf_shm_segment_create(struct wf_shm_conn *c) WEFT_MUST_CHECK;
/* Maps the peer's segment; the descriptor stays the caller's. WEFT_PROTOCOL: it is not a sealed
 * memfd of the right size. */
enum weft_status wf_shm_segment_adopt(struct wf_shm_conn *c, int fd) WEFT_MUST_CHECK;
void wf_shm_segment_close(struct wf_shm_conn *c);
/* Maps a region of the peer; the descriptor stays the caller's. */
enum weft_status wf_shm_foreign_add(struct wf_shm_conn *c, uint32_t id, uint64_t bytes,
				    int fd) WEFT_MUST_CHECK;
/* Returns NULL if the peer has sent no region with that id. */
struct wf_shm_foreign *wf_shm_foreign_find(struct wf_shm_conn *c, uint32_t id);
void wf_shm_foreign_close(struct wf_shm_conn *c);
/* Checks that it is a memfd of at least `bytes` that cannot be truncated. */
enum weft_status wf_shm_memfd_check(int fd, uint64_t bytes) WEFT_MUST_CHECK;

/* shm_grant.c: regions, grants, and what a PUT may touch. */
enum weft_status wf_shm_region_add(struct wf_transport *transport, const struct wf_region *region,
				   uint32_t *out);
void wf_shm_region_remove(struct wf_transport *transport, uint32_t region);
void wf_shm_release(struct wf_conn *conn, uint32_t slot);
/* Opens the PUT that `put` announces, or fails with WEFT_PROTOCOL. */
enum weft_status wf_shm_put_open(struct wf_shm_conn *c, const struct wf_shm_put *put);
/* Reports to the peer that its buffer is free. */
void wf_shm_completion_write(struct wf_shm_conn *c, uint32_t op);

/* shm_send.c */
enum weft_status wf_shm_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
			     unsigned *taken);
/* Writes queued operations to the way while there is room. */
void wf_shm_flush(struct wf_shm_conn *c);
/* Reads completions. */
void wf_shm_complete(struct wf_shm_conn *c);
void wf_shm_emit_done(struct wf_shm_conn *c, struct wf_events *events);
/* The connection is down: ends all operations, except those that the peer still reads. Returns true
 * if nothing is left to wait for. */
bool wf_shm_give_up(struct wf_shm_conn *c, bool wait);
/* Whether nothing is queued or published. */
bool wf_shm_tx_idle(const struct wf_shm_conn *c);
/* Reads how far the peer has consumed. Returns false if the connection is down because the value is
 * impossible. */
bool wf_shm_tx_look(struct wf_shm_conn *c);

/* shm_recv.c */
/* Reads cells and delivers them until there are none, the events are full or the budget is used up;
 * with `discard` it delivers nothing. */
void wf_shm_receive(struct wf_shm_conn *c, struct wf_events *events, bool discard);
