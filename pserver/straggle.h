/* SPDX-License-Identifier: Apache-2.0 */
/* straggle: what a lane has measured of its trainers, for straggle.c and its test alone. Thread:
 * the lane's. */
#pragma once

#include <stdint.h>

/* Sums of times by which a trainer was waited for. */
struct wf_straggle {
	uint64_t last;            /* steps in which it arrived after all others */
	uint64_t behind_next_ns;  /* of these, after the one before it, */
	uint64_t behind_first_ns; /* and after the first */
	uint64_t arrived;         /* steps with the next two */
	uint64_t arrive_ns;       /* from the end of the step before to its arrival */
	uint64_t ahead_ns;        /* from its arrival to the last one */
	uint64_t split;           /* steps with the next two, which make up arrive_ns */
	uint64_t compute_ns, network_ns;
};

/* Of all trainers. */
struct wf_straggle_lane {
	uint64_t steps;
	uint64_t apply_ns; /* from the last arrival to the end */
};

struct wf_straggle_peer {
	uint64_t arrived_ns;       /* all of the step under way is here; 0: not yet */
	uint64_t interval_ns;      /* of its last step, until its compute time is known; 0: none */
	struct wf_straggle sum;    /* of the job */
	struct wf_straggle logged; /* of it, what lines have said */
};

struct wf_straggle_state {
	uint64_t done_ns;               /* end of the last step; 0: none */
	uint32_t done_pass;             /* its pass */
	struct wf_straggle_lane sum;    /* of the job */
	struct wf_straggle_lane logged; /* of it, what lines have said */
	struct wf_straggle_peer *peer;  /* [peers.count] */
};

/* Fills the values of a trainer's record (enum wf_watch_member) that are sums of times. */
void wf_straggle_watch(const struct wf_straggle_state *state, uint32_t trainer, uint64_t *value);
