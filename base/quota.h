/* SPDX-License-Identifier: Apache-2.0 */
/* quota: how much CPU time a container lets its processes have, whatever CPUs they may run on
 * (docker --cpus, limits of Kubernetes), in version 2 or 1 of cgroups. Thread: any. */
#pragma once

#include <stdint.h>

/* A file of one number in a hierarchy of cgroups. */
struct wf_quota_file {
	const char
		*controller; /* whose hierarchy of version 1: "memory"; NULL: that of version 2 */
	const char *name;    /* "memory.max" */
};

/* The CPU time that this process may use, in CPUs, rounded up; 0: no limit, or unknown. */
uint32_t wf_quota_cpus(void);
/* The same, of a process whose /proc/self/cgroup has the text `groups`, with the file system of
 * cgroups at `root`: version 2, and the folders of controllers of version 1. */
uint32_t wf_quota_cpus_at(const char *root, const char *groups);
/* The least number in this file of the process's group and of those above it; 0: there is no limit,
 * or it is unknown. `groups` is that of wf_quota_cpus_at, `root` the folder of the hierarchy. */
uint64_t wf_quota_least_at(const char *root, const struct wf_quota_file *file, const char *groups);
