/* SPDX-License-Identifier: Apache-2.0 */
/* waits: since when something is waited for, and when a long wait is logged: after two seconds,
 * then with growing intervals.
 *
 * Each kind of wait has its own gate, which is called with the beginning of the current wait. A
 * gate stores only when a line was last logged. A wait that began after that is a new one, with its
 * own clock and back-off. One that had begun before it (the next of several that overlap) continues
 * the back-off, so that overlapping waits do not log a line each.
 *
 * Overlapping waits are entries of a list in the order of their beginnings, so that the longest is
 * at its head. An entry may be added without a time; the next reading of the clock sets it.
 *
 * Thread: the one that owns the gate, or the list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

struct wf_wait_gate {
	uint64_t told_ns, period_ns; /* zero at first */
};

/* Whether a line about the wait is due now; if so, it counts as logged. `since_ns` is when the
 * current wait began; 0: nothing is waited for. */
bool wf_wait_is_due(struct wf_wait_gate *gate, uint64_t since_ns, uint64_t now_ns);

/* Embedded in what is waited for. Zero at first; the other fields are valid while it is listed. */
struct wf_wait {
	bool listed;
	uint64_t since_ns; /* 0: set by the next wf_wait_stamp */
	struct wf_wait *older, *newer;
};

struct wf_wait_list {
	struct wf_wait *oldest, *newest; /* NULL: nothing is waited for */
};

/* Both are on the path of each exchange, so they are inline. */
static inline void
wf_wait_begin(struct wf_wait_list *list, struct wf_wait *wait, uint64_t since_ns)
{
	WF_ASSERT(!wait->listed);
	wait->listed = true;
	wait->since_ns = since_ns;
	wait->older = list->newest;
	wait->newer = NULL;
	*(list->newest != NULL ? &list->newest->newer : &list->oldest) = wait;
	list->newest = wait;
}

static inline void
wf_wait_end(struct wf_wait_list *list, struct wf_wait *wait)
{
	WF_ASSERT(wait->listed);
	wait->listed = false;
	*(wait->older != NULL ? &wait->older->newer : &list->oldest) = wait->newer;
	*(wait->newer != NULL ? &wait->newer->older : &list->newest) = wait->older;
}

/* Sets the time of the entries that have none. */
static inline void
wf_wait_stamp(struct wf_wait_list *list, uint64_t now_ns)
{
	for (struct wf_wait *w = list->newest; w != NULL && w->since_ns == 0; w = w->older) {
		w->since_ns = now_ns;
	}
}
