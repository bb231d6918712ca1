/* SPDX-License-Identifier: Apache-2.0 */
/* What N lanes saved of a table, M lanes load: the same rows, and the same bits after the next
 * steps, whatever the settings. WEFT_SEED chooses other runs, WEFT_LONG more of them. Thread: one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "saved/rows.h"
#include "sparse/table/scan.h"
#include "wire/partition.h"

#define RUNS 12u
#define RUNS_LONG 400u
#define MAX_LANES 5u
#define MAX_KEYS 6000u
#define BATCH 400u
#define MAX_DIM 9u
#define TRAINERS 2u

struct lanes {
	uint32_t count;
	struct wf_table *table[MAX_LANES];
};

struct run {
	struct wf_rng rng;
	struct wf_table_opts opts;
	uint64_t key[MAX_KEYS];
	uint32_t key_count;
	uint32_t step;
};

/* What one trainer pushes in a step, and its share for one lane. */
struct batch {
	uint64_t key[BATCH];
	float grad[BATCH * MAX_DIM];
	float show[BATCH], click[BATCH];
	size_t count;
};

static struct wf_env *env;
static struct run run;
static struct batch pushed[TRAINERS], share[TRAINERS];
static uint64_t seed;

static void
draw_settings(void)
{
	struct wf_table_opts *opts = &run.opts;
	struct wf_rng *rng = &run.rng;

	*opts = (struct wf_table_opts){
		.dim = 1 + (uint32_t)wf_rng_below(rng, MAX_DIM),
		.entries_max = TRAINERS * BATCH,
		.index_seed = wf_rng_u64(rng),
		.row = wf_row_defaults(),
		.init = {.kind = WF_INIT_UNIFORM, .a = -0.5, .b = 0.5, .seed = 3},
		.admit = {.probability = 1.0},
	};
	opts->row.kind = (enum wf_row_optimizer)wf_rng_below(rng, WF_ROW_OPTIMIZER_COUNT);
	opts->row.set.learning_rate = 0.1;
	opts->row.set.momentum = 0.5;
	opts->value_rest = (enum weft_value_format)wf_rng_below(rng, WF_VALUE_FORMAT_COUNT);
	if (wf_rng_below(rng, 3) == 0) {
		opts->vocabulary = 1 + wf_rng_below(rng, MAX_KEYS);
		return;
	}
	if (wf_rng_below(rng, 2) == 0) {
		opts->admit.count = 1 + (uint32_t)wf_rng_below(rng, 3);
		opts->admit.slot_count = 64;
	}
	if (wf_rng_below(rng, 2) == 0) {
		opts->evict.age_steps = 1 + wf_rng_below(rng, 4);
	}
	if (wf_rng_below(rng, 2) == 0) {
		opts->evict.score_least = 0.2;
		opts->evict.show_weight = 1.0;
		opts->evict.click_weight = 2.0;
		opts->evict.fade = 0.7;
		opts->evict.fade_steps = 2;
	}
}

static void
open_lanes(struct lanes *lanes)
{
	lanes->count = 1 + (uint32_t)wf_rng_below(&run.rng, MAX_LANES);
	for (uint32_t i = 0; i < lanes->count; i++) {
		struct wf_table_opts opts = run.opts;
		opts.partition_first = wf_partition_first(i, lanes->count);
		opts.partition_count =
			wf_partition_first(i + 1, lanes->count) - opts.partition_first;
		enum weft_status st = wf_table_create(env, &opts, &lanes->table[i]);
		if (st != WEFT_OK) {
			fail_msg("WEFT_SEED=%" PRIu64 ": %s", seed, weft_last_error());
		}
	}
}

static void
close_lanes(struct lanes *lanes)
{
	for (uint32_t i = 0; i < lanes->count; i++) {
		wf_table_destroy(lanes->table[i]);
	}
}

static uint32_t
lane_of(const struct lanes *lanes, uint64_t key)
{
	uint32_t partition =
		run.opts.vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
	return wf_partition_lane(partition, lanes->count);
}

static void
draw_batch(struct batch *batch)
{
	batch->count = wf_rng_below(&run.rng, BATCH + 1);
	for (size_t i = 0; i < batch->count; i++) {
		batch->key[i] = run.key[wf_rng_below(&run.rng, run.key_count)];
		batch->show[i] = 1.0f;
		batch->click[i] = (float)wf_rng_below(&run.rng, 2);
	}
	for (size_t i = 0; i < batch->count * run.opts.dim; i++) {
		batch->grad[i] = (float)wf_rng_f64(&run.rng) - 0.5f;
	}
}

/* What of a batch goes to a lane. */
static void
take_share(const struct lanes *lanes, uint32_t lane, const struct batch *of, struct batch *out)
{
	const size_t dim = run.opts.dim;

	out->count = 0;
	for (size_t i = 0; i < of->count; i++) {
		if (lane_of(lanes, of->key[i]) == lane) {
			size_t at = out->count++;
			out->key[at] = of->key[i];
			out->show[at] = of->show[i];
			out->click[at] = of->click[i];
			memcpy(out->grad + at * dim, of->grad + i * dim, dim * sizeof(float));
		}
	}
}

/* The step's pushes to all lanes. */
static void
push(struct lanes *lanes)
{
	for (uint32_t lane = 0; lane < lanes->count; lane++) {
		struct wf_table_batch batch[TRAINERS];
		for (unsigned n = 0; n < TRAINERS; n++) {
			take_share(lanes, lane, &pushed[n], &share[n]);
			batch[n] = (struct wf_table_batch){.key = share[n].key,
							   .grad = share[n].grad,
							   .count = share[n].count,
							   .show = share[n].show,
							   .click = share[n].click};
		}
		const struct wf_table_push step = {.step = run.step,
						   .rate = 0.1,
						   .divisor = 1.0f,
						   .batch = batch,
						   .batch_count = TRAINERS};
		enum weft_status st = wf_table_push(lanes->table[lane], &step);
		if (st != WEFT_OK) {
			fail_msg("WEFT_SEED=%" PRIu64 ": %s", seed, weft_last_error());
		}
		wf_table_tend(lanes->table[lane], 100);
	}
}

static void
step(struct lanes *a, struct lanes *b)
{
	run.step++;
	for (unsigned n = 0; n < TRAINERS; n++) {
		draw_batch(&pushed[n]);
	}
	push(a);
	if (b != NULL) {
		push(b);
	}
}

#define must(call)                                                                                 \
	do {                                                                                       \
		enum weft_status must_status = (call);                                             \
		if (must_status != WEFT_OK) {                                                      \
			fail_msg("WEFT_SEED=%" PRIu64 ": %s: %s", seed, #call, weft_last_error()); \
		}                                                                                  \
	} while (0)

static void
prepare(struct lanes *lanes, struct wf_scan **scan)
{
	for (uint32_t i = 0; i < lanes->count; i++) {
		bool done = false;
		must(wf_scan_create(lanes->table[i], &scan[i]));
		while (!done) {
			must(wf_scan_prepare(scan[i], 100, &done));
		}
	}
}

static void
save_partition(struct lanes *lanes, struct wf_scan **scan, uint32_t partition,
	       struct wf_rows_writer *to)
{
	const uint32_t lane = wf_partition_lane(partition, lanes->count);
	struct wf_row_record row;
	uint32_t counters = 0;

	const uint16_t *counter = wf_table_counters(lanes->table[lane], partition, &counters);
	assert_int_equal(counters, run.opts.admit.count > 1 ? 64 : 0);
	must(wf_rows_begin(to, wf_scan_partition(scan[lane], partition), counter));
	while (wf_scan_next(scan[lane], &row)) {
		must(wf_rows_put(to, &row));
	}
}

static void
look(struct lanes *lanes)
{
	uint64_t key = run.key[0];
	float out[MAX_DIM];
	const struct wf_table_lookup lookup = {.key = &key, .count = 1, .out = out, .create = true};

	must(wf_table_lookup(lanes->table[lane_of(lanes, key)], &lookup));
}

static void
save(struct lanes *lanes, const char *path, bool with_look, struct wf_rows_sum *sum)
{
	struct wf_scan *scan[MAX_LANES];
	struct wf_rows_writer *to = NULL;
	const struct wf_rows_head head = {
		.shape = wf_table_shape(lanes->table[0]),
		.counter_count = run.opts.admit.count > 1 ? run.opts.admit.slot_count : 0,
		.vocabulary = run.opts.vocabulary,
		.step = run.step,
	};

	const struct wf_saved_spot spot = {wf_saved_posix(), AT_FDCWD, path};
	must(wf_rows_create(env, &spot, &head, &to));
	prepare(lanes, scan);
	if (with_look) {
		look(lanes); /* it may bear a row, which is in the save or not */
	}
	for (uint32_t p = 0; p < WF_PARTITION_COUNT; p++) {
		save_partition(lanes, scan, p, to);
	}
	must(wf_rows_finish(to, WEFT_OK, sum));
	for (uint32_t i = 0; i < lanes->count; i++) {
		wf_scan_destroy(scan[i]);
	}
}

static void
load(struct lanes *lanes, const char *path)
{
	struct wf_rows_reader *from = NULL;
	struct wf_rows_partition partition;
	struct wf_row_record row;

	must(wf_rows_open(env, wf_saved_posix(), path, &from));
	for (uint32_t i = 0; i < lanes->count; i++) {
		must(wf_table_set_step(lanes->table[i], wf_rows_head(from)->step));
	}
	while (wf_rows_next_partition(from, &partition) == WEFT_OK) {
		const uint32_t lane = wf_partition_lane(partition.partition, lanes->count);
		must(wf_table_set_counters(lanes->table[lane], partition.partition,
					   partition.counter, wf_rows_head(from)->counter_count));
		for (uint64_t i = 0; i < partition.row_count; i++) {
			must(wf_rows_next(from, &row));
			must(wf_table_put_record(lanes->table[lane], &row));
		}
	}
	wf_rows_close(from);
}

/* Two files have the same bytes: the lanes have the same rows, stamps, scores and counters. */
static void
compare_files(const char *a, const char *b)
{
	FILE *one = fopen(a, "rb");
	FILE *two = fopen(b, "rb");
	static uint8_t left[1 << 16], right[1 << 16];
	size_t count = 0;

	assert_non_null(one);
	assert_non_null(two);
	do {
		count = fread(left, 1, sizeof(left), one);
		assert_int_equal(fread(right, 1, sizeof(right), two), count);
		if (memcmp(left, right, count) != 0) {
			fail_msg("WEFT_SEED=%" PRIu64 ": rows differ at step %" PRIu32, seed,
				 run.step);
		}
	} while (count > 0);
	fclose(one);
	fclose(two);
}

static void
one_run(uint64_t number, const char *path, const char *again)
{
	struct lanes saved, loaded;
	struct wf_rows_sum sum, other;

	wf_rng_init(&run.rng, seed, number);
	run.step = 0;
	draw_settings();
	run.key_count = 1 + (uint32_t)wf_rng_below(&run.rng, MAX_KEYS);
	for (uint32_t i = 0; i < run.key_count; i++) {
		run.key[i] = run.opts.vocabulary > 0 ? wf_rng_below(&run.rng, run.opts.vocabulary)
						     : wf_rng_u64(&run.rng);
	}
	open_lanes(&saved);
	for (uint64_t steps = wf_rng_below(&run.rng, 8); steps > 0; steps--) {
		step(&saved, NULL);
	}
	save(&saved, path, true, &sum);
	run.opts.index_seed++;
	open_lanes(&loaded);
	load(&loaded, path);
	look(&loaded);
	for (unsigned more = 0; more < 4; more++) {
		unlink(path);
		unlink(again);
		save(&saved, path, false, &sum);
		save(&loaded, again, false, &other);
		assert_int_equal(sum.row_count, other.row_count);
		compare_files(path, again);
		step(&saved, &loaded);
	}
	close_lanes(&saved);
	close_lanes(&loaded);
	unlink(path);
	unlink(again);
}

static void
what_some_lanes_saved_any_number_of_lanes_goes_on_with(void **state)
{
	char dir[] = "/tmp/weft-rows-XXXXXX";
	char path[64], again[64];
	const uint64_t runs = getenv("WEFT_LONG") != NULL ? RUNS_LONG : RUNS;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.rows", dir);
	snprintf(again, sizeof(again), "%s/b.rows", dir);
	print_message("WEFT_SEED=%" PRIu64 "\n", seed);
	for (uint64_t i = 0; i < runs; i++) {
		one_run(i, path, again);
	}
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_some_lanes_saved_any_number_of_lanes_goes_on_with),
	};
	const char *given = getenv("WEFT_SEED");

	seed = given == NULL ? 20261120 : strtoull(given, NULL, 0);
	if (wf_env_system_create(WF_LOG_WARN, -1, &env) != WEFT_OK) {
		return EXIT_FAILURE;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
