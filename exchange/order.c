/* SPDX-License-Identifier: Apache-2.0 */
/* order: who takes part in a step, and what of it may be said. Thread: the lane's. */
#include "exchange/order.h"

#include <inttypes.h>

void
wf_order_begin(struct wf_order *order, uint64_t step, uint64_t samples)
{
	for (uint32_t i = 0; i < order->count; i++) {
		wf_order_member(order, i)->step_next = step + 1;
	}
	order->sum.step = step + 1;
	order->sum.samples_before = samples;
}

static enum weft_status
check_out(const struct wf_order *order, const struct wf_member *member,
	  const struct wf_step_said *said, enum wf_step_news *out)
{
	if (member->out && member->out_pass == said->pass) {
		*out = WF_STEP_AGAIN;
		return WEFT_OK;
	}
	if (said->step != member->step_next) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s: out of data in step %" PRIu64 ", %" PRIu64 " is next",
			       said->message, said->step, member->step_next);
	}
	if (member->step_next == order->sum.step + 1 && wf_order_lacks(order, member)) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s: out of data in step %" PRIu64 ", before all of step %" PRIu64
			       " was pushed",
			       said->message, said->step, order->sum.step);
	}
	*out = WF_STEP_NEW;
	return WEFT_OK;
}

enum weft_status
wf_order_check(const struct wf_order *order, const struct wf_member *member,
	       const struct wf_step_said *said, enum wf_step_news *out)
{
	const struct wf_step_sum *sum = &order->sum;
	if (said->epoch != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s %" PRIu64 ": epoch %" PRIu64 ", the job is in epoch 0",
			       said->message, said->step, said->epoch);
	}
	if (said->out) {
		return check_out(order, member, said, out);
	}
	if (said->step < member->step_next) {
		*out = WF_STEP_AGAIN;
		return WEFT_OK;
	}
	bool returns = member->out && said->pass > member->out_pass;
	if (said->step != sum->step || (member->out && !returns) ||
	    (!member->out && said->step != member->step_next) ||
	    (sum->heard > 0 && said->pass != sum->pass)) {
		return wf_fail(WEFT_PROTOCOL,
			       "%s %" PRIu64 " of pass %u, the lane is in step %" PRIu64
			       " of pass %u, step %" PRIu64 " is this trainer's next",
			       said->message, said->step, said->pass, sum->step, sum->pass,
			       member->step_next);
	}
	*out = returns ? WF_STEP_BACK : WF_STEP_NEW;
	return WEFT_OK;
}

static void
begin_step(struct wf_order *order, uint32_t pass)
{
	struct wf_step_sum *sum = &order->sum;
	sum->pass = pass;
	sum->out = 0;
	for (uint32_t i = 0; i < order->count; i++) {
		sum->out += wf_order_is_out(order, wf_order_member(order, i)) ? 1 : 0;
	}
}

static void
go_out(struct wf_order *order, struct wf_member *member, const struct wf_step_said *said)
{
	struct wf_step_sum *sum = &order->sum;
	member->out = true;
	member->out_pass = said->pass;
	/* Else it is counted when somebody begins the step. */
	if (sum->heard > 0 && sum->pass == said->pass && sum->step >= said->step) {
		sum->out++;
	}
}

enum weft_status
wf_order_say(struct wf_order *order, struct wf_member *member, const struct wf_step_said *said,
	     enum wf_step_news *out)
{
	enum weft_status st = wf_order_check(order, member, said, out);
	if (st != WEFT_OK || *out == WF_STEP_AGAIN) {
		return st;
	}
	if (said->out) {
		go_out(order, member, said);
		return WEFT_OK;
	}
	struct wf_step_sum *sum = &order->sum;
	member->out = false;
	if (sum->heard == 0) {
		begin_step(order, said->pass);
	}
	sum->heard++;
	sum->samples += said->samples;
	member->step_next = said->step + 1;
	member->summed = 0;
	return WEFT_OK;
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
