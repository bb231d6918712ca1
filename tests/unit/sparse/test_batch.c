/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sparse/client/batch: what is refused, what a batch looks like, what it sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "sparse/client/batch.h"
#include "tests/support/failing_env.h"
#include "wire/partition.h"
#include "wire/sparse_messages.h"

static struct wf_failing_env failing;

static struct wf_batch_opts
opts_of(uint32_t dim, uint32_t lane_count, uint32_t keys_max)
{
	return (struct wf_batch_opts){
		.dim = dim,
		.lane_count = lane_count,
		.keys_max = keys_max,
		.part_bytes_max = 4096,
	};
}

static struct wf_batch *
batch_of(const struct wf_batch_opts *opts)
{
	struct wf_batch *batch = NULL;
	if (wf_batch_create(&failing.env, opts, &batch) != WEFT_OK) {
		fail_msg("batch: %s", weft_last_error());
	}
	return batch;
}

static uint8_t *
send_buffer(const struct wf_batch *batch)
{
	size_t bytes =
		(wf_batch_send_bytes(batch) + WF_BATCH_ALIGN) / WF_BATCH_ALIGN * WF_BATCH_ALIGN;
	uint8_t *send = aligned_alloc(WF_BATCH_ALIGN, bytes);
	assert_non_null(send);
	memset(send, 0xee, bytes);
	return send;
}

static void
assert_not_made(const struct wf_batch_opts *opts, const char *text)
{
	struct wf_batch *batch = NULL;
	assert_int_equal(wf_batch_create(&failing.env, opts, &batch), WEFT_INVALID);
	assert_null(batch);
	if (strstr(weft_last_error(), text) == NULL) {
		fail_msg("text \"%s\" does not say \"%s\"", weft_last_error(), text);
	}
}

static void
settings_out_of_range_are_named(void **state)
{
	struct wf_batch_opts opts = opts_of(0, 1, 10);
	assert_not_made(&opts, "dim is 0");
	opts = opts_of(WF_ROW_DIM_MAX + 1, 1, 10);
	assert_not_made(&opts, "dim is 4097");
	opts = opts_of(4, 0, 10);
	assert_not_made(&opts, "lane_count is 0");
	opts = opts_of(4, WF_LANE_COUNT_MAX + 1, 10);
	assert_not_made(&opts, "lane_count is 65537");
	opts = opts_of(4, 1, 0);
	assert_not_made(&opts, "keys_max is 0");
	opts = opts_of(4, 1, WF_BATCH_KEYS_MAX + 1);
	assert_not_made(&opts, "keys_max is 4194305");
	opts = opts_of(4, 1, 10);
	opts.part_bytes_max = 23; /* 16 bytes of row and 8 of key do not fit */
	assert_not_made(&opts, "a slot of 23 bytes for rows of 24");
	opts.part_bytes_max = 24;
	opts.has_scores = true;
	assert_not_made(&opts, "a slot of 24 bytes for rows of 32");
	opts.part_bytes_max = WF_SLICE_BYTES_MAX + 1;
	assert_not_made(&opts, "a slot of 67108865 bytes");
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
every_lack_of_memory_is_a_refusal_without_a_leak(void **state)
{
	struct wf_batch_opts opts = opts_of(4, 3, 100);

	for (uint64_t nth = 1;; nth++) {
		struct wf_batch *batch = NULL;
		wf_failing_env_fail(&failing, nth, false);
		enum weft_status st = wf_batch_create(&failing.env, &opts, &batch);
		if (st == WEFT_OK) {
			assert_true(nth > 10);
			wf_batch_destroy(batch);
			break;
		}
		assert_int_equal(st, WEFT_NOMEM);
		assert_null(batch);
		assert_true(wf_failing_env_is_clean(&failing));
	}
	wf_failing_env_fail(&failing, 0, false);
	assert_true(wf_failing_env_is_clean(&failing));
	wf_batch_destroy(NULL);
}

static void
keys_stand_once_and_ascend(void **state)
{
	const uint64_t key[] = {9, UINT64_MAX, 0, 9, 9, 1ull << 40, 0};
	const uint64_t expected[] = {0, 9, 1ull << 40, UINT64_MAX};
	const uint32_t place[] = {1, 3, 0, 1, 1, 2, 0};
	struct wf_batch_opts opts = opts_of(4, 1, 7);
	struct wf_batch *batch = batch_of(&opts);
	struct wf_batch_view view;

	assert_int_equal(wf_batch_fill(batch, key, 7), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_int_equal(view.row_count, 4);
	assert_int_equal(view.key_count, 7);
	assert_memory_equal(view.key, expected, sizeof(expected));
	assert_memory_equal(view.place, place, sizeof(place));
	assert_int_equal(view.lane_first[0], 0);
	assert_int_equal(view.lane_first[1], 4);
	assert_int_equal(view.lane_part[1], 1);
	assert_int_equal(view.part[0].key_at, 4 * 16);
	assert_int_equal(view.part[0].key_bytes, 4 * 8);
	wf_batch_destroy(batch);
}

static void
a_batch_without_keys_has_no_rows_and_no_parts(void **state)
{
	struct wf_batch_opts opts = opts_of(4, 3, 5);
	struct wf_batch *batch = batch_of(&opts);
	struct wf_batch_view view;
	const uint64_t key[] = {1, 2};

	for (unsigned round = 0; round < 3; round++) { /* unfilled, emptied, emptied again */
		wf_batch_view(batch, &view);
		assert_int_equal(view.row_count, 0);
		assert_int_equal(view.key_count, 0);
		for (uint32_t lane = 0; lane <= 3; lane++) {
			assert_int_equal(view.lane_first[lane], 0);
			assert_int_equal(view.lane_part[lane], 0);
		}
		wf_batch_put_keys(batch, NULL);
		assert_int_equal(wf_batch_fill(batch, key, 2), WEFT_OK);
		assert_int_equal(wf_batch_fill(batch, NULL, 0), WEFT_OK);
	}
	wf_batch_destroy(batch);
}

static void
a_refused_fill_leaves_the_batch_as_it_was(void **state)
{
	const uint64_t good[] = {3, 1};
	const uint64_t bad[] = {5, 10};
	struct wf_batch_opts opts = opts_of(4, 1, 2);
	struct wf_batch_view view;

	opts.vocabulary = 10;
	struct wf_batch *batch = batch_of(&opts);
	assert_int_equal(wf_batch_fill(batch, good, 2), WEFT_OK);
	assert_int_equal(wf_batch_fill(batch, bad, 2), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "key 1 is 10, but the vocabulary ends at 9"));
	assert_int_equal(wf_batch_fill(batch, good, 3), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "3 keys, but it was made for 2"));
	wf_batch_view(batch, &view);
	assert_int_equal(view.row_count, 2);
	assert_true(view.key[0] == 1 && view.key[1] == 3);
	assert_true(view.place[0] == 1 && view.place[1] == 0);
	wf_batch_destroy(batch);
}

static void
filling_takes_no_memory(void **state)
{
	static uint64_t key[5000];
	struct wf_batch_opts opts = opts_of(4, 7, 5000);

	opts.may_delta = true;
	opts.has_scores = true;
	struct wf_batch *batch = batch_of(&opts);
	uint8_t *send = send_buffer(batch);
	float *grad = calloc(5000, 16);
	assert_non_null(grad);
	wf_failing_env_fail(&failing, 1, true);
	for (uint32_t count = 0; count <= 5000; count += 500) {
		for (uint32_t i = 0; i < count; i++) {
			key[i] = i * 7919ull % 3001;
		}
		assert_int_equal(wf_batch_fill(batch, key, count), WEFT_OK);
		wf_batch_put_keys(batch, send);
		wf_batch_put_grads(batch, &(struct wf_batch_grads){.grad = grad}, send);
	}
	assert_true(failing.asked == 0);
	wf_failing_env_fail(&failing, 0, false);
	free(grad);
	free(send);
	wf_batch_destroy(batch);
	assert_true(wf_failing_env_is_clean(&failing));
}

static void
parts_are_as_long_as_a_slot_holds(void **state)
{
	uint64_t key[100];
	struct wf_batch_opts opts = opts_of(4, 1, 100);
	struct wf_batch_view view;

	opts.part_bytes_max = 7 * 24 + 23; /* seven rows with their keys, not eight */
	struct wf_batch *batch = batch_of(&opts);
	for (uint32_t i = 0; i < 100; i++) {
		key[i] = i;
	}
	assert_int_equal(wf_batch_fill(batch, key, 100), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_int_equal(view.lane_part[1], 15);
	for (uint32_t p = 0; p < 15; p++) {
		assert_int_equal(view.part[p].first, p * 7);
		assert_int_equal(view.part[p].row_count, p < 14 ? 7 : 2);
		assert_int_equal(view.part[p].at % WF_BATCH_ALIGN, 0);
	}
	wf_batch_destroy(batch);
}

static void
differences_are_sent_only_where_they_are_shorter(void **state)
{
	const uint64_t close[] = {1000, 1001, 1005};
	const uint64_t alone[] = {UINT64_MAX};
	struct wf_batch_opts opts = opts_of(1, 1, 3);
	struct wf_batch_view view;

	opts.may_delta = true;
	struct wf_batch *batch = batch_of(&opts);
	assert_int_equal(wf_batch_fill(batch, close, 3), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_int_equal(view.part[0].coding, WF_KEYS_DELTA);
	assert_int_equal(view.part[0].key_bytes, 4);
	assert_int_equal(wf_batch_fill(batch, alone, 1), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_int_equal(view.part[0].coding, WF_KEYS_RAW);
	assert_int_equal(view.part[0].key_bytes, 8);
	wf_batch_destroy(batch);
}

static void
gradients_of_a_key_are_summed_in_the_order_they_came(void **state)
{
	/* In f32 another order gives another sum; a single -0 stays one. */
	const uint64_t key[] = {5, 2, 5, 5, 8};
	const float grad[] = {1e8f, 1.0f, 3.0f, -1e8f, -0.0f};
	const float show[] = {2.0f, 1.0f, 4.0f, 8.0f, 0.5f};
	const float click[] = {1.0f, 0.0f, 0.0f, 1.0f, 0.25f};
	const float sum[] = {1.0f, (1e8f + 3.0f) + -1e8f, -0.0f};
	struct wf_batch_opts opts = opts_of(1, 1, 5);
	struct wf_batch_grads grads = {.grad = grad, .show = show, .click = click};

	opts.has_scores = true;
	struct wf_batch *batch = batch_of(&opts);
	uint8_t *send = send_buffer(batch);
	assert_int_equal(wf_batch_fill(batch, key, 5), WEFT_OK);
	wf_batch_put_keys(batch, send);
	for (unsigned round = 0; round < 2; round++) { /* again: nothing is added twice */
		wf_batch_put_grads(batch, &grads, send);
		assert_memory_equal(send, sum, sizeof(sum));
		assert_memory_equal(send + 12, ((float[]){1.0f, 14.0f, 0.5f}), 12);
		assert_memory_equal(send + 24, ((float[]){0.0f, 2.0f, 0.25f}), 12);
	}
	grads = (struct wf_batch_grads){.grad = grad};
	wf_batch_put_grads(batch, &grads, send);
	assert_memory_equal(send + 12, ((float[]){1.0f, 3.0f, 1.0f}), 12);
	assert_memory_equal(send + 24, ((float[]){0.0f, 0.0f, 0.0f}), 12);
	assert_int_equal(send[36], 2); /* the keys stand where they stood */
	assert_int_equal(send[44], 5);
	assert_int_equal(send[52], 8);
	assert_int_equal(send[60], 0xee);
	free(send);
	wf_batch_destroy(batch);
}

static void
expect_keys(const struct wf_batch_part *part, const uint8_t *send, const uint64_t *expected)
{
	uint64_t key[4];
	const struct wf_keys_in in = {part->coding, send + part->key_at, part->key_bytes,
				      part->row_count};

	assert_int_equal(wf_keys_decode(&in, key), WEFT_OK);
	assert_memory_equal(key, expected, part->row_count * sizeof(key[0]));
}

/* Parts of two rows: pulled as the caller has them, pushed by ascending key. */
static void
rows_in_the_callers_order_are_pushed_by_key(void **state)
{
	const uint64_t key[] = {50, 7, 50, 9, 3};
	const float grad[] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f};
	const float show[] = {3.0f, 5.0f, 7.0f, 9.0f, 11.0f};
	struct wf_batch_opts opts = opts_of(1, 1, 5);
	struct wf_batch_view view;

	opts.part_bytes_max = 2 * (3 * sizeof(float) + WF_KEY_BYTES);
	opts.has_scores = true;
	opts.may_delta = true;
	struct wf_batch *batch = batch_of(&opts);
	uint8_t *send = send_buffer(batch);
	assert_int_equal(wf_batch_fill_in_order(batch, key, 5), WEFT_OK);
	wf_batch_put_keys(batch, send);
	wf_batch_view(batch, &view);
	assert_memory_equal(view.key, ((uint64_t[]){50, 7, 9, 3}), 4 * sizeof(uint64_t));
	assert_memory_equal(view.place, ((uint32_t[]){0, 1, 0, 2, 3}), 5 * sizeof(uint32_t));
	assert_true(!view.is_straight && view.part[0].coding == WF_KEYS_ANY);
	expect_keys(&view.part[0], send, (uint64_t[]){50, 7});
	expect_keys(&view.part[1], send, (uint64_t[]){9, 3});
	wf_batch_put_grads(batch, &(struct wf_batch_grads){.grad = grad, .show = show}, send);
	assert_memory_equal(view.key, ((uint64_t[]){50, 7, 9, 3}), 4 * sizeof(uint64_t));
	assert_true(view.part[0].coding == WF_KEYS_DELTA);
	expect_keys(&view.part[0], send, (uint64_t[]){7, 50});
	expect_keys(&view.part[1], send, (uint64_t[]){3, 9});
	assert_memory_equal(send + view.part[0].at, ((float[]){2, 5, 5, 10, 0, 0}), 24);
	assert_memory_equal(send + view.part[1].at, ((float[]){16, 8, 11, 9, 0, 0}), 24);
	assert_int_equal(wf_batch_fill_in_order(batch, key + 1, 4), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_true(view.is_straight); /* each once */
	assert_memory_equal(view.key, key + 1, 4 * sizeof(uint64_t));
	free(send);
	wf_batch_destroy(batch);
}

static void
keys_that_ascend_lie_in_the_callers_order_anyway(void **state)
{
	const uint64_t key[] = {3, 7, 9, 50};
	struct wf_batch_opts opts = opts_of(1, 1, 4);
	struct wf_batch_view view;

	struct wf_batch *batch = batch_of(&opts);
	assert_int_equal(wf_batch_fill(batch, key, 4), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_true(view.is_straight && view.part[0].coding == WF_KEYS_RAW);
	assert_int_equal(wf_batch_fill_in_order(batch, key, 4), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_true(view.is_straight && view.part[0].coding == WF_KEYS_RAW);
	wf_batch_destroy(batch);
}

static void
lanes_without_partitions_get_nothing(void **state)
{
	uint64_t key[500];
	struct wf_batch_opts opts = opts_of(4, 5000, 500);
	struct wf_batch_view view;
	uint32_t owners = 0;

	struct wf_batch *batch = batch_of(&opts);
	for (uint32_t i = 0; i < 500; i++) {
		key[i] = i;
	}
	assert_int_equal(wf_batch_fill(batch, key, 500), WEFT_OK);
	wf_batch_view(batch, &view);
	assert_int_equal(view.lane_first[5000], 500);
	for (uint32_t lane = 0; lane < 5000; lane++) {
		bool owns = wf_partition_first(lane, 5000) < wf_partition_first(lane + 1, 5000);
		uint32_t rows = view.lane_first[lane + 1] - view.lane_first[lane];
		assert_true(owns || rows == 0);
		assert_int_equal(view.lane_part[lane + 1] - view.lane_part[lane], rows > 0);
		owners += rows > 0;
	}
	assert_true(owners > 300);
	wf_batch_destroy(batch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_out_of_range_are_named),
		cmocka_unit_test(every_lack_of_memory_is_a_refusal_without_a_leak),
		cmocka_unit_test(keys_stand_once_and_ascend),
		cmocka_unit_test(a_batch_without_keys_has_no_rows_and_no_parts),
		cmocka_unit_test(a_refused_fill_leaves_the_batch_as_it_was),
		cmocka_unit_test(filling_takes_no_memory),
		cmocka_unit_test(parts_are_as_long_as_a_slot_holds),
		cmocka_unit_test(differences_are_sent_only_where_they_are_shorter),
		cmocka_unit_test(gradients_of_a_key_are_summed_in_the_order_they_came),
		cmocka_unit_test(rows_in_the_callers_order_are_pushed_by_key),
		cmocka_unit_test(keys_that_ascend_lie_in_the_callers_order_anyway),
		cmocka_unit_test(lanes_without_partitions_get_nothing),
	};
	struct wf_env *env = NULL;
	enum weft_status st = wf_env_system_create(WF_LOG_ERROR, 2, &env);
	WF_ASSERT(st == WEFT_OK);
	wf_failing_env_init(&failing, env);
	int failed = cmocka_run_group_tests_name("sparse batch", tests, NULL, NULL);
	wf_env_system_destroy(env);
	return failed;
}
