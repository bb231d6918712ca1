/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_log: see snapshot_log.h. Thread: lane 0's. */
#include "pserver/snapshot_log.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"

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

/* Of a reason, whose numbers and places differ each time: the letters behind its last colon. */
static uint32_t
kind_of(const char *why)
{
	const char *last = strrchr(why, ':');
	uint32_t kind = 0;

	for (const char *at = last != NULL ? last : why; *at != '\0'; at++) {
		kind = isalpha((unsigned char)*at) != 0 ? wf_crc32c(kind, at, 1) : kind;
	}
	return kind;
}

void
wf_snapshot_log_failed(struct wf_snapshot_log *log, struct wf_env *env, uint64_t step,
		       const char *why)
{
	const uint64_t now_ns = wf_now_ns(env);
	char more[64] = "";

	const uint32_t kind = kind_of(why);
	if (kind != log->kind) {
		log->failed.end_ns = 0;
		log->kind = kind;
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
	       more, why);
}
