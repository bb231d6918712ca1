/* SPDX-License-Identifier: Apache-2.0 */
/* progress_thread: drives a session's core while the owner is away. Thread: the session's own,
 * where a function does not say otherwise.
 *
 * Each round claims the core, takes one turn and lets go of it again, so that the owner never waits
 * for longer than one turn. A turn that found nothing arms the transport and is followed by a
 * sleep: on command_fd, and on the transport's descriptor. The latter is watched for one event
 * (EPOLLONESHOT), and not at all while the owner sleeps on the transport itself; so what comes
 * wakes one of the two.
 *
 * Nothing is missed (D1): the thread lets go of the core and then looks at the number of commands;
 * the owner counts a command and then tries to claim the core. Either the thread sees the command,
 * or the owner finds the core free and runs it. In the same way the owner says that it wants the
 * core, and tries once more to claim it, before it sleeps (D2); and the thread says for how long it
 * is about to sleep, and tries once more to claim the core, before it does (D3), so that an owner
 * that leaves something to be done sooner knows to wake it. docs/model/orders.pml is the model. */
#include "trainer/session/driver.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/assert.h"

#define EVENTS 2 /* of poll_fd, which has two descriptors */

static void
sleep_until(struct weft_session *session, uint64_t deadline_ns)
{
	struct epoll_event event[EVENTS];
	(void)wf_wait_events(session->core.end.env, session->progress.poll_fd, deadline_ns, event,
			     EVENTS);
}

static uint64_t
plan_to_sleep(struct weft_session *session, uint64_t deadline_ns)
{
	atomic_store_explicit(&session->progress.until_ns, deadline_ns,
			      memory_order_seq_cst); /* D3 */
	return deadline_ns;
}

/* The owner drives. A signal that stops the program wakes this thread, and the owner may be asleep.
 */
static void
stand_back(struct weft_session *session, uint64_t deadline_ns)
{
	if (wf_failure_is_stopped(&session->core.failure)) {
		wf_transport_kick(session->core.turn.transport);
	}
	sleep_until(session, deadline_ns); /* a signal that comes now ends it */
}

static uint64_t
a_while(struct weft_session *session)
{
	return plan_to_sleep(session, wf_now_ns(session->core.end.env) + WF_DRIVER_ASIDE_NS);
}

/* False: the owner drives, and may have released the core since. */
static bool
claim_or_stand_back(struct weft_session *session)
{
	if (wf_driver_claim(session, WF_DRIVER_THREAD)) {
		return true;
	}
	uint64_t deadline_ns = a_while(session);
	if (wf_driver_claim(session, WF_DRIVER_THREAD)) { /* D3 */
		return true;
	}
	stand_back(session, deadline_ns);
	return false;
}

static bool
is_wanted(const struct weft_session *session)
{
	return atomic_load_explicit(&session->progress.wanted, memory_order_seq_cst) != 0; /* D2 */
}

/* The core is free from here on. The owner is woken if it waits for that, and has the right of way.
 */
static void
let_go(struct weft_session *session)
{
	bool stands_back = is_wanted(session);
	uint64_t deadline_ns = stands_back ? a_while(session) : 0;
	wf_driver_release(session);
	if (is_wanted(session)) {
		wf_driver_signal(session->progress.handover_fd);
	}
	if (stands_back) {
		stand_back(session, deadline_ns);
	}
}

static bool
run_turn(struct weft_session *session)
{
	struct wf_core *core = &session->core;
	bool told = wf_driver_run_all(session);
	wf_driver_look_for_stop(session);
	return wf_core_poll(core) || told;
}

/* A fixed time of polling is the user's setting; the automatic one is for a thread that waits. */
static bool
polls_on(struct wf_core *core, bool busy)
{
	if (core->turn.spin.is_automatic) {
		return false;
	}
	core->turn.wait_ns =
		busy || core->turn.wait_ns == 0 ? core->turn.now_ns : core->turn.wait_ns;
	return wf_spin_goes_on(&core->turn.spin, core->turn.now_ns - core->turn.wait_ns);
}

/* Nothing was found. `seen`: the number of commands that were looked for. */
static void
rest(struct weft_session *session, uint32_t seen)
{
	struct wf_progress *progress = &session->progress;
	uint64_t deadline_ns;
	enum wf_rest rest = wf_core_arm(&session->core, &deadline_ns);
	if (rest == WF_REST_NOT || (rest == WF_REST_IF_EMPTY && run_turn(session))) {
		let_go(session);
		return;
	}
	wf_driver_watch(session, true);
	(void)plan_to_sleep(session, deadline_ns);
	wf_driver_release(session);
	if (is_wanted(session)) {
		wf_driver_signal(progress->handover_fd);
	}
	if (atomic_load_explicit(&progress->commands, memory_order_seq_cst) == seen) { /* D1 */
		sleep_until(session, deadline_ns);
	}
}

static void *
thread_main(void *arg)
{
	struct weft_session *session = arg;
	struct wf_progress *progress = &session->progress;
	if (wf_pin_self(progress->pin, 0) != WEFT_OK) {
		wf_core_log(&session->core, WEFT_LOG_WARN, "progress thread is not pinned: %s",
			    weft_last_error());
	}
	while (atomic_load_explicit(&progress->stop, memory_order_acquire) == 0) {
		uint32_t seen = atomic_load_explicit(&progress->commands, memory_order_seq_cst);
		if (!claim_or_stand_back(session)) {
			continue;
		}
		bool busy = run_turn(session);
		if (busy || polls_on(&session->core, busy)) {
			let_go(session);
		} else {
			rest(session, seen);
		}
	}
	return NULL;
}

static enum weft_status
add(int poll_fd, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events};
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
	progress->handover_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (progress->poll_fd < 0 || progress->command_fd < 0 || progress->handover_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "session: no file descriptors");
	}
	enum weft_status st = add(progress->poll_fd, progress->command_fd, EPOLLIN | EPOLLET);
	int fd = wf_transport_wait_fd(session->core.turn.transport);
	return st != WEFT_OK ? st : add(progress->poll_fd, fd, 0);
}

enum weft_status
wf_progress_thread_start(struct weft_session *session)
{
	struct wf_progress *progress = &session->progress;
	enum weft_status st = open_fds(session);
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
