/* SPDX-License-Identifier: Apache-2.0 */
/* tree: files of the kernel, here or in a folder that looks like it. Nothing is believed: what is
 * no regular file is closed again, what is too long is cut, and a number has only digits. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/doctor/doctor_internal.h"

#define NAMES_MAX 256u
#define NAME_BYTES 64u
#define LIMITS_BYTES 4096u

/* Returns false if the path is too long. */
static bool __attribute__((format(printf, 3, 0)))
make_path(const struct wf_doctor *doctor, char out[WF_DOCTOR_PATH_BYTES], const char *format,
	  va_list args)
{
	int used = snprintf(out, WF_DOCTOR_PATH_BYTES, "%s", doctor->ask->root);
	if (used < 0 || used >= (int)WF_DOCTOR_PATH_BYTES) {
		return false;
	}
	size_t room = WF_DOCTOR_PATH_BYTES - (size_t)used;
	int more = vsnprintf(out + used, room, format, args);
	return more >= 0 && (size_t)more < room;
}

/* A pipe must not be waited for, and a file of /sys may fail at the read. */
static size_t
read_file(const char *path, char *out, size_t bytes)
{
	struct stat info;
	size_t used = 0;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		return 0;
	}
	bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
	while (regular && used + 1 < bytes) {
		ssize_t got = read(fd, out + used, bytes - 1 - used);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got <= 0) {
			break;
		}
		used += (size_t)got;
	}
	(void)close(fd);
	return used;
}

static bool __attribute__((format(printf, 4, 0)))
read_text(const struct wf_doctor *doctor, char *out, size_t bytes, const char *format, va_list args)
{
	char path[WF_DOCTOR_PATH_BYTES];
	size_t used = make_path(doctor, path, format, args) ? read_file(path, out, bytes) : 0;
	for (size_t i = 0; i < used; i++) {
		out[i] = out[i] == '\0' ? ' ' : out[i];
	}
	out[used] = '\0';
	return used > 0;
}

bool
wf_doctor_read(const struct wf_doctor *doctor, char *out, size_t bytes, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	bool found = read_text(doctor, out, bytes, format, args);
	va_end(args);
	return found;
}

bool
wf_doctor_line(const struct wf_doctor *doctor, char *out, size_t bytes, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	bool found = read_text(doctor, out, bytes, format, args);
	va_end(args);
	out[strcspn(out, "\n")] = '\0';
	return found && out[0] != '\0';
}

/* Reads digits up to a blank or the end; false: anything else. */
static bool
parse_number(const char *text, uint64_t *out)
{
	char *end = NULL;
	if (*text < '0' || *text > '9') {
		return false;
	}
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno != 0 || (*end != '\0' && strchr(" \t\n", *end) == NULL)) {
		return false;
	}
	*out = number;
	return true;
}

bool
wf_doctor_number(const struct wf_doctor *doctor, uint64_t *out, const char *format, ...)
{
	char text[64];
	va_list args;
	va_start(args, format);
	bool found = read_text(doctor, text, sizeof(text), format, args);
	va_end(args);
	return found && parse_number(text, out);
}

bool
wf_doctor_exists(const struct wf_doctor *doctor, const char *format, ...)
{
	char path[WF_DOCTOR_PATH_BYTES];
	va_list args;
	va_start(args, format);
	bool fits = make_path(doctor, path, format, args);
	va_end(args);
	return fits && access(path, F_OK) == 0;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

unsigned
wf_doctor_each(const struct wf_doctor *doctor, const char *folder,
	       void (*each)(const struct wf_doctor *doctor, const char *name, void *arg), void *arg)
{
	char path[WF_DOCTOR_PATH_BYTES];
	char name[NAMES_MAX][NAME_BYTES];
	unsigned count = 0;
	int bytes = snprintf(path, sizeof(path), "%s%s", doctor->ask->root, folder);
	DIR *open = bytes > 0 && bytes < (int)sizeof(path) ? opendir(path) : NULL;
	if (open == NULL) {
		return 0;
	}
	for (const struct dirent *entry; count < NAMES_MAX && (entry = readdir(open)) != NULL;) {
		size_t name_bytes = strlen(entry->d_name) + 1;
		if (entry->d_name[0] != '.' && name_bytes <= NAME_BYTES) {
			memcpy(name[count++], entry->d_name, name_bytes);
		}
	}
	(void)closedir(open);
	qsort(name, count, NAME_BYTES, compare_names);
	for (unsigned i = 0; i < count && each != NULL; i++) {
		each(doctor, name[i], arg);
	}
	return count;
}

bool
wf_doctor_find(const char *text, const char *key, uint64_t *out)
{
	size_t key_bytes = strlen(key);
	for (const char *line = text; *line != '\0';) {
		if (strncmp(line, key, key_bytes) == 0) {
			const char *at = line + key_bytes;
			return parse_number(at + strspn(at, " \t"), out);
		}
		size_t bytes = strcspn(line, "\n");
		line += bytes + (line[bytes] == '\n');
	}
	return false;
}

bool
wf_doctor_limit(const struct wf_doctor *doctor, const char *row, bool hard, uint64_t *out)
{
	char text[LIMITS_BYTES];
	if (!wf_doctor_read(doctor, text, sizeof(text), "/proc/self/limits")) {
		return false;
	}
	const char *at = strstr(text, row);
	if (at == NULL) {
		return false;
	}
	at += strlen(row);
	at += strspn(at, " ");
	if (hard) {
		at += strcspn(at, " \n");
		at += strspn(at, " ");
	}
	if (strncmp(at, "unlimited", strlen("unlimited")) == 0) {
		*out = UINT64_MAX;
		return true;
	}
	return parse_number(at, out);
}

const char *
wf_doctor_size(uint64_t bytes, char out[32])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;
	double value = (double)bytes;
	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out, 32, unit > 1 && value < 100 ? "%.1f %s" : "%.0f %s", value,
		       units[unit]);
	return out;
}
