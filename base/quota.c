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
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = read(fd, out, bytes - 1);
	(void)close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Reads "200000 100000", microseconds of CPU time and of the period; "max 100000": no limit. */
static uint64_t
parse_cpus(const char *text)
{
	char *end = NULL;
	uint64_t quota = strtoull(text, &end, 10);
	if (end == text || *end != ' ' || quota == 0) {
		return 0;
	}
	uint64_t period = strtoull(end + 1, NULL, 10);
	if (period == 0 || quota > UINT32_MAX || period > UINT32_MAX) {
		return 0;
	}
	return (quota + period - 1) / period;
}

/* Reads a number; "max": no limit. */
static uint64_t
parse_number(const char *text)
{
	char *end = NULL;
	uint64_t number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
	return end != NULL && (*end == '\n' || *end == '\0') ? number : 0;
}

/* Finds the path of the group, which follows `key`, in its line. */
static bool
find_group(const char *groups, const char *key, char *out, size_t bytes)
{
	for (const char *line = groups; line != NULL && *line != '\0';) {
		size_t length = strcspn(line, "\n");
		const char *at = strstr(line, key);
		size_t before = at == NULL ? length : (size_t)(at - line) + strlen(key);
		if (before < length && line[before] == '/' && length - before < bytes) {
			(void)snprintf(out, bytes, "%.*s", (int)(length - before), line + before);
			return true;
		}
		line = line[length] == '\n' ? line + length + 1 : NULL;
	}
	return false;
}

static uint64_t
find_least(const char *root, const struct wf_quota_file *file, const char *groups,
	   uint64_t (*parse)(const char *text))
{
	char group[PATH_BYTES];
	char path[PATH_BYTES];
	uint64_t least = 0;
	size_t root_bytes = strlen(root);
	if (!find_group(groups, file->key, group, sizeof(group)) ||
	    snprintf(path, sizeof(path), "%s%s", root, group) >= (int)sizeof(path)) {
		return 0;
	}
	while (strlen(path) >= root_bytes) {
		char name[PATH_BYTES + 64];
		char text[64];
		(void)snprintf(name, sizeof(name), "%s/%s", path, file->name);
		uint64_t limit = read_file(name, text, sizeof(text)) ? parse(text) : 0;
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

uint64_t
wf_quota_least_at(const char *root, const struct wf_quota_file *file, const char *groups)
{
	return find_least(root, file, groups, parse_number);
}

uint32_t
wf_quota_cpus_at(const char *root, const char *groups)
{
	const struct wf_quota_file file = {.key = "0::", .name = "cpu.max"};
	return (uint32_t)find_least(root, &file, groups, parse_cpus);
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
