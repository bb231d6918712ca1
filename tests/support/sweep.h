/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: the seeds that a test plays, one job each. Arguments FIRST COUNT; the variables of the
 * environment: WEFT_SEED=S plays that one, and WEFT_LONG so many times as many. Two builds of the
 * check share the first half of the seeds: WEFT_BRIEF=first plays a twelfth of all, and
 * WEFT_BRIEF=second the five twelfths after it; check-all plays all. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WF_SWEEP_PART 12u

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

/* What this build plays: from `begin` on and before `end` of `count`. Two builds of the check play
 * `shared` of them together. False: this one plays all. */
static inline bool
wf_sweep_share(uint64_t count, uint64_t shared, uint64_t *begin, uint64_t *end)
{
	const char *brief = getenv("WEFT_BRIEF");
	const uint64_t part = (count + WF_SWEEP_PART - 1) / WF_SWEEP_PART;
	const bool is_first = brief != NULL && strcmp(brief, "first") == 0;
	const bool is_second = brief != NULL && strcmp(brief, "second") == 0 && shared > part;

	*begin = is_second ? part : 0;
	*end = is_second ? shared : is_first ? part : count;
	return is_first || is_second;
}

/* The cases of `count` that this build plays of a test whose cases are all drawn from one seed, or
 * are all that there are: none of them is left to check-all. */
static inline void
wf_sweep_cases(unsigned count, unsigned *begin, unsigned *end)
{
	uint64_t from, to;

	wf_sweep_share(count, count, &from, &to);
	*begin = (unsigned)from;
	*end = (unsigned)to;
}

/* `usual`: how many without arguments. Sweeps that begin at other seeds stay apart with
 * WEFT_LONG. */
static inline struct wf_sweep
wf_sweep_of(int argc, char **argv, uint64_t usual, uint64_t times_if_long)
{
	const char *one = getenv("WEFT_SEED");
	const uint64_t times = getenv("WEFT_LONG") != NULL ? times_if_long : 1;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : usual;
	uint64_t begin, end;

	if (one != NULL) {
		return (struct wf_sweep){strtoull(one, NULL, 0), 1, true, 1};
	}
	if (wf_sweep_share(count, (count + 1) / 2, &begin, &end)) {
		return (struct wf_sweep){first + begin, end - begin, begin == 0, count};
	}
	return (struct wf_sweep){(first - 1) * times + 1, count * times, false, count * times};
}
