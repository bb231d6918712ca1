/* SPDX-License-Identifier: Apache-2.0 */
/* Which paths a transport polls, and that nobody sleeps over what is there: two media that share
 * descriptors, and each order in which up to two events fall into the gaps between arm, the polls
 * of the two, and the wait. A medium has a descriptor, words that a task hands over with a kick,
 * and a timer; time stands still until a sleep moves it. Thread: the test's. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/sweep.h"
#include "transport/paths/paths_internal.h"

#define MEDIA 2u
#define EVENTS_MAX 2u
#define TURNS_MAX 120u /* of a caller that spins until the clock is looked at, twice at most */
#define STUCK_MAX 3u   /* sleeps, until a poll that does not come is not waited for */
#define RUN_NS (10 * WF_NS_PER_MS) /* the timer of the quiet one is due then */

enum kind {
	LINE, /* another process writes: a descriptor is readable */
	KICK, /* a task hands a word over, and kicks */
	KINDS,
};

/* Where an event falls. */
enum gap {
	BEFORE_ARM,
	BEFORE_POLL, /* between arm and poll */
	IN_FIRST,    /* at the end of the poll of the first medium, if it is polled */
	IN_SECOND,
	BEFORE_WAIT,
	IN_WAIT, /* the caller sleeps */
	GAPS,
};

struct step {
	enum kind kind;
	unsigned medium;
	enum gap gap;
};

/* How the caller lives, and what the media are like. */
struct mode {
	bool skips;   /* an arm that is quiet spares the poll */
	bool by_fd;   /* it sleeps on the descriptor by itself */
	bool apart;   /* sources of the second read what they are told of */
	bool timer;   /* one of the quiet medium runs from the beginning */
	bool waits;   /* the wait of a medium takes in what ended it */
	bool narrow;  /* one visit a poll: the others wait for the next */
	unsigned hot; /* 1 << medium, those that carry something */
};

struct medium {
	struct wf_transport transport; /* first */
	struct wf_loop loop;
	struct wf_loop_source line_source;
	struct wf_loop_ready line, word;
	int line_fd;
	bool readable, looking;
	unsigned words, words_seen, polls;
	uint64_t deadline_ns; /* of its timer */
};

static struct wf_env env;
static uint64_t now_ns;
static struct mode mode;
static struct medium media[MEDIA];
static unsigned media_count; /* opened */
static struct wf_transport *top;
static struct wf_conn shown; /* whose the events are */
static struct step step[EVENTS_MAX];
static unsigned step_count, step_next, due, delivered, stuck, turns, clock_reads;
static bool slept_over, rested;

static void
happen(const struct step *what)
{
	struct medium *m = &media[what->medium];
	uint64_t one = 1;
	due++;
	if (what->kind == LINE) {
		assert_int_equal(write(m->line_fd, &one, sizeof(one)), sizeof(one));
	} else {
		m->words++;
		wf_loop_kick(&m->loop);
	}
}

/* Let happen what falls here. One event in a sleep, then the descriptors are looked at again. */
static bool
reach(enum gap gap)
{
	bool any = false;
	while (step_next < step_count && step[step_next].gap == gap && !(any && gap == IN_WAIT)) {
		happen(&step[step_next++]);
		any = true;
	}
	return any;
}

static uint64_t
clock_ns(struct wf_env *unused)
{
	clock_reads++;
	return now_ns;
}

static bool
timer_runs(void)
{
	return media[0].deadline_ns != WF_NEVER || media[1].deadline_ns != WF_NEVER;
}

/* The sleep: nothing but a descriptor or the deadline ends it. `events` NULL: they stay. */
static int
sleep_on(int epoll_fd, uint64_t deadline_ns, struct epoll_event *events, int max)
{
	struct pollfd fd = {.fd = epoll_fd, .events = POLLIN};
	for (;;) {
		int count = events == NULL ? poll(&fd, 1, 0) : epoll_wait(epoll_fd, events, max, 0);
		if (count != 0 || deadline_ns <= now_ns) {
			return count;
		}
		if (reach(IN_WAIT)) {
			continue;
		}
		if (deadline_ns != WF_NEVER) {
			now_ns = deadline_ns;
			return 0;
		}
		slept_over = delivered < due || timer_runs();
		rested = !slept_over && (step_next == step_count || ++stuck == STUCK_MAX);
		return 0;
	}
}

static int
wait_events(struct wf_env *unused, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events,
	    int max)
{
	return sleep_on(epoll_fd, deadline_ns, events, max);
}

static void
wait_fd(struct wf_env *unused, int fd, uint64_t deadline_ns)
{
	(void)sleep_on(fd, deadline_ns, NULL, 0);
}

static void
no_host(struct wf_env *unused, uint8_t out[WF_HOST_ID_BYTES])
{
	memset(out, 0, WF_HOST_ID_BYTES);
}

/* ---- a medium ---- */

static struct medium *
medium_of(struct wf_transport *transport)
{
	return (struct medium *)transport;
}

static void
on_line(struct wf_loop_source *source, uint32_t mask)
{
	struct medium *m = WF_LOOP_OWNER(source, struct medium, line_source);
	assert_true(m->looking || !m->loop.member.apart);
	m->readable = true;
	wf_loop_push(&m->loop, &m->line);
}

static void
on_wake(struct wf_loop *loop)
{
	struct medium *m = WF_LOOP_OWNER(loop, struct medium, loop);
	assert_true(m->looking || !m->loop.member.apart);
	if (m->words != m->words_seen) {
		wf_loop_push(&m->loop, &m->word);
	}
}

static unsigned
visit(struct medium *m, const struct wf_loop_ready *ready)
{
	uint64_t count = 0;
	if (ready == &m->line && m->readable) {
		m->readable = false;
		return read(m->line_fd, &count, sizeof(count)) > 0 ? (unsigned)count : 0;
	}
	if (ready == &m->word) {
		count = m->words - m->words_seen;
		m->words_seen = m->words;
	}
	return (unsigned)count;
}

static enum weft_status
medium_poll(struct wf_transport *transport, struct wf_event *events, unsigned max, unsigned *count)
{
	struct medium *m = medium_of(transport);
	unsigned brought = 0;
	m->polls++;
	m->looking = true;
	wf_loop_begin(&m->loop);
	bool is_due = wf_loop_timer_is_due(&m->loop);
	if (is_due || wf_loop_must_look(&m->loop)) {
		assert_true(wf_loop_collect(&m->loop));
	}
	if (is_due) {
		m->loop.timer_ns = WF_NEVER;
		m->deadline_ns = WF_NEVER;
	}
	for (unsigned left = m->loop.ready_count; left > 0 && (brought == 0 || !mode.narrow);
	     left--) {
		brought += visit(m, wf_loop_pop(&m->loop));
	}
	(void)reach(m == &media[0] ? IN_FIRST : IN_SECOND);
	m->looking = false;
	delivered += brought;
	*count = brought > 0 ? 1 : 0;
	if (*count > 0) {
		events[0] = (struct wf_event){.kind = WF_EVENT_MSG, .conn = &shown};
	}
	if (wf_loop_end(&m->loop, *count)) {
		wf_loop_rest(&m->loop);
	}
	return WEFT_OK;
}

static bool
medium_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct medium *m = medium_of(transport);
	bool quiet = m->loop.ready_count == 0;
	*deadline_ns = quiet ? m->loop.timer_ns : 0;
	/* Who is apart need not look in the poll that follows: a line stays readable. */
	wf_loop_arm(&m->loop, quiet && !m->loop.member.apart, *deadline_ns);
	return quiet && !m->loop.member.apart;
}

static void
medium_wait(struct wf_transport *transport, uint64_t deadline_ns)
{
	struct medium *m = medium_of(transport);
	if (mode.waits) {
		m->looking = true;
		wf_loop_wait(&m->loop, deadline_ns);
		m->looking = false;
	} else {
		wf_wait_on_fd(transport, deadline_ns);
	}
}

static int
medium_wait_fd(struct wf_transport *transport)
{
	return medium_of(transport)->loop.epoll_fd;
}

static void
medium_wake(struct wf_transport *transport)
{
	wf_loop_kick(&medium_of(transport)->loop);
}

static void
medium_close(struct wf_transport *transport)
{
	struct medium *m = medium_of(transport);
	assert_int_equal(close(m->line_fd), 0);
	wf_loop_close(&m->loop);
}

static const struct wf_transport_ops medium_ops = {
	.close = medium_close,
	.poll = medium_poll,
	.wait_fd = medium_wait_fd,
	.arm = medium_arm,
	.wait = medium_wait,
	.wake = medium_wake,
};

static enum weft_status
medium_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct medium *m = &media[media_count++];
	*m = (struct medium){.transport = {.ops = &medium_ops, .env = opts->env},
			     .line_source = {.notify = on_line},
			     .deadline_ns = WF_NEVER};
	wf_loop_init(&m->loop, opts->env, on_wake);
	m->loop.owner = opts->loop;
	m->loop.member.told = &m->transport.told;
	m->loop.member.apart = mode.apart && m == &media[1];
	assert_int_equal(wf_loop_open(&m->loop), WEFT_OK);
	m->line_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint32_t mask = m->loop.member.apart ? EPOLLIN : EPOLLIN | EPOLLET;
	assert_int_equal(wf_loop_watch(&m->loop, m->line_fd, mask, &m->line_source), WEFT_OK);
	*out = &m->transport;
	return WEFT_OK;
}

static const struct wf_backend first = {.name = "first",
					.open = medium_open,
					.is_path = true,
					.path_id = WF_PATH_BOOTSTRAP,
					.path_retry_ns = 1};
static const struct wf_backend second = {
	.name = "second", .open = medium_open, .is_path = true, .path_id = WF_PATH_OTHER};

const struct wf_backend *const wf_backends[] = {&first, &second, &wf_backend_paths, NULL};
const struct wf_path_setting wf_path_settings[] = {{"auto", "first,second", false},
						   {NULL, NULL, false}};

/* ---- a transport, and its caller ---- */

/* As if these carried something, and nothing else were there. */
static void
make_hot(unsigned hot)
{
	struct wf_paths *t = wf_paths_of(top);
	t->turn.only = NULL;
	for (unsigned i = 0; i < MEDIA; i++) {
		t->path[i].hot = (hot & 1u << i) != 0;
		t->turn.only = hot == 1u << i ? &t->path[i] : t->turn.only;
	}
	wf_paths_attend(t);
}

static unsigned
poll_once(void)
{
	struct wf_event event[4];
	unsigned count = 0;
	assert_int_equal(wf_transport_poll(top, event, 4, &count), WEFT_OK);
	return count;
}

static void
open_both(struct mode how)
{
	static struct wf_env_ops ops;
	ops = *wf_env_memory()->ops;
	ops.now_ns = clock_ns;
	ops.wait = wait_fd;
	ops.wait_events = wait_events;
	ops.host_id = no_host;
	mode = how;
	env = (struct wf_env){.ops = &ops};
	now_ns = WF_NS_PER_S;
	media_count = 0;
	step_count = 0;
	step_next = 0;
	const struct wf_transport_opts opts = {.env = &env};
	assert_int_equal(wf_transport_open("paths", &opts, &top), WEFT_OK);
	shown = (struct wf_conn){.transport = top};
	(void)poll_once();
	make_hot(how.hot);
	if (how.timer) {
		struct medium *quiet = &media[how.hot == 1 ? 1 : 0];
		quiet->deadline_ns = now_ns + RUN_NS;
		wf_loop_timer_before(&quiet->loop, quiet->deadline_ns);
	}
	slept_over = false;
	rested = false;
	due = 0;
	delivered = 0;
	stuck = 0;
}

/* A caller as a lane is one: turns, and a sleep where a turn brings nothing. */
static void
live(void)
{
	for (turns = 0; !slept_over && !rested && turns < TURNS_MAX; turns++) {
		uint64_t deadline_ns = 0;
		(void)reach(BEFORE_ARM);
		bool quiet = wf_transport_arm(top, &deadline_ns) && mode.skips;
		if (!quiet) {
			(void)reach(BEFORE_POLL);
		}
		if (!quiet && poll_once() > 0) {
			continue;
		}
		(void)reach(BEFORE_WAIT);
		if (mode.by_fd) {
			wf_wait(&env, wf_transport_wait_fd(top), deadline_ns);
		} else {
			wf_transport_wait(top, deadline_ns);
		}
		(void)poll_once();
	}
}

static void
run(const struct step *steps, unsigned count, struct mode how)
{
	open_both(how);
	memcpy(step, steps, count * sizeof(steps[0]));
	step_count = count;
	live();
	if (!rested || delivered != due || timer_runs()) {
		for (unsigned i = 0; i < count; i++) {
			print_message("event %d of medium %u in gap %d\n", steps[i].kind,
				      steps[i].medium, steps[i].gap);
		}
		fail_msg("skips %d, by_fd %d, apart %d, timer %d, waits %d, narrow %d, hot %u: %u "
			 "of %u events, "
			 "%u turns",
			 how.skips, how.by_fd, how.apart, how.timer, how.waits, how.narrow, how.hot,
			 delivered, due, turns);
	}
	wf_transport_close(top);
}

/* Every choice of `count` events, in every order, in every gap. Returns how many there are. */
static unsigned
run_all(unsigned count, struct mode how)
{
	const unsigned choices = KINDS * MEDIA * GAPS;
	unsigned total = 1;
	for (unsigned i = 0; i < count; i++) {
		total *= choices;
	}
	for (unsigned number = 0; number < total; number++) {
		struct step steps[EVENTS_MAX] = {0};
		for (unsigned i = 0, rest = number; i < count; i++, rest /= choices) {
			steps[i] = (struct step){.kind = (enum kind)(rest % KINDS),
						 .medium = rest / KINDS % MEDIA,
						 .gap = (enum gap)(rest / KINDS / MEDIA % GAPS)};
		}
		run(steps, count, how);
	}
	return total;
}

static void
nobody_sleeps_over_what_another_path_has(void **state)
{
	(void)state;
	unsigned ran = 0, begin, end;
	wf_sweep_cases(64, &begin, &end);
	for (unsigned i = begin; i < end; i++) {
		for (unsigned hot = 0; hot < 1u << MEDIA; hot++) {
			const struct mode how = {.skips = (i & 1) != 0,
						 .by_fd = (i & 2) != 0,
						 .apart = (i & 4) != 0,
						 .timer = (i & 8) != 0,
						 .waits = (i & 16) != 0,
						 .narrow = (i & 32) != 0,
						 .hot = hot};
			for (unsigned count = 0; count <= EVENTS_MAX; count++) {
				ran += run_all(count, how);
			}
		}
	}
	assert_int_equal(ran, (end - begin) * 4 * (1 + 24 + 24 * 24));
}

/* ---- who is polled ---- */

static void
what_sleeps_is_polled_when_it_is_noticed_and_else_never(void **state)
{
	(void)state;
	const struct step line = {.kind = LINE, .medium = 1};
	open_both((struct mode){.hot = 1});
	for (unsigned i = 0; i < 3; i++) {
		(void)poll_once();
	}
	assert_ptr_equal(top->active, &media[0].transport);
	unsigned polls = media[1].polls;
	for (unsigned i = 0; i < 1000; i++) {
		now_ns += WF_NS_PER_MS;
		(void)poll_once();
	}
	assert_int_equal(media[1].polls, polls);
	happen(&line);
	assert_true(wf_loop_collect(&media[0].loop)); /* in some poll of the other one */
	assert_int_equal(poll_once() + poll_once(), 1);
	assert_in_range(media[1].polls, polls + 1, polls + 2);
	wf_transport_close(top);
}

static void
what_sleeps_until_a_deadline_is_polled_when_that_has_come(void **state)
{
	(void)state;
	open_both((struct mode){.hot = 1, .timer = true});
	for (unsigned i = 0; i < 3; i++) {
		(void)poll_once();
	}
	assert_ptr_equal(top->active, &media[0].transport);
	unsigned polls = media[1].polls;
	uint64_t deadline_ns = 0;
	assert_true(wf_transport_arm(top, &deadline_ns)); /* the only one that is polled says so */
	assert_int_equal(deadline_ns, media[1].deadline_ns);
	clock_reads = 0;
	for (unsigned i = 0; i < 10 * WF_PASSED_MAX; i++) {
		(void)poll_once();
	}
	assert_int_equal(media[1].polls, polls);
	assert_int_equal(clock_reads, 10);
	now_ns += RUN_NS;
	for (unsigned i = 0; i < WF_PASSED_MAX + 2; i++) {
		(void)poll_once();
	}
	assert_int_equal(media[1].polls, polls + 2); /* for it has no other deadline */
	assert_false(timer_runs());
	assert_ptr_equal(top->active, &media[0].transport);
	wf_transport_close(top);
}

/* The arm went past this transport, and what its caller began since has a deadline here. */
static void
what_is_begun_behind_an_arm_ends_the_sleep(void **state)
{
	(void)state;
	open_both((struct mode){.hot = 1});
	for (unsigned i = 0; i < 3; i++) {
		(void)poll_once();
	}
	for (unsigned begun = 0; begun < 2; begun++) {
		uint64_t deadline_ns = 0;
		struct pollfd fd = {.fd = wf_transport_wait_fd(top), .events = POLLIN};
		assert_ptr_equal(top->active, &media[0].transport);
		assert_true(wf_transport_arm(top, &deadline_ns));
		if (begun) {
			wf_paths_attend(wf_paths_of(top));
			wf_paths_of(top)->turn.timer_ns = now_ns + 1;
		}
		assert_int_equal(poll_once(), 0);
		assert_int_equal(poll(&fd, 1, 0), begun);
	}
	wf_transport_close(top);
}

/* The same of a path that was quiet: what is begun there makes it one that is polled, and it was
 * not armed, so that it keeps its timer to itself. */
static void
what_is_begun_elsewhere_behind_an_arm_ends_the_sleep(void **state)
{
	(void)state;
	open_both((struct mode){.hot = 1});
	for (unsigned i = 0; i < 3; i++) {
		(void)poll_once();
	}
	uint64_t deadline_ns = 0;
	struct pollfd fd = {.fd = wf_transport_wait_fd(top), .events = POLLIN};
	assert_ptr_equal(top->active, &media[0].transport);
	assert_true(wf_transport_arm(top, &deadline_ns));
	assert_int_equal(deadline_ns, WF_NEVER);
	wf_paths_of(top)->turn.changed = true; /* as a connect does */
	wf_paths_attend(wf_paths_of(top));
	media[1].deadline_ns = now_ns + RUN_NS;
	wf_loop_timer_before(&media[1].loop, media[1].deadline_ns);
	assert_int_equal(poll_once(), 0);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(poll_once(), 0); /* takes that in */
	assert_false(wf_transport_arm(top, &deadline_ns));
	assert_int_equal(deadline_ns, media[1].deadline_ns);
	assert_int_equal(poll_once(), 0);
	assert_int_equal(poll(&fd, 1, 0), 0); /* once */
	wf_transport_close(top);
}

/* What was posted to a path that others than `only` carry leaves with its polls. */
static void
paths_that_carry_are_polled_on_every_turn(void **state)
{
	(void)state;
	open_both((struct mode){.hot = 3});
	(void)poll_once();
	assert_ptr_equal(top->active, top);
	unsigned polls[MEDIA] = {media[0].polls, media[1].polls};
	for (unsigned i = 0; i < 100; i++) {
		(void)poll_once();
	}
	assert_int_equal(media[0].polls, polls[0] + 100);
	assert_int_equal(media[1].polls, polls[1] + 100);
	wf_transport_close(top);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_sleeps_over_what_another_path_has),
		cmocka_unit_test(what_sleeps_is_polled_when_it_is_noticed_and_else_never),
		cmocka_unit_test(what_sleeps_until_a_deadline_is_polled_when_that_has_come),
		cmocka_unit_test(what_is_begun_behind_an_arm_ends_the_sleep),
		cmocka_unit_test(what_is_begun_elsewhere_behind_an_arm_ends_the_sleep),
		cmocka_unit_test(paths_that_carry_are_polled_on_every_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
