/* SPDX-License-Identifier: Apache-2.0 */
/* env_sim: the env of a simulated proc. Whatever it hands out is on a list of the proc, so that the
 * memory of a proc that was killed can be given back. Thread: the world's. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "tests/double/sim/sim.h"

#define UNTOUCHED_BYTES ((size_t)256 << 10) /* from here on */
#define ALIGN_MAX 4096u
#define LINE_BYTES 1536
/* Virtual time stands still within a turn: who reads the clock this often spins on it. */
#define CLOCK_READS_MAX 50000000u
#define TASK_NS_MAX (2 * WF_NS_PER_MS)

/* In front of each allocation. */
struct wf_sim_block {
	struct wf_sim_block *next;
	struct wf_sim_block *prev;
	void *whole; /* what free takes */
	size_t bytes;
};
WF_STATIC_ASSERT((sizeof(struct wf_sim_block) & (sizeof(struct wf_sim_block) - 1)) == 0,
		 "an alignment as well");

struct wf_sim_slab {
	struct wf_sim_slab *next;
	void *base;
	size_t map_bytes; /* with the guard page behind it */
};

struct wf_sim_task {
	struct wf_due due;
	struct wf_sim_task *next;
	struct wf_proc *proc;
	struct wf_task *task;
};

static struct wf_proc *
self_of(struct wf_env *env)
{
	struct wf_proc *proc = wf_sim_proc_of(env);
	WF_ASSERT(proc != NULL);
	return proc;
}

static uint64_t
sim_now_ns(struct wf_env *env)
{
	struct wf_proc *proc = self_of(env);
	proc->clock_reads++;
	WF_ASSERT(proc->clock_reads < CLOCK_READS_MAX); /* a turn that waits for time to pass */
	return proc->world->now_ns + proc->ahead_ns;
}

static uint64_t
sim_random(struct wf_env *env)
{
	return wf_rng_u64(&self_of(env)->rng);
}

/* No slack behind it: a sanitizer sees the first byte too many. But what is large is not touched:
 * there, as in the system's env, what is never used costs address space only. */
static uint8_t *
zalloc_aligned(size_t bytes, size_t align, void **whole)
{
	if (bytes >= UNTOUCHED_BYTES && bytes <= SIZE_MAX - align) {
		*whole = calloc(1, bytes + align);
		uintptr_t past = *whole != NULL ? (uintptr_t)*whole % align : 0;
		return *whole != NULL ? (uint8_t *)*whole + (past > 0 ? align - past : 0) : NULL;
	}
	if (posix_memalign(whole, align, bytes) != 0) {
		return NULL;
	}
	return memset(*whole, 0, bytes);
}

static void *
sim_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_proc *proc = self_of(env);
	WF_ASSERT(align > 0 && (align & (align - 1)) == 0 && align <= ALIGN_MAX);
	size_t front = align < sizeof(struct wf_sim_block) ? sizeof(struct wf_sim_block) : align;
	size_t total = 0;
	if (__builtin_add_overflow(bytes, front, &total) || wf_sim_is_starved(proc)) {
		return NULL;
	}
	void *whole = NULL;
	uint8_t *base = zalloc_aligned(total, front, &whole);
	if (base == NULL) {
		return NULL;
	}
	struct wf_sim_block *block = (void *)(base + front - sizeof(*block));
	block->whole = whole;
	block->bytes = bytes;
	block->next = proc->blocks;
	if (proc->blocks != NULL) {
		proc->blocks->prev = block;
	}
	proc->blocks = block;
	return base + front;
}

static void
sim_free(struct wf_env *env, void *memory, size_t bytes)
{
	struct wf_proc *proc = self_of(env);
	if (memory == NULL) {
		return;
	}
	struct wf_sim_block *block = (void *)((uint8_t *)memory - sizeof(*block));
	WF_ASSERT(block->bytes == bytes);
	if (block->prev != NULL) {
		block->prev->next = block->next;
	} else {
		WF_ASSERT(proc->blocks == block);
		proc->blocks = block->next;
	}
	if (block->next != NULL) {
		block->next->prev = block->prev;
	}
	free(block->whole);
}

static enum weft_status
sim_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	struct wf_proc *proc = self_of(env);
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	if (bytes == 0 || bytes > SIZE_MAX / 2) {
		return wf_fail(WEFT_INVALID, "slab: %zu bytes", bytes);
	}
	if (wf_sim_is_starved(proc)) {
		return wf_fail(WEFT_NOMEM, "slab: %zu bytes", bytes);
	}
	size_t whole = (bytes + page_bytes - 1) / page_bytes * page_bytes;
	void *base = mmap(NULL, whole + page_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		return wf_fail_errno(WEFT_NOMEM, errno, "slab: %zu bytes", whole);
	}
	int failed = mprotect((uint8_t *)base + whole, page_bytes, PROT_NONE);
	WF_ASSERT(failed == 0);
	struct wf_sim_slab *slab = wf_sim_zalloc(sizeof(*slab));
	*slab = (struct wf_sim_slab){
		.next = proc->slabs, .base = base, .map_bytes = whole + page_bytes};
	proc->slabs = slab;
	*out = (struct wf_slab){.base = base, .bytes = whole, .memfd = -1};
	return WEFT_OK;
}

static void
slab_remove(struct wf_sim_slab **at)
{
	struct wf_sim_slab *slab = *at;
	*at = slab->next;
	int failed = munmap(slab->base, slab->map_bytes);
	WF_ASSERT(failed == 0);
	free(slab);
}

static void
sim_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	struct wf_proc *proc = self_of(env);
	if (slab->base == NULL) {
		return;
	}
	struct wf_sim_slab **at = &proc->slabs;
	while (*at != NULL && (*at)->base != slab->base) {
		at = &(*at)->next;
	}
	WF_ASSERT(*at != NULL);
	slab_remove(at);
	*slab = (struct wf_slab){.memfd = -1};
}

static void
sim_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	struct wf_proc *proc = self_of(env);
	struct wf_world *world = proc->world;
	uint64_t at_ns = deadline_ns == WF_NEVER        ? WF_NEVER
			 : deadline_ns > proc->ahead_ns ? deadline_ns - proc->ahead_ns
							: 0;
	/* Nobody but tasks writes to a proc's fds while it waits, and those wake it themselves. */
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	if (fd >= 0 && poll(&pollfd, 1, 0) > 0) {
		at_ns = world->now_ns;
	}
	/* A wait may return early: now and then this one does. */
	if (at_ns != WF_NEVER && at_ns > world->now_ns && wf_sim_chance(world, 1, 64)) {
		at_ns = wf_sim_draw(world, world->now_ns, at_ns);
	}
	wf_sim_pass_turn(proc, at_ns);
}

static int
sim_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events,
		int max)
{
	sim_wait(env, epoll_fd, deadline_ns);
	return 0;
}

static void
task_unlink(struct wf_sim_task *task)
{
	struct wf_sim_task **at = &task->proc->tasks;
	while (*at != task) {
		at = &(*at)->next;
	}
	*at = task->next;
}

static void
task_ends(struct wf_due *due)
{
	struct wf_sim_task *own = WF_SIM_OUTER(struct wf_sim_task, due, due);
	struct wf_task *task = own->task;
	struct wf_proc *proc = own->proc;
	task_unlink(own);
	free(own);
	int wake_fd = task->wake_fd;
	/* The owner's acquire; from here on the task is the owner's again. */
	atomic_store_explicit(&task->done, true, memory_order_release);
	if (wake_fd >= 0) {
		uint64_t one = 1;
		ssize_t n = write(wake_fd, &one, sizeof(one));
		WF_ASSERT(n == (ssize_t)sizeof(one));
	}
	wf_sim_wake(proc);
}

static enum weft_status
sim_submit(struct wf_env *env, struct wf_task *task)
{
	struct wf_proc *proc = self_of(env);
	struct wf_world *world = proc->world;
	atomic_store_explicit(&task->done, false, memory_order_relaxed); /* one thread */
	proc->task_ns = 0;
	task->run(task);
	struct wf_sim_task *own = wf_sim_zalloc(sizeof(*own));
	*own = (struct wf_sim_task){.proc = proc, .task = task, .next = proc->tasks};
	own->due.fire = task_ends;
	proc->tasks = own;
	wf_due_add(&world->heap, &own->due,
		   world->now_ns + wf_sim_draw(world, 1, TASK_NS_MAX) + proc->task_ns);
	return WEFT_OK;
}

/* From its name: what has the same name is the same host. */
static void
sim_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	const char *host = self_of(env)->host;
	uint64_t state = wf_crc32c(0, host, strlen(host)) + 1ull;
	for (unsigned i = 0; i < WF_HOST_ID_BYTES; i += 8) {
		uint64_t word = wf_splitmix64(&state);
		memcpy(out + i, &word, sizeof(word));
	}
}

static void
sim_log(struct wf_env *env, enum weft_log_level level, const char *text)
{
	static const char letters[] = "DIWE";
	struct wf_proc *proc = self_of(env);
	struct wf_world *world = proc->world;
	if (level < world->opts.log_level || world->opts.log_fd < 0) {
		return;
	}
	char line[LINE_BYTES];
	int n = snprintf(line, sizeof(line) - 1, "%6llu.%09llu %c %s: %s",
			 (unsigned long long)(world->now_ns / WF_NS_PER_S),
			 (unsigned long long)(world->now_ns % WF_NS_PER_S), letters[level],
			 proc->host, text);
	WF_ASSERT(n > 0);
	size_t bytes = (size_t)n < sizeof(line) - 2 ? (size_t)n : sizeof(line) - 2;
	line[bytes] = '\n';
	ssize_t written = write(world->opts.log_fd, line, bytes + 1);
	(void)written; /* a log that is full costs the line, never the run */
}

static const struct wf_env_ops sim_env_ops = {
	.now_ns = sim_now_ns,
	.random = sim_random,
	.alloc = sim_alloc,
	.free = sim_free,
	.slab_open = sim_slab_open,
	.slab_close = sim_slab_close,
	.wait = sim_wait,
	.wait_events = sim_wait_events,
	.submit = sim_submit,
	.host_id = sim_host_id,
	.log = sim_log,
};

void
wf_sim_env_init(struct wf_proc *proc)
{
	proc->env.ops = &sim_env_ops;
}

struct wf_proc *
wf_sim_proc_of(struct wf_env *env)
{
	return env->ops == &sim_env_ops ? WF_SIM_OUTER(struct wf_proc, env, env) : NULL;
}

void
wf_sim_env_drop_tasks(struct wf_proc *proc)
{
	while (proc->tasks != NULL) {
		struct wf_sim_task *task = proc->tasks;
		wf_due_cancel(&proc->world->heap, &task->due);
		proc->tasks = task->next;
		free(task);
	}
}

void
wf_sim_env_release(struct wf_proc *proc)
{
	while (proc->slabs != NULL) {
		slab_remove(&proc->slabs);
	}
	while (proc->blocks != NULL) {
		struct wf_sim_block *block = proc->blocks;
		proc->blocks = block->next;
		free(block->whole);
	}
}

void
wf_sim_env_forget(struct wf_proc *proc)
{
	while (proc->blocks != NULL) {
		struct wf_sim_block *block = proc->blocks;
		proc->blocks = block->next;
		*block = (struct wf_sim_block){0};
	}
	while (proc->slabs != NULL) {
		slab_remove(&proc->slabs);
	}
}
