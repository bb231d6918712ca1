/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: the settings of an optimizer and its schedule, and the step-wise scalars made of them.
 * Formulas with their sources: kernels/README.md. Thread: any; everything here is pure. */
#pragma once

#include <stdint.h>

#include "base/status.h"

enum wf_optimizer {
	WF_SGD = 0,
	WF_MOMENTUM = 1,
	WF_ADAM = 2,
	WF_NESTEROV = 3,
	WF_ADAGRAD = 4,
	WF_ADAMW = 5,
	WF_OPTIMIZER_COUNT = 6,
};

#define WF_STATE_MAX 2 /* state arrays an optimizer may have */

enum wf_schedule {
	WF_SCHEDULE_CONSTANT = 0, /* l */
	WF_SCHEDULE_LINEAR = 1,   /* max(l - a * n, b), n: samples applied before this step */
	WF_SCHEDULE_WARMUP = 2,   /* l * min(1, (n + samples of this step) / a) */
	WF_SCHEDULE_COUNT = 3,
};

struct wf_optimizer_opts {
	enum wf_optimizer kind;
	double learning_rate; /* l */
	double momentum;      /* mu; of momentum and nesterov */
	double beta1, beta2;  /* of adam and adamw */
	double epsilon;       /* of adam and adamw; of adagrad, where it stands inside the root */
	double decay;         /* of tensors that name none; L2, for adamw decoupled */
	double clip;          /* by value, of tensors that name none; 0: off */
	enum wf_schedule schedule;
	double schedule_a, schedule_b;
};

/* sgd, momentum 0, Adam's betas 0.9 and 0.999, epsilon 1e-8, rate 1e-3, constant. */
struct wf_optimizer_opts wf_optimizer_defaults(void);
/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_optimizer_check(const struct wf_optimizer_opts *opts) WEFT_MUST_CHECK;
/* How many arrays of state: 0, 1, 2. */
unsigned wf_optimizer_state_count(enum wf_optimizer kind);
const char *wf_optimizer_name(enum wf_optimizer kind);
const char *wf_schedule_name(enum wf_schedule schedule);
/* WEFT_INVALID lists the names there are. */
enum weft_status wf_optimizer_parse(const char *name, enum wf_optimizer *out) WEFT_MUST_CHECK;
enum weft_status wf_schedule_parse(const char *name, enum wf_schedule *out) WEFT_MUST_CHECK;

/* Rate of a step: `samples_before` samples were applied before it, it has `samples` itself. */
double wf_learning_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before,
			uint64_t samples);
