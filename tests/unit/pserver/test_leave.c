/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that leave or are dropped while the job goes on, and the process that comes in their
 * place, as a lane sees them with scripted messages. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct stage_opts opts = {.trainers = 2, .min_trainers = 1};

/* Trainer 1 has made a step and left, and has not received the acknowledgement. Another process
 * waits for its place, and returns as a puppet; the lane is in step 2, which nobody has begun. */
static struct puppet *
begin_with_newcomer(struct stage *stage)
{
	puppets_begin(stage);
	const struct wf_peer *place = &stage->lane[0]->peers.all[1];
	struct peer *leaver = &stage->puppet[1].peer;
	for (uint32_t t = 0; t < 2; t++) {
		puppet_continue(&stage->puppet[t], 1);
	}
	stage_settle(stage);
	peer_leave(leaver);
	stage_settle(stage);
	CHECK(stage, place->leaving.is_dropped);
	peer_disconnect(leaver, WF_DISCONNECT_NOW);
	leaver->goodbye_heard = false; /* it was on its way */
	stage_settle(stage);
	struct puppet *newcomer = puppet_add(stage, 1, 0);
	newcomer->peer.hello.incarnation += 500;
	newcomer->peer.hello.epoch = 1;
	newcomer->peer.hello.path = 20; /* it has been refused as long as the place was taken */
	puppet_connect(newcomer);
	stage_settle(stage);
	CHECK(stage, place->joining.ordered);
	CHECK(stage, !newcomer->peer.up && !newcomer->peer.down);
	return newcomer;
}

/* Trainer 0 begins the step of the newcomer's border, and the newcomer is in it. */
static void
check_joins(struct stage *stage, struct puppet *newcomer)
{
	puppet_say_step(&stage->puppet[0], 2, 0);
	stage_settle(stage);
	CHECK(stage, newcomer->peer.up && newcomer->peer.resumed && !newcomer->peer.down);
	CHECK(stage, (newcomer->peer.welcome.flags & WF_WELCOME_JOINS) != 0);
	CHECK(stage, newcomer->inits == 1);
}

/* The leaver comes back while the others compute. */
static struct puppet *
come_back(struct stage *stage)
{
	struct puppet *leaver = &stage->puppet[1];
	puppet_connect(leaver);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, leaver->peer.resumed && !leaver->peer.down);
	return leaver;
}

static void
leaver_fetches_its_answer(struct stage *stage)
{
	struct puppet *newcomer = begin_with_newcomer(stage);
	struct puppet *leaver = come_back(stage);
	peer_leave(&leaver->peer);
	stage_settle(stage);
	CHECK(stage, leaver->peer.goodbye_heard);
	peer_disconnect(&leaver->peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	CHECK(stage, !newcomer->peer.up && !newcomer->peer.down);
	check_joins(stage, newcomer);
}

static void
a_leaver_that_comes_back_for_its_answer_lets_nobody_in(void **state)
{
	(void)state;
	stage_play(&opts, leaver_fetches_its_answer, NULL);
}

static void
leaver_is_slow(struct stage *stage)
{
	struct puppet *newcomer = begin_with_newcomer(stage);
	const struct puppet *leaver = come_back(stage);
	check_joins(stage, newcomer);
	CHECK(stage, leaver->peer.down);
}

static void
who_joins_does_not_wait_for_a_leaver_that_is_slow(void **state)
{
	(void)state;
	stage_play(&opts, leaver_is_slow, NULL);
}

/* The newest path of the leaver takes over, and the newcomer comes again. */
static void
leaver_comes_twice(struct stage *stage)
{
	struct puppet *newcomer = begin_with_newcomer(stage);
	struct puppet *leaver = &stage->puppet[1];
	struct puppet *again = puppet_add(stage, 1, 0);
	puppet_connect(leaver);
	stage_settle(stage);
	again->peer.hello.path = leaver->peer.hello.path;
	puppet_connect(again);
	stage_settle(stage);
	CHECK(stage, leaver->peer.down);
	CHECK(stage, again->peer.resumed && !again->peer.down);
	CHECK(stage, newcomer->peer.down && !newcomer->peer.up);
	peer_disconnect(&again->peer, WF_DISCONNECT_NOW);
	stage_settle(stage);
	puppet_connect(newcomer);
	stage_settle(stage);
	CHECK(stage, !newcomer->peer.up && !newcomer->peer.down);
	check_joins(stage, newcomer);
}

static void
a_leaver_takes_over_from_its_own_older_path(void **state)
{
	(void)state;
	stage_play(&opts, leaver_comes_twice, NULL);
}

static void
job_ends_meanwhile(struct stage *stage)
{
	const struct puppet *newcomer = begin_with_newcomer(stage);
	puppet_connect(&stage->puppet[1]);
	stage_settle(stage);
	peer_goodbye(&stage->puppet[0].peer);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].peer.goodbye_heard);
	CHECK(stage, newcomer->peer.down && !newcomer->peer.up);
}

static void
who_waits_for_a_place_is_not_kept_when_the_job_ends(void **state)
{
	(void)state;
	stage_play(&opts, job_ends_meanwhile, NULL);
}

/* ---- a leaver whose path breaks before it is out ---- */

/* Lane 0 receives the GOODBYE of trainer 1, and the second one does not. */
static void
leave_with_broken_paths(struct stage *stage)
{
	const uint32_t lanes = stage->opts.lanes;
	puppets_begin(stage);
	for (uint32_t t = 0; t < 2 && lanes > 1; t++) {
		puppet_meet(puppet_add(stage, t, 1));
	}
	for (uint32_t i = 2; i < stage->puppet_count; i++) {
		puppet_initialise(&stage->puppet[i]);
	}
	stage_settle(stage);
	if (lanes > 1) {
		peer_disconnect(&stage->puppet[3].peer, WF_DISCONNECT_NOW);
	}
	peer_leave(&stage->puppet[1].peer);
	peer_disconnect(&stage->puppet[1].peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	for (uint32_t i = 0; i < lanes; i++) {
		const struct wf_peer *leaver = &stage->lane[i]->peers.all[1];
		CHECK(stage, leaver->leaving.is_dropped && leaver->conn == NULL);
	}
}

/* Trainer 0 has ended, and the lane is there until the leaver has its answer, and no longer. */
static void
leaver_comes_back_at_the_end(struct stage *stage)
{
	leave_with_broken_paths(stage);
	for (uint32_t i = 0; i < stage->opts.lanes; i++) {
		const struct wf_lane *lane = stage->lane[i];
		struct peer *stayer = &stage->puppet[2 * i].peer;
		struct puppet *leaver = &stage->puppet[2 * i + 1];
		peer_goodbye(stayer);
		stage_settle(stage);
		CHECK(stage, stayer->goodbye_heard);
		peer_disconnect(stayer, WF_DISCONNECT_DRAIN);
		stage_run(stage, WF_NS_PER_S);
		CHECK(stage, wf_lane_job_state(lane) == WF_LANE_RUNNING);
		puppet_connect(leaver);
		stage_settle(stage);
		CHECK(stage, leaver->peer.resumed && !leaver->peer.down);
		peer_leave(&leaver->peer);
		stage_settle(stage);
		CHECK(stage, leaver->peer.goodbye_heard);
		peer_disconnect(&leaver->peer, WF_DISCONNECT_DRAIN);
		stage_settle(stage);
		CHECK(stage, wf_lane_job_state(lane) == WF_LANE_FINISHED);
	}
}

static void
the_end_of_the_job_waits_for_who_leaves(void **state)
{
	(void)state;
	stage_play(&opts, leaver_comes_back_at_the_end, NULL);
}

/* The second lane knows from the registrar that it leaves. */
static void
so_does_a_lane_that_has_not_received_its_goodbye(void **state)
{
	(void)state;
	stage_play(&(struct stage_opts){.trainers = 2, .lanes = 2, .min_trainers = 1},
		   leaver_comes_back_at_the_end, NULL);
}

/* ---- a lane that begins late ---- */

static enum weft_status
load(const struct wf_lane_source *source, struct wf_lane *lane, struct wf_msg_init *out)
{
	const uint64_t begin_ns = lane->admission.start_ns + WF_NS_PER_S;
	(void)source;
	(void)out;
	return lane->opts.idx == 1 && wf_now_ns(lane->env) < begin_ns ? WEFT_AGAIN : WEFT_CLOSED;
}

/* All are connected to both lanes, and the job has begun on lane 0. */
static void
begin_on_lane_0(struct stage *stage, struct puppet *late[3])
{
	puppets_begin(stage);
	for (uint32_t t = 0; t < 3; t++) {
		late[t] = puppet_add(stage, t, 1);
		puppet_connect(late[t]);
		stage_settle(stage);
		if (t == 0) {
			puppet_send_job(late[t]);
		} else {
			peer_beat(&late[t]->peer, false, false);
		}
		stage_settle(stage);
	}
	CHECK(stage, stage->lane[0]->job.is_ready);
	CHECK(stage, stage->lane[1]->job.is_here && !stage->lane[1]->job.is_ready);
}

static void
two_are_killed_meanwhile(struct stage *stage)
{
	struct puppet *late[3];
	begin_on_lane_0(stage, late);
	stage->reads[1] = true;
	for (uint32_t t = 1; t < 3; t++) {
		peer_disconnect(&stage->puppet[t].peer, WF_DISCONNECT_NOW);
		peer_disconnect(&late[t]->peer, WF_DISCONNECT_NOW);
	}
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, stage->lane[0]->peers.all[1].leaving.is_dropped);
	CHECK(stage, stage->lane[0]->peers.all[2].leaving.is_dropped);
	stage->reads[1] = false;
	stage_settle(stage);
	puppet_grant(late[0], 0);
	puppet_have(late[0]);
	puppet_initialise(late[0]);
	stage_settle(stage);
	CHECK(stage, stage->lane[1]->job.is_ready && stage->lane[1]->job.owed == NULL);
	stage_run(stage, 10 * WF_NS_PER_S);
	CHECK(stage, stage->puppet[0].peer.aborted);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "trainer 1 (host puppet, pid 101)");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "the job had not begun on all lanes");
}

/* Two trainers are dropped meanwhile, and it follows only the order about the second one. */
static void
a_lane_that_begins_late_does_not_wait_for_ever(void **state)
{
	static const struct wf_lane_source source = {.load = load};
	(void)state;
	stage_play(
		&(struct stage_opts){
			.trainers = 3, .lanes = 2, .min_trainers = 1, .source = &source},
		two_are_killed_meanwhile, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaver_that_comes_back_for_its_answer_lets_nobody_in),
		cmocka_unit_test(who_joins_does_not_wait_for_a_leaver_that_is_slow),
		cmocka_unit_test(a_leaver_takes_over_from_its_own_older_path),
		cmocka_unit_test(who_waits_for_a_place_is_not_kept_when_the_job_ends),
		cmocka_unit_test(the_end_of_the_job_waits_for_who_leaves),
		cmocka_unit_test(so_does_a_lane_that_has_not_received_its_goodbye),
		cmocka_unit_test(a_lane_that_begins_late_does_not_wait_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
