/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: steps, pushes, pulls, waits, reduces. Thread: the owner's. */
#include "trainer/session/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/session/gate.h"

static bool
is_busy(const struct weft_session *session, uint32_t tensor)
{
	const struct wf_core_tensor *t = &session->core.flow.tensor[tensor];
	return atomic_load_explicit(&t->busy, memory_order_acquire) != 0; /* B1 */
}

static bool
is_reducing(const struct weft_session *session)
{
	return atomic_load_explicit(&session->core.reduce.busy, memory_order_acquire) != 0; /* B1 */
}

enum weft_status
wf_exchange_refuse(const struct weft_session *session)
{
	return session->running
		       ? wf_session_failure(session)
		       : wf_fail(WEFT_INVALID, "session: %s",
				 session->core.end.leaving ? "it has ended" : "not started");
}

/* The step that the owner is in: of a session with local steps its own. */
static uint64_t
step_of(const struct weft_session *session)
{
	return wf_local_is_on(&session->core) ? session->local.step : session->step;
}

/* Names the first tensor that takes part and was not pushed in the step begun last. */
__attribute__((cold, noinline)) static enum weft_status
refuse_unpushed(const struct weft_session *session)
{
	const struct wf_job *job = &session->core.job;
	uint64_t step = step_of(session);
	uint32_t i = 0;
	while (job->tensor[i].is_static || session->tensor[i]->pushed_step == step) {
		i++;
		WF_ASSERT(i < job->tensor_count);
	}
	return wf_fail(WEFT_INVALID, "tensor %s was not pushed in step %" PRIu64,
		       job->tensor[i].name, step);
}

/* Every tensor that takes part was pushed in the step begun last. */
static inline enum weft_status
check_all_pushed(const struct weft_session *session)
{
	return !session->begun || session->unpushed == 0 ? WEFT_OK : refuse_unpushed(session);
}

enum weft_status
wf_exchange_finished(const struct weft_session *session)
{
	const struct wf_job *job = &session->core.job;
	if (session->within != NULL) {
		return wf_fail(WEFT_INVALID, "%s has not come to its end", session->within);
	}
	if (is_reducing(session)) {
		return wf_fail(WEFT_INVALID, "a reduce or barrier is unanswered");
	}
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		if (is_busy(session, i)) {
			return wf_fail(WEFT_INVALID, "%s is not answered in step %" PRIu64,
				       job->tensor[i].name, session->step);
		}
	}
	const struct wf_service_ops *service = session->core.service.ops;
	enum weft_status st = service != NULL ? service->finished(session) : WEFT_OK;
	return st != WEFT_OK ? st : check_all_pushed(session);
}

/* The step begun last is complete, on the service too. */
static enum weft_status
hand_in(struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service.ops;
	return service != NULL ? service->hand_in(session) : WEFT_OK;
}

static bool
is_unanswered(const struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service.ops;
	for (uint32_t i = 0; i < session->core.job.tensor_count; i++) {
		if (is_busy(session, i)) {
			return true;
		}
	}
	return service != NULL && service->is_busy(session);
}

/* A step that is sent to the lanes. */
static void
begin_step(struct weft_session *session, uint64_t samples, double cost)
{
	session->step++;
	if (session->core.changes.count > 0 && session->core.changes.step == 0) {
		session->core.changes.step = session->step;
		session->core.preceded_step = session->step;
	}
	if (session->position_given) {
		wf_position_begin_step(session);
	}
	wf_progress_step(session, samples, cost);
}

static void
settle_all(struct weft_session *session)
{
	for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
		wf_local_settle(session->tensor[i]);
	}
}

/* A step that represents the local steps since the last exchange. */
static void
begin_exchange(struct weft_session *session)
{
	double cost = session->local.since_cost;
	begin_step(session, wf_local_reset_samples(session), cost);
}

/* A local step; the lanes get it only if it ends with an exchange. */
static void
begin_locally(struct weft_session *session, uint64_t samples, double cost)
{
	settle_all(session);
	wf_local_begin(session, samples, cost);
	session->local.exchanging = wf_local_exchanges(session);
	if (session->local.exchanging) {
		begin_exchange(session);
	}
}

/* Inline, as part of the cost of a small step. */
__attribute__((always_inline)) static inline enum weft_status
next_step(struct weft_session *session, uint64_t samples, double cost)
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
		wf_progress_send(session, UINT64_MAX); /* of the service, if it was handed in now */
		return WEFT_AGAIN;
	}
	st = hand_in(session); /* the answer may have arrived in between, which returns batches */
	if (st != WEFT_OK) {
		return st;
	}
	session->begun = true;
	session->unpushed = session->core.pace.pushable_count;
	session->past.samples += samples;
	if (wf_local_is_on(&session->core)) {
		begin_locally(session, samples, cost);
	} else {
		begin_step(session, samples, cost);
	}
	return WEFT_OK;
}

enum weft_status
weft_step(struct weft_session *session, uint64_t samples, double cost)
{
	WF_ENTER(session);
	return next_step(session, samples, cost);
}

static void
push(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	atomic_store_explicit(&session->core.flow.tensor[tensor->idx].busy, 1,
			      memory_order_relaxed);
	wf_progress_push(session, tensor->idx, session->step);
}

/* A step of the trainer's own, and an exchange if the step ends with one. */
static enum weft_status
push_locally(struct weft_tensor *tensor)
{
	const struct wf_local *local = &tensor->session->local;
	enum weft_status st = wf_local_apply(tensor);
	if (st != WEFT_OK) { /* its finite elements have been applied, so there is no way back */
		wf_session_fail(tensor->session, st, "%s", weft_last_error());
		return st;
	}
	tensor->pushed_step = local->step;
	if (local->exchanging) {
		wf_local_offer(tensor);
		push(tensor);
	}
	return WEFT_OK;
}

/* The tensor takes part in the step that was begun, and was not pushed in it. */
static inline enum weft_status
push_first(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	session->unpushed--;
	if (wf_local_is_on(&session->core)) {
		return push_locally(tensor);
	}
	tensor->pushed_step = session->step;
	push(tensor);
	return WEFT_OK;
}

/* Its messages leave in the wait that follows, or in wf_progress_send. */
static enum weft_status
begin_push(struct weft_tensor *tensor)
{
	const struct weft_session *session = tensor->session;
	const struct wf_job_tensor *declared = &session->core.job.tensor[tensor->idx];
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
	uint64_t step = step_of(session);
	if (tensor->pushed_step == step) {
		return wf_fail(WEFT_INVALID, "push of %s twice in step %" PRIu64, declared->name,
			       step);
	}
	if (is_busy(session, tensor->idx)) { /* no push: the last step is answered */
		return wf_fail(WEFT_INVALID,
			       "push of %s while its pull is unanswered; wait for it first",
			       declared->name);
	}
	return push_first(tensor);
}

enum weft_status
weft_push(struct weft_tensor *tensor)
{
	WF_ENTER(tensor->session);
	struct weft_session *session = tensor->session;
	enum weft_status st = begin_push(tensor);
	if (st == WEFT_OK && is_busy(session, tensor->idx)) {
		wf_progress_send(session,
				 session->core.job.tensor[tensor->idx].count * sizeof(float));
	}
	return st;
}

/* No push is answered before the norm is known, and it is of all tensors. */
static enum weft_status
check_clipped(const struct weft_tensor *tensor)
{
	const struct weft_session *session = tensor->session;
	if (!wf_optimizer_clips_norm(&session->core.job.set.optimizer) ||
	    !is_busy(session, tensor->idx) || tensor->pushed_step != step_of(session)) {
		return WEFT_OK;
	}
	if (check_all_pushed(session) == WEFT_OK) {
		return WEFT_OK;
	}
	const struct wf_error why = *wf_error_record();
	return wf_fail(WEFT_INVALID, "wait: %s: %.300s; push all tensors first",
		       wf_whole_steps_why(&session->core.job.set.optimizer), why.text);
}

/* What an exchange of local steps is answered with is not yet what the owner is to see. */
static enum weft_status
wait_and_settle(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	enum weft_status st =
		wf_progress_wait_clear(session, &session->core.flow.tensor[tensor->idx].busy);
	if (st == WEFT_OK) {
		wf_local_settle(tensor);
	}
	return st;
}

static enum weft_status
wait_for(struct weft_tensor *tensor)
{
	struct weft_session *session = tensor->session;
	if (tensor->is_offered) {
		return wait_and_settle(tensor);
	}
	return wf_progress_wait_clear(session, &session->core.flow.tensor[tensor->idx].busy);
}

enum weft_status
weft_wait(struct weft_tensor *tensor)
{
	WF_ENTER(tensor->session);
	if (!tensor->session->running) {
		return WEFT_OK;
	}
	enum weft_status st = check_clipped(tensor);
	return st != WEFT_OK ? st : wait_for(tensor);
}

static inline enum weft_status
wait_tensors(struct weft_session *session)
{
	enum weft_status st = WEFT_OK;
	uint32_t count = wf_session_tensor_count(session);
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		st = wait_for(session->tensor[i]);
	}
	return st;
}

static enum weft_status
check_all_clipped(const struct weft_session *session)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < wf_session_tensor_count(session) && st == WEFT_OK; i++) {
		st = check_clipped(session->tensor[i]);
	}
	return st;
}

/* Inline, as part of the cost of a small step. */
__attribute__((always_inline)) static inline enum weft_status
wait_all(struct weft_session *session)
{
	if (!session->running) {
		return WEFT_OK;
	}
	enum weft_status st = hand_in(session);
	if (st == WEFT_OK && wf_optimizer_clips_norm(&session->core.job.set.optimizer)) {
		st = check_all_clipped(session);
	}
	if (st == WEFT_OK) {
		st = wait_tensors(session);
	}
	const struct wf_service_ops *service = session->core.service.ops;
	if (st == WEFT_OK && service != NULL) {
		st = service->wait(session);
	}
	return st;
}

enum weft_status
weft_wait_all(struct weft_session *session)
{
	WF_ENTER(session);
	return wait_all(session);
}

enum weft_status
weft_exchange(struct weft_session *session, uint64_t samples, double cost)
{
	WF_ENTER(session);
	enum weft_status st = next_step(session, samples, cost);
	for (uint32_t i = session->core.job.tensor_count; i-- > 0 && st == WEFT_OK;) {
		if (!session->core.job.tensor[i].is_static) {
			st = push_first(session->tensor[i]);
		}
	}
	return st != WEFT_OK ? st : wait_all(session);
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
	wf_local_settle(tensor);
	tensor->base_known = false; /* local steps since the last exchange are lost */
	atomic_store_explicit(&session->core.flow.tensor[tensor->idx].busy, 1,
			      memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_PULL,
							  .tensor = tensor->idx,
							  .a = session->known_step});
	return WEFT_OK;
}

enum weft_status
weft_pull(struct weft_tensor *tensor)
{
	WF_ENTER(tensor->session);
	enum weft_status st = begin_pull(tensor);
	return st != WEFT_OK ? st : weft_wait(tensor);
}

enum weft_status
weft_pull_all(struct weft_session *session)
{
	WF_ENTER(session);
	uint32_t count = wf_session_tensor_count(session);
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
	WF_ENTER(session);
	struct wf_core *core = &session->core;
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (count > WF_REDUCE_MAX) {
		return wf_fail(WEFT_INVALID, "reduce of %u values, %u at most", count,
			       WF_REDUCE_MAX);
	}
	if (is_reducing(session)) {
		return wf_fail(WEFT_INVALID, "reduce: the one before was interrupted and is "
					     "unanswered; end the session");
	}
	if (count > 0) {
		memcpy(core->reduce.value, value, count * sizeof(*value));
	}
	core->reduce.count = count;
	atomic_store_explicit(&core->reduce.busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_REDUCE});
	st = wf_progress_wait_clear(session, &core->reduce.busy);
	if (st == WEFT_OK && count > 0) {
		memcpy(value, core->reduce.value, count * sizeof(*value));
	}
	return st;
}

enum weft_status
weft_barrier(struct weft_session *session)
{
	WF_ENTER(session);
	return weft_reduce(session, NULL, 0);
}

/* Local steps since the last exchange. */
static enum weft_status
exchange_rest(struct weft_session *session)
{
	if (!wf_local_is_on(&session->core) || session->local.since == 0) {
		return WEFT_OK;
	}
	begin_exchange(session);
	for (uint32_t i = session->core.job.tensor_count; i-- > 0;) {
		if (!session->core.job.tensor[i].is_static) {
			wf_local_offer(session->tensor[i]);
			push(session->tensor[i]);
		}
	}
	return wait_all(session);
}

/* What was asked for beside the steps, and is not answered yet. */
static enum weft_status
wait_answers(struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service.ops;
	return service != NULL ? service->wait_answers(session) : WEFT_OK;
}

/* All of its steps are answered: wait for those of the others. */
static enum weft_status
end_pass(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_OUT});
	double pass =
		1; /* a value distinguishes this call from a barrier, should trainers differ */
	enum weft_status st = weft_reduce(session, &pass, 1);
	if (st != WEFT_OK) {
		return st;
	}
	WF_ASSERT(core->reduce.step <= UINT64_MAX - 1);
	bool early = core->reduce.step > session->step;
	session->step = early ? core->reduce.step : session->step;
	session->begun = false; /* nothing is owed for the steps of others */
	session->past.pass_count++;
	session->known_step = session->step;
	wf_progress_command(session,
			    &(struct wf_command){.kind = WF_COMMAND_NEXT_PASS, .a = session->step});
	wf_local_pass_ends(session);
	if (!wf_core_lags(core)) {
		bool elsewhere =
			core->job.set.dense_mode == WEFT_DENSE_ELASTIC; /* than at the center */
		return early || elsewhere ? weft_pull_all(session) : WEFT_OK;
	}
	/* All pushes of all trainers have been answered. No trainer pushes before all have
	 * pulled. */
	st = weft_pull_all(session);
	return st == WEFT_OK ? weft_barrier(session) : st;
}

enum weft_status
weft_pass_end(struct weft_session *session)
{
	WF_ENTER(session);
	enum weft_status st = wf_exchange_check_running(session);
	if (st == WEFT_OK) {
		st = check_all_pushed(session);
	}
	if (st == WEFT_OK) {
		st = wait_all(session);
	}
	if (st == WEFT_OK) {
		st = exchange_rest(session);
	}
	if (st == WEFT_OK) {
		st = wait_answers(session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	session->within = __func__;
	st = end_pass(session);
	session->within = st == WEFT_OK ? NULL : session->within;
	return st;
}

enum weft_status
weft_poll(struct weft_session *session)
{
	WF_ENTER(session);
	wf_progress_turn(session);
	return session->running ? wf_session_failure(session) : WEFT_OK;
}
