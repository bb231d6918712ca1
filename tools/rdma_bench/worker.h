/* SPDX-License-Identifier: Apache-2.0 */
/* worker: a process of the benchmark, bound to CPUs, that runs commands and reports figures.
 * Commands and figures travel over a socket of packets, so a waiting worker sleeps.
 *
 * Thread: the starting process has only one; wf_seat_* are called in the worker's process, by its
 * main thread. A worker dies with the process that started it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

struct wf_env;

#define WF_FIGURE_TEXT_BYTES 384
#define WF_CPU_ANY (-1)  /* of either CPU of the benchmark */
#define WF_CPU_FREE (-2) /* of all that the benchmark itself may use */

struct wf_work_order {
	uint32_t stop;  /* 1: end */
	uint32_t mode;  /* which of its ways; the worker's own numbers */
	uint32_t slow;  /* 1: each operation takes twice its time (--slow) */
	uint64_t count; /* operations to run */
};

/* What a worker sends: first that it is ready, then once per order. */
struct wf_figures {
	enum weft_status status;
	char text[WF_FIGURE_TEXT_BYTES]; /* of a failure */
	uint64_t number;                 /* ready: what others need to know (a port) */
	uint64_t count;                  /* operations that were run */
	uint64_t elapsed_ns;
	double p50_ns, p99_ns, p999_ns; /* of one operation */
};

/* The worker's end. */
struct wf_bench_seat {
	struct wf_env *env;
	int fd;
};

struct wf_worker_opts {
	const char *name; /* "pserver"; for messages */
	int cpu;          /* WF_CPU_ANY: `either`; WF_CPU_FREE */
	int either[2];
	/* The worker's life: ready, orders, end. A failure is reported for it. */
	enum weft_status (*run)(struct wf_bench_seat *seat, const void *arg);
	const void *arg; /* the worker has a copy of it, as of all memory */
};

struct wf_worker {
	const char *name;
	pid_t pid; /* 0: none */
	int fd;    /* socket to it */
};

enum weft_status wf_worker_start(const struct wf_worker_opts *opts,
				 struct wf_worker *out) WEFT_MUST_CHECK;
enum weft_status wf_worker_order(struct wf_worker *worker,
				 const struct wf_work_order *order) WEFT_MUST_CHECK;
/* Its next figures. A failure of the worker's is the caller's, with the worker's name; TIMEOUT. */
enum weft_status wf_worker_await(struct wf_worker *worker, uint64_t timeout_ns,
				 struct wf_figures *out) WEFT_MUST_CHECK;
/* Waits until it ends by itself, at most `timeout_ns`; then kills it. Accepts one that was never
 * started. */
void wf_worker_end(struct wf_worker *worker, uint64_t timeout_ns);

void wf_seat_ready(struct wf_bench_seat *seat, uint64_t number);
/* false: no more orders. */
bool wf_seat_order(struct wf_bench_seat *seat, struct wf_work_order *out);
void wf_seat_report(struct wf_bench_seat *seat, const struct wf_figures *figures);
