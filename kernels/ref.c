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
#include "base/philox.h"
#include "kernels/forms.h"
#include "kernels/half.h"
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

/* How far L1 moves a parameter towards 0 after the step; 0: it is off. */
static inline float
drop_of(const struct wf_apply *apply)
{
	float drop = apply->plain_rate * apply->l1;
	return drop > 0.0f ? drop : 0.0f;
}

static inline float
dropped(float w, float drop)
{
	return drop > 0.0f ? wf_row_soft(w, drop) : w;
}

size_t
wf_ref_apply_sgd(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		w[i] = dropped(w[i] - apply->rate * (g + apply->decay * w[i]), drop);
	}
	return skipped;
}

size_t
wf_ref_apply_momentum(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		w[i] = dropped(w[i] + m[i], drop);
	}
	return skipped;
}

size_t
wf_ref_apply_adam(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		w[i] = dropped(w[i] - apply->rate * m[i] / (root + apply->epsilon), drop);
	}
	return skipped;
}

size_t
wf_ref_apply_nesterov(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		w[i] = dropped(w[i] + (apply->momentum * m[i] - step), drop);
	}
	return skipped;
}

size_t
wf_ref_apply_adagrad(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		w[i] = dropped(w[i] - apply->rate * (g + apply->decay * w[i]) / root, drop);
	}
	return skipped;
}

size_t
wf_ref_apply_adamw(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		step = step + apply->plain_rate * (apply->decay * w[i]);
		w[i] = dropped(w[i] - step, drop);
	}
	return skipped;
}

size_t
wf_ref_apply_decayed_adagrad(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
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
		a[i] = apply->rho * a[i] + apply->square_share * (g * g);
		float root = __builtin_sqrtf(a[i] + apply->epsilon);
		w[i] = dropped(w[i] - apply->rate * (g + apply->decay * w[i]) / root, drop);
	}
	return skipped;
}

/* The argument of the root may fall below 0 by rounding. */
size_t
wf_ref_apply_rmsprop(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
	float *w = apply->param;
	float *a = apply->state[0];
	float *f = apply->state[1];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		a[i] = apply->rho * a[i] + apply->square_share * (g * g);
		f[i] = apply->rho * f[i] + (1.0f - apply->rho) * g;
		float variance = a[i] - f[i] * f[i];
		variance = variance > 0.0f ? variance : 0.0f;
		float root = __builtin_sqrtf(variance + apply->epsilon);
		w[i] = dropped(w[i] - apply->rate * (g + apply->decay * w[i]) / root, drop);
	}
	return skipped;
}

size_t
wf_ref_apply_adadelta(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
	const float rest = 1.0f - apply->rho;
	float *w = apply->param;
	float *a = apply->state[0];
	float *s = apply->state[1];
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		g = clipped(g, apply->clip);
		a[i] = apply->rho * a[i] + rest * (g * g);
		float below = a[i] + apply->epsilon;
		float ratio = __builtin_sqrtf((s[i] + apply->epsilon) / below);
		float move = g * ratio;
		s[i] = apply->rho * s[i] + rest * (move * move);
		w[i] = dropped(w[i] - apply->rate * (g + apply->decay * w[i]) * ratio, drop);
	}
	return skipped;
}

size_t
wf_ref_apply_adamax(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
	float *w = apply->param;
	float *m = apply->state[0];
	float *u = apply->state[1];
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
		float size = g > 0.0f - g ? g : 0.0f - g;
		float before = apply->beta2 * u[i];
		u[i] = before > size ? before : size;
		w[i] = dropped(w[i] - apply->rate * m[i] / (u[i] + apply->epsilon), drop);
	}
	return skipped;
}

/* Updates the means of torch's adams from d. Returns their step. */
static inline float
torch_step(const struct wf_apply *apply, float *m, float *v, float d)
{
	*m = apply->beta1 * *m + apply->rest1 * d;
	*v = apply->beta2 * *v + apply->rest2 * d * d;
	float below = __builtin_sqrtf(*v) / apply->root_share + apply->epsilon;
	return apply->rate * *m / below;
}

size_t
wf_ref_apply_torch_adam(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
	float *w = apply->param;
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		float d = clipped(g, apply->clip) + apply->decay * w[i];
		float step = torch_step(apply, &apply->state[0][i], &apply->state[1][i], d);
		w[i] = dropped(w[i] - step, drop);
	}
	return skipped;
}

size_t
wf_ref_apply_torch_adamw(const struct wf_apply *apply, size_t first)
{
	const float drop = drop_of(apply);
	const float kept = wf_apply_kept(apply);
	float *w = apply->param;
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		float d = clipped(g, apply->clip);
		float step = torch_step(apply, &apply->state[0][i], &apply->state[1][i], d);
		w[i] = dropped(w[i] * kept - step, drop);
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

void
wf_ref_mean(float *out, const struct wf_mean *mean, size_t first, size_t count)
{
	wf_ref_sum(out, mean->in, mean->in_count, first, count);
	for (size_t i = first; i < count; i++) {
		out[i] = out[i] / mean->divisor;
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

static size_t
apply_decayed_adagrad(const struct wf_apply *apply)
{
	return wf_ref_apply_decayed_adagrad(apply, 0);
}

static size_t
apply_rmsprop(const struct wf_apply *apply)
{
	return wf_ref_apply_rmsprop(apply, 0);
}

static size_t
apply_adadelta(const struct wf_apply *apply)
{
	return wf_ref_apply_adadelta(apply, 0);
}

static size_t
apply_adamax(const struct wf_apply *apply)
{
	return wf_ref_apply_adamax(apply, 0);
}

static size_t
apply_torch_adam(const struct wf_apply *apply)
{
	return wf_ref_apply_torch_adam(apply, 0);
}

static size_t
apply_torch_adamw(const struct wf_apply *apply)
{
	return wf_ref_apply_torch_adamw(apply, 0);
}

void
wf_ref_sum_bf16(float *out, const uint16_t *const *in, unsigned in_count, size_t first,
		size_t count)
{
	WF_ASSERT(in_count >= 1);
	for (size_t i = 0; i < count; i++) {
		float sum = wf_f32_of_bf16(in[0][first + i]);
		for (unsigned n = 1; n < in_count; n++) {
			sum = sum + wf_f32_of_bf16(in[n][first + i]);
		}
		out[i] = sum;
	}
}

void
wf_ref_sum_f16(float *out, const uint16_t *const *in, unsigned in_count, size_t first, size_t count)
{
	WF_ASSERT(in_count >= 1);
	for (size_t i = 0; i < count; i++) {
		float sum = wf_f32_of_f16(in[0][first + i]);
		for (unsigned n = 1; n < in_count; n++) {
			sum = sum + wf_f32_of_f16(in[n][first + i]);
		}
		out[i] = sum;
	}
}

static struct wf_philox
block_of(const struct wf_half_blocks *at, unsigned n)
{
	const uint64_t block = at->block + n;
	return wf_philox(
		(struct wf_philox){{(uint32_t)block, (uint32_t)(block >> 32) | at->tensor << 16,
				    (uint32_t)at->step, (uint32_t)(at->step >> 32)}},
		at->key);
}

static void
draw_bf16(uint16_t *out, const float *in, const struct wf_half_blocks *at)
{
	for (unsigned n = 0; n < 16; n++) {
		const struct wf_philox drawn = block_of(at, n);
		for (unsigned j = 0; j < 4; j++) {
			out[16 * j + n] = wf_bf16_by(in[16 * j + n], drawn.word[j]);
		}
	}
}

static void
draw_f16(uint16_t *out, const float *in, const struct wf_half_blocks *at)
{
	for (unsigned n = 0; n < 16; n++) {
		const struct wf_philox drawn = block_of(at, n);
		for (unsigned j = 0; j < 4; j++) {
			out[16 * j + n] = wf_f16_by(in[16 * j + n], drawn.word[j]);
		}
	}
}

static void
sum(float *out, const float *const *in, unsigned in_count, size_t count)
{
	wf_ref_sum(out, in, in_count, 0, count);
}

static void
mean(float *out, const float *const *in, unsigned in_count, float divisor, size_t count)
{
	wf_ref_mean(out, &(struct wf_mean){in, in_count, divisor}, 0, count);
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
			[WF_DECAYED_ADAGRAD] = apply_decayed_adagrad,
			[WF_RMSPROP] = apply_rmsprop,
			[WF_ADADELTA] = apply_adadelta,
			[WF_ADAMAX] = apply_adamax,
			[WF_TORCH_MOMENTUM] = apply_momentum, /* only the rate differs */
			[WF_TORCH_ADAM] = apply_torch_adam,
			[WF_TORCH_ADAMW] = apply_torch_adamw,
		},
	.sum = sum,
	.mean = mean,
	.sum_half = {[WEFT_VALUES_BF16] = wf_ref_sum_bf16, [WEFT_VALUES_F16] = wf_ref_sum_f16},
	.draw_half = {[WEFT_VALUES_BF16] = draw_bf16, [WEFT_VALUES_F16] = draw_f16},
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
