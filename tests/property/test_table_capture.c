/* SPDX-License-Identifier: Apache-2.0 */
/* What is captured of a table at a border, while later steps are applied and whatever the turns of
 * copying are, is the table at the border, bit for bit: its rows and counters, and those after the
 * same later steps. So it is of a complete copy and its deltas, one after the other. The steps
 * themselves have the bits that they have without a capture. WEFT_SEED chooses other runs,
 * WEFT_LONG more of them. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "sparse/table/capture.h"
#include "tests/support/failing_env.h"
#include "wire/little.h"
#include "wire/partition.h"

#define RUNS 60u
#define RUNS_LONG 4000u
#define MAX_KEYS 3000u
#define MAX_BATCH 300u
#define MAX_DIM 9u
#define TRAINERS 2u
#define STEPS_BEFORE 8u
#define OPERATIONS 12u /* after a border */
#define BORDERS 3u
#define SLOTS 64u
#define MAX_RECORD (24u + 4u * (3u * MAX_DIM + 1u))
#define SINK_BYTES ((MAX_KEYS + 1u) * MAX_RECORD + WF_PARTITION_COUNT * SLOTS * 2u + 16u * MAX_KEYS)

struct batch {
	uint64_t key[MAX_BATCH];
	float grad[MAX_BATCH * MAX_DIM];
	float show[MAX_BATCH], click[MAX_BATCH];
	size_t count;
};

/* What happens to a table after a border. */
enum kind { PUSH, LOOKUP, TEND };
struct operation {
	enum kind kind;
	uint32_t step; /* PUSH */
	struct batch batch[TRAINERS];
};

/* A sink that has room for some blocks. */
struct sink {
	struct wf_capture_sink base;
	struct wf_capture_block block[MAX_KEYS + WF_PARTITION_COUNT];
	uint64_t at[MAX_KEYS + WF_PARTITION_COUNT]; /* of the payload */
	uint32_t count;
	uint64_t used, claimed;
	uint32_t room; /* blocks */
	uint64_t refused;
	uint8_t bytes[SINK_BYTES];
};

/* The rows of a table by key, and the counters of all its partitions. */
struct image {
	uint32_t row_count;
	uint8_t row[MAX_KEYS + 1][MAX_RECORD];
	uint16_t counter[WF_PARTITION_COUNT][SLOTS];
};

static struct wf_rng rng;
static struct wf_table_opts opts;
static uint64_t key_of[MAX_KEYS];
static uint32_t key_count;
static struct operation operation[OPERATIONS];
static struct sink sink;
static struct image image[2];
/* What the sink had of the last complete copy, and of its deltas. */
static struct sink link_of[BORDERS];
static uint32_t link_base[BORDERS]; /* 0: complete */
static uint32_t link_count;
static uint32_t last_border; /* of the last of them */
static bool is_broken;       /* a copy was given up: no delta can follow it */
static uint64_t gone_count;  /* keys in deltas, of all runs */
/* A full sink may delay what frees memory, so that other rows go at the cap. */
static bool is_exact;
static struct wf_env *env;
static uint64_t seed, run_number;

#define must(call)                                                                                 \
	do {                                                                                       \
		enum weft_status must_status = (call);                                             \
		if (must_status != WEFT_OK) {                                                      \
			fail_msg("WEFT_SEED=%" PRIu64 " run %" PRIu64 ": %s: %s", seed,            \
				 run_number, #call, weft_last_error());                            \
		}                                                                                  \
	} while (0)

#define check(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fail_msg("WEFT_SEED=%" PRIu64 " run %" PRIu64 ": %s", seed, run_number,    \
				 #what);                                                           \
		}                                                                                  \
	} while (0)

/* ---- settings ---- */

static void
draw_row(struct wf_row_opts *row)
{
	*row = wf_row_defaults();
	row->kind = (enum wf_row_optimizer)wf_rng_below(&rng, WF_ROW_OPTIMIZER_COUNT);
	row->set.learning_rate = 0.1;
	row->set.momentum = 0.5;
	row->set.l2 = 0.01;
	row->set.dense_equivalent = wf_rng_below(&rng, 2) == 0;
	if (wf_row_check(row) != WEFT_OK) { /* what does not go together */
		row->set.dense_equivalent = false;
	}
	if (wf_row_check(row) != WEFT_OK) {
		row->set.l2 = 0.0;
	}
}

static void
draw_policies(void)
{
	if (wf_rng_below(&rng, 3) == 0) {
		opts.admit.count = 2 + (uint32_t)wf_rng_below(&rng, 2);
		opts.admit.slot_count = SLOTS;
	}
	if (wf_rng_below(&rng, 4) == 0) {
		opts.admit.probability = 0.5;
	}
	if (wf_rng_below(&rng, 3) == 0) {
		opts.evict.age_steps = 1 + wf_rng_below(&rng, 5);
	}
	if (wf_rng_below(&rng, 3) == 0) {
		opts.evict.score_least = 0.4;
		opts.evict.show_weight = 0.5;
		opts.evict.click_weight = 1.0;
		opts.evict.fade = 0.7;
		opts.evict.fade_steps = 1 + wf_rng_below(&rng, 3);
	}
	if (wf_rng_below(&rng, 3) == 0) {
		opts.evict.at_cap = true;
	}
}

static void
draw_settings(void)
{
	uint32_t lanes = 1 + (uint32_t)wf_rng_below(&rng, 3);
	opts = (struct wf_table_opts){
		.dim = 1 + (uint32_t)wf_rng_below(&rng, MAX_DIM),
		.entries_max = TRAINERS * MAX_BATCH,
		.index_seed = wf_rng_u64(&rng),
		.partition_count = wf_partition_first(1, lanes),
		.init = {.kind = WF_INIT_UNIFORM, .a = -0.5, .b = 0.5, .seed = 3},
		.admit = {.probability = 1.0},
		.value_rest = (enum weft_value_format)wf_rng_below(&rng, WF_VALUE_FORMAT_COUNT),
	};
	draw_row(&opts.row);
	bool ftrl = opts.row.kind == WF_ROW_FTRL || opts.row.kind == WF_ROW_FTRL_GROUP;
	if (ftrl && opts.row.set.dense_equivalent) {
		opts.init.kind = WF_INIT_ZERO;
	}
	if (wf_rng_below(&rng, 4) == 0) {
		opts.vocabulary = 1 + wf_rng_below(&rng, MAX_KEYS);
		return;
	}
	draw_policies();
}

static bool
is_ours(uint64_t key)
{
	uint32_t partition =
		opts.vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
	return partition - opts.partition_first < opts.partition_count;
}

static void
draw_keys(void)
{
	uint32_t most = wf_rng_below(&rng, 3) == 0 ? 60 : MAX_KEYS;
	key_count = 0;
	for (uint32_t i = 0; i < most; i++) {
		uint64_t key = opts.vocabulary > 0 ? i : wf_rng_u64(&rng);
		if ((opts.vocabulary == 0 || key < opts.vocabulary) && is_ours(key)) {
			key_of[key_count++] = key;
		}
	}
	if (key_count == 0) {
		key_of[key_count++] = 0; /* of a vocabulary, partition 0 */
	}
}

static struct wf_table *
open_table(void)
{
	struct wf_table *table = NULL;
	struct wf_table_opts capped = opts;
	if (opts.evict.at_cap) { /* room for some hundred rows */
		capped.memory_cap_bytes = UINT64_MAX / 2;
		must(wf_table_create(env, &capped, &table));
		capped.memory_cap_bytes =
			wf_stats_get(wf_table_stats(table), WF_TABLE_MEMORY_BYTES) + 100000;
		wf_table_destroy(table);
	}
	must(wf_table_create(env, &capped, &table));
	return table;
}

/* ---- what happens to a table ---- */

static int
compare_keys(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Often in ascending order, as a client sends them. */
static void
draw_batch(struct batch *batch)
{
	batch->count = wf_rng_below(&rng, MAX_BATCH + 1);
	for (size_t i = 0; i < batch->count; i++) {
		batch->key[i] = key_of[wf_rng_below(&rng, key_count)];
		batch->show[i] = 1.0f;
		batch->click[i] = (float)wf_rng_below(&rng, 2);
	}
	for (size_t i = 0; i < batch->count * opts.dim; i++) {
		batch->grad[i] = (float)wf_rng_f64(&rng) - 0.5f;
	}
	if (batch->count > 0 && wf_rng_below(&rng, 3) > 0) {
		qsort(batch->key, batch->count, sizeof(batch->key[0]), compare_keys);
	}
}

static enum kind
draw_kind(void)
{
	static const enum kind kinds[] = {PUSH, PUSH, LOOKUP, TEND};
	return kinds[wf_rng_below(&rng, WF_ARRAY_COUNT(kinds))];
}

static void
draw_operation(struct operation *out, enum kind kind, uint32_t *step)
{
	out->kind = kind;
	for (unsigned n = 0; n < TRAINERS; n++) {
		draw_batch(&out->batch[n]);
	}
	if (out->kind == PUSH) {
		out->step = ++*step;
	}
}

static struct wf_table_push
push_of(const struct operation *from, struct wf_table_batch batch[TRAINERS])
{
	for (unsigned n = 0; n < TRAINERS; n++) {
		const struct batch *of = &from->batch[n];
		batch[n] = (struct wf_table_batch){.key = of->key,
						   .grad = of->grad,
						   .count = of->count,
						   .show = of->show,
						   .click = of->click};
	}
	return (struct wf_table_push){.step = from->step,
				      .rate = 0.1,
				      .divisor = 1.0f,
				      .batch = batch,
				      .batch_count = TRAINERS};
}

static void
operate(struct wf_table *table, const struct operation *from)
{
	static float out[MAX_BATCH * MAX_DIM];
	struct wf_table_batch batch[TRAINERS];
	const struct wf_table_push push = push_of(from, batch);
	const struct wf_table_lookup lookup = {.key = from->batch[0].key,
					       .count = from->batch[0].count,
					       .out = out,
					       .create = true};
	if (from->kind == PUSH) {
		must(wf_table_push(table, &push));
	} else if (from->kind == LOOKUP) {
		must(wf_table_lookup(table, &lookup));
	} else {
		wf_table_tend(table, 200);
	}
}

/* ---- the sink ---- */

static void *
claim(struct wf_capture_sink *base, const struct wf_capture_block *block)
{
	struct sink *self = (struct sink *)base;
	if (self->room == 0) {
		self->refused++;
		return NULL;
	}
	check(self->claimed == 0 && block->bytes > 0 && block->bytes <= SINK_BYTES - self->used);
	self->block[self->count] = *block;
	self->at[self->count] = self->used;
	self->claimed = block->bytes;
	self->room--;
	return self->bytes + self->used;
}

static void
add(struct wf_capture_sink *base)
{
	struct sink *self = (struct sink *)base;
	check(self->claimed > 0);
	self->used += self->claimed;
	self->claimed = 0;
	self->count++;
}

static void
empty_sink(bool is_wide)
{
	sink = (struct sink){.base = {claim, add}, .room = is_wide ? UINT32_MAX : 0};
}

/* A little more room, now and then. */
static void
widen(void)
{
	if (sink.room < 3) {
		sink.room += (uint32_t)wf_rng_below(&rng, 3);
	}
}

/* ---- images ---- */

static int
compare_rows(const void *a, const void *b)
{
	const uint64_t x = wf_load_u64(a);
	const uint64_t y = wf_load_u64(b);
	return (x > y) - (x < y);
}

static void
read_image(struct wf_table *table, struct image *out)
{
	const struct wf_row_shape shape = wf_table_shape(table);
	struct wf_table_row row;
	uint64_t cursor = 0;
	memset(out, 0, sizeof(*out));
	while (wf_table_next(table, &cursor, &row)) {
		const struct wf_row_record record = {.key = row.key,
						     .stamp = row.stamp,
						     .born = row.born,
						     .show = row.show,
						     .click = row.click,
						     .floats = row.floats};
		wf_row_record_put(&shape, &record, out->row[out->row_count++]);
	}
	qsort(out->row, out->row_count, MAX_RECORD, compare_rows);
	for (uint32_t p = 0; p < opts.partition_count; p++) {
		uint32_t count = 0;
		const uint16_t *counter = wf_table_counters(table, p, &count);
		if (count > 0) {
			memcpy(out->counter[p], counter, count * sizeof(*counter));
		}
	}
}

static void
compare(struct wf_table *a, const struct image *one)
{
	read_image(a, &image[1]);
	check(one->row_count == image[1].row_count);
	check(memcmp(one, &image[1], sizeof(*one)) == 0);
}

/* A lookup's results are the same. */
static void
compare_values(struct wf_table *a, struct wf_table *b)
{
	static float left[MAX_KEYS * MAX_DIM], right[MAX_KEYS * MAX_DIM];
	struct wf_table_lookup lookup = {.key = key_of, .count = key_count, .out = left};
	must(wf_table_lookup(a, &lookup));
	lookup.out = right;
	must(wf_table_lookup(b, &lookup));
	check(memcmp(left, right, key_count * opts.dim * sizeof(float)) == 0);
}

/* ---- restoring ---- */

static void
put_rows(struct wf_table *table, const struct wf_capture_block *block, const uint8_t *payload,
	 uint32_t base)
{
	const struct wf_row_shape shape = wf_table_shape(table);
	const size_t bytes = wf_row_record_bytes(&shape);
	float floats[3 * MAX_DIM + 1];
	check(block->bytes == block->count * bytes);
	for (uint32_t i = 0; i < block->count; i++) {
		struct wf_row_record row;
		wf_row_record_get(&shape, payload + i * bytes, floats, &row);
		must(base == 0 ? wf_table_put_record(table, &row)
			       : wf_table_put_later_record(table, &row, base));
	}
}

/* Keys of rows that are gone, before any rows of the same copy. */
static void
drop_rows(struct wf_table *table, const struct sink *from)
{
	uint32_t blocks = 0;
	for (uint32_t i = 0; i < from->count; i++) {
		const struct wf_capture_block *block = &from->block[i];
		if (block->has_gone) {
			check(block->first == blocks++ && block->bytes == 8ull * block->count);
			for (uint32_t k = 0; k < block->count; k++) {
				must(wf_table_drop(table, wf_load_u64(from->bytes + from->at[i] +
								      8 * (size_t)k)));
			}
		}
	}
}

/* Puts what a copy has into the table. `base`: the border before it; 0: it is complete. */
static void
put_all(struct wf_table *table, const struct sink *from, uint32_t base)
{
	uint32_t row_blocks = 0;
	drop_rows(table, from);
	for (uint32_t i = 0; i < from->count; i++) {
		const struct wf_capture_block *block = &from->block[i];
		const uint8_t *payload = from->bytes + from->at[i];
		if (block->has_gone) {
			check(base != 0);
			continue;
		}
		if (!block->has_counters) {
			check(block->first == row_blocks++);
			put_rows(table, block, payload, base);
			continue;
		}
		uint16_t counter[SLOTS];
		check(block->count == SLOTS && block->bytes == 2 * SLOTS);
		for (uint32_t s = 0; s < SLOTS; s++) {
			counter[s] = wf_load_u16(payload + 2 * (size_t)s);
		}
		must(wf_table_set_counters(table, block->first, counter, SLOTS));
	}
}

/* A table of the last complete copy and its deltas, of which the sink has the newest. */
static struct wf_table *
restore(uint32_t base, uint32_t step)
{
	struct wf_table *table = NULL;
	link_count = base == 0 ? 0 : link_count;
	check(base == 0 || base == last_border);
	link_base[link_count] = base;
	link_of[link_count++] = sink;
	last_border = step;
	opts.index_seed++;
	table = open_table();
	must(wf_table_set_step(table, step));
	for (uint32_t i = 0; i < link_count; i++) {
		put_all(table, &link_of[i], link_base[i]);
	}
	return table;
}

static uint64_t
count_gone(void)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < sink.count; i++) {
		count += sink.block[i].has_gone ? sink.block[i].count : 0;
	}
	return count;
}

/* ---- runs ---- */

/* Before the push, until there was room for all that it changes. */
static void
copy_before(struct wf_capture *capture, const struct operation *from)
{
	struct wf_table_batch batch[TRAINERS];
	const struct wf_table_push push = push_of(from, batch);
	while (!wf_capture_copy_before(capture, &push)) {
		widen();
		if (wf_rng_below(&rng, 2) == 0) {
			(void)wf_capture_copy_some(capture, wf_rng_below(&rng, 3000));
		}
		if (!wf_capture_is_on(capture)) {
			return;
		}
	}
}

/* Later operations, on a table that is being captured and on one that is not. */
static void
go_on(struct wf_table *captured, struct wf_table *other, struct wf_capture *capture, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint64_t turns = wf_rng_below(&rng, 3); turns > 0; turns--) {
			widen();
			if (wf_capture_is_on(capture)) {
				(void)wf_capture_copy_some(capture, wf_rng_below(&rng, 3000));
			}
		}
		if (wf_capture_is_on(capture) && operation[i].kind == PUSH) {
			copy_before(capture, &operation[i]);
		}
		operate(captured, &operation[i]);
		operate(other, &operation[i]);
	}
}

static void
finish(struct wf_capture *capture)
{
	sink.room = UINT32_MAX;
	while (wf_capture_is_on(capture)) {
		enum wf_capture_news news =
			wf_capture_copy_some(capture, 1 + wf_rng_below(&rng, 500));
		check(news != WF_CAPTURE_FULL);
	}
}

/* The restored table goes on as the one did that was never captured. `is_first`: no capture has
 * kept a lookup from creating rows, so they have the same rows, too. */
static void
go_on_restored(struct wf_table *restored, struct wf_table *other, uint32_t count, bool is_first)
{
	for (uint32_t i = 0; i < count; i++) {
		operate(restored, &operation[i]);
	}
	compare_values(restored, other);
	if (is_first) {
		read_image(other, &image[0]);
		compare(restored, &image[0]);
	}
}

/* One border. Returns how often the sink was full. */
static uint64_t
one_border(struct wf_table *captured, struct wf_table *other, struct wf_capture *capture,
	   uint32_t *step, bool is_first)
{
	const uint32_t border = *step;
	/* The first copy is complete, and so is one behind a copy that was given up. */
	const uint32_t base = is_first || is_broken ? 0 : last_border;
	uint32_t count = (uint32_t)wf_rng_below(&rng, OPERATIONS + 1);
	empty_sink(is_exact && opts.evict.at_cap);
	read_image(captured, &image[0]);
	must(wf_capture_begin(capture, base));
	for (uint32_t i = 0; i < count; i++) {
		draw_operation(&operation[i], draw_kind(), step);
	}
	go_on(captured, other, capture, count);
	finish(capture);
	if (is_exact) {
		compare_values(captured, other);
	}
	struct wf_table *restored = restore(base, border);
	compare(restored, &image[0]);
	check(wf_capture_rows(capture) == image[0].row_count);
	/* Expired rows show nowhere else. */
	check(wf_stats_get(wf_table_stats(restored), WF_TABLE_ROWS_LIVE) == image[0].row_count);
	gone_count += count_gone();
	if (!opts.evict.at_cap) { /* which rows go there depends on where they lie */
		go_on_restored(restored, other, count, is_first);
	}
	wf_table_destroy(restored);
	return sink.refused;
}

/* What the runs have come to. */
struct seen {
	uint64_t refused, at_cap, by_age, by_score;
};

static void
note(struct seen *seen, const struct wf_table *table)
{
	seen->at_cap += wf_stats_get(wf_table_stats(table), WF_TABLE_EVICTED_AT_CAP);
	seen->by_age += wf_stats_get(wf_table_stats(table), WF_TABLE_EVICTED_BY_AGE);
	seen->by_score += wf_stats_get(wf_table_stats(table), WF_TABLE_EVICTED_BY_SCORE);
}

static void
one_run(struct seen *seen)
{
	uint32_t step = 0;
	wf_rng_init(&rng, seed, run_number);
	draw_settings();
	draw_keys();
	is_exact = !opts.evict.at_cap || wf_rng_below(&rng, 2) == 0;
	struct wf_table *captured = open_table();
	struct wf_table *other = open_table();
	const struct wf_capture_opts set = {
		.table = captured,
		.sink = &sink.base,
		.block_bytes = wf_rng_below(&rng, 4000),
		.evicted_bytes_max = wf_rng_below(&rng, 50000),
		.has_deltas = true,
	};
	struct wf_capture *capture = NULL;
	must(wf_capture_create(&set, &capture));
	for (unsigned border = 0; border < BORDERS; border++) {
		for (uint64_t n = 1 + wf_rng_below(&rng, STEPS_BEFORE); n > 0; n--) {
			/* A border comes at once after a step. */
			draw_operation(&operation[0], n == 1 ? PUSH : draw_kind(), &step);
			operate(captured, &operation[0]);
			operate(other, &operation[0]);
		}
		if (wf_rng_below(&rng, 3) == 0) { /* one that is given up */
			empty_sink(false);
			must(wf_capture_begin(capture, border == 0 ? 0 : last_border));
			(void)wf_capture_copy_some(capture, wf_rng_below(&rng, 3000));
			wf_capture_end(capture);
			check(border == 0 ||
			      wf_capture_begin(capture, last_border) == WEFT_UNAVAILABLE);
			is_broken = true;
		}
		seen->refused += one_border(captured, other, capture, &step, border == 0);
		is_broken = false;
	}
	note(seen, captured);
	wf_capture_destroy(capture);
	wf_table_destroy(captured);
	wf_table_destroy(other);
}

static void
a_capture_is_the_table_at_its_border(void **state)
{
	const uint64_t runs = getenv("WEFT_LONG") != NULL ? RUNS_LONG : RUNS;
	struct seen seen = {0};
	(void)state;
	print_message("WEFT_SEED=%" PRIu64 "\n", seed);
	for (run_number = 0; run_number < runs; run_number++) {
		one_run(&seen);
	}
	check(seen.refused > runs && seen.at_cap > runs && seen.by_age > runs &&
	      seen.by_score > runs && gone_count > runs);
}

/* ---- one by one ---- */

static void
set_plain(void)
{
	opts = (struct wf_table_opts){
		.dim = 4,
		.entries_max = 100,
		.partition_count = WF_PARTITION_COUNT,
		.row = wf_row_defaults(),
		.init = {.kind = WF_INIT_ZERO},
		.admit = {.probability = 1.0},
	};
	opts.row.set.learning_rate = 0.1;
}

static void
one_that_cannot_be_restored_is_refused(void **state)
{
	struct wf_table *table = NULL;
	struct wf_capture *capture = NULL;
	(void)state;
	set_plain();
	opts.row.set.l2 = 0.01;
	opts.row.set.dense_equivalent = true;
	opts.row.schedule = WF_SCHEDULE_POLY;
	opts.row.set.schedule_a = 0.1;
	opts.row.set.schedule_b = 0.5;
	table = open_table();
	const struct wf_capture_opts set = {.table = table, .sink = &sink.base};
	assert_int_equal(wf_capture_create(&set, &capture), WEFT_UNSUPPORTED);
	assert_non_null(strstr(weft_last_error(), "schedule"));
	assert_int_equal(wf_table_set_step(table, 1), WEFT_UNSUPPORTED); /* for the same reason */
	wf_table_destroy(table);
}

/* No memory, at any place: nothing is lost, and the table goes on. */
static void
a_capture_without_memory_does_not_begin(void **state)
{
	struct wf_env *real = env;
	struct wf_failing_env failing;
	(void)state;
	set_plain();
	wf_failing_env_init(&failing, real);
	env = &failing.env;
	wf_failing_env_fail(&failing, 0, false);
	struct wf_table *table = open_table();
	enum weft_status st = WEFT_NOMEM;
	for (uint64_t at = 1; st == WEFT_NOMEM && at < 10; at++) {
		struct wf_capture *capture = NULL;
		const struct wf_capture_opts set = {.table = table, .sink = &sink.base};
		const uint64_t key = at;
		float out[4];
		const struct wf_table_lookup lookup = {
			.key = &key, .count = 1, .out = out, .create = true};
		wf_failing_env_fail(&failing, 0, false);
		must(wf_table_lookup(table, &lookup));
		wf_failing_env_fail(&failing, at, false);
		st = wf_capture_create(&set, &capture);
		st = st == WEFT_OK ? wf_capture_begin(capture, 0) : st;
		assert_true(st == WEFT_OK || st == WEFT_NOMEM);
		assert_true(capture == NULL || wf_capture_is_on(capture) == (st == WEFT_OK));
		wf_capture_destroy(capture);
		assert_int_equal(at > 3, st == WEFT_OK); /* struct, rows, bits */
	}
	wf_table_destroy(table);
	assert_true(wf_failing_env_is_clean(&failing));
	env = real;
}

static void
push_key(struct wf_table *table, uint64_t key, uint32_t step)
{
	const float grad[4] = {1.0f};
	const struct wf_table_batch batch = {.key = &key, .grad = grad, .count = 1};
	must(wf_table_push(table, &(struct wf_table_push){.step = step,
							  .rate = 0.1,
							  .divisor = 1.0f,
							  .batch = &batch,
							  .batch_count = 1}));
}

/* A delta without the keys of all rows that are gone would bring some of them back. */
static void
a_list_of_gone_rows_without_memory_needs_a_complete_copy(void **state)
{
	struct wf_env *real = env;
	struct wf_failing_env failing;
	struct wf_capture *capture = NULL;
	(void)state;
	set_plain();
	opts.evict.age_steps = 1;
	wf_failing_env_init(&failing, real);
	env = &failing.env;
	struct wf_table *table = open_table();
	const struct wf_capture_opts set = {.table = table, .sink = &sink.base, .has_deltas = true};
	push_key(table, 1, 1);
	must(wf_capture_create(&set, &capture));
	assert_int_equal(wf_capture_begin(capture, 1), WEFT_UNAVAILABLE); /* there was none */
	empty_sink(true);
	must(wf_capture_begin(capture, 0));
	finish(capture);
	push_key(table, 2, 5);
	wf_failing_env_fail(&failing, 1, false);
	wf_table_tend(table, 10);
	wf_failing_env_fail(&failing, 0, false);
	assert_int_equal(wf_capture_begin(capture, 1), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "more rows are gone since step 1"));
	must(wf_capture_begin(capture, 0));
	finish(capture);
	push_key(table, 3, 9);
	wf_table_tend(table, 10);
	empty_sink(true);
	must(wf_capture_begin(capture, 5)); /* all is well again */
	finish(capture);
	assert_int_equal(count_gone(), 1);
	wf_capture_destroy(capture);
	wf_table_destroy(table);
	assert_true(wf_failing_env_is_clean(&failing));
	env = real;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capture_is_the_table_at_its_border),
		cmocka_unit_test(one_that_cannot_be_restored_is_refused),
		cmocka_unit_test(a_capture_without_memory_does_not_begin),
		cmocka_unit_test(a_list_of_gone_rows_without_memory_needs_a_complete_copy),
	};
	const char *given = getenv("WEFT_SEED");
	seed = given == NULL ? 20261128 : strtoull(given, NULL, 0);
	if (wf_env_system_create(WF_LOG_WARN, -1, &env) != WEFT_OK) {
		return EXIT_FAILURE;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
