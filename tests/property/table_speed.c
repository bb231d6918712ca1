/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a sparse table is beside a bare loop that knows every row's number: no test, to be run
 * by hand for the tables in sparse/README.md.
 *
 * usage: table_speed [ROWS [DIM [SECONDS]]]: lookups and pushes with AdaGrad, uniform and
 * Zipf 1.05, batches of 4,096; and growing from nothing to ROWS rows. usage: table_speed count WHAT
 * BATCHES: that many batches of `lookup`, `push`, `bare_lookup` or `bare_push` over 100,000 rows of
 * 64, for instruction counts by difference of two runs. TRAINERS=n deals the keys of a push to n
 * trainers, UNSORTED=1 leaves keys as they were drawn, GROUPED=1 has batches of rows that were born
 * together, FORM=avx2 takes that form of the kernels.
 * Thread: one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/assert.h"
#include "base/hist.h"
#include "base/rng.h"
#include "sparse/table/table.h"

#define BATCH 4096u
#define BATCHES 256u /* made ready; used again and again */
#define AHEAD 12u
#define ROUNDS 15u
#define TRAINERS_MAX 8u

/* The bare table: open addressing, linear probing, at most half full; it cannot grow, has no
 * bookkeeping and no policies. 0 is no key of it. */
struct slot {
	uint64_t key;
	uint64_t row;
};

struct bench {
	size_t rows, dim, trainers;
	double seconds;
	uint64_t *key;     /* [BATCHES * BATCH] */
	uint32_t *number;  /* [BATCHES * BATCH] of the bare array's rows */
	float *grad, *out; /* [BATCH * dim] */
	float *bare;       /* [rows * 2 * dim] values and state */
	struct slot *slot; /* [slot_mask + 1] of the bare table */
	uint64_t slot_mask;
	struct wf_env *env;
	struct wf_table *table;
	uint64_t step;
};

/* Of this thread's work: what others do on the machine costs less of it than of the wall's time. */
static double
now_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *
take(size_t bytes)
{
	size_t huge = (size_t)2 << 20;
	bytes = (bytes + huge - 1) / huge * huge;
	void *memory = aligned_alloc(huge, bytes);
	WF_ASSERT(memory != NULL);
	(void)madvise(memory, bytes, MADV_HUGEPAGE);
	memset(memory, 0, bytes);
	return memory;
}

/* Keys are spread over all 64 bits. */
static uint64_t
key_of(uint64_t number)
{
	uint64_t state = number * 0x9e3779b97f4a7c15u;
	return wf_splitmix64(&state);
}

/* The bare loops: what is left of the work when every row's place is known. */

static void
known_lookup(struct bench *b, const uint32_t *number)
{
	const size_t dim = b->dim;
	for (size_t i = 0; i < BATCH; i++) {
		if (i + AHEAD < BATCH) {
			const float *next = b->bare + (size_t)number[i + AHEAD] * 2 * dim;
			for (size_t at = 0; at < dim; at += 16) {
				__builtin_prefetch(next + at);
			}
		}
		const float *row = b->bare + (size_t)number[i] * 2 * dim;
		float *out = b->out + i * dim;
		for (size_t j = 0; j < dim; j++) {
			out[j] = row[j];
		}
	}
}

static void
known_push(struct bench *b, const uint32_t *number)
{
	const size_t dim = b->dim;
	for (size_t i = 0; i < BATCH; i++) {
		if (i + AHEAD < BATCH) {
			const float *next = b->bare + (size_t)number[i + AHEAD] * 2 * dim;
			for (size_t at = 0; at < 2 * dim; at += 16) {
				__builtin_prefetch(next + at, 1);
			}
		}
		float *restrict w = b->bare + (size_t)number[i] * 2 * dim;
		float *restrict a = w + dim;
		const float *restrict g = b->grad + i * dim;
		for (size_t j = 0; j < dim; j++) {
			a[j] += g[j] * g[j];
			w[j] -= 0.01f * g[j] / __builtin_sqrtf(a[j] + 1e-6f);
		}
	}
}

static uint64_t
hash_of(uint64_t key)
{
	key = (key ^ key >> 32) * 0x9fb21c651e98df25u;
	return key ^ key >> 29;
}

/* Two stages over 256 keys: send for the slots, then look and send for the rows. */
static void
bare_find(const struct bench *b, const uint64_t *key, size_t floats, uint32_t *number)
{
	enum { AT_ONCE = 256 };
	uint64_t at[AT_ONCE];

	for (size_t first = 0; first < BATCH; first += AT_ONCE) {
		for (size_t i = 0; i < AT_ONCE; i++) {
			at[i] = hash_of(key[first + i]) & b->slot_mask;
			__builtin_prefetch(&b->slot[at[i]]);
		}
		for (size_t i = 0; i < AT_ONCE; i++) {
			uint64_t slot = at[i];
			while (b->slot[slot].key != key[first + i]) {
				slot = (slot + 1) & b->slot_mask;
			}
			number[first + i] = (uint32_t)b->slot[slot].row;
			if (first + i < AHEAD) {
				const float *row = b->bare + b->slot[slot].row * 2 * b->dim;
				for (size_t f = 0; f < floats; f += 16) {
					__builtin_prefetch(row + f);
				}
			}
		}
	}
}

static void
bare_lookup(struct bench *b, const uint64_t *key)
{
	static uint32_t number[BATCH];
	bare_find(b, key, b->dim, number);
	known_lookup(b, number);
}

static void
bare_push(struct bench *b, const uint64_t *key)
{
	static uint32_t number[BATCH];
	bare_find(b, key, 2 * b->dim, number);
	known_push(b, number);
}

static void
table_lookup(struct bench *b, const uint64_t *key)
{
	struct wf_table_lookup lookup = {.key = key, .count = BATCH, .out = b->out, .create = true};
	enum weft_status st = wf_table_lookup(b->table, &lookup);
	WF_ASSERT(st == WEFT_OK);
}

/* The keys of a batch dealt to trainers: every nth, so that all ascend. */
static void
deal_batch(const struct bench *b, const uint64_t *key, struct wf_table_batch *batch)
{
	static uint64_t dealt[TRAINERS_MAX][BATCH];
	for (size_t i = 0; i < BATCH; i++) {
		dealt[i % b->trainers][i / b->trainers] = key[i];
	}
	for (size_t n = 0; n < b->trainers; n++) {
		size_t count = BATCH / b->trainers;
		batch[n] = (struct wf_table_batch){
			.key = dealt[n], .grad = b->grad + n * count * b->dim, .count = count};
	}
}

static void
table_push(struct bench *b, const uint64_t *key)
{
	struct wf_table_batch batch[TRAINERS_MAX] = {{.key = key, .grad = b->grad, .count = BATCH}};
	struct wf_table_push push = {.step = ++b->step,
				     .rate = 0.01,
				     .divisor = 1.0f,
				     .batch = batch,
				     .batch_count = b->trainers};
	if (b->trainers > 1) {
		deal_batch(b, key, batch);
	}
	enum weft_status st = wf_table_push(b->table, &push);
	WF_ASSERT(st == WEFT_OK);
}

enum work { KNOWN_LOOKUP, BARE_LOOKUP, LOOKUP, KNOWN_PUSH, BARE_PUSH, PUSH, WORK_COUNT };
static const char *const work_names[WORK_COUNT] = {"known_lookup", "bare_lookup", "lookup",
						   "known_push",   "bare_push",   "push"};

static void
do_batch(struct bench *b, enum work work, size_t batch)
{
	size_t at = batch % BATCHES * BATCH;
	switch (work) {
	case KNOWN_LOOKUP:
		known_lookup(b, b->number + at);
		break;
	case BARE_LOOKUP:
		bare_lookup(b, b->key + at);
		break;
	case LOOKUP:
		table_lookup(b, b->key + at);
		break;
	case KNOWN_PUSH:
		known_push(b, b->number + at);
		break;
	case BARE_PUSH:
		bare_push(b, b->key + at);
		break;
	case PUSH:
		table_push(b, b->key + at);
		break;
	case WORK_COUNT:
		break;
	}
}

static struct wf_table *
make_table(struct wf_env *env, size_t dim)
{
	struct wf_table_opts opts = {
		.dim = (uint32_t)dim,
		.partition_count = 1024,
		.entries_max = BATCH,
		.index_seed = 0x5eed,
		.row = wf_row_defaults(),
		.admit = {.probability = 1.0},
	};
	struct wf_table *table = NULL;
	const char *form = getenv("FORM");

	opts.row.kind = WF_ROW_ADAGRAD;
	if (form != NULL) {
		opts.kernels = wf_kernels_by_name(form);
		WF_ASSERT(opts.kernels != NULL);
	}
	enum weft_status st = wf_table_create(env, &opts, &table);
	WF_ASSERT(st == WEFT_OK);
	return table;
}

/* Ranks of Zipf's law with exponent s by rejection (Hormann and Derflinger, 1996, without their
 * shortcuts), fine for a bench. */
static double
power(double x, double y)
{
	return wf_pow_f64(x, y);
}

static uint64_t
draw_zipf(struct wf_rng *rng, size_t rows, double s)
{
	double total = (power((double)rows + 1.0, 1.0 - s) - 1.0) / (1.0 - s);
	for (;;) {
		double u = wf_rng_f64(rng) * total;
		double x = power(1.0 + u * (1.0 - s), 1.0 / (1.0 - s));
		uint64_t rank = (uint64_t)x;
		double keep = power(x / (double)rank, s) * power(0.5, s);
		if (rank >= 1 && rank <= rows && wf_rng_f64(rng) < keep) {
			return rank - 1;
		}
	}
}

static int
compare_keys(const void *a, const void *b)
{
	const struct slot *x = a;
	const struct slot *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

/* A client sends keys in ascending order. */
static void
sort_batch(struct bench *b, size_t first)
{
	static struct slot batch[BATCH];
	for (size_t i = 0; i < BATCH; i++) {
		batch[i] = (struct slot){b->key[first + i], b->number[first + i]};
	}
	qsort(batch, BATCH, sizeof(batch[0]), compare_keys);
	for (size_t i = 0; i < BATCH; i++) {
		b->key[first + i] = batch[i].key;
		b->number[first + i] = (uint32_t)batch[i].row;
	}
}

/* Batches of rows that were born together, as rdma_bench has them. */
static bool
is_grouped(void)
{
	return getenv("GROUPED") != NULL;
}

/* Within a batch keys are distinct, as a client's are. */
static void
draw_keys(struct bench *b, bool zipf)
{
	uint32_t *last = take(b->rows * sizeof(*last));
	struct wf_rng rng;
	wf_rng_init(&rng, 7, zipf);
	for (size_t i = 0; i < (size_t)BATCHES * BATCH;) {
		uint64_t rank = zipf ? draw_zipf(&rng, b->rows, 1.05) : wf_rng_below(&rng, b->rows);
		rank = is_grouped() ? i % b->rows : rank;
		if (last[rank] == 1 + i / BATCH) {
			continue;
		}
		last[rank] = (uint32_t)(1 + i / BATCH);
		/* Hot rows lie apart. */
		uint64_t number = is_grouped() ? rank : rank * 2654435761u % b->rows;
		b->number[i] = (uint32_t)number;
		b->key[i++] = key_of(number);
	}
	for (size_t batch = 0; batch < BATCHES && getenv("UNSORTED") == NULL; batch++) {
		sort_batch(b, batch * BATCH);
	}
	free(last);
}

static int
compare(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;
	return (*x > *y) - (*x < *y);
}

static double
median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* Rows known, bare table and table take turns: first, first + 1, first + 2. */
static void
measure(struct bench *b, enum work first, const char *name)
{
	double million[3][ROUNDS];
	double by_known[ROUNDS];
	double by_bare[ROUNDS];
	size_t batches = (size_t)(b->seconds * 10e6 / ROUNDS / BATCH) + 1;

	for (size_t round = 0; round < ROUNDS; round++) {
		for (unsigned side = 0; side < 3; side++) {
			double from = now_ns();
			for (size_t i = 0; i < batches; i++) {
				do_batch(b, (enum work)(first + side), round * batches + i);
			}
			million[side][round] = (double)(batches * BATCH) / (now_ns() - from) * 1e3;
		}
		by_known[round] = million[2][round] / million[0][round];
		by_bare[round] = million[2][round] / million[1][round];
	}
	double middle_known = median(by_known, ROUNDS);
	double middle_bare = median(by_bare, ROUNDS);
	printf("%-8s %-7s known %6.1f  bare table %6.1f  table %6.1f M rows/s; table by known "
	       "%.2f, by bare table %.2f\n",
	       name, work_names[first + 2], median(million[0], ROUNDS), median(million[1], ROUNDS),
	       median(million[2], ROUNDS), middle_known, middle_bare);
	(void)fflush(stdout);
}

static void
fill_bare(struct bench *b)
{
	uint64_t slots = 1;
	while (slots < 2 * b->rows) {
		slots *= 2;
	}
	b->slot_mask = slots - 1;
	b->slot = take(slots * sizeof(*b->slot));
	double begun = now_ns();
	for (uint64_t row = 0; row < b->rows; row++) {
		uint64_t key = key_of(row);
		uint64_t slot = hash_of(key) & b->slot_mask;
		while (b->slot[slot].key != 0) {
			slot = (slot + 1) & b->slot_mask;
		}
		b->slot[slot] = (struct slot){key, row};
	}
	printf("bare table filled, memory there and no growth: %.2f M rows/s\n",
	       (double)b->rows / (now_ns() - begun) * 1e3);
}

static void
grow(struct bench *b)
{
	static struct wf_hist pauses;
	static struct wf_hist_view before, now, view;
	uint64_t key[64];
	double begun = now_ns();

	for (size_t first = 0; first < b->rows; first += 64) {
		size_t count = b->rows - first < 64 ? b->rows - first : 64;
		for (size_t i = 0; i < count; i++) {
			key[i] = key_of(first + i);
		}
		struct wf_table_lookup lookup = {
			.key = key, .count = count, .out = b->out, .create = true};
		double from = now_ns();
		enum weft_status st = wf_table_lookup(b->table, &lookup);
		wf_hist_record(&pauses, (uint64_t)(now_ns() - from));
		WF_ASSERT(st == WEFT_OK);
	}
	double spent = now_ns() - begun;
	wf_hist_snapshot(&pauses, &now);
	view = now;
	wf_hist_since(&view, &before);
	before = now;
	uint64_t bytes = wf_stats_get(wf_table_stats(b->table), WF_TABLE_MEMORY_BYTES);
	size_t floor = 8 + 2 * b->dim * sizeof(float);
	printf("grown to %zu rows: %.2f M rows/s; 64 keys: median %.1f us, longest %.1f us\n",
	       b->rows, (double)b->rows / spent * 1e3, (double)wf_hist_quantile(&view, 0.5) / 1e3,
	       (double)wf_hist_quantile(&view, 1.0) / 1e3);
	printf("memory %.1f bytes a row, key + row + state %zu: ratio %.3f\n",
	       (double)bytes / (double)b->rows, floor,
	       (double)bytes / (double)b->rows / (double)floor);
}

static void
open_bench(struct bench *b)
{
	const char *trainers = getenv("TRAINERS");
	b->trainers = trainers == NULL ? 1 : strtoul(trainers, NULL, 0);
	WF_ASSERT(b->trainers >= 1 && b->trainers <= TRAINERS_MAX);
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, 2, &b->env);
	WF_ASSERT(st == WEFT_OK);
	b->key = take((size_t)BATCHES * BATCH * sizeof(*b->key));
	b->number = take((size_t)BATCHES * BATCH * sizeof(*b->number));
	b->grad = take((size_t)BATCH * b->dim * sizeof(float));
	b->out = take((size_t)BATCH * b->dim * sizeof(float));
	b->bare = take(b->rows * 2 * b->dim * sizeof(float));
	for (size_t i = 0; i < BATCH * b->dim; i++) {
		b->grad[i] = (float)(i % 17) * 0.01f - 0.08f;
	}
	fill_bare(b);
	b->table = make_table(b->env, b->dim);
}

static int
count_work(const char *what, size_t batches)
{
	struct bench b = {.rows = 100000, .dim = 64};
	open_bench(&b);
	draw_keys(&b, false);
	for (size_t i = 0; i < BATCHES; i++) {
		do_batch(&b, LOOKUP, i);
	}
	for (unsigned work = 0; work < WORK_COUNT; work++) {
		for (size_t i = 0; strcmp(what, work_names[work]) == 0 && i < batches; i++) {
			do_batch(&b, (enum work)work, i);
		}
	}
	return EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "count") == 0) {
		return count_work(argv[2], strtoul(argv[3], NULL, 0));
	}
	struct bench b = {
		.rows = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000,
		.dim = argc > 2 ? strtoul(argv[2], NULL, 0) : 64,
		.seconds = argc > 3 ? strtod(argv[3], NULL) : 1.0,
	};
	open_bench(&b);
	/* Twice: the first may wait for the machine to find memory at all. */
	grow(&b);
	wf_table_destroy(b.table);
	b.table = make_table(b.env, b.dim);
	draw_keys(&b, false);
	for (size_t i = 0; is_grouped() && i < BATCHES; i++) {
		table_lookup(&b, b.key + i * BATCH);
	}
	grow(&b);
	for (unsigned zipf = 0; zipf < 2; zipf++) {
		draw_keys(&b, zipf == 1);
		const char *name = zipf == 1 ? "zipf" : "uniform";
		measure(&b, KNOWN_LOOKUP, name);
		measure(&b, KNOWN_PUSH, name);
		printf("%-8s exponent of Zipf's law, estimated: %.2f\n", name,
		       wf_hot_zipf(wf_table_hot(b.table)));
	}
	wf_table_destroy(b.table);
	return EXIT_SUCCESS;
}
