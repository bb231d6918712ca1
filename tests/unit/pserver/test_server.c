/* SPDX-License-Identifier: Apache-2.0 */
/* A whole pserver: when it ends, what it reports then, and how its lanes share the end of a job.
 * Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Two new trainers on one lane begin a job. */
static struct puppet *
begin(struct stage *stage)
{
	struct puppet *first = &stage->puppet[stage->puppet_count];
	for (uint32_t t = 0; t < 2; t++) {
		struct puppet *puppet = puppet_add(stage, t, 0);
		puppet->peer.hello.incarnation += stage->puppet_count * 100;
		puppet_meet(puppet);
	}
	puppet_initialise(first);
	puppet_initialise(first + 1);
	stage_settle(stage);
	return first;
}

static void
do_job(struct stage *stage)
{
	struct puppet *first = begin(stage);
	for (uint32_t t = 0; t < 2; t++) {
		puppet_continue(first + t, 1);
	}
	stage_settle(stage);
	stage_expect_step(stage, 1);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, puppet_values_are_right(first + t));
		peer_goodbye(&first[t].peer);
	}
	stage_settle(stage);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, first[t].peer.goodbye_heard);
		peer_disconnect(&first[t].peer, WF_DISCONNECT_DRAIN);
	}
	stage_run(stage, WF_NS_PER_S);
}

/* Trainer 1 ends the job. */
static void
fail_job(struct stage *stage)
{
	const struct wf_msg_abort msg = {
		.status = WEFT_DATA, .step = 1, .who = "trainer 1", .reason = "out of ideas"};
	struct wf_msg out;
	struct puppet *first = begin(stage);
	wf_msg_abort_encode(&msg, &out);
	peer_send(&first[1].peer, &out);
	stage_settle(stage);
	CHECK(stage, first[0].peer.aborted && first[1].peer.aborted);
	CHECK_SAYS(stage, first[0].peer.abort.reason, "out of ideas");
}

static void
play(bool once, void (*script)(struct stage *stage))
{
	const struct stage_opts opts = {.trainers = 2, .server = true, .once = once};
	stage_play(&opts, script, NULL);
}

static void
finish_once(struct stage *stage)
{
	do_job(stage);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_OK);
}

static void
with_once_a_pserver_ends_when_all_have_said_goodbye(void **state)
{
	(void)state;
	play(true, finish_once);
}

static void
come_never(struct stage *stage)
{
	stage_run(stage, 290 * WF_NS_PER_S);
	CHECK(stage, !stage->server_ended);
	stage_run(stage, 20 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_TIMEOUT);
}

static void
with_once_a_pserver_that_nobody_comes_to_gives_up(void **state)
{
	(void)state;
	play(true, come_never);
}

static void
come_late(struct stage *stage)
{
	stage_run(stage, 310 * WF_NS_PER_S);
	do_job(stage);
	CHECK(stage, !stage->server_ended);
}

static void
without_once_a_pserver_waits_for_its_job_as_long_as_it_takes(void **state)
{
	(void)state;
	play(false, come_late);
}

static void
fail_once(struct stage *stage)
{
	fail_job(stage);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_DATA);
}

static void
with_once_a_pserver_ends_with_the_first_cause_of_a_failed_job(void **state)
{
	(void)state;
	play(true, fail_once);
}

static void
stop_idle(struct stage *stage)
{
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, !stage->server_ended);
	wf_server_stop(stage->server);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_OK);
}

static void
an_idle_pserver_stops_when_asked(void **state)
{
	(void)state;
	play(false, stop_idle);
}

static void
stop_running_by(struct stage *stage, int signal_number, const char *how)
{
	struct puppet *first = begin(stage);
	puppet_continue(first, 1);
	stage_settle(stage);
	wf_server_stop_by(stage->server, signal_number);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_LOST);
	CHECK_SAYS(stage, stage->server_text, how);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, first[t].peer.aborted && first[t].peer.abort.status == WEFT_LOST);
		CHECK_SAYS(stage, first[t].peer.abort.who, "pserver 0");
		CHECK_SAYS(stage, first[t].peer.abort.reason, "pserver 0 (host ");
		CHECK_SAYS(stage, first[t].peer.abort.reason, "port 7164) was ");
		CHECK_SAYS(stage, first[t].peer.abort.reason, how);
	}
}

static void
stop_running(struct stage *stage)
{
	stop_running_by(stage, 0, "was asked to stop");
}

static void
terminate_running(struct stage *stage)
{
	stop_running_by(stage, SIGTERM, "was stopped by SIGTERM");
}

static void
a_pserver_that_is_stopped_tells_its_trainers(void **state)
{
	(void)state;
	for (unsigned once = 0; once < 2; once++) {
		play(once != 0, stop_running);
		play(once != 0, terminate_running);
	}
}

/* One trainer of two has come, and waits for the other. */
static void
stop_starting(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	puppet_meet(&stage->puppet[0]);
	stage_settle(stage);
	wf_server_stop_by(stage->server, SIGINT);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_LOST);
	CHECK(stage, stage->puppet[0].peer.aborted);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "was stopped by SIGINT");
}

static void
a_pserver_that_is_stopped_while_trainers_come_tells_them(void **state)
{
	(void)state;
	play(false, stop_starting);
}

/* In the second for which the cause of a failed job is still told. */
static void
stop_failed(struct stage *stage)
{
	fail_job(stage);
	CHECK(stage, !stage->server_ended);
	wf_server_stop_by(stage->server, SIGTERM);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended);
	CHECK(stage, stage->server_status == (stage->opts.once ? WEFT_DATA : WEFT_OK));
}

static void
a_pserver_that_is_stopped_after_its_job_failed_is_not_its_cause(void **state)
{
	(void)state;
	play(false, stop_failed);
	play(true, stop_failed);
}

static void
job_after_job(struct stage *stage)
{
	do_job(stage);
	CHECK(stage, !stage->server_ended);
	do_job(stage);
	wf_server_stop(stage->server);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_OK);
}

static void
a_pserver_takes_the_next_job_after_a_finished_one(void **state)
{
	(void)state;
	play(false, job_after_job);
}

static void
job_after_failure(struct stage *stage)
{
	fail_job(stage);
	stage_run(stage, 2 * WF_NS_PER_S);
	CHECK(stage, !stage->server_ended);
	do_job(stage);
	stage_run(stage, 10 * WF_NS_PER_S); /* and nothing of the failed job comes after it */
	CHECK(stage, !stage->puppet[2].peer.aborted && !stage->puppet[3].peer.aborted);
	wf_server_stop(stage->server);
	stage_run(stage, WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->server_status == WEFT_OK);
}

static void
a_pserver_takes_the_next_job_after_a_failed_one(void **state)
{
	(void)state;
	play(false, job_after_failure);
}

/* --- two lanes --- */

static void
initialise_lanes(struct stage *stage, struct puppet *first)
{
	for (uint32_t lane = 0; lane < 2; lane++) {
		puppet_meet(first + lane);
		puppet_initialise(first + lane);
	}
	stage_settle(stage);
}

static void
share(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	puppet_add(stage, 0, 1);
	struct puppet *on_lane_1 = &stage->puppet[1];
	initialise_lanes(stage, stage->puppet);
	puppet_say_step(on_lane_1, 1, 0);
	puppet_source(on_lane_1, 0)[0] = NAN;
	puppet_put(on_lane_1, 0, 0, 1);
	stage_run(stage, WF_NS_PER_S / 2);
	for (uint32_t lane = 0; lane < 2; lane++) {
		const struct puppet *puppet = &stage->puppet[lane];
		CHECK(stage, puppet->peer.aborted && puppet->peer.abort.status == WEFT_DATA);
		CHECK_SAYS(stage, puppet->peer.abort.reason, "from trainer 0");
		CHECK_SAYS(stage, puppet->peer.abort.who, "pserver 0 lane 1");
	}
	stage_run(stage, 2 * WF_NS_PER_S);
	/* The next job is not touched by it. */
	for (uint32_t lane = 0; lane < 2; lane++) {
		puppet_add(stage, 0, lane)->peer.hello.incarnation = 9;
	}
	initialise_lanes(stage, &stage->puppet[2]);
	stage_run(stage, 5 * WF_NS_PER_S);
	CHECK(stage, !stage->puppet[2].peer.aborted && !stage->puppet[3].peer.aborted);
	CHECK(stage, !stage->puppet[2].peer.down && !stage->puppet[3].peer.down);
	wf_server_stop(stage->server);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, stage->server_ended && stage->puppet[2].peer.aborted &&
			     stage->puppet[3].peer.aborted);
}

static void
lanes_share_the_first_cause_and_then_forget_it(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		const struct stage_opts opts = {
			.trainers = 1, .lanes = 2, .server = true, .seed = seed};
		stage_play(&opts, share, NULL);
	}
}

/* Lane 0 is rid of the failed job, lane 1 still has it: it must not fail the next one of lane 0. */
static void
hurry(struct stage *stage)
{
	puppet_add(stage, 0, 0);
	puppet_add(stage, 0, 1);
	initialise_lanes(stage, stage->puppet);
	const struct wf_msg_abort msg = {.status = WEFT_DATA, .reason = "out of ideas"};
	struct wf_msg out;
	wf_msg_abort_encode(&msg, &out);
	peer_send(&stage->puppet[0].peer, &out);
	struct puppet *next = puppet_add(stage, 0, 0);
	next->peer.hello.incarnation = 9;
	/* As a trainer does: again and again until the lane takes it. */
	for (unsigned tries = 0; tries < 1000 && !next->peer.up; tries++) {
		if (next->peer.conn == NULL) {
			puppet_connect(next);
		}
		stage_run(stage, 5 * WF_NS_PER_MS);
		CHECK(stage, !next->peer.down || next->peer.welcome.refusal == WEFT_UNAVAILABLE ||
				     next->peer.welcome.refusal == WEFT_MISMATCH);
	}
	CHECK(stage, next->peer.up);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, next->peer.up && !next->peer.down && !next->peer.aborted);
}

static void
the_next_job_may_begin_while_another_lane_ends_the_last(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		const struct stage_opts opts = {
			.trainers = 1, .lanes = 2, .server = true, .seed = seed};
		stage_play(&opts, hurry, NULL);
	}
}

/* --- options, threads --- */

static void
refuse_opts(struct wf_env *env, uint32_t ports_num, uint16_t port, uint32_t slot_count,
	    const char *says)
{
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.ports_num = ports_num;
	opts.listen.port = port;
	opts.slot_count = slot_count;
	assert_int_equal(wf_server_create(&opts, &server), WEFT_INVALID);
	assert_null(server);
	assert_non_null(strstr(weft_last_error(), says));
}

static void
settings_that_cannot_be_are_refused_by_name(void **state)
{
	(void)state;
	struct wf_env *env = NULL;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	refuse_opts(env, 0, 0, 8, "ports_num 0");
	refuse_opts(env, 257, 0, 8, "ports_num 257");
	refuse_opts(env, 2, 65535, 8, "port 65535 with 2 ports");
	refuse_opts(env, 1, 0, 3, "slot_count 3");
	refuse_opts(env, 1, 0, 512, "slot_count 512");
	wf_env_system_destroy(env);
}

static void
threads_of_lanes_end_when_the_server_is_stopped(void **state)
{
	(void)state;
	struct wf_env *env = NULL;
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	struct wf_server *second = NULL;
	char text[512];
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.ports_num = 3;
	opts.listen.port = 0;
	assert_int_equal(wf_server_create(&opts, &server), WEFT_OK);
	wf_server_describe(server, text, sizeof(text));
	assert_non_null(strstr(text, "3 dense lanes"));
	assert_non_null(strstr(text, "only this host can reach it"));
	opts.session.ports_num = 1;
	opts.listen.port = wf_server_port(server, 0);
	assert_int_equal(wf_server_create(&opts, &second), WEFT_UNAVAILABLE);
	(void)snprintf(text, sizeof(text), "%u", wf_server_port(server, 0));
	assert_non_null(strstr(weft_last_error(), text));
	wf_server_stop(server); /* before it runs: as a signal might come */
	assert_int_equal(wf_server_run(server), WEFT_OK);
	wf_server_destroy(server);
	wf_server_destroy(NULL);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_once_a_pserver_ends_when_all_have_said_goodbye),
		cmocka_unit_test(with_once_a_pserver_that_nobody_comes_to_gives_up),
		cmocka_unit_test(without_once_a_pserver_waits_for_its_job_as_long_as_it_takes),
		cmocka_unit_test(with_once_a_pserver_ends_with_the_first_cause_of_a_failed_job),
		cmocka_unit_test(an_idle_pserver_stops_when_asked),
		cmocka_unit_test(a_pserver_that_is_stopped_tells_its_trainers),
		cmocka_unit_test(a_pserver_that_is_stopped_while_trainers_come_tells_them),
		cmocka_unit_test(a_pserver_that_is_stopped_after_its_job_failed_is_not_its_cause),
		cmocka_unit_test(a_pserver_takes_the_next_job_after_a_finished_one),
		cmocka_unit_test(a_pserver_takes_the_next_job_after_a_failed_one),
		cmocka_unit_test(lanes_share_the_first_cause_and_then_forget_it),
		cmocka_unit_test(the_next_job_may_begin_while_another_lane_ends_the_last),
		cmocka_unit_test(settings_that_cannot_be_are_refused_by_name),
		cmocka_unit_test(threads_of_lanes_end_when_the_server_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
