/* SPDX-License-Identifier: Apache-2.0 */
/* norm: the norm of a gradient that lies in parts with several lanes, to the same bit however it is
 * parted: squares are added up slice by slice in f64 in a fixed order, and the sums of slices
 * exactly, as whole numbers of 2^-350. Thread: any; everything here is pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WF_NORM_WORDS 11 /* 704 bits: more than 2^40 squares of f32 can come to */

/* Least significant word first, in units of 2^-350. Zeroed: 0. */
struct wf_norm {
	uint64_t word[WF_NORM_WORDS];
};

/* Sum of squares of the elements of grad[0] + grad[1] + ... that are finite. Element i goes into
 * partial sum i % 16; these are folded in halves. */
double wf_norm_squares(const float *const *grad, unsigned grad_count, size_t count);
/* The same a part at a time; each but the last has a multiple of 16 elements. Zeroed: nothing. */
struct wf_norm_fold {
	double partial[16];
};
void wf_norm_fold_add(struct wf_norm_fold *fold, const float *const *grad, unsigned grad_count,
		      size_t count);
double wf_norm_fold_end(struct wf_norm_fold *fold);
/* Add such a sum: exact, so the order does not matter. */
void wf_norm_add(struct wf_norm *norm, double squares);
void wf_norm_merge(struct wf_norm *norm, const struct wf_norm *other);
/* The root of what was added up. */
double wf_norm_root(const struct wf_norm *norm);
/* What sums of gradients are divided by, so that the norm of `norm`'s sums, divided by `divisor`,
 * is at most `clip`: that divisor itself where it is. */
float wf_norm_divisor(const struct wf_norm *norm, float divisor, double clip);
