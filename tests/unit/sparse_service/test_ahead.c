/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a lane sends ahead of the step that they were asked for, and what it sends again when
 * that is applied. Every row is compared with a table on which the same steps are done in one
 * piece. Thread: the test's. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MANY 40u
#define FRESH 78u /* a key that has no row */
#define CROWD 300u

static const uint64_t low[] = {3, 17, 40, 99, 1000};

/* 2, 5, 8, ...: 17 is the only key of `low`. */
static const uint64_t *
many_keys(void)
{
	static uint64_t key[MANY];
	for (uint32_t i = 0; i < MANY; i++) {
		key[i] = 2 + 3 * i;
	}
	return key;
}

static struct wish
wish_of(const uint64_t *key, uint32_t count, float scale, uint64_t offset)
{
	return (struct wish){.key = key, .count = count, .scale = scale, .offset = offset};
}

static void
pull_ahead(struct doll *doll, uint64_t id, uint64_t step, const struct wish *wish)
{
	struct wf_sparse_pull pull;
	doll_fill_pull(doll, id, step, wish, 1, &pull);
	pull.flags |= WF_SPARSE_PULL_AHEAD;
	doll_say_pull(doll, &pull);
	doll_put(doll, id, 0, step, wish);
}

/* One trainer, all of whose keys have rows. Returns it after its first two answers. */
static struct doll *
begin(struct ground *ground)
{
	const struct wish all[] = {wish_of(low, 5, 1, 0), wish_of(many_keys(), MANY, 1, 4096)};
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, all, 2);
	ground_settle(ground);
	CHECK(ground, doll->answers == 2);
	return doll;
}

static void
one_changes(struct ground *ground)
{
	struct doll *doll = begin(ground);
	const struct wish pushed = wish_of(low, 5, 1, 0);
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	pull_ahead(doll, 2, 1, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 3 && doll->changes == 0);
	CHECK(ground, doll->answer_tag[2] == wf_sparse_answer_tag(2, 0, 0));
	CHECK(ground, ground_rows_are_right(ground, doll, &next));
	doll_push(doll, 1, &pushed, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &pushed, 1);
	CHECK(ground, doll->applieds == 1 && doll->answers == 3 && doll->changes == 1);
	CHECK(ground, doll->changed.request_id == 2 && doll->changed.step == 1);
	CHECK(ground, doll->changed.part == 0 && doll->changed.last);
	CHECK(ground, doll->changed.row_count == 1 && doll->changed.row[0] == 5);
	/* What is corrected was looked up when it was sent ahead. */
	const struct wf_table *table = wf_sparse_service_table(ground->lane[0], 0);
	CHECK(ground, wf_stats_get(wf_table_stats(table), WF_TABLE_KEYS_LOOKED_UP) == 5 + 2 * MANY);
	CHECK(ground, !ground_rows_are_right(ground, doll, &next));
	doll_correct(doll, next.offset);
	CHECK(ground, ground_rows_are_right(ground, doll, &next));
}

static void
rows_come_ahead_of_their_step_and_those_that_it_changes_again(void **state)
{
	const enum weft_value_format wires[] = {WEFT_VALUES_F32, WEFT_VALUES_BF16};
	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++) {
		const struct ground_opts opts = {
			.trainers = 1, .slot_bytes = 2048, .value_wire = wires[i]};
		ground_play(&opts, one_changes);
	}
}

/* More parts of two pulls than the lane has buffers: the last ones are gathered when the push of
 * the next step has long been here. */
static void
ask_for_much(struct ground *ground)
{
	struct doll *doll = begin(ground);
	struct wish next[8];
	const struct wish pushed = wish_of(low, 5, 1, 0);
	for (uint32_t i = 0; i < 8; i++) {
		next[i] = wish_of(low, 5, 1, 8192 + 1024 * i);
	}
	doll_pull(doll, 2, 1, next, 4);
	ground_settle(ground);
	doll_pull(doll, 3, 1, next + 4, 4);
	ground_settle(ground);
	CHECK(ground, doll->answers == 2);
	doll_push(doll, 1, &pushed, 1);
	doll_push(doll, 2, &pushed, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 10 && doll->applieds == 2);
	ground_model_step(ground, 1, 2, &pushed, 1);
	for (uint32_t i = 0; i < 8; i++) {
		CHECK(ground, doll->answer_tag[2 + i] == wf_sparse_answer_tag(2 + i / 4, i % 4, 1));
		CHECK(ground, ground_rows_are_right(ground, doll, &next[i]));
	}
}

static void
no_step_is_applied_before_the_rows_of_the_one_before_are_gathered(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	ground_play(&opts, ask_for_much);
}

/* Steps in a row: what changed in one is not what changes in the next. */
static void
take_steps(struct ground *ground)
{
	struct doll *doll = begin(ground);
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	for (uint64_t step = 1; step <= 4; step++) {
		const struct wish pushed = wish_of(low + step - 1, 1, (float)step, 0);
		pull_ahead(doll, 1 + step, step, &next);
		ground_settle(ground);
		doll_push(doll, step, &pushed, 1);
		ground_settle(ground);
		ground_model_step(ground, step, 2, &pushed, 1);
		CHECK(ground, doll->answers == 2 + step && doll->changes == step);
		CHECK(ground, doll->changed.row_count == (low[step - 1] == 17 ? 1 : 0));
		doll_correct(doll, next.offset);
		CHECK(ground, ground_rows_are_right(ground, doll, &next));
	}
}

static void
each_step_corrects_what_it_has_changed(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	ground_play(&opts, take_steps);
}

/* More rows than a message has room for. */
static void
change_many(struct ground *ground)
{
	static uint64_t key[CROWD];
	struct doll *doll = begin(ground);
	for (uint32_t i = 0; i < CROWD; i++) {
		key[i] = 2000 + i;
	}
	const struct wish all = wish_of(key, CROWD, 1, 16384);
	doll_pull(doll, 2, 0, &all, 1);
	ground_settle(ground);
	doll->correct_at = all.offset;
	pull_ahead(doll, 3, 1, &all);
	ground_settle(ground);
	CHECK(ground, doll->answers == 4);
	doll_push(doll, 1, &all, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &all, 1);
	CHECK(ground, doll->answers == 4 && doll->changes == 2 && doll->changed_rows == CROWD);
	CHECK(ground, doll->changed.last);
	CHECK(ground, ground_rows_are_right(ground, doll, &all));
}

static void
rows_that_do_not_fit_one_message_come_in_two(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 16384};
	ground_play(&opts, change_many);
}

/* Of so many pulls, whose rows all change, which are sent ahead: 1 rest, 2, 4. */
static void
rest_longer(struct ground *ground)
{
	static const bool is_ahead[] = {true,  false, true,  false, false, true,
					false, false, false, false, true};
	struct doll *doll = begin(ground);
	const struct wish batch = wish_of(low, 5, 1, 8192);
	for (uint64_t step = 1; step <= sizeof(is_ahead); step++) {
		const uint32_t before = doll->changes;
		pull_ahead(doll, 1 + step, step, &batch);
		ground_settle(ground);
		doll_push(doll, step, &batch, 1);
		ground_settle(ground);
		CHECK(ground, doll->changes - before == (is_ahead[step - 1] ? 1u : 0u));
	}
}

static void
where_much_changes_again_and_again_lanes_rest_longer(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	ground_play(&opts, rest_longer);
}

static void
all_changes(struct ground *ground)
{
	struct doll *doll = begin(ground);
	const struct wish pushed = wish_of(low, 5, 1, 0);
	const struct wish next = wish_of(low, 5, 1, 8192);
	pull_ahead(doll, 2, 1, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 3);
	doll_push(doll, 1, &pushed, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &pushed, 1);
	CHECK(ground, doll->answers == 3 && doll->changes == 1); /* no place is PUT to twice */
	CHECK(ground, doll->changed.row_count == 5);
	doll_correct(doll, next.offset);
	CHECK(ground, ground_rows_are_right(ground, doll, &next));
	/* It was of no use: the next pull is answered when its step is applied. */
	pull_ahead(doll, 3, 2, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 3);
	doll_push(doll, 2, &pushed, 1);
	ground_settle(ground);
	CHECK(ground, doll->answers == 4 && doll->changes == 1);
}

static void
where_much_has_changed_the_next_pull_is_answered_once(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	ground_play(&opts, all_changes);
}

/* `next` is answered once, with the rows of step 1. */
static void
check_held(struct ground *ground, struct doll *doll, const struct wish *next)
{
	const struct wish pushed = wish_of(low, 5, 1, 0);
	ground_settle(ground);
	CHECK(ground, doll->answers == 2);
	doll_push(doll, 1, &pushed, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &pushed, 1);
	CHECK(ground, doll->answers == 3 && doll->changes == 0);
	CHECK(ground, doll->answer_tag[2] == wf_sparse_answer_tag(2, 0, 1));
	CHECK(ground, ground_rows_are_right(ground, doll, next));
}

static void
ask_for_fresh(struct ground *ground)
{
	const uint64_t key[] = {17, FRESH};
	const struct wish next = wish_of(key, 2, 1, 8192);
	struct doll *doll = begin(ground);
	pull_ahead(doll, 2, 1, &next);
	check_held(ground, doll, &next);
}

static void
ask_without(struct ground *ground)
{
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	struct doll *doll = begin(ground);
	doll_pull(doll, 2, 1, &next, 1);
	check_held(ground, doll, &next);
}

static void
ask_with_scores(struct ground *ground)
{
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	struct doll *doll = begin(ground);
	pull_ahead(doll, 2, 1, &next);
	check_held(ground, doll, &next);
}

static void
nothing_is_sent_ahead_unasked_or_without_a_row_or_where_rows_expire(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	const struct ground_opts scores = {.trainers = 1, .slot_bytes = 2048, .has_scores = true};
	ground_play(&opts, ask_without);
	ground_play(&opts, ask_for_fresh);
	ground_play(&scores, ask_with_scores);
}

/* The last key alone lies in a second cell of keys, and has no row. */
static void
ask_for_fresh_behind_many(struct ground *ground)
{
	uint64_t key[WF_KEYS_OF_CELL + 1];
	for (uint32_t i = 0; i <= WF_KEYS_OF_CELL; i++) {
		key[i] = i;
	}
	const struct wish known = wish_of(key, WF_KEYS_OF_CELL, 1, 0);
	const struct wish next = wish_of(key, WF_KEYS_OF_CELL + 1, 1, 16384);
	const struct wish pushed = wish_of(key, 5, 1, 0);
	struct doll *doll = doll_add(ground, 0, 0);
	doll_meet(doll);
	doll_pull(doll, 1, 0, &known, 1);
	ground_settle(ground);
	pull_ahead(doll, 2, 1, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 1);
	doll_push(doll, 1, &pushed, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &pushed, 1);
	CHECK(ground, doll->answers == 2 && ground_rows_are_right(ground, doll, &next));
	const struct wf_table *table = wf_sparse_service_table(ground->lane[0], 0);
	CHECK(ground, wf_stats_get(wf_table_stats(table), WF_TABLE_KEYS_LOOKED_UP) ==
			      2 * WF_KEYS_OF_CELL + 1);
}

static void
keys_that_could_not_be_sent_ahead_count_once(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 16384};
	(void)state;
	ground_play(&opts, ask_for_fresh_behind_many);
}

/* Another trainer's push changes rows as well; one that is out of data ends the step. */
static void
push_beside(struct ground *ground)
{
	struct doll *doll = begin(ground);
	struct doll *other = doll_add(ground, 1, 0);
	const uint64_t key = many_keys()[7];
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	const struct wish pushed[] = {wish_of(low, 1, 1, 0), wish_of(&key, 1, 2, 0)};
	doll_meet(other);
	pull_ahead(doll, 2, 1, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 3);
	doll_push(doll, 1, &pushed[0], 1);
	doll_push(other, 1, &pushed[1], 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 5, pushed, 2);
	CHECK(ground, doll->changes == 1 && doll->changed.row_count == 1);
	CHECK(ground, doll->changed.row[0] == 7);
	doll_correct(doll, next.offset);
	CHECK(ground, ground_rows_are_right(ground, doll, &next));
}

static void
what_other_trainers_change_is_corrected(void **state)
{
	const struct ground_opts opts = {.trainers = 2, .slot_bytes = 2048};
	ground_play(&opts, push_beside);
}

/* The path ends with a part sent ahead: the pull is forgotten, and another one is answered. */
static void
lose_path(struct ground *ground)
{
	struct doll *doll = begin(ground);
	const struct wish pushed = wish_of(low, 5, 1, 0);
	const struct wish next = wish_of(many_keys(), MANY, 1, 8192);
	pull_ahead(doll, 2, 1, &next);
	ground_settle(ground);
	CHECK(ground, doll->answers == 3);
	wf_transport_disconnect(doll->peer.conn, WF_DISCONNECT_NOW);
	ground_settle(ground);
	doll_meet(doll);
	doll_pull(doll, 2, 1, &next, 1);
	doll_push(doll, 1, &pushed, 1);
	ground_settle(ground);
	ground_model_step(ground, 1, 2, &pushed, 1);
	CHECK(ground, doll->applieds == 1 && doll->answers == 4 && doll->changes == 0);
	CHECK(ground, ground_rows_are_right(ground, doll, &next));
}

static void
what_was_sent_ahead_ends_with_its_path(void **state)
{
	const struct ground_opts opts = {.trainers = 1, .slot_bytes = 2048};
	ground_play(&opts, lose_path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_ahead_of_their_step_and_those_that_it_changes_again),
		cmocka_unit_test(no_step_is_applied_before_the_rows_of_the_one_before_are_gathered),
		cmocka_unit_test(each_step_corrects_what_it_has_changed),
		cmocka_unit_test(rows_that_do_not_fit_one_message_come_in_two),
		cmocka_unit_test(where_much_changes_again_and_again_lanes_rest_longer),
		cmocka_unit_test(where_much_has_changed_the_next_pull_is_answered_once),
		cmocka_unit_test(
			nothing_is_sent_ahead_unasked_or_without_a_row_or_where_rows_expire),
		cmocka_unit_test(keys_that_could_not_be_sent_ahead_count_once),
		cmocka_unit_test(what_other_trainers_change_is_corrected),
		cmocka_unit_test(what_was_sent_ahead_ends_with_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
