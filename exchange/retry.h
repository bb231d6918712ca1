/* SPDX-License-Identifier: Apache-2.0 */
/* retry: when the next connection attempt is due, since when an established connection has been
 * lost, and why. Waits double from 20 ms to 1 s; a random amount of up to a quarter is added to
 * each, so that trainers do not retry in lockstep. Thread: the end's. */
#pragma once

#include <stdint.h>

#include "base/env.h"
#include "transport/transport.h"

/* Embedded in a link. Read by its owner; written by these functions alone. */
struct wf_retry {
	uint64_t at_ns;         /* when the next attempt is due; 0: at once */
	uint64_t wait_ns;       /* the next wait, without the random part */
	uint64_t lost_ns;       /* since when the connection has been lost; 0: it is not */
	char why[WF_WHY_BYTES]; /* text of the last failure; "": there was none */
};

/* The next wait is the shortest one. `retry` is zeroed at first; also called after an attempt that
 * succeeded. */
void wf_retry_begin(struct wf_retry *retry);
/* An attempt failed, or a connection ended: the next attempt comes after a wait. */
void wf_retry_later(struct wf_retry *retry, struct wf_env *env);
/* An established connection is lost since `now_ns`, unless it was lost before. */
void wf_retry_lost(struct wf_retry *retry, uint64_t now_ns);
/* The connection is established again, or is not needed any more. */
void wf_retry_found(struct wf_retry *retry);
/* Keeps the reason of the last failure. */
void wf_retry_fail(struct wf_retry *retry, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether a connection has been lost for `timeout_ns` or longer. */
static inline bool
wf_retry_is_over(const struct wf_retry *retry, uint64_t now_ns, uint64_t timeout_ns)
{
	return retry->lost_ns != 0 && now_ns - retry->lost_ns >= timeout_ns;
}
