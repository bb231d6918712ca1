/* SPDX-License-Identifier: Apache-2.0 */
/* loaded: lanes that begin with a state that they had, instead of trainer 0's initial values. Such
 * a lane sends INIT before RESUME. All trainers, trainer 0 too, take the step from it and pull all
 * values; and all lanes have to begin at the same step. Thread: the core's. */
#include <inttypes.h>

#include "base/assert.h"
#include "trainer/session/dense.h"

#define REMEDY "start all pservers with the same snapshot, or all of them without one"

static void
fail_restored(struct wf_dense_link *dense, uint64_t step)
{
	struct wf_core *core = wf_core_of(&dense->link);
	wf_core_fail(core, WEFT_INVALID,
		     "pserver %u lane %u goes on from a snapshot, of step %" PRIu64
		     ", and trainer %u was to begin with a saved job, of step %" PRIu64
		     ": start the pservers without --resume, or the trainers without --start_pass; "
		     "a program calls neither weft_session_load nor weft_session_restore then",
		     dense->link.pserver_idx, dense->link.lane_idx, step, core->opts.trainer_id,
		     core->start.init.step);
}

/* `step`: at which this lane begins. */
static void
fail_differs(struct wf_dense_link *dense, uint64_t step, const struct wf_dense_link *other)
{
	struct wf_core *core = wf_core_of(&dense->link);
	uint64_t others = other->is_loaded ? core->start.init.step : 0;
	if (step == others) {
		wf_core_fail(core, WEFT_MISMATCH,
			     "the pservers do not begin at the same step: pserver %u lane %u and "
			     "pserver %u lane %u are at step %" PRIu64
			     ", over different numbers of samples; " REMEDY,
			     other->link.pserver_idx, other->link.lane_idx, dense->link.pserver_idx,
			     dense->link.lane_idx, step);
		return;
	}
	wf_core_fail(core, WEFT_MISMATCH,
		     "the pservers do not begin at the same step: pserver %u lane %u is at step "
		     "%" PRIu64 ", pserver %u lane %u at step %" PRIu64 "; " REMEDY,
		     other->link.pserver_idx, other->link.lane_idx, others, dense->link.pserver_idx,
		     dense->link.lane_idx, step);
}

static const struct wf_dense_link *
find_loaded(const struct wf_core *core)
{
	uint32_t i = 0;
	while (!core->links.dense[i].is_loaded) {
		i++;
		WF_ASSERT(i < core->links.dense_count);
	}
	return &core->links.dense[i];
}

/* The lane has values that a job begins with. Pieces, which come last, have none. */
static bool
has_values(const struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	return dense->slice_count > 0 && !core->job.tensor[dense->slice[0].tensor].is_piece;
}

/* Of the lanes with values all begin with a state that they had, or none does. */
static void
compare_lanes(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	for (uint32_t i = 0; i < core->links.dense_count && has_values(dense); i++) {
		const struct wf_dense_link *other = &core->links.dense[i];
		bool counts = (other->link.was_ready || other->is_loaded) && has_values(other);
		if (counts && other->is_loaded != dense->is_loaded) {
			uint64_t step = dense->is_loaded ? core->start.init.step : 0;
			fail_differs(dense, step, other);
			return;
		}
	}
}

/* A next life needs a snapshot, or the initial values of a trainer 0 that was started again. */
static void
check_next_life(struct wf_dense_link *dense)
{
	struct wf_core *core = wf_core_of(&dense->link);
	if (core->start.is_rejoin && core->opts.trainer_id == 0 && has_values(dense) &&
	    !dense->is_loaded) {
		core->start.lacks_values = true;
		wf_core_fail(core, WEFT_LOST,
			     "the job goes back to its beginning, because it has no snapshot, and "
			     "trainer 0 has to be started again: its arrays do not have their "
			     "initial values any more");
	}
}

enum weft_status
wf_loaded_recv_init(struct wf_dense_link *dense, const struct wf_msg_init *msg)
{
	struct wf_core *core = wf_core_of(&dense->link);
	struct wf_session_start *start = &core->start;
	if (msg->step == 0 || (dense->link.was_ready && !dense->is_loaded)) {
		return wf_fail(WEFT_PROTOCOL, "INIT: step %" PRIu64 " before RESUME", msg->step);
	}
	if (start->restored) {
		fail_restored(dense, msg->step);
		return WEFT_OK; /* the session ends; the lane did no wrong */
	}
	bool same = msg->step == start->init.step && msg->samples == start->init.samples;
	if (start->is_loaded && !same) {
		fail_differs(dense, msg->step, find_loaded(core));
		return WEFT_OK;
	}
	dense->is_loaded = true;
	if (!start->is_loaded) {
		start->is_loaded = true;
		start->init.step = msg->step;
		start->init.samples = msg->samples;
		wf_core_go_on_after(core, msg->step);
	}
	compare_lanes(dense);
	return WEFT_OK;
}

enum weft_status
wf_loaded_resume(struct wf_dense_link *dense, const struct wf_msg_steps *msg)
{
	if (dense->is_loaded && !msg->initialised) {
		return wf_fail(WEFT_PROTOCOL,
			       "RESUME: the lane has sent INIT, and lacks initial values");
	}
	for (uint32_t i = 0; i < msg->count; i++) {
		struct wf_dense_slice *slice = &dense->slice[msg->first + i];
		if (wf_loaded_has(dense, slice)) {
			slice->state = WF_SLICE_PULL_QUEUED;
			dense->pull_queued++;
			wf_link_due(&dense->link);
		}
	}
	if (msg->last) {
		compare_lanes(dense);
		check_next_life(dense);
	}
	return WEFT_OK;
}
