/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of a job that goes back: what ends one, who may begin the next, and what does not. Thread:
 * the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
begin(struct stage *stage)
{
	for (uint32_t t = 0; t < 2; t++) {
		puppet_meet(puppet_add(stage, t, 0));
	}
	for (uint32_t t = 0; t < 2; t++) {
		puppet_initialise(&stage->puppet[t]);
	}
	stage_settle(stage);
}

static void
play(void (*script)(struct stage *stage))
{
	stage_play(&(struct stage_opts){.trainers = 2, .rejoin_timeout_ns = 60 * WF_NS_PER_S},
		   script, NULL);
}

/* Another process as trainer `trainer`. */
static struct puppet *
start_again(struct stage *stage, uint32_t trainer)
{
	struct puppet *heir = puppet_add(stage, trainer, 0);
	heir->peer.hello.incarnation += 500 + stage->puppet_count;
	return heir;
}

static void
check_next_life(struct stage *stage, const char *says)
{
	struct wf_lane *lane = stage->lane[0];
	stage_run(stage, 10 * WF_NS_PER_MS);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_FAILED);
	CHECK(stage, wf_lane_cause(lane)->status == WEFT_ROLLED_BACK);
	CHECK_SAYS(stage, wf_lane_cause(lane)->reason, says);
	if (script_failed(&stage->script)) {
		return;
	}
	wf_lane_reset(lane); /* at once: nobody has to be told any more */
	struct puppet *zero = start_again(stage, 0);
	struct puppet *one = start_again(stage, 1);
	puppet_meet(zero);
	puppet_meet(one);
	CHECK(stage, zero->peer.up && one->peer.up);
	CHECK(stage, lane->admission.deadline_ns ==
			     lane->admission.start_ns + lane->opts.rejoin_timeout_ns);
	puppet_initialise(zero);
	puppet_initialise(one);
	stage_settle(stage);
	puppet_continue(zero, 1);
	puppet_continue(one, 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	CHECK(stage, puppet_values_are_right(zero) && puppet_values_are_right(one));
}

static void
lose_one(struct stage *stage)
{
	begin(stage);
	CHECK(stage, (stage->puppet[0].peer.welcome.flags & WF_WELCOME_GOES_BACK) != 0);
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_run(stage, 4 * WF_NS_PER_S);
	CHECK(stage, stage->puppet[0].peer.aborted);
	CHECK(stage, stage->puppet[0].peer.abort.status == WEFT_ROLLED_BACK);
	check_next_life(stage, "trainer 1");
}

static void
a_trainer_that_stays_lost_ends_the_life_for_all(void **state)
{
	(void)state;
	play(lose_one);
}

static void
replace_one(struct stage *stage)
{
	begin(stage);
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	struct puppet *heir = start_again(stage, 1);
	puppet_connect(heir);
	stage_settle(stage);
	CHECK(stage, heir->peer.down && heir->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK(stage, stage->puppet[0].peer.abort.status == WEFT_ROLLED_BACK);
	check_next_life(stage, "takes its place");
}

static void
its_successor_ends_the_life_at_once(void **state)
{
	(void)state;
	play(replace_one);
}

/* Neither a process whose predecessor is here, nor one of another job. */
static void
disturb(struct stage *stage)
{
	begin(stage);
	struct puppet *heir = start_again(stage, 1);
	puppet_connect(heir);
	stage_settle(stage);
	CHECK(stage, heir->peer.down && heir->peer.welcome.refusal == WEFT_UNAVAILABLE);
	CHECK_SAYS(stage, heir->peer.welcome.reason, "of a life of the job that has not ended yet");
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_settle(stage);
	struct puppet *stranger = start_again(stage, 1);
	stranger->peer.hello.job_digest ^= 1;
	puppet_connect(stranger);
	stage_settle(stage);
	CHECK(stage, stranger->peer.down);
	CHECK(stage, wf_lane_job_state(stage->lane[0]) == WF_LANE_RUNNING);
	CHECK(stage, !stage->puppet[0].peer.aborted);
}

static void
others_do_not(void **state)
{
	(void)state;
	play(disturb);
}

static void
leave_early(struct stage *stage)
{
	begin(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
	peer_goodbye(&stage->puppet[1].peer);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "left in good order");
}

static void
a_trainer_that_leaves_too_early_ends_the_job(void **state)
{
	(void)state;
	play(leave_early);
}

static void
lose_one_for_good(struct stage *stage)
{
	begin(stage);
	CHECK(stage, (stage->puppet[0].peer.welcome.flags & WF_WELCOME_GOES_BACK) == 0);
	wf_transport_disconnect(stage->puppet[1].peer.conn, WF_DISCONNECT_NOW);
	stage_run(stage, 4 * WF_NS_PER_S);
	CHECK(stage, stage->puppet[0].peer.abort.status == WEFT_LOST);
}

static void
without_the_setting_a_loss_ends_the_job(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, lose_one_for_good, NULL);
}

/* A trainer says of a job that does not go back that it does. */
static void
lie(struct stage *stage)
{
	const struct wf_msg_abort msg = {.status = WEFT_ROLLED_BACK,
					 .step = WF_STEP_NONE,
					 .who = "trainer 1",
					 .reason = "let us begin again"};
	struct wf_lane *lane = stage->lane[0];
	struct wf_msg out;
	begin(stage);
	wf_msg_abort_encode(&msg, &out);
	peer_send(&stage->puppet[1].peer, &out);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_FAILED);
	CHECK(stage, wf_lane_cause(lane)->status == WEFT_LOST);
	CHECK(stage, stage->puppet[0].peer.abort.status == WEFT_LOST);
	if (script_failed(&stage->script)) {
		return;
	}
	wf_lane_reset(lane);
	puppet_meet(start_again(stage, 0));
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, wf_lane_job_state(lane) == WF_LANE_RUNNING); /* it has time to come */
}

static void
a_job_goes_back_only_where_the_pserver_says_so(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2}, lie, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trainer_that_stays_lost_ends_the_life_for_all),
		cmocka_unit_test(its_successor_ends_the_life_at_once),
		cmocka_unit_test(others_do_not),
		cmocka_unit_test(a_trainer_that_leaves_too_early_ends_the_job),
		cmocka_unit_test(without_the_setting_a_loss_ends_the_job),
		cmocka_unit_test(a_job_goes_back_only_where_the_pserver_says_so),
	};
	return cmocka_run_group_tests_name("lives", tests, NULL, NULL);
}
