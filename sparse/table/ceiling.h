/* SPDX-License-Identifier: Apache-2.0 */
/* ceiling: an env that limits the memory which those that share it, the tables of one lane, have in
 * sum. Everything else is passed to the env behind it. Thread: the lane's. */
#pragma once

#include "base/env.h"

struct wf_ceiling {
	struct wf_env env; /* the env that is passed on */
	struct wf_env *inner;
	uint64_t limit_bytes;
	uint64_t used_bytes; /* as requested */
	uint64_t refused_count;
};

void wf_ceiling_init(struct wf_ceiling *ceiling, struct wf_env *inner, uint64_t limit_bytes);
