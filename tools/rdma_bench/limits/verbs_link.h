/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_link: a queue pair that rdma_cm connects, set up step by step, waiting for each. Thread:
 * main. */
#pragma once

#include "tools/rdma_bench/limits/verbs_calls.h"
#include "tools/rdma_bench/path.h"

struct wf_bare_link;

struct wf_bare_link_opts {
	void *memory; /* registered; the other end may write into it */
	size_t bytes;
	uint32_t send_count, receive_count; /* work requests */
	uint32_t inline_bytes;              /* requested */
	/* The queue pair exists and nothing can have arrived yet: post receives. */
	enum weft_status (*made)(struct wf_bare_link *link);
	void *context;
};

struct wf_bare_link {
	struct wf_peer_end *end;
	const struct wf_verbs_calls *calls;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	void *context;
	bool iwarp;
	uint32_t inline_bytes; /* capacity of the queue pair */
	const char *name;      /* of the device */
	uint64_t remote_at;    /* the other end's memory */
	uint32_t remote_key;
};

/* The server listens from then on. */
enum weft_status wf_bare_link_open(struct wf_bare_link *link,
				   struct wf_peer_end *end) WEFT_MUST_CHECK;
enum weft_status wf_bare_link_join(struct wf_bare_link *link,
				   const struct wf_bare_link_opts *opts) WEFT_MUST_CHECK;
/* Accepts a half-made one. */
void wf_bare_link_close(struct wf_bare_link *link);
