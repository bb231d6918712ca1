/* SPDX-License-Identifier: Apache-2.0 */
/* order: which members take part in a step, and what they may announce. Thread: the lane's. */
#include "exchange/order.h"

#include <inttypes.h>

void
wf_order_begin(struct wf_order *order, uint64_t step, uint64_t samples)
{
	for (uint32_t i = 0; i < order->count; i++) {
		wf_order_member(order, i)->step_next = step + 1;
	}
	order->highest = step;
	order->sum.step = step + 1;
	order->sum.samples_before = samples;
}

__attribute__((cold, noinline)) static enum weft_status
refuse(const struct wf_order *order, const struct wf_member *member,
       const struct wf_step_said *said, const char *why)
{
	if (said->epoch != 0) {
		return wf_fail(WEFT_PROTOCOL, "%s %" PRIu64 ": epoch %" PRIu64 ", %s",
			       said->message, said->step, said->epoch, why);
	}
	return wf_fail(WEFT_PROTOCOL,
		       "%s %" PRIu64 " of pass %u%s: %s; the lane is in step %" PRIu64
		       " of pass %u, step %" PRIu64 " is this trainer's next",
		       said->message, said->step, said->pass, said->out ? ", out of data" : "", why,
		       order->sum.step, order->sum.pass, member->step_next);
}

/* Whether the member has announced it before. */
static inline bool
is_again(const struct wf_member *member, const struct wf_step_said *said)
{
	if (said->out) {
		return member->out && said->pass <= member->out_pass;
	}
	return said->step < member->step_next;
}

/* Whether the member enters a new pass, in which it continues at the others' step. Its report that
 * it was out of data in the last pass may have been lost, if no other member waited for it. */
static inline bool
joins(const struct wf_order *order, const struct wf_member *member, const struct wf_step_said *said)
{
	return said->pass > member->pass && !said->out &&
	       (!order->own_steps || said->step <= order->highest + 1);
}

/* The reason why a new announcement is not allowed now; NULL: it is allowed. */
static inline const char *
find_fault(const struct wf_order *order, const struct wf_member *member,
	   const struct wf_step_said *said)
{
	const struct wf_step_sum *sum = &order->sum;
	if (said->epoch != 0) {
		return "the job is in epoch 0";
	}
	if (!wf_order_is_whole(order, member)) {
		return "before all of the last one was pushed";
	}
	if (said->pass < member->pass || (member->out && said->pass <= member->out_pass)) {
		return "that is not its pass";
	}
	if (said->step != member->step_next && !joins(order, member, said)) {
		return "steps are missing";
	}
	if (!order->own_steps && !said->out &&
	    (said->step != sum->step || (sum->heard > 0 && said->pass != sum->pass))) {
		return "others are not in it";
	}
	return NULL;
}

/* Judges the member's announcement. Returns as find_fault. */
static inline const char *
judge(const struct wf_order *order, const struct wf_member *member, const struct wf_step_said *said,
      enum wf_step_news *out)
{
	*out = WF_STEP_AGAIN;
	if (is_again(member, said) && said->epoch == 0) {
		return NULL;
	}
	bool back = member->out || said->step != member->step_next;
	*out = back && !said->out ? WF_STEP_BACK : WF_STEP_NEW;
	return find_fault(order, member, said);
}

enum weft_status
wf_order_check(const struct wf_order *order, const struct wf_member *member,
	       const struct wf_step_said *said, enum wf_step_news *out)
{
	const char *why = judge(order, member, said, out);
	return why == NULL ? WEFT_OK : refuse(order, member, said, why);
}

static inline void
begin_step(struct wf_order *order, uint32_t pass)
{
	struct wf_step_sum *sum = &order->sum;
	sum->pass = pass;
	for (uint32_t i = 0; i < order->count && order->out_count > 0; i++) {
		sum->out += wf_order_is_out(order, wf_order_member(order, i)) ? 1 : 0;
	}
}

static void
go_out(struct wf_order *order, struct wf_member *member, const struct wf_step_said *said)
{
	struct wf_step_sum *sum = &order->sum;
	bool counted = wf_order_is_out(order, member);
	order->out_count += member->out ? 0 : 1;
	member->out = true;
	member->out_pass = said->pass;
	/* Otherwise it is counted when a member begins the step. */
	if (sum->heard > 0 && sum->step >= said->step && !counted &&
	    wf_order_is_out(order, member)) {
		sum->out++;
	}
}

/* Counts a step that the member has announced. */
static inline void
count_step(struct wf_order *order, struct wf_member *member, uint64_t step, uint64_t samples,
	   uint32_t pass)
{
	struct wf_step_sum *sum = &order->sum;
	if (order->own_steps) {
		order->highest = step > order->highest ? step : order->highest;
		sum->step = order->highest; /* for texts and messages */
		sum->pass = pass;
	} else {
		if (sum->heard == 0) {
			begin_step(order, pass);
		}
		sum->heard++;
		sum->samples += samples;
	}
	if (member->pass != pass) {
		member->pass = pass;
		member->base = step - 1;
	}
	member->samples = samples;
	member->step_next = step + 1;
	member->made++;
	member->summed = 0;
	member->came = 0;
	member->begun = true;
}

enum weft_status
wf_order_on_step(struct wf_order *order, struct wf_member *member, const struct wf_step_said *said,
		 enum wf_step_news *out)
{
	const char *why = judge(order, member, said, out);
	if (why != NULL) {
		return refuse(order, member, said, why);
	}
	if (*out == WF_STEP_AGAIN) {
		return WEFT_OK;
	}
	if (said->out) {
		go_out(order, member, said);
		return WEFT_OK;
	}
	if (member->out) {
		member->out = false;
		order->out_count--;
	}
	count_step(order, member, said->step, said->samples, said->pass);
	return WEFT_OK;
}

/* The next step as STEP would announce it. */
static __attribute__((noinline)) enum weft_status
on_next_as_said(struct wf_order *order, struct wf_member *member)
{
	const struct wf_step_said said = {
		.message = "STEP",
		.step = member->step_next,
		.samples = member->samples,
		.pass = member->pass,
	};
	enum wf_step_news news;
	return wf_order_on_step(order, member, &said, &news);
}

enum weft_status
wf_order_on_next(struct wf_order *order, struct wf_member *member)
{
	const struct wf_step_sum *sum = &order->sum;
	bool in_turn = order->own_steps || (member->step_next == sum->step &&
					    (sum->heard == 0 || member->pass == sum->pass));
	if (!in_turn || member->out || !wf_order_is_whole(order, member)) {
		return on_next_as_said(order, member);
	}
	count_step(order, member, member->step_next, member->samples, member->pass);
	return WEFT_OK;
}

void
wf_order_drop(struct wf_order *order, struct wf_member *member)
{
	struct wf_step_sum *sum = &order->sum;
	const bool in_step = !order->own_steps && member->step_next > sum->step;
	const bool counted = !in_step && wf_order_is_out(order, member);
	if (in_step) {
		sum->heard--;
		sum->samples -= member->samples;
	}
	if (sum->heard == 0) {
		sum->out = 0; /* counted again when a member begins the step */
	} else if (!counted) {
		sum->out++;
	}
	order->out_count += member->out ? 0 : 1;
	member->out = true;
	member->out_pass = UINT32_MAX;
	member->held_since_ns = 0;
}

void
wf_order_enter(struct wf_order *order, struct wf_member *member, uint64_t step)
{
	struct wf_step_sum *sum = &order->sum;
	WF_ASSERT(member->out && member->out_pass == UINT32_MAX && order->out_count > 0);
	WF_ASSERT(order->own_steps || step >= sum->step);
	/* One that was out of data when the step was begun is counted. */
	if (!order->own_steps && sum->heard > 0) {
		WF_ASSERT(sum->out > 0);
		sum->out--;
	}
	order->out_count--;
	*member = (struct wf_member){.step_next = step, .made = member->made, .base = step - 1};
}

bool
wf_order_others_need(const struct wf_order *order, const struct wf_member *member)
{
	bool heard = member->step_next > order->sum.step;
	uint32_t others = order->sum.heard - (order->sum.heard > 0 && heard ? 1 : 0);
	return others > 0 && wf_order_waits_for(order, member);
}

uint32_t
wf_order_find_left(const struct wf_order *order)
{
	uint32_t i = 0;
	while (i < order->count) {
		const struct wf_member *member = wf_order_member(order, i);
		if (member->left && wf_order_waits_for(order, member)) {
			break;
		}
		i++;
	}
	return i;
}

/* The last step that `other` has completed, as it counts for the lead of `member`; UINT64_MAX: it
 * takes no part. */
static uint64_t
done_by(const struct wf_order *order, const struct wf_member *other, const struct wf_member *member)
{
	if (other->left || (other->out && other->out_pass >= member->pass)) {
		return UINT64_MAX;
	}
	if (other->pass < member->pass) {
		return member->base;
	}
	return other->step_next - (wf_order_is_whole(order, other) ? 1 : 2);
}

static uint64_t
lead_before(const struct wf_order *order, const struct wf_member *member,
	    const struct wf_member *other)
{
	uint64_t step = member->step_next - 1;
	uint64_t done = other == member ? UINT64_MAX : done_by(order, other, member);
	return done < step ? step - done : 0;
}

uint64_t
wf_order_lead(const struct wf_order *order, const struct wf_member *member)
{
	uint64_t lead = 0;
	for (uint32_t i = 0; i < order->count; i++) {
		uint64_t before = lead_before(order, member, wf_order_member(order, i));
		lead = before > lead ? before : lead;
	}
	return lead;
}

uint64_t
wf_order_holds_since(const struct wf_order *order)
{
	uint64_t since = 0;
	for (uint32_t i = 0; i < order->count && order->staleness != WF_ORDER_NEVER; i++) {
		const struct wf_member *member = wf_order_member(order, i);
		uint64_t held = member->held_since_ns;
		bool older = held > 0 && (since == 0 || held < since);
		/* The answer may be allowed by now, and wait only for the transport. */
		if (older && wf_order_lead(order, member) > order->staleness) {
			since = held;
		}
	}
	return since;
}

bool
wf_order_holds_for(const struct wf_order *order, const struct wf_member *member)
{
	for (uint32_t i = 0; i < order->count; i++) {
		const struct wf_member *ahead = wf_order_member(order, i);
		if (ahead->held_since_ns > 0 &&
		    lead_before(order, ahead, member) > order->staleness) {
			return true;
		}
	}
	return false;
}
