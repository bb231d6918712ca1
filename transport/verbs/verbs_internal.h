/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_internal: what the files of the verbs backend share.
 *
 * A connection is a queue pair (RC) that rdma_cm sets up. Each transport opens its devices for
 * itself, so that lanes share nothing: one protection domain, two completion queues, one shared
 * receive queue a device. Thread: the transport's owner, but for the run of a task. */
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

#define WF_VERBS_DEVICES_MAX 8u   /* that one transport uses */
#define WF_VERBS_LISTENERS_MAX 8u /* a name may have several addresses */
#define WF_VERBS_CONNS_MAX 65536u /* their numbers have 16 bits in that of a work request */
/* Frames without a credit that a peer may have on the way. A peer returns credits when it has half
 * of them, so two are under way at most: three halves would be more than were given. */
#define WF_VERBS_CONTROL_MAX 4u
#define WF_VERBS_RX_IDX_BITS 12u /* of a buffer within its chunk */
#define WF_VERBS_RX_BYTES (WF_VERBS_FRAME_BYTES + WF_MSG_BODY_MAX) /* of a receive buffer */
#define WF_VERBS_RING_BYTES (128u << 10) /* messages taken and not yet sent, per connection */
#define WF_VERBS_CREDIT_FRAMES 8u        /* places for frames beside the queue */
#define WF_VERBS_BATCH 16u               /* work requests of one call of the device */
#define WF_VERBS_POLL 16u                /* completions of one call */
#define WF_VERBS_POLL_MAX 256u           /* completions of one queue in one poll */
#define WF_VERBS_QUEUES_CONNS 64u        /* connections that share completion queues */
#define WF_VERBS_BUCKETS 256u            /* of queue pair numbers; a power of two */
#define WF_VERBS_INTERNAL_OPS 4u         /* START, HELLO, verdict, CLOSE */
#define WF_VERBS_REPEAT_NS WF_NS_PER_S   /* a request is not made again before */
#define WF_VERBS_STILL_NS WF_NS_PER_S    /* no poll for so long: this end stood still */
#define WF_VERBS_LOOK_NS WF_NS_PER_MS    /* how often a busy transport looks at its descriptors */
/* A queue pair in error says less than the connection manager: so long its word is waited for. */
#define WF_VERBS_VERDICT_NS (100 * WF_NS_PER_MS)
/* The kernel keeps to itself that a peer withdrew its request, so it is asked so often. */
#define WF_VERBS_WITHDRAWN_NS (20 * WF_NS_PER_MS)
/* Longest wait for a memory window that is being bound. */
#define WF_VERBS_BIND_NS (10 * WF_NS_PER_MS)
/* Bound of what a device takes to tell of all that is left of a queue pair in error. */
#define WF_VERBS_DRAINED_NS (100 * WF_NS_PER_MS)
/* Which so many ends in a row did not bring: from then on it is not waited for. */
#define WF_VERBS_UNDRAINED_MAX 3u
/* Queues that go with their last connection, of a device at a time. */
#define WF_VERBS_RETIRED_MAX 3u
/* There are devices that lose an event now and then: who sleeps while there are connections looks
 * at the queues so often without one, and an event that is owed for so long is lost. Ten looks a
 * second are a few hundred microseconds of a core. */
#define WF_VERBS_EVENT_NS (100 * WF_NS_PER_MS)

struct wf_verbs;
struct wf_verbs_conn;
struct wf_verbs_queues;
struct wf_verbs_registration;

/* ---- receive buffers ---- */

struct wf_verbs_rx {
	struct wf_verbs_rx *next;
	struct wf_verbs_chunk *chunk;
	struct wf_verbs_conn *conn; /* whose frame it holds; NULL: nobody's any more */
	uint8_t *data;              /* WF_VERBS_RX_BYTES */
	uint32_t bytes;
	uint32_t tag; /* notice: of the PUT */
	bool notice;  /* an immediate came, and the buffer is empty */
	bool counted; /* it needed a credit */
	struct wf_verbs_frame frame;
};

/* The receive buffers that a connection brings with it; with a shared queue they stay when it goes,
 * and the next one brings none. */
struct wf_verbs_chunk {
	struct wf_verbs_queues *queues;
	struct wf_verbs_conn *conn; /* NULL: of the shared queue */
	uint32_t idx, generation;   /* in the device's table; which of those that were there */
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

/* What a device can, after the settings. */
struct wf_verbs_caps {
	bool iwarp;
	bool immediate;       /* WRITE with immediate data */
	bool window;          /* memory windows of type 2; else a domain per peer */
	bool shared_queue;    /* and its buffers may be used by all our queue pairs */
	bool window_is_loose; /* writes are held against the region behind it, not against its
				 bounds */
	bool query_is_true;   /* query_qp tells the state */
	bool odd_offsets;     /* see open_filler in verbs_device.c */
	bool own_addresses;   /* a region may have other addresses than the process gives it */
	bool says_last;       /* an event says when a queue pair takes no more shared buffers */
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
	uint64_t owed_ns; /* something completed while it was armed, and no event came since; 0 */
};

/* The queues that some connections of a device have in common; as many as there are connections
 * for.
 */
struct wf_verbs_queues {
	struct wf_verbs_device *dev;
	struct wf_verbs_queues *next; /* of the transport's */
	struct wf_verbs_cq send, receive;
	struct ibv_srq *srq;  /* NULL: each connection has a queue of its own */
	bool send_waits;      /* the last poll left the send completions out */
	bool retired;         /* shared queue: buffers may be missing; no new connections */
	uint32_t conn_count;  /* at most caps.queues_share */
	uint32_t shares_used; /* shared queue: connections that it has buffers for */
	struct wf_verbs_rx_list fresh; /* shared queue: buffers to be posted */
};

/* The queues of a device. Written by verbs_queues.c. */
struct wf_verbs_queue_table {
	struct wf_verbs_queues **at; /* [max], the first `count` are there */
	uint32_t count, max;
	uint32_t retired_count; /* of them; at most WF_VERBS_RETIRED_MAX */
};

/* The chunks of receive buffers of a device, by what work requests say. Written by verbs_rx.c. */
struct wf_verbs_chunk_table {
	struct wf_verbs_chunk **at; /* [max], NULL: free */
	uint32_t count, max;
	uint32_t generation; /* of the last that came */
};

struct wf_verbs_device {
	struct wf_verbs *t;
	char name[WF_VERBS_DEVICE_BYTES];
	struct ibv_context *context;
	struct wf_verbs_caps caps;
	int vector;            /* of its completion queues */
	uint32_t inline_bytes; /* what the first queue pair was given */
	bool inline_known;     /* there was one */
	bool gone;             /* fatal or removed: no new connections */
	struct ibv_pd *pd;
	struct wf_loop_source channel_source, async_source;
	struct ibv_comp_channel *channel;
	struct ibv_cq *filler; /* nothing completes there */
	struct wf_verbs_queue_table queues;
	/* Of the transport's regions, in `pd`; NULL: none, or under way. */
	struct ibv_mr *region_mr[WF_REGIONS_MAX];
	unsigned registering; /* on the helper thread: it cannot be closed */
	unsigned undrained;   /* queue pairs in a row whose end it did not tell */
	struct wf_verbs_chunk_table chunks;
	uint32_t conn_count;
	struct wf_verbs_conn *bucket[WF_VERBS_BUCKETS]; /* by number of the queue pair */
};

/* ---- connections ---- */

struct wf_verbs_listener {
	struct rdma_cm_id *id; /* NULL: it has gone with its device */
	char at[WF_ADDRESS_TEXT_BYTES];
};

/* How far an attempt has come, of a connection in state CONNECTING. */
enum wf_verbs_stage {
	WF_VERBS_RESOLVING,  /* the helper thread looks the name up */
	WF_VERBS_ADDRESSING, /* rdma_cm looks for a device and the neighbour */
	WF_VERBS_ROUTING,    /* and for the path */
	WF_VERBS_PREPARING,  /* regions are being registered */
	WF_VERBS_REQUESTING, /* the request is under way */
};

/* An operation that was taken, or a frame of this backend's own. */
struct wf_verbs_entry {
	uint64_t cookie;
	enum wf_verbs_frame_kind kind;
	bool internal;  /* nobody waits for its DONE */
	bool claim;     /* PUT: a frame says what it is; else an immediate says the tag */
	bool unwritten; /* PUT: it would be refused, so the bytes stay here */
	bool keyed;     /* PUT: lkey is known */
	const uint8_t *src;
	uint64_t bytes;   /* of the PUT, or of head and body */
	uint64_t written; /* PUT: bytes that are posted */
	uint64_t remote;  /* PUT: address there */
	uint32_t rkey, lkey, tag, region;
	uint64_t ring_at, ring_end; /* of the frame; free up to ring_end when it is done */
	uint64_t last;              /* position of its last work request */
};

/* taken >= posted >= done; entry i is at i % entry_count, a power of two. */
struct wf_verbs_tx {
	struct wf_verbs_entry *entry; /* [entry_count] */
	uint32_t entry_count;
	uint64_t taken, posted, done;
	uint64_t user_taken, user_done; /* of them, operations of the caller */
	uint8_t *ring;                  /* WF_VERBS_RING_BYTES, and CREDIT frames behind */
	struct ibv_mr *mr;
	uint64_t ring_head, ring_tail; /* taken up to head, free from tail; positions only grow */
	struct wf_verbs_sq sq;
	uint32_t frames_sent; /* that needed a credit */
	uint32_t frames_returned;
	uint64_t credit_last[WF_VERBS_CREDIT_FRAMES]; /* position of the frame at that place, + 1 */
	unsigned credit_next;
	uint64_t put_bytes;   /* of PUTs whose notice does not say their length */
	uint64_t progress_ns; /* when something was last completed or returned; WF_NEVER: since
				   then the queue was idle, and the clock was not looked at */
};

struct wf_verbs_rx_state {
	struct wf_verbs_chunk *chunk;  /* without a shared queue; else NULL */
	struct wf_verbs_rx_list list;  /* completed, and not delivered */
	struct wf_verbs_rx_list fresh; /* without a shared queue: to be posted */
	uint32_t posted;               /* the same: with the device */
	uint32_t frames_taken;         /* that needed a credit */
	uint32_t frames_returned;      /* their buffers are posted again */
	uint32_t returned_said;        /* what the peer knows of it */
	uint64_t put_bytes;            /* as the peer said it last */
	uint64_t heard_ns;             /* when the peer was last heard */
};

/* A connect that blocks. The connection is not freed before it has ended. */
struct wf_verbs_task {
	struct wf_task task;
	bool running; /* owner's view */
	int error;    /* errno */
	const struct wf_verbs_lib *lib;
	struct rdma_cm_id *id;
	struct rdma_conn_param param;
	uint8_t data[WF_VERBS_PRIVATE_MAX];
};

/* What lets the peer write into one grant. */
struct wf_verbs_access {
	struct ibv_mw *window; /* or */
	struct ibv_mr *mr;
	/* The window is to be bound as soon as its region is registered. */
	bool waits;
	uint32_t region, rkey;
	uint64_t at, bytes;
};

/* Of all grants of a connection. Written by verbs_grant.c. */
struct wf_verbs_access_table {
	struct wf_verbs_access of[WF_GRANTS_MAX]; /* as in the connection's grants */
	unsigned waiting;                         /* windows that are still to be bound */
};

/* The queue pair of a connection and what it stands on. Written by verbs_link.c, but for the list
 * of verbs_device.c. */
struct wf_verbs_link {
	struct rdma_cm_id *id;
	struct wf_verbs_device *dev; /* NULL until the link was opened once */
	struct wf_verbs_queues *queues;
	struct ibv_pd *pd; /* the device's, or the connection's own */
	struct ibv_qp *qp;
	uint32_t qp_num;
	struct wf_verbs_conn *bucket_next; /* of the device's connections */
	bool linked;    /* the connection manager says, or said, that both ends are connected */
	bool receives;  /* it was ready to: what came in is in the completion queue */
	bool last_said; /* it takes no more buffers of the shared queue, the device says */
	bool undrained; /* the device was waited for in vain */
};

/* The transport's regions, for one connection. Written by verbs_register.c. */
struct wf_verbs_own_regions {
	struct ibv_mr *mr[WF_REGIONS_MAX]; /* where it has a domain of its own */
	char why[WF_WHY_BYTES];            /* why one cannot be registered for it; "": all can */
};

/* The connecting end's attempt, which goes through its stages once for each address. Written by
 * verbs_connect.c. */
struct wf_verbs_attempt {
	enum wf_verbs_stage stage;
	struct wf_verbs_task task;
	char device[WF_VERBS_DEVICE_BYTES]; /* to go out of; "": any */
	struct wf_look_up *look_up;         /* NULL when the addresses are here */
	struct wf_addresses addresses;
	unsigned address_next;
	bool repeated;         /* the request was made a second time */
	uint64_t preparing_ns; /* since when, in PREPARING */
};

/* What the peer says of itself in its request or reply. Written by wf_verbs_conn_adopt. */
struct wf_verbs_peer {
	uint32_t mark;          /* in the keys that it makes for this connection */
	bool takes_immediate;   /* a PUT may tell of itself */
	uint32_t credits;       /* frames that may be on the way to it */
	uint64_t put_bytes_max; /* of one PUT to it */
};

/* The end of a connection: why, and what it waits for. Written by verbs_conn.c. */
struct wf_verbs_end {
	bool suspected;     /* the queue pair is in error; why is found out at the next visit */
	bool verdict_waits; /* ENDING: the connection manager may still say why */
	bool drains;        /* ENDING: the device had not told of all when it began */
	enum weft_status status;
	char why[WF_WHY_BYTES];
};

struct wf_verbs_conn {
	struct wf_life life; /* first */
	bool last_queued;    /* CLOSE or REFUSES */
	bool may_send;       /* connecting end: established; accepting end: START came */
	bool peer_closed;    /* its CLOSE came while this end drains */
	bool stood_still;    /* an attempt was given the time back in which nobody polled */
	struct wf_verbs *t;
	uint32_t idx, generation; /* in the transport's table; which of those that were there */
	uint32_t mark;            /* in the keys that this end makes for it */

	struct wf_verbs_link link;
	struct wf_verbs_own_regions regions;
	struct wf_verbs_access_table access;
	struct wf_verbs_peer peer;
	struct wf_verbs_tx tx;
	struct wf_verbs_rx_state rx;

	uint8_t blob[WF_BLOB_ROOM]; /* hello, then verdict */
	size_t blob_bytes;

	uint64_t show_ns; /* accepting end: it is shown then at the latest */

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
	/* Reads the events of a device; set at open, for who opens devices stands below. */
	void (*async_notify)(struct wf_loop_source *source, uint32_t mask);
	struct wf_verbs_queues *queues;              /* of all of them */
	struct wf_verbs_registration *registrations; /* under way */
	struct wf_look_up *orphans;                  /* of those that nobody waits for */
	struct wf_verbs_conn **conn; /* [of `places`], by what work requests say; NULL: free */
	uint32_t conn_generation;

	struct wf_verbs_rx_list lent; /* events of the last poll point into them */
	struct wf_verbs_batch batch;

	/* Look at the descriptors then. The loop's time is that of the poll, or of one shortly
	 * before. */
	uint64_t look_ns;
	bool event_lost; /* and that was said */
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

/* Of the list of all. */
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

/* ---- what others learn of a link ---- */

/* Both ends are connected: the connection manager says so, or the peer's first frame. */
static inline void
wf_verbs_link_connected(struct wf_verbs_conn *c)
{
	c->link.linked = true;
}

/* The kernel has brought the queue pair to where it receives; else wf_verbs_link_start does. */
static inline void
wf_verbs_link_receives(struct wf_verbs_conn *c)
{
	c->link.receives = true;
}

/* The device says that the queue pair takes no more buffers of the shared queue. */
static inline void
wf_verbs_link_ended(struct wf_verbs_conn *c)
{
	c->link.last_said = true;
}

/* ---- receive buffers ---- */

/* The buffer that a work request of the device stands for; NULL: there is none such. */
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
		rx->conn->rx.frames_returned++; /* it is posted before the peer hears of it */
	}
	rx->counted = false;
	rx->conn = NULL;
	wf_verbs_rx_push(chunk->conn == NULL ? &chunk->queues->fresh : &chunk->conn->rx.fresh, rx);
}

/* Buffers are posted in lists: so many may wait for more. What a peer may send without a credit,
 * and may be on its way, has buffers without them; what needs one finds a buffer, for no credit is
 * told of before its buffer is posted. */
#define WF_VERBS_FRESH_MAX (WF_VERBS_CONTROL_MAX - 2u)

static inline bool
wf_verbs_rx_is_due(const struct wf_verbs_rx_list *fresh)
{
	return fresh->count > WF_VERBS_FRESH_MAX;
}

/* verbs_task.c: rdma_connect, which may block. */
/* Here, and now: task->error says what came of it. */
void wf_verbs_task_run(struct wf_verbs_task *task);
/* On the helper thread. */
enum weft_status wf_verbs_task_start(struct wf_verbs_task *task, struct wf_env *env,
				     int wake_fd) WEFT_MUST_CHECK;
/* True once, when it has run there. */
bool wf_verbs_task_ended(struct wf_verbs_task *task);
void wf_verbs_task_await(struct wf_verbs_task *task, struct wf_env *env);

/* verbs_conn.c: how a connection begins and ends. */
/* What is not zero in a new connection. */
void wf_verbs_conn_init(struct wf_verbs_conn *c);
/* What the private data of the peer says of it. */
void wf_verbs_conn_adopt(struct wf_verbs_conn *c, const struct wf_verbs_private *p);
/* The private data of this end. */
struct wf_verbs_private wf_verbs_private_of(const struct wf_verbs_conn *c,
					    enum wf_verbs_private_type type);
/* Who is connected waits here until the call that made it so has returned on the helper thread. */
void wf_verbs_link_await(struct wf_verbs_conn *c);
/* Nothing moves any more; what has come can still be polled. */
void wf_verbs_link_stop(struct wf_verbs_conn *c);
/* It was stopped, and the device has told of all that it had: what is polled behind this is the
 * last. True also where that is not waited for. */
bool wf_verbs_link_is_drained(const struct wf_verbs_conn *c);
/* The queue pair is in error, and this end did not put it there: this device refused what the peer
 * sent. false also where the device does not tell. */
bool wf_verbs_link_was_violated(const struct wf_verbs_conn *c);
/* Deliver what came before, then down. */
void wf_verbs_conn_end(struct wf_verbs_conn *c, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The queue pair is in error, and nobody knows why yet. */
void wf_verbs_conn_suspect(struct wf_verbs_conn *c);
/* That queue pair is closed, or is being judged. */
void wf_verbs_conn_clear(struct wf_verbs_conn *c);
/* It has failed, and nothing that was polled says why: the device may, or the connection manager
 * may still. */
void wf_verbs_conn_judge(struct wf_verbs_conn *c);
/* The connection manager says that the peer has gone: the verdict that an end may wait for. */
void wf_verbs_conn_left(struct wf_verbs_conn *c);
/* No more of it: its connections end. */
void wf_verbs_device_lost(struct wf_verbs_device *dev, const char *why);

/* verbs_device.c: devices, and what a transport has of them. */
/* The device that `id` was bound to, opened if need be. */
enum weft_status wf_verbs_device_get(struct wf_verbs *t, const struct rdma_cm_id *id,
				     struct wf_verbs_device **out) WEFT_MUST_CHECK;
void wf_verbs_device_close(struct wf_verbs_device *dev);
/* Its connections, by the number of their queue pair. */
void wf_verbs_device_add(struct wf_verbs_device *dev, struct wf_verbs_conn *c);
void wf_verbs_device_remove(struct wf_verbs_device *dev, struct wf_verbs_conn *c);
struct wf_verbs_conn *wf_verbs_device_find(const struct wf_verbs_device *dev, uint32_t qp_num);
/* Make librdmacm close the devices that it has opened, and that are gone: their removal waits. */
void wf_verbs_devices_forget(const struct wf_verbs *t);

/* The completion vector of a thread that is bound to `cpu` (-1: to none), of `count`. */
int wf_verbs_vector(const struct wf_verbs_settings *settings, int cpu, int count);

/* verbs_queues.c: queues of completions, and of receive buffers that all share. */
/* The tables of a device that is being opened; its connections are known to be caps.conn_max. */
enum weft_status wf_verbs_queues_open(struct wf_verbs_device *dev) WEFT_MUST_CHECK;
/* With all that are still there. */
void wf_verbs_queues_close(struct wf_verbs_device *dev);
/* Queues with room for one more connection. */
enum weft_status wf_verbs_queues_get(struct wf_verbs_device *dev,
				     struct wf_verbs_queues **out) WEFT_MUST_CHECK;
/* After the end of a queue pair that was not told in full: of the shared queue's buffers some may
 * never be heard of again. */
void wf_verbs_queues_retire(struct wf_verbs_queues *q);
/* Those retired ones that have no connection any more. */
void wf_verbs_queues_reap(struct wf_verbs_device *dev);
/* Read which completion queues had an event. */
void wf_verbs_queues_read(struct wf_verbs_device *dev);
/* Take up to WF_VERBS_POLL completions of `cq`. A device whose queue cannot be read is lost, and
 * has none. */
unsigned wf_verbs_queues_poll(struct wf_verbs_device *dev, struct ibv_cq *cq, struct ibv_wc *wc);

/* verbs_caps.c: what a device can. */
/* Reads no setting but the masks and sizes. */
enum weft_status wf_verbs_caps_read(struct wf_verbs_device *dev) WEFT_MUST_CHECK;
/* The entry of the table that connections of `family` should use; -1: none. */
int wf_verbs_gid_pick(const struct ibv_gid_entry *entries, unsigned count, int family);
/* The device's address that the settings choose, to bind a connection to. WEFT_UNAVAILABLE. */
enum weft_status wf_verbs_source_address(struct wf_verbs *t, const char *device, int family,
					 struct sockaddr_storage *out) WEFT_MUST_CHECK;

/* verbs_addresses.c */
/* Of the devices that the settings allow one cannot be opened by this process? WEFT_UNAVAILABLE
 * says which, why, and the remedy: the libraries say no more than that there is none. */
enum weft_status wf_verbs_rights(const struct wf_verbs_settings *settings) WEFT_MUST_CHECK;

/* verbs_memory.c: registering. */
/* May so much more be locked? WEFT_NOMEM says how much may, and the remedy. */
enum weft_status wf_verbs_memlock_check(uint64_t bytes, uint64_t locked_bytes,
					uint64_t limit_bytes) WEFT_MUST_CHECK;
/* The same, asked of the system, for the device. */
enum weft_status wf_verbs_memlock_room(const struct wf_verbs_device *dev,
				       uint64_t bytes) WEFT_MUST_CHECK;
/* The device did not make what the format says: records it with `err`, and where what may be locked
 * is limited, the limit and the remedy: queues are locked memory with most devices. */
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
/* What the device calls an address within a region: a peer that is told learns little of ours. */
uint64_t wf_verbs_iova(const struct wf_verbs_caps *caps, const void *region_base, const void *at);
/* Memory of this backend's own, under its own addresses. */
enum weft_status wf_verbs_register_own(struct wf_verbs_device *dev, struct ibv_pd *pd, void *base,
				       size_t bytes, struct ibv_mr **out) WEFT_MUST_CHECK;

/* verbs_register.c: the transport's regions, which PUTs are read from and windows are bound to. */
/* Begin to register what the device of `c`, or `c` itself, has not got. WEFT_NOMEM: memlock. */
enum weft_status wf_verbs_regions_start(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* The same, for a request that has no link yet: what its device will need for windows. */
enum weft_status wf_verbs_regions_begin(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* An incoming one is not shown yet: what it will be granted is being registered. */
bool wf_verbs_regions_hold_up(struct wf_verbs_conn *c);
/* Are all of them registered for `c`? WEFT_AGAIN: not yet; else why one cannot be. */
enum weft_status wf_verbs_regions_check(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* NULL: it is being registered. */
struct ibv_mr *wf_verbs_region_mr(struct wf_verbs_conn *c, uint32_t region);
/* Look which have ended. */
void wf_verbs_registrations_visit(struct wf_verbs *t);
/* The connection goes, or goes to another device: it has no region any more. True: its domain is in
 * use, and released later. */
bool wf_verbs_registrations_leave(struct wf_verbs_conn *c);
enum weft_status wf_verbs_region_add(struct wf_transport *transport, const struct wf_region *region,
				     uint32_t *out);
void wf_verbs_region_remove(struct wf_transport *transport, uint32_t region);

/* verbs_async.c: what a device reports besides completions. */
/* Read all that there is now, and act on it. */
void wf_verbs_async_read(struct wf_verbs_device *dev);
/* The same, for the loop. */
void wf_verbs_async_notify(struct wf_loop_source *source, uint32_t mask);

/* verbs_link.c: the queue pair of a connection and all that belongs to it. */
/* The identifier of a request. */
void wf_verbs_link_adopt(struct wf_verbs_conn *c, struct rdma_cm_id *id);
/* An identifier of its own. */
enum weft_status wf_verbs_link_begin(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* On the device of c->link.id. The queue pair is in state INIT, with its receive buffers posted. */
enum weft_status wf_verbs_link_open(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* To RTS, unless the kernel does that. */
enum weft_status wf_verbs_link_start(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* The request that c->link.id stands for has not been withdrawn. */
bool wf_verbs_link_is_asked(const struct wf_verbs_conn *c);
/* Take in what the device tells, but for receptions. */
void wf_verbs_link_look(struct wf_verbs_conn *c);
/* The device was waited for in vain. */
void wf_verbs_link_undrained(struct wf_verbs_conn *c);
/* Ends it, at once: no byte moves any more. Buffers of events stay. */
void wf_verbs_link_close(struct wf_verbs_conn *c);
/* The connection is about to be freed, or to go to another device: its link is closed. */
void wf_verbs_link_leave(struct wf_verbs_conn *c);

/* verbs_life.c: what a connection does in each state. */
extern const struct wf_life_ops wf_verbs_life_ops;
/* The connection manager says that the peer has gone. */
void wf_verbs_conn_gone(struct wf_verbs_conn *c);
/* One turn: whatever the state asks for. */
void wf_verbs_conn_visit(struct wf_verbs_conn *c, struct wf_events *events);
/* Nobody polled since then, which is no fault of the peer's: after half of peer_timeout its silence
 * begins to count anew, and a handshake under way gets that time back, once. */
void wf_verbs_conn_give_time(struct wf_verbs_conn *c, uint64_t since_ns);

/* verbs_answer.c: the accepting end, up to the answer. */
/* Send the verdict, by itself or with what makes the link. */
bool wf_verbs_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes);
/* Make the link and accept, or down. NULL, or too long: the verdict follows. */
void wf_verbs_accept_link(struct wf_verbs_conn *c, const void *verdict, size_t verdict_bytes);
/* Reject its request. */
void wf_verbs_deny(struct wf_verbs_conn *c, const char *why);
bool wf_verbs_may_show(struct wf_life *life);
void wf_verbs_shown(struct wf_life *life);

/* verbs_cm.c: events of the connection manager, which lead on to UP, or down. */
void wf_verbs_cm_read(struct wf_verbs *t);

/* verbs_connect.c */
enum weft_status wf_verbs_connect(struct wf_transport *transport, const struct wf_host *to,
				  const void *hello, size_t hello_bytes, void *user,
				  struct wf_conn **out);
/* Try the addresses that are left. */
void wf_verbs_connect_next(struct wf_verbs_conn *c, const char *why);
/* The request, or its answer, was lost, or was taken for an old one: make it once more, of a new
 * queue pair. False: that was done before, or is of no use. */
bool wf_verbs_connect_repeat(struct wf_verbs_conn *c, const char *why);
/* What the connection manager brings on the way. */
void wf_verbs_connect_address(struct wf_verbs_conn *c);
void wf_verbs_connect_route(struct wf_verbs_conn *c);
/* No name is looked up for it any more. */
void wf_verbs_connect_abandon(struct wf_verbs_conn *c);
/* Look whether the helper thread has finished. */
void wf_verbs_connect_visit(struct wf_verbs_conn *c);

/* verbs_listen.c */
enum weft_status wf_verbs_listen(struct wf_transport *transport, const struct wf_host *at,
				 uint16_t *port);
void wf_verbs_listeners_close(struct wf_verbs *t);
/* A request came in on a listener; `id` is the connection manager's, `data` what came with it. */
void wf_verbs_request(struct wf_verbs *t, struct rdma_cm_id *id, const uint8_t *data,
		      size_t data_bytes);

/* verbs_grant.c: grants, and what a PUT may touch. */
enum weft_status wf_verbs_grant(struct wf_conn *conn, const struct wf_grant *grant,
				struct wf_grant_key *out);
void wf_verbs_release(struct wf_conn *conn, uint32_t slot);
void wf_verbs_access_close(struct wf_verbs_conn *c);
/* Bind what waited for its region or for room, as far as these are here now: the end of either
 * makes the connection ready, and nothing else is posted before. */
void wf_verbs_access_bind(struct wf_verbs_conn *c);
/* A PUT that an immediate, or a frame, tells of. */
enum weft_status wf_verbs_put_notice(struct wf_verbs_conn *c, uint32_t tag,
				     struct wf_landing *out) WEFT_MUST_CHECK;
enum weft_status wf_verbs_put_claim(struct wf_verbs_conn *c, const struct wf_head *head,
				    struct wf_landing *out) WEFT_MUST_CHECK;

/* verbs_send.c */
enum weft_status wf_verbs_post(struct wf_conn *conn, const struct wf_op *ops, unsigned op_count,
			       unsigned *taken);
/* Queue a frame of this backend's own. */
void wf_verbs_send_frame(struct wf_verbs_conn *c, enum wf_verbs_frame_kind kind, const void *body,
			 size_t bytes);
/* Hand to the device what credits and slots allow; nothing while windows wait to be bound. */
void wf_verbs_pump(struct wf_verbs_conn *c);
/* Return credits, if it is time. */
void wf_verbs_return_credits(struct wf_verbs_conn *c);
/* Ask the peer's device whether it is there; not on iWARP. */
void wf_verbs_ask_alive(struct wf_verbs_conn *c);
bool wf_verbs_tx_idle(const struct wf_verbs_conn *c);
/* DONE for what is completed, or, with LOST, for everything. */
void wf_verbs_emit_done(struct wf_verbs_conn *c, struct wf_events *events, enum weft_status status);
/* Take in send completions. Returns how many there were. */
unsigned wf_verbs_poll_send(struct wf_verbs_queues *q);
/* Post the binding of a window to `mr`; false: no slot is free. */
bool wf_verbs_bind(struct wf_verbs_conn *c, const struct wf_verbs_access *access,
		   struct ibv_mr *mr);
/* Wait a moment for what was posted. */
enum weft_status wf_verbs_bind_settle(struct wf_verbs_conn *c) WEFT_MUST_CHECK;

/* verbs_rx.c: receive buffers. */
/* Those that events pointed into. */
void wf_verbs_rx_reclaim(struct wf_verbs *t);
/* Post what waits to be, of the queue that `c` receives from. */
void wf_verbs_rx_flush(struct wf_verbs_conn *c);
/* The same for a queue that all share: who took its buffers may be gone, and nobody else can come
 * before there are some. */
void wf_verbs_rx_flush_shared(struct wf_verbs_queues *q);
/* A share of receive buffers for a connection, posted. */
enum weft_status wf_verbs_rx_open(struct wf_verbs_conn *c) WEFT_MUST_CHECK;
/* The link is closed; what was not delivered is dropped. */
void wf_verbs_rx_drop(struct wf_verbs_conn *c);
/* The link is closed: its own buffers leave the domain, and are freed when it leaves the device. */
void wf_verbs_rx_close(struct wf_verbs_conn *c);
void wf_verbs_rx_leave(struct wf_verbs_conn *c);
/* Those that the queues which are closed had in common. */
void wf_verbs_chunks_free(const struct wf_verbs_queues *q);
/* The table of a device that is being opened, for `max` chunks. */
enum weft_status wf_verbs_chunks_open(struct wf_verbs_device *dev, uint32_t max) WEFT_MUST_CHECK;
void wf_verbs_chunks_close(struct wf_verbs_device *dev);

/* verbs_recv.c */
/* Take in receive completions. Returns how many there were. */
unsigned wf_verbs_poll_receive(struct wf_verbs_queues *q);
/* All of them that there are now. */
void wf_verbs_poll_receive_all(struct wf_verbs_queues *q);
/* Deliver; `discard`: nothing but what frames say to this end itself. */
void wf_verbs_receive(struct wf_verbs_conn *c, struct wf_events *events, bool discard);
