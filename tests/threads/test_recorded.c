/* SPDX-License-Identifier: Apache-2.0 */
/* A job that is recorded again and again while it runs: the rings of its lanes and trainers are
 * armed, written, handed to lane 0 and read, armed again. Nothing but their own atomics puts the
 * threads in order (pserver/trace.h, T1 and T2). */
#include <sched.h>
#include <stdatomic.h>

#include "pserver/service.h"
#include "pserver/trace.h"
#include "tests/unit/trainer/fabric.h"
#include "tools/trace/pushes.h"

#define TRAINERS 2u
#define LANES 3u
#define ROWS 4096u
#define SLICE_BYTES 1024u
#define STEPS 4u
#define RECORDINGS 4u
#define HANDOVERS 40u

static _Atomic bool is_over; /* relaxed: it carries no data */

/* Steps until the test has enough; both trainers end after the same one. */
static enum weft_status
train(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &tensor);
	double more = TRAINERS;
	while (st == WEFT_OK && more >= TRAINERS) {
		for (unsigned i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor)[i] = 1e-3f;
		}
		st = weft_exchange(session, 1, 0);
		more = atomic_load_explicit(&is_over, memory_order_relaxed) ? 0 : 1;
		st = st == WEFT_OK ? weft_reduce(session, &more, 1) : st;
	}
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

/* Of trainers and lanes that have recorded something. */
static unsigned
count_members(const struct wf_recording *recording, bool trainers)
{
	unsigned count = 0;
	for (uint32_t i = 0; i < recording->count; i++) {
		const struct wf_recording_member *member = &recording->member[i];
		count += member->is_trainer == trainers && member->count > 0 ? 1 : 0;
	}
	return count;
}

/* Each event is whole, and not older than the one before it. */
static void
check_events(const struct wf_recording_member *member)
{
	for (uint32_t i = 0; i < member->count; i++) {
		const struct wf_trace_event *event = &member->event[i];
		assert_true(event->what > WF_TRACE_NOTHING && event->what < WF_TRACE_KINDS);
		assert_true(i == 0 || event->at_ns >= member->event[i - 1].at_ns);
	}
}

static void
record(const char *at, struct wf_env *env)
{
	struct wf_recording recording;
	struct wf_pushes pushes;
	wf_recording_init(&recording, env);
	recording.steps = STEPS;
	enum weft_status st = wf_recording_collect(&recording, at, NULL, STEPS);
	while (st == WEFT_UNAVAILABLE) { /* the job is not there yet */
		(void)sched_yield();
		st = wf_recording_collect(&recording, at, NULL, STEPS);
	}
	assert_ok(st);
	assert_int_equal(count_members(&recording, false), LANES);
	assert_int_equal(count_members(&recording, true), TRAINERS);
	for (uint32_t i = 0; i < recording.count; i++) {
		check_events(&recording.member[i]);
	}
	wf_recording_align(&recording);
	assert_ok(wf_pushes_find(&recording, &pushes));
	assert_true(pushes.posted > 0);
	assert_int_equal(pushes.applied, pushes.posted);
	wf_pushes_fini(&pushes);
	wf_recording_fini(&recording);
}

static void
record_again_and_again(enum weft_progress progress)
{
	struct fabric fabric;
	struct member member[TRAINERS];
	atomic_store_explicit(&is_over, false, memory_order_relaxed);
	fabric_start(&fabric, 1, LANES, 0);
	for (unsigned i = 0; i < TRAINERS; i++) {
		member_init(&member[i], &fabric, i, TRAINERS);
		member[i].opts.progress = progress;
		member[i].opts.slice_bytes = SLICE_BYTES;
		member[i].run = train;
	}
	members_start(member, TRAINERS);
	for (unsigned i = 0; i < RECORDINGS; i++) {
		record(fabric.pservers, fabric.env);
	}
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	members_join(member, TRAINERS);
	for (unsigned i = 0; i < TRAINERS; i++) {
		assert_ended(&member[i], WEFT_OK, "");
	}
	fabric_stop(&fabric);
}

static void
rings_are_handed_over_while_the_job_runs(void **state)
{
	(void)state;
	record_again_and_again(WEFT_PROGRESS_THREAD);
	record_again_and_again(WEFT_PROGRESS_CALLER);
}

/* ---- lanes that have nothing else in common ---- */

/* In a job each lane soon says something to a trainer, which says something to the others: that
 * puts them in order, too. These lanes have no trainers. */
struct alone {
	struct wf_lane lane;
	pthread_t thread;
};

static void
turn(struct wf_lane *lane)
{
	lane->order.sum.step++;
	wf_trace_look(lane, wf_now_ns(lane->env));
	if (lane->trace.ring != NULL) {
		wf_trace_note(lane->trace.ring, WF_TRACE_STEP_DONE, WF_TRACE_ALL, 0,
			      lane->order.sum.step, lane->order.sum.step);
	}
}

static void *
turn_until_over(void *arg)
{
	struct alone *self = arg;
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		turn(&self->lane);
		(void)sched_yield();
	}
	return NULL;
}

static void
init_alone(struct alone *self, uint32_t idx, struct wf_env *env, struct wf_traces *traces)
{
	static const struct wf_lane_service service = {.number = WF_SERVICE_DENSE};
	memset(self, 0, sizeof(*self));
	self->lane.env = env;
	self->lane.opts.idx = idx;
	self->lane.opts.traces = traces;
	self->lane.service = &service;
	self->lane.state = WF_LANE_RUNNING;
	self->lane.job.is_ready = true;
}

/* Events that another thread has written: how many are steps. */
static unsigned
read_all(const struct wf_traces *traces)
{
	struct wf_trace_cursor cursor = {0};
	struct wf_watch_record record;
	unsigned count = 0;
	while (wf_traces_next(traces, &cursor, &record)) {
		for (uint64_t i = 0; i < record.value[WF_WTRACE_COUNT]; i++) {
			const uint64_t *word =
				&record.value[WF_WTRACE_EVENT + i * WF_WATCH_TRACE_WORDS];
			if (word[3] >> 32 == WF_TRACE_STEP_DONE) {
				assert_true(word[1] == (uint32_t)word[2]);
				count += record.lane != 0 ? 1 : 0;
			}
		}
	}
	return count;
}

static void
rings_of_lanes_that_share_nothing_are_handed_over(void **state)
{
	static struct alone alone[LANES];
	struct wf_env *env;
	struct wf_traces *traces;
	(void)state;
	assert_ok(wf_env_system_create(WF_LOG_WARN, 2, &env));
	assert_ok(wf_traces_open(env, LANES, &traces));
	atomic_store_explicit(&is_over, false, memory_order_relaxed);
	for (uint32_t i = 0; i < LANES; i++) {
		init_alone(&alone[i], i, env, traces);
		assert_int_equal(
			i > 0 ? pthread_create(&alone[i].thread, NULL, turn_until_over, &alone[i])
			      : 0,
			0);
	}
	for (uint64_t id = 1; id <= HANDOVERS; id++) {
		const uint64_t question[2] = {STEPS, id};
		bool is_ready = false;
		while (!is_ready) {
			turn(&alone[0].lane);
			assert_ok(wf_traces_ask(&alone[0].lane, question, &is_ready));
			(void)sched_yield();
		}
		assert_true(read_all(traces) > 0);
	}
	atomic_store_explicit(&is_over, true, memory_order_relaxed);
	for (uint32_t i = 1; i < LANES; i++) {
		(void)pthread_join(alone[i].thread, NULL);
	}
	wf_traces_close(traces);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_handed_over_while_the_job_runs),
		cmocka_unit_test(rings_of_lanes_that_share_nothing_are_handed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
