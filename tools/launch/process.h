/* SPDX-License-Identifier: Apache-2.0 */
/* process: one process of this host, by the handles that its parent owns: its pid until it is
 * reaped, its group, and its pipes. Thread: one, which must outlive the process, because the
 * process dies with the thread that started it. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/env.h"
#include "tools/launch/args.h"

/* How long a process is waited for after SIGKILL. One that waits in the kernel for a device or a
 * file system (state D) may never end. */
#define WF_PROCESS_STUCK_NS (30 * WF_NS_PER_S)

struct wf_process_opts {
	const char *name;                /* for messages */
	const char *program;             /* looked up in PATH; NULL: this program itself */
	const struct wf_args *args;      /* the first one is the name of the program */
	const struct wf_args *variables; /* "NAME=value", beside the environment; NULL: none */
	const sigset_t *mask;            /* its signal mask */
	bool has_stdin;                  /* a pipe; otherwise it reads /dev/null */
};

enum wf_process_stream {
	WF_PROCESS_STDIN,
	WF_PROCESS_STDOUT,
	WF_PROCESS_STDERR,
	WF_PROCESS_STREAMS,
};

struct wf_process {
	pid_t pid;                  /* its group's number too; 0: never started */
	bool ended;                 /* and reaped: the pid may be another's */
	int wait_status;            /* of waitpid, when ended */
	int fd[WF_PROCESS_STREAMS]; /* this end of its pipes, non-blocking; -1: closed, or none */
};

void wf_process_init(struct wf_process *process);
/* WEFT_IO: the text has the name and the reason; the pipes are closed by wf_process_fini. */
enum weft_status wf_process_start(struct wf_process *process,
				  const struct wf_process_opts *opts) WEFT_MUST_CHECK;
/* Returns true if it has ended now; its whole group has been killed then. */
bool wf_process_reap(struct wf_process *process);
/* Gives up a process that SIGKILL has not ended: it counts as killed, and is not waited for. */
void wf_process_leave(struct wf_process *process);
/* To its whole group. A no-op before the start and after the end. */
void wf_process_signal(const struct wf_process *process, int signal_number);
/* Closes one of its pipes, if it is open. */
void wf_process_close(struct wf_process *process, enum wf_process_stream stream);
void wf_process_fini(struct wf_process *process); /* it has ended, or was never started */
