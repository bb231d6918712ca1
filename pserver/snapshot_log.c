/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_log: see snapshot_log.h. Thread: lane 0's. */
#include "pserver/snapshot_log.h"

#include <inttypes.h>
#include <stdio.h>

#define PERIOD_NS (60 * WF_NS_PER_S) /* between two lines about failures */

/* The next failure is another matter. */
void
wf_snapshot_log_made(struct wf_snapshot_log *log, struct wf_env *env,
		     const struct wf_snapshot_made *made)
{
	if (log->failed.unsaid > 0) {
		wf_log(env, WF_LOG_WARN,
		       "%" PRIu64 " more snapshots failed before that of step %" PRIu64,
		       log->failed.unsaid, made->id.step);
	}
	*log = (struct wf_snapshot_log){0};
	wf_log(env, WF_LOG_INFO,
	       "snapshot of step %" PRIu64 " in epoch %" PRIu64 "%s: %" PRIu64 " bytes in %.3f s",
	       made->id.step, made->id.epoch, made->is_delta ? ", changes only" : "", made->bytes,
	       (double)made->ns / 1e9);
}

void
wf_snapshot_log_failed(struct wf_snapshot_log *log, struct wf_env *env, uint64_t step,
		       const struct wf_error *why)
{
	const uint64_t now_ns = wf_now_ns(env);
	char more[64] = "";

	if (why->status != log->status) {
		log->failed.end_ns = 0; /* another reason */
		log->status = why->status;
	}
	const uint64_t unsaid = wf_log_limit_unsaid(&log->failed, now_ns);
	if (!wf_log_limit_pass(&log->failed, now_ns, PERIOD_NS)) {
		return;
	}
	if (unsaid > 0) {
		(void)snprintf(more, sizeof(more), " (%" PRIu64 " more failed before it)", unsaid);
	}
	wf_log(env, WF_LOG_WARN,
	       "there is no snapshot of step %" PRIu64 "%s, and the training goes on: %s", step,
	       more, why->text);
}
