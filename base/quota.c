/* SPDX-License-Identifier: Apache-2.0 */
/* quota: see quota.h. The smallest limit between the process's group and the root counts. */
#include "base/quota.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 1024

static bool
read_file(const char *path, char *out, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = read(fd, out, bytes - 1);
	(void)close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Reads "200000 100000", microseconds of CPU time and of the period; "max 100000": no limit. */
static uint32_t
read_limit(const char *group)
{
	char path[PATH_BYTES + 16];
	char text[64];
	(void)snprintf(path, sizeof(path), "%s/cpu.max", group);
	if (!read_file(path, text, sizeof(text))) {
		return 0;
	}
	char *end = NULL;
	uint64_t quota = strtoull(text, &end, 10);
	if (end == text || *end != ' ' || quota == 0) {
		return 0;
	}
	uint64_t period = strtoull(end + 1, NULL, 10);
	if (period == 0 || quota > UINT32_MAX || period > UINT32_MAX) {
		return 0;
	}
	return (uint32_t)((quota + period - 1) / period);
}

/* Finds the path of the group in the unified hierarchy, which follows "0::". */
static bool
find_group(const char *groups, char *out, size_t bytes)
{
	for (const char *line = groups; line != NULL && *line != '\0';) {
		size_t length = strcspn(line, "\n");
		if (length > 3 && length - 3 < bytes && strncmp(line, "0::/", 4) == 0) {
			(void)snprintf(out, bytes, "%.*s", (int)(length - 3), line + 3);
			return true;
		}
		line = line[length] == '\n' ? line + length + 1 : NULL;
	}
	return false;
}

uint32_t
wf_quota_cpus_at(const char *root, const char *groups)
{
	char group[PATH_BYTES];
	char path[PATH_BYTES];
	uint32_t least = 0;
	size_t root_bytes = strlen(root);
	if (!find_group(groups, group, sizeof(group)) ||
	    snprintf(path, sizeof(path), "%s%s", root, group) >= (int)sizeof(path)) {
		return 0;
	}
	while (strlen(path) >= root_bytes) {
		uint32_t limit = read_limit(path);
		if (limit > 0 && (least == 0 || limit < least)) {
			least = limit;
		}
		char *slash = strrchr(path, '/');
		if (slash == NULL) {
			break;
		}
		*slash = '\0';
	}
	return least;
}

uint32_t
wf_quota_cpus(void)
{
	char groups[4096];
	if (!read_file("/proc/self/cgroup", groups, sizeof(groups))) {
		return 0;
	}
	return wf_quota_cpus_at("/sys/fs/cgroup", groups);
}
