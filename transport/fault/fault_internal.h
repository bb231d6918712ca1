/* SPDX-License-Identifier: Apache-2.0 */
/* fault_internal: what the files of the wrapper share. Thread: the transport's owner. */
#pragma once

#include "base/rng.h"
#include "transport/events.h"
#include "transport/fault/fault.h"
#include "transport/ops.h"
#include "transport/places.h"

/* The most events held back at a time; above it the oldest are delivered early. */
#define WF_FAULT_HELD_MAX 1024u
#define WF_FAULT_BODIES_MAX 256u /* the most messages among them */

struct wf_fault_conn;

/* A message that is held back. */
struct wf_fault_body {
	struct wf_fault_body *next; /* list of free ones */
	struct wf_head head;
	uint8_t bytes[WF_MSG_BODY_MAX];
};

/* An event that is held back. */
struct wf_fault_held {
	/* Links in the list by time, or in that of the free or spent ones. */
	struct wf_fault_held *next, *prev;
	struct wf_fault_conn *conn;
	uint64_t due_ns;
	struct wf_event event;
	struct wf_fault_body *body; /* MSG */
};

struct wf_fault_hold {
	struct wf_fault_held *held;         /* [WF_FAULT_HELD_MAX] */
	struct wf_fault_body *body;         /* [WF_FAULT_BODIES_MAX] */
	struct wf_fault_held *free, *spent; /* spent: delivered, valid until the next poll */
	struct wf_fault_body *free_bodies;
	unsigned free_count, free_body_count;
	struct wf_fault_held *first, *last; /* by due_ns; equal ones in order of arrival */
};

/* The events of one connection that are held back. Written by fault_hold.c alone. */
struct wf_fault_kept {
	uint32_t count;            /* number of events, DOWN included */
	uint32_t ordered_count;    /* those that are not DONE */
	uint64_t ordered_ns;       /* a UP, MSG or PUT that arrives now is not due before this */
	uint64_t last_ns;          /* the latest due time: DOWN is not due before this */
	struct wf_fault_held down; /* the place that is reserved for DOWN */
	uint8_t up_blob[WF_BLOB_ROOM]; /* while UP is held back */
};

/* How a connection ended, as its DOWN will report it. Written by fault_conn.c alone. */
struct wf_fault_end {
	enum weft_status status;
	char why[WF_WHY_BYTES];
	size_t blob_bytes;
	uint8_t blob[WF_BLOB_ROOM];
};

/* One end, as the user sees it. */
struct wf_fault_conn {
	struct wf_conn base; /* first, so that it can be cast back */
	struct wf_fault *fault;
	struct wf_fault_conn *next, **prev_next; /* the transport's list */
	struct wf_place place;
	struct wf_conn *inner; /* its `user` points here; NULL: refused, or its DOWN has arrived */
	bool connecting;       /* made by connect */
	bool came_up;          /* the inner one is UP; the event may be held back */
	bool up;               /* as the user sees it */
	bool closing;          /* the user has disconnected or refused it */
	bool cut;              /* injected */
	bool gone;             /* DOWN was delivered; the next poll frees it */
	uint32_t op_count;     /* operations accepted whose DONE was not delivered */
	uint32_t slots_out;    /* PUTs into slots that were not released */
	char path_why[WF_WHY_BYTES];
	struct wf_fault_kept kept;
	struct wf_fault_end end;
};

struct wf_fault {
	struct wf_transport base; /* first, so that it can be cast back */
	struct wf_transport *inner;
	struct wf_transport_opts opts;
	char name[WF_FAULT_NAME_BYTES];
	struct wf_fault_spec spec;
	struct wf_rng rng; /* the only source of randomness */
	uint64_t open_ns;
	uint64_t now_ns;                /* time of this call */
	uint64_t stall_until_ns;        /* 0: none */
	uint64_t seen[WF_FAULT_POINTS]; /* what rules count, by point */
	bool fired[WF_FAULT_RULES_MAX]; /* rules that are due at a time and have run */
	struct wf_fault_counts counts;
	uint64_t posts_again;
	uint64_t conns_refused;
	struct wf_fault_conn *conns;
	struct wf_places places;
	bool gone_waiting; /* a connection has to be freed */
	struct wf_fault_hold hold;
};

/* fault_draw.c: decides what happens now. */
/* Counts one more event at `point`. */
void wf_fault_see(struct wf_fault *f, enum wf_fault_point point);
/* Whether the fault strikes the event that was counted last, by a rule or by chance. Does not count
 * it as injected. */
bool wf_fault_strikes(struct wf_fault *f, enum wf_fault_kind kind, enum wf_fault_point point);
/* As wf_fault_strikes, for the event that will be counted after `ahead` others. */
bool wf_fault_strikes_ahead(struct wf_fault *f, enum wf_fault_kind kind, enum wf_fault_point point,
			    uint64_t ahead);
/* How long to hold back the event that was counted last; 0: not at all. */
uint64_t wf_fault_draw_delay(struct wf_fault *f, enum wf_fault_point point);
/* Draws a number in [low, high]. */
uint64_t wf_fault_draw_between(struct wf_fault *f, uint64_t low, uint64_t high);
void wf_fault_count(struct wf_fault *f, enum wf_fault_kind kind);
void wf_fault_stall(struct wf_fault *f, uint64_t lasts_ns);
/* When the next rule at a time is due, or WF_NEVER. */
uint64_t wf_fault_next_rule_ns(const struct wf_fault *f);
/* The next rule at a time that is due and has not run, or NULL. */
const struct wf_fault_rule *wf_fault_next_rule(struct wf_fault *f);
/* The rule that stalls at the poll that was counted last, or NULL. */
const struct wf_fault_rule *wf_fault_stall_rule(const struct wf_fault *f);

/* fault_hold.c: events that are held back. */
enum weft_status wf_fault_hold_init(struct wf_fault *f);
void wf_fault_hold_fini(struct wf_fault *f);
/* The number of events that can still be held. */
unsigned wf_fault_hold_room(const struct wf_fault *f);
/* Copies `event` with everything that it points to. There must be room. */
void wf_fault_hold_add(struct wf_fault_conn *c, const struct wf_event *event, uint64_t due_ns);
/* Removes the first event if it is due; otherwise returns false. The event and its bytes are valid
 * until the recycle. */
bool wf_fault_hold_pop(struct wf_fault *f, struct wf_event *out);
/* When an event that is due at `due_ns` can be delivered, behind those of its connection that it
 * may not overtake. */
uint64_t wf_fault_hold_order(struct wf_fault_conn *c, enum wf_event_kind kind, uint64_t due_ns);
/* Whether events of the connection are held back that the event may not overtake. */
bool wf_fault_hold_has_before(const struct wf_fault_conn *c, enum wf_event_kind kind);
/* Makes all events of the connection due now. */
void wf_fault_hold_hurry(struct wf_fault_conn *c);
/* Drops UP, MSG and PUT of the connection. */
void wf_fault_hold_drop(struct wf_fault_conn *c);
/* Frees the events that were removed: they are not used any more. */
void wf_fault_hold_recycle(struct wf_fault *f);

/* fault_conn.c: one end. */
static inline struct wf_fault *
wf_fault_of(struct wf_transport *transport)
{
	return (struct wf_fault *)transport;
}

static inline struct wf_fault_conn *
wf_fault_conn_of(struct wf_conn *conn)
{
	return (struct wf_fault_conn *)conn;
}

void wf_fault_conn_destroy(struct wf_fault_conn *c);
/* Closes the inner connection at once; for the user it ends LOST. */
void wf_fault_conn_cut(struct wf_fault_conn *c);
/* Handles an event of the inner connection. Returns true if `event` has become one to deliver. */
bool wf_fault_conn_event(struct wf_fault *f, struct wf_event *event);
/* `event` is being delivered. */
void wf_fault_conn_handed(struct wf_fault_conn *c, struct wf_event *event);
enum weft_status wf_fault_connect(struct wf_transport *transport, const struct wf_host *to,
				  const void *hello, size_t hello_bytes, void *user,
				  struct wf_conn **out);
enum weft_status wf_fault_answer(struct wf_conn *base, bool accept, const void *verdict,
				 size_t verdict_bytes);
void wf_fault_disconnect(struct wf_conn *base, enum wf_disconnect how);
void wf_fault_path(struct wf_conn *base, struct wf_path_info *out);
enum weft_status wf_fault_grant(struct wf_conn *base, const struct wf_grant *grant,
				struct wf_grant_key *out);
void wf_fault_release(struct wf_conn *base, uint32_t slot);

/* fault_post.c */
enum weft_status wf_fault_post(struct wf_conn *base, const struct wf_op *ops, unsigned op_count,
			       unsigned *taken);
/* Checks that the connection is UP for the call `what`. Returns WEFT_OK, WEFT_CLOSED or
 * WEFT_INVALID. */
enum weft_status wf_fault_check_up(const struct wf_fault_conn *c, const char *what);
