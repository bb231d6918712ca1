/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of wire/watch_messages: each message's own fields. What holds for all messages alike is in
 * test_messages.c, which goes over the same catalogue. */
#include <stdio.h>

#include "tests/unit/wire/samples.h"

static const struct body_case wrong_bodies[] = {
	{"watch_answer", {0, 2, 0, "RECORD: kind is 0, must be 1 to 6"}},
	{"watch_answer", {0, 2, 7, "RECORD: kind is 7"}},
	{"watch_answer", {0, 2, UINT16_MAX, "RECORD: kind is 65535"}},
	{"watch_answer", {0, 2, WF_WATCH_LANE, "RECORD: it ends early, after 64 bytes"}},
	{"watch_answer", {2, 4, 65536, "RECORD: lane is 65536, must be below 65536"}},
	{"watch_answer", {42, 2, 300, "RECORD: text"}},
	{"watch_answer", {42, 2, 4, "RECORD: text"}},
	{"watch_answer", {44, 1, 0x1b, "RECORD: text"}},
	{"watch_answer", {49, 2, 12, "RECORD: its fields take 63 bytes, but it has 64"}},
	{"watch_end", {8, 2, 1, "END: status is 1, must be the number of a failure"}},
	{"watch_end", {8, 2, 99, "END: status is 99"}},
	{"watch_end", {10, 2, 11, "END: reason"}},
	{"watch_end", {10, 2, 9, "END: its fields take 21 bytes, but it has 22"}},
	{"watch_end", {12, 1, '\n', "END: reason"}},
};

static void
each_wrong_field_is_named(void **state)
{
	(void)state;
	assert_bodies_refused(wrong_bodies, sizeof(wrong_bodies) / sizeof(wrong_bodies[0]));
}

static void
a_full_record_of_each_kind_comes_back(void **state)
{
	(void)state;
	for (uint16_t kind = 1; kind <= WF_WATCH_KIND_MAX; kind++) {
		static struct wf_msg msg;
		static struct wf_watch_answer in, out;
		in = (struct wf_watch_answer){
			.request_id = UINT64_MAX,
			.record = {.kind = kind, .lane = 65535, .idx = UINT32_MAX}};
		out = (struct wf_watch_answer){0};
		for (unsigned i = 0; i < wf_watch_value_count(kind); i++) {
			in.record.value[i] = UINT64_MAX - i;
		}
		for (unsigned i = 0; i < wf_watch_text_count(kind); i++) {
			memset(in.record.text[i], 'a' + (int)i, WF_REASON_BYTES - 1);
		}
		wf_watch_answer_encode(&in, &msg);
		assert_int_equal(wf_watch_answer_decode(&msg.head, msg.body, &out), WEFT_OK);
		assert_memory_equal(&in, &out, sizeof(in)); /* it has no padding */
	}
}

static void
buckets_grow_and_the_last_one_is_without_end(void **state)
{
	(void)state;
	for (unsigned i = 1; i < WF_WATCH_BUCKETS; i++) {
		assert_true(wf_watch_bucket_ns(i) > wf_watch_bucket_ns(i - 1));
	}
	assert_true(wf_watch_bucket_ns(WF_WATCH_BUCKETS - 1) == UINT64_MAX);
}

static void
a_question_without_number_is_refused_and_an_unknown_one_is_not(void **state)
{
	static struct wf_msg msg;
	struct wf_watch_ask out;
	(void)state;
	wf_watch_ask_encode(&(struct wf_watch_ask){.request_id = 1, .question = 999}, &msg);
	assert_int_equal(wf_watch_ask_decode(&msg.head, msg.body, &out), WEFT_OK);
	assert_int_equal(out.question, 999);
	msg.head.request_id = 0;
	assert_int_equal(wf_watch_ask_decode(&msg.head, msg.body, &out), WEFT_PROTOCOL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wrong_field_is_named),
		cmocka_unit_test(a_full_record_of_each_kind_comes_back),
		cmocka_unit_test(buckets_grow_and_the_last_one_is_without_end),
		cmocka_unit_test(a_question_without_number_is_refused_and_an_unknown_one_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
