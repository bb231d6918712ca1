/* SPDX-License-Identifier: Apache-2.0 */
/* pushes: the events of a recording put together: each push of a slice from the request to its
 * answer, and the steps of which all is known. Thread: main. */
#pragma once

#include "tools/trace/recording.h"

/* Times of the one clock; 0: not recorded. */
struct wf_pushed {
	uint32_t step, slice;
	uint32_t trainer, lane; /* members of the recording, by index */
	uint64_t bytes;
	uint64_t queued_ns, posted_ns, sent_ns;
	uint64_t arrived_ns, parked_ns, applied_ns, posted_back_ns;
	uint64_t answered_ns;
};

struct wf_pushes {
	struct wf_env *env;
	struct wf_pushed *all; /* [count] by step, then trainer, lane, slice */
	uint32_t count, capacity;
	/* The steps of which each push is known from its request to its answer, [first_step,
	 * end_step): the last ones of these, at most as many as were asked for. */
	uint32_t first_step, end_step;
	/* From the first step of which all is known to end_step: pushes, and those applied. */
	uint32_t seen_step, posted, applied;
};

/* WEFT_NOMEM. After wf_recording_align. */
enum weft_status wf_pushes_find(const struct wf_recording *recording,
				struct wf_pushes *out) WEFT_MUST_CHECK;
void wf_pushes_fini(struct wf_pushes *pushes);
