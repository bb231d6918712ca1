/* SPDX-License-Identifier: Apache-2.0 */
/* gate: one thread at a time is in the calls of a session, whichever thread that is, and none in a
 * child of fork. Each public function that reads or changes more than what is fixed opens with
 * WF_ENTER; a call within a call of the same thread passes, but none from the callbacks
 * `interrupted` and `log`. Thread: any. */
#pragma once

#include "base/forked.h"
#include "trainer/session/session.h"

/* A thread's stay in the calls of a session. */
struct wf_visit {
	struct weft_session
		*session; /* to leave; NULL: an outer call leaves it, or it is refused */
	enum weft_status status;
};

/* Records why. */
enum weft_status wf_gate_refuse(const struct weft_session *session) __attribute__((cold));

static inline uintptr_t
wf_gate_me(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static inline bool
wf_gate_is_forked(const struct weft_session *session)
{
	return session->gate.forks != wf_forked_depth();
}

static inline struct wf_visit
wf_gate_enter(struct weft_session *session)
{
	uintptr_t none = 0;
	if (wf_gate_is_forked(session) || wf_core_is_logging(&session->core)) {
		return (struct wf_visit){.status = wf_gate_refuse(session)};
	}
	if (atomic_load_explicit(&session->gate.thread, memory_order_relaxed) == wf_gate_me()) {
		return (struct wf_visit){0}; /* written by this thread */
	}
	if (!atomic_compare_exchange_strong_explicit(&session->gate.thread, &none, wf_gate_me(),
						     memory_order_acquire, /* G1 */
						     memory_order_relaxed)) {
		return (struct wf_visit){.status = wf_gate_refuse(session)};
	}
	return (struct wf_visit){.session = session};
}

static inline void
wf_gate_leave(const struct wf_visit *visit)
{
	if (visit->session != NULL) {
		atomic_store_explicit(&visit->session->gate.thread, 0,
				      memory_order_release); /* G1 */
	}
}

#define WF_GATE_CALLBACK 1u /* in the place of a thread: its call has called the program back */

/* Until it is unblocked the owner itself is refused, too. Returns what unblocking needs. */
static inline uintptr_t
wf_gate_block(struct weft_session *session)
{
	return atomic_exchange_explicit(&session->gate.thread, WF_GATE_CALLBACK,
					memory_order_relaxed); /* by the owner, who leaves later */
}

static inline void
wf_gate_unblock(struct weft_session *session, uintptr_t caller)
{
	atomic_store_explicit(&session->gate.thread, caller, memory_order_relaxed);
}

/* The caller returns the refusal, or leaves by itself when it returns. */
#define WF_ENTER(entered)                                                                          \
	__attribute__((cleanup(wf_gate_leave))) const struct wf_visit visit =                      \
		wf_gate_enter(entered);                                                            \
	if (visit.status != WEFT_OK) {                                                             \
		return visit.status;                                                               \
	}                                                                                          \
	WF_STATIC_ASSERT(true, "the line ends with a semicolon")
