/* SPDX-License-Identifier: Apache-2.0 */
/* Shards split the training rows without loss or overlap, and their order is a function of seed,
 * pass and trainer. */
#include "tests/unit/train/setup.h"

#include "trainer/program/shard.h"

#define ROWS 23
#define TRAIN_ROWS 19

/* The order of a set whose training rows are one block. */
static void
draw(struct wf_env *env, const struct wf_shard_opts *opts, uint64_t seed, uint64_t pass,
     struct wf_shard *shard)
{
	const struct wf_piece piece = {.count = TRAIN_ROWS};
	const struct wf_block block = {.piece = &piece, .piece_count = 1, .rows = TRAIN_ROWS};

	wf_shard_init(opts, shard);
	assert_ok(wf_shard_draw(env, shard, &block, seed, pass));
	assert_int_equal(shard->count, wf_shard_share(opts, TRAIN_ROWS));
}

/* Append the rows of a pass, by number, to `seen`; returns how many. */
static size_t
collect(struct wf_env *env, const struct wf_shard_opts *opts, uint64_t pass, int *seen)
{
	struct wf_shard shard;
	uint32_t row[ROWS];
	size_t count = 0;
	draw(env, opts, 7, pass, &shard);
	for (size_t batch = 0; batch < wf_shard_batch_count(&shard); batch++) {
		size_t rows = wf_shard_rows(&shard, batch, row);
		assert_true(rows >= 1 && rows <= shard.batch_rows);
		for (size_t i = 0; i < rows; i++) {
			assert_true(row[i] < ROWS);
			seen[count++] = (int)row[i];
		}
	}
	wf_shard_fini(env, &shard);
	return count;
}

static void
every_training_row_is_seen_once_by_its_trainer(void **state)
{
	for (uint32_t trainers = 1; trainers <= 21; trainers++) {
		for (uint64_t batch_size = 0; batch_size <= 5; batch_size++) {
			int times[ROWS] = {0};
			for (uint32_t trainer = 0; trainer < trainers; trainer++) {
				int seen[ROWS];
				const struct wf_shard_opts opts = {.trainer = trainer,
								   .idx = trainer,
								   .count = trainers,
								   .batch_size = batch_size};
				size_t count = collect(*state, &opts, 0, seen);
				for (size_t i = 0; i < count; i++) {
					assert_int_equal(seen[i] % (int)trainers, trainer);
					times[seen[i]]++;
				}
			}
			for (int row = 0; row < ROWS; row++) {
				assert_int_equal(times[row], row < TRAIN_ROWS);
			}
		}
	}
}

static void
trainers_may_have_different_numbers_of_batches(void **state)
{
	size_t batches[4];
	for (uint32_t trainer = 0; trainer < 4; trainer++) {
		struct wf_shard shard;
		draw(*state,
		     &(struct wf_shard_opts){
			     .trainer = trainer, .idx = trainer, .count = 4, .batch_size = 4},
		     1, 0, &shard);
		batches[trainer] = wf_shard_batch_count(&shard);
		wf_shard_fini(*state, &shard);
	}
	assert_int_equal(batches[0], 2); /* 5 rows */
	assert_int_equal(batches[2], 2);
	assert_int_equal(batches[3], 1); /* 4 rows */
}

static void
a_trainer_beyond_the_rows_has_no_batch(void **state)
{
	struct wf_shard shard;
	draw(*state, &(struct wf_shard_opts){.trainer = 20, .idx = 20, .count = 21}, 1, 0, &shard);
	assert_int_equal(wf_shard_batch_count(&shard), 0);
	wf_shard_fini(*state, &shard);
}

static void
the_order_differs_by_pass_and_repeats_by_seed(void **state)
{
	const struct wf_shard_opts opts = {.count = 1};
	int first[ROWS], again[ROWS], other[ROWS];
	assert_int_equal(collect(*state, &opts, 3, first), TRAIN_ROWS);
	assert_int_equal(collect(*state, &opts, 3, again), TRAIN_ROWS);
	assert_int_equal(collect(*state, &opts, 4, other), TRAIN_ROWS);
	assert_memory_equal(first, again, TRAIN_ROWS * sizeof(int));
	assert_memory_not_equal(first, other, TRAIN_ROWS * sizeof(int));
}

/* A block of two pieces, whose rows lie elsewhere in the set than in the block. */
static void
rows_are_shared_by_their_numbers_in_the_set(void **state)
{
	const struct wf_piece piece[] = {
		{.first = 2, .count = 5, .row = 1000000000001}, /* 2 more than a multiple of 3 */
		{.first = 7, .count = 1, .row = 3},
		{.first = 8, .count = 2, .row = 0},
	};
	const struct wf_block block = {.piece = piece, .piece_count = 3, .rows = 8};
	static const uint32_t own[3][3] = {{3, 6, 7}, {4, 9, 0}, {2, 5, 0}};
	static const uint32_t zero_too[] = {8};
	for (uint32_t trainer = 0; trainer < 3; trainer++) {
		const struct wf_shard_opts opts = {.trainer = trainer, .idx = trainer, .count = 3};
		unsigned times[10] = {0};
		struct wf_shard shard;
		wf_shard_init(&opts, &shard);
		assert_ok(wf_shard_draw(*state, &shard, &block, 5, 0));
		assert_int_equal(shard.count, trainer == 0 ? 4 : 2);
		for (size_t i = 0; i < shard.count; i++) {
			times[shard.order[i]]++;
		}
		for (size_t i = 0; i < (trainer == 0 ? 3 : 2); i++) {
			assert_int_equal(times[own[trainer][i]], 1);
		}
		assert_int_equal(times[zero_too[0]], trainer == 0);
		wf_shard_fini(*state, &shard);
	}
}

static void
a_set_of_its_own_is_all_the_trainers_and_each_block_has_an_order(void **state)
{
	const struct wf_shard_opts opts = {.trainer = 2, .count = 1};
	const struct wf_piece piece = {.count = TRAIN_ROWS, .row = 77};
	struct wf_block block = {.piece = &piece, .piece_count = 1, .rows = TRAIN_ROWS};
	uint32_t first[TRAIN_ROWS];
	struct wf_shard shard;
	wf_shard_init(&opts, &shard);
	assert_ok(wf_shard_draw(*state, &shard, &block, 5, 1));
	assert_int_equal(shard.count, TRAIN_ROWS);
	memcpy(first, shard.order, sizeof(first));
	block.idx = 1;
	assert_ok(wf_shard_draw(*state, &shard, &block, 5, 1));
	assert_memory_not_equal(first, shard.order, sizeof(first));
	block.idx = 0;
	assert_ok(wf_shard_draw(*state, &shard, &block, 5, 1));
	assert_memory_equal(first, shard.order, sizeof(first));
	wf_shard_fini(*state, &shard);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_training_row_is_seen_once_by_its_trainer),
		cmocka_unit_test(trainers_may_have_different_numbers_of_batches),
		cmocka_unit_test(a_trainer_beyond_the_rows_has_no_batch),
		cmocka_unit_test(the_order_differs_by_pass_and_repeats_by_seed),
		cmocka_unit_test(rows_are_shared_by_their_numbers_in_the_set),
		cmocka_unit_test(a_set_of_its_own_is_all_the_trainers_and_each_block_has_an_order),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
