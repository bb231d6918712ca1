/* SPDX-License-Identifier: Apache-2.0 */
/* limit: what the machine itself reaches: hand-written loops for one purpose each, without any
 * fabric, that the product is measured against. Each is two workers, a client that keeps time and a
 * server; tcp.c and shm.c have the loops, sum.c that of one process.
 *
 * Thread: starting and ending: the benchmark's. */
#pragma once

#include "base/env.h"
#include "kernels/kernels.h"
#include "tools/rdma_bench/limits/memory.h"
#include "tools/rdma_bench/side.h"

#define WF_LIMIT_WINDOW 8u         /* slices under way, as a lane grants */
#define WF_LIMIT_MESSAGE_BYTES 64u /* of a ping-pong, each way */
#define WF_LINE_BATCH 32u          /* round trips of a cache line in one sample */

struct wf_limit_opts {
	struct wf_env *env;
	int client_cpu, server_cpu;
	bool spin;            /* else sleep until there is something to do */
	uint64_t bytes;       /* exchange: of the tensor */
	uint64_t slice_bytes; /* exchange; divides bytes */
	/* Exchange over shared memory: the client copies answers out of the server's parameters,
	 * while the server goes on; else the server writes them into the client's. */
	bool client_copies;
	const char *congestion;
};

struct wf_limit {
	struct wf_worker client, server;
	struct wf_side side;
	struct wf_slab memory; /* shared by both; base NULL: none */
	struct wf_env *env;
};

/* One cache line goes to and fro; both ends spin. */
enum weft_status wf_limit_line_start(const struct wf_limit_opts *opts,
				     struct wf_limit *out) WEFT_MUST_CHECK;
/* 64 bytes over a TCP connection and back. */
enum weft_status wf_limit_ping_start(const struct wf_limit_opts *opts,
				     struct wf_limit *out) WEFT_MUST_CHECK;
/* Push-pull of one tensor over a TCP connection: slices into slots, the product's kernel, answers
 * written back. */
enum weft_status wf_limit_tcp_start(const struct wf_limit_opts *opts,
				    struct wf_limit *out) WEFT_MUST_CHECK;
/* The same over shared memory: the server sums straight out of the client's gradients, and answers
 * are copied once, by whom client_copies says. Both ends spin. */
enum weft_status wf_limit_shm_start(const struct wf_limit_opts *opts,
				    struct wf_limit *out) WEFT_MUST_CHECK;
/* Accepts a half-started one. */
void wf_limit_end(struct wf_limit *limit);

/* limit.c, for the loops */
struct wf_limit_pair {
	enum weft_status (*client)(struct wf_bench_seat *seat, const void *arg);
	enum weft_status (*server)(struct wf_bench_seat *seat, const void *arg);
	const void *client_arg, *server_arg;
};
/* Start both workers, and wait until they are ready. */
enum weft_status wf_limit_start_pair(const struct wf_limit_opts *opts,
				     const struct wf_limit_pair *pair,
				     struct wf_limit *limit) WEFT_MUST_CHECK;
/* The optimizer's step of one slice, as a lane takes it for one trainer. The kernels are looked up
 * once, as a lane does: finding out what the processor can takes microseconds in a virtual machine.
 */
void wf_limit_apply(const struct wf_kernels *kernels, float *param, const float *grad,
		    uint64_t bytes);
/* tcp.c: two ends of one connection over loopback. WEFT_IO */
enum weft_status wf_limit_connect_pair(const char *congestion, int fd[2]) WEFT_MUST_CHECK;
void wf_limit_close_pair(int a, int b); /* accepts -1 */
