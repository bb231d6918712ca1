/* SPDX-License-Identifier: Apache-2.0 */
/* limit: what the machine itself reaches: hand-written loops for one purpose each, which the
 * product is measured against. Nothing in this folder is the product's: plain C, sockets, shared
 * memory and ibverbs, and of the benchmark the harness alone (tests/tidy/limits.py looks).
 *
 * tcp.c    a ping-pong and a push-pull over one TCP connection
 * shm.c    a cache line to and fro, and a push-pull over shared memory
 * crowd.c  what one pserver computes and copies for a few trainers
 * rows.c   batches of rows of a table, over either
 * loop.h   how they are started, and their memory; socket.h, line.h  how their processes meet
 * form.h   arithmetic, for each processor; table.h  a table of rows
 * path_*.c the raw paths of `rdma_bench lat`, `bw` and `rate`
 *
 * Thread: starting and ending: the benchmark's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tools/rdma_bench/harness.h"

#define WF_LIMIT_TRAINERS 4u       /* of a crowd */
#define WF_LIMIT_MESSAGE_BYTES 64u /* of a ping-pong, each way */
#define WF_LINE_BATCH 32u          /* round trips of a cache line in one sample */

struct wf_limit_opts {
	int client_cpu, server_cpu;
	int either[2];        /* of a crowd: CPUs of all of them */
	bool spin;            /* else sleep until there is something to do */
	uint64_t bytes;       /* of the tensor */
	uint64_t slice_bytes; /* divides bytes */
	/* Push-pull over shared memory. If set, the client copies answers out of the server's
	 * parameters while the server goes on; otherwise the server writes them into the
	 * client's. */
	bool client_copies;
	/* Rows: over TCP, else over shared memory; how many the table has, at least two batches;
	 * `quick`: few different batches. */
	bool over_tcp;
	uint64_t rows;
	bool quick;
	const char *congestion; /* of TCP; "": the system's */
};

struct wf_limit {
	struct wf_worker worker[WF_SIDE_WORKERS_MAX];
	struct wf_side side;
	void *shared; /* by all workers; NULL: nothing */
	size_t shared_bytes;
};

/* One cache line goes to and fro; both ends spin. */
enum weft_status wf_limit_line_start(const struct wf_limit_opts *opts,
				     struct wf_limit *out) WEFT_MUST_CHECK;
/* 64 bytes over a TCP connection and back. */
enum weft_status wf_limit_ping_start(const struct wf_limit_opts *opts,
				     struct wf_limit *out) WEFT_MUST_CHECK;
/* Push-pull of one tensor over a TCP connection: slices into slots, SGD, answers written back. */
enum weft_status wf_limit_tcp_start(const struct wf_limit_opts *opts,
				    struct wf_limit *out) WEFT_MUST_CHECK;
/* The same over shared memory: the server steps straight out of the client's gradients, and answers
 * are copied once, by the side that client_copies selects. Both ends spin. */
enum weft_status wf_limit_shm_start(const struct wf_limit_opts *opts,
				    struct wf_limit *out) WEFT_MUST_CHECK;
/* The work that one pserver and WF_LIMIT_TRAINERS trainers have with asynchronous pushes. One
 * process makes, slice by slice, an SGD step over each trainer's gradients, and copies the result
 * into a window of that trainer, because the slice changes before the trainer has it. A process for
 * each trainer copies the window into its own parameters. No process waits for another. */
enum weft_status wf_limit_crowd_start(const struct wf_limit_opts *opts,
				      struct wf_limit *out) WEFT_MUST_CHECK;
/* Batches of rows out of a table of the loop's own; an order's mode is a wf_exchange_mode. Both
 * ends spin. */
enum weft_status wf_limit_rows_start(const struct wf_limit_opts *opts,
				     struct wf_limit *out) WEFT_MUST_CHECK;
/* Accepts a half-started one. */
void wf_limit_end(struct wf_limit *limit);
