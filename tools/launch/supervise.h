/* SPDX-License-Identifier: Apache-2.0 */
/* supervise: runs the processes of one job, from the start to the end of the last one.
 *
 * Each child is this same program with other arguments, or a program of the user's. On this host it
 * leads its own process group and dies with the supervisor; on another one a site does the same for
 * it. Its lines are printed with its name in front, and written to its log file. The job ends in
 * one of three ways. All workers but those that were dropped have ended with 0, and the others with
 * them. One child fails, and is neither started again by itself nor dropped: the rest have
 * `grace_ns` to notice by themselves, so that their last lines are seen, then they get SIGTERM,
 * then SIGKILL. This process gets SIGINT, SIGTERM or SIGHUP: all get SIGTERM at once, and SIGKILL
 * after `grace_ns` or at the second signal. No process is left behind, except one that has not
 * ended WF_PROCESS_STUCK_NS after SIGKILL, which is named.
 *
 * The output of this process goes through outlets, so that it never waits for its readers: lines of
 * the log are dropped and counted, results wait in a queue, and when that is full their producer
 * waits.
 *
 * Thread: main, which must outlive the children, because their death with the supervisor is bound
 * to the thread that started them. Other threads, such as those of outlets, have all signals
 * blocked. Changes the signal mask while it runs. */
#pragma once

#include <signal.h>

#include "base/env.h"
#include "tools/launch/args.h"
#include "tools/launch/process.h"

#define WF_CAUSE_BYTES 768

struct wf_child;

/* A host on which another program starts processes for the supervisor, and reports what they do. It
 * has to outlive the supervision. */
#define WF_SITE_NAME_BYTES 256
struct wf_site {
	const struct wf_site_ops *ops;
	const char *name;
	int fd; /* readable when on_ready has something to do */
};

struct wf_site_ops {
	/* Asks for the start, or for another one of a child that has ended; with spec->again from
	 * the second on. The site then calls wf_child_on_start, wf_child_on_line and, at the end,
	 * also after a failed start, wf_child_on_end: see child.h. */
	enum weft_status (*start)(struct wf_site *site, struct wf_child *child,
				  const sigset_t *mask);
	void (*signal)(struct wf_site *site, struct wf_child *child, int signal_number);
	/* Whether processes may be started there: the connection is there. */
	bool (*is_there)(const struct wf_site *site);
	void (*on_ready)(struct wf_site *site);
	/* It has not ended its processes in time: closes the connection, and reports that they
	 * have ended. */
	void (*abandon)(struct wf_site *site);
	/* Called every WF_SITE_TICK_NS. */
	void (*tick)(struct wf_site *site);
};
#define WF_SITE_TICK_NS (5 * WF_NS_PER_S)

struct wf_child_spec {
	char name[32];            /* "trainer 0" */
	char log[32];             /* its log file, without ".log"; "": as the name, "trainer-0" */
	struct wf_site *site;     /* where it runs; NULL: here */
	uint32_t number;          /* there */
	bool has_stdin;           /* a pipe from this process; only here */
	const char *program;      /* path of the program; NULL: this program itself */
	struct wf_args args;      /* the first one is the name of the program */
	struct wf_args variables; /* "NAME=value", beside the supervisor's environment */
	bool is_worker;           /* the job is done when all workers are */
	bool owns_stdout;         /* its stdout goes to stdout as it is, or to on_stdout */
	const char *again; /* from the second start on: a further argument, or a variable of a
				   * user's program; NULL: none */
};

/* A child that has died or failed, and not because of its options or data, may be started again by
 * itself while the others go on. It is not when one has ended with 0, which cannot
 * take part in what follows, when `most` starts were made, or when the start fails: the child then
 * ends the job, or is dropped. */
struct wf_supervise_restarts {
	bool alone;
	bool joins; /* only a worker that would be dropped, and it joins the others again */
	uint64_t joiner_grace_ns; /* when all others have ended, until one of weft's own that was to
				   * join is stopped */
	uint64_t made;            /* before this job began */
	uint64_t most;            /* with those */
};

struct wf_supervise_opts {
	struct wf_env *env;
	struct wf_child_spec *spec; /* [count] */
	unsigned count;
	const char *program; /* opens the supervisor's own lines: "weft launch" */
	const char *log_dir; /* NULL: lines are not filed; made if it is not there */
	bool colour;
	bool quiet;    /* log lines of level info are filed, not shown */
	bool announce; /* print each child's process number and command line */
	uint64_t grace_ns;
	uint64_t save_grace_ns; /* besides, after SIGTERM: children may save first; 0: none does */
	/* Lines of stdout of the child that owns it; NULL: they go to stdout. */
	void (*on_stdout)(void *arg, const char *line);
	void *on_stdout_arg;
	/* All lines, after they were filed; NULL: they are shown, and `on_stdout` counts. */
	void (*on_line)(void *arg, struct wf_child *child, enum wf_process_stream stream,
			const char *line);
	void *on_line_arg;
	struct wf_site *const *site; /* [site_count] those that processes run at */
	unsigned site_count;
	struct wf_supervise_restarts restarts;
	/* A worker that has died or failed, and is not started again, is dropped if so many others
	 * are left, which go on without it. 0: it ends the job. One that has ended because of its
	 * options or its data ends it nevertheless. */
	unsigned least_workers;
};

struct wf_supervise_end {
	int exit_code; /* 0, the first cause's, 128 + the signal that stopped the job */
	char cause[WF_CAUSE_BYTES]; /* one line, "" if all went well; with exit_code 0: who was
				     * dropped */
	uint64_t restarts;          /* made by then, with opts->restarts.made */
	bool is_done;     /* a child has died or failed, and all workers have ended with 0 */
	bool may_recover; /* or not, and it was not because of its options or data */
};

/* Not OK: the job could not be started or watched; what had been started has ended. */
enum weft_status wf_supervise(const struct wf_supervise_opts *opts,
			      struct wf_supervise_end *out) WEFT_MUST_CHECK;
