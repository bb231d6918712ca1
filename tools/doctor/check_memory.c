/* SPDX-License-Identifier: Apache-2.0 */
/* check_memory: memory, and what a container or a login takes away: limits, system calls, rights.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/locked.h"
#include "base/quota.h"
#include "tools/doctor/doctor_internal.h"

#define STATUS_BYTES 8192u
#define PIDS_NEEDED 64u /* beside a process for each lane and trainer */
#define DESCRIPTORS_NEEDED 64u
#define DESCRIPTORS_EACH 3u     /* of a trainer on a lane */
#define UNLIMITED (1ull << 62)  /* cgroup v1 writes such numbers for "no limit" */
#define SMALL_SHM (64ull << 20) /* what containers get unless told otherwise */
#define OK (&(struct wf_doctor_about){.level = WF_DOCTOR_OK})
#define NOTE (&(struct wf_doctor_about){.level = WF_DOCTOR_NOTE})

/* A limit of the container, in version 2 or 1 of cgroups; 0: none. */
static uint64_t
read_group_limit(const struct wf_doctor *doctor, const struct wf_quota_file *v2,
		 const struct wf_quota_file *v1, const char *v1_folder)
{
	char groups[4096];
	char root[WF_DOCTOR_PATH_BYTES];
	if (!wf_doctor_read(doctor, groups, sizeof(groups), "/proc/self/cgroup")) {
		return 0;
	}
	(void)snprintf(root, sizeof(root), "%.400s/sys/fs/cgroup", doctor->ask->root);
	uint64_t limit = wf_quota_least_at(root, v2, groups);
	if (limit == 0) {
		(void)snprintf(root, sizeof(root), "%.400s/sys/fs/cgroup/%s", doctor->ask->root,
			       v1_folder);
		limit = wf_quota_least_at(root, v1, groups);
	}
	return limit < UNLIMITED ? limit : 0;
}

void
wf_doctor_check_memory(const struct wf_doctor *doctor)
{
	const struct wf_quota_file v2 = {.name = "memory.max"};
	const struct wf_quota_file v1 = {.controller = "memory", .name = "memory.limit_in_bytes"};
	const uint64_t needed = doctor->ask->memory_bytes;
	char text[4096];
	char have[32];
	char need[32];
	uint64_t free_kib = 0;
	uint64_t limit = read_group_limit(doctor, &v2, &v1, "memory");
	bool known = wf_doctor_read(doctor, text, sizeof(text), "/proc/meminfo") &&
		     wf_doctor_find(text, "MemAvailable:", &free_kib) && free_kib < UNLIMITED >> 10;
	if (limit > 0 && limit < needed) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "raise the limit of the container (docker --memory, "
				  "resources.limits.memory, --mem of Slurm), or spread the model "
				  "over more pservers"};
		wf_doctor_add(doctor, &about,
			      "the container may use %s of memory, and a process needs %s: the "
			      "kernel ends it when it exceeds that",
			      wf_doctor_size(limit, have), wf_doctor_size(needed, need));
	} else if (known && free_kib << 10 < needed) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "end other processes, or spread the model over more pservers"};
		wf_doctor_add(doctor, &about, "%s of memory are available, and a process needs %s",
			      wf_doctor_size(free_kib << 10, have), wf_doctor_size(needed, need));
	} else if (!known) {
		wf_doctor_add(doctor, NOTE, "the memory that is available is unknown");
	} else if (limit > 0) {
		wf_doctor_add(doctor, OK, "%s are available; the container may use %s",
			      wf_doctor_size(free_kib << 10, have), wf_doctor_size(limit, need));
	} else {
		wf_doctor_add(doctor, OK, "%s are available", wf_doctor_size(free_kib << 10, have));
	}
}

static bool
is_of_host(const struct wf_doctor *doctor)
{
	return !wf_doctor_is_here(doctor) || wf_locked_is_of_host();
}

void
wf_doctor_check_memlock(const struct wf_doctor *doctor)
{
	char status[STATUS_BYTES];
	char have[32];
	char need[32];
	uint64_t limit = UINT64_MAX;
	bool has_device = wf_doctor_has_devices(doctor);
	if (!wf_doctor_may_use(doctor, "verbs") ||
	    (!has_device && wf_doctor_wants(doctor, "auto"))) {
		wf_doctor_add(doctor, NOTE, "no memory has to be locked: RDMA is not used here");
		return;
	}
	if (!wf_doctor_limit(doctor, "Max locked memory", false, &limit)) {
		wf_doctor_add(doctor, NOTE, "the limit of locked memory is unknown");
		return;
	}
	(void)wf_doctor_read(doctor, status, sizeof(status), "/proc/self/status");
	struct wf_locked locked = wf_locked_of(status, limit, is_of_host(doctor));
	if (limit == UINT64_MAX) {
		wf_doctor_add(doctor, OK, "memory may be locked without a limit");
	} else if (limit >= doctor->ask->memory_bytes) {
		wf_doctor_add(doctor, OK, "%s of memory may be locked, and a process needs %s",
			      wf_doctor_size(limit, have),
			      wf_doctor_size(doctor->ask->memory_bytes, need));
	} else if (locked.privileged) {
		wf_doctor_add(doctor, NOTE,
			      "%s of memory may be locked; this process has CAP_IPC_LOCK, so most "
			      "devices do not check that, but soft iWARP does",
			      wf_doctor_size(limit, have));
	} else {
		const struct wf_doctor_about about = {
			.level = wf_doctor_grade(doctor, "verbs", WF_DOCTOR_FINDING),
			.remedy = WF_LOCKED_RAISE "; under Slurm PropagateResourceLimitsExcept="
						  "MEMLOCK in slurm.conf"};
		wf_doctor_add(doctor, &about,
			      "%s of memory may be locked for RDMA, and a process needs %s",
			      wf_doctor_size(limit, have),
			      wf_doctor_size(doctor->ask->memory_bytes, need));
	}
}

/* The word in brackets of "always within_size [never] deny". */
static bool
chosen_word(const char *text, char *out, size_t bytes)
{
	const char *at = strchr(text, '[');
	size_t length = at == NULL ? 0 : strcspn(at + 1, "]\n");
	if (at == NULL || at[1 + length] != ']' || length == 0 || length >= bytes) {
		return false;
	}
	(void)snprintf(out, bytes, "%.*s", (int)length, at + 1);
	return true;
}

void
wf_doctor_check_huge_pages(const struct wf_doctor *doctor)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
	char text[256];
	char word[32];
	if (!wf_doctor_line(doctor, text, sizeof(text), "%s", path) ||
	    !chosen_word(text, word, sizeof(word))) {
		wf_doctor_add(doctor, NOTE, "whether shared memory gets huge pages is unknown");
	} else if (strcmp(word, "never") == 0 || strcmp(word, "deny") == 0) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "as root: echo advise "
				  ">/sys/kernel/mm/transparent_hugepage/shmem_enabled"};
		wf_doctor_add(doctor, &about,
			      "shared memory gets no huge pages (%s): slabs of parameters have "
			      "pages of 4 KiB",
			      word);
	} else {
		wf_doctor_add(doctor, OK, "shared memory gets huge pages (%s)", word);
	}
}

void
wf_doctor_check_dev_shm(const struct wf_doctor *doctor)
{
	struct statvfs info;
	char size[32];
	if (!wf_doctor_is_here(doctor) || statvfs("/dev/shm", &info) != 0) {
		wf_doctor_add(doctor, NOTE, "there is no /dev/shm; weft does not use it");
		return;
	}
	uint64_t bytes = (uint64_t)info.f_blocks * info.f_frsize;
	if (bytes > 0 && bytes <= SMALL_SHM) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = WF_DOCTOR_NOTE,
				      .remedy = "--shm-size=8g (docker), or an emptyDir with "
						"medium: Memory (Kubernetes)"},
			      "/dev/shm has %s; weft does not use it, but the data loaders of "
			      "PyTorch do",
			      wf_doctor_size(bytes, size));
	} else {
		wf_doctor_add(doctor, OK, "/dev/shm has %s; weft does not use it",
			      wf_doctor_size(bytes, size));
	}
}

void
wf_doctor_check_file_size(const struct wf_doctor *doctor)
{
	uint64_t limit = UINT64_MAX;
	char have[32];
	char need[32];
	if (!wf_doctor_limit(doctor, "Max file size", false, &limit)) {
		wf_doctor_add(doctor, NOTE, "the limit of file size is unknown");
	} else if (limit < doctor->ask->memory_bytes) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "ulimit -f unlimited (limits.conf: fsize; systemd: "
				  "LimitFSIZE=infinity)"};
		wf_doctor_add(doctor, &about,
			      "a file may have %s, and a process needs %s: slabs are files in "
			      "memory, and saved models are files",
			      wf_doctor_size(limit, have),
			      wf_doctor_size(doctor->ask->memory_bytes, need));
	} else {
		wf_doctor_add(doctor, OK, "files may be as large as a process needs");
	}
}

void
wf_doctor_check_descriptors(const struct wf_doctor *doctor)
{
	const struct wf_doctor_ask *ask = doctor->ask;
	uint64_t limit = 0;
	uint64_t lanes = ask->lanes > 0 ? ask->lanes : 1;
	uint64_t needed = DESCRIPTORS_NEEDED + DESCRIPTORS_EACH * lanes * ask->trainers;
	/* A pserver raises its own limit as far as it may. */
	if (!wf_doctor_limit(doctor, "Max open files", true, &limit)) {
		wf_doctor_add(doctor, NOTE, "the limit of open descriptors is unknown");
	} else if (limit < needed) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy = "ulimit -Hn 1048576 as root (limits.conf: nofile; systemd: "
				  "LimitNOFILE=; container: --ulimit nofile=)"};
		wf_doctor_add(doctor, &about,
			      "a process may have %" PRIu64
			      " descriptors, and %u trainer%s on %" PRIu64
			      " lane%s need%s %" PRIu64,
			      limit, ask->trainers, ask->trainers == 1 ? "" : "s", lanes,
			      lanes == 1 ? "" : "s", ask->trainers == 1 ? "s" : "", needed);
	} else {
		wf_doctor_add(doctor, OK, "a process may have %" PRIu64 " descriptors", limit);
	}
}

void
wf_doctor_check_pids(const struct wf_doctor *doctor)
{
	const struct wf_quota_file v2 = {.name = "pids.max"};
	const struct wf_quota_file v1 = {.controller = "pids", .name = "pids.max"};
	uint64_t needed = PIDS_NEEDED + doctor->ask->lanes + doctor->ask->trainers;
	uint64_t own = UINT64_MAX;
	uint64_t limit = read_group_limit(doctor, &v2, &v1, "pids");
	(void)wf_doctor_limit(doctor, "Max processes", false, &own);
	if (limit > 0 && limit < needed) {
		const struct wf_doctor_about about = {
			.level = WF_DOCTOR_FINDING,
			.remedy =
				"raise the limit of the container (docker --pids-limit, TasksMax= "
				"of systemd)"};
		wf_doctor_add(doctor, &about,
			      "the container may have %" PRIu64 " processes and threads, and a job "
			      "needs some %" PRIu64,
			      limit, needed);
	} else if (own < needed) {
		const struct wf_doctor_about about = {.level = WF_DOCTOR_FINDING,
						      .remedy = "ulimit -u (limits.conf: nproc)"};
		wf_doctor_add(doctor, &about,
			      "this user may have %" PRIu64 " processes and threads, and a job "
			      "needs some %" PRIu64,
			      own, needed);
	} else {
		wf_doctor_add(doctor, OK, "processes and threads are not limited below %" PRIu64,
			      needed);
	}
}

/* ---- system calls ---- */

/* errno of a call that a container may block; 0: it works. */
static int
try_memfd(void)
{
	int fd = memfd_create("weft-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? errno : 0;
	if (fd >= 0) {
		(void)close(fd);
	}
	return err;
}

static int
try_mbind(void)
{
	/* MPOL_DEFAULT changes nothing. */
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		return errno;
	}
	int err = syscall(SYS_mbind, page, bytes, 0, NULL, 0ul, 0u) == 0 ? 0 : errno;
	(void)munmap(page, bytes);
	return err;
}

static int
try_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? errno : 0;
	if (fd >= 0) {
		(void)close(fd);
	}
	return err;
}

struct
try {
	const char *name;
	int err;
	enum wf_doctor_level level; /* if it fails */
	const char *lost;
};

static void
report_try(const struct wf_doctor *doctor, const struct try *one)
{
	if (one->err != 0) {
		wf_doctor_add(doctor,
			      &(struct wf_doctor_about){
				      .level = one->level,
				      .subject = one->name,
				      .remedy = "allow the call in the seccomp profile of the "
						"container (docker: --security-opt seccomp=FILE)"},
			      "%s fails (%s): %s", one->name, strerror(one->err), one->lost);
	}
}

void
wf_doctor_check_calls(const struct wf_doctor *doctor)
{
	if (!wf_doctor_is_here(doctor)) {
		return;
	}
	const struct try all[] = {
		{"memfd_create", try_memfd(), WF_DOCTOR_FAILS,
		 "no process of weft can have slabs of parameters"},
		{"mbind", try_mbind(), WF_DOCTOR_FINDING,
		 "memory is not bound to the node of its lane"},
		{"socket(AF_UNIX)", try_socket(AF_UNIX),
		 wf_doctor_grade(doctor, "shm", WF_DOCTOR_FINDING),
		 "shared memory cannot be passed to other processes"},
		{"socket(AF_INET)", try_socket(AF_INET), WF_DOCTOR_FAILS,
		 "nothing can connect over IPv4"},
	};
	unsigned failed = 0;
	for (size_t i = 0; i < WF_ARRAY_COUNT(all); i++) {
		failed += all[i].err != 0;
		report_try(doctor, &all[i]);
	}
	if (failed == 0) {
		wf_doctor_add(doctor, OK, "memfd_create, mbind and sockets work");
	}
}

void
wf_doctor_check_rights(const struct wf_doctor *doctor)
{
	char status[STATUS_BYTES];
	uint64_t seccomp = 0;
	if (!wf_doctor_read(doctor, status, sizeof(status), "/proc/self/status")) {
		wf_doctor_add(doctor, NOTE, "the rights of this process are unknown");
		return;
	}
	bool filtered = wf_doctor_find(status, "Seccomp:", &seccomp) && seccomp != 0;
	bool locks = wf_locked_of(status, 0, is_of_host(doctor)).privileged;
	wf_doctor_add(doctor, locks && !filtered ? OK : NOTE,
		      "this process %s CAP_IPC_LOCK of the host%s%s", locks ? "has" : "has not",
		      is_of_host(doctor) ? "" : ", is in a user namespace",
		      filtered ? ", and its system calls are filtered (seccomp)" : "");
}
