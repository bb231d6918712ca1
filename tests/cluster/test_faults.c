/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs whose transports are wrapped in faults (transport/fault), around a whole transport or
 * around each of its paths, in a world that is calm or has its own faults: each ends with the bits
 * of the sequential run. Usage: test_faults FIRST COUNT; WEFT_SEED=S runs one seed, WEFT_LONG ten
 * times as many. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cluster.h"
#include "tests/support/sweep.h"

#define SPEC_BYTES 256
#define CARRIER_BYTES 600

struct carriers {
	char pserver[CARRIER_BYTES], trainer[CARRIER_BYTES];
};

static void
write_carrier(uint64_t form, const char *spec, char out[CARRIER_BYTES])
{
	if (form < 2) {
		(void)snprintf(out, CARRIER_BYTES, "fault(%s)+%s", spec,
			       form == 0 ? "sim" : "sim-auto");
	} else {
		(void)snprintf(out, CARRIER_BYTES, "fault(%s)+sim,fault(%s)+sim2", spec, spec);
	}
}

/* Pservers cut by chance, trainers by script: the peer of an end that cuts may see it close, and a
 * trainer that closes after its GOODBYE does not come back. */
static void
draw(uint64_t seed, struct cluster_opts *opts, struct carriers *over)
{
	struct wf_rng rng;
	char spec[SPEC_BYTES], common[SPEC_BYTES / 2];
	cluster_draw(seed, opts);
	wf_rng_init(&rng, seed, 55);
	uint64_t form = wf_rng_below(&rng, 3);
	if (wf_rng_below(&rng, 2) == 0) {
		opts->world = (struct wf_world_opts){.seed = seed,
						     .delay_min_ns = WF_NS_PER_US,
						     .delay_max_ns = 100 * WF_NS_PER_US};
	}
	opts->world.log_level = WF_LOG_DEBUG;
	(void)snprintf(common, sizeof(common),
		       "seed=%" PRIu64 ",refuse=5%%,delay=%" PRIu64 "%%:%" PRIu64
		       "us,split=%" PRIu64 "%%,short=%" PRIu64 "%%,stall=1%%:%" PRIu64 "ms",
		       seed, 1 + wf_rng_below(&rng, 100), 1 + wf_rng_below(&rng, 3000),
		       1 + wf_rng_below(&rng, 60), 1 + wf_rng_below(&rng, 60),
		       1 + wf_rng_below(&rng, 20));
	(void)snprintf(spec, sizeof(spec), "%s,cut=0.%" PRIu64 "%%", common,
		       wf_rng_below(&rng, 10));
	write_carrier(form, spec, over->pserver);
	(void)snprintf(spec, sizeof(spec), "%s,cut@put:%" PRIu64 ",cut@op:%" PRIu64, common,
		       5 + wf_rng_below(&rng, 60), 5 + wf_rng_below(&rng, 60));
	if (form == 2) { /* one path alone may see so much at the end only */
		(void)snprintf(spec, sizeof(spec), "%s", common);
	}
	write_carrier(form, spec, over->trainer);
	opts->transport = over->pserver;
	opts->trainer_transport = over->trainer;
}

static bool
run_seed(uint64_t seed, const char *expected, struct wf_fault_counts *sum)
{
	static struct cluster_result result;
	struct cluster_opts opts;
	struct carriers over;
	char why[1024];
	draw(seed, &opts, &over);
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		sum->injected[i] += result.faults.injected[i];
	}
	if (cluster_what_is_wrong(&opts, &result, expected, why, sizeof(why)) == NULL) {
		return true;
	}
	(void)printf("FAILED seed %" PRIu64 " (%u pservers, %u lanes, %u slots; pservers %s, "
		     "trainers %s): %s; repeat: WEFT_SEED=%" PRIu64 " test_faults\n",
		     seed, opts.pservers, opts.lanes, opts.slot_count, over.pserver, over.trainer,
		     why, seed);
	return false;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	struct cluster_opts opts;
	char expected[CLUSTER_LINE_BYTES];
	cluster_draw(sweep.first, &opts);
	if (!cluster_sequential(&opts, expected)) {
		return 1;
	}
	struct wf_fault_counts sum = {0};
	uint64_t failed = 0, missing = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed, expected, &sum) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " jobs, %" PRIu64 " failed; injected", sweep.count, failed);
	for (unsigned i = 0; i < WF_FAULT_KINDS; i++) {
		(void)printf(" %s %" PRIu64, wf_fault_kind_name((enum wf_fault_kind)i),
			     sum.injected[i]);
		missing += sum.injected[i] == 0 ? 1 : 0;
	}
	(void)printf("\n");
	/* A sweep in which some kind never came proves nothing of it. */
	return failed == 0 && (sweep.is_part || missing == 0) ? 0 : 1;
}
