/* SPDX-License-Identifier: Apache-2.0 */
/* child: one supervised process: start, its two pipes, its end. Thread: the supervisor's. */
#pragma once

#include <signal.h>

#include "base/outlet.h"
#include "tools/launch/lines.h"
#include "tools/launch/process.h"
#include "tools/launch/supervise.h"

struct wf_child {
	/* Fixed at start. */
	const struct wf_supervise_opts *opts;
	const struct wf_child_spec *spec;
	struct wf_outlet *err; /* where lines are shown */
	struct wf_outlet *out; /* where other lines of stdout go */
	unsigned colour;       /* SGR number of its name */
	int log_fd;            /* -1: not filed */

	struct wf_process process; /* unless it runs at a site */
	pid_t pid;                 /* of the host where it runs; 0: not known yet */
	bool started;
	bool over;       /* its site says that it has ended */
	bool ended;      /* and the supervisor knows */
	int wait_status; /* as waitpid gives it, when over */
	bool stopped;    /* has been sent a signal by the supervisor */
	bool dropped;    /* has ended, and the job goes on without it */
	bool is_joiner;  /* was started again, to join the others */
	bool log_failed;
	struct wf_lines lines[WF_PROCESS_STREAMS]; /* by stream; it has no stdin */
	char last_error[WF_LINE_BYTES];            /* last line of stderr that is not empty */
};

/* Bytes that must be free in the queue of stdout before a pipe is read, so that nothing is lost at
 * the child's end: a pipe of the usual 64 KiB full of empty lines, and the rest of an unfinished
 * one. */
#define WF_CHILD_STDOUT_ROOM ((size_t)2 << 20)

/* `idx` chooses its colour. */
void wf_child_init(struct wf_child *child, const struct wf_supervise_opts *opts,
		   const struct wf_child_spec *spec, unsigned idx);
/* Starts it, with `mask` as its signal mask. */
enum weft_status wf_child_start(struct wf_child *child, const sigset_t *mask) WEFT_MUST_CHECK;
/* Starts one again, which has ended. Not OK: it has still ended, as it had. */
enum weft_status wf_child_restart(struct wf_child *child, const sigset_t *mask) WEFT_MUST_CHECK;
/* Adds what a process gets from its second start on, once. WEFT_INVALID: there is no room. */
enum weft_status wf_child_add_again(struct wf_child_spec *spec) WEFT_MUST_CHECK;
/* Reads what is there on a stream, and closes the stream at its end. */
void wf_child_read(struct wf_child *child, enum wf_process_stream stream);
/* True if it has ended now: its pipes are then drained and closed, its group is gone. */
bool wf_child_reap(struct wf_child *child);
/* Gives up a process of this host that has not ended WF_PROCESS_STUCK_NS after SIGKILL. True: it
 * was one, and is left; `text` names it for a line. */
bool wf_child_leave(struct wf_child *child, char *text, size_t bytes) WEFT_MUST_CHECK;
/* To its whole group. A no-op once it has ended. */
void wf_child_signal(struct wf_child *child, int signal_number);
/* Its exit code as a shell counts it: 128 + signal. It has ended. */
int wf_child_exit_code(const struct wf_child *child);
/* The last line of its stderr, or a text that says that there is none. */
const char *wf_child_last_words(const struct wf_child *child);
void wf_child_fini(struct wf_child *child); /* it has ended, or was never started */

/* What a site reports of a process that runs there. */

/* It has been started: with opts->announce one line on stderr has its process number, and the
 * command that starts the same by hand. */
void wf_child_on_start(struct wf_child *child, pid_t pid);
void wf_child_on_line(struct wf_child *child, enum wf_process_stream stream, const char *text);
void wf_child_on_end(struct wf_child *child, int wait_status);
