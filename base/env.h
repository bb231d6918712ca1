/* SPDX-License-Identifier: Apache-2.0 */
/* env: the source of time, randomness, memory, waiting, helper work and log lines.
 *
 * State machines never call the operating system: they call their env. `wf_env_system_create` gives
 * the real one; tests/cluster runs whole jobs on the simulated one (tests/double/sim), where time
 * is virtual, randomness comes from a seed and `wait` passes the turn to another member of the job.
 *
 * Thread: an env may be shared by the threads of a process; every op of the system env is
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "weft/weft.h"

#define WF_NS_PER_US 1000ull
#define WF_NS_PER_MS 1000000ull
#define WF_NS_PER_S 1000000000ull
#define WF_NEVER UINT64_MAX /* a deadline that never passes */

#define WF_HOST_ID_BYTES 16

/* Short names for the levels of weft/weft.h, which every call that logs uses. */
#define WF_LOG_DEBUG WEFT_LOG_DEBUG
#define WF_LOG_INFO WEFT_LOG_INFO
#define WF_LOG_WARN WEFT_LOG_WARN
#define WF_LOG_ERROR WEFT_LOG_ERROR

struct wf_env;

/* Work that may block (name look-up, touching gigabytes). The caller owns the memory, and keeps it
 * until `done`. */
struct wf_task {
	void (*run)(struct wf_task *task); /* runs on the helper thread; in a simulation at once */
	int wake_fd;                       /* eventfd to which 1 is added when done; -1: none */
	_Atomic bool done;                 /* env: store release; owner: load acquire */
	struct wf_task *next;              /* link in the env's queue */
};

/* Memory that transports may register or share. */
struct wf_slab {
	void *base;   /* page aligned, zero-filled */
	size_t bytes; /* as requested, rounded up to whole pages */
	int memfd;    /* backing memfd, -1 where the env has none */
	/* Its entry in the list that a child of fork finds (base/forked.h); owned. NULL without a
	 * memfd. */
	struct wf_forked_map *forked;
};

struct epoll_event;

struct wf_env_ops {
	/* Nanoseconds of a clock that never goes back. */
	uint64_t (*now_ns)(struct wf_env *env);
	/* 64 random bits, for incarnations and jitter. Nothing that has to be reproducible uses
	 * them. */
	uint64_t (*random)(struct wf_env *env);
	/* Zeroed memory, aligned to `align` (a power of two <= 4096), or NULL if there is none. */
	void *(*alloc)(struct wf_env *env, size_t bytes, size_t align);
	/* Accepts NULL. `bytes` as in alloc. */
	void (*free)(struct wf_env *env, void *memory, size_t bytes);
	/* numa_node -1: any. Pages are not touched: those never used cost address space only. */
	enum weft_status (*slab_open)(struct wf_env *env, size_t bytes, int numa_node,
				      struct wf_slab *out);
	void (*slab_close)(struct wf_env *env, struct wf_slab *slab);
	/* The memory stays mapped and belongs to the process from here on; everything else is
	 * released. NULL if an env cannot do that: its slabs are closed instead. */
	void (*slab_keep)(struct wf_env *env, struct wf_slab *slab);
	/* Sleeps until `fd` is readable (-1: no fd) or now_ns reaches `deadline_ns`. May return
	 * early. This is the only place where weft sleeps. */
	void (*wait)(struct wf_env *env, int fd, uint64_t deadline_ns);
	/* The same on an epoll descriptor; returns up to `max` of its events, and their number,
	 * which is 0 also if the env does not wait on descriptors. May be late by a millisecond. */
	int (*wait_events)(struct wf_env *env, int epoll_fd, uint64_t deadline_ns,
			   struct epoll_event *events, int max);
	/* Queues `task` for the helper thread. WEFT_NOMEM if that thread cannot be started. */
	enum weft_status (*submit)(struct wf_env *env, struct wf_task *task);
	/* Identifies the running host: processes that can share memory get the same id. All zero:
	 * unknown. */
	void (*host_id)(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES]);
	/* One line, without newline. */
	void (*log)(struct wf_env *env, enum weft_log_level level, const char *line);
};

struct wf_env {
	const struct wf_env_ops *ops;
};

/* Creates the env of the operating system: its clock, random numbers (getrandom), memory (mmap,
 * memfd), poll(2), and one helper thread (started at the first submit). Log lines of at least
 * `level` go to `log_fd` ("2026-11-20 07:16:18.123 I text\n") through an outlet (base/outlet.h), so
 * that a thread that logs never waits for the reader; -1: they are dropped. */
enum weft_status wf_env_system_create(enum weft_log_level level, int log_fd,
				      struct wf_env **out) WEFT_MUST_CHECK;
/* Waits for the running task, and for the log as wf_outlet_close does. Accepts NULL. */
void wf_env_system_destroy(struct wf_env *env);
/* An env with the system's memory and nothing else, for objects that live outside of any env. It
 * belongs to the process. Thread: any. */
struct wf_env *wf_env_memory(void);
/* Waits until logged lines are written, so that they precede what the caller is about to write
 * elsewhere. Waits at most a tenth of a second for a log that is not being read, and then not
 * again. */
void wf_env_system_flush_log(struct wf_env *env);
/* How much memory the process has from system envs and has not given back: allocations, as they
 * were asked for, and slabs, touched or not. */
uint64_t wf_env_system_bytes(void);

static inline uint64_t
wf_now_ns(struct wf_env *env)
{
	return env->ops->now_ns(env);
}

static inline uint64_t
wf_random(struct wf_env *env)
{
	return env->ops->random(env);
}

/* Zeroed memory, aligned to 64 bytes, or NULL if there is none. */
static inline void *
wf_zalloc(struct wf_env *env, size_t bytes)
{
	return env->ops->alloc(env, bytes, 64);
}

/* A zeroed array; NULL also if count * item_bytes overflows. */
void *wf_zalloc_array(struct wf_env *env, size_t count, size_t item_bytes);

static inline void
wf_free(struct wf_env *env, void *memory, size_t bytes)
{
	env->ops->free(env, memory, bytes);
}

static inline void
wf_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	env->ops->wait(env, fd, deadline_ns);
}

static inline int
wf_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns, struct epoll_event *events,
	       int max)
{
	return env->ops->wait_events(env, epoll_fd, deadline_ns, events, max);
}

static inline void
wf_host_id(struct wf_env *env, uint8_t out[WF_HOST_ID_BYTES])
{
	env->ops->host_id(env, out);
}

/* Closes a slab or, with `keep`, leaves its memory to the caller and closes the file behind it.
 * Accepts one that was never opened. The slab is zeroed. */
void wf_slab_release(struct wf_env *env, struct wf_slab *slab, bool keep);

/* Formats one log line (at most 1,023 bytes) and passes it to the env. */
void wf_log(struct wf_env *env, enum weft_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for each line of `text`, behind `before`; newlines are between lines. */
void wf_log_lines(struct wf_env *env, enum weft_log_level level, const char *before,
		  const char *text);

/* Limits how often one place logs, and counts the suppressed lines. */
struct wf_log_limit {
	unsigned most;   /* lines in a period, fixed before the first; 0: one */
	unsigned said;   /* lines logged in the current period */
	uint64_t end_ns; /* of that period; 0: none has begun */
	uint64_t unsaid; /* suppressed lines that are not reported yet */
};
/* Whether a line may be logged now. */
bool wf_log_limit_pass(struct wf_log_limit *limit, uint64_t now_ns, uint64_t period_ns);
/* The number of suppressed lines, once their period is over; 0: nothing to report. */
uint64_t wf_log_limit_unsaid(struct wf_log_limit *limit, uint64_t now_ns);
