/* SPDX-License-Identifier: Apache-2.0 */
/* hist: a histogram of values (mostly nanoseconds) in fixed memory.
 *
 * Log-linear: values below 128 have a bucket each; above, every power of two is cut into 64 equal
 * buckets, up to 2^64 - 1. A bucket is at most 1/64 as wide as its lowest value, so a quantile is
 * never below the true value and at most 1.6 % above it: about two digits. Thread: one thread
 * records, any thread takes snapshots; a view belongs to its owner. */
#pragma once

#include <stdint.h>

#define WF_HIST_SUB_BITS 6u
#define WF_HIST_SUB (1u << WF_HIST_SUB_BITS) /* buckets of one power of two */
#define WF_HIST_BUCKETS ((64u - WF_HIST_SUB_BITS + 1u) * WF_HIST_SUB)

struct wf_hist {
	/* H1. writer: store relaxed, after its own load relaxed; readers: load relaxed. Relaxed,
	 * for no other memory is published by a bucket. */
	_Atomic uint64_t bucket[WF_HIST_BUCKETS];
};

/* The contents of a histogram at one moment, or a sum or difference of such contents. */
struct wf_hist_view {
	uint64_t count;
	uint64_t bucket[WF_HIST_BUCKETS];
};

/* A zeroed histogram is empty. */
void wf_hist_record(struct wf_hist *hist, uint64_t value);
void wf_hist_snapshot(const struct wf_hist *hist, struct wf_hist_view *out);

/* Adds the contents of `from`, for example of another lane or process. */
void wf_hist_merge(struct wf_hist_view *into, const struct wf_hist_view *from);
/* Leaves what was recorded after `then`, an earlier snapshot of the same histogram. */
void wf_hist_since(struct wf_hist_view *now, const struct wf_hist_view *then);
/**
 * The value that `share` of all values do not exceed.
 * @param share 0: the lowest value; 0.5: the median; 1: the highest
 * @return the highest value of that value's bucket; 0 of an empty view
 */
uint64_t wf_hist_quantile(const struct wf_hist_view *view, double share);

/* The bucket of a value, and the range of values of a bucket. */
unsigned wf_hist_bucket(uint64_t value);
uint64_t wf_hist_bucket_first(unsigned bucket);
uint64_t wf_hist_bucket_last(unsigned bucket);
