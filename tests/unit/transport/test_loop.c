/* SPDX-License-Identifier: Apache-2.0 */
/* The loop alone: each transition of the sleep state, and each order in which up to three events
 * fall into the gaps between arm, poll and wait. The medium is a toy of three connections: a
 * descriptor that becomes readable, a word that another thread hands over with a kick, and work
 * that the owner itself leaves; time stands still until a sleep or an event moves it.
 * Thread: the test's, and in the last test one that kicks. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/loop.h"

/* ---- the sleep state, transition by transition ---- */

enum input {
	ARM,
	ARM_QUIET,
	POLL_EVENTS,
	POLL_EMPTY,
	WAIT_ALL, /* one descriptor was readable */
	WAIT_TIMEOUT,
	INPUTS,
};

#define STATES 4

/* As the table in loop.h says. */
static const enum wf_loop_state after[STATES][INPUTS] = {
	[WF_LOOP_AWAKE] = {WF_LOOP_ARMED, WF_LOOP_LOOKING, WF_LOOP_AWAKE, WF_LOOP_AWAKE,
			   WF_LOOP_AWAKE, WF_LOOP_ASLEEP},
	[WF_LOOP_ARMED] = {WF_LOOP_ARMED, WF_LOOP_LOOKING, WF_LOOP_AWAKE, WF_LOOP_ASLEEP,
			   WF_LOOP_AWAKE, WF_LOOP_ASLEEP},
	[WF_LOOP_ASLEEP] = {WF_LOOP_LOOKING, WF_LOOP_LOOKING, WF_LOOP_AWAKE, WF_LOOP_AWAKE,
			    WF_LOOP_AWAKE, WF_LOOP_ASLEEP},
	[WF_LOOP_LOOKING] = {WF_LOOP_LOOKING, WF_LOOP_LOOKING, WF_LOOP_AWAKE, WF_LOOP_ASLEEP,
			     WF_LOOP_AWAKE, WF_LOOP_ASLEEP},
};

/* ---- the toy ---- */

enum kind {
	LINE,  /* another process writes: a descriptor is readable */
	KICK,  /* another thread hands a word over, and kicks */
	TIME,  /* time goes on, beyond the timer that runs from the beginning */
	WORK,  /* the owner leaves work: a connection is ready */
	TIMER, /* the owner sets a timer that is earlier than what arm said */
	KINDS,
};

/* Where an event falls. */
enum gap {
	BEFORE_ARM,
	BEFORE_POLL, /* between arm and poll */
	IN_POLL,     /* behind its look, before its end */
	BEFORE_WAIT,
	IN_WAIT, /* the caller sleeps */
	GAPS,
};

#define EVENTS_MAX 3u
#define RUN_NS 1000ull /* the first timer is due then */
#define SOON_NS 10ull  /* TIMER is due so much later */
#define TURNS_MAX 12u  /* of a caller that has EVENTS_MAX events to come */
/* Three kinds fall into five gaps, and the owner's two into three, or into two where it skips the
 * poll: up to three of 21, or of 19, each in eight modes. */
#define SCHEDULES (8u * (21u + 21u * 21u + 21u * 21u * 21u + 19u + 19u * 19u + 19u * 19u * 19u))

struct step {
	enum kind kind;
	enum gap gap;
};

struct toy {
	struct wf_env env; /* first */
	struct wf_loop loop;
	uint64_t now_ns;
	unsigned clock_reads;

	struct wf_loop_source line_source;
	int line_fd;
	bool readable;
	struct wf_loop_ready line, word, work;
	_Atomic unsigned words; /* handed over */
	unsigned words_seen, works, timer_set;
	uint64_t deadline_ns; /* of the timer that runs */

	/* What is to come, and what came. */
	struct step step[EVENTS_MAX];
	unsigned step_count, step_next;
	unsigned due, delivered; /* events that happened; that a poll brought */
	bool slept_over;         /* something was there, and nothing ended the sleep */
	bool rested;             /* nothing was there, and nothing ended it */
};

static struct toy *
toy_of(struct wf_env *env)
{
	return (struct toy *)env;
}

static uint64_t
toy_now_ns(struct wf_env *env)
{
	toy_of(env)->clock_reads++;
	return toy_of(env)->now_ns;
}

static void
happen(struct toy *toy, enum kind kind)
{
	uint64_t one = 1;
	switch (kind) {
	case LINE:
		assert_int_equal(write(toy->line_fd, &one, sizeof(one)), sizeof(one));
		break;
	case KICK:
		(void)atomic_fetch_add_explicit(&toy->words, 1,
						memory_order_release); /* see on_wake */
		wf_loop_kick(&toy->loop);
		break;
	case TIME:
		toy->now_ns += RUN_NS;
		break;
	case WORK:
		toy->works++;
		wf_loop_push(&toy->loop, &toy->work);
		break;
	case TIMER:
		toy->timer_set++;
		toy->deadline_ns = toy->now_ns + SOON_NS;
		wf_loop_timer_before(&toy->loop, toy->deadline_ns);
		break;
	case KINDS:
		break;
	}
}

/* Let happen what falls here. One event in a sleep, then the descriptors are looked at again. */
static bool
reach(struct toy *toy, enum gap gap)
{
	bool any = false;
	while (toy->step_next < toy->step_count && toy->step[toy->step_next].gap == gap &&
	       !(any && gap == IN_WAIT)) {
		enum kind kind = toy->step[toy->step_next++].kind;
		toy->due += kind == TIME ? 0 : 1;
		happen(toy, kind);
		any = true;
	}
	return any;
}

/* The sleep: nothing but a descriptor or the deadline ends it. `events` NULL: they stay where they
 * are. */
static int
sleep_on(struct toy *toy, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events, int max)
{
	struct pollfd fd = {.fd = epoll_fd, .events = POLLIN};
	for (;;) {
		int count = events == NULL ? poll(&fd, 1, 0) : epoll_wait(epoll_fd, events, max, 0);
		if (count != 0 || deadline_ns <= toy->now_ns) {
			return count;
		}
		if (reach(toy, IN_WAIT)) {
			continue;
		}
		if (deadline_ns != WF_NEVER) {
			toy->now_ns = deadline_ns;
			return 0;
		}
		toy->slept_over = toy->delivered < toy->due || toy->deadline_ns != WF_NEVER;
		toy->rested = !toy->slept_over && toy->step_next == toy->step_count;
		return 0; /* what is still to come falls elsewhere: the wait returns early */
	}
}

static int
toy_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events,
		int max)
{
	return sleep_on(toy_of(env), epoll_fd, deadline_ns, events, max);
}

static void
toy_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	(void)sleep_on(toy_of(env), fd, deadline_ns, NULL, 0);
}

static const struct wf_env_ops toy_ops = {
	.now_ns = toy_now_ns, .wait = toy_wait, .wait_events = toy_wait_events};

static void
on_line(struct wf_loop_source *source, uint32_t mask)
{
	struct toy *toy = WF_LOOP_OWNER(source, struct toy, line_source);
	assert_true((mask & EPOLLIN) != 0);
	toy->readable = true;
	wf_loop_push(&toy->loop, &toy->line);
}

static void
on_wake(struct wf_loop *loop)
{
	struct toy *toy = WF_LOOP_OWNER(loop, struct toy, loop);
	/* happen's release */
	if (atomic_load_explicit(&toy->words, memory_order_acquire) != toy->words_seen) {
		wf_loop_push(&toy->loop, &toy->word);
	}
}

static struct wf_loop *shared; /* of those that are opened next; NULL: they have their own */

static struct toy *
toy_open(struct toy *toy)
{
	*toy = (struct toy){.env = {.ops = &toy_ops},
			    .line_source = {.notify = on_line},
			    .now_ns = 1,
			    .deadline_ns = WF_NEVER};
	wf_loop_init(&toy->loop, &toy->env, on_wake);
	toy->loop.owner = shared;
	assert_int_equal(wf_loop_open(&toy->loop), WEFT_OK);
	toy->line_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(toy->line_fd >= 0);
	assert_int_equal(
		wf_loop_watch(&toy->loop, toy->line_fd, EPOLLIN | EPOLLET, &toy->line_source),
		WEFT_OK);
	return toy;
}

static void
toy_close(struct toy *toy)
{
	assert_int_equal(close(toy->line_fd), 0);
	wf_loop_close(&toy->loop);
}

/* What one connection brings: one event at least, if it was ready for something. */
static unsigned
visit(struct toy *toy, struct wf_loop_ready *ready)
{
	unsigned brought = 0;
	uint64_t count = 0;
	if (ready == &toy->line && toy->readable) {
		toy->readable = false;
		brought = read(toy->line_fd, &count, sizeof(count)) > 0 ? (unsigned)count : 0;
	} else if (ready == &toy->word) {
		unsigned words = atomic_load_explicit(&toy->words, memory_order_acquire);
		brought = words - toy->words_seen;
		toy->words_seen = words;
	} else if (ready == &toy->work) {
		brought = toy->works;
		toy->works = 0;
	}
	return brought;
}

static unsigned
run_timers(struct toy *toy)
{
	uint64_t now_ns = wf_loop_now_ns(&toy->loop);
	toy->loop.timer_ns = WF_NEVER;
	if (now_ns < toy->deadline_ns) {
		wf_loop_timer_before(&toy->loop, toy->deadline_ns);
		return 0;
	}
	toy->deadline_ns = WF_NEVER;
	unsigned brought = toy->timer_set;
	toy->timer_set = 0;
	return brought;
}

/* Epoll is asked when the loop says so, and never else. One visit a poll if `narrow`: the others
 * wait for the next. */
static unsigned
poll_once(struct toy *toy, bool narrow)
{
	struct wf_loop *loop = &toy->loop;
	unsigned brought = 0;
	wf_loop_begin(loop);
	bool due = wf_loop_timer_is_due(loop);
	if (due || wf_loop_must_look(loop)) {
		assert_true(wf_loop_collect(loop));
	}
	brought += due ? run_timers(toy) : 0;
	for (unsigned left = loop->ready_count; left > 0 && (brought == 0 || !narrow); left--) {
		brought += visit(toy, wf_loop_pop(loop));
	}
	(void)reach(toy, IN_POLL);
	if (wf_loop_end(loop, brought)) {
		wf_loop_rest(loop);
	}
	toy->delivered += brought;
	return brought;
}

/* Nobody is ready, and no other can be without a descriptor. */
static bool
is_quiet(const struct toy *toy)
{
	return toy->loop.ready_count == 0;
}

/* How a caller lives. */
struct mode {
	bool narrow;
	bool skips; /* a quiet arm spares it the poll */
	bool timer; /* one runs from the beginning */
	bool by_fd; /* it sleeps on the descriptor by itself */
};

/* A caller as a lane is one: turns, and a sleep where a turn brings nothing. */
static void
live(struct toy *toy, struct mode mode)
{
	unsigned turns = 0;
	while (!toy->slept_over && !toy->rested) {
		assert_in_range(++turns, 1, TURNS_MAX); /* or it spins */
		(void)reach(toy, BEFORE_ARM);
		bool quiet = mode.skips && is_quiet(toy);
		wf_loop_arm(&toy->loop, quiet, toy->loop.timer_ns);
		uint64_t deadline_ns = toy->loop.armed_ns;
		(void)reach(toy, BEFORE_POLL);
		if (!quiet && poll_once(toy, mode.narrow) > 0) {
			continue;
		}
		(void)reach(toy, BEFORE_WAIT);
		if (mode.by_fd) {
			wf_wait(&toy->env, toy->loop.epoll_fd, deadline_ns);
		} else {
			wf_loop_wait(&toy->loop, deadline_ns);
		}
		(void)poll_once(toy, mode.narrow);
	}
}

/* The owner is at work there, so it may leave work and set timers. */
static bool
is_allowed(const struct step *step, bool skips)
{
	bool owner = step->kind == WORK || step->kind == TIMER;
	return !owner || step->gap == BEFORE_ARM || step->gap == IN_POLL ||
	       (step->gap == BEFORE_POLL && !skips);
}

static void
run(const struct step *steps, unsigned count, struct mode mode)
{
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	memcpy(toy->step, steps, count * sizeof(steps[0]));
	toy->step_count = count;
	if (mode.timer) {
		toy->deadline_ns = toy->now_ns + RUN_NS;
		wf_loop_timer_before(&toy->loop, toy->deadline_ns);
	}
	live(toy, mode);
	if (toy->slept_over || toy->step_next < count || toy->delivered != toy->due) {
		for (unsigned i = 0; i < count; i++) {
			print_message("event %d in gap %d\n", steps[i].kind, steps[i].gap);
		}
		fail_msg("narrow %d, skips %d, timer %d, by_fd %d: %u of %u events, %u of %u steps",
			 mode.narrow, mode.skips, mode.timer, mode.by_fd, toy->delivered, toy->due,
			 toy->step_next, count);
	}
	toy_close(toy);
}

/* Every choice of `count` events, in every order, in every gap. Returns how many there are. */
static unsigned
run_all(unsigned count, struct mode mode)
{
	const unsigned choices = KINDS * GAPS;
	unsigned total = 1, ran = 0;
	for (unsigned i = 0; i < count; i++) {
		total *= choices;
	}
	for (unsigned number = 0; number < total; number++) {
		struct step steps[EVENTS_MAX] = {0};
		bool allowed = true;
		for (unsigned i = 0, rest = number; i < count; i++, rest /= choices) {
			steps[i] = (struct step){.kind = (enum kind)(rest % choices / GAPS),
						 .gap = (enum gap)(rest % GAPS)};
			allowed = allowed && is_allowed(&steps[i], mode.skips);
		}
		if (allowed) {
			run(steps, count, mode);
			ran++;
		}
	}
	return ran;
}

static void
nobody_sleeps_over_what_is_there(void **state)
{
	(void)state;
	unsigned ran = 0;
	for (unsigned count = 1; count <= EVENTS_MAX; count++) {
		for (unsigned i = 0; i < 16; i++) {
			ran += run_all(count, (struct mode){.narrow = (i & 1) != 0,
							    .skips = (i & 2) != 0,
							    .timer = (i & 4) != 0,
							    .by_fd = (i & 8) != 0});
		}
	}
	assert_int_equal(ran, SCHEDULES);
}

/* ---- transitions ---- */

/* By calls, as a caller would get there. */
static void
reach_state(struct toy *toy, enum wf_loop_state state)
{
	struct wf_loop *loop = &toy->loop;
	if (state != WF_LOOP_AWAKE) {
		wf_loop_arm(loop, state == WF_LOOP_LOOKING, WF_NEVER);
	}
	if (state == WF_LOOP_ASLEEP) {
		wf_loop_begin(loop);
		assert_true(wf_loop_end(loop, 0));
	}
	assert_int_equal(loop->state, state);
}

static void
apply(struct toy *toy, enum input input)
{
	struct wf_loop *loop = &toy->loop;
	bool rests = false;
	switch (input) {
	case ARM:
	case ARM_QUIET:
		wf_loop_arm(loop, input == ARM_QUIET, 77);
		assert_int_equal(loop->armed_ns, 77);
		break;
	case POLL_EVENTS:
	case POLL_EMPTY:
		wf_loop_begin(loop);
		rests = wf_loop_end(loop, input == POLL_EVENTS ? 3 : 0);
		assert_int_equal(rests, loop->state == WF_LOOP_ASLEEP);
		break;
	case WAIT_ALL:
		happen(toy, LINE);
		wf_loop_wait(loop, WF_NEVER);
		assert_true(toy->readable);
		break;
	case WAIT_TIMEOUT:
		wf_loop_wait(loop, toy->now_ns);
		break;
	case INPUTS:
		break;
	}
}

static void
each_transition_is_that_of_the_table(void **state)
{
	(void)state;
	for (unsigned from = 0; from < STATES; from++) {
		for (unsigned input = 0; input < INPUTS; input++) {
			struct toy toy_memory, *toy = toy_open(&toy_memory);
			reach_state(toy, (enum wf_loop_state)from);
			apply(toy, (enum input)input);
			if (toy->loop.state != after[from][input]) {
				fail_msg("state %u, input %u: %d", from, input, toy->loop.state);
			}
			enum wf_loop_state is = toy->loop.state;
			assert_int_equal(wf_loop_is_armed(&toy->loop),
					 is == WF_LOOP_ARMED || is == WF_LOOP_LOOKING);
			assert_int_equal(wf_loop_must_look(&toy->loop),
					 is == WF_LOOP_ASLEEP || is == WF_LOOP_LOOKING);
			toy_close(toy);
		}
	}
}

/* An empty poll of an armed caller, with one thing left, or none. True: the sleep ends at once. */
static bool
ends_the_sleep(bool left, bool ready, uint64_t timer_ns, uint64_t armed_ns)
{
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	struct wf_loop *loop = &toy->loop;
	struct epoll_event event;
	wf_loop_arm(loop, false, armed_ns);
	wf_loop_begin(loop);
	loop->left = left;
	wf_loop_timer_before(loop, timer_ns);
	if (ready) {
		wf_loop_push(loop, &toy->work);
	}
	assert_true(wf_loop_end(loop, 0));
	wf_loop_rest(loop);
	bool ends = epoll_wait(loop->epoll_fd, &event, 1, 0) == 1;
	toy_close(toy);
	return ends;
}

static void
what_an_empty_poll_leaves_ends_the_sleep(void **state)
{
	(void)state;
	assert_false(ends_the_sleep(false, false, WF_NEVER, WF_NEVER));
	assert_true(ends_the_sleep(true, false, WF_NEVER, WF_NEVER));
	assert_true(ends_the_sleep(false, true, WF_NEVER, WF_NEVER));
	assert_true(ends_the_sleep(false, false, 5, WF_NEVER));
	assert_true(ends_the_sleep(false, false, 5, 6));
	assert_false(ends_the_sleep(false, false, 5, 5)); /* the caller knows of it */
	assert_false(ends_the_sleep(false, false, 5, 0));
}

/* ---- the rest ---- */

static void
the_ready_come_in_the_order_in_which_they_were_queued_once_each(void **state)
{
	(void)state;
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	struct wf_loop *loop = &toy->loop;
	wf_loop_push(loop, &toy->word);
	wf_loop_push(loop, &toy->line);
	wf_loop_push(loop, &toy->word);
	assert_int_equal(loop->ready_count, 2);
	assert_ptr_equal(wf_loop_pop(loop), &toy->word);
	wf_loop_push(loop, &toy->word); /* behind the other */
	wf_loop_push(loop, &toy->work);
	assert_ptr_equal(wf_loop_pop(loop), &toy->line);
	assert_ptr_equal(wf_loop_pop(loop), &toy->word);
	assert_ptr_equal(wf_loop_pop(loop), &toy->work);
	assert_int_equal(loop->ready_count, 0);
	assert_null(loop->ready_first);
	assert_null(loop->ready_last);
	toy_close(toy);
}

static void
the_clock_is_read_once_a_poll_and_only_when_asked(void **state)
{
	(void)state;
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	struct wf_loop *loop = &toy->loop;
	wf_loop_begin(loop);
	assert_false(wf_loop_timer_is_due(loop)); /* there is none */
	assert_int_equal(toy->clock_reads, 0);
	assert_int_equal(wf_loop_now_ns(loop), 1);
	toy->now_ns = 9;
	assert_int_equal(wf_loop_now_ns(loop), 1);
	assert_int_equal(toy->clock_reads, 1);
	wf_loop_timer_before(loop, 8);
	wf_loop_timer_before(loop, 20);
	assert_int_equal(loop->timer_ns, 8);
	assert_false(wf_loop_timer_is_due(loop));
	wf_loop_begin(loop);
	assert_int_equal(wf_loop_turns_blind(loop), 1);
	assert_true(wf_loop_timer_is_due(loop));
	assert_int_equal(wf_loop_turns_blind(loop), 0);
	assert_int_equal(toy->clock_reads, 2);
	toy_close(toy);
}

static void
more_sources_than_one_call_brings_are_collected_by_several(void **state)
{
	(void)state;
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	int fd[WF_LOOP_EVENTS];
	toy->loop.turn = 41;
	for (unsigned i = 0; i < WF_LOOP_EVENTS; i++) {
		fd[i] = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
		assert_int_equal(
			wf_loop_watch(&toy->loop, fd[i], EPOLLIN | EPOLLET, &toy->line_source),
			WEFT_OK);
	}
	assert_false(wf_loop_collect(&toy->loop));
	assert_int_equal(toy->loop.look_turn, 41);
	assert_true(wf_loop_collect(&toy->loop));
	happen(toy, LINE);
	for (unsigned i = 0; i + 1 < WF_LOOP_EVENTS; i++) {
		assert_int_equal(write(fd[i], &(uint64_t){1}, 8), 8);
	}
	wf_loop_wait(&toy->loop, WF_NEVER);
	assert_int_equal(toy->loop.state, WF_LOOP_ASLEEP); /* there may be more */
	for (unsigned i = 0; i < WF_LOOP_EVENTS; i++) {
		(void)close(fd[i]);
	}
	toy_close(toy);
}

static void
a_source_is_called_while_it_is_watched_for_what_it_is_watched(void **state)
{
	(void)state;
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	struct wf_loop *loop = &toy->loop;
	wf_loop_watch_change(loop, toy->line_fd, EPOLLPRI | EPOLLET, &toy->line_source);
	happen(toy, LINE);
	assert_true(wf_loop_collect(loop));
	assert_false(toy->readable);
	wf_loop_watch_change(loop, toy->line_fd, EPOLLIN | EPOLLET, &toy->line_source);
	assert_true(wf_loop_collect(loop));
	assert_true(toy->readable);
	toy->readable = false;
	wf_loop_unwatch(loop, toy->line_fd);
	happen(toy, LINE);
	assert_true(wf_loop_collect(loop));
	assert_false(toy->readable);
	toy_close(toy);
}

static void
a_descriptor_that_is_none_cannot_be_watched(void **state)
{
	(void)state;
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	assert_int_equal(wf_loop_watch(&toy->loop, -1, EPOLLIN, &toy->line_source), WEFT_IO);
	toy_close(toy);
	struct wf_loop closed;
	wf_loop_init(&closed, &toy->env, NULL);
	wf_loop_close(&closed);
	wf_loop_close(&toy->loop); /* once more */
}

/* ---- members ---- */

/* True: that was one look of `looker`, and of the two only what is named was called and noticed. */
static bool
one_is_noticed(struct toy *looker, const struct toy *called, struct toy *other)
{
	bool told = false;
	looker->loop.member.told = &told;
	assert_true(wf_loop_collect(&looker->loop));
	looker->loop.member.told = NULL;
	bool good = told == (called != looker) && !looker->loop.member.noticed && !looker->readable;
	good = good && other->loop.member.noticed == (called == other) && !other->readable;
	other->loop.member.noticed = false;
	return good;
}

static void
members_look_for_each_other(void **state)
{
	(void)state;
	struct toy owner_memory, *top = toy_open(&owner_memory);
	struct toy toy_memory[3], *toy[3];
	shared = &top->loop;
	for (unsigned i = 0; i < 3; i++) {
		toy[i] = toy_open(&toy_memory[i]);
		assert_int_equal(toy[i]->loop.epoll_fd, top->loop.epoll_fd);
	}
	shared = NULL;
	toy_close(toy[1]);
	assert_ptr_equal(top->loop.member.first, &toy[2]->loop);
	assert_ptr_equal(toy[2]->loop.member.next, &toy[0]->loop);
	happen(toy[2], LINE); /* whoever looks calls its source, and it is noticed */
	assert_true(wf_loop_collect(&toy[0]->loop));
	assert_true(toy[2]->readable && toy[2]->loop.member.noticed &&
		    !toy[0]->loop.member.noticed);
	toy[2]->readable = false;
	toy[2]->loop.member.noticed = false;
	happen(toy[2], KICK);
	assert_true(one_is_noticed(toy[0], toy[2], toy[2]));
	assert_ptr_equal(wf_loop_pop(&toy[2]->loop), &toy[2]->line);
	assert_ptr_equal(wf_loop_pop(&toy[2]->loop), &toy[2]->word);
	happen(toy[0], KICK);
	assert_true(one_is_noticed(toy[0], toy[0], toy[2]));
	wf_loop_kick(&top->loop); /* it ends a sleep, and is for nobody */
	assert_true(one_is_noticed(toy[0], toy[0], toy[2]));
	toy_close(toy[0]);
	happen(toy[2], LINE);
	assert_true(wf_loop_collect(&top->loop)); /* a look of the owner is one, too */
	assert_true(toy[2]->readable && toy[2]->loop.member.noticed);
	toy_close(toy[2]);
	assert_null(top->loop.member.first);
	toy_close(top);
}

/* Its descriptors stay readable, and its sources are called in its own look only. */
static void
a_member_that_is_apart_looks_for_itself(void **state)
{
	(void)state;
	struct toy owner_memory, *top = toy_open(&owner_memory);
	struct toy toy_memory[2], *toy[2];
	shared = &top->loop;
	toy[0] = toy_open(&toy_memory[0]);
	toy[1] = toy_open(&toy_memory[1]);
	shared = NULL;
	struct wf_loop *apart = &toy[1]->loop;
	apart->member.apart = true;
	wf_loop_watch_change(apart, toy[1]->line_fd, EPOLLIN, &toy[1]->line_source);
	happen(toy[1], LINE);
	assert_true(one_is_noticed(toy[0], toy[1], toy[1]));
	assert_true(wf_loop_collect(apart));
	assert_true(toy[1]->readable);
	assert_ptr_equal(wf_loop_pop(apart), &toy[1]->line);
	toy[1]->readable = false;
	assert_int_equal(read(toy[1]->line_fd, &(uint64_t){0}, 8), 8);
	happen(toy[1], KICK); /* of which the descriptor tells once */
	assert_true(one_is_noticed(toy[0], toy[1], toy[1]));
	assert_int_equal(apart->ready_count, 0);
	assert_true(wf_loop_collect(apart));
	assert_ptr_equal(wf_loop_pop(apart), &toy[1]->word);
	toy[1]->words_seen = 1;
	assert_true(wf_loop_collect(apart));
	assert_int_equal(apart->ready_count, 0);
	toy_close(toy[1]);
	toy_close(toy[0]);
	toy_close(top);
}

/* ---- and with a thread ---- */

#define WORDS 2000u

struct giver {
	struct toy *toy;
	_Atomic unsigned seen; /* words that the owner has */
};

/* Each word comes when the one before was seen: the owner is anywhere between arm and sleep. */
static void *
hand_over(void *arg)
{
	struct giver *giver = arg;
	for (unsigned i = 0; i < WORDS; i++) {
		happen(giver->toy, KICK);
		/* a_thread_that_kicks_is_heard's release */
		while (atomic_load_explicit(&giver->seen, memory_order_acquire) <= i) {
			sched_yield();
		}
	}
	return NULL;
}

static int
real_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events,
		 int max)
{
	(void)env;
	assert_true(deadline_ns == WF_NEVER);
	return epoll_wait(epoll_fd, events, max, -1);
}

static void
a_thread_that_kicks_is_heard(void **state)
{
	(void)state;
	static const struct wf_env_ops real_ops = {.now_ns = toy_now_ns,
						   .wait_events = real_wait_events};
	struct toy toy_memory, *toy = toy_open(&toy_memory);
	struct giver giver = {.toy = toy};
	pthread_t thread;
	toy->env.ops = &real_ops;
	assert_int_equal(pthread_create(&thread, NULL, hand_over, &giver), 0);
	while (toy->delivered < WORDS) {
		wf_loop_arm(&toy->loop, (toy->delivered & 1) != 0, WF_NEVER);
		if ((toy->delivered & 1) != 0 || poll_once(toy, false) == 0) {
			wf_loop_wait(&toy->loop, WF_NEVER);
			(void)poll_once(toy, false);
		}
		/* hand_over's acquire */
		atomic_store_explicit(&giver.seen, toy->delivered, memory_order_release);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(toy->delivered, WORDS);
	toy_close(toy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_transition_is_that_of_the_table),
		cmocka_unit_test(what_an_empty_poll_leaves_ends_the_sleep),
		cmocka_unit_test(nobody_sleeps_over_what_is_there),
		cmocka_unit_test(the_ready_come_in_the_order_in_which_they_were_queued_once_each),
		cmocka_unit_test(the_clock_is_read_once_a_poll_and_only_when_asked),
		cmocka_unit_test(more_sources_than_one_call_brings_are_collected_by_several),
		cmocka_unit_test(a_source_is_called_while_it_is_watched_for_what_it_is_watched),
		cmocka_unit_test(a_descriptor_that_is_none_cannot_be_watched),
		cmocka_unit_test(members_look_for_each_other),
		cmocka_unit_test(a_member_that_is_apart_looks_for_itself),
		cmocka_unit_test(a_thread_that_kicks_is_heard),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
