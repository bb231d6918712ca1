/* SPDX-License-Identifier: Apache-2.0 */
/* why_table: the times of the whole steps of a recording, by step, trainer and lane, and their
 * means; for the files of why alone. Thread: main. */
#pragma once

#include <math.h>

#include "tools/trace/why.h"

#define WF_WHY_NONE ((double)NAN) /* a time that is not known */

/* Of one step, trainer and lane: the latest of each, times of the one clock; 0: none. */
struct wf_why_path {
	uint64_t queued, posted, arrived, complete, applied, answered;
	uint64_t asked, given; /* the first request for rows of the step; the last of these rows */
	uint64_t bytes;
};

struct wf_why_cell {
	struct wf_why_part sum;
	double bytes;
};

/* Members that are compared with each other. */
enum wf_why_group {
	WF_WHY_TRAINERS,
	WF_WHY_DENSE_LANES,
	WF_WHY_SPARSE_LANES,
};

/* What is known of a member, means of a step. */
enum wf_why_mean {
	WF_WHY_OWN,       /* ns: a trainer's own time, a lane's service; NONE: no step has it */
	WF_WHY_COMPUTED,  /* ns, of a trainer, as the next three: of each step its longest lane */
	WF_WHY_SENT,      /* ns: to send and on the way */
	WF_WHY_ON_WAY,    /* ns: on the way alone */
	WF_WHY_RECEIVED,  /* ns: answers, and rows */
	WF_WHY_LOAD,      /* of a lane: bytes of gradients, or rows */
	WF_WHY_CPU,       /* ns; NONE: not known */
	WF_WHY_RUN_QUEUE, /* ns; 0: not known */
	WF_WHY_FAULTS,    /* 0: not known */
	WF_WHY_MEANS,
};

struct wf_why_table {
	struct wf_env *env;
	const struct wf_recording *recording;
	const struct wf_pushes *pushes;
	uint32_t members, steps;
	uint32_t timed;               /* steps whose beginning is known */
	double step_ns;               /* of a step, all in all */
	struct wf_why_path *path;     /* [steps][trainer][lane], by members */
	struct wf_why_cell *cell;     /* [trainer][lane] means */
	double *own;                  /* [steps][member] as WF_WHY_OWN */
	double (*mean)[WF_WHY_MEANS]; /* [member] */
	enum wf_why_group *group;     /* [member] */
};

/* WEFT_NOMEM. */
enum weft_status wf_why_table_open(const struct wf_recording *recording,
				   const struct wf_pushes *pushes,
				   struct wf_why_table *out) WEFT_MUST_CHECK;
void wf_why_table_close(struct wf_why_table *table);

static inline struct wf_why_path *
wf_why_path_of(const struct wf_why_table *table, uint32_t step, uint32_t trainer, uint32_t lane)
{
	return &table->path[((size_t)step * table->members + trainer) * table->members + lane];
}

static inline struct wf_why_cell *
wf_why_cell_of(const struct wf_why_table *table, uint32_t trainer, uint32_t lane)
{
	return &table->cell[(size_t)trainer * table->members + lane];
}

static inline bool
wf_why_is_trainer(const struct wf_why_table *table, uint32_t member)
{
	return table->group[member] == WF_WHY_TRAINERS;
}

static inline double
wf_why_larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double
wf_why_smaller(double a, double b)
{
	return a < b ? a : b;
}

/* why_text.c: the lines of `out`, whose verdict is filled in. WEFT_NOMEM. */
enum weft_status wf_why_write(const struct wf_why_table *table, struct wf_why *out) WEFT_MUST_CHECK;
