/* SPDX-License-Identifier: Apache-2.0 */
/* members: trainers that are dropped, leave or join while the job goes on (members.md). Parts:
 *
 * members.c       what the lanes of one pserver share: whom they have lost, what is ordered, and
 *                 what they have answered; any lane's thread
 * members_ask.c   a lane: what it asks of the registrar, whom it refuses, and what waits meanwhile
 * members_lane.c  a lane: it holds, reports where it stands, and takes the trainer out of its steps
 * members_join.c  a lane: it takes another process into them, in the place of that trainer
 * membership.c    what lane 0 of pserver 0 decides for all lanes of all pservers
 *
 * The members change one at a time: all lanes hold and report (an order without a border), then
 * they get the border, and go on. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "wire/hello.h"
#include "wire/registry_messages.h"

struct wf_lane;
struct wf_peer;
struct wf_members;

/* What a lane knows of a trainer that is about to leave or to join. */
enum wf_member_wish {
	WF_MEMBER_LOST,
	WF_MEMBER_LEAVES, /* on purpose */
	WF_MEMBER_COMES,  /* a process asks for the place, which is empty */
};

struct wf_member_news {
	enum wf_member_wish what;
	uint32_t trainer;
	uint64_t incarnation;         /* of the process, not 0 */
	char reason[WF_REASON_BYTES]; /* COMES: empty */
};

/* What one lane reports of a change of a trainer. */
struct wf_member_stand {
	uint64_t applied;  /* the highest step that is applied, or a part of it */
	uint64_t received; /* the lowest step of the trainer that is whole; UINT64_MAX: no matter */
	uint64_t samples;  /* counted: its samples of step `applied` */
	uint64_t total;    /* of all trainers, of the steps up to `applied` */
	uint64_t highest;  /* own steps: the highest that a trainer has begun */
	bool shared;       /* all trainers make its steps together: `applied` and `total` count */
	bool ready;        /* the job has begun here */
	bool counted;      /* it is counted in step `applied` */
	bool alone;        /* and nobody else is */
};

/* Lane 0 decides or passes on; the others wait. WEFT_NOMEM */
enum weft_status wf_members_open(struct wf_env *env, uint32_t lane_count, uint32_t min_trainers,
				 struct wf_members **out) WEFT_MUST_CHECK;
void wf_members_close(struct wf_members *members); /* all lanes are gone; accepts NULL */
uint32_t wf_members_min(const struct wf_members *members);
uint32_t wf_members_lane_count(const struct wf_members *members);

/* ---- lanes ---- */

/* The lane has a job from here on, or has none any more: then it has nothing to answer. */
void wf_members_seat(struct wf_members *members, uint32_t lane, bool has_job);
/* Asks for a change, unless it has been ordered with its border. False: lane 0 has no job, so
 * nobody can decide. */
bool wf_members_ask(struct wf_members *members, const struct wf_member_news *news);
/* The number of the order that counts; 0: none. Grows with each. */
uint64_t wf_members_order_number(const struct wf_members *members);
/* It, and its number. */
uint64_t wf_members_read(struct wf_members *members, struct wf_registry_member *out);
/* The lane's answer to an order; NULL: it has done what was to be done. */
void wf_members_answer(struct wf_members *members, uint32_t lane, uint64_t number,
		       const struct wf_member_stand *stand);

/* ---- lane 0 ---- */

/* It has a job with so many trainers, or none any more. WEFT_NOMEM */
enum weft_status wf_members_begin(struct wf_members *members, uint32_t trainers) WEFT_MUST_CHECK;
void wf_members_end(struct wf_members *members);
/* One that was asked for and not yet with this stamp, which is not 0. False: there is none. */
bool wf_members_next_asked(struct wf_members *members, uint32_t stamp, struct wf_member_news *out);
/* As a message to the registrar: of COMES, and of the others. */
void wf_members_fill_comes(const struct wf_member_news *news, struct wf_registry_comes *out);
void wf_members_fill_lost(const struct wf_member_news *news, struct wf_registry_lost *out);
/* It could not be passed on. */
void wf_members_ask_again(struct wf_members *members, uint32_t trainer);
/* The order for all lanes. With its border, what it is about is not asked for any more. */
void wf_members_order(struct wf_members *members, const struct wf_registry_member *leave);
/* Whether all lanes have answered the order. `out`: what they have answered together, if it has no
 * border. */
bool wf_members_answered(struct wf_members *members, struct wf_registry_stands *out);

/* ---- a lane's part: members_ask.c, thread: the lane's ---- */

/* The trainer is lost; `reason` is why. False: a lost trainer ends this job, or the job has not
 * begun. May be called again and again. */
bool wf_members_lose(struct wf_lane *lane, struct wf_peer *peer, const char *reason);
/* The same if that is why the trainer ends its session: it has lost a pserver, as it says. */
bool wf_members_lose_aborted(struct wf_lane *lane, struct wf_peer *peer, enum weft_status status,
			     const char *who, const char *reason);
/* The trainer has sent that it leaves. WEFT_PROTOCOL: this lane has no members that leave. */
enum weft_status wf_members_on_leave(struct wf_lane *lane, struct wf_peer *peer) WEFT_MUST_CHECK;
/* The hello is of a process that asks for the place of this trainer, which another one had. */
bool wf_members_is_newcomer(const struct wf_lane *lane, const struct wf_peer *peer,
			    const struct wf_hello *hello);
/* Refuses a trainer that is to be dropped, or was, and a newcomer that has to try again
 * (WEFT_UNAVAILABLE). WEFT_LOST: for good. */
enum weft_status wf_members_check(const struct wf_lane *lane, const struct wf_peer *peer,
				  const struct wf_hello *hello, const char *who) WEFT_MUST_CHECK;
/* The newcomer, which has passed all checks, waits for a border. */
void wf_members_on_newcomer(struct wf_lane *lane, struct wf_peer *peer,
			    const struct wf_hello *hello);
/* Whether a process is to be taken in now, so that what is under way ends with it. */
bool wf_members_join_is_due(const struct wf_lane *lane);
/* The job has begun. */
void wf_members_job_begins(struct wf_lane *lane);
/* Whether another trainer has begun the step of the border. */
bool wf_members_is_at_border(const struct wf_lane *lane, uint64_t border);
/* Asks for those that leave, and that lane 0 has not heard of. */
void wf_members_ask_again_to_leave(struct wf_lane *lane);
/* Whether nothing may be applied now. */
bool wf_members_hold(const struct wf_lane *lane);

/* ---- a lane's part: members_lane.c and members_join.c, thread: the lane's ---- */

/* The clock was read: does what is ordered. */
void wf_members_look(struct wf_lane *lane, uint64_t now_ns);
/* For members_lane.c: what is ordered, and what is due. end: it is lost before it has joined. */
void wf_members_begin_join(struct wf_lane *lane, const struct wf_registry_member *join);
void wf_members_end_join(struct wf_lane *lane, struct wf_peer *peer);
void wf_members_look_for_joins(struct wf_lane *lane, uint64_t now_ns);
