/* SPDX-License-Identifier: Apache-2.0 */
/* progress: who drives a session's core. Thread: as each function says. */
#include "trainer/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"

#define ASK_PERIOD_NS (20 * WF_NS_PER_MS)

enum weft_status
wf_session_failure(const struct weft_session *session)
{
	uint32_t status =
		atomic_load_explicit(&session->core.status, memory_order_acquire); /* F1 */
	if (status == WEFT_OK) {
		return WEFT_OK;
	}
	return wf_fail((enum weft_status)status, "%s", session->core.failure);
}

static void
signal_fd(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n; /* full: it is readable already */
}

static void
drain_fd(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));
	(void)n; /* empty: nothing to drain */
}

static void
run_command(struct weft_session *session, const struct wf_command *command)
{
	struct wf_core *core = &session->core;
	switch (command->kind) {
	case WF_COMMAND_START:
		wf_core_start(core);
		break;
	case WF_COMMAND_STEP:
		wf_core_step(core, command->a, command->cost);
		break;
	case WF_COMMAND_PUSH:
		wf_core_push(core, command->tensor, command->a);
		break;
	case WF_COMMAND_PULL:
		wf_core_pull(core, command->tensor, command->a, command->section);
		break;
	case WF_COMMAND_OUT:
		wf_core_out(core);
		break;
	case WF_COMMAND_NEXT_PASS:
		wf_core_next_pass(core, command->a);
		break;
	case WF_COMMAND_REDUCE:
		wf_core_reduce(core);
		break;
	case WF_COMMAND_STATS:
		wf_core_report_stats(core);
		break;
	case WF_COMMAND_OTHERS:
		wf_others_ask(core, (uint32_t)command->a);
		break;
	case WF_COMMAND_LEAVE:
		wf_core_leave(core);
		break;
	case WF_COMMAND_FAIL:
		wf_core_fail(core, (enum weft_status)command->a, "%s", session->fail_reason);
		break;
	case WF_COMMAND_STOP:
		wf_core_heed_stop(core);
		break;
	case WF_COMMAND_SERVICE:
		core->service->command(core, command);
		break;
	}
}

/* Progress thread: take all commands. Returns whether there were any. */
static bool
take_commands(struct weft_session *session)
{
	struct wf_command command;
	bool any = false;
	while (wf_ring_pop(session->progress.ring, &command)) {
		run_command(session, &command);
		any = true;
	}
	return any;
}

/* Wake the owner if it sleeps on a word that is clear by now, or the session has failed. */
static void
wake_owner(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	const _Atomic uint32_t *word =
		atomic_load_explicit(&progress->owner_waits, memory_order_seq_cst); /* W1 */
	if (word != NULL && (atomic_load_explicit(word, memory_order_seq_cst) == 0 ||
			     wf_core_failed(&session->core))) {
		signal_fd(progress->done_fd);
	}
}

static bool
thread_turn(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	bool told = take_commands(session);
	bool any = wf_core_poll(core) || told;
	core->event_ns = told ? core->now_ns : core->event_ns;
	if (any || wf_core_failed(core)) { /* else it waits for nothing that happened */
		wake_owner(session);
	}
	return any;
}

static void
thread_sleep(struct weft_session *session, uint32_t seen)
{
	struct wf_progress *progress = &session->progress;
	uint64_t deadline;
	enum wf_rest rest = wf_core_arm(&session->core, &deadline);
	atomic_store_explicit(&progress->thread_sleeps, 1, memory_order_seq_cst); /* W2 */
	bool quiet =
		atomic_load_explicit(&progress->commands, memory_order_seq_cst) == seen; /* W2 */
	bool empty = quiet && (rest == WF_REST_NOW || !thread_turn(session));
	if (empty && rest != WF_REST_NOT) {
		wf_wait(session->env, progress->poll_fd, deadline);
	}
	atomic_store_explicit(&progress->thread_sleeps, 0, memory_order_relaxed);
	drain_fd(progress->command_fd);
	if (atomic_load_explicit(&session->core.stopped_by, memory_order_acquire) != 0) {
		session->core.tick_ns = 0;
	}
}

static void *
thread_main(void *arg)
{
	struct weft_session *session = arg;
	struct wf_progress *progress = &session->progress;
	uint64_t spin_ns = session->core.opts.spin_ns;
	if (wf_pin_self(progress->pin, 0) != WEFT_OK) {
		wf_core_log(&session->core, WEFT_LOG_WARN, "progress thread is not pinned: %s",
			    weft_last_error());
	}
	const struct wf_core *core = &session->core;
	while (atomic_load_explicit(&progress->stop, memory_order_acquire) == 0) {
		uint32_t seen = atomic_load_explicit(&progress->commands, memory_order_seq_cst);
		if (!thread_turn(session) && core->now_ns - core->event_ns >= spin_ns) {
			thread_sleep(session, seen);
		}
	}
	return NULL;
}

static enum weft_status
watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "session: epoll");
	}
	return WEFT_OK;
}

static enum weft_status
open_fds(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	progress->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	progress->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	progress->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (progress->poll_fd < 0 || progress->command_fd < 0 || progress->done_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "session: no file descriptors");
	}
	enum weft_status st = watch(progress->poll_fd, progress->command_fd);
	int fd = wf_transport_wait_fd(session->core.transport);
	return st != WEFT_OK ? st : watch(progress->poll_fd, fd);
}

void
wf_progress_init(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	progress->poll_fd = -1;
	progress->command_fd = -1;
	progress->done_fd = -1;
	atomic_store_explicit(&progress->wake_fd, -1, memory_order_relaxed);
}

/* The next power of two. */
static size_t
ring_items(const struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service;
	size_t most = session->core.job.tensor_count + WF_COMMANDS_OWN;
	size_t items = 1;
	most += service != NULL ? service->commands_max(session) : 0;
	while (items < most) {
		items *= 2;
	}
	return items;
}

enum weft_status
wf_progress_open(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	progress->threaded = session->core.opts.progress == WEFT_PROGRESS_THREAD;
	if (!progress->threaded) {
		return WEFT_OK;
	}
	enum weft_status st = wf_ring_create(session->env, ring_items(session),
					     sizeof(struct wf_command), &progress->ring);
	if (st == WEFT_OK) {
		st = open_fds(session);
	}
	if (st != WEFT_OK) {
		return st;
	}
	int err = pthread_create(&progress->thread, NULL, thread_main, session);
	if (err != 0) {
		return wf_fail_errno(WEFT_NOMEM, err, "session: no progress thread");
	}
	progress->started = true;
	atomic_store_explicit(&progress->wake_fd, progress->command_fd, memory_order_release);
	return WEFT_OK;
}

static void
close_fd(int fd)
{
	if (fd >= 0) {
		(void)close(fd);
	}
}

void
wf_progress_close(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	if (progress->started) {
		atomic_store_explicit(&progress->stop, 1,
				      memory_order_release); /* thread: acquire */
		signal_fd(progress->command_fd);
		(void)pthread_join(progress->thread, NULL);
		progress->started = false;
	}
	atomic_store_explicit(&progress->wake_fd, -1, memory_order_relaxed);
	wf_ring_destroy(progress->ring);
	wf_pin_destroy(progress->pin);
	progress->ring = NULL;
	progress->pin = NULL;
	close_fd(progress->poll_fd);
	close_fd(progress->command_fd);
	close_fd(progress->done_fd);
}

/* The owner goes on with its own work, or waits by another means than a turn. */
static void
go_away(struct weft_session *session)
{
	if (!session->progress.threaded) {
		wf_turn_go_away(&session->core.turn);
	}
}

void
wf_progress_turn(struct weft_session *session)
{
	if (!session->progress.threaded && session->core_open) {
		(void)wf_core_poll(&session->core);
	}
	go_away(session);
}

void
wf_progress_command(struct weft_session *session, const struct wf_command *command)
{
	struct wf_progress *progress = &session->progress;
	if (!progress->threaded) {
		run_command(session, command);
		return;
	}
	bool pushed = wf_ring_push(progress->ring, command);
	WF_ASSERT(pushed); /* WF_COMMANDS_OWN */
	atomic_fetch_add_explicit(&progress->commands, 1, memory_order_seq_cst);         /* W2 */
	if (atomic_load_explicit(&progress->thread_sleeps, memory_order_seq_cst) != 0) { /* W2 */
		signal_fd(progress->command_fd);
	}
}

/* Owner: sleep until the thread says that `word` is clear, or a while has passed. */
static void
sleep_for_thread(struct weft_session *session, const _Atomic uint32_t *word)
{
	struct wf_progress *progress = &session->progress;
	atomic_store_explicit(&progress->owner_waits, word, memory_order_seq_cst); /* W1 */
	bool set = atomic_load_explicit(word, memory_order_seq_cst) != 0;          /* W1 */
	/* F1, W1: the failure is stored before the look at owner_waits */
	bool failed = atomic_load_explicit(&session->core.status, memory_order_seq_cst) != WEFT_OK;
	if (set && !failed) {
		wf_wait(session->env, progress->done_fd,
			wf_now_ns(session->env) + WF_NS_PER_S / 10);
	}
	atomic_store_explicit(&progress->owner_waits, NULL, memory_order_relaxed);
	drain_fd(progress->done_fd);
}

/* The wait is young, or events came a short while ago. */
static bool
spins(const struct wf_core *core, uint64_t began_ns)
{
	uint64_t since_ns = core->event_ns > began_ns ? core->event_ns : began_ns;
	return began_ns == 0 || core->now_ns - since_ns < core->opts.spin_ns;
}

/* Owner drives: one turn, and a sleep if it was armed and did nothing. `*began_ns`: the first turn
 * of this wait; 0: none yet. */
static void
drive(struct weft_session *session, uint64_t *began_ns)
{
	struct wf_core *core = &session->core;
	if (core->opts.spin_ns > 0 && spins(core, *began_ns)) {
		wf_turn_spin(&core->turn);
		(void)wf_core_poll(core);
		*began_ns = *began_ns == 0 ? core->now_ns : *began_ns;
		return;
	}
	uint64_t deadline;
	enum wf_rest rest = wf_core_arm(core, &deadline);
	bool empty = rest == WF_REST_NOW || !wf_core_poll(core);
	if (empty && rest != WF_REST_NOT) {
		wf_transport_wait(core->transport, deadline);
	}
}

/* The caller wants its thread back. It is asked between sleeps, and not after each short one. */
static bool
is_interrupted(struct weft_session *session)
{
	const struct weft_session_opts *opts = &session->core.opts;
	if (opts->interrupted == NULL) {
		return false;
	}
	uint64_t now = wf_now_ns(session->env);
	if (now - session->progress.asked_ns < ASK_PERIOD_NS) {
		return false;
	}
	session->progress.asked_ns = now;
	return opts->interrupted(opts->interrupted_arg) != 0;
}

enum weft_status
wf_progress_wait_clear(struct weft_session *session, const _Atomic uint32_t *word)
{
	uint64_t began_ns = 0;
	enum weft_status st = WEFT_OK;
	while (atomic_load_explicit(word, memory_order_acquire) != 0) { /* B1 */
		if (wf_core_failed(&session->core)) {
			return wf_session_failure(session);
		}
		if (session->progress.threaded) {
			sleep_for_thread(session, word);
		} else {
			drive(session, &began_ns);
		}
		if (atomic_load_explicit(word, memory_order_acquire) != 0 && /* B1 */
		    is_interrupted(session)) {
			st = WEFT_AGAIN;
			break;
		}
	}
	go_away(session);
	return st;
}

void
wf_progress_wait(struct weft_session *session, bool (*done)(struct weft_session *))
{
	uint64_t began_ns = 0;
	while (!done(session)) {
		if (session->progress.threaded) {
			wf_wait(session->env, session->progress.done_fd,
				wf_now_ns(session->env) + 5 * WF_NS_PER_MS);
			drain_fd(session->progress.done_fd);
		} else {
			drive(session, &began_ns);
		}
	}
}

static bool
has_failed(struct weft_session *session)
{
	return wf_core_failed(&session->core);
}

void
wf_progress_heed_stop(struct weft_session *session)
{
	const struct wf_core *core = &session->core;
	if (atomic_load_explicit(&core->stopped_by, memory_order_acquire) != 0 &&
	    !wf_core_failed(core)) {
		wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_STOP});
		wf_progress_wait(session, has_failed);
	}
}

/* In a signal handler, too: nothing but these three is touched. */
void
weft_session_stop(struct weft_session *session, int signal_number)
{
	if (session == NULL || signal_number <= 0) {
		return;
	}
	int number_before = errno;
	atomic_store_explicit(&session->core.stopped_by, signal_number, memory_order_release);
	int fd = atomic_load_explicit(&session->progress.wake_fd, memory_order_acquire);
	if (fd >= 0) {
		signal_fd(fd);
	}
	errno = number_before;
}

void
wf_session_fail(struct weft_session *session, enum weft_status status, const char *format, ...)
{
	if (wf_core_failed(&session->core)) {
		return;
	}
	va_list args;
	va_start(args, format);
	(void)vsnprintf(session->fail_reason, sizeof(session->fail_reason), format, args);
	va_end(args);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_FAIL, .a = status});
	wf_progress_wait(session, has_failed); /* and has read the reason */
}
