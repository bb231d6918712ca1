/* SPDX-License-Identifier: Apache-2.0 */
/* inquiry: a trainer requests the lane's statistics of one trainer, or its steps and samples of all
 * of them (REPORT), and the lane answers (REPORTED). Thread: the lane's. */
#include <inttypes.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* State of the trainer that asks. */
struct inquiry {
	bool is_due;
	struct wf_msg_report asked;
};

static uint64_t
inquiry_bytes(const struct wf_lane *lane)
{
	return lane->peers.count * sizeof(struct inquiry);
}

static enum weft_status
open_inquiries(struct wf_feature *self, struct wf_lane *lane)
{
	self->state = wf_zalloc_array(lane->env, lane->peers.count, sizeof(struct inquiry));
	return self->state != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "lane %u: no memory for reports of %u trainers",
				 lane->opts.idx, lane->peers.count);
}

static void
close_inquiries(struct wf_feature *self, struct wf_lane *lane)
{
	wf_free(lane->env, self->state, inquiry_bytes(lane));
}

static struct inquiry *
inquiry_of(const struct wf_feature *self, const struct wf_peer *peer)
{
	return (struct inquiry *)self->state + peer->trainer;
}

static enum weft_status
recv_report(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
	    const struct wf_head *head, const uint8_t *body)
{
	struct inquiry *inquiry = inquiry_of(self, peer);
	struct wf_msg_report msg;
	enum weft_status st = wf_msg_report_decode(head, body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	const bool is_known = msg.trainer < lane->peers.count || msg.trainer == WF_REPORT_OF_JOB;
	if (!is_known || inquiry->is_due) {
		return wf_fail(WEFT_PROTOCOL, "REPORT: of trainer %u of %u%s", msg.trainer,
			       lane->peers.count,
			       inquiry->is_due ? ", before the last one was answered" : "");
	}
	inquiry->asked = msg;
	inquiry->is_due = true;
	wf_feature_due(self, peer);
	return WEFT_OK;
}

static void
fill(struct wf_lane *lane, struct wf_msg_report *report)
{
	const struct wf_order *order = &lane->order;
	if (report->trainer != WF_REPORT_OF_JOB) {
		wf_features_report(lane, report->trainer, report->value);
		wf_async_report(lane, report->trainer, report->value);
	} else if (!order->own_steps) {
		report->value[WF_REPORT_JOB_STEPS] = order->sum.step - 1;
		report->value[WF_REPORT_JOB_SAMPLES] = order->sum.samples_before;
	}
}

static bool
flush(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	struct inquiry *inquiry = inquiry_of(self, peer);
	struct wf_msg_report *report = &inquiry->asked;
	if (!inquiry->is_due) {
		return true;
	}
	fill(lane, report);
	wf_msg_reported_encode(report, &lane->msg);
	inquiry->is_due = !wf_control_send(peer, &lane->msg);
	return !inquiry->is_due;
}

static void
path_ends(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer)
{
	(void)lane;
	inquiry_of(self, peer)->is_due = false;
}

const struct wf_feature_hooks wf_inquiry_hooks = {
	.name = "reports",
	.message = WF_MSG_REPORT,
	.bytes = inquiry_bytes,
	.open = open_inquiries,
	.close = close_inquiries,
	.recv = recv_report,
	.flush = flush,
	.path_ends = path_ends,
};
