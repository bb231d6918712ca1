/* SPDX-License-Identifier: Apache-2.0 */
/* norm: sums of squares. A finite f32 is a whole number of 2^-149, so its square is one of 2^-298,
 * and so are sums of these, rounded or not. Thread: any. */
#include "kernels/norm.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"

#define FOLD 16u
WF_STATIC_ASSERT(sizeof(struct wf_norm_fold) == FOLD * sizeof(double), "one each");
#define UNIT_EXPONENT (-350) /* the last bit of the f64 2^-298 */
#define FRACTION_BITS 52

static float
sum_at(const float *const *grad, unsigned grad_count, size_t i)
{
	float sum = grad[0][i];
	for (unsigned n = 1; n < grad_count; n++) {
		sum = sum + grad[n][i];
	}
	return sum;
}

void
wf_norm_fold_add(struct wf_norm_fold *fold, const float *const *grad, unsigned grad_count,
		 size_t count)
{
	WF_ASSERT(grad_count >= 1);
	for (size_t i = 0; i < count; i++) {
		float sum = sum_at(grad, grad_count, i);
		if (sum >= -FLT_MAX && sum <= FLT_MAX) {
			fold->partial[i % FOLD] += (double)sum * (double)sum;
		}
	}
}

double
wf_norm_fold_end(struct wf_norm_fold *fold)
{
	double *partial = fold->partial;

	for (unsigned half = FOLD / 2; half > 0; half /= 2) {
		for (unsigned i = 0; i < half; i++) {
			partial[i] = partial[i] + partial[i + half];
		}
	}
	return partial[0];
}

double
wf_norm_squares(const float *const *grad, unsigned grad_count, size_t count)
{
	struct wf_norm_fold fold = {0};

	wf_norm_fold_add(&fold, grad, grad_count, count);
	return wf_norm_fold_end(&fold);
}

static void
add_word(struct wf_norm *norm, unsigned at, uint64_t value)
{
	while (value != 0 && at < WF_NORM_WORDS) {
		norm->word[at] += value;
		value = norm->word[at] < value ? 1 : 0;
		at++;
	}
}

void
wf_norm_add(struct wf_norm *norm, double squares)
{
	uint64_t bits;

	WF_ASSERT(squares >= 0.0 && squares <= DBL_MAX);
	memcpy(&bits, &squares, sizeof(bits));
	if (bits == 0) {
		return;
	}
	uint64_t fraction = (bits & ((1ull << FRACTION_BITS) - 1)) | 1ull << FRACTION_BITS;
	int exponent = (int)(bits >> FRACTION_BITS) - 1023 - FRACTION_BITS - UNIT_EXPONENT;
	WF_ASSERT(exponent >= 0 && exponent < 64 * (WF_NORM_WORDS - 1));
	unsigned at = (unsigned)exponent / 64;
	unsigned shift = (unsigned)exponent % 64;
	add_word(norm, at, fraction << shift);
	if (shift > 0) {
		add_word(norm, at + 1, fraction >> (64 - shift));
	}
}

void
wf_norm_merge(struct wf_norm *norm, const struct wf_norm *other)
{
	for (unsigned i = 0; i < WF_NORM_WORDS; i++) {
		add_word(norm, i, other->word[i]);
	}
}

/* Adds words from the highest down, as far as the f64 has room. */
double
wf_norm_root(const struct wf_norm *norm)
{
	double sum = 0.0;

	for (unsigned i = WF_NORM_WORDS; i-- > 0;) {
		sum = sum * 0x1p64 + (double)norm->word[i];
	}
	return __builtin_sqrt(sum * 0x1p-175 * 0x1p-175);
}

double
wf_norm_divisor(const struct wf_norm *norm, double divisor, double clip)
{
	double length = wf_norm_root(norm) / divisor;

	if (!(length > clip)) {
		return divisor;
	}
	double stretched = divisor * (length / clip);
	return stretched <= (double)FLT_MAX ? (double)(float)stretched : stretched;
}
