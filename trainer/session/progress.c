/* SPDX-License-Identifier: Apache-2.0 */
/* progress: who drives a session's core: the owner's side. progress_thread.c is the thread's.
 * Thread: the owner's, except weft_session_stop.
 *
 * The owner drives in every call that waits, so that a wait costs one wake-up in each direction,
 * and none if it polls. When it returns to its own work with something under way, it arms the
 * transport and lets the thread watch it. With nothing under way it only releases the core: the
 * thread looks ten times a second. */
#include "trainer/session/driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "trainer/session/gate.h"

#define ASK_PERIOD_NS (20 * WF_NS_PER_MS)
#define WANT_NS (WF_NS_PER_S / 10)
#define CLAIMS_MAX 64u             /* tries to get the core from a thread in the middle of a turn */
#define LEAVE_TURNS_MAX 4u         /* then there is enough to do for the thread */
#define SEND_BYTES_MAX (64u << 10) /* more is copied while the owner computes */

enum weft_status
wf_session_failure(const struct weft_session *session)
{
	uint32_t status =
		atomic_load_explicit(&session->core.failure.status, memory_order_acquire); /* F1 */
	if (status == WEFT_OK) {
		return WEFT_OK;
	}
	return wf_fail((enum weft_status)status, "%s", session->core.failure.text);
}

static void
drain_fd(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));
	(void)n; /* empty: nothing to drain */
}

void
wf_progress_init(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	progress->poll_fd = -1;
	progress->command_fd = -1;
	progress->handover_fd = -1;
	atomic_store_explicit(&progress->wake_fd, -1, memory_order_relaxed);
}

/* The next power of two. */
static size_t
ring_items(const struct weft_session *session)
{
	const struct wf_service_ops *service = session->core.service.ops;
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
	struct wf_core *core = &session->core;
	bool has_time =
		wf_transport_wait_fd(core->turn.transport) >= 0; /* otherwise it is still while we
								  * poll */
	wf_spin_init(&core->turn.spin, has_time ? wf_spin_setting(core->opts.spin_ns, 1) : 0);
	progress->threaded = core->opts.progress == WEFT_PROGRESS_THREAD;
	if (!progress->threaded) {
		return WEFT_OK;
	}
	enum weft_status st = wf_ring_create(session->core.end.env, ring_items(session),
					     sizeof(struct wf_command), &progress->ring);
	return st != WEFT_OK ? st : wf_progress_thread_start(session);
}

static void
close_fd(int *fd)
{
	if (*fd >= 0) {
		(void)close(*fd);
	}
	*fd = -1;
}

void
wf_progress_end(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	if (progress->started) {
		atomic_store_explicit(&progress->stop, 1,
				      memory_order_release); /* thread: acquire */
		wf_driver_signal(progress->command_fd);
		(void)pthread_join(progress->thread, NULL);
		progress->started = false;
	}
	atomic_store_explicit(&progress->wake_fd, -1, memory_order_relaxed);
	wf_ring_destroy(progress->ring);
	progress->ring = NULL;
	close_fd(&progress->poll_fd);
	close_fd(&progress->command_fd);
	close_fd(&progress->handover_fd);
	progress->watched = false;
	atomic_store_explicit(&progress->driver, WF_DRIVER_NONE, memory_order_relaxed);
	atomic_store_explicit(&progress->commands, 0, memory_order_relaxed);
	atomic_store_explicit(&progress->wanted, 0, memory_order_relaxed);
	atomic_store_explicit(&progress->until_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&progress->stop, 0, memory_order_relaxed);
}

void
wf_progress_close(struct weft_session *session)
{
	wf_progress_end(session);
	wf_pin_destroy(session->progress.pin);
	session->progress.pin = NULL;
}

static bool
claim(struct weft_session *session)
{
	for (unsigned i = 0; i < CLAIMS_MAX; i++) {
		if (wf_driver_claim(session, WF_DRIVER_OWNER)) {
			return true;
		}
		wf_spin_pause();
	}
	return false;
}

/* The thread is in a long turn, and signals when that has ended. */
static bool
claim_after_sleep(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	atomic_store_explicit(&progress->wanted, 1, memory_order_seq_cst); /* D2 */
	bool claimed = wf_driver_claim(session, WF_DRIVER_OWNER);          /* D2 */
	if (!claimed) {
		wf_wait(session->core.end.env, progress->handover_fd,
			wf_now_ns(session->core.end.env) + WANT_NS);
	}
	atomic_store_explicit(&progress->wanted, 0, memory_order_relaxed);
	drain_fd(progress->handover_fd);
	return claimed;
}

/* From here on the owner drives, until it leaves. */
static void
enter(struct weft_session *session)
{
	if (!session->progress.threaded) {
		return;
	}
	while (!claim(session) && !claim_after_sleep(session)) {
	}
	(void)wf_driver_run_all(session);
}

/* Something may come, or is to be sent, before the owner is back. */
static bool
is_under_way(const struct wf_core *core)
{
	return core->flow.busy_slices > 0 || core->turn.due != NULL || core->service.ops != NULL ||
	       core->turn.tick_ns == 0 || !core->start.all_were_up || wf_core_failed(core) ||
	       atomic_load_explicit(&core->reduce.busy, memory_order_relaxed) != 0;
}

/* The core is free from here on, and before `deadline_ns` only the transport's descriptor announces
 * work. The thread may sleep for longer: then it is woken. */
static void
let_go_until(struct weft_session *session, uint64_t deadline_ns)
{
	struct wf_progress *progress = &session->progress;
	wf_driver_release(session);
	if (deadline_ns <
	    atomic_load_explicit(&progress->until_ns, memory_order_seq_cst)) { /* D3 */
		wf_driver_signal(progress->command_fd);
	}
}

/* Sends what was posted, lets events wake the thread, and releases the core. */
static void
hand_over(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	for (unsigned i = 0; i < LEAVE_TURNS_MAX; i++) {
		uint64_t deadline_ns;
		enum wf_rest rest = wf_core_arm(core, &deadline_ns);
		bool busy = rest != WF_REST_NOW && wf_core_poll(core);
		if (rest == WF_REST_NOT || busy) {
			continue;
		}
		wf_driver_watch(session, true);
		let_go_until(session, deadline_ns);
		return;
	}
	let_go_until(session, 0);
}

__attribute__((noinline)) static void
leave_shared(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	if (is_under_way(core)) {
		hand_over(session);
	} else {
		wf_turn_rest(&core->turn);
		let_go_until(session, core->turn.tick_ns + WF_DRIVER_ASIDE_NS);
	}
}

/* The next call may come from another thread. */
static void
leave_alone(struct weft_session *session)
{
	wf_turn_go_away(&session->core.turn);
	wf_owner_drop(&session->core.owner);
}

/* The owner returns to its own work. */
static inline void
leave(struct weft_session *session)
{
	session->core.turn.wait_ns = 0;
	if (session->progress.threaded) {
		leave_shared(session);
	} else {
		leave_alone(session);
	}
}

void
wf_progress_turn(struct weft_session *session)
{
	if (!session->progress.threaded && session->core_open) {
		(void)wf_core_poll(&session->core);
		leave_alone(session);
	}
}

/* The thread releases the core and then looks at the count (D1). */
static void
give_to_thread(struct weft_session *session, const struct wf_command *command)
{
	struct wf_progress *progress = &session->progress;
	bool pushed = wf_ring_push(progress->ring, command);
	WF_ASSERT(pushed); /* WF_COMMANDS_OWN */
	atomic_fetch_add_explicit(&progress->commands, 1, memory_order_seq_cst); /* D1 */
	if (wf_driver_claim(session, WF_DRIVER_OWNER)) {                         /* D1 */
		(void)wf_driver_run_all(session);
		wf_driver_release(session);
	}
}

/* Not inlined: a caller that always drives does not come here. */
__attribute__((noinline)) static void
command_shared(struct weft_session *session, const struct wf_command *command)
{
	if (wf_driver_claim(session, WF_DRIVER_OWNER)) {
		(void)wf_driver_run_all(session);
		wf_driver_run(session, command);
		wf_driver_release(session);
	} else {
		give_to_thread(session, command);
	}
}

void
wf_progress_command(struct weft_session *session, const struct wf_command *command)
{
	if (session->progress.threaded) {
		command_shared(session, command);
	} else {
		wf_driver_run(session, command);
	}
}

void
wf_progress_step(struct weft_session *session, uint64_t samples, double cost)
{
	if (session->progress.threaded) {
		command_shared(
			session,
			&(struct wf_command){.kind = WF_COMMAND_STEP, .a = samples, .cost = cost});
	} else {
		wf_core_step(&session->core, samples, cost);
	}
}

void
wf_progress_push(struct weft_session *session, uint32_t tensor, uint64_t step)
{
	if (session->progress.threaded) {
		command_shared(
			session,
			&(struct wf_command){.kind = WF_COMMAND_PUSH, .tensor = tensor, .a = step});
	} else {
		wf_core_push(&session->core, tensor, step);
	}
}

void
wf_progress_send(struct weft_session *session, uint64_t bytes)
{
	if (!session->progress.threaded) {
		return;
	}
	if (bytes > SEND_BYTES_MAX) {
		wf_driver_signal(session->progress.command_fd);
	} else if (wf_driver_claim(session, WF_DRIVER_OWNER)) {
		hand_over(session);
	} /* else the thread is about to */
}

/* One round, and a sleep if there is nothing to do, with the turn that follows it. */
static void
drive(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	uint64_t deadline_ns;
	if (!wf_core_advance(core, &deadline_ns)) {
		return;
	}
	if (session->progress.watched) {
		wf_driver_watch(session, false);
	}
	wf_transport_wait(core->turn.transport, deadline_ns);
	wf_driver_look_for_stop(session);
	(void)wf_core_poll(core); /* what ended the sleep */
}

/* The caller wants its thread back. `interrupted` is called between sleeps, and not after each
 * short one. */
static bool
is_interrupted(struct weft_session *session)
{
	const struct weft_session_opts *opts = &session->core.opts;
	if (opts->interrupted == NULL) {
		return false;
	}
	uint64_t now = wf_now_ns(session->core.end.env);
	if (now - session->progress.asked_ns < ASK_PERIOD_NS) {
		return false;
	}
	session->progress.asked_ns = now;
	uintptr_t caller = wf_gate_block(session);
	bool interrupted = opts->interrupted(opts->interrupted_arg) != 0;
	wf_gate_unblock(session, caller);
	return interrupted;
}

enum weft_status
wf_progress_wait_clear(struct weft_session *session, const _Atomic uint32_t *word)
{
	if (atomic_load_explicit(word, memory_order_acquire) == 0) { /* B1 */
		return WEFT_OK;
	}
	bool is_set = true;
	bool interrupted = false;
	enter(session);
	while (is_set && !interrupted && !wf_core_failed(&session->core)) {
		drive(session);
		is_set = atomic_load_explicit(word, memory_order_acquire) != 0; /* B1 */
		interrupted = is_set && is_interrupted(session);
	}
	leave(session); /* in the core; a failure there is not returned to the caller */
	if (interrupted) {
		return WEFT_AGAIN;
	}
	/* The thread may have cleared it, and failed then, before this one drove. */
	bool is_clear = atomic_load_explicit(word, memory_order_acquire) == 0; /* B1 */
	return is_clear ? WEFT_OK : wf_session_failure(session);
}

void
wf_progress_wait(struct weft_session *session, bool (*done)(struct weft_session *))
{
	if (done(session)) {
		return;
	}
	enter(session);
	while (!done(session)) {
		drive(session);
	}
	leave(session);
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
	if (wf_failure_is_stopped(&core->failure) && !wf_core_failed(core)) {
		wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_STOP});
		wf_progress_wait(session, has_failed);
	}
}

/* In a signal handler, too: nothing but these four is touched. */
void
weft_session_stop(struct weft_session *session, int signal_number)
{
	if (session == NULL || signal_number <= 0 || wf_gate_is_forked(session)) {
		return;
	}
	int number_before = errno;
	wf_failure_stop(&session->core.failure, signal_number);
	int fd = atomic_load_explicit(&session->progress.wake_fd, memory_order_acquire);
	if (fd >= 0) {
		wf_driver_signal(fd);
	}
	errno = number_before;
}

void
wf_session_fail(struct weft_session *session, enum weft_status status, const char *format, ...)
{
	if (wf_core_failed(&session->core)) {
		return;
	}
	const struct wf_error before = *wf_error_record();
	va_list args;
	va_start(args, format);
	(void)vsnprintf(session->fail_reason, sizeof(session->fail_reason), format, args);
	va_end(args);
	wf_progress_command(session, &(struct wf_command){.kind = WF_COMMAND_FAIL, .a = status});
	wf_progress_wait(session, has_failed); /* and has read the reason */
	if (before.status != WEFT_OK) {        /* the caller may return with it */
		(void)wf_fail(before.status, "%s", before.text);
	}
}
