/* SPDX-License-Identifier: Apache-2.0 */
/* retry: see retry.h. Thread: the end's. */
#include "exchange/retry.h"

#include <stdarg.h>
#include <stdio.h>

#define FIRST_NS (20 * WF_NS_PER_MS)
#define MAX_NS (WF_NS_PER_S)

void
wf_retry_begin(struct wf_retry *retry)
{
	retry->wait_ns = FIRST_NS;
}

void
wf_retry_later(struct wf_retry *retry, struct wf_env *env)
{
	uint64_t wait = retry->wait_ns;
	retry->at_ns = wf_now_ns(env) + wait + wf_random(env) % (wait / 4);
	retry->wait_ns = wait * 2 < MAX_NS ? wait * 2 : MAX_NS;
}

void
wf_retry_lost(struct wf_retry *retry, uint64_t now_ns)
{
	retry->lost_ns = retry->lost_ns == 0 ? now_ns : retry->lost_ns;
}

void
wf_retry_found(struct wf_retry *retry)
{
	retry->lost_ns = 0;
}

void
wf_retry_fail(struct wf_retry *retry, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(retry->why, sizeof(retry->why), format, args);
	va_end(args);
}
