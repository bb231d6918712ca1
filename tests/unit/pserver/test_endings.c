/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a job for all members, which cause they receive, and that the lane accepts the next
 * job. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/ops.h"

static void
begin(struct stage *stage)
{
	for (uint32_t t = 0; t < 2; t++) {
		struct puppet *puppet = puppet_add(stage, t, 0);
		(void)snprintf(puppet->peer.hello.compared, sizeof(puppet->peer.hello.compared),
			       "seed=1");
		puppet_meet(puppet);
	}
	puppet_initialise(&stage->puppet[0]);
	puppet_initialise(&stage->puppet[1]);
	stage_settle(stage);
}

static void
step(struct stage *stage, struct puppet *zero, struct puppet *one)
{
	puppet_continue(zero, 1);
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

/* The failed job ends, and two new processes have the next one on the same lane. */
static void
next_job(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	const struct wf_stats *stats = wf_lane_stats(lane);
	uint64_t steps = wf_stats_get(stats, WF_LANE_STEP_APPLIED_COUNT);
	uint64_t returns = wf_stats_get(stats, WF_LANE_PEER_RECONNECTED_COUNT);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_FAILED);
	if (script_failed(&stage->script)) {
		return;
	}
	wf_lane_reset(lane);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_IDLE);
	CHECK(stage, wf_lane_cause(lane)->status == WEFT_OK);
	CHECK(stage, lane->order.sum.heard == 0 &&
			     lane->order.sum.step == 0); /* the next has its own steps */
	uint32_t first = stage->puppet_count;
	for (uint32_t t = 0; t < 2; t++) {
		struct puppet *puppet = puppet_add(stage, t, 0);
		puppet->peer.hello.incarnation += 500;
		(void)snprintf(puppet->peer.hello.compared, sizeof(puppet->peer.hello.compared),
			       "seed=2");
		puppet_meet(puppet);
	}
	puppet_initialise(&stage->puppet[first]);
	puppet_initialise(&stage->puppet[first + 1]);
	stage_settle(stage);
	step(stage, &stage->puppet[first], &stage->puppet[first + 1]);
	CHECK(stage, wf_stats_get(stats, WF_LANE_STEP_APPLIED_COUNT) == steps + 1);
	CHECK(stage, wf_stats_get(stats, WF_LANE_PEER_RECONNECTED_COUNT) == returns);
}

static void
check_told(struct stage *stage, uint32_t puppet, enum weft_status status, const char *says)
{
	CHECK(stage, stage->puppet[puppet].peer.aborted);
	CHECK(stage, stage->puppet[puppet].peer.abort.status == status);
	CHECK_SAYS(stage, stage->puppet[puppet].peer.abort.reason, says);
}

static void
play(void (*script)(struct stage *stage))
{
	stage_play(&(struct stage_opts){.trainers = 2}, script, NULL);
}

/* --- ABORT --- */

static void
abort_of_a_trainer(struct stage *stage)
{
	const struct wf_msg_abort msg = {.status = WEFT_DATA,
					 .step = WF_STEP_NONE,
					 .who = "trainer 1",
					 .reason = "its disk is full"};
	struct wf_msg out;
	begin(stage);
	wf_msg_abort_encode(&msg, &out);
	peer_send(&stage->puppet[1].peer, &out);
	stage_settle(stage);
	for (uint32_t t = 0; t < 2; t++) {
		check_told(stage, t, WEFT_DATA, "its disk is full");
		CHECK_SAYS(stage, stage->puppet[t].peer.abort.who, "trainer 1");
		CHECK(stage, stage->puppet[t].peer.abort.step == WF_STEP_NONE);
	}
	next_job(stage);
}

static void
an_abort_is_told_to_everybody_as_it_was_said(void **state)
{
	(void)state;
	play(abort_of_a_trainer);
}

/* A lane has had other jobs before, with steps of their own. */
static void
steps_of_two_jobs(struct stage *stage)
{
	const struct wf_lane_cause cause = {.status = WEFT_DATA, .reason = "enough"};
	struct wf_lane *lane = stage->lane[0];
	begin(stage);
	step(stage, &stage->puppet[0], &stage->puppet[1]);
	wf_lane_abort(lane, &cause);
	next_job(stage);
	wf_lane_abort(lane, &cause);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_FAILED);
	CHECK(stage, lane->report.lines.whole_said && lane->report.lines.now.times.count == 1);
}

static void
the_line_about_a_job_is_of_its_own_steps(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .stats_period_ns = 3600 * WF_NS_PER_S},
		   steps_of_two_jobs, NULL);
}

static void
late_members(struct stage *stage)
{
	const struct wf_lane_cause cause = {.status = WEFT_DATA, .reason = "the first cause"};
	puppet_meet(puppet_add(stage, 0, 0));
	wf_lane_abort(stage->lane[0], &cause);
	struct puppet *late = puppet_add(stage, 1, 0);
	struct puppet *next = puppet_add(stage, 0, 0);
	next->peer.hello.incarnation = 4;
	struct puppet *other = puppet_add(stage, 1, 0);
	other->peer.hello.job_digest ^= 1;
	puppet_connect(late);
	puppet_connect(next);
	puppet_connect(other);
	stage_settle(stage);
	CHECK(stage, late->peer.down && late->peer.welcome.refusal == WEFT_DATA);
	CHECK(stage, late->peer.welcome.flags == WF_WELCOME_JOB_OVER);
	CHECK_SAYS(stage, late->peer.welcome.reason, "the first cause");
	for (struct puppet *p = next; p <= other; p++) {
		CHECK(stage, p->peer.down && p->peer.welcome.refusal == WEFT_UNAVAILABLE);
		CHECK(stage, p->peer.welcome.flags == 0);
		CHECK_SAYS(stage, p->peer.welcome.reason, "another job is ending here; try again");
	}
}

static void
who_comes_to_a_failed_job_is_told_and_who_comes_for_the_next_is_to_wait(void **state)
{
	(void)state;
	play(late_members);
}

static void
successor_of_a_failed_job(struct stage *stage)
{
	const struct wf_lane_cause cause = {.status = WEFT_DATA, .reason = "the first cause"};
	struct puppet *old = puppet_add(stage, 0, 0);
	struct puppet *heir = puppet_add(stage, 0, 0);
	struct wf_lane *lane = stage->lane[0];
	puppet_meet(old);
	heir->peer.hello = old->peer.hello;
	puppet_connect(heir);
	for (unsigned i = 0; i < 10000 && lane->peers.all[0].successor.conn == NULL; i++) {
		stage_run(stage, WF_NS_PER_US);
	}
	CHECK(stage, lane->peers.all[0].successor.conn != NULL);
	wf_lane_abort(lane, &cause);
	stage_settle(stage);
	CHECK(stage, heir->peer.up && heir->peer.aborted);
	CHECK_SAYS(stage, heir->peer.abort.reason, "the first cause");
}

static void
a_path_that_takes_over_from_another_in_a_failing_job_is_told(void **state)
{
	(void)state;
	play(successor_of_a_failed_job);
}

static enum weft_status
poll_that_fails(struct wf_transport *transport, struct wf_event *events, unsigned max,
		unsigned *event_count)
{
	(void)transport;
	(void)events;
	(void)max;
	*event_count = 0;
	return wf_fail(WEFT_IO, "epoll_wait: Bad file descriptor");
}

static void
take_turns_in_vain(struct stage *stage)
{
	struct wf_transport *transport = stage->lane[0]->turn.transport->active;
	const struct wf_transport_ops *ops = transport->ops;
	struct wf_transport_ops broken = *ops;
	broken.poll = poll_that_fails;
	transport->ops = &broken;
	for (int i = 0; i < 3; i++) {
		(void)wf_lane_poll(stage->lane[0]);
	}
	transport->ops = ops;
}

static void
transport_of_a_running_job(struct stage *stage)
{
	begin(stage);
	take_turns_in_vain(stage);
	CHECK(stage, wf_lane_cause(stage->lane[0])->status == WEFT_IO);
	CHECK_SAYS(stage, wf_lane_cause(stage->lane[0])->reason, "lane 0: its transport failed");
	CHECK_SAYS(stage, wf_lane_cause(stage->lane[0])->who, "pserver 0 lane 0");
}

static void
transport_of_a_failed_job(struct stage *stage)
{
	const struct wf_lane_cause cause = {.status = WEFT_DATA, .reason = "the first cause"};
	begin(stage);
	wf_lane_abort(stage->lane[0], &cause);
	take_turns_in_vain(stage);
	CHECK(stage, wf_lane_cause(stage->lane[0])->status == WEFT_DATA);
	CHECK_SAYS(stage, wf_lane_cause(stage->lane[0])->reason, "the first cause");
}

static void
a_transport_that_fails_is_the_cause_where_there_was_none(void **state)
{
	(void)state;
	play(transport_of_a_running_job);
	play(transport_of_a_failed_job);
}

/* --- GOODBYE --- */

static void
goodbye_before_its_step(struct stage *stage)
{
	begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	check_told(stage, 0, WEFT_LOST, "trainer 1 left in good order while others wait");
	next_job(stage);
}

static void
goodbye_with_pushes_missing(struct stage *stage)
{
	begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	puppet_say_step(&stage->puppet[1], 1, 0);
	puppet_push(&stage->puppet[1], 0, 1);
	stage_settle(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	check_told(stage, 0, WEFT_LOST, "trainer 1 left in good order while others wait");
	next_job(stage);
}

static void
goodbye_before_anybody_began(struct stage *stage)
{
	begin(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.goodbye_heard && !stage->puppet[0].peer.aborted);
	puppet_say_step(&stage->puppet[0], 1, 0);
	stage_settle(stage);
	check_told(stage, 0, WEFT_LOST, "trainer 1 left in good order, and step 1 waits for it");
	next_job(stage);
}

/* Its own OUT went to other lanes only, and was answered there: nobody here waits for it. */
static void
goodbye_before_the_others_are_out(struct stage *stage)
{
	begin(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	puppet_say_out(&stage->puppet[0], 1, 0);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.goodbye_heard && !stage->puppet[0].peer.aborted);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_RUNNING);
}

static void
goodbye_in_a_reduce(struct stage *stage)
{
	begin(stage);
	puppet_reduce(&stage->puppet[0], 1, 0, 0);
	stage_settle(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	check_told(stage, 0, WEFT_LOST, "trainer 1 left in good order");
	next_job(stage);
}

static void
reduce_after_a_goodbye(struct stage *stage)
{
	begin(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	puppet_reduce(&stage->puppet[0], 1, 0, 0);
	stage_settle(stage);
	check_told(stage, 0, WEFT_LOST, "a barrier, reduce, all_reduce or pass end waits for it");
}

static void
a_goodbye_that_others_wait_behind_ends_the_job_by_name(void **state)
{
	(void)state;
	play(goodbye_before_its_step);
	play(goodbye_with_pushes_missing);
	play(goodbye_before_anybody_began);
	play(goodbye_in_a_reduce);
	play(reduce_after_a_goodbye);
}

static void
goodbye_after_its_pushes(struct stage *stage)
{
	begin(stage);
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	CHECK(stage, stage->lane[0]->peers.all[1].member.summed == 4);
	puppet_continue(&stage->puppet[0], 1);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, !stage->puppet[0].peer.aborted && stage->puppet[1].peer.goodbye_heard);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	peer_goodbye(&stage->puppet[0].peer);
	stage_settle(stage);
	peer_disconnect(&stage->puppet[0].peer, WF_DISCONNECT_DRAIN);
	peer_disconnect(&stage->puppet[1].peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_FINISHED);
}

static void
a_goodbye_that_nobody_waits_behind_ends_nothing(void **state)
{
	(void)state;
	play(goodbye_after_its_pushes);
	play(goodbye_before_the_others_are_out);
}

/* --- REDUCE --- */

static void
reduce_of_another_count(struct stage *stage)
{
	begin(stage);
	puppet_reduce(&stage->puppet[0], 1, 2, 0);
	stage_settle(stage);
	puppet_reduce(&stage->puppet[1], 1, 3, 0);
	stage_settle(stage);
	check_told(stage, 0, WEFT_MISMATCH, "trainer 1 reduces 3 values where others reduce 2");
	check_told(stage, 1, WEFT_MISMATCH, "trainer 1 reduces 3 values where others reduce 2");
	next_job(stage);
}

static void
a_reduce_of_another_count_ends_the_job_by_name(void **state)
{
	(void)state;
	play(reduce_of_another_count);
}

static void
reduce_said_again(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	begin(stage);
	puppet_reduce(one, 1, 1, 1.0);
	puppet_reduce(one, 1, 1, 1.0); /* as after a reconnect */
	stage_settle(stage);
	CHECK(stage, one->peer.reduced_count == 0);
	puppet_reduce(&stage->puppet[0], 1, 1, 0.25);
	stage_settle(stage);
	CHECK(stage, one->peer.reduced_count == 1 && one->peer.reduced.value[0] == 1.25);
	puppet_reduce(one, 1, 1, 1.0);
	puppet_reduce(&stage->puppet[0], 2, 1, 0.5);
	stage_settle(stage);
	CHECK(stage, one->peer.reduced_count == 2 && one->peer.reduced.value[0] == 1.25);
	CHECK(stage, one->peer.reduced.request_id == 1 && stage->puppet[0].peer.reduced_count == 1);
}

static void
a_reduce_that_is_said_again_counts_once(void **state)
{
	(void)state;
	play(reduce_said_again);
}

static void
reduce_the_most(struct stage *stage)
{
	struct puppet *zero = &stage->puppet[0];
	struct puppet *one = &stage->puppet[1];
	begin(stage);
	for (uint64_t id = 1; id <= 2; id++) {
		puppet_reduce(zero, id, WF_REDUCE_MAX, 0.5);
		stage_settle(stage);
		CHECK(stage, zero->peer.reduced_count == id - 1); /* it waits for the other one */
		puppet_reduce(one, id, WF_REDUCE_MAX, 2.0);
		stage_settle(stage);
		CHECK(stage,
		      one->peer.reduced_count == id && one->peer.reduced.count == WF_REDUCE_MAX);
		for (uint32_t i = 0; i < WF_REDUCE_MAX; i++) {
			CHECK(stage, one->peer.reduced.value[i] == 2.5 + 2 * i);
		}
	}
}

static void
a_reduce_of_the_most_values_leaves_room_for_the_next(void **state)
{
	(void)state;
	play(reduce_the_most);
}

/* Who has asked may go; the lane looks at all trainers and at nobody else. */
static void
reduce_of_who_has_left(struct stage *stage)
{
	for (uint32_t t = 0; t < 3; t++) {
		puppet_meet(puppet_add(stage, t, 0));
	}
	puppet_initialise(&stage->puppet[0]);
	stage_settle(stage);
	puppet_reduce(&stage->puppet[1], 1, 1, 1.0);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.goodbye_heard);
	puppet_reduce(&stage->puppet[0], 1, 1, 0.5);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].peer.reduced_count == 0 && !stage->puppet[0].peer.aborted);
	puppet_reduce(&stage->puppet[2], 1, 1, 0.25);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].peer.reduced_count == 1);
	CHECK(stage, stage->puppet[0].peer.reduced.value[0] == 1.75);
}

static void
a_reduce_that_was_asked_for_before_a_goodbye_counts(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 3}, reduce_of_who_has_left, NULL);
}

static void
reduce_at_the_wrong_lane(struct stage *stage)
{
	puppet_meet(puppet_add(stage, 0, 0));
	puppet_meet(puppet_add(stage, 0, 1));
	puppet_reduce(&stage->puppet[1], 1, 1, 1.0);
	stage_settle(stage);
	CHECK(stage, stage->puppet[1].peer.down && !stage->puppet[0].peer.down);
	CHECK_SAYS(stage, stage->lane[1]->peers.all[0].lost.why,
		   "REDUCE: asked of pserver 0 lane 1");
}

static void
a_reduce_belongs_to_lane_0_of_pserver_0(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 1, .lanes = 2}, reduce_at_the_wrong_lane, NULL);
}

/* --- jobs that cannot be --- */

static void
send_bad_job(struct stage *stage)
{
	struct puppet *zero = puppet_add(stage, 0, 0);
	const char *says = stage->arg;
	puppet_connect(zero);
	stage_settle(stage);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && !zero->peer.resumed);
	CHECK_SAYS(stage, zero->peer.abort.reason, says);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_FAILED);
}

static void
a_job_that_is_too_large_for_the_pserver_names_the_limit(void **state)
{
	(void)state;
	struct stage_opts opts = {.trainers = 1, .slice_bytes = 128, .slot_bytes_max = 64};
	stage_play(&opts, send_bad_job, "slice_bytes 128 is above this pserver's limit 64");
	opts = (struct stage_opts){.trainers = 1, .max_shard_bytes = 64 * 5 - 1};
	stage_play(&opts, send_bad_job, "320 bytes, --max_shard_bytes allows 319");
	opts = (struct stage_opts){
		.trainers = 1, .optimizer = WF_ADAM, .max_shard_bytes = 64 * 13 - 1};
	/* Of the five slices one is static, and has no state. */
	stage_play(&opts, send_bad_job, "832 bytes, --max_shard_bytes allows 831");
}

static void
job_of_other_bytes(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	stage->job_bytes[23] ^= 1; /* in the optimizer's settings: decodes, but is another job */
	struct puppet *zero = &stage->puppet[0];
	puppet_connect(zero);
	stage_settle(stage);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_MISMATCH);
	CHECK_SAYS(stage, zero->peer.abort.reason, "job description and hello of trainer 0 differ");
	stage->job_bytes[23] ^= 1;
	next_job(stage);
}

static void
a_job_that_is_not_the_one_in_the_hello_ends(void **state)
{
	(void)state;
	play(job_of_other_bytes);
}

static void
job_of_garbage(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	memset(stage->job_bytes, 0xee, sizeof(stage->job_bytes));
	puppet_connect(&stage->puppet[0]);
	stage_settle(stage);
	puppet_send_job(&stage->puppet[0]);
	stage_settle(stage);
	check_told(stage, 0, WEFT_PROTOCOL, "job");
	wf_job_encode(&stage->job, stage->job_bytes);
	next_job(stage);
}

static void
a_job_of_garbage_ends(void **state)
{
	(void)state;
	play(job_of_garbage);
}

static void
job_of_other_cuts(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	stage->puppet[0].peer.hello.placement_digest ^= 1;
	puppet_connect(&stage->puppet[0]);
	stage_settle(stage);
	puppet_send_job(&stage->puppet[0]);
	stage_settle(stage);
	check_told(stage, 0, WEFT_MISMATCH, "trainer 0 places slices otherwise");
	next_job(stage);
}

static void
a_trainer_that_places_slices_otherwise_ends_its_job(void **state)
{
	(void)state;
	play(job_of_other_cuts);
}

/* --- refusals that cost nothing --- */

static void
nacks(struct stage *stage)
{
	struct puppet *one = &stage->puppet[1];
	const struct wf_msg_pull state = {.request_id = 8, .count = 1, .section = WF_SECTION_STATE};
	struct wf_msg out;
	begin(stage);
	puppet_grant(one, 1);
	wf_msg_pull_encode(&state, &out);
	peer_send(&one->peer, &out);
	stage_settle(stage);
	CHECK(stage, one->nacks == 1 && one->nack.request_id == 8);
	CHECK_SAYS(stage, one->nack.reason, "the optimizer has no such state");
	for (unsigned i = 0; i <= WF_PULLS_MAX; i++) {
		puppet_pull(one, 1, 0, 1);
	}
	stage_settle(stage);
	CHECK(stage, one->nacks == 2 && one->nack.request_id == 5);
	CHECK_SAYS(stage, one->nack.reason, "too many pulls are unanswered");
	uint32_t before = one->answers;
	step(stage, &stage->puppet[0], one);
	CHECK(stage, one->answers == before + WF_PULLS_MAX + 4);
	/* One NACK is kept while the transport takes none; whoever asks on has its connection cut.
	 */
	struct wf_msg_pull again = state;
	CHECK(stage,
	      wf_answer_pull(stage->lane[0], &stage->lane[0]->peers.all[1], &again) == WEFT_OK);
	again.request_id++;
	CHECK(stage, wf_answer_pull(stage->lane[0], &stage->lane[0]->peers.all[1], &again) ==
			     WEFT_PROTOCOL);
	stage_settle(stage);
	CHECK(stage, one->nacks == 3 && one->nack.request_id == 8);
}

static void
what_a_lane_will_not_do_is_said_and_the_connection_stays(void **state)
{
	(void)state;
	play(nacks);
}

/* A window was parked and CREDIT is not out yet, because the peer does not read: nothing may be
 * taken into it, or the list of credits would grow without limit. */
static void
set_window(struct wf_peer *peer, uint32_t word)
{
	for (uint32_t i = 0; i < peer->slots.count; i++) {
		peer->slots.word[i] = word;
	}
}

static void
put_before_credit(struct stage *stage)
{
	struct wf_lane *lane = stage->lane[0];
	begin(stage);
	puppet_say_step(&stage->puppet[1], 1, 0);
	stage_settle(stage);
	set_window(&lane->peers.all[1], WF_SLOT_CREDIT);
	enum weft_status st = wf_round_put(
		lane, &lane->peers.all[1],
		&(struct wf_put){.tag = wf_tag(0, 1), .data = lane->windows.inbox.slab.base});
	CHECK(stage, st == WEFT_PROTOCOL && lane->peers.all[1].slots.held == 0);
	CHECK_SAYS(stage, weft_last_error(), "PUT: into slot 0 before its CREDIT");
	set_window(&lane->peers.all[1], WF_SLOT_FREE);
	step(stage, &stage->puppet[0], &stage->puppet[1]);
}

static void
a_push_into_a_parked_window_waits_for_its_credit(void **state)
{
	(void)state;
	play(put_before_credit);
}

/* The pserver stands still, or its clock leaps, until nobody may come any more. */
static void
loader_of_a_lane_that_was_away(struct stage *stage)
{
	struct wf_env *env = stage->script.env;
	struct puppet *zero = puppet_add(stage, 0, 0);
	puppet_connect(zero);
	stage_settle(stage);
	wf_wait(env, -1, wf_now_ns(env) + 400 * WF_NS_PER_S);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, zero->peer.up && !zero->peer.down);
	puppet_send_job(zero);
	stage_settle(stage);
	CHECK(stage, zero->peer.granted && zero->peer.resumed && !zero->peer.down);
}

static void
time_in_which_the_lane_takes_no_turns_is_not_its_loaders(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 1}, loader_of_a_lane_that_was_away, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_in_which_the_lane_takes_no_turns_is_not_its_loaders),
		cmocka_unit_test(an_abort_is_told_to_everybody_as_it_was_said),
		cmocka_unit_test(the_line_about_a_job_is_of_its_own_steps),
		cmocka_unit_test(
			who_comes_to_a_failed_job_is_told_and_who_comes_for_the_next_is_to_wait),
		cmocka_unit_test(a_path_that_takes_over_from_another_in_a_failing_job_is_told),
		cmocka_unit_test(a_transport_that_fails_is_the_cause_where_there_was_none),
		cmocka_unit_test(a_goodbye_that_others_wait_behind_ends_the_job_by_name),
		cmocka_unit_test(a_goodbye_that_nobody_waits_behind_ends_nothing),
		cmocka_unit_test(a_reduce_of_another_count_ends_the_job_by_name),
		cmocka_unit_test(a_reduce_that_is_said_again_counts_once),
		cmocka_unit_test(a_reduce_of_the_most_values_leaves_room_for_the_next),
		cmocka_unit_test(a_reduce_that_was_asked_for_before_a_goodbye_counts),
		cmocka_unit_test(a_reduce_belongs_to_lane_0_of_pserver_0),
		cmocka_unit_test(a_job_that_is_too_large_for_the_pserver_names_the_limit),
		cmocka_unit_test(a_job_that_is_not_the_one_in_the_hello_ends),
		cmocka_unit_test(a_job_of_garbage_ends),
		cmocka_unit_test(a_trainer_that_places_slices_otherwise_ends_its_job),
		cmocka_unit_test(what_a_lane_will_not_do_is_said_and_the_connection_stays),
		cmocka_unit_test(a_push_into_a_parked_window_waits_for_its_credit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
