/* SPDX-License-Identifier: Apache-2.0 */
/* budget: the memory of one table, to the byte, and its cap. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

struct wf_budget {
	struct wf_env *env;
	uint64_t cap_bytes;  /* UINT64_MAX: none */
	uint64_t used_bytes; /* as requested of the env */
	bool cap_refused;    /* the cap has refused at least one request */
};

/* Zeroed memory, aligned to 128 bytes. NULL if the cap or the env refuses; nothing is recorded,
 * because its meaning is the caller's to report. */
void *wf_budget_alloc(struct wf_budget *budget, size_t bytes);
/* Accepts NULL. `bytes` as allocated. */
void wf_budget_give(struct wf_budget *budget, void *memory, size_t bytes);
/* Replaces an array by a larger one that begins with it. false: no memory; it is as it was. */
bool wf_budget_grow(struct wf_budget *budget, void **array, size_t old_bytes, size_t bytes);
