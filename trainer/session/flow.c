/* SPDX-License-Identifier: Apache-2.0 */
/* flow: pushes, pulls and answers on one link. Thread: the core's. */
#include "trainer/session/dense.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/service.h"

enum weft_status
wf_flow_open(struct wf_core *core)
{
	const struct wf_job *job = &core->job;
	struct wf_core_tensor *tensor =
		wf_zalloc_array(core->end.env, job->tensor_count + 1u, sizeof(*tensor));
	if (tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "session: no memory for %u tensors", job->tensor_count);
	}
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		const struct wf_job_terms terms = wf_job_terms_of(job, &job->tensor[i]);
		core->pace.pushable_count += job->tensor[i].is_static ? 0 : 1;
		tensor[i].lags = wf_job_terms_lag(&terms);
	}
	core->flow.tensor = tensor;
	return WEFT_OK;
}

void
wf_flow_close(struct wf_core *core)
{
	wf_free(core->end.env, core->flow.tensor,
		(core->job.tensor_count + 1u) * sizeof(*core->flow.tensor));
	core->flow.tensor = NULL;
}

/* Records what becomes of a slice, while the trainer is recorded. */
static inline void
note(const struct wf_dense_link *dense, enum wf_trace_what what, uint32_t ordinal)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	if (__builtin_expect(core->trace.on != NULL, 0)) {
		wf_core_note(dense, what, ordinal);
	}
}

/* One slice less to wait for. Inline, as part of the cost of a small step. */
__attribute__((always_inline)) static inline void
finish_slice(struct wf_core *core, uint32_t tensor)
{
	struct wf_core_tensor *t = &core->flow.tensor[tensor];
	WF_ASSERT(t->pending > 0 && core->flow.busy_slices > 0);
	if (--core->flow.busy_slices == 0 && core->turn.times.on) {
		wf_pace_on_rest(&core->pace, wf_now_ns(core->end.env));
	}
	if (!core->start.initialised) {
		core->turn.tick_ns = 0; /* these may have been the last initial values */
	}
	if (--t->pending == 0) {
		wf_wait_end(&core->waits.tensors, &t->wait);
		atomic_store_explicit(&t->busy, 0, memory_order_release); /* B1 */
	}
}

/* A push of this path. */
static inline void
begin_push(struct wf_dense_link *dense, uint32_t ordinal)
{
	if (dense->link.window.announced) {
		wf_announce_push(dense, ordinal);
	} else {
		wf_ordinal_ring_push(&dense->queue, ordinal);
	}
}

/* Begins what is `wanted` of each slice of the tensor: a push or a pull. Inline, as part of the
 * cost of a small step. */
__attribute__((always_inline)) static inline void
begin_slices(struct wf_core *core, uint32_t tensor, const struct wf_dense_slice *wanted)
{
	struct wf_core_tensor *t = &core->flow.tensor[tensor];
	core->start.asked = true;
	if (core->flow.busy_slices == 0 && core->turn.times.on) {
		wf_pace_on_busy(&core->pace, wf_now_ns(core->end.env));
	}
	/* It begins at the end of this turn, or of the next. */
	wf_wait_begin(&core->waits.tensors, &t->wait, 0);
	for (uint32_t l = 0; l < core->links.dense_count; l++) {
		struct wf_dense_link *dense = &core->links.dense[l];
		const uint32_t end = dense->first_of[tensor + 1];
		for (uint32_t i = dense->first_of[tensor]; i < end; i++) {
			struct wf_dense_slice *slice = &dense->slice[i];
			WF_ASSERT(slice->state == WF_SLICE_REST && !slice->in_flight);
			slice->state =
				wf_loaded_has(dense, wanted) ? WF_SLICE_PULL_QUEUED : wanted->state;
			slice->section = wanted->section;
			slice->is_rounded = false;
			slice->step = wanted->step;
			slice->bytes = wanted->bytes != 0 ? wanted->bytes : slice->bytes;
			t->pending++;
			core->flow.busy_slices++;
			note(dense, WF_TRACE_QUEUED, i);
			if (slice->state == WF_SLICE_PULL_QUEUED) {
				dense->pull_queued++;
				wf_link_due(&dense->link);
			} else if (dense->link.state == WF_LINK_READY) {
				begin_push(dense, i);
				wf_link_owes(&dense->link);
			}
		}
	}
}

void
wf_core_push(struct wf_core *core, uint32_t tensor, uint64_t step)
{
	uint64_t section = wf_is_initial_push(step) ? step + core->start.init.sections - 1 : 0;
	if (core->turn.times.on && !wf_is_initial_push(step)) {
		wf_pace_on_push(&core->pace, core->end.env);
	}
	core->flow.tensor[tensor].pushed_step = wf_is_initial_push(step) ? 0 : step;
	begin_slices(core, tensor,
		     &(struct wf_dense_slice){
			     .state = WF_SLICE_QUEUED, .section = (uint8_t)section, .step = step});
}

void
wf_core_push_piece(struct wf_core *core, uint32_t tensor, uint64_t step, uint64_t bytes)
{
	core->flow.tensor[tensor].pushed_step = core->step.number;
	begin_slices(
		core, tensor,
		&(struct wf_dense_slice){.state = WF_SLICE_QUEUED, .step = step, .bytes = bytes});
}

void
wf_core_pull(struct wf_core *core, uint32_t tensor, uint64_t step, unsigned section)
{
	begin_slices(core, tensor,
		     &(struct wf_dense_slice){.state = WF_SLICE_PULL_QUEUED,
					      .section = (uint8_t)section,
					      .step = step});
}

/* What had been PUT may or may not have arrived; RESUME will show it. */
void
wf_flow_forget_path(struct wf_link *link)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	dense->queue.first = 0;
	dense->queue.count = 0;
	dense->job_sent = 0;
	dense->init_due = false;
	dense->said_samples = 0;
	dense->changes_step = 0;
	dense->position_step = 0;
	wf_link_features_path_ends(dense);
	for (uint32_t i = 0; i < dense->slice_count; i++) {
		struct wf_dense_slice *slice = &dense->slice[i];
		WF_ASSERT(!slice->in_flight); /* DONE comes before DOWN */
		if (slice->state == WF_SLICE_PULL_SENT) {
			slice->state = WF_SLICE_PULL_QUEUED;
			dense->pull_sent--;
			dense->pull_queued++;
		}
	}
}

/* The state of a push under way at the lane, by the step that the lane waits for. */
static enum weft_status
resume_slice(const struct wf_dense_link *dense, struct wf_dense_slice *slice, uint64_t waits_for,
	     bool fresh)
{
	bool initial = wf_is_initial_push(slice->step);
	uint64_t next =
		slice->step == 0 ? wf_core_of(&dense->link)->start.init.step + 1 : slice->step + 1;
	/* Less than the step under way: this trainer was out of data, and the lane has not received
	 * its next STEP yet. */
	if (!initial && waits_for > next) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESUME: a slice waits for step %" PRIu64 ", step %" PRIu64
			       " is under way",
			       waits_for, slice->step);
	}
	slice->state = !fresh && waits_for == next ? WF_SLICE_SENT : WF_SLICE_QUEUED;
	return WEFT_OK;
}

/* RESUME is complete: what the lane lacks is due. `heard`: the last STEP that it has received. */
static void
begin_path(struct wf_dense_link *dense, uint64_t heard)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	WF_ASSERT(dense->queue.count == 0);
	dense->init_due = core->opts.trainer_id == 0 && core->start.init.step > 0 &&
			  !core->start.initialised && !dense->is_loaded && dense->slice_count > 0;
	dense->link.to_send.step = dense->pushable_count > 0 &&
				   core->step.number > core->start.init.step &&
				   heard < core->step.number;
	wf_link_features_path_begins(dense);
	for (uint32_t i = 0; i < dense->slice_count; i++) {
		if (dense->slice[i].state == WF_SLICE_QUEUED) {
			begin_push(dense, i);
		}
	}
}

enum weft_status
wf_flow_resume(struct wf_link *link, const struct wf_msg_steps *msg)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	if (!link->was_ready) {
		enum weft_status st = wf_loaded_resume(dense, msg);
		if (st != WEFT_OK) {
			return st;
		}
	}
	/* The lane has not received INIT: it has nothing of the initial values. */
	bool fresh = wf_core_of(&dense->link)->start.init.step > 0 &&
		     msg->step < wf_core_of(&dense->link)->start.init.step;
	for (uint32_t i = 0; i < msg->count; i++) {
		struct wf_dense_slice *slice = &dense->slice[msg->first + i];
		uint64_t waits_for = msg->step_of[i] + 1; /* WF_STEP_NONE gives 0 */
		if (slice->state != WF_SLICE_QUEUED && slice->state != WF_SLICE_SENT) {
			continue;
		}
		bool piece = wf_core_of(link)->job.tensor[slice->tensor].is_piece;
		enum weft_status st = resume_slice(dense, slice, waits_for, fresh && !piece);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (msg->last) {
		begin_path(dense, msg->step);
	}
	return WEFT_OK;
}

uint64_t
wf_flow_answered(const struct wf_link *link, uint32_t ordinal)
{
	return ((const struct wf_dense_link *)link)->slice[ordinal].answered - 1;
}

/* The push came too late: the answer of the lane reports it, once. */
static void
count_discarded(struct wf_core *core)
{
	struct wf_stats *stats = &core->report.stats;
	if (wf_stats_get(stats, WF_CORE_SLICE_DISCARDED_COUNT) == 0) {
		wf_core_log(core, WEFT_LOG_WARN,
			    "trainer %u: gradients of step %" PRIu64
			    " came too late for a lane and are not applied; from here on they are "
			    "only counted (slices_discarded)",
			    core->opts.trainer_id, core->step.number);
	}
	wf_stats_add(stats, WF_CORE_SLICE_DISCARDED_COUNT, 1);
}

/* All of the slice, and nothing else: in 16 bits only values travel, and initial ones leave in f32
 * and are answered in 16 bits. */
static enum weft_status
check_bytes(const struct wf_core *core, const struct wf_dense_slice *slice, bool values,
	    const struct wf_put *put)
{
	uint64_t due = values ? slice->bytes >> core->halves.shift : slice->bytes;
	if (!wf_put_is(put, due)) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: %" PRIu64 " bytes of a slice of %.60s, which has %" PRIu64,
			       put->bytes, core->job.tensor[slice->tensor].name, due);
	}
	return WEFT_OK;
}

enum weft_status
wf_flow_answer(struct wf_link *link, const struct wf_put *put)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	struct wf_core *core = wf_core_of(link);
	uint32_t tag = put->tag;
	uint32_t ordinal = wf_tag_slot(tag);
	/* The bit makes it greater than any ordinal. */
	bool discarded = ordinal >= dense->slice_count && (tag & WF_TAG_DISCARDED) != 0;
	ordinal = discarded ? wf_answer_ordinal(tag) : ordinal;
	if (dense->link.state != WF_LINK_READY || ordinal >= dense->slice_count ||
	    (discarded && !core->flow.tensor[dense->slice[ordinal].tensor].lags)) {
		return wf_fail(WEFT_PROTOCOL, "PUT: slice %u of %u", ordinal, dense->slice_count);
	}
	struct wf_dense_slice *slice = &dense->slice[ordinal];
	/* The last section of the initial values is answered as the step the job begins after. */
	uint64_t step = slice->step == 0 ? core->start.init.step : slice->step;
	bool pushed = slice->state == WF_SLICE_SENT && wf_tag_step(tag) == (uint8_t)step;
	bool pulled = slice->state == WF_SLICE_PULL_SENT;
	if (!pushed && !pulled) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: slice %u, step %u modulo 256, was not waited for", ordinal,
			       wf_tag_step(tag));
	}
	bool values = pushed || slice->section == 0;
	enum weft_status st = check_bytes(core, slice, values, put);
	if (st != WEFT_OK) {
		return st;
	}
	slice->state = WF_SLICE_REST;
	note(dense, WF_TRACE_ANSWERED, ordinal);
	if (core->halves.codec != NULL && values) {
		core->halves.codec->copy_in(core, slice);
	}
	if (pushed) {
		wf_stats_add(&core->report.stats, WF_CORE_SLICE_ANSWERED_COUNT, 1);
		wf_send_window_release(&dense->link.window, &slice->slot);
		slice->answered = step + 1;
	} else {
		wf_stats_add(&core->report.stats, WF_CORE_SLICE_PULLED_COUNT, 1);
		dense->pull_sent--;
	}
	if (discarded) {
		count_discarded(core);
	}
	if (slice->in_flight) {
		core->flow.undone_slices++;
	} else {
		finish_slice(core, slice->tensor);
	}
	return WEFT_OK;
}

void
wf_flow_done(struct wf_link *link, uint32_t ordinal)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	struct wf_core *core = wf_core_of(link);
	WF_ASSERT(ordinal < dense->slice_count && dense->slice[ordinal].in_flight);
	struct wf_dense_slice *slice = &dense->slice[ordinal];
	slice->in_flight = false;
	note(dense, WF_TRACE_SENT, ordinal);
	if (slice->state == WF_SLICE_REST) {
		if (core->halves.codec != NULL && wf_is_initial_push(slice->step)) {
			core->halves.codec->copy_in(core, slice);
		}
		WF_ASSERT(core->flow.undone_slices > 0);
		core->flow.undone_slices--;
		finish_slice(core, slice->tensor);
	}
}

/* Before the first initial values: where the job begins. */
static bool
send_init(struct wf_dense_link *dense)
{
	wf_msg_init_encode(&wf_core_of(&dense->link)->start.init,
			   &wf_core_of(&dense->link)->end.msg);
	dense->init_due = !wf_link_send(&dense->link, &wf_core_of(&dense->link)->end.msg);
	return !dense->init_due;
}

static void
encode_step(struct wf_dense_link *dense, bool out)
{
	struct wf_core *core = wf_core_of(&dense->link);
	const struct wf_msg_step msg = {
		.step = out ? core->step.number + 1 : core->step.number,
		.samples = out ? 0 : core->step.samples,
		.pass = core->step.pass,
		.flags = out ? WF_STEP_OUT_OF_DATA : 0,
		.cost = out ? 0 : core->step.cost,
		.compute_ns = out ? 0 : core->pace.told_compute_ns,
	};
	wf_msg_step_encode(&msg, &core->end.msg);
}

static void
send_out(struct wf_dense_link *dense)
{
	encode_step(dense, true);
	dense->link.to_send.out = !wf_link_send(&dense->link, &wf_core_of(&dense->link)->end.msg);
}

/* A free `slot` is that of the push; `*copied` becomes true if it is not lent. */
static void
fill_put(const struct wf_dense_link *dense, uint32_t ordinal, uint32_t slot, bool *copied,
	 struct wf_op *op)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_dense_slice *slice = &dense->slice[ordinal];
	bool initial = wf_is_initial_push(slice->step); /* the values or state themselves */
	const unsigned section = initial ? slice->section : 0;
	const bool of_section = initial || slice->is_in_place;
	const struct wf_slab *slab =
		of_section ? &core->memory.section[section] : &core->memory.grad;
	op->kind = WF_OP_PUT; /* fields of SENDs are not read */
	op->cookie = wf_link_cookie(&dense->link, ordinal);
	op->copied = copied;
	*copied = false;
	op->region = of_section ? core->memory.section_region[section] : core->memory.grad_region;
	op->src = (const char *)slab->base + slice->offset;
	op->bytes = slice->bytes;
	op->key = dense->link.window.key;
	op->offset = 0;
	op->tag = wf_tag(ordinal * dense->link.window.slot_count + slot, slice->step);
	if (core->halves.codec != NULL && !initial) {
		core->halves.codec->copy_out(core, slice, op);
	}
}

/* The first op of a step. The head and body of core->end.msg are read when it is posted. */
static void
fill_step(struct wf_dense_link *dense, struct wf_op *op)
{
	encode_step(dense, false);
	const struct wf_msg *msg = &wf_core_of(&dense->link)->end.msg;
	op->kind = WF_OP_SEND; /* fields of PUTs are not read */
	op->cookie = 0;
	op->head = &msg->head;
	op->body = msg->body;
	op->body_bytes = msg->body_bytes;
}

/* After a post: the window may have run out. */
static void
count_pushes(struct wf_dense_link *dense, unsigned taken)
{
	struct wf_stats *stats = &wf_core_of(&dense->link)->report.stats;
	wf_stats_add(stats, WF_CORE_SLICE_PUSHED_COUNT, taken);
	if (dense->queue.count > 0 && dense->link.window.free_count == 0) {
		wf_stats_add(stats, WF_CORE_WAIT_SLOT_COUNT, 1);
	}
}

/* The first pushes of the queue, as many as there are free slots; they stay in it. */
static unsigned
fill_pushes(const struct wf_dense_link *dense, struct wf_op op[WF_CORE_OPS],
	    bool copied[WF_CORE_OPS])
{
	unsigned count = 0;
	unsigned most = dense->link.window.free_count;
	while (count < WF_CORE_OPS && count < dense->queue.count && count < most) {
		uint32_t ordinal = *wf_ordinal_ring_at(&dense->queue, count);
		fill_put(dense, ordinal, wf_send_window_next(&dense->link.window, count),
			 &copied[count], &op[count]);
		count++;
	}
	return count;
}

/* The transport accepted the first `count` of the queue. Of those that it copied no DONE follows:
 * they are out already. */
static void
pushes_taken(struct wf_dense_link *dense, unsigned count, const bool copied[WF_CORE_OPS])
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t ordinal = wf_ordinal_ring_pop(&dense->queue);
		struct wf_dense_slice *slice = &dense->slice[ordinal];
		wf_send_window_claim(&dense->link.window, &slice->slot);
		slice->state = WF_SLICE_SENT;
		slice->in_flight = !copied[i];
		note(dense, WF_TRACE_POSTED, ordinal);
		if (copied[i]) {
			note(dense, WF_TRACE_SENT, ordinal);
		}
	}
	count_pushes(dense, count);
}

/* Whether STEP would say what the last one on this path said, and a push of the step leaves now,
 * which announces the step instead. */
static bool
is_step_implied(const struct wf_dense_link *dense)
{
	const struct wf_core *core = (const struct wf_core *)dense->link.end;
	if (core->step.samples != dense->said_samples || core->step.pass != dense->said_pass ||
	    core->pace.told_compute_ns != 0 || dense->queue.count == 0 ||
	    dense->link.window.free_count == 0) {
		return false;
	}
	const struct wf_dense_slice *first = &dense->slice[*wf_ordinal_ring_at(&dense->queue, 0)];
	return first->step == core->step.number && !core->job.tensor[first->tensor].is_piece;
}

/* STEP was posted. */
static inline void
note_step(const struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	if (__builtin_expect(core->trace.on != NULL, 0)) {
		wf_core_note_step(dense);
	}
}

/* The transport accepted the first operation of a step, which announces it. */
static void
step_taken(struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	dense->said_samples = core->step.samples;
	dense->said_pass = core->step.pass;
	dense->link.to_send.step = false;
	note_step(dense);
}

/* PUTs queued gradients as long as slots are free and the transport accepts them; STEP goes first,
 * in the same post, unless they imply it. */
static void
flush_pushes(struct wf_dense_link *dense)
{
	while (dense->link.to_send.step ||
	       (dense->queue.count > 0 && dense->link.window.free_count > 0)) {
		struct wf_op op[1 + WF_CORE_OPS];
		bool copied[WF_CORE_OPS];
		unsigned steps = dense->link.to_send.step && !is_step_implied(dense) ? 1 : 0;
		if (steps > 0) {
			fill_step(dense, &op[0]);
		}
		unsigned count = steps + fill_pushes(dense, op + steps, copied);
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(dense->link.conn, op, count, &taken);
		if (dense->link.to_send.step && taken > 0) {
			step_taken(dense);
		}
		pushes_taken(dense, taken > steps ? taken - steps : 0, copied);
		if (st == WEFT_INVALID) {
			wf_core_fail(wf_core_of(&dense->link), WEFT_PROTOCOL,
				     "pserver %u lane %u: %s", dense->link.pserver_idx,
				     dense->link.lane_idx, weft_last_error());
		}
		if (st != WEFT_OK) {
			return;
		}
	}
}

/* Pulls the first run of slices that are wanted at the same step; the next run follows when it has
 * arrived. */
static void
flush_pulls(struct wf_dense_link *dense)
{
	if (dense->pull_queued == 0 || dense->pull_sent > 0) {
		return;
	}
	uint32_t first = 0;
	while (dense->slice[first].state != WF_SLICE_PULL_QUEUED) {
		first++;
	}
	uint64_t step = dense->slice[first].step;
	uint8_t section = dense->slice[first].section;
	uint32_t end = first;
	while (end < dense->slice_count && dense->slice[end].state == WF_SLICE_PULL_QUEUED &&
	       dense->slice[end].step == step && dense->slice[end].section == section) {
		end++;
	}
	const struct wf_msg_pull msg = {
		.request_id = dense->link.path,
		.step = step,
		.first = first,
		.count = end - first,
		.section = section == 0 ? WF_SECTION_VALUES : WF_SECTION_STATE,
		.state_idx = section == 0 ? 0 : (uint8_t)(section - 1),
	};
	wf_msg_pull_encode(&msg, &wf_core_of(&dense->link)->end.msg);
	if (!wf_link_send(&dense->link, &wf_core_of(&dense->link)->end.msg)) {
		return;
	}
	for (uint32_t i = first; i < end; i++) {
		dense->slice[i].state = WF_SLICE_PULL_SENT;
	}
	dense->pull_queued -= end - first;
	dense->pull_sent += end - first;
}

/* What comes before the STEP that is to be sent, which is nothing in most steps. */
static bool
flush_before_step(struct wf_dense_link *dense)
{
	return (!wf_change_is_due(dense) || wf_change_flush(dense)) &&
	       (!wf_position_is_due(dense) || wf_position_flush(dense));
}

/* Sends STEP, what precedes it, and pushes. False: the transport accepts no more of the first. */
static inline bool
flush_step(struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	if (dense->link.to_send.step && core->preceded_step == core->step.number &&
	    !flush_before_step(dense)) {
		return false;
	}
	flush_pushes(dense);
	return true;
}

bool
wf_flow_flush_owed(struct wf_link *link)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	if (link->conn == NULL) {
		return false; /* a step can begin when the job has failed, and the path is gone */
	}
	return !flush_step(dense) || link->to_send.step || dense->queue.count > 0;
}

bool
wf_flow_flush(struct wf_link *link)
{
	struct wf_dense_link *dense = wf_dense_of(link);
	if ((dense->init_due && !send_init(dense)) || !flush_step(dense)) {
		return true;
	}
	if (dense->features_due != 0 && !wf_link_features_flush(dense)) {
		return true;
	}
	if (dense->link.to_send.out && !dense->link.to_send.step) {
		send_out(dense);
	}
	flush_pulls(dense);
	return dense->link.to_send.step || dense->link.to_send.out || dense->queue.count > 0 ||
	       dense->pull_queued > 0;
}
