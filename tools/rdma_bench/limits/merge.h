/* SPDX-License-Identifier: Apache-2.0 */
/* merge: a client's keys, each once, in the order in which they first occur: one look into a small
 * open hash table for each key, and no sort. Nobody chooses keys that collide here. Thread: the
 * caller's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WF_LIMIT_MERGE_MAX 4096u /* keys */
#define WF_LIMIT_MERGE_SLOTS (2 * WF_LIMIT_MERGE_MAX)

/* Large: not for the stack. */
struct wf_limit_merge {
	uint64_t key[WF_LIMIT_MERGE_MAX];   /* `count` of them */
	uint32_t place[WF_LIMIT_MERGE_MAX]; /* of each that was given, in `key` */
	uint32_t count;
	uint32_t slot[WF_LIMIT_MERGE_SLOTS]; /* 1 + place; 0: free */
};

/* `count`: at most WF_LIMIT_MERGE_MAX. */
void wf_limit_merge(struct wf_limit_merge *merge, const uint64_t *key, size_t count);
