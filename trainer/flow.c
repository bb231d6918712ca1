/* SPDX-License-Identifier: Apache-2.0 */
/* flow: pushes, pulls and answers on one link. Thread: the core's. */
#include "trainer/core.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/service.h"

/* One slice less to wait for. */
static void
finish_slice(struct wf_core *core, uint32_t tensor)
{
	struct wf_core_tensor *t = &core->tensor[tensor];
	WF_ASSERT(t->pending > 0 && core->busy_slices > 0);
	if (--core->busy_slices == 0 && core->turn.on) {
		uint64_t now = wf_now_ns(core->env);
		wf_hist_record(&core->exchange_time, now - core->busy_since_ns);
		core->answered_ns = core->unpushed == 0 ? now : core->answered_ns;
	}
	if (!core->initialised) {
		core->turn.tick_ns = 0; /* these may have been the last initial values */
	}
	if (--t->pending == 0) {
		wf_wait_end(&core->waits, &t->wait);
		atomic_store_explicit(&t->busy, 0, memory_order_release); /* B1 */
	}
}

/* Is the push announced before it is PUT? Initial values are not, nor is what a lane applies when
 * it comes. */
static bool
is_announced(const struct wf_link *link, const struct wf_link_slice *slice)
{
	const struct wf_job *job = &link->core->job;
	const struct wf_job_terms terms = wf_job_terms_of(job, &job->tensor[slice->tensor]);
	return !wf_is_initial_push(slice->step) && !wf_job_terms_lag(&terms);
}

/* A push of this path. */
static inline void
begin_push(struct wf_link *link, uint32_t ordinal)
{
	if (!link->window.announced || !is_announced(link, &link->slice[ordinal])) {
		wf_ordinal_ring_push(&link->queue, ordinal);
		return;
	}
	/* What was said before has been sent when the next step's pushes come: no ring is needed.
	 */
	uint32_t at = link->say_first + link->say_count;
	WF_ASSERT(at < link->slice_count);
	link->say[at] = ordinal;
	link->say_count++;
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
	while (lo < link->slice_count && link->slice[lo].tensor == tensor) {
		lo++;
	}
	*end = lo;
}

static void
begin_slices(struct wf_core *core, uint32_t tensor, const struct wf_link_slice *wanted)
{
	struct wf_core_tensor *t = &core->tensor[tensor];
	core->asked = true;
	if (core->busy_slices == 0 && core->turn.on) {
		core->busy_since_ns = wf_now_ns(core->env);
	}
	/* It begins at the end of this turn, or of the next. */
	wf_wait_begin(&core->waits, &t->wait, 0);
	for (uint32_t l = 0; l < core->link_count; l++) {
		struct wf_link *link = &core->link[l];
		uint32_t first, end;
		range_of(link, tensor, &first, &end);
		for (uint32_t i = first; i < end; i++) {
			struct wf_link_slice *slice = &link->slice[i];
			WF_ASSERT(slice->state == WF_SLICE_REST && !slice->in_flight);
			slice->state = wanted->state;
			slice->section = wanted->section;
			slice->is_rounded = false;
			slice->step = wanted->step;
			t->pending++;
			core->busy_slices++;
			if (wanted->state == WF_SLICE_PULL_QUEUED) {
				link->pull_queued++;
				wf_link_due(link);
			} else if (link->state == WF_LINK_READY) {
				begin_push(link, i);
				wf_link_due(link);
			}
		}
	}
}

void
wf_core_push(struct wf_core *core, uint32_t tensor, uint64_t step)
{
	uint64_t section = wf_is_initial_push(step) ? step + core->init.sections - 1 : 0;
	if (core->turn.on && !wf_is_initial_push(step) && --core->unpushed == 0) {
		bool known = core->answered_ns != 0;
		core->compute_ns = known ? wf_now_ns(core->env) - core->answered_ns : 0;
	}
	core->tensor[tensor].pushed_step = wf_is_initial_push(step) ? 0 : step;
	begin_slices(core, tensor,
		     &(struct wf_link_slice){
			     .state = WF_SLICE_QUEUED, .section = (uint8_t)section, .step = step});
}

void
wf_core_pull(struct wf_core *core, uint32_t tensor, uint64_t step, unsigned section)
{
	begin_slices(core, tensor,
		     &(struct wf_link_slice){.state = WF_SLICE_PULL_QUEUED,
					     .section = (uint8_t)section,
					     .step = step});
}

/* What had been PUT may or may not be there; RESUME will tell. */
void
wf_flow_forget_path(struct wf_link *link)
{
	link->queue.first = 0;
	link->queue.count = 0;
	link->norm_due = false; /* the lane asks again */
	link->say_first = 0;
	link->say_count = 0;
	for (uint32_t i = 0; i < link->slice_count; i++) {
		struct wf_link_slice *slice = &link->slice[i];
		WF_ASSERT(!slice->in_flight); /* DONE comes before DOWN */
		slice->announced = false;
		if (slice->state == WF_SLICE_PULL_SENT) {
			slice->state = WF_SLICE_PULL_QUEUED;
			link->pull_sent--;
			link->pull_queued++;
		}
	}
}

/* Where a push under way stands at the lane, by the step that the lane waits for. */
static enum weft_status
resume_slice(const struct wf_link *link, struct wf_link_slice *slice, uint64_t waits_for,
	     bool fresh)
{
	bool initial = wf_is_initial_push(slice->step);
	uint64_t next = slice->step == 0 ? link->core->init.step + 1 : slice->step + 1;
	/* Less than the step under way: this trainer was out of data, and the lane has not heard
	 * yet that it is back. */
	if (!initial && waits_for > next) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESUME: a slice waits for step %" PRIu64 ", step %" PRIu64
			       " is under way",
			       waits_for, slice->step);
	}
	slice->state = !fresh && waits_for == next ? WF_SLICE_SENT : WF_SLICE_QUEUED;
	return WEFT_OK;
}

/* RESUME is complete: what the lane lacks is due. `heard`: the last STEP it has heard. */
static void
begin_path(struct wf_link *link, uint64_t heard)
{
	const struct wf_core *core = link->core;
	WF_ASSERT(link->queue.count == 0);
	link->init_due = core->opts.trainer_id == 0 && core->init.step > 0 && !core->initialised &&
			 link->slice_count > 0;
	link->step_due =
		link->pushable_count > 0 && core->step > core->init.step && heard < core->step;
	link->report_due = link->report_wanted && !core->leaving;
	for (uint32_t i = 0; i < link->slice_count; i++) {
		if (link->slice[i].state == WF_SLICE_QUEUED) {
			begin_push(link, i);
		}
	}
}

enum weft_status
wf_flow_resume(struct wf_link *link, const struct wf_msg_steps *msg)
{
	/* The lane has not heard INIT: it has nothing of the initial values. */
	bool fresh = link->core->init.step > 0 && msg->step < link->core->init.step;
	for (uint32_t i = 0; i < msg->count; i++) {
		struct wf_link_slice *slice = &link->slice[msg->first + i];
		uint64_t waits_for = msg->step_of[i] + 1; /* WF_STEP_NONE gives 0 */
		if (slice->state != WF_SLICE_QUEUED && slice->state != WF_SLICE_SENT) {
			continue;
		}
		enum weft_status st = resume_slice(link, slice, waits_for, fresh);
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (msg->last) {
		begin_path(link, msg->step);
	}
	return WEFT_OK;
}

uint64_t
wf_flow_answered(const struct wf_link *link, uint32_t ordinal)
{
	return link->slice[ordinal].answered - 1;
}

/* The lane has room for these slices of all trainers. */
enum weft_status
wf_flow_allow(struct wf_link *link, const struct wf_msg_runs *msg)
{
	for (uint32_t i = 0; i < msg->count; i++) {
		const struct wf_run *run = &msg->run[i];
		for (uint32_t s = run->first; s < run->first + run->count; s++) {
			struct wf_link_slice *slice =
				s < link->slice_count ? &link->slice[s] : NULL;
			if (slice == NULL || !slice->announced || slice->step != msg->step) {
				return wf_fail(WEFT_PROTOCOL,
					       "ALLOW: slice %u of %u in step %" PRIu64
					       " was not announced",
					       s, link->slice_count, msg->step);
			}
			slice->announced = false;
			wf_ordinal_ring_push(&link->queue, s);
		}
	}
	return WEFT_OK;
}

/* The push came too late: the lane says so in its answer, once. */
static void
count_discarded(struct wf_core *core)
{
	struct wf_stats *stats = &core->stats;
	if (wf_stats_get(stats, WF_CORE_SLICE_DISCARDED_COUNT) == 0) {
		wf_core_log(core, WEFT_LOG_WARN,
			    "trainer %u: gradients of step %" PRIu64
			    " came too late for a lane and are not applied; from here on they are "
			    "only counted (slices_discarded)",
			    core->opts.trainer_id, core->step);
	}
	wf_stats_add(stats, WF_CORE_SLICE_DISCARDED_COUNT, 1);
}

/* Values are here in 16 bits. Initial ones leave from the very array that they come to, which is
 * lent until DONE. */
static void
take_halves(const struct wf_core *core, const struct wf_link_slice *slice)
{
	if (!slice->in_flight || !wf_is_initial_push(slice->step)) {
		wf_core_widen(core, slice);
	}
}

/* All of the slice, and nothing else: in 16 bits only values travel, and initial ones leave in f32
 * and are answered in 16 bits. */
static enum weft_status
check_bytes(const struct wf_core *core, const struct wf_link_slice *slice, bool values,
	    const struct wf_put *put)
{
	uint64_t due = values ? slice->bytes >> core->wire_shift : slice->bytes;
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
	uint32_t tag = put->tag;
	uint32_t ordinal = wf_tag_slot(tag);
	/* The bit makes it more than any ordinal. */
	bool discarded = ordinal >= link->slice_count && (tag & WF_TAG_DISCARDED) != 0;
	ordinal = discarded ? wf_answer_ordinal(tag) : ordinal;
	if (link->state != WF_LINK_READY || ordinal >= link->slice_count ||
	    (discarded && !link->core->tensor[link->slice[ordinal].tensor].lags)) {
		return wf_fail(WEFT_PROTOCOL, "PUT: slice %u of %u", ordinal, link->slice_count);
	}
	struct wf_link_slice *slice = &link->slice[ordinal];
	/* The last section of the initial values is answered as the step the job begins after. */
	uint64_t step = slice->step == 0 ? link->core->init.step : slice->step;
	bool pushed = slice->state == WF_SLICE_SENT && wf_tag_step(tag) == (uint8_t)step;
	bool pulled = slice->state == WF_SLICE_PULL_SENT;
	if (!pushed && !pulled) {
		return wf_fail(WEFT_PROTOCOL,
			       "PUT: slice %u, step %u modulo 256, was not waited for", ordinal,
			       wf_tag_step(tag));
	}
	bool values = pushed || slice->section == 0;
	enum weft_status st = check_bytes(link->core, slice, values, put);
	if (st != WEFT_OK) {
		return st;
	}
	slice->state = WF_SLICE_REST;
	wf_stats_add(&link->core->stats,
		     pulled ? WF_CORE_SLICE_PULLED_COUNT : WF_CORE_SLICE_ANSWERED_COUNT, 1);
	if (link->core->wire != WEFT_VALUES_F32 && values) {
		take_halves(link->core, slice);
	}
	if (pulled) {
		link->pull_sent--;
	} else {
		wf_send_window_release(&link->window, &slice->slot);
	}
	if (pushed) {
		slice->answered = step + 1;
	}
	if (discarded) {
		count_discarded(link->core);
	}
	if (slice->in_flight) {
		link->core->undone_slices++;
	} else {
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
		if (link->core->wire != WEFT_VALUES_F32 && wf_is_initial_push(slice->step)) {
			wf_core_widen(link->core, slice);
		}
		WF_ASSERT(link->core->undone_slices > 0);
		link->core->undone_slices--;
		finish_slice(link->core, slice->tensor);
	}
}

/* Before the first initial values: where the job begins. */
static bool
send_init(struct wf_link *link)
{
	wf_msg_init_encode(&link->core->init, &link->core->msg);
	link->init_due = !wf_link_send(link, &link->core->msg);
	return !link->init_due;
}

static void
encode_step(struct wf_link *link, bool out)
{
	struct wf_core *core = link->core;
	const struct wf_msg_step msg = {
		.step = out ? core->step + 1 : core->step,
		.samples = out ? 0 : core->samples,
		.pass = core->pass,
		.flags = out ? WF_STEP_OUT_OF_DATA : 0,
		.cost = out ? 0 : core->cost,
		.compute_ns = out ? 0 : core->told_compute_ns,
	};
	wf_msg_step_encode(&msg, &core->msg);
}

static void
send_out(struct wf_link *link)
{
	encode_step(link, true);
	link->out_due = !wf_link_send(link, &link->core->msg);
}

/* A gradient in 16 bits. */
static void
fill_rounded(const struct wf_link *link, uint32_t ordinal, uint32_t slot, struct wf_op *op)
{
	struct wf_core *core = link->core;
	struct wf_link_slice *slice = &link->slice[ordinal];
	wf_core_round(core, slice);
	*op = (struct wf_op){
		.kind = WF_OP_PUT,
		.cookie = wf_link_cookie(link, ordinal),
		.region = core->rounded_region,
		.src = (const char *)core->rounded.base + (slice->offset >> core->wire_shift),
		.bytes = slice->bytes >> core->wire_shift,
		.key = link->window.key,
		.tag = wf_tag(ordinal * link->window.slot_count + slot, slice->step),
	};
}

static void
fill_put(const struct wf_link *link, uint32_t ordinal, uint32_t slot, struct wf_op *op)
{
	const struct wf_core *core = link->core;
	const struct wf_link_slice *slice = &link->slice[ordinal];
	bool initial = wf_is_initial_push(slice->step); /* the values or state themselves */
	const struct wf_slab *slab = initial ? &core->section[slice->section] : &core->grad;
	if (core->wire != WEFT_VALUES_F32 && !initial) {
		fill_rounded(link, ordinal, slot, op);
		return;
	}
	op->kind = WF_OP_PUT; /* what is of SENDs is not read */
	op->cookie = wf_link_cookie(link, ordinal);
	op->region = initial ? core->section_region[slice->section] : core->grad_region;
	op->src = (const char *)slab->base + slice->offset;
	op->bytes = slice->bytes;
	op->key = link->window.key;
	op->offset = 0;
	op->tag = wf_tag(ordinal * link->window.slot_count + slot, slice->step);
}

/* The first op of a step. The head and body of core->msg are read when it is posted. */
static void
fill_step(struct wf_link *link, struct wf_op *op)
{
	encode_step(link, false);
	const struct wf_msg *msg = &link->core->msg;
	op->kind = WF_OP_SEND; /* what is of PUTs is not read */
	op->cookie = 0;
	op->head = &msg->head;
	op->body = msg->body;
	op->body_bytes = msg->body_bytes;
}

/* After a post: the window may have run out. */
static void
count_pushes(struct wf_link *link, unsigned taken)
{
	struct wf_stats *stats = &link->core->stats;
	wf_stats_add(stats, WF_CORE_SLICE_PUSHED_COUNT, taken);
	if (link->queue.count > 0 && link->window.free_count == 0) {
		wf_stats_add(stats, WF_CORE_WAIT_SLOT_COUNT, 1);
	}
}

/* The first pushes of the queue, as many as there are free slots; they stay in it. */
static unsigned
fill_pushes(const struct wf_link *link, struct wf_op op[WF_CORE_OPS])
{
	unsigned count = 0;
	unsigned most = link->window.free_count;
	while (count < WF_CORE_OPS && count < link->queue.count && count < most) {
		uint32_t ordinal = *wf_ordinal_ring_at(&link->queue, count);
		fill_put(link, ordinal, wf_send_window_next(&link->window, count), &op[count]);
		count++;
	}
	return count;
}

/* The first `count` of the queue were taken. */
static void
pushes_taken(struct wf_link *link, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t ordinal = wf_ordinal_ring_pop(&link->queue);
		struct wf_link_slice *slice = &link->slice[ordinal];
		wf_send_window_claim(&link->window, &slice->slot);
		slice->state = WF_SLICE_SENT;
		slice->in_flight = true;
	}
	count_pushes(link, count);
}

/* PUT queued gradients as long as slots are free and the transport takes them; STEP goes first, in
 * the same post. */
static void
flush_pushes(struct wf_link *link)
{
	while (link->step_due || (link->queue.count > 0 && link->window.free_count > 0)) {
		struct wf_op op[1 + WF_CORE_OPS];
		unsigned steps = link->step_due ? 1 : 0;
		if (link->step_due) {
			fill_step(link, &op[0]);
		}
		unsigned count = steps + fill_pushes(link, op + steps);
		unsigned taken = 0;
		enum weft_status st = wf_transport_post(link->conn, op, count, &taken);
		link->step_due = link->step_due && taken == 0;
		pushes_taken(link, taken > steps ? taken - steps : 0);
		if (st == WEFT_INVALID) {
			wf_core_fail(link->core, WEFT_PROTOCOL, "pserver %u lane %u: %s",
				     link->pserver_idx, link->lane_idx, weft_last_error());
		}
		if (st != WEFT_OK) {
			return;
		}
	}
}

/* After STEP. Returns whether all was taken. */
static bool
flush_announcements(struct wf_link *link)
{
	struct wf_core *core = link->core;
	struct wf_msg_runs *msg = &core->runs;
	while (link->say_count > 0) {
		uint32_t said = 0;
		msg->step = core->step;
		msg->count = 0;
		while (said < link->say_count &&
		       wf_runs_add(msg, link->say[link->say_first + said])) {
			said++;
		}
		wf_msg_announce_encode(msg, &core->msg);
		if (!wf_link_send(link, &core->msg)) {
			return false;
		}
		for (; said > 0; said--) {
			link->slice[link->say[link->say_first++]].announced = true;
			link->say_count--;
		}
	}
	link->say_first = 0;
	return true;
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
	uint8_t section = link->slice[first].section;
	uint32_t end = first;
	while (end < link->slice_count && link->slice[end].state == WF_SLICE_PULL_QUEUED &&
	       link->slice[end].step == step && link->slice[end].section == section) {
		end++;
	}
	const struct wf_msg_pull msg = {
		.request_id = link->path,
		.step = step,
		.first = first,
		.count = end - first,
		.section = section == 0 ? WF_SECTION_VALUES : WF_SECTION_STATE,
		.state_idx = section == 0 ? 0 : (uint8_t)(section - 1),
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

bool
wf_flow_flush(struct wf_link *link)
{
	if (link->init_due && !send_init(link)) {
		return true;
	}
	if (link->norm_due && !wf_norm_say(link)) {
		return true;
	}
	if (link->report_due && !wf_others_say(link)) {
		return true;
	}
	flush_pushes(link);
	if (link->say_count > 0 && (link->step_due || !flush_announcements(link))) {
		return true;
	}
	if (link->out_due && !link->step_due) {
		send_out(link);
	}
	flush_pulls(link);
	return link->step_due || link->out_due || link->queue.count > 0 || link->pull_queued > 0;
}
