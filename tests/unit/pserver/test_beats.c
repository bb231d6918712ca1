/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that take no turns: they get BEAT while the lane waits for them, are named, and are
 * waited for until stall_timeout. Puppets answer BEAT as long as they are not `asleep`. The lane's
 * posts can be held up. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/pserver/stage.h"

static const struct stage_opts two = {.seed = 1, .trainers = 2};
static const struct stage_opts hasty = {
	.seed = 1, .trainers = 2, .stall_timeout_ns = 20 * WF_NS_PER_S};

/* A path of the lane that takes no operation; and one that it took before is DONE now. Slots of
 * what carries it and of what is polled are replaced, and do as before while nothing is jammed. */
static struct {
	struct wf_conn *conn; /* NULL: all paths are free */
	bool done;
	const struct wf_transport_ops *carries, *is_polled;
	struct wf_transport_ops carries_now, is_polled_now;
} jam;

static enum weft_status
post_jammed(struct wf_conn *carrier, const struct wf_op *ops, unsigned op_count, unsigned *taken)
{
	*taken = 0;
	return jam.conn != NULL && carrier == jam.conn->carrier
		       ? WEFT_AGAIN
		       : jam.carries->post(carrier, ops, op_count, taken);
}

static enum weft_status
poll_jammed(struct wf_transport *transport, struct wf_event *events, unsigned max,
	    unsigned *event_count)
{
	enum weft_status st = jam.is_polled->poll(transport, events, max, event_count);
	if (jam.done && jam.conn != NULL && *event_count < max) {
		jam.done = false;
		events[(*event_count)++] =
			(struct wf_event){.kind = WF_EVENT_DONE, .conn = jam.conn};
	}
	return st;
}

static void
jam_path(struct wf_conn *conn)
{
	struct wf_transport *active = conn->transport->active;
	jam.conn = conn;
	jam.carries = conn->ops;
	jam.carries_now = *conn->ops;
	jam.carries_now.post = post_jammed;
	conn->ops = &jam.carries_now;
	jam.is_polled = active->ops;
	jam.is_polled_now = *active->ops;
	jam.is_polled_now.poll = poll_jammed;
	active->ops = &jam.is_polled_now;
}

/* Two trainers that take turns by themselves, or whose callers do; the first has pushed step 1. */
static void
begin(struct stage *stage, bool itself)
{
	for (uint32_t t = 0; t < 2; t++) {
		puppet_meet(puppet_add(stage, t, 0));
		peer_beat(&stage->puppet[t].peer, true, itself);
	}
	for (uint32_t t = 0; t < 2; t++) {
		puppet_initialise(&stage->puppet[t]);
	}
	stage_settle(stage);
	puppet_continue(&stage->puppet[0], 1);
	stage_settle(stage);
}

/* In looks that are no further apart than a lane's own. */
static void
run_s(struct stage *stage, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		stage_run(stage, WF_NS_PER_S);
	}
}

static void
check_silent(struct stage *stage, enum wf_lane_awaits kind, const char *expected)
{
	char text[WF_REASON_BYTES];
	wf_lane_beats_describe(stage->lane[0], kind, text, sizeof(text));
	CHECK_SAYS(stage, text, expected);
	CHECK(stage, (text[0] == '\0') == (expected[0] == '\0'));
}

/* Trainer 0 was told of trainer 1 this often in all, and last that it has taken no turns for at
 * least so long; 0: that nobody is waited for. */
static void
check_told(struct stage *stage, uint32_t times, uint64_t least_ns)
{
	const struct puppet *zero = &stage->puppet[0];
	char expected[128];
	CHECK(stage, zero->peer.absents == times);
	CHECK(stage, zero->peer.absent.silent_ns >= least_ns &&
			     zero->peer.absent.silent_ns < least_ns + WF_NS_PER_S);
	if (least_ns == 0) {
		CHECK(stage,
		      zero->peer.absent.silent_ns == 0 && zero->peer.absent.reason[0] == '\0');
		return;
	}
	CHECK(stage, zero->peer.absent.trainer == 1);
	(void)snprintf(expected, sizeof(expected), "(host %s, pid %u) has not taken a turn",
		       stage->puppet[1].peer.hello.host, stage->puppet[1].peer.hello.pid);
	CHECK(stage, strcmp(zero->peer.absent.reason, expected) == 0);
	CHECK(stage,
	      stage->puppet[1].peer.absents == times && stage->puppet[1].peer.absent.trainer == 0 &&
		      stage->puppet[1].peer.absent.reason[0] == '\0'); /* of itself nothing */
}

static void
check_goes_on(struct stage *stage)
{
	puppet_continue(&stage->puppet[1], 1);
	stage_settle(stage);
	stage_expect_step(stage, 1);
	for (uint32_t t = 0; t < 2; t++) {
		CHECK(stage, !stage->puppet[t].peer.aborted);
		CHECK(stage, puppet_values_are_right(&stage->puppet[t]));
	}
}

static void
who_asks_is_answered_script(struct stage *stage)
{
	begin(stage, true);
	const struct puppet *p = &stage->puppet[0];
	CHECK(stage, p->peer.beats == 1 && p->peer.beat.itself && !p->peer.beat.asks &&
			     p->peer.beat.pid != 0);
	peer_beat(&stage->puppet[0].peer, false, true);
	stage_settle(stage);
	CHECK(stage, p->peer.beats == 1);
	check_goes_on(stage);
	peer_goodbye(&stage->puppet[0].peer);
	peer_beat(&stage->puppet[0].peer, true, true);
	stage_settle(stage);
	CHECK(stage, p->peer.beats == 2 && p->peer.goodbye_heard && !p->peer.down);
}

static void
who_asks_is_answered_once_also_after_goodbye(void **state)
{
	(void)state;
	stage_play(&two, who_asks_is_answered_script, NULL);
}

static void
slow_script(struct stage *stage)
{
	begin(stage, true);
	uint32_t before = stage->puppet[0].peer.beats;
	run_s(stage, 100);
	check_silent(stage, WF_LANE_AWAITS_STEP, "");
	uint32_t asked = stage->puppet[1].peer.beats - 1;
	CHECK(stage, asked >= 100 && asked <= 200);
	CHECK(stage, stage->puppet[0].peer.beats == before); /* nobody waits for it */
	check_goes_on(stage);
}

static void
who_is_slow_and_takes_turns_is_not_accused(void **state)
{
	(void)state;
	stage_play(&hasty, slow_script, NULL);
}

static void
named_script(struct stage *stage)
{
	begin(stage, true);
	stage->puppet[1].peer.asleep = true;
	stage_run(stage, 1400 * WF_NS_PER_MS);
	CHECK(stage, stage->puppet[0].peer.absents == 0);
	stage_run(stage, 600 * WF_NS_PER_MS); /* before the first line about the wait */
	check_told(stage, 1, WF_NS_PER_S);
	run_s(stage, 3);
	char expected[128];
	(void)snprintf(expected, sizeof(expected), "; trainer 1 (host %s, pid %u) has not",
		       stage->puppet[1].peer.hello.host, stage->puppet[1].peer.hello.pid);
	check_silent(stage, WF_LANE_AWAITS_STEP, expected);
	check_silent(stage, WF_LANE_AWAITS_STEP, "taken a turn for 4 s");
	check_silent(stage, WF_LANE_AWAITS_REDUCE,
		     "taken a turn for 4 s"); /* lacks the next, too */
	uint32_t asked = stage->puppet[1].peer.beats - 1;
	CHECK(stage, asked == 1);
	run_s(stage, 14);
	CHECK(stage, stage->puppet[1].peer.beats - 1 == asked);
	check_told(stage, 1, WF_NS_PER_S);
	stage->puppet[1].peer.asleep = false;
	peer_beat(&stage->puppet[1].peer, false, true);
	stage_run(stage, WF_NS_PER_S / 2);
	check_silent(stage, WF_LANE_AWAITS_STEP, "");
	check_told(stage, 2, 0);
	run_s(stage, 30);
	check_told(stage, 2, 0);
	check_goes_on(stage);
}

static void
who_takes_no_turns_is_named_asked_once_and_may_go_on(void **state)
{
	(void)state;
	stage_play(&hasty, named_script, NULL);
}

static void
ends_script(struct stage *stage)
{
	begin(stage, true);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 20);
	CHECK(stage, !stage->puppet[0].peer.aborted);
	run_s(stage, 1);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "trainer 1 (host ");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason,
		   "has not taken a turn for 20.0 s in step 1");
}

static void
stall_timeout_ends_the_job_and_names_who_took_no_turns(void **state)
{
	(void)state;
	stage_play(&hasty, ends_script, NULL);
}

/* It waits for nobody, so it may take its time. */
static void
idle_script(struct stage *stage)
{
	begin(stage, true);
	check_goes_on(stage);
	uint32_t before = stage->puppet[1].peer.beats;
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 100);
	CHECK(stage, stage->puppet[1].peer.beats == before);
	CHECK(stage, !stage->puppet[0].peer.aborted && !stage->puppet[1].peer.aborted);
}

static void
nobody_is_judged_while_nobody_waits(void **state)
{
	(void)state;
	stage_play(&hasty, idle_script, NULL);
}

static void
caller_script(struct stage *stage)
{
	begin(stage, false);
	CHECK(stage, stage->puppet[1].peer.beats == 1);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 100);
	CHECK(stage, stage->puppet[1].peer.beats == 1);
	check_silent(stage, WF_LANE_AWAITS_STEP, "");
	check_goes_on(stage);
}

static void
who_takes_turns_when_called_is_never_judged(void **state)
{
	(void)state;
	stage_play(&hasty, caller_script, NULL);
}

static void
barrier_script(struct stage *stage)
{
	begin(stage, true);
	check_goes_on(stage);
	puppet_reduce(&stage->puppet[0], 1, 0, 0);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 5);
	check_silent(stage, WF_LANE_AWAITS_REDUCE, "; trainer 1 (host ");
	run_s(stage, 17);
	CHECK(stage, stage->puppet[0].peer.aborted);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "has not taken a turn for 20.0 s");
}

static void
who_sleeps_before_a_barrier_is_named_too(void **state)
{
	(void)state;
	stage_play(&hasty, barrier_script, NULL);
}

/* An asynchronous job of three, one of whom never comes; of those that train, one sleeps and the
 * other waits for it at a barrier, or for its answer. */
static void
incomplete_script(struct stage *stage)
{
	begin(stage, true);
	stage->puppet[1].peer.asleep = true;
	if (stage->opts.mode == WEFT_DENSE_ASYNC) {
		puppet_reduce(&stage->puppet[0], 1, 0, 0);
	} else {
		puppet_continue(&stage->puppet[0], 2);
	}
	run_s(stage, 5);
	check_silent(stage, WF_LANE_AWAITS_START, "; trainer 1 (host ");
	check_silent(stage, WF_LANE_AWAITS_START, "has not taken a turn for 4 s");
	CHECK(stage, wf_waits_reported_since(stage->lane[0], WF_LANE_AWAITS_START) != 0);
	CHECK(stage, wf_waits_reported_since(stage->lane[0], WF_LANE_AWAITS_REDUCE) == 0);
	CHECK(stage, wf_waits_reported_since(stage->lane[0], WF_LANE_AWAITS_HOLDS) == 0);
	struct puppet *late = puppet_add(stage, 2, 0);
	puppet_meet(late);
	CHECK(stage, late->peer.absents == 1 && late->peer.absent.trainer == 1);
	CHECK(stage, late->peer.absent.silent_ns >= 4 * WF_NS_PER_S);
	run_s(stage, 17);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "trainer 1 (host ");
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "has not taken a turn for 20.0 s");
}

static void
who_sleeps_is_named_though_somebody_else_never_came(void **state)
{
	(void)state;
	struct stage_opts opts = hasty;
	opts.trainers = 3;
	opts.mode = WEFT_DENSE_ASYNC;
	stage_play(&opts, incomplete_script, NULL);
	opts.mode = WEFT_DENSE_BOUNDED;
	opts.staleness = 1;
	stage_play(&opts, incomplete_script, NULL);
}

/* What was posted before the question takes its time, and the trainer is awake: it cannot have
 * answered. */
static void
jam_script(struct stage *stage)
{
	begin(stage, true);
	stage_run(stage, WF_NS_PER_S / 4);
	jam_path(stage->lane[0]->peers.all[1].conn);
	for (unsigned i = 0; i < 5; i++) {
		run_s(stage, 15);
		check_silent(stage, WF_LANE_AWAITS_STEP, "has taken nothing in for 1");
		jam.done = true;
		stage_run(stage, WF_NS_PER_S / 4);
		check_silent(stage, WF_LANE_AWAITS_STEP, "");
	}
	CHECK(stage, !stage->puppet[0].peer.aborted);
	stage->puppet[1].peer.asleep = true;
	jam.conn = NULL;
	run_s(stage, 18);
	check_silent(stage, WF_LANE_AWAITS_STEP, "has not taken a turn for 17 s");
	CHECK(stage, !stage->puppet[0].peer.aborted);
	run_s(stage, 3);
	CHECK(stage, stage->puppet[0].peer.aborted);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason, "has not taken a turn for 20.0 s");
}

static void
nobody_is_judged_by_a_question_that_has_not_left(void **state)
{
	(void)state;
	stage_play(&hasty, jam_script, NULL);
	jam.conn = NULL;
}

/* Stopped with all of its memory for what comes full: nothing leaves, and nothing is DONE. */
static void
full_script(struct stage *stage)
{
	begin(stage, true);
	stage_run(stage, WF_NS_PER_S / 4);
	jam_path(stage->lane[0]->peers.all[1].conn);
	run_s(stage, 22);
	jam.conn = NULL;
	run_s(stage, 1);
	CHECK(stage,
	      stage->puppet[0].peer.aborted && stage->puppet[0].peer.abort.status == WEFT_TIMEOUT);
	CHECK_SAYS(stage, stage->puppet[0].peer.abort.reason,
		   "has taken nothing in for 20.0 s in step");
}

static void
who_takes_nothing_in_is_not_waited_for_longer(void **state)
{
	(void)state;
	stage_play(&hasty, full_script, NULL);
	jam.conn = NULL;
}

/* Who comes back is told as it stands, and so are the others when who sleeps is gone. */
static void
news_script(struct stage *stage)
{
	begin(stage, true);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 5);
	check_told(stage, 1, WF_NS_PER_S);
	peer_disconnect(&stage->puppet[0].peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	puppet_meet(&stage->puppet[0]);
	stage_settle(stage);
	CHECK(stage, stage->puppet[0].peer.absents == 2 &&
			     stage->puppet[0].peer.absent.silent_ns >= 4 * WF_NS_PER_S);
	peer_disconnect(&stage->puppet[1].peer, WF_DISCONNECT_DRAIN);
	stage_run(stage, WF_NS_PER_S / 2);
	CHECK(stage,
	      stage->puppet[0].peer.absents == 3 && stage->puppet[0].peer.absent.reason[0] == '\0');
}

static void
what_is_told_of_who_sleeps_is_how_it_stands(void **state)
{
	(void)state;
	stage_play(&hasty, news_script, NULL);
}

/* Somebody is refused, who has time to come right, in a job that goes on without; somebody else
 * sleeps, and goes on. */
static void
refused_too_script(struct stage *stage)
{
	begin(stage, true);
	struct puppet *wrong = puppet_add(stage, 2, 0);
	wrong->peer.hello.job_digest ^= 1;
	puppet_connect(wrong);
	stage_settle(stage);
	const struct wf_msg_absent *told = &stage->puppet[0].peer.absent;
	CHECK(stage, told->trainer == 2 && told->silent_ns == 0);
	puppet_reduce(&stage->puppet[0], 1, 0, 0);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 5);
	CHECK(stage, told->trainer == 1 && told->silent_ns > 0);
	CHECK(stage, stage->puppet[1].peer.absent.trainer == 2);
	peer_beat(&stage->puppet[1].peer, false, true);
	stage_run(stage, WF_NS_PER_S / 4);
	CHECK(stage, told->trainer == 2 && told->silent_ns == 0);
	CHECK_SAYS(stage, told->reason, "refused: ");
}

static void
who_sleeps_is_told_before_who_was_refused(void **state)
{
	(void)state;
	struct stage_opts opts = hasty;
	opts.trainers = 3;
	opts.mode = WEFT_DENSE_ASYNC;
	stage_play(&opts, refused_too_script, NULL);
}

/* The question was asked on a path that is gone. */
static void
path_script(struct stage *stage)
{
	begin(stage, true);
	stage->puppet[1].peer.asleep = true;
	run_s(stage, 15);
	peer_disconnect(&stage->puppet[1].peer, WF_DISCONNECT_DRAIN);
	stage_settle(stage);
	puppet_meet(&stage->puppet[1]);
	peer_beat(&stage->puppet[1].peer, false, true);
	run_s(stage, 15);
	check_silent(stage, WF_LANE_AWAITS_STEP, "has not taken a turn for 14 s");
	CHECK(stage, !stage->puppet[0].peer.aborted);
}

static void
silence_counts_anew_on_a_new_path(void **state)
{
	(void)state;
	stage_play(&hasty, path_script, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_is_answered_once_also_after_goodbye),
		cmocka_unit_test(who_is_slow_and_takes_turns_is_not_accused),
		cmocka_unit_test(who_takes_no_turns_is_named_asked_once_and_may_go_on),
		cmocka_unit_test(stall_timeout_ends_the_job_and_names_who_took_no_turns),
		cmocka_unit_test(nobody_is_judged_while_nobody_waits),
		cmocka_unit_test(who_takes_turns_when_called_is_never_judged),
		cmocka_unit_test(who_sleeps_before_a_barrier_is_named_too),
		cmocka_unit_test(who_sleeps_is_named_though_somebody_else_never_came),
		cmocka_unit_test(nobody_is_judged_by_a_question_that_has_not_left),
		cmocka_unit_test(who_takes_nothing_in_is_not_waited_for_longer),
		cmocka_unit_test(what_is_told_of_who_sleeps_is_how_it_stands),
		cmocka_unit_test(who_sleeps_is_told_before_who_was_refused),
		cmocka_unit_test(silence_counts_anew_on_a_new_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
