/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: see pairs.h. */
#include "tools/rdma_bench/pairs.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "tools/rdma_bench/cpu_use.h"
#include "tools/rdma_bench/median.h"

#define PAIRS_MAX WF_SAMPLES_MAX
#define TRIES_FACTOR 3u
/* More use by others than this, and a pair is not kept if there are better ones. */
#define FOREIGN_CORES_MAX 0.3
#define FOREIGN_LOOK_NS (WF_NS_PER_S / 5) /* the kernel counts in ticks of 10 ms */
#define PATIENCE_NS (15 * WF_NS_PER_S)    /* for others to be quiet, per figure */

/* What one pair has of each side. */
enum column {
	VALUE,
	LIMIT,
	FRACTION,
	PROBE,
	FOREIGN,
	VALUE_P50,
	VALUE_P99,
	LIMIT_P50,
	LIMIT_P99,
	COLUMN_COUNT,
};

struct pair {
	enum wf_placement placement;
	double of[COLUMN_COUNT];
};

struct table {
	struct pair pair[PAIRS_MAX];
	unsigned count;
	unsigned by_placement[WF_PLACEMENT_COUNT];
	uint64_t patience_ns; /* left */
};

static double
measure(enum wf_measure what, const struct wf_side *side, const struct wf_figures *figures)
{
	double ns = figures->p50_ns > 0 ? figures->p50_ns : 1;
	if (what == WF_MEASURE_LATENCY) {
		return ns / 1e3;
	}
	return (double)side->bytes / ns * (what == WF_MEASURE_ROWS ? 1e3 : 1);
}

static void
fill_pair(const struct wf_pairs *pairs, const struct wf_figures *product,
	  const struct wf_figures *limit, struct pair *pair)
{
	double value = measure(pairs->measure, pairs->product, product);
	double floor = measure(pairs->measure, pairs->limit, limit);
	pair->of[VALUE] = value;
	pair->of[LIMIT] = floor;
	pair->of[FRACTION] = pairs->measure == WF_MEASURE_LATENCY ? floor / value : value / floor;
	pair->of[VALUE_P50] = product->p50_ns / 1e3;
	pair->of[VALUE_P99] = product->p99_ns / 1e3;
	pair->of[LIMIT_P50] = limit->p50_ns / 1e3;
	pair->of[LIMIT_P99] = limit->p99_ns / 1e3;
}

static enum weft_status
probe(struct wf_bench *bench, bool one_core, double *out)
{
	*out = 0;
	return one_core ? WEFT_OK : wf_probe_run(&bench->probe, out);
}

/* Of the CPUs that a pair runs on. */
static struct wf_cpu_use
use_now(const struct wf_bench *bench, bool one_core)
{
	const int cpu[2] = {bench->cpu[0], one_core ? bench->cpu[0] : bench->cpu[1]};
	return wf_cpu_use_now(bench->env, cpu);
}

/* Cores that others used since; below 0: unknown, or too short a time to measure. */
static double
foreign_since(const struct wf_bench *bench, bool one_core, const struct wf_cpu_use *before)
{
	struct wf_cpu_use now = use_now(bench, one_core);
	if (now.when_ns - before->when_ns < FOREIGN_LOOK_NS) {
		return -1;
	}
	return wf_cpu_use_foreign(before, &now);
}

/* Waits until other processes have been quiet for a moment, within a limit. */
static void
wait_for_quiet(struct wf_bench *bench, bool one_core, struct table *table)
{
	uint64_t begin_ns = wf_now_ns(bench->env);
	double foreign = bench->set.quick ? 0 : 1;
	while (foreign > FOREIGN_CORES_MAX && table->patience_ns > FOREIGN_LOOK_NS) {
		struct wf_cpu_use use = use_now(bench, one_core);
		uint64_t until_ns = use.when_ns + FOREIGN_LOOK_NS;
		while (wf_now_ns(bench->env) < until_ns) {
			wf_wait(bench->env, -1, until_ns);
		}
		foreign = foreign_since(bench, one_core, &use);
		if (foreign > FOREIGN_CORES_MAX) {
			uint64_t waited_ns = wf_now_ns(bench->env) - begin_ns;
			table->patience_ns -=
				waited_ns < table->patience_ns ? waited_ns : table->patience_ns;
			begin_ns = wf_now_ns(bench->env);
		}
	}
}

/* Each side is first in every second pair, so that both find the other's traces in the caches. */
static enum weft_status
run_pair(struct wf_bench *bench, const struct wf_pairs *pairs, bool limit_first, struct pair *out)
{
	struct wf_side *side[2] = {pairs->product, pairs->limit};
	struct wf_figures figures[2];
	double before_ns, after_ns;
	struct wf_cpu_use use = use_now(bench, pairs->one_core);
	enum weft_status st = probe(bench, pairs->one_core, &before_ns);
	for (unsigned i = 0; i < 2 && st == WEFT_OK; i++) {
		unsigned turn = limit_first ? 1 - i : i;
		uint64_t left_ns;
		st = wf_bench_left(bench, &left_ns);
		if (st == WEFT_OK) {
			st = wf_side_run(side[turn], bench->set.seconds_ns, left_ns,
					 &figures[turn]);
			/* Out of time is the run's matter, not the worker's. */
			enum weft_status over = wf_bench_left(bench, &left_ns);
			st = st == WEFT_TIMEOUT && over != WEFT_OK ? over : st;
		}
	}
	if (st == WEFT_OK) {
		st = probe(bench, pairs->one_core, &after_ns);
	}
	if (st != WEFT_OK) {
		return st;
	}
	fill_pair(pairs, &figures[0], &figures[1], out);
	out->placement = pairs->one_core ? WF_PLACEMENT_ONE : wf_placement_of(before_ns, after_ns);
	out->of[PROBE] = (before_ns + after_ns) / 2;
	out->of[FOREIGN] = foreign_since(bench, pairs->one_core, &use);
	if (out->of[FOREIGN] > FOREIGN_CORES_MAX) {
		out->placement = WF_PLACEMENT_BUSY;
	}
	return WEFT_OK;
}

/* Of the placement that counts: the one with most pairs; disturbed pairs, and then those that mix
 * two, only if there are no others. */
static enum wf_placement
foremost(const struct table *table)
{
	enum wf_placement best =
		table->by_placement[WF_PLACEMENT_BUSY] > 0 ? WF_PLACEMENT_BUSY : WF_PLACEMENT_MIXED;
	unsigned most = 0;
	for (unsigned i = 0; i < WF_PLACEMENT_COUNT; i++) {
		bool kept = i != WF_PLACEMENT_MIXED && i != WF_PLACEMENT_BUSY;
		if (kept && table->by_placement[i] > most) {
			most = table->by_placement[i];
			best = (enum wf_placement)i;
		}
	}
	return best;
}

static double
median(const struct table *table, enum wf_placement placement, enum column column)
{
	double value[PAIRS_MAX];
	unsigned count = 0;
	for (unsigned i = 0; i < table->count; i++) {
		if (table->pair[i].placement == placement) {
			value[count++] = table->pair[i].of[column];
		}
	}
	WF_ASSERT(count > 0);
	return wf_median(value, count);
}

static void
copy_samples(const struct table *table, enum wf_placement placement, struct wf_samples *out)
{
	out->count = 0;
	for (unsigned i = 0; i < table->count; i++) {
		if (table->pair[i].placement == placement) {
			out->value[out->count] = table->pair[i].of[VALUE];
			out->fraction[out->count] = table->pair[i].of[FRACTION];
			out->count++;
		}
	}
}

static void
sum_up(const struct wf_pairs *pairs, const struct table *table, struct wf_result *out)
{
	enum wf_placement placement = foremost(table);
	static const char *const units[] = {
		[WF_MEASURE_LATENCY] = "us", [WF_MEASURE_RATE] = "GB/s", [WF_MEASURE_ROWS] = "M/s"};
	out->unit = units[pairs->measure];
	out->lower_is_better = pairs->measure == WF_MEASURE_LATENCY;
	out->placement = placement;
	memcpy(out->pairs, table->by_placement, sizeof(out->pairs));
	out->value = median(table, placement, VALUE);
	out->limit = median(table, placement, LIMIT);
	out->fraction = median(table, placement, FRACTION);
	copy_samples(table, placement, &out->samples);
	out->probe_ns = median(table, placement, PROBE);
	out->p50_us = median(table, placement, VALUE_P50);
	out->p99_us = median(table, placement, VALUE_P99);
	out->limit_p50_us = median(table, placement, LIMIT_P50);
	out->limit_p99_us = median(table, placement, LIMIT_P99);
	out->foreign_cores = median(table, placement, FOREIGN);
	if (out->foreign_cores > FOREIGN_CORES_MAX) {
		fprintf(stderr,
			"rdma_bench: others used %.1f cores during %s %s, so its figures are less "
			"reliable\n",
			out->foreign_cores, out->name, out->transport);
	}
}

static enum weft_status
start_probe(struct wf_bench *bench)
{
	const struct wf_limit_opts opts = wf_bench_limit_opts(bench);
	if (bench->probing) {
		return WEFT_OK;
	}
	bench->probing = true;
	return wf_probe_start(&opts, bench->set.quick ? WF_NS_PER_MS : 20 * WF_NS_PER_MS,
			      &bench->probe);
}

/* Before the first pair: memory is touched, and it is known how many operations a run has. */
static enum weft_status
warm_up(struct wf_bench *bench, const struct wf_pairs *pairs)
{
	struct pair dropped;
	enum weft_status st = pairs->one_core ? WEFT_OK : start_probe(bench);
	return st != WEFT_OK ? st : run_pair(bench, pairs, false, &dropped);
}

enum weft_status
wf_pairs_run(struct wf_bench *bench, const struct wf_pairs *pairs, struct wf_result *out)
{
	struct table table = {.patience_ns = PATIENCE_NS};
	unsigned wanted = (unsigned)bench->set.pairs;
	WF_ASSERT(wanted * TRIES_FACTOR <= PAIRS_MAX);
	pairs->product->slow = strcmp(bench->set.slow, "product") == 0;
	pairs->limit->slow = strcmp(bench->set.slow, "limit") == 0;
	enum weft_status st = warm_up(bench, pairs);
	while (st == WEFT_OK && table.count < wanted * TRIES_FACTOR &&
	       table.by_placement[WF_PLACEMENT_NEAR] < wanted &&
	       table.by_placement[WF_PLACEMENT_FAR] < wanted &&
	       table.by_placement[WF_PLACEMENT_ONE] < wanted) {
		struct pair *pair = &table.pair[table.count];
		wait_for_quiet(bench, pairs->one_core, &table);
		st = run_pair(bench, pairs, table.count % 2 == 1, pair);
		if (st == WEFT_OK) {
			table.count++;
			table.by_placement[pair->placement]++;
		}
	}
	if (st != WEFT_OK) {
		return st;
	}
	sum_up(pairs, &table, out);
	return WEFT_OK;
}
