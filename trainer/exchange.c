/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: steps, pushes, pulls, waits, reduces. Thread: the owner's. */
#include "trainer/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"

static bool
is_busy(const struct weft_session *session, uint32_t tensor)
{
	return atomic_load_explicit(&session->core.tensor[tensor].busy, memory_order_acquire) !=
	       0; /* B1 */
}

enum weft_status
wf_exchange_check_running(const struct weft_session *session)
{
	if (!session->running) {
		return wf_fail(WEFT_INVALID, "session: not started");
	}
	return wf_session_failure(session);
}

/* Every tensor that takes part was pushed in the step begun last. */
static enum weft_status
check_all_pushed(const struct weft_session *session)
{
	const struct wf_job *job = &session->core.job;
	for (uint32_t i = 0; i < job->tensor_count && session->begun; i++) {
		if (!job->tensor[i].is_static && session->tensor[i]->pushed_step != session->step) {
			return wf_fail(WEFT_INVALID, "tensor %s was not pushed in step %" PRIu64,
				       job->tensor[i].name, session->step);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_exchange_finished(const struct weft_session *session)
{
	const struct wf_job *job = &session->core.job;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		if (is_busy(session, i)) {
			return wf_fail(WEFT_INVALID, "%s is not answered in step %" PRIu64,
				       job->tensor[i].name, session->step);
		}
	}
	const struct wf_service_ops *service = session->core.service;
	enum weft_status st = service != NULL ? service->finished(session) : WEFT_OK;
	return st != WEFT_OK ? st : check_all_pushed(session);
}

/* The step begun last is complete, on the service too. */
static enum weft_status
hand_in(struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service;
	return service != NULL ? service->hand_in(session) : WEFT_OK;
}

static bool
is_unanswered(const struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service;
	for (uint32_t i = 0; i < session->core.job.tensor_count; i++) {
		if (is_busy(session, i)) {
			return true;
		}
	}
	return service != NULL && service->is_busy(session);
}

enum weft_status
weft_step(struct weft_session *session, uint64_t samples, double cost)
{
	enum weft_status st = wf_exchange_check_running(session);
	if (st == WEFT_OK) {
		st = check_all_pushed(session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (samples == 0 || samples > WF_STEP_SAMPLES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "step with %" PRIu64 " samples, 1 to %llu are allowed; without any, "
			       "end the pass instead",
			       samples, WF_STEP_SAMPLES_MAX);
	}
	st = hand_in(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (is_unanswered(session)) {
		return WEFT_AGAIN;
	}
	session->step++;
	session->begun = true;
	wf_progress_command(
		session, &(struct wf_command){.kind = WF_COMMAND_STEP, .a = samples, .cost = cost});
	return WEFT_OK;
}

enum weft_status
weft_push(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	struct wf_core *core = &session->core;
	const struct wf_job_tensor *declared = &core->job.tensor[tensor->idx];
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (declared->is_static) {
		return wf_fail(WEFT_INVALID, "push of %s, which is static", declared->name);
	}
	if (!session->begun) {
		return wf_fail(WEFT_INVALID, "push of %s before weft_step", declared->name);
	}
	if (tensor->pushed_step == session->step) {
		return wf_fail(WEFT_INVALID, "push of %s twice in step %" PRIu64, declared->name,
			       session->step);
	}
	tensor->pushed_step = session->step;
	atomic_store_explicit(&core->tensor[tensor->idx].busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_PUSH,
							  .tensor = tensor->idx,
							  .a = session->step});
	return WEFT_OK;
}

enum weft_status
weft_wait(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	if (!session->running) {
		return WEFT_OK;
	}
	return wf_progress_wait_clear(session, &session->core.tensor[tensor->idx].busy);
}

static enum weft_status
wait_tensors(struct weft_session *session)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < session->core.job.tensor_count && st == WEFT_OK; i++) {
		st = weft_wait(session->tensor[i]);
	}
	return st;
}

enum weft_status
weft_wait_all(struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service;
	enum weft_status st = session->running ? hand_in(session) : WEFT_OK;
	if (st == WEFT_OK) {
		st = wait_tensors(session);
	}
	if (st == WEFT_OK && session->running && service != NULL) {
		st = service->wait(session);
	}
	return st;
}

enum weft_status
weft_exchange(struct weft_session *session, uint64_t samples, double cost)
{
	enum weft_status st = weft_step(session, samples, cost);
	for (uint32_t i = session->core.job.tensor_count; i-- > 0 && st == WEFT_OK;) {
		if (!session->core.job.tensor[i].is_static) {
			st = weft_push(session->tensor[i]);
		}
	}
	return st != WEFT_OK ? st : weft_wait_all(session);
}

static enum weft_status
check_pull(const struct weft_tensor *tensor)
{
	enum weft_status st = wf_exchange_check_running(tensor->session);
	if (st == WEFT_OK && is_busy(tensor->session, tensor->idx)) {
		return wf_fail(WEFT_INVALID, "pull of %s while its push is unanswered",
			       weft_tensor_name(tensor));
	}
	return st;
}

static enum weft_status
begin_pull(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	enum weft_status st = check_pull(tensor);
	if (st != WEFT_OK) {
		return st;
	}
	atomic_store_explicit(&session->core.tensor[tensor->idx].busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_PULL,
							  .tensor = tensor->idx,
							  .a = session->known_step});
	return WEFT_OK;
}

enum weft_status
weft_pull(struct weft_tensor *tensor)
{
	enum weft_status st = begin_pull(tensor);
	return st != WEFT_OK ? st : weft_wait(tensor);
}

enum weft_status
weft_pull_all(struct weft_session *session)
{
	uint32_t count = session->core.job.tensor_count;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		st = check_pull(session->tensor[i]); /* all or none */
	}
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		st = begin_pull(session->tensor[i]);
	}
	return st != WEFT_OK ? st : wait_tensors(session);
}

enum weft_status
weft_reduce(struct weft_session *session, double *value, uint32_t count)
{
	struct wf_core *core = &session->core;
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (count > WF_REDUCE_MAX) {
		return wf_fail(WEFT_INVALID, "reduce of %u values, %u at most", count,
			       WF_REDUCE_MAX);
	}
	if (count > 0) {
		memcpy(core->reduce_value, value, count * sizeof(*value));
	}
	core->reduce_count = count;
	atomic_store_explicit(&core->reduce_busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_REDUCE});
	st = wf_progress_wait_clear(session, &core->reduce_busy);
	if (st == WEFT_OK && count > 0) {
		memcpy(value, core->reduce_value, count * sizeof(*value));
	}
	return st;
}

enum weft_status
weft_barrier(struct weft_session *session)
{
	return weft_reduce(session, NULL, 0);
}

enum weft_status
weft_pass_end(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	enum weft_status st = wf_exchange_check_running(session);
	if (st == WEFT_OK) {
		st = check_all_pushed(session);
	}
	if (st == WEFT_OK) {
		st = weft_wait_all(session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_OUT});
	double pass =
		1; /* a value makes this another call than a barrier, should trainers differ */
	st = weft_reduce(session, &pass, 1);
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(core->reduce_step <= UINT64_MAX - 1);
	bool early = core->reduce_step > session->step;
	session->step = early ? core->reduce_step : session->step;
	session->begun = false; /* nothing is owed for the steps of others */
	session->known_step = session->step;
	wf_progress_command(session,
			    &(struct wf_command){.kind = WF_COMMAND_NEXT_PASS, .a = session->step});
	return early ? weft_pull_all(session) : WEFT_OK;
}

enum weft_status
weft_poll(struct weft_session *session)
{
	wf_progress_turn(session);
	return session->running ? wf_session_failure(session) : WEFT_OK;
}
