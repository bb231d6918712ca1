/* SPDX-License-Identifier: Apache-2.0 */
/* failure: the first failure of a session. failure.c is its only writer. Thread: the core's, unless
 * a function states another. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "weft/weft.h"
#include "wire/messages.h"

struct wf_core;

struct wf_failure {
	/* shared: enum weft_status; text is written before it (release), and read after it
	 * (acquire): F1. */
	_Atomic uint32_t status;
	char text[WF_ERROR_BYTES];
	char who[WF_MEMBER_NAME_BYTES]; /* the member that reported it first; "": this trainer */
	uint64_t since_ns;
	/* shared: the signal that stopped the program, 0: none did; any thread or signal handler:
	 * store release; core and owner: load acquire. Carries no data. */
	_Atomic int stopped_by;
};

/* A callback `log` that this thread is in. On the stack of what calls it. */
struct wf_logging {
	const struct wf_core *core;
	const struct wf_logging *outer; /* whose callback has led to this one; NULL: none */
};

/* The innermost; NULL: this thread is in none. */
extern _Thread_local const struct wf_logging *wf_logging_now
	__attribute__((tls_model("initial-exec")));

/* Whether this thread is in a callback `log` of the core, however deep below others. */
static inline bool
wf_core_is_logging(const struct wf_core *core)
{
	const struct wf_logging *logging = wf_logging_now;
	while (logging != NULL && logging->core != core) {
		logging = logging->outer;
	}
	return logging != NULL;
}

void wf_core_log(struct wf_core *core, enum weft_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Keeps the first failure, and sends ABORT to the lanes that are connected. */
void wf_core_fail(struct wf_core *core, enum weft_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The failure of another member of the job, from a lane. */
void wf_failure_relay(struct wf_core *core, const struct wf_msg_abort *abort);
/* Whether this trainer is leaving and nothing holds it: not so where the job ends for all of its
 * members together, and others are not done. */
bool wf_core_is_free(const struct wf_core *core);
/* Fails if a signal has stopped the program, unless the trainer is free. */
void wf_core_heed_stop(struct wf_core *core);
/* The ABORT of this failure, into end.msg. */
void wf_failure_encode(struct wf_core *core);
/* A session that begins anew has not failed. That a signal has stopped the program stays. */
void wf_failure_forget(struct wf_failure *failure);
/* Thread: any. */
static inline enum weft_status
wf_failure_status(const struct wf_failure *failure)
{
	return (enum weft_status)atomic_load_explicit(&failure->status,
						      memory_order_acquire); /* F1 */
}
/* Whether a failed session has no connection left. Connections that are left a second later are
 * cut. */
bool wf_failure_is_told(struct wf_core *core, uint64_t now_ns);

/* Thread: any, and signal handlers. */
static inline void
wf_failure_stop(struct wf_failure *failure, int signal_number)
{
	atomic_store_explicit(&failure->stopped_by, signal_number, memory_order_release);
}

/* Thread: any. */
static inline bool
wf_failure_is_stopped(const struct wf_failure *failure)
{
	return atomic_load_explicit(&failure->stopped_by, memory_order_acquire) != 0;
}
