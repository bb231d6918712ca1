/* SPDX-License-Identifier: Apache-2.0 */
/* The training program in each mode of its tensors, with four trainers and faults: the model learns
 * about as well as it does synchronously. Usage: test_train_modes [SEEDS]. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

#define PASSES 6u

struct mode {
	const char *args[3];
	double worse; /* than the synchronous cost, at most so many times */
};

static const struct mode modes[] = {
	{{"--dense_mode=sync"}, 1},
	{{"--dense_mode=async"}, 1.2},
	{{"--is_async", "--async_lagged_grad_discard_ratio=0.5"}, 1.2},
	{{"--dense_mode=bounded", "--staleness=2"}, 1.2},
	{{"--dense_mode=bounded", "--staleness=0"}, 1},
	{{"--local_steps=1"}, 1.01},
	{{"--local_steps=4"}, 1.2},
	{{"--dense_mode=elastic", "--local_steps=2"}, 1.5},
	{{"--dense_mode=elastic", "--local_steps=2", "--elastic_rate=0.1"}, 1.5},
};

static double
cost_of(const char *line)
{
	const char *at = strstr(line, "cost ");
	return at != NULL ? strtod(at + 5, NULL) : -1;
}

static void
draw(uint64_t seed, struct cluster_opts *out)
{
	cluster_draw(seed, out);
	out->passes = PASSES;
	out->batch_size = 32;
	out->optimizer = "sgd";
}

/* A run of one mode: what it ended with, and whether that is good enough. */
static bool
run(uint64_t seed, const struct mode *mode, double synchronous)
{
	struct cluster_opts opts;
	struct cluster_result result;
	char why[1024];
	draw(seed, &opts);
	memcpy(opts.more_args, mode->args, sizeof(opts.more_args));
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	double cost = cost_of(result.last_line);
	const char *wrong =
		cluster_what_is_wrong(&opts, &result, result.last_line, why, sizeof(why));
	bool good = wrong == NULL && cost > 0 && cost <= mode->worse * synchronous;
	(void)printf("%sseed %" PRIu64 " %s %s: cost %.4g, synchronous %.4g%s%s\n",
		     good ? "" : "FAILED ", seed, mode->args[0],
		     mode->args[1] != NULL ? mode->args[1] : "", cost, synchronous,
		     wrong != NULL ? ": " : "", wrong != NULL ? wrong : "");
	return good;
}

int
main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 2;
	unsigned failed = 0;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct cluster_opts opts;
		char line[CLUSTER_LINE_BYTES];
		draw(seed, &opts);
		if (!cluster_sequential(&opts, line)) {
			return 1;
		}
		for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
			failed += run(seed, &modes[i], cost_of(line)) ? 0 : 1;
		}
	}
	return failed == 0 ? 0 : 1;
}
