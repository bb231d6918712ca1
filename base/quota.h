/* SPDX-License-Identifier: Apache-2.0 */
/* quota: how much CPU time a container lets its processes have, whatever CPUs they may run on
 * (docker --cpus, limits of Kubernetes; cgroup v2). Thread: any. */
#pragma once

#include <stdint.h>

/* The CPU time that this process may use, in CPUs, rounded up; 0: no limit, or unknown. */
uint32_t wf_quota_cpus(void);
/* The same, of a process whose /proc/self/cgroup has the text `groups`, with the file system of
 * cgroups at `root`. */
uint32_t wf_quota_cpus_at(const char *root, const char *groups);
