/* SPDX-License-Identifier: Apache-2.0 */
/* harness: the basis of every measured process of `rdma_bench self`, of the product and of the
 * limits: commands, times of operations, figures. Thread: the worker's. */
#pragma once

#include "tools/rdma_bench/meter.h"
#include "tools/rdma_bench/side.h"
#include "tools/rdma_bench/worker.h"

/* What a worker does with its orders. */
struct wf_duty {
	/* Runs one command. `meter` has begun; a part that times its operations marks each
	 * batch. */
	enum weft_status (*run)(void *work, const struct wf_work_order *order,
				struct wf_meter *meter);
	void *work;
	uint32_t batch; /* operations of one sample, at least 1 */
};

/* Reports that the worker is ready, and carries out commands until there are no more. A part that
 * marks nothing reports a median of 0. The first failure of `run` ends it. */
enum weft_status wf_seat_follow(struct wf_bench_seat *seat,
				const struct wf_duty *duty) WEFT_MUST_CHECK;
