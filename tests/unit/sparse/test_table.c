/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups and pushes of a table, edge keys, and all that it refuses. Thread: one. */
#include "tests/unit/sparse/bed.h"

#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/partition.h"

static struct wf_env *env;

static int
open_env(void **state)
{
	return wf_env_system_create(WF_LOG_WARN, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
close_env(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static void
expect_said(const char *text)
{
	if (strstr(weft_last_error(), text) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", weft_last_error(), text);
	}
}

/* Who set the cap reads what is too small; who set none reads no cap. */
static void
a_table_that_has_no_room_to_begin_says_what_is_too_small(void **state)
{
	static const uint64_t caps[] = {1, 10 << 10, 20 << 10};
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = NULL;
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(caps); i++) {
		char cap[64];
		opts.memory_cap_bytes = caps[i];
		(void)snprintf(cap, sizeof(cap), "a memory cap of %d bytes", (int)caps[i]);
		assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
		expect_said(cap);
		expect_said("raise the cap, or make batches smaller");
		assert_null(table);
	}
}

static const uint64_t edge_keys[] = {0, UINT64_MAX, 1, (uint64_t)1 << 63, UINT32_MAX};
#define EDGES WF_ARRAY_COUNT(edge_keys)

static void
every_key_has_its_first_values(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	float seen[EDGES][4];
	float again[EDGES][4];
	float want[4];

	assert_int_equal(bed_look(table, edge_keys, EDGES, seen[0], false), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 0);
	assert_int_equal(bed_look(table, edge_keys, EDGES, again[0], true), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), EDGES);
	assert_memory_equal(seen, again, sizeof(seen));
	for (size_t i = 0; i < EDGES; i++) {
		wf_init_values(&opts.init, edge_keys[i], want, 4);
		assert_memory_equal(seen[i], want, sizeof(want));
	}
	assert_int_equal(bed_stat(table, WF_TABLE_KEYS_MISSED), 2 * EDGES);
	wf_table_destroy(table);
}

/* Whatever the length, and wherever a key stands that has no row, or none yet, past the caches or
 * not: values as of lookups of single keys, and as many rows as there are keys. */
static void
long_lookups_give_what_single_ones_do(void **state)
{
	enum { KNOWN = 5000, MOST = 300, DIM = 16 };
	static const size_t lengths[] = {1,  7,  8,  15, 16, 17,  31,  32,  33,  47,
					 63, 64, 65, 80, 96, 127, 128, 129, 200, MOST};
	struct wf_table_opts opts = bed_opts();
	opts.dim = DIM; /* a line of cache */
	struct wf_table *table = bed_table(env, &opts);
	uint64_t key[MOST];
	alignas(64) static float out[MOST][DIM];
	uint64_t live = KNOWN;
	uint64_t unknown = 1u << 20;

	for (uint64_t k = 0; k < KNOWN; k++) {
		assert_int_equal(bed_look(table, &k, 1, out[0], true), WEFT_OK);
	}
	for (size_t l = 0; l < WF_ARRAY_COUNT(lengths); l++) {
		const size_t count = lengths[l];
		/* At `hole`, and once more behind it, stands a key without a row; then none does.
		 */
		for (size_t hole = 0; hole <= count; hole += 1 + count / 13) {
			const bool create = (l + hole) % 2 == 0;
			for (size_t i = 0; i < count; i++) {
				bool is_new = i == hole || i == hole + 5;
				key[i] = is_new ? unknown : (i * 7919 + l * 31 + hole) % KNOWN;
			}
			live += create && hole < count ? 1 : 0;
			const struct wf_table_lookup lookup = {.key = key,
							       .count = count,
							       .out = out[0],
							       .create = create,
							       .past = hole % 3 != 0};
			assert_int_equal(wf_table_lookup(table, &lookup), WEFT_OK);
			assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), live);
			unknown++;
			for (size_t i = 0; i < count; i++) {
				float want[DIM];
				wf_init_values(&opts.init, key[i], want, DIM);
				assert_memory_equal(out[i], want, sizeof(want));
			}
		}
	}
	wf_table_destroy(table);
}

static void
a_key_may_stand_twice_in_a_lookup(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	uint64_t key[200];
	static float out[200][4];

	for (size_t i = 0; i < 200; i++) {
		key[i] = i % 7;
	}
	assert_int_equal(bed_look(table, key, 200, out[0], true), WEFT_OK);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_BORN), 7);
	for (size_t i = 7; i < 200; i++) {
		assert_memory_equal(out[i], out[i % 7], sizeof(out[0]));
	}
	wf_table_destroy(table);
}

static void
a_push_moves_rows_and_only_those(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	float before[EDGES][4];
	float after[EDGES][4];
	const float grad[2][4] = {{1, 2, 3, 4}, {0.5, 0, 0, 0}};

	assert_int_equal(bed_look(table, edge_keys, EDGES, before[0], true), WEFT_OK);
	assert_int_equal(bed_push(table, 1, edge_keys, 2, grad[0]), WEFT_OK);
	assert_int_equal(bed_look(table, edge_keys, EDGES, after[0], true), WEFT_OK);
	for (size_t i = 0; i < 4; i++) {
		assert_true(after[0][i] == before[0][i] - grad[0][i]);
		assert_true(after[1][i] == before[1][i] - grad[1][i]);
	}
	assert_memory_equal(after[2], before[2], 3 * sizeof(before[0]));
	wf_table_destroy(table);
}

static void
a_push_to_a_key_nobody_looked_up_starts_from_its_first_values(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	const uint64_t key = 42;
	const float grad[4] = {1, 1, 1, 1};
	float want[4];
	float out[4];

	wf_init_values(&opts.init, key, want, 4);
	assert_int_equal(bed_push(table, 1, &key, 1, grad), WEFT_OK);
	assert_int_equal(bed_look(table, &key, 1, out, false), WEFT_OK);
	for (size_t i = 0; i < 4; i++) {
		assert_true(out[i] == want[i] - 1.0f);
	}
	wf_table_destroy(table);
}

/* Three trainers whose gradients give another sum in another order. */
static void
gradients_are_summed_in_trainer_order_and_applied_once(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.init.kind = WF_INIT_ZERO;
	opts.row.kind = WF_ROW_ADAGRAD;
	opts.row.set.epsilon = 1e-30;
	struct wf_table *table = bed_table(env, &opts);
	const uint64_t keys[3][2] = {{5, 9}, {9, 5}, {5, 5}};
	const float big[4] = {0x1p25f, 0x1p25f, 0x1p25f, 0x1p25f};
	float grad[3][2][4];
	struct wf_table_batch batch[3];

	for (size_t b = 0; b < 3; b++) {
		batch[b] = (struct wf_table_batch){.key = keys[b], .grad = grad[b][0], .count = 2};
	}
	for (size_t i = 0; i < 4; i++) {
		/* Key 5: 2^25, then 1 (lost), then -2^25 and 3. Key 9: 1, 1. */
		grad[0][0][i] = big[i];
		grad[0][1][i] = 1.0f;
		grad[1][0][i] = 1.0f;
		grad[1][1][i] = 1.0f;
		grad[2][0][i] = -big[i];
		grad[2][1][i] = 3.0f;
	}
	struct wf_table_push push = {
		.step = 1, .rate = 1.0, .divisor = 1.0f, .batch = batch, .batch_count = 3};
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	uint64_t cursor = 0;
	struct wf_table_row row;
	while (wf_table_next(table, &cursor, &row)) {
		float sum = row.key == 5 ? 3.0f : 2.0f;
		assert_true(row.floats[0] == -1.0f);     /* one step of AdaGrad */
		assert_true(row.floats[4] == sum * sum); /* one square */
		assert_int_equal(row.stamp, 1);
	}
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_UPDATED), 2);
	assert_int_equal(bed_stat(table, WF_TABLE_KEYS_PUSHED), 6);
	wf_table_destroy(table);
}

/* Parts of a trainer's keys, some of them empty; `each` keys in each. */
static size_t
cut_in_parts(const struct wf_table_batch *whole, size_t each, struct wf_table_batch *out)
{
	size_t parts = 0;
	for (size_t at = 0; at < whole->count; at += each) {
		size_t left = whole->count - at;
		out[parts++] = (struct wf_table_batch){.key = whole->key + at,
						       .grad = whole->grad + 4 * at,
						       .count = left < each ? left : each};
		out[parts] = out[parts - 1];
		out[parts++].count = 0;
	}
	return parts;
}

/* Parts of a trainer follow each other; how many there are changes no bit. */
static void
a_push_in_parts_is_that_push_in_one_piece(void **state)
{
	enum { TRAINERS = 3, KEYS = 300 };
	static const size_t each[] = {1, 7, 64, 100, 299};
	struct wf_table_opts opts = bed_opts();
	static uint64_t key[TRAINERS][KEYS];
	static float grad[TRAINERS][KEYS][4];
	static float out[2][KEYS * TRAINERS][4];
	static struct wf_table_batch part[TRAINERS * 2 * KEYS];
	struct wf_table_batch whole[TRAINERS];

	opts.row.kind = WF_ROW_ADAGRAD;
	for (size_t t = 0; t < TRAINERS; t++) {
		for (size_t i = 0; i < KEYS; i++) {
			/* Some meet; of the last trainer, keys stand twice, within a part and not.
			 */
			key[t][i] = t == 2 ? i / 2 * 5 : i * (t + 2);
			grad[t][i][0] = (float)(i + 1) / (float)(7 + t);
		}
		whole[t] =
			(struct wf_table_batch){.key = key[t], .grad = grad[t][0], .count = KEYS};
	}
	for (size_t n = 0; n < 2 * WF_ARRAY_COUNT(each); n++) {
		struct wf_table *one = bed_table(env, &opts);
		struct wf_table *two = bed_table(env, &opts);
		const size_t trainers = n % 2 == 0 ? TRAINERS : 1;
		size_t parts = 0;
		for (size_t t = 0; t < trainers; t++) {
			parts += cut_in_parts(&whole[t], each[n / 2], &part[parts]);
		}
		struct wf_table_push push = {.step = 1,
					     .rate = 1.0,
					     .divisor = 1.0f,
					     .batch = whole,
					     .batch_count = trainers};
		for (push.step = 1; push.step <= 2; push.step++) {
			assert_int_equal(wf_table_push(one, &push), WEFT_OK);
			struct wf_table_push cut = push;
			cut.batch = part;
			cut.batch_count = parts;
			assert_int_equal(wf_table_push(two, &cut), WEFT_OK);
		}
		assert_int_equal(bed_stat(one, WF_TABLE_ROWS_LIVE),
				 bed_stat(two, WF_TABLE_ROWS_LIVE));
		assert_int_equal(bed_stat(two, WF_TABLE_ROWS_UPDATED),
				 bed_stat(one, WF_TABLE_ROWS_UPDATED));
		assert_int_equal(bed_look(one, key[0], TRAINERS * KEYS, out[0][0], false), WEFT_OK);
		assert_int_equal(bed_look(two, key[0], TRAINERS * KEYS, out[1][0], false), WEFT_OK);
		assert_memory_equal(out[0], out[1], sizeof(out[0]));
		wf_table_destroy(one);
		wf_table_destroy(two);
	}
}

static void
empty_batches_are_steps_too(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	struct wf_table_batch batch[2] = {{0}};
	struct wf_table_push push = {
		.step = 3, .rate = 1.0, .divisor = 1.0f, .batch = batch, .batch_count = 2};

	assert_int_equal(bed_look(table, NULL, 0, NULL, true), WEFT_OK);
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	push.step = 4;
	push.batch_count = 0;
	push.batch = NULL;
	assert_int_equal(wf_table_push(table, &push), WEFT_OK);
	assert_int_equal(wf_table_step(table), 4);
	wf_table_destroy(table);
}

/* A schedule may end there. */
static void
at_a_rate_of_0_steps_go_on_and_values_stay(void **state)
{
	static const enum wf_row_optimizer kinds[] = {WF_ROW_SGD, WF_ROW_ADAGRAD, WF_ROW_RMSPROP,
						      WF_ROW_ADAM, WF_ROW_FTRL};
	const uint64_t key = 7;
	const float grad[4] = {1, -2, 3, -4};
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		struct wf_table_opts opts = bed_opts();
		struct wf_table_batch batch = {.key = &key, .grad = grad, .count = 1};
		struct wf_table_push push = {
			.step = 1, .rate = 0.0, .divisor = 1.0f, .batch = &batch, .batch_count = 1};
		float before[4];
		float after[4];
		opts.row.kind = kinds[i];
		struct wf_table *table = bed_table(env, &opts);
		bool divides = kinds[i] == WF_ROW_FTRL;
		assert_int_equal(bed_look(table, &key, 1, before, true), WEFT_OK);
		assert_int_equal(wf_table_push(table, &push), divides ? WEFT_INVALID : WEFT_OK);
		if (divides) {
			expect_said("rate 0: ftrl divides by it");
		}
		assert_int_equal(wf_table_step(table), divides ? 0 : 1);
		assert_int_equal(bed_look(table, &key, 1, after, false), WEFT_OK);
		assert_memory_equal(after, before, sizeof(after));
		wf_table_destroy(table);
	}
}

static void
what_is_wrong_with_a_push_is_said_and_nothing_changes(void **state)
{
	struct wf_table_opts opts = bed_opts();
	struct wf_table *table = bed_table(env, &opts);
	static uint64_t key[1001];
	static float grad[1001 * 4];
	struct wf_table_batch batch = {.key = key, .grad = grad, .count = 1};
	struct wf_table_push good = {
		.step = 1, .rate = 1.0, .divisor = 1.0f, .batch = &batch, .batch_count = 1};

	assert_int_equal(wf_table_push(table, &good), WEFT_OK);
	assert_int_equal(wf_table_push(table, &good), WEFT_INVALID);
	expect_said("step 1 after step 1");
	struct wf_table_push bad = good;
	bad.step = WF_TABLE_STEP_MAX + 1;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	bad.step = 2;
	bad.rate = (double)NAN;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	expect_said("rate");
	bad.rate = -1.0;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	bad.rate = 1.0;
	bad.divisor = 0.0f;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	bad.divisor = 1.0f;
	batch.count = 1001;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	expect_said("raise entries_max");
	batch.count = SIZE_MAX;
	assert_int_equal(wf_table_push(table, &bad), WEFT_INVALID);
	assert_int_equal(wf_table_step(table), 1);
	assert_int_equal(bed_stat(table, WF_TABLE_KEYS_PUSHED), 1);
	wf_table_destroy(table);
}

static void
keys_of_another_lane_are_refused(void **state)
{
	struct wf_table_opts opts = bed_opts();
	opts.partition_first = 512;
	opts.partition_count = 512;
	struct wf_table *table = bed_table(env, &opts);
	const float grad[8] = {0};
	float out[8];
	uint64_t key[2] = {0, 0};

	while (wf_partition_of(key[0]) < 512) {
		key[0]++;
	}
	assert_int_equal(bed_look(table, key, 1, out, true), WEFT_OK);
	assert_int_equal(bed_look(table, key, 2, out, true), WEFT_INVALID); /* 0: partition 0 */
	expect_said("belongs to another lane");
	assert_int_equal(bed_push(table, 1, key, 2, grad), WEFT_INVALID);
	assert_int_equal(wf_table_step(table), 0);
	assert_int_equal(bed_stat(table, WF_TABLE_ROWS_LIVE), 1);
	wf_table_destroy(table);
}

static void
another_rate_than_that_of_the_closed_form_is_refused(void **state)
{
	struct wf_table_opts opts = bed_opts();
	const uint64_t key = 1;
	const float grad[4] = {0};
	opts.row.set.learning_rate = 0.5;
	opts.row.set.decay = 0.1;
	opts.row.set.dense_equivalent = true;
	struct wf_table *table = bed_table(env, &opts);
	assert_int_equal(bed_push(table, 1, &key, 1, grad), WEFT_INVALID); /* at rate 1 */
	expect_said("made up for at 0.5");
	wf_table_destroy(table);
	opts.row.set.learning_rate = 1.0;
	opts.row.set.decay = 0.1;
	table = bed_table(env, &opts);
	assert_int_equal(bed_push(table, 1, &key, 1, grad), WEFT_OK);
	wf_table_destroy(table);
}

/* Same calls, same values: what differs is where rows lie. */
static void
a_fixed_vocabulary_is_a_table_too(void **state)
{
	enum { WORDS = 3000, LANES = 3 };
	struct wf_table_opts opts = bed_opts();
	opts.vocabulary = WORDS;
	opts.entries_max = WORDS;
	struct wf_table *lane[LANES];
	uint64_t key[LANES][WORDS];
	size_t count[LANES] = {0};
	static float out[WORDS][4];
	static float grad[WORDS][4];

	for (uint32_t l = 0; l < LANES; l++) {
		opts.partition_first = wf_partition_first(l, LANES);
		opts.partition_count = wf_partition_first(l + 1, LANES) - opts.partition_first;
		lane[l] = bed_table(env, &opts);
	}
	for (uint64_t k = 0; k < WORDS; k++) {
		uint32_t l = wf_partition_lane(wf_partition_of_fixed(k), LANES);
		key[l][count[l]++] = k;
		grad[k][0] = 1.0f;
	}
	for (uint32_t l = 0; l < LANES; l++) {
		assert_int_equal(bed_push(lane[l], 1, key[l], count[l], grad[0]), WEFT_OK);
		assert_int_equal(bed_look(lane[l], key[l], count[l], out[0], true), WEFT_OK);
		for (size_t i = 0; i < count[l]; i++) {
			float want[4];
			wf_init_values(&opts.init, key[l][i], want, 4);
			want[0] -= 1.0f;
			assert_memory_equal(out[i], want, sizeof(want));
		}
		assert_int_equal(bed_stat(lane[l], WF_TABLE_ROWS_LIVE), count[l]);
		const uint64_t outside[] = {WORDS, UINT64_MAX};
		assert_int_equal(bed_look(lane[l], outside, 1, out[0], true), WEFT_INVALID);
		expect_said("outside its vocabulary of 3000");
		assert_int_equal(bed_look(lane[l], outside + 1, 1, out[0], true), WEFT_INVALID);
		const uint64_t *foreign = key[(l + 1) % LANES];
		assert_int_equal(bed_look(lane[l], foreign, 1, out[0], true), WEFT_INVALID);
		wf_table_destroy(lane[l]);
	}
}

static void
settings_that_do_not_go_together_are_refused(void **state)
{
	static const struct {
		const char *said;
		struct wf_table_opts change;
	} cases[] = {
		{"dim 0", {.dim = 0}},
		{"dim 4097", {.dim = 4097}},
		{"entries_max 0", {.dim = 1, .partition_count = 1}},
		{"1025 partitions", {.dim = 1, .partition_count = 1025, .entries_max = 1}},
		{"2 partitions from 1023",
		 {.dim = 1, .partition_first = 1023, .partition_count = 2, .entries_max = 1}},
		{"more than 2^32 rows",
		 {.dim = 1, .partition_count = 1024, .entries_max = 1, .vocabulary = 1ull << 33}},
	};
	struct wf_table *table = NULL;
	for (size_t i = 0; i < WF_ARRAY_COUNT(cases); i++) {
		assert_int_equal(wf_table_create(env, &cases[i].change, &table), WEFT_INVALID);
		expect_said(cases[i].said);
	}
	struct wf_table_opts opts = bed_opts();
	opts.vocabulary = 10;
	opts.evict.age_steps = 10;
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
	expect_said("fixed vocabulary");
	opts = bed_opts();
	opts.evict.at_cap = true;
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
	expect_said("evict_at_cap needs memory_cap_bytes");
	opts = bed_opts();
	opts.admit.probability = 0.0;
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
	expect_said("probability 0");
	opts.admit = (struct wf_admit_opts){.count = 70000, .probability = 1.0};
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
	opts.admit = (struct wf_admit_opts){.slot_count = 1000, .probability = 1.0};
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_INVALID);
	expect_said("power of 2");
	opts = bed_opts();
	opts.row.kind = WF_ROW_FTRL;
	opts.row.set.dense_equivalent = true;
	assert_int_equal(wf_table_create(env, &opts, &table), WEFT_UNSUPPORTED);
	expect_said("initialiser zero");
	assert_null(table);
}

static void
the_longest_rows_fit_with_any_optimizer(void **state)
{
	static float out[WF_ROW_DIM_MAX];
	static float grad[WF_ROW_DIM_MAX];
	const uint64_t key = 3;

	for (unsigned kind = 0; kind < WF_ROW_OPTIMIZER_COUNT; kind++) {
		struct wf_table_opts opts = bed_opts();
		opts.dim = WF_ROW_DIM_MAX;
		opts.row.kind = (enum wf_row_optimizer)kind;
		struct wf_table *table = bed_table(env, &opts);
		grad[WF_ROW_DIM_MAX - 1] = 1.0f;
		assert_int_equal(bed_push(table, 1, &key, 1, grad), WEFT_OK);
		assert_int_equal(bed_look(table, &key, 1, out, false), WEFT_OK);
		float want[WF_ROW_DIM_MAX];
		wf_init_values(&opts.init, key, want, WF_ROW_DIM_MAX);
		assert_true(out[WF_ROW_DIM_MAX - 1] != want[WF_ROW_DIM_MAX - 1]);
		wf_table_destroy(table);
	}
}

static void
rows_come_out_and_go_back_in_as_they_were(void **state)
{
	enum { KEYS = 500 };
	struct wf_table_opts opts = bed_opts();
	opts.row.kind = WF_ROW_ADAM;
	struct wf_table *one = bed_table(env, &opts);
	struct wf_table *two = NULL;
	uint64_t key[KEYS];
	static float grad[KEYS][4];
	static float out[2][KEYS][4];

	for (size_t i = 0; i < KEYS; i++) {
		key[i] = i * i * 0x123456789abcdefu;
		grad[i][i % 4] = (float)i;
	}
	assert_int_equal(bed_push(one, 4, key, KEYS, grad[0]), WEFT_OK);
	assert_int_equal(bed_push(one, 9, key, KEYS / 2, grad[3]), WEFT_OK);
	opts.index_seed = 31;
	two = bed_table(env, &opts);
	uint64_t cursor = 0;
	struct wf_table_row row;
	assert_true(wf_table_next(one, &cursor, &row));
	assert_int_equal(wf_table_put(two, &row), WEFT_INVALID);
	expect_said("set that first");
	assert_int_equal(wf_table_set_step(two, wf_table_step(one)), WEFT_OK);
	do {
		assert_int_equal(wf_table_put(two, &row), WEFT_OK);
	} while (wf_table_next(one, &cursor, &row));
	assert_int_equal(wf_table_put(two, &row), WEFT_INVALID);
	expect_said("stands twice");
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(bed_look(one, key, KEYS, out[0][0], false), WEFT_OK);
		assert_int_equal(bed_look(two, key, KEYS, out[1][0], false), WEFT_OK);
		assert_memory_equal(out[0], out[1], sizeof(out[0]));
		assert_int_equal(bed_push(one, 20, key, KEYS, grad[0]),
				 round == 0 ? WEFT_OK : WEFT_INVALID);
		assert_int_equal(bed_push(two, 20, key, KEYS, grad[0]),
				 round == 0 ? WEFT_OK : WEFT_INVALID);
	}
	wf_table_destroy(one);
	wf_table_destroy(two);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_that_has_no_room_to_begin_says_what_is_too_small),
		cmocka_unit_test(every_key_has_its_first_values),
		cmocka_unit_test(long_lookups_give_what_single_ones_do),
		cmocka_unit_test(a_key_may_stand_twice_in_a_lookup),
		cmocka_unit_test(a_push_moves_rows_and_only_those),
		cmocka_unit_test(a_push_to_a_key_nobody_looked_up_starts_from_its_first_values),
		cmocka_unit_test(gradients_are_summed_in_trainer_order_and_applied_once),
		cmocka_unit_test(a_push_in_parts_is_that_push_in_one_piece),
		cmocka_unit_test(empty_batches_are_steps_too),
		cmocka_unit_test(at_a_rate_of_0_steps_go_on_and_values_stay),
		cmocka_unit_test(what_is_wrong_with_a_push_is_said_and_nothing_changes),
		cmocka_unit_test(keys_of_another_lane_are_refused),
		cmocka_unit_test(another_rate_than_that_of_the_closed_form_is_refused),
		cmocka_unit_test(a_fixed_vocabulary_is_a_table_too),
		cmocka_unit_test(settings_that_do_not_go_together_are_refused),
		cmocka_unit_test(the_longest_rows_fit_with_any_optimizer),
		cmocka_unit_test(rows_come_out_and_go_back_in_as_they_were),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
