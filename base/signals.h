/* SPDX-License-Identifier: Apache-2.0 */
/* signals: the signals that request a program to stop, and names of signals for messages. Thread:
 * any. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#define WF_SIGNAL_NAME_BYTES 16

/* SIGINT, SIGTERM and SIGHUP, unless SIGHUP is ignored, as under nohup. SIGINT is included even if
 * it is ignored: shells ignore it for background jobs, but a SIGINT that a user sends by hand is
 * meant. Called before the program installs any handler. */
void wf_signals_that_stop(sigset_t *out);
/* timeout(1) sends a signal to its child and then to the child's whole group, and closing a
 * terminal causes SIGHUP from both the shell and the kernel: the same signal within this time after
 * the first is its echo, not a second request. */
#define WF_STOP_ECHO_MS 200u

enum wf_stop_ask {
	WF_STOP_FIRST,
	WF_STOP_ECHO,
	WF_STOP_AGAIN,
};

/* A program that saves before it stops: a scheduler signals all processes of a job, and a launcher
 * among them passes the signal on to its children. */
#define WF_STOP_ECHO_SAVING_MS 1000u

/* A signal has requested a stop. `first` belongs to the program, is 0 before the first signal, and
 * is written only by this function. Async-signal-safe. */
enum wf_stop_ask wf_stop_asked_within(_Atomic uint64_t *first, int signal_number, uint64_t echo_ms);
static inline enum wf_stop_ask
wf_stop_asked(_Atomic uint64_t *first, int signal_number)
{
	return wf_stop_asked_within(first, signal_number, WF_STOP_ECHO_MS);
}
/* Writes "SIGTERM", or "signal 40" for signals without a name here. Not async-signal-safe. */
void wf_signal_name(int signal_number, char out[WF_SIGNAL_NAME_BYTES]);
