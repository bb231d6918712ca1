/* SPDX-License-Identifier: Apache-2.0 */
/* life: the life of a connection, once for the backends that are one medium (tcp, shm, verbs).
 *
 *   CONNECTING - SHAKING - DECIDED - UP            connecting end
 *               (SHAKING -) DECIDED - WAITING - UP accepting end
 *   UP - DRAINING (- LINGERING) - DYING - DEAD     an end in good order, and a refusal
 *   any (- ENDING) - DYING - DEAD                  every other end
 *
 * Here are the states, their deadlines, places and counters, UP and DOWN, the answer and the
 * disconnect. What only the medium can do is a table of functions, struct wf_life_ops.
 * Thread: the transport's owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/events.h"
#include "transport/grants.h"
#include "transport/loop.h"
#include "transport/ops.h"
#include "transport/places.h"
#include "transport/regions.h"

#define WF_LIFE_DRAIN_NS WF_NS_PER_S /* bound of WF_DISCONNECT_DRAIN, and of a refusal */
/* "NAME:PORT (ADDRESS)": a name may be long, an address has 64 bytes at most. */
#define WF_LIFE_PEER_BYTES (WF_HOST_BYTES + 8 + 64)

struct wf_life;
struct wf_medium;

enum wf_life_state {
	WF_LIFE_CONNECTING, /* connecting end: on the way there, in steps of the medium's own */
	WF_LIFE_SHAKING,    /* both ends: the peer's hello or verdict is awaited */
	WF_LIFE_DECIDED,    /* it is here; its event waits for room */
	WF_LIFE_WAITING,    /* accepting end: UP was delivered, no answer yet */
	WF_LIFE_UP,
	WF_LIFE_DRAINING,  /* disconnected or refused: what is left is sent */
	WF_LIFE_LINGERING, /* all of it is sent: the peer is to close */
	WF_LIFE_ENDING,    /* the peer has ended: what came before is delivered */
	WF_LIFE_DYING,     /* nothing arrives any more; DONEs and DOWN wait for room */
	WF_LIFE_DEAD,      /* DOWN was delivered, or is owed to nobody */
};

/* What only the medium can do. NULL is allowed where it says so. */
struct wf_life_ops {
	size_t conn_bytes; /* of the medium's connection, which begins with a struct wf_life */
	/* The connection has something to do: this poll or the next visits it. wf_life_ready, where
	 * a poll visits those that the loop has as ready. */
	void (*ready)(struct wf_life *life);
	/* One turn in CONNECTING, SHAKING, WAITING, UP, DRAINING, LINGERING or ENDING. */
	void (*visit)(struct wf_life *life, struct wf_events *events);
	/* The deadline has passed, in DECIDED or any of these but SHAKING, DRAINING and LINGERING.
	 * Returns, in CONNECTING, what is missing if the attempt is over: "not connected". NULL: it
	 * goes on, or is down. */
	const char *(*late)(struct wf_life *life);
	/* It was in DRAINING or LINGERING for too long: lead it to its end. NULL: down at once. */
	void (*end)(struct wf_life *life);
	/* DECIDED: false: it is not to be shown now, or has just gone down. NULL: it always may. */
	bool (*may_show)(struct wf_life *life);
	/* It was shown, and is WAITING. NULL: nothing follows from that. */
	void (*shown)(struct wf_life *life);
	/* It is UP. NULL: nothing follows from that. */
	void (*up)(struct wf_life *life);
	/* Send the answer, or queue it; `accept` as in wf_transport_answer. May take it down. True:
	 * nothing of it is left to be sent. */
	bool (*answer)(struct wf_life *life, bool accept, const void *verdict,
		       size_t verdict_bytes);
	/* SHAKING, accepting end: reads what has arrived. NULL: the medium reads it elsewhere. */
	void (*on_handshake)(struct wf_life *life);
	/* Tell a peer that was not let in why, if that is possible at once. */
	void (*deny)(struct wf_life *life, const char *why);
	/* It was in state `before` and goes down: no byte of the peer arrives behind this. */
	void (*cut)(struct wf_life *life, enum wf_life_state before);
	/* DYING: deliver the DONEs that are left. True: there are none; DOWN may follow. */
	bool (*finish)(struct wf_life *life, struct wf_events *events);
	/* DEAD, but it cannot be freed yet: whoever holds it sets dead_waiting when that ends.
	 * NULL: nobody does but the loop's list, which is seen to. */
	bool (*is_held)(struct wf_life *life);
	/* Release what the medium has of it, but for its struct. */
	void (*fini)(struct wf_life *life);
};

/* First member of a medium's connection. What is not marked is written here only. */
struct wf_life {
	struct wf_conn conn; /* first */
	struct wf_medium *medium;
	enum wf_life_state state; /* written by wf_life_enter */
	bool incoming;
	bool visible;         /* the caller has the pointer: DOWN is owed */
	bool was_up;          /* counted as up */
	bool disconnected;    /* by this end: only DONE and DOWN from here on */
	bool refused;         /* by this end */
	bool verdict_is_no;   /* connecting end: the peer's */
	uint32_t heard_bytes; /* SHAKING: of the peer's hello; counted by the medium */
	uint64_t deadline_ns; /* of the state; WF_NEVER: none */
	uint64_t attempt_ns;  /* connecting end: end of the whole attempt; the medium may put it off
			       */
	struct wf_life *next, **prev_next; /* medium's list of all */
	struct wf_loop_ready ready;
	struct wf_place place;
	/* The peer's hello or verdict, in memory of the medium's connection. */
	const uint8_t *blob;
	size_t blob_bytes;
	enum weft_status down_status;
	struct wf_host to;             /* connecting end: whom the caller named */
	char peer[WF_LIFE_PEER_BYTES]; /* in texts; the medium's to make more exact */
	char why[WF_WHY_BYTES];        /* of DOWN */
	struct wf_grants grants;       /* they die with DOWN */
};

/* First member of a medium's transport. */
struct wf_medium {
	struct wf_transport transport; /* first */
	struct wf_transport_opts opts;
	struct wf_transport_info info;
	const struct wf_life_ops *ops;
	struct wf_loop loop; /* the medium opens and closes it */
	struct wf_regions regions;
	struct wf_places places;
	struct wf_life *first; /* of all connections; who came last is first */
	uint32_t conn_count;   /* of them */
	uint32_t up_count;     /* of them in state UP */
	bool dead_waiting;     /* some connection is DEAD: the next poll frees it */
};

static inline struct wf_medium *
wf_medium_of(struct wf_transport *transport)
{
	return (struct wf_medium *)transport;
}

static inline struct wf_life *
wf_life_of(struct wf_conn *conn)
{
	return (struct wf_life *)conn;
}

/* `medium` is zero so far. `opts` has its defaults. The loop has no descriptors yet. */
void wf_medium_init(struct wf_medium *medium, const struct wf_transport_ops *transport_ops,
		    const struct wf_life_ops *ops, const struct wf_transport_opts *opts);
/* Takes every connection down and frees it, without events. */
void wf_medium_end_all(struct wf_medium *medium);
void wf_medium_query(struct wf_transport *transport, struct wf_transport_info *out);
int wf_medium_wait_fd(struct wf_transport *transport);
void wf_medium_wake(struct wf_transport *transport);
/* Count and note someone who was sent away. */
void wf_medium_stranger(struct wf_medium *medium, const char *why);
/* Look who is late, and set the loop's timer anew. */
void wf_medium_expire(struct wf_medium *medium, uint64_t now_ns);
/* Who came in and has been silent for longest is turned away; not if its hello is here, and nobody
 * had looked. False: there is nobody. */
bool wf_medium_make_room(struct wf_medium *medium);
/* Free those whose DOWN went out in an earlier poll. */
void wf_medium_reap(struct wf_medium *medium);

/* Zeroed, CONNECTING, with a place. NULL: no memory, or no place. */
struct wf_life *wf_life_create(struct wf_medium *medium, bool incoming);
/* Releases everything; no event. */
void wf_life_destroy(struct wf_life *life);
/* Somebody comes in, who is called `peer`: SHAKING, with a deadline, if need be after room was
 * made. Whether anybody may come (wf_places_may_come) is looked at before it is let in. NULL: there
 * is no memory or no place, and it was counted as a stranger. */
struct wf_life *wf_life_come(struct wf_medium *medium, const char *peer);
/* A connection that this end begins, with a deadline. WEFT_NOMEM. */
enum weft_status wf_life_begin(struct wf_medium *medium, const struct wf_host *to, void *user,
			       struct wf_life **out) WEFT_MUST_CHECK;

/* To a state that brings neither event nor end; the deadline stays. */
static inline void
wf_life_enter(struct wf_life *life, enum wf_life_state state)
{
	life->medium->up_count -= life->state == WF_LIFE_UP ? 1 : 0;
	life->state = state;
}
void wf_life_deadline(struct wf_life *life, uint64_t deadline_ns);
/* The peer's hello or verdict is here, and stays there: DECIDED. `is_no`: of a verdict. */
void wf_life_decide(struct wf_life *life, const void *blob, size_t blob_bytes, bool is_no);
/* The next poll visits it. No-op for one that is DEAD. */
void wf_life_ready(struct wf_life *life);
/* One turn: whatever the state asks for. */
void wf_life_visit(struct wf_life *life, struct wf_events *events);

/* Down at once. The text becomes "PEER: text". Who was never shown is counted as a stranger. No-op
 * from DYING on. */
void wf_life_down(struct wf_life *life, enum weft_status status, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));
/* Down for what became of the stream, which is `text`: CLOSED where this end wanted the end, else
 * UNAVAILABLE of an attempt, else `status`. */
void wf_life_lost(struct wf_life *life, enum weft_status status, const char *text)
	__attribute__((cold));
/* The same, and only says it: the status, and into `out` the text. */
enum weft_status wf_life_cause(const struct wf_life *life, enum weft_status status,
			       const char *text, char out[WF_WHY_BYTES]);
/* Down, and the peer is told why: it was not let in. */
void wf_life_turn_away(struct wf_life *life, enum weft_status status, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* Slots of struct wf_transport_ops. */
enum weft_status wf_life_answer(struct wf_conn *conn, bool accept, const void *verdict,
				size_t verdict_bytes);
void wf_life_disconnect(struct wf_conn *conn, enum wf_disconnect how);

/* Of a medium for which grants are the tables of grants.h, and no more. */
enum weft_status wf_life_grant(struct wf_conn *conn, const struct wf_grant *grant,
			       struct wf_grant_key *out);

/* WEFT_CLOSED or WEFT_INVALID: it is not UP, so there is no `what` ("grant to"). */
enum weft_status wf_life_fail_not_up(const struct wf_life *life, const char *what) WEFT_MUST_CHECK
	__attribute__((cold));
static inline enum weft_status
wf_life_check_up(const struct wf_life *life, const char *what)
{
	return life->state == WF_LIFE_UP ? WEFT_OK : wf_life_fail_not_up(life, what);
}

enum weft_status wf_life_fail_region(const struct wf_life *life,
				     const struct wf_op *op) WEFT_MUST_CHECK __attribute__((cold));
/* WEFT_AGAIN, which is counted; or the connection is going down since. */
enum weft_status wf_life_fail_room(struct wf_life *life) WEFT_MUST_CHECK __attribute__((cold));

/* The part of the slot `post` that is the same for all: take operations in order, as far as there
 * is room. `take` puts one into the medium's queue, or finds none free and returns false; it may
 * take the connection down. Inlined, so that it is called without a pointer. */
__attribute__((always_inline)) static inline enum weft_status
wf_life_post(struct wf_life *life, const struct wf_op *ops, unsigned op_count, unsigned *taken,
	     bool (*take)(struct wf_life *life, const struct wf_op *op))
{
	if (life->state != WF_LIFE_UP) {
		return wf_life_fail_not_up(life, "post to");
	}
	for (unsigned i = 0; i < op_count; i++) {
		const struct wf_op *op = &ops[i];
		if (op->kind == WF_OP_PUT &&
		    !wf_regions_hold(&life->medium->regions, op->region, op->src, op->bytes)) {
			return wf_life_fail_region(life, op);
		}
		if (!take(life, op)) {
			return wf_life_fail_room(life);
		}
		*taken = i + 1;
	}
	return WEFT_OK;
}
