/* SPDX-License-Identifier: Apache-2.0 */
/* ref: the definition of every kernel, in plain scalar C; the formulas of optimizers are those of
 * methods.h. Where another form differs from this file in one bit, the other form is wrong. Thread:
 * any.
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
#include "kernels/one.h"
#include "kernels/rows_forms.h"

#include "kernels/methods.h"

WF_STATIC_ASSERT(FLT_EVAL_METHOD == 0, "f32 arithmetic has to round to f32 at every operation");

static bool
is_finite(float x)
{
	return x >= -FLT_MAX && x <= FLT_MAX;
}

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

static inline struct element
element_at(const struct wf_apply *apply, unsigned states, size_t i)
{
	return (struct element){
		.w = apply->param[i],
		.s = states > 0 ? apply->state[0][i] : 0.0f,
		.t = states > 1 ? apply->state[1][i] : 0.0f,
	};
}

/* What element i has after the pass, changed or not, for the copy. */
static inline void
copy_element(const struct wf_apply *apply, size_t i)
{
	if (apply->copy != NULL) {
		apply->copy[i] = apply->param[i];
	}
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

/* Updates element i. False: it was left as it is. */
__attribute__((always_inline)) static inline bool
step(enum wf_optimizer kind, unsigned states, const struct scalars *k, const struct wf_apply *apply,
     size_t i)
{
	const float g = gradient(apply, i);
	if (!is_finite(g)) {
		return false;
	}
	const bool calm = is_calm(k->calm_bits, g, apply->param[i]);
	struct element e = element_at(apply, states, i);
	e = next_of_kind(kind, k, e, vec_min(vec_max(g, k->low), k->high));
	e.w = k->drops ? vec_soft(e.w, k->drop) : e.w;
	if (!calm && !is_whole(e)) {
		return false;
	}
	store_element(apply, states, i, e);
	return true;
}

/* With a constant kind the compiler leaves one method in the loop. */
__attribute__((always_inline)) static inline size_t
run(enum wf_optimizer kind, unsigned states, const struct wf_apply *apply, size_t first)
{
	const struct scalars k = open_scalars(apply, apply->plain_rate * apply->l1 > 0.0f);
	size_t skipped = 0;

	WF_ASSERT(apply->grad_count >= 1);
	for (size_t i = first; i < apply->count; i++) {
		skipped += step(kind, states, &k, apply, i) ? 0 : 1;
		copy_element(apply, i);
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
