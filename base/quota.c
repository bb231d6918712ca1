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
#define TEXT_BYTES 64 /* of a file */

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

/* Microseconds of CPU time in each period, as CPUs; 0: no limit. */
static uint64_t
count_cpus(uint64_t quota, uint64_t period)
{
	if (quota == 0 || period == 0 || quota > UINT32_MAX || period > UINT32_MAX) {
		return 0;
	}
	return (quota + period - 1) / period;
}

/* Reads "200000 100000", microseconds of CPU time and of the period; "max 100000": no limit. */
static uint64_t
parse_cpus(const char *text)
{
	char *end = NULL;
	uint64_t quota = strtoull(text, &end, 10);
	return end != text && *end == ' ' ? count_cpus(quota, strtoull(end + 1, NULL, 10)) : 0;
}

/* Reads a number; "max": no limit. */
static uint64_t
parse_number(const char *text)
{
	char *end = NULL;
	uint64_t number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
	return end != NULL && (*end == '\n' || *end == '\0') ? number : 0;
}

/* Whether a list such as "cpu,cpuacct" of so many bytes has the name. */
static bool
has_name(const char *list, size_t bytes, const char *name)
{
	for (size_t at = 0; at < bytes;) {
		size_t length = strcspn(list + at, ",:");
		if (length == strlen(name) && memcmp(list + at, name, length) == 0) {
			return true;
		}
		at += length + 1;
	}
	return false;
}

/* Finds the path of the group in its line: "4:cpu,cpuacct:/job", or, in version 2, "0::/job". */
static bool
find_group(const char *groups, const char *controller, char *out, size_t bytes)
{
	for (const char *line = groups; line != NULL && *line != '\0';) {
		const char *list = line + strcspn(line, ":\n");
		list += *list == ':' ? 1 : 0;
		const size_t listed = strcspn(list, ":\n");
		const char *group = list + listed + (list[listed] == ':' ? 1 : 0);
		const size_t length = strcspn(group, "\n");
		const bool is_own = controller == NULL ? strncmp(line, "0::", 3) == 0
						       : has_name(list, listed, controller);
		if (is_own && *group == '/' && length < bytes) {
			(void)snprintf(out, bytes, "%.*s", (int)length, group);
			return true;
		}
		line = group[length] == '\n' ? group + length + 1 : NULL;
	}
	return false;
}

/* The least limit of the group's folder and of those above it. `read_limit`: of one folder. */
static uint64_t
find_least(const char *root, const struct wf_quota_file *file, const char *groups,
	   uint64_t (*read_limit)(const char *folder, const char *name))
{
	char group[PATH_BYTES];
	char path[PATH_BYTES];
	uint64_t least = 0;
	size_t root_bytes = strlen(root);
	if (!find_group(groups, file->controller, group, sizeof(group)) ||
	    snprintf(path, sizeof(path), "%s%s", root, group) >= (int)sizeof(path)) {
		return 0;
	}
	while (strlen(path) >= root_bytes) {
		uint64_t limit = read_limit(path, file->name);
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

static bool
read_in(const char *folder, const char *name, char *out, size_t bytes)
{
	char path[PATH_BYTES + 64];
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return read_file(path, out, bytes);
}

static uint64_t
read_number(const char *folder, const char *name)
{
	char text[TEXT_BYTES];
	return read_in(folder, name, text, sizeof(text)) ? parse_number(text) : 0;
}

static uint64_t
read_cpus(const char *folder, const char *name)
{
	char text[TEXT_BYTES];
	return read_in(folder, name, text, sizeof(text)) ? parse_cpus(text) : 0;
}

/* Version 1 has quota and period in files of their own; a quota of -1: no limit. */
static uint64_t
read_cpus_v1(const char *folder, const char *name)
{
	const uint64_t quota = read_number(folder, name);
	const uint64_t period = read_number(folder, "cpu.cfs_period_us");
	return count_cpus(quota, period);
}

uint64_t
wf_quota_least_at(const char *root, const struct wf_quota_file *file, const char *groups)
{
	return find_least(root, file, groups, read_number);
}

uint32_t
wf_quota_cpus_at(const char *root, const char *groups)
{
	static const char *const folders[] = {"cpu", "cpu,cpuacct"};
	const struct wf_quota_file v2 = {.name = "cpu.max"};
	const struct wf_quota_file v1 = {.controller = "cpu", .name = "cpu.cfs_quota_us"};
	uint64_t cpus = find_least(root, &v2, groups, read_cpus);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && cpus == 0; i++) {
		char folder[PATH_BYTES];
		(void)snprintf(folder, sizeof(folder), "%.900s/%s", root, folders[i]);
		cpus = find_least(folder, &v1, groups, read_cpus_v1);
	}
	return (uint32_t)cpus;
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
