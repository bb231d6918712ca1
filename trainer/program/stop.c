/* SPDX-License-Identifier: Apache-2.0 */
/* stop: see stop.h. */
#include "trainer/program/stop.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "base/signals.h"
#include "weft/weft.h"

static const int may_stop[] = {SIGHUP, SIGINT, SIGTERM};

/* State for the signal handler. */
static _Atomic(struct weft_session *) watched; /* main: store seq_cst; handler: load seq_cst, H1 */
static _Atomic uint32_t handling;              /* handlers that may look at it: seq_cst, H1 */
static _Atomic int stopped_by;                 /* handler: store relaxed; main: load relaxed */
static _Atomic uint64_t asked;                 /* handler's: wf_stop_asked */
static struct sigaction before[WF_ARRAY_COUNT(may_stop)]; /* main's */
static _Atomic bool is_alone;   /* no session: main: store relaxed; handler: load relaxed */
static _Atomic bool is_waiting; /* SIGTERM is postponed. main: store release; handler: P1 */
static _Atomic bool is_asked;   /* it came. handler: store relaxed; main: load relaxed */
/* Written by main before `is_waiting`. */
static timer_t grace_timer;
static struct itimerspec grace;

static void
stop_now(int signal_number)
{
	if (atomic_load_explicit(&is_alone, memory_order_relaxed)) {
		(void)signal(signal_number, SIG_DFL);
		(void)raise(signal_number); /* when the handler returns */
		return;
	}
	atomic_fetch_add_explicit(&handling, 1, memory_order_seq_cst); /* H1 */
	weft_session_stop(atomic_load_explicit(&watched, memory_order_seq_cst), signal_number);
	atomic_fetch_sub_explicit(&handling, 1, memory_order_seq_cst); /* H1 */
}

/* The time in which a run may save is over. */
static void
on_grace(int signal_number)
{
	int error_before = errno;
	(void)signal_number;
	stop_now(SIGTERM);
	errno = error_before;
}

static void
on_signal(int signal_number)
{
	int error_before = errno;
	bool waits = atomic_load_explicit(&is_waiting, memory_order_acquire); /* P1: postpone */
	enum wf_stop_ask ask = wf_stop_asked_within(
		&asked, signal_number, waits ? WF_STOP_ECHO_SAVING_MS : WF_STOP_ECHO_MS);
	if (ask == WF_STOP_ECHO) {
		return;
	}
	atomic_store_explicit(&stopped_by, signal_number, memory_order_relaxed);
	if (ask == WF_STOP_AGAIN) {
		(void)signal(signal_number, SIG_DFL); /* second request: stop waiting */
		(void)raise(signal_number);           /* when this returns */
	}
	if (ask == WF_STOP_FIRST && signal_number == SIGTERM && waits) {
		atomic_store_explicit(&is_asked, true, memory_order_relaxed);
		(void)timer_settime(grace_timer, 0, &grace, NULL);
	} else {
		stop_now(signal_number);
	}
	errno = error_before;
}

static void
begins(struct weft_session *session)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigset_t wanted;
	atomic_store_explicit(&is_alone, session == NULL, memory_order_relaxed);
	atomic_store_explicit(&watched, session, memory_order_seq_cst); /* H1 */
	wf_signals_that_stop(&wanted);
	for (size_t i = 0; i < WF_ARRAY_COUNT(may_stop); i++) {
		(void)sigaction(may_stop[i], NULL, &before[i]);
		if (sigismember(&wanted, may_stop[i]) == 1) {
			(void)sigaction(may_stop[i], &action, NULL);
		}
	}
}

static void
ends(void)
{
	atomic_store_explicit(&watched, NULL, memory_order_seq_cst); /* H1 */
	/* On another thread a handler may have it in its hands. */
	while (atomic_load_explicit(&handling, memory_order_seq_cst) != 0) { /* H1 */
		(void)sched_yield();
	}
}

static void
over(enum weft_status status)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(may_stop); i++) {
		(void)sigaction(may_stop[i], &before[i], NULL);
	}
	if (status == WEFT_OK) {
		wf_stop_die();
	}
}

static void
postpone(uint64_t grace_ns)
{
	struct sigaction action = {.sa_handler = on_grace, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	if (timer_create(CLOCK_MONOTONIC, &event, &grace_timer) != 0 ||
	    sigaction(SIGALRM, &action, NULL) != 0) {
		return; /* SIGTERM stops at once, as it does without the option */
	}
	grace.it_value.tv_sec = (time_t)(grace_ns / WF_NS_PER_S);
	grace.it_value.tv_nsec = (long)(grace_ns % WF_NS_PER_S);
	atomic_store_explicit(&is_waiting, true, memory_order_release); /* P1: on_signal */
}

static bool
is_stopping(void)
{
	return atomic_load_explicit(&is_asked, memory_order_relaxed);
}

static void
stop(void)
{
	stop_now(atomic_load_explicit(&stopped_by, memory_order_relaxed));
}

const struct wf_train_watch wf_stop_watch = {
	.begins = begins,
	.ends = ends,
	.over = over,
	.postpone = postpone,
	.is_stopping = is_stopping,
	.stop = stop,
};

void
wf_stop_die(void)
{
	int by = atomic_load_explicit(&stopped_by, memory_order_relaxed);
	if (by == 0) {
		return;
	}
	sigset_t set;
	(void)fflush(NULL);
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS);
	(void)signal(by, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, by);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(by);
}
