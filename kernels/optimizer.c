/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: settings, their limits and names, schedules, and the scalars of a step. Thread: any.
 */
#include "kernels/optimizer.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "kernels/kernels.h"

static const char *const optimizer_names[WF_OPTIMIZER_COUNT] = {
	[WF_SGD] = "sgd",           [WF_MOMENTUM] = "momentum", [WF_ADAM] = "adam",
	[WF_NESTEROV] = "nesterov", [WF_ADAGRAD] = "adagrad",   [WF_ADAMW] = "adamw",
};

static const char *const schedule_names[WF_SCHEDULE_COUNT] = {
	[WF_SCHEDULE_CONSTANT] = "constant",
	[WF_SCHEDULE_LINEAR] = "linear",
	[WF_SCHEDULE_WARMUP] = "warmup",
};

struct wf_optimizer_opts
wf_optimizer_defaults(void)
{
	return (struct wf_optimizer_opts){
		.kind = WF_SGD,
		.learning_rate = 1e-3,
		.momentum = 0.0,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.epsilon = 1e-8,
		.decay = 0.0,
		.clip = 0.0,
		.schedule = WF_SCHEDULE_CONSTANT,
	};
}

/* Settings are f64, the kernels compute in f32: limits hold for what an f32 makes of a value, so
 * that an epsilon cannot become 0, nor a beta 1. */

static const double least_f32 = (double)FLT_MIN; /* the least normal number */
static const double most_f32 = (double)FLT_MAX;
static const double before_one = 1.0 - (double)FLT_EPSILON / 2.0; /* the f32 before 1 */

static enum weft_status
check_positive(const char *field, double value)
{
	if (value >= least_f32 && value <= most_f32) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give a number from %.9g to %.9g", field, value,
		       least_f32, most_f32);
}

static enum weft_status
check_not_negative(const char *field, double value)
{
	if (value == 0.0 || (value >= least_f32 && value <= most_f32)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %g: give 0, or a number from %.9g to %.9g", field, value,
		       least_f32, most_f32);
}

static enum weft_status
check_below_one(const char *field, double value)
{
	if (value >= 0.0 && value <= before_one) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s %.9g: give a number from 0 to %.9g", field, value,
		       before_one);
}

static enum weft_status
check_schedule(const struct wf_optimizer_opts *opts)
{
	enum weft_status st = WEFT_OK;

	switch (opts->schedule) {
	case WF_SCHEDULE_CONSTANT:
		return WEFT_OK;
	case WF_SCHEDULE_LINEAR:
		st = check_not_negative("schedule_a (of schedule linear: loss of rate per sample)",
					opts->schedule_a);
		if (st != WEFT_OK) {
			return st;
		}
		return check_not_negative("schedule_b (of schedule linear: the least rate)",
					  opts->schedule_b);
	case WF_SCHEDULE_WARMUP:
		return check_positive(
			"schedule_a (of schedule warmup: samples until the full rate)",
			opts->schedule_a);
	case WF_SCHEDULE_COUNT:
		break;
	}
	return wf_fail(WEFT_INVALID, "schedule %d: give a number from 0 to %d", (int)opts->schedule,
		       WF_SCHEDULE_COUNT - 1);
}

enum weft_status
wf_optimizer_check(const struct wf_optimizer_opts *opts)
{
	enum weft_status st = WEFT_OK;

	if ((unsigned)opts->kind >= WF_OPTIMIZER_COUNT) {
		return wf_fail(WEFT_INVALID, "optimizer %d: give a number from 0 to %d",
			       (int)opts->kind, WF_OPTIMIZER_COUNT - 1);
	}
	if ((st = check_positive("learning_rate", opts->learning_rate)) != WEFT_OK ||
	    (st = check_below_one("momentum", opts->momentum)) != WEFT_OK ||
	    (st = check_below_one("beta1", opts->beta1)) != WEFT_OK ||
	    (st = check_below_one("beta2", opts->beta2)) != WEFT_OK ||
	    (st = check_positive("epsilon", opts->epsilon)) != WEFT_OK ||
	    (st = check_not_negative("decay", opts->decay)) != WEFT_OK ||
	    (st = check_not_negative("clip", opts->clip)) != WEFT_OK) {
		return st;
	}
	return check_schedule(opts);
}

unsigned
wf_optimizer_state_count(enum wf_optimizer kind)
{
	switch (kind) {
	case WF_SGD:
		return 0;
	case WF_MOMENTUM:
	case WF_NESTEROV:
	case WF_ADAGRAD:
		return 1;
	case WF_ADAM:
	case WF_ADAMW:
		return 2;
	case WF_OPTIMIZER_COUNT:
		break;
	}
	WF_ASSERT(false && "no such optimizer");
	return 0;
}

const char *
wf_optimizer_name(enum wf_optimizer kind)
{
	WF_ASSERT((unsigned)kind < WF_OPTIMIZER_COUNT);
	return optimizer_names[kind];
}

const char *
wf_schedule_name(enum wf_schedule schedule)
{
	WF_ASSERT((unsigned)schedule < WF_SCHEDULE_COUNT);
	return schedule_names[schedule];
}

enum weft_status
wf_optimizer_parse(const char *name, enum wf_optimizer *out)
{
	for (unsigned i = 0; name != NULL && i < WF_OPTIMIZER_COUNT; i++) {
		if (strcmp(name, optimizer_names[i]) == 0) {
			*out = (enum wf_optimizer)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "optimizer \"%.32s\" is not known: give sgd, momentum, nesterov, adagrad, "
		       "adam or adamw",
		       name == NULL ? "" : name);
}

enum weft_status
wf_schedule_parse(const char *name, enum wf_schedule *out)
{
	for (unsigned i = 0; name != NULL && i < WF_SCHEDULE_COUNT; i++) {
		if (strcmp(name, schedule_names[i]) == 0) {
			*out = (enum wf_schedule)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "schedule \"%.32s\" is not known: give constant, linear or warmup",
		       name == NULL ? "" : name);
}

double
wf_learning_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before, uint64_t samples)
{
	double rate = opts->learning_rate;

	switch (opts->schedule) {
	case WF_SCHEDULE_CONSTANT:
		return rate;
	case WF_SCHEDULE_LINEAR:
		rate = rate - opts->schedule_a * (double)samples_before;
		return rate > opts->schedule_b ? rate : opts->schedule_b;
	case WF_SCHEDULE_WARMUP: {
		double share = ((double)samples_before + (double)samples) / opts->schedule_a;
		return share < 1.0 ? rate * share : rate;
	}
	case WF_SCHEDULE_COUNT:
		break;
	}
	WF_ASSERT(false && "no such schedule");
	return 0.0;
}

/* sqrt(1 - beta2^t) / (1 - beta1^t), of the betas that the kernels compute with: rounded to f32.
 * With the f64 ones the first step, where 1 - beta2 is small, would be off by 1e-5. */
static double
bias_correction(float beta1, float beta2, uint64_t t)
{
	double left1 = 1.0 - wf_pow_f64((double)beta1, (double)t);
	double left2 = 1.0 - wf_pow_f64((double)beta2, (double)t);
	WF_ASSERT(left1 > 0.0);
	return __builtin_sqrt(left2) / left1;
}

void
wf_apply_scalars(const struct wf_optimizer_opts *opts, double rate, uint64_t updates,
		 struct wf_apply *out)
{
	WF_ASSERT(updates >= 1);
	out->momentum = (float)opts->momentum;
	out->beta1 = (float)opts->beta1;
	out->beta2 = (float)opts->beta2;
	out->epsilon = (float)opts->epsilon;
	out->plain_rate = (float)rate;
	if (opts->kind == WF_ADAM || opts->kind == WF_ADAMW) {
		rate *= bias_correction(out->beta1, out->beta2, updates);
	}
	out->rate = (float)rate;
}
