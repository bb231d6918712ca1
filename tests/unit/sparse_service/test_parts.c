/* SPDX-License-Identifier: Apache-2.0 */
/* A part has the length that its message announces. Otherwise nothing of it is read, and it costs
 * the connection, by name. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Two keys and their gradients, as a part that says so; `count` bytes of it are put. */
static void
push_cut(struct doll *doll, size_t count)
{
	const struct wf_sparse_push push = {
		.step = 1,
		.samples = 1,
		.flags = WF_SPARSE_PUSH_LAST,
		.part_count = 1,
		.part = {{.row_count = 2, .key_bytes = 16}},
	};
	uint8_t bytes[1024] = {0};
	bytes[2 * GROUND_DIM * sizeof(float) + WF_KEY_BYTES] = 1;
	doll_say_push(doll, &push);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 1), bytes, count);
}

static void
part_of_a_push_that_is_short(struct doll *doll)
{
	push_cut(doll, 4);
}

static void
part_of_a_push_that_is_long(struct doll *doll)
{
	push_cut(doll, 2 * GROUND_DIM * sizeof(float) + 16 + 1);
}

static void
pull_cut(struct doll *doll, uint32_t rows, size_t count)
{
	const struct wf_sparse_pull pull = {
		.request_id = 1,
		.part_count = 1,
		.part = {{.row_count = rows, .key_bytes = rows * WF_KEY_BYTES}},
	};
	const uint64_t key[] = {0, 1, 2};
	doll_say_pull(doll, &pull);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 0), key, count);
}

static void
part_of_a_pull_that_is_short(struct doll *doll)
{
	pull_cut(doll, 40, WF_KEY_BYTES);
}

static void
part_of_a_pull_that_is_long(struct doll *doll)
{
	pull_cut(doll, 2, 3 * WF_KEY_BYTES);
}

/* Its message gets NACK; its parts come all the same, and are as long as it said. */
static void
part_of_a_refused_pull_that_is_short(struct doll *doll)
{
	const struct wf_sparse_pull pull = {
		.request_id = 1,
		.step = 5,
		.part_count = 1,
		.part = {{.row_count = 2, .key_bytes = 16}},
	};
	const uint64_t key = 0;
	doll_say_pull(doll, &pull);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 5), &key,
		     sizeof(key));
}

static void
rows_put_back_that_are_short(struct doll *doll)
{
	const struct wf_sparse_restore restore = {
		.request_id = 1, .step = 2, .table_step = 2, .samples = 4, .bytes = 512};
	const uint8_t bytes[16] = {0};
	struct wf_msg msg;
	wf_sparse_restore_encode(&restore, &msg);
	peer_send(&doll->peer, &msg);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 2), bytes,
		     sizeof(bytes));
}

static const struct {
	void (*act)(struct doll *doll);
	const char *says;
} cuts[] = {
	{part_of_a_push_that_is_short, "PUT: part 0 has 4 bytes, but its message says 48"},
	{part_of_a_push_that_is_long, "PUT: part 0 has 49 bytes, but its message says 48"},
	{part_of_a_pull_that_is_short, "PUT: part 0 has 8 bytes, but its message says 320"},
	{part_of_a_pull_that_is_long, "PUT: part 0 has 24 bytes, but its message says 16"},
	{part_of_a_refused_pull_that_is_short, "PUT: part 0 has 8 bytes, but its message says 16"},
	{rows_put_back_that_are_short, "PUT: part 0 has 16 bytes, but its message says 512"},
};

static void
a_part_of_another_length_costs_the_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		ground_offend(i, cuts[i].act, cuts[i].says);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_of_another_length_costs_the_connection),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
