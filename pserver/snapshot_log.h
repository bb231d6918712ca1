/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_log: the registrar's lines about snapshots that were made, and about those that failed,
 * of which a full disk may have one each second: the first is logged, then one a minute, and how
 * many there were. One with another reason is logged at once. Thread: lane 0's. */
#pragma once

#include "base/env.h"
#include "saved/snapshot.h"

/* Zeroed: nothing has failed. */
struct wf_snapshot_log {
	struct wf_log_limit failed;
	uint32_t kind; /* of the last failure's reason */
};

struct wf_snapshot_made {
	struct wf_snapshot_id id;
	bool is_delta;
	uint64_t bytes;
	uint64_t ns; /* that it took */
};

void wf_snapshot_log_made(struct wf_snapshot_log *log, struct wf_env *env,
			  const struct wf_snapshot_made *made);
void wf_snapshot_log_failed(struct wf_snapshot_log *log, struct wf_env *env, uint64_t step,
			    const char *why);
