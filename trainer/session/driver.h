/* SPDX-License-Identifier: Apache-2.0 */
/* driver: what the owner and the session's thread both do with the core: they claim it, run
 * commands in it, let events wake the thread, and release it. progress.c has the owner's side,
 * progress_thread.c the thread's. Thread: the driver's, unless a function states another. */
#pragma once

#include <unistd.h>

#include "trainer/session/session.h"

#define WF_DRIVER_ASIDE_NS (WF_NS_PER_S / 10) /* the thread's sleeps while the owner drives */

/* False: the other one drives. Thread: the owner, or the session's. */
static inline bool
wf_driver_claim(struct weft_session *session, enum wf_driver who)
{
	uint32_t none = WF_DRIVER_NONE;
	return atomic_compare_exchange_strong_explicit(&session->progress.driver, &none, who,
						       memory_order_seq_cst, /* D1, D2 */
						       memory_order_relaxed);
}

static inline void
wf_driver_release(struct weft_session *session)
{
	wf_owner_drop(&session->core.owner);
	atomic_store_explicit(&session->progress.driver, WF_DRIVER_NONE,
			      memory_order_seq_cst); /* D1, D2 */
}

/* One command; all that the ring has. Returns whether there was any. */
void wf_driver_run(struct weft_session *session, const struct wf_command *command);
bool wf_driver_run_all(struct weft_session *session);

/* Whether the transport's descriptor wakes the thread: for one event. */
void wf_driver_watch(struct weft_session *session, bool watched);

/* A signal that stops the program is heeded in the next turn. */
void wf_driver_look_for_stop(struct weft_session *session);

/* Wakes the sleeper on the eventfd. Thread: any, and signal handlers. */
static inline void
wf_driver_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n; /* full: it is readable already */
}
