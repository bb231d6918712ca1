/* SPDX-License-Identifier: Apache-2.0 */
/* limit: what all hand-written loops share. Thread: the benchmark's, or the worker's. */
#include "tools/rdma_bench/limits/limit.h"

#define READY_TIMEOUT_NS (60 * WF_NS_PER_S)
#define END_TIMEOUT_NS (5 * WF_NS_PER_S)

enum weft_status
wf_limit_start_pair(const struct wf_limit_opts *opts, const struct wf_limit_pair *pair,
		    struct wf_limit *limit)
{
	const struct wf_worker_opts server = {
		.name = "the limit's server",
		.cpu = opts->server_cpu,
		.run = pair->server,
		.arg = pair->server_arg,
	};
	const struct wf_worker_opts client = {
		.name = "the limit's client",
		.cpu = opts->client_cpu,
		.run = pair->client,
		.arg = pair->client_arg,
	};
	struct wf_figures ready;
	enum weft_status st = wf_worker_start(&server, &limit->server);
	if (st == WEFT_OK) {
		st = wf_worker_start(&client, &limit->client);
	}
	if (st == WEFT_OK) {
		st = wf_worker_await(&limit->server, READY_TIMEOUT_NS, &ready);
	}
	if (st == WEFT_OK) {
		st = wf_worker_await(&limit->client, READY_TIMEOUT_NS, &ready);
	}
	limit->side.worker[0] = &limit->server;
	limit->side.worker[1] = &limit->client;
	limit->side.worker_count = 2;
	limit->side.bytes = opts->bytes;
	return st;
}

void
wf_limit_end(struct wf_limit *limit)
{
	wf_worker_end(&limit->client, END_TIMEOUT_NS);
	wf_worker_end(&limit->server, END_TIMEOUT_NS);
	if (limit->memory.base != NULL) {
		limit->env->ops->slab_close(limit->env, &limit->memory);
	}
	limit->memory = (struct wf_slab){0};
}

void
wf_limit_apply(const struct wf_kernels *kernels, float *param, const float *grad, uint64_t bytes)
{
	const struct wf_apply apply = {
		.param = param,
		.grad = &grad,
		.grad_count = 1,
		.count = bytes / sizeof(float),
		.divisor = 1,
		.rate = 0.001f,
		.plain_rate = 0.001f,
	};
	(void)kernels->apply[WF_SGD](&apply);
}
