/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: the seeds that a test plays, one job each. Arguments FIRST COUNT; the variables of the
 * environment: WEFT_SEED=S plays that one, and WEFT_LONG so many times as many. Where two builds
 * share the seeds, WEFT_BRIEF=first plays the first sixth, and WEFT_BRIEF=rest the others.
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WF_SWEEP_PART 6u

struct wf_sweep {
	uint64_t first, count;
	/* Not all of them: what every sweep has to have met, this one need not have. */
	bool is_part;
	uint64_t whole; /* how many there are, of which `count` are played here */
};

/* How much of something this sweep has to have met, where all of its seeds meet `least`. */
static inline uint64_t
wf_sweep_floor(const struct wf_sweep *sweep, uint64_t least)
{
	return sweep->is_part ? 0 : least * sweep->count / sweep->whole;
}

/* The cases from `begin` on and before `end`, of `count` from 0 on, that this build plays of a test
 * whose cases are all drawn from one seed. */
static inline void
wf_sweep_cases(unsigned count, unsigned *begin, unsigned *end)
{
	const char *brief = getenv("WEFT_BRIEF");
	const unsigned part = (count + WF_SWEEP_PART - 1) / WF_SWEEP_PART;

	*begin = brief != NULL && strcmp(brief, "rest") == 0 ? part : 0;
	*end = brief != NULL && strcmp(brief, "first") == 0 ? part : count;
}

/* `usual`: how many without arguments. Sweeps that begin at other seeds stay apart with
 * WEFT_LONG. */
static inline struct wf_sweep
wf_sweep_of(int argc, char **argv, uint64_t usual, uint64_t times_if_long)
{
	const char *one = getenv("WEFT_SEED");
	const char *brief = getenv("WEFT_BRIEF");
	const bool is_first = brief != NULL && strcmp(brief, "first") == 0;
	const bool is_rest = brief != NULL && strcmp(brief, "rest") == 0;
	const uint64_t times = getenv("WEFT_LONG") != NULL ? times_if_long : 1;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : usual;
	const uint64_t part = (count + WF_SWEEP_PART - 1) / WF_SWEEP_PART;

	if (one != NULL) {
		return (struct wf_sweep){strtoull(one, NULL, 0), 1, true, 1};
	}
	if (is_first) {
		return (struct wf_sweep){first, part, true, count};
	}
	if (is_rest && count > part) {
		return (struct wf_sweep){first + part, count - part, false, count};
	}
	return (struct wf_sweep){(first - 1) * times + 1, count * times, false, count * times};
}
