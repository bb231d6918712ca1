/* SPDX-License-Identifier: Apache-2.0 */
/* meter: see meter.h. */
#include "tools/rdma_bench/meter.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum weft_status
wf_meter_init(struct wf_meter *meter, struct wf_env *env)
{
	*meter = (struct wf_meter){.env = env};
	meter->sample_ns = wf_zalloc_array(env, WF_METER_SAMPLES, sizeof(*meter->sample_ns));
	if (meter->sample_ns == NULL) {
		return wf_fail(WEFT_NOMEM, "meter: %zu bytes",
			       WF_METER_SAMPLES * sizeof(*meter->sample_ns));
	}
	memset(meter->sample_ns, 1, WF_METER_SAMPLES * sizeof(*meter->sample_ns));
	return WEFT_OK;
}

void
wf_meter_fini(struct wf_meter *meter)
{
	wf_free(meter->env, meter->sample_ns, WF_METER_SAMPLES * sizeof(*meter->sample_ns));
	meter->sample_ns = NULL;
}

void
wf_meter_begin(struct wf_meter *meter, uint32_t batch)
{
	WF_ASSERT(batch > 0);
	meter->sample_count = 0;
	meter->batch = batch;
	meter->start_ns = wf_now_ns(meter->env);
	meter->last_ns = meter->start_ns;
}

void
wf_meter_mark(struct wf_meter *meter)
{
	uint64_t now_ns = wf_now_ns(meter->env);
	uint64_t took_ns = now_ns - meter->last_ns;
	if (meter->sample_count < WF_METER_SAMPLES) {
		meter->sample_ns[meter->sample_count++] =
			took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
	}
	meter->last_ns = now_ns;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x, y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

void
wf_meter_figures(struct wf_meter *meter, uint64_t count, struct wf_figures *out)
{
	uint32_t samples = meter->sample_count;
	*out = (struct wf_figures){
		.count = count,
		.elapsed_ns = meter->last_ns - meter->start_ns,
	};
	if (samples == 0) {
		return;
	}
	qsort(meter->sample_ns, samples, sizeof(*meter->sample_ns), by_value);
	out->p50_ns = (double)meter->sample_ns[samples / 2] / meter->batch;
	out->p99_ns = (double)meter->sample_ns[(uint64_t)samples * 99 / 100] / meter->batch;
}
