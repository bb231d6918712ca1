/* SPDX-License-Identifier: Apache-2.0 */
/* rejoin: the next life of a job that has lost a member (weft/restart.h). The session opens its
 * core anew, as another incarnation; its declarations, arrays and settings stay. Thread: the
 * owner's. */
#include "trainer/session/rejoin.h"

#include "base/assert.h"
#include "trainer/session/gate.h"
#include "trainer/session/service.h"
#include "weft/restart.h"

static void
reset_tensors(struct weft_session *session)
{
	for (uint32_t i = 0; i < wf_session_tensor_count(session); i++) {
		struct weft_tensor *tensor = session->tensor[i];
		tensor->pushed_step = 0;
		tensor->state_step = 0;
		tensor->base_known = false;
		tensor->is_offered = false;
	}
	session->pieces.call = 0;
	session->pieces.pushed = 0;
}

/* What the core had of a life. Memory that it keeps for the next one: job, placement, arrays. */
static void
reset_core(struct wf_core *core)
{
	struct wf_link_end *end = &core->end;
	*end = (struct wf_link_end){
		.env = end->env,
		.hello = {.incarnation = wf_random(end->env) | 1,
			  .numerics_digest = end->hello.numerics_digest},
	};
	wf_failure_forget(&core->failure);
	wf_owner_drop(&core->owner);
	core->flow = (struct wf_session_flow){0};
	core->waits = (struct wf_session_waits){0};
	core->step = (struct wf_session_step){0};
	core->pace = (struct wf_pace){0};
	core->reduce = (struct wf_session_reduce){0};
	core->others = (struct wf_session_others){0};
	core->position = (struct wf_session_position){0};
	core->farewell = (struct wf_farewell){0};
	core->preceded_step = 0;
	core->changes.step = 0;
	core->changes.count = 0;
	wf_core_init(core);
}

/* As it was when weft_session_seal returned, but for the values in the arrays. */
static void
reset(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	wf_progress_end(session);
	wf_core_close(core);
	session->core_open = false;
	reset_core(core);
	if (core->service.ops != NULL) {
		core->service.ops->reset(session);
	}
	reset_tensors(session);
	session->running = false;
	session->begun = false;
	session->resumed = false;
	session->has_state = false;
	session->position_given = false;
	session->within = NULL;
	session->step = 0;
	session->known_step = 0;
	session->past.samples = 0;
	session->past.pass_count = 0;
}

static bool
is_rolled_back(const struct weft_session *session)
{
	return session->core_open && wf_failure_status(&session->core.failure) == WEFT_ROLLED_BACK;
}

/* Trainer 0 has no initial values any more if pservers have answered it with others: in 16 bits
 * they are rounded. */
static bool
may_start_again(const struct weft_session *session, uint64_t deadline_ns)
{
	const struct wf_core *core = &session->core;
	bool has_values = core->opts.trainer_id != 0 || core->job.set.dense_wire == WEFT_WIRE_F32;
	return is_rolled_back(session) && has_values && wf_now_ns(core->end.env) < deadline_ns;
}

/* The job may go on with another process in the place of this one. */
static enum weft_status
give_up(const struct weft_session *session)
{
	return wf_fail(WEFT_UNAVAILABLE, "%s", session->core.failure.text);
}

enum weft_status
wf_rejoin_start(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	const struct wf_session_start begins = core->start;
	const uint32_t change_count = core->changes.count; /* of before the first step */
	const uint64_t deadline_ns = wf_now_ns(core->end.env) + core->opts.connect_timeout_ns;
	enum weft_status st = wf_session_begin(session);
	while (st == WEFT_ROLLED_BACK && may_start_again(session, deadline_ns)) {
		wf_session_await_quiet(session);
		reset(session);
		core->start = begins;
		core->changes.count = change_count;
		wf_core_go_on_after(core, begins.init.step);
		st = wf_session_begin(session);
	}
	return st == WEFT_ROLLED_BACK ? give_up(session) : st;
}

/* One attempt, as far as the time allows. */
static enum weft_status
begin_life(struct weft_session *session, uint64_t left_ns)
{
	struct wf_core *core = &session->core;
	wf_session_await_quiet(session);
	reset(session);
	core->start = (struct wf_session_start){.init = {.sections = 1}, .is_rejoin = true};
	core->start.connect_timeout_ns = left_ns;
	return wf_session_begin(session);
}

enum weft_status
weft_session_rejoin(struct weft_session *session)
{
	WF_ENTER(session);
	struct wf_core *core = &session->core;
	if (!is_rolled_back(session)) {
		return wf_fail(WEFT_INVALID,
			       "rejoin: no call of this session has returned WEFT_ROLLED_BACK");
	}
	const uint64_t end_ns = wf_now_ns(core->end.env) + core->values.rejoin_timeout;
	uint64_t now_ns = wf_now_ns(core->end.env);
	enum weft_status st = WEFT_ROLLED_BACK;
	while (st == WEFT_ROLLED_BACK && is_rolled_back(session) && !core->start.lacks_values &&
	       now_ns < end_ns) {
		st = begin_life(session, end_ns - now_ns);
		now_ns = wf_now_ns(core->end.env);
	}
	return st == WEFT_ROLLED_BACK ? give_up(session) : st;
}
