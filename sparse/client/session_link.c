/* SPDX-License-Identifier: Apache-2.0 */
/* session_link: greets a sparse lane and receives its messages. What all links have in common
 * (finding the lane, reconnecting, leaving) is in exchange/link.c. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"

static enum weft_status
open_lane(struct wf_link *link, uint32_t lane)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	struct wf_client *client = wf_core_of(link)->service.state;
	uint32_t wishes = client->tables.count * WF_CLIENT_BATCHES;
	cl->client = client;
	cl->lane = lane;
	link->content.unit_count = 1;
	link->content.place = &client->place;
	link->content.place_count = 1;
	link->content.takes_steps = true;
	cl->wishes.wish = wf_zalloc_array(link->end->env, wishes, sizeof(*cl->wishes.wish));
	return cl->wishes.wish != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM, "session: no memory for %u batches", wishes);
}

static void
close_lane(struct wf_link *link)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	size_t wishes = (size_t)cl->client->tables.count * WF_CLIENT_BATCHES;
	wf_free(link->end->env, cl->wishes.wish, wishes * sizeof(*cl->wishes.wish));
	cl->wishes.wish = NULL;
}

static void
fill_hello(const struct wf_link *link, struct wf_hello *hello)
{
	const struct wf_client *client = wf_core_of(link)->service.state;
	hello->service = WF_SERVICE_SPARSE;
	hello->lane_count = wf_core_of(link)->service.lane_count;
	hello->tensors_digest = client->tables.digest;
	hello->job_bytes = client->tables.bytes;
	wf_client_describe(client, hello->tensors, sizeof(hello->tensors));
}

static bool
flush_tables(struct wf_link *link)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	struct wf_client *client = cl->client;
	const struct wf_job *job = &client->core->job;
	for (; cl->tables_sent < client->tables.count; cl->tables_sent++) {
		const struct wf_sparse_table msg = {
			.idx = cl->tables_sent,
			.table_count = client->tables.count,
			.grad_reduce = (uint8_t)job->set.grad_reduce,
			.nonfinite = wf_job_skips(job) ? 1 : 0,
			.mode = (uint8_t)client->core->opts.sparse_mode,
			.staleness = client->core->opts.sparse_staleness,
			.discard_ratio = client->core->opts.sparse_discard_ratio,
			.table = client->tables.desc[cl->tables_sent],
		};
		wf_sparse_table_encode(&msg, &client->core->end.msg);
		if (!wf_link_send(link, &client->core->end.msg)) {
			return false;
		}
	}
	link->to_send.job = false;
	return true;
}

/* Checks the window that a lane grants and the room that it holds: every table must fit, on every
 * lane and every path. */
static enum weft_status
check_window(struct wf_link *link, const struct wf_msg_grant *msg)
{
	const struct wf_client_link *cl = (const struct wf_client_link *)link;
	struct wf_client *client = cl->client;
	bool known = client->started;
	if (msg->announced) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: a sparse lane has pushes announced");
	}
	if (msg->held_bytes == 0) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: a sparse lane holds 0 bytes");
	}
	uint64_t least = WF_CLIENT_SLOT_MIN;
	for (uint32_t i = 0; i < client->tables.count; i++) {
		uint64_t row = wf_table_front_bytes(&client->tables.desc[i]) + WF_KEY_BYTES;
		least = row > least ? row : least;
	}
	least = known && client->slot_bytes > least ? client->slot_bytes : least;
	if (msg->bytes < least || (known && msg->held_bytes < client->held_bytes)) {
		wf_core_fail(client->core, WEFT_MISMATCH,
			     "pserver %u sparse lane %u grants slots of %" PRIu64
			     " bytes and holds %" PRIu64 ", but %" PRIu64 " and %" PRIu64
			     " are needed%s: give the pserver a larger slot_bytes",
			     link->pserver_idx, link->lane_idx, msg->bytes, msg->held_bytes, least,
			     known ? client->held_bytes : least, known ? ", as before" : "");
		return WEFT_OK; /* the session ends; the lane did no wrong */
	}
	if (!known) {
		client->slot_bytes =
			msg->bytes < client->slot_bytes ? msg->bytes : client->slot_bytes;
		client->held_bytes =
			msg->held_bytes < client->held_bytes ? msg->held_bytes : client->held_bytes;
	}
	return WEFT_OK;
}

/* RESUME: the state of the push under way at the lane. */
static enum weft_status
resume_push(struct wf_link *link, const struct wf_msg_steps *msg)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	struct wf_client *client = cl->client;
	uint64_t received = msg->step == WF_STEP_NONE ? 0 : msg->step;
	uint64_t applied = msg->step_of[0] == WF_STEP_NONE ? 0 : msg->step_of[0];
	if (!link->was_ready) {
		cl->begins_at = received;
	}
	if (!cl->push.waits) {
		return WEFT_OK;
	}
	if (received > client->push.step || applied > client->push.step) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESUME: step %" PRIu64 " received, %" PRIu64
			       " applied, but step %" PRIu64 " is under way",
			       received, applied, client->push.step);
	}
	if (cl->push.held) {
		return WEFT_OK;
	}
	cl->push.left = received < client->push.step;
	cl->push.table = 0;
	cl->push.next = 0;
	if (cl->push.left && cl->push.said) {
		wf_count(&client->counts.pushes_repeated, 1);
	}
	return WEFT_OK;
}

/* HAVE: the last step whose APPLIED has been received. */
static uint64_t
answered(const struct wf_link *link, uint32_t unit)
{
	const struct wf_client_link *cl = (const struct wf_client_link *)link;
	(void)unit;
	return cl->push.applied == 0 ? WF_STEP_NONE : cl->push.applied;
}

static enum weft_status
on_message(struct wf_link *link, const struct wf_event *event)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	const struct wf_head *head = event->msg.head;
	const uint8_t *body = event->msg.body;
	struct wf_sparse_applied applied;
	struct wf_sparse_nack nack;
	struct wf_sparse_restored restored;
	struct wf_sparse_changed *changed = &cl->client->pulls.changed;
	enum weft_status st;
	switch (head->type) {
	case WF_SPARSE_APPLIED:
		st = wf_sparse_applied_decode(head, body, &applied);
		return st != WEFT_OK ? st : wf_client_applied(cl, &applied);
	case WF_SPARSE_CHANGED:
		st = wf_sparse_changed_decode(head, body, changed);
		return st != WEFT_OK ? st : wf_client_changed(cl, changed);
	case WF_SPARSE_RESTORED:
		st = wf_sparse_restored_decode(head, body, &restored);
		return st != WEFT_OK ? st : wf_client_restored(cl, &restored);
	case WF_SPARSE_NACK:
		st = wf_sparse_nack_decode(head, body, &nack);
		return st != WEFT_OK ? st : wf_client_refused(cl, &nack);
	default:
		return wf_fail(WEFT_PROTOCOL, "sparse message of type %u at a trainer", head->type);
	}
}

static void
forget_path(struct wf_link *link)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	wf_client_flow_forget(cl);
	cl->tables_sent = 0;
}

const struct wf_link_ops wf_client_link_ops = {
	.service = WF_SERVICE_SPARSE,
	.lane_name = "sparse lane",
	.open = open_lane,
	.close = close_lane,
	.fill_hello = fill_hello,
	.flush_job = flush_tables,
	.flush = wf_client_flow_flush,
	.check_window = check_window,
	.resume = resume_push,
	.answered = answered,
	.msg = on_message,
	.put = wf_client_answer,
	.done = wf_client_done,
	.forget_path = forget_path,
};
