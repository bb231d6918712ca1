/* SPDX-License-Identifier: Apache-2.0 */
/* names: strings and their numbers, in the order in which they were added, found by open
 * addressing: one name costs the same however many there are.
 *
 * Thread: its owner's; any number of threads may look for names while none is added. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

#define WF_NAMES_NONE UINT32_MAX

struct wf_names {
	const char **name; /* [name_max] borrowed until fini */
	uint32_t name_max;
	uint32_t count;
	uint32_t *slot;    /* [slot_count] a name's number + 1; 0: free. At most half are taken. */
	size_t slot_count; /* a power of two */
	uint64_t looks;    /* at slots, to add names: what that has cost */
};

/* `out` need not be initialised. `name_max` 0: nothing is allocated, and nothing can be added. */
enum weft_status wf_names_init(struct wf_env *env, uint32_t name_max,
			       struct wf_names *out) WEFT_MUST_CHECK;
void wf_names_fini(struct wf_env *env, struct wf_names *names); /* accepts zeroed */
/* The number of a name, or WF_NAMES_NONE. */
uint32_t wf_names_find(const struct wf_names *names, const char *name);
/* There is room, and the name is not there yet. `name` is borrowed until fini. */
uint32_t wf_names_add(struct wf_names *names, const char *name);
