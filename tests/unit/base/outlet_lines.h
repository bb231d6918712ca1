/* SPDX-License-Identifier: Apache-2.0 */
/* outlet_lines: what the tests of outlets share: numbered lines, and pipes that are full. Thread:
 * any. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/outlet.h"

#define QUEUE 16384u
#define LINE_BYTES 64u

static inline void
format_dropped(uint64_t count, char *line, size_t bytes)
{
	(void)snprintf(line, bytes, "[%" PRIu64 " dropped]\n", count);
}

static inline struct wf_outlet *
open_outlet(int fd, size_t queue_bytes)
{
	const struct wf_outlet_opts opts = {.fd = fd,
					    .queue_bytes = queue_bytes,
					    .format_dropped = format_dropped,
					    .wake_fd = -1};
	struct wf_outlet *outlet = NULL;
	assert_int_equal(wf_outlet_open(&opts, &outlet), WEFT_OK);
	return outlet;
}

/* "line 000017 ....\n", LINE_BYTES long. */
static inline bool
put_line(struct wf_outlet *outlet, unsigned number)
{
	char line[LINE_BYTES + 1];
	(void)snprintf(line, sizeof(line), "line %06u %*s\n", number, (int)LINE_BYTES - 13, "");
	assert_int_equal(strlen(line), LINE_BYTES);
	return wf_outlet_put(outlet, line, LINE_BYTES);
}

/* Fills a pipe until it accepts no more bytes. Returns the number of bytes in it. */
static inline size_t
fill(int fd)
{
	size_t bytes = 0;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	while (poll(&ready, 1, 0) == 1) {
		assert_int_equal(write(fd, "x", 1), 1);
		bytes++;
	}
	return bytes;
}

static inline void
discard(int fd, size_t bytes)
{
	char buffer[4096];
	while (bytes > 0) {
		ssize_t n = read(fd, buffer, bytes < sizeof(buffer) ? bytes : sizeof(buffer));
		assert_true(n > 0);
		bytes -= (size_t)n;
	}
}

/* The next line that the pipe has, without its newline. */
static inline void
next_line(int fd, char *line, size_t bytes)
{
	size_t used = 0;
	do {
		assert_true(used + 1 < bytes);
		assert_int_equal(read(fd, line + used, 1), 1);
	} while (line[used++] != '\n');
	line[used - 1] = '\0';
}

static inline unsigned
threads_of_this_process(void)
{
	unsigned count = 0;
	DIR *tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
		count += task->d_name[0] != '.' ? 1 : 0;
	}
	assert_int_equal(closedir(tasks), 0);
	return count;
}

static inline unsigned
number_of(const char *line)
{
	return (unsigned)strtoul(line + 5, NULL, 10);
}
