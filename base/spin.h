/* SPDX-License-Identifier: Apache-2.0 */
/* spin: how long a thread that waits polls before it goes to sleep.
 *
 * To sleep and be woken costs tens of microseconds; to poll costs a core. A fixed limit suits one
 * machine and one job. With WEFT_SPIN_AUTO the limit follows what recent waits took: twice their
 * usual length, while that is short, and no polling at all where waits are usually longer than
 * polling is worth. Where polling ends without an event twice in a row, something else wants the
 * core, or the pattern has changed: polling is then skipped for one wait, then for two, and so on
 * up to WF_SPIN_REST_MAX, until it succeeds again.
 *
 * A wait begins with the last event and ends with the next one. Waits that end before the thread
 * has looked at the clock even once do not count.
 *
 * Thread: the one that polls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "weft/weft.h" /* WEFT_SPIN_AUTO */

#define WF_SPIN_MAX_NS (100 * WF_NS_PER_US) /* the longest automatic limit */
#define WF_SPIN_REST_MAX 64u                /* the most waits in a row without polling */

struct wf_spin {
	uint64_t limit_ns;   /* the longest polling in a wait; 0: sleep at once */
	bool is_automatic;   /* limit_ns follows the waits */
	uint64_t usual_ns;   /* how long recent waits took */
	bool missed;         /* polling has reached its limit in the wait under way */
	unsigned misses;     /* consecutive waits in which it did */
	unsigned rest, left; /* waits to skip after the next miss, and still to skip now */
};

/* `spin_ns`: a fixed limit, 0: never poll, or WEFT_SPIN_AUTO. */
void wf_spin_init(struct wf_spin *spin, uint64_t spin_ns);

/* The setting for each of `pollers` threads of this process: WEFT_SPIN_AUTO becomes 0 where this
 * process has fewer CPUs than that, or the host has only one. Thread: any. */
uint64_t wf_spin_setting(uint64_t spin_ns, unsigned pollers);

/* The wait that began `waited_ns` ago is over. It does not change a fixed limit. */
void wf_spin_end(struct wf_spin *spin, uint64_t waited_ns);

/* Pauses between two reads of a word that another thread is about to change. Thread: any. */
static inline void
wf_spin_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__("yield" ::: "memory"); /* without an output it is neither moved nor removed */
#endif
}

/* Whether a wait that began `waited_ns` ago goes on polling. */
static inline bool
wf_spin_goes_on(struct wf_spin *spin, uint64_t waited_ns)
{
	if (waited_ns < spin->limit_ns) {
		return true;
	}
	spin->missed = spin->limit_ns > 0; /* a sleep follows */
	return false;
}
