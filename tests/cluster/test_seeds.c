/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs under seeded delays, splits, cuts, refusals and stalls: each ends with the bits of the
 * sequential run. Usage: test_seeds FIRST COUNT; WEFT_SEED=S runs one seed, WEFT_LONG ten times as
 * many, and WEFT_CLUSTER_LOG=1 shows the log lines of all its processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

static const char *
what_is_wrong(const struct cluster_opts *opts, const struct cluster_result *result,
	      const char *expected, char *out, size_t bytes)
{
	if (result->timed_out) {
		(void)snprintf(out, bytes, "did not end: %.300s", result->stuck);
		return out;
	}
	for (uint32_t i = 0; i < opts->trainers; i++) {
		if (result->trainer[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "trainer %u: %.300s", i,
				       result->trainer[i].text);
			return out;
		}
	}
	for (uint32_t i = 0; i < opts->pservers; i++) {
		if (result->pserver[i].status != WEFT_OK) {
			(void)snprintf(out, bytes, "pserver %u: %.300s", i,
				       result->pserver[i].text);
			return out;
		}
	}
	if (strcmp(result->last_line, expected) != 0) {
		(void)snprintf(out, bytes, "ended with '%s', sequential with '%s'",
			       result->last_line, expected);
		return out;
	}
	return NULL;
}

static bool
run_seed(uint64_t seed, const char *expected, struct wf_world_stats *sum)
{
	struct cluster_opts opts;
	struct cluster_result result;
	char why[1024];
	cluster_draw(seed, &opts);
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	sum->turns += result.stats.turns;
	sum->frames += result.stats.frames;
	sum->cuts += result.stats.cuts;
	sum->refusals += result.stats.refusals;
	sum->splits += result.stats.splits;
	sum->stalls += result.stats.stalls;
	if (what_is_wrong(&opts, &result, expected, why, sizeof(why)) == NULL) {
		return true;
	}
	(void)printf("FAILED seed %" PRIu64 " (%u pservers, %u lanes, %u slots, %" PRIu64
		     " cuts): %s; repeat: WEFT_SEED=%" PRIu64 " test_seeds\n",
		     seed, opts.pservers, opts.lanes, opts.slot_count, result.stats.cuts, why,
		     seed);
	return false;
}

int
main(int argc, char **argv)
{
	const char *one = getenv("WEFT_SEED");
	uint64_t scale = getenv("WEFT_LONG") != NULL ? 10 : 1;
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = (argc > 2 ? strtoull(argv[2], NULL, 0) : 500) * scale;
	first = (first - 1) * scale + 1;
	if (one != NULL) {
		first = strtoull(one, NULL, 0);
		count = 1;
	}
	struct cluster_opts opts;
	char expected[CLUSTER_LINE_BYTES];
	cluster_draw(first, &opts);
	if (!cluster_sequential(&opts, expected)) {
		return 1;
	}
	struct wf_world_stats sum = {0};
	uint64_t failed = 0;
	for (uint64_t seed = first; seed < first + count; seed++) {
		failed += run_seed(seed, expected, &sum) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " frames, %" PRIu64
		     " cuts, %" PRIu64 " refusals, %" PRIu64 " splits, %" PRIu64 " stalls\n",
		     count, failed, sum.frames, sum.cuts, sum.refusals, sum.splits, sum.stalls);
	/* A sweep that injected nothing proves nothing. */
	bool idle = count >= 50 && (sum.cuts == 0 || sum.refusals == 0 || sum.splits == 0);
	return failed == 0 && !idle ? 0 : 1;
}
