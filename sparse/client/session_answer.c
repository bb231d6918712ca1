/* SPDX-License-Identifier: Apache-2.0 */
/* session_answer: what comes back on the links to sparse lanes: rows, corrections, refusals,
 * APPLIED and DONE, and the ends of the owner's waits that follow from them. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"

/* The ends of the owner's waits. */

static void
finish_rows(struct wf_client *client, struct weft_rows *rows)
{
	if (rows->unanswered > 0 || rows->in_flight > 0) {
		return;
	}
	WF_ASSERT(client->pulls.busy > 0);
	client->pulls.busy--;
	wf_wait_end(&client->pulls.waits, &rows->wait);
	atomic_store_explicit(&rows->busy, 0, memory_order_release); /* B1 */
}

static void
finish_step(struct wf_client *client)
{
	if (client->push.lanes > 0 || client->push.in_flight > 0) {
		return;
	}
	wf_count(&client->counts.steps_applied, 1);
	client->push.applied_ns = wf_now_ns(client->core->end.env);
	atomic_store_explicit(&client->push.busy, 0, memory_order_release); /* B1 */
}

static void
close_request(struct wf_client_link *cl, struct wf_pull_request *request)
{
	request->open = false;
	if (cl->wishes.count > 0 || cl->push.left) {
		wf_client_due(cl);
	}
}

/* Counts off a part that was answered, or will not be. */
static void
settle_part(struct wf_client_link *cl, struct wf_pull_request *request, struct wf_part_ref *part)
{
	part->answered = true;
	WF_ASSERT(request->unanswered > 0 && part->rows->unanswered > 0);
	request->unanswered--;
	part->rows->unanswered--;
	if (part->rows->unanswered == 0 && part->rows->in_flight > 0) {
		cl->client->core->service.undone++;
	}
	finish_rows(cl->client, part->rows);
}

/* Ends a refused request, all PUTs of which have left: its rows get no answer. CREDIT will free its
 * buffers. */
void
wf_client_give_up(struct wf_client_link *cl, struct wf_pull_request *request)
{
	for (uint32_t i = 0; i < request->part_count; i++) {
		struct wf_part_ref *part = &request->part[i];
		if (part->slot != WF_SLOT_NONE) {
			wf_send_window_pass_on(&cl->link.window, part->slot, &cl->refused_slots);
		}
		if (!part->answered) {
			settle_part(cl, request, part);
		}
	}
	close_request(cl, request);
}

/* A DONE: it was the last one of what had all its answers before. */
static void
end_undone(struct wf_client *client, uint32_t in_flight, uint32_t unanswered)
{
	if (in_flight == 0 && unanswered == 0) {
		WF_ASSERT(client->core->service.undone > 0);
		client->core->service.undone--;
	}
}

void
wf_client_done(struct wf_link *link, uint32_t what)
{
	struct wf_client *client = wf_core_of(link)->service.state;
	if ((what & WF_CLIENT_COOKIE_PUSH) != 0) {
		WF_ASSERT(client->push.in_flight > 0);
		client->push.in_flight--;
		end_undone(client, client->push.in_flight, client->push.lanes);
		finish_step(client);
		return;
	}
	if ((what & WF_CLIENT_COOKIE_CALL) != 0) {
		WF_ASSERT(client->call.in_flight > 0);
		client->call.in_flight--;
		wf_client_call_finish(client);
		return;
	}
	struct weft_rows *rows = wf_client_rows(client, what);
	WF_ASSERT(rows->in_flight > 0);
	rows->in_flight--;
	end_undone(client, rows->in_flight, rows->unanswered);
	finish_rows(client, rows);
}

static struct wf_pull_request *
find_request(struct wf_client_link *cl, uint64_t id, uint64_t mask)
{
	for (uint32_t i = 0; i < WF_CLIENT_REQUESTS; i++) {
		struct wf_pull_request *request = &cl->request[i];
		if (request->open && request->begun && (request->id & mask) == id) {
			return request;
		}
	}
	return NULL;
}

/* A part of the request has all its rows. */
static void
end_part(struct wf_client_link *cl, struct wf_pull_request *request, uint32_t i)
{
	wf_send_window_release(&cl->link.window, &request->part[i].slot);
	settle_part(cl, request, &request->part[i]);
	if (request->unanswered == 0) {
		if (wf_client_is_recorded(cl->client)) {
			wf_client_note_pull(cl, request, WF_TRACE_ROWS_ANSWERED);
		}
		close_request(cl, request);
	}
}

/* Whether rows with this step in their tag are those before the step that is under way. */
static bool
comes_ahead(const struct wf_pull_request *request, const struct wf_part_ref *part, uint32_t tag)
{
	return request->ahead && !part->ahead && wf_tag_step(tag) == (uint8_t)(request->step - 1);
}

enum weft_status
wf_client_answer(struct wf_link *link, const struct wf_put *put)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	uint32_t tag = put->tag;
	uint32_t slot = wf_tag_slot(tag);
	uint32_t i = slot & 0xff;
	if (i == WF_SPARSE_FETCH_PART) {
		return wf_client_fetched(cl, put);
	}
	struct wf_pull_request *request = find_request(cl, slot >> 8, 0xffff);
	if (request == NULL || request->refused || i >= request->part_count ||
	    request->part[i].answered || !request->part[i].sent) {
		return wf_fail(WEFT_PROTOCOL, "PUT: part %u of pull %u was not waited for", i,
			       slot >> 8);
	}
	const bool ahead = comes_ahead(request, &request->part[i], tag);
	if (wf_tag_step(tag) != (uint8_t)request->step && !request->repeated && !ahead) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: rows of step %u modulo 256, but those of %" PRIu64
			       " were requested",
			       wf_tag_step(tag), request->step);
	}
	if (request->part[i].ahead) {
		return wf_fail(
			WEFT_PROTOCOL,
			"PUT: part %u of pull %u was sent ahead of its step, so it may only be "
			"corrected, by CHANGED",
			i, slot >> 8);
	}
	uint64_t due = wf_client_answer_bytes(cl->client, &request->part[i]);
	if (!wf_put_is(put, due)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: %" PRIu64 " bytes of rows, but part %u has %" PRIu64,
			       put->bytes, i, due);
	}
	if (ahead) {
		request->part[i].ahead = true;
	} else {
		end_part(cl, request, i);
	}
	return WEFT_OK;
}

static enum weft_status
check_changed(const struct wf_client *client, const struct wf_pull_request *request,
	      const struct wf_sparse_changed *msg)
{
	const uint32_t last = msg->row_count > 0 ? msg->row[msg->row_count - 1] : 0;
	if (request == NULL || request->refused || msg->part >= request->part_count ||
	    !request->part[msg->part].ahead || request->part[msg->part].answered ||
	    msg->step != request->step) {
		return wf_fail(WEFT_PROTOCOL,
			       "CHANGED: part %u of pull %" PRIu64 ", step %" PRIu64
			       ", was not sent ahead",
			       msg->part, msg->request_id, msg->step);
	}
	const struct wf_part_ref *part = &request->part[msg->part];
	const uint32_t row_bytes = wf_table_row_bytes(&client->tables.desc[part->rows->table->idx]);
	if (msg->row_bytes != row_bytes || last >= wf_client_part(part)->row_count) {
		return wf_fail(WEFT_PROTOCOL,
			       "CHANGED: row %u of %u bytes, but part %u has %u rows of %u bytes",
			       last, msg->row_bytes, msg->part, wf_client_part(part)->row_count,
			       row_bytes);
	}
	return WEFT_OK;
}

enum weft_status
wf_client_changed(struct wf_client_link *cl, const struct wf_sparse_changed *msg)
{
	struct wf_pull_request *request = find_request(cl, msg->request_id, UINT64_MAX);
	enum weft_status st = check_changed(cl->client, request, msg);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_part_ref *part = &request->part[msg->part];
	uint8_t *values = (uint8_t *)part->rows->values + wf_client_landing(part->rows) +
			  (uint64_t)wf_client_part(part)->first * msg->row_bytes;
	for (uint32_t i = 0; i < msg->row_count; i++) {
		memcpy(values + (uint64_t)msg->row[i] * msg->row_bytes,
		       msg->values + (size_t)i * msg->row_bytes, msg->row_bytes);
	}
	if (msg->last) {
		wf_count(&cl->client->counts.parts_ahead, 1);
		end_part(cl, request, msg->part);
	}
	return WEFT_OK;
}

/* The lane will not answer this pull: its rows have failed, and nothing else has. */
static enum weft_status
refuse_pull(struct wf_client_link *cl, const struct wf_sparse_nack *msg)
{
	struct wf_pull_request *request = find_request(cl, msg->request_id, UINT64_MAX);
	if (request == NULL || request->refused) {
		return wf_fail(WEFT_PROTOCOL, "NACK of pull %" PRIu64 ", which was not sent",
			       msg->request_id);
	}
	for (uint32_t i = 0; i < request->part_count; i++) {
		struct weft_rows *rows = request->part[i].rows;
		if (!request->part[i].answered && rows->status == WEFT_OK) {
			rows->status = (enum weft_status)msg->status;
			(void)snprintf(rows->reason, sizeof(rows->reason), "%s", msg->reason);
		}
	}
	request->refused = true;
	if (cl->sending != WF_SENDING_PULL || cl->sent_request != request) {
		wf_client_give_up(cl, request);
	}
	return WEFT_OK;
}

enum weft_status
wf_client_refused(struct wf_client_link *cl, const struct wf_sparse_nack *msg)
{
	if (msg->request_id != 0 && wf_client_call_refused(cl, msg)) {
		return WEFT_OK;
	}
	if (msg->request_id != 0) {
		return refuse_pull(cl, msg);
	}
	wf_core_fail(cl->client->core, (enum weft_status)msg->status,
		     "pserver %u sparse lane %u, step %" PRIu64 ": %s", cl->link.pserver_idx,
		     cl->link.lane_idx, msg->step, msg->reason);
	return WEFT_OK;
}

/* (key, gradient) pairs that would have gone to the lane. */
static uint64_t
pairs_of_lane(const struct wf_client_link *cl)
{
	const struct wf_client *client = cl->client;
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < client->tables.count; i++) {
		const struct weft_rows *rows = client->step.pushed[i];
		if (rows != NULL) {
			pairs += rows->view.lane_first[cl->lane + 1] -
				 rows->view.lane_first[cl->lane];
		}
	}
	return pairs;
}

/* The first lane has judged the push: passes its verdict on to the others. */
static void
spread_verdict(struct wf_client *client, bool dropped)
{
	client->push.verdict = dropped ? WF_SPARSE_PUSH_DROP : WF_SPARSE_PUSH_APPLY;
	for (uint32_t l = 1; l < client->lane_count; l++) {
		struct wf_client_link *cl = &client->link[l];
		WF_ASSERT(cl->push.held && cl->push.waits);
		cl->push.held = false;
		cl->push.left = true;
		wf_count(&client->counts.pushes_lost, dropped ? pairs_of_lane(cl) : 0);
		wf_client_due(cl);
	}
}

enum weft_status
wf_client_applied(struct wf_client_link *cl, const struct wf_sparse_applied *msg)
{
	struct wf_client *client = cl->client;
	bool whole = !cl->push.left && !cl->push.held && cl->sending != WF_SENDING_PUSH;
	if (!cl->push.waits || !whole || msg->step != client->push.step) {
		return wf_fail(WEFT_PROTOCOL, "APPLIED: step %" PRIu64 " was not waited for",
			       msg->step);
	}
	wf_count(&client->counts.rows_updated, msg->rows_updated);
	wf_count(&client->counts.pushes_lost, msg->pushes_lost);
	wf_count(&client->counts.grads_nonfinite, msg->grads_nonfinite);
	wf_send_window_release_all(&cl->link.window, &cl->push_slots);
	cl->push.waits = false;
	cl->push.applied = msg->step;
	if (wf_client_is_recorded(client)) {
		wf_client_note_push(cl, WF_TRACE_ANSWERED);
	}
	WF_ASSERT(client->push.lanes > 0);
	client->push.lanes--;
	if (client->push.lanes == 0 && client->push.in_flight > 0) {
		client->core->service.undone++;
	}
	if (client->judges && cl->lane == 0) {
		spread_verdict(client, msg->dropped);
	}
	finish_step(client);
	return WEFT_OK;
}
