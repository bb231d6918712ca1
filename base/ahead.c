/* SPDX-License-Identifier: Apache-2.0 */
/* ahead: see ahead.h. Thread: the lane's, but `run`, which is the helper's. */
#include "base/ahead.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/numa.h"

#define PIECE_BYTES ((size_t)2 << 20) /* between two looks at `stop`: a huge page */
#define PAGE_BYTES ((uintptr_t)4096)
#define END_POLL_NS WF_NS_PER_MS

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Pages become present and writable, and keep their contents. */
static bool
populate(char *at, size_t bytes)
{
	uintptr_t first = (uintptr_t)at & ~(PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)at + bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	return madvise((void *)first, end - first, MADV_POPULATE_WRITE) == 0;
}

static void
run(struct wf_task *task)
{
	struct wf_ahead *ahead =
		(struct wf_ahead *)(void *)((char *)task - offsetof(struct wf_ahead, task));
	size_t done = 0;

	while (done < ahead->bytes && !atomic_load_explicit(&ahead->stop, memory_order_relaxed)) {
		size_t left = ahead->bytes - done;
		size_t piece = PIECE_BYTES - (uintptr_t)(ahead->at + done) % PIECE_BYTES;
		piece = left < piece ? left : piece;
		if (!populate(ahead->at + done, piece)) {
			break; /* an older system, or no memory, which the lane reports */
		}
		done += piece;
		atomic_store_explicit(&ahead->reached_bytes, done, memory_order_release); /* A1 */
	}
}

void
wf_ahead_init(struct wf_ahead *ahead, struct wf_env *env)
{
	*ahead = (struct wf_ahead){.env = env, .task = {.run = run, .wake_fd = -1}};
}

/* Handles the end of the request under way. */
static bool
is_over(struct wf_ahead *ahead)
{
	if (ahead->under_way &&
	    atomic_load_explicit(&ahead->task.done, memory_order_acquire)) { /* the env's release */
		ahead->under_way = false;
		ahead->ended = ahead->ended || wf_ahead_reached(ahead) < ahead->bytes;
	}
	return !ahead->under_way;
}

void
wf_ahead_fini(struct wf_ahead *ahead)
{
	atomic_store_explicit(&ahead->stop, true, memory_order_relaxed);
	while (!is_over(ahead)) {
		wf_wait(ahead->env, -1, wf_now_ns(ahead->env) + END_POLL_NS);
	}
}

size_t
wf_ahead_reached(const struct wf_ahead *ahead)
{
	return atomic_load_explicit(&ahead->reached_bytes, memory_order_acquire); /* A1 */
}

bool
wf_ahead_is_free(struct wf_ahead *ahead)
{
	return is_over(ahead) && !ahead->ended;
}

void
wf_ahead_begin(struct wf_ahead *ahead, void *at, size_t bytes)
{
	WF_ASSERT(!ahead->under_way && !ahead->ended);
	WF_ASSERT(bytes > 0);
	ahead->at = at;
	ahead->bytes = bytes;
	atomic_store_explicit(&ahead->reached_bytes, 0, memory_order_relaxed); /* before submit */
	ahead->under_way = true;
	if (ahead->env->ops->submit(ahead->env, &ahead->task) != WEFT_OK) {
		ahead->under_way = false;
		ahead->ended = true;
	}
}

void
wf_ahead_place(void *at, size_t bytes, unsigned node)
{
	if (node > 0 && node <= WF_NUMA_NODE_MAX) {
		(void)wf_numa_place(at, bytes, (int)node - 1, WF_NUMA_PREFERRED);
	}
}
