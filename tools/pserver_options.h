/* SPDX-License-Identifier: Apache-2.0 */
/* pserver_options: the options of `weft pserver`: its own, and the original's. Thread: main. */
#pragma once

#include "base/options.h"

#define WF_PSERVER_OPTION_MAX 40

struct wf_pserver_settings {
	uint64_t port;
	uint64_t ports_num;
	uint64_t ports_num_for_sparse;
	uint64_t num_gradient_servers;
	uint64_t max_trainers;
	const char *listen; /* NULL: loopback, or the address of --nics */
	const char *transport;
	const char *tcp_congestion; /* NULL: the system's */
	const char *verbs;          /* settings of RDMA devices; NULL: defaults */
	const char *pin;
	bool once;
	uint64_t slot_count;
	uint64_t max_shard_bytes;
	uint64_t inbox_bytes; /* 0: all */
	uint64_t reconnect_timeout_ns;
	uint64_t peer_timeout_ns;
	uint64_t stall_timeout_ns;
	uint64_t connect_timeout_ns;
	uint64_t spin_ns;
	uint64_t stats_period_ns;
	const char *log_level;

	/* The original's. */
	const char *nics;
	const char *rdma_tcp;
	const char *comment;
	bool use_gpu;
	bool small_messages;
	uint64_t sock_send_buf_size;
	uint64_t sock_recv_buf_size;
	uint64_t sock_listen_queue_size;
	uint64_t pserver_num_threads;
	uint64_t log_period_server;
};

const struct wf_option *wf_pserver_options(unsigned *count);
