/* SPDX-License-Identifier: Apache-2.0 */
/* failing_env: an env around another that runs out of memory when told to, and counts what is still
 * held, so that a test sees both the refusal and the leak.
 *
 *	for (uint64_t nth = 1; nth < 100; nth++) {
 *		wf_failing_env_fail(&failing, nth, false);
 *		... open the thing under test on &failing.env ...
 *		if (failing.failed == 0) break; (it takes fewer than nth allocations)
 *		... expect WEFT_NOMEM, and wf_failing_env_is_clean() ...
 *	}
 *
 * Thread: ops may be called by any; the rest by the test. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"

struct wf_failing_env {
	struct wf_env env;    /* hand this to the code under test */
	struct wf_env *inner; /* borrowed; does the work */

	/* Shared; relaxed: counters that are read when the threads are still. */
	_Atomic uint64_t asked;      /* allocs and slab_opens since the last wf_failing_env_fail */
	_Atomic uint64_t failed;     /* how many of them were refused */
	_Atomic uint64_t live_count; /* allocations and slabs not given back */
	_Atomic uint64_t live_bytes; /* as requested; wrong sizes in wf_free show here */

	/* Fixed while threads run. */
	uint64_t fail_nth; /* 1: the next; 0: none */
	bool fail_on;      /* and all after it */
};

void wf_failing_env_init(struct wf_failing_env *failing, struct wf_env *inner);
/* Refuse the nth alloc or slab_open from now on (0: none); `and_after`: and all that follow. */
void wf_failing_env_fail(struct wf_failing_env *failing, uint64_t nth, bool and_after);
/* Whether everything was freed, with the sizes with which it was allocated. */
bool wf_failing_env_is_clean(const struct wf_failing_env *failing);
