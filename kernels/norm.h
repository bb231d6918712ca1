/* SPDX-License-Identifier: Apache-2.0 */
/* norm: the norm of a gradient whose parts are on several lanes, with the same bits however it is
 * partitioned: squares are summed slice by slice in f64 in a fixed order, and the sums of slices
 * are added exactly, as integers in units of 2^-350. Thread: any; everything here is pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WF_NORM_WORDS 11 /* 704 bits: more than the sum of 2^40 squares of f32 can need */

/* Least significant word first, in units of 2^-350. Zeroed: 0. */
struct wf_norm {
	uint64_t word[WF_NORM_WORDS];
};

/* The sum of squares of the elements of grad[0] + grad[1] + ... that are finite. Element i is added
 * to partial sum i % 16; the partial sums are folded in halves. */
double wf_norm_squares(const float *const *grad, unsigned grad_count, size_t count);
/* The same in parts, each of which except the last has a multiple of 16 elements. Zeroed: no
 * elements. */
struct wf_norm_fold {
	double partial[16];
};
void wf_norm_fold_add(struct wf_norm_fold *fold, const float *const *grad, unsigned grad_count,
		      size_t count);
double wf_norm_fold_end(struct wf_norm_fold *fold);
/* Adds such a sum exactly, so that the order does not matter. */
void wf_norm_add(struct wf_norm *norm, double squares);
void wf_norm_merge(struct wf_norm *norm, const struct wf_norm *other);
/* The square root of the total. */
double wf_norm_root(const struct wf_norm *norm);
/* The divisor of summed gradients with which the norm is at most `clip`: `divisor` itself if the
 * norm divided by it is small enough. It is rounded to f32 where an f32 can hold it; a norm above
 * 3.4e38 may need a larger one (wf_apply_divide_by). */
double wf_norm_divisor(const struct wf_norm *norm, double divisor, double clip);
