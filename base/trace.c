/* SPDX-License-Identifier: Apache-2.0 */
/* trace: see trace.h; what is not in the path of an event. Thread: the ring's. */
#include "base/trace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/assert.h"

WF_STATIC_ASSERT(sizeof(struct wf_trace_event) == 32, "as it travels");
WF_STATIC_ASSERT((WF_TRACE_EVENTS & (WF_TRACE_EVENTS - 1)) == 0, "a power of two");

#define TASKS_MAX 4096u /* threads of a process that are looked at */
#define FILES_MAX 4096u /* open files of a process that are looked at */

/* The second number of a schedstat file: time on a run queue. False: it cannot be read. */
static bool
read_run_queue(const char *path, uint64_t *out)
{
	char text[128];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t got = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (got <= 0) {
		return false;
	}
	text[got] = '\0';
	char *end;
	(void)strtoull(text, &end, 10);
	char *from = end;
	uint64_t ns = strtoull(from, &end, 10);
	if (end == from) {
		return false;
	}
	*out += ns;
	return true;
}

/* Of all threads that there are. */
static bool
read_run_queues(uint64_t *out)
{
	DIR *tasks = opendir("/proc/self/task");
	if (tasks == NULL) {
		return false;
	}
	bool any = false;
	const struct dirent *entry = readdir(tasks);
	for (unsigned i = 0; entry != NULL && i < TASKS_MAX; i++, entry = readdir(tasks)) {
		char path[sizeof(entry->d_name) + 40];
		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
		any = (entry->d_name[0] != '.' && read_run_queue(path, out)) || any;
	}
	(void)closedir(tasks);
	return any;
}

/* Whether the path is that of an accelerator's device file. */
static bool
is_accelerator(const char *path)
{
	static const char *const begins[] = {"/dev/nvidia", "/dev/kfd", "/dev/dri/renderD",
					     "/dev/accel"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(begins); i++) {
		if (strncmp(path, begins[i], strlen(begins[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* How many files of accelerators the process has open. */
static uint64_t
count_devices(void)
{
	DIR *files = opendir("/proc/self/fd");
	if (files == NULL) {
		return 0;
	}
	uint64_t count = 0;
	const struct dirent *entry = readdir(files);
	for (unsigned i = 0; entry != NULL && i < FILES_MAX; i++, entry = readdir(files)) {
		char path[64];
		ssize_t got = readlinkat(dirfd(files), entry->d_name, path, sizeof(path) - 1);
		if (got > 0) {
			path[got] = '\0';
			count += is_accelerator(path) ? 1 : 0;
		}
	}
	(void)closedir(files);
	return count;
}

static uint64_t
ns_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * WF_NS_PER_S + (uint64_t)time->tv_usec * 1000;
}

void
wf_trace_note_usage(struct wf_trace *trace, uint64_t step, bool of_process)
{
	struct rusage usage;
	if (getrusage(of_process ? RUSAGE_SELF : RUSAGE_THREAD, &usage) == 0) {
		wf_trace_note(trace, WF_TRACE_CPU_NS, 0, 0, step,
			      ns_of(&usage.ru_utime) + ns_of(&usage.ru_stime));
		wf_trace_note(trace, WF_TRACE_MAJOR_FAULTS, 0, 0, step, (uint64_t)usage.ru_majflt);
	}
	uint64_t waited_ns = 0;
	if (of_process ? read_run_queues(&waited_ns)
		       : read_run_queue("/proc/thread-self/schedstat", &waited_ns)) {
		wf_trace_note(trace, WF_TRACE_RUN_QUEUE_NS, 0, 0, step, waited_ns);
	}
	if (of_process) {
		wf_trace_note(trace, WF_TRACE_DEVICES, 0, 0, step, count_devices());
	}
}
