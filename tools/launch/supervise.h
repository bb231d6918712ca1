/* SPDX-License-Identifier: Apache-2.0 */
/* supervise: runs the processes of one job on this host, from start to the last one's end.
 *
 * Each child is this same program with other arguments, or a program of the user's. It leads a
 * process group of its own and dies with the supervisor. Its lines are shown with its name before
 * them, and filed. The job ends in one of three ways. All workers have ended with 0, and the others
 * with them. One child fails: the rest have `grace_ns` to notice by themselves, so that their last
 * lines are seen, then they get SIGTERM, then SIGKILL. This process gets SIGINT, SIGTERM or SIGHUP:
 * all get SIGTERM at once, and SIGKILL after `grace_ns` or at the second signal. Nothing is left
 * behind.
 *
 * What this process writes goes through outlets, so that nobody waits for who reads it: lines of
 * the log are dropped and counted, results wait in a queue, and when that is full who makes them
 * waits.
 *
 * Thread: main, which has to outlive the children: death with the supervisor is bound to the thread
 * that started the child. Others have all signals blocked, as those of outlets have. Changes the
 * signal mask while it runs. */
#pragma once

#include "base/env.h"
#include "tools/launch/args.h"

#define WF_CAUSE_BYTES 768

struct wf_child_spec {
	char name[32];            /* "trainer 0"; the log file is "trainer-0.log" */
	const char *program;      /* path of what is executed; NULL: this program itself */
	struct wf_args args;      /* the first one is the name of the program */
	struct wf_args variables; /* "NAME=value", beside the supervisor's environment */
	bool is_worker;           /* the job is done when all workers are */
	bool owns_stdout;         /* its stdout goes to stdout as it is, or to on_stdout */
};

struct wf_supervise_opts {
	struct wf_env *env;
	const struct wf_child_spec *spec; /* [count] */
	unsigned count;
	const char *program; /* opens the supervisor's own lines: "weft launch" */
	const char *log_dir; /* NULL: lines are not filed; made if it is not there */
	bool colour;
	bool quiet;    /* log lines of level info are filed, not shown */
	bool announce; /* print each child's process number and command line */
	uint64_t grace_ns;
	/* Lines of stdout of the child that owns it; NULL: they go to stdout. */
	void (*on_stdout)(void *arg, const char *line);
	void *on_stdout_arg;
};

struct wf_supervise_end {
	int exit_code; /* 0, the first cause's, 128 + the signal that stopped the job */
	char cause[WF_CAUSE_BYTES]; /* one line, "" if all went well */
};

/* Not OK: the job could not be started or watched; what had been started has ended. */
enum weft_status wf_supervise(const struct wf_supervise_opts *opts,
			      struct wf_supervise_end *out) WEFT_MUST_CHECK;
