/* SPDX-License-Identifier: Apache-2.0 */
/* supervise_phases: how a phase of a job begins. Thread: the supervisor's. */
#include <signal.h>

#include "base/env.h"
#include "tools/launch/child.h"
#include "tools/launch/restart.h"
#include "tools/launch/supervise_internal.h"

static void
signal_all(struct wf_supervision *job, int signal_number)
{
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_child_signal(&job->child[i], signal_number);
	}
}

void
wf_supervision_enter(struct wf_supervision *job, enum wf_supervise_phase phase, uint64_t after_ns)
{
	job->phase = phase;
	job->phase_ns = after_ns;
	job->deadline_ns = after_ns == WF_NEVER ? WF_NEVER : wf_now_ns(job->opts->env) + after_ns;
	for (unsigned i = 0; i < job->opts->count; i++) {
		wf_restart_cancel(&job->restart[i]); /* the job ends */
	}
	if (phase == WF_PHASE_TERM) {
		signal_all(job, SIGTERM);
	} else if (phase == WF_PHASE_KILL) {
		signal_all(job, SIGKILL);
	}
}
