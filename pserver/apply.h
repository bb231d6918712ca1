/* SPDX-License-Identifier: Apache-2.0 */
/* apply: what kernels need to apply a slice of a round (round.c) or of one push (async.c), and what
 * becomes of values that are not finite. Thread: the lane's. */
#pragma once

#include <string.h>

#include "kernels/kernels.h"
#include "pserver/dense.h"

/* The sample count that the rate depends on, and the count for bias correction. */
struct wf_apply_scale {
	uint64_t samples_before, samples;
	uint32_t pass;    /* as trainers count them */
	uint64_t updates; /* this one included */
	double divisor;   /* of the sums */
};

/* The divisor of the sum of gradients of this many samples. */
static inline double
wf_apply_divisor(const struct wf_dense *dense, uint64_t samples)
{
	return dense->store.mean ? (double)(float)samples : 1.0;
}

/* Fills in what trainers have changed of the tensor's optimizer. */
void wf_apply_fill_changed(const struct wf_store *store, const struct wf_stored *stored,
			   const struct wf_apply_scale *scale, struct wf_apply *apply);

/* In this step the first trainer's push takes the place of one of the slice's arrays: the array, or
 * NULL. */
static inline float *
wf_apply_assigned(const struct wf_store *store, const struct wf_stored *stored, uint64_t step)
{
	const struct wf_numbers *numbers = store->numbers;
	if (numbers == NULL || numbers[stored->tensor_idx].assigned_step != step) {
		return NULL;
	}
	unsigned array = (unsigned)numbers[stored->tensor_idx].value[WF_NUMBER_ASSIGNED];
	return array == 0 ? wf_store_param(store, stored)
			  : wf_store_state(store, stored, array - 1);
}

/* Prepares the rates of a tensor's rate and a number of updates that counts, at least 1. */
void wf_apply_rate_anew(struct wf_store *store, double rate, uint64_t updates);

/* The constants with the rates of an apply. Rates are compared as bits, for the sign of 0. */
static inline const struct wf_apply *
wf_apply_rated(struct wf_store *store, double rate, uint64_t updates)
{
	const struct wf_rated *rated = &store->rated;
	const uint64_t counted = wf_updates_that_count(&store->optimizer, updates);
	if (counted != rated->updates || memcmp(&rate, &rated->rate, sizeof(rate)) != 0) {
		wf_apply_rate_anew(store, rate, counted);
	}
	return &rated->apply;
}

/* All of `apply` but the gradients. Inline, as part of the cost of a small step. */
__attribute__((always_inline)) static inline void
wf_apply_fill(struct wf_lane *lane, uint32_t ordinal, const struct wf_apply_scale *scale,
	      struct wf_apply *apply)
{
	struct wf_dense *dense = lane->own;
	struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	double rate = wf_learning_rate(&store->optimizer, scale->samples_before, scale->samples,
				       scale->pass > 0 ? scale->pass - 1 : 0);
	*apply = *wf_apply_rated(store, rate * stored->rate_multiplier, scale->updates);
	apply->param = wf_store_param(store, stored);
	apply->grad = dense->gradient;
	apply->count = stored->count;
	wf_apply_divide_by(apply, scale->divisor);
	apply->decay = stored->decay;
	apply->clip = stored->clip;
	apply->l1 = stored->l1;
	for (unsigned i = 0; i < store->state_count && stored->has_state; i++) {
		apply->state[i] = wf_store_state(store, stored, i);
	}
	if (store->numbers != NULL && store->numbers[stored->tensor_idx].given != 0) {
		wf_apply_fill_changed(store, stored, scale, apply);
	}
}

/* `bad` values that were applied to the slice were not finite: ends the job, or logs it. */
void wf_apply_report_nonfinite(struct wf_lane *lane, uint32_t ordinal, uint64_t step, size_t bad);
