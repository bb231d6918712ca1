/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/registry_messages: each message's own fields. What holds for all messages alike is
 * in test_messages.c, which goes over the same catalogue. */
#include <stdio.h>

#include "base/limits.h"
#include "tests/unit/wire/samples.h"

#define TOP (1ull << 63) /* the first number that is neither an epoch nor a step */

static const struct body_case wrong_bodies[] = {
	{"registry_join", {0, 8, TOP, "JOIN: serves is 9223372036854775808"}},
	{"registry_join", {8, 8, TOP, "JOIN: loaded_epoch is 9223372036854775808"}},
	{"registry_join",
	 {8, 8, 0, "JOIN: epoch of the snapshot is 1230066625199609623, must be below the epoch"}},
	{"registry_join", {16, 8, 0x1112131415161718, "JOIN: epoch of the snapshot is 12300666"}},
	{"registry_join", {16, 8, 0, "JOIN: step of the snapshot is 2387509390608836392, must be"}},
	{"registry_join", {24, 8, TOP, "JOIN: step of the snapshot is 9223372036854775808"}},
	{"registry_join", {32, 4, 0, "JOIN: dense_lanes is 0, must be 1 to 256"}},
	{"registry_join", {32, 4, 257, "JOIN: dense_lanes is 257"}},
	{"registry_join", {36, 4, 256, "JOIN: sparse_lanes is 256, must be 0 to 255"}},
	{"registry_join", {36, 4, UINT32_MAX, "JOIN: sparse_lanes is 4294967295"}},
	{"registry_load", {0, 8, 0, "LOAD: epoch is 0, must be 1 or more"}},
	{"registry_load", {0, 8, TOP, "LOAD: epoch is 9223372036854775808"}},
	{"registry_load",
	 {8, 8, 0x0102030405060708, "LOAD: epoch of the snapshot is 72623859790382856"}},
	{"registry_load", {8, 8, UINT64_MAX, "LOAD: epoch of the snapshot is 184467440737095516"}},
	{"registry_load",
	 {8, 8, 0, "LOAD: step of the snapshot is 1230066625199609624, must be 0"}},
	{"registry_load", {16, 8, TOP, "LOAD: step of the snapshot is 9223372036854775808"}},
	{"registry_loaded", {0, 8, 0, "LOADED: epoch is 0"}},
	{"registry_loaded", {0, 8, 2, "LOADED: epoch of the snapshot is 2"}},
	{"registry_loaded", {8, 8, 3, "LOADED: epoch of the snapshot is 3"}},
	{"registry_loaded", {8, 8, 0, "LOADED: step of the snapshot is 1230066625199609624"}},
	{"registry_loaded", {16, 8, UINT64_MAX, "LOADED: step of the snapshot is 18446744073709"}},
	{"registry_bad", {0, 8, 0, "BAD: epoch is 0"}},
	{"registry_bad", {0, 8, 1, "BAD: epoch of the snapshot is 1"}},
	{"registry_bad", {8, 8, 0, "BAD: step of the snapshot is 500"}},
	{"registry_bad", {16, 8, TOP, "BAD: step of the snapshot is 9223372036854775808"}},
	{"registry_bad", {24, 2, 28, "BAD: reason"}},
	{"registry_bad", {24, 2, 256, "BAD: reason"}},
	{"registry_bad", {24, 2, 26, "BAD: its fields take 52 bytes, but it has 53"}},
	{"registry_bad", {24, 2, 0, "BAD: its fields take 26 bytes, but it has 53"}},
	{"registry_bad", {26, 1, 0x1b, "BAD: reason"}},
	{"registry_bad", {52, 1, 0, "BAD: reason"}},
	{"registry_run", {0, 8, 0, "RUN: epoch is 0"}},
	{"registry_run", {8, 8, 3, "RUN: epoch of the snapshot is 3"}},
	{"registry_run", {8, 8, 0, "RUN: step of the snapshot is 500"}},
	{"registry_run", {16, 8, TOP, "RUN: step of the snapshot is 9223372036854775808"}},
	{"registry_run", {24, 8, TOP, "RUN: samples is 9223372036854775808, must be below 2^63"}},
	{"registry_snapshot", {0, 8, 0, "SNAPSHOT: epoch is 0"}},
	{"registry_snapshot", {0, 8, TOP, "SNAPSHOT: epoch is 9223372036854775808"}},
	{"registry_snapshot", {8, 8, 0, "SNAPSHOT: border is 0, must be 1 or more"}},
	{"registry_snapshot", {8, 8, TOP, "SNAPSHOT: border is 9223372036854775808"}},
	{"registry_snapshot",
	 {16, 8, 0x0102030405060708, "SNAPSHOT: base is 72623859790382856, must be below the b"}},
	{"registry_part", {0, 8, 0, "PART: epoch is 0"}},
	{"registry_part", {8, 8, 0, "PART: border is 0"}},
	{"registry_part", {8, 8, TOP, "PART: border is 9223372036854775808"}},
	{"registry_part", {16, 1, 1, "PART: service is 1, must be 2 (dense) or 3 (sparse)"}},
	{"registry_part", {16, 1, 4, "PART: service is 4"}},
	{"registry_part", {16, 1, 2, "PART: table_count is 515, must be 0 for a dense lane"}},
	{"registry_part", {17, 4, 65536, "PART: lane is 65536, must be below 65536"}},
	{"registry_part", {21, 8, 0, "PART: bytes is 0"}},
	{"registry_part", {21, 8, TOP, "PART: bytes is 9223372036854775808"}},
	{"registry_part", {33, 2, 0, "PART: first is 513, must be below table_count"}},
	{"registry_part", {33, 2, 513, "PART: first is 513"}},
	{"registry_part", {33, 2, 514, "PART: count is 2, must be 1 to 256 of the tables"}},
	{"registry_part", {33, 2, 1025, "PART: table_count is 1025, must be 0 to 1024"}},
	{"registry_part", {35, 2, 514, "PART: count is 2"}},
	{"registry_part", {35, 2, 515, "PART: first is 515"}},
	{"registry_part", {37, 2, 0, "PART: count is 0, must be an eighth of the bytes"}},
	{"registry_part", {37, 2, 1, "PART: count is 1, must be an eighth of the bytes"}},
	{"registry_part", {37, 2, 3, "PART: count is 3"}},
	{"registry_part", {37, 2, 0x2002, "PART: count is 8194"}}, /* times 8 is 16 in 16 bits */
	{"registry_part", {39, 8, 1ull << 47, "PART: rows is 140737488355328, must be below 2^47"}},
	{"registry_part", {47, 8, UINT64_MAX, "PART: rows is 18446744073709551615"}},
	{"registry_part_dense", {16, 1, 0, "PART: service is 0"}},
	{"registry_part_dense", {33, 2, 1, "PART: table_count is 1, must be 0 for a dense lane"}},
	{"registry_part_dense", {35, 2, 1, "PART: first is 1"}},
	{"registry_part_dense", {37, 2, 1, "PART: count is 1"}},
	{"registry_failed", {0, 8, 0, "FAILED: epoch is 0"}},
	{"registry_failed", {8, 8, 0, "FAILED: border is 0"}},
	{"registry_failed", {8, 8, TOP, "FAILED: border is 9223372036854775808"}},
	{"registry_failed", {16, 2, 25, "FAILED: reason"}},
	{"registry_failed", {16, 2, 256, "FAILED: reason"}},
	{"registry_failed", {16, 2, 0, "FAILED: its fields take 18 bytes, but it has 42"}},
	{"registry_failed", {18, 1, '\n', "FAILED: reason"}},
	{"registry_failed", {41, 1, 0x7f, "FAILED: reason"}},
	{"registry_lost", {0, 8, 0, "LOST: incarnation is 0, must be not 0"}},
	{"registry_lost", {8, 4, 65536, "LOST: trainer is 65536"}},
	{"registry_lost", {12, 4, 2, "LOST: flags is 2, must be WILLING, or 0"}},
	{"registry_lost", {12, 4, UINT32_MAX, "LOST: flags is 4294967295"}},
	{"registry_lost", {16, 2, 17, "LOST: text"}},
	{"registry_lost", {16, 2, 256, "LOST: text"}},
	{"registry_lost", {16, 2, 15, "LOST: its fields take 33 bytes, but it has 34"}},
	{"registry_lost", {18, 1, 0x1b, "LOST: text"}},
	{"registry_comes", {0, 8, 0, "COMES: incarnation is 0"}},
	{"registry_comes", {8, 4, 65536, "COMES: trainer is 65536"}},
	{"registry_member", {0, 8, 0, "MEMBER: change is 0, must be 1 or more"}},
	{"registry_member", {0, 8, TOP, "MEMBER: change is 9223372036854775808"}},
	{"registry_member", {8, 8, 0, "MEMBER: incarnation is 0"}},
	{"registry_member", {16, 8, 0, "MEMBER: flags is 3"}},
	{"registry_member",
	 {16, 8, 0x212223242526272a, "MEMBER: border is 2387509390608836394, must be the step"}},
	{"registry_member", {16, 8, 0x2122232425262727, "MEMBER: border is 2387509390608836391"}},
	{"registry_member", {24, 8, TOP, "MEMBER: applied is 9223372036854775808"}},
	{"registry_member", {24, 8, INT64_MAX, "MEMBER: applied is 9223372036854775807"}},
	{"registry_member", {32, 8, TOP, "MEMBER: samples is 9223372036854775808"}},
	{"registry_member", {40, 4, 65536, "MEMBER: trainer is 65536"}},
	{"registry_member", {44, 4, 0, "MEMBER: samples is 3544952156018063160, must be 0"}},
	{"registry_member", {44, 4, 2, "MEMBER: flags is 2"}},
	{"registry_member", {44, 4, 4, "MEMBER: samples is 3544952156018063160, must be 0"}},
	{"registry_member", {44, 4, 8, "MEMBER: border is 2387509390608836392, must be the step"}},
	{"registry_member", {44, 4, 9, "MEMBER: flags is 9"}},
	{"registry_member", {44, 4, 16, "MEMBER: flags is 16"}},
	{"registry_member_joins", {16, 8, 0, "MEMBER: border is 0, must be the step after"}},
	{"registry_member_joins", {16, 8, 9, "MEMBER: border is 9, must be the step after"}},
	{"registry_member_joins", {16, 8, 11, "MEMBER: border is 11"}},
	{"registry_member_joins", {24, 8, 0, "MEMBER: border is 10, must be the step after"}},
	{"registry_member_joins",
	 {24, 8, 1ull << 62, "MEMBER: border is 10, must be the step after"}},
	{"registry_member_joins", {32, 8, TOP, "MEMBER: samples is 9223372036854775808"}},
	{"registry_member_joins", {44, 4, 12, "MEMBER: flags is 12"}},
	{"registry_member_joins", {44, 4, 0, "MEMBER: samples is 3544952156018063160"}},
	{"registry_stands", {0, 8, 0, "STANDS: change is 0"}},
	{"registry_stands", {8, 8, INT64_MAX, "STANDS: applied is 9223372036854775807"}},
	{"registry_stands", {24, 8, TOP, "STANDS: samples is 9223372036854775808"}},
	{"registry_stands", {32, 8, TOP, "STANDS: total is 9223372036854775808"}},
	{"registry_stands", {40, 8, INT64_MAX, "STANDS: highest is 9223372036854775807"}},
	{"registry_stands", {48, 4, 16, "STANDS: flags is 16"}},
	{"registry_stands", {48, 4, 4, "STANDS: flags is 4"}},
	{"registry_stands", {48, 4, 1, "STANDS: samples is 2387509390608836392"}},
	{"registry_stands", {52, 2, 10, "STANDS: text"}},
	{"registry_stands", {52, 2, 0, "STANDS: its fields take 54 bytes, but it has 63"}},
	{"registry_stands", {54, 1, '\n', "STANDS: text"}},
	{"registry_settled", {0, 8, 0, "SETTLED: change is 0"}},
	{"registry_settled", {0, 8, TOP, "SETTLED: change is 9223372036854775808"}},
};

static void
each_wrong_field_is_named(void **state)
{
	assert_bodies_refused(wrong_bodies, sizeof(wrong_bodies) / sizeof(wrong_bodies[0]));
}

static void
each_stage_of_a_pserver_comes_back(void **state)
{
	const struct wf_registry_join join[] = {
		{.dense_lanes = 1},
		{.loaded_epoch = 1, .dense_lanes = 2, .sparse_lanes = 1},
		{.serves = 1, .loaded_epoch = 2, .loaded = {1, 0}, .dense_lanes = 3},
		{.serves = INT64_MAX,
		 .loaded_epoch = INT64_MAX,
		 .loaded = {INT64_MAX - 1, INT64_MAX},
		 .dense_lanes = WF_PSERVER_LANES_MAX,
		 .sparse_lanes = WF_PSERVER_LANES_MAX - 1},
	};
	for (size_t i = 0; i < sizeof(join) / sizeof(join[0]); i++) {
		static struct wf_msg msg;
		struct wf_registry_join out;
		wf_registry_join_encode(&join[i], &msg);
		assert_int_equal(wf_registry_join_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_memory_equal(&out, &join[i], sizeof(out)); /* it has no padding */
	}
}

static void
an_epoch_comes_back_with_a_snapshot_and_without(void **state)
{
	const struct wf_registry_load load[] = {
		{.epoch = 1},
		{.epoch = 2, .base = {1, 0}, .crc = 0},
		{.epoch = INT64_MAX, .base = {INT64_MAX - 1, INT64_MAX}, .crc = UINT32_MAX},
	};
	for (size_t i = 0; i < sizeof(load) / sizeof(load[0]); i++) {
		static struct wf_msg msg;
		const struct wf_registry_load *in = &load[i];
		const struct wf_registry_loaded loaded = {.epoch = in->epoch, .base = in->base};
		const struct wf_registry_run run = {
			.epoch = in->epoch, .base = in->base, .samples = i == 0 ? 0 : INT64_MAX};
		struct wf_registry_load load_out;
		struct wf_registry_loaded loaded_out;
		struct wf_registry_run run_out;

		wf_registry_load_encode(in, &msg);
		assert_int_equal(wf_registry_load_decode(&msg.head, msg.body, &load_out), WEFT_OK);
		assert_true(load_out.epoch == in->epoch && load_out.base.epoch == in->base.epoch);
		assert_true(load_out.base.step == in->base.step && load_out.crc == in->crc);
		wf_registry_loaded_encode(&loaded, &msg);
		assert_int_equal(wf_registry_loaded_decode(&msg.head, msg.body, &loaded_out),
				 WEFT_OK);
		assert_memory_equal(&loaded_out, &loaded, sizeof(loaded));
		wf_registry_run_encode(&run, &msg);
		assert_int_equal(wf_registry_run_decode(&msg.head, msg.body, &run_out), WEFT_OK);
		assert_memory_equal(&run_out, &run, sizeof(run));
	}
}

static void
a_checksum_needs_a_snapshot(void **state)
{
	const struct wf_registry_load load = {.epoch = 4};
	const struct patch crc = {24, 4, 1, "LOAD: crc is 1, must be 0 without a snapshot"};
	static struct wf_msg msg;
	struct wf_registry_load out = {.epoch = 99};

	wf_registry_load_encode(&load, &msg);
	patch_apply(&crc, msg.body);
	assert_refused(wf_registry_load_decode(&msg.head, msg.body, &out), WEFT_PROTOCOL, crc.text);
	assert_true(out.epoch == 99);
}

static void
the_fullest_part_comes_back(void **state)
{
	static struct wf_registry_part in, out;
	static struct wf_msg msg;

	in = (struct wf_registry_part){
		.epoch = INT64_MAX,
		.border = INT64_MAX,
		.bytes = INT64_MAX,
		.crc = UINT32_MAX,
		.lane = WF_LANE_COUNT_MAX - 1,
		.service = WF_SERVICE_SPARSE,
		.table_count = WF_TABLE_COUNT_MAX,
		.first = WF_TABLE_COUNT_MAX - WF_REGISTRY_ROWS_MAX,
		.count = WF_REGISTRY_ROWS_MAX,
	};
	for (uint32_t i = 0; i < WF_REGISTRY_ROWS_MAX; i++) {
		in.rows[i] = WF_REGISTRY_TABLE_ROWS_MAX - i;
	}
	wf_registry_part_encode(&in, &msg);
	assert_int_equal(wf_registry_part_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.epoch == in.epoch && out.border == in.border && out.bytes == in.bytes);
	assert_true(out.crc == in.crc && out.lane == in.lane && out.service == in.service);
	assert_true(out.table_count == in.table_count && out.first == in.first);
	assert_int_equal(out.count, in.count);
	assert_memory_equal(out.rows, in.rows, sizeof(in.rows));
}

static void
a_part_without_rows_has_no_tables(void **state)
{
	static struct wf_registry_part in, out;
	static struct wf_msg msg;
	const struct patch tables = {33, 2, 1, "PART: count is 0, must be 1 to 256"};

	in = (struct wf_registry_part){
		.epoch = 1, .border = 1, .bytes = 1, .service = WF_SERVICE_SPARSE};
	wf_registry_part_encode(&in, &msg);
	out.table_count = 9;
	assert_int_equal(wf_registry_part_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.table_count == 0 && out.first == 0 && out.count == 0);
	patch_apply(&tables, msg.body);
	assert_refused(wf_registry_part_decode(&msg.head, msg.body, &out), WEFT_PROTOCOL,
		       tables.text);
}

static void
reasons_come_back_with_question_marks_for_what_cannot_be_shown(void **state)
{
	static struct wf_msg msg;
	struct wf_registry_bad bad = {.epoch = 1, .reason = "\x1b[31m"};
	struct wf_registry_bad bad_out;
	struct wf_registry_failed failed = {.epoch = 2, .border = 3};
	struct wf_registry_failed failed_out;

	wf_registry_bad_encode(&bad, &msg);
	assert_int_equal(wf_registry_bad_decode(&msg.head, msg.body, &bad_out), WEFT_OK);
	assert_string_equal(bad_out.reason, "?[31m");
	assert_true(bad_out.epoch == 1 && bad_out.base.epoch == 0 && bad_out.base.step == 0);
	memset(failed.reason, 'r', sizeof(failed.reason)); /* no NUL: cut, not read past */
	wf_registry_failed_encode(&failed, &msg);
	assert_int_equal(wf_registry_failed_decode(&msg.head, msg.body, &failed_out), WEFT_OK);
	assert_int_equal(strlen(failed_out.reason), WF_REASON_BYTES - 1);
	assert_true(failed_out.epoch == 2 && failed_out.border == 3);
	failed.reason[1] = '\0';
	wf_registry_failed_encode(&failed, &msg);
	assert_int_equal(wf_registry_failed_decode(&msg.head, msg.body, &failed_out), WEFT_OK);
	assert_string_equal(failed_out.reason, "r");
}

static void
what_is_refused_leaves_what_was_there(void **state)
{
	static struct wf_msg msg;
	static union any_message out, before;
	const char *const names[] = {"registry_join", "registry_load",       "registry_loaded",
				     "registry_bad",  "registry_run",        "registry_snapshot",
				     "registry_part", "registry_part_dense", "registry_failed"};
	const struct patch last = {0, 1, 0xff, NULL};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct catalogue_entry *entry = sample_encode_named(names[i], &msg);
		struct patch patch = last; /* the top byte of a number, or of the text */
		patch.at = strcmp(names[i], "registry_load") == 0 ? 7 : msg.body_bytes - 1;
		patch_apply(&patch, msg.body);
		memset(&out, 0x5a, sizeof(out));
		memset(&before, 0x5a, sizeof(before));
		assert_int_equal(sample_decode(entry, &msg.head, msg.body, &out), WEFT_PROTOCOL);
		assert_memory_equal(&out, &before, sizeof(out));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(each_stage_of_a_pserver_comes_back),
		cmocka_unit_test(an_epoch_comes_back_with_a_snapshot_and_without),
		cmocka_unit_test(a_checksum_needs_a_snapshot),
		cmocka_unit_test(the_fullest_part_comes_back),
		cmocka_unit_test(a_part_without_rows_has_no_tables),
		cmocka_unit_test(reasons_come_back_with_question_marks_for_what_cannot_be_shown),
		cmocka_unit_test(what_is_refused_leaves_what_was_there),
	};
	return cmocka_run_group_tests_name("wire registry messages", tests, NULL, NULL);
}
