/* SPDX-License-Identifier: Apache-2.0 */
/* link: what a session sends and receives on its links beside what every link does
 * (exchange/link.h): ABORT, and the order in which everything is sent. Thread: the core's. */
#include "trainer/session/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/service.h"

static enum weft_status
open_link(struct wf_core *core, struct wf_link *link, uint32_t idx)
{
	bool dense = idx < core->links.dense_count;
	uint32_t lane = dense ? idx : idx - core->links.dense_count;
	uint32_t lane_count = dense ? core->job.set.ports_num : core->service.lane_count;
	wf_link_init(link, &core->end, dense ? &wf_dense_link_ops : core->service.ops->link);
	link->idx = idx;
	link->pserver_idx = lane / lane_count;
	link->lane_idx = lane % lane_count;
	return link->ops->open(link, lane);
}

enum weft_status
wf_links_open(struct wf_core *core)
{
	struct wf_session_links *links = &core->links;
	links->dense_count = core->job.pserver_count * core->job.set.ports_num;
	links->count = links->dense_count + core->job.pserver_count * core->service.lane_count;
	links->all = wf_zalloc_array(core->end.env, links->count, sizeof(struct wf_link *));
	links->dense = wf_zalloc_array(core->end.env, links->dense_count, sizeof(*links->dense));
	if (links->all == NULL || links->dense == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u lanes", links->count);
	}
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < links->count && st == WEFT_OK; i++) {
		bool dense = i < links->dense_count;
		links->all[i] = dense ? &links->dense[i].link
				      : core->service.ops->lane_link(core, i - links->dense_count);
		st = open_link(core, links->all[i], i);
	}
	return st;
}

void
wf_links_close(struct wf_core *core)
{
	struct wf_session_links *links = &core->links;
	for (uint32_t i = 0; links->all != NULL && i < links->count; i++) {
		wf_link_close(links->all[i]);
	}
	wf_free(core->end.env, links->all, links->count * sizeof(struct wf_link *));
	wf_free(core->end.env, links->dense, links->dense_count * sizeof(*links->dense));
	links->all = NULL;
	links->dense = NULL;
}

static enum weft_status
recv_control(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = wf_core_of(link);
	const struct wf_head *head = event->msg.head;
	struct wf_msg_abort abort;
	enum weft_status st;
	switch (head->type) {
	case WF_MSG_REDUCED:
		return wf_core_reduce_recv(link, event);
	case WF_MSG_ABSENT:
		return wf_link_absent_recv(link, event);
	case WF_MSG_BEAT:
		return wf_link_beat_recv(link, event);
	case WF_MSG_ABORT:
		st = wf_msg_abort_decode(head, event->msg.body, &abort);
		if (st == WEFT_OK) {
			wf_failure_relay(core, &abort);
		}
		return st;
	default:
		return wf_fail(WEFT_PROTOCOL, "control message of type %u", head->type);
	}
}

/* RESUME is complete: the messages that the session sends on every path are due. */
static void
link_is_ready(struct wf_link *link, bool again)
{
	struct wf_core *core = wf_core_of(link);
	wf_stats_add(&core->report.stats, WF_CORE_LANE_RECONNECTED_COUNT, again ? 1 : 0);
	link->to_send.out = link->content.takes_steps && core->step.out;
	link->to_send.reduce = link->idx == 0 && core->reduce.since_ns != 0;
}

static bool
end_failed(const struct wf_link_end *end)
{
	return wf_core_failed((const struct wf_core *)end);
}

static void
fail_end(struct wf_link_end *end, enum weft_status status, const char *text)
{
	wf_core_fail((struct wf_core *)end, status, "%s", text);
}

static void
log_of_end(struct wf_link_end *end, enum weft_log_level level, const char *text)
{
	wf_core_log((struct wf_core *)end, level, "%s", text);
}

static uint64_t
step_of_end(const struct wf_link_end *end)
{
	return ((const struct wf_core *)end)->step.number;
}

const struct wf_link_end_ops wf_core_end_ops = {
	.failed = end_failed,
	.fail = fail_end,
	.log = log_of_end,
	.step = step_of_end,
	.ready = link_is_ready,
	.control = recv_control,
};

static bool
flush_abort(struct wf_link *link)
{
	struct wf_core *core = wf_core_of(link);
	wf_failure_encode(core);
	if (!wf_link_send(link, &core->end.msg)) {
		return false;
	}
	link->to_send.abort = false;
	wf_transport_disconnect(link->conn, WF_DISCONNECT_DRAIN);
	return true;
}

bool
wf_link_flush(struct wf_link *link)
{
	if (link->conn == NULL) {
		return false; /* forgotten with the path */
	}
	if (wf_core_failed(wf_core_of(link))) {
		return link->to_send.abort && !flush_abort(link);
	}
	if (link->state == WF_LINK_GREETING && link->to_send.job) {
		return !link->ops->flush_job(link);
	}
	if (link->state != WF_LINK_READY) {
		return false;
	}
	if (wf_beat_speaks(&link->beat) && !wf_link_beat_flush(link)) {
		return true;
	}
	if (wf_cursor_is_open(&link->opening.have) && !wf_link_flush_opening(link)) {
		return true;
	}
	bool left = link->ops->flush(link);
	bool said = !link->to_send.step &&
		    !link->to_send.out; /* a reduce counts the steps sent before it */
	if (link->to_send.reduce && (!said || !wf_core_reduce_flush(link))) {
		return true;
	}
	return (link->to_send.goodbye && !wf_link_flush_goodbye(link)) || left;
}
