/* SPDX-License-Identifier: Apache-2.0 */
/* `weft train` whose pservers begin with the state of an earlier run: the same command line goes on
 * behind the batch after which the state was kept, with the bits of the run that went on. Usage:
 * test_resume_train FIRST COUNT; WEFT_SEED=S runs one seed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "cluster.h"
#include "tests/cluster/kept.h"
#include "tests/support/sweep.h"

#define BATCHES 8u /* of trainer 0, over both passes */

struct run {
	struct wf_lane_source source;
	struct kept *kept;
	bool loads;
	struct kept_lanes lanes;
	uint64_t dots, keep_at;
};

static enum weft_status
load(const struct wf_lane_source *source, struct wf_lane *lane, struct wf_msg_init *out)
{
	struct run *run =
		(struct run *)(void *)((char *)(uintptr_t)source - offsetof(struct run, source));
	kept_note(&run->lanes, lane);
	return run->loads ? kept_load(run->kept, lane, out) : WEFT_CLOSED;
}

/* No step is applied without trainer 0, so batches are steps. */
static void
count_batch(void *arg)
{
	struct run *run = arg;
	run->dots++;
	if (run->dots == run->keep_at) {
		kept_copy(run->kept, &run->lanes, run->dots);
	}
}

/* Like the drawn jobs of test_seeds. Every trainer has 4 batches, trainer 0 the longest last one;
 * the last batch of some is shorter. */
static bool
play(uint64_t seed, uint64_t stream, struct run *run, struct cluster_result *result, char *why,
     size_t bytes)
{
	struct cluster_opts opts;
	cluster_draw(seed * 2 + stream, &opts);
	opts.batch_size = 90;
	opts.source = &run->source;
	opts.dot = count_batch;
	opts.arg = run;
	opts.more_args[0] = "--learning_rate_schedule=pass_manual";
	opts.more_args[1] = "--learning_rate_args=0:1,1:0.5";
	run->source.load = load;
	if (!cluster_run(&opts, result)) {
		(void)snprintf(why, bytes, "no world");
		return false;
	}
	return cluster_what_is_wrong(&opts, result, result->last_line, why, bytes) == NULL;
}

static bool
run_seed(uint64_t seed)
{
	static struct kept kept;
	static struct cluster_result result[2];
	char why[2 * CLUSTER_LINE_BYTES + 64] = "";
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 3);
	memset(&kept, 0, sizeof(kept));
	struct run first = {.kept = &kept, .keep_at = 1 + wf_rng_below(&rng, BATCHES)};
	struct run second = {.kept = &kept, .loads = true};
	bool passed = play(seed, 0, &first, &result[0], why, sizeof(why)) &&
		      play(seed, 1, &second, &result[1], why, sizeof(why));
	if (passed && (first.dots != BATCHES || second.dots != BATCHES - first.keep_at)) {
		(void)snprintf(why, sizeof(why), "%" PRIu64 " batches, then %" PRIu64, first.dots,
			       second.dots);
		passed = false;
	}
	if (passed &&
	    strcmp(cluster_digest(result[0].last_line), cluster_digest(result[1].last_line)) != 0) {
		(void)snprintf(why, sizeof(why), "'%s', then '%s'", result[0].last_line,
			       result[1].last_line);
		passed = false;
	}
	if (!passed) {
		(void)printf("FAILED seed %" PRIu64 ", kept after batch %" PRIu64
			     ": %s; repeat: WEFT_SEED=%" PRIu64 " test_resume_train\n",
			     seed, first.keep_at, why, seed);
	}
	return passed;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " runs resumed, %" PRIu64 " failed\n", sweep.count, failed);
	return failed == 0 ? 0 : 1;
}
