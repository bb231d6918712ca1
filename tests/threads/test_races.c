/* SPDX-License-Identifier: Apache-2.0 */
/* Ends at arbitrary moments: closes and aborts beside running steps, pservers that stop. Every call
 * returns, with success or with a status that has a text; nothing is left behind. */
#include <sched.h>

#include "base/rng.h"
#include "tests/unit/trainer/fabric.h"
#include "trainer/session/driver.h"

#define ROUNDS 10 /* WEFT_LONG: ten times as many; a failed job takes a pserver a second */
#define TRAINERS 2
#define TOLD_WITHIN_NS (60 * WF_NS_PER_S) /* then the owner asks itself */

enum ending {
	END_CLOSE,        /* after the answers */
	END_CLOSE_PUSHED, /* with pushes unanswered */
	END_ABORT,        /* with pushes unanswered */
	END_COUNT,
};

/* What a trainer does, drawn before it starts. */
struct fate {
	unsigned steps;
	enum ending ending;
};

static uint64_t
seed_of_test(void)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static unsigned
rounds(void)
{
	return getenv("WEFT_LONG") == NULL ? ROUNDS : 10 * ROUNDS;
}

static enum weft_status
meet_fate(struct member *member)
{
	const struct fate *fate = member->arg;
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = one_tensor(&member->opts, 100, 1, &session, &tensor);
	for (unsigned i = 0; i < fate->steps && st == WEFT_OK; i++) {
		st = weft_exchange(session, 1, 0);
	}
	(void)member_note(member, st);
	if (st == WEFT_OK && fate->ending != END_CLOSE) {
		st = weft_step(session, 1, 0);
		st = st != WEFT_OK ? st : weft_push(tensor);
	}
	if (fate->ending == END_ABORT) {
		weft_session_abort(session, WEFT_ABORTED, "drawn by lot");
		return member->status;
	}
	enum weft_status end = weft_session_close(session);
	return member->status != WEFT_OK ? member->status : end;
}

/* Whatever came first, it has a text; and only what can happen here happens. */
static void
assert_told(const struct member *member)
{
	switch ((int)member->status) {
	case WEFT_OK:
		return;
	case WEFT_LOST:
	case WEFT_ABORTED:
		assert_true(member->text[0] != '\0');
		return;
	default:
		fail_msg("trainer %u: %s: %s", member->id, weft_status_name(member->status),
			 member->text);
	}
}

static void
draw(struct fabric *fabric, struct wf_rng *rng, struct member *member, struct fate *fate)
{
	for (unsigned i = 0; i < TRAINERS; i++) {
		member_init(&member[i], fabric, i, TRAINERS);
		fate[i].steps = (unsigned)wf_rng_below(rng, 20);
		fate[i].ending = (enum ending)wf_rng_below(rng, END_COUNT);
		member[i].opts.slice_bytes = 64;
		member[i].opts.spin_ns = wf_rng_below(rng, 2) * 20 * WF_NS_PER_US;
		member[i].opts.reconnect_timeout_ns = WF_NS_PER_S;
		member[i].opts.connect_timeout_ns = 10 * WF_NS_PER_S;
		member[i].run = meet_fate;
		member[i].arg = &fate[i];
	}
}

static void
trainers_may_end_at_any_moment(void **state)
{
	struct wf_rng rng;
	(void)state;
	wf_rng_init(&rng, seed_of_test(), 1);
	for (unsigned round = 0; round < rounds(); round++) {
		struct fabric fabric;
		struct member member[TRAINERS];
		struct fate fate[TRAINERS];
		fabric_start(&fabric, 1, 2, 0);
		draw(&fabric, &rng, member, fate);
		members_run(member, TRAINERS);
		fabric_stop(&fabric);
		for (unsigned i = 0; i < TRAINERS; i++) {
			assert_told(&member[i]);
		}
	}
}

/* The main thread stops both pservers while the trainers train. */
static void
pservers_may_stop_at_any_moment(void **state)
{
	struct wf_rng rng;
	(void)state;
	wf_rng_init(&rng, seed_of_test(), 2);
	for (unsigned round = 0; round < rounds() / 2; round++) {
		struct fabric fabric;
		struct member member[TRAINERS];
		struct fate fate[TRAINERS];
		fabric_start(&fabric, 2, 2, 0);
		draw(&fabric, &rng, member, fate);
		for (unsigned i = 0; i < TRAINERS; i++) {
			fate[i] = (struct fate){.steps = 1000000, .ending = END_CLOSE};
			/* A stop before all have met leaves a trainer that looks for pservers. */
			member[i].opts.connect_timeout_ns = WF_NS_PER_S;
		}
		members_start(member, TRAINERS);
		wf_wait(fabric.env, -1,
			wf_now_ns(fabric.env) + wf_rng_below(&rng, 100 * WF_NS_PER_MS));
		fabric_stop(&fabric); /* frees everything of the pservers */
		members_join(member, TRAINERS);
		for (unsigned i = 0; i < TRAINERS; i++) {
			bool late = member[i].status == WEFT_TIMEOUT; /* it never met them */
			if (!late) {
				assert_told(&member[i]);
			}
			assert_true(member[i].status != WEFT_OK && member[i].text[0] != '\0');
		}
	}
}

static _Atomic unsigned started; /* relaxed: it orders nothing */

/* The calling thread starts a session, and the session's thread is to run before it goes on. */
static _Thread_local bool thread_comes_first;

/* The session's thread may run before the session has anything to do: it then sleeps until the
 * transport wakes it, however long that takes. And the owner takes that from it when it sleeps on
 * the transport itself: as if it had done so once. */
static void
let_thread_come_first(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	while (atomic_load_explicit(&progress->until_ns, memory_order_seq_cst) == 0 ||
	       !wf_driver_claim(session, WF_DRIVER_OWNER)) {
		(void)sched_yield();
	}
	wf_driver_watch(session, false);
	wf_driver_release(session);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int
__wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		      void *arg)
{
	int err = __real_pthread_create(thread, attr, run, arg);
	if (err == 0 && thread_comes_first) {
		let_thread_come_first(arg);
	}
	return err;
}

static enum weft_status
start_behind_its_thread(const struct weft_session_opts *opts, struct weft_session **session)
{
	const struct weft_tensor_opts w = {.name = "w", .rows = 1};
	struct weft_tensor *tensor;
	enum weft_status st = weft_session_open(opts, session);
	st = st != WEFT_OK ? st : weft_tensor_add(*session, &w, &tensor);
	st = st != WEFT_OK ? st : weft_session_seal(*session);
	thread_comes_first = true;
	st = st != WEFT_OK ? st : weft_session_start(*session);
	thread_comes_first = false;
	return st;
}

/* Notices a failure without any call that would put it in order behind the thread that failed. */
static enum weft_status
call_after_the_failure(struct member *member)
{
	struct weft_session *session = NULL;
	struct weft_tensor *tensor;
	enum weft_status st = member->arg != NULL
				      ? start_behind_its_thread(&member->opts, &session)
				      : one_tensor(&member->opts, 100, 1, &session, &tensor);
	atomic_store_explicit(&started, 1, memory_order_relaxed);
	uint64_t late_ns = st == WEFT_OK ? wf_now_ns(session->core.end.env) + TOLD_WITHIN_NS : 0;
	while (st == WEFT_OK && atomic_load_explicit(&session->core.failure.status,
						     memory_order_relaxed) == WEFT_OK) {
		(void)sched_yield();
		st = wf_now_ns(session->core.end.env) < late_ns ? st : WEFT_TIMEOUT;
	}
	st = st != WEFT_OK ? st : weft_poll(session); /* looks at that word once */
	(void)member_note(member, st);
	(void)weft_session_close(session);
	return member->status;
}

static void
lose_the_pserver(const void *thread_first)
{
	struct fabric fabric;
	struct member member;
	atomic_store_explicit(&started, 0, memory_order_relaxed);
	fabric_start(&fabric, 1, 1, 0);
	member_init(&member, &fabric, 0, 1);
	member.opts.reconnect_timeout_ns = 100 * WF_NS_PER_MS;
	member.opts.spin_ns = 0;
	member.run = call_after_the_failure;
	member.arg = thread_first;
	members_start(&member, 1);
	while (atomic_load_explicit(&started, memory_order_relaxed) == 0) {
		(void)sched_yield();
	}
	fabric_stop(&fabric);
	members_join(&member, 1);
	assert_told(&member);
	assert_true(member.status != WEFT_OK && member.text[0] != '\0');
}

static void
whoever_calls_after_a_failure_reads_its_text(void **state)
{
	(void)state;
	lose_the_pserver(NULL);
}

static void
a_thread_without_a_deadline_hears_of_a_failure(void **state)
{
	static const bool yes = true;
	(void)state;
	lose_the_pserver(&yes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trainers_may_end_at_any_moment),
		cmocka_unit_test(pservers_may_stop_at_any_moment),
		cmocka_unit_test(whoever_calls_after_a_failure_reads_its_text),
		cmocka_unit_test(a_thread_without_a_deadline_hears_of_a_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
