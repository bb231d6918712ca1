/* SPDX-License-Identifier: Apache-2.0 */
/* shm_internal: what the files of the shm backend share.
 *
 * A connection is a Unix socket, on which both ends meet, pass descriptors and wake each other, and
 * a segment: a sealed memfd with two ways, one for each direction. A way is a ring of cells that
 * one end fills and the other empties. Whatever stands in a segment was written by somebody else:
 * it is copied first, then checked, then used. Thread: the transport's owner. */
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

#define WF_SHM_CELLS 512u                  /* of a way; a power of two */
#define WF_SHM_INLINE_BYTES 64u            /* payload within a cell */
#define WF_SHM_DATA_BYTES (256u << 10)     /* longer payload of a way */
#define WF_SHM_CHUNK_BYTES (32u << 10)     /* of a PUT that is copied through the data */
#define WF_SHM_COPY_BYTES 4096u            /* PUTs up to this are copied, longer ones published */
#define WF_SHM_REFS 1024u                  /* published PUTs not yet completed, per way */
#define WF_SHM_MSG_RING_BYTES (256u << 10) /* messages taken while the way is full */
#define WF_SHM_PEER_BYTES_MAX (1ull << 42) /* address space for the regions of one peer */
#define WF_SHM_MSGS_MAX 256u               /* MSG events of one poll */
#define WF_SHM_BODIES_BYTES (256u << 10)   /* and their bodies */
#define WF_SHM_RX_BUDGET (512u << 10)      /* bytes that one connection may copy per poll */
#define WF_SHM_MAIL_BUDGET 64u             /* packets and wake-ups that it may have read */
#define WF_SHM_LOOK_NS WF_NS_PER_MS        /* how often a busy transport looks at its sockets */
#define WF_SHM_CONNECT_RETRY_NS (2 * WF_NS_PER_MS) /* the listener's queue is full */
#define WF_SHM_LINE 128 /* two cache lines: processors fetch them in pairs */

/* ---- the segment ---- */

enum wf_shm_kind {
	WF_SHM_MSG = 1,
	WF_SHM_PUT = 2,  /* with its payload, the first part of it, or where it is */
	WF_SHM_MORE = 3, /* the next part of the PUT before */
};

enum wf_shm_where {
	WF_SHM_INLINE = 1, /* in the cell */
	WF_SHM_DATA = 2,   /* in the way's data */
	WF_SHM_REF = 3,    /* PUT: in the sender's region; completed with `op` */
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
	uint32_t op;         /* REF: comes back in the completion */
	uint32_t part_bytes; /* INLINE and DATA: of this cell */
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
	alignas(WF_SHM_LINE) _Atomic uint64_t seq; /* position + 1 once the note is whole */
	union wf_shm_note note;
	uint8_t data[WF_SHM_INLINE_BYTES];
};
WF_STATIC_ASSERT(sizeof(struct wf_shm_cell) == WF_SHM_LINE, "no padding");

/* One direction. */
struct wf_shm_way {
	/* Written by who empties it. */
	alignas(WF_SHM_LINE) _Atomic uint64_t consumed; /* cells */
	/* Number of the completion + 1 in the high half, `op` in the low half. */
	alignas(WF_SHM_LINE) _Atomic uint64_t completion[WF_SHM_REFS];
	/* Written by who fills it. */
	struct wf_shm_cell cell[WF_SHM_CELLS];
	alignas(WF_SHM_LINE) uint8_t data[WF_SHM_DATA_BYTES];
};

enum wf_shm_closing {
	WF_SHM_OPEN = 0,
	WF_SHM_ORDERLY = 1, /* what is in the way is the last, and all of it counts */
	WF_SHM_NOW = 2,     /* published PUTs that are not consumed are void */
	WF_SHM_BROKEN = 3,  /* as NOW, and not in good order */
};

/* What one end says about itself. */
struct wf_shm_end {
	/* Grows behind what the other end should look at. */
	alignas(WF_SHM_LINE) _Atomic uint64_t doorbell;
	/* 1: sleeps, or is about to; taken back by whoever wakes it. */
	alignas(WF_SHM_LINE) _Atomic uint32_t sleeping;
	alignas(WF_SHM_LINE) _Atomic uint32_t closing; /* enum wf_shm_closing */
};

/* Index 0: the connecting end, and the way that it fills. */
struct wf_shm_segment {
	struct wf_shm_end end[2];
	struct wf_shm_way way[2];
};

/* ---- the socket ---- */

#define WF_SHM_MAGIC 0x4d485357u /* "WSHM" */
#define WF_SHM_VERSION 1u

enum wf_shm_packet_type {
	WF_SHM_HELLO = 1,  /* connecting end, first; the segment; blob: the hello */
	WF_SHM_ACCEPT = 2, /* accepting end; blob: the verdict */
	WF_SHM_REFUSE = 3, /* accepting end, last; blob: the verdict */
	WF_SHM_DENY = 4,   /* accepting end, first and last; blob: why, as text */
	WF_SHM_REGION = 5, /* either, once UP; a region's memfd */
};

struct wf_shm_packet {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t blob_bytes;
	uint32_t region; /* REGION: its id */
	uint64_t bytes;  /* HELLO: of the segment; REGION: of it */
	uint8_t blob[WF_BLOB_ROOM];
};
#define WF_SHM_PACKET_BYTES offsetof(struct wf_shm_packet, blob)

/* What came: a packet, or one byte to wake. */
struct wf_shm_mail {
	struct wf_shm_packet packet;
	bool wake;
	int fd;       /* -1: none came with it */
	bool fd_lost; /* one came, and this process may have no more of them */
};

/* ---- private ---- */

struct wf_shm;
struct wf_shm_conn;

/* What regions are called between processes: the number, and which of those that had it. A peer's
 * are as many as this end's at most. */
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
	uint32_t id;   /* as the peer calls it */
	uint32_t held; /* slots whose bytes lie in it */
};

struct wf_shm_slot {
	struct wf_shm_foreign *foreign; /* it lies there; NULL: in this end's memory */
	uint32_t op;                    /* foreign: to be completed by the release */
};

enum wf_shm_entry_state {
	WF_SHM_ENTRY_FREE,
	WF_SHM_ENTRY_QUEUED,    /* not, or not wholly, in the way */
	WF_SHM_ENTRY_PUBLISHED, /* REF: until its completion */
	WF_SHM_ENTRY_DONE,      /* its event waits for room */
};

/* An operation that was taken. */
struct wf_shm_entry {
	uint64_t cookie;
	uint8_t state; /* enum wf_shm_entry_state */
	bool is_put;
	bool lost; /* DONE LOST */
	uint32_t region;
	uint32_t tag, grant;
	uint64_t nonce;
	const uint8_t *src; /* PUT */
	uint64_t bytes;     /* of body or PUT */
	uint64_t offset;
	uint64_t sent;     /* PUT: bytes that are in the way */
	uint64_t ring_at;  /* SEND: where head and body lie */
	uint64_t ring_end; /* SEND: free up to here when published */
	uint64_t position; /* PUBLISHED: of its cell */
	struct wf_shm_entry *next;
};

struct wf_shm_list {
	struct wf_shm_entry *first, *last;
};

struct wf_shm_tx {
	struct wf_shm_entry *entry; /* [op_max] */
	struct wf_shm_entry *free;
	struct wf_shm_list queue, done;
	uint32_t ref_count;                /* entries PUBLISHED */
	uint64_t published;                /* cells filled */
	uint64_t consumed;                 /* of them, as far as known */
	uint64_t completed;                /* completions read */
	uint64_t data_head, data_tail;     /* positions in the way's data; they only grow */
	uint64_t data_end[WF_SHM_CELLS];   /* of each cell: data is free up to here behind it */
	uint8_t *ring;                     /* WF_SHM_MSG_RING_BYTES */
	uint64_t ring_head, ring_tail;     /* positions only grow */
	uint64_t exported[WF_REGIONS_MAX]; /* generation that the peer has; 0: none */
	bool dirty;                        /* the doorbell is due */
};

struct wf_shm_rx {
	uint64_t next;       /* cell */
	uint64_t completed;  /* completions written */
	uint64_t rung;       /* `next` when the peer was last told that there is room */
	uint64_t rung_bytes; /* of payload that came since */
	/* The PUT whose payload is being copied. */
	bool put_open;
	struct wf_landing put;  /* while put_open */
	const uint8_t *put_src; /* REF into a place; NULL: parts come in cells */
	uint32_t put_op;
	struct wf_shm_foreign foreign[WF_REGIONS_MAX]; /* number of the id - 1 */
	uint64_t foreign_bytes;
};

struct wf_shm_conn {
	struct wf_life life; /* first */
	struct wf_loop_source source;
	bool readable; /* the socket has not run dry since the last edge */
	bool eof;      /* the peer's end of the socket has gone */
	int fd;        /* -1: none */
	struct wf_shm *t;

	/* Segment; NULL until there is one. */
	struct wf_shm_segment *segment;
	int segment_fd; /* connecting end, until the hello is out */
	struct wf_shm_end *own, *peer_end;
	struct wf_shm_way *tx_way, *rx_way;
	struct wf_shm_tx tx;
	struct wf_shm_rx rx;

	struct wf_shm_slot slot[WF_SLOT_COUNT_MAX];

	struct wf_shm_packet shake; /* connecting: the hello, then the verdict; else the hello */
};

struct wf_shm {
	struct wf_medium medium; /* first */
	struct wf_doors doors;
	struct wf_life *visit_next; /* where the next poll begins; NULL: with the first */
	struct wf_log_limit export_log;

	uint64_t look_ns; /* look at the sockets then */
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
/* What epoll tells of a socket, once each. */
#define WF_SHM_EDGES (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* shm_life.c: what a connection does in each state, and how it ends. */
extern const struct wf_life_ops wf_shm_life_ops;
/* One turn: whatever the state asks for. */
void wf_shm_conn_visit(struct wf_shm_conn *c, struct wf_events *events);

/* shm_conn.c */
/* What is not zero in a new connection. */
void wf_shm_conn_init(struct wf_shm_conn *c);
/* What a connection that has a peer needs. WEFT_NOMEM names the bytes. */
enum weft_status wf_shm_conn_buffers(struct wf_shm_conn *c);
/* Down for how the peer ended: from what it said, or for the end of its socket. */
void wf_shm_conn_ended(struct wf_shm_conn *c, enum wf_shm_closing closing);
/* UP, and nothing is here or under way: a visit would find nothing to do. */
static inline bool
wf_shm_conn_rests(const struct wf_shm_conn *c)
{
	if (c->life.state != WF_LIFE_UP || c->readable || c->eof || c->tx.dirty ||
	    c->tx.ref_count > 0 || c->tx.queue.first != NULL || c->tx.done.first != NULL) {
		return false;
	}
	const struct wf_shm_cell *cell = &c->rx_way->cell[c->rx.next % WF_SHM_CELLS];
	/* S1: publish. A visit looks again at both; S4 is its affair. */
	return atomic_load_explicit(&cell->seq, memory_order_acquire) != c->rx.next + 1 &&
	       atomic_load_explicit(&c->peer_end->closing, memory_order_acquire) == WF_SHM_OPEN;
}
/* Ring the doorbell, and wake the peer if it sleeps. */
void wf_shm_conn_kick(struct wf_shm_conn *c);

/* shm_handshake.c */
enum weft_status wf_shm_connect(struct wf_transport *transport, const struct wf_host *to,
				const void *hello, size_t hello_bytes, void *user,
				struct wf_conn **out);
/* Send the verdict. */
bool wf_shm_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes);
/* One try; CONNECTING, SHAKING or down afterwards. */
void wf_shm_connect_try(struct wf_shm_conn *c);
/* Read towards the first packet, and what may not come behind it. */
void wf_shm_shake_read(struct wf_shm_conn *c);
void wf_shm_deny(struct wf_life *life, const char *why);

/* shm_listen.c */
enum weft_status wf_shm_listen(struct wf_transport *transport, const struct wf_host *at,
			       uint16_t *port);
void wf_shm_doors_init(struct wf_shm *t);
/* Take over a connected socket as an incoming connection; closes it on failure. */
void wf_shm_adopt(struct wf_shm *t, int fd, const struct wf_host *at);
/* shm_name.c: names of this host, and who may connect. */
/* WEFT_UNAVAILABLE says why it is none. */
enum weft_status wf_shm_name_check(const char *what, const struct wf_host *host,
				   bool any_too) WEFT_MUST_CHECK;
/* Socket address of a port; returns its length. */
struct sockaddr_un;
unsigned wf_shm_address(uint16_t port, struct sockaddr_un *out);
/* May this process and the one behind the socket share memory? WEFT_PERM names both. */
enum weft_status wf_shm_peer_check(int fd, pid_t *pid) WEFT_MUST_CHECK;

/* shm_socket.c */
/* 0, or errno. Never blocks. */
int wf_shm_send(int fd, const struct wf_shm_packet *packet, int pass_fd);
void wf_shm_send_wake(int fd);
/* 1: mail; 0: none now; -1: the end of the socket; -2: what came is no packet, weft_last_error. */
int wf_shm_receive_mail(int fd, struct wf_shm_mail *out);
/* Is what came a packet? WEFT_PROTOCOL names the field and its value. */
enum weft_status wf_shm_packet_check(const struct wf_shm_packet *packet,
				     size_t bytes) WEFT_MUST_CHECK;
/* Take in what the socket has, once UP. */
void wf_shm_read_socket(struct wf_shm_conn *c);
/* The peer has rung: read its byte, if it is here, and no more. */
void wf_shm_read_ring(struct wf_shm_conn *c);

/* shm_segment.c */
/* A sealed memfd. */
enum weft_status wf_shm_segment_create(struct wf_shm_conn *c) WEFT_MUST_CHECK;
/* Map the peer's; the descriptor stays the caller's. WEFT_PROTOCOL: not what it must be. */
enum weft_status wf_shm_segment_adopt(struct wf_shm_conn *c, int fd) WEFT_MUST_CHECK;
void wf_shm_segment_close(struct wf_shm_conn *c);
/* Map a region of the peer; the descriptor stays the caller's. */
enum weft_status wf_shm_foreign_add(struct wf_shm_conn *c, uint32_t id, uint64_t bytes,
				    int fd) WEFT_MUST_CHECK;
/* NULL: the peer has sent none of that id. */
struct wf_shm_foreign *wf_shm_foreign_find(struct wf_shm_conn *c, uint32_t id);
void wf_shm_foreign_close(struct wf_shm_conn *c);
/* Is it a memfd of at least `bytes` that nobody can cut short? */
enum weft_status wf_shm_memfd_check(int fd, uint64_t bytes) WEFT_MUST_CHECK;

/* shm_grant.c: regions, grants, and what a PUT may touch. */
enum weft_status wf_shm_region_add(struct wf_transport *transport, const struct wf_region *region,
				   uint32_t *out);
void wf_shm_region_remove(struct wf_transport *transport, uint32_t region);
void wf_shm_release(struct wf_conn *conn, uint32_t slot);
/* Open the PUT that `put` announces, or WEFT_PROTOCOL. */
enum weft_status wf_shm_put_open(struct wf_shm_conn *c, const struct wf_shm_put *put);

/* shm_send.c */
enum weft_status wf_shm_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
			     unsigned *taken);
/* Put what is queued into the way as far as there is room. */
void wf_shm_flush(struct wf_shm_conn *c);
/* Take in completions. */
void wf_shm_complete(struct wf_shm_conn *c);
void wf_shm_emit_done(struct wf_shm_conn *c, struct wf_events *events);
/* The connection is down: everything is done but what the peer still reads. true: nothing is left
 * to wait for. */
bool wf_shm_give_up(struct wf_shm_conn *c, bool wait);
/* Nothing is queued or published. */
bool wf_shm_tx_idle(const struct wf_shm_conn *c);
/* Learn how far the peer is; false: down, it says what cannot be. */
bool wf_shm_tx_look(struct wf_shm_conn *c);

/* shm_recv.c */
/* Take in cells and deliver them until there are none, the events are full or the budget is used
 * up; `discard`: deliver nothing. */
void wf_shm_receive(struct wf_shm_conn *c, struct wf_events *events, bool discard);
/* Tell the peer that its buffer is free. */
void wf_shm_completion_write(struct wf_shm_conn *c, uint32_t op);
