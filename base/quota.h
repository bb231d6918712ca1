/* SPDX-License-Identifier: Apache-2.0 */
/* quota: how much CPU time a container lets its processes have, whatever CPUs they may run on
 * (docker --cpus, limits of Kubernetes; cgroup v2). Thread: any. */
#pragma once

#include <stdint.h>

/* A file of numbers in a hierarchy of cgroups. */
struct wf_quota_file {
	const char *key;  /* before the group's path in /proc/self/cgroup: "0::", ":memory:" */
	const char *name; /* "memory.max" */
};

/* The CPU time that this process may use, in CPUs, rounded up; 0: no limit, or unknown. */
uint32_t wf_quota_cpus(void);
/* The same, of a process whose /proc/self/cgroup has the text `groups`, with the file system of
 * cgroups at `root`. */
uint32_t wf_quota_cpus_at(const char *root, const char *groups);
/* The least number in this file of the process's group and of those above it; 0: there is no limit,
 * or it is unknown. The arguments are those of wf_quota_cpus_at. */
uint64_t wf_quota_least_at(const char *root, const struct wf_quota_file *file, const char *groups);
