/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/sparse_messages: each message's own fields. What holds for all messages alike is in
 * test_messages.c, which goes over the same catalogue. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/wire/samples.h"

static const struct body_case wrong_bodies[] = {
	{"sparse_table", {0, 4, 0, "TABLE: table_count is 0"}},
	{"sparse_table", {0, 4, 1025, "TABLE: table_count is 1025"}},
	{"sparse_table", {0, 4, 2, "TABLE: slice is 2"}},
	{"sparse_table", {4, 1, 2, "TABLE: grad_reduce is 2"}},
	{"sparse_table", {5, 1, 2, "TABLE: nonfinite is 2"}},
	{"sparse_table", {6, 4, 0, "table words: dim is 0"}},
	{"sparse_table", {6, 4, 4097, "table words: dim is 4097, must be 1 to 4096"}},
	{"sparse_table", {26, 1, 3, "table words: rest 3: must be"}},
	{"sparse_table", {27, 1, 255, "table words: wire 255: must be"}},
	{"sparse_table", {28, 1, 2, "table: dense_equivalent is 2"}},
	{"sparse_table", {29, 1, 7, "table: evict_at_cap is 7"}},
	{"sparse_table",
	 {74, 8, 0x7ff0000000000000, "table words: learning_rate inf: must be a finite"}},
	{"sparse_table",
	 {234, 8, 0x7ff8000000000000, "table words: evict_fade nan: must be a finite"}},
	{"sparse_table", {242, 2, 6, "table: its name"}},
	{"sparse_table", {242, 2, 4, "TABLE: its fields take 261 bytes, but it has 262"}},
	{"sparse_table", {249, 1, 3, "TABLE: tables: mode is 3"}},
	{"sparse_table", {249, 1, 1, "TABLE: tables: staleness is 3 in mode 1"}},
	{"sparse_table", {249, 1, 0, "TABLE: tables: staleness is 3 in mode 0"}},
	{"sparse_table", {254, 8, 0xbff0000000000000, "TABLE: tables: discard_ratio is -1"}},
	{"sparse_table", {254, 8, 0x7ff8000000000000, "TABLE: tables: discard_ratio is "}},
	{"sparse_table", {244, 1, ' ', "byte 0 of its name is 0x20"}},
	{"sparse_table", {244, 1, '\n', "table: its name"}},
	{"sparse_push", {0, 8, 0, "PUSH: samples is 0"}},
	{"sparse_push", {0, 8, (1ull << 40) + 1, "PUSH: samples is 1099511627777"}},
	{"sparse_push", {8, 4, 16, "PUSH: flags is 16"}},
	{"sparse_push", {8, 4, 13, "PUSH: flags is 13"}}, /* to be applied, and dropped */
	{"sparse_push", {8, 4, 7, "PUSH: flags is 7"}},   /* out of data, and to be applied */
	{"sparse_push", {8, 4, 2, "PUSH: part_count or samples is 406"}},
	{"sparse_push", {8, 4, 3, "PUSH: part_count or samples is 406"}},
	{"sparse_push", {16, 2, 1, "PUSH: part_count is 1"}},
	{"sparse_push", {16, 2, 3, "PUSH: part_count is 3"}},
	{"sparse_push", {16, 2, 193, "PUSH: part_count is 193"}},
	{"sparse_push", {16, 2, 65535, "PUSH: part_count is 65535"}},
	{"sparse_push", {18, 2, 1024, "PUSH: table is 1024"}},
	{"sparse_push", {20, 2, 3, "PUSH: coding is 3"}},
	{"sparse_push", {20, 2, 256, "PUSH: coding is 256"}},
	{"sparse_push", {32, 2, 2, "PUSH: coding is 2, must be 0 (raw) or 1 (differences)"}},
	{"sparse_applied", {32, 1, 2, "APPLIED: dropped is 2"}},
	{"sparse_push", {20, 2, 0, "PUSH: key_bytes is 5000, must be 8 a row"}},
	{"sparse_push", {22, 4, 0, "PUSH: row_count is 0"}},
	{"sparse_push", {22, 4, WF_SPARSE_ROWS_MAX + 1, "PUSH: row_count is 1048577"}},
	{"sparse_push", {22, 4, UINT32_MAX, "PUSH: row_count is 4294967295"}},
	{"sparse_push", {26, 4, 4095, "PUSH: key_bytes is 4095"}},
	{"sparse_push", {26, 4, 32768, "PUSH: key_bytes is 32768"}},
	{"sparse_push", {34, 4, WF_SPARSE_ROWS_MAX - 4095, "PUSH: row_count is 1044481"}},
	{"sparse_push", {38, 4, 55, "PUSH: key_bytes is 55"}},
	{"sparse_pull", {0, 4, 4, "PULL: flags is 4"}},
	{"sparse_pull", {4, 2, 0, "PULL: part_count is 0"}},
	{"sparse_pull", {4, 2, 1, "PULL: part_count is 1"}},
	{"sparse_pull", {4, 2, 193, "PULL: part_count is 193"}},
	{"sparse_pull", {6, 2, 1024, "PULL: table is 1024"}},
	{"sparse_pull", {8, 2, 3, "PULL: coding is 3"}},
	{"sparse_pull", {28, 2, 2, "PULL: key_bytes is 3, must be 8 a row"}},
	{"sparse_pull", {10, 4, 0, "PULL: row_count is 0"}},
	{"sparse_pull", {14, 4, 1, "PULL: key_bytes is 1"}},
	{"sparse_pull", {18, 8, (1ull << 58) + 1, "PULL: offset is 28823037615171"}},
	{"sparse_pull", {34, 4, 2, "PULL: key_bytes is 2"}},
	{"sparse_pull", {34, 4, 24, "PULL: key_bytes is 24"}},
	{"sparse_nack", {0, 2, WEFT_OK, "NACK: status is 0"}},
	{"sparse_nack", {0, 2, WEFT_AGAIN, "NACK: status is 1"}},
	{"sparse_nack", {0, 2, 18, "NACK: status is 18"}},
	{"sparse_nack", {2, 2, 27, "NACK: reason"}},
	{"sparse_nack", {2, 2, 25, "NACK: its fields take 29 bytes, but it has 30"}},
	{"sparse_nack", {4, 1, 0x1b, "NACK: reason"}},
	{"sparse_fetch", {0, 4, 1024, "FETCH: partition is 1024"}},
	{"sparse_fetch", {4, 4, 0, "FETCH: kind is 0"}},
	{"sparse_fetch", {4, 4, 3, "FETCH: kind is 3"}},
	{"sparse_fetch", {4, 4, 1, "FETCH: key is"}},
	{"sparse_fetch", {16, 4, 127, "FETCH: bytes is 127"}},
	{"sparse_fetch", {16, 4, 65537, "FETCH: bytes is 65537"}},
	{"sparse_fetch", {24, 8, (1ull << 58) + 1, "FETCH: offset is 28823037615171"}},
	{"sparse_restore", {0, 8, 1ull << 63, "RESTORE: samples is 9223372036854775808"}},
	{"sparse_restore", {16, 4, 65537, "RESTORE: bytes is 65537"}},
	{"sparse_changed", {0, 1, 2, "CHANGED: last is 2"}},
	{"sparse_changed", {1, 4, 1, "CHANGED: row_count is 1"}},
	{"sparse_changed", {1, 4, 257, "CHANGED: row_count is 257"}},
	{"sparse_changed", {1, 4, UINT32_MAX, "CHANGED: row_count is 4294967295"}},
	{"sparse_changed", {5, 4, 0, "CHANGED: row_bytes is 0"}},
	{"sparse_changed", {5, 4, 7, "CHANGED: row_count is 2"}},
	{"sparse_changed", {5, 4, 4020, "CHANGED: row_bytes is 4020"}},
	{"sparse_changed", {9, 4, 0x010203, "CHANGED: row is 66051"}},
	{"sparse_changed", {13, 4, 1u << 20, "CHANGED: row is 1048576"}},
};

static void
each_wrong_field_of_a_body_is_named(void **state)
{
	assert_bodies_refused(wrong_bodies, sizeof(wrong_bodies) / sizeof(wrong_bodies[0]));
}

static void
each_wrong_field_of_a_head_is_named(void **state)
{
	static const struct head_case wrong[] = {
		{"sparse_table", {.slice = 1}, "TABLE: slice is 3"},
		{"sparse_table", {.slice = UINT32_MAX - 2}, "TABLE: slice is 4294967295"},
		{"sparse_push", {.step = UINT64_MAX - 40}, "PUSH: step is 0"},
		{"sparse_push", {.step = UINT64_MAX - 41}, "PUSH: step is 18446744073709551615"},
		{"sparse_pull", {.step = UINT64_MAX - 17}, "PULL: step is 18446744073709551615"},
		{"sparse_pull", {.request_id = 0ull - 0x0a0b0c0d0e0f1011}, "PULL: request_id is 0"},
		{"sparse_applied", {.step = 0ull - 41}, "APPLIED: step is 0"},
		{"sparse_applied",
		 {.step = UINT64_MAX - 41},
		 "APPLIED: step is 184467440737095516"},
		{"sparse_nack", {.slice = 1}, "NACK: slice is 192"},
		{"sparse_fetch", {.slice = 1021}, "FETCH: slice is 1024"},
		{"sparse_fetch", {.request_id = 0ull - 0x31}, "FETCH: request_id is 0"},
		{"sparse_fetch", {.step = UINT64_MAX - 40}, "FETCH: step is 1844674407370955"},
		{"sparse_restore", {.slice = 1021}, "RESTORE: slice is 1024"},
		{"sparse_restore", {.request_id = 0ull - 0x32}, "RESTORE: request_id is 0"},
		{"sparse_restore", {.step = UINT64_MAX - 40}, "RESTORE: step is 1844674407370955"},
		{"sparse_restored", {.request_id = 0ull - 0x32}, "RESTORED: request_id is 0"},
		{"sparse_changed", {.request_id = 0ull - 0x33}, "CHANGED: request_id is 0"},
		{"sparse_changed", {.step = 0ull - 40}, "CHANGED: step is 0"},
		{"sparse_changed", {.slice = 1}, "CHANGED: slice is 192"},
	};
	assert_heads_refused(wrong, sizeof(wrong) / sizeof(wrong[0]));
}

static void
a_table_comes_back(void **state)
{
	static union any_message in;
	static struct wf_msg msg;
	struct wf_sparse_table out;
	struct wf_table_desc *t = &in.table.table;

	in.table = (struct wf_sparse_table){.idx = 1023, .table_count = WF_TABLE_COUNT_MAX};
	memset(t->name, '~', WF_TENSOR_NAME_BYTES - 1);
	t->set.dim = WF_TABLE_DIM_MAX;
	t->set.vocabulary = UINT64_MAX;
	t->optimizer = UINT32_MAX; /* what it means is checked by who applies it */
	t->set.optimizer.schedule_b = -0.0;
	t->set.init_seed = UINT64_MAX;
	t->set.evict_fade = 1e-308;
	t->set.evict_at_cap = true;
	wf_sparse_table_encode(&in.table, &msg);
	assert_int_equal(wf_sparse_table_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(out.idx, 1023);
	assert_int_equal(out.table_count, WF_TABLE_COUNT_MAX);
	assert_string_equal(out.table.name, t->name);
	assert_int_equal(out.table.set.dim, WF_TABLE_DIM_MAX);
	assert_true(out.table.set.vocabulary == UINT64_MAX &&
		    out.table.set.init_seed == UINT64_MAX);
	assert_int_equal(out.table.optimizer, UINT32_MAX);
	assert_memory_equal(&out.table.set.optimizer.schedule_b, &t->set.optimizer.schedule_b,
			    sizeof(double));
	assert_memory_equal(&out.table.set.evict_fade, &t->set.evict_fade, sizeof(double));
	assert_true(out.table.set.evict_at_cap && !out.table.set.optimizer.dense_equivalent);
}

static void
an_empty_push_comes_back_with_data_and_without(void **state)
{
	static struct wf_msg msg;
	static struct wf_sparse_push out;
	static const struct wf_sparse_push push[] = {
		{.step = 1, .samples = 1, .flags = WF_SPARSE_PUSH_LAST},
		{.step = UINT64_MAX - 1,
		 .epoch = UINT64_MAX,
		 .samples = WF_STEP_SAMPLES_MAX,
		 .pass = UINT32_MAX,
		 .flags = WF_SPARSE_PUSH_LAST},
		{.step = 2, .flags = WF_SPARSE_PUSH_LAST | WF_SPARSE_PUSH_OUT_OF_DATA},
	};
	for (size_t i = 0; i < sizeof(push) / sizeof(push[0]); i++) {
		wf_sparse_push_encode(&push[i], &msg);
		assert_int_equal(wf_sparse_push_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_true(out.step == push[i].step && out.epoch == push[i].epoch);
		assert_true(out.samples == push[i].samples && out.flags == push[i].flags);
		assert_true(out.pass == push[i].pass && out.part_count == 0);
	}
	static const struct wf_sparse_push not_last = {.step = 1, .samples = 1};
	wf_sparse_push_encode(&not_last, &msg);
	assert_refused(wf_sparse_push_decode(&msg.head, msg.body, &out), WEFT_PROTOCOL,
		       "PUSH: part_count is 0");
	static const struct wf_sparse_push out_but_more = {.step = 1,
							   .flags = WF_SPARSE_PUSH_OUT_OF_DATA};
	wf_sparse_push_encode(&out_but_more, &msg);
	assert_refused(wf_sparse_push_decode(&msg.head, msg.body, &out), WEFT_PROTOCOL,
		       "PUSH: part_count or samples is 0");
}

static void
the_fullest_push_and_pull_come_back(void **state)
{
	static struct wf_msg msg;
	static struct wf_sparse_push push, push_out;
	static struct wf_sparse_pull pull, pull_out;

	push = (struct wf_sparse_push){.step = 3, .samples = 1, .part_count = WF_SPARSE_PARTS_MAX};
	pull = (struct wf_sparse_pull){
		.request_id = UINT64_MAX, .step = 0, .part_count = WF_SPARSE_PARTS_MAX};
	for (uint32_t i = 0; i < WF_SPARSE_PARTS_MAX; i++) {
		uint32_t rows = WF_SPARSE_ROWS_MAX / WF_SPARSE_PARTS_MAX;
		struct wf_sparse_part part = {
			.table = (uint16_t)(WF_TABLE_COUNT_MAX - 1 - i),
			.coding = i % 2,
			.row_count = rows,
			.key_bytes = i % 2 == 0 ? 8 * rows : 8 * rows - i,
		};
		push.part[i] = part;
		pull.part[i] = part;
		pull.part[i].offset = WF_SPARSE_RANGE_MAX - i;
	}
	wf_sparse_push_encode(&push, &msg);
	assert_int_equal(wf_sparse_push_decode(&msg.head, msg.body, &push_out), WEFT_OK);
	wf_sparse_pull_encode(&pull, &msg);
	assert_int_equal(wf_sparse_pull_decode(&msg.head, msg.body, &pull_out), WEFT_OK);
	assert_int_equal(push_out.part_count, WF_SPARSE_PARTS_MAX);
	assert_int_equal(pull_out.part_count, WF_SPARSE_PARTS_MAX);
	assert_true(pull_out.request_id == UINT64_MAX && pull_out.step == 0);
	for (uint32_t i = 0; i < WF_SPARSE_PARTS_MAX; i++) {
		assert_int_equal(push_out.part[i].table, push.part[i].table);
		assert_int_equal(push_out.part[i].coding, push.part[i].coding);
		assert_int_equal(push_out.part[i].row_count, push.part[i].row_count);
		assert_int_equal(push_out.part[i].key_bytes, push.part[i].key_bytes);
		assert_true(push_out.part[i].offset == 0);
		assert_true(pull_out.part[i].offset == pull.part[i].offset);
		assert_int_equal(pull_out.part[i].row_count, push.part[i].row_count);
	}
}

static void
a_refused_push_leaves_what_was_there(void **state)
{
	static struct wf_msg msg;
	static union any_message out, before;
	const char *const names[] = {"sparse_push", "sparse_pull", "sparse_table"};

	for (size_t i = 0; i < 3; i++) {
		const struct catalogue_entry *entry = sample_encode_named(names[i], &msg);
		msg.body[msg.body_bytes - 1] = 0xff; /* of the last part, or of the name */
		memset(&out, 0x5a, sizeof(out));
		memset(&before, 0x5a, sizeof(before));
		assert_int_equal(sample_decode(entry, &msg.head, msg.body, &out), WEFT_PROTOCOL);
		assert_memory_equal(&out, &before, sizeof(out));
	}
}

static void
a_refusal_is_cut_not_read_past(void **state)
{
	static struct wf_msg msg;
	struct wf_sparse_nack nack = {.request_id = 1, .step = 2, .part = 3, .status = WEFT_NOMEM};
	struct wf_sparse_nack out;

	memset(nack.reason, 'r', sizeof(nack.reason)); /* no NUL */
	wf_sparse_nack_encode(&nack, &msg);
	assert_int_equal(wf_sparse_nack_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(strlen(out.reason), WF_REASON_BYTES - 1);
	assert_true(out.request_id == 1 && out.step == 2 && out.part == 3);
	assert_int_equal(out.status, WEFT_NOMEM);
}

static void
tags_name_part_buffer_request_and_step(void **state)
{
	uint32_t last = WF_SPARSE_PARTS_MAX - 1;
	uint32_t tag = wf_sparse_put_tag(last, WF_GRANT_SLOT_COUNT_MAX, 1023, 0x1ff);

	assert_int_equal(wf_tag_slot(tag) % WF_GRANT_SLOT_COUNT_MAX, 1023);
	assert_int_equal(wf_tag_slot(tag) / WF_GRANT_SLOT_COUNT_MAX, last);
	assert_int_equal(wf_tag_step(tag), 0xff);
	tag = wf_sparse_answer_tag(0x12345, last, 0x102);
	assert_int_equal(wf_tag_slot(tag) >> 8, 0x2345);
	assert_int_equal(wf_tag_slot(tag) & 0xff, last);
	assert_int_equal(wf_tag_step(tag), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wrong_field_of_a_body_is_named),
		cmocka_unit_test(each_wrong_field_of_a_head_is_named),
		cmocka_unit_test(a_table_comes_back),
		cmocka_unit_test(an_empty_push_comes_back_with_data_and_without),
		cmocka_unit_test(the_fullest_push_and_pull_come_back),
		cmocka_unit_test(a_refused_push_leaves_what_was_there),
		cmocka_unit_test(a_refusal_is_cut_not_read_past),
		cmocka_unit_test(tags_name_part_buffer_request_and_step),
	};
	return cmocka_run_group_tests_name("wire sparse messages", tests, NULL, NULL);
}
