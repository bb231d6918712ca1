/* SPDX-License-Identifier: Apache-2.0 */
/* table_worker: see table_worker.h. Batches are made ready beforehand: distinct keys in ascending
 * order, as a client sends them, but for WF_TABLE_REPEAT. Thread: the worker's. */
#include "tools/rdma_bench/table_worker.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/rng.h"
#include "sparse/table/table.h"
#include "tools/rdma_bench/batches.h"
#include "tools/rdma_bench/harness.h"
#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/limits/table.h"
#if WF_BENCH_HAVE_ABSL
#include "tools/rdma_bench/limits/table_absl.h"
#endif

#define BATCHES 1024u /* made ready; used again and again */
#define QUICK_BATCHES 8u

struct tables {
	const struct wf_table_arg *arg;
	struct wf_env *env;
	struct wf_bare_table bare;
	struct wf_table *table;
#if WF_BENCH_HAVE_ABSL
	struct wf_absl_map *absl;
#endif
	uint64_t step;
	size_t batch_count;
	uint64_t *key[WF_TABLE_LAWS]; /* [batch_count * WF_TABLE_BATCH] */
	float *grad, *out;            /* [WF_TABLE_BATCH * dim] */
	size_t at[WF_TABLE_LAWS];     /* batch that is next */
};

uint64_t
wf_table_worker_bytes(const struct wf_table_arg *arg)
{
	uint64_t rows_bytes = arg->rows * 2 * arg->dim * sizeof(float);
	return wf_bare_table_bytes(arg->rows, arg->dim) + rows_bytes + arg->rows * 64 +
	       ((uint64_t)256 << 20);
}

bool
wf_table_has_absl(void)
{
	return WF_BENCH_HAVE_ABSL != 0;
}

static enum weft_status
no_memory(const struct tables *t)
{
	return wf_fail(WEFT_NOMEM, "no memory for tables of %llu rows; give fewer --rows",
		       (unsigned long long)t->arg->rows);
}

static void
draw_batches(const struct tables *t, enum wf_table_law law, uint32_t *last, uint64_t *key)
{
	const uint64_t rows = t->arg->rows;
	const bool zipf = law != WF_TABLE_UNIFORM;
	struct wf_rng rng;

	wf_rng_init(&rng, 7, law);
	memset(last, 0, rows * sizeof(*last));
	for (size_t i = 0; i < t->batch_count * WF_TABLE_BATCH;) {
		uint32_t batch = 1 + (uint32_t)(i / WF_TABLE_BATCH);
		uint64_t row = zipf ? wf_exchange_draw(&rng, rows) : wf_rng_below(&rng, rows);
		if (last[row] != batch || law == WF_TABLE_REPEAT) {
			last[row] = batch;
			key[i++] = wf_exchange_key(row);
		}
	}
	for (size_t batch = 0; batch < t->batch_count && law != WF_TABLE_REPEAT; batch++) {
		wf_exchange_sort(key + batch * WF_TABLE_BATCH, WF_TABLE_BATCH);
	}
}

static enum weft_status
make_batches(struct tables *t)
{
	const size_t bytes = (size_t)WF_TABLE_BATCH * t->arg->dim * sizeof(float);
	uint32_t *last = wf_limit_map(t->arg->rows * sizeof(*last), false, -1);

	t->batch_count = t->arg->quick ? QUICK_BATCHES : BATCHES;
	t->grad = wf_limit_map(bytes, false, -1);
	t->out = wf_limit_map(bytes, false, -1);
	if (last == NULL || t->grad == NULL || t->out == NULL) {
		return no_memory(t);
	}
	for (size_t i = 0; i < (size_t)WF_TABLE_BATCH * t->arg->dim; i++) {
		t->grad[i] = (float)(i % 17) * 0.01f - 0.08f;
		t->out[i] = 0;
	}
	for (unsigned law = 0; law < WF_TABLE_LAWS; law++) {
		t->key[law] =
			wf_limit_map(t->batch_count * WF_TABLE_BATCH * sizeof(uint64_t), false, -1);
		if (t->key[law] == NULL) {
			return no_memory(t);
		}
		draw_batches(t, (enum wf_table_law)law, last, t->key[law]);
	}
	wf_limit_unmap(last, t->arg->rows * sizeof(*last));
	return WEFT_OK;
}

/* Empty tables, on memory that has not been touched. */

static enum weft_status
renew_bare(struct tables *t)
{
	wf_bare_table_close(&t->bare);
	return wf_bare_table_open(&t->bare, t->arg->rows, t->arg->dim) ? WEFT_OK : no_memory(t);
}

static enum weft_status
renew_table(struct tables *t)
{
	struct wf_table_opts opts = {
		.dim = t->arg->dim,
		.partition_count = 1024,
		.entries_max = WF_TABLE_BATCH,
		.index_seed = 0x5eed,
		.row = wf_row_defaults(),
		.admit = {.probability = 1.0},
	};

	opts.row.kind = WF_ROW_ADAGRAD;
	wf_table_destroy(t->table);
	t->table = NULL;
	t->step = 0;
	return wf_table_create(t->env, &opts, &t->table);
}

/* Inserting. */

/* A short time: within seconds other processes would interfere. */
static uint64_t
spent_ns(clockid_t clock)
{
	struct timespec now;
	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * WF_NS_PER_S + (uint64_t)now.tv_nsec;
}

static enum weft_status
insert_keys(struct tables *t, enum wf_table_side side, const uint64_t *key, size_t count)
{
	if (side == WF_TABLE_BARE) {
		return wf_bare_table_insert(&t->bare, key, count) ? WEFT_OK : no_memory(t);
	}
	struct wf_table_lookup lookup = {.key = key, .count = count, .out = t->out, .create = true};
	return wf_table_lookup(t->table, &lookup);
}

#define HISTOGRAM_STEPS 12u /* below 16 us, then doubling; the last: all that is longer */
#define HISTOGRAM_FIRST_NS 16000u

struct pauses {
	uint32_t count[HISTOGRAM_STEPS + 1];
	uint64_t longest_ns;
	uint64_t sum_ns;
};

static void
note_pause(struct pauses *pauses, uint64_t took_ns)
{
	unsigned step = 0;
	while (step < HISTOGRAM_STEPS && took_ns >= (uint64_t)HISTOGRAM_FIRST_NS << step) {
		step++;
	}
	pauses->count[step]++;
	pauses->sum_ns += took_ns;
	pauses->longest_ns = took_ns > pauses->longest_ns ? took_ns : pauses->longest_ns;
}

/* "below 0.256 ms 12, 0.512 ms 2300, longer 1": those that there are. */
static void
print_pauses(const struct pauses *pauses, char *out, size_t room)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned step = 0; step <= HISTOGRAM_STEPS; step++) {
		double ms = (double)((uint64_t)HISTOGRAM_FIRST_NS << step) / 1e6;
		if (pauses->count[step] == 0 || used >= room) {
			continue;
		}
		int bytes = 0;
		if (step == HISTOGRAM_STEPS) {
			bytes = snprintf(out + used, room - used, "%slonger %u",
					 used == 0 ? "" : ", ", pauses->count[step]);
		} else {
			bytes = snprintf(out + used, room - used, "%s%.3f ms %u",
					 used == 0 ? "below " : ", ", ms, pauses->count[step]);
		}
		used += bytes > 0 ? (size_t)bytes : 0;
	}
}

/* Which thread touched new memory first, and the time without the helper's work. */
static void
print_cleared(const struct tables *t, const struct pauses *pauses, char *out, size_t room)
{
	const struct wf_stats *stats = wf_table_stats(t->table);
	const size_t used = strlen(out);

	(void)snprintf(out + used, room - used,
		       "; the lane alone %.2f M/s; MiB cleared by the lane %.0f, ahead %.0f",
		       (double)t->arg->rows / (double)(pauses->sum_ns + 1) * 1e3,
		       (double)wf_stats_get(stats, WF_TABLE_CLEARED_BYTES) / 0x1p20,
		       (double)wf_stats_get(stats, WF_TABLE_READIED_BYTES) / 0x1p20);
}

static enum weft_status
insert_all(struct tables *t, enum wf_table_side side, struct wf_figures *out)
{
	struct pauses pauses = {0};
	uint64_t key[WF_TABLE_INSERT_KEYS];
	uint64_t making_ns = 0; /* keys */
	enum weft_status st = side == WF_TABLE_BARE ? renew_bare(t) : renew_table(t);
	uint64_t all_from_ns = spent_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (uint64_t first = 0; st == WEFT_OK && first < t->arg->rows;) {
		uint64_t left = t->arg->rows - first;
		size_t count = left < WF_TABLE_INSERT_KEYS ? (size_t)left : WF_TABLE_INSERT_KEYS;
		uint64_t making_from_ns = spent_ns(CLOCK_THREAD_CPUTIME_ID);
		for (size_t i = 0; i < count; i++) {
			key[i] = wf_exchange_key(first + i);
		}
		uint64_t from_ns = spent_ns(CLOCK_THREAD_CPUTIME_ID);
		making_ns += from_ns - making_from_ns;
		st = insert_keys(t, side, key, count);
		note_pause(&pauses, spent_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns);
		first += count;
	}
	/* The helper's work is part of the cost, and not of a pause. */
	uint64_t spent = spent_ns(CLOCK_PROCESS_CPUTIME_ID) - all_from_ns - making_ns;
	*out = (struct wf_figures){.status = st, .count = 1, .elapsed_ns = spent};
	out->p99_ns = (double)pauses.longest_ns;
	print_pauses(&pauses, out->text, sizeof(out->text));
	if (st == WEFT_OK && side == WF_TABLE_PRODUCT) {
		out->number = wf_stats_get(wf_table_stats(t->table), WF_TABLE_MEMORY_BYTES);
		print_cleared(t, &pauses, out->text, sizeof(out->text));
	}
	return st;
}

/* Batches. */

static enum weft_status
pull(struct tables *t, enum wf_table_side side, const uint64_t *key)
{
	const struct wf_table_lookup lookup = {
		.key = key, .count = WF_TABLE_BATCH, .out = t->out, .create = true};

	switch (side) {
	case WF_TABLE_PRODUCT:
		return wf_table_lookup(t->table, &lookup);
	case WF_TABLE_BARE:
		t->bare.form->pull(&t->bare, key, WF_TABLE_BATCH, t->out);
		break;
	case WF_TABLE_ABSL:
#if WF_BENCH_HAVE_ABSL
		wf_absl_map_pull(t->absl, key, WF_TABLE_BATCH, t->out);
#endif
		break;
	}
	return WEFT_OK;
}

static enum weft_status
push(struct tables *t, enum wf_table_side side, const uint64_t *key)
{
	const struct wf_table_batch batch = {.key = key, .grad = t->grad, .count = WF_TABLE_BATCH};
	const struct wf_table_push step = {.step = t->step + 1,
					   .rate = (double)WF_LIMIT_ROW_RATE,
					   .divisor = 1.0f,
					   .batch = &batch,
					   .batch_count = 1};

	switch (side) {
	case WF_TABLE_PRODUCT:
		t->step++;
		return wf_table_push(t->table, &step);
	case WF_TABLE_BARE:
		t->bare.form->push(&t->bare, key, WF_TABLE_BATCH, t->grad);
		break;
	case WF_TABLE_ABSL:
#if WF_BENCH_HAVE_ABSL
		wf_absl_map_push(t->absl, key, WF_TABLE_BATCH, t->grad);
#endif
		break;
	}
	return WEFT_OK;
}

static enum weft_status
run_batches(struct tables *t, const struct wf_work_order *order, struct wf_meter *meter,
	    struct wf_figures *out)
{
	const enum wf_table_side side = (enum wf_table_side)(order->mode >> 4 & 15u);
	const unsigned law = order->mode >> 8 & 3u;
	const bool pushes = (order->mode & 15u) == WF_TABLE_PUSH;
	enum weft_status st = WEFT_OK;

	wf_meter_begin(meter, 1);
	for (uint64_t i = 0; st == WEFT_OK && i < order->count; i++) {
		const uint64_t *key = t->key[law] + t->at[law]++ % t->batch_count * WF_TABLE_BATCH;
		st = pushes ? push(t, side, key) : pull(t, side, key);
		wf_meter_mark(meter);
	}
	wf_meter_figures(meter, order->count, out);
	return st;
}

static enum weft_status
open_tables(struct tables *t, const struct wf_table_arg *arg, struct wf_env *env)
{
	struct wf_figures unused;

	*t = (struct tables){.arg = arg, .env = env};
	enum weft_status st = make_batches(t);
	if (st == WEFT_OK) {
		st = insert_all(t, WF_TABLE_BARE, &unused);
	}
	return st == WEFT_OK ? insert_all(t, WF_TABLE_PRODUCT, &unused) : st;
}

/* Rows keep their places however often the bare table is made anew. */
static enum weft_status
open_absl(struct tables *t)
{
#if WF_BENCH_HAVE_ABSL
	if (t->absl == NULL) {
		t->absl = wf_absl_map_create(&t->bare);
	}
	return t->absl == NULL ? no_memory(t) : WEFT_OK;
#else
	(void)t;
	return WEFT_OK;
#endif
}

enum weft_status
wf_table_worker_run(struct wf_bench_seat *seat, const void *arg)
{
	static struct tables tables; /* the process is this worker's own */
	struct wf_meter meter;
	struct wf_work_order order;
	enum weft_status st = wf_meter_init(&meter, seat->env);

	if (st == WEFT_OK) {
		st = open_tables(&tables, arg, seat->env);
	}
	if (st == WEFT_OK) {
		wf_seat_ready(seat, 0);
	}
	while (st == WEFT_OK && wf_seat_order(seat, &order)) {
		struct wf_figures figures = {0};
		const enum wf_table_side side = (enum wf_table_side)(order.mode >> 4 & 15u);
		if ((order.mode & 15u) == WF_TABLE_INSERT) {
			st = insert_all(&tables, side, &figures);
		} else {
			st = side == WF_TABLE_ABSL ? open_absl(&tables) : WEFT_OK;
			st = st == WEFT_OK ? run_batches(&tables, &order, &meter, &figures) : st;
		}
		if (st == WEFT_OK) {
			wf_seat_report(seat, &figures);
		}
	}
	return st;
}
