/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: the table of checks, and how they are run. The checks run in a child process, which sends
 * its findings through a pipe: a file of a broken device may never answer, and the library of a
 * provider is not ours. */
#include "tools/doctor/doctor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/doctor/doctor_internal.h"

#define CHECK_MS 10000 /* of one check */
#define REAP_MS 1000   /* of a child that SIGKILL does not end at once */

static const struct wf_doctor_check checks[] = {
	{"kernel", "the version of Linux", wf_doctor_check_kernel, false},
	{"clock", "how the kernel reads the time", wf_doctor_check_clock, false},
	{"cpus", "CPUs that this process may use, and the quota of its container",
	 wf_doctor_check_cpus, false},
	{"governor", "whether CPUs stay at a low frequency", wf_doctor_check_governor, false},
	{"isolated", "CPUs that only pinned threads use", wf_doctor_check_isolated, false},
	{"steal", "CPU time that the host gave to other machines", wf_doctor_check_steal, false},
	{"numa", "memory nodes, and whether memory can be bound to them", wf_doctor_check_numa,
	 false},
	{"memory", "memory that is free, and the limit of the container", wf_doctor_check_memory,
	 true},
	{"memlock", "memory that may be locked for RDMA", wf_doctor_check_memlock, true},
	{"huge_pages", "huge pages for shared memory", wf_doctor_check_huge_pages, false},
	{"dev_shm", "the size of /dev/shm, which only other programs use", wf_doctor_check_dev_shm,
	 false},
	{"file_size", "the limit of file size, which holds for shared memory too",
	 wf_doctor_check_file_size, true},
	{"descriptors", "the limit of open descriptors", wf_doctor_check_descriptors, true},
	{"pids", "limits of processes and threads", wf_doctor_check_pids, false},
	{"calls", "system calls that a container may block", wf_doctor_check_calls, false},
	{"rights", "capabilities, user namespace and seccomp", wf_doctor_check_rights, false},
	{"loopback", "the interface lo", wf_doctor_check_loopback, false},
	{"interfaces", "network interfaces: state, MTU and speed", wf_doctor_check_interfaces,
	 false},
	{"buffers", "the largest buffers of a TCP socket", wf_doctor_check_buffers, false},
	{"tcp_memory", "memory for all TCP sockets", wf_doctor_check_tcp_memory, false},
	{"backlog", "connections that may wait to be accepted", wf_doctor_check_backlog, false},
	{"congestion", "the congestion control of TCP", wf_doctor_check_congestion, true},
	{"ports", "whether the ports of the lanes are free", wf_doctor_check_ports, false},
	{"secret", "the file with the secret of the job", wf_doctor_check_secret, false},
	{"rdma_libraries", "libibverbs and librdmacm", wf_doctor_check_libraries, false},
	{"rdma_devices", "RDMA devices, and the rights to open them", wf_doctor_check_devices,
	 false},
	{"rdma_providers", "the user space driver of each device", wf_doctor_check_providers,
	 false},
	{"rdma_links", "the ports of devices: state and speed", wf_doctor_check_links, false},
	{"rdma_gids", "addresses of RoCE v2 ports", wf_doctor_check_gids, false},
	{"rdma_mtus", "the MTU of RDMA ports and of their interfaces", wf_doctor_check_mtus, false},
	{"rdma_addresses", "addresses of this host that lead to a device",
	 wf_doctor_check_addresses, false},
};

unsigned
wf_doctor_check_count(void)
{
	return (unsigned)WF_ARRAY_COUNT(checks);
}

const char *
wf_doctor_check_name(unsigned idx)
{
	return checks[idx].name;
}

const char *
wf_doctor_check_purpose(unsigned idx)
{
	return checks[idx].purpose;
}

const char *
wf_doctor_level_name(enum wf_doctor_level level)
{
	static const char *const names[WF_DOCTOR_LEVELS] = {"ok", "note", "finding", "fails"};
	return level < WF_DOCTOR_LEVELS ? names[level] : "?";
}

static void
run_one(const struct wf_doctor_ask *ask, unsigned idx, wf_doctor_sink *sink, void *arg)
{
	const struct wf_doctor doctor = {
		.ask = ask, .check = &checks[idx], .sink = sink, .arg = arg};
	checks[idx].run(&doctor);
}

void
wf_doctor_run_at_start(const struct wf_doctor_ask *ask, wf_doctor_sink *sink, void *arg)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(checks); i++) {
		if (checks[i].at_start) {
			run_one(ask, i, sink, arg);
		}
	}
}

/* A child that runs the checks from one on. Each writes at most PIPE_BUF bytes at a time, so that
 * what is read is whole. */
struct child {
	pid_t pid;
	int fd;
};

/* An end of a check is a finding without a name. */
WF_STATIC_ASSERT(sizeof(struct wf_doctor_finding) <= 4096, "a pipe takes it in one piece");

static void
send_finding(void *arg, const struct wf_doctor_finding *finding)
{
	const int *fd = arg;
	ssize_t put;
	do {
		put = write(*fd, finding, sizeof(*finding));
	} while (put < 0 && errno == EINTR);
	if (put != (ssize_t)sizeof(*finding)) {
		_exit(1); /* nobody reads */
	}
}

static _Noreturn void
run_child(const struct wf_doctor_ask *ask, unsigned first, int fd)
{
	struct wf_doctor_finding end;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read its findings */
	memset(&end, 0, sizeof(end));
	for (unsigned i = first; i < WF_ARRAY_COUNT(checks); i++) {
		run_one(ask, i, send_finding, &fd);
		send_finding(&fd, &end);
	}
	_exit(0);
}

/* Returns false if there is no process to be had. */
static bool
start_child(const struct wf_doctor_ask *ask, unsigned first, struct child *out)
{
	int ends[2];
	if (pipe(ends) != 0) {
		return false;
	}
	out->pid = fork();
	if (out->pid == 0) {
		(void)close(ends[0]);
		run_child(ask, first, ends[1]);
	}
	(void)close(ends[1]);
	out->fd = ends[0];
	if (out->pid < 0) {
		(void)close(ends[0]);
	}
	return out->pid > 0;
}

/* Returns its wait status; -1: it does not end, and is left. */
static int
end_child(const struct child *child, bool kills)
{
	int status = -1;
	if (kills) {
		(void)kill(child->pid, SIGKILL);
	}
	for (unsigned waited_ms = 0; waited_ms < REAP_MS; waited_ms++) {
		pid_t ended = waitpid(child->pid, &status, WNOHANG);
		if (ended == child->pid || (ended < 0 && errno != EINTR)) {
			break;
		}
		status = -1;
		(void)poll(NULL, 0, 1);
	}
	(void)close(child->fd);
	return status;
}

enum answer {
	ANSWER_FINDING,
	ANSWER_END,    /* of a check */
	ANSWER_LATE,   /* nothing came in time */
	ANSWER_CLOSED, /* the child is gone */
};

static enum answer
await(const struct child *child, struct wf_doctor_finding *out)
{
	struct pollfd poll_fd = {.fd = child->fd, .events = POLLIN};
	int ready;
	do {
		ready = poll(&poll_fd, 1, CHECK_MS);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0) {
		return ANSWER_LATE;
	}
	ssize_t got = read(child->fd, out, sizeof(*out));
	if (got != (ssize_t)sizeof(*out)) {
		return ANSWER_CLOSED;
	}
	return out->check[0] == '\0' ? ANSWER_END : ANSWER_FINDING;
}

/* The check `idx` has not ended by itself. */
static void
report_broken(const struct wf_doctor *doctor, bool is_late, int status)
{
	const struct wf_doctor_about about = {
		.level = WF_DOCTOR_FINDING,
		.remedy = "look at the kernel's log (dmesg): a device or its driver may be broken"};
	if (is_late) {
		wf_doctor_add(doctor, &about, "the check did not end within %d s%s",
			      CHECK_MS / 1000,
			      status == -1 ? ", and its process cannot be ended" : "");
	} else if (status != -1 && WIFSIGNALED(status)) {
		wf_doctor_add(doctor, &about, "the check was ended by signal %d", WTERMSIG(status));
	} else {
		wf_doctor_add(doctor, &about, "the check ended without a result");
	}
}

/* Runs the checks from `first` on. Returns the next one to run: all have run, or one is broken. */
static unsigned
run_from(const struct wf_doctor_ask *ask, unsigned first, wf_doctor_sink *sink, void *arg)
{
	struct child child;
	struct wf_doctor_finding finding;
	enum answer answer = ANSWER_END;
	unsigned idx = first;
	if (!start_child(ask, first, &child)) {
		run_one(ask, first, sink, arg); /* without the protection */
		return first + 1;
	}
	while (idx < WF_ARRAY_COUNT(checks) && answer <= ANSWER_END) {
		answer = await(&child, &finding);
		if (answer == ANSWER_FINDING) {
			sink(arg, &finding);
		}
		idx += answer == ANSWER_END;
	}
	int status = end_child(&child, answer == ANSWER_LATE);
	if (idx < WF_ARRAY_COUNT(checks)) {
		const struct wf_doctor doctor = {
			.ask = ask, .check = &checks[idx], .sink = sink, .arg = arg};
		report_broken(&doctor, answer == ANSWER_LATE, status);
		idx++;
	}
	return idx;
}

void
wf_doctor_run(const struct wf_doctor_ask *ask, wf_doctor_sink *sink, void *arg)
{
	for (unsigned idx = 0; idx < WF_ARRAY_COUNT(checks);) {
		idx = run_from(ask, idx, sink, arg);
	}
}
