/* SPDX-License-Identifier: Apache-2.0 */
/* align: the clocks of the members of a recording, brought to one. Thread: main.
 *
 * What a member receives was made before: with the offset `o` that is added to a trainer's times,
 *
 *     made_at_trainer + o <= arrived_at_lane    so  o <= min (arrived - made)  = high
 *     made_at_lane <= arrived_at_trainer + o    so  o >= max (made - arrived)  = low
 *
 * "Made" is a time that is certainly before the message: of a push that it was asked for, of a
 * STEP that the step began, of an answer that its slice was applied, of TRACE what it says. The
 * middle of the two is within half of their distance. Lanes of a process have one clock; other
 * pservers are reached through the trainers. */
#include <stdlib.h>

#include "base/assert.h"
#include "tools/trace/recording.h"

/* More than two clocks differ by: 73 years. Sums and differences of three of these are in range. */
#define DIFFERENCE_MAX_NS (INT64_C(1) << 61)

/* One time of a push at one end. */
struct moment {
	uint64_t at_ns;
	uint64_t key; /* step, slice */
};

struct moments {
	struct moment *all; /* [count] by key */
	uint32_t count;
};

struct bounds {
	int64_t low, high;
	bool has_low, has_high;
};

static int
by_key(const void *a_arg, const void *b_arg)
{
	const struct moment *a = a_arg;
	const struct moment *b = b_arg;
	return a->key != b->key ? (a->key < b->key ? -1 : 1)
				: (a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns);
}

/* Of the kind, with that peer (or for all). */
static struct moments
find_moments(struct wf_env *env, const struct wf_recording_member *member, enum wf_trace_what what,
	     uint32_t peer, bool any_peer)
{
	struct moments found = {
		.all = wf_zalloc_array(env, member->count + 1u, sizeof(struct moment))};
	for (uint32_t i = 0; found.all != NULL && i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		bool is_its = any_peer || event->peer == peer || event->peer == WF_TRACE_ALL;
		if (event->what == what && is_its) {
			found.all[found.count++] =
				(struct moment){.at_ns = event->at_ns,
						.key = (uint64_t)event->step << 32 | event->slice};
		}
	}
	if (found.count > 0) {
		qsort(found.all, found.count, sizeof(*found.all), by_key);
	}
	return found;
}

static void
free_moments(struct wf_env *env, const struct wf_recording_member *member, struct moments *moments)
{
	wf_free(env, moments->all, (member->count + 1u) * sizeof(*moments->all));
}

/* By how much one time is later than another, of two clocks. False: one is no time of a clock, and
 * says nothing. */
static bool
find_delay(uint64_t later_ns, uint64_t earlier_ns, int64_t *delay)
{
	*delay = (int64_t)(later_ns - earlier_ns);
	return *delay >= -DIFFERENCE_MAX_NS && *delay <= DIFFERENCE_MAX_NS;
}

/* The least of later - earlier over all keys that both have. */
static bool
least_delay(const struct moments *earlier, const struct moments *later, int64_t *least)
{
	bool any = false;
	uint32_t j = 0;
	for (uint32_t i = 0; i < earlier->count; i++) {
		while (j < later->count && later->all[j].key < earlier->all[i].key) {
			j++;
		}
		int64_t delay;
		if (j == later->count || later->all[j].key != earlier->all[i].key ||
		    !find_delay(later->all[j].at_ns, earlier->all[i].at_ns, &delay)) {
			continue;
		}
		*least = !any || delay < *least ? delay : *least;
		any = true;
	}
	return any;
}

/* `from` has made, `to` has received. `peer_of_*`: how they name each other; both: of all. */
struct direction {
	const struct wf_recording_member *from, *to;
	enum wf_trace_what made, arrived;
	uint32_t from_peer, to_peer;
	bool any_from; /* the event at `from` names nobody */
};

static bool
least_of(struct wf_env *env, const struct direction *d, int64_t *least)
{
	struct moments made = find_moments(env, d->from, d->made, d->from_peer, d->any_from);
	struct moments arrived = find_moments(env, d->to, d->arrived, d->to_peer, false);
	bool any = made.all != NULL && arrived.all != NULL && least_delay(&made, &arrived, least);
	free_moments(env, d->from, &made);
	free_moments(env, d->to, &arrived);
	return any;
}

static void
limit_high(struct bounds *bounds, int64_t high)
{
	bounds->high = !bounds->has_high || high < bounds->high ? high : bounds->high;
	bounds->has_high = true;
}

static void
limit_low(struct bounds *bounds, int64_t low)
{
	bounds->low = !bounds->has_low || low > bounds->low ? low : bounds->low;
	bounds->has_low = true;
}

/* What the messages between them say about what has to be added to the trainer's times. */
static void
compare(struct wf_env *env, const struct wf_recording_member *trainer,
	const struct wf_recording_member *lane, struct bounds *bounds)
{
	const uint32_t place = wf_trace_lane(lane->pserver, lane->idx);
	const struct direction out[] = {
		{trainer, lane, WF_TRACE_QUEUED, WF_TRACE_ARRIVED, place, trainer->idx, false},
		{trainer, lane, WF_TRACE_STEP_BEGUN, WF_TRACE_STEP_ARRIVED, 0, trainer->idx, true},
	};
	const struct direction in = {
		lane, trainer, WF_TRACE_APPLIED, WF_TRACE_ANSWERED, trainer->idx, place, false};
	int64_t least;
	for (size_t i = 0; i < WF_ARRAY_COUNT(out); i++) {
		if (least_of(env, &out[i], &least)) {
			limit_high(bounds, least);
		}
	}
	if (least_of(env, &in, &least)) {
		limit_low(bounds, -least);
	}
	for (uint32_t i = 0; i < trainer->count; i++) {
		const struct wf_trace_event *event = &trainer->event[i];
		int64_t low;
		if (event->what == WF_TRACE_MARKED &&
		    event->peer == wf_trace_lane(lane->pserver, 0) &&
		    find_delay(event->value, event->at_ns, &low)) {
			limit_low(bounds, low);
		}
	}
}

static bool
settle(const struct bounds *bounds, int64_t *offset, uint64_t *error)
{
	if (!bounds->has_low || !bounds->has_high) {
		return false;
	}
	int64_t width = bounds->high - bounds->low;
	*offset = bounds->low + width / 2;
	*error = (uint64_t)(width < 0 ? -width : width) / 2;
	return true;
}

static void
set_clock(struct wf_recording_member *member, int64_t offset, uint64_t error)
{
	member->has_clock = true;
	member->offset_ns = offset;
	member->error_ns = error;
}

/* The trainer's clock from the lanes of a pserver whose clock is known. */
static void
clock_of_trainer(struct wf_recording *recording, struct wf_recording_member *trainer,
		 uint32_t pserver)
{
	struct bounds bounds = {0};
	const struct wf_recording_member *known = NULL;
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *lane = &recording->member[i];
		if (!lane->is_trainer && lane->pserver == pserver && lane->has_clock) {
			compare(recording->env, trainer, lane, &bounds);
			known = lane;
		}
	}
	int64_t offset;
	uint64_t error;
	if (known != NULL && settle(&bounds, &offset, &error)) {
		set_clock(trainer, offset + known->offset_ns, error + known->error_ns);
	}
}

/* A pserver's clock from the trainer that says most about it. */
static void
clock_of_pserver(struct wf_recording *recording, uint32_t pserver)
{
	bool any = false;
	int64_t offset = 0;
	uint64_t error = 0;
	for (uint32_t t = 0; t < recording->count; t++) {
		const struct wf_recording_member *trainer = &recording->member[t];
		struct bounds bounds = {0};
		for (uint32_t i = 0;
		     trainer->is_trainer && trainer->has_clock && i < recording->count; i++) {
			const struct wf_recording_member *lane = &recording->member[i];
			if (!lane->is_trainer && lane->pserver == pserver) {
				compare(recording->env, trainer, lane, &bounds);
			}
		}
		int64_t own;
		uint64_t own_error;
		if (settle(&bounds, &own, &own_error) &&
		    (!any || own_error + trainer->error_ns < error)) {
			any = true;
			offset = trainer->offset_ns - own;
			error = own_error + trainer->error_ns;
		}
	}
	for (uint32_t i = 0; any && i < recording->count; i++) {
		struct wf_recording_member *lane = &recording->member[i];
		if (!lane->is_trainer && lane->pserver == pserver) {
			set_clock(lane, offset, error);
		}
	}
}

static void
shift(struct wf_recording_member *member)
{
	for (uint32_t i = 0; i < member->count; i++) {
		member->event[i].at_ns += (uint64_t)member->offset_ns;
	}
}

void
wf_recording_align(struct wf_recording *recording)
{
	uint32_t first = UINT32_MAX;
	for (uint32_t i = 0; i < recording->count; i++) {
		struct wf_recording_member *member = &recording->member[i];
		if (!member->is_trainer && first == UINT32_MAX) {
			first = member->pserver;
		}
		if (!member->is_trainer && member->pserver == first) {
			set_clock(member, 0, 0);
		}
	}
	for (uint32_t i = 0; i < recording->count; i++) {
		if (recording->member[i].is_trainer) {
			clock_of_trainer(recording, &recording->member[i], first);
		}
	}
	for (uint32_t i = 0; i < recording->count; i++) {
		if (!recording->member[i].is_trainer && !recording->member[i].has_clock) {
			clock_of_pserver(recording, recording->member[i].pserver);
		}
	}
	for (uint32_t i = 0; i < recording->count; i++) {
		shift(&recording->member[i]);
	}
}
