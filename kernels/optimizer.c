/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: settings, their limits and names, and the scalars of a step. Thread: any. */
#include "kernels/optimizer.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/settings.h"
#include "kernels/kernels.h"
#include "kernels/limits.h"

static const struct {
	const char *name;
	unsigned state_count;
} optimizers[WF_OPTIMIZER_COUNT] = {
	[WF_SGD] = {"sgd", 0},
	[WF_MOMENTUM] = {"momentum", 1},
	[WF_ADAM] = {"adam", 2},
	[WF_NESTEROV] = {"nesterov", 1},
	[WF_ADAGRAD] = {"adagrad", 1},
	[WF_ADAMW] = {"adamw", 2},
	[WF_DECAYED_ADAGRAD] = {"decayed_adagrad", 1},
	[WF_RMSPROP] = {"rmsprop", 2},
	[WF_ADADELTA] = {"adadelta", 2},
	[WF_ADAMAX] = {"adamax", 2},
	[WF_TORCH_MOMENTUM] = {"torch_momentum", 1},
	[WF_TORCH_ADAM] = {"torch_adam", 2},
	[WF_TORCH_ADAMW] = {"torch_adamw", 2},
	[WF_TORCH_SGD] = {"torch_sgd", 1},
};

struct wf_optimizer_opts
wf_optimizer_defaults(void)
{
	struct wf_session_values values;
	struct wf_optimizer_opts out;
	wf_session_defaults(&values);
	enum weft_status st = wf_optimizer_read(&values.opts.optimizer, &out);
	WF_ASSERT(st == WEFT_OK); /* otherwise the table of settings contradicts itself */
	return out;
}

/* The number of windows is bounded by their least share. */
static enum weft_status
check_averages(const struct wf_optimizer_opts *opts)
{
	const double window = opts->set.average_window;

	if (window == 0.0) {
		return WEFT_OK;
	}
	if (!(window >= 1e-3 && window <= 1.0)) {
		return wf_fail(WEFT_INVALID,
			       "average_window %.9g: give 0 for no averages, or a share of all "
			       "steps from 0.001 to 1",
			       window);
	}
	if (opts->set.max_average_window == 0) {
		return wf_fail(WEFT_INVALID,
			       "max_average_window 0: give at least 1 step, or leave it out");
	}
	return WEFT_OK;
}

enum weft_status
wf_optimizer_check(const struct wf_optimizer_opts *opts)
{
	enum weft_status st = WEFT_OK;

	if ((unsigned)opts->method.kind >= WF_OPTIMIZER_COUNT) {
		return wf_fail(WEFT_INVALID, "optimizer %d: give a number from 0 to %d",
			       (int)opts->method.kind, WF_OPTIMIZER_COUNT - 1);
	}
	if ((st = wf_check_not_negative("learning_rate", opts->set.learning_rate)) != WEFT_OK ||
	    (st = wf_check_below_one("momentum", opts->set.momentum)) != WEFT_OK ||
	    (st = wf_check_below_one("beta1", opts->set.beta1)) != WEFT_OK ||
	    (st = wf_check_below_one("beta2", opts->set.beta2)) != WEFT_OK ||
	    (st = wf_check_below_one("rho", opts->set.rho)) != WEFT_OK ||
	    (st = wf_check_positive("epsilon", opts->set.epsilon)) != WEFT_OK ||
	    (st = wf_check_not_negative("decay", opts->set.decay)) != WEFT_OK ||
	    (st = wf_check_not_negative("l1", opts->set.l1)) != WEFT_OK ||
	    (st = wf_check_not_negative("clip", opts->set.clip)) != WEFT_OK ||
	    (st = wf_check_not_negative("clip_norm", opts->set.clip_norm)) != WEFT_OK) {
		return st;
	}
	if (opts->set.first_pass > UINT32_MAX) {
		return wf_fail(WEFT_INVALID, "first_pass %" PRIu64 ": give at most %" PRIu32,
			       opts->set.first_pass, UINT32_MAX);
	}
	enum weft_status averages = check_averages(opts);
	return averages == WEFT_OK ? wf_schedule_check(opts) : averages;
}

unsigned
wf_optimizer_state_count(enum wf_optimizer kind)
{
	WF_ASSERT((unsigned)kind < WF_OPTIMIZER_COUNT);
	return optimizers[kind].state_count;
}

unsigned
wf_state_count(const struct wf_optimizer_opts *opts)
{
	return wf_optimizer_state_count(opts->method.kind) +
	       (wf_optimizer_averages(&opts->set) ? WF_AVERAGE_SUMS : 0);
}

const char *
wf_optimizer_name(enum wf_optimizer kind)
{
	WF_ASSERT((unsigned)kind < WF_OPTIMIZER_COUNT);
	return optimizers[kind].name;
}

enum weft_status
wf_optimizer_parse(const char *name, enum wf_optimizer *out)
{
	for (unsigned i = 0; name != NULL && i < WF_OPTIMIZER_COUNT; i++) {
		if (strcmp(name, optimizers[i].name) == 0) {
			*out = (enum wf_optimizer)i;
			return WEFT_OK;
		}
	}
	return wf_fail(WEFT_INVALID,
		       "optimizer \"%.32s\" is not known: give sgd, torch_sgd, momentum, "
		       "torch_momentum, nesterov, adagrad, decayed_adagrad, rmsprop, adadelta, "
		       "adam, torch_adam, "
		       "adamw, torch_adamw or adamax",
		       name == NULL ? "" : name);
}

/* 1 - beta^t. */
static double
left_of(double beta, uint64_t t)
{
	double left = 1.0 - wf_pow_f64(beta, (double)t);
	WF_ASSERT(left > 0.0);
	return left;
}

static bool
is_torch_adam(enum wf_optimizer kind)
{
	return kind == WF_TORCH_ADAM || kind == WF_TORCH_ADAMW;
}

/* The factor of the rate in step t. A kernel that has 1 - beta from the beta as f32 needs a
 * correction from that too: with the f64 one the first step of beta2, where 1 - beta2 is small,
 * would be off by 1e-5. */
static double
correction(const struct wf_optimizer_opts *opts, const struct wf_apply *apply, uint64_t t)
{
	const enum wf_optimizer kind = opts->method.kind;

	if (kind == WF_ADAM || kind == WF_ADAMW) {
		return __builtin_sqrt(left_of((double)apply->beta2, t)) /
		       left_of((double)apply->beta1, t);
	}
	if (kind == WF_ADAMAX) {
		return 1.0 / left_of((double)apply->beta1, t);
	}
	if (is_torch_adam(kind)) {
		return 1.0 / left_of(opts->set.beta1, t);
	}
	if (kind == WF_TORCH_MOMENTUM && t > 1) {
		return 1.0 - (double)apply->momentum;
	}
	return 1.0;
}

/* PyTorch's SGD leaves the momentum as it is while mu is 0. */
static void
weigh_torch_sgd(const struct wf_optimizer_opts *opts, struct wf_apply *out)
{
	const bool has_momentum = opts->set.momentum != 0.0;
	const bool is_direct = !has_momentum || opts->is_nesterov;
	out->torch.carried = has_momentum ? out->momentum : 1.0f;
	out->torch.fresh = has_momentum ? (float)(1.0 - opts->dampening) : 0.0f;
	out->torch.direct = is_direct ? 1.0f : 0.0f;
	out->torch.onward = !is_direct ? 1.0f : has_momentum ? out->momentum : 0.0f;
}

void
wf_apply_constants(const struct wf_optimizer_opts *opts, struct wf_apply *out)
{
	out->momentum = (float)opts->set.momentum;
	out->beta1 = (float)opts->set.beta1;
	out->beta2 = (float)opts->set.beta2;
	out->torch.rest1 = (float)(1.0 - opts->set.beta1);
	out->torch.rest2 = (float)(1.0 - opts->set.beta2);
	out->rho = (float)opts->set.rho;
	out->epsilon = (float)opts->set.epsilon;
	weigh_torch_sgd(opts, out);
}

void
wf_apply_rates(const struct wf_optimizer_opts *opts, double rate, uint64_t updates,
	       struct wf_apply *out)
{
	WF_ASSERT(updates >= 1);
	out->square_share = updates == 1 ? 1.0f : 1.0f - out->rho;
	out->plain_rate = (float)rate;
	out->rate = (float)(rate * correction(opts, out, updates));
	if (updates == 1 && out->torch.fresh != 0.0f) {
		out->torch.fresh = 1.0f; /* PyTorch dampens from the second step on */
	}
	if (is_torch_adam(opts->method.kind)) {
		out->torch.root_share = (float)__builtin_sqrt(left_of(opts->set.beta2, updates));
	}
}

void
wf_apply_scalars(const struct wf_optimizer_opts *opts, double rate, uint64_t updates,
		 struct wf_apply *out)
{
	wf_apply_constants(opts, out);
	wf_apply_rates(opts, rate, updates, out);
}

enum weft_status
wf_optimizer_read(const struct weft_optimizer_opts *in, struct wf_optimizer_opts *out)
{
	*out = (struct wf_optimizer_opts){.set = *in};
	out->set.method = out->set.schedule = out->set.schedule_args = NULL;
	if (in->max_average_window == 0) {
		out->set.max_average_window = UINT64_MAX;
	}
	const char *segments = in->schedule_args != NULL ? in->schedule_args : "";
	enum weft_status st = wf_optimizer_parse(in->method, &out->method.kind);
	if (st == WEFT_OK) {
		st = wf_schedule_parse(in->schedule, &out->method.schedule);
	}
	if (st == WEFT_OK) {
		st = wf_segments_parse(segments, out->method.segment, &out->method.segment_count);
	}
	return st == WEFT_OK ? wf_optimizer_check(out) : st;
}
