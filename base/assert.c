/* SPDX-License-Identifier: Apache-2.0 */
/* assert: failed assertions, and the ownership of objects. Thread: any; a struct wf_owner passes
 * from thread to thread under its user's own order. */
#include "base/assert.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/outlet.h"

void
wf_assert_failed(const char *condition, const char *file, int line)
{
	/* No stdio stream: its lock may be held, its buffer lost in abort. */
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS); /* the log lines that led here */
	wf_outlet_last_words("%s:%d: assertion failed: %s", file, line, condition);
	abort();
}

void
wf_owner_claim(struct wf_owner *owner)
{
	unsigned long me = (unsigned long)pthread_self();
	WF_ASSERT(me != 0);
	WF_ASSERT(owner->thread == 0 || owner->thread == me);
	owner->thread = me;
}

void
wf_owner_drop(struct wf_owner *owner)
{
	owner->thread = 0;
}

bool
wf_owner_is_me(const struct wf_owner *owner)
{
	return owner->thread == (unsigned long)pthread_self();
}
