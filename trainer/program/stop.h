/* SPDX-License-Identifier: Apache-2.0 */
/* stop: signals that ask the training program to stop, while it has a session: the other members of
 * the job are told, the run ends, and then the program dies of the signal, as its parent expects. A
 * second one ends it at once. Without a session the system's ways with signals are left alone.
 *
 * A handler, not a thread in sigwait: OpenBLAS has started threads by the time main runs, and they
 * take signals that all others have blocked. Handlers have no argument, so there is one session of
 * one program here. Thread: main, but for the handler: any. */
#pragma once

#include "trainer/program/train.h"

/* From `begins` on signals stop the session, from `ends` on they wait for its end. `over`: a
 * session that has ended well in spite of one leaves nobody waiting, and the program dies of it
 * there. */
extern const struct wf_train_watch wf_stop_watch;
/* The run has failed, and has reported it: if a signal has stopped it, dies of that. Else returns.
 */
void wf_stop_die(void);
