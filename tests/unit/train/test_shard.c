/* SPDX-License-Identifier: Apache-2.0 */
/* Shards split the training rows without loss or overlap, and their order is a function of seed,
 * pass and trainer. */
#include "tests/unit/train/setup.h"

#include "trainer/program/shard.h"

#define ROWS 23
#define TRAIN_ROWS 19

/* Append the rows of a pass, by number, to `seen`; returns how many. */
static size_t
collect(struct wf_env *env, const struct wf_shard_opts *opts, uint64_t pass, int *seen)
{
	struct wf_shard shard;
	uint32_t row[ROWS];
	size_t count = 0;
	assert_ok(wf_shard_init(env, opts, &shard));
	wf_shard_shuffle(&shard, 7, pass);
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
				const struct wf_shard_opts opts = {.train_rows = TRAIN_ROWS,
								   .trainer = trainer,
								   .trainers = trainers,
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
		assert_ok(wf_shard_init(*state,
					&(struct wf_shard_opts){.train_rows = TRAIN_ROWS,
								.trainer = trainer,
								.trainers = 4,
								.batch_size = 4},
					&shard));
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
	assert_ok(wf_shard_init(
		*state,
		&(struct wf_shard_opts){.train_rows = TRAIN_ROWS, .trainer = 20, .trainers = 21},
		&shard));
	assert_int_equal(wf_shard_batch_count(&shard), 0);
	wf_shard_shuffle(&shard, 1, 0);
	wf_shard_fini(*state, &shard);
}

static void
the_order_differs_by_pass_and_repeats_by_seed(void **state)
{
	const struct wf_shard_opts opts = {.train_rows = TRAIN_ROWS, .trainers = 1};
	int first[ROWS], again[ROWS], other[ROWS];
	assert_int_equal(collect(*state, &opts, 3, first), TRAIN_ROWS);
	assert_int_equal(collect(*state, &opts, 3, again), TRAIN_ROWS);
	assert_int_equal(collect(*state, &opts, 4, other), TRAIN_ROWS);
	assert_memory_equal(first, again, TRAIN_ROWS * sizeof(int));
	assert_memory_not_equal(first, other, TRAIN_ROWS * sizeof(int));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_training_row_is_seen_once_by_its_trainer),
		cmocka_unit_test(trainers_may_have_different_numbers_of_batches),
		cmocka_unit_test(a_trainer_beyond_the_rows_has_no_batch),
		cmocka_unit_test(the_order_differs_by_pass_and_repeats_by_seed),
	};
	return cmocka_run_group_tests(tests, open_env, close_env);
}
