/* SPDX-License-Identifier: Apache-2.0 */
/* halves: the passes over gradients and values in 16 bits. They are made of the forms' own kernels,
 * and so give the same bits with each of them. Thread: any. */
#include "kernels/halves.h"

#include <string.h>

#include "base/assert.h"
#include "base/philox.h"
#include "kernels/half.h"
#include "kernels/norm.h"

#define PART 2048u /* elements at a time: their sum is 8 KiB */

static inline size_t
part_of(size_t count, size_t first)
{
	return count - first < PART ? count - first : PART;
}

size_t
wf_halves_apply(const struct wf_kernels *kernels, enum wf_optimizer kind,
		const struct wf_apply *apply, const struct wf_halves *halves)
{
	const struct wf_row_half *half = &kernels->rows->half[halves->form];
	struct wf_apply part = *apply;
	float sum[PART];
	const float *const grad[] = {sum};
	size_t skipped = 0;

	WF_ASSERT(halves->form != WEFT_VALUES_F32 && halves->grad_count >= 1);
	part.grad = grad;
	part.grad_count = 1;
	for (size_t first = 0; first < apply->count; first += PART) {
		part.count = part_of(apply->count, first);
		part.param = apply->param + first;
		for (unsigned i = 0; i < WF_STATE_MAX; i++) {
			part.state[i] = apply->state[i] != NULL ? apply->state[i] + first : NULL;
		}
		kernels->sum_half[halves->form](sum, halves->grad, halves->grad_count, first,
						part.count);
		skipped += kernels->apply[kind](&part);
		half->narrow(halves->value + first, part.param, part.count);
	}
	return skipped;
}

double
wf_halves_squares(const struct wf_kernels *kernels, const struct wf_halves *halves, size_t count)
{
	struct wf_norm_fold fold = {0};
	float sum[PART];
	const float *const grad[] = {sum};

	WF_ASSERT(halves->form != WEFT_VALUES_F32 && halves->grad_count >= 1);
	for (size_t first = 0; first < count; first += PART) {
		size_t here = part_of(count, first);
		kernels->sum_half[halves->form](sum, halves->grad, halves->grad_count, first, here);
		wf_norm_fold_add(&fold, grad, 1, here);
	}
	return wf_norm_fold_end(&fold);
}

#define LANES 0x0001000100010001ull /* one bit in each of four halves */

size_t
wf_halves_count_nonfinite(enum weft_value_format form, const uint16_t *in, size_t count)
{
	/* Only an exponent of all ones carries into the sign bit. */
	const unsigned ones = form == WEFT_VALUES_BF16 ? 0x7f80u : 0x7c00u;
	const unsigned last = form == WEFT_VALUES_BF16 ? 0x0080u : 0x0400u;
	size_t found = 0;
	size_t i = 0;

	WF_ASSERT(form != WEFT_VALUES_F32);
	for (; i + 4 <= count; i += 4) {
		uint64_t four;
		memcpy(&four, in + i, sizeof(four));
		four = ((four & ones * LANES) + last * LANES) & 0x8000u * LANES;
		found += four == 0 ? 0 : (size_t)__builtin_popcountll(four);
	}
	for (; i < count; i++) {
		found += (in[i] & ones) == ones;
	}
	return found;
}

size_t
wf_halves_overflows(const struct wf_kernels *kernels, enum weft_value_format form,
		    const uint16_t *half, const float *in, size_t count)
{
	size_t found = wf_halves_count_nonfinite(form, half, count);
	return found == 0 ? 0 : found - kernels->count_nonfinite(in, count);
}

static uint64_t
key_of(const struct wf_halves_draw *draw)
{
	return draw->seed + draw->trainer * 0x9e3779b97f4a7c15ull;
}

/* Element `e` alone. */
static uint16_t
draw_one(const struct wf_halves_draw *draw, uint64_t e)
{
	const uint64_t block = e / 64 * 16 + e % 16;
	const struct wf_philox drawn = wf_philox(
		(struct wf_philox){{(uint32_t)block, (uint32_t)(block >> 32) | draw->tensor << 16,
				    (uint32_t)draw->step, (uint32_t)(draw->step >> 32)}},
		key_of(draw));
	const float x = draw->in[e - draw->first];
	const uint32_t word = drawn.word[e / 16 % 4];
	return draw->form == WEFT_VALUES_BF16 ? wf_bf16_by(x, word) : wf_f16_by(x, word);
}

void
wf_halves_draw(const struct wf_kernels *kernels, const struct wf_halves_draw *draw, uint16_t *out)
{
	const uint64_t end = draw->first + draw->count;
	uint64_t e = draw->first;

	WF_ASSERT(draw->form != WEFT_VALUES_F32);
	for (; e < end && e % 64 != 0; e++) {
		out[e - draw->first] = draw_one(draw, e);
	}
	struct wf_half_blocks at = {
		.tensor = draw->tensor, .step = draw->step, .key = key_of(draw)};
	for (; e + 64 <= end; e += 64) {
		at.block = e / 4;
		kernels->draw_half[draw->form](out + (e - draw->first),
					       draw->in + (e - draw->first), &at);
	}
	for (; e < end; e++) {
		out[e - draw->first] = draw_one(draw, e);
	}
}
