/* SPDX-License-Identifier: Apache-2.0 */
/* session_call: FETCH and RESTORE on a link: one at a time, over all links, repeated on every new
 * path until it is answered. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "sparse/client/session.h"

static struct wf_client_link *
link_of(struct wf_client *client)
{
	return &client->link[client->call.lane];
}

void
wf_client_call_begin(struct wf_client *client)
{
	struct wf_client_call *call = &client->call;
	WF_ASSERT(!call->open && call->in_flight == 0);
	call->open = true;
	client->core->service.undone++; /* until it has ended: it is rare */
	call->begun = false;
	call->answered = false;
	call->status = WEFT_OK;
	call->id = ++link_of(client)->request_id;
	call->since_ns = wf_now_ns(client->core->end.env);
	wf_link_due(&link_of(client)->link);
}

bool
wf_client_call_is_unasked(const struct wf_client_link *cl)
{
	const struct wf_client_call *call = &cl->client->call;
	return call->open && !call->begun && call->lane == cl->lane;
}

void
wf_client_call_encode(struct wf_client_link *cl)
{
	struct wf_client *client = cl->client;
	const struct wf_client_call *call = &client->call;
	if (call->fetches) {
		const struct wf_sparse_fetch msg = {
			.request_id = call->id,
			.step = call->step,
			.table = call->table,
			.pass = client->core->step.pass,
			.from = call->from,
			.bytes = WF_CLIENT_PIECE,
			.offset = client->rows.bytes - WF_CLIENT_PIECE,
		};
		wf_sparse_fetch_encode(&msg, &client->core->end.msg);
		return;
	}
	const struct wf_sparse_restore msg = {
		.request_id = call->id,
		.step = call->step,
		.samples = call->samples,
		.table_step = call->table_step,
		.table = call->table,
		.bytes = call->bytes,
	};
	wf_sparse_restore_encode(&msg, &client->core->end.msg);
}

/* Ends the call, and lets the owner continue, once it is answered and all of it has been sent. */
void
wf_client_call_finish(struct wf_client *client)
{
	struct wf_client_call *call = &client->call;
	if (!call->open || !call->answered || call->in_flight > 0 ||
	    link_of(client)->sending == WF_SENDING_CALL) {
		return;
	}
	call->open = false;
	client->core->service.undone--;
	atomic_store_explicit(&call->busy, 0, memory_order_release); /* B1 */
}

static bool
is_waited_for(const struct wf_client_link *cl, uint64_t id, uint64_t mask)
{
	const struct wf_client_call *call = &cl->client->call;
	return call->open && call->begun && !call->answered && call->lane == cl->lane &&
	       (call->id & mask) == id;
}

enum weft_status
wf_client_fetched(struct wf_client_link *cl, const struct wf_put *put)
{
	struct wf_client *client = cl->client;
	uint32_t id = wf_tag_slot(put->tag) >> 8;
	if (!client->call.fetches || !is_waited_for(cl, id, 0xffff) ||
	    wf_tag_step(put->tag) != (uint8_t)client->call.step) {
		return wf_fail(WEFT_PROTOCOL, "PUT: fetch %u was not requested", id);
	}
	struct wf_run_head head;
	wf_run_head_get(wf_client_piece(client), &head);
	if (!wf_put_is(put, head.bytes)) {
		return wf_fail(WEFT_PROTOCOL, "PUT: %" PRIu64 " bytes came of a run of %u",
			       put->bytes, head.bytes);
	}
	client->call.answered = true;
	wf_client_call_finish(client);
	return WEFT_OK;
}

enum weft_status
wf_client_restored(struct wf_client_link *cl, const struct wf_sparse_restored *msg)
{
	struct wf_client *client = cl->client;
	if (client->call.fetches || !is_waited_for(cl, msg->request_id, UINT64_MAX)) {
		return wf_fail(WEFT_PROTOCOL, "RESTORED: request %" PRIu64 " was not sent",
			       msg->request_id);
	}
	client->call.answered = true;
	wf_client_call_finish(client);
	return WEFT_OK;
}

bool
wf_client_call_refused(struct wf_client_link *cl, const struct wf_sparse_nack *msg)
{
	struct wf_client_call *call = &cl->client->call;
	if (!is_waited_for(cl, msg->request_id, UINT64_MAX)) {
		return false;
	}
	call->answered = true;
	call->status = (enum weft_status)msg->status;
	(void)snprintf(call->reason, sizeof(call->reason), "%s", msg->reason);
	wf_client_call_finish(cl->client);
	return true;
}

void
wf_client_call_forget(struct wf_client_link *cl)
{
	struct wf_client_call *call = &cl->client->call;
	if (call->open && call->lane == cl->lane) {
		call->begun = call->answered;
		wf_client_call_finish(cl->client);
	}
}
