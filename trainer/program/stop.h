/* SPDX-License-Identifier: Apache-2.0 */
/* stop: signals that stop the training program while it has a session: the other members of the job
 * are notified, the run ends, and then the program dies of the signal, as its parent expects. A
 * second signal ends it at once. Without a session signals have their default actions.
 *
 * With save_on_term a SIGTERM stops nothing until trainer 0 has saved and stops the session itself,
 * or until the time for that is over, which a timer's SIGALRM tells. A sequential run has no
 * session; it is watched only for this.
 *
 * It is a handler, not a thread in sigwait: OpenBLAS has started threads before main runs, and they
 * receive signals that all others have blocked. Handlers have no argument, so there is one session
 * per program here. Thread: main, except the handler: any. */
#pragma once

#include "trainer/program/train.h"

/* From `begins` on signals stop the session, from `ends` on they wait for its end. `over`: if a
 * session has ended well in spite of a signal, no member waits for it, and the program dies of the
 * signal there. */
extern const struct wf_train_watch wf_stop_watch;
/* The run has failed, and has reported it: if a signal has stopped it, dies of that. Else returns.
 */
void wf_stop_die(void);
