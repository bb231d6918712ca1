/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid messages of a trainer cost its connection, by name, and it is not admitted again. No
 * other connection is touched: the others are served, and steps that do not need the offender end
 * as they should, until the job ends because it is missing. One test for each act. Thread: the
 * test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SLICE_BYTES (STAGE_SLICE_FLOATS * sizeof(float)) /* of all but one */

enum when {
	RAW,     /* connected and resumed; it has granted nothing and said no HAVE */
	FRESH,   /* met; no initial values yet */
	IDLE,    /* step 1 is done */
	IN_STEP, /* trainer 0 has pushed all of step 2, pass 0 */
	PUSHED,  /* trainer 1, the offender, has pushed all of step 2 */
};

struct act {
	const char *name;
	void (*act)(struct puppet *puppet); /* trainer 1 */
	const char *says;
	enum when when;
	bool by_transport; /* which takes the connection down by itself; it may come in again */
	bool out;          /* the act was preceded by an honest "out of data" in step 2 */
};

static void
meet_both(struct stage *stage, enum when when)
{
	puppet_meet(puppet_add(stage, 0, 0));
	struct puppet *one = puppet_add(stage, 1, 0);
	if (when == RAW) {
		puppet_connect(one);
		stage_settle(stage);
		CHECK(stage, one->peer.granted && one->peer.resumed);
		return;
	}
	puppet_meet(one);
}

static void
initialise_both(struct stage *stage)
{
	puppet_initialise(&stage->puppet[0]);
	puppet_initialise(&stage->puppet[1]);
	stage_settle(stage);
}

static void
step_both(struct stage *stage, uint64_t step)
{
	puppet_continue(&stage->puppet[0], step);
	puppet_continue(&stage->puppet[1], step);
	stage_settle(stage);
	stage_expect_step(stage, step);
	CHECK(stage, puppet_values_are_right(&stage->puppet[0]));
	CHECK(stage, puppet_values_are_right(&stage->puppet[1]));
}

/* The honest one is served as before, and ends step 2 where the offender did its part of it. */
static void
serve(struct stage *stage, const struct act *act)
{
	struct puppet *zero = &stage->puppet[0];
	uint32_t slices = stage_slice_count(stage, 0);
	if (act->when == RAW || act->when == FRESH) {
		puppet_initialise(zero);
		stage_settle(stage);
		CHECK(stage, zero->answers == slices && puppet_values_are_right(zero));
	} else if (act->when == PUSHED || act->out) {
		puppet_continue(zero, 2);
		stage_settle(stage);
		stage->opts.trainers = act->out ? 1 : 2;
		stage_expect_step(stage, 2);
		CHECK(stage, puppet_values_are_right(zero));
	} else {
		uint32_t before = zero->answers;
		puppet_pull(zero, 1, 0, 1);
		stage_settle(stage);
		CHECK(stage, zero->answers == before + 1 && puppet_values_are_right(zero));
	}
}

/* The offender wants in again, and then the job ends without it. */
static void
end(struct stage *stage, const struct act *act)
{
	struct puppet *one = &stage->puppet[1];
	const struct puppet *zero = &stage->puppet[0];
	if (act->by_transport) {
		puppet_meet(one);
		CHECK(stage,
		      stage->lane[0]->peers.all[1].state == WF_PEER_UP && !zero->peer.aborted);
		return;
	}
	puppet_connect(one);
	stage_settle(stage);
	CHECK(stage, one->peer.down && one->peer.welcome.refusal == WEFT_PROTOCOL);
	CHECK_SAYS(stage, one->peer.welcome.reason, "trainer 1 (host puppet, pid 101)");
	CHECK_SAYS(stage, one->peer.welcome.reason, act->says);
	CHECK(stage, !zero->peer.aborted);
	stage_run(stage, 3 * WF_NS_PER_S);
	CHECK(stage, zero->peer.aborted && zero->peer.abort.status == WEFT_LOST);
	CHECK_SAYS(stage, zero->peer.abort.reason, "trainer 1");
	CHECK_SAYS(stage, zero->peer.abort.reason, act->says);
}

static void
play(struct stage *stage)
{
	const struct act *act = stage->arg;
	meet_both(stage, act->when);
	if (script_failed(&stage->script)) {
		return;
	}
	struct puppet *one = &stage->puppet[1];
	const struct wf_lane *lane = stage->lane[0];
	if (act->when != RAW && act->when != FRESH) {
		initialise_both(stage);
		step_both(stage, 1);
	}
	if (act->when == IN_STEP) {
		puppet_continue(&stage->puppet[0], 2);
		stage_settle(stage);
	}
	if (act->when == PUSHED) {
		puppet_continue(one, 2);
		stage_settle(stage);
	}
	act->act(one);
	stage_settle(stage);
	CHECK(stage, one->peer.down && lane->peers.all[1].state == WF_PEER_LOST);
	CHECK_SAYS(stage, lane->peers.all[1].lost.why, act->says);
	CHECK(stage, lane->peers.all[0].state == WF_PEER_UP && !stage->puppet[0].peer.down);
	CHECK(stage, lane->state == WF_LANE_RUNNING && !stage->puppet[0].peer.aborted);
	if (script_failed(&stage->script)) {
		return;
	}
	serve(stage, act);
	end(stage, act);
}

static void
run_act(void **state)
{
	stage_play(&(struct stage_opts){.trainers = 2}, play, *state);
}

/* --- pushes --- */

static void
put_with_a_wrong_step(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put(p, 0, 0, 3);
}

static void
put_beyond_the_slices(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put(p, 60, 0, 2);
}

static uint32_t
short_slice(const struct puppet *p)
{
	uint32_t ordinal = 0;
	while (stage_slice(p->stage, 0, ordinal)->count == STAGE_SLICE_FLOATS) {
		ordinal++;
	}
	return ordinal;
}

static void
put_of_four_bytes(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put_bytes(p, 0, 2, 0, 4);
}

static void
put_that_lacks_the_last_byte(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put_bytes(p, 0, 2, 0, SLICE_BYTES - 1);
}

/* That slice is shorter than its slot. */
static void
put_that_is_longer_than_its_slice(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put_bytes(p, short_slice(p), 2, 0, SLICE_BYTES);
}

static void
put_of_the_end_of_a_slot(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put_bytes(p, 0, 2, SLICE_BYTES - 4, 4);
}

/* On this path it has announced no step that the PUT could repeat. */
static void
put_without_step_on_a_new_path(struct puppet *p)
{
	peer_disconnect(&p->peer, WF_DISCONNECT_DRAIN);
	stage_settle(p->stage);
	puppet_meet(p);
	puppet_put(p, 0, 0, 2);
}

static void
put_of_a_static_slice(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_put(p, 4, 0, 2);
}

static void
put_twice(struct puppet *p)
{
	puppet_put(p, 0, 0, 2); /* again */
}

static void
put_again_after_the_answer(struct puppet *p)
{
	puppet_put(p, 0, 0, 1);
}

static void
put_twice_within_one_step(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
		puppet_source(p, 0)[e] = stage_gradient(1, 2, 0, e);
	}
	puppet_put(p, 0, 0, 2);
	puppet_put(p, 0, 1, 2);
}

static void
put_of_the_next_step_before_the_answer(struct puppet *p)
{
	for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
		puppet_source(p, 0)[e] = stage_gradient(1, 2, 0, e);
	}
	puppet_say_step(p, 2, 0);
	puppet_put(p, 0, 0, 2);
	puppet_put(p, 0, 1, 3);
}

static void
put_into_a_slot_that_is_in_use(struct puppet *p)
{
	for (uint32_t e = 0; e < STAGE_SLICE_FLOATS; e++) {
		puppet_source(p, 0)[e] = stage_gradient(1, 2, 0, e);
	}
	puppet_say_step(p, 2, 0);
	puppet_put(p, 0, 0, 2);
	stage_settle(p->stage);
	puppet_put(p, 1, 0, 2);
}

static void
put_of_initial_values_by_another(struct puppet *p)
{
	puppet_put(p, 0, 0, 0);
}

static void
put_after_out_of_data(struct puppet *p)
{
	puppet_say_out(p, 2, 0);
	puppet_put(p, 0, 0, 2);
}

/* --- steps --- */

static void
step_before_the_initial_values(struct puppet *p)
{
	puppet_say_step(p, 1, 0);
}

static void
step_that_skips_one(struct puppet *p)
{
	puppet_say_step(p, 3, 0);
}

static void
step_before_the_others_have_pushed(struct puppet *p)
{
	puppet_say_step(p, 3, 0);
}

static void
step_of_another_pass(struct puppet *p)
{
	puppet_say_step(p, 2, 1);
}

static void
step_after_out_of_data(struct puppet *p)
{
	puppet_say_out(p, 2, 0);
	puppet_say_step(p, 2, 0);
}

static void
out_of_data_in_a_step_to_come(struct puppet *p)
{
	puppet_say_out(p, 5, 0);
}

static void
out_of_data_with_pushes_missing(struct puppet *p)
{
	puppet_say_step(p, 2, 0);
	puppet_say_out(p, 3, 0);
}

static void
send_patched_step(struct puppet *p, size_t at, uint8_t byte, uint64_t epoch)
{
	const struct wf_msg_step msg = {.step = 2, .samples = 1};
	struct wf_msg out;
	wf_msg_step_encode(&msg, &out);
	out.body[at] = byte;
	out.head.epoch = epoch;
	peer_send(&p->peer, &out);
}

static void
step_with_absurd_samples(struct puppet *p)
{
	send_patched_step(p, 7, 0x7f, 0);
}

static void
step_with_no_samples(struct puppet *p)
{
	send_patched_step(p, 0, 0, 0);
}

static void
step_with_an_unknown_flag(struct puppet *p)
{
	send_patched_step(p, 8, 0x80, 0);
}

static void
step_of_another_epoch(struct puppet *p)
{
	send_patched_step(p, 0, 1, 3);
}

/* --- coming back --- */

static void
send_have(struct puppet *p, uint32_t first, uint32_t count, uint64_t step_of_first)
{
	struct wf_msg_steps msg = {.last = true, .first = first, .count = count};
	struct wf_msg out;
	memset(msg.step_of, 0xff, sizeof(msg.step_of));
	msg.step_of[0] = step_of_first;
	wf_msg_have_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
init_that_is_trainer_0s_to_say(struct puppet *p)
{
	const struct wf_msg_init msg = {.step = 5, .samples = 50, .sections = 1};
	struct wf_msg out;
	wf_msg_init_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
have_from_the_future(struct puppet *p)
{
	send_have(p, 0, 5, 7);
}

static void
have_not_in_order(struct puppet *p)
{
	send_have(p, 2, 3, WF_STEP_NONE);
}

static void
have_of_too_many_slices(struct puppet *p)
{
	send_have(p, 0, 6, WF_STEP_NONE);
}

static void
have_twice(struct puppet *p)
{
	send_have(p, 0, 5, WF_STEP_NONE);
}

/* --- pulls and grants --- */

static void
pull_without_a_grant(struct puppet *p)
{
	puppet_pull(p, 0, 0, 1);
}

static void
pull_of_state_without_a_grant(struct puppet *p)
{
	const struct wf_msg_pull msg = {.request_id = 1, .count = 1, .section = WF_SECTION_STATE};
	struct wf_msg out;
	wf_msg_pull_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
pull_beyond_the_slices(struct puppet *p)
{
	puppet_pull(p, 1, 3, 10);
}

static void
send_place(struct puppet *p, uint8_t place)
{
	struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_PLACE, .place = place, .bytes = 64};
	struct wf_msg out;
	memset(msg.key, 0xab, sizeof(msg.key));
	wf_msg_grant_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
grant_of_slots(struct puppet *p)
{
	const struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 4, .bytes = 64};
	struct wf_msg out;
	wf_msg_grant_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
grant_of_a_state_that_cannot_be(struct puppet *p)
{
	send_place(p, 1 + WF_STATE_MAX);
}

static void
norm_nobody_waits_for(struct puppet *p)
{
	const struct wf_msg_norm msg = {.step = 2, .word = {1}};
	struct wf_msg out;
	wf_msg_norm_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
ask_of(struct puppet *p, uint32_t trainer)
{
	const struct wf_msg_report msg = {.request_id = 1, .trainer = trainer};
	struct wf_msg out;
	wf_msg_report_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
report_of_nobody(struct puppet *p)
{
	ask_of(p, p->stage->opts.trainers);
}

static void
reports_at_once(struct puppet *p)
{
	for (unsigned i = 0; i < 100; i++) {
		ask_of(p, 0);
	}
}

static void
beat_of_garbage(struct puppet *p)
{
	const struct wf_msg_beat msg = {.asks = true};
	struct wf_msg out;
	wf_msg_beat_encode(&msg, &out);
	out.body[0] = 0xff;
	peer_send(&p->peer, &out);
}

static void
grant_twice(struct puppet *p)
{
	send_place(p, 0);
}

/* On a path of its own, for a place is granted once. */
static void
grant_with_a_false_key(struct puppet *p)
{
	wf_transport_disconnect(p->peer.conn, WF_DISCONNECT_NOW);
	stage_settle(p->stage);
	puppet_connect(p);
	stage_settle(p->stage);
	send_place(p, 0);
	stage_settle(p->stage);
	puppet_pull(p, 1, 0, 1);
}

static void
credit_to_a_lane(struct puppet *p)
{
	const struct wf_msg_credit msg = {.count = 1};
	struct wf_msg out;
	wf_msg_credit_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
resume_to_a_lane(struct puppet *p)
{
	const struct wf_msg_steps msg = {.last = true};
	struct wf_msg out;
	wf_msg_resume_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

/* --- reduces and the job --- */

static void
reduce_that_skips_one(struct puppet *p)
{
	puppet_reduce(p, 5, 1, 1.0);
}

static void
reduced_to_a_lane(struct puppet *p)
{
	const struct wf_msg_reduce msg = {.request_id = 1};
	struct wf_msg out;
	wf_msg_reduced_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

static void
job_that_was_not_asked_for(struct puppet *p)
{
	puppet_send_job(p);
}

static void
goodbye_that_acknowledges(struct puppet *p)
{
	const struct wf_msg_goodbye msg = {.ack = true};
	struct wf_msg out;
	wf_msg_goodbye_encode(&msg, &out);
	peer_send(&p->peer, &out);
}

/* --- what is no message --- */

static void
send_garbage(struct puppet *p, uint8_t service, uint8_t type, size_t body_bytes)
{
	struct wf_msg out = {.head = {.service = service, .type = type}};
	out.body_bytes = body_bytes;
	memset(out.body, 0xee, body_bytes);
	peer_send(&p->peer, &out);
}

static void
dense_message_of_no_known_type(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_DENSE, 99, 8);
}

static void
control_message_of_no_known_type(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_CONTROL, 77, 8);
}

static void
message_for_the_sparse_service(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_SPARSE, 1, 8);
}

static void
message_for_no_known_service(struct puppet *p)
{
	send_garbage(p, 200, 1, 0);
}

static void
step_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_DENSE, WF_MSG_STEP, WF_MSG_BODY_MAX);
}

static void
pull_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_DENSE, WF_MSG_PULL, 6);
}

static void
have_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_CONTROL, WF_MSG_HAVE, 100);
}

static void
job_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_DENSE, WF_MSG_JOB, 300);
}

static void
grant_of_nothing(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_CONTROL, WF_MSG_GRANT, 0);
}

static void
reduce_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_CONTROL, WF_MSG_REDUCE, 5);
}

static void
goodbye_of_garbage(struct puppet *p)
{
	send_garbage(p, WF_SERVICE_CONTROL, WF_MSG_GOODBYE, 4);
}

static void
send_patched_abort(struct puppet *p, size_t at, uint8_t byte)
{
	const struct wf_msg_abort msg = {
		.status = WEFT_LOST, .who = "trainer 1", .reason = "a reason"};
	struct wf_msg out;
	wf_msg_abort_encode(&msg, &out);
	out.body[at] = byte;
	peer_send(&p->peer, &out);
}

static void
abort_with_the_status_of_success(struct puppet *p)
{
	send_patched_abort(p, 0, WEFT_OK);
}

static void
abort_with_no_known_status(struct puppet *p)
{
	send_patched_abort(p, 1, 0x40);
}

static void
abort_with_a_text_longer_than_its_body(struct puppet *p)
{
	send_patched_abort(p, 2, 60);
}

static void
abort_with_a_text_that_moves_the_cursor(struct puppet *p)
{
	send_patched_abort(p, 4, '\r');
}

#define ACT(function, text, phase)                                                                 \
	{                                                                                          \
		.name = #function "_costs_the_connection", .act = (function), .says = (text),      \
		.when = (phase)                                                                    \
	}

static const struct act acts[] = {
	ACT(put_with_a_wrong_step, "PUT: slice 0 of w for step 3", IDLE),
	ACT(put_beyond_the_slices, "PUT: slice 60 of 5", IDLE),
	ACT(put_of_four_bytes, "PUT: 4 bytes of slice 0 of w, which has 64", IDLE),
	ACT(put_that_lacks_the_last_byte, "PUT: 63 bytes of slice 0 of w, which has 64", IDLE),
	ACT(put_that_is_longer_than_its_slice, "PUT: 64 bytes of slice 2 of w, which has 32", IDLE),
	ACT(put_without_step_on_a_new_path, "PUT: slice 0 of w for step 2", IDLE),
	ACT(put_of_a_static_slice, "PUT: slice 4 of fixed", IDLE),
	ACT(put_twice, "waited for is step 3", PUSHED),
	ACT(put_again_after_the_answer, "waited for is step 2", IDLE),
	ACT(put_twice_within_one_step, "PUT: slice 0 of w for step 2", IDLE),
	ACT(put_of_the_next_step_before_the_answer, "PUT: slice 0 of w for step 3", IDLE),
	ACT(put_of_initial_values_by_another, "PUT: slice 0 of w for step 0", FRESH),
	ACT(step_before_the_initial_values, "STEP 1: this lane waits for no step", FRESH),
	ACT(step_that_skips_one, "STEP 3 of pass 0: steps are missing; the lane is in step 2",
	    IDLE),
	ACT(step_before_the_others_have_pushed, "STEP 3 of pass 0", PUSHED),
	ACT(step_of_another_pass,
	    "STEP 2 of pass 1: others are not in it; the lane is in step 2 of pass 0", IN_STEP),
	ACT(out_of_data_in_a_step_to_come, "STEP 5 of pass 0, out of data: steps are missing",
	    IDLE),
	ACT(out_of_data_with_pushes_missing,
	    "STEP 3 of pass 0, out of data: before all of the last one", IN_STEP),
	ACT(step_with_absurd_samples, "samples", IDLE),
	ACT(step_with_no_samples, "samples", IDLE),
	ACT(step_with_an_unknown_flag, "flags", IDLE),
	ACT(step_of_another_epoch, "epoch 3", IDLE),
	ACT(init_that_is_trainer_0s_to_say, "INIT: from trainer 1", FRESH),
	ACT(have_from_the_future, "HAVE: slice 0 answered in step 7", RAW),
	ACT(have_not_in_order, "HAVE: units 2 and 3 more, the last, 0 of 5", RAW),
	ACT(have_of_too_many_slices, "HAVE: units 0 and 6 more, the last, 0 of 5", RAW),
	ACT(have_twice, "and no more are waited for", FRESH),
	ACT(pull_without_a_grant, "PULL: nothing was granted", RAW),
	ACT(pull_of_state_without_a_grant, "PULL: nothing was granted", PUSHED),
	ACT(pull_beyond_the_slices, "PULL: slices 3 and 10 more, of 5", PUSHED),
	ACT(grant_of_slots, "GRANT: kind 1", RAW),
	ACT(grant_twice, "GRANT: kind 2 (place 0 of 6) from a trainer, which has granted it", IDLE),
	ACT(grant_of_a_state_that_cannot_be, "GRANT: kind 2 (place 6 of 6)", PUSHED),
	ACT(norm_nobody_waits_for, "type 10: this lane has no clipping by the norm", PUSHED),
	ACT(report_of_nobody, "REPORT: of trainer", PUSHED),
	ACT(beat_of_garbage, "BEAT: flags is 255", PUSHED),
	ACT(reports_at_once, "before the last one was answered", PUSHED),
	ACT(credit_to_a_lane, "control message of type 10", PUSHED),
	ACT(resume_to_a_lane, "control message of type 7", PUSHED),
	ACT(reduce_that_skips_one, "REDUCE 5, the next is 1", PUSHED),
	ACT(reduced_to_a_lane, "control message of type 4", PUSHED),
	ACT(job_that_was_not_asked_for, "JOB: bytes 0 of", FRESH),
	ACT(goodbye_that_acknowledges, "GOODBYE", PUSHED),
	ACT(dense_message_of_no_known_type, "dense message of type 99", PUSHED),
	ACT(control_message_of_no_known_type, "control message of type 77", PUSHED),
	ACT(message_for_the_sparse_service, "service 3", PUSHED),
	ACT(message_for_no_known_service, "service 200", PUSHED),
	ACT(step_of_garbage, "STEP", PUSHED),
	ACT(pull_of_garbage, "PULL", PUSHED),
	ACT(have_of_garbage, "HAVE", PUSHED),
	ACT(job_of_garbage, "JOB", PUSHED),
	ACT(grant_of_nothing, "GRANT", PUSHED),
	ACT(reduce_of_garbage, "REDUCE", PUSHED),
	ACT(goodbye_of_garbage, "GOODBYE", PUSHED),
	ACT(abort_with_the_status_of_success, "ABORT", PUSHED),
	ACT(abort_with_no_known_status, "ABORT", PUSHED),
	ACT(abort_with_a_text_longer_than_its_body, "ABORT", PUSHED),
	ACT(abort_with_a_text_that_moves_the_cursor, "ABORT", PUSHED),
	{.name = "put_into_a_slot_that_is_in_use_costs_the_connection",
	 .act = put_into_a_slot_that_is_in_use,
	 .says = "PUT into a slot that was not released",
	 .when = IDLE,
	 .by_transport = true},
	{.name = "put_of_the_end_of_a_slot_costs_the_connection",
	 .act = put_of_the_end_of_a_slot,
	 .says = "PUT not at the beginning of its slot",
	 .when = IDLE,
	 .by_transport = true},
	{.name = "grant_with_a_false_key_costs_the_connection",
	 .act = grant_with_a_false_key,
	 .says = "", /* this end may see no more than a reset */
	 .when = IDLE,
	 .by_transport = true},
	{.name = "step_after_out_of_data_costs_the_connection",
	 .act = step_after_out_of_data,
	 .says = "STEP 2 of pass 0",
	 .when = IDLE,
	 .out = true},
	{.name = "put_after_out_of_data_costs_the_connection",
	 .act = put_after_out_of_data,
	 .says = "PUT: slice 0 of w for step 2",
	 .when = IDLE,
	 .out = true},
};

#define ACT_COUNT (sizeof(acts) / sizeof(acts[0]))

int
main(void)
{
	static struct CMUnitTest tests[ACT_COUNT];
	for (size_t i = 0; i < ACT_COUNT; i++) {
		static struct act copy[ACT_COUNT]; /* cmocka's state is not const */
		copy[i] = acts[i];
		tests[i].name = acts[i].name;
		tests[i].test_func = run_act;
		tests[i].initial_state = &copy[i];
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
