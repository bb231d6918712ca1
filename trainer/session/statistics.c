/* SPDX-License-Identifier: Apache-2.0 */
/* statistics: what a program may ask of its session: its own counters (report.c), and what the
 * lanes know of a trainer (others.c). Thread: the owner's. */
#include <inttypes.h>

#include "trainer/session/gate.h"
#include "trainer/session/session.h"

static bool
are_there(struct weft_session *session)
{
	return atomic_load_explicit(&session->core.report.busy, memory_order_acquire) == 0; /* B1 */
}

/* Lets the core gather them, also for a failed session, whose thread still accepts commands. It
 * waits for no other process, so `interrupted` is not called. */
static void
fetch(struct weft_session *session)
{
	atomic_store_explicit(&session->core.report.busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_STATS});
	wf_progress_wait(session, are_there);
}

enum weft_status
weft_session_stats(struct weft_session *session, struct weft_session_stats *out)
{
	WF_ENTER(session);
	const struct wf_core *core = &session->core;
	if (out->struct_bytes != sizeof(*out)) {
		return wf_fail(WEFT_INVALID,
			       "weft_session_stats of %zu bytes, the library's has %zu: set "
			       "struct_bytes, and build against this version's headers",
			       out->struct_bytes, sizeof(*out));
	}
	if (session->running) {
		fetch(session);
	}
	uint64_t now[WF_CORE_COUNTER_COUNT];
	wf_stats_snapshot(&core->report.stats, now);
	*out = (struct weft_session_stats){
		.struct_bytes = sizeof(*out),
		.sent_bytes = now[WF_END_TRANSPORT_SENT_BYTES],
		.received_bytes = now[WF_END_TRANSPORT_RECEIVED_BYTES],
		.messages_sent = now[WF_END_MESSAGE_SENT_COUNT],
		.messages_received = now[WF_END_MESSAGE_RECEIVED_COUNT],
		.puts_sent = now[WF_END_PUT_SENT_COUNT],
		.puts_received = now[WF_END_PUT_RECEIVED_COUNT],
		.fast_sent_bytes = now[WF_CORE_FAST_SENT_BYTES],
		.fast_received_bytes = now[WF_CORE_FAST_RECEIVED_BYTES],
		.paths_broken = now[WF_CORE_PATH_BROKEN_COUNT],
		.steps = now[WF_CORE_STEP_BEGUN_COUNT],
		.slices_pushed = now[WF_CORE_SLICE_PUSHED_COUNT],
		.slices_answered = now[WF_CORE_SLICE_ANSWERED_COUNT],
		.slices_discarded = now[WF_CORE_SLICE_DISCARDED_COUNT],
		.slices_pulled = now[WF_CORE_SLICE_PULLED_COUNT],
		.gradients_overflowed = now[WF_CORE_GRADIENT_OVERFLOWED_COUNT],
		.reconnects = now[WF_CORE_LANE_RECONNECTED_COUNT],
		.waits_slot = now[WF_CORE_WAIT_SLOT_COUNT],
		.waits_post = now[WF_END_WAIT_POST_COUNT],
		.poll_time_ns = now[WF_END_POLL_TIME_NS],
		.idle_time_ns = now[WF_END_IDLE_TIME_NS],
		.away_time_ns = now[WF_CORE_AWAY_TIME_NS],
		.exchange_p50_ns = core->report.p50_ns,
		.exchange_p99_ns = core->report.p99_ns,
	};
	return WEFT_OK;
}

static void
fill(const uint64_t *value, struct weft_trainer_stats *out)
{
	*out = (struct weft_trainer_stats){
		.struct_bytes = sizeof(*out),
		.lane_steps = value[WF_REPORT_STEPS],
		.apply_ns = value[WF_REPORT_APPLY_NS],
		.last = value[WF_REPORT_LAST],
		.behind_next_ns = value[WF_REPORT_BEHIND_NEXT_NS],
		.behind_first_ns = value[WF_REPORT_BEHIND_FIRST_NS],
		.split_steps = value[WF_REPORT_SPLIT],
		.compute_ns = value[WF_REPORT_COMPUTE_NS],
		.network_ns = value[WF_REPORT_NETWORK_NS],
		.slices_applied = value[WF_REPORT_APPLIED],
		.slices_discarded = value[WF_REPORT_DISCARDED],
		.lag_sum = value[WF_REPORT_LAG_SUM],
		.lag_max = value[WF_REPORT_LAG_MAX],
	};
}

/* About a trainer, or the job: waits until all lanes have answered. */
static enum weft_status
ask_lanes(struct weft_session *session, uint32_t about, const char *what)
{
	struct wf_core *core = &session->core;
	if (atomic_load_explicit(&core->others.busy, memory_order_acquire) != 0) { /* B1 */
		return wf_fail(WEFT_INVALID,
			       "%s: the call before was interrupted and is unanswered; end the "
			       "session",
			       what);
	}
	atomic_store_explicit(&core->others.busy, 1, memory_order_relaxed);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_OTHERS, .a = about});
	return wf_progress_wait_clear(session, &core->others.busy);
}

enum weft_status
weft_trainer_stats(struct weft_session *session, uint32_t trainer_id,
		   struct weft_trainer_stats *out)
{
	WF_ENTER(session);
	const struct wf_core *core = &session->core;
	if (out->struct_bytes != sizeof(*out)) {
		return wf_fail(WEFT_INVALID,
			       "weft_trainer_stats of %zu bytes, the library's has %zu: set "
			       "struct_bytes, and build against this version's headers",
			       out->struct_bytes, sizeof(*out));
	}
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (trainer_id >= core->job.set.num_gradient_servers) {
		return wf_fail(WEFT_INVALID,
			       "stats of trainer %u: it must be below num_gradient_servers, which "
			       "is %u",
			       trainer_id, core->job.set.num_gradient_servers);
	}
	st = ask_lanes(session, trainer_id, "stats of a trainer");
	if (st == WEFT_OK) {
		fill(core->others.sum.value, out);
	}
	return st;
}

enum weft_status
weft_samples(struct weft_session *session, uint64_t *out)
{
	WF_ENTER(session);
	const struct wf_core *core = &session->core;
	const uint64_t *sum = core->others.sum.value;
	enum weft_status st = wf_exchange_check_running(session);
	if (st != WEFT_OK) {
		return st;
	}
	if (wf_core_lags(core) || wf_local_is_on(core)) {
		return wf_fail(WEFT_INVALID, "samples: each trainer of this job has steps of its "
					     "own; give dense_mode=sync, and tensors no other");
	}
	if (core->pace.pushable_count == 0) {
		return wf_fail(WEFT_INVALID, "samples: this job pushes no tensor, and lanes count "
					     "samples with these alone; count them in the program");
	}
	st = ask_lanes(session, WF_REPORT_OF_JOB, "samples");
	if (st != WEFT_OK) {
		return st;
	}
	const uint64_t asked = core->others.asked;
	if (asked == 0 || sum[WF_REPORT_JOB_STEPS] != asked * session->step ||
	    sum[WF_REPORT_JOB_SAMPLES] % asked != 0) {
		return wf_fail(WEFT_INVALID,
			       "samples: the lanes have not all applied step %" PRIu64
			       " and no more; call it between a step's last wait and the next "
			       "step, in a pass that this trainer has data for",
			       session->step);
	}
	*out = sum[WF_REPORT_JOB_SAMPLES] / asked;
	return WEFT_OK;
}
