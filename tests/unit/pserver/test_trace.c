/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane records of its steps, and of what its trainers send: nothing as long as nobody asks,
 * under a virtual clock. Thread: the test's. */
#include "tests/unit/pserver/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TRAINERS 2u
#define ID 7u
#define ASKED 3u
#define MADE 6u
#define TICK_NS (200 * WF_NS_PER_MS) /* a lane looks at the clock more often than that */
#define SHORT_NS (5 * WF_NS_PER_MS)  /* and hardly ever in this time */

static const uint64_t question[2] = {ASKED | WF_WATCH_TRACE_TRAINERS, ID};

static void
run_steps(struct stage *stage, uint64_t first, uint64_t count)
{
	for (uint64_t k = first; k < first + count; k++) {
		for (uint32_t t = 0; t < TRAINERS; t++) {
			puppet_continue(&stage->puppet[t], k);
		}
		stage_run(stage, TICK_NS);
	}
}

static void
send_traced(struct stage *stage, uint32_t trainer, uint64_t id, uint32_t total, uint32_t count,
	    bool last)
{
	static struct wf_msg_traced msg;
	static struct wf_msg encoded;
	msg = (struct wf_msg_traced){
		.request_id = id, .total = total, .count = count, .last = last};
	for (uint32_t i = 0; i < count; i++) {
		msg.event[i] = (struct wf_trace_event){
			.at_ns = 1000 + i, .what = WF_TRACE_POSTED, .step = 5, .peer = trainer};
	}
	wf_msg_traced_encode(&msg, &encoded);
	peer_send(&stage->puppet[trainer].peer, &encoded);
	stage_settle(stage);
}

static bool
ask(struct stage *stage)
{
	bool is_ready = false;
	CHECK(stage, wf_traces_ask(stage->lane[0], question, &is_ready) == WEFT_OK);
	return is_ready;
}

static struct wf_trace_event
event_of(const struct wf_watch_record *record, uint64_t i)
{
	const uint64_t *word = &record->value[WF_WTRACE_EVENT + i * WF_WATCH_TRACE_WORDS];
	return (struct wf_trace_event){
		.at_ns = word[0],
		.value = word[1],
		.step = (uint32_t)word[2],
		.slice = (uint32_t)(word[2] >> 32),
		.peer = (uint32_t)word[3],
		.what = (uint16_t)(word[3] >> 32),
	};
}

/* How many events of the kind there are of lane 0, or of a trainer. */
static unsigned
count_events(struct stage *stage, bool of_trainers, enum wf_trace_what what)
{
	struct wf_trace_cursor cursor = {0};
	struct wf_watch_record record;
	unsigned count = 0;
	while (wf_traces_next(stage->traces, &cursor, &record)) {
		for (uint64_t i = 0; i < record.value[WF_WTRACE_COUNT]; i++) {
			bool is_its = (record.value[WF_WTRACE_IS_TRAINER] != 0) == of_trainers;
			count += is_its && event_of(&record, i).what == what ? 1 : 0;
		}
	}
	return count;
}

static void
record_nothing(struct stage *stage)
{
	puppets_begin(stage);
	run_steps(stage, 1, 2);
	CHECK(stage, stage->lane[0]->trace.ring == NULL);
	CHECK(stage, (stage_dense(stage->lane[0])->features.points & WF_AT_MARK) == 0);
	CHECK(stage, stage->puppet[0].traces == 0);
}

static void
as_long_as_nobody_asks_nothing_is_recorded(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, record_nothing, NULL);
}

/* Begins, and makes the steps that were asked for. */
static void
record(struct stage *stage)
{
	puppets_begin(stage);
	run_steps(stage, 1, 2);
	CHECK(stage, !ask(stage));
	stage_run(stage, TICK_NS);
	CHECK(stage, stage->lane[0]->trace.ring != NULL);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		CHECK(stage, stage->puppet[t].traces > 0 && !stage->puppet[t].trace.stops);
		CHECK(stage, stage->puppet[t].trace.request_id == ID);
		CHECK(stage, stage->puppet[t].trace.clock_ns > 0);
		send_traced(stage, t, ID, 0, 0, false);
	}
	stage_run(stage, TICK_NS);
	run_steps(stage, 3, MADE);
	CHECK(stage, !ask(stage));
	CHECK(stage, stage->lane[0]->trace.ring == NULL);
	CHECK(stage, (stage_dense(stage->lane[0])->features.points & WF_AT_MARK) == 0);
	for (uint32_t t = 0; t < TRAINERS; t++) {
		CHECK(stage, stage->puppet[t].trace.stops);
	}
}

static void
record_steps(struct stage *stage)
{
	record(stage);
	send_traced(stage, 0, ID, 130, 125, false);
	send_traced(stage, 0, ID, 130, 5, true);
	send_traced(stage, 1, ID, 0, 0, true);
	stage_run(stage, TICK_NS);
	CHECK(stage, ask(stage));
	unsigned done = count_events(stage, false, WF_TRACE_STEP_DONE);
	unsigned slices = stage_dense(stage->lane[0])->store.pushable_count;
	CHECK(stage, done > ASKED && done <= MADE);
	CHECK(stage, count_events(stage, false, WF_TRACE_APPLIED) == done * slices);
	CHECK(stage, count_events(stage, false, WF_TRACE_ARRIVED) == done * slices * TRAINERS);
	CHECK(stage,
	      count_events(stage, false, WF_TRACE_ANSWER_POSTED) == done * slices * TRAINERS);
	CHECK(stage, count_events(stage, false, WF_TRACE_STEP_ARRIVED) == done * TRAINERS);
	CHECK(stage, count_events(stage, false, WF_TRACE_CPU_NS) == 2);
	CHECK(stage, count_events(stage, true, WF_TRACE_POSTED) == 130);
}

static void
who_asks_gets_the_steps_that_follow_of_all_members(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, record_steps, NULL);
}

static void
say_too_much(struct stage *stage)
{
	record(stage);
	send_traced(stage, 0, ID, 130, 125, false);
	send_traced(stage, 1, ID + 1, 130, 125, false); /* of another recording: ignored */
	CHECK(stage, !stage->puppet[1].peer.down);
	send_traced(stage, 0, ID, 130, 125, false);
	CHECK(stage, stage->puppet[0].peer.down);
}

static void
more_events_than_were_announced_cost_the_trainer_its_path(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, say_too_much, NULL);
}

static void
come_back(struct stage *stage)
{
	record(stage);
	send_traced(stage, 0, ID, 130, 125, false);
	send_traced(stage, 0, ID, 0, 0, false); /* it has lost its path, and what it had */
	send_traced(stage, 0, ID, 5, 5, true);
	send_traced(stage, 1, ID, 0, 0, true);
	CHECK(stage, !stage->puppet[0].peer.down);
	stage_run(stage, TICK_NS);
	CHECK(stage, ask(stage));
	CHECK(stage, count_events(stage, true, WF_TRACE_POSTED) == 5);
}

static void
a_trainer_that_begins_again_sends_anew(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, come_back, NULL);
}

static void
lose_a_trainer(struct stage *stage)
{
	record(stage);
	send_traced(stage, 0, ID, 2, 2, true);
	stage_run(stage, 12 * WF_NS_PER_S); /* trainer 1 never sends what it has */
	CHECK(stage, ask(stage));
	CHECK(stage, count_events(stage, true, WF_TRACE_POSTED) == 2);
}

static void
a_trainer_that_sends_nothing_is_not_waited_for(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, lose_a_trainer, NULL);
}

/* Lane 1 learns of the job when the recording has begun already, and makes its first step before it
 * looks at the clock again. */
static void
begin_late(struct stage *stage)
{
	puppets_begin(stage);
	CHECK(stage, !ask(stage));
	stage_run(stage, TICK_NS);
	struct wf_lane *late = stage->lane[1];
	CHECK(stage, late->trace.ring != NULL && !late->job.is_ready);
	struct puppet *puppet = puppet_add(stage, 0, 1);
	puppet_connect(puppet);
	stage_settle(stage);
	puppet_send_job(puppet);
	stage_run(stage, SHORT_NS);
	puppet_grant(puppet, 0);
	puppet_have(puppet);
	stage_run(stage, SHORT_NS);
	puppet_initialise(puppet);
	stage_run(stage, SHORT_NS);
	puppet_continue(puppet, 1);
	stage_run(stage, SHORT_NS);
	unsigned arrived = 0;
	for (uint32_t i = 0; i < wf_trace_kept(late->trace.ring); i++) {
		const struct wf_trace_event *event = wf_trace_at(late->trace.ring, i);
		arrived += event->what == WF_TRACE_ARRIVED && event->step == 1 ? 1 : 0;
	}
	CHECK(stage, arrived == stage_dense(late)->store.pushable_count);
}

static void
a_lane_whose_job_begins_during_the_recording_records_its_first_step(void **state)
{
	const struct stage_opts opts = {.trainers = 1, .lanes = 2, .has_views = true};
	(void)state;
	stage_play(&opts, begin_late, NULL);
}

/* Whose data has ended says so of the step that it begins in the next pass, if it does. */
static void
run_out_of_data(struct stage *stage)
{
	puppets_begin(stage);
	CHECK(stage, !ask(stage));
	stage_run(stage, TICK_NS);
	run_steps(stage, 1, 1);
	puppet_say_out(&stage->puppet[1], 2, 0);
	puppet_continue(&stage->puppet[0], 2);
	stage_run(stage, TICK_NS);
	const struct wf_trace *ring = stage->lane[0]->trace.ring;
	unsigned arrived[TRAINERS] = {0};
	unsigned done = 0;
	for (uint32_t i = 0; i < wf_trace_kept(ring); i++) {
		const struct wf_trace_event *event = wf_trace_at(ring, i);
		done += event->what == WF_TRACE_STEP_DONE ? 1 : 0;
		if (event->what == WF_TRACE_STEP_ARRIVED) {
			arrived[event->peer]++;
		}
	}
	CHECK(stage, done == 2); /* the second one without trainer 1 */
	CHECK(stage, arrived[0] == 2 && arrived[1] == 1);
}

static void
a_step_without_data_is_not_recorded_as_begun(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, run_out_of_data, NULL);
}

static void
ask_wrongly(struct stage *stage)
{
	const uint64_t wrong[][2] = {
		{0, ID}, {WF_TRACE_STEPS_MAX + 1, ID}, {1, 0}, {1ull << 40, ID}};
	const uint64_t other[2] = {1, ID + 1};
	bool is_ready = false;
	CHECK(stage, wf_traces_ask(stage->lane[0], question, &is_ready) == WEFT_UNAVAILABLE);
	puppets_begin(stage);
	for (size_t i = 0; i < WF_ARRAY_COUNT(wrong); i++) {
		CHECK(stage, wf_traces_ask(stage->lane[0], wrong[i], &is_ready) == WEFT_INVALID);
	}
	CHECK(stage, !ask(stage));
	CHECK(stage, wf_traces_ask(stage->lane[0], other, &is_ready) == WEFT_UNAVAILABLE);
	CHECK(stage, !is_ready);
}

static void
questions_that_cannot_be_answered_are_refused(void **state)
{
	const struct stage_opts opts = {.trainers = TRAINERS, .has_views = true};
	(void)state;
	stage_play(&opts, ask_wrongly, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_long_as_nobody_asks_nothing_is_recorded),
		cmocka_unit_test(who_asks_gets_the_steps_that_follow_of_all_members),
		cmocka_unit_test(more_events_than_were_announced_cost_the_trainer_its_path),
		cmocka_unit_test(a_trainer_that_begins_again_sends_anew),
		cmocka_unit_test(a_trainer_that_sends_nothing_is_not_waited_for),
		cmocka_unit_test(
			a_lane_whose_job_begins_during_the_recording_records_its_first_step),
		cmocka_unit_test(a_step_without_data_is_not_recorded_as_begun),
		cmocka_unit_test(questions_that_cannot_be_answered_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
