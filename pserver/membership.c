/* SPDX-License-Identifier: Apache-2.0 */
/* membership: see membership.h. Thread: lane 0's. */
#include "pserver/membership.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/members.h"
#include "pserver/position.h"

#define LOOK_NS WF_NS_PER_MS /* between two looks at this pserver's lanes, while they are asked */
#define STAMP 1u             /* of those whom this pserver's own lanes have lost */

enum state {
	NOTHING,
	ASKS, /* all pservers where their lanes stand */
	TELLS /* them the border */
};

/* The place of a trainer. */
struct member {
	uint64_t incarnation; /* of the process that has it or had it last; 0: not known */
	uint64_t newcomer;    /* that asks for it; 0: none */
	bool is_empty;        /* nobody has it */
	bool is_lost;         /* who has it is to be dropped, */
	bool is_willing;      /* or leaves on purpose */
	char reason[WF_REASON_BYTES];
};

/* A pserver, in the change under way. */
struct side {
	bool has_answered;
	struct wf_registry_stands stands;
};

struct wf_membership {
	struct wf_lane *lane;
	enum state state;
	struct wf_registry_member leave; /* the change under way */
	uint64_t changes;
	uint64_t deadline_ns;  /* of the change */
	struct side *side;     /* [pserver_count] */
	struct member *member; /* [trainer_count] */
	uint32_t pserver_count, trainer_count;
};

enum weft_status
wf_membership_open(struct wf_lane *lane, struct wf_membership **out)
{
	struct wf_membership *self = wf_zalloc(lane->env, sizeof(*self));
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "membership: %zu bytes", sizeof(*self));
	}
	self->lane = lane;
	self->pserver_count = lane->admission.first.pserver_count;
	self->trainer_count = lane->peers.count;
	self->side = wf_zalloc_array(lane->env, self->pserver_count, sizeof(*self->side));
	self->member = wf_zalloc_array(lane->env, self->trainer_count, sizeof(*self->member));
	if (self->side == NULL || self->member == NULL) {
		wf_membership_close(self);
		return wf_fail(WEFT_NOMEM,
			       "no memory for the members of %u pservers and %u trainers",
			       lane->admission.first.pserver_count, lane->peers.count);
	}
	*out = self;
	return WEFT_OK;
}

void
wf_membership_close(struct wf_membership *self)
{
	if (self == NULL) {
		return;
	}
	struct wf_env *env = self->lane->env;
	wf_free(env, self->side, self->pserver_count * sizeof(*self->side));
	wf_free(env, self->member, self->trainer_count * sizeof(*self->member));
	wf_free(env, self, sizeof(*self));
}

static void
fail_as_not_begun(struct wf_membership *self, const char *reason)
{
	wf_lane_fail(self->lane, WEFT_LOST, self->lane->order.sum.step,
		     "%.180s; the job had not begun on all lanes", reason);
}

/* ---- messages ---- */

enum weft_status
wf_membership_on_lost(struct wf_membership *self, uint32_t idx, const struct wf_registry_lost *msg)
{
	if (msg->trainer >= self->trainer_count) {
		return wf_fail(WEFT_PROTOCOL, "LOST: trainer %u of %u, from pserver %u",
			       msg->trainer, self->trainer_count, idx);
	}
	struct member *member = &self->member[msg->trainer];
	const bool is_other = member->incarnation != 0 && member->incarnation != msg->incarnation;
	if (member->is_empty || is_other) {
		/* Who had begun has settled that it is out, and asks no more. A lane that begins
		 * later follows only the newest order, and would wait for it for ever. */
		fail_as_not_begun(self, msg->reason);
		return WEFT_OK;
	}
	if (member->is_lost) {
		return WEFT_OK; /* known */
	}
	member->incarnation = msg->incarnation;
	member->is_lost = true;
	member->is_willing = (msg->flags & WF_REGISTRY_LOST_WILLING) != 0;
	memcpy(member->reason, msg->reason, sizeof(member->reason));
	return WEFT_OK;
}

enum weft_status
wf_membership_on_comes(struct wf_membership *self, uint32_t idx,
		       const struct wf_registry_comes *msg)
{
	if (msg->trainer >= self->trainer_count) {
		return wf_fail(WEFT_PROTOCOL, "COMES: trainer %u of %u, from pserver %u",
			       msg->trainer, self->trainer_count, idx);
	}
	struct member *member = &self->member[msg->trainer];
	if (msg->incarnation != member->incarnation) { /* else it has the place, or had it */
		member->newcomer = msg->incarnation;
	}
	return WEFT_OK;
}

static enum weft_status
check_answer(const struct wf_membership *self, const char *message, uint32_t idx, uint64_t change)
{
	return change <= self->changes
		       ? WEFT_OK
		       : wf_fail(WEFT_PROTOCOL,
				 "%s: pserver %u answers change %" PRIu64 " of %" PRIu64, message,
				 idx, change, self->changes);
}

enum weft_status
wf_membership_on_stands(struct wf_membership *self, uint32_t idx,
			const struct wf_registry_stands *msg)
{
	struct side *side = &self->side[idx];
	enum weft_status st = check_answer(self, "STANDS", idx, msg->change);
	if (st == WEFT_OK && self->state == ASKS && msg->change == self->leave.change &&
	    !side->has_answered) { /* else it was sent again */
		side->has_answered = true;
		side->stands = *msg;
	}
	return st;
}

enum weft_status
wf_membership_on_settled(struct wf_membership *self, uint32_t idx,
			 const struct wf_registry_settled *msg)
{
	enum weft_status st = check_answer(self, "SETTLED", idx, msg->change);
	if (st == WEFT_OK && self->state == TELLS && msg->change == self->leave.change) {
		self->side[idx].has_answered = true;
	}
	return st;
}

const struct wf_registry_member *
wf_membership_order(const struct wf_membership *self, uint32_t idx)
{
	bool is_due = self->state != NOTHING && !self->side[idx].has_answered;
	return is_due ? &self->leave : NULL;
}

/* ---- what is decided ---- */

static bool
is_join(const struct wf_membership *self)
{
	return (self->leave.flags & WF_REGISTRY_MEMBER_JOINS) != 0;
}

static void
send_order(struct wf_membership *self, enum state state)
{
	self->state = state;
	self->lane->members.is_unsettled = !is_join(self);
	for (uint32_t i = 0; i < self->pserver_count; i++) {
		self->side[i].has_answered = false;
	}
	wf_members_order(self->lane->opts.members, &self->leave);
}

static void
begin(struct wf_membership *self, const struct wf_registry_member *change, uint64_t now_ns)
{
	self->leave = *change;
	self->leave.change = ++self->changes;
	self->deadline_ns = now_ns + self->lane->opts.connect_timeout_ns;
	send_order(self, ASKS);
}

/* Trainers that have their places, and of whom nobody has said that they are lost or leave. */
static uint32_t
count_left(const struct wf_membership *self)
{
	uint32_t left = 0;
	for (uint32_t i = 0; i < self->trainer_count; i++) {
		left += !self->member[i].is_empty && !self->member[i].is_lost ? 1 : 0;
	}
	return left;
}

/* A trainer that is lost is next, or the job ends. */
static void
begin_leave(struct wf_membership *self, uint32_t trainer, uint64_t now_ns)
{
	struct wf_lane *lane = self->lane;
	const struct member *member = &self->member[trainer];
	const uint32_t left = count_left(self);
	const uint32_t least = wf_members_min(lane->opts.members);
	if (left < least) {
		wf_lane_fail(lane, WEFT_LOST, lane->order.sum.step,
			     "%.150s; %u of %u trainers are left, and --min_trainers is %u",
			     member->reason, left, self->trainer_count, least);
		return;
	}
	begin(self,
	      &(struct wf_registry_member){.incarnation = member->incarnation,
					   .trainer = trainer,
					   .flags = member->is_willing ? WF_REGISTRY_MEMBER_WILLING
								       : 0},
	      now_ns);
}

/* Whether a step has been applied on every lane that has steps: nobody joins before. Who counts its
 * own steps begins the second one when all lanes have applied its first one. */
static bool
may_join(const struct wf_lane *lane)
{
	const struct wf_order *order = &lane->order;
	return lane->job.has_steps && order->sum.step > 1 &&
	       (!order->own_steps || order->highest > 1);
}

static void
begin_next(struct wf_membership *self, uint64_t now_ns)
{
	uint32_t newcomer = self->trainer_count;
	for (uint32_t i = 0; i < self->trainer_count; i++) {
		const struct member *member = &self->member[i];
		if (member->is_lost && !member->is_empty) {
			begin_leave(self, i, now_ns);
			return;
		}
		newcomer = member->is_empty && member->newcomer != 0 ? i : newcomer;
	}
	if (newcomer < self->trainer_count && may_join(self->lane)) {
		begin(self,
		      &(struct wf_registry_member){.incarnation = self->member[newcomer].newcomer,
						   .trainer = newcomer,
						   .flags = WF_REGISTRY_MEMBER_JOINS},
		      now_ns);
	}
}

/* The lanes that have counted it in half of a step. */
static void
log_half(const struct wf_membership *self)
{
	char where[2 * WF_REASON_BYTES] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < self->pserver_count && used < sizeof(where); i++) {
		const struct wf_registry_stands *stands = &self->side[i].stands;
		bool is_counted = (stands->flags & WF_REGISTRY_STANDS_COUNTED) != 0 &&
				  stands->applied == self->leave.border;
		if (is_counted) {
			used += (size_t)snprintf(where + used, sizeof(where) - used,
						 "%spserver %u %.200s", used > 0 ? "; " : "", i,
						 stands->where);
		}
	}
	wf_log(self->lane->env, WF_LOG_WARN,
	       "trainer %u is counted in half of step %" PRIu64
	       ": these lanes had applied it, or a part of it, with its gradients, and others "
	       "never got them: %s",
	       self->leave.trainer, self->leave.border, where);
}

/* All have reported: the border. With A, the highest step applied, and R, the lowest received: it
 * leaves at A + 1 if A <= R; else some lane lacks what it would need for step A, and it leaves at
 * A, counted in half of that step if a lane has applied it with it. */
static void
decide(struct wf_membership *self)
{
	struct wf_registry_member *leave = &self->leave;
	uint64_t applied = 0, received = UINT64_MAX;
	bool counted = false, alone = false;
	for (uint32_t i = 0; i < self->pserver_count; i++) {
		const struct wf_registry_stands *stands = &self->side[i].stands;
		applied = stands->applied > applied ? stands->applied : applied;
		received = stands->received < received ? stands->received : received;
	}
	for (uint32_t i = 0; i < self->pserver_count; i++) {
		const struct wf_registry_stands *stands = &self->side[i].stands;
		if (stands->applied == applied &&
		    (stands->flags & WF_REGISTRY_STANDS_COUNTED) != 0) {
			counted = true;
			alone = alone || (stands->flags & WF_REGISTRY_STANDS_ALONE) != 0;
			leave->samples = stands->samples;
		}
	}
	const bool is_half = applied > received && counted;
	leave->applied = applied;
	leave->border = applied > received ? applied : applied + 1;
	leave->flags |= is_half ? WF_REGISTRY_MEMBER_HALF : 0;
	leave->flags |= is_half && alone ? WF_REGISTRY_MEMBER_ALONE : 0;
	leave->samples = is_half ? leave->samples : 0;
}

/* All have reported: the trainer joins in the step after the highest one that is applied, or, where
 * all trainers count their own steps, that one of them has begun. */
static void
decide_join(struct wf_membership *self)
{
	struct wf_registry_member *join = &self->leave;
	uint64_t highest = 0;
	bool shared = false;
	for (uint32_t i = 0; i < self->pserver_count; i++) {
		const struct wf_registry_stands *stands = &self->side[i].stands;
		const bool has_shared = (stands->flags & WF_REGISTRY_STANDS_SHARED) != 0;
		shared = shared || has_shared;
		highest = stands->highest > highest ? stands->highest : highest;
		if (has_shared && stands->applied > join->applied) {
			join->applied = stands->applied;
			join->samples = stands->total;
		}
	}
	join->applied = shared ? join->applied : highest;
	join->border = join->applied + 1;
}

static bool
has_begun(const struct wf_membership *self)
{
	bool all = true;
	for (uint32_t i = 0; i < self->pserver_count && all; i++) {
		all = (self->side[i].stands.flags & WF_REGISTRY_STANDS_READY) != 0;
	}
	return all;
}

static void
on_all_stand_for_join(struct wf_membership *self)
{
	struct member *member = &self->member[self->leave.trainer];
	decide_join(self);
	if (self->leave.applied == 0 || self->leave.applied > WF_INIT_STEP_MAX) {
		/* may_join was true, so a pserver has told something else. */
		wf_lane_fail(self->lane, WEFT_PROTOCOL, self->lane->order.sum.step,
			     "trainer %u is to join, and pservers say that step %" PRIu64
			     " was applied last",
			     self->leave.trainer, self->leave.applied);
		return;
	}
	/* It may be lost from here on. */
	*member = (struct member){.incarnation = self->leave.incarnation};
	wf_log(self->lane->env, WF_LOG_WARN,
	       "trainer %u joins in step %" PRIu64 ", and %u of %u trainers go on",
	       self->leave.trainer, self->leave.border, count_left(self), self->trainer_count);
	send_order(self, TELLS);
}

/* What the trainer's program has given last, up to the border: as text if it is. */
static void
describe_position(const struct wf_lane *lane, uint32_t trainer, uint64_t last, char *out,
		  size_t bytes)
{
	const uint8_t *position = NULL;
	uint32_t count = 0;
	size_t used = 0;
	bool is_text = true;
	out[0] = '\0';
	if (!wf_position_at(lane, trainer, last, &position, &count) ||
	    count <= WF_POSITION_PASS_BYTES) {
		return;
	}
	for (uint32_t i = WF_POSITION_PASS_BYTES; i < count; i++) {
		is_text = is_text && position[i] >= ' ' && position[i] <= '~';
	}
	used = (size_t)snprintf(out, bytes, "; its data was at ");
	for (uint32_t i = WF_POSITION_PASS_BYTES; i < count && used + 3 < bytes; i++) {
		used += (size_t)snprintf(out + used, bytes - used, is_text ? "%c" : "%02x",
					 position[i]);
	}
}

/* What the trainer has done of its pass, as far as lane 0 knows: nobody trains the rest. */
static void
log_rest(const struct wf_membership *self)
{
	const struct wf_lane *lane = self->lane;
	const uint32_t trainer = self->leave.trainer;
	const struct wf_member *member = &lane->peers.all[trainer].member;
	const bool own_steps = lane->order.own_steps;
	const uint64_t begun = member->step_next - 1;
	const uint64_t last =
		own_steps || begun < self->leave.border ? begun : self->leave.border - 1;
	char where[2 * WF_REASON_BYTES];
	if (!lane->job.has_steps || (member->out && member->out_pass >= member->pass)) {
		return; /* it has no steps here, or had come to the end of its data */
	}
	describe_position(lane, trainer, last, where, sizeof(where));
	wf_log(lane->env, WF_LOG_WARN,
	       "trainer %u has trained %" PRIu64 " steps of pass %u, from 1%s; the rest of its "
	       "share of that pass is trained by nobody, unless another process joins in its place",
	       trainer, last > member->base ? last - member->base : 0,
	       member->pass > 0 ? member->pass : 1, where);
}

static void
on_all_stand_for_leave(struct wf_membership *self)
{
	const struct member *member = &self->member[self->leave.trainer];
	decide(self);
	if ((self->leave.flags & WF_REGISTRY_MEMBER_HALF) != 0) {
		log_half(self);
	}
	wf_log(self->lane->env, WF_LOG_WARN,
	       "trainer %u %s from step %" PRIu64 " on, and %u of %u trainers go on: %.200s",
	       self->leave.trainer, member->is_willing ? "takes no part" : "is dropped",
	       self->leave.border, count_left(self), self->trainer_count, member->reason);
	log_rest(self);
	send_order(self, TELLS);
}

static void
on_all_stand(struct wf_membership *self)
{
	if (!has_begun(self)) {
		fail_as_not_begun(self, self->member[self->leave.trainer].reason);
		return;
	}
	(is_join(self) ? on_all_stand_for_join : on_all_stand_for_leave)(self);
}

static void
on_all_settled(struct wf_membership *self)
{
	struct member *member = &self->member[self->leave.trainer];
	self->state = NOTHING;
	member->is_empty = !is_join(self);
	self->lane->members.is_unsettled = false;
	wf_reduce_try_complete(self->lane);
}

static enum weft_status
on_own_news(struct wf_membership *self, const struct wf_member_news *news)
{
	union {
		struct wf_registry_lost lost;
		struct wf_registry_comes comes;
	} msg;
	if (news->what == WF_MEMBER_COMES) {
		wf_members_fill_comes(news, &msg.comes);
		return wf_membership_on_comes(self, 0, &msg.comes);
	}
	wf_members_fill_lost(news, &msg.lost);
	return wf_membership_on_lost(self, 0, &msg.lost);
}

/* What this pserver's own lanes say. */
static void
look_at_own(struct wf_membership *self)
{
	struct wf_members *members = self->lane->opts.members;
	struct wf_member_news news;
	while (wf_members_next_asked(members, STAMP, &news)) {
		if (on_own_news(self, &news) != WEFT_OK) {
			wf_log(self->lane->env, WF_LOG_ERROR, "%s", weft_last_error());
		}
	}
	if (self->state != NOTHING && !self->side[0].has_answered) {
		struct wf_registry_stands stands;
		self->side[0].has_answered = wf_members_answered(members, &stands);
		if (self->side[0].has_answered && self->state == ASKS) {
			self->side[0].stands = stands;
		}
	}
}

/* The first pserver that has not answered; their number: all have. */
static uint32_t
find_silent(const struct wf_membership *self)
{
	uint32_t i = 0;
	while (i < self->pserver_count && self->side[i].has_answered) {
		i++;
	}
	return i;
}

static void
check_deadline(struct wf_membership *self, uint64_t now_ns)
{
	struct wf_lane *lane = self->lane;
	if (now_ns >= self->deadline_ns) {
		wf_lane_fail(lane, WEFT_TIMEOUT, lane->order.sum.step,
			     "trainer %u %s, and pserver %u has not said where it stands, or that "
			     "it goes on, within %.0f s; is it connected to the registrar "
			     "(--registrar)?",
			     self->leave.trainer,
			     is_join(self)                                  ? "is to join"
			     : self->member[self->leave.trainer].is_willing ? "leaves"
									    : "was lost",
			     find_silent(self), (double)lane->opts.connect_timeout_ns / 1e9);
	}
}

uint64_t
wf_membership_look(struct wf_membership *self, uint64_t now_ns)
{
	look_at_own(self);
	if (self->lane->state != WF_LANE_RUNNING) {
		return WF_NEVER;
	}
	if (self->state == NOTHING) {
		begin_next(self, now_ns);
	} else if (find_silent(self) < self->pserver_count) {
		check_deadline(self, now_ns);
	} else if (self->state == ASKS) {
		on_all_stand(self);
	} else {
		on_all_settled(self);
		return 0; /* another one may be due */
	}
	return self->state != NOTHING ? now_ns + LOOK_NS : WF_NEVER;
}
