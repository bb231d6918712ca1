/* SPDX-License-Identifier: Apache-2.0 */
/* halves_wide: random rounding of WIDTH f32 at a time, with the bits of ref.c, written once for all
 * forms. Thread: any.
 *
 * Included by a form's file after rows_wide.h, whose blocks of Philox it uses; alone it is empty.
 * Beyond those a form gives vec_store_bf16_by and vec_store_f16_by, as half.h defines the rounding,
 * with the chance of each lane. */
#pragma once

#ifdef WIDTH

#include "base/assert.h"
#include "kernels/kernels.h"

WF_STATIC_ASSERT(16 % WIDTH == 0, "16 blocks are whole vectors");

/* WIDTH blocks from the n-th on: a word for each of four vectors. */
INLINE void
draw_words(const struct wf_half_blocks *at, unsigned n, ivec word[4])
{
	const uint64_t block = at->block + n;
	uint32_t low[WIDTH];
	for (unsigned i = 0; i < WIDTH; i++) {
		low[i] = (uint32_t)block + i; /* a multiple of WIDTH: there is no carry */
	}
	word[0] = ivec_load(low);
	word[1] = ivec_set((uint32_t)(block >> 32) | at->tensor << 16);
	word[2] = ivec_set((uint32_t)at->step);
	word[3] = ivec_set((uint32_t)(at->step >> 32));
	philox_blocks(word, at->key);
}

static void
draw_bf16(uint16_t *out, const float *in, const struct wf_half_blocks *at)
{
	for (unsigned n = 0; n < 16; n += WIDTH) {
		ivec word[4];
		draw_words(at, n, word);
		for (unsigned j = 0; j < 4; j++) {
			vec_store_bf16_by(out + 16 * j + n, vec_load(in + 16 * j + n), word[j]);
		}
	}
}

static void
draw_f16(uint16_t *out, const float *in, const struct wf_half_blocks *at)
{
	for (unsigned n = 0; n < 16; n += WIDTH) {
		ivec word[4];
		draw_words(at, n, word);
		for (unsigned j = 0; j < 4; j++) {
			vec_store_f16_by(out + 16 * j + n, vec_load(in + 16 * j + n), word[j]);
		}
	}
}

#endif
