/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_internal: what the files of the verbs backend share.
 *
 * A connection is a queue pair (RC) that rdma_cm sets up. Each transport opens its devices for
 * itself, so that lanes share nothing: per device one protection domain, two completion queues and
 * one shared receive queue. Thread: the transport's owner, except for the run of a task. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/env.h"
#include "transport/address.h"
#include "transport/life.h"
#include "transport/verbs/verbs_lib.h"
#include "transport/verbs/verbs_settings.h"
#include "transport/verbs/verbs_sq.h"
#include "transport/verbs/verbs_wire.h"
#include "wire/head.h"

#define WF_VERBS_DEVICES_MAX 8u   /* the most devices of one transport */
#define WF_VERBS_LISTENERS_MAX 8u /* a name may have several addresses */
#define WF_VERBS_CONNS_MAX 65536u /* a work request's id has 16 bits for the connection's number */
/* Frames without a credit that a peer may have in flight. A peer returns credits when it has half
 * of them, so at most two such frames are in flight: three halves would be more than were granted.
 */
#define WF_VERBS_CONTROL_MAX 4u
#define WF_VERBS_RX_IDX_BITS 12u /* bits for the index of a buffer within its chunk */
#define WF_VERBS_RX_BYTES (WF_VERBS_FRAME_BYTES + WF_MSG_BODY_MAX) /* bytes of a receive buffer */
#define WF_VERBS_RING_BYTES (128u << 10) /* messages accepted and not yet sent, per connection */
#define WF_VERBS_CREDIT_FRAMES 8u        /* slots for frames that bypass the queue */
#define WF_VERBS_BATCH 16u               /* work requests in one call of the device */
#define WF_VERBS_POLL 16u                /* completions of one call */
#define WF_VERBS_POLL_MAX 256u           /* completions of one queue in one poll */
#define WF_VERBS_QUEUES_CONNS 64u        /* connections that share completion queues */
#define WF_VERBS_BUCKETS 256u            /* buckets of queue pair numbers; a power of two */
#define WF_VERBS_INTERNAL_OPS 4u         /* START, HELLO, verdict, CLOSE */
#define WF_VERBS_REPEAT_NS WF_NS_PER_S   /* the earliest repetition of a request */
#define WF_VERBS_STILL_NS WF_NS_PER_S    /* without a poll for this long this end was not running */
#define WF_VERBS_LOOK_NS WF_NS_PER_MS    /* how often a busy transport checks its descriptors */
/* How long to wait for the connection manager's event, which tells more than a queue pair in error.
 */
#define WF_VERBS_VERDICT_NS (100 * WF_NS_PER_MS)
/* The kernel does not report that a peer withdrew its request, so it is polled at this interval. */
#define WF_VERBS_WITHDRAWN_NS (20 * WF_NS_PER_MS)
/* The longest wait for a memory window that is being bound. */
#define WF_VERBS_BIND_NS (10 * WF_NS_PER_MS)
/* How long a device may take to complete everything that is left of a queue pair in error. */
#define WF_VERBS_DRAINED_NS (100 * WF_NS_PER_MS)
/* After this many consecutive ends in which it did not, the device is not waited for any more. */
#define WF_VERBS_UNDRAINED_MAX 3u
/* The most queues of a device that are retired at a time and end with their last connection. */
#define WF_VERBS_RETIRED_MAX 3u
/* Some devices lose an event now and then. A caller that sleeps while there are connections
 * therefore checks the queues at this interval, and an event that is overdue by this time counts as
 * lost. Ten checks a second cost a few hundred microseconds of a core. */
#define WF_VERBS_EVENT_NS (100 * WF_NS_PER_MS)

struct wf_verbs;
struct wf_verbs_conn;
struct wf_verbs_queues;
struct wf_verbs_registration;

/* ---- receive buffers ---- */

struct wf_verbs_rx {
	struct wf_verbs_rx *next;
	struct wf_verbs_chunk *chunk;
	struct wf_verbs_conn *conn; /* the connection whose frame it holds; NULL: none any more */
	uint8_t *data;              /* WF_VERBS_RX_BYTES */
	uint32_t bytes;
	uint32_t tag; /* notice: the PUT's tag */
	bool notice;  /* immediate data arrived, and the buffer is empty */
	bool counted; /* it needed a credit */
	struct wf_verbs_frame frame;
};

/* The receive buffers that a connection adds. With a shared queue they stay when it ends, and the
 * next one adds none. */
struct wf_verbs_chunk {
	struct wf_verbs_queues *queues;
	struct wf_verbs_conn *conn; /* NULL: it belongs to the shared queue */
	uint32_t idx, generation;   /* index in the device's table, and generation of that entry */
	uint32_t count;
	uint8_t *memory;
	struct ibv_mr *mr;
	struct wf_verbs_rx rx[];
};

struct wf_verbs_rx_list {
	struct wf_verbs_rx *first, *last;
	unsigned count;
};

/* ---- devices ---- */

/* The capabilities of a device, with the settings applied. */
struct wf_verbs_caps {
	bool iwarp;
	bool immediate;       /* WRITE with immediate data */
	bool window;          /* memory windows of type 2; otherwise a domain per peer */
	bool shared_queue;    /* whose buffers all our queue pairs may use */
	bool window_is_loose; /* writes are checked against the region, not its bounds */
	bool query_is_true;   /* query_qp reports the real state */
	bool odd_offsets;     /* see open_filler in verbs_device.c */
	bool own_addresses;   /* a region may have addresses other than the process's */
	bool says_last;       /* an event reports that a queue pair uses no more shared buffers */
	uint32_t conn_max;
	uint32_t queues_share; /* connections that share queues */
	uint32_t send_queue;   /* work requests of a connection */
	uint32_t rx_share;     /* receive buffers of a connection */
	uint64_t message_max;  /* bytes of one work request */
};

struct wf_verbs_cq {
	struct ibv_cq *cq;
	bool armed;
	unsigned unacked; /* events */
	uint64_t owed_ns; /* since when a completion while armed has had no event; 0: none */
};

/* The queues that several connections of a device share. */
struct wf_verbs_queues {
	struct wf_verbs_device *dev;
	struct wf_verbs_queues *next; /* list of the transport's queues */
	struct wf_verbs_cq send, receive;
	struct ibv_srq *srq; /* NULL: each connection has its own */
	bool send_waits;     /* the last poll skipped the send completions */
	bool retired; /* shared queue: buffers may be missing, so it gets no new connections */
	uint32_t conn_count;  /* at most caps.queues_share */
	uint32_t shares_used; /* shared queue: number of connections for which it has buffers */
	struct wf_verbs_rx_list fresh; /* shared queue: buffers to be posted */
};

/* The queues of a device. Written by verbs_queues.c. */
struct wf_verbs_queue_table {
	struct wf_verbs_queues **at; /* [max], the first `count` are in use */
	uint32_t count, max;
	uint32_t retired_count; /* retired ones; at most WF_VERBS_RETIRED_MAX */
};

/* The chunks of receive buffers of a device, by the index in a work request's id. Written by
 * verbs_rx.c. */
struct wf_verbs_chunk_table {
	struct wf_verbs_chunk **at; /* [max], NULL: free */
	uint32_t count, max;
	uint32_t generation; /* generation of the newest entry */
};

struct wf_verbs_device {
	struct wf_verbs *t;
	char name[WF_VERBS_DEVICE_BYTES];
	struct ibv_context *context;
	struct wf_verbs_caps caps;
	int vector;            /* completion vector of its queues */
	uint32_t inline_bytes; /* inline data that the first queue pair was granted */
	bool inline_known;     /* inline_bytes is valid */
	bool gone;             /* fatal or removed: no new connections */
	struct ibv_pd *pd;
	struct wf_loop_source channel_source, async_source;
	struct ibv_comp_channel *channel;
	struct ibv_cq *filler; /* an unused queue: see open_filler */
	struct wf_verbs_queue_table queues;
	/* The transport's regions, registered in `pd`; NULL: none, or under way. */
	struct ibv_mr *region_mr[WF_REGIONS_MAX];
	unsigned registering; /* tasks on the helper thread; it cannot be closed meanwhile */
	unsigned undrained;   /* consecutive queue pairs whose end it did not report */
	struct wf_verbs_chunk_table chunks;
	uint32_t conn_count;
	struct wf_verbs_conn *bucket[WF_VERBS_BUCKETS]; /* by queue pair number */
};

/* ---- connections ---- */

struct wf_verbs_listener {
	struct rdma_cm_id *id; /* NULL: it ended with its device */
	char at[WF_ADDRESS_TEXT_BYTES];
};

/* The stages of an attempt, in state CONNECTING. */
enum wf_verbs_stage {
	WF_VERBS_RESOLVING,  /* the helper thread looks up the name */
	WF_VERBS_ADDRESSING, /* rdma_cm resolves device and neighbour */
	WF_VERBS_ROUTING,    /* rdma_cm resolves the path */
	WF_VERBS_PREPARING,  /* regions are being registered */
	WF_VERBS_REQUESTING, /* the request was sent */
};

/* An operation that was accepted, or a frame of this backend's own. */
struct wf_verbs_entry {
	uint64_t cookie;
	enum wf_verbs_frame_kind kind;
	bool internal;  /* the backend's own: it has no DONE */
	bool claim;     /* PUT: a frame describes it; otherwise immediate data has the tag */
	bool unwritten; /* PUT: the peer would refuse it, so the bytes are not written */
	bool keyed;     /* PUT: lkey is known */
	const uint8_t *src;
	uint64_t bytes;   /* length of the PUT, or of head and body */
	uint64_t written; /* PUT: bytes that have been posted */
	uint64_t remote;  /* PUT: the peer's address */
	uint32_t rkey, lkey, tag, region;
	uint64_t ring_at, ring_end; /* of the frame; the ring is free up to ring_end when done */
	uint64_t last;              /* position of its last work request */
};

/* taken >= posted >= done; entry i is at i % entry_count, a power of two. */
struct wf_verbs_tx {
	struct wf_verbs_entry *entry; /* [entry_count] */
	uint32_t entry_count;
	uint64_t taken, posted, done;
	uint64_t user_taken, user_done; /* those that are operations of the caller */
	uint8_t *ring; /* WF_VERBS_RING_BYTES, followed by space for CREDIT frames */
	struct ibv_mr *mr;
	uint64_t ring_head, ring_tail; /* in use from tail to head; positions only grow */
	struct wf_verbs_sq sq;
	uint32_t frames_sent; /* that needed a credit */
	uint32_t frames_returned;
	uint64_t credit_last[WF_VERBS_CREDIT_FRAMES]; /* by slot: position of its frame + 1 */
	unsigned credit_next;
	uint64_t put_bytes; /* bytes of PUTs whose notice has no length */
	/* When something was last completed or returned; WF_NEVER: the queue has been idle since,
	 * and the clock was not read. */
	uint64_t progress_ns;
};

struct wf_verbs_rx_state {
	struct wf_verbs_chunk *chunk;  /* without a shared queue; otherwise NULL */
	struct wf_verbs_rx_list list;  /* completed and not delivered */
	struct wf_verbs_rx_list fresh; /* without a shared queue: buffers to be posted */
	uint32_t posted;               /* without a shared queue: buffers that the device has */
	uint32_t frames_taken;         /* that needed a credit */
	uint32_t frames_returned;      /* those whose buffers are posted again */
	uint32_t returned_said;        /* the number last reported to the peer */
	uint64_t put_bytes;            /* as the peer last reported */
	uint64_t heard_ns;             /* when something last arrived from the peer */
};

/* A connect that may block. Its connection is freed only after it has ended. */
struct wf_verbs_task {
	struct wf_task task;
	bool running; /* as the owner sees it */
	int error;    /* errno */
	const struct wf_verbs_lib *lib;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[WF_VERBS_PRIVATE_MAX];
};

/* What allows the peer to write into one grant. */
struct wf_verbs_access {
	struct ibv_mw *window; /* one of the two is set */
	struct ibv_mr *mr;
	/* The window has to be bound as soon as its region is registered. */
	bool waits;
	uint32_t region, rkey;
	uint64_t at, bytes;
};

/* The access of all grants of a connection. Written by verbs_grant.c. */
struct wf_verbs_access_table {
	struct wf_verbs_access of[WF_GRANTS_MAX]; /* indices as in the connection's grants */
	unsigned waiting;                         /* windows that have to be bound */
};

/* The queue pair of a connection and what it uses. Written by verbs_link.c, except for the list of
 * verbs_device.c. */
struct wf_verbs_link {
	struct rdma_cm_id *id;
	struct wf_verbs_device *dev; /* NULL until the link was opened once */
	struct wf_verbs_queues *queues;
	struct ibv_pd *pd; /* the device's, or the connection's own */
	struct ibv_qp *qp;
	uint32_t qp_num;
	struct wf_verbs_conn *bucket_next; /* list in the device's bucket */
	bool linked;    /* the connection manager has reported that both ends are connected */
	bool receives;  /* it could receive: what arrived is in the completion queue */
	bool last_said; /* the device reported that it uses no more buffers of the shared queue */
	bool undrained; /* the device did not report the end in time */
};

/* The transport's regions as registered for one connection. Written by verbs_register.c. */
struct wf_verbs_own_regions {
	struct ibv_mr *mr[WF_REGIONS_MAX]; /* if it has a domain of its own */
	char why[WF_WHY_BYTES]; /* why a region cannot be registered for it; "": all can */
};

/* The connecting end's attempt, which goes through its stages once for each address. Written by
 * verbs_connect.c. */
struct wf_verbs_attempt {
	enum wf_verbs_stage stage;
	struct wf_verbs_task task;
	char device[WF_VERBS_DEVICE_BYTES]; /* the device to use; "": any */
	struct wf_look_up *look_up;         /* NULL once the addresses are known */
	struct wf_addresses addresses;
	unsigned address_next;
	bool repeated;         /* the request was repeated */
	uint64_t preparing_ns; /* since when it is PREPARING */
};

/* The peer's parameters, from its request or reply. Written by wf_verbs_conn_adopt. */
struct wf_verbs_peer {
	uint32_t mark;          /* its mark in the keys that it makes for this connection */
	bool takes_immediate;   /* a PUT may be announced by immediate data */
	uint32_t credits;       /* frames that may be in flight to it */
	uint64_t put_bytes_max; /* the longest PUT that it accepts */
};

/* How a connection ends, and what it waits for. Written by verbs_conn.c. */
struct wf_verbs_end {
	bool suspected;     /* the queue pair is in error; the next visit finds out why */
	bool verdict_waits; /* ENDING: the connection manager may still report why */
	bool drains;        /* ENDING: the device had not completed everything when it began */
	enum weft_status status;
	char why[WF_WHY_BYTES];
};

struct wf_verbs_conn {
	struct wf_life life; /* first */
	bool last_queued;    /* CLOSE or REFUSES */
	bool may_send;       /* connecting end: established; accepting end: START has arrived */
	bool peer_closed;    /* its CLOSE arrived while this end drains */
	bool stood_still;    /* an attempt was extended by the time in which nobody polled */
	struct wf_verbs *t;
	uint32_t idx, generation; /* index in the transport's table, and generation of that entry */
	uint32_t mark;            /* this end's mark in the keys that it makes for it */

	struct wf_verbs_link link;
	struct wf_verbs_own_regions regions;
	struct wf_verbs_access_table access;
	struct wf_verbs_peer peer;
	struct wf_verbs_tx tx;
	struct wf_verbs_rx_state rx;

	uint8_t blob[WF_BLOB_ROOM]; /* hello, then verdict */
	size_t blob_bytes;

	uint64_t show_ns; /* accepting end: the latest time to show it */

	struct wf_verbs_attempt attempt;

	struct wf_verbs_end end;
};

struct wf_verbs_batch {
	struct wf_verbs_conn *conn;
	unsigned count;
	struct ibv_send_wr wr[WF_VERBS_BATCH];
	struct ibv_sge sge[WF_VERBS_BATCH];
};

struct wf_verbs {
	struct wf_medium medium; /* first */
	struct wf_verbs_settings settings;
	const struct wf_verbs_lib *lib;
	struct wf_loop_source cm_source;
	struct rdma_event_channel *cm;
	struct wf_verbs_listener listener[WF_VERBS_LISTENERS_MAX];
	unsigned listener_count;
	struct wf_verbs_device *device[WF_VERBS_DEVICES_MAX]; /* NULL: free */
	/* Reads a device's events; set at open, for files that may not call verbs_async.c. */
	void (*async_notify)(struct wf_loop_source *source, uint32_t mask);
	struct wf_verbs_queues *queues;              /* the queues of all devices */
	struct wf_verbs_registration *registrations; /* under way */
	struct wf_look_up *orphans;                  /* look-ups that were abandoned */
	struct wf_verbs_conn **conn; /* [of `places`], by the number in wr_id; NULL: free */
	uint32_t conn_generation;

	struct wf_verbs_rx_list lent; /* buffers into which events of the last poll point */
	struct wf_verbs_batch batch;

	/* When to check the descriptors next. The loop's time is that of this poll, or of one
	 * shortly before. */
	uint64_t look_ns;
	bool event_lost; /* an event was lost, and that was logged */
	struct wf_log_limit denied_log;
};

static inline struct wf_verbs *
wf_verbs_of(struct wf_transport *transport)
{
	return (struct wf_verbs *)transport;
}

static inline struct wf_verbs_conn *
wf_verbs_conn_of(struct wf_conn *conn)
{
	return (struct wf_verbs_conn *)conn;
}

/* The first of all connections. */
static inline struct wf_verbs_conn *
wf_verbs_conn_first(const struct wf_verbs *t)
{
	return (struct wf_verbs_conn *)t->medium.first;
}

static inline struct wf_verbs_conn *
wf_verbs_conn_next(const struct wf_verbs_conn *c)
{
	return (struct wf_verbs_conn *)c->life.next;
}

static inline bool
wf_verbs_conn_is_at(const struct wf_verbs_conn *c, enum wf_verbs_stage stage)
{
	return c->life.state == WF_LIFE_CONNECTING && c->attempt.stage == stage;
}

static inline void
wf_verbs_rx_push(struct wf_verbs_rx_list *list, struct wf_verbs_rx *rx)
{
	rx->next = NULL;
	if (list->last == NULL) {
		list->first = rx;
	} else {
		list->last->next = rx;
	}
	list->last = rx;
	list->count++;
}

static inline struct wf_verbs_rx *
wf_verbs_rx_pop(struct wf_verbs_rx_list *list)
{
	struct wf_verbs_rx *rx = list->first;
	list->first = rx->next;
	if (list->first == NULL) {
		list->last = NULL;
	}
	list->count--;
	return rx;
}

static inline bool
wf_verbs_can_send(const struct wf_verbs_conn *c)
{
	return c->may_send && c->link.qp != NULL && c->life.state >= WF_LIFE_SHAKING &&
	       c->life.state <= WF_LIFE_LINGERING;
}

/* ---- what other files report about a link ---- */

/* Both ends are connected, as the connection manager or the peer's first frame shows. */
static inline void
wf_verbs_link_connected(struct wf_verbs_conn *c)
{
	c->link.linked = true;
}

/* The kernel has moved the queue pair to a state in which it receives; otherwise
 * wf_verbs_link_start does. */
static inline void
wf_verbs_link_receives(struct wf_verbs_conn *c)
{
	c->link.receives = true;
}

/* The device has reported that the queue pair uses no more buffers of the shared queue. */
static inline void
wf_verbs_link_ended(struct wf_verbs_conn *c)
{
	c->link.last_said = true;
}

/* ---- receive buffers ---- */

/* The buffer of a work request's id; NULL: there is none. */
static inline struct wf_verbs_rx *
wf_verbs_rx_of(const struct wf_verbs_device *dev, uint64_t wr_id)
{
	uint32_t chunk_idx = (uint32_t)wr_id >> WF_VERBS_RX_IDX_BITS;
	uint32_t idx = (uint32_t)wr_id & ((1u << WF_VERBS_RX_IDX_BITS) - 1);
	const struct wf_verbs_chunk_table *chunks = &dev->chunks;
	struct wf_verbs_chunk *chunk = chunk_idx < chunks->count ? chunks->at[chunk_idx] : NULL;
	if (chunk == NULL || chunk->generation != (uint32_t)(wr_id >> 32) || idx >= chunk->count) {
		return NULL;
	}
	return &chunk->rx[idx];
}

/* A buffer is no longer needed: it goes back to its queue with the next flush. */
static inline void
wf_verbs_rx_forget(struct wf_verbs_rx *rx)
{
	struct wf_verbs_chunk *chunk = rx->chunk;
	if (rx->conn != NULL && rx->counted) {
		rx->conn->rx.frames_returned++; /* it is posted before the peer is told */
	}
	rx->counted = false;
	rx->conn = NULL;
	wf_verbs_rx_push(chunk->conn == NULL ? &chunk->queues->fresh : &chunk->conn->rx.fresh, rx);
}

/* Buffers are posted in lists; this many may wait for more. Frames that a peer may have in flight
 * without a credit have buffers without these; frames that need a credit find a buffer, because no
 * credit is reported before its buffer is posted. */
#define WF_VERBS_FRESH_MAX (WF_VERBS_CONTROL_MAX - 2u)

static inline bool
wf_verbs_rx_is_due(const struct wf_verbs_rx_list *fresh)
{
	return fresh->count > WF_VERBS_FRESH_MAX;
}

/* verbs_task.c: rdma_connect, which may block. */
/* Runs it at once on this thread; task->error has the result. */
void wf_verbs_task_run(struct wf_verbs_task *task);
/* Runs it on the helper thread. */
enum weft_status wf_verbs_task_start(struct wf_verbs_task *task, struct wf_env *env,
				     int wake_fd) WEFT_MUST_CHECK;
/* Returns true once, when it has run there. */
bool wf_verbs_task_ended(struct wf_verbs_task *task);
void wf_verbs_task_await(struct wf_verbs_task *task, struct wf_env *env);

/* verbs_conn.c: how a connection begins and ends. */
/* Sets what is not zero in a new connection. */
void wf_verbs_conn_init(struct wf_verbs_conn *c);
/* Copies the peer's parameters from its private data. */
void wf_verbs_conn_adopt(struct wf_verbs_conn *c, const struct wf_verbs_private *p);
/* The private data of this end. */
struct wf_verbs_private wf_verbs_private_of(const struct wf_verbs_conn *c,
					    enum wf_verbs_private_type type);
/* Waits for a connect on the helper thread to return, after the connection is established. */
void wf_verbs_link_await(struct wf_verbs_conn *c);
/* Stops the queue pair: no byte moves any more; what has arrived can still be polled. */
void wf_verbs_link_stop(struct wf_verbs_conn *c);
/* Whether it was stopped and the device has completed everything (or is not waited for): what is
 * polled after this is the last. */
bool wf_verbs_link_is_drained(const struct wf_verbs_conn *c);
/* Whether the queue pair is in error and this end did not cause it: this device refused what the
 * peer sent. False also if the device does not report it. */
bool wf_verbs_link_was_violated(const struct wf_verbs_conn *c);
/* Delivers what arrived before, then takes the connection down. */
void wf_verbs_conn_end(struct wf_verbs_conn *c, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The queue pair is in error, for an unknown reason. */
void wf_verbs_conn_suspect(struct wf_verbs_conn *c);
/* Ends the suspicion: the queue pair is closed, or is being judged. */
void wf_verbs_conn_clear(struct wf_verbs_conn *c);
/* It has failed, and no completion shows why: the device may, or the connection manager still may.
 */
void wf_verbs_conn_judge(struct wf_verbs_conn *c);
/* The connection manager reports that the peer has gone, which an end may be waiting for. */
void wf_verbs_conn_left(struct wf_verbs_conn *c);
/* The device is lost: its connections end. */
void wf_verbs_device_lost(struct wf_verbs_device *dev, const char *why);

/* verbs_device.c: the devices of a transport. */
/* The device to which `id` is bound, opened if necessary. */
enum weft_status wf_verbs_device_get(struct wf_verbs *t, const struct rdma_cm_id *id,
				     struct wf_verbs_device **out) WEFT_MUST_CHECK;
void wf_verbs_device_close(struct wf_verbs_device *dev);
/* The device's connections, by queue pair number. */
void wf_verbs_device_add(struct wf_verbs_device *dev, struct wf_verbs_conn *c);
void wf_verbs_device_remove(struct wf_verbs_device *dev, struct wf_verbs_conn *c);
struct wf_verbs_conn *wf_verbs_device_find(const struct wf_verbs_device *dev, uint32_t qp_num);
/* Makes librdmacm close the devices that it had opened and that are gone: their removal waits for
 * it. */
void wf_verbs_devices_forget(const struct wf_verbs *t);

/* The completion vector, out of `count`, for a thread that is bound to `cpu` (-1: to none). */
int wf_verbs_vector(const struct wf_verbs_settings *settings, int cpu, int count);

/* verbs_queues.c: completion queues, and shared receive queues. */
/* Creates the tables of a device that is being opened, for caps.conn_max connections. */
enum weft_status wf_verbs_queues_open(struct wf_verbs_device *dev) WEFT_MUST_CHECK;
/* Frees the tables and all remaining queues. */
void wf_verbs_queues_close(struct wf_verbs_device *dev);
/* Finds or creates queues with room for one more connection. */
enum weft_status wf_verbs_queues_get(struct wf_verbs_device *dev,
				     struct wf_verbs_queues **out) WEFT_MUST_CHECK;
/* Retires queues after a queue pair whose end was not reported in full: some of the shared queue's
 * buffers may never come back. */
void wf_verbs_queues_retire(struct wf_verbs_queues *q);
/* Frees retired queues that have no connection any more. */
void wf_verbs_queues_reap(struct wf_verbs_device *dev);
/* Reads which completion queues had an event. */
void wf_verbs_queues_read(struct wf_verbs_device *dev);
/* Polls up to WF_VERBS_POLL completions. If the queue cannot be polled, the device is lost; returns
 * 0. */
unsigned wf_verbs_queues_poll(struct wf_verbs_device *dev, struct ibv_cq *cq, struct ibv_wc *wc);

/* verbs_caps.c: the capabilities of a device. */
/* Reads the capabilities. Of the settings only masks and sizes are used. */
enum weft_status wf_verbs_caps_read(struct wf_verbs_device *dev) WEFT_MUST_CHECK;
/* The entry of the table for connections of `family`; -1: none. */
int wf_verbs_gid_pick(const struct ibv_gid_entry *entries, unsigned count, int family);
/* The device's address that the settings choose, to which a connection is bound. WEFT_UNAVAILABLE.
 */
enum weft_status wf_verbs_source_address(struct wf_verbs *t, const char *device, int family,
					 struct sockaddr_storage *out) WEFT_MUST_CHECK;

/* verbs_addresses.c */
/* Checks that this process can open the devices that the settings allow. WEFT_UNAVAILABLE: the text
 * names the device, the reason and the remedy; the libraries report only that there is none. */
enum weft_status wf_verbs_rights(const struct wf_verbs_settings *settings) WEFT_MUST_CHECK;

/* verbs_memory.c: registering. */
/* Checks that `bytes` more may be locked. WEFT_NOMEM: the text has the limit and the remedy. */
enum weft_status wf_verbs_memlock_check(uint64_t bytes, uint64_t locked_bytes,
					uint64_t limit_bytes) WEFT_MUST_CHECK;
/* The same for the device, with the system's values. */
enum weft_status wf_verbs_memlock_room(const struct wf_verbs_device *dev,
				       uint64_t bytes) WEFT_MUST_CHECK;
/* Fails because the device did not create what the format says: records `err` and, if locked memory
 * is limited, the limit and the remedy, because most devices lock the memory of queues. */
enum weft_status wf_verbs_fail_made(const struct wf_verbs_device *dev, int err, const char *format,
				    ...) __attribute__((cold, format(printf, 3, 4)));
struct wf_verbs_range {
	void *base;
	size_t bytes;
	uint64_t iova; /* the address by which the device knows `base` */
	unsigned access;
};

enum weft_status wf_verbs_register(struct wf_verbs_device *dev, struct ibv_pd *pd,
				   const struct wf_verbs_range *range,
				   struct ibv_mr **out) WEFT_MUST_CHECK;
void wf_verbs_deregister(const struct wf_verbs_device *dev, struct ibv_mr **mr);
/* The device's address for an address within a region; it reveals little about our addresses to a
 * peer. */
uint64_t wf_verbs_iova(const struct wf_verbs_caps *caps, const void *region_base, const void *at);
/* Registers memory of the backend itself, under the process's addresses. */
enum weft_status wf_verbs_register_own(struct wf_verbs_device *dev, struct ibv_pd *pd, void *base,
				       size_t bytes, struct ibv_mr **out) WEFT_MUST_CHECK;

/* verbs_register.c: the transport's regions, from which PUTs are read and to which windows are
 * bound. */
/* Begins to register the regions that the device of `c`, or `c`, lacks. WEFT_NOMEM: memlock. */
enum weft_status wf_verbs_regions_start(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* The same for a request that has no link yet: the regions that its device will need for windows.
 */
enum weft_status wf_verbs_regions_begin(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* Whether an incoming connection is not shown yet because memory for its grants is being
 * registered. */
bool wf_verbs_regions_hold_up(struct wf_verbs_conn *c);
/* Checks that all regions are registered for `c`. WEFT_AGAIN: not yet; otherwise the reason why one
 * cannot be. */
enum weft_status wf_verbs_regions_check(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* Returns NULL while the region is being registered. */
struct ibv_mr *wf_verbs_region_mr(struct wf_verbs_conn *c, uint32_t region);
/* Handles registrations that have ended. */
void wf_verbs_registrations_visit(struct wf_verbs *t);
/* The connection ends, or moves to another device: drops its regions. Returns true if its domain is
 * still in use, and is released later. */
bool wf_verbs_registrations_leave(struct wf_verbs_conn *c);
enum weft_status wf_verbs_region_add(struct wf_transport *transport, const struct wf_region *region,
				     uint32_t *out);
void wf_verbs_region_remove(struct wf_transport *transport, uint32_t region);

/* verbs_async.c: what a device reports besides completions. */
/* Reads all pending events, and acts on them. */
void wf_verbs_async_read(struct wf_verbs_device *dev);
/* The same, for the loop. */
void wf_verbs_async_notify(struct wf_loop_source *source, uint32_t mask);

/* verbs_link.c: the queue pair of a connection and everything that belongs to it. */
/* Adopts the identifier of a request. */
void wf_verbs_link_adopt(struct wf_verbs_conn *c, struct rdma_cm_id *id);
/* Creates an identifier of its own. */
enum weft_status wf_verbs_link_begin(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* Opens the link on the device of c->link.id. The queue pair is then in state INIT, with its
 * receive buffers posted. */
enum weft_status wf_verbs_link_open(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* Moves the queue pair to RTS, unless the kernel does that. */
enum weft_status wf_verbs_link_start(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* Whether the request of c->link.id has not been withdrawn. */
bool wf_verbs_link_is_asked(const struct wf_verbs_conn *c);
/* Reads what the device reports, except receptions. */
void wf_verbs_link_look(struct wf_verbs_conn *c);
/* Records that the device did not report the end in time. */
void wf_verbs_link_undrained(struct wf_verbs_conn *c);
/* Ends the link at once: no byte moves any more. Buffers of events stay valid. */
void wf_verbs_link_close(struct wf_verbs_conn *c);
/* The connection is about to be freed, or to move to another device. Its link is closed. */
void wf_verbs_link_leave(struct wf_verbs_conn *c);

/* verbs_life.c: what a connection does in each state. */
extern const struct wf_life_ops wf_verbs_life_ops;
/* The connection manager reports that the peer has gone. */
void wf_verbs_conn_gone(struct wf_verbs_conn *c);
/* One turn: does what the state requires. */
void wf_verbs_conn_visit(struct wf_verbs_conn *c, struct wf_events *events);
/* Nobody polled since `since_ns`, which is not the peer's fault: after half of peer_timeout its
 * silence is counted anew, and a handshake under way is extended by that time, once. */
void wf_verbs_conn_give_time(struct wf_verbs_conn *c, uint64_t since_ns);

/* verbs_answer.c: the accepting end, up to the answer. */
/* Sends the verdict, in a frame or with the reply that makes the link. */
bool wf_verbs_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes);
/* Makes the link and accepts, or takes the connection down. If the verdict is NULL or too long, it
 * follows in a frame. */
void wf_verbs_accept_link(struct wf_verbs_conn *c, const void *verdict, size_t verdict_bytes);
/* Rejects its request. */
void wf_verbs_deny(struct wf_verbs_conn *c, const char *why);
bool wf_verbs_may_show(struct wf_life *life);
void wf_verbs_shown(struct wf_life *life);

/* verbs_cm.c: events of the connection manager, which lead to UP, or take a connection down. */
void wf_verbs_cm_read(struct wf_verbs *t);

/* verbs_connect.c */
enum weft_status wf_verbs_connect(struct wf_transport *transport, const struct wf_host *to,
				  const void *hello, size_t hello_bytes, void *user,
				  struct wf_conn **out);
/* Tries the remaining addresses. */
void wf_verbs_connect_next(struct wf_verbs_conn *c, const char *why);
/* The request or its answer was lost, or was mistaken for an old one: repeats it with a new queue
 * pair. Returns false if that was done before, or is of no use. */
bool wf_verbs_connect_repeat(struct wf_verbs_conn *c, const char *why);
/* Continue the attempt after events of the connection manager. */
void wf_verbs_connect_address(struct wf_verbs_conn *c);
void wf_verbs_connect_route(struct wf_verbs_conn *c);
/* Abandons its look-up. */
void wf_verbs_connect_abandon(struct wf_verbs_conn *c);
/* Checks whether the helper thread has finished. */
void wf_verbs_connect_visit(struct wf_verbs_conn *c);

/* verbs_listen.c */
enum weft_status wf_verbs_listen(struct wf_transport *transport, const struct wf_host *at,
				 uint16_t *port);
void wf_verbs_listeners_close(struct wf_verbs *t);
/* A request has arrived at a listener; `id` is the connection manager's, `data` its private data.
 */
void wf_verbs_request(struct wf_verbs *t, struct rdma_cm_id *id, const uint8_t *data,
		      size_t data_bytes);

/* verbs_grant.c: grants, and what a PUT may write. */
enum weft_status wf_verbs_grant(struct wf_conn *conn, const struct wf_grant *grant,
				struct wf_grant_key *out);
void wf_verbs_release(struct wf_conn *conn, uint32_t slot);
void wf_verbs_access_close(struct wf_verbs_conn *c);
/* Binds windows that waited for their region or for room, as far as possible: the end of either
 * wait makes the connection ready, and nothing else is posted before. */
void wf_verbs_access_bind(struct wf_verbs_conn *c);
/* Open the PUT that immediate data, or a frame, announces. */
enum weft_status wf_verbs_put_notice(struct wf_verbs_conn *c, uint32_t tag,
				     struct wf_landing *out) WEFT_MUST_CHECK;
enum weft_status wf_verbs_put_claim(struct wf_verbs_conn *c, const struct wf_head *head,
				    struct wf_landing *out) WEFT_MUST_CHECK;

/* verbs_send.c */
enum weft_status wf_verbs_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
			       unsigned *taken);
/* Queues a frame of this backend's own. */
void wf_verbs_send_frame(struct wf_verbs_conn *c, enum wf_verbs_frame_kind kind, const void *body,
			 size_t bytes);
/* Posts to the device what credits and slots allow; nothing while windows wait to be bound. */
void wf_verbs_pump(struct wf_verbs_conn *c);
/* Returns credits, if they are due. */
void wf_verbs_return_credits(struct wf_verbs_conn *c);
/* Probes the peer's device; not on iWARP. */
void wf_verbs_ask_alive(struct wf_verbs_conn *c);
bool wf_verbs_tx_idle(const struct wf_verbs_conn *c);
/* Delivers DONE for what is completed or, with LOST, for everything. */
void wf_verbs_emit_done(struct wf_verbs_conn *c, struct wf_events *events, enum weft_status status);
/* Polls send completions. Returns their number. */
unsigned wf_verbs_poll_send(struct wf_verbs_queues *q);
/* Posts the binding of a window to `mr`. Returns false if no slot is free. */
bool wf_verbs_bind(struct wf_verbs_conn *c, const struct wf_verbs_access *access,
		   struct ibv_mr *mr);
/* Waits briefly for the bindings that were posted. */
enum weft_status wf_verbs_bind_settle(struct wf_verbs_conn *c) WEFT_MUST_CHECK;

/* verbs_rx.c: receive buffers. */
/* Frees the buffers into which events pointed. */
void wf_verbs_rx_reclaim(struct wf_verbs *t);
/* Posts the waiting buffers of the queue from which `c` receives. */
void wf_verbs_rx_flush(struct wf_verbs_conn *c);
/* The same for a shared queue: connections that used its buffers may be gone, and no other can
 * receive without some. */
void wf_verbs_rx_flush_shared(struct wf_verbs_queues *q);
/* Allocates and posts a share of receive buffers for a connection. */
enum weft_status wf_verbs_rx_open(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* The link is closed: drops what was not delivered. */
void wf_verbs_rx_drop(struct wf_verbs_conn *c);
/* The link is closed: deregisters its own buffers, which are freed when it leaves the device. */
void wf_verbs_rx_close(struct wf_verbs_conn *c);
void wf_verbs_rx_leave(struct wf_verbs_conn *c);
/* Frees the chunks of shared queues that are closed. */
void wf_verbs_chunks_free(const struct wf_verbs_queues *q);
/* Creates the table of a device that is being opened, for `max` chunks. */
enum weft_status wf_verbs_chunks_open(struct wf_verbs_device *dev, uint32_t max) WEFT_MUST_CHECK;
void wf_verbs_chunks_close(struct wf_verbs_device *dev);

/* verbs_recv.c */
/* Polls receive completions. Returns their number. */
unsigned wf_verbs_poll_receive(struct wf_verbs_queues *q);
/* Polls all that there are now. */
void wf_verbs_poll_receive_all(struct wf_verbs_queues *q);
/* Delivers frames; with `discard` it handles only frames for this end itself. */
void wf_verbs_receive(struct wf_verbs_conn *c, struct wf_events *events, bool discard);
