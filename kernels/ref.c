/* SPDX-License-Identifier: Apache-2.0 */
/* ref: the definition of every kernel, in plain scalar C. Where another form differs from this file
 * in one bit, the other form is wrong. Thread: any.
 *
 * The compiler may vectorise these loops, but it may neither contract (-ffp-contract=off) nor
 * reorder (no -ffast-math), so its result is the one written here. */
#include "kernels/kernels.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

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

/* An element: the parameter and its state, of which a method may have less. */
struct element {
	float w, s, t;
};

static int
magnitude_of(float x)
{
	int bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits & 0x7fffffff;
}

static inline bool
is_calm(int calm_bits, float g, float w)
{
	return magnitude_of(g) <= calm_bits && magnitude_of(w) <= calm_bits;
}

static inline bool
is_whole(struct element e)
{
	return is_finite(e.w) && is_finite(e.s) && is_finite(e.t);
}

/* The summed gradient of one element, divided but not clipped. */
static inline float
gradient(const struct wf_apply *apply, size_t i)
{
	float sum = apply->grad[0][i];
	for (unsigned n = 1; n < apply->grad_count; n++) {
		sum = sum + apply->grad[n][i];
	}
	if (apply->vast_divisor > 0.0) {
		return (float)((double)sum / apply->vast_divisor);
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

/* In the functions below: the element after a step with the gradient g, which is finite. */

static inline struct element
next_sgd(const struct wf_apply *apply, struct element e, float g)
{
	e.w = e.w - apply->rate * (g + apply->decay * e.w);
	return e;
}

static inline struct element
next_momentum(const struct wf_apply *apply, struct element e, float g)
{
	e.s = apply->momentum * e.s - apply->rate * (g + apply->decay * e.w);
	e.w = e.w + e.s;
	return e;
}

static inline struct element
next_nesterov(const struct wf_apply *apply, struct element e, float g)
{
	float step = apply->rate * (g + apply->decay * e.w);
	e.s = apply->momentum * e.s - step;
	e.w = e.w + (apply->momentum * e.s - step);
	return e;
}

static inline struct element
next_adagrad(const struct wf_apply *apply, struct element e, float g)
{
	e.s = e.s + g * g;
	float root = __builtin_sqrtf(e.s + apply->epsilon); /* IEEE's: correctly rounded */
	e.w = e.w - apply->rate * (g + apply->decay * e.w) / root;
	return e;
}

static inline struct element
next_decayed_adagrad(const struct wf_apply *apply, struct element e, float g)
{
	e.s = apply->rho * e.s + apply->square_share * (g * g);
	float root = __builtin_sqrtf(e.s + apply->epsilon);
	e.w = e.w - apply->rate * (g + apply->decay * e.w) / root;
	return e;
}

/* The argument of the root may fall below 0 by rounding. */
static inline struct element
next_rmsprop(const struct wf_apply *apply, struct element e, float g)
{
	e.s = apply->rho * e.s + apply->square_share * (g * g);
	e.t = apply->rho * e.t + (1.0f - apply->rho) * g;
	float variance = e.s - e.t * e.t;
	variance = variance > 0.0f ? variance : 0.0f;
	float root = __builtin_sqrtf(variance + apply->epsilon);
	e.w = e.w - apply->rate * (g + apply->decay * e.w) / root;
	return e;
}

static inline struct element
next_adadelta(const struct wf_apply *apply, struct element e, float g)
{
	const float rest = 1.0f - apply->rho;
	e.s = apply->rho * e.s + rest * (g * g);
	float below = e.s + apply->epsilon;
	float ratio = __builtin_sqrtf((e.t + apply->epsilon) / below);
	float move = g * ratio;
	e.t = apply->rho * e.t + rest * (move * move);
	e.w = e.w - apply->rate * (g + apply->decay * e.w) * ratio;
	return e;
}

static inline struct element
next_adam(const struct wf_apply *apply, struct element e, float g)
{
	float d = g + apply->decay * e.w;
	e.s = apply->beta1 * e.s + (1.0f - apply->beta1) * d;
	e.t = apply->beta2 * e.t + (1.0f - apply->beta2) * (d * d);
	float root = __builtin_sqrtf(e.t);
	e.w = e.w - apply->rate * e.s / (root + apply->epsilon);
	return e;
}

static inline struct element
next_adamw(const struct wf_apply *apply, struct element e, float g)
{
	e.s = apply->beta1 * e.s + (1.0f - apply->beta1) * g;
	e.t = apply->beta2 * e.t + (1.0f - apply->beta2) * (g * g);
	float root = __builtin_sqrtf(e.t);
	float step = apply->rate * e.s / (root + apply->epsilon);
	step = step + apply->plain_rate * (apply->decay * e.w);
	e.w = e.w - step;
	return e;
}

static inline struct element
next_adamax(const struct wf_apply *apply, struct element e, float g)
{
	float d = g + apply->decay * e.w;
	e.s = apply->beta1 * e.s + (1.0f - apply->beta1) * d;
	float size = d > 0.0f - d ? d : 0.0f - d;
	float before = apply->beta2 * e.t;
	e.t = before > size ? before : size;
	e.w = e.w - apply->rate * e.s / (e.t + apply->epsilon);
	return e;
}

/* Updates the means of torch's adams from d. Returns their step. */
static inline float
torch_step(const struct wf_apply *apply, struct element *e, float d)
{
	e->s = apply->beta1 * e->s + apply->torch.rest1 * d;
	e->t = apply->beta2 * e->t + apply->torch.rest2 * d * d;
	float below = __builtin_sqrtf(e->t) / apply->torch.root_share + apply->epsilon;
	return apply->rate * e->s / below;
}

static inline struct element
next_torch_adam(const struct wf_apply *apply, struct element e, float g)
{
	float step = torch_step(apply, &e, g + apply->decay * e.w);
	e.w = e.w - step;
	return e;
}

static inline struct element
next_torch_adamw(const struct wf_apply *apply, struct element e, float g)
{
	float step = torch_step(apply, &e, g);
	e.w = e.w * wf_apply_kept(apply) - step;
	return e;
}

static inline struct element
next_torch_sgd(const struct wf_apply *apply, struct element e, float g)
{
	float d = g + apply->decay * e.w;
	e.s = apply->torch.carried * e.s + apply->torch.fresh * d;
	e.w = e.w - apply->rate * (apply->torch.direct * d + apply->torch.onward * e.s);
	return e;
}

static inline struct element
next_of_kind(enum wf_optimizer kind, const struct wf_apply *apply, struct element e, float g)
{
	switch (kind) {
	case WF_SGD:
		return next_sgd(apply, e, g);
	case WF_MOMENTUM:
	case WF_TORCH_MOMENTUM: /* only the rate differs */
		return next_momentum(apply, e, g);
	case WF_ADAM:
		return next_adam(apply, e, g);
	case WF_NESTEROV:
		return next_nesterov(apply, e, g);
	case WF_ADAGRAD:
		return next_adagrad(apply, e, g);
	case WF_ADAMW:
		return next_adamw(apply, e, g);
	case WF_DECAYED_ADAGRAD:
		return next_decayed_adagrad(apply, e, g);
	case WF_RMSPROP:
		return next_rmsprop(apply, e, g);
	case WF_ADADELTA:
		return next_adadelta(apply, e, g);
	case WF_ADAMAX:
		return next_adamax(apply, e, g);
	case WF_TORCH_ADAM:
		return next_torch_adam(apply, e, g);
	case WF_TORCH_ADAMW:
		return next_torch_adamw(apply, e, g);
	case WF_TORCH_SGD:
		return next_torch_sgd(apply, e, g);
	case WF_OPTIMIZER_COUNT:
		break;
	}
	return e;
}

static inline struct element
element_at(const struct wf_apply *apply, unsigned states, size_t i)
{
	return (struct element){
		.w = apply->param[i],
		.s = states > 0 ? apply->state[0][i] : 0.0f,
		.t = states > 1 ? apply->state[1][i] : 0.0f,
	};
}

static inline void
store_element(const struct wf_apply *apply, unsigned states, size_t i, struct element e)
{
	apply->param[i] = e.w;
	if (states > 0) {
		apply->state[0][i] = e.s;
	}
	if (states > 1) {
		apply->state[1][i] = e.t;
	}
}

/* With a constant kind the compiler leaves one method in the loop. */
__attribute__((always_inline)) static inline size_t
run(enum wf_optimizer kind, unsigned states, const struct wf_apply *apply, size_t first)
{
	const int calm_bits = wf_calm_bits(apply);
	const float drop = drop_of(apply);
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		float g = gradient(apply, i);
		if (!is_finite(g)) {
			skipped++;
			continue;
		}
		const bool calm = is_calm(calm_bits, g, apply->param[i]);
		struct element e = element_at(apply, states, i);
		e = next_of_kind(kind, apply, e, clipped(g, apply->clip));
		e.w = dropped(e.w, drop);
		if (!calm && !is_whole(e)) {
			skipped++;
			continue;
		}
		store_element(apply, states, i, e);
	}
	return skipped;
}

size_t
wf_ref_apply(enum wf_optimizer kind, const struct wf_apply *apply, size_t first)
{
	return run(kind, wf_optimizer_state_count(kind), apply, first);
}

#define REF_APPLY(name, kind, states)                                                              \
	static size_t apply_##name(const struct wf_apply *apply)                                   \
	{                                                                                          \
		return run(kind, states, apply, 0);                                                \
	}

WF_OPTIMIZERS(REF_APPLY)

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
	.apply = {WF_OPTIMIZERS(WF_OPTIMIZER_ENTRY)},
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
