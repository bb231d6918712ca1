/* SPDX-License-Identifier: Apache-2.0 */
/* signals: which of them ask a program to stop, and their names for messages. Thread: any. */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#define WF_SIGNAL_NAME_BYTES 16

/* SIGINT, SIGTERM and, unless it is ignored, as nohup has it, SIGHUP. Shells ignore SIGINT for what
 * they start in the background; whoever sends it there by hand means it all the same. Asked before
 * the program does anything about signals. */
void wf_signals_that_stop(sigset_t *out);
/* timeout(1) sends a signal to its child and then to the child's whole group, and who closes a
 * terminal causes SIGHUP from the shell and from the kernel: the same signal so soon after the
 * first is its echo, and not somebody who asks once more. */
#define WF_STOP_ECHO_MS 200u

enum wf_stop_ask {
	WF_STOP_FIRST,
	WF_STOP_ECHO,
	WF_STOP_AGAIN,
};

/* A signal has asked to stop. `first` is the program's, 0 before the first one, and what it becomes
 * is this function's. Async-signal-safe. */
enum wf_stop_ask wf_stop_asked(_Atomic uint64_t *first, int signal_number);
/* "SIGTERM"; "signal 40" of those that have no name here. Async-signal-safe it is not. */
void wf_signal_name(int signal_number, char out[WF_SIGNAL_NAME_BYTES]);
