/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: the seeds that a test plays, one job each. Arguments FIRST COUNT; the variables of the
 * environment: WEFT_SEED=S plays that one, WEFT_LONG so many times as many, and WEFT_BRIEF a third,
 * where the same seeds are played by another build. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define WF_SWEEP_PART 3u

struct wf_sweep {
	uint64_t first, count;
	/* Not all of them: what every sweep has to have met, this one need not have. */
	bool is_part;
};

/* `usual`: how many without arguments. Sweeps that begin at other seeds stay apart with
 * WEFT_LONG. */
static inline struct wf_sweep
wf_sweep_of(int argc, char **argv, uint64_t usual, uint64_t times_if_long)
{
	const char *one = getenv("WEFT_SEED");
	const uint64_t times = getenv("WEFT_LONG") != NULL ? times_if_long : 1;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : usual;

	if (one != NULL) {
		return (struct wf_sweep){strtoull(one, NULL, 0), 1, true};
	}
	if (getenv("WEFT_BRIEF") != NULL) {
		return (struct wf_sweep){first, (count + WF_SWEEP_PART - 1) / WF_SWEEP_PART, true};
	}
	return (struct wf_sweep){(first - 1) * times + 1, count * times, false};
}
