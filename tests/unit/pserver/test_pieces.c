/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of arrays that trainers reduce: summed when all have sent theirs, whatever step the lane
 * is in, and answered again after a reconnect. Each field of a head that is wrong costs its sender
 * the connection, heads that differ end the job with both sides' calls, and a trainer that leaves
 * or is late is named. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/little.h"
#include "wire/piece.h"

#define PIECE 2u /* its ordinal */
#define MOST 64u /* bytes of data */

static const struct wf_piece good = {
	.type = WEFT_TYPE_I32, .call = 1, .array_bytes = 40, .before_bytes = 0, .bytes = 12};

/* The head, and elements `first`, `first` + 1 ... */
static void
fill(struct puppet *puppet, const struct wf_piece *head, uint32_t first)
{
	uint8_t *source = (uint8_t *)puppet_source(puppet, PIECE);
	memset(source, 0, WF_PIECE_HEAD_BYTES + MOST);
	wf_piece_encode(head, source);
	for (uint32_t i = 0; i < MOST / 4; i++) {
		wf_store_u32(source + WF_PIECE_HEAD_BYTES + 4 * i, first + i);
	}
}

static void
send(struct puppet *puppet, const struct wf_piece *head, uint32_t first, uint64_t number)
{
	fill(puppet, head, first);
	puppet->peer.buffer[0] = PIECE; /* until it is answered */
	puppet_put_bytes(puppet, PIECE, number, 0, wf_piece_put_bytes(head));
}

static void
begin(struct stage *stage)
{
	puppets_begin(stage);
	for (uint32_t t = 0; t < stage->opts.trainers; t++) {
		CHECK(stage, stage->puppet[t].peer.up && !stage->puppet[t].peer.aborted);
	}
}

/* Three elements, of which the first is `first`, and nothing behind them. */
static bool
has_sum(struct puppet *puppet, uint32_t first, uint32_t step)
{
	const uint8_t *got = (const uint8_t *)puppet_values(puppet, PIECE) + WF_PIECE_HEAD_BYTES;
	return wf_load_u32(got) == first && wf_load_u32(got + 4) == first + step &&
	       wf_load_u32(got + 8) == first + 2 * step && wf_load_u32(got + 12) == 0;
}

static void
sum_in_any_step(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0], *one = &stage->puppet[1];
	begin(stage);
	uint32_t before = zero->answers;
	send(one, &good, 100, 1);
	stage_settle(stage);
	CHECK(stage, one->answers == zero->answers || zero->answers == before);
	send(zero, &good, 7, 1);
	stage_settle(stage);
	CHECK(stage, zero->answers == before + 1);
	CHECK(stage, has_sum(zero, 107, 2) && has_sum(one, 107, 2));
	/* One is in step 1, and the other has not begun it. */
	struct wf_piece next = good;
	next.call = 2;
	send(zero, &next, UINT32_MAX, 2);
	puppet_continue(zero, 1);
	stage_settle(stage);
	CHECK(stage, zero->answers == before + 1);
	send(one, &next, 3, 2);
	stage_settle(stage);
	CHECK(stage, zero->answers == before + 2);
	CHECK(stage, has_sum(zero, 2, 2) && has_sum(one, 2, 2));
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, zero->answers == before + 4);
	CHECK(stage, memcmp(puppet_values(one, 0), stage->value[0], sizeof(stage->value[0])) == 0);
}

static void
a_piece_is_summed_in_any_step(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.seed = 1, .trainers = 2, .has_piece = true},
		   sum_in_any_step, NULL);
}

/* Its push is here, its answer is not; then it has another path. */
static void
come_back(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0], *one = &stage->puppet[1];
	begin(stage);
	send(one, &good, 100, 1);
	stage_settle(stage);
	puppet_meet(one);
	CHECK(stage, one->received[PIECE] == 1);
	uint32_t before = one->answers;
	send(zero, &good, 7, 1);
	stage_settle(stage);
	CHECK(stage, one->answers == before + 1 && has_sum(one, 107, 2));
	/* It says that it lacks the answer. */
	one->have[PIECE] = 0;
	memset(puppet_values(one, PIECE), 0, WF_PIECE_HEAD_BYTES + MOST);
	/* The next sum has begun, with another length. */
	struct wf_piece next = good;
	next.call = 2;
	next.bytes = 4;
	send(zero, &next, 1, 2);
	stage_settle(stage);
	before = one->answers;
	puppet_meet(one);
	stage_settle(stage);
	CHECK(stage, one->answers == before + 1 && has_sum(one, 107, 2));
	CHECK(stage, !zero->peer.aborted && !one->peer.aborted);
}

static void
a_sum_is_answered_again_after_a_reconnect(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.seed = 2, .trainers = 2, .has_piece = true}, come_back,
		   NULL);
}

struct lie {
	const char *name;
	const char *says;
	struct wf_piece head;
	uint64_t put_bytes; /* 0: what the head says */
	uint64_t number;    /* of the push; 0: 1 */
	uint32_t patch_at;  /* byte of the head that is changed to `patch`; 0: none */
	uint8_t patch;
	bool twice; /* sent twice */
	bool pull;  /* pulled instead */
};

static const struct lie lies[] = {
	{.name = "less_than_a_head",
	 .says = "48 bytes of a piece, its head has 64",
	 .put_bytes = 48},
	{.name = "fewer_bytes_than_it_says",
	 .says = "72 bytes of a piece with 12",
	 .put_bytes = 72},
	{.name = "more_bytes_than_it_says", .says = "80 bytes of a piece with 12", .put_bytes = 80},
	{.name = "another_magic", .says = "magic", .patch_at = 1, .patch = 1},
	{.name = "a_byte_that_is_not_used", .says = "unused byte", .patch_at = 40, .patch = 1},
	{.name = "the_last_byte_that_is_not_used",
	 .says = "unused byte",
	 .patch_at = 63,
	 .patch = 1},
	{.name = "an_unknown_type",
	 .says = "type is 6",
	 .head = {.type = 6, .call = 1, .array_bytes = 4, .bytes = 4}},
	{.name = "no_call", .says = "call is 0", .head = {.type = 4, .array_bytes = 4, .bytes = 4}},
	{.name = "an_empty_array",
	 .says = "array_bytes is 0",
	 .head = {.type = 4, .call = 1, .bytes = 4}},
	{.name = "an_absurd_array",
	 .says = "array_bytes is",
	 .head = {.type = 4, .call = 1, .array_bytes = 1ull << 61, .bytes = 4}},
	{.name = "half_an_element",
	 .says = "array_bytes is 6",
	 .head = {.type = 4, .call = 1, .array_bytes = 6, .bytes = 4}},
	{.name = "data_behind_the_array",
	 .says = "before_bytes is 8",
	 .head = {.type = 4, .call = 1, .array_bytes = 8, .before_bytes = 8, .bytes = 4}},
	{.name = "a_beginning_within_an_element",
	 .says = "before_bytes is 2",
	 .head = {.type = 4, .call = 1, .array_bytes = 8, .before_bytes = 2, .bytes = 4}},
	{.name = "nothing",
	 .says = "bytes is 0",
	 .head = {.type = 4, .call = 1, .array_bytes = 8},
	 .put_bytes = 64},
	{.name = "more_than_a_slice_holds",
	 .says = "bytes is 68",
	 .head = {.type = 4, .call = 1, .array_bytes = 400, .bytes = 68},
	 .put_bytes = 128},
	{.name = "more_than_the_array_has",
	 .says = "bytes is 8",
	 .head = {.type = 4, .call = 1, .array_bytes = 8, .before_bytes = 4, .bytes = 8}},
	{.name = "bytes_that_wrap",
	 .says = "bytes is 18446744073709551612",
	 .head = {.type = 4,
		  .call = 1,
		  .array_bytes = 8,
		  .before_bytes = 4,
		  .bytes = UINT64_MAX - 3},
	 .put_bytes = 128},
	{.name = "another_number", .says = "waited for is push 1", .number = 2},
	{.name = "two_at_a_time", .says = "waited for is push 2", .twice = true},
	{.name = "a_pull", .says = "one is a piece", .pull = true},
};

static void
tell(struct stage *stage, struct puppet *one, const struct lie *lie)
{
	const struct wf_piece *head = lie->head.type != 0 ? &lie->head : &good;
	uint64_t number = lie->number != 0 ? lie->number : 1;
	fill(one, head, 1);
	if (lie->patch_at != 0) {
		((uint8_t *)puppet_source(one, PIECE))[lie->patch_at] = lie->patch;
	}
	if (lie->pull) {
		puppet_pull(one, 0, PIECE, 1);
		return;
	}
	uint64_t bytes = lie->put_bytes != 0 ? lie->put_bytes : wf_piece_put_bytes(head);
	puppet_put_bytes(one, PIECE, number, 0, bytes);
	if (lie->twice) {
		stage_settle(stage);
		puppet_put(one, PIECE, 1, number);
	}
}

static void
lie_and_be_refused(struct stage *stage)
{
	const struct lie *lie = stage->arg;
	struct puppet *one = &stage->puppet[1];
	const struct puppet *zero = &stage->puppet[0];
	begin(stage);
	tell(stage, one, lie);
	stage_settle(stage);
	CHECK(stage, one->peer.down && !zero->peer.aborted);
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, one->peer.down && one->peer.welcome.refusal == WEFT_PROTOCOL);
	CHECK_SAYS(stage, one->peer.welcome.reason, lie->says);
}

static void
each_lie_costs_its_sender_the_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_ARRAY_COUNT(lies); i++) {
		print_message("%s\n", lies[i].name);
		stage_play(&(struct stage_opts){.seed = 3 + i, .trainers = 2, .has_piece = true},
			   lie_and_be_refused, &lies[i]);
	}
}

static void
differ(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0], *one = &stage->puppet[1];
	begin(stage);
	struct wf_piece other = good;
	other.array_bytes = 44;
	send(zero, &good, 7, 1);
	stage_settle(stage);
	send(one, &other, 7, 1);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_MISMATCH);
	CHECK(stage, one->peer.aborted && one->peer.abort.status == WEFT_MISMATCH);
	CHECK_SAYS(stage, zero->peer.abort.reason, "trainer 1 reduces 44 bytes of i32");
	CHECK_SAYS(stage, zero->peer.abort.reason, "trainer 0 40 bytes of i32");
}

static void
calls_that_differ_end_the_job_with_both(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.seed = 60, .trainers = 2, .has_piece = true}, differ,
		   NULL);
}

static void
leave(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0], *one = &stage->puppet[1];
	const struct wf_msg_goodbye goodbye = {0};
	struct wf_msg out;
	begin(stage);
	send(zero, &good, 7, 1);
	stage_settle(stage);
	stage_check_waits(stage, WF_LANE_AWAITS_REDUCE,
			  "all_reduce or pass end waits for trainer 1");
	wf_msg_goodbye_encode(&goodbye, &out);
	peer_send(&one->peer, &out);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, zero->peer.abort.reason, "trainer 1 left in good order");
}

static void
who_is_late_or_leaves_is_named(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.seed = 61, .trainers = 2, .has_piece = true}, leave, NULL);
}

static void
find_it_gone(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0], *one = &stage->puppet[1];
	const struct wf_msg_goodbye goodbye = {0};
	struct wf_msg out;
	begin(stage);
	wf_msg_goodbye_encode(&goodbye, &out);
	peer_send(&one->peer, &out);
	stage_settle(stage);
	CHECK(stage, !zero->peer.aborted);
	send(zero, &good, 7, 1);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, zero->peer.abort.reason, "all_reduce or pass end waits for it");
}

static void
who_has_left_is_not_waited_for(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.seed = 62, .trainers = 2, .has_piece = true}, find_it_gone,
		   NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_piece_is_summed_in_any_step),
		cmocka_unit_test(a_sum_is_answered_again_after_a_reconnect),
		cmocka_unit_test(each_lie_costs_its_sender_the_connection),
		cmocka_unit_test(calls_that_differ_end_the_job_with_both),
		cmocka_unit_test(who_is_late_or_leaves_is_named),
		cmocka_unit_test(who_has_left_is_not_waited_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
