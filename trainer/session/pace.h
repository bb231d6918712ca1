/* SPDX-License-Identifier: Apache-2.0 */
/* pace: how long a session's exchanges take, and how long its trainer computes between them. Only
 * these functions write it. They are inline because they are in the path of a slice. Thread: the
 * core's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"
#include "base/hist.h"

struct wf_pace {
	uint32_t pushable_count; /* tensors that are not static; fixed when the core opens */
	uint32_t unpushed;       /* of them, in this step; counted with times only */
	uint64_t busy_since_ns;  /* with times only */
	uint64_t answered_ns; /* all of the step before: 0: without stats, or none in this pass */
	uint64_t compute_ns;  /* from then to the last push; 0: not known */
	uint64_t told_compute_ns; /* of the step before, as sent in STEP */
	struct wf_hist exchange_time;
};

static inline void
wf_pace_on_step(struct wf_pace *pace)
{
	pace->unpushed = pace->pushable_count;
	pace->told_compute_ns = pace->compute_ns;
	pace->compute_ns = 0;
}

/* What comes between passes is not computing. */
static inline void
wf_pace_on_pass(struct wf_pace *pace)
{
	pace->answered_ns = 0;
	pace->compute_ns = 0;
}

/* With times only, from here on. A tensor was pushed in the step. */
static inline void
wf_pace_on_push(struct wf_pace *pace, struct wf_env *env)
{
	if (--pace->unpushed == 0) {
		bool known = pace->answered_ns != 0;
		pace->compute_ns = known ? wf_now_ns(env) - pace->answered_ns : 0;
	}
}

/* The first slices are under way. */
static inline void
wf_pace_on_busy(struct wf_pace *pace, uint64_t now_ns)
{
	pace->busy_since_ns = now_ns;
}

/* No slice is under way any more. */
static inline void
wf_pace_on_rest(struct wf_pace *pace, uint64_t now_ns)
{
	if (pace->busy_since_ns != 0) { /* 0: they had begun before times were on */
		wf_hist_record(&pace->exchange_time, now_ns - pace->busy_since_ns);
	}
	pace->answered_ns = pace->unpushed == 0 ? now_ns : pace->answered_ns;
}
