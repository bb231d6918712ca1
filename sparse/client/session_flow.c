/* SPDX-License-Identifier: Apache-2.0 */
/* session_flow: pulls and pushes on the links to sparse lanes. Thread: the core's. A
 * message and its PUTs leave together, with nothing in between. They may wait for slots, which come
 * back by CREDIT, by answers and by APPLIED. Pushes go before pulls, but a push waits for the rows
 * of earlier steps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "sparse/client/session.h"

/* Commands. */

static void
wish(struct wf_client_link *cl, struct weft_rows *rows)
{
	uint32_t first = rows->view.lane_part[cl->lane];
	uint32_t end = rows->view.lane_part[cl->lane + 1];
	uint32_t capacity = cl->client->tables.count * WF_CLIENT_BATCHES;
	if (first == end) {
		return;
	}
	WF_ASSERT(cl->wishes.count < capacity);
	cl->wishes.wish[(cl->wishes.first + cl->wishes.count) % capacity] =
		(struct wf_pull_wish){.rows = rows, .next = first, .end = end};
	cl->wishes.count++;
	rows->unanswered += end - first;
	wf_client_due(cl);
}

static void
begin_pull(struct wf_client *client, struct weft_rows *rows)
{
	WF_ASSERT(rows->unanswered == 0 && rows->in_flight == 0);
	rows->status = WEFT_OK;
	client->pulls.busy++;
	wf_wait_begin(&client->pulls.waits, &rows->wait, wf_now_ns(client->core->end.env));
	for (uint32_t l = 0; l < client->lane_count; l++) {
		wish(&client->link[l], rows);
	}
	WF_ASSERT(rows->unanswered > 0);
}

static void
begin_push(struct wf_client *client, uint64_t step)
{
	WF_ASSERT(client->push.lanes == 0 && client->push.in_flight == 0);
	client->push.step = step;
	client->push.lanes = client->lane_count;
	client->push.verdict = 0;
	client->push.since_ns = wf_now_ns(client->core->end.env);
	for (uint32_t l = 0; l < client->lane_count; l++) {
		struct wf_client_link *cl = &client->link[l];
		cl->push.held = client->judges && l > 0;
		cl->push.left = !cl->push.held;
		cl->push.waits = true;
		cl->push.said = false;
		cl->push.table = 0;
		cl->push.next = 0;
		if (wf_client_is_recorded(client)) {
			wf_client_note_push(cl, WF_TRACE_QUEUED);
		}
		wf_client_due(cl);
	}
}

void
wf_client_command_run(struct wf_core *core, const struct wf_command *command)
{
	struct wf_client *client = core->service.state;
	switch ((enum wf_client_command)command->section) {
	case WF_CLIENT_PULL:
		begin_pull(client, wf_client_rows(client, command->tensor));
		break;
	case WF_CLIENT_PUSH:
		begin_push(client, command->a);
		break;
	case WF_CLIENT_CALL:
		wf_client_call_begin(client);
		break;
	}
}

/* The message under way. */

static struct wf_part_ref *
sent_part(struct wf_client_link *cl, uint32_t i)
{
	return cl->sending == WF_SENDING_PULL ? &cl->sent_request->part[i] : &cl->push_part[i];
}

static void
begin_message(struct wf_client_link *cl, enum wf_sending kind, uint32_t put_count)
{
	cl->sending = kind;
	cl->head_sent = false;
	cl->put_next = 0;
	cl->put_count = put_count;
}

/* Adds parts of a table from cl->push.next on, while there is room. True: all were added. */
static bool
add_push_parts(struct wf_client_link *cl, struct weft_rows *rows, uint32_t *count,
	       uint64_t *rows_left)
{
	uint32_t at = rows->view.lane_part[cl->lane] + cl->push.next;
	uint32_t end = rows->view.lane_part[cl->lane + 1];
	for (; at < end; at++, cl->push.next++) {
		uint32_t row_count = rows->view.part[at].row_count;
		if (*count == WF_SPARSE_PARTS_MAX || row_count > *rows_left) {
			return false;
		}
		cl->push_part[(*count)++] = (struct wf_part_ref){.rows = rows, .part = at};
		*rows_left -= row_count;
	}
	return true;
}

static void
begin_push_message(struct wf_client_link *cl)
{
	struct wf_client *client = cl->client;
	uint32_t count = 0;
	uint64_t rows_left = WF_SPARSE_ROWS_MAX;
	if (client->push.verdict == WF_SPARSE_PUSH_DROP) {
		cl->push.table = client->tables.count; /* no longer needed */
	}
	while (cl->push.table < client->tables.count) {
		struct weft_rows *rows = client->step.pushed[cl->push.table];
		if (rows != NULL && !add_push_parts(cl, rows, &count, &rows_left)) {
			break;
		}
		cl->push.table++;
		cl->push.next = 0;
	}
	cl->push_is_last = cl->push.table == client->tables.count;
	cl->push.left = !cl->push_is_last;
	cl->push.said = true;
	begin_message(cl, WF_SENDING_PUSH, count);
}

/* The oldest request that has to be sent on this path; NULL: none. */
static struct wf_pull_request *
unasked(struct wf_client_link *cl)
{
	struct wf_pull_request *oldest = NULL;
	for (uint32_t i = 0; i < WF_CLIENT_REQUESTS; i++) {
		struct wf_pull_request *request = &cl->request[i];
		if (request->open && !request->begun &&
		    (oldest == NULL || request->id < oldest->id)) {
			oldest = request;
		}
	}
	return oldest;
}

/* Moves parts of the wish into the request. True: the wish is fulfilled. */
static bool
move_wish(struct wf_pull_request *request, struct wf_pull_wish *w, uint64_t *rows_left)
{
	while (w->next < w->end && request->part_count < WF_SPARSE_PARTS_MAX &&
	       w->rows->view.part[w->next].row_count <= *rows_left) {
		*rows_left -= w->rows->view.part[w->next].row_count;
		request->part[request->part_count++] = (struct wf_part_ref){
			.rows = w->rows, .part = w->next++, .slot = WF_SLOT_NONE};
	}
	return w->next == w->end;
}

/* Makes one request of parts that are wanted at the same step and with the same flags, whatever
 * their tables. NULL: nothing is wanted, or the limit of unanswered requests is reached. */
static struct wf_pull_request *
new_request(struct wf_client_link *cl)
{
	struct wf_pull_request *request = NULL;
	uint32_t capacity = cl->client->tables.count * WF_CLIENT_BATCHES;
	uint64_t rows_left = WF_SPARSE_ROWS_MAX;
	for (uint32_t i = 0; i < WF_CLIENT_REQUESTS && cl->wishes.count > 0; i++) {
		request = cl->request[i].open ? request : &cl->request[i];
	}
	if (request == NULL) {
		return NULL;
	}
	const struct weft_rows *first = cl->wishes.wish[cl->wishes.first].rows;
	request->open = true;
	request->refused = false;
	request->repeated = false;
	request->id = ++cl->request_id;
	request->step = first->wants;
	request->flags = first->flags;
	request->ahead = cl->client->looks_ahead && request->step > 0;
	request->part_count = 0;
	while (cl->wishes.count > 0) {
		struct wf_pull_wish *w = &cl->wishes.wish[cl->wishes.first];
		if (w->rows->wants != request->step || w->rows->flags != request->flags ||
		    !move_wish(request, w, &rows_left)) {
			break;
		}
		cl->wishes.first = (cl->wishes.first + 1) % capacity;
		cl->wishes.count--;
	}
	request->unanswered = request->part_count;
	WF_ASSERT(request->part_count > 0);
	if (wf_client_is_recorded(cl->client)) {
		wf_client_note_pull(cl, request, WF_TRACE_ROWS_ASKED);
	}
	return request;
}

/* Whether the lane has not answered all pulls of steps before the one that is pushed. Behind the
 * push it would answer them, also if they are repeated on another path, with rows as they are after
 * it. Their steps are applied, so it answers without the push. */
static bool
waits_for_rows(const struct wf_client_link *cl)
{
	const struct wf_client *client = cl->client;
	const struct wf_pull_wishes *wishes = &cl->wishes;
	const uint64_t step = client->push.step;
	if (client->pulls.busy == 0 || client->core->opts.sparse_mode != WEFT_SPARSE_SYNC) {
		return false;
	}
	for (uint32_t i = 0; i < WF_CLIENT_REQUESTS; i++) {
		if (cl->request[i].open && cl->request[i].step < step) {
			return true;
		}
	}
	return wishes->count > 0 && wishes->wish[wishes->first].rows->wants < step;
}

/* Begins the next message. False: there is nothing to send. */
static bool
next_message(struct wf_client_link *cl)
{
	if (cl->push.left && !waits_for_rows(cl)) {
		begin_push_message(cl);
		return true;
	}
	if (wf_client_call_is_unasked(cl)) {
		struct wf_client_call *call = &cl->client->call;
		call->begun = true;
		begin_message(cl, WF_SENDING_CALL, !call->fetches && call->bytes > 0 ? 1 : 0);
		return true;
	}
	struct wf_pull_request *request = unasked(cl);
	if (request == NULL) {
		request = new_request(cl);
	}
	if (request == NULL) {
		return false;
	}
	request->begun = true;
	cl->sent_request = request;
	begin_message(cl, WF_SENDING_PULL, request->part_count);
	return true;
}

static void
describe_part(const struct wf_part_ref *ref, struct wf_sparse_part *out)
{
	const struct wf_batch_part *part = wf_client_part(ref);
	*out = (struct wf_sparse_part){
		.table = (uint16_t)ref->rows->table->idx,
		.coding = (uint8_t)part->coding,
		.row_count = part->row_count,
		.key_bytes = part->key_bytes,
	};
}

static void
encode_pull(struct wf_client_link *cl)
{
	const struct wf_pull_request *request = cl->sent_request;
	struct wf_sparse_pull *msg = &cl->client->pulls.msg;
	msg->request_id = request->id;
	msg->step = request->step;
	msg->flags = ((request->flags & WEFT_ROWS_CREATE) != 0 ? WF_SPARSE_PULL_CREATE : 0) |
		     (request->ahead ? WF_SPARSE_PULL_AHEAD : 0);
	msg->part_count = request->part_count;
	for (uint32_t i = 0; i < request->part_count; i++) {
		const struct wf_part_ref *ref = &request->part[i];
		describe_part(ref, &msg->part[i]);
		msg->part[i].offset =
			ref->rows->values_at + wf_client_landing(ref->rows) +
			(uint64_t)wf_client_part(ref)->first *
				wf_table_row_bytes(&cl->client->tables.desc[ref->rows->table->idx]);
	}
	wf_sparse_pull_encode(msg, &cl->client->core->end.msg);
}

static void
encode_push(struct wf_client_link *cl)
{
	struct wf_client *client = cl->client;
	struct wf_sparse_push *msg = &client->push.msg;
	msg->step = client->push.step;
	msg->epoch = 0;
	msg->samples = client->core->step.samples;
	msg->flags = client->push.verdict | (cl->push_is_last ? WF_SPARSE_PUSH_LAST : 0);
	msg->pass = client->core->step.pass;
	msg->part_count = cl->put_count;
	for (uint32_t i = 0; i < cl->put_count; i++) {
		describe_part(&cl->push_part[i], &msg->part[i]);
	}
	wf_sparse_push_encode(msg, &client->core->end.msg);
}

/* The operation points into core->end.msg, which is read when it is posted. */
static void
fill_head(struct wf_client_link *cl, struct wf_op *op)
{
	const struct wf_msg *msg = &cl->client->core->end.msg;
	if (cl->sending == WF_SENDING_PULL) {
		encode_pull(cl);
	} else if (cl->sending == WF_SENDING_CALL) {
		wf_client_call_encode(cl);
	} else {
		encode_push(cl);
	}
	*op = (struct wf_op){
		.kind = WF_OP_SEND,
		.head = &msg->head,
		.body = msg->body,
		.body_bytes = msg->body_bytes,
	};
}

static void
fill_call_put(struct wf_client_link *cl, uint32_t slot, struct wf_op *op)
{
	const struct wf_client *client = cl->client;
	const struct wf_send_window *window = &cl->link.window;
	*op = (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = wf_link_cookie(&cl->link, WF_CLIENT_COOKIE_CALL),
		.region = client->send_region,
		.src = (const uint8_t *)client->send.base + client->send.bytes - WF_CLIENT_PIECE,
		.bytes = client->call.bytes,
		.key = window->key,
		.tag = wf_sparse_put_tag(0, window->slot_count, slot, client->call.step),
	};
}

static void
fill_put(struct wf_client_link *cl, uint32_t i, uint32_t slot, struct wf_op *op)
{
	const struct wf_client *client = cl->client;
	const struct wf_send_window *window = &cl->link.window;
	const struct wf_part_ref *ref = sent_part(cl, i);
	const struct wf_batch_part *part = wf_client_part(ref);
	bool push = cl->sending == WF_SENDING_PUSH;
	size_t from = push ? part->at : part->key_at;
	uint64_t step = push ? client->push.step : cl->sent_request->step;
	*op = (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = wf_link_cookie(&cl->link, push ? WF_CLIENT_COOKIE_PUSH : ref->rows->idx),
		.region = client->send_region,
		.src = ref->rows->send + from,
		.bytes = part->key_at + part->key_bytes - from,
		.key = window->key,
		.tag = wf_sparse_put_tag(i, window->slot_count, slot, step),
	};
}

static unsigned
fill_puts(struct wf_client_link *cl, struct wf_op op[WF_CORE_OPS])
{
	const struct wf_send_window *window = &cl->link.window;
	unsigned count = 0;
	while (count < WF_CORE_OPS && cl->put_next + count < cl->put_count &&
	       count < window->free_count) {
		uint32_t slot = wf_send_window_next(window, count);
		if (cl->sending == WF_SENDING_CALL) {
			fill_call_put(cl, slot, &op[count]);
		} else {
			fill_put(cl, cl->put_next + count, slot, &op[count]);
		}
		count++;
	}
	return count;
}

static void
puts_taken(struct wf_client_link *cl, unsigned count)
{
	struct wf_send_window *window = &cl->link.window;
	bool push = cl->sending == WF_SENDING_PUSH;
	cl->starved = cl->starved && count == 0;
	if (cl->sending == WF_SENDING_CALL && count > 0) {
		wf_send_window_claim(window, &cl->call_slots);
		cl->client->call.in_flight++;
		cl->put_next++;
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct wf_part_ref *ref = sent_part(cl, cl->put_next++);
		wf_send_window_claim(window, push ? &cl->push_slots : &ref->slot);
		if (push) {
			cl->client->push.in_flight++;
		} else {
			ref->sent = true;
			ref->rows->in_flight++;
		}
	}
}

/* Posts the rest of the message under way. True: all of it was accepted. */
static bool
post_message(struct wf_client_link *cl)
{
	struct wf_op op[1 + WF_CORE_OPS];
	while (!cl->head_sent || cl->put_next < cl->put_count) {
		unsigned heads = cl->head_sent ? 0 : 1;
		unsigned taken = 0;
		if (heads > 0) {
			fill_head(cl, &op[0]);
		}
		unsigned count = heads + fill_puts(cl, op + heads);
		if (count == 0) {
			wf_count(&cl->client->counts.waits_slot, cl->starved ? 0 : 1);
			cl->starved = true;
			return false;
		}
		enum weft_status st = wf_transport_post(cl->link.conn, op, count, &taken);
		cl->head_sent = cl->head_sent || taken > 0;
		puts_taken(cl, taken > heads ? taken - heads : 0);
		if (st == WEFT_INVALID) {
			wf_core_fail(cl->client->core, WEFT_PROTOCOL,
				     "pserver %u sparse lane %u: %s", cl->link.pserver_idx,
				     cl->link.lane_idx, weft_last_error());
		}
		if (st != WEFT_OK) {
			return false;
		}
	}
	if (cl->sending == WF_SENDING_PULL && cl->sent_request->refused) {
		wf_client_give_up(cl, cl->sent_request);
	}
	bool is_pushed = cl->sending == WF_SENDING_PUSH && cl->push_is_last;
	if (wf_client_is_recorded(cl->client) && is_pushed) {
		wf_client_note_push(cl, WF_TRACE_POSTED);
	}
	cl->sending = WF_SENDING_NOTHING;
	wf_client_call_finish(cl->client);
	return true;
}

/* Sends, once on a path, that this trainer is out of data from the step after its last. */
static bool
send_out(struct wf_client_link *cl)
{
	struct wf_client *client = cl->client;
	struct wf_sparse_push *msg = &client->push.msg;
	msg->step = client->core->step.number + 1;
	msg->epoch = 0;
	msg->samples = 0;
	msg->flags = WF_SPARSE_PUSH_LAST | WF_SPARSE_PUSH_OUT_OF_DATA;
	msg->pass = client->core->step.pass;
	msg->part_count = 0;
	wf_sparse_push_encode(msg, &client->core->end.msg);
	return wf_link_send(&cl->link, &client->core->end.msg);
}

bool
wf_client_flow_flush(struct wf_link *link)
{
	struct wf_client_link *cl = wf_client_link_of(link);
	while (cl->sending != WF_SENDING_NOTHING || next_message(cl)) {
		if (!post_message(cl)) {
			return true;
		}
	}
	if (cl->link.to_send.out) {
		cl->link.to_send.out = !send_out(cl);
	}
	return cl->link.to_send.out;
}

/* The end of a path. */

static bool
is_complete(const struct wf_pull_request *request, const struct weft_rows *rows)
{
	for (uint32_t i = 0; i < request->part_count; i++) {
		if (request->part[i].rows == rows && !request->part[i].answered) {
			return false;
		}
	}
	return true;
}

/* Requests rows that are not complete again, all parts: a single part of another step would tear
 * them. Rows that are complete may be the caller's by now, and are left alone. */
static void
ask_again(struct wf_client_link *cl, struct wf_pull_request *request)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < request->part_count; i++) {
		struct wf_part_ref *part = &request->part[i];
		bool complete = is_complete(request, part->rows);
		part->sent = complete; /* marks, until the next loop, what is dropped */
	}
	for (uint32_t i = 0; i < request->part_count; i++) {
		struct wf_part_ref part = request->part[i];
		if (part.sent) {
			continue;
		}
		part.rows->unanswered += part.answered ? 1 : 0;
		part.answered = false;
		part.ahead = false;
		request->part[kept++] = part;
	}
	if (request->begun && kept > 0) {
		wf_count(&cl->client->counts.pulls_repeated, 1);
	}
	request->part_count = kept;
	request->unanswered = kept;
	request->repeated = true;
	request->ahead = false;
	request->begun = false;
	request->open = kept > 0;
}

void
wf_client_flow_forget(struct wf_client_link *cl)
{
	for (uint32_t i = 0; i < WF_CLIENT_REQUESTS; i++) {
		struct wf_pull_request *request = &cl->request[i];
		if (request->open && request->refused) {
			wf_client_give_up(cl, request);
		} else if (request->open) {
			ask_again(cl, request);
		}
	}
	cl->sending = WF_SENDING_NOTHING;
	cl->push.left = false; /* until RESUME reports what the lane has */
	wf_client_call_forget(cl);
}
