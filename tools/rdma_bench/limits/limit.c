/* SPDX-License-Identifier: Apache-2.0 */
/* limit: see limit.h and loop.h. */
#include "tools/rdma_bench/limits/limit.h"

#include <errno.h>

#include "base/status.h"
#include "tools/rdma_bench/limits/loop.h"
#include "tools/rdma_bench/limits/memory.h"

#define READY_TIMEOUT_NS 120000000000ull
#define END_TIMEOUT_NS 5000000000ull

enum weft_status
wf_limit_start(const struct wf_limit_opts *opts, const struct wf_limit_part *part, unsigned count,
	       struct wf_limit *limit)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		const struct wf_worker_opts worker = {
			.name = part[i].name,
			.cpu = part[i].cpu,
			.either = {opts->either[0], opts->either[1]},
			.run = part[i].run,
			.arg = part[i].arg,
		};
		st = wf_worker_start(&worker, &limit->worker[i]);
	}
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		struct wf_figures ready;
		st = wf_worker_await(&limit->worker[i], READY_TIMEOUT_NS, &ready);
		limit->side.worker[i] = &limit->worker[i];
	}
	limit->side.worker_count = count;
	limit->side.bytes = opts->bytes;
	return st;
}

void
wf_limit_end(struct wf_limit *limit)
{
	for (unsigned i = 0; i < WF_SIDE_WORKERS_MAX; i++) {
		wf_worker_end(&limit->worker[i], END_TIMEOUT_NS);
	}
	wf_limit_unmap(limit->shared, limit->shared_bytes);
	limit->shared = NULL;
}

enum weft_status
wf_limit_share(struct wf_limit *limit, size_t bytes)
{
	limit->shared = wf_limit_map(bytes, true, -1);
	limit->shared_bytes = bytes;
	return limit->shared != NULL ? WEFT_OK
				     : wf_fail_errno(WEFT_NOMEM, errno,
						     "a limit's shared memory of %zu bytes", bytes);
}
