/* SPDX-License-Identifier: Apache-2.0 */
/* stop: see stop.h. */
#include "trainer/program/stop.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

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

static void
on_signal(int signal_number)
{
	int error_before = errno;
	enum wf_stop_ask ask = wf_stop_asked(&asked, signal_number);
	if (ask == WF_STOP_ECHO) {
		return;
	}
	atomic_store_explicit(&stopped_by, signal_number, memory_order_relaxed);
	if (ask == WF_STOP_AGAIN) {
		(void)signal(signal_number, SIG_DFL); /* second request: stop waiting */
		(void)raise(signal_number);           /* when this returns */
	}
	atomic_fetch_add_explicit(&handling, 1, memory_order_seq_cst); /* H1 */
	weft_session_stop(atomic_load_explicit(&watched, memory_order_seq_cst), signal_number);
	atomic_fetch_sub_explicit(&handling, 1, memory_order_seq_cst); /* H1 */
	errno = error_before;
}

static void
begins(struct weft_session *session)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigset_t wanted;
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

const struct wf_train_watch wf_stop_watch = {.begins = begins, .ends = ends, .over = over};

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
