/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of one process at a seeded instant, with and without other faults: every other process
 * ends within 5 s of virtual time, with a typed error that names the killed process, or had
 * finished before. Usage: test_kills FIRST COUNT; WEFT_SEED=S runs one seed, WEFT_LONG ten times as
 * many. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cluster.h"
#include "tests/support/sweep.h"

#define END_WITHIN_NS (5 * WF_NS_PER_S)
#define KILL_FROM_NS (600 * WF_NS_PER_MS) /* all have met by then */

static void
draw_kill(uint64_t seed, struct cluster_opts *opts)
{
	struct wf_rng rng;
	cluster_draw(seed, opts);
	wf_rng_init(&rng, seed, 99);
	opts->kill_ns = KILL_FROM_NS + wf_rng_below(&rng, 500 * WF_NS_PER_MS);
	opts->passes = 100;
	if (wf_rng_below(&rng, 2) == 0) {
		opts->kill_pserver = (uint32_t)wf_rng_below(&rng, opts->pservers);
	} else {
		opts->kill_trainer = (uint32_t)wf_rng_below(&rng, opts->trainers);
	}
}

/* Does the text name the process? */
static bool
names(const char *text, const struct cluster_opts *opts)
{
	char name[32];
	if (opts->kill_pserver != UINT32_MAX) {
		(void)snprintf(name, sizeof(name), "pserver %u", opts->kill_pserver);
	} else {
		(void)snprintf(name, sizeof(name), "trainer %u", opts->kill_trainer);
	}
	return strstr(text, name) != NULL;
}

static bool
check_end(const struct cluster_opts *opts, const struct fleet_end *end, const char *who,
	  uint32_t idx, char *why, size_t bytes)
{
	if (!end->returned) {
		(void)snprintf(why, bytes, "%s %u did not end", who, idx);
	} else if (end->when_ns < opts->kill_ns) {
		return true; /* the job was over before; counted in main */
	} else if (end->status == WEFT_OK) {
		(void)snprintf(why, bytes, "%s %u ended as if nothing had happened", who, idx);
	} else if (end->when_ns > opts->kill_ns + END_WITHIN_NS) {
		(void)snprintf(why, bytes, "%s %u ended %.3f s after the kill: %.200s", who, idx,
			       (double)(end->when_ns - opts->kill_ns) / 1e9, end->text);
	} else if (!names(end->text, opts)) {
		(void)snprintf(why, bytes, "%s %u does not name it: %.300s", who, idx, end->text);
	} else {
		return true;
	}
	return false;
}

/* Nobody gets through all passes without everybody's pushes: where all trainers that live on end
 * well, who was killed had said all it had to, and was only waiting for the answer to its GOODBYE,
 * or not even that. A pserver may outlast it: it waits for a trainer of which it has not heard that
 * it left. */
static bool
was_over(const struct cluster_opts *opts, const struct cluster_result *result)
{
	for (uint32_t i = 0; i < opts->trainers; i++) {
		if (i != opts->kill_trainer && (!result->fleet.trainer[i].returned ||
						result->fleet.trainer[i].status != WEFT_OK)) {
			return false;
		}
	}
	return true;
}

static bool
check_all(const struct cluster_opts *opts, const struct cluster_result *result, char *why,
	  size_t bytes)
{
	bool over = was_over(opts, result);
	for (uint32_t i = 0; i < opts->trainers && !over; i++) {
		if (i != opts->kill_trainer &&
		    !check_end(opts, &result->fleet.trainer[i], "trainer", i, why, bytes)) {
			return false;
		}
	}
	for (uint32_t i = 0; i < opts->pservers; i++) {
		if (over && result->fleet.pserver[i].status == WEFT_OK) {
			continue;
		}
		if (i != opts->kill_pserver &&
		    !check_end(opts, &result->fleet.pserver[i], "pserver", i, why, bytes)) {
			return false;
		}
	}
	return true;
}

static bool
run_seed(uint64_t seed, uint64_t *in_time)
{
	struct cluster_opts opts;
	struct cluster_result result;
	char why[1024] = "";
	draw_kill(seed, &opts);
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	if (check_all(&opts, &result, why, sizeof(why))) {
		*in_time += was_over(&opts, &result) ? 0 : 1;
		return true;
	}
	(void)printf("FAILED seed %" PRIu64
		     " (%u pservers, %u lanes; kill of %s %u at %.3f s): %s; "
		     "repeat: WEFT_SEED=%" PRIu64 " test_kills\n",
		     seed, opts.pservers, opts.lanes,
		     opts.kill_pserver != UINT32_MAX ? "pserver" : "trainer",
		     opts.kill_pserver != UINT32_MAX ? opts.kill_pserver : opts.kill_trainer,
		     (double)opts.kill_ns / 1e9, why, seed);
	return false;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 10);
	uint64_t failed = 0;
	uint64_t in_time = 0;
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed, &in_time) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " jobs, %" PRIu64 " killed before they were over, %" PRIu64
		     " failed\n",
		     sweep.count, in_time, failed);
	bool enough = sweep.is_part ||
		      in_time >= sweep.count / 2; /* a sweep that kills nobody proves nothing */
	return failed == 0 && enough ? 0 : 1;
}
