/* SPDX-License-Identifier: Apache-2.0 */
/* A batch is what sorting and searching from end to end would make of the keys, and what it sends
 * brings every lane's table what one table with all keys would have got: messages are encoded and
 * decoded on the way, bytes and all. WEFT_SEED chooses other runs, WEFT_LONG more of them. Thread:
 * one. */
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
#include "kernels/half.h"
#include "sparse/client/batch.h"
#include "sparse/table/table.h"
#include "wire/partition.h"
#include "wire/sparse_messages.h"

#define RUNS 400u
#define RUNS_LONG 20000u
#define MAX_KEYS 700u
#define MAX_DIM 20u
#define MAX_LANES 9u
#define SEND_BYTES (MAX_KEYS * (MAX_DIM * 4 + 16 + WF_BATCH_ALIGN))

struct run {
	struct wf_rng rng;
	struct wf_batch_opts opts;
	struct wf_batch *batch;
	struct wf_batch_view view;
	uint32_t count;
	uint64_t key[MAX_KEYS];
	float grad[MAX_KEYS * MAX_DIM];
	float show[MAX_KEYS], click[MAX_KEYS];
};

static struct run run;
static _Alignas(WF_BATCH_ALIGN) uint8_t send[SEND_BYTES];
static struct wf_env *env;
static uint64_t seed;

static void
draw_opts(void)
{
	struct wf_batch_opts *o = &run.opts;

	*o = (struct wf_batch_opts){
		.dim = 1 + (uint32_t)wf_rng_below(&run.rng, MAX_DIM),
		.lane_count = 1 + (uint32_t)wf_rng_below(&run.rng, MAX_LANES),
		.keys_max = MAX_KEYS,
		.has_scores = wf_rng_below(&run.rng, 2) == 0,
		.may_delta = wf_rng_below(&run.rng, 2) == 0,
		.format =
			(enum weft_value_format)(wf_rng_below(&run.rng, 4) % WF_VALUE_FORMAT_COUNT),
		.kernels = wf_rng_below(&run.rng, 2) == 0 ? wf_kernels_ref() : NULL,
	};
	if (wf_rng_below(&run.rng, 2) == 0) {
		o->vocabulary = 1 + wf_rng_below(&run.rng, 5000);
	}
	/* Slots of 1 row to all of them. */
	uint64_t row = o->dim * wf_value_bytes(o->format) + (o->has_scores ? 8 : 0) + WF_KEY_BYTES;
	o->part_bytes_max = row * (1 + wf_rng_below(&run.rng, 1ull << wf_rng_below(&run.rng, 11)));
}

/* As a client that sorts its own keys gives them, now and then with a mistake. */
static void
make_ascend(void)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < run.count; i++) {
		run.key[i] = at;
		at += wf_rng_below(&run.rng, 500) == 0 ? 0 : 1 + wf_rng_below(&run.rng, 7);
	}
}

/* Keys that repeat now and then: small ones, alike in high or low bits, or of all 64. */
static void
draw_keys(void)
{
	uint64_t range = 1 + wf_rng_below(&run.rng, 3 * MAX_KEYS);
	unsigned shift = (unsigned)wf_rng_below(&run.rng, 64);
	bool mix = wf_rng_below(&run.rng, 2) == 0;

	run.count = (uint32_t)wf_rng_below(&run.rng, MAX_KEYS + 1);
	for (uint32_t i = 0; i < run.count; i++) {
		uint64_t key = wf_rng_below(&run.rng, range);
		key = mix ? wf_key_mix(key) : key << shift;
		run.key[i] = key;
		run.show[i] = (float)wf_rng_below(&run.rng, 10);
		run.click[i] = (float)wf_rng_f64(&run.rng);
	}
	if (wf_rng_below(&run.rng, 4) == 0) {
		make_ascend();
	}
	for (uint32_t i = 0; i < run.count && run.opts.vocabulary > 0; i++) {
		run.key[i] %= run.opts.vocabulary;
	}
	for (uint32_t i = 0; i < run.count * run.opts.dim; i++) {
		run.grad[i] = (float)(wf_rng_f64(&run.rng) - 0.5);
	}
}

static uint32_t
lane_of(uint64_t key)
{
	uint32_t partition =
		run.opts.vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
	for (uint32_t lane = 0;; lane++) {
		if (partition < wf_partition_first(lane + 1, run.opts.lane_count)) {
			return lane;
		}
	}
}

static int
compare_keys(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	uint32_t lane_x = lane_of(x);
	uint32_t lane_y = lane_of(y);

	if (lane_x != lane_y) {
		return lane_x < lane_y ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

static void
check_rows(void)
{
	static uint64_t sorted[MAX_KEYS];
	uint32_t distinct = 0;

	memcpy(sorted, run.key, run.count * sizeof(sorted[0]));
	qsort(sorted, run.count, sizeof(sorted[0]), compare_keys);
	for (uint32_t i = 0; i < run.count; i++) {
		if (distinct == 0 || sorted[distinct - 1] != sorted[i]) {
			sorted[distinct++] = sorted[i];
		}
	}
	assert_int_equal(run.view.row_count, distinct);
	assert_int_equal(run.view.key_count, run.count);
	assert_memory_equal(run.view.key, sorted, distinct * sizeof(sorted[0]));
	bool straight = distinct == run.count;
	for (uint32_t i = 0; i < run.count; i++) {
		assert_true(run.view.place[i] < distinct);
		assert_true(sorted[run.view.place[i]] == run.key[i]);
		straight = straight && run.view.place[i] == i;
	}
	assert_true(run.view.is_straight == straight);
	assert_int_equal(run.view.lane_first[0], 0);
	assert_int_equal(run.view.lane_first[run.opts.lane_count], distinct);
	for (uint32_t lane = 0; lane < run.opts.lane_count; lane++) {
		for (uint32_t r = run.view.lane_first[lane]; r < run.view.lane_first[lane + 1];
		     r++) {
			assert_int_equal(lane_of(sorted[r]), lane);
		}
	}
}

/* A value as it travels, by half.h's definition. */
static void
assert_sent(const uint8_t *at, float value)
{
	if (run.opts.format == WEFT_VALUES_F32) {
		assert_memory_equal(at, &value, sizeof(value));
		return;
	}
	uint16_t half = run.opts.format == WEFT_VALUES_BF16 ? wf_bf16_of(value) : wf_f16_of(value);
	assert_memory_equal(at, &half, sizeof(half));
}

/* Sum by looking at every one of the caller's keys, for each row and column. */
static void
check_sums(const struct wf_batch_part *part)
{
	uint32_t dim = run.opts.dim;

	for (uint32_t i = 0; i < part->row_count; i++) {
		float sum[MAX_DIM + 2] = {0};
		bool any = false;
		for (uint32_t n = 0; n < run.count; n++) {
			if (run.key[n] != run.view.key[part->first + i]) {
				continue;
			}
			for (uint32_t c = 0; c < dim; c++) {
				float grad = run.grad[n * dim + c];
				sum[c] = any ? sum[c] + grad : grad;
			}
			sum[dim] = any ? sum[dim] + run.show[n] : run.show[n];
			sum[dim + 1] = any ? sum[dim + 1] + run.click[n] : run.click[n];
			any = true;
		}
		assert_true(any);
		const uint8_t *at = send + part->at;
		size_t value = wf_value_bytes(run.opts.format);
		const uint8_t *scores = at + part->row_count * dim * value;
		for (uint32_t c = 0; c < dim; c++) {
			assert_sent(at + (i * dim + c) * value, sum[c]);
		}
		if (run.opts.has_scores) {
			assert_memory_equal(scores + i * 4, &sum[dim], 4);
			assert_memory_equal(scores + (part->row_count + i) * 4, &sum[dim + 1], 4);
		}
	}
}

static void
check_parts(void)
{
	size_t end = 0;

	for (uint32_t lane = 0; lane < run.opts.lane_count; lane++) {
		uint32_t row = run.view.lane_first[lane];
		for (uint32_t p = run.view.lane_part[lane]; p < run.view.lane_part[lane + 1]; p++) {
			const struct wf_batch_part *part = &run.view.part[p];
			assert_int_equal(part->first, row);
			assert_true(part->row_count >= 1);
			assert_true(part->at % WF_BATCH_ALIGN == 0 && part->at >= end);
			end = part->key_at + part->key_bytes;
			assert_true(end - part->at <= run.opts.part_bytes_max);
			assert_true(end <= wf_batch_send_bytes(run.batch));
			check_sums(part);
			row += part->row_count;
		}
		assert_int_equal(row, run.view.lane_first[lane + 1]);
	}
}

/* The parts of a lane as messages, there and back; `from` is moved behind what fits one. */
static uint32_t
say_parts(uint32_t lane, uint32_t *from, struct wf_sparse_part *heard)
{
	static struct wf_sparse_pull pull, pull_heard;
	static struct wf_sparse_push push, push_heard;
	static struct wf_msg msg;
	uint32_t end = run.view.lane_part[lane + 1];
	uint32_t count = end - *from < WF_SPARSE_PARTS_MAX ? end - *from : WF_SPARSE_PARTS_MAX;

	pull = (struct wf_sparse_pull){.request_id = 1, .part_count = count};
	push = (struct wf_sparse_push){.step = 1, .samples = 1, .part_count = count};
	for (uint32_t i = 0; i < count; i++) {
		const struct wf_batch_part *part = &run.view.part[*from + i];
		push.part[i] = (struct wf_sparse_part){
			.coding = (uint8_t)part->coding,
			.row_count = part->row_count,
			.key_bytes = part->key_bytes,
		};
		pull.part[i] = push.part[i];
		pull.part[i].offset = part->first * run.opts.dim * sizeof(float);
	}
	*from += count;
	wf_sparse_push_encode(&push, &msg);
	assert_int_equal(wf_sparse_push_decode(&msg.head, msg.body, &push_heard), WEFT_OK);
	wf_sparse_pull_encode(&pull, &msg);
	assert_int_equal(wf_sparse_pull_decode(&msg.head, msg.body, &pull_heard), WEFT_OK);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(push_heard.part[i].row_count, pull_heard.part[i].row_count);
		assert_int_equal(push_heard.part[i].key_bytes, pull_heard.part[i].key_bytes);
	}
	memcpy(heard, pull_heard.part, count * sizeof(heard[0]));
	return count;
}

static struct wf_table *
make_table(uint32_t lane, uint32_t lane_count)
{
	uint32_t first = wf_partition_first(lane, lane_count);
	struct wf_table_opts opts = {
		.dim = run.opts.dim,
		.vocabulary = run.opts.vocabulary,
		.partition_first = first,
		.partition_count = wf_partition_first(lane + 1, lane_count) - first,
		.entries_max = MAX_KEYS,
		.index_seed = 5,
		.kernels = run.opts.kernels,
		.row = wf_row_defaults(),
		.init = {.kind = WF_INIT_UNIFORM, .a = -1.0, .b = 1.0, .seed = 3},
		.admit = {.probability = 1.0},
	};
	struct wf_table *table = NULL;

	opts.row.kind = WF_ROW_ADAGRAD;
	opts.row.set.learning_rate = 0.1;
	if (wf_table_create(env, &opts, &table) != WEFT_OK) {
		fail_msg("table: %s", weft_last_error());
	}
	return table;
}

static void
push_batches(struct wf_table *table, const struct wf_table_batch *batch, size_t count)
{
	struct wf_table_push push = {
		.step = 1, .rate = 0.1, .divisor = 1.0f, .batch = batch, .batch_count = count};
	if (wf_table_push(table, &push) != WEFT_OK) {
		fail_msg("push: %s", weft_last_error());
	}
}

/* What a lane does: keys out of the bytes, the rows of the push where they lie, one batch a part.
 */
static void
serve_lane(struct wf_table *table, uint32_t lane, float *rows)
{
	static uint64_t key[MAX_KEYS];
	static struct wf_table_batch batch[MAX_KEYS];
	static struct wf_sparse_part heard[WF_SPARSE_PARTS_MAX];
	uint32_t batches = 0;
	uint32_t keys = 0;

	for (uint32_t from = run.view.lane_part[lane]; from < run.view.lane_part[lane + 1];) {
		const struct wf_batch_part *part = &run.view.part[from];
		uint32_t count = say_parts(lane, &from, heard);
		for (uint32_t i = 0; i < count; i++, part++) {
			struct wf_keys_in in = {
				.coding = (enum wf_key_coding)heard[i].coding,
				.at = send + part->key_at,
				.bytes = heard[i].key_bytes,
				.count = heard[i].row_count,
			};
			assert_int_equal(wf_keys_decode(&in, key + keys), WEFT_OK);
			batch[batches++] = (struct wf_table_batch){
				.key = key + keys,
				.grad = (const float *)(send + part->at),
				.count = heard[i].row_count,
			};
			keys += heard[i].row_count;
		}
	}
	push_batches(table, batch, batches);
	struct wf_table_lookup lookup = {
		.key = key, .count = keys, .out = rows + run.view.lane_first[lane] * run.opts.dim};
	assert_int_equal(wf_table_lookup(table, &lookup), WEFT_OK);
}

static void
check_against_one_table(void)
{
	static float rows[MAX_KEYS * MAX_DIM], expected[MAX_KEYS * MAX_DIM];
	uint32_t dim = run.opts.dim;

	for (uint32_t lane = 0; lane < run.opts.lane_count; lane++) {
		struct wf_table *table = make_table(lane, run.opts.lane_count);
		serve_lane(table, lane, rows);
		wf_table_destroy(table);
	}
	/* One table that is given the caller's keys and gradients as they are. */
	struct wf_table *one = make_table(0, 1);
	struct wf_table_batch batch = {.key = run.key, .grad = run.grad, .count = run.count};
	push_batches(one, &batch, 1);
	struct wf_table_lookup lookup = {.key = run.key, .count = run.count, .out = expected};
	assert_int_equal(wf_table_lookup(one, &lookup), WEFT_OK);
	wf_table_destroy(one);
	for (uint32_t i = 0; i < run.count; i++) {
		assert_memory_equal(rows + run.view.place[i] * dim, expected + i * dim,
				    dim * sizeof(float));
	}
}

static void
one_batch(void)
{
	draw_keys();
	assert_int_equal(wf_batch_fill(run.batch, run.key, run.count), WEFT_OK);
	wf_batch_view(run.batch, &run.view);
	check_rows();
	assert_true(wf_batch_send_bytes(run.batch) <= SEND_BYTES);
	struct wf_batch_grads grads = {.grad = run.grad, .show = run.show, .click = run.click};
	wf_batch_put_keys(run.batch, send);
	wf_batch_put_grads(run.batch, &grads, send);
	check_parts();
	if (run.opts.format == WEFT_VALUES_F32) { /* else sums are rounded, which check_parts saw */
		check_against_one_table();
	}
}

static void
a_batch_does_what_sorting_and_searching_would_do(void **state)
{
	unsigned runs = getenv("WEFT_LONG") != NULL ? RUNS_LONG : RUNS;

	print_message("WEFT_SEED=%" PRIu64 "\n", seed);
	for (unsigned i = 0; i < runs; i++) {
		wf_rng_init(&run.rng, seed, i);
		draw_opts();
		if (wf_batch_create(env, &run.opts, &run.batch) != WEFT_OK) {
			fail_msg("run %u: %s", i, weft_last_error());
		}
		for (unsigned n = 0; n < 3; n++) { /* the same one again: nothing stays behind */
			one_batch();
		}
		wf_batch_destroy(run.batch);
	}
}

static void
order_of_keys_changes_place_only(void **state)
{
	static uint64_t before[MAX_KEYS], shuffled[MAX_KEYS];
	static uint32_t order[MAX_KEYS];

	for (unsigned i = 0; i < 100; i++) {
		wf_rng_init(&run.rng, seed, 1000000 + i);
		draw_opts();
		draw_keys();
		assert_int_equal(wf_batch_create(env, &run.opts, &run.batch), WEFT_OK);
		assert_int_equal(wf_batch_fill(run.batch, run.key, run.count), WEFT_OK);
		wf_batch_view(run.batch, &run.view);
		uint32_t rows = run.view.row_count;
		memcpy(before, run.view.key, rows * sizeof(before[0]));
		for (uint32_t n = 0; n < run.count; n++) {
			order[n] = n;
		}
		wf_rng_shuffle(&run.rng, order, run.count);
		for (uint32_t n = 0; n < run.count; n++) {
			shuffled[n] = run.key[order[n]];
		}
		assert_int_equal(wf_batch_fill(run.batch, shuffled, run.count), WEFT_OK);
		wf_batch_view(run.batch, &run.view);
		assert_int_equal(run.view.row_count, rows);
		assert_memory_equal(run.view.key, before, rows * sizeof(before[0]));
		wf_batch_destroy(run.batch);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_does_what_sorting_and_searching_would_do),
		cmocka_unit_test(order_of_keys_changes_place_only),
	};
	const char *given = getenv("WEFT_SEED");

	seed = given != NULL ? strtoull(given, NULL, 0) : 1;
	enum weft_status st = wf_env_system_create(WF_LOG_ERROR, 2, &env);
	WF_ASSERT(st == WEFT_OK);
	int failed = cmocka_run_group_tests_name("batch model", tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
