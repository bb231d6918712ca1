/* SPDX-License-Identifier: Apache-2.0 */
/* numa: at which node the kernel puts memory. Bound: there, or the page fault that finds no room
 * ends a process; preferred: there while it is easy, and elsewhere rather than giving up what is
 * cached of files. So memory is bound where there is room in plenty, else preferred. Thread: any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_NUMA_NODE_MAX 1024 /* nodes a mask can name; Linux's own limit */

enum wf_numa_rule {
	WF_NUMA_ANYWHERE, /* the kernel refuses both, or no node was named */
	WF_NUMA_PREFERRED,
	WF_NUMA_BOUND,
};

/* What a process can still have of a node whose meminfo (/sys/devices/system/node/nodeN) reads so:
 * what is free, and what only caches files. 0: it says nothing of that. */
uint64_t wf_numa_available_in(const char *meminfo);
/* The same of a node of this machine; 0: none, or not known. */
uint64_t wf_numa_available_bytes(int node);
/* What `bytes` more should be that are promised and not touched yet, where so many are available:
 * no more than half of that, for others grow too. */
enum wf_numa_rule wf_numa_rule_for(uint64_t bytes, uint64_t available_bytes);
/* The same for a node of this machine, of which this process may have memory at all. */
enum wf_numa_rule wf_numa_rule(int node, uint64_t bytes);
/* Tell the kernel, before the first page is touched. Returns what it took: less than was wanted
 * where it refuses; errno says why. */
enum wf_numa_rule wf_numa_place(void *base, size_t bytes, int node, enum wf_numa_rule wanted);
/* "bound", "preferred", "anywhere" */
const char *wf_numa_rule_name(enum wf_numa_rule rule);
