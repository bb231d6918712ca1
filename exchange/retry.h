/* SPDX-License-Identifier: Apache-2.0 */
/* retry: when the next attempt at a connection is due, since when a connection that was there has
 * been lost, and why. Waits double from 20 ms to 1 s, and each has up to a quarter of chance added,
 * so that trainers do not come in step. Thread: the end's. */
#pragma once

#include <stdint.h>

#include "base/env.h"
#include "transport/transport.h"

/* Embedded in a link. Read by its owner; written by these functions alone. */
struct wf_retry {
	uint64_t at_ns;         /* the next attempt is due; 0: at once */
	uint64_t wait_ns;       /* the next wait, without chance */
	uint64_t lost_ns;       /* since when the connection has been lost; 0: it is not */
	char why[WF_WHY_BYTES]; /* the last failure; "": there was none */
};

/* `retry`: zeroed. Also after an attempt that succeeded: the next wait is the shortest one. */
void wf_retry_begin(struct wf_retry *retry);
/* An attempt failed, or a connection ended: the next attempt comes after a wait. */
void wf_retry_later(struct wf_retry *retry, struct wf_env *env);
/* A connection that was there is lost since `now_ns`, unless it was lost before. */
void wf_retry_lost(struct wf_retry *retry, uint64_t now_ns);
/* It is there again, or is not missed any more. */
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
