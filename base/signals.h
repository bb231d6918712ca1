/* SPDX-License-Identifier: Apache-2.0 */
/* signals: which of them ask a program to stop, and their names for messages. Thread: any. */
#pragma once

#include <signal.h>

#define WF_SIGNAL_NAME_BYTES 16

/* SIGINT, SIGTERM and, unless it is ignored, as nohup has it, SIGHUP. Shells ignore SIGINT for what
 * they start in the background; whoever sends it there by hand means it all the same. Asked before
 * the program does anything about signals. */
void wf_signals_that_stop(sigset_t *out);
/* "SIGTERM"; "signal 40" of those that have no name here. Async-signal-safe it is not. */
void wf_signal_name(int signal_number, char out[WF_SIGNAL_NAME_BYTES]);
