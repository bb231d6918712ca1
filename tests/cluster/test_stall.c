/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose pservers take no turns for 50 s of virtual time, from a seeded instant on (their
 * transports bring nothing and move nothing): if it is waited for, it ends with the bits of the
 * sequential run; with a stall_timeout of 5 s all trainers end then, and name a pserver and what is
 * wrong with it. Usage: test_stall FIRST COUNT; WEFT_SEED=S runs one seed, WEFT_LONG ten times as
 * many. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cluster.h"
#include "tests/support/sweep.h"

#define STALL_FROM_MS 600u /* all have met by then */
#define LIMIT_NS (5 * WF_NS_PER_S)

static void
draw(uint64_t seed, struct cluster_opts *opts, uint64_t *stall_ms, char *transport, size_t bytes)
{
	struct wf_rng rng;
	cluster_draw(seed, opts);
	wf_rng_init(&rng, seed, 77);
	*stall_ms = STALL_FROM_MS + wf_rng_below(&rng, 200);
	opts->passes = 100;
	opts->until_ns = 600 * WF_NS_PER_S;
	opts->world = (struct wf_world_opts){
		.seed = seed, .delay_min_ns = WF_NS_PER_US, .delay_max_ns = 3 * WF_NS_PER_MS};
	(void)snprintf(transport, bytes, "fault(stall@ms:%" PRIu64 ":50s)+sim", *stall_ms);
	opts->transport = transport;
	opts->trainer_transport = "sim";
}

static bool
check_waited(const struct cluster_opts *opts, const struct cluster_result *result,
	     const char *expected, uint64_t stall_ms, char *why, size_t bytes)
{
	uint64_t over_ns = (stall_ms + 50000) * WF_NS_PER_MS;
	if (cluster_what_is_wrong(opts, result, expected, why, bytes) != NULL) {
		return false;
	}
	if (result->fleet.trainer[0].when_ns < over_ns) {
		(void)snprintf(why, bytes, "it ended before the stall was over");
		return false;
	}
	return true;
}

static bool
check_ended(const struct cluster_opts *opts, const struct cluster_result *result, uint64_t stall_ms,
	    char *why, size_t bytes)
{
	for (uint32_t t = 0; t < opts->trainers; t++) {
		const struct fleet_end *end = &result->fleet.trainer[t];
		uint64_t least_ns = stall_ms * WF_NS_PER_MS + LIMIT_NS;
		bool in_time =
			end->when_ns >= least_ns && end->when_ns < least_ns + 4 * WF_NS_PER_S;
		if (!end->returned || end->status != WEFT_TIMEOUT || !in_time ||
		    strstr(end->text, "pserver ") == NULL ||
		    strstr(end->text, "has not taken a turn for 5 s") == NULL ||
		    strstr(end->text, ", pid ") == NULL) {
			(void)snprintf(why, bytes, "trainer %u, at %.3f s: %.300s", t,
				       (double)end->when_ns / 1e9,
				       end->returned ? end->text : "did not end");
			return false;
		}
	}
	return true;
}

static bool
run_seed(uint64_t seed, bool hasty, char *why, size_t bytes)
{
	static struct cluster_result result;
	struct cluster_opts opts;
	uint64_t stall_ms;
	char transport[64];
	char expected[CLUSTER_LINE_BYTES];
	draw(seed, &opts, &stall_ms, transport, sizeof(transport));
	opts.more_args[0] = hasty ? "--stall_timeout=5s" : NULL;
	if (!cluster_run(&opts, &result) || !cluster_sequential(&opts, expected)) {
		(void)snprintf(why, bytes, "%s", weft_last_error());
		return false;
	}
	return hasty ? check_ended(&opts, &result, stall_ms, why, bytes)
		     : check_waited(&opts, &result, expected, stall_ms, why, bytes);
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 10, 10);
	uint64_t failed = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		char why[1024];
		for (unsigned hasty = 0; hasty < 2; hasty++) {
			if (!run_seed(seed, hasty == 1, why, sizeof(why))) {
				(void)printf("FAILED seed %" PRIu64
					     ", %s: %s; repeat: WEFT_SEED=%" PRIu64 " test_stall\n",
					     seed, hasty == 1 ? "ended" : "waited for", why, seed);
				failed++;
			}
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failures\n", sweep.count, failed);
	return failed > 0 ? 1 : 0;
}
