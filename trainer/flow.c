/* SPDX-License-Identifier: Apache-2.0 */
/* flow: pushes, pulls and answers on one link. Thread: the core's. */
#include "trainer/core.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

/* One slice less to wait for. */
static void
finish_slice(struct wf_core *core, uint32_t tensor)
{
	struct wf_core_tensor *t = &core->tensor[tensor];
	WF_ASSERT(t->pending > 0 && core->busy_slices > 0);
	core->busy_slices--;
	if (--t->pending == 0) {
		atomic_store_explicit(&t->busy, 0, memory_order_seq_cst); /* B1, W1 */
	}
}

static void
enqueue(struct wf_link *link, uint32_t ordinal)
{
	WF_ASSERT(link->queue_count < link->slice_count);
	link->queue[(link->queue_first + link->queue_count) % link->slice_count] = ordinal;
	link->queue_count++;
}

static void
free_buffer(struct wf_link *link, struct wf_link_slice *slice)
{
	if (slice->buffer == WF_NO_BUFFER) {
		return;
	}
	link->buffer_slice[slice->buffer] = WF_NO_BUFFER;
	link->buffer_free[link->buffer_free_count++] = slice->buffer;
	slice->buffer = WF_NO_BUFFER;
}

/* The slices of one tensor on one lane are neighbours there. */
static void
range_of(const struct wf_link *link, uint32_t tensor, uint32_t *first, uint32_t *end)
{
	uint32_t lo = 0, hi = link->slice_count;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (link->slice[mid].tensor < tensor) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	*first = lo;
	for (*end = lo; *end < link->slice_count && link->slice[*end].tensor == tensor; ++*end) {
	}
}

static void
begin_slices(struct wf_core *core, uint32_t tensor, uint64_t step, enum wf_slice_state state)
{
	if (core->busy_slices == 0) {
		core->busy_since_ns = wf_now_ns(core->env);
	}
	for (uint32_t l = 0; l < core->link_count; l++) {
		struct wf_link *link = &core->link[l];
		uint32_t first, end;
		range_of(link, tensor, &first, &end);
		for (uint32_t i = first; i < end; i++) {
			struct wf_link_slice *slice = &link->slice[i];
			WF_ASSERT(slice->state == WF_SLICE_REST && !slice->in_flight);
			slice->state = (uint8_t)state;
			slice->step = step;
			core->tensor[tensor].pending++;
			core->busy_slices++;
			if (state == WF_SLICE_PULL_QUEUED) {
				link->pull_queued++;
			} else if (link->state == WF_LINK_READY) {
				enqueue(link, i);
			}
		}
	}
}

void
wf_core_push(struct wf_core *core, uint32_t tensor, uint64_t step)
{
	begin_slices(core, tensor, step, WF_SLICE_QUEUED);
}

void
wf_core_pull(struct wf_core *core, uint32_t tensor, uint64_t step)
{
	begin_slices(core, tensor, step, WF_SLICE_PULL_QUEUED);
}

/* DOWN: grants and slots are gone. What had been PUT may or may not be there; RESUME will tell. */
void
wf_flow_forget_path(struct wf_link *link)
{
	link->have_slots = false;
	link->slot_count = 0;
	link->buffer_free_count = 0;
	link->queue_first = 0;
	link->queue_count = 0;
	link->have_next = UINT32_MAX;
	link->granted = false;
	link->grant_due = false;
	link->step_due = false;
	link->out_due = false;
	link->reduce_due = false;
	link->goodbye_due = false;
	link->abort_due = false;
	link->job_due = false;
	for (uint32_t i = 0; i < link->slice_count; i++) {
		struct wf_link_slice *slice = &link->slice[i];
		WF_ASSERT(!slice->in_flight); /* DONE comes before DOWN */
		slice->buffer = WF_NO_BUFFER;
		if (slice->state == WF_SLICE_PULL_SENT) {
			slice->state = WF_SLICE_PULL_QUEUED;
			link->pull_sent--;
			link->pull_queued++;
		}
	}
}

enum weft_status
wf_flow_resume(struct wf_link *link, const struct wf_msg_steps *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		struct wf_link_slice *slice = &link->slice[msg->first + i];
		uint64_t received = msg->step_of[i] + 1; /* WF_STEP_NONE gives 0 */
		if (slice->state != WF_SLICE_QUEUED && slice->state != WF_SLICE_SENT) {
			continue;
		}
		/* Less than the last step: this trainer was out of data, and the lane has not heard
		 * yet that it is back. */
		if (received > slice->step + 1) {
			return wf_fail(WEFT_PROTOCOL,
				       "RESUME: slice %u is at step %" PRIu64 ", step %" PRIu64
				       " is under way",
				       msg->first + i, msg->step_of[i], slice->step);
		}
		slice->state = received > slice->step ? WF_SLICE_SENT : WF_SLICE_QUEUED;
	}
	link->resumed += msg->count;
	return WEFT_OK;
}

void
wf_flow_ready(struct wf_link *link)
{
	WF_ASSERT(link->queue_count == 0);
	for (uint32_t i = 0; i < link->slice_count; i++) {
		if (link->slice[i].state == WF_SLICE_QUEUED) {
			enqueue(link, i);
		}
	}
}

enum weft_status
wf_flow_credit(struct wf_link *link, const struct wf_msg_credit *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		uint32_t buffer = msg->buffer[i];
		if (!link->have_slots || buffer >= link->slot_count ||
		    link->buffer_slice[buffer] == WF_NO_BUFFER) {
			return wf_fail(WEFT_PROTOCOL, "CREDIT: slot %u is not in use", buffer);
		}
		free_buffer(link, &link->slice[link->buffer_slice[buffer]]);
	}
	return WEFT_OK;
}

enum weft_status
wf_flow_answer(struct wf_link *link, uint32_t tag)
{
	uint32_t ordinal = wf_tag_slot(tag);
	if (link->state != WF_LINK_READY || ordinal >= link->slice_count) {
		return wf_fail(WEFT_PROTOCOL, "PUT: slice %u of %u", ordinal, link->slice_count);
	}
	struct wf_link_slice *slice = &link->slice[ordinal];
	bool pushed = slice->state == WF_SLICE_SENT && wf_tag_step(tag) == (uint8_t)slice->step;
	bool pulled = slice->state == WF_SLICE_PULL_SENT;
	if (!pushed && !pulled) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: slice %u, step %u modulo 256, was not waited for", ordinal,
			       wf_tag_step(tag));
	}
	slice->state = WF_SLICE_REST;
	if (pulled) {
		link->pull_sent--;
	} else {
		free_buffer(link, slice);
	}
	if (slice->step >= slice->answered) { /* a pull may ask for less than is known */
		slice->answered = slice->step + 1;
	}
	if (!slice->in_flight) {
		finish_slice(link->core, slice->tensor);
	}
	return WEFT_OK;
}

void
wf_flow_done(struct wf_link *link, uint32_t ordinal)
{
	WF_ASSERT(ordinal < link->slice_count && link->slice[ordinal].in_flight);
	struct wf_link_slice *slice = &link->slice[ordinal];
	slice->in_flight = false;
	if (slice->state == WF_SLICE_REST) {
		finish_slice(link->core, slice->tensor);
	}
}

/* Grant the parameters. False: the connection is on its way down, or the session has failed. */
static bool
grant_values(struct wf_link *link)
{
	struct wf_core *core = link->core;
	const struct wf_grant grant = {
		.kind = WF_GRANT_PLACE,
		.region = core->param_region,
		.bytes = core->param.bytes,
	};
	enum weft_status st = wf_transport_grant(link->conn, &grant, &link->values_key);
	if (st != WEFT_OK && st != WEFT_CLOSED) {
		wf_core_fail(core, st, "%s", weft_last_error());
	}
	link->granted = st == WEFT_OK;
	return link->granted;
}

static bool
flush_grant(struct wf_link *link)
{
	struct wf_core *core = link->core;
	if (!link->granted && !grant_values(link)) {
		return false;
	}
	struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_VALUES, .slot_bytes = core->param.bytes};
	memcpy(msg.key, link->values_key.bytes, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &core->msg);
	link->grant_due = !wf_link_send(link, &core->msg);
	return !link->grant_due;
}

/* The next part of HAVE: per slice the last step answered. */
static bool
flush_have(struct wf_link *link)
{
	struct wf_core *core = link->core;
	struct wf_msg_steps *msg = &core->steps;
	uint32_t left = link->slice_count - link->have_next;
	*msg = (struct wf_msg_steps){
		.step = core->step,
		.first = link->have_next,
		.count = left < WF_STEPS_PER_MSG ? left : WF_STEPS_PER_MSG,
	};
	msg->last = msg->count == left;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->step_of[i] = link->slice[msg->first + i].answered - 1;
	}
	wf_msg_have_encode(msg, &core->msg);
	if (!wf_link_send(link, &core->msg)) {
		return false;
	}
	link->have_next = msg->last ? UINT32_MAX : msg->first + msg->count;
	return true;
}

static bool
send_step(struct wf_link *link, bool out)
{
	struct wf_core *core = link->core;
	const struct wf_msg_step msg = {
		.step = out ? core->step + 1 : core->step,
		.samples = out ? 0 : core->samples,
		.pass = core->pass,
		.flags = out ? WF_STEP_OUT_OF_DATA : 0,
		.cost = out ? 0 : core->cost,
	};
	wf_msg_step_encode(&msg, &core->msg);
	return wf_link_send(link, &core->msg);
}

static void
fill_put(const struct wf_link *link, uint32_t ordinal, uint32_t buffer, struct wf_op *op)
{
	const struct wf_core *core = link->core;
	const struct wf_link_slice *slice = &link->slice[ordinal];
	bool initial = slice->step == 0; /* the values themselves */
	const struct wf_slab *slab = initial ? &core->param : &core->grad;
	*op = (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = ((uint64_t)link->idx << 32 | ordinal) + 1,
		.region = initial ? core->param_region : core->grad_region,
		.src = (const char *)slab->base + slice->offset,
		.bytes = slice->bytes,
		.key = link->slots_key,
		.tag = wf_tag(ordinal * link->slot_count + buffer, slice->step),
	};
}

/* PUT queued gradients as long as slots are free and the transport takes them. */
static void
flush_pushes(struct wf_link *link)
{
	while (link->queue_count > 0 && link->buffer_free_count > 0) {
		struct wf_op op[WF_CORE_OPS];
		unsigned count = 0;
		unsigned most = link->buffer_free_count;
		while (count < WF_CORE_OPS && count < link->queue_count && count < most) {
			uint32_t at = (link->queue_first + count) % link->slice_count;
			uint32_t buffer = link->buffer_free[link->buffer_free_count - 1 - count];
			fill_put(link, link->queue[at], buffer, &op[count]);
			count++;
		}
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(link->conn, op, count, &taken);
		for (unsigned i = 0; i < taken; i++) {
			uint32_t ordinal = link->queue[link->queue_first];
			struct wf_link_slice *slice = &link->slice[ordinal];
			slice->buffer = link->buffer_free[--link->buffer_free_count];
			slice->state = WF_SLICE_SENT;
			slice->in_flight = true;
			link->buffer_slice[slice->buffer] = ordinal;
			link->queue_first = (link->queue_first + 1) % link->slice_count;
			link->queue_count--;
		}
		if (st == WEFT_INVALID) {
			wf_core_fail(link->core, WEFT_PROTOCOL, "pserver %u lane %u: %s",
				     link->pserver_idx, link->lane_idx, weft_last_error());
		}
		if (st != WEFT_OK) {
			return;
		}
	}
}

/* Ask for the first run of slices that are wanted at the same step; the next run when it is there.
 */
static void
flush_pulls(struct wf_link *link)
{
	if (link->pull_queued == 0 || link->pull_sent > 0) {
		return;
	}
	uint32_t first = 0;
	while (link->slice[first].state != WF_SLICE_PULL_QUEUED) {
		first++;
	}
	uint64_t step = link->slice[first].step;
	uint32_t end = first;
	while (end < link->slice_count && link->slice[end].state == WF_SLICE_PULL_QUEUED &&
	       link->slice[end].step == step) {
		end++;
	}
	const struct wf_msg_pull msg = {
		.request_id = link->path,
		.step = step,
		.first = first,
		.count = end - first,
		.section = WF_SECTION_VALUES,
	};
	wf_msg_pull_encode(&msg, &link->core->msg);
	if (!wf_link_send(link, &link->core->msg)) {
		return;
	}
	for (uint32_t i = first; i < end; i++) {
		link->slice[i].state = WF_SLICE_PULL_SENT;
	}
	link->pull_queued -= end - first;
	link->pull_sent += end - first;
}

void
wf_flow_flush(struct wf_link *link)
{
	if (link->grant_due && !flush_grant(link)) {
		return;
	}
	while (link->have_next != UINT32_MAX) {
		if (!flush_have(link)) {
			return;
		}
	}
	if (link->step_due) {
		link->step_due = !send_step(link, false);
	}
	if (!link->step_due) {
		flush_pushes(link);
	}
	if (link->out_due && !link->step_due) {
		link->out_due = !send_step(link, true);
	}
	flush_pulls(link);
}
