/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of `rdma_bench lat`, `bw` and `rate` say to each other, how they spell options,
 * and the bytes of --verify. Thread: main. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tools/rdma_bench/pattern.h"
#include "tools/rdma_bench/peer_options.h"
#include "tools/rdma_bench/peer_words.h"

#define BYTES 1001u

static void
pattern_of_a_message_is_right_and_another_is_not(void **state)
{
	uint8_t bytes[BYTES];
	for (uint64_t count = 1; count <= BYTES; count += 37) {
		wf_pattern_fill(bytes, count, 7);
		assert_int_equal(wf_pattern_check(bytes, count, 7), count);
		assert_true(wf_pattern_check(bytes, count, 8) < count);
	}
}

static void
one_wrong_bit_is_found_where_it_is(void **state)
{
	uint8_t bytes[BYTES];
	for (uint64_t at = 0; at < BYTES; at += 11) {
		wf_pattern_fill(bytes, BYTES, 3);
		bytes[at] ^= 4;
		assert_int_equal(wf_pattern_check(bytes, BYTES, 3), at);
	}
}

static void
head_of_another_version_is_let_through_without_its_rest(void **state)
{
	uint8_t bytes[WF_PEER_HEAD_BYTES];
	const struct wf_peer_head sent = {.version = 9, .type = WF_PEER_GO, .body_bytes = 900};
	struct wf_peer_head got;
	wf_peer_head_encode(&sent, bytes);
	assert_int_equal(wf_peer_head_decode(bytes, &got), WEFT_OK);
	assert_int_equal(got.version, 9);
	assert_int_equal(got.body_bytes, 0);
}

static void
heads_that_make_no_sense_are_refused(void **state)
{
	uint8_t bytes[WF_PEER_HEAD_BYTES];
	struct wf_peer_head got, sent = {.version = WF_PEER_VERSION, .type = WF_PEER_GO};
	sent.body_bytes = WF_PEER_BODY_MAX + 1;
	wf_peer_head_encode(&sent, bytes);
	assert_int_equal(wf_peer_head_decode(bytes, &got), WEFT_PROTOCOL);
	sent.body_bytes = 0;
	wf_peer_head_encode(&sent, bytes);
	bytes[6] = WF_PEER_WORD_MAX + 1;
	assert_int_equal(wf_peer_head_decode(bytes, &got), WEFT_PROTOCOL);
	memcpy(bytes, "GET / HTTP/1.1\r\n", sizeof(bytes));
	assert_int_equal(wf_peer_head_decode(bytes, &got), WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), "not rdma_bench"));
}

static void
server_has_the_counts_of_a_leg_the_other_way_round(void **state)
{
	const struct wf_peer_plan plan = {.bytes_max = 4096, .depth = 1};
	const struct wf_peer_leg sent = {.op = WF_PEER_SEND,
					 .bytes = 64,
					 .send_count = 5,
					 .receive_count = 3,
					 .verify = true,
					 .client = true,
					 .batch = 16};
	struct wf_peer_leg got;
	uint8_t body[WF_PEER_BODY_MAX];
	size_t bytes = wf_peer_leg_encode(&sent, body);
	assert_int_equal(wf_peer_leg_decode(body, bytes, &plan, &got), WEFT_OK);
	assert_int_equal(got.send_count, 3);
	assert_int_equal(got.receive_count, 5);
	assert_true(got.verify && !got.client && !got.bare && !got.ping);
	assert_int_equal(wf_peer_leg_decode(body, bytes - 1, &plan, &got), WEFT_PROTOCOL);
}

static void
legs_beyond_the_plan_are_refused(void **state)
{
	const struct wf_peer_plan plan = {.bytes_max = 8192, .depth = 1};
	const struct wf_peer_leg good = {
		.op = WF_PEER_PUT, .bytes = 8192, .send_count = 2, .receive_count = 2};
	struct wf_peer_leg bad[6], got;
	uint8_t body[WF_PEER_BODY_MAX];
	for (size_t i = 0; i < 6; i++) {
		bad[i] = good;
	}
	bad[0].bytes = 8193;
	bad[1].bytes = 0;
	bad[2].op = WF_PEER_SEND; /* of more than a message carries */
	bad[3].send_count = WF_PEER_COUNT_MAX + 1;
	bad[4].ping = true;
	bad[4].receive_count = 1;
	bad[5].updates = true;
	bad[5].bytes = 12;
	assert_int_equal(wf_peer_leg_decode(body, wf_peer_leg_encode(&good, body), &plan, &got),
			 WEFT_OK);
	for (size_t i = 0; i < 6; i++) {
		size_t bytes = wf_peer_leg_encode(&bad[i], body);
		assert_int_equal(wf_peer_leg_decode(body, bytes, &plan, &got), WEFT_PROTOCOL);
	}
}

static void
plans_beyond_the_limits_are_refused(void **state)
{
	struct wf_peer_plan plan = {.bytes_max = WF_PEER_BYTES_MAX, .depth = WF_PEER_DEPTH_MAX};
	struct wf_peer_plan got;
	uint8_t body[WF_PEER_BODY_MAX];
	size_t bytes = wf_peer_plan_encode(&plan, body);
	assert_int_equal(wf_peer_plan_decode(body, bytes, &got), WEFT_OK);
	plan.bytes_max++;
	bytes = wf_peer_plan_encode(&plan, body);
	assert_int_equal(wf_peer_plan_decode(body, bytes, &got), WEFT_PROTOCOL);
	plan.bytes_max = 8;
	plan.depth++;
	bytes = wf_peer_plan_encode(&plan, body);
	assert_int_equal(wf_peer_plan_decode(body, bytes, &got), WEFT_PROTOCOL);
}

static void
failure_of_one_end_is_that_of_the_other(void **state)
{
	uint8_t body[WF_PEER_BODY_MAX];
	size_t bytes = wf_peer_failure_encode(WEFT_PERM, "not\nthis one", body);
	assert_int_equal(wf_peer_failure_decode(body, bytes), WEFT_PERM);
	assert_string_equal(weft_last_error(), "the other side: not?this one");
	body[0] = WEFT_OK;
	assert_int_equal(wf_peer_failure_decode(body, bytes), WEFT_PROTOCOL);
}

static void
letters_are_spelled_out(void **state)
{
	char *argv[] = {(char[]){"lat"},  (char[]){"-d"}, (char[]){"mlx5_0"}, (char[]){"-s64K"},
			(char[]){"-aFn"}, (char[]){"10"}, (char[]){"--json"}, (char[]){"--"},
			(char[]){"-x"},   (char[]){"a-b"}};
	static const char *const wanted[] = {"lat",   "--device", "mlx5_0",  "--size", "64K",
					     "--all", "--force",  "--iters", "10",     "--json",
					     "--",    "-x",       "a-b"};
	struct wf_peer_spelled spelled;
	assert_int_equal(wf_peer_spell(10, argv, &spelled), WEFT_OK);
	assert_int_equal(spelled.count, sizeof(wanted) / sizeof(wanted[0]));
	for (int i = 0; i < spelled.count; i++) {
		assert_string_equal(spelled.word[i], wanted[i]);
	}
	assert_null(spelled.word[spelled.count]);
}

static void
unknown_letters_and_too_many_are_refused(void **state)
{
	char *many[WF_PEER_WORDS_MAX + 1];
	struct wf_peer_spelled spelled;
	char unknown[] = "-aQ", known[] = "-aF";
	char *one[] = {unknown};
	assert_int_equal(wf_peer_spell(1, one, &spelled), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "'-Q'"));
	for (int i = 0; i <= WF_PEER_WORDS_MAX; i++) {
		many[i] = known;
	}
	assert_int_equal(wf_peer_spell(WF_PEER_WORDS_MAX / 2, many, &spelled), WEFT_OK);
	assert_int_equal(wf_peer_spell(WF_PEER_WORDS_MAX / 2 + 1, many, &spelled), WEFT_INVALID);
}

static void
settings_for_rdma_come_together(void **state)
{
	struct wf_peer_settings set = {.device = "mlx5_0",
				       .gid_index = 3,
				       .gid_given = true,
				       .mtu = 1024,
				       .mtu_given = true,
				       .verbs = "imm=off"};
	char text[WF_PEER_VERBS_BYTES];
	char too_long[WF_PEER_VERBS_BYTES];
	assert_int_equal(wf_peer_verbs_settings(&set, text), WEFT_OK);
	assert_string_equal(text, "device=mlx5_0,gid=3,mtu=1024,imm=off");
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	set.verbs = too_long;
	assert_int_equal(wf_peer_verbs_settings(&set, text), WEFT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern_of_a_message_is_right_and_another_is_not),
		cmocka_unit_test(one_wrong_bit_is_found_where_it_is),
		cmocka_unit_test(head_of_another_version_is_let_through_without_its_rest),
		cmocka_unit_test(heads_that_make_no_sense_are_refused),
		cmocka_unit_test(server_has_the_counts_of_a_leg_the_other_way_round),
		cmocka_unit_test(legs_beyond_the_plan_are_refused),
		cmocka_unit_test(plans_beyond_the_limits_are_refused),
		cmocka_unit_test(failure_of_one_end_is_that_of_the_other),
		cmocka_unit_test(letters_are_spelled_out),
		cmocka_unit_test(unknown_letters_and_too_many_are_refused),
		cmocka_unit_test(settings_for_rdma_come_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
