/* SPDX-License-Identifier: Apache-2.0 */
/* restore: the optimizer's state at a trainer, for saving a job and for going on with it.
 * Thread: the owner's. */
#include "trainer/session/session.h"

#include <inttypes.h>

#include "base/assert.h"
#include "trainer/session/gate.h"

uint32_t
weft_state_count(const struct weft_session *session)
{
	if (wf_local_is_on(&session->core)) {
		return 0; /* it is each trainer's own */
	}
	const struct wf_optimizer_opts optimizer = wf_job_optimizer(&session->core.job);
	return wf_state_count(&optimizer);
}

float *
weft_tensor_state(struct weft_tensor *tensor, uint32_t idx)
{
	const struct wf_core *core = &tensor->session->core;
	if (!tensor->session->sealed || !wf_job_has_state(&core->job.tensor[tensor->idx]) ||
	    idx + 1 >= core->memory.section_count) {
		return NULL;
	}
	return (float *)((char *)core->memory.section[1 + idx].base +
			 core->memory.offset[tensor->idx]);
}

enum weft_status
weft_session_restore(struct weft_session *session, uint64_t step, uint64_t samples)
{
	WF_ENTER(session);
	struct wf_core *core = &session->core;
	uint32_t state_count = weft_state_count(session);
	if (core->values.join) {
		return wf_fail(WEFT_INVALID, "restore: a trainer that may join a job that runs "
					     "(join) begins with the values of that job");
	}
	if (!session->sealed || session->started) {
		return wf_fail(WEFT_INVALID, "restore: call it between weft_session_seal and "
					     "weft_session_start");
	}
	if (core->opts.trainer_id != 0) {
		return wf_fail(WEFT_INVALID, "restore: trainer %u; trainer 0 restores for all",
			       core->opts.trainer_id);
	}
	if (step > 0 && core->memory.section_count != 1 + state_count) {
		return wf_fail(WEFT_INVALID,
			       "restore: at step %" PRIu64
			       " the optimizer has %u arrays of state; set keep_state",
			       step, state_count);
	}
	if (step > WF_INIT_STEP_MAX || samples > INT64_MAX) {
		return wf_fail(WEFT_INVALID, "restore: step %" PRIu64 ", samples %" PRIu64, step,
			       samples);
	}
	core->start.restored = true;
	core->start.init = (struct wf_msg_init){
		.step = step,
		.samples = samples,
		.sections = step > 0 ? core->memory.section_count : 1,
	};
	session->past.old_samples = samples;
	wf_core_go_on_after(core, step);
	return WEFT_OK;
}

/* Trainer 0: push the values, then each array of state, of every tensor. */
enum weft_status
wf_restore_give(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	enum weft_status st = WEFT_OK;
	for (uint32_t left = core->start.init.sections; left > 0 && st == WEFT_OK; left--) {
		uint64_t step = 0 - (uint64_t)(left - 1);
		for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
			atomic_store_explicit(&core->flow.tensor[i].busy, 1, memory_order_relaxed);
			wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_PUSH,
									  .tensor = i,
									  .a = step});
		}
		st = weft_wait_all(session);
	}
	return st;
}

static void
begin_pull(struct weft_session *session, uint32_t tensor, unsigned section)
{
	atomic_store_explicit(&session->core.flow.tensor[tensor].busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_PULL,
							  .tensor = tensor,
							  .section = section,
							  .a = session->known_step});
}

/* The pservers' f32 parameters, if values travel in 16 bits, follow the state. */
static enum weft_status
pull_exact(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	if (core->memory.place_count == core->memory.section_count) {
		return WEFT_OK;
	}
	for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
		begin_pull(session, i, core->memory.section_count);
	}
	return weft_wait_all(session);
}

float *
weft_tensor_exact(struct weft_tensor *tensor)
{
	const struct wf_core *core = &tensor->session->core;
	if (core->job.set.dense_wire == WEFT_WIRE_F32) {
		return weft_tensor_param(tensor);
	}
	if (!tensor->session->sealed || core->memory.place_count == core->memory.section_count) {
		return NULL;
	}
	return (float *)((char *)core->memory.section[core->memory.section_count].base +
			 core->memory.offset[tensor->idx]);
}

enum weft_status
weft_pull_state(struct weft_session *session)
{
	WF_ENTER(session);
	struct wf_core *core = &session->core;
	session->has_state = false;
	enum weft_status st = weft_pull_all(session);
	if (st == WEFT_OK && core->memory.section_count != 1 + weft_state_count(session)) {
		return wf_fail(WEFT_INVALID, "pull of state: set keep_state in the options");
	}
	for (unsigned section = 1; section < core->memory.section_count && st == WEFT_OK;
	     section++) {
		for (uint32_t i = 0; i < core->job.tensor_count; i++) {
			if (!wf_job_has_state(&core->job.tensor[i])) {
				continue;
			}
			begin_pull(session, i, section);
		}
		st = weft_wait_all(session);
	}
	if (st == WEFT_OK) {
		st = pull_exact(session);
	}
	session->has_state = st == WEFT_OK;
	for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
		/* Pushes are answered here. Between ends of passes lanes are further than known. */
		struct weft_tensor *tensor = session->tensor[i];
		bool pushed = tensor->pushed_step > session->known_step;
		tensor->state_step = pushed ? tensor->pushed_step : session->known_step;
	}
	return st;
}
