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
	WF_LIFE_CONNECTING, /* connecting end: an attempt, in steps of the medium's own */
	WF_LIFE_SHAKING,    /* both ends: the peer's hello or verdict is awaited */
	WF_LIFE_DECIDED,    /* it has arrived; its event waits for room */
	WF_LIFE_WAITING,    /* accepting end: UP was delivered, no answer yet */
	WF_LIFE_UP,
	WF_LIFE_DRAINING,  /* disconnected or refused: the rest is being sent */
	WF_LIFE_LINGERING, /* all of it is sent: waits for the peer to close */
	WF_LIFE_ENDING,    /* the peer has ended: what arrived before is delivered */
	WF_LIFE_DYING,     /* nothing can arrive; DONEs and DOWN wait for room */
	WF_LIFE_DEAD,      /* DOWN was delivered, or is not owed */
};

/* What only the medium can do. A function may be NULL where its comment says so. */
struct wf_life_ops {
	size_t conn_bytes; /* of the medium's connection, which begins with a struct wf_life */
	/* The connection has something to do, so this poll or the next has to visit it. A medium
	 * whose poll visits what is ready in the loop sets wf_life_ready. */
	void (*ready)(struct wf_life *life);
	/* One turn in CONNECTING, SHAKING, WAITING, UP, DRAINING, LINGERING or ENDING. */
	void (*visit)(struct wf_life *life, struct wf_events *events);
	/* The deadline has passed, in DECIDED or in any of the states above except SHAKING,
	 * DRAINING and LINGERING. In CONNECTING it returns what is missing if the attempt is over
	 * ("not connected"); NULL: the attempt continues, or the connection is down. */
	const char *(*late)(struct wf_life *life);
	/* It has been DRAINING or LINGERING for too long and has to end. NULL: it goes down at
	 * once. */
	void (*end)(struct wf_life *life);
	/* DECIDED: returns false if it cannot be shown now, or has just gone down. NULL: it always
	 * can. */
	bool (*may_show)(struct wf_life *life);
	/* It was shown and is WAITING. May be NULL. */
	void (*shown)(struct wf_life *life);
	/* It is UP. May be NULL. */
	void (*up)(struct wf_life *life);
	/* Sends or queues the answer; `accept` as in wf_transport_answer. May take the connection
	 * down. Returns true if nothing of the answer is left to be sent. */
	bool (*answer)(struct wf_life *life, bool accept, const void *verdict,
		       size_t verdict_bytes);
	/* SHAKING: reads what has arrived. NULL: the medium reads it elsewhere. */
	void (*on_handshake)(struct wf_life *life);
	/* Tells a peer that is turned away why, if that is possible without waiting. */
	void (*deny)(struct wf_life *life, const char *why);
	/* It goes down from state `before`: no byte of the peer may arrive after this. */
	void (*cut)(struct wf_life *life, enum wf_life_state before);
	/* DYING: delivers the remaining DONEs. Returns true if none is left, so that DOWN may
	 * follow. */
	bool (*finish)(struct wf_life *life, struct wf_events *events);
	/* DEAD: returns true if it cannot be freed yet; its holder sets dead_waiting when it can.
	 * NULL: only the loop's list holds connections, which is taken care of. */
	bool (*is_held)(struct wf_life *life);
	/* Releases the medium's part of it, except its struct. */
	void (*fini)(struct wf_life *life);
};

/* The peer's hello or verdict. */
struct wf_life_word {
	const uint8_t *blob; /* in memory of the medium's connection */
	uint32_t blob_bytes; /* 32 bits: 8 bytes more would misalign the buffers behind a life */
	bool is_no;          /* connecting end: the peer refuses */
};

/* How it went down, written once. */
struct wf_life_end {
	enum weft_status status;
	char why[WF_WHY_BYTES]; /* "PEER: text" */
};

/* First member of a medium's connection. Only life.c writes to it, except where marked. */
struct wf_life {
	struct wf_conn conn; /* first */
	struct wf_medium *medium;
	enum wf_life_state state; /* written by wf_life_enter */
	bool incoming;
	bool visible;         /* the caller knows the connection: DOWN is owed */
	bool was_up;          /* counted as up */
	bool disconnected;    /* by this end: only DONE and DOWN follow */
	bool refused;         /* by this end */
	uint32_t heard_bytes; /* SHAKING: bytes of the peer's hello; counted by the medium */
	uint64_t deadline_ns; /* of the state; WF_NEVER: none */
	uint64_t attempt_ns;  /* connecting end: end of the attempt; the medium may extend it */
	struct wf_life *next, **prev_next; /* medium's list of all */
	struct wf_loop_ready ready;
	struct wf_place place;
	struct wf_life_word word;      /* from DECIDED on */
	struct wf_life_end end;        /* from DYING on */
	struct wf_host to;             /* connecting end: the address that the caller gave */
	char peer[WF_LIFE_PEER_BYTES]; /* its name in texts; the medium may make it more exact */
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
	struct wf_life *first; /* all connections, the newest first */
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
/* Counts and records a peer that was turned away. */
void wf_medium_stranger(struct wf_medium *medium, const char *why);
/* Handles the connections whose deadline has passed, and sets the loop's timer again. */
void wf_medium_expire(struct wf_medium *medium, uint64_t now_ns);
/* Turns away the newcomer that has been silent for longest, unless its hello has arrived and was
 * not read yet. Returns false if there is none. */
bool wf_medium_make_room(struct wf_medium *medium);
/* Frees the connections whose DOWN was delivered in an earlier poll. */
void wf_medium_reap(struct wf_medium *medium);

/* Zeroed, CONNECTING, with a place. NULL: no memory, or no place. */
struct wf_life *wf_life_create(struct wf_medium *medium, bool incoming);
/* Releases everything; no event. */
void wf_life_destroy(struct wf_life *life);
/* An incoming connection from `peer`: SHAKING, with a deadline, possibly after room was made. The
 * caller checks wf_places_may_come before it accepts. NULL: there is no memory or no place; the
 * peer has been counted as a stranger. */
struct wf_life *wf_life_come(struct wf_medium *medium, const char *peer);
/* A connection that this end begins, with a deadline. WEFT_NOMEM. */
enum weft_status wf_life_begin(struct wf_medium *medium, const struct wf_host *to, void *user,
			       struct wf_life **out) WEFT_MUST_CHECK;

/* Changes to a state that causes neither an event nor an end; the deadline stays. */
static inline void
wf_life_enter(struct wf_life *life, enum wf_life_state state)
{
	life->medium->up_count -= life->state == WF_LIFE_UP ? 1 : 0;
	life->state = state;
}
void wf_life_deadline(struct wf_life *life, uint64_t deadline_ns);
/* The peer's hello or verdict has arrived: DECIDED. The bytes stay where they are. `is_no`: the
 * verdict is a refusal. */
void wf_life_decide(struct wf_life *life, const void *blob, size_t blob_bytes, bool is_no);
/* The next poll visits it. No-op for one that is DEAD. */
void wf_life_ready(struct wf_life *life);
/* One turn: does whatever the state asks for. */
void wf_life_visit(struct wf_life *life, struct wf_events *events);

/* Takes it down at once, with the text "PEER: text". A connection that was never shown is counted
 * as a stranger. No effect from DYING on. */
void wf_life_down(struct wf_life *life, enum weft_status status, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));
/* Takes it down because of what happened to the stream, which is `text`. The status is CLOSED if
 * this end wanted the end, UNAVAILABLE for an attempt, otherwise `status`. */
void wf_life_lost(struct wf_life *life, enum weft_status status, const char *text)
	__attribute__((cold));
/* The status and text of the same, without taking it down. */
enum weft_status wf_life_cause(const struct wf_life *life, enum weft_status status,
			       const char *text, char out[WF_WHY_BYTES]);
/* Takes down a connection that is turned away, and tells the peer why. */
void wf_life_turn_away(struct wf_life *life, enum weft_status status, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* Slots of struct wf_transport_ops. */
enum weft_status wf_life_answer(struct wf_conn *conn, bool accept, const void *verdict,
				size_t verdict_bytes);
void wf_life_disconnect(struct wf_conn *conn, enum wf_disconnect how);

/* The grant function of a medium whose grants are only the tables of grants.h. */
enum weft_status wf_life_grant(struct wf_conn *conn, const struct wf_grant *grant,
			       struct wf_grant_key *out);

/* Fails with WEFT_CLOSED or WEFT_INVALID because it is not UP; `what` is the attempted call ("grant
 * to"). */
enum weft_status wf_life_fail_not_up(const struct wf_life *life, const char *what) WEFT_MUST_CHECK
	__attribute__((cold));
static inline enum weft_status
wf_life_check_up(const struct wf_life *life, const char *what)
{
	return life->state == WF_LIFE_UP ? WEFT_OK : wf_life_fail_not_up(life, what);
}

enum weft_status wf_life_fail_region(const struct wf_life *life,
				     const struct wf_op *op) WEFT_MUST_CHECK __attribute__((cold));
/* WEFT_AGAIN, which is counted; or the status of a connection that has gone down meanwhile. */
enum weft_status wf_life_fail_room(struct wf_life *life) WEFT_MUST_CHECK __attribute__((cold));

/* The part of `post` that is the same for all media: posts operations in order while there is room.
 * `post_op` puts one into the medium's queue, or returns false if no entry is free; it may take the
 * connection down. Inlined, so that post_op is not called through a pointer. */
__attribute__((always_inline)) static inline enum weft_status
wf_life_post(struct wf_life *life, const struct wf_op *ops, unsigned op_count, unsigned *taken,
	     bool (*post_op)(struct wf_life *life, const struct wf_op *op))
{
	if (life->state != WF_LIFE_UP) {
		return wf_life_fail_not_up(life, "post to");
	}
	enum weft_status st = WEFT_OK;
	unsigned count = 0;
	for (; count < op_count; count++) {
		const struct wf_op *op = &ops[count];
		if (op->kind == WF_OP_PUT &&
		    !wf_regions_hold(&life->medium->regions, op->region, op->src, op->bytes)) {
			st = wf_life_fail_region(life, op);
			break;
		}
		if (!post_op(life, op)) {
			st = wf_life_fail_room(life);
			break;
		}
	}
	*taken = count;
	return st;
}
