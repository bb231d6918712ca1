/* SPDX-License-Identifier: Apache-2.0 */
/* A lane with a small inbox, with scripted messages: whom it allows to push what and when, what a
 * broken path leaves, what it refuses, and with how much room it does not begin. Thread: the
 * test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/announce.h"

#define PUSHABLE 4u /* three slices of w, one of b; then the static one */
#define FIXED 4u
#define SLICE_BYTES 64u

/* Two trainers, and room for one slice of each, or for two. */
static const struct stage_opts narrow = {.trainers = 2, .inbox_bytes = 2 * SLICE_BYTES};
static const struct stage_opts wider = {.trainers = 2, .inbox_bytes = 5 * SLICE_BYTES};

/* All are there, with initial values, and have said step 1. */
static void
begin(struct stage *stage)
{
	uint32_t count = stage->opts.trainers;
	puppets_begin(stage);
	CHECK(stage, stage_is_static(stage, 0, FIXED) && !stage_is_static(stage, 0, FIXED - 1));
	for (uint32_t t = 0; t < count; t++) {
		puppet_say_step(&stage->puppet[t], 1, 0);
	}
	stage_settle(stage);
}

static const struct wf_inbox *
inbox_of(const struct stage *stage)
{
	return stage_feature(stage->lane[0], &wf_announce_hooks);
}

static uint64_t
counter(const struct stage *stage, enum wf_lane_counter which)
{
	return wf_stats_get(wf_lane_stats(stage->lane[0]), which);
}

static void
announce(struct stage *stage, uint32_t trainer, uint32_t first, uint32_t count)
{
	puppet_announce(&stage->puppet[trainer], 1, first, count);
	stage_settle(stage);
}

static bool
may_push(const struct puppet *puppet, uint32_t idx, uint32_t ordinal)
{
	return puppet->allowed_count == idx + 1 && puppet->allowed[idx] == ordinal;
}

static void
allow_the_oldest_first(struct stage *stage)
{
	begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	CHECK(stage, zero->peer.grant.announced);
	announce(stage, 0, 0, PUSHABLE);
	CHECK(stage, zero->allowed_count == 0); /* the other has not announced any */
	CHECK(stage, counter(stage, WF_LANE_WAIT_ANNOUNCE_COUNT) == PUSHABLE);
	announce(stage, 1, 2, 1);
	CHECK(stage, may_push(zero, 0, 2) && may_push(one, 0, 2));
	announce(stage, 1, 3, 1);
	announce(stage, 1, 0, 1);
	CHECK(stage, zero->allowed_count == 1 && one->allowed_count == 1); /* there is no room */
	CHECK(stage, counter(stage, WF_LANE_WAIT_INBOX_COUNT) == 2);
	puppet_push(zero, 2, 1);
	stage_settle(stage);
	CHECK(stage, zero->allowed_count == 1);
	puppet_push(one, 2, 1);
	stage_settle(stage);
	CHECK(stage, counter(stage, WF_LANE_SLICE_APPLIED_COUNT) == 1);
	CHECK(stage, may_push(zero, 1, 3) && may_push(one, 1, 3)); /* complete before slice 0 */
	CHECK(stage, counter(stage, WF_LANE_SLICE_HELD_COUNT) == 2);
	CHECK(stage, counter(stage, WF_LANE_SLICE_ANNOUNCED_COUNT) == PUSHABLE + 3);
}

static void
all_are_allowed_a_slice_or_none_and_the_oldest_first(void **state)
{
	stage_play(&narrow, allow_the_oldest_first, NULL);
}

/* Each pushes what it is allowed, in whatever order that comes. */
static void
finish_in_opposite_orders(struct stage *stage)
{
	begin(stage);
	for (uint32_t i = 0; i < PUSHABLE; i++) {
		puppet_announce(&stage->puppet[0], 1, i, 1);
		puppet_announce(&stage->puppet[1], 1, PUSHABLE - 1 - i, 1);
	}
	stage_settle(stage);
	uint32_t pushed = 0;
	while (pushed < PUSHABLE && stage->puppet[0].allowed_count > pushed) {
		CHECK(stage, stage->puppet[0].allowed_count <= pushed + 2); /* the room */
		for (uint32_t t = 0; t < 2; t++) {
			puppet_push(&stage->puppet[t], stage->puppet[t].allowed[pushed], 1);
		}
		pushed++;
		stage_settle(stage);
	}
	stage_expect_step(stage, 1);
	CHECK(stage, pushed == PUSHABLE);
	CHECK(stage, counter(stage, WF_LANE_STEP_APPLIED_COUNT) == 1);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
}

static void
opposite_orders_end_with_the_right_values(void **state)
{
	stage_play(&wider, finish_in_opposite_orders, NULL);
}

static void
allow_the_higher_first(struct stage *stage)
{
	begin(stage);
	announce(stage, 0, 0, PUSHABLE);
	announce(stage, 1, 2, 1);
	announce(stage, 1, 0, 1);
	announce(stage, 1, 3, 1); /* of b, and the last */
	announce(stage, 1, 1, 1);
	static const uint32_t order[PUSHABLE] = {2, 3, 0, 1};
	for (uint32_t i = 0; i < PUSHABLE; i++) {
		CHECK(stage, may_push(&stage->puppet[0], i, order[i]));
		CHECK(stage, may_push(&stage->puppet[1], i, order[i]));
		puppet_push(&stage->puppet[0], order[i], 1);
		puppet_push(&stage->puppet[1], order[i], 1);
		stage_settle(stage);
	}
}

static void
room_goes_to_higher_priorities_first(void **state)
{
	const struct stage_opts opts = {
		.trainers = 2, .inbox_bytes = 2 * SLICE_BYTES, .priority_of_b = 5};
	stage_play(&opts, allow_the_higher_first, NULL);
}

static void
break_a_path(struct stage *stage)
{
	begin(stage);
	struct puppet *one = &stage->puppet[1];
	announce(stage, 0, 0, 2);
	announce(stage, 1, 0, 2);
	CHECK(stage, may_push(one, 0, 0));
	puppet_push(&stage->puppet[0], 0, 1);
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	/* What it has announced is void: slice 1 is not held when room is there again. */
	CHECK(stage, inbox_of(stage)->slice[1].ready == 1);
	CHECK(stage, inbox_of(stage)->slice[0].is_held);
	puppet_meet(one);
	CHECK(stage, one->peer.grant.announced && one->allowed_count == 0);
	announce(stage, 1, 1, 1);
	CHECK(stage, one->allowed_count == 0);
	announce(stage, 1, 0, 1);
	CHECK(stage, may_push(one, 0, 0)); /* at once: its room was kept */
	puppet_push(one, 0, 1);
	stage_settle(stage);
	CHECK(stage, counter(stage, WF_LANE_SLICE_APPLIED_COUNT) == 1);
	CHECK(stage, may_push(one, 1, 1) && stage->puppet[0].allowed_count == 2);
	CHECK(stage, counter(stage, WF_LANE_SLICE_HELD_COUNT) == 2);
}

static void
announcements_die_with_their_path_and_room_is_kept(void **state)
{
	stage_play(&narrow, break_a_path, NULL);
}

/* Slice 1 was complete and waits for room; then one of the two takes its word back, with its path.
 * Room that comes before the word does goes to nobody. */
static void
wait_for_room_with_a_void_word(struct stage *stage)
{
	begin(stage);
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	announce(stage, 0, 0, 3);
	announce(stage, 1, 0, 2);
	CHECK(stage, inbox_of(stage)->slice[1].is_queued);
	puppet_push(zero, 0, 1);
	peer_disconnect(&one->peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	puppet_meet(one);
	announce(stage, 1, 0, 1);
	puppet_push(one, 0, 1);
	stage_settle(stage);
	CHECK(stage, counter(stage, WF_LANE_SLICE_APPLIED_COUNT) == 1); /* there is room */
	CHECK(stage, zero->allowed_count == 1 && one->allowed_count == 1);
	CHECK(stage, counter(stage, WF_LANE_SLICE_HELD_COUNT) == 1);
	announce(stage, 1, 2, 1); /* whoever is complete gets it */
	CHECK(stage, may_push(zero, 1, 2) && may_push(one, 1, 2));
	announce(stage, 1, 1, 1);
	CHECK(stage, zero->allowed_count == 2 && one->allowed_count == 2);
	puppet_push(zero, 2, 1);
	puppet_push(one, 2, 1);
	stage_settle(stage);
	CHECK(stage, may_push(zero, 2, 1) && may_push(one, 2, 1));
}

static void
slice_that_is_complete_no_more_is_not_given_room(void **state)
{
	stage_play(&narrow, wait_for_room_with_a_void_word, NULL);
}

static void
run_out_of_data(struct stage *stage)
{
	for (uint32_t t = 0; t < 2; t++) {
		puppet_meet(puppet_add(stage, t, 0));
	}
	for (uint32_t t = 0; t < 2; t++) {
		puppet_initialise(&stage->puppet[t]);
	}
	stage_settle(stage);
	struct puppet *zero = &stage->puppet[0];
	puppet_say_step(zero, 1, 0);
	puppet_announce(zero, 1, 0, 2);
	stage_settle(stage);
	CHECK(stage, zero->allowed_count == 0);
	puppet_say_out(&stage->puppet[1], 1, 0);
	stage_settle(stage);
	CHECK(stage, may_push(zero, 0, 0)); /* one of two: there is room for one */
	puppet_push(zero, 0, 1);
	stage_settle(stage);
	CHECK(stage, may_push(zero, 1, 1));
}

static void
who_is_out_of_data_is_not_waited_for(void **state)
{
	stage_play(&narrow, run_out_of_data, NULL);
}

/* --- what is refused --- */

static void
put_without_leave(struct puppet *p)
{
	puppet_announce(p, 1, 0, 1);
	puppet_put(p, 0, 0, 1);
}

static void
announce_twice(struct puppet *p)
{
	puppet_announce(p, 1, 0, 2);
	puppet_announce(p, 1, 1, 1);
}

static void
announce_another_step(struct puppet *p)
{
	puppet_announce(p, 2, 0, 1);
}

static void
announce_what_is_static(struct puppet *p)
{
	puppet_announce(p, 1, FIXED - 1, 2);
}

static void
announce_beyond_the_slices(struct puppet *p)
{
	puppet_announce(p, 1, FIXED, 2);
}

static void
allow_a_lane(struct puppet *p)
{
	const struct wf_msg_runs msg = {.step = 1, .count = 1, .run = {{.count = 1}}};
	struct wf_msg out;
	wf_msg_allow_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

struct offence {
	const struct stage_opts *opts;
	void (*commit)(struct puppet *puppet);
	const char *says;
};

static const struct stage_opts roomy = {.trainers = 2};

static const struct offence offences[] = {
	{&narrow, put_without_leave, "PUT: slice 0 of w in step 1, which was not allowed"},
	{&narrow, announce_twice, "ANNOUNCE: slice 1 of w for step 1, waited for is step 1, which"},
	{&narrow, announce_another_step, "ANNOUNCE: for step 2, the lane is in step 1"},
	{&narrow, announce_what_is_static, "ANNOUNCE: slice 4 of fixed"},
	{&narrow, announce_beyond_the_slices, "ANNOUNCE: slices 4 and 2 more, of 5"},
	{&narrow, allow_a_lane, "dense message of type 12"},
	{&roomy, announce_twice, "dense message of type 11: this lane has no announced inbox"},
};

static void
commit(struct stage *stage)
{
	const struct offence *offence = stage->arg;
	begin(stage);
	offence->commit(&stage->puppet[1]);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.down);
	CHECK_SAYS(stage, stage->lane[0]->peers.all[1].lost.why, offence->says);
	CHECK(stage, !stage->puppet[0].peer.down);
}

static void
what_was_not_allowed_or_announced_is_refused(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(offences); i++) {
		stage_play(offences[i].opts, commit, &offences[i]);
	}
}

/* Else the lane would owe ALLOWs of pushes that it has, without end. */
static void
ask_before_and_after(struct stage *stage)
{
	const struct wf_msg_runs msg = {.step = 1, .count = 1, .run = {{.count = 1}}};
	struct wf_lane *lane = stage->lane[0];
	struct wf_msg out;
	wf_msg_announce_encode(&msg, &out);
	begin(stage);
	announce(stage, 0, 0, 1);
	CHECK(stage, wf_features_recv(lane, &lane->peers.all[1], &out.head, out.body) == WEFT_OK);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, !wf_features_may_put(lane, &lane->peers.all[t], 0));
	}
	stage_settle(stage);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, may_push(&stage->puppet[t], 0, 0));
		CHECK(stage, wf_features_may_put(lane, &lane->peers.all[t], 0));
	}
}

static void
nothing_is_allowed_before_its_trainer_is_told(void **state)
{
	stage_play(&narrow, ask_before_and_after, NULL);
}

/* --- how much room it takes --- */

static void
meet_one(struct stage *stage)
{
	const char *says = stage->arg;
	struct puppet *p = puppet_add(stage, 0, 0);
	puppet_connect(p);
	stage_settle(stage);
	puppet_send_job(p);
	stage_settle(stage);
	CHECK(stage, says == NULL ? p->peer.resumed
				  : p->peer.aborted && p->peer.abort.status == WEFT_INVALID);
	if (says != NULL) {
		CHECK_SAYS(stage, p->peer.abort.reason, says);
	} else {
		CHECK(stage, p->peer.granted && !p->peer.grant.announced);
	}
}

static void
too_little_room_is_refused_with_what_it_takes(void **state)
{
	struct stage_opts opts = {.trainers = 3, .inbox_bytes = 3 * SLICE_BYTES - 1};
	stage_play(
		&opts, meet_one,
		"--inbox_bytes=191 has no room for one slice of each of 3 trainers; give 192 or");
	opts.inbox_bytes = PUSHABLE * 3 * SLICE_BYTES - 1;
	opts.clip_norm = 1;
	stage_play(&opts, meet_one,
		   "with clip_norm they wait for each other; give 768 or more, or clip_norm 0");
}

static void
room_for_all_needs_no_announcements(void **state)
{
	struct stage_opts opts = {.trainers = 3, .inbox_bytes = PUSHABLE * 3 * SLICE_BYTES};
	stage_play(&opts, meet_one, NULL);
	opts.clip_norm = 1;
	stage_play(&opts, meet_one, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_allowed_a_slice_or_none_and_the_oldest_first),
		cmocka_unit_test(opposite_orders_end_with_the_right_values),
		cmocka_unit_test(room_goes_to_higher_priorities_first),
		cmocka_unit_test(announcements_die_with_their_path_and_room_is_kept),
		cmocka_unit_test(slice_that_is_complete_no_more_is_not_given_room),
		cmocka_unit_test(who_is_out_of_data_is_not_waited_for),
		cmocka_unit_test(what_was_not_allowed_or_announced_is_refused),
		cmocka_unit_test(nothing_is_allowed_before_its_trainer_is_told),
		cmocka_unit_test(too_little_room_is_refused_with_what_it_takes),
		cmocka_unit_test(room_for_all_needs_no_announcements),
	};
	return cmocka_run_group_tests_name("pserver announce", tests, NULL, NULL);
}
