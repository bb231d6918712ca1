/* SPDX-License-Identifier: Apache-2.0 */
/* fake: libibverbs and librdmacm without a device, and as unkind as real ones. Two ends of a
 * process meet over queue pairs; every address leads to the device "fake0". fake_lib.c takes the
 * place of verbs_lib.c: link the fake into a program, and the backend "verbs" stands on it.
 * README.md of this folder says how it is built. Thread: one; regions come and go on the helper,
 * too, and are handed over with its task. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/verbs_lib.h"

/* ---- habits: what devices of a kind do ---- */

struct fake_habits {
	const char *name;
	bool iwarp;
	bool windows;       /* memory windows of type 2 */
	bool shared_queue;  /* shared receive queues */
	bool purges;        /* destroying a queue pair takes its completions out of the queues */
	bool says_last;     /* IBV_EVENT_QP_LAST_WQE_REACHED of those with a shared queue */
	bool first_piece;   /* a WRITE of no pieces of memory writes sg_list[0], if there is one */
	bool counts_queues; /* memory of queues counts as locked memory */
	bool any_order;     /* WRITEs are placed in any order up to the completion behind them */
	int poll_error;     /* what poll_cq gives of a queue that broke */
	uint32_t vendor_id;
	uint32_t inline_max; /* bytes */
	int cqe_max;         /* entries of a completion queue */
};

/* "kind" (whatever a program likes), then those of real devices; the last has no name. */
extern const struct fake_habits fake_habits[];

/* What is made from here on is of this kind. False: there is none of that name. */
bool fake_be(const char *name);

/* ---- knobs: what happens by chance ---- */

/* Faults of one seed. All zero: none. Times are the most that is drawn. */
struct fake_knobs {
	uint64_t seed;
	uint64_t work_ns;       /* until a work request is carried out */
	uint64_t completion_ns; /* until a completion can be polled, and those behind it */
	uint64_t cm_ns;         /* until an event of the connection manager can be read */
	uint64_t register_ns;   /* for a registration of more than 1 MiB, in a simulated world */
	uint32_t
		late_per_mille; /* WRITEs that are placed when their notice is polled, last first */
	uint32_t dry_per_mille; /* receptions that are told to come again (RNR NAK) */
	uint32_t unwoken_per_mille;  /* events of completions that do not come */
	uint32_t cm_lost_per_mille;  /* requests, replies and RTUs that do not arrive */
	uint32_t cm_twice_per_mille; /* events of a connection that come twice */
	uint32_t nomem_per_mille;    /* calls that make something, and fail (ENOMEM) */
	uint64_t nomem_at;           /* the so many-th of these calls fails; 0: none */
	/* Of a million work requests, those after which something breaks; so many at most. */
	uint32_t cut_per_million;    /* the wire between the two queue pairs: retry exceeded */
	uint32_t fatal_per_million;  /* the device, with IBV_EVENT_DEVICE_FATAL */
	uint32_t remove_per_million; /* the device is removed, and another one is there */
	uint32_t port_per_million;   /* the port is down for port_ns at most */
	uint32_t gid_per_million;    /* IBV_EVENT_GID_CHANGE, which breaks nothing */
	uint32_t poll_per_million;   /* a completion queue of the device */
	uint64_t port_ns;
	unsigned breaks_max;
};

/* Knobs of one seed: what real devices do now and then. Delays are so many times as long as is
 * usual, and so often is what is late, dry or not told; what is lost or breaks is `breaks` times as
 * frequent as is usual, and 0: nothing. */
void fake_draw_knobs(uint64_t seed, uint32_t delays, uint32_t breaks, struct fake_knobs *out);
void fake_turn_knobs(const struct fake_knobs *knobs); /* NULL: back to none */

/* What has happened since. */
struct fake_happened {
	uint64_t slow, late, dry, unwoken, cm_lost, cm_twice, nomem;
	uint64_t cuts, fatals, removals, ports, gids, polls;
};

extern struct fake_happened fake_happened;

/* ---- where it lives ---- */

/* A world of its own clock and processes; all of them may be called at any time. */
struct fake_host {
	uint64_t (*now_ns)(void);
	void *(*self)(void);             /* whose turn it is; what is made in it is its own */
	void (*wake)(void *self);        /* a descriptor of it has become readable */
	void (*alarm)(uint64_t at_ns);   /* call fake_turn then, or later */
	void (*task_takes)(uint64_t ns); /* the helper's task that runs; NULL: it does */
};

/* NULL: the system's clock, where what is due is found by the next call of any function. */
void fake_live_in(const struct fake_host *host);
/* Carry out what is due. */
void fake_turn(void);

/* ---- one device ---- */

/* What a device made from here on says of itself, and what befalls it once. */
struct fake_device {
	int vectors;               /* completion vectors */
	uint8_t speed, width;      /* of its port, coded as in InfiniBand */
	enum ibv_port_state state; /* of its port */
	uint8_t path_sl;           /* service level of the path that rdma_cm finds */
	unsigned lost_requests;    /* so many of the next ones do not arrive */
	unsigned stale_requests;   /* so many of the next ones are taken for older connections */
	unsigned lost_events;      /* so many of the next completions' events do not come */
	bool silent_last;          /* LAST_WQE_REACHED does not come */
	uint64_t memlock_bytes;    /* that can be locked; 0: any number */
};

extern struct fake_device fake_device;

/* What the backend asked for, and what it met. */
struct fake_seen {
	int vector;          /* of the last completion queue; -1: none yet */
	unsigned cq_count;   /* made */
	uint8_t sl;          /* of the last address vector */
	uint8_t tos;         /* of the last identifier; 0: none was set */
	unsigned send_calls; /* of post_send */
	unsigned recv_calls; /* of post_recv and post_srq_recv */
	unsigned work_requests;
	unsigned requests;      /* of connections */
	unsigned dry;           /* receptions that met an empty queue */
	unsigned unread;        /* completions in the queues of a queue pair that is destroyed */
	unsigned lost;          /* buffers of shared queues that nobody will ever hear of again */
	unsigned stale;         /* WRITEs of a piece of memory that nobody meant */
	uint64_t memlock_bytes; /* with so many, what could not be locked last would be */
};

extern struct fake_seen fake_seen;

/* All devices that are open now. */
void fake_break_polls(void);
void fake_say(enum ibv_event_type type);
void fake_break_ports(uint64_t span_ns);
/* The device that it is on. */
void fake_say_of(struct ibv_qp *qp, enum ibv_event_type type);
/* Buffers that are in the queue, or in completions of it that nobody has polled. */
unsigned fake_srq_left(const struct ibv_srq *srq);
unsigned fake_qp_left(const struct ibv_qp *qp);

/* ---- after a case ---- */

/* NULL: all that was made is gone, and no buffer is lost. Else what is not, in words. */
const char *fake_left_over(char *out, size_t bytes);
/* Begin anew: kind, no knobs, nothing seen. What was made and not destroyed is forgotten. */
void fake_reset(void);
