/* SPDX-License-Identifier: Apache-2.0 */
/* refuse: see refuse.h. Thread: the lane's. */
#include "pserver/refuse.h"

#include <stdio.h>

#include "pserver/service.h"

void
wf_refuse_unlogged(struct wf_conn *conn, bool job_is_over)
{
	const struct wf_error *why = wf_error_record();
	struct wf_welcome no = {
		.refusal = (uint16_t)why->status,
		.flags = job_is_over ? WF_WELCOME_JOB_OVER : 0,
	};
	(void)snprintf(no.reason, sizeof(no.reason), "%.*s", WF_REASON_BYTES - 1, why->text);
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&no, bytes);
	conn->user = NULL;
	if (wf_transport_answer(conn, false, bytes, used) != WEFT_OK) {
		wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	}
}

void
wf_refuse_other(struct wf_lane *lane, struct wf_conn *conn, const char *who)
{
	bool is_early = wf_error_record()->status == WEFT_UNAVAILABLE; /* it tries again */
	if (!is_early && wf_lane_may_warn(lane)) {
		wf_log(lane->env, WF_LOG_WARN, "lane %u: refused a %s: %.255s", lane->opts.idx, who,
		       weft_last_error());
	}
	wf_refuse_unlogged(conn, false);
}

void
wf_refuse_other_port(struct wf_lane *lane, struct wf_conn *conn)
{
	(void)wf_fail(WEFT_MISMATCH,
		      "this is lane %u of a pserver, and the registrar is lane 0 of pserver 0; "
		      "give --registrar the first port of pserver 0",
		      lane->opts.idx);
	wf_refuse_other(lane, conn, "pserver");
}
