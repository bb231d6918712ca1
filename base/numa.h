/* SPDX-License-Identifier: Apache-2.0 */
/* numa: binding memory to NUMA nodes. Bound memory comes from its node, and a page fault that finds
 * no room there ends a process. Preferred memory comes from its node while that is easy, and from
 * another one before the kernel drops cached files. So memory is bound where there is plenty of
 * room, otherwise preferred. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_NUMA_NODE_MAX 1024 /* the most nodes in a mask: Linux's own limit */

enum wf_numa_rule {
	WF_NUMA_ANYWHERE, /* the kernel refuses both, or no node was given */
	WF_NUMA_PREFERRED,
	WF_NUMA_BOUND,
};

/* The memory that a process can still get from a node with this text in its meminfo
 * (/sys/devices/system/node/nodeN): free memory and caches of files. 0: not in the text. */
uint64_t wf_numa_available_in(const char *meminfo);
/* The same for a node of this machine; 0: none, or unknown. */
uint64_t wf_numa_available_bytes(int node);
/* The rule for `bytes` that are promised and not touched yet, with this much available: bound if
 * they are at most half of that, because other processes grow too. */
enum wf_numa_rule wf_numa_rule_for(uint64_t bytes, uint64_t available_bytes);
/* The same for a node of this machine from which this process may get memory. */
enum wf_numa_rule wf_numa_rule(int node, uint64_t bytes);
/* Sets the rule of a mapping, before its first page is touched. Returns the rule that the kernel
 * accepted, which is less than `wanted` if it refuses; errno says why. */
enum wf_numa_rule wf_numa_place(void *base, size_t bytes, int node, enum wf_numa_rule wanted);
/* "bound", "preferred", "anywhere" */
const char *wf_numa_rule_name(enum wf_numa_rule rule);
