/* SPDX-License-Identifier: Apache-2.0 */
/* waits: since when something is waited for, and when a wait that lasts is told: after two seconds,
 * then ever more rarely.
 *
 * Each kind of wait has a gate of its own, which is asked with the begin of the wait that is under
 * way now. A gate keeps nothing of a wait but when it told one last: a wait that began later is
 * another one, with a clock and a back-off of its own. One that had begun before (the next of many
 * that overlap) goes on with the back-off, so that overlapping waits do not make a line each.
 *
 * Waits that overlap are entries of a list in the order of their begins, so that the one that lasts
 * longest is at hand. An entry may be added without a time, which the next reading of the clock
 * gives it.
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

/* Whether a line about the wait is due now; if so, it counts as told. `since_ns`: when the wait
 * that is under way began; 0: none is. */
bool wf_wait_is_due(struct wf_wait_gate *gate, uint64_t since_ns, uint64_t now_ns);

/* Embedded in what is waited for. Zero at first; where it is not listed the rest says nothing. */
struct wf_wait {
	bool listed;
	uint64_t since_ns; /* 0: from the next wf_wait_stamp on */
	struct wf_wait *older, *newer;
};

struct wf_wait_list {
	struct wf_wait *oldest, *newest; /* NULL: nothing is waited for */
};

/* Both are part of each exchange, so they are inline. */
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

/* Those that have no time yet began now. */
static inline void
wf_wait_stamp(struct wf_wait_list *list, uint64_t now_ns)
{
	for (struct wf_wait *w = list->newest; w != NULL && w->since_ns == 0; w = w->older) {
		w->since_ns = now_ns;
	}
}
