/* SPDX-License-Identifier: Apache-2.0 */
/* A table, spread over any number of lanes, does what a list of rows would do that is searched from
 * end to end: the same bits in every lookup, whatever operations chance comes up with, whatever the
 * settings. WEFT_SEED chooses other runs, WEFT_LONG more of them. Thread: one. */
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
#include "sparse/table/table.h"
#include "wire/partition.h"

#define RUNS 60u
#define RUNS_LONG 3000u
#define OPERATIONS 120u
#define MAX_KEYS 20000u /* of the whole run: enough for an index to grow */
#define MAX_BATCH 300u
#define MAX_TRAINERS 4u
#define MAX_LANES 5u
#define MAX_DIM 20u
#define MAX_FLOATS (3 * MAX_DIM + 1)

/* One key of the model. */
struct model_row {
	uint64_t key;
	bool exists;
	uint32_t stamp, born;
	uint32_t seen; /* pushes while it had no row */
	float show, click;
	float floats[MAX_FLOATS];
};

struct run {
	struct wf_rng rng;
	struct wf_table_opts opts;
	struct wf_row_motion motion;
	uint32_t lane_count;
	struct wf_table *lane[MAX_LANES];
	uint32_t key_count;
	uint32_t step;
	uint64_t number;
};

static struct model_row model[MAX_KEYS];
static struct wf_env *env;
static uint64_t seed;

/* What a batch holds: indices into the model. */
struct batch {
	uint32_t count;
	uint32_t row[MAX_BATCH];
	float grad[MAX_BATCH][MAX_DIM];
	float show[MAX_BATCH], click[MAX_BATCH];
};

static struct batch pushed[MAX_TRAINERS];

/* Settings. */

static void
draw_optimizer(struct wf_rng *rng, struct wf_row_opts *row)
{
	row->kind = (enum wf_row_optimizer)wf_rng_below(rng, WF_ROW_OPTIMIZER_COUNT);
	row->set.learning_rate = 0.1;
	row->set.momentum = 0.5;
	row->set.clip = wf_rng_below(rng, 3) == 0 ? 0.5 : 0.0;
	row->set.dense_equivalent = wf_rng_below(rng, 3) == 0;
	if (wf_rng_below(rng, 3) == 0) {
		row->set.l1 = 0.001;
	}
	if (wf_rng_below(rng, 3) == 0) {
		row->set.l2 = 0.01;
	}
	if (wf_rng_below(rng, 3) == 0) {
		row->set.decay = 0.01;
	}
	if (wf_row_check(row) != WEFT_OK) { /* what does not go together */
		row->set.l1 = 0.0;
		row->set.decay = 0.0;
		row->set.dense_equivalent = false;
	}
	if (wf_row_check(row) != WEFT_OK) {
		row->set.l2 = 0.0;
	}
}

static void
draw_policies(struct wf_rng *rng, struct wf_table_opts *opts)
{
	if (wf_rng_below(rng, 3) == 0) {
		opts->admit.count = 2 + (uint32_t)wf_rng_below(rng, 3);
		/* So many that keys do not meet: all three counters of one among some 2 keys of its
		 * partition (draw_keys) is one in 10^9. */
		opts->admit.slot_count = 1 << 13;
	}
	if (wf_rng_below(rng, 3) == 0) {
		opts->evict.age_steps = 1 + wf_rng_below(rng, 30);
	}
	if (wf_rng_below(rng, 3) == 0) {
		opts->evict.score_least = 0.5;
		opts->evict.show_weight = 0.25;
		opts->evict.click_weight = 1.0;
		opts->evict.fade = 0.5;
		opts->evict.fade_steps = 1 + wf_rng_below(rng, 10);
	}
}

static void
draw_opts(struct run *run)
{
	struct wf_rng *rng = &run->rng;
	struct wf_table_opts *opts = &run->opts;

	*opts = (struct wf_table_opts){
		.entries_max = MAX_TRAINERS * MAX_BATCH,
		.row = wf_row_defaults(),
		.init = {.seed = 77, .table = 2},
		.admit = {.probability = 1.0},
	};
	opts->dim = 1 + (uint32_t)wf_rng_below(rng, MAX_DIM);
	opts->init.kind = (enum wf_init_kind)wf_rng_below(rng, WF_INIT_COUNT);
	opts->init.a = -0.5;
	opts->init.b = 0.5;
	opts->index_seed = wf_rng_u64(rng);
	draw_optimizer(rng, &opts->row);
	bool ftrl = opts->row.kind == WF_ROW_FTRL || opts->row.kind == WF_ROW_FTRL_GROUP;
	if (ftrl && opts->row.set.dense_equivalent) {
		opts->init.kind = WF_INIT_ZERO;
	}
	if (wf_rng_below(rng, 2) == 0) {
		opts->value_rest = (enum weft_value_format)wf_rng_below(rng, WF_VALUE_FORMAT_COUNT);
	}
	if (wf_rng_below(rng, 4) == 0) {
		opts->vocabulary = MAX_KEYS;
	} else {
		draw_policies(rng, opts);
	}
}

static int
compare_keys(const void *a, const void *b)
{
	const struct model_row *x = a;
	const struct model_row *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

/* Few keys that come often, or many; 0 and all ones among them. */
static void
draw_keys(struct run *run)
{
	uint32_t many = run->opts.admit.count > 1 ? MAX_KEYS / 10 : MAX_KEYS;
	run->key_count = wf_rng_below(&run->rng, 2) == 0 ? 50 : many;
	memset(model, 0, sizeof(model));
	for (uint32_t i = 0; i < run->key_count; i++) {
		uint64_t key = run->opts.vocabulary > 0 ? i : wf_rng_u64(&run->rng);
		model[i].key = key;
	}
	if (run->opts.vocabulary == 0) {
		model[0].key = 0;
		model[1].key = UINT64_MAX;
	}
	qsort(model, run->key_count, sizeof(model[0]), compare_keys);
}

static void
open_run(struct run *run, uint64_t number)
{
	*run = (struct run){.number = number};
	wf_rng_init(&run->rng, seed, number);
	draw_opts(run);
	draw_keys(run);
	run->motion = wf_row_motion_of(&run->opts.row);
	run->lane_count = 1 + (uint32_t)wf_rng_below(&run->rng, MAX_LANES);
	for (uint32_t l = 0; l < run->lane_count; l++) {
		uint32_t first = wf_partition_first(l, run->lane_count);
		struct wf_table_opts opts = run->opts;
		opts.partition_first = first;
		opts.partition_count = wf_partition_first(l + 1, run->lane_count) - first;
		if (wf_table_create(env, &opts, &run->lane[l]) != WEFT_OK) {
			fail_msg("WEFT_SEED=%" PRIu64 " run %" PRIu64 ": %s", seed, number,
				 weft_last_error());
		}
	}
}

static struct wf_table *
lane_of(const struct run *run, uint64_t key)
{
	uint32_t partition =
		run->opts.vocabulary > 0 ? wf_partition_of_fixed(key) : wf_partition_of(key);
	return run->lane[wf_partition_lane(partition, run->lane_count)];
}

/* The model. */

/* By squaring, as the table: another order of products is another last bit, which counts where a
 * score falls on its limit. */
static double
fading(const struct run *run, uint32_t from, uint32_t to)
{
	uint64_t period = run->opts.evict.fade_steps;
	double power = 1.0;
	double square = run->opts.evict.fade;
	for (uint64_t n = to / period - from / period; n > 0; n >>= 1) {
		power *= (n & 1) != 0 ? square : 1.0;
		square *= square;
	}
	return power;
}

static bool
is_there(const struct run *run, const struct model_row *row)
{
	const struct wf_evict_opts *evict = &run->opts.evict;
	uint32_t used = row->stamp > row->born ? row->stamp : row->born;

	if (!row->exists) {
		return false;
	}
	if (evict->age_steps > 0 && run->step - used > evict->age_steps) {
		return false;
	}
	if (!(evict->score_least > 0.0)) {
		return true;
	}
	double show = (double)row->show;
	double click = (double)row->click;
	double score = evict->show_weight * (show - click) + evict->click_weight * click;
	if (score * fading(run, row->stamp, run->step) >= evict->score_least) {
		return true;
	}
	return row->stamp == 0 && run->step - used <= evict->fade_steps;
}

static bool
is_open(const struct run *run)
{
	return run->opts.admit.count <= 1;
}

/* What is left of the values when the row is at rest. */
static void
model_rest(const struct run *run, struct model_row *row)
{
	for (uint32_t i = 0; i < run->opts.dim; i++) {
		float *x = &row->floats[i];
		if (run->opts.value_rest == WEFT_VALUES_BF16) {
			*x = wf_f32_of_bf16(wf_bf16_of(*x));
		} else if (run->opts.value_rest == WEFT_VALUES_F16) {
			*x = wf_f32_of_f16(wf_f16_of(*x));
		}
	}
}

static void
model_bear(const struct run *run, struct model_row *row)
{
	uint64_t key = row->key;
	uint32_t seen = row->seen;
	*row = (struct model_row){.key = key, .exists = true, .born = run->step, .seen = seen};
	wf_init_values(&run->opts.init, key, row->floats, run->opts.dim);
	model_rest(run, row);
}

static void
model_move(const struct run *run, struct model_row *row, uint32_t steps)
{
	struct wf_row_motion motion = wf_row_motion_power(&run->motion, steps);
	wf_row_move(&motion, row->floats, run->opts.dim);
}

static void
model_read(const struct run *run, const struct model_row *row, float *out)
{
	struct model_row seen = *row;
	if (!is_there(run, row)) {
		if (!is_open(run)) {
			memset(out, 0, run->opts.dim * sizeof(*out));
			return;
		}
		model_bear(run, &seen);
	}
	model_move(run, &seen, run->step - seen.stamp);
	memcpy(out, seen.floats, run->opts.dim * sizeof(*out));
}

/* All gradients that the trainers pushed for one row, in order, by ref. */
static void
model_update(struct run *run, uint32_t number, uint32_t step, uint32_t trainers)
{
	static const float *grad[MAX_TRAINERS * MAX_BATCH];
	struct model_row *row = &model[number];
	uint32_t first[2] = {0, 0};
	float *floats = row->floats;
	bool scored = run->opts.evict.score_least > 0.0;

	if (scored) {
		double power = fading(run, row->stamp, step);
		row->show = (float)((double)row->show * power);
		row->click = (float)((double)row->click * power);
	}
	for (uint32_t t = 0; t < trainers; t++) {
		for (uint32_t i = 0; i < pushed[t].count; i++) {
			if (pushed[t].row[i] != number) {
				continue;
			}
			grad[first[1]++] = pushed[t].grad[i];
			row->show += scored ? pushed[t].show[i] : 0.0f;
			row->click += scored ? pushed[t].click[i] : 0.0f;
		}
	}
	model_move(run, row, step - 1 - row->stamp);
	/* Made up for, a row has taken a step with each of the table's. */
	const uint32_t before = run->opts.row.set.dense_equivalent ? step - 1 : row->stamp;
	row->stamp = step;
	struct wf_row_scalars scalars;
	struct wf_row_batch batch = {.row = &floats,
				     .count = 1,
				     .dim = run->opts.dim,
				     .grad = grad,
				     .first = first,
				     .stamp = &before};
	wf_row_scalars_fill(&run->opts.row, run->opts.row.set.learning_rate, 2.0f, step, &scalars);
	(void)wf_kernels_ref()->rows->apply[run->opts.row.kind](&scalars, &batch);
	model_rest(run, row);
}

/* Pushes of each row in the step at work. */
static uint32_t occurrences[MAX_KEYS];

static void
model_push_row(struct run *run, uint32_t number, uint32_t step, uint32_t trainers)
{
	struct model_row *row = &model[number];

	if (!is_there(run, row) && !is_open(run)) {
		row->seen += occurrences[number];
		if (row->seen >= run->opts.admit.count) {
			model_bear(run, row);
		}
		return;
	}
	if (!is_there(run, row)) {
		model_bear(run, row);
	}
	model_update(run, number, step, trainers);
}

static void
model_push(struct run *run, uint32_t step, uint32_t trainers)
{
	for (uint32_t t = 0; t < trainers; t++) {
		for (uint32_t i = 0; i < pushed[t].count; i++) {
			occurrences[pushed[t].row[i]]++;
		}
	}
	for (uint32_t number = 0; number < run->key_count; number++) {
		if (occurrences[number] > 0) {
			model_push_row(run, number, step, trainers);
			occurrences[number] = 0;
		}
	}
}

/* Operations on both. */

static uint32_t
draw_row(struct run *run)
{
	uint64_t row = wf_rng_below(&run->rng, run->key_count);
	return (uint32_t)(wf_rng_below(&run->rng, 2) == 0 ? row : row % 7);
}

static void
expect_same(const struct run *run, uint64_t key, const float *got, const float *want)
{
	if (memcmp(got, want, run->opts.dim * sizeof(*got)) == 0) {
		return;
	}
	fail_msg("WEFT_SEED=%" PRIu64 " run %" PRIu64 ", %s, step %" PRIu32 ", %" PRIu32
		 " lanes: key %" PRIu64 " begins with %a, not %a",
		 seed, run->number, wf_row_optimizer_name(run->opts.row.kind), run->step,
		 run->lane_count, key, (double)got[0], (double)want[0]);
}

static void
look(struct run *run)
{
	static float out[MAX_BATCH * MAX_DIM];
	uint64_t key[MAX_BATCH];
	uint32_t row[MAX_BATCH];
	bool create = wf_rng_below(&run->rng, 2) == 0;
	uint64_t most = 1 + wf_rng_below(&run->rng, MAX_BATCH);

	for (uint32_t l = 0; l < run->lane_count; l++) {
		uint32_t count = 0;
		for (uint64_t i = 0; i < most; i++) {
			uint32_t drawn = draw_row(run);
			if (lane_of(run, model[drawn].key) == run->lane[l]) {
				row[count] = drawn;
				key[count++] = model[drawn].key;
			}
		}
		struct wf_table_lookup lookup = {
			.key = key, .count = count, .out = out, .create = create};
		assert_int_equal(wf_table_lookup(run->lane[l], &lookup), WEFT_OK);
		for (uint32_t i = 0; i < count; i++) {
			float want[MAX_DIM];
			model_read(run, &model[row[i]], want);
			expect_same(run, key[i], out + (size_t)i * run->opts.dim, want);
			if (create && is_open(run) && !is_there(run, &model[row[i]])) {
				model_bear(run, &model[row[i]]);
			}
		}
	}
}

static void
draw_batch(struct run *run, struct batch *batch)
{
	batch->count = (uint32_t)wf_rng_below(&run->rng, MAX_BATCH + 1);
	for (uint32_t i = 0; i < batch->count; i++) {
		batch->row[i] = draw_row(run);
		batch->show[i] = (float)wf_rng_below(&run->rng, 5);
		batch->click[i] = (float)wf_rng_below(&run->rng, 2);
		for (uint32_t j = 0; j < run->opts.dim; j++) {
			batch->grad[i][j] = (float)(wf_rng_f64(&run->rng) - 0.5);
		}
	}
}

static int
compare_rows_of_batch(const void *a, const void *b)
{
	const uint32_t *x = a;
	const uint32_t *y = b;
	return (*x > *y) - (*x < *y);
}

/* Keys that ascend, none twice: what a client sends. (Rows of the model are in order of keys.) */
static void
make_ascend(struct batch *batch)
{
	uint32_t kept = 0;
	qsort(batch->row, batch->count, sizeof(batch->row[0]), compare_rows_of_batch);
	for (uint32_t i = 0; i < batch->count; i++) {
		if (kept == 0 || batch->row[i] != batch->row[kept - 1]) {
			batch->row[kept++] = batch->row[i];
		}
	}
	batch->count = kept;
}

/* What of a trainer's batch is for one lane, as a client would send it. */
static struct wf_table_batch
part_for(const struct run *run, const struct wf_table *lane, uint32_t trainer)
{
	static uint64_t key[MAX_TRAINERS][MAX_BATCH];
	static float grad[MAX_TRAINERS][MAX_BATCH * MAX_DIM];
	static float show[MAX_TRAINERS][MAX_BATCH];
	static float click[MAX_TRAINERS][MAX_BATCH];
	const struct batch *batch = &pushed[trainer];
	size_t count = 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t k = model[batch->row[i]].key;
		if (lane_of(run, k) == lane) {
			key[trainer][count] = k;
			show[trainer][count] = batch->show[i];
			click[trainer][count] = batch->click[i];
			memcpy(&grad[trainer][count * run->opts.dim], batch->grad[i],
			       run->opts.dim * sizeof(float));
			count++;
		}
	}
	return (struct wf_table_batch){.key = key[trainer],
				       .grad = grad[trainer],
				       .count = count,
				       .show = show[trainer],
				       .click = click[trainer]};
}

static void
push(struct run *run)
{
	uint32_t trainers = 1 + (uint32_t)wf_rng_below(&run->rng, MAX_TRAINERS);
	uint32_t step = run->step + 1 + (uint32_t)(wf_rng_below(&run->rng, 10) / 9);
	struct wf_table_batch batch[MAX_TRAINERS];

	bool ascend = wf_rng_below(&run->rng, 2) == 0;
	trainers = ascend && wf_rng_below(&run->rng, 2) == 0 ? 1 : trainers;
	for (uint32_t t = 0; t < trainers; t++) {
		draw_batch(run, &pushed[t]);
		if (ascend) {
			make_ascend(&pushed[t]);
		}
	}
	for (uint32_t l = 0; l < run->lane_count; l++) {
		for (uint32_t t = 0; t < trainers; t++) {
			batch[t] = part_for(run, run->lane[l], t);
		}
		struct wf_table_push to_lane = {.step = step,
						.rate = run->opts.row.set.learning_rate,
						.divisor = 2.0f,
						.batch = batch,
						.batch_count = trainers};
		assert_int_equal(wf_table_push(run->lane[l], &to_lane), WEFT_OK);
	}
	model_push(run, step, trainers);
	run->step = step;
}

/* The rows that come out are those of the model. */
static void
compare_rows(const struct run *run)
{
	uint32_t left = 0;
	struct wf_table_row row;

	for (uint32_t i = 0; i < run->key_count; i++) {
		left += is_there(run, &model[i]);
	}
	for (uint32_t l = 0; l < run->lane_count; l++) {
		uint64_t cursor = 0;
		while (wf_table_next(run->lane[l], &cursor, &row)) {
			const struct model_row key = {.key = row.key};
			const struct model_row *want = bsearch(&key, model, run->key_count,
							       sizeof(model[0]), compare_keys);
			assert_true(want != NULL && is_there(run, want));
			assert_int_equal(row.stamp, want->stamp);
			assert_int_equal(row.born, want->born);
			assert_true(row.show == want->show && row.click == want->click);
			size_t floats = wf_table_row_floats(run->lane[l]);
			assert_memory_equal(row.floats, want->floats, floats * sizeof(float));
			left--;
		}
	}
	assert_int_equal(left, 0);
}

static void
close_run(struct run *run)
{
	uint64_t sum[WF_TABLE_STAT_COUNT] = {0};
	for (uint32_t l = 0; l < run->lane_count; l++) {
		for (unsigned stat = 0; stat < WF_TABLE_STAT_COUNT; stat++) {
			sum[stat] += wf_stats_get(wf_table_stats(run->lane[l]), stat);
		}
		wf_table_destroy(run->lane[l]);
	}
	assert_int_equal(sum[WF_TABLE_ROWS_BORN], sum[WF_TABLE_ROWS_LIVE] +
							  sum[WF_TABLE_EVICTED_BY_AGE] +
							  sum[WF_TABLE_EVICTED_BY_SCORE]);
	assert_int_equal(sum[WF_TABLE_PUSHES_LOST], 0);
}

static void
a_table_in_lanes_does_what_a_list_of_rows_does(void **state)
{
	uint64_t runs = getenv("WEFT_LONG") == NULL ? RUNS : RUNS_LONG;

	for (uint64_t number = 0; number < runs; number++) {
		struct run run;
		open_run(&run, number);
		for (unsigned i = 0; i < OPERATIONS; i++) {
			uint64_t what = wf_rng_below(&run.rng, 10);
			if (what < 5) {
				look(&run);
			} else if (what < 9) {
				push(&run);
			} else {
				for (uint32_t l = 0; l < run.lane_count; l++) {
					uint64_t rows = wf_rng_below(&run.rng, MAX_KEYS);
					wf_table_tend(run.lane[l], (uint32_t)rows);
				}
			}
		}
		compare_rows(&run);
		close_run(&run);
	}
}

int
main(void)
{
	const char *given = getenv("WEFT_SEED");
	seed = given == NULL ? 1 : strtoull(given, NULL, 0);
	if (wf_env_system_create(WF_LOG_WARN, -1, &env) != WEFT_OK) {
		return EXIT_FAILURE;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_in_lanes_does_what_a_list_of_rows_does),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
