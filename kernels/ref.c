/* SPDX-License-Identifier: Apache-2.0 */
/* ref: the definition of every kernel, in plain scalar C. Where another form differs from this file
 * in one bit, the other form is wrong. Thread: any.
 *
 * The compiler may vectorise these loops, but it may neither contract (-ffp-contract=off) nor
 * reorder (no -ffast-math), so its result is the one written here. */
#include "kernels/kernels.h"

#include <float.h>
#include <stdbool.h>

#include "base/assert.h"
#include "kernels/forms.h"
#include "kernels/rows_forms.h"

WF_STATIC_ASSERT(FLT_EVAL_METHOD == 0, "f32 arithmetic has to round to f32 at every operation");

static bool
is_finite(float x)
{
	return x >= -FLT_MAX && x <= FLT_MAX;
}

/* The summed gradient of one element, divided but not clipped. */
static inline float
gradient(const struct wf_apply *apply, size_t i)
{
	float sum = apply->grad[0][i];
	for (unsigned n = 1; n < apply->grad_count; n++) {
		sum = sum + apply->grad[n][i];
	}
	return sum / apply->divisor;
}

/* min(max(g, -clip), clip) of a finite g. */
static inline float
clipped(float g, float clip)
{
	if (!(clip > 0.0f)) {
		return g;
	}
	g = g > -clip ? g : -clip;
	return g < clip ? g : clip;
}

size_t
wf_ref_apply_sgd(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		w[i] = w[i] - apply->rate * (g + apply->decay * w[i]);
	}
	return skipped;
}

size_t
wf_ref_apply_momentum(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	float *m = apply->state[0];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		m[i] = apply->momentum * m[i] - apply->rate * (g + apply->decay * w[i]);
		w[i] = w[i] + m[i];
	}
	return skipped;
}

size_t
wf_ref_apply_adam(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	float *m = apply->state[0];
	float *v = apply->state[1];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip) + apply->decay * w[i];
		m[i] = apply->beta1 * m[i] + (1.0f - apply->beta1) * g;
		v[i] = apply->beta2 * v[i] + (1.0f - apply->beta2) * (g * g);
		float root = __builtin_sqrtf(v[i]); /* IEEE's: correctly rounded */
		w[i] = w[i] - apply->rate * m[i] / (root + apply->epsilon);
	}
	return skipped;
}

size_t
wf_ref_apply_nesterov(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	float *m = apply->state[0];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		float step = apply->rate * (g + apply->decay * w[i]);
		m[i] = apply->momentum * m[i] - step;
		w[i] = w[i] + (apply->momentum * m[i] - step);
	}
	return skipped;
}

size_t
wf_ref_apply_adagrad(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	float *a = apply->state[0];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		a[i] = a[i] + g * g;
		float root = __builtin_sqrtf(a[i] + apply->epsilon);
		w[i] = w[i] - apply->rate * (g + apply->decay * w[i]) / root;
	}
	return skipped;
}

size_t
wf_ref_apply_adamw(const struct wf_apply *apply, size_t first)
{
	float *w = apply->param;
	float *m = apply->state[0];
	float *v = apply->state[1];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		m[i] = apply->beta1 * m[i] + (1.0f - apply->beta1) * g;
		v[i] = apply->beta2 * v[i] + (1.0f - apply->beta2) * (g * g);
		float root = __builtin_sqrtf(v[i]);
		float step = apply->rate * m[i] / (root + apply->epsilon);
		w[i] = w[i] - (step + apply->plain_rate * (apply->decay * w[i]));
	}
	return skipped;
}

void
wf_ref_sum(float *out, const float *const *in, unsigned in_count, size_t first, size_t count)
{
	WF_ASSERT(in_count >= 1);
	for (size_t i = first; i < count; i++) {
		float sum = in[0][i];
		for (unsigned n = 1; n < in_count; n++) {
			sum = sum + in[n][i];
		}
		out[i] = sum;
	}
}

static size_t
apply_sgd(const struct wf_apply *apply)
{
	return wf_ref_apply_sgd(apply, 0);
}

static size_t
apply_momentum(const struct wf_apply *apply)
{
	return wf_ref_apply_momentum(apply, 0);
}

static size_t
apply_adam(const struct wf_apply *apply)
{
	return wf_ref_apply_adam(apply, 0);
}

static size_t
apply_nesterov(const struct wf_apply *apply)
{
	return wf_ref_apply_nesterov(apply, 0);
}

static size_t
apply_adagrad(const struct wf_apply *apply)
{
	return wf_ref_apply_adagrad(apply, 0);
}

static size_t
apply_adamw(const struct wf_apply *apply)
{
	return wf_ref_apply_adamw(apply, 0);
}

static void
sum(float *out, const float *const *in, unsigned in_count, size_t count)
{
	wf_ref_sum(out, in, in_count, 0, count);
}

static size_t
count_nonfinite(const float *in, size_t count)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		found += !is_finite(in[i]);
	}
	return found;
}

static void
exp_f32(float *out, const float *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_exp_f32(in[i]);
	}
}

static void
log_f32(float *out, const float *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wf_log_f32(in[i]);
	}
}

static const struct wf_kernels ref = {
	.name = "ref",
	.apply =
		{
			[WF_SGD] = apply_sgd,
			[WF_MOMENTUM] = apply_momentum,
			[WF_ADAM] = apply_adam,
			[WF_NESTEROV] = apply_nesterov,
			[WF_ADAGRAD] = apply_adagrad,
			[WF_ADAMW] = apply_adamw,
		},
	.sum = sum,
	.count_nonfinite = count_nonfinite,
	.exp_f32 = exp_f32,
	.log_f32 = log_f32,
	.rows = &wf_row_kernels_ref,
};

const struct wf_kernels *
wf_kernels_ref(void)
{
	return &ref;
}
