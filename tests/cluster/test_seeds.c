/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs under seeded delays, splits, cuts, refusals and stalls: each ends with the bits of the
 * sequential run. Usage: test_seeds FIRST COUNT [tables|tensors WIRE]; WEFT_SEED=S runs one seed,
 * WEFT_LONG ten times as many, and WEFT_CLUSTER_LOG=1 shows the log lines of all its processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "tests/support/sweep.h"

/* Of all seeds. */
struct sum {
	struct wf_world_stats stats;
	uint64_t breaks, refusals, returns;
};

static const char *subject; /* "tables", "tensors" */
static const char *wire;    /* of their values */

static void
draw(uint64_t seed, struct cluster_opts *out)
{
	cluster_draw(seed, out);
	if (strcmp(subject, "tables") == 0) {
		cluster_draw_tables(seed, out);
		out->sparse_wire = wire;
	} else {
		out->dense_wire = wire;
	}
}

static bool
run_seed(uint64_t seed, const char *expected, struct sum *all)
{
	struct wf_world_stats *sum = &all->stats;
	struct cluster_opts opts;
	struct cluster_result result;
	char why[1024];
	draw(seed, &opts);
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	sum->turns += result.fleet.stats.turns;
	sum->frames += result.fleet.stats.frames;
	sum->cuts += result.fleet.stats.cuts;
	sum->refusals += result.fleet.stats.refusals;
	sum->splits += result.fleet.stats.splits;
	sum->stalls += result.fleet.stats.stalls;
	all->breaks += result.breaks;
	all->refusals += result.refusals;
	all->returns += result.returns;
	if (cluster_what_is_wrong(&opts, &result, expected, why, sizeof(why)) == NULL) {
		return true;
	}
	(void)printf("FAILED seed %" PRIu64 " (%s, %u pservers, %u + %u lanes, %u slots, %" PRIu64
		     " cuts): %s; repeat: WEFT_SEED=%" PRIu64 " test_seeds 1 1 %s %s\n",
		     seed, opts.transport, opts.pservers, opts.lanes, opts.sparse_lanes,
		     opts.slot_count, result.fleet.stats.cuts, why, seed, subject, wire);
	return false;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 500, 10);
	struct cluster_opts opts;
	char expected[CLUSTER_LINE_BYTES];
	subject = argc > 3 ? argv[3] : "tensors";
	wire = argc > 4 ? argv[4] : "f32";
	draw(sweep.first, &opts);
	if (!cluster_sequential(&opts, expected)) {
		return 1;
	}
	struct sum all = {0};
	const struct wf_world_stats *sum = &all.stats;
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed, expected, &all) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " frames, %" PRIu64
		     " cuts, %" PRIu64 " refusals, %" PRIu64 " splits, %" PRIu64
		     " stalls; paths: %" PRIu64 " broke, %" PRIu64 " were not to be had, %" PRIu64
		     " came back\n",
		     sweep.count, failed, sum->frames, sum->cuts, sum->refusals, sum->splits,
		     sum->stalls, all.breaks, all.refusals, all.returns);
	/* A sweep that injected nothing proves nothing. */
	bool idle = !sweep.is_part && sweep.count >= 50 &&
		    (sum->cuts == 0 || sum->refusals == 0 || sum->splits == 0 || all.breaks == 0 ||
		     all.refusals == 0 || all.returns == 0);
	return failed == 0 && !idle ? 0 : 1;
}
