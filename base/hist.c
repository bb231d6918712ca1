/* SPDX-License-Identifier: Apache-2.0 */
/* hist: see hist.h. Thread: as each function's header says. */
#include "base/hist.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/assert.h"

WF_STATIC_ASSERT(WF_HIST_BUCKETS == 3776,
		 "buckets of a bit each from 7 to 63, and 128 single ones");

/* Bits below the highest WF_HIST_SUB_BITS + 1 are dropped. */
unsigned
wf_hist_bucket(uint64_t value)
{
	if (value < 2 * WF_HIST_SUB) {
		return (unsigned)value;
	}
	unsigned shift = 63u - WF_HIST_SUB_BITS - (unsigned)__builtin_clzll(value);
	return shift * WF_HIST_SUB + (unsigned)(value >> shift);
}

uint64_t
wf_hist_bucket_first(unsigned bucket)
{
	WF_ASSERT(bucket < WF_HIST_BUCKETS);
	if (bucket < 2 * WF_HIST_SUB) {
		return bucket;
	}
	unsigned shift = bucket / WF_HIST_SUB - 1;
	return (uint64_t)(bucket - shift * WF_HIST_SUB) << shift;
}

uint64_t
wf_hist_bucket_last(unsigned bucket)
{
	return bucket + 1 == WF_HIST_BUCKETS ? UINT64_MAX : wf_hist_bucket_first(bucket + 1) - 1;
}

void
wf_hist_record(struct wf_hist *hist, uint64_t value)
{
	_Atomic uint64_t *bucket = &hist->bucket[wf_hist_bucket(value)];
	uint64_t count = atomic_load_explicit(bucket, memory_order_relaxed); /* H1 */
	atomic_store_explicit(bucket, count + 1, memory_order_relaxed);      /* H1 */
}

void
wf_hist_snapshot(const struct wf_hist *hist, struct wf_hist_view *out)
{
	out->count = 0;
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		out->bucket[i] =
			atomic_load_explicit(&hist->bucket[i], memory_order_relaxed); /* H1 */
		out->count += out->bucket[i];
	}
}

void
wf_hist_merge(struct wf_hist_view *into, const struct wf_hist_view *from)
{
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		into->bucket[i] += from->bucket[i];
	}
	into->count += from->count;
}

void
wf_hist_since(struct wf_hist_view *now, const struct wf_hist_view *then)
{
	WF_ASSERT(now->count >= then->count);
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		WF_ASSERT(now->bucket[i] >= then->bucket[i]);
		now->bucket[i] -= then->bucket[i];
	}
	now->count -= then->count;
}

uint64_t
wf_hist_quantile(const struct wf_hist_view *view, double share)
{
	WF_ASSERT(share >= 0 && share <= 1);
	/* The value with this many at or before it, in order; at least the first. */
	double wanted = share * (double)view->count;
	uint64_t before = 0;
	unsigned last = 0;
	for (unsigned i = 0; i < WF_HIST_BUCKETS; i++) {
		if (view->bucket[i] == 0) {
			continue;
		}
		last = i;
		before += view->bucket[i];
		if ((double)before >= wanted) {
			break;
		}
	}
	return view->count == 0 ? 0 : wf_hist_bucket_last(last);
}
