/* SPDX-License-Identifier: Apache-2.0 */
/* fake_internal: between the files of the fake. Thread: one, but for fake_memory.c. */
#pragma once

#include <stdatomic.h>

#include "base/assert.h"
#include "base/env.h"
#include "fake.h"

#define FAKE_QPS_MAX 1024u
#define FAKE_INLINE_MAX 256u

/* ---- fake_habits.c: kind, chance, clock, and what there is ---- */

const struct fake_habits *fake_now_is(void);
/* True so many times in `of`. */
bool fake_chance(uint32_t rate, uint32_t of);
/* What a registration takes, on the helper. */
void fake_register_takes(uint64_t bytes);
/* Up to `most`; 0 where there are no knobs. */
uint64_t fake_draw(uint64_t most);
const struct fake_knobs *fake_knobs_now(void);
/* One of the breaks of the knobs is due. */
bool fake_breaks(uint32_t per_million);
/* A call that makes something fails; errno is ENOMEM. */
bool fake_nomem(void);

uint64_t fake_now_ns(void);
/* A call took a moment of the device. */
void fake_pass(void);
/* Somebody asks in vain for as long as the protocol says, and not for no time at all. */
bool fake_takes_time(void);
void fake_due(uint64_t at_ns);
void *fake_self(void);
/* A descriptor of `owner` (an eventfd) becomes readable. */
void fake_ring(int fd, void *owner);

/* What was made of something, and is not destroyed: what this is a part of cannot go. */
struct fake_holds {
	_Atomic unsigned count; /* the helper registers, too */
};

void fake_hold(struct fake_holds *holds);
void fake_let_go(struct fake_holds *holds);
bool fake_is_held(const struct fake_holds *holds);

enum fake_thing {
	FAKE_CONTEXT,
	FAKE_DOMAIN,
	FAKE_REGION,
	FAKE_WINDOW,
	FAKE_CHANNEL,
	FAKE_CQ,
	FAKE_SRQ,
	FAKE_QP,
	FAKE_CM_CHANNEL,
	FAKE_ID,
	FAKE_THINGS,
};

/* One more, zeroed, or NULL with ENOMEM: there is no memory by the knobs. */
void *fake_make(enum fake_thing thing, size_t bytes);
void fake_made(enum fake_thing thing);
void fake_unmade(enum fake_thing thing);
/* Lock so much memory of queues, or of a region; false: ENOMEM. */
bool fake_lock(uint64_t bytes, bool queue);
void fake_unlock(uint64_t bytes, bool queue);

/* ---- fake_memory.c ---- */

/* Where the bytes are; NULL: nowhere that this key leads to. `to` is the queue pair that they come
 * in through; NULL: of this end itself. */
uint8_t *fake_find(uint32_t key, uint64_t at, uint64_t bytes, const struct ibv_qp *to);
void fake_bind(const struct ibv_send_wr *wr, const struct ibv_qp *qp);
/* What queue pairs are made in. */
struct fake_holds *fake_domain_holds(struct ibv_pd *pd);
void fake_memory_reset(void);

/* ---- fake_queues.c ---- */

struct fake_receive {
	uint64_t wr_id;
	uint8_t *data;
	uint32_t bytes;
};

struct fake_receives {
	struct fake_receive *at;
	unsigned head, count, depth;
	unsigned completed; /* and not polled */
};

struct fake_entry {
	struct ibv_wc wc;
	uint64_t at_ns;               /* it can be polled then */
	struct fake_receives *source; /* of a reception; NULL: of a work request */
	uint64_t position;            /* of a work request: those up to it are over */
};

struct fake_cq {
	struct ibv_cq cq; /* first */
	struct fake_cq *next;
	void *owner;
	struct fake_entry *at;
	unsigned head, count, depth;
	unsigned announced; /* of them, those that have come */
	unsigned users;     /* queue pairs, twice where both are one */
	bool armed, told, broken;
	unsigned unacked; /* events that were read */
};

struct fake_srq {
	struct ibv_srq srq; /* first */
	struct fake_receives receives;
	uint64_t locked;
};

/* A work request, as it was posted. */
struct fake_work {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	bool memory; /* it has one piece */
	bool nagged; /* it was told to come again once */
	uint64_t ready_ns;
	uint8_t copy[FAKE_INLINE_MAX];
};

/* A WRITE that has arrived, and is not placed. */
struct fake_late {
	struct fake_late *next; /* the one before */
	uint8_t *to;
	uint32_t bytes;
	uint8_t data[];
};

struct fake_qp {
	struct ibv_qp qp; /* first */
	struct fake_receives own;
	uint32_t peer; /* number */
	uint8_t sl;
	enum ibv_qp_state state;
	uint8_t timeout, retry_count, rnr_retry, rnr_timer;
	unsigned rnr_left;
	uint64_t silent_ns; /* the peer is silent: when this end gives up; 0 */
	bool cut;
	bool asks;              /* the first work request is on its way */
	struct fake_work *work; /* [depth] */
	unsigned head, count, depth;
	uint64_t posted, released; /* work requests; those whose slots are free again */
	uint64_t last_ns;          /* when its last completion of a reception can be polled */
	struct fake_late *late;
	uint64_t locked;
	unsigned unacked; /* events that were read */
};

extern struct fake_qp *fake_qp_of[FAKE_QPS_MAX];

struct fake_receives *fake_receives_of(struct fake_qp *qp);
void fake_complete(struct ibv_cq *cq, const struct fake_entry *entry);
void fake_queues_turn(uint64_t now_ns);
void fake_queues_reset(void);
void fake_queues_fill(struct wf_verbs_lib *lib, struct ibv_context_ops *ops);

/* ---- fake_wire.c ---- */

/* What a work request brings to the other end. */
struct fake_packet {
	enum ibv_wr_opcode opcode;
	__be32 imm_data;
	uint32_t rkey;
	uint32_t bytes;
	uint64_t remote_addr;
	const uint8_t *data; /* NULL: what the key led to is not there */
};

/* What becomes of it there. */
enum fake_answer {
	FAKE_TAKEN,
	FAKE_NAGGED,  /* to come again, though there is a buffer */
	FAKE_DRY,     /* there is no buffer */
	FAKE_REFUSED, /* the queue pair there is in error by it */
	FAKE_SILENT,  /* nobody answers */
	FAKE_LATER,   /* fake_answered says it */
};

enum fake_answer fake_arrive(struct fake_qp *to, const struct fake_packet *packet);
void fake_answered(struct fake_qp *qp, enum fake_answer answer);

int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* To the error state: what was posted is flushed. */
void fake_qp_error(struct fake_qp *qp);
/* What has arrived at it is placed. */
void fake_place(struct fake_qp *qp);
void fake_place_all(void);
void fake_wire_turn(uint64_t now_ns);

/* ---- fake_peer.c: the other end, in this process ---- */

/* Something that is sent now would get there. */
bool fake_reaches(const struct fake_qp *qp);
enum fake_answer fake_carry(struct fake_qp *qp, const struct fake_packet *packet);
/* iWARP: the stream of a queue pair has ended, and with it the peer's. */
void fake_part(struct fake_qp *qp);

/* ---- fake_device.c ---- */

/* An event of the device that `qp` is on (`qp` is what it concerns), or of all of them (NULL). */
void fake_tell(struct ibv_context *context, const struct ibv_async_event *event, uint64_t at_ns);
/* Nothing goes out of it or comes in any more. */
bool fake_is_dead(const struct ibv_context *context);
/* Whoever was told that it failed leaves it: nobody asks for what is in it. */
void fake_leave(struct ibv_context *context);
bool fake_is_left(const struct ibv_context *context);
/* An identifier of `owner` says that its device was removed. Whoever had opened the one that came
 * in its stead by then leaves that, too: by name it is the same. */
void fake_device_told_removed(const void *owner);
/* Its port is down until then; 0: it is not. */
uint64_t fake_down_until_ns(const struct ibv_context *context);
/* A work request of `qp` went by: perhaps something breaks. */
void fake_maybe_break(struct fake_qp *qp);
struct fake_holds *fake_device_holds(struct ibv_context *context);
/* It says of itself what it is. Before anybody has it: whoever reads that holds no lock. */
void fake_device_know_kind(void);
/* It is removed from the host of `owner`. */
void fake_device_remove(const void *owner);
/* Its port there goes down, and stays there, or is up. */
void fake_device_port(const void *owner, bool up);
/* Events of it are never read. */
void fake_forget_qp(const struct ibv_qp *qp);
void fake_device_turn(uint64_t now_ns);
void fake_device_reset(void);
void fake_device_fill(struct wf_verbs_lib *lib);
void fake_memory_fill(struct wf_verbs_lib *lib, struct ibv_context_ops *ops);
extern struct ibv_context fake_cm_context;
extern struct ibv_context_ops fake_ops;

/* ---- fake_cm.c ---- */

#define FAKE_IDS_MAX 1024u
/* Why a request is rejected. */
#define FAKE_REASON_NOBODY 8    /* invalid service */
#define FAKE_REASON_STALE 10    /* stale connection */
#define FAKE_REASON_CONSUMER 28 /* by who was asked */
/* Of private data: what is padded on InfiniBand is padded here. */
#define FAKE_REQUEST_BYTES 56u

struct fake_id {
	struct rdma_cm_id id; /* first */
	void *owner;
	void *far; /* the other end, as fake_meet.c has it; NULL: none, or no more */
	bool listens, accepted, withdrawn, rejected, disconnected;
	uint32_t qp_num; /* of its end */
	uint8_t tos;
	unsigned unacked; /* events that were read */
};

extern struct fake_id *fake_id_of[FAKE_IDS_MAX];

__be16 *fake_cm_port(struct sockaddr_storage *address);
void fake_cm_tell(struct fake_id *id, enum rdma_cm_event_type type, int status, const void *data,
		  size_t bytes);
/* A request of who is at `from`; show it when its far end is known. */
struct fake_id *fake_cm_incoming(const struct fake_id *listener,
				 const struct sockaddr_storage *from);
void fake_cm_show(struct fake_id *incoming, struct fake_id *listener, const void *data,
		  size_t bytes);
/* A datagram does not arrive. On iWARP there are none. */
bool fake_cm_is_lost(void);
void fake_cm_fill(struct wf_verbs_lib *lib);
/* iWARP: the stream of a queue pair has ended. */
void fake_cm_ended(uint32_t qp_num);
/* The device that identifiers of `owner` are bound to is removed. */
void fake_cm_removed(const void *owner);
void fake_cm_turn(uint64_t now_ns);
void fake_cm_reset(void);

/* ---- fake_meet.c: how identifiers find each other, in this process ---- */

void fake_meet_fill(struct wf_verbs_lib *lib);
/* To the far end. */
void fake_meet_disconnect(struct fake_id *id);
/* An identifier is destroyed: its far end hears what it has to. */
void fake_meet_leave(struct fake_id *id);
/* Of the far end; 0: there is none. */
uint32_t fake_meet_qp_num(const struct fake_id *id);
void fake_meet_reset(void);
