/* SPDX-License-Identifier: Apache-2.0 */
/* Words that say whether something is under way, looked at without a wait: an owner that has seen a
 * word clear, by chance or because it asked, goes on with what the session's thread has left. The
 * test itself looks without an order, so that the library's look is all there is. */
#include <sched.h>

#include "tests/unit/trainer/fabric.h"
#include "trainer/session/session.h"

#define ROWS 100u
#define STEPS 20u
#define TRAINERS 2

static _Atomic unsigned turns; /* relaxed: it orders nothing */

static void
await_clear(const _Atomic uint32_t *word)
{
	while (atomic_load_explicit(word, memory_order_relaxed) != 0) {
		(void)sched_yield();
	}
}

static void
await_turn(unsigned turn)
{
	while (atomic_load_explicit(&turns, memory_order_relaxed) < turn) {
		(void)sched_yield();
	}
}

static void
run_members(enum weft_status (*run)(struct member *member), int (*interrupted)(void *arg))
{
	struct fabric fabric;
	static struct member member[TRAINERS];
	atomic_store_explicit(&turns, 0, memory_order_relaxed);
	fabric_start(&fabric, 1, 2, 0);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		member_init(&member[i], &fabric, i, TRAINERS);
		member[i].opts.slice_bytes = 64;
		member[i].opts.progress = WEFT_PROGRESS_THREAD;
		/* That the thread says that it sleeps puts the two in order, too. */
		member[i].opts.spin_ns = 100 * WF_NS_PER_MS;
		member[i].opts.interrupted = i == 0 ? interrupted : NULL;
		member[i].run = run;
	}
	members_run(member, TRAINERS);
	fabric_stop(&fabric);
	for (uint32_t i = 0; i < TRAINERS; i++) {
		assert_ended(&member[i], WEFT_OK, "");
	}
}

static enum weft_status
end(struct member *member, struct weft_session *session, enum weft_status st)
{
	(void)member_note(member, st);
	enum weft_status closed = weft_session_close(session);
	return st != WEFT_OK ? st : closed;
}

/* A step is begun as soon as the last one is answered; nobody waited for that. */
static enum weft_status
step_without_a_wait(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	float first = 0;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	for (unsigned step = 0; step < STEPS && st == WEFT_OK; step++) {
		st = weft_step(session, 1, 0);
		first += weft_tensor_param(w)[0];
		for (uint32_t i = 0; i < ROWS; i++) {
			weft_tensor_grad(w)[i] = (float)step;
		}
		st = st == WEFT_OK ? weft_push(w) : st;
		await_clear(&session->core.flow.tensor[0].busy);
	}
	if (st == WEFT_OK && !(first < STEPS)) { /* it was 1, and less in each step */
		st = WEFT_DATA;
	}
	return end(member, session, st);
}

static void
a_step_that_is_begun_without_a_wait_comes_behind_the_answers(void **state)
{
	(void)state;
	run_members(step_without_a_wait, NULL);
}

static bool leaves; /* trainer 0's calls; its thread alone */

static int
ask(void *arg)
{
	(void)arg;
	return leaves ? 1 : 0;
}

static enum weft_status
reduce_after_one_that_was_left(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	double value = 1;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	if (st == WEFT_OK && member->id == 0) {
		leaves = true;
		st = weft_reduce(session, &value, 1) == WEFT_AGAIN ? WEFT_OK : WEFT_INTERNAL;
		leaves = false;
		atomic_store_explicit(&turns, 1, memory_order_relaxed);
		await_clear(&session->core.reduce.busy);
	} else if (st == WEFT_OK) {
		await_turn(1);
		st = weft_reduce(session, &value, 1);
	}
	value = 2;
	st = st == WEFT_OK ? weft_reduce(session, &value, 1) : st;
	if (st == WEFT_OK && value != 2 * TRAINERS) {
		st = WEFT_DATA;
	}
	return end(member, session, st);
}

static void
a_reduce_comes_behind_the_answer_to_one_that_was_left(void **state)
{
	(void)state;
	run_members(reduce_after_one_that_was_left, ask);
}

static enum weft_status
ask_for_statistics(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	for (unsigned step = 1; step <= STEPS && st == WEFT_OK; step++) {
		struct weft_trainer_stats stats = {.struct_bytes = sizeof(stats)};
		st = weft_exchange(session, 1, 0);
		st = st == WEFT_OK ? weft_trainer_stats(session, 1 - member->id, &stats) : st;
		if (st == WEFT_OK && stats.struct_bytes != sizeof(stats)) {
			st = WEFT_DATA;
		}
	}
	return end(member, session, st);
}

static void
the_lanes_answers_come_before_the_word_that_says_so(void **state)
{
	(void)state;
	run_members(ask_for_statistics, NULL);
}

/* No lane knows of anything that is pushed, so the session's thread answers by itself. */
static enum weft_status
ask_where_nothing_is_pushed(struct member *member)
{
	const struct weft_tensor_opts table = {.name = "w", .rows = ROWS, .is_static = 1};
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = weft_session_open(&member->opts, &session);
	st = st == WEFT_OK ? weft_tensor_add(session, &table, &w) : st;
	st = st == WEFT_OK ? weft_session_seal(session) : st;
	st = st == WEFT_OK ? weft_session_start(session) : st;
	for (unsigned i = 0; i < STEPS && st == WEFT_OK; i++) {
		struct weft_trainer_stats stats = {.struct_bytes = sizeof(stats)};
		st = weft_trainer_stats(session, 1 - member->id, &stats);
		if (st == WEFT_OK && (stats.lane_steps != 0 || stats.slices_applied != 0)) {
			st = WEFT_DATA;
		}
	}
	return end(member, session, st);
}

static void
an_answer_that_asks_no_lane_comes_before_the_word_that_says_so(void **state)
{
	(void)state;
	run_members(ask_where_nothing_is_pushed, NULL);
}

static enum weft_status
leave_unanswered(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *w = NULL;
	enum weft_status st = one_tensor(&member->opts, ROWS, 1, &session, &w);
	return end(member, session, st);
}

/* GOODBYE is the fifth message of a trainer that does nothing else. The lane receives it and all
 * that follows later than the trainer waits by far: a delay by chance may be as short as that. */
static void
who_did_not_answer_is_told_by_the_thread_that_waited(void **state)
{
	struct fabric fabric;
	struct member member;
	(void)state;
	fabric_start_over(&fabric, "fault(delay@msg:5-99:5s)+tcp", 1, 1, 0, 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.transport = "tcp";
	member.opts.progress = WEFT_PROGRESS_THREAD;
	member.opts.reconnect_timeout_ns = 30 * WF_NS_PER_MS;
	member.run = leave_unanswered;
	members_run(&member, 1);
	fabric_stop(&fabric);
	assert_ended(&member, WEFT_LOST, "did not acknowledge GOODBYE within 0.0 s");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_that_is_begun_without_a_wait_comes_behind_the_answers),
		cmocka_unit_test(a_reduce_comes_behind_the_answer_to_one_that_was_left),
		cmocka_unit_test(the_lanes_answers_come_before_the_word_that_says_so),
		cmocka_unit_test(an_answer_that_asks_no_lane_comes_before_the_word_that_says_so),
		cmocka_unit_test(who_did_not_answer_is_told_by_the_thread_that_waited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
