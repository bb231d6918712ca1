/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: the settings of an optimizer and its schedule, and the step-wise scalars made of them.
 * Formulas with their sources: kernels/README.md. Thread: any; everything here is pure. */
#pragma once

#include <stdint.h>

#include "base/status.h"
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
	WF_OPTIMIZER_COUNT = 11,
};

#define WF_AVERAGE_SUMS 3
#define WF_STATE_MAX (2 + WF_AVERAGE_SUMS) /* state arrays: an optimizer's, then the averages' */

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

/* Of the manual schedules. */
struct wf_segment {
	uint64_t until; /* samples, or passes; grows from one segment to the next */
	double factor;  /* >= 0 */
};

struct wf_optimizer_opts {
	enum wf_optimizer kind;
	double learning_rate; /* l */
	double momentum;      /* mu; of momentum, nesterov and torch_momentum */
	double beta1, beta2;  /* of adam, adamw and adamax */
	double rho;           /* of decayed_adagrad, rmsprop and adadelta */
	/* Of adam, adamw and adamax outside the root, of adagrad, decayed_adagrad, rmsprop and
	 * adadelta inside it. */
	double epsilon;
	double decay;     /* of tensors that name none; L2, for adamw decoupled */
	double l1;        /* of tensors that name none; 0: off */
	double clip;      /* by value, of tensors that name none; 0: off */
	double clip_norm; /* of the whole gradient, by its norm; 0: off: kernels/norm.h */
	enum wf_schedule schedule;
	double schedule_a, schedule_b;
	struct wf_segment segment[WF_SEGMENTS_MAX];
	uint32_t segment_count;
	uint64_t first_pass; /* of pass_manual: how many passes came before the job's first */
	/* Averages of the parameters: kernels/average.h. */
	double average_window; /* share of all steps; 0: none are kept */
	uint64_t average_max;  /* steps at most; > 0 */
};

/* The defaults of a session's settings (base/settings.c). */
struct wf_optimizer_opts wf_optimizer_defaults(void);
/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_optimizer_check(const struct wf_optimizer_opts *opts) WEFT_MUST_CHECK;
/* How many arrays of state: 0, 1, 2. */
unsigned wf_optimizer_state_count(enum wf_optimizer kind);
/* The same, and those of averages behind them. */
unsigned wf_state_count(const struct wf_optimizer_opts *opts);
const char *wf_optimizer_name(enum wf_optimizer kind);
const char *wf_schedule_name(enum wf_schedule schedule);
/* WEFT_INVALID lists the names there are. */
enum weft_status wf_optimizer_parse(const char *name, enum wf_optimizer *out) WEFT_MUST_CHECK;
enum weft_status wf_schedule_parse(const char *name, enum wf_schedule *out) WEFT_MUST_CHECK;
/* The public struct's settings as these; checked. WEFT_INVALID names setting, value and limit. */
enum weft_status wf_optimizer_read(const struct weft_optimizer_opts *in,
				   struct wf_optimizer_opts *out) WEFT_MUST_CHECK;
/* The settings of a schedule alone, as wf_optimizer_check has them. */
enum weft_status wf_schedule_check(const struct wf_optimizer_opts *opts) WEFT_MUST_CHECK;
/* "1000:1.0,2000:0.5": until and factor of each segment. `out` is [WF_SEGMENTS_MAX]; none in "".
 * WEFT_INVALID: where the text goes wrong. */
enum weft_status wf_segments_parse(const char *text, struct wf_segment *out,
				   uint32_t *out_count) WEFT_MUST_CHECK;

/* Rate of a step: `samples_before` samples were applied before it, it has `samples` itself, and it
 * is in the job's pass number `pass`, from 0. */
double wf_learning_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before,
			uint64_t samples, uint64_t pass);
