/* SPDX-License-Identifier: Apache-2.0 */
/* why: where the time of the steps of a recording has gone, and who is to blame for the waits of
 * the others, if that is clear. Thread: main. */
#pragma once

#include "tools/trace/pushes.h"

#define WF_WHY_LINES 8u
#define WF_WHY_LINE_BYTES 640u
#define WF_WHY_HOT 4u

enum wf_why_kind {
	WF_WHY_NOBODY,    /* nothing explains enough of the waits, or there are none */
	WF_WHY_COMPUTE,   /* a trainer computes longer than the others */
	WF_WHY_DEVICE,    /* the same, it uses no CPU meanwhile, and has an accelerator */
	WF_WHY_OUT,       /* its gradients take longer to the lanes */
	WF_WHY_IN,        /* its answers take longer to it */
	WF_WHY_NETWORK,   /* both together; in which direction the clocks do not tell */
	WF_WHY_NO_CPU,    /* a trainer or a lane that could run is not given a CPU */
	WF_WHY_PAGING,    /* a trainer waits for its pages */
	WF_WHY_LANE,      /* a lane takes longer than the others */
	WF_WHY_IMBALANCE, /* and it has more bytes than they */
	WF_WHY_HOT_KEYS,  /* and, a sparse one, it is asked for more rows than they */
};

/* Means of a step, in nanoseconds. */
struct wf_why_part {
	double compute;  /* from the last answer to the last push, without waits for rows */
	double rows;     /* from the request for rows, or the apply that they wait for, until they
			  * are at the trainer */
	double wait;     /* to be sent: from there until the transport has the push */
	double way;      /* until it has arrived */
	double parked;   /* until those of all trainers have */
	double applied;  /* until it is applied */
	double answered; /* until the values are at the trainer */
};

/* A key that a table of a lane is asked for often. */
struct wf_why_hot {
	uint32_t table;
	uint32_t thousandths; /* of the keys that this table of this lane was asked for */
	uint64_t key;
};

struct wf_why {
	enum wf_why_kind kind;
	bool is_idle;    /* WF_WHY_COMPUTE: it uses little CPU meanwhile */
	bool is_trainer; /* who: a trainer or a lane */
	uint32_t member; /* of the recording; with a kind */
	double share;    /* of the wait that it explains, 0 to 1 */
	double wait_ns;  /* of a step that would be gone */
	double step_ns;  /* of a step, all in all */
	uint32_t steps;
	uint32_t hot_count; /* WF_WHY_HOT_KEYS: those asked for most often first */
	struct wf_why_hot hot[WF_WHY_HOT];
	uint32_t line_count;
	char line[WF_WHY_LINES][WF_WHY_LINE_BYTES];
};

/* WEFT_DATA: no step is whole. WEFT_NOMEM. */
enum weft_status wf_why_find(const struct wf_recording *recording, const struct wf_pushes *pushes,
			     struct wf_why *out) WEFT_MUST_CHECK;
/* "slow_compute", for scripts. */
const char *wf_why_kind_name(enum wf_why_kind kind);
