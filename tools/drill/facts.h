/* SPDX-License-Identifier: Apache-2.0 */
/* facts: what the lines of `weft launch` say about its job: steps, snapshots, restarts, and who was
 * named when. Lines of trainers have to come once a step (--log_period=1). Thread: any one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tools/launch/lines.h"

#define WF_DRILL_LAUNCH "weft launch" /* the speaker of launch's own lines */
#define WF_DRILL_DIGEST_BYTES 17u

struct wf_drill_facts {
	uint64_t steps_each; /* of a pass; 0: not known yet, and nothing is counted in steps */
	uint64_t batch_max;  /* the highest batch of a pass that was seen */
	uint64_t step;       /* the last one that a trainer has made in this life of the job */
	uint64_t made;       /* the last one that a trainer had made before wf_drill_facts_freeze */
	bool is_frozen;
	uint64_t beyond_ns; /* when a step later than `made` was seen; 0: none was */

	uint64_t snapshots;                 /* complete ones */
	uint64_t snapshots_failed;          /* not made */
	uint64_t snapshots_damaged;         /* that a job could not go on from */
	uint64_t resumed_step;              /* of the snapshot that the job went on from last */
	uint64_t resumed;                   /* how often it did */
	uint64_t restarts;                  /* made by launch itself, of one process or of all */
	char digest[WF_DRILL_DIGEST_BYTES]; /* of the last pass; "": none */
	char last[WF_LINE_BYTES];           /* the last line of stderr that is not empty */

	/* Set by wf_drill_facts_watch. */
	const char *sign;   /* what the first line that shows the fault has */
	const char *except; /* whose lines do not count; NULL: all do */
	uint64_t sign_ns;   /* when it was read; 0: not yet */
};

/* Begins to look for the first line that has `sign`, which both texts have to outlive. */
void wf_drill_facts_watch(struct wf_drill_facts *facts, const char *sign, const char *except);
/* What was made up to here counts as made before the fault. */
void wf_drill_facts_freeze(struct wf_drill_facts *facts);
/* A line of launch's stdout or stderr. */
void wf_drill_facts_on_result(struct wf_drill_facts *facts, const char *line);
void wf_drill_facts_on_line(struct wf_drill_facts *facts, const char *line, uint64_t now_ns);
/* Whether it is "NAME | ..."; also if it is "NAME: ...", as of launch itself. */
bool wf_drill_is_line_of(const char *line, const char *name);
