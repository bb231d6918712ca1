/* SPDX-License-Identifier: Apache-2.0 */
/* run: one run of `weft launch`, whose lines are read and filed, and whose processes can be sent
 * signals. Signals that stop this process end the wait; nothing that was started is left behind:
 * launch ends its own processes, and they die with it, as it does with this one.
 * Thread: main, which started it. */
#pragma once

#include <signal.h>

#include "tools/drill/facts.h"
#include "tools/launch/process.h"

#define WF_DRILL_MEMBERS_MAX 32u
#define WF_DRILL_NAME_BYTES 32u

/* A process of the job, of its newest life. */
struct wf_drill_member {
	char name[WF_DRILL_NAME_BYTES]; /* "trainer 1" */
	pid_t pid;
	int fd; /* pidfd: no other process can get the signal */
};

struct wf_drill_run {
	struct wf_env *env;
	struct wf_drill_facts facts;
	struct wf_process launch;
	struct wf_lines lines[WF_PROCESS_STREAMS];
	struct wf_drill_member member[WF_DRILL_MEMBERS_MAX];
	unsigned member_count;
	unsigned replaced; /* members that launch has started again */
	int log_fd;
	int epoll_fd, signal_fd;
	sigset_t mask_before;
	_Atomic uint64_t asked; /* wf_stop_asked */
	int signal_number;      /* that asked to stop, or 0 */
};

/* Blocks the signals that stop a process until wf_drill_run_close. WEFT_IO */
enum weft_status wf_drill_run_open(struct wf_env *env, struct wf_drill_run *run) WEFT_MUST_CHECK;
/* Ends what still runs. */
void wf_drill_run_close(struct wf_drill_run *run);
/* Forgets what was seen, and files the lines in a new file. No process runs. WEFT_IO */
enum weft_status wf_drill_run_reset(struct wf_drill_run *run, const char *log_path) WEFT_MUST_CHECK;
/* Starts this program with these arguments, which are those of `weft launch`. What was seen before
 * stays, for a job that is started again. WEFT_IO */
enum weft_status wf_drill_run_start(struct wf_drill_run *run,
				    const struct wf_args *args) WEFT_MUST_CHECK;

/* NULL: never, the end of launch is awaited. */
typedef bool wf_drill_question(const struct wf_drill_run *run);
/* Reads lines until the question is answered with yes, and, without one, until launch has ended.
 * WEFT_TIMEOUT: not before the deadline; WEFT_CLOSED: launch has ended before; WEFT_ABORTED: this
 * process is to stop. */
enum weft_status wf_drill_run_await(struct wf_drill_run *run, wf_drill_question *question,
				    uint64_t deadline_ns) WEFT_MUST_CHECK;
/* Ends launch: SIGTERM, and SIGKILL when it has not ended in time. */
void wf_drill_run_stop(struct wf_drill_run *run);
/* The exit code of launch, which has ended. */
int wf_drill_run_exit_code(const struct wf_drill_run *run);

/* To a process of the job; to launch with WF_DRILL_LAUNCH. WEFT_INVALID: there is none of that name
 * any more. */
enum weft_status wf_drill_run_signal(const struct wf_drill_run *run, const char *name,
				     int signal_number) WEFT_MUST_CHECK;
/* Sets whether pservers can write to files at all: RLIMIT_FSIZE. WEFT_PERM, WEFT_INVALID: none is
 * left. */
enum weft_status wf_drill_run_let_write(const struct wf_drill_run *run,
					bool may_write) WEFT_MUST_CHECK;
