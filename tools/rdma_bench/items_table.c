/* SPDX-License-Identifier: Apache-2.0 */
/* items_table: table_pull, table_push, table_insert, table_pause, table_memory: what a lane does
 * with the rows of a sparse table, without a network, beside a bare table, and abseil's
 * flat_hash_map where it is installed. One worker for each width of a row. Thread: the benchmark's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"
#include "kernels/kernels.h"
#include "tools/rdma_bench/median.h"
#include "tools/rdma_bench/pairs.h"
#include "tools/rdma_bench/table_worker.h"

#define QUICK_ROWS 20000u
#define ROWS_LEAST 20000u
#define INSERT_ROUNDS 3u
#define ABSL_DIM 64u /* the width that there are figures of others for */
#define BARE_TARGET 0.8
#define INSERT_TARGET 0.5
#define PAUSE_LIMIT_MS 10.0
#define MEMORY_FACTOR 1.25
#define READY_TIMEOUT_NS (300 * WF_NS_PER_S)
#define BARE_NAME "bare table"
#define ABSL_NAME "absl, key by key"

struct tables {
	struct wf_bench *bench;
	struct wf_worker worker;
	struct wf_table_arg arg;
	const char *mode[WF_TABLE_LAWS]; /* with the number of rows */
};

/* What can be had without swapping; 0: not known. */
static uint64_t
available_bytes(void)
{
	char line[128];
	uint64_t kib = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	while (file != NULL && kib == 0 && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "MemAvailable:", 13) == 0) {
			kib = strtoull(line + 13, NULL, 10);
		}
	}
	if (file != NULL) {
		(void)fclose(file);
	}
	return kib << 10;
}

/* As many rows as requested, or as memory allows. */
static uint64_t
choose_rows(const struct wf_bench *bench, uint32_t dim)
{
	struct wf_table_arg arg = {.rows = bench->set.rows, .dim = dim};
	const uint64_t available = available_bytes();

	if (bench->set.quick) {
		return QUICK_ROWS;
	}
	while (available > 0 && arg.rows / 2 >= ROWS_LEAST &&
	       wf_table_worker_bytes(&arg) > available / 10 * 9) {
		arg.rows /= 2;
	}
	if (arg.rows < bench->set.rows) {
		fprintf(stderr,
			"rdma_bench: there is memory for %" PRIu64
			" rows of %zu bytes only, not for %" PRIu64 "\n",
			arg.rows, dim * sizeof(float), bench->set.rows);
	}
	return arg.rows;
}

/* Texts of results live as long as the run: there are few of them. */
static const char *
mode_text(struct wf_bench *bench, const char *law, uint64_t rows)
{
	char text[32];
	const char *unit = rows >= 1000000 ? "M" : "k";
	double count = (double)rows / (rows >= 1000000 ? 1e6 : 1e3);

	snprintf(text, sizeof(text), "%s %.3g %s", law, count, unit);
	return wf_bench_keep_text(bench, text);
}

/* A figure of batches: product against one of the others. */
static enum weft_status
compare(struct tables *t, enum wf_table_work work, enum wf_table_side with, enum wf_table_law law,
	double target)
{
	struct wf_side side[2];
	struct wf_result *result = wf_bench_add(t->bench);

	*result = (struct wf_result){
		.name = work == WF_TABLE_PULL ? "table_pull" : "table_push",
		.transport = "memory",
		.mode = t->mode[law],
		.limited_by = with == WF_TABLE_ABSL ? ABSL_NAME : BARE_NAME,
		.bytes = t->arg.dim * sizeof(float),
		.target = target,
	};
	for (unsigned i = 0; i < 2; i++) {
		side[i] = (struct wf_side){
			.worker = {&t->worker},
			.worker_count = 1,
			.mode = wf_table_mode(work, i == 0 ? WF_TABLE_PRODUCT : with, law),
			.bytes = WF_TABLE_BATCH,
		};
	}
	const struct wf_pairs pairs = {.product = &side[0],
				       .limit = &side[1],
				       .measure = WF_MEASURE_ROWS,
				       .one_core = true};
	return wf_pairs_run(t->bench, &pairs, result);
}

/* Compared with abseil, look-ups are of keys as they are drawn, and pushes of keys as a client
 * merges them, because a lane gets no others. */
static enum weft_status
compare_all(struct tables *t)
{
	static const struct {
		enum wf_table_work work;
		enum wf_table_side with;
		enum wf_table_law law;
		double target;
	} figures[] = {
		{WF_TABLE_PULL, WF_TABLE_BARE, WF_TABLE_UNIFORM, BARE_TARGET},
		{WF_TABLE_PULL, WF_TABLE_BARE, WF_TABLE_ZIPF, BARE_TARGET},
		{WF_TABLE_PUSH, WF_TABLE_BARE, WF_TABLE_UNIFORM, BARE_TARGET},
		{WF_TABLE_PUSH, WF_TABLE_BARE, WF_TABLE_ZIPF, BARE_TARGET},
		{WF_TABLE_PULL, WF_TABLE_ABSL, WF_TABLE_UNIFORM, 2.4},
		{WF_TABLE_PULL, WF_TABLE_ABSL, WF_TABLE_REPEAT, 3.2},
		{WF_TABLE_PUSH, WF_TABLE_ABSL, WF_TABLE_UNIFORM, 3.8},
		{WF_TABLE_PUSH, WF_TABLE_ABSL, WF_TABLE_ZIPF, 4.4},
	};
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; st == WEFT_OK && i < WF_ARRAY_COUNT(figures); i++) {
		bool is_absl = figures[i].with == WF_TABLE_ABSL;
		if (!is_absl || (t->arg.dim == ABSL_DIM && wf_table_has_absl())) {
			st = compare(t, figures[i].work, figures[i].with, figures[i].law,
				     figures[i].target);
		}
	}
	return st;
}

static enum weft_status
insert(struct tables *t, enum wf_table_side side, struct wf_figures *out)
{
	const struct wf_work_order order = {
		.mode = wf_table_mode(WF_TABLE_INSERT, side, WF_TABLE_UNIFORM), .count = 1};
	uint64_t left_ns;
	enum weft_status st = wf_bench_left(t->bench, &left_ns);
	if (st == WEFT_OK) {
		st = wf_worker_order(&t->worker, &order);
	}
	return st == WEFT_OK ? wf_worker_await(&t->worker, left_ns, out) : st;
}

static void
fill_result(const struct tables *t, const char *name, unsigned rounds, struct wf_result *out)
{
	*out = (struct wf_result){
		.name = name,
		.transport = "memory",
		.mode = t->mode[WF_TABLE_UNIFORM],
		.bytes = t->arg.dim * sizeof(float),
		.placement = WF_PLACEMENT_ONE,
		.pairs = {[WF_PLACEMENT_ONE] = rounds},
		.foreign_cores = -1,
	};
}

static void
add_pause(struct tables *t, const struct wf_figures *worst, unsigned rounds)
{
	struct wf_result *r = wf_bench_add(t->bench);

	fill_result(t, "table_pause", rounds, r);
	r->unit = "ms";
	r->limited_by = "10 ms";
	r->lower_is_better = true;
	r->value = worst->p99_ns / 1e6;
	r->limit = PAUSE_LIMIT_MS;
	r->fraction = r->value > r->limit ? r->limit / r->value : 1;
	r->target = 1;
	fprintf(stderr,
		"rdma_bench: inserting %s rows of %" PRIu64
		" B, calls of %u keys: %s; longest %.2f "
		"ms\n",
		t->mode[WF_TABLE_UNIFORM], r->bytes, WF_TABLE_INSERT_KEYS, worst->text, r->value);
}

static void
add_memory(struct tables *t, uint64_t bytes)
{
	const double needed = sizeof(uint64_t) + 2.0 * t->arg.dim * sizeof(float);
	struct wf_result *r = wf_bench_add(t->bench);

	fill_result(t, "table_memory", 1, r);
	r->unit = "B";
	r->limited_by = "1.25 key+row+state";
	r->lower_is_better = true;
	r->value = (double)bytes / (double)t->arg.rows;
	r->limit = MEMORY_FACTOR * needed;
	r->fraction = r->limit / r->value;
	r->target = 1;
}

/* The tables have been filled once already: the machine has found its memory. */
static enum weft_status
measure_insert(struct tables *t)
{
	const unsigned rounds = t->bench->set.quick ? 1 : INSERT_ROUNDS;
	double rate[INSERT_ROUNDS], limit[INSERT_ROUNDS], fraction[INSERT_ROUNDS];
	struct wf_figures product, bare, worst = {0};

	for (unsigned i = 0; i < rounds; i++) {
		enum weft_status st = insert(t, WF_TABLE_PRODUCT, &product);
		if (st == WEFT_OK) {
			st = insert(t, WF_TABLE_BARE, &bare);
		}
		if (st != WEFT_OK) {
			return st;
		}
		rate[i] = (double)t->arg.rows / (double)(product.elapsed_ns + 1) * 1e3;
		limit[i] = (double)t->arg.rows / (double)(bare.elapsed_ns + 1) * 1e3;
		fraction[i] = rate[i] / limit[i];
		worst = product.p99_ns > worst.p99_ns ? product : worst;
	}
	struct wf_result *r = wf_bench_add(t->bench);
	fill_result(t, "table_insert", rounds, r);
	r->unit = "M/s";
	r->limited_by = BARE_NAME;
	r->value = wf_median(rate, rounds);
	r->limit = wf_median(limit, rounds);
	r->fraction = wf_median(fraction, rounds);
	r->target = INSERT_TARGET;
	r->samples.count = rounds;
	memcpy(r->samples.value, rate, rounds * sizeof(rate[0]));
	memcpy(r->samples.fraction, fraction, rounds * sizeof(fraction[0]));
	add_pause(t, &worst, rounds);
	add_memory(t, product.number);
	return WEFT_OK;
}

static enum weft_status
measure(struct wf_bench *bench, uint32_t dim)
{
	struct tables t = {.bench = bench};
	struct wf_figures ready;

	t.arg = (struct wf_table_arg){
		.rows = choose_rows(bench, dim), .dim = dim, .quick = bench->set.quick};
	t.mode[WF_TABLE_UNIFORM] = mode_text(bench, "uniform", t.arg.rows);
	t.mode[WF_TABLE_ZIPF] = mode_text(bench, "zipf", t.arg.rows);
	t.mode[WF_TABLE_REPEAT] = mode_text(bench, "zipf raw", t.arg.rows);
	const struct wf_worker_opts opts = {.name = "the tables' worker",
					    .cpu = bench->cpu[0],
					    .run = wf_table_worker_run,
					    .arg = &t.arg};
	enum weft_status st = wf_worker_start(&opts, &t.worker);
	if (st == WEFT_OK) {
		st = wf_worker_await(&t.worker, READY_TIMEOUT_NS, &ready);
	}
	if (st == WEFT_OK) {
		st = measure_insert(&t);
	}
	if (st == WEFT_OK) {
		st = compare_all(&t);
	}
	wf_worker_end(&t.worker, WF_NS_PER_S);
	return st;
}

enum weft_status
wf_items_table(struct wf_bench *bench)
{
	enum weft_status st = measure(bench, 16);
	return st == WEFT_OK ? measure(bench, 64) : st;
}
