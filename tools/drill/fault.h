/* SPDX-License-Identifier: Apache-2.0 */
/* fault: what a drill breaks, and what it measures then. Each fault is a short script: wait for a
 * snapshot, do it, wait for what follows. Thread: main. */
#pragma once

#include "tools/drill/run.h"

#define WF_DRILL_FAILURE_BYTES 512u
#define WF_DRILL_PATH_BYTES 2048u
#define WF_DRILL_LANES 2u /* dense lanes of each pserver */

struct wf_drill_opts {
	uint64_t pservers, trainers;
	uint64_t restarts; /* that launch may make */
	uint64_t passes;
	uint64_t port;     /* of the first lane, for this run */
	uint64_t limit_ns; /* how long each event is waited for */
	const char *transport;
	const char *dir; /* of this run: snapshots and the log are in it */
};

struct wf_drill_row {
	uint64_t detected_ns, recovered_ns; /* after the fault; WF_NEVER: not seen */
	uint64_t repeated;                  /* steps */
	uint64_t snapshots_lost;
	uint64_t snapshots;
	char digest[WF_DRILL_DIGEST_BYTES];
	bool is_skipped; /* the fault cannot be played here, because of the failure */
	char failure[WF_DRILL_FAILURE_BYTES]; /* "": the job recovered and ended well */
};

struct wf_drill_play;

/* By whom the job, or a process of it, is started again after a fault. */
enum wf_drill_restarted {
	WF_DRILL_BY_NOBODY, /* it never ended */
	WF_DRILL_BY_LAUNCH, /* --restarts: that process, and the others stay */
	WF_DRILL_BY_DRILL,  /* with the same command line */
};

struct wf_drill_fault {
	const char *name;
	const char *summary;
	/* From the start of the job up to the point from which it only has to end. */
	enum weft_status (*play)(struct wf_drill_play *play);
	enum wf_drill_restarted restarted;
	bool cuts_link; /* in a network of the job's own, over TCP */
};

/* The fault of that name, of `bytes` bytes; NULL: there is none. */
const struct wf_drill_fault *wf_drill_fault_find(const char *name, size_t bytes);
/* All faults, in the order in which they are played; `idx` from 0, NULL: no more. */
const struct wf_drill_fault *wf_drill_fault_at(unsigned idx);

/* Runs the job with the fault; NULL: undisturbed. What the job did not do is in out->failure. Not
 * OK: this process is to stop (WEFT_ABORTED), or could not begin. */
enum weft_status wf_drill_fault_play(const struct wf_drill_fault *fault,
				     const struct wf_drill_opts *opts, struct wf_drill_run *run,
				     struct wf_drill_row *out) WEFT_MUST_CHECK;
