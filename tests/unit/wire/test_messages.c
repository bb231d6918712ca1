/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/messages: what holds for all messages, then each one's own fields. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/wire/golden.h"
#include "tests/unit/wire/samples.h"
#include "wire/job.h"

/* Head and body in a row. */
static size_t
flatten(const struct wf_msg *msg, uint8_t *out)
{
	wf_head_encode(&msg->head, out);
	memcpy(out + WF_HEAD_BYTES, msg->body, msg->body_bytes);
	return WF_HEAD_BYTES + msg->body_bytes;
}

static void
every_message_is_its_golden_bytes(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		static struct wf_msg again;
		uint8_t bytes[GOLDEN_BYTES_MAX];
		uint8_t held[GOLDEN_BYTES_MAX];
		char name[64];
		struct wf_head head;

		sample_encode(&catalogue[i], &msg);
		snprintf(name, sizeof(name), "msg_%s", catalogue[i].name);
		size_t count = golden_check(name, bytes, flatten(&msg, bytes), held);
		assert_int_equal(wf_head_decode(held, WF_MSG_BODY_MAX, &head), WEFT_OK);
		assert_int_equal(count, WF_HEAD_BYTES + head.body_bytes);
		assert_int_equal(catalogue[i].decode(&head, held + WF_HEAD_BYTES, &out), WEFT_OK);
		catalogue[i].encode(&out, &again);
		assert_int_equal(flatten(&again, bytes), count);
		assert_memory_equal(bytes, held, count);
	}
}

static void
no_message_is_taken_when_cut_short(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		sample_encode(&catalogue[i], &msg);
		for (size_t n = 0; n < msg.body_bytes; n++) {
			msg.head.body_bytes = n;
			assert_refused(sample_decode(&catalogue[i], &msg.head, msg.body, &out),
				       WEFT_PROTOCOL, ": ");
		}
	}
}

static void
no_message_is_taken_with_bytes_behind_it(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		sample_encode(&catalogue[i], &msg);
		memset(msg.body + msg.body_bytes, 0, sizeof(msg.body) - msg.body_bytes);
		msg.head.body_bytes = msg.body_bytes + 1;
		assert_refused(sample_decode(&catalogue[i], &msg.head, msg.body, &out),
			       WEFT_PROTOCOL, ": ");
		msg.head.body_bytes = WF_MSG_BODY_MAX;
		assert_refused(sample_decode(&catalogue[i], &msg.head, msg.body, &out),
			       WEFT_PROTOCOL, ": ");
		msg.head.body_bytes = UINT64_MAX;
		assert_refused(catalogue[i].decode(&msg.head, msg.body, &out), WEFT_PROTOCOL,
			       "body_bytes is 18446744073709551615");
	}
}

static void
no_decoder_takes_another_message(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		sample_encode(&catalogue[i], &msg);
		for (size_t j = 0; j < catalogue_count; j++) {
			if (catalogue_find(catalogue[i].service, catalogue[i].type) ==
			    catalogue_find(catalogue[j].service, catalogue[j].type)) {
				continue;
			}
			assert_refused(catalogue[j].decode(&msg.head, msg.body, &out),
				       WEFT_PROTOCOL, "service is");
		}
	}
}

/* Which fields of the head each message uses, as in the header's table. */
static bool
uses(const char *name, const char *field)
{
	static const char *const table[] = {
		"job offset",
		"resume step",
		"resume epoch",
		"have step",
		"step step",
		"step epoch",
		"pull request_id",
		"pull step",
		"pull slice",
		"nack request_id",
		"nack slice",
		"report request_id",
		"reported request_id",
		"trace request_id",
		"traced request_id",
		"abort step",
		"reduce step",
		"reduced step",
		"reduced request_id",
		"reduce request_id",
		"sparse_table slice",
		"sparse_resume step",
		"sparse_resume epoch",
		"sparse_have step",
		"sparse_push step",
		"sparse_push epoch",
		"sparse_pull request_id",
		"sparse_pull step",
		"sparse_applied step",
		"sparse_nack request_id",
		"sparse_nack step",
		"sparse_nack slice",
		"sparse_fetch request_id",
		"sparse_fetch step",
		"sparse_fetch slice",
		"sparse_restore request_id",
		"sparse_restore step",
		"sparse_restore slice",
		"sparse_restored request_id",
		"sparse_changed request_id",
		"sparse_changed step",
		"sparse_changed slice",
		"watch_ask request_id",
		"watch_answer request_id",
		"watch_end request_id",
	};
	char pair[64];
	snprintf(pair, sizeof(pair), "%s %s", name, field);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i], pair) == 0) {
			return true;
		}
	}
	return false;
}

static void
assert_unused_refused(const struct catalogue_entry *entry, const struct wf_head *head,
		      const uint8_t *body, const char *field)
{
	static union any_message out;
	if (!uses(entry->name, field)) {
		assert_refused(entry->decode(head, body, &out), WEFT_PROTOCOL, field);
	}
}

static void
fields_of_the_head_that_are_not_used_must_be_zero(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static struct wf_msg msg;
		sample_encode(&catalogue[i], &msg);
		struct wf_head head[] = {msg.head, msg.head, msg.head,
					 msg.head, msg.head, msg.head};
		head[0].request_id = 1;
		head[1].step = 1ull << 63;
		head[2].slice = 1;
		head[3].region = 1u << 31;
		head[4].offset = 1;
		head[5].epoch = 1;
		assert_unused_refused(&catalogue[i], &head[0], msg.body, "request_id");
		assert_unused_refused(&catalogue[i], &head[1], msg.body, "step");
		assert_unused_refused(&catalogue[i], &head[2], msg.body, "slice");
		assert_unused_refused(&catalogue[i], &head[3], msg.body, "region");
		assert_unused_refused(&catalogue[i], &head[4], msg.body, "offset");
		assert_unused_refused(&catalogue[i], &head[5], msg.body, "epoch");
	}
}

static void
no_flipped_bit_of_a_body_reads_past_it(void **state)
{
	for (size_t i = 0; i < catalogue_count; i++) {
		static union any_message out;
		static struct wf_msg msg;
		static struct wf_msg again;
		sample_encode(&catalogue[i], &msg);
		for (size_t bit = 0; bit < 8 * msg.body_bytes; bit++) {
			msg.body[bit / 8] ^= (uint8_t)(1u << (bit % 8));
			/* What is taken is taken whole: it encodes to the same bytes. */
			uint8_t *exact = malloc(msg.body_bytes);
			assert_non_null(exact);
			memcpy(exact, msg.body, msg.body_bytes);
			if (catalogue[i].decode(&msg.head, exact, &out) == WEFT_OK) {
				catalogue[i].encode(&out, &again);
				assert_int_equal(again.body_bytes, msg.body_bytes);
				assert_memory_equal(again.body, msg.body, msg.body_bytes);
			}
			free(exact);
			msg.body[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		}
	}
}

static const struct body_case wrong_bodies[] = {
	{"job", {0, 8, WF_JOB_BYTES_MAX + 1, "JOB: total_bytes is 16777217"}},
	{"job", {0, 8, 0x1004, "JOB: offset is 4096"}},
	{"job", {8, 8, 4, "JOB: byte_count is 4"}},
	{"job", {8, 8, UINT64_MAX, "JOB: byte_count is 18446744073709551615"}},
	{"resume", {0, 4, 4, "RESUME: flags is 4"}},
	{"resume", {0, 4, 1u << 31, "RESUME: flags is 2147483648"}},
	{"resume", {4, 4, WF_SLICE_COUNT_MAX - 2, "RESUME: first + count is 2097153"}},
	{"resume", {4, 4, UINT32_MAX, "RESUME: first + count is 4294967298"}},
	{"resume", {8, 4, 501, "RESUME: count is 501, must be 0 to 500"}},
	{"resume", {8, 4, 2, "RESUME: count is 2"}},
	{"resume", {8, 4, 0x20000003, "RESUME: count is 536870915"}},
	{"have", {0, 4, 2, "HAVE: flags is 2"}},
	{"have", {8, 4, 4, "HAVE: count is 4"}},
	{"grant", {0, 1, 0, "GRANT: kind is 0"}},
	{"grant", {0, 1, 3, "GRANT: kind is 3"}},
	{"grant", {1, 1, 1, "GRANT: place is 1, must be 0 for slots"}},
	{"grant", {2, 2, 2, "GRANT: flags is 2"}},
	{"grant", {2, 2, 256, "GRANT: flags is 256"}},
	{"grant", {4, 4, 0, "GRANT: slot_count is 0"}},
	{"grant", {4, 4, 12, "GRANT: slot_count is 12"}},
	{"grant", {4, 4, 2048, "GRANT: slot_count is 2048"}},
	{"grant", {8, 8, 0, "GRANT: bytes is 0"}},
	{"grant", {8, 8, WF_SLICE_BYTES_MAX + 1, "GRANT: bytes is 67108865"}},
	{"grant", {16, 8, 1, "GRANT: held_bytes is 1, must be 0, or the bytes of a slot"}},
	{"grant", {16, 8, 0x3ffff, "GRANT: held_bytes is 262143"}},
	{"grant", {16, 8, (1ull << 58) + 1, "GRANT: held_bytes is 28823037615171"}},
	{"grant", {0, 1, 2, "GRANT: slot_count is 8, must be 0 for a place"}},
	{"grant_place", {2, 2, 1, "GRANT: flags is 1, must be 0 for a place"}},
	{"grant_place", {4, 4, 1, "GRANT: slot_count is 1, must be 0 for a place"}},
	{"grant_place", {8, 8, 0, "GRANT: bytes is 0"}},
	{"grant_place", {8, 8, (1ull << 58) + 1, "GRANT: bytes is 28823037615171"}},
	{"grant_place", {16, 8, 1, "GRANT: held_bytes is 1, must be 0 for a place"}},
	{"credit", {0, 4, 0, "CREDIT: count is 0"}},
	{"credit", {0, 4, 1025, "CREDIT: count is 1025"}},
	{"credit", {0, 4, 2, "CREDIT: count is 2"}},
	{"credit", {8, 2, 1024, "CREDIT: buffer is 1024"}},
	{"step", {0, 8, 0, "STEP: samples is 0"}},
	{"step", {0, 8, (1ull << 40) + 1, "STEP: samples is 1099511627777"}},
	{"step", {8, 4, 1, "STEP: samples is 404, must be 0 when out of data"}},
	{"step", {8, 4, 2, "STEP: flags is 2"}},
	{"pull", {0, 1, 2, "PULL: section is 2"}},
	{"pull", {0, 1, 0, "PULL: state_idx is 1"}},
	{"pull", {2, 4, 0, "PULL: count is 0"}},
	{"pull", {2, 4, UINT32_MAX, "PULL: first + count is 4294967300"}},
	{"announce", {0, 4, 0, "ANNOUNCE: count is 0"}},
	{"announce", {0, 4, 501, "ANNOUNCE: count is 501"}},
	{"announce", {0, 4, 2, "ANNOUNCE: count is 2"}},
	{"announce", {8, 4, 0, "ANNOUNCE: slices of a run is 0"}},
	{"announce", {20, 4, 0x1fffff, "ANNOUNCE: first + count is 2097153"}},
	{"announce", {24, 4, UINT32_MAX, "ANNOUNCE: first + count is 4297064445"}},
	{"change", {0, 4, 0, "CHANGE: count is 0"}},
	{"change", {0, 4, 2, "CHANGE: count is 2"}},
	{"change", {0, 4, 251, "CHANGE: count is 251"}},
	{"change", {4, 4, 65536, "CHANGE: tensor is 65536"}},
	{"change", {8, 4, 11, "CHANGE: number is 11"}},
	{"change", {24, 4, 0, "CHANGE: number is 0"}},
	{"position", {0, 4, 0, "POSITION: count is 0, must be the number of bytes after it"}},
	{"position", {0, 4, 3, "POSITION: count is 3, must be 0, or 4 to 260"}},
	{"position", {0, 4, 8, "POSITION: count is 8, must be the number of bytes after it"}},
	{"position", {4, 4, 0, "POSITION: pass is 0"}},
	{"position", {0, 4, 261, "POSITION: count is 261"}},
	{"report", {0, 4, 65536, "REPORT: trainer is 65536"}},
	{"reported", {0, 4, UINT32_MAX - 1, "REPORTED: trainer is 4294967294"}},
	{"trace", {8, 4, 2, "TRACE: flags is 2"}},
	{"traced", {8, 4, 32769, "TRACED: total is 32769"}},
	{"traced", {8, 4, 0, "TRACED: count is 1"}},
	{"traced", {12, 4, 2, "TRACED: count is 2, must be the events that follow"}},
	{"traced", {12, 4, 126, "TRACED: count is 126"}},
	{"traced", {16, 4, 2, "TRACED: flags is 2"}},
	{"traced", {48, 4, 0, "TRACED: what is 0"}},
	{"traced", {48, 4, WF_TRACE_KINDS, "TRACED: what is"}},
	{"allow", {0, 4, 501, "ALLOW: count is 501"}},
	{"allow", {8, 4, 0, "ALLOW: slices of a run is 0"}},
	{"grant_announced", {1, 1, 1, "GRANT: place is 1"}},
	{"grant_announced", {2, 2, 3, "GRANT: flags is 3"}},
	{"grant_announced", {4, 4, 12, "GRANT: slot_count is 12"}},
	{"init", {8, 4, 0, "INIT: sections is 0"}},
	{"init", {8, 4, 17, "INIT: sections is 17"}},
	{"init", {0, 8, 1ull << 63, "INIT: samples is 9223372036854775808"}},
	{"nack", {0, 2, WEFT_OK, "NACK: status is 0"}},
	{"nack", {0, 2, WEFT_AGAIN, "NACK: status is 1"}},
	{"nack", {0, 2, 18, "NACK: status is 18"}},
	{"nack", {2, 2, 19, "NACK: reason"}},
	{"nack", {2, 2, 17, "NACK: its fields take 21 bytes, but it has 22"}},
	{"nack", {4, 1, '\n', "NACK: reason"}},
	{"goodbye", {0, 4, 4, "GOODBYE: flags is 4"}},
	{"goodbye", {0, 4, 3, "GOODBYE: flags is 3"}},
	{"beat", {0, 4, 4, "BEAT: flags is 4"}},
	{"beat", {0, 4, 1u << 31, "BEAT: flags is 2147483648"}},
	{"abort", {0, 2, 0, "ABORT: status is 0"}},
	{"abort", {0, 2, UINT16_MAX, "ABORT: status is 65535"}},
	{"abort", {2, 2, 64, "ABORT: who"}},
	{"abort", {4, 1, 0x7f, "ABORT: who"}},
	{"abort", {13, 2, 256, "ABORT: reason"}},
	{"abort", {15, 1, 0, "ABORT: reason"}},
	{"absent", {4, 8, 1ull << 63, "ABSENT: silent_ns is 9223372036854775808"}},
	{"absent", {12, 2, 256, "ABSENT: reason"}},
	{"absent", {14, 1, 0x1b, "ABSENT: reason"}},
	{"reduce", {0, 4, 257, "REDUCE: count is 257"}},
	{"reduce", {0, 4, 2, "REDUCE: count is 2"}},
	{"reduced", {0, 4, 4, "REDUCED: count is 4"}},
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
		{"job", {.offset = 0x1100}, "JOB: offset is 8448"},
		{"job", {.offset = UINT64_MAX - 0x1000}, "JOB: offset is 18446744073709551615"},
		{"step", {.step = UINT64_MAX - 41}, "STEP: step is 18446744073709551615"},
		{"pull", {.step = UINT64_MAX - 17}, "PULL: step is 18446744073709551615"},
		{"pull", {.slice = WF_SLICE_COUNT_MAX}, "PULL: first + count is 2163208"},
		{"init",
		 {.step = (1ull << 62) - 0x0102030405},
		 "INIT: step is 4611686018427387904"},
		{"init", {.step = INT64_MAX - 0x0102030405}, "INIT: step is 9223372036854775807"},
		{"position", {.step = 0 - 0x0102030405ull}, "POSITION: step is 0"},
		{"position",
		 {.step = INT64_MAX - 0x0102030404},
		 "POSITION: step is 9223372036854775808"},
		{"trace", {.request_id = 0 - 0x31ull}, "TRACE: request_id is 0"},
		{"traced", {.request_id = 0 - 0x32ull}, "TRACED: request_id is 0"},
		{"reduce", {.request_id = UINT64_MAX - 4}, "REDUCE: request_id is 0"},
		{"reduced", {.step = UINT64_MAX - 88}, "REDUCED: step is 18446744073709551615"},
	};
	assert_heads_refused(wrong, sizeof(wrong) / sizeof(wrong[0]));
}

static void
a_job_piece_comes_back(void **state)
{
	static uint8_t piece[WF_JOB_PART_MAX];
	static struct wf_msg msg;
	struct wf_msg_job out;
	struct wf_msg_job in = {
		.offset = WF_JOB_BYTES_MAX - WF_JOB_PART_MAX,
		.total_bytes = WF_JOB_BYTES_MAX,
		.bytes = piece,
		.byte_count = sizeof(piece),
	};

	piece[0] = 1;
	piece[WF_JOB_PART_MAX - 1] = 2;
	wf_msg_job_encode(&in, &msg);
	assert_int_equal(msg.body_bytes, WF_MSG_BODY_MAX);
	assert_int_equal(wf_msg_job_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.offset == in.offset && out.total_bytes == in.total_bytes);
	assert_int_equal(out.byte_count, sizeof(piece));
	assert_memory_equal(out.bytes, piece, sizeof(piece));
	assert_true(out.bytes > msg.body && out.bytes < msg.body + WF_MSG_BODY_MAX);
}

static void
the_fullest_resume_and_have_come_back(void **state)
{
	static struct wf_msg_steps in;
	static struct wf_msg_steps out;
	static struct wf_msg msg;

	in.step = WF_STEP_NONE;
	in.epoch = UINT64_MAX;
	in.initialised = true;
	in.count = WF_STEPS_PER_MSG;
	in.first = WF_SLICE_COUNT_MAX - WF_STEPS_PER_MSG;
	for (uint32_t i = 0; i < in.count; i++) {
		in.step_of[i] = i % 2 == 0 ? WF_STEP_NONE : i;
	}
	wf_msg_resume_encode(&in, &msg);
	assert_int_equal(wf_msg_resume_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.step == WF_STEP_NONE && out.epoch == UINT64_MAX);
	assert_true(!out.last && out.initialised);
	assert_true(out.first == in.first && out.count == WF_STEPS_PER_MSG);
	assert_memory_equal(out.step_of, in.step_of, sizeof(in.step_of));
	in.last = true;
	wf_msg_have_encode(&in, &msg);
	assert_int_equal(wf_msg_have_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.step == WF_STEP_NONE && out.epoch == 0); /* epoch and initialised are */
	assert_true(out.last && !out.initialised);               /* RESUME's alone */
	assert_memory_equal(out.step_of, in.step_of, sizeof(in.step_of));
	in.count = 0;
	wf_msg_resume_encode(&in, &msg);
	assert_int_equal(wf_msg_resume_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(out.count, 0);
}

static void
each_kind_of_grant_comes_back(void **state)
{
	const struct wf_msg_grant grant[] = {
		{.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 1, .bytes = 1},
		{.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 1, .bytes = 7, .held_bytes = 7},
		{.kind = WF_GRANT_WIRE_SLOTS,
		 .slot_count = WF_GRANT_SLOT_COUNT_MAX,
		 .bytes = WF_SLICE_BYTES_MAX,
		 .held_bytes = WF_PLACE_BYTES_MAX,
		 .key = {0xff}},
		{.kind = WF_GRANT_WIRE_SLOTS, .announced = true, .slot_count = 8, .bytes = 64},
		{.kind = WF_GRANT_WIRE_PLACE, .bytes = WF_PLACE_BYTES_MAX},
		{.kind = WF_GRANT_WIRE_PLACE, .place = UINT8_MAX, .bytes = 1},
	};
	for (size_t i = 0; i < sizeof(grant) / sizeof(grant[0]); i++) {
		static struct wf_msg msg;
		struct wf_msg_grant out;
		wf_msg_grant_encode(&grant[i], &msg);
		assert_int_equal(wf_msg_grant_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_int_equal(out.kind, grant[i].kind);
		assert_int_equal(out.place, grant[i].place);
		assert_int_equal(out.announced, grant[i].announced);
		assert_true(out.slot_count == grant[i].slot_count);
		assert_true(out.bytes == grant[i].bytes);
		assert_true(out.held_bytes == grant[i].held_bytes);
		assert_memory_equal(out.key, grant[i].key, sizeof(out.key));
	}
}

static void
the_fullest_credit_comes_back(void **state)
{
	static struct wf_msg_credit in;
	static struct wf_msg_credit out;
	static struct wf_msg msg;

	in.count = WF_CREDITS_PER_MSG;
	for (uint32_t i = 0; i < in.count; i++) {
		in.buffer[i] = (uint16_t)(WF_CREDITS_PER_MSG - 1 - i);
	}
	wf_msg_credit_encode(&in, &msg);
	assert_int_equal(wf_msg_credit_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(out.count, in.count);
	assert_memory_equal(out.buffer, in.buffer, sizeof(in.buffer));
}

static void
each_kind_of_step_comes_back(void **state)
{
	const struct wf_msg_step step[] = {
		{.step = 0, .samples = 1},
		{.step = UINT64_MAX - 1,
		 .epoch = UINT64_MAX,
		 .samples = WF_STEP_SAMPLES_MAX,
		 .pass = UINT32_MAX,
		 .cost = (double)-INFINITY},
		{.step = 1, .samples = 7, .cost = (double)NAN}, /* for logs only: anything goes */
		{.step = 2, .flags = WF_STEP_OUT_OF_DATA},
	};
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		static struct wf_msg msg;
		struct wf_msg_step out;
		wf_msg_step_encode(&step[i], &msg);
		assert_int_equal(wf_msg_step_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_true(out.step == step[i].step && out.epoch == step[i].epoch);
		assert_true(out.samples == step[i].samples && out.pass == step[i].pass);
		assert_true(out.flags == step[i].flags);
		assert_memory_equal(&out.cost, &step[i].cost, sizeof(double));
	}
}

static void
a_pull_comes_back(void **state)
{
	const struct wf_msg_pull in = {
		.request_id = UINT64_MAX,
		.step = UINT64_MAX - 1,
		.first = WF_SLICE_COUNT_MAX - 1,
		.count = 1,
		.section = WF_SECTION_STATE,
		.state_idx = UINT8_MAX,
	};
	static struct wf_msg msg;
	struct wf_msg_pull out;

	wf_msg_pull_encode(&in, &msg);
	assert_int_equal(wf_msg_pull_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.request_id == in.request_id && out.step == in.step);
	assert_true(out.first == in.first && out.count == in.count);
	assert_int_equal(out.section, in.section);
	assert_int_equal(out.state_idx, in.state_idx);
}

static void
the_longest_job_to_go_on_from_comes_back(void **state)
{
	const struct wf_msg_init in = {
		.step = WF_INIT_STEP_MAX, .samples = INT64_MAX, .sections = WF_SECTIONS_MAX};
	static struct wf_msg msg;
	struct wf_msg_init out;

	wf_msg_init_encode(&in, &msg);
	assert_int_equal(wf_msg_init_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.step == in.step && out.samples == in.samples);
	assert_int_equal(out.sections, in.sections);
}

static void
texts_come_back_with_question_marks_for_what_cannot_be_shown(void **state)
{
	static struct wf_msg msg;
	struct wf_msg_nack nack = {.request_id = 1, .first = 2, .status = WEFT_INTERNAL};
	struct wf_msg_nack nack_out;
	struct wf_msg_abort abort_in = {.status = WEFT_DATA, .step = WF_STEP_NONE};
	struct wf_msg_abort abort_out;

	memset(nack.reason, 'r', sizeof(nack.reason)); /* no NUL: cut, not read past */
	wf_msg_nack_encode(&nack, &msg);
	assert_int_equal(wf_msg_nack_decode(&msg.head, msg.body, &nack_out), WEFT_OK);
	assert_int_equal(strlen(nack_out.reason), WF_REASON_BYTES - 1);
	assert_true(nack_out.request_id == 1 && nack_out.first == 2);
	assert_int_equal(nack_out.status, WEFT_INTERNAL);
	snprintf(abort_in.who, sizeof(abort_in.who), "trainer\x1b[31m 1");
	memset(abort_in.reason, '~', sizeof(abort_in.reason) - 1);
	wf_msg_abort_encode(&abort_in, &msg);
	assert_int_equal(wf_msg_abort_decode(&msg.head, msg.body, &abort_out), WEFT_OK);
	assert_string_equal(abort_out.who, "trainer?[31m 1");
	assert_string_equal(abort_out.reason, abort_in.reason);
	assert_true(abort_out.step == WF_STEP_NONE);
	assert_int_equal(abort_out.status, WEFT_DATA);

	struct wf_msg_absent absent_in = {.trainer = UINT32_MAX, .silent_ns = INT64_MAX};
	struct wf_msg_absent absent_out;
	memset(absent_in.reason, 'r', sizeof(absent_in.reason)); /* likewise */
	wf_msg_absent_encode(&absent_in, &msg);
	assert_int_equal(wf_msg_absent_decode(&msg.head, msg.body, &absent_out), WEFT_OK);
	assert_int_equal(strlen(absent_out.reason), WF_REASON_BYTES - 1);
	assert_true(absent_out.trainer == UINT32_MAX && absent_out.silent_ns == INT64_MAX);
	absent_in.reason[0] = '\0';
	wf_msg_absent_encode(&absent_in, &msg);
	assert_int_equal(wf_msg_absent_decode(&msg.head, msg.body, &absent_out), WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), "must be 0 without a reason"));
	absent_in.silent_ns = 0;
	wf_msg_absent_encode(&absent_in, &msg);
	assert_int_equal(wf_msg_absent_decode(&msg.head, msg.body, &absent_out), WEFT_OK);
	assert_string_equal(absent_out.reason, "");
}

static void
both_goodbyes_come_back(void **state)
{
	for (unsigned ack = 0; ack < 2; ack++) {
		static struct wf_msg msg;
		struct wf_msg_goodbye in = {.ack = ack == 1};
		struct wf_msg_goodbye out = {.ack = ack == 0};
		wf_msg_goodbye_encode(&in, &msg);
		assert_int_equal(wf_msg_goodbye_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_int_equal(out.ack, in.ack);
	}
}

static void
all_beats_come_back(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 4; bits++) {
		static struct wf_msg msg;
		struct wf_msg_beat in = {.asks = (bits & 1) != 0,
					 .itself = (bits & 2) != 0,
					 .pid = UINT32_MAX - bits};
		struct wf_msg_beat out = {.asks = !in.asks, .itself = !in.itself};
		wf_msg_beat_encode(&in, &msg);
		assert_int_equal(wf_msg_beat_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_true(out.asks == in.asks && out.itself == in.itself && out.pid == in.pid);
	}
}

static void
reductions_come_back_bit_for_bit(void **state)
{
	static struct wf_msg_reduce in;
	static struct wf_msg_reduce out;
	static struct wf_msg msg;

	in.request_id = UINT64_MAX;
	in.step = UINT64_MAX - 1;
	in.count = WF_REDUCE_MAX;
	for (uint32_t i = 0; i < in.count; i++) {
		in.value[i] = i % 3 == 0 ? (double)NAN : 0.1 * i;
	}
	in.value[1] = -0.0;
	wf_msg_reduce_encode(&in, &msg);
	assert_int_equal(wf_msg_reduce_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_true(out.request_id == in.request_id && out.step == in.step);
	assert_int_equal(out.count, in.count);
	assert_memory_equal(out.value, in.value, sizeof(in.value));
	in.count = 0;
	in.step = 0;
	wf_msg_reduced_encode(&in, &msg);
	assert_int_equal(wf_msg_reduced_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(out.count, 0);
	assert_true(out.step == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_is_its_golden_bytes),
		cmocka_unit_test(no_message_is_taken_when_cut_short),
		cmocka_unit_test(no_message_is_taken_with_bytes_behind_it),
		cmocka_unit_test(no_decoder_takes_another_message),
		cmocka_unit_test(fields_of_the_head_that_are_not_used_must_be_zero),
		cmocka_unit_test(no_flipped_bit_of_a_body_reads_past_it),
		cmocka_unit_test(each_wrong_field_of_a_body_is_named),
		cmocka_unit_test(each_wrong_field_of_a_head_is_named),
		cmocka_unit_test(a_job_piece_comes_back),
		cmocka_unit_test(the_fullest_resume_and_have_come_back),
		cmocka_unit_test(each_kind_of_grant_comes_back),
		cmocka_unit_test(the_fullest_credit_comes_back),
		cmocka_unit_test(each_kind_of_step_comes_back),
		cmocka_unit_test(a_pull_comes_back),
		cmocka_unit_test(the_longest_job_to_go_on_from_comes_back),
		cmocka_unit_test(texts_come_back_with_question_marks_for_what_cannot_be_shown),
		cmocka_unit_test(both_goodbyes_come_back),
		cmocka_unit_test(all_beats_come_back),
		cmocka_unit_test(reductions_come_back_bit_for_bit),
	};
	return cmocka_run_group_tests_name("wire messages", tests, NULL, NULL);
}
