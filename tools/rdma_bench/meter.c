/* SPDX-License-Identifier: Apache-2.0 */
/* meter: see meter.h. */
#include "tools/rdma_bench/meter.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/env.h"

static uint64_t
ticks(const struct wf_meter *meter)
{
#if defined(__x86_64__)
	if (meter->counter) {
		return __builtin_ia32_rdtsc();
	}
#endif
	return wf_now_ns(meter->env);
}

/* Of the run so far. */
static double
ns_of_tick(const struct wf_meter *meter)
{
	uint64_t whole_ns = wf_now_ns(meter->env) - meter->start_ns;
	uint64_t whole = ticks(meter) - meter->start;
	return !meter->counter || whole == 0 ? 1 : (double)whole_ns / (double)whole;
}

enum weft_status
wf_meter_init(struct wf_meter *meter, struct wf_env *env)
{
	*meter = (struct wf_meter){.env = env};
	meter->sample = wf_zalloc_array(env, WF_METER_SAMPLES, sizeof(*meter->sample));
	if (meter->sample == NULL) {
		return wf_fail(WEFT_NOMEM, "meter: %zu bytes",
			       WF_METER_SAMPLES * sizeof(*meter->sample));
	}
	memset(meter->sample, 1, WF_METER_SAMPLES * sizeof(*meter->sample));
	return WEFT_OK;
}

void
wf_meter_fini(struct wf_meter *meter)
{
	wf_free(meter->env, meter->sample, WF_METER_SAMPLES * sizeof(*meter->sample));
	meter->sample = NULL;
}

void
wf_meter_begin(struct wf_meter *meter, uint32_t batch)
{
	WF_ASSERT(batch > 0);
	meter->sample_count = 0;
	meter->batch = batch;
	meter->start_ns = wf_now_ns(meter->env);
	meter->start = ticks(meter);
	meter->last = meter->start;
}

void
wf_meter_mark(struct wf_meter *meter)
{
	uint64_t now = ticks(meter);
	uint64_t took = now - meter->last;
	while (meter->slow && now - meter->last < 2 * took) {
		now = ticks(meter);
	}
	took = now - meter->last;
	if (meter->sample_count < WF_METER_SAMPLES) {
		meter->sample[meter->sample_count++] =
			took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
	}
	meter->last = now;
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
	double tick_ns = ns_of_tick(meter);
	double scale = tick_ns / meter->batch;
	*out = (struct wf_figures){
		.count = count,
		.elapsed_ns = (uint64_t)((double)(meter->last - meter->start) * tick_ns),
	};
	if (samples == 0) {
		return;
	}
	qsort(meter->sample, samples, sizeof(*meter->sample), by_value);
	out->p50_ns = (double)meter->sample[samples / 2] * scale;
	out->p99_ns = (double)meter->sample[(uint64_t)samples * 99 / 100] * scale;
	out->p999_ns = (double)meter->sample[(uint64_t)samples * 999 / 1000] * scale;
}
