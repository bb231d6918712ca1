/* SPDX-License-Identifier: Apache-2.0 */
/* topo_child: reading a machine from a file, which a child process parses. hwloc trusts its XML,
 * and a damaged byte can crash it or make it run for ever; so a separate process parses the text,
 * within limits of time and memory, and returns plain numbers. These are checked field by field,
 * because a process that crashes may have written anything before. The file is read in this process
 * without a time limit: a pipe or a remote file system may be slow without being damaged. Thread:
 * any, one at a time; the child ends with the thread that asked. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/topo_internal.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20) /* the largest file; big machines have some 2 MiB */
#define CHUNK_BYTES 16384u
#define MEMORY_BYTES ((rlim_t)256 << 20) /* in addition to what the child has when it begins */
#define ITEMS_MAX 65536u                 /* of each kind */
#define REMEDY "; make one with: weft topo --save=FILE, or lstopo FILE"

/* The head of the child's answer; with WEFT_OK the arrays follow: cpu, core, node, cache, device.
 */
struct answer {
	uint32_t status;
	uint32_t package_count, cpu_count, core_count, node_count, cache_count, device_count;
	char text[sizeof(((struct wf_error *)NULL)->text)];
};

struct question {
	struct wf_env *env;
	const struct wf_topo_source *source;
	const struct wf_topo_limits *limits;
};

/* ---- the child ---- */

static void
set_limits(const struct wf_topo_limits *limits)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file != NULL) {
		if (fscanf(file, "%lu", &pages) != 1) {
			pages = 0;
		}
		(void)fclose(file);
	}
	const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
	(void)setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
	/* SIGXCPU at the first limit, which distinguishes it from other ends; SIGKILL at the
	 * second. */
	(void)setrlimit(RLIMIT_CPU, &(struct rlimit){limits->cpu_s, limits->cpu_s + 1});
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	(void)prctl(PR_SET_DUMPABLE, 0);
}

/* Resets the handlers of crashes, which are meant for the parent: a handler that returns, as that
 * of a test does, would let the program run twice. */
static void
die_of_crashes(void)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};

	for (size_t i = 0; i < WF_ARRAY_COUNT(fatal); i++) {
		(void)sigaction(fatal[i], &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	}
}

/* Separates the child: hwloc prints pages about implausible data, and its environment variables
 * name other machines. Of its plugins the child needs that for XML alone; the others look for
 * devices here, and load the libraries of X11 and OpenCL for that, which takes longer than to parse
 * the text. */
static void
be_alone(void)
{
	static const char *const variables[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT",
						"HWLOC_CPUID_PATH", "HWLOC_THISSYSTEM"};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd >= 0) {
		(void)dup2(null_fd, STDOUT_FILENO);
		(void)dup2(null_fd, STDERR_FILENO);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(variables); i++) {
		(void)unsetenv(variables[i]);
	}
	(void)setenv(
		"HWLOC_PLUGINS_BLACKLIST",
		"hwloc_cuda,hwloc_gl,hwloc_levelzero,hwloc_nvml,hwloc_opencl,hwloc_pci,hwloc_rsmi",
		1);
}

static void
put(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count > 0) {
		ssize_t done = write(fd, at, count);
		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			_exit(1);
		}
		at += done;
		count -= (size_t)done;
	}
}

static _Noreturn void
be_child(const struct question *question, pid_t parent, int fd)
{
	struct wf_topo *topo = NULL;
	struct answer answer = {0};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) {
		_exit(1); /* the parent died before prctl */
	}
	die_of_crashes();
	be_alone();
	set_limits(question->limits);
	answer.status = (uint32_t)wf_topo_read(question->env, question->source, &topo);
	if (topo == NULL) {
		snprintf(answer.text, sizeof(answer.text), "%s", wf_error_record()->text);
		put(fd, &answer, sizeof(answer));
		_exit(0);
	}
	answer.package_count = topo->package_count;
	answer.cpu_count = topo->cpu_count;
	answer.core_count = topo->core_count;
	answer.node_count = topo->node_count;
	answer.cache_count = topo->cache_count;
	answer.device_count = topo->device_count;
	put(fd, &answer, sizeof(answer));
	put(fd, topo->cpu, topo->cpu_count * sizeof(*topo->cpu));
	put(fd, topo->core, topo->core_count * sizeof(*topo->core));
	put(fd, topo->node, topo->node_count * sizeof(*topo->node));
	put(fd, topo->cache, topo->cache_count * sizeof(*topo->cache));
	put(fd, topo->device, topo->device_count * sizeof(*topo->device));
	_exit(0);
}

/* ---- the parent ---- */

struct child {
	int fd;
	uint64_t end_ms; /* when it is killed */
	bool is_late;    /* that time has passed */
};

static uint64_t
now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Receives all of it, or returns false. */
static bool
recv_all(struct child *child, void *out, size_t count)
{
	char *at = out;

	while (count > 0) {
		struct pollfd wanted = {.fd = child->fd, .events = POLLIN};
		const uint64_t now = now_ms();
		if (now >= child->end_ms) {
			child->is_late = true;
			return false;
		}
		int ready = poll(&wanted, 1, (int)(child->end_ms - now));
		if (ready == 0) {
			continue; /* is_late is true now */
		}
		ssize_t done = ready > 0 ? read(child->fd, at, count) : -1;
		if (done < 0 && errno == EINTR) {
			continue;
		}
		if (done <= 0) {
			return false;
		}
		at += done;
		count -= (size_t)done;
	}
	return true;
}

static bool
is_word(const char *text, size_t room, bool may_have_blanks)
{
	const size_t bytes = strnlen(text, room);

	for (size_t i = 0; i < bytes; i++) {
		if (text[i] < (may_have_blanks ? 0x20 : 0x21) || text[i] > 0x7e) {
			return false;
		}
	}
	return bytes < room;
}

static bool
is_node(const struct wf_topo *topo, int numa_node)
{
	bool is = numa_node == -1;

	for (uint32_t i = 0; !is && i < topo->node_count; i++) {
		is = topo->node[i].numa_node == numa_node;
	}
	return is;
}

static bool
are_cores_good(const struct wf_topo *topo)
{
	bool is_good = topo->core_count > 0 && topo->package_count > 0;

	for (uint32_t i = 0; is_good && i < topo->core_count; i++) {
		const struct wf_topo_core *core = &topo->core[i];
		is_good = core->cpu_count > 0 && core->cpu_first <= topo->cpu_count &&
			  core->cpu_count <= topo->cpu_count - core->cpu_first &&
			  core->package < topo->package_count && is_node(topo, core->numa_node);
	}
	return is_good;
}

static bool
are_nodes_good(struct wf_topo *topo)
{
	bool is_good = true;

	for (uint32_t i = 0; is_good && i < topo->node_count; i++) {
		struct wf_topo_node *node = &topo->node[i];
		node->rule = (enum wf_numa_rule)0; /* only for this machine */
		node->available_bytes = 0;
		is_good = node->numa_node >= 0 && node->core_count <= topo->core_count &&
			  node->cpu_count <= topo->cpu_count;
	}
	for (uint32_t i = 0; is_good && i < topo->cache_count; i++) {
		const struct wf_topo_cache *cache = &topo->cache[i];
		is_good = (cache->kind == 'd' || cache->kind == 'i' || cache->kind == 'u') &&
			  cache->core_count > 0;
	}
	return is_good;
}

static bool
are_devices_good(const struct wf_topo *topo)
{
	bool is_good = true;

	for (uint32_t i = 0; is_good && i < topo->device_count; i++) {
		const struct wf_topo_device *device = &topo->device[i];
		is_good = is_word(device->name, sizeof(device->name), false) &&
			  is_word(device->pci, sizeof(device->pci), false) &&
			  is_word(device->vendor, sizeof(device->vendor), true) &&
			  device->name[0] != '\0' && device->closed[0] == '\0' &&
			  (device->kind == WF_TOPO_RDMA || device->kind == WF_TOPO_NET) &&
			  device->port_count >= 1 && device->port_count <= WF_TOPO_PORTS_MAX &&
			  is_node(topo, device->numa_node);
		for (unsigned p = 0; is_good && p < WF_TOPO_PORTS_MAX; p++) {
			is_good = device->port[p] == WF_TOPO_UNKNOWN ||
				  device->port[p] == WF_TOPO_ACTIVE ||
				  device->port[p] == WF_TOPO_DOWN;
		}
	}
	return is_good;
}

static bool
are_counts_good(const struct answer *answer)
{
	return answer->cpu_count <= ITEMS_MAX && answer->core_count <= ITEMS_MAX &&
	       answer->node_count <= ITEMS_MAX && answer->cache_count <= ITEMS_MAX &&
	       answer->device_count <= ITEMS_MAX && answer->package_count <= ITEMS_MAX;
}

static enum weft_status
alloc_lists(struct wf_topo *topo, const struct answer *answer)
{
	topo->package_count = answer->package_count;
	topo->cpu_room = (topo->cpu_count = answer->cpu_count) + 1;
	topo->core_room = (topo->core_count = answer->core_count) + 1;
	topo->node_room = (topo->node_count = answer->node_count) + 1;
	topo->cache_room = (topo->cache_count = answer->cache_count) + 1;
	topo->device_room = (topo->device_count = answer->device_count) + 1;
	topo->cpu = wf_zalloc_array(topo->env, topo->cpu_room, sizeof(*topo->cpu));
	topo->core = wf_zalloc_array(topo->env, topo->core_room, sizeof(*topo->core));
	topo->node = wf_zalloc_array(topo->env, topo->node_room, sizeof(*topo->node));
	topo->cache = wf_zalloc_array(topo->env, topo->cache_room, sizeof(*topo->cache));
	topo->device = wf_zalloc_array(topo->env, topo->device_room, sizeof(*topo->device));
	return topo->cpu == NULL || topo->core == NULL || topo->node == NULL ||
			       topo->cache == NULL || topo->device == NULL
		       ? wf_fail(WEFT_NOMEM, "topo: %u cores", answer->core_count)
		       : WEFT_OK;
}

static enum weft_status
fail_late(const struct question *question)
{
	return wf_fail(
		WEFT_DATA,
		"topo: hwloc took longer than it may for %s (%u.%u s, %u s of computing): it "
		"is damaged, or this machine is very busy",
		question->source->xml, question->limits->wall_ms / 1000,
		question->limits->wall_ms % 1000 / 100, question->limits->cpu_s);
}

static enum weft_status
fail_crash(const char *xml)
{
	return wf_fail(WEFT_DATA, "topo: %s is damaged, so that hwloc cannot read it" REMEDY, xml);
}

/* Fails with the child's text, in one line that names the file. */
static enum weft_status
fail_as_told(const char *xml, char *text, size_t room)
{
	text[room - 1] = '\0';
	for (size_t i = 0; text[i] != '\0'; i++) {
		const unsigned char byte = (unsigned char)text[i];
		text[i] = byte < 0x20 || byte == 0x7f ? '?' : text[i];
	}
	if (text[0] == '\0') {
		return fail_crash(xml);
	}
	return strstr(text, xml) != NULL ? wf_fail(WEFT_DATA, "%s", text)
					 : wf_fail(WEFT_DATA, "%.200s: %.300s", xml, text);
}

/* Receives the child's answer. The caller closes `topo` in any case. */
static enum weft_status
recv_topo(struct child *child, const char *xml, struct wf_topo *topo)
{
	struct answer answer;

	if (!recv_all(child, &answer, sizeof(answer))) {
		return fail_crash(xml);
	}
	if (answer.status != WEFT_OK) {
		return fail_as_told(xml, answer.text, sizeof(answer.text));
	}
	if (!are_counts_good(&answer)) {
		return fail_crash(xml);
	}
	enum weft_status st = alloc_lists(topo, &answer);
	if (st != WEFT_OK) {
		return st;
	}
	const bool is_whole =
		recv_all(child, topo->cpu, topo->cpu_count * sizeof(*topo->cpu)) &&
		recv_all(child, topo->core, topo->core_count * sizeof(*topo->core)) &&
		recv_all(child, topo->node, topo->node_count * sizeof(*topo->node)) &&
		recv_all(child, topo->cache, topo->cache_count * sizeof(*topo->cache)) &&
		recv_all(child, topo->device, topo->device_count * sizeof(*topo->device));
	return is_whole && are_nodes_good(topo) && are_cores_good(topo) && are_devices_good(topo)
		       ? WEFT_OK
		       : fail_crash(xml);
}

static enum weft_status
ask(struct wf_topo *topo, const struct question *question)
{
	const pid_t self = getpid();
	int status = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "topo: a pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		be_child(question, self, ends[1]);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return wf_fail_errno(WEFT_NOMEM, errno, "topo: a process");
	}
	struct child child = {.fd = ends[0], .end_ms = now_ms() + question->limits->wall_ms};
	enum weft_status st = recv_topo(&child, question->source->xml, topo);
	(void)close(ends[0]);
	(void)kill(pid, SIGKILL); /* it has sent its answer */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	bool is_late = child.is_late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
	return st != WEFT_OK && is_late ? fail_late(question) : st;
}

/* ---- the file ---- */

static enum weft_status
keep(int fd, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t done = write(fd, bytes, count);
		if (done < 0 && errno != EINTR) {
			return wf_fail_errno(WEFT_NOMEM, errno, "topo: memory for a file");
		}
		bytes += done > 0 ? done : 0;
		count -= done > 0 ? (size_t)done : 0;
	}
	return WEFT_OK;
}

static enum weft_status
copy(int from, int to, const char *path)
{
	char chunk[CHUNK_BYTES];
	size_t copied = 0;

	for (;;) {
		ssize_t got = read(from, chunk, sizeof(chunk));
		if (got == 0) {
			return WEFT_OK;
		}
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got < 0) {
			return wf_fail_errno(WEFT_DATA, errno, "topo: %s cannot be read", path);
		}
		copied += (size_t)got;
		if (copied > TEXT_BYTES_MAX) {
			return wf_fail(WEFT_DATA,
				       "topo: %s has more than %zu MiB, which is not the "
				       "description of a machine",
				       path, TEXT_BYTES_MAX >> 20);
		}
		enum weft_status st = keep(to, chunk, (size_t)got);
		if (st != WEFT_OK) {
			return st;
		}
	}
}

/* Reads the whole file into a memfd, which has a path. `*out` is -1, or has to be closed. */
static enum weft_status
read_file(const char *path, int *out)
{
	*out = memfd_create("weft-topo", MFD_CLOEXEC);
	if (*out < 0) {
		return wf_fail_errno(WEFT_NOMEM, errno, "topo: memory for a file");
	}
	int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		return wf_fail_errno(WEFT_DATA, errno, "topo: %s cannot be read", path);
	}
	enum weft_status st = copy(fd, *out, path);
	(void)close(fd);
	return st;
}

enum weft_status
wf_topo_ask_child(struct wf_env *env, const struct wf_topo_source *source,
		  const struct wf_topo_limits *limits, struct wf_topo **out)
{
	char path[40];
	struct wf_topo_source copied = *source;
	const struct question question = {env, &copied, limits};
	int fd = -1;
	struct wf_topo *topo = wf_zalloc(env, sizeof(*topo));

	if (topo == NULL) {
		return wf_fail(WEFT_NOMEM, "topo: %zu bytes", sizeof(*topo));
	}
	topo->env = env;
	enum weft_status st = read_file(source->xml, &fd);
	if (st == WEFT_OK) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		copied.xml_copy = path;
		st = ask(topo, &question);
	}
	if (fd >= 0) {
		(void)close(fd);
	}
	if (st != WEFT_OK) {
		wf_topo_close(topo);
		return st;
	}
	*out = topo;
	return WEFT_OK;
}
