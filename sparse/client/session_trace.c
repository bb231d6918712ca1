/* SPDX-License-Identifier: Apache-2.0 */
/* session_trace: what a trainer that is recorded (base/trace.h) records of its rows: the push of a
 * step to a lane as the push of one slice, and requests for rows. Thread: the core's. */
#include "sparse/client/session.h"

static void
note(const struct wf_client_link *cl, enum wf_trace_what what, uint32_t slice, uint64_t step,
     uint64_t value)
{
	const struct wf_core *core = cl->client->core;
	uint32_t lane = core->job.set.ports_num + cl->link.lane_idx;
	wf_trace_note(core->trace.on, what, wf_trace_lane(cl->link.pserver_idx, lane), slice, step,
		      value);
}

static uint64_t
bytes_of(const struct wf_client_link *cl)
{
	const struct wf_client *client = cl->client;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < client->tables.count; i++) {
		const struct weft_rows *rows = client->step.pushed[i];
		uint32_t at = rows != NULL ? rows->view.lane_part[cl->lane] : 0;
		uint32_t end = rows != NULL ? rows->view.lane_part[cl->lane + 1] : 0;
		for (; at < end; at++) {
			const struct wf_batch_part *part = &rows->view.part[at];
			bytes += part->key_at + part->key_bytes - part->at;
		}
	}
	return bytes;
}

void
wf_client_note_push(const struct wf_client_link *cl, enum wf_trace_what what)
{
	bool is_posted = what == WF_TRACE_POSTED;
	note(cl, what, 0, cl->client->push.step, is_posted ? bytes_of(cl) : 0);
}

void
wf_client_note_pull(const struct wf_client_link *cl, const struct wf_pull_request *request,
		    enum wf_trace_what what)
{
	uint64_t rows = 0;
	/* Rows that are answered are the caller's. */
	bool is_asked = what == WF_TRACE_ROWS_ASKED;
	for (uint32_t i = 0; is_asked && i < request->part_count; i++) {
		const struct wf_part_ref *ref = &request->part[i];
		rows += ref->rows->view.part[ref->part].row_count;
	}
	note(cl, what, (uint32_t)request->id, request->step, rows);
}
