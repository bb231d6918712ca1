/* SPDX-License-Identifier: Apache-2.0 */
/* session_link: greeting a sparse lane, and its messages. What every link has in common (finding
 * the lane, coming back, leaving) is trainer/link.c's. Thread: the core's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"

static void
fill_hello(const struct wf_link *link, struct wf_hello *hello)
{
	const struct wf_client *client = link->core->service_state;
	hello->service = WF_SERVICE_SPARSE;
	hello->lane_count = link->core->service_lane_count;
	hello->tensors_digest = client->digest;
	hello->job_bytes = client->tables_bytes;
	wf_client_summarise(client, hello->tensors, sizeof(hello->tensors));
}

static bool
flush_tables(struct wf_link *link)
{
	struct wf_client_link *cl = link->peer;
	struct wf_client *client = cl->client;
	const struct wf_job *job = &client->core->job;
	for (; cl->tables_sent < client->table_count; cl->tables_sent++) {
		const struct wf_sparse_table msg = {
			.idx = cl->tables_sent,
			.table_count = client->table_count,
			.grad_reduce = (uint8_t)job->grad_reduce,
			.nonfinite = (uint8_t)job->nonfinite,
			.mode = (uint8_t)client->core->opts.sparse_mode,
			.staleness = client->core->opts.sparse_staleness,
			.discard_ratio = client->core->opts.sparse_discard_ratio,
			.table = client->desc[cl->tables_sent],
		};
		wf_sparse_table_encode(&msg, &client->core->msg);
		if (!wf_link_send(link, &client->core->msg)) {
			return false;
		}
	}
	link->job_due = false;
	return true;
}

/* The lanes' window, and what they keep: every table must fit, on every lane, on every path. */
static enum weft_status
check_window(struct wf_client_link *cl, const struct wf_msg_grant *msg)
{
	struct wf_client *client = cl->client;
	bool known = client->started;
	uint64_t least = WF_CLIENT_SLOT_MIN;
	for (uint32_t i = 0; i < client->table_count; i++) {
		uint64_t row = wf_table_front_bytes(&client->desc[i]) + WF_KEY_BYTES;
		least = row > least ? row : least;
	}
	least = known && client->slot_bytes > least ? client->slot_bytes : least;
	if (msg->bytes < least || (known && msg->held_bytes < client->held_bytes)) {
		wf_core_fail(client->core, WEFT_MISMATCH,
			     "pserver %u sparse lane %u: slots of %" PRIu64 " bytes and %" PRIu64
			     " held, %" PRIu64 " and %" PRIu64
			     " are needed%s: give the pserver a larger slot_bytes",
			     cl->link->pserver_idx, cl->link->lane_idx, msg->bytes, msg->held_bytes,
			     least, known ? client->held_bytes : least, known ? ", as before" : "");
		return WEFT_OK; /* said */
	}
	if (!known) {
		client->slot_bytes =
			msg->bytes < client->slot_bytes ? msg->bytes : client->slot_bytes;
		client->held_bytes =
			msg->held_bytes < client->held_bytes ? msg->held_bytes : client->held_bytes;
	}
	return WEFT_OK;
}

/* Room for the lane's window; taken once, larger only if a lane grants more than before. */
static enum weft_status
take_buffers(struct wf_client_link *cl, uint32_t slot_count)
{
	struct wf_env *env = cl->client->core->env;
	if (slot_count > cl->slot_capacity) {
		struct wf_part_ref **part =
			wf_zalloc_array(env, slot_count, sizeof(struct wf_part_ref *));
		uint32_t *free = wf_zalloc_array(env, slot_count, sizeof(*free));
		if (part == NULL || free == NULL) {
			wf_free(env, part, slot_count * sizeof(struct wf_part_ref *));
			wf_free(env, free, slot_count * sizeof(*free));
			return wf_fail(WEFT_NOMEM, "session: no memory for %u slots", slot_count);
		}
		wf_client_link_free_buffers(cl);
		cl->buffer_part = part;
		cl->buffer_free = free;
		cl->slot_capacity = slot_count;
	}
	for (uint32_t i = 0; i < slot_count; i++) {
		cl->buffer_part[i] = NULL;
		cl->buffer_free[i] = slot_count - 1 - i; /* 0 is taken first */
	}
	cl->slot_count = slot_count;
	cl->buffer_free_count = slot_count;
	return WEFT_OK;
}

void
wf_client_link_free_buffers(struct wf_client_link *cl)
{
	struct wf_env *env = cl->client->session->env;
	wf_free(env, cl->buffer_part, cl->slot_capacity * sizeof(struct wf_part_ref *));
	wf_free(env, cl->buffer_free, cl->slot_capacity * sizeof(*cl->buffer_free));
	cl->buffer_part = NULL;
	cl->buffer_free = NULL;
	cl->slot_capacity = 0;
}

static enum weft_status
take_slots(struct wf_link *link, const struct wf_msg_grant *msg)
{
	struct wf_client_link *cl = link->peer;
	if (msg->kind != WF_GRANT_WIRE_SLOTS || cl->have_slots || link->state != WF_LINK_GREETING) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: kind %u was not expected", msg->kind);
	}
	if (msg->held_bytes == 0) {
		return wf_fail(WEFT_PROTOCOL, "GRANT: a sparse lane holds 0 bytes");
	}
	enum weft_status st = check_window(cl, msg);
	if (st == WEFT_OK) {
		st = take_buffers(cl, msg->slot_count);
	}
	if (st != WEFT_OK) {
		return st;
	}
	memcpy(cl->slots_key.bytes, msg->key, sizeof(msg->key));
	cl->have_slots = true;
	return WEFT_OK;
}

/* Where the push under way stands at the lane. */
static enum weft_status
place_push(struct wf_client_link *cl, const struct wf_msg_steps *msg)
{
	struct wf_client *client = cl->client;
	uint64_t received = msg->step == WF_STEP_NONE ? 0 : msg->step;
	uint64_t applied = msg->step_of[0] == WF_STEP_NONE ? 0 : msg->step_of[0];
	if (!cl->push_waits) {
		return WEFT_OK;
	}
	if (received > client->push_step || applied > client->push_step) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESUME: step %" PRIu64 " received, %" PRIu64
			       " applied, but step %" PRIu64 " is under way",
			       received, applied, client->push_step);
	}
	if (cl->push_held) {
		return WEFT_OK;
	}
	cl->push_left = received < client->push_step;
	cl->push_table = 0;
	cl->push_next = 0;
	if (cl->push_left && cl->push_said) {
		wf_count(&client->counts.pushes_repeated, 1);
	}
	return WEFT_OK;
}

static enum weft_status
take_resume(struct wf_link *link, const struct wf_msg_steps *msg)
{
	struct wf_client_link *cl = link->peer;
	if (link->state != WF_LINK_GREETING || link->job_due || !cl->have_slots) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: step %" PRIu64 " was not expected%s",
			       msg->step, cl->have_slots ? "" : ": there was no grant of slots");
	}
	if (msg->first != 0 || msg->count != 1 || !msg->last) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: units %u and %u more, rows have 1",
			       msg->first, msg->count);
	}
	enum weft_status st = place_push(cl, msg);
	if (st != WEFT_OK) {
		return st;
	}
	wf_link_ready(link);
	cl->have_due = true;
	return WEFT_OK;
}

static enum weft_status
take_msg(struct wf_link *link, const struct wf_event *event)
{
	struct wf_client_link *cl = link->peer;
	const struct wf_head *head = event->msg.head;
	const uint8_t *body = event->msg.body;
	struct wf_sparse_applied applied;
	struct wf_sparse_nack nack;
	struct wf_sparse_restored restored;
	enum weft_status st;
	switch (head->type) {
	case WF_SPARSE_APPLIED:
		st = wf_sparse_applied_decode(head, body, &applied);
		return st != WEFT_OK ? st : wf_client_applied(cl, &applied);
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

/* Grant all memory that answers land in, and tell the lane. */
static bool
flush_grant(struct wf_client_link *cl)
{
	struct wf_client *client = cl->client;
	if (!cl->granted) {
		const struct wf_grant grant = {
			.kind = WF_GRANT_PLACE,
			.region = client->rows_region,
			.bytes = client->rows.bytes,
		};
		enum weft_status st = wf_transport_grant(cl->link->conn, &grant, &cl->rows_key);
		if (st != WEFT_OK && st != WEFT_CLOSED) {
			wf_core_fail(client->core, st, "%s", weft_last_error());
		}
		cl->granted = st == WEFT_OK;
	}
	if (cl->granted && !cl->told) {
		struct wf_msg_grant msg = {
			.kind = WF_GRANT_WIRE_PLACE,
			.bytes = client->rows.bytes,
		};
		memcpy(msg.key, cl->rows_key.bytes, sizeof(msg.key));
		wf_msg_grant_encode(&msg, &client->core->msg);
		cl->told = wf_link_send(cl->link, &client->core->msg);
	}
	return cl->told;
}

static bool
flush_have(struct wf_client_link *cl)
{
	const struct wf_core *core = cl->client->core;
	const struct wf_msg_steps msg = {
		.step = core->step == 0 ? WF_STEP_NONE : core->step,
		.last = true,
		.count = 1,
		.step_of = {cl->applied == 0 ? WF_STEP_NONE : cl->applied},
	};
	wf_msg_have_encode(&msg, &cl->client->core->msg);
	cl->have_due = !wf_link_send(cl->link, &cl->client->core->msg);
	return !cl->have_due;
}

static bool
flush(struct wf_link *link)
{
	struct wf_client_link *cl = link->peer;
	if (!flush_grant(cl) || (cl->have_due && !flush_have(cl))) {
		return true;
	}
	return wf_client_flow_flush(cl);
}

static void
forget_path(struct wf_link *link)
{
	struct wf_client_link *cl = link->peer;
	wf_client_flow_forget(cl);
	cl->tables_sent = 0;
	cl->have_slots = false;
	cl->granted = false;
	cl->told = false;
	cl->have_due = false;
}

const struct wf_link_ops wf_client_link_ops = {
	.service = WF_SERVICE_SPARSE,
	.lane_name = "sparse lane",
	.fill_hello = fill_hello,
	.flush_job = flush_tables,
	.flush = flush,
	.grant = take_slots,
	.resume = take_resume,
	.credit = wf_client_credit,
	.msg = take_msg,
	.put = wf_client_answer,
	.done = wf_client_done,
	.forget_path = forget_path,
};
