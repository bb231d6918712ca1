/* SPDX-License-Identifier: Apache-2.0 */
/* env_system: the env of the operating system. Thread: every op may be called by any. */
#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env_helper.h"
#include "base/env_slab.h"
#include "base/outlet.h"
#include "base/rng.h"
#include "base/syscalls.h"

/* Allocations of at least this size come from mmap, and go back to the system when freed. */
#define MMAP_BYTES ((size_t)128 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define ALIGN_MAX 4096
#define LINE_BYTES (1024 + 32)
#define LOG_QUEUE_BYTES ((size_t)256 << 10) /* about 2,000 lines */
#define LOG_FLUSH_NS (100 * WF_NS_PER_MS)

#define WAIT_MS_MAX 60000 /* the longest epoll_wait; waits may end early */

struct env_system {
	struct wf_env env; /* first, so that ops can cast it back */

	/* Fixed at creation. */
	enum weft_log_level level;
	struct wf_outlet *log; /* has its own lock; NULL: lines are dropped */

	struct wf_env_helper helper; /* has its own lock */
	struct wf_env_slabs slabs;   /* has its own lock */
	_Atomic bool told_pages; /* relaxed: the first thread logs it, and a line carries no data */
};

static struct env_system *
self_of(struct wf_env *env)
{
	return (struct env_system *)env;
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;
	int err = clock_gettime(clock, &ts);
	WF_ASSERT(err == 0);
	return (uint64_t)ts.tv_sec * WF_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t
system_now_ns(struct wf_env *env)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t
system_random(struct wf_env *env)
{
	uint64_t value = 0;
	ssize_t n = 0;
	do {
		n = getrandom(&value, sizeof(value), 0);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(value)) {
		/* The system call is missing (an old sandbox). No promise depends on these numbers.
		 */
		uint64_t state = clock_ns(CLOCK_REALTIME) ^ ((uint64_t)getpid() << 40) ^
				 clock_ns(CLOCK_MONOTONIC);
		value = wf_splitmix64(&state);
	}
	return value;
}

/* Of all envs. Relaxed: it is read as a number alone. */
static _Atomic uint64_t allocated_bytes;

static void *
count_allocated(void *memory, size_t bytes)
{
	if (memory != NULL) {
		(void)atomic_fetch_add_explicit(&allocated_bytes, bytes, memory_order_relaxed);
	}
	return memory;
}

static void *
get_memory(size_t bytes, size_t align)
{
	WF_ASSERT(align > 0 && (align & (align - 1)) == 0);
	WF_ASSERT(align <= ALIGN_MAX);
	if (bytes >= MMAP_BYTES) {
		void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
		if (memory == MAP_FAILED) {
			return NULL;
		}
		if (bytes >= HUGE_PAGE_BYTES) {
			/* optional; EINVAL: the kernel has no huge pages. */
			(void)madvise(memory, bytes, MADV_HUGEPAGE);
		}
		return memory;
	}
	align = align < sizeof(max_align_t) ? sizeof(max_align_t) : align;
	size_t rounded = bytes == 0 ? align : (bytes + align - 1) / align * align;
	void *memory = aligned_alloc(align, rounded);
	if (memory != NULL) {
		memset(memory, 0, rounded);
	}
	return memory;
}

static void *
system_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	return count_allocated(get_memory(bytes, align), bytes);
}

static void
system_free(struct wf_env *env, void *memory, size_t bytes)
{
	if (memory != NULL) {
		(void)atomic_fetch_sub_explicit(&allocated_bytes, bytes, memory_order_relaxed);
	}
	if (memory != NULL && bytes >= MMAP_BYTES) {
		int err = munmap(memory, bytes);
		WF_ASSERT(err == 0);
		return;
	}
	free(memory);
}

static void
system_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	struct timespec timeout = {0};
	if (deadline_ns != WF_NEVER) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
		timeout.tv_sec = (time_t)(left_ns / WF_NS_PER_S);
		timeout.tv_nsec = (long)(left_ns % WF_NS_PER_S);
	}
	int n = wf_sys_poll(&pollfd, fd < 0 ? 0 : 1, deadline_ns == WF_NEVER ? NULL : &timeout);
	/* EINTR: waits may end early. Any other error means that the arguments are wrong. */
	WF_ASSERT(n >= 0 || errno == EINTR || errno == ENOMEM);
	WF_ASSERT(n <= 0 || (pollfd.revents & POLLNVAL) == 0);
}

/* epoll's own wait is cheaper than a poll of its descriptor: it enters and leaves one wait queue
 * less. */
static int
system_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns,
		   struct epoll_event *events, int max)
{
	int timeout_ms = -1;
	if (deadline_ns != WF_NEVER) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
		uint64_t left_ms = (left_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS;
		timeout_ms = left_ms < WAIT_MS_MAX ? (int)left_ms : WAIT_MS_MAX;
	}
	int n = wf_sys_epoll_wait(epoll_fd, events, max, timeout_ms);
	if (n < 0) {
		WF_ASSERT(errno == EINTR);
		return 0;
	}
	return n;
}

/* Logged once, because it holds for all slabs. */
static void
log_pages(struct env_system *self)
{
	char word[32];
	if (atomic_exchange_explicit(&self->told_pages, true, memory_order_relaxed) ||
	    wf_env_slab_is_huge(word, sizeof(word))) {
		return;
	}
	wf_log(&self->env, WF_LOG_INFO,
	       "memory of lanes and tensors has ordinary pages, because shared memory gets no huge "
	       "ones "
	       "(%s); as root: echo advise >/sys/kernel/mm/transparent_hugepage/shmem_enabled",
	       word[0] != '\0' ? word : "the kernel has none");
}

static enum weft_status
system_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	enum weft_status st = wf_env_slab_open(&self_of(env)->slabs, env, bytes, numa_node, out);
	if (st == WEFT_OK && out->bytes >= WF_SLAB_HUGE_BYTES) {
		log_pages(self_of(env));
	}
	return st;
}

static void
system_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	wf_env_slab_close(&self_of(env)->slabs, env, slab);
}

static void
system_slab_keep(struct wf_env *env, struct wf_slab *slab)
{
	wf_env_slab_keep(&self_of(env)->slabs, env, slab);
}

static enum weft_status
system_submit(struct wf_env *env, struct wf_task *task)
{
	return wf_env_helper_submit(&self_of(env)->helper, task);
}

/* The kernel draws it at boot; containers of one host see the same. */
static void
system_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	char text[64] = "";
	memset(out, 0, WF_HOST_ID_BYTES);
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return;
	}
	ssize_t n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	unsigned digits = 0;
	for (ssize_t i = 0; i < n && digits < 2 * WF_HOST_ID_BYTES; i++) {
		char c = text[i];
		if (c == '-') {
			continue;
		}
		bool letter = c >= 'a' && c <= 'f';
		if (!letter && (c < '0' || c > '9')) {
			break;
		}
		uint8_t digit = (uint8_t)(letter ? c - 'a' + 10 : c - '0');
		out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | digit);
		digits++;
	}
	if (digits != 2 * WF_HOST_ID_BYTES) {
		memset(out, 0, WF_HOST_ID_BYTES);
	}
}

/* "2026-11-20 07:16:18.123 I text\n"; cut where it is too long. Returns its bytes. */
static size_t
format_line(enum weft_log_level level, const char *text, char *line, size_t room)
{
	static const char letters[] = "DIWE";
	WF_ASSERT((unsigned)level < sizeof(letters) - 1);
	uint64_t now_ns = clock_ns(CLOCK_REALTIME);
	time_t seconds = (time_t)(now_ns / WF_NS_PER_S);
	struct tm tm = {0};
	char stamp[32] = "";
	if (localtime_r(&seconds, &tm) != NULL) {
		(void)strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
	}
	int n = snprintf(line, room - 1, "%s.%03u %c %s", stamp,
			 (unsigned)(now_ns % WF_NS_PER_S / WF_NS_PER_MS), letters[level], text);
	WF_ASSERT(n > 0);
	size_t bytes = (size_t)n < room - 2 ? (size_t)n : room - 2;
	line[bytes] = '\n';
	line[bytes + 1] = '\0';
	return bytes + 1;
}

static void
system_log(struct wf_env *env, enum weft_log_level level, const char *text)
{
	struct env_system *self = self_of(env);
	if (level < self->level || self->log == NULL) {
		return;
	}
	char line[LINE_BYTES];
	size_t bytes = format_line(level, text, line, sizeof(line));
	(void)wf_outlet_put(self->log, line, bytes); /* a log that is full costs the line */
}

static void
format_dropped(uint64_t count, char *line, size_t bytes)
{
	char text[128];
	wf_outlet_format_dropped(count, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	(void)format_line(WF_LOG_WARN, text, line, bytes);
}

static const struct wf_env_ops system_ops = {
	.now_ns = system_now_ns,
	.random = system_random,
	.alloc = system_alloc,
	.free = system_free,
	.slab_open = system_slab_open,
	.slab_close = system_slab_close,
	.slab_keep = system_slab_keep,
	.wait = system_wait,
	.wait_events = system_wait_events,
	.submit = system_submit,
	.host_id = system_host_id,
	.log = system_log,
};

static const struct wf_env_ops memory_ops = {
	.alloc = system_alloc,
	.free = system_free,
};

struct wf_env *
wf_env_memory(void)
{
	static struct wf_env env = {.ops = &memory_ops};
	return &env;
}

/* Opens the outlet of log lines. */
static enum weft_status
open_log(struct env_system *self, int log_fd)
{
	const struct wf_outlet_opts opts = {.fd = log_fd,
					    .queue_bytes = LOG_QUEUE_BYTES,
					    .format_dropped = format_dropped,
					    .wake_fd = -1};
	return log_fd < 0 ? WEFT_OK : wf_outlet_open(&opts, &self->log);
}

/* Opens the parts that have locks of their own. */
static enum weft_status
open_parts(struct env_system *self, int log_fd)
{
	enum weft_status st = open_log(self, log_fd);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_env_slabs_init(&self->slabs);
	if (st != WEFT_OK) {
		wf_outlet_close(self->log);
		return st;
	}
	st = wf_env_helper_init(&self->helper);
	if (st != WEFT_OK) {
		wf_env_slabs_fini(&self->slabs);
		wf_outlet_close(self->log);
	}
	return st;
}

enum weft_status
wf_env_system_create(enum weft_log_level level, int log_fd, struct wf_env **out)
{
	WF_ASSERT((unsigned)level <= WF_LOG_ERROR);
	struct env_system *self = calloc(1, sizeof(*self));
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "env: %zu bytes", sizeof(*self));
	}
	self->env.ops = &system_ops;
	self->level = level;
	enum weft_status st = open_parts(self, log_fd);
	if (st != WEFT_OK) {
		free(self);
		return st;
	}
	*out = &self->env;
	return WEFT_OK;
}

void
wf_env_system_destroy(struct wf_env *env)
{
	if (env == NULL) {
		return;
	}
	WF_ASSERT(env->ops == &system_ops);
	struct env_system *self = self_of(env);
	wf_env_helper_fini(&self->helper);
	wf_env_slabs_fini(&self->slabs);
	wf_outlet_close(self->log); /* last: the helper may have logged */
	free(self);
}

uint64_t
wf_env_system_bytes(void)
{
	return atomic_load_explicit(&allocated_bytes, memory_order_relaxed) + wf_env_slab_bytes();
}

void
wf_env_system_flush_log(struct wf_env *env)
{
	WF_ASSERT(env->ops == &system_ops);
	struct env_system *self = self_of(env);
	if (self->log != NULL) {
		(void)wf_outlet_flush(self->log, LOG_FLUSH_NS);
	}
}
