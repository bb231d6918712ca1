/* SPDX-License-Identifier: Apache-2.0 */
/* failure: the first failure of a session, and its ABORT to the lanes. It calls nothing of the
 * session's other files, so that each of them can call it. Thread: the core's. */
#include "trainer/session/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/signals.h"
#include "trainer/session/core.h"

#define FAREWELL_NS WF_NS_PER_S /* time for the ABORT to reach the lanes */
#define LOG_LINE_BYTES 1024     /* as wf_log has it */

_Thread_local const struct wf_logging *wf_logging_now;

/* What the callback calls of the session is refused (gate.h), which must not replace what the call
 * that logs has recorded. */
static void
call_log(const struct wf_core *core, enum weft_log_level level, const char *line)
{
	const struct wf_error recorded = *wf_error_record();
	const struct wf_logging logging = {.core = core, .outer = wf_logging_now};
	wf_logging_now = &logging;
	core->opts.log(core->opts.log_arg, level, line);
	wf_logging_now = logging.outer;
	*wf_error_record() = recorded;
}

void
wf_core_log(struct wf_core *core, enum weft_log_level level, const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (core->opts.log != NULL) {
		call_log(core, level, line);
	} else {
		wf_log(core->end.env, level, "%s", line);
	}
}

void
wf_core_fail(struct wf_core *core, enum weft_status status, const char *format, ...)
{
	struct wf_failure *failure = &core->failure;
	WF_ASSERT(status != WEFT_OK && status != WEFT_AGAIN);
	if (wf_core_failed(core)) {
		return; /* the first cause is the one to show */
	}
	if (status == WEFT_LOST && core->end.goes_back) {
		status = WEFT_ROLLED_BACK;
	}
	char text[WF_ERROR_BYTES]; /* the arguments may be the failure's or the error record's */
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	memcpy(failure->text, text, sizeof(failure->text));
	failure->since_ns = wf_now_ns(core->end.env);
	atomic_store_explicit(&failure->status, (uint32_t)status, memory_order_release); /* F1 */
	core->turn.tick_ns = 0;
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		bool up = link->state == WF_LINK_GREETING || link->state == WF_LINK_READY;
		if (link->conn != NULL && up) {
			link->to_send.abort = true;
			wf_link_due(link);
		} else if (link->conn != NULL) {
			wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
		}
	}
}

bool
wf_core_is_free(const struct wf_core *core)
{
	const struct wf_link *last = core->links.all[0];
	bool waits = last->ends_together && last->state != WF_LINK_LEFT;
	return core->end.leaving && !waits;
}

void
wf_core_heed_stop(struct wf_core *core)
{
	int by = atomic_load_explicit(&core->failure.stopped_by, memory_order_acquire);
	if (by == 0 || wf_core_is_free(core)) {
		return;
	}
	char name[WF_SIGNAL_NAME_BYTES];
	wf_signal_name(by, name);
	wf_core_fail(core, WEFT_ABORTED, "trainer %u (host %s, pid %u) was stopped by %s",
		     core->opts.trainer_id, core->end.hello.host, core->end.hello.pid, name);
}

void
wf_failure_relay(struct wf_core *core, const struct wf_msg_abort *abort)
{
	if (!wf_core_failed(core)) {
		memcpy(core->failure.who, abort->who, sizeof(abort->who));
		wf_core_fail(core, (enum weft_status)abort->status, "%s", abort->reason);
	}
}

void
wf_failure_forget(struct wf_failure *failure)
{
	failure->text[0] = '\0';
	failure->who[0] = '\0';
	failure->since_ns = 0;
	atomic_store_explicit(&failure->status, WEFT_OK, memory_order_release); /* F1 */
}

bool
wf_failure_is_told(struct wf_core *core, uint64_t now)
{
	/* It may be younger than this turn. */
	bool late = now >= core->failure.since_ns + FAREWELL_NS;
	bool left = false;
	for (uint32_t i = 0; i < core->links.count; i++) {
		struct wf_link *link = core->links.all[i];
		left = left || link->conn != NULL;
		if (late && link->conn != NULL) {
			wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
		}
	}
	return !left;
}

void
wf_failure_encode(struct wf_core *core)
{
	const struct wf_failure *failure = &core->failure;
	struct wf_msg_abort msg = {
		.status = (uint16_t)atomic_load_explicit(&failure->status, memory_order_relaxed),
		.step = core->step.number,
	};
	if (failure->who[0] != '\0') {
		memcpy(msg.who, failure->who, sizeof(msg.who));
	} else {
		(void)snprintf(msg.who, sizeof(msg.who), "trainer %u", core->opts.trainer_id);
	}
	(void)snprintf(msg.reason, sizeof(msg.reason), "%.*s", WF_REASON_BYTES - 1, failure->text);
	wf_msg_abort_encode(&msg, &core->end.msg);
}
