/* SPDX-License-Identifier: Apache-2.0 */
/* supervise_internal: what the files of the supervisor share: supervise.c has the loop, and decides
 * about phases; supervise_losses.c, supervise_cause.c, supervise_pipes.c and supervise_phases.c
 * stand below it. Thread: the supervisor's. */
#pragma once

#include "tools/launch/supervise.h"

#define WF_SUPERVISE_SAY_BYTES (WF_CAUSE_BYTES + 64)

/* Keys of events; all others are child * WF_PROCESS_STREAMS + stream. */
#define WF_SUPERVISE_SIGNAL UINT64_MAX
#define WF_SUPERVISE_WAKE (UINT64_MAX - 1) /* of wake_fd */
#define WF_SUPERVISE_SITE (1ull << 32)     /* and upwards: of the sites */

enum wf_supervise_phase {
	WF_PHASE_RUN,
	WF_PHASE_LINGER, /* the workers have ended well */
	WF_PHASE_FAIL,   /* one failed, the others may notice by themselves */
	WF_PHASE_TERM,
	WF_PHASE_KILL,
};

struct wf_supervision {
	const struct wf_supervise_opts *opts;
	struct wf_child *child; /* [opts->count] */
	struct wf_outlet *err;  /* lines of this process and of the children; drops what nobody
				 * reads */
	struct wf_outlet *out;  /* results: drops nothing, for we stop reading before it is full */
	int stalled_fd; /* stdout of a child, or its site, not read for that reason; -1: none */
	uint64_t stalled_key;
	int epoll_fd;
	int signal_fd;
	int wake_fd; /* eventfd of `out` */
	sigset_t signals;
	sigset_t mask_before;

	enum wf_supervise_phase phase;
	uint64_t phase_ns;            /* how long the phase may last, or WF_NEVER */
	uint64_t deadline_ns;         /* of the phase */
	uint64_t tick_ns;             /* the next one of the sites; WF_NEVER: there are none */
	int signal_number;            /* signal that asked to stop, or 0 */
	_Atomic uint64_t asked;       /* wf_stop_asked */
	const struct wf_child *cause; /* child that failed first, or NULL */
	unsigned left_count;          /* children that SIGKILL has not ended */
	struct wf_restart *restart;   /* [opts->count] */
	uint64_t restarts;            /* made, with opts->restarts.made */
};

/* supervise_phases.c */
/* Begins a phase, which lasts `after_ns` at the most. */
void wf_supervision_enter(struct wf_supervision *job, enum wf_supervise_phase phase,
			  uint64_t after_ns);

/* supervise_losses.c */
/* What becomes of the job now that this child has ended. */
void wf_supervision_note_end(struct wf_supervision *job, unsigned idx);
/* Starts again those whose time has come. */
void wf_supervision_restart_due(struct wf_supervision *job);
/* Whether all have ended well but workers that were started again and may not have joined: nobody
 * is left whom they could join. */
bool wf_supervision_is_over_but_for_joiners(const struct wf_supervision *job);
/* Names these, which are about to be stopped and count as dropped. False: there are none. */
bool wf_supervision_drop_joiners(struct wf_supervision *job);

/* supervise_cause.c */
/* Whether the job may do better if it is started again, after the end of this child. */
bool wf_supervision_may_recover(const struct wf_child *child);
/* How this child has ended, in one line: out->cause. */
void wf_supervision_describe_cause(const struct wf_child *cause, struct wf_supervise_end *out);
/* A child that ended with "peer unavailable" may have noticed the failure of another one a moment
 * before this process did, and so may a program of the user's with an exit code of its own: then
 * the other one is the cause. */
bool wf_supervision_is_better_cause(const struct wf_supervision *job, const struct wf_child *child);
/* How the job has ended: everything of `out`. */
void wf_supervision_describe_end(const struct wf_supervision *job, struct wf_supervise_end *out);

/* supervise_pipes.c */
/* A line of the supervisor's own; `text` is shorter than WF_SUPERVISE_SAY_BYTES. */
void wf_supervision_print(const struct wf_supervision *job, const char *text);
enum weft_status wf_supervision_open_output(struct wf_supervision *job) WEFT_MUST_CHECK;
/* Has `fd` reported with `key` when it can be read. */
enum weft_status wf_supervision_watch(struct wf_supervision *job, int fd,
				      uint64_t key) WEFT_MUST_CHECK;
/* The pipes of a child of this host. */
enum weft_status wf_supervision_watch_child(struct wf_supervision *job,
					    unsigned idx) WEFT_MUST_CHECK;
/* There is room for results, a site has something to do, a child's pipe can be read. */
void wf_supervision_on_wake(struct wf_supervision *job);
void wf_supervision_on_site(struct wf_supervision *job, uint64_t key);
void wf_supervision_on_child(struct wf_supervision *job, uint64_t key);
/* Results that are still queued are waited for, as printing them would have done: Ctrl-C and
 * SIGTERM have their default action again. After one of these they are waited for while the reader
 * makes progress. */
void wf_supervision_finish_output(struct wf_supervision *job);
