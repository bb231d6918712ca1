/* SPDX-License-Identifier: Apache-2.0 */
/* meter: how long operations take, one sample for each batch of them. In memory that was touched
 * before, and with one look at the clock per sample. Thread: the worker's. */
#pragma once

#include "tools/rdma_bench/worker.h"

#define WF_METER_SAMPLES (1u << 16) /* what comes after them is not sampled */

struct wf_meter {
	struct wf_env *env;
	uint32_t *sample; /* [WF_METER_SAMPLES], ticks; too long ones: UINT32_MAX */
	uint32_t sample_count;
	uint32_t batch; /* operations of one sample */
	/* If set, samples are timed by the processor's own counter, where there is one, which is
	 * calibrated by the clock over the whole run: on some virtual machines a look at the clock
	 * takes microseconds. The user sets it after init. */
	bool counter;
	/* If set, each batch is followed by a busy wait of as long, which counts as part of it, so
	 * that operations take twice their time. The user sets it after init. */
	bool slow;
	uint64_t start_ns;
	uint64_t start, last; /* ticks */
};

enum weft_status wf_meter_init(struct wf_meter *meter, struct wf_env *env) WEFT_MUST_CHECK;
void wf_meter_fini(struct wf_meter *meter);
/* The first operation begins now. */
void wf_meter_begin(struct wf_meter *meter, uint32_t batch);
/* A batch has ended, and the next begins. */
void wf_meter_mark(struct wf_meter *meter);
/* `count` operations were run. Sorts the samples. */
void wf_meter_figures(struct wf_meter *meter, uint64_t count, struct wf_figures *out);
