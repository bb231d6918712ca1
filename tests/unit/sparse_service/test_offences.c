/* SPDX-License-Identifier: Apache-2.0 */
/* What a sparse lane refuses, and at what price: a hello, a message (NACK), a connection, the job.
 * Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t low[] = {3, 17, 40, 99, 1000};
static const uint64_t outside[] = {5, 2048};

static const struct wish lows = {.table = 0, .key = low, .count = 5, .scale = 1};

/* `act` is said by a doll whose job has begun. */
struct offence {
	void (*act)(struct doll *doll);
	const char *says; /* a part of why its connection was closed */
};

static void
put_without_message(struct doll *doll)
{
	doll_put(doll, 0, 0, 1, &lows);
}

static void
put_of_another_part(struct doll *doll)
{
	struct wf_sparse_push push;
	const struct wish two[] = {lows, lows};
	doll_fill_push(doll, 1, two, 2, &push);
	doll_say_push(doll, &push);
	doll_put(doll, 0, 1, 1, &lows);
}

static void
put_of_another_step(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	doll_say_push(doll, &push);
	doll_put(doll, 0, 0, 2, &lows);
}

static void
message_while_parts_are_missing(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	doll_say_push(doll, &push);
	doll_say_push(doll, &push);
}

static void
push_of_an_unknown_table(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	push.part[0].table = 2;
	doll_say_push(doll, &push);
}

static void
pull_of_an_unknown_table(struct doll *doll)
{
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, 1, 0, &lows, 1, &pull);
	pull.part[0].table = 1023;
	doll_say_pull(doll, &pull);
}

static void
push_of_a_part_longer_than_a_slot(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	push.part[0].row_count = 1024 / 24 + 1;
	push.part[0].key_bytes = push.part[0].row_count * 8;
	doll_say_push(doll, &push);
}

static void
pull_of_a_part_longer_than_a_slot(struct doll *doll)
{
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, 1, 0, &lows, 1, &pull);
	pull.part[0].row_count = 1024 / 24 + 1;
	pull.part[0].key_bytes = pull.part[0].row_count * 8;
	doll_say_pull(doll, &pull);
}

static void
pull_beyond_the_range(struct doll *doll)
{
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, 1, 0, &lows, 1, &pull);
	pull.part[0].offset = GROUND_ROWS_BYTES - 79;
	doll_say_pull(doll, &pull);
}

static void
push_of_a_step_to_come(struct doll *doll)
{
	doll_push(doll, 2, NULL, 0);
}

static void
push_twice(struct doll *doll)
{
	doll_push(doll, 1, NULL, 0);
	ground_settle(doll->ground);
	doll_push(doll, 1, NULL, 0);
}

static void
push_that_changes_its_mind(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	push.flags = 0;
	doll_say_push(doll, &push);
	doll_put(doll, 0, 0, 1, &lows);
	push.samples++;
	push.flags = WF_SPARSE_PUSH_LAST;
	doll_say_push(doll, &push);
}

static void
push_with_a_verdict(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, &lows, 1, &push);
	push.flags |= WF_SPARSE_PUSH_APPLY;
	doll_say_push(doll, &push);
}

static void
push_of_another_epoch(struct doll *doll)
{
	struct wf_sparse_push push;
	doll_fill_push(doll, 1, NULL, 0, &push);
	push.epoch = 1;
	doll_say_push(doll, &push);
}

/* A part of the keys as they are given, ascending or not. */
static void
push_raw(struct doll *doll, uint32_t table, const uint64_t *key, uint32_t count, uint8_t coding,
	 uint32_t key_bytes)
{
	struct wf_sparse_push push = {
		.step = 1,
		.samples = 1,
		.flags = WF_SPARSE_PUSH_LAST,
		.part_count = 1,
		.part = {{.table = (uint16_t)table,
			  .coding = coding,
			  .row_count = count,
			  .key_bytes = key_bytes}},
	};
	uint8_t bytes[1024] = {0};
	memcpy(&bytes[count * GROUND_DIM * sizeof(float)], key, count * sizeof(*key));
	doll_say_push(doll, &push);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 1), bytes,
		     count * (GROUND_DIM * sizeof(float)) + key_bytes);
}

static void
push_of_keys_that_descend(struct doll *doll)
{
	const uint64_t key[] = {7, 6};
	push_raw(doll, 0, key, 2, WF_KEYS_RAW, 16);
}

static void
push_of_a_key_twice(struct doll *doll)
{
	const uint64_t key[] = {7, 7};
	push_raw(doll, 0, key, 2, WF_KEYS_RAW, 16);
}

static void
push_of_keys_that_do_not_end(struct doll *doll)
{
	const uint64_t key[] = {UINT64_MAX, UINT64_MAX};
	push_raw(doll, 0, key, 2, WF_KEYS_DELTA, 14);
}

static void
push_of_a_key_outside_the_vocabulary(struct doll *doll)
{
	push_raw(doll, 1, outside, 2, WF_KEYS_RAW, 16);
}

static void
garbage_for_keys_of_a_pull(struct doll *doll)
{
	const uint64_t key[] = {9, 8, 7};
	const struct wf_sparse_pull pull = {
		.request_id = 1,
		.part_count = 1,
		.part = {{.row_count = 3, .key_bytes = 24}},
	};
	doll_say_pull(doll, &pull);
	doll_put_raw(doll, wf_sparse_put_tag(0, doll->peer.grant.slot_count, 0, 0), key,
		     sizeof(key));
}

/* The lane has read the keys of the first, and gives CREDIT when the last has come: until then the
 * slot is not the trainer's. */
static void
parts_of_a_pull_in_one_slot(struct doll *doll)
{
	const struct wish two[] = {lows, lows};
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, 1, 1, two, 2, &pull);
	doll_say_pull(doll, &pull);
	doll_put(doll, 1, 0, 1, &lows);
	ground_settle(doll->ground);
	doll->peer.buffer[0] = PEER_BUFFER_FREE;
	doll_put(doll, 1, 1, 1, &lows);
}

static void
table_again(struct doll *doll)
{
	doll_send_table(doll, 0);
}

static void
dense_message(struct doll *doll)
{
	const struct wf_msg_step step = {.step = 1, .samples = 1};
	struct wf_msg msg;
	wf_msg_step_encode(&step, &msg);
	peer_send(&doll->peer, &msg);
}

static void
message_of_the_lane(struct doll *doll)
{
	const struct wf_sparse_applied applied = {.step = 1};
	struct wf_msg msg;
	wf_sparse_applied_encode(&applied, &msg);
	peer_send(&doll->peer, &msg);
}

static const struct offence offences[] = {
	{put_without_message, "PUT: no part was announced"},
	{put_of_another_part, "PUT: part 1 of step 1"},
	{put_of_another_step, "PUT: part 0 of step 2"},
	{message_while_parts_are_missing, "PUSH: the previous message still lacks 1 of 1 parts"},
	{push_of_an_unknown_table, "PUSH: part 0 is of table 2, but there are 2"},
	{pull_of_an_unknown_table, "PULL: part 0 is of table 1023, but there are 2"},
	{push_of_a_part_longer_than_a_slot, "PUSH: part 0 of 43 rows"},
	{pull_of_a_part_longer_than_a_slot, "PULL: part 0 of 43 rows"},
	{pull_beyond_the_range, "outside the granted range of 65536"},
	{push_of_a_step_to_come, "PUSH 2 of pass 0: steps are missing; the lane is in step 1"},
	{push_twice, "PUSH 1 was received before"},
	{push_that_changes_its_mind, "while PUSH 1 of pass 0 with 2 samples is not complete"},
	{push_with_a_verdict, "PUSH 1: flags 5 carry a verdict, in a synchronous job"},
	{push_of_another_epoch, "PUSH 1: epoch 1"},
	{push_of_keys_that_descend, "key"},
	{push_of_a_key_twice, "key"},
	{push_of_keys_that_do_not_end, "key"},
	{push_of_a_key_outside_the_vocabulary, "table names: key 2048 is outside its vocabulary"},
	{garbage_for_keys_of_a_pull, "key"},
	{parts_of_a_pull_in_one_slot, "PUT: into slot 0, which is in use"},
	{table_again, "TABLE: number 0 of 2 was not requested"},
	{dense_message, "message for service 2 on a sparse lane"},
	{message_of_the_lane, "sparse message of type 8"},
};

static void
an_offence_costs_the_connection_and_is_told(void **state)
{
	for (size_t i = 0; i < sizeof(offences) / sizeof(offences[0]); i++) {
		ground_offend(i, offences[i].act, offences[i].says);
	}
}

/* Before GRANT and HAVE nothing may be pushed or asked for. */
static void
push_too_early(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	peer_connect(&doll->peer);
	ground_settle(ground);
	doll_send_table(doll, 0);
	doll_send_table(doll, 1);
	ground_settle(ground);
	doll_push(doll, 1, NULL, 0);
	ground_settle(ground);
	CHECK(ground, doll->peer.down);
	CHECK(ground,
	      strstr(ground->lane[0]->peers.all[0].lost.why, "before GRANT and HAVE") != NULL);
}

static void
a_push_before_have_is_an_offence(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, push_too_early);
}

/* Refused, and the connection stays: the next pull is answered. */
static void
ask_for_what_is_not_there(struct ground *ground)
{
	static uint64_t key[GROUND_KEYS_MAX];
	const struct wish bad[] = {lows, {.table = 1, .key = outside, .count = 2}, lows};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, bad, 3);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 1 && doll->answers == 0 && doll->peer.credits == 3);
	CHECK(ground, doll->nack[0].request_id == 1 && doll->nack[0].part == 1);
	CHECK(ground, doll->nack[0].status == WEFT_INVALID);
	CHECK(ground, strstr(doll->nack[0].reason, "key 2048 is outside its vocabulary of 2048"));
	doll_pull(doll, 2, 2, &lows, 1); /* of the step after next */
	ground_settle(ground);
	CHECK(ground, doll->nacks == 2 && doll->nack[1].request_id == 2);
	CHECK(ground, strstr(doll->nack[1].reason, "step 2 are requested in step 1") != NULL);
	CHECK(ground,
	      wf_stats_get(wf_lane_stats(ground->lane[0]), WF_LANE_PULL_REFUSED_COUNT) == 2);
	for (uint32_t i = 0; i < 40; i++) {
		key[i] = i;
	}
	const struct wish all[] = {{.table = 0, .key = key, .count = 40, .scale = 1}};
	doll_pull(doll, 3, 0, all, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1 && ground_rows_are_right(ground, doll, &all[0]));
	CHECK(ground, !doll->peer.down);
}

/* In any order the last key says nothing of those before it. */
static void
ask_in_any_order(struct ground *ground)
{
	static const uint64_t first[] = {2048, 5};
	static const uint64_t amid[] = {7, UINT64_MAX, 7, 0};
	const struct wish bad[] = {
		{.table = 1, .key = first, .count = 2, .coding = WF_KEYS_ANY},
		{.table = 1, .key = amid, .count = 4, .coding = WF_KEYS_ANY},
	};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	for (uint32_t i = 0; i < 2; i++) {
		doll_pull(doll, i + 1, 0, &bad[i], 1);
		ground_settle(ground);
		CHECK(ground, doll->nacks == i + 1 && doll->answers == 0 && !doll->peer.down);
		CHECK(ground, doll->nack[i].request_id == i + 1);
		CHECK(ground, doll->nack[i].status == WEFT_INVALID);
		CHECK(ground, strstr(doll->nack[i].reason, "is outside its vocabulary of 2048"));
	}
	doll_pull(doll, 3, 0, &lows, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1 && ground_rows_are_right(ground, doll, &lows));
	CHECK(ground, !doll->peer.aborted);
}

static void
a_pull_that_cannot_be_is_refused_and_the_connection_stays(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, ask_for_what_is_not_there);
	ground_play(&opts, ask_in_any_order);
}

/* Keys of the other of two lanes. */
static void
ask_the_wrong_lane(struct ground *ground)
{
	uint64_t key = 0;
	while (wf_partition_lane(wf_partition_of(key), 2) != 1) {
		key++;
	}
	const struct wish wish[] = {{.table = 0, .key = &key, .count = 1}};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, wish, 1);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 1 && doll->nack[0].status == WEFT_INVALID);
	CHECK(ground, strstr(doll->nack[0].reason, "of another lane") != NULL);
}

static void
a_key_of_another_lane_is_refused(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .lanes = 2};
	ground_play(&opts, ask_the_wrong_lane);
}

/* More than the lane has room for: said again with less, it is taken. */
static void
push_too_much(struct ground *ground)
{
	static uint64_t key[40];
	struct wish wish[25];
	for (uint32_t k = 0; k < 40; k++) {
		key[k] = k;
	}
	for (uint32_t p = 0; p < 25; p++) {
		wish[p] = (struct wish){.table = 0, .key = key, .count = 40, .scale = 1};
	}
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_push(doll, 1, wish, 25);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 1 && doll->peer.credits == 25 && !doll->peer.down);
	CHECK(ground, doll->nack[0].request_id == 0 && doll->nack[0].step == 1);
	CHECK(ground, doll->nack[0].part == 24 && doll->nack[0].status == WEFT_INVALID);
	CHECK(ground, strstr(doll->nack[0].reason, "pushes more than 960 rows") != NULL);
	doll_push(doll, 1, wish, 24);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 1 && doll->nacks == 1);
	for (uint32_t id = 1; id <= WF_PULLS_MAX + 1; id++) {
		doll_pull(doll, id, 2, wish, 1);
	}
	ground_settle(ground);
	CHECK(ground, doll->nacks == 2 && doll->nack[1].request_id == WF_PULLS_MAX + 1);
	CHECK(ground, strstr(doll->nack[1].reason, "16 pulls are unanswered") != NULL);
}

static void
a_push_above_the_bound_is_refused_and_may_be_said_again(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .memory_cap_bytes = 300 << 10};
	ground_play(&opts, push_too_much);
}

/* The second of three messages is above the bound: nothing of the first is left, nothing of the
 * third is looked at, and all of it may be said again. */
static void
push_too_much_later(struct ground *ground)
{
	static uint64_t key[40];
	struct wish wish[24];
	for (uint32_t k = 0; k < 40; k++) {
		key[k] = k;
	}
	for (uint32_t p = 0; p < 24; p++) {
		wish[p] = (struct wish){.table = 0, .key = key, .count = 40, .scale = 1};
	}
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	static const uint32_t counts[] = {3, 24, 2};
	for (uint32_t m = 0; m < 3; m++) {
		struct wf_sparse_push push;
		doll_fill_push(doll, 1, wish, counts[m], &push);
		push.flags = m == 2 ? WF_SPARSE_PUSH_LAST : 0;
		doll_say_push(doll, &push);
		for (uint32_t i = 0; i < counts[m]; i++) {
			doll_put(doll, 0, i, 1, &wish[i]);
		}
		ground_settle(ground);
	}
	CHECK(ground, doll->nacks == 1 && !doll->peer.down && doll->applieds == 0);
	CHECK(ground, doll->nack[0].part == 21 && doll->nack[0].step == 1);
	CHECK(ground, doll->peer.credits == 3 + 24 + 2);
	if (ground->opts.mode == WEFT_SPARSE_ASYNC) { /* who said too much may lose the path, too */
		wf_transport_disconnect(doll->peer.conn, WF_DISCONNECT_NOW);
		ground_settle(ground);
		doll_meet(doll);
		CHECK(ground, doll->peer.steps.step == 0);
	}
	doll_push(doll, 1, &lows, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &lows, 1);
	CHECK(ground, doll->applieds == 1 && doll->applied.rows_updated == 5);
	doll_pull(doll, 1, 1, &lows, 1);
	ground_settle(ground);
	CHECK(ground, ground_rows_are_right(ground, doll, &lows));
	/* The end of what is refused may be an empty message. */
	struct wf_sparse_push push;
	doll_fill_push(doll, 2, wish, 24, &push);
	push.flags = 0;
	for (uint32_t m = 0; m < 2; m++) {
		doll_say_push(doll, &push);
		for (uint32_t i = 0; i < 24; i++) {
			doll_put(doll, 0, i, 2, &wish[i]);
		}
	}
	doll_push(doll, 2, NULL, 0);
	ground_settle(ground);
	CHECK(ground, doll->nacks == 2 && doll->applieds == 1);
	doll_push(doll, 2, &lows, 1);
	ground_settle(ground);
	CHECK(ground, doll->applieds == 2 && !doll->peer.down);
}

static void
a_push_is_taken_as_a_whole_or_not_at_all(void **state)
{
	struct ground_opts opts = {.trainers = 1, .memory_cap_bytes = 300 << 10};
	ground_play(&opts, push_too_much_later);
	opts.mode = WEFT_SPARSE_ASYNC;
	ground_play(&opts, push_too_much_later);
}

/* All in one turn of the lane. */
static void
ask_for_nothing_but_refusals(struct doll *doll, uint32_t pulls)
{
	struct ground *ground = doll->ground;
	const struct wish bad = {.table = 1, .key = outside, .count = 2};
	const struct wf_sparse_fetch fetch = {.request_id = 100,
					      .step = 7,
					      .from = {.kind = WF_RUN_COUNTERS},
					      .bytes = WF_RUN_BYTES_MIN};
	struct wf_msg msg;
	ground->lanes_rest = true;
	wf_sparse_fetch_encode(&fetch, &msg);
	peer_send(&doll->peer, &msg);
	for (uint32_t id = 1; id <= pulls; id++) {
		doll_pull(doll, id, 0, &bad, 1);
	}
	ground_settle(ground);
	ground->lanes_rest = false;
	ground_settle(ground);
}

static void
be_refused_all_at_once(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	ask_for_nothing_but_refusals(doll, WF_PULLS_MAX + 1);
	CHECK(ground, !doll->peer.down && doll->nacks == WF_PULLS_MAX + 2);
	CHECK(ground, doll->peer.credits == WF_PULLS_MAX + 1);
	doll_pull(doll, 50, 0, &lows, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1 && ground_rows_are_right(ground, doll, &lows));
}

static void
go_on_without_hearing(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	ask_for_nothing_but_refusals(doll, WF_NACKS_MAX);
	CHECK(ground, doll->peer.down);
	CHECK(ground, strstr(ground->lane[0]->peers.all[0].lost.why, "too many refusals") != NULL);
}

static void
all_that_may_be_unanswered_can_be_refused_at_once(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_count = 32};
	ground_play(&opts, be_refused_all_at_once);
	ground_play(&opts, go_on_without_hearing);
}

/* Tables with other settings, of a second trainer. */
static void
differ(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	doll_meet(a);
	ground->desc[0].set.dim = 8;
	struct doll *b = doll_add(ground, 1, 0);
	(void)snprintf(b->peer.hello.tensors, sizeof(b->peer.hello.tensors), "words=8");
	peer_connect(&b->peer);
	ground_settle(ground);
	CHECK(ground, b->peer.down && b->peer.welcome.refusal == WEFT_MISMATCH);
	CHECK(ground, strstr(b->peer.welcome.reason, "has words=8") != NULL);
	CHECK(ground, strstr(b->peer.welcome.reason, "declare the same tables") != NULL);
	CHECK(ground, a->peer.absent.trainer == 1);
	CHECK(ground, strstr(a->peer.absent.reason, "has words=8, trainer 0 on ") != NULL);
	ground_run(ground, 3 * WF_NS_PER_S);
	CHECK(ground, a->peer.aborted && a->peer.abort.status == WEFT_MISMATCH);
	CHECK(ground, strstr(a->peer.abort.reason, "has words=8, trainer 0 on ") != NULL);
}

static void
tables_of_a_second_trainer_have_to_be_the_same(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, differ);
}

/* It comes, and sends both tables. */
static void
describe_both(struct ground *ground, struct doll *doll)
{
	peer_connect(&doll->peer);
	ground_settle(ground);
	doll_send_table(doll, 0);
	doll_send_table(doll, 1);
	ground_settle(ground);
}

/* What no table can be: the job ends with the reason, before it has begun. */
static void
describe_the_impossible(struct ground *ground)
{
	ground->desc[1].set.admit_count = 5; /* of a fixed vocabulary */
	struct doll *doll = doll_add(ground, 0, 0);
	describe_both(ground, doll);
	CHECK(ground, doll->peer.aborted && doll->peer.abort.status == WEFT_INVALID);
	CHECK(ground, strstr(doll->peer.abort.reason, "table names") != NULL);
	CHECK(ground, strstr(doll->peer.abort.reason, "fixed vocabulary") != NULL);
}

/* The same to a lane to which no partition falls: there are more lanes than partitions. */
static void
describe_the_unknown_to_a_lane_without_rows(struct ground *ground)
{
	ground->desc[0].optimizer = WF_ROW_OPTIMIZER_COUNT;
	struct doll *doll = doll_add(ground, 0, 0);
	doll->peer.hello.pserver_count = 2 * WF_PARTITION_COUNT;
	describe_both(ground, doll);
	CHECK(ground, doll->peer.aborted && doll->peer.abort.status == WEFT_INVALID);
	CHECK(ground, strstr(doll->peer.abort.reason, "table words: row optimizer") != NULL);
}

static void
describe_counted(struct ground *ground, uint32_t pservers)
{
	ground->desc[0].set.admit_count = 3;
	ground->desc[0].set.admit_slots = 128;
	struct doll *doll = doll_add(ground, 0, 0);
	doll->peer.hello.pserver_count = pservers;
	describe_both(ground, doll);
	CHECK(ground, ground->lane[0]->job.is_ready);
}

static void
compare_shapes_with_rows(struct ground *ground)
{
	describe_counted(ground, 1);
	const struct wf_sparse *sparse = ground->lane[0]->own;
	for (uint32_t i = 0; i < GROUND_TABLES; i++) {
		const struct wf_part_table shape = wf_sparse_shape_of(sparse, i);
		const struct wf_row_shape row = wf_table_shape(sparse->served[i].table);
		uint32_t count = 0;
		(void)wf_table_counters(sparse->served[i].table, 0, &count);
		CHECK(ground, shape.row.dim == row.dim && shape.counter_count == count);
		CHECK(ground, shape.row.state_floats == row.state_floats);
		CHECK(ground, shape.row.has_score == row.has_score);
	}
}

static void
ask_for_shapes_without_rows(struct ground *ground)
{
	describe_counted(ground, 2 * WF_PARTITION_COUNT);
	const struct wf_sparse *sparse = ground->lane[0]->own;
	const struct wf_part_table shape = wf_sparse_shape_of(sparse, 0);
	CHECK(ground, sparse->served[0].table == NULL);
	CHECK(ground, shape.row.dim == GROUND_DIM && shape.row.has_score);
	CHECK(ground, shape.counter_count == 128);
}

static void
a_lane_without_rows_knows_their_shapes(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .has_scores = true};
	(void)state;
	ground_play(&opts, compare_shapes_with_rows);
	ground_play(&opts, ask_for_shapes_without_rows);
}

static void
a_table_that_cannot_be_ends_the_job_with_the_reason(void **state)
{
	const struct ground_opts opts = {.trainers = 1};
	ground_play(&opts, describe_the_impossible);
	ground_play(&opts, describe_the_unknown_to_a_lane_without_rows);
}

static void
ask_for_much_memory(struct ground *ground)
{
	struct doll *doll = doll_add(ground, 0, 0);
	describe_both(ground, doll);
	CHECK(ground, doll->peer.aborted && doll->peer.abort.status == WEFT_NOMEM);
	CHECK(ground, strstr(doll->peer.abort.reason, "--max_shard_bytes") != NULL);
}

static void
memory_beyond_the_limit_ends_the_job_with_the_remedy(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .max_shard_bytes = 10000};
	ground_play(&opts, ask_for_much_memory);
	/* The windows fit, the tables do not. */
	const struct ground_opts more = {.trainers = 1, .max_shard_bytes = 40000};
	ground_play(&more, ask_for_much_memory);
}

static void
push_nonsense(struct ground *ground)
{
	/* What f16 does not hold is infinite when it comes. */
	bool narrow = ground->opts.value_wire == WEFT_VALUES_F16;
	const struct wish bad[] = {
		{.table = 0, .key = low, .count = 5, .scale = narrow ? 1e6f : 1e38f * 1e38f}};
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	doll_push(b, 1, bad, 1);
	ground_settle(ground);
	bool skips = ground->opts.skips_nonfinite;
	CHECK(ground, a->peer.aborted == !skips && b->peer.aborted == !skips);
	if (skips) {
		CHECK(ground, a->applieds == 1 && a->applied.grads_nonfinite == 20);
		return;
	}
	CHECK(ground, a->peer.abort.status == WEFT_DATA && a->peer.abort.step == 1);
	CHECK(ground, strstr(a->peer.abort.reason, "table words from trainer 1") != NULL);
}

static void
gradients_that_are_not_finite_end_the_job_or_are_skipped(void **state)
{
	struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, push_nonsense);
	opts.skips_nonfinite = true;
	ground_play(&opts, push_nonsense);
	opts.value_wire = WEFT_VALUES_F16;
	ground_play(&opts, push_nonsense);
}

static void
stay_away(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	wf_transport_disconnect(b->peer.conn, WF_DISCONNECT_NOW);
	ground_run(ground, 4 * WF_NS_PER_S);
	CHECK(ground, a->peer.aborted && a->peer.abort.status == WEFT_LOST);
	CHECK(ground, strstr(a->peer.abort.reason, "trainer 1 (host doll") != NULL);
}

static void
a_trainer_that_stays_away_ends_the_job(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, stay_away);
}

static void
leave_others_waiting(struct ground *ground)
{
	struct doll *a = doll_add(ground, 0, 0);
	struct doll *b = doll_add(ground, 1, 0);
	doll_meet(a);
	doll_meet(b);
	doll_push(a, 1, &lows, 1);
	ground_settle(ground);
	peer_goodbye(&b->peer);
	ground_settle(ground);
	CHECK(ground, a->peer.aborted && a->peer.abort.status == WEFT_LOST);
	CHECK(ground, strstr(a->peer.abort.reason, "trainer 1 left in good order") != NULL);
}

static void
a_goodbye_while_others_wait_ends_the_job(void **state)
{
	const struct ground_opts opts = {.trainers = 2};
	ground_play(&opts, leave_others_waiting);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_offence_costs_the_connection_and_is_told),
		cmocka_unit_test(a_push_before_have_is_an_offence),
		cmocka_unit_test(a_pull_that_cannot_be_is_refused_and_the_connection_stays),
		cmocka_unit_test(a_key_of_another_lane_is_refused),
		cmocka_unit_test(a_push_above_the_bound_is_refused_and_may_be_said_again),
		cmocka_unit_test(a_push_is_taken_as_a_whole_or_not_at_all),
		cmocka_unit_test(all_that_may_be_unanswered_can_be_refused_at_once),
		cmocka_unit_test(tables_of_a_second_trainer_have_to_be_the_same),
		cmocka_unit_test(a_lane_without_rows_knows_their_shapes),
		cmocka_unit_test(a_table_that_cannot_be_ends_the_job_with_the_reason),
		cmocka_unit_test(memory_beyond_the_limit_ends_the_job_with_the_remedy),
		cmocka_unit_test(gradients_that_are_not_finite_end_the_job_or_are_skipped),
		cmocka_unit_test(a_trainer_that_stays_away_ends_the_job),
		cmocka_unit_test(a_goodbye_while_others_wait_ends_the_job),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
