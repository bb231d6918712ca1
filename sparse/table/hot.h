/* SPDX-License-Identifier: Apache-2.0 */
/* hot: which keys are requested most, and how skewed the requests are. Thread: the lane's.
 *
 * Space-saving (Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k
 * elements in data streams", 2005) in sets of eight, so that an addition looks at one set only: a
 * key without a counter replaces the one with the least count in its set and inherits that count,
 * by which its own may be too high. Keys are sampled, one of WF_HOT_SAMPLE. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WF_HOT_SETS 64u
#define WF_HOT_WAYS 8u
#define WF_HOT_SAMPLE 64u

struct wf_hot_key {
	uint64_t key;
	uint64_t count; /* of samples; at most `over` too high, never too low */
	uint64_t over;
};

struct wf_hot {
	struct wf_hot_key slot[WF_HOT_SETS][WF_HOT_WAYS]; /* count 0: free */
	uint64_t sample_count;
	uint32_t skip; /* keys before the next sample */
};

/* Zeroed: empty. */
void wf_hot_add(struct wf_hot *hot, const uint64_t *key, size_t count);
/* The keys with most samples, in descending order; counts are of samples, so a key was requested
 * about count * WF_HOT_SAMPLE times. Returns their number, at most `most`. */
size_t wf_hot_top(const struct wf_hot *hot, struct wf_hot_key *out, size_t most);
/* The exponent s of the law count ~ rank^-s, by least squares on the logarithms of the most certain
 * counters: 0 if all keys are equally frequent, about 1 for words. -1: too few keys stand out. */
double wf_hot_zipf(const struct wf_hot *hot);
/* The largest of `load` divided by their mean: 1 if all are equal, 0 if all are 0. The original's
 * check_sparse_distribution warns where this is large. */
double wf_hot_imbalance(const uint64_t *load, size_t count);
