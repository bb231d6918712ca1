/* SPDX-License-Identifier: Apache-2.0 */
/* members: see members.h. The lock guards all but the number of the order. Thread: any lane's. */
#include "pserver/members.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* One lane. */
struct seat {
	bool has_job;
	uint64_t answered; /* the order that it has answered last */
	struct wf_member_stand stand;
};

/* The newest news of one trainer. */
struct asked {
	struct wf_member_news news; /* incarnation 0: there is none */
	uint32_t stamp;             /* with which it was passed on last */
};

struct wf_members {
	struct wf_env *env;
	uint32_t lane_count;
	uint32_t min_trainers;
	/* 2 x change, and 1 more if the border is known; 0: there is no order. Lane 0: store
	 * release; lanes: load acquire; M1. */
	_Atomic uint64_t number;

	pthread_mutex_t lock;
	struct wf_registry_member leave; /* the order */
	struct seat *seat;               /* [lane_count] */
	struct asked *asked;             /* [trainers]; NULL: lane 0 has no job */
	uint32_t trainers;
	uint32_t asked_count; /* of them, that somebody has asked for */
};

static void
lock(struct wf_members *self)
{
	(void)pthread_mutex_lock(&self->lock);
}

static void
unlock(struct wf_members *self)
{
	(void)pthread_mutex_unlock(&self->lock);
}

enum weft_status
wf_members_open(struct wf_env *env, uint32_t lane_count, uint32_t min_trainers,
		struct wf_members **out)
{
	struct wf_members *self = wf_zalloc(env, sizeof(*self));
	struct seat *seat = wf_zalloc_array(env, lane_count, sizeof(*seat));
	if (self == NULL || seat == NULL) {
		wf_free(env, self, sizeof(*self));
		wf_free(env, seat, lane_count * sizeof(*seat));
		return wf_fail(WEFT_NOMEM, "no memory for the members of %u lanes", lane_count);
	}
	self->env = env;
	self->lane_count = lane_count;
	self->min_trainers = min_trainers;
	self->seat = seat;
	(void)pthread_mutex_init(&self->lock, NULL);
	*out = self;
	return WEFT_OK;
}

void
wf_members_close(struct wf_members *self)
{
	if (self == NULL) {
		return;
	}
	wf_members_end(self);
	(void)pthread_mutex_destroy(&self->lock);
	wf_free(self->env, self->seat, self->lane_count * sizeof(*self->seat));
	wf_free(self->env, self, sizeof(*self));
}

uint32_t
wf_members_min(const struct wf_members *members)
{
	return members->min_trainers;
}

uint32_t
wf_members_lane_count(const struct wf_members *members)
{
	return members->lane_count;
}

/* ---- lanes ---- */

void
wf_members_seat(struct wf_members *self, uint32_t lane, bool has_job)
{
	WF_ASSERT(lane < self->lane_count);
	lock(self);
	self->seat[lane].has_job = has_job;
	self->seat[lane].answered = 0;
	unlock(self);
}

/* Whether the order has a border, and is what the news ask for. */
static bool
is_ordered(const struct wf_members *self, const struct wf_member_news *news)
{
	const struct wf_registry_member *order = &self->leave;
	const bool joins = (order->flags & WF_REGISTRY_MEMBER_JOINS) != 0;
	return order->border != 0 && order->trainer == news->trainer &&
	       order->incarnation == news->incarnation && joins == (news->what == WF_MEMBER_COMES);
}

bool
wf_members_ask(struct wf_members *self, const struct wf_member_news *news)
{
	bool is_heard = false;
	lock(self);
	if (self->asked != NULL && news->trainer < self->trainers && is_ordered(self, news)) {
		is_heard = true;
	} else if (self->asked != NULL && news->trainer < self->trainers) {
		struct asked *asked = &self->asked[news->trainer];
		is_heard = true;
		self->asked_count += asked->news.incarnation == 0 ? 1 : 0;
		if (asked->news.incarnation != news->incarnation ||
		    asked->news.what != news->what) {
			*asked = (struct asked){.news = *news};
		}
	}
	unlock(self);
	return is_heard;
}

uint64_t
wf_members_order_number(const struct wf_members *self)
{
	return atomic_load_explicit(&self->number, memory_order_acquire); /* M1 */
}

uint64_t
wf_members_read(struct wf_members *self, struct wf_registry_member *out)
{
	lock(self);
	*out = self->leave;
	uint64_t number = atomic_load_explicit(&self->number, memory_order_relaxed);
	unlock(self);
	return number;
}

void
wf_members_answer(struct wf_members *self, uint32_t lane, uint64_t number,
		  const struct wf_member_stand *stand)
{
	struct seat *seat = &self->seat[lane];
	lock(self);
	seat->answered = number;
	if (stand != NULL) {
		seat->stand = *stand;
	}
	unlock(self);
}

/* ---- lane 0 ---- */

enum weft_status
wf_members_begin(struct wf_members *self, uint32_t trainers)
{
	struct asked *asked = wf_zalloc_array(self->env, trainers, sizeof(*asked));
	if (asked == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the members of %u trainers", trainers);
	}
	wf_members_end(self);
	lock(self);
	self->asked = asked;
	self->trainers = trainers;
	unlock(self);
	return WEFT_OK;
}

void
wf_members_end(struct wf_members *self)
{
	lock(self);
	wf_free(self->env, self->asked, self->trainers * sizeof(*self->asked));
	self->asked = NULL;
	self->trainers = 0;
	self->asked_count = 0;
	self->leave = (struct wf_registry_member){0};
	for (uint32_t i = 0; i < self->lane_count; i++) {
		self->seat[i].answered = 0;
	}
	atomic_store_explicit(&self->number, 0, memory_order_release); /* M1 */
	unlock(self);
}

bool
wf_members_next_asked(struct wf_members *self, uint32_t stamp, struct wf_member_news *out)
{
	bool found = false;
	lock(self);
	for (uint32_t i = 0; i < self->trainers && self->asked_count > 0 && !found; i++) {
		struct asked *asked = &self->asked[i];
		if (asked->news.incarnation == 0 || asked->stamp == stamp) {
			continue;
		}
		asked->stamp = stamp;
		*out = asked->news;
		found = true;
	}
	unlock(self);
	return found;
}

void
wf_members_fill_comes(const struct wf_member_news *news, struct wf_registry_comes *out)
{
	*out = (struct wf_registry_comes){.incarnation = news->incarnation,
					  .trainer = news->trainer};
}

void
wf_members_fill_lost(const struct wf_member_news *news, struct wf_registry_lost *out)
{
	*out = (struct wf_registry_lost){
		.incarnation = news->incarnation,
		.trainer = news->trainer,
		.flags = news->what == WF_MEMBER_LEAVES ? WF_REGISTRY_LOST_WILLING : 0};
	memcpy(out->reason, news->reason, sizeof(out->reason));
}

void
wf_members_ask_again(struct wf_members *self, uint32_t trainer)
{
	lock(self);
	if (trainer < self->trainers) {
		self->asked[trainer].stamp = 0;
	}
	unlock(self);
}

/* What the order is about needs to be asked for no more. */
static void
forget_asked(struct wf_members *self)
{
	for (uint32_t i = 0; i < self->trainers; i++) {
		if (self->asked[i].news.incarnation != 0 &&
		    is_ordered(self, &self->asked[i].news)) {
			self->asked[i] = (struct asked){0};
			self->asked_count--;
		}
	}
}

void
wf_members_order(struct wf_members *self, const struct wf_registry_member *leave)
{
	lock(self);
	self->leave = *leave;
	forget_asked(self);
	atomic_store_explicit(&self->number, 2 * leave->change + (leave->border != 0 ? 1 : 0),
			      memory_order_release); /* M1 */
	unlock(self);
}

/* Adds what a lane has answered. */
static void
add_stand(const struct wf_member_stand *stand, uint32_t lane, struct wf_registry_stands *out)
{
	size_t used = 0;
	if (!stand->ready) {
		out->flags &= ~WF_REGISTRY_STANDS_READY;
	}
	out->flags |= stand->shared ? WF_REGISTRY_STANDS_SHARED : 0;
	out->highest = stand->highest > out->highest ? stand->highest : out->highest;
	out->received = stand->received < out->received ? stand->received : out->received;
	if (stand->applied > out->applied) {
		out->applied = stand->applied;
		out->samples = 0;
		out->flags &= WF_REGISTRY_STANDS_READY | WF_REGISTRY_STANDS_SHARED;
		out->where[0] = '\0';
	}
	if (stand->shared && stand->applied == out->applied) {
		out->total = stand->total;
	}
	if (stand->applied < out->applied || !stand->counted) {
		return;
	}
	out->samples = stand->samples;
	out->flags |= WF_REGISTRY_STANDS_COUNTED;
	out->flags |= stand->alone ? WF_REGISTRY_STANDS_ALONE : 0;
	used = strlen(out->where);
	(void)snprintf(out->where + used, sizeof(out->where) - used, "%s%u",
		       used == 0 ? "lane " : ", ", lane);
}

bool
wf_members_answered(struct wf_members *self, struct wf_registry_stands *out)
{
	bool all = true;
	lock(self);
	const uint64_t number = atomic_load_explicit(&self->number, memory_order_relaxed);
	*out = (struct wf_registry_stands){.change = self->leave.change,
					   .received = UINT64_MAX,
					   .flags = WF_REGISTRY_STANDS_READY};
	for (uint32_t i = 0; i < self->lane_count && all; i++) {
		const struct seat *seat = &self->seat[i];
		all = !seat->has_job || seat->answered == number;
		if (seat->has_job && all) {
			add_stand(&seat->stand, i, out);
		}
	}
	unlock(self);
	return all;
}
