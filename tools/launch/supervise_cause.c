/* SPDX-License-Identifier: Apache-2.0 */
/* supervise_cause: why a job has ended, in words and as an exit code. Thread: the supervisor's. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/exit_code.h"
#include "tools/launch/child.h"
#include "tools/launch/supervise_internal.h"

#define MEANING_BYTES 64

/* Whether a process of weft's own would end with this code again. */
static bool
is_for_good(int exit_code)
{
	return exit_code == WF_EXIT_USAGE || exit_code == WF_EXIT_DATA || exit_code == WF_EXIT_PERM;
}

bool
wf_supervision_may_recover(const struct wf_child *child)
{
	return child->spec->program != NULL || !is_for_good(wf_child_exit_code(child));
}

void
wf_supervision_describe_cause(const struct wf_child *cause, struct wf_supervise_end *out)
{
	bool has_last = cause->last_error[0] != '\0';
	const char *last = wf_child_last_words(cause);

	if (WIFSIGNALED(cause->wait_status)) {
		int number = WTERMSIG(cause->wait_status);
		snprintf(out->cause, sizeof(out->cause),
			 "%s (pid %d) was killed by signal %d (%s); %s%.512s", cause->spec->name,
			 (int)cause->pid, number, strsignal(number),
			 has_last ? "its last line: " : "", last);
	} else {
		int code = WEXITSTATUS(cause->wait_status);
		char meaning[MEANING_BYTES] = ""; /* the exit codes of another program have their
						   * own meaning */
		if (cause->spec->program == NULL) {
			snprintf(meaning, sizeof(meaning), " (%s)", wf_exit_meaning(code));
		}
		snprintf(out->cause, sizeof(out->cause), "%s ended with exit code %d%s: %.512s",
			 cause->spec->name, code, meaning, last);
	}
}

/* Whether it may only have noticed the failure of another one. */
static bool
may_follow(const struct wf_child *child)
{
	bool has_own_codes = child->spec->program != NULL && WIFEXITED(child->wait_status);
	return has_own_codes || wf_child_exit_code(child) == WF_EXIT_UNAVAILABLE;
}

bool
wf_supervision_is_better_cause(const struct wf_supervision *job, const struct wf_child *child)
{
	return job->cause == NULL || (may_follow(job->cause) && !may_follow(child));
}

/* Whether the work is done, whatever becomes of the others. */
static bool
have_workers_done(const struct wf_supervision *job)
{
	bool done = true;

	for (unsigned i = 0; i < job->opts->count && done; i++) {
		const struct wf_child *child = &job->child[i];
		done = !child->spec->is_worker || child->dropped ||
		       (child->ended && wf_child_exit_code(child) == 0);
	}
	return done;
}

/* A job that has ended well, and not with all that it began with. */
static void
name_dropped(const struct wf_supervision *job, struct wf_supervise_end *out)
{
	char names[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < job->opts->count && used < sizeof(names); i++) {
		const struct wf_child *child = &job->child[i];
		if (child->dropped) {
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used > 0 ? ", " : "", child->spec->name);
		}
	}
	if (used > 0) {
		snprintf(out->cause, sizeof(out->cause),
			 "the job has ended well without %s%s, which had died or failed", names,
			 used >= sizeof(names) ? "..." : "");
	}
}

void
wf_supervision_describe_end(const struct wf_supervision *job, struct wf_supervise_end *out)
{
	*out = (struct wf_supervise_end){.exit_code = WF_EXIT_OK, .restarts = job->restarts};
	if (job->cause != NULL) {
		wf_supervision_describe_cause(job->cause, out);
		out->exit_code = wf_child_exit_code(job->cause);
		out->is_done = have_workers_done(job);
		out->may_recover = !out->is_done && wf_supervision_may_recover(job->cause);
	} else if (job->signal_number == SIGPIPE) {
		out->exit_code = WF_EXIT_IO;
		snprintf(out->cause, sizeof(out->cause),
			 "stdout cannot be written; the job was stopped");
	} else if (job->signal_number != 0 && job->left_count > 0) {
		out->exit_code = WF_EXIT_SIGNAL + job->signal_number;
		snprintf(out->cause, sizeof(out->cause), "stopped by %s; %u of %u processes %s",
			 strsignal(job->signal_number), job->left_count, job->opts->count,
			 "did not end on SIGKILL and are left behind");
	} else if (job->left_count > 0) {
		out->exit_code = WF_EXIT_IO;
		snprintf(out->cause, sizeof(out->cause), "%u of %u processes %s", job->left_count,
			 job->opts->count, "did not end on SIGKILL and are left behind");
	} else if (job->signal_number != 0) {
		out->exit_code = WF_EXIT_SIGNAL + job->signal_number;
		snprintf(out->cause, sizeof(out->cause), "stopped by %s; all processes have ended",
			 strsignal(job->signal_number));
	} else {
		name_dropped(job, out);
	}
}
