/* SPDX-License-Identifier: Apache-2.0 */
/* gone: the keys of rows that a table has lost since a border, for snapshots that have only what
 * has changed since (capture.h). What is new or updated needs no list, because a row has the steps
 * of its birth and of its last update; one that is gone has nothing. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

#define WF_GONE_KEYS_MAX (1u << 24) /* 128 MiB; more are not listed: the next copy is complete */

/* All zeroes but `env`: no border yet, and nothing is listed. */
struct wf_gone {
	struct wf_env *env;
	uint64_t *key;   /* [count] of [room] */
	uint32_t count;  /* the first `due` of them are gone at the border */
	uint32_t due;    /* and the others went after it */
	uint32_t room;   /* doubled as it is needed */
	uint32_t border; /* of the copy that began last; 0: none */
	bool is_short;   /* some key could not be listed since the border */
};

void wf_gone_fini(struct wf_gone *gone);
/* A complete copy begins at this border: what went before it is forgotten. */
void wf_gone_begin_full(struct wf_gone *gone, uint32_t border);
/* A copy of what has changed since `gone->border` begins: what is listed is due. */
void wf_gone_begin_delta(struct wf_gone *gone, uint32_t border);
/* The copy has all that is due. */
void wf_gone_end(struct wf_gone *gone);
/* The row of the key goes now; `born` is that of its head. One that no copy has is not listed. */
void wf_gone_add(struct wf_gone *gone, uint64_t key, uint32_t born);
/* The row of the key was gone at the border, as it turns out while the copy is under way. */
void wf_gone_add_due(struct wf_gone *gone, uint64_t key);
