/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: the settings of an optimizer as numbers, with texts replaced by what they stand for.
 * In this form they travel in the descriptions of jobs and tables. kernels/optimizer.h and
 * kernels/rows.h read and check them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weft/sparse.h"
#include "weft/weft.h"

enum wf_optimizer {
	WF_SGD = 0,
	WF_MOMENTUM = 1,
	WF_ADAM = 2,
	WF_NESTEROV = 3,
	WF_ADAGRAD = 4,
	WF_ADAMW = 5,
	WF_DECAYED_ADAGRAD = 6,
	WF_RMSPROP = 7,
	WF_ADADELTA = 8,
	WF_ADAMAX = 9,
	WF_TORCH_MOMENTUM = 10,
	WF_TORCH_ADAM = 11,
	WF_TORCH_ADAMW = 12,
	WF_TORCH_SGD = 13,
	WF_OPTIMIZER_COUNT = 14,
};

/* l: learning_rate; n: samples applied before the step; a, b: schedule_a, schedule_b. */
enum wf_schedule {
	WF_SCHEDULE_CONSTANT = 0,   /* l */
	WF_SCHEDULE_LINEAR = 1,     /* max(l - a n, b) */
	WF_SCHEDULE_WARMUP = 2,     /* l min(1, (n + samples of this step) / a) */
	WF_SCHEDULE_POLY = 3,       /* l (1 + a n)^-b */
	WF_SCHEDULE_CAFFE_POLY = 4, /* l (1 - n / a)^b, and 0 from n = a on */
	WF_SCHEDULE_EXP = 5,        /* l a^(n / b) */
	WF_SCHEDULE_DISCEXP = 6,    /* l a^floor(n / b) */
	/* l times the factor of the first segment with n <= until; of the last one after that */
	WF_SCHEDULE_MANUAL = 7,
	WF_SCHEDULE_PASS_MANUAL = 8, /* the same, n: number of the pass, from 0 */
	WF_SCHEDULE_COUNT = 9,
};

#define WF_SEGMENTS_MAX 32

/* One segment of a manual schedule. */
struct wf_segment {
	uint64_t until; /* samples, or passes; grows from one segment to the next */
	double factor;  /* >= 0 */
};

/* What method, schedule and schedule_args stand for. */
struct wf_method {
	enum wf_optimizer kind;
	enum wf_schedule schedule;
	uint32_t segment_count;
	struct wf_segment segment[WF_SEGMENTS_MAX]; /* of the manual schedules */
};

/* The numbers are as weft.h has them, except that max_average_window is never 0; the texts of `set`
 * are NULL. */
struct wf_optimizer_opts {
	struct weft_optimizer_opts set;
	struct wf_method method;
	/* Of torch_sgd; no settings: PyTorch's dampening, and whether it is Nesterov's. */
	double dampening;
	bool is_nesterov;
};

enum wf_row_optimizer {
	WF_ROW_SGD = 0,
	WF_ROW_MOMENTUM = 1,
	WF_ROW_SPARSE_MOMENTUM = 2, /* momentum that always makes up for steps missed */
	WF_ROW_ADAGRAD = 3,
	WF_ROW_ADAGRAD_ROWWISE = 4, /* one accumulator a row */
	WF_ROW_RMSPROP = 5,         /* centred, as the original's */
	WF_ROW_ADAM = 6,
	WF_ROW_ADAM_ROWWISE = 7, /* one second moment a row */
	WF_ROW_FTRL = 8,
	WF_ROW_FTRL_GROUP = 9, /* group lasso: a row as a whole may become zero */
	WF_ROW_OPTIMIZER_COUNT = 10,
};

/* As wf_optimizer_opts, of rows of sparse tables; dense_equivalent is 0 or 1. */
struct wf_row_opts {
	struct weft_row_optimizer_opts set;
	enum wf_row_optimizer kind;
	enum wf_schedule schedule;
};

/* Whether averages of parameters are kept. */
static inline bool
wf_optimizer_averages(const struct weft_optimizer_opts *set)
{
	return set->average_window > 0.0;
}

/* The largest norm that all gradients together may have; 0: any. */
static inline double
wf_optimizer_norm_max(const struct weft_optimizer_opts *set)
{
	return set->clip_norm;
}

/* Whether gradients are clipped by the norm of all of them. */
static inline bool
wf_optimizer_clips_norm(const struct weft_optimizer_opts *set)
{
	return set->clip_norm > 0.0;
}
