/* SPDX-License-Identifier: Apache-2.0 */
/* A session that goes from thread to thread, with nothing but its own calls to put them in order;
 * two threads at the same time; callbacks; and a child of fork. */
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/trainer/fabric.h"

#define THREADS 3u
#define STEPS 60u
#define ROWS 500u

static const enum weft_progress both[] = {WEFT_PROGRESS_THREAD, WEFT_PROGRESS_CALLER};

/* ---- one after another ---- */

struct relay {
	struct weft_session *session;
	struct weft_tensor *tensor;
	_Atomic unsigned step; /* relaxed: it carries no data */
};

struct runner {
	struct relay *relay;
	unsigned idx;
	enum weft_status status;
	char text[WF_ERROR_BYTES];
};

/* The first thing that the thread does with the session is a call, and so is the last. */
static enum weft_status
run_step(const struct relay *relay)
{
	enum weft_status st = weft_step(relay->session, 1, 0);
	while (st == WEFT_INVALID && strstr(weft_last_error(), "another thread") != NULL) {
		(void)sched_yield(); /* its turn was seen before its call had returned */
		st = weft_step(relay->session, 1, 0);
	}
	for (unsigned i = 0; i < ROWS && st == WEFT_OK; i++) {
		weft_tensor_grad(relay->tensor)[i] =
			0.5f * weft_tensor_param(relay->tensor)[i] + (float)i;
	}
	st = st != WEFT_OK ? st : weft_push(relay->tensor);
	return st != WEFT_OK ? st : weft_wait_all(relay->session);
}

static void *
run(void *arg)
{
	struct runner *runner = arg;
	struct relay *relay = runner->relay;
	unsigned step = 0;
	while (step < STEPS) {
		step = atomic_load_explicit(&relay->step, memory_order_relaxed);
		if (step < STEPS && step % THREADS == runner->idx) {
			enum weft_status st = run_step(relay);
			if (st != WEFT_OK) {
				runner->status = st;
				(void)snprintf(runner->text, sizeof(runner->text), "%s",
					       weft_last_error());
			}
			atomic_store_explicit(&relay->step, st == WEFT_OK ? step + 1 : STEPS,
					      memory_order_relaxed);
		}
		(void)sched_yield();
	}
	return NULL;
}

static float
value_at(unsigned at)
{
	float w = 1;
	for (unsigned step = 0; step < STEPS; step++) {
		w = w - 0.25f * (0.5f * w + (float)at);
	}
	return w;
}

static void
run_relay(const struct weft_session_opts *opts)
{
	struct relay relay = {0};
	struct runner runner[THREADS] = {0};
	pthread_t thread[THREADS];
	assert_ok(one_tensor(opts, ROWS, 1, &relay.session, &relay.tensor));
	for (unsigned i = 0; i < THREADS; i++) {
		runner[i] = (struct runner){.relay = &relay, .idx = i};
		assert_int_equal(pthread_create(&thread[i], NULL, run, &runner[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_string_equal(runner[i].text, "");
		assert_int_equal(runner[i].status, WEFT_OK);
	}
	for (unsigned i = 0; i < ROWS; i++) {
		assert_true(weft_tensor_param(relay.tensor)[i] == value_at(i));
	}
	assert_ok(weft_session_close(relay.session));
}

static void
threads_that_take_turns_train_to_the_same_bits_as_one(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fabric fabric;
		struct member member;
		fabric_start(&fabric, 1, 2, 0);
		member_init(&member, &fabric, 0, 1);
		member.opts.progress = both[i];
		member.opts.optimizer.learning_rate = 0.25;
		run_relay(&member.opts);
		fabric_stop(&fabric);
	}
}

/* ---- at the same time ---- */

static struct weft_session *shared;
static _Atomic bool is_open, may_come;

/* Enters the barrier, again if the test's own call is in the way. */
static enum weft_status
wait_inside(struct member *member)
{
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, 4, 1, &shared, &tensor);
	atomic_store_explicit(&is_open, true, memory_order_release); /* the test's */
	while (st == WEFT_OK) {
		st = weft_barrier(shared);
		if (st == WEFT_OK || strstr(weft_last_error(), "another thread") == NULL) {
			break;
		}
		(void)sched_yield();
		st = WEFT_OK;
	}
	return member_note(member, st);
}

static enum weft_status
come_late(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, 4, 1, &session, &tensor);
	while (st == WEFT_OK && !atomic_load_explicit(&may_come, memory_order_acquire)) {
		(void)sched_yield();
	}
	st = st != WEFT_OK ? st : weft_barrier(session);
	(void)member_note(member, st);
	enum weft_status end = weft_session_close(session);
	return st != WEFT_OK ? st : end;
}

static void
refuse_beside(enum weft_progress progress)
{
	struct fabric fabric;
	struct member member[2];
	struct weft_session_stats stats = {.struct_bytes = sizeof(stats)};
	atomic_store_explicit(&is_open, false, memory_order_relaxed);
	atomic_store_explicit(&may_come, false, memory_order_relaxed);
	fabric_start(&fabric, 1, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		member_init(&member[i], &fabric, i, 2);
		member[i].opts.progress = progress;
		member[i].run = i == 0 ? wait_inside : come_late;
	}
	members_start(member, 2);
	while (!atomic_load_explicit(&is_open, memory_order_acquire)) { /* wait_inside's */
		(void)sched_yield();
	}
	while (weft_poll(shared) == WEFT_OK) { /* until the other one is in the barrier */
		(void)sched_yield();
	}
	assert_text(weft_last_error(), "another thread is in one of its calls");
	assert_refused(weft_exchange(shared, 1, 0), WEFT_INVALID, "one thread at a time");
	assert_refused(weft_session_stats(shared, &stats), WEFT_INVALID, "another thread");
	assert_refused(weft_session_close(shared), WEFT_AGAIN, "another thread");
	assert_refused(weft_session_abort(shared, WEFT_ABORTED, "no"), WEFT_AGAIN,
		       "another thread");
	atomic_store_explicit(&may_come, true, memory_order_release); /* come_late's */
	members_join(member, 2);
	assert_ended(&member[0], WEFT_OK, "");
	assert_ended(&member[1], WEFT_OK, "");
	assert_ok(weft_session_stats(shared, &stats));
	assert_ok(weft_session_close(shared));
	fabric_stop(&fabric);
}

static void
a_second_thread_is_refused_while_one_is_in_a_call(void **state)
{
	refuse_beside(WEFT_PROGRESS_THREAD);
	refuse_beside(WEFT_PROGRESS_CALLER);
}

/* ---- in a callback ---- */

/* 0: it was not called; 1: all was refused; 2: something was not. */
static _Atomic int refused;

static int
call_from_callback(void *arg)
{
	static const char text[] = "this is a callback";
	bool all = weft_poll(shared) == WEFT_INVALID && strstr(weft_last_error(), text) != NULL &&
		   weft_exchange(shared, 1, 0) == WEFT_INVALID &&
		   weft_session_close(shared) == WEFT_AGAIN;
	atomic_store_explicit(&refused, all ? 1 : 2, memory_order_relaxed);
	atomic_store_explicit(&may_come, true, memory_order_release); /* come_late's */
	return 0;
}

static void
calls_from_a_callback_are_refused(void **state)
{
	struct fabric fabric;
	struct member member[2];
	atomic_store_explicit(&may_come, false, memory_order_relaxed);
	fabric_start(&fabric, 1, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		member_init(&member[i], &fabric, i, 2);
		member[i].run = i == 0 ? wait_inside : come_late;
	}
	member[0].opts.interrupted = call_from_callback;
	members_start(member, 2);
	members_join(member, 2);
	assert_int_equal(atomic_load_explicit(&refused, memory_order_relaxed), 1);
	assert_ended(&member[0], WEFT_OK, "");
	assert_ended(&member[1], WEFT_OK, "");
	assert_ok(weft_session_close(shared));
	fabric_stop(&fabric);
}

static void
call_from_log(void *arg, enum weft_log_level level, const char *line)
{
	if (shared != NULL) {
		int before = atomic_load_explicit(&refused, memory_order_relaxed);
		(void)call_from_callback(NULL);
		if (before == 2) {
			atomic_store_explicit(&refused, 2, memory_order_relaxed);
		}
	}
}

/* Lines of the start come from the thread of the session, or from the caller's. */
static void
calls_from_a_log_callback_are_refused(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fabric fabric;
		struct member member;
		struct weft_tensor *tensor;
		atomic_store_explicit(&refused, 0, memory_order_relaxed);
		fabric_start(&fabric, 1, 1, 0);
		member_init(&member, &fabric, 0, 1);
		member.opts.progress = both[i];
		member.opts.log = call_from_log;
		shared = NULL;
		assert_ok(one_tensor(&member.opts, 4, 1, &shared, &tensor));
		assert_ok(weft_exchange(shared, 1, 0));
		assert_ok(weft_session_close(shared));
		assert_int_equal(atomic_load_explicit(&refused, memory_order_relaxed), 1);
		fabric_stop(&fabric);
	}
}

/* A session that the callback of another opens, trains and closes. */
struct nested {
	struct member outer, inner;
	unsigned lines;          /* of the inner session's */
	enum weft_status status; /* of what the inner session did */
};

static void
call_outer_from_inner_log(void *arg, enum weft_log_level level, const char *line)
{
	struct nested *nested = arg;
	nested->lines++;
	call_from_log(NULL, level, line);
}

static void
run_inner_in_log(void *arg, enum weft_log_level level, const char *line)
{
	struct nested *nested = arg;
	if (shared == NULL || nested->lines > 0) {
		return;
	}
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&nested->inner.opts, 4, 1, &session, &tensor);
	st = st == WEFT_OK ? weft_exchange(session, 1, 0) : st;
	nested->status = st == WEFT_OK ? weft_session_close(session) : st;
	call_from_log(NULL, level, line); /* still in the outer one's */
}

/* The inner session logs in the thread that calls it, which is in the callback of the outer one. */
static void
calls_from_a_log_callback_below_another_are_refused(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fabric fabric[2];
		struct nested nested = {.status = WEFT_INTERNAL};
		struct weft_tensor *tensor;
		atomic_store_explicit(&refused, 0, memory_order_relaxed);
		fabric_start(&fabric[0], 1, 1, 0);
		fabric_start(&fabric[1], 1, 1, 0);
		member_init(&nested.outer, &fabric[0], 0, 1);
		nested.outer.opts.progress = both[i];
		nested.outer.opts.log = run_inner_in_log;
		nested.outer.opts.log_arg = &nested;
		member_init(&nested.inner, &fabric[1], 0, 1);
		nested.inner.opts.progress = WEFT_PROGRESS_CALLER;
		nested.inner.opts.log = call_outer_from_inner_log;
		nested.inner.opts.log_arg = &nested;
		shared = NULL;
		assert_ok(one_tensor(&nested.outer.opts, 4, 1, &shared, &tensor));
		assert_ok(weft_exchange(shared, 1, 0));
		assert_ok(weft_session_close(shared));
		assert_int_equal(nested.status, WEFT_OK);
		assert_true(nested.lines > 0);
		assert_int_equal(atomic_load_explicit(&refused, memory_order_relaxed), 1);
		fabric_stop(&fabric[0]);
		fabric_stop(&fabric[1]);
	}
}

/* The lines come from the caller's thread, whose record is that of an earlier call. Over TCP alone,
 * because to look for other transports makes records too. */
static void
a_log_callback_leaves_the_last_error_as_it_was(void **state)
{
	struct fabric fabric;
	struct member member;
	struct weft_tensor *tensor;
	struct weft_tensor_opts declared = {.name = "w", .rows = 4};
	atomic_store_explicit(&refused, 0, memory_order_relaxed);
	fabric_start_over(&fabric, "tcp", 1, 1, 0, 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.progress = WEFT_PROGRESS_CALLER;
	member.opts.log = call_from_log;
	shared = NULL;
	assert_ok(weft_session_open(&member.opts, &shared));
	assert_ok(weft_tensor_add(shared, &declared, &tensor));
	assert_ok(weft_session_seal(shared));
	assert_refused(weft_push(tensor), WEFT_INVALID, "not started");
	char before[WF_ERROR_BYTES];
	(void)snprintf(before, sizeof(before), "%s", weft_last_error());
	assert_ok(weft_session_start(shared));
	assert_int_equal(atomic_load_explicit(&refused, memory_order_relaxed), 1);
	assert_string_equal(weft_last_error(), before);
	assert_ok(weft_session_close(shared));
	fabric_stop(&fabric);
}

/* ---- in a child ---- */

static bool is_child;

/* LeakSanitizer asks this at exit. A child has not the threads of its parent, so what they hold
 * looks lost there. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
	return is_child;
}

static int
call_in_child(struct weft_session *session, struct weft_tensor *tensor)
{
	static const char text[] = "this is the child";
	for (unsigned i = 0; i < ROWS; i++) {
		weft_tensor_param(tensor)[i] = weft_tensor_grad(tensor)[i] = 7;
	}
	weft_session_stop(session, 15);
	if (weft_session_abort(session, WEFT_ABORTED, "by a child") != WEFT_AGAIN ||
	    strstr(weft_last_error(), text) == NULL) {
		return 1;
	}
	if (weft_exchange(session, 1, 0) != WEFT_INVALID ||
	    strstr(weft_last_error(), text) == NULL) {
		return 1;
	}
	return weft_session_close(session) != WEFT_AGAIN || strstr(weft_last_error(), text) == NULL;
}

/* `exits`: with what libraries do at exit(3). */
static int
status_of_child(struct weft_session *session, struct weft_tensor *tensor, bool exits)
{
	int status = 0;
	(void)fflush(NULL);
	pid_t child = fork();
	is_child = child == 0;
	if (child == 0 && exits) {
		exit(call_in_child(session, tensor));
	} else if (child == 0) {
		_exit(call_in_child(session, tensor));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void
calls_in_a_child_are_refused_and_the_parent_goes_on(void **state)
{
	struct fabric fabric;
	struct member member;
	struct weft_session *session;
	struct weft_tensor *tensor;
	fabric_start(&fabric, 1, 1, 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.optimizer.learning_rate = 1;
	assert_ok(one_tensor(&member.opts, ROWS, 5, &session, &tensor));
	for (unsigned step = 1; step <= 2; step++) {
		assert_int_equal(status_of_child(session, tensor, step == 1), 0);
		for (unsigned i = 0; i < ROWS; i++) {
			weft_tensor_grad(tensor)[i] = 1;
		}
		assert_ok(weft_exchange(session, 1, 0));
		assert_true(weft_tensor_param(tensor)[ROWS - 1] == 5 - (float)step);
	}
	assert_ok(weft_session_close(session));
	fabric_stop(&fabric);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_take_turns_train_to_the_same_bits_as_one),
		cmocka_unit_test(a_second_thread_is_refused_while_one_is_in_a_call),
		cmocka_unit_test(calls_from_a_callback_are_refused),
		cmocka_unit_test(calls_from_a_log_callback_are_refused),
		cmocka_unit_test(calls_from_a_log_callback_below_another_are_refused),
		cmocka_unit_test(a_log_callback_leaves_the_last_error_as_it_was),
		cmocka_unit_test(calls_in_a_child_are_refused_and_the_parent_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
