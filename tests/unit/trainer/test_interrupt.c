/* SPDX-License-Identifier: Apache-2.0 */
/* What languages with signals and arrays of their own need: waits that the caller can leave, and
 * arrays that stay when the session is gone. And how a wait ends that the session's own thread
 * overtakes. Each trainer is on a thread of its own, or in a simulated world. */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/crew.h"
#include "tests/unit/trainer/fabric.h"
#include "trainer/session/driver.h"

#define ROWS 64u

static sem_t first_is_done; /* trainer 1 goes on when trainer 0 has been interrupted */
static float *kept_param, *kept_grad;

/* Trainer 0's answer to whether to stop, read by the thread that writes it: the one that waits. */
static int stop;

static int
ask(void *arg)
{
	const int *answer = arg;
	return *answer;
}

static enum weft_status
interrupted_in_wait(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	st = st == WEFT_OK ? weft_step(session, 1, 0) : st;
	st = st == WEFT_OK ? weft_push(w) : st;
	stop = 1;
	member->value[0] = st == WEFT_OK ? (float)weft_wait(w) : -1;
	member->value[1] = st == WEFT_OK ? (float)weft_wait_all(session) : -1;
	stop = 0;
	(void)sem_post(&first_is_done);
	st = st == WEFT_OK ? weft_wait_all(session) : st;
	st = st == WEFT_OK ? weft_exchange(session, 1, 0) : st;
	st = member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st == WEFT_OK ? member_note(member, end) : st;
}

static enum weft_status
late(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	(void)sem_wait(&first_is_done);
	st = st == WEFT_OK ? weft_exchange(session, 1, 0) : st;
	st = st == WEFT_OK ? weft_exchange(session, 1, 0) : st;
	st = member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st == WEFT_OK ? member_note(member, end) : st;
}

static void
run_two(enum weft_progress progress, enum weft_status (*first)(struct member *member),
	struct member *members)
{
	struct fabric fabric;
	fabric_start(&fabric, 1, 2, 0);
	assert_int_equal(sem_init(&first_is_done, 0, 0), 0);
	for (uint32_t i = 0; i < 2; i++) {
		member_init(&members[i], &fabric, i, 2);
		members[i].opts.progress = progress;
		members[i].run = i == 0 ? first : late;
	}
	stop = 0;
	members[0].opts.interrupted = ask;
	members[0].opts.interrupted_arg = &stop;
	members_run(members, 2);
	fabric_stop(&fabric);
	assert_int_equal(sem_destroy(&first_is_done), 0);
}

static void
a_wait_can_be_left_and_entered_again(void **state)
{
	static const enum weft_progress progress[] = {WEFT_PROGRESS_THREAD, WEFT_PROGRESS_CALLER};
	static struct member members[2];
	for (unsigned i = 0; i < 2; i++) {
		run_two(progress[i], interrupted_in_wait, members);
		assert_ended(&members[0], WEFT_OK, "");
		assert_ended(&members[1], WEFT_OK, "");
		assert_int_equal((int)members[0].value[0], WEFT_AGAIN);
		assert_int_equal((int)members[0].value[1], WEFT_AGAIN);
	}
}

/* The slices of two lanes come one by one, and the first one ends a sleep. */
static int
push_within_pull(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct member *member = seat->crew->run;
	const struct weft_tensor_opts declared = {.name = "w", .rows = ROWS};
	struct weft_session_opts opts;
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	crew_fill_opts(seat->crew, seat->idx, &opts);
	opts.slice_bytes = 64;
	opts.interrupted = ask;
	opts.interrupted_arg = &stop;
	enum weft_status st = wf_session_open_in(env, &opts, &session);
	st = st == WEFT_OK ? weft_tensor_add(session, &declared, &w) : st;
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? weft_session_start(session) : st;
	st = st == WEFT_OK ? weft_step(session, 1, 0) : st;
	stop = 1;
	member->value[0] = st == WEFT_OK ? (float)weft_pull(w) : -1;
	stop = 0;
	(void)member_note(member, st == WEFT_OK ? weft_push(w) : st);
	st = st == WEFT_OK ? weft_wait(w) : st;
	st = st == WEFT_OK ? weft_push(w) : st;
	st = st == WEFT_OK ? weft_wait_all(session) : st;
	(void)crew_end_session(seat, session, st);
	return 0;
}

static void
a_push_is_refused_while_a_pull_that_was_left_is_unanswered(void **state)
{
	static struct member member;
	uint64_t cuts = 0;
	struct crew crew = {
		.seed = 1,
		.world = {.seed = 1,
			  .delay_min_ns = WF_NS_PER_MS,
			  .delay_max_ns = 5 * WF_NS_PER_MS,
			  .log_fd = -1},
		.transport = "sim",
		.pservers = 1,
		.trainers = 1,
		.lanes = 2,
		.run_trainer = push_within_pull,
		.run = &member,
	};
	(void)state;
	if (!crew_ends_well(&crew, &cuts)) {
		fail_msg("%s", crew.why);
	}
	assert_int_equal((int)member.value[0], WEFT_AGAIN);
	assert_ended(&member, WEFT_INVALID, "push of w while its pull is unanswered");
}

static enum weft_status
interrupted_in_reduce(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	double one = 1;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	stop = 1;
	member->value[0] = st == WEFT_OK ? (float)weft_reduce(session, &one, 1) : -1;
	st = st == WEFT_OK ? weft_barrier(session) : st;
	st = member_note(member, st);
	weft_session_abort(session, WEFT_ABORTED, "interrupted");
	(void)sem_post(&first_is_done);
	return st;
}

static void
a_reduce_that_was_left_ends_the_session(void **state)
{
	static struct member members[2];
	run_two(WEFT_PROGRESS_THREAD, interrupted_in_reduce, members);
	assert_int_equal((int)members[0].value[0], WEFT_AGAIN);
	assert_ended(&members[0], WEFT_INVALID, "was interrupted");
	assert_ended(&members[1], WEFT_ABORTED, "trainer 0: interrupted");
}

/* Leaves a call that the other one waits in, and closes; all steps are answered. */
static enum weft_status
close_within(struct member *member, enum weft_status (*call)(struct weft_session *session))
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	stop = 1;
	member->value[0] = st == WEFT_OK ? (float)call(session) : -1;
	st = member_note(member, weft_session_close(session));
	(void)sem_post(&first_is_done);
	return st;
}

static enum weft_status
closed_in_reduce(struct member *member)
{
	return close_within(member, weft_barrier);
}

static enum weft_status
closed_in_pass_end(struct member *member)
{
	return close_within(member, weft_pass_end);
}

static void
closing_in_a_call_that_others_wait_in_ends_the_job_and_says_so(void **state)
{
	static const enum weft_progress progress[] = {WEFT_PROGRESS_THREAD, WEFT_PROGRESS_CALLER};
	static struct member members[2];
	for (unsigned i = 0; i < 2; i++) {
		run_two(progress[i], closed_in_reduce, members);
		assert_int_equal((int)members[0].value[0], WEFT_AGAIN);
		assert_ended(&members[0], WEFT_ABORTED, "a reduce or barrier is unanswered");
		assert_ended(&members[1], WEFT_ABORTED, "trainer 0 closed its session");
		run_two(progress[i], closed_in_pass_end, members);
		assert_int_equal((int)members[0].value[0], WEFT_AGAIN);
		assert_ended(&members[0], WEFT_ABORTED, "weft_pass_end has not come to its end");
		assert_ended(&members[1], WEFT_ABORTED, "trainer 0 closed its session");
	}
}

static void *
stop_it(void *session)
{
	weft_session_stop(session, SIGTERM);
	return NULL;
}

enum then {
	WAITS, /* in a call that the other one comes to later */
	PUSHES,
	CLOSES, /* between two steps, when nothing is begun */
	ABORTS,
};

/* The other one waits for this one in a step. */
static enum weft_status
stopped(struct member *member, enum then then)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	pthread_t thread;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	assert_int_equal(pthread_create(&thread, NULL, stop_it, session), 0);
	if (st == WEFT_OK && then == WAITS) {
		st = member_note(member, weft_barrier(session));
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (st == WEFT_OK && (then == PUSHES || then == ABORTS)) {
		st = weft_step(session, 1, 0);
		st = st == WEFT_OK ? weft_push(w) : st;
	}
	(void)sem_post(&first_is_done);
	if (then == ABORTS) {
		weft_session_abort(session, WEFT_DATA, "this came later");
		return WEFT_OK;
	}
	enum weft_status end = weft_session_close(session);
	return st == WEFT_OK ? member_note(member, end) : st;
}

static enum weft_status
stopped_in_call(struct member *member)
{
	return stopped(member, WAITS);
}

static enum weft_status
stopped_and_pushed(struct member *member)
{
	return stopped(member, PUSHES);
}

static enum weft_status
stopped_and_closed(struct member *member)
{
	return stopped(member, CLOSES);
}

static enum weft_status
stopped_and_aborted(struct member *member)
{
	return stopped(member, ABORTS);
}

static void
who_is_stopped_by_a_signal_says_so_to_all(void **state)
{
	static const enum weft_progress progress[] = {WEFT_PROGRESS_THREAD, WEFT_PROGRESS_CALLER};
	static struct member members[2];
	static enum weft_status (*const first[])(struct member * member) = {
		stopped_in_call, stopped_and_pushed, stopped_and_closed, stopped_and_aborted};
	char mine[64];
	(void)snprintf(mine, sizeof(mine), ", pid %u) was stopped by SIGTERM", (unsigned)getpid());
	for (unsigned i = 0; i < 8; i++) {
		run_two(progress[i % 2], first[i / 2], members);
		if (first[i / 2] != stopped_and_aborted) {
			assert_ended(&members[0], WEFT_ABORTED, mine);
		}
		assert_ended(&members[1], WEFT_ABORTED, "trainer 0 (host ");
		assert_text(members[1].text, mine);
	}
}

static sem_t is_driven; /* by drive_and_fail, instead of the session's thread */

/* Drives until the owner waits to drive, the answer has come, and the session has failed. */
static void *
drive_and_fail(void *arg)
{
	struct weft_session *session = arg;
	struct wf_core *core = &session->core;
	while (!wf_driver_claim(session, WF_DRIVER_THREAD)) {
		(void)sched_yield();
	}
	(void)sem_post(&is_driven);
	while (atomic_load_explicit(&session->progress.wanted, memory_order_seq_cst) == 0) {
		(void)sched_yield();
	}
	while (atomic_load_explicit(&core->flow.tensor[0].busy, memory_order_acquire) != 0) {
		(void)wf_driver_run_all(session);
		(void)wf_core_poll(core);
	}
	wf_core_fail(core, WEFT_LOST, "failed behind the answer");
	wf_driver_release(session);
	wf_driver_signal(session->progress.handover_fd);
	return NULL;
}

static enum weft_status
answered_before_failure(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	pthread_t thread;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	if (st == WEFT_OK && pthread_create(&thread, NULL, drive_and_fail, session) == 0) {
		(void)sem_wait(&is_driven);
		st = weft_step(session, 1, 0);
		st = st == WEFT_OK ? weft_push(w) : st;
		member->value[0] = st == WEFT_OK ? (float)weft_wait(w) : -1;
		(void)pthread_join(thread, NULL);
	}
	st = member_note(member, st == WEFT_OK ? weft_step(session, 1, 0) : st);
	(void)weft_session_close(session);
	return st;
}

static void
a_wait_for_what_has_come_is_no_failure(void **state)
{
	static struct member member;
	struct fabric fabric;
	fabric_start(&fabric, 1, 1, 0);
	assert_int_equal(sem_init(&is_driven, 0, 0), 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.progress = WEFT_PROGRESS_THREAD;
	member.run = answered_before_failure;
	members_run(&member, 1);
	fabric_stop(&fabric);
	assert_int_equal(sem_destroy(&is_driven), 0);
	assert_int_equal((int)member.value[0], WEFT_OK);
	assert_ended(&member, WEFT_LOST, "failed behind the answer");
}

static enum weft_status
keep(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 3, &session, &w);
	if (st == WEFT_OK) {
		kept_param = weft_tensor_param(w);
		kept_grad = weft_tensor_grad(w);
	}
	st = member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st == WEFT_OK ? member_note(member, end) : st;
}

static void
arrays_that_are_kept_are_there_after_close(void **state)
{
	static struct member member;
	struct fabric fabric;
	fabric_start(&fabric, 1, 1, 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.keep_arrays = 1;
	member.run = keep;
	members_run(&member, 1);
	fabric_stop(&fabric);
	assert_ended(&member, WEFT_OK, "");
	for (unsigned i = 0; i < ROWS; i++) {
		assert_true(kept_param[i] == 3);
		kept_grad[i] = kept_param[i];
	}
	assert_int_equal(munmap(kept_param, ROWS * sizeof(float)), 0); /* whole pages go */
	assert_int_equal(munmap(kept_grad, ROWS * sizeof(float)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_can_be_left_and_entered_again),
		cmocka_unit_test(a_push_is_refused_while_a_pull_that_was_left_is_unanswered),
		cmocka_unit_test(a_reduce_that_was_left_ends_the_session),
		cmocka_unit_test(who_is_stopped_by_a_signal_says_so_to_all),
		cmocka_unit_test(closing_in_a_call_that_others_wait_in_ends_the_job_and_says_so),
		cmocka_unit_test(a_wait_for_what_has_come_is_no_failure),
		cmocka_unit_test(arrays_that_are_kept_are_there_after_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
