/* SPDX-License-Identifier: Apache-2.0 */
/* ceiling: an env that gives no more memory than it was told, over all that share it: the tables
 * of one lane. Everything else is the env behind it. Thread: the lane's. */
#pragma once

#include "base/env.h"

struct wf_ceiling {
	struct wf_env env; /* what is handed on */
	struct wf_env *inner;
	uint64_t limit_bytes;
	uint64_t used_bytes; /* as asked */
	uint64_t refused_count;
};

void wf_ceiling_init(struct wf_ceiling *ceiling, struct wf_env *inner, uint64_t limit_bytes);
