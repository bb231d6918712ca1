/* SPDX-License-Identifier: Apache-2.0 */
/* beats: which lanes take no turns: lanes that a session waits for get a BEAT. Thread: the
 * core's. */
#include <stdio.h>
#include <unistd.h>

#include "trainer/session/core.h"
#include "trainer/session/service.h"

static uint64_t
limit_of(const struct wf_core *core)
{
	uint64_t own_ns = core->opts.stall_timeout_ns;
	return own_ns != 0 ? own_ns : core->opts.step_timeout_ns;
}

void
wf_core_beats_look(struct wf_core *core, uint64_t now_ns, bool waits)
{
	uint64_t limit_ns = limit_of(core);
	wf_beat_clock_look(&core->end.beats, now_ns);
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		if (link->state != WF_LINK_READY) {
			continue;
		}
		if (wf_beat_look(&link->beat, &core->end.beats, waits)) {
			wf_link_due(link);
		}
		char who[WF_REASON_BYTES];
		bool late = waits && limit_ns != 0 &&
			    wf_beat_silent_ns(&link->beat, &core->end.beats) >= limit_ns;
		if (late && wf_link_beat_describe(link, who, sizeof(who))) {
			wf_core_fail(core, WEFT_TIMEOUT, "%s: is it stopped? %s is %.1f s", who,
				     core->opts.stall_timeout_ns != 0 ? "stall_timeout"
								      : "step_timeout",
				     (double)limit_ns / 1e9);
			return;
		}
	}
}

enum weft_status
wf_link_beat_recv(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_beat msg;
	enum weft_status st = wf_msg_beat_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	link->beat.pid = msg.pid;
	link->beat.answer_due = link->beat.answer_due || msg.asks;
	return WEFT_OK; /* a message makes the link due */
}

bool
wf_link_beat_flush(struct wf_link *link)
{
	struct wf_core *core = wf_core_of(link);
	const struct wf_msg_beat msg = {
		.asks = link->beat.ask_due,
		.itself = core->opts.progress == WEFT_PROGRESS_THREAD,
		.pid = core->end.hello.pid,
	};
	wf_msg_beat_encode(&msg, &core->end.msg);
	if (!wf_send(link->conn, &core->end.msg, msg.asks ? WF_BEAT_COOKIE : 0)) {
		return false;
	}
	link->beat.ask_due = false;
	link->beat.answer_due = false;
	return true;
}

bool
wf_link_beat_describe(const struct wf_link *link, char *out, size_t bytes)
{
	char host[WF_HOST_BYTES + 8];
	char pid[32] = "";
	char silent[64];
	if (!wf_beat_describe(&link->beat, &wf_core_of(link)->end.beats, silent, sizeof(silent))) {
		return false;
	}
	wf_host_format(&link->host, host, sizeof(host));
	if (link->beat.pid != 0) {
		(void)snprintf(pid, sizeof(pid), ", pid %u", link->beat.pid);
	}
	(void)snprintf(out, bytes, "pserver %u %s %u (%.120s%s)%s", link->pserver_idx,
		       link->ops->lane_name, link->lane_idx, host, pid, silent);
	return true;
}

bool
wf_core_beats_describe(const struct wf_core *core, char *out, size_t bytes)
{
	const struct wf_link *longest = NULL;
	uint64_t longest_ns = 0;
	for (uint32_t i = 0; i < core->links.count; i++) {
		const struct wf_link *link = core->links.all[i];
		uint64_t silent_ns = wf_beat_silent_ns(&link->beat, &core->end.beats);
		if (link->state == WF_LINK_READY && silent_ns > longest_ns) {
			longest = link;
			longest_ns = silent_ns;
		}
	}
	return longest != NULL && wf_link_beat_describe(longest, out, bytes);
}
