/* SPDX-License-Identifier: Apache-2.0 */
/* avx2: the operations of wide.h on eight f32. Built with -mavx2 -mf16c -mno-fma, and called only
 * where dispatch.c found AVX2 and F16C. Thread: any. */
#include <float.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define WIDTH 8

typedef __m256 vec;
typedef __m256i ivec;
typedef __m256 mask; /* all bits of a lane, or none */

INLINE vec
vec_load(const float *from)
{
	return _mm256_loadu_ps(from);
}

INLINE void
vec_store(float *to, vec x)
{
	_mm256_storeu_ps(to, x);
}

INLINE void
vec_stream(float *to, vec x)
{
	_mm256_stream_ps(to, x);
}

INLINE void
stream_end(void)
{
	_mm_sfence();
}

INLINE vec
vec_set(float x)
{
	return _mm256_set1_ps(x);
}

INLINE vec
vec_add(vec a, vec b)
{
	return _mm256_add_ps(a, b);
}

INLINE vec
vec_sub(vec a, vec b)
{
	return _mm256_sub_ps(a, b);
}

INLINE vec
vec_mul(vec a, vec b)
{
	return _mm256_mul_ps(a, b);
}

INLINE vec
vec_div(vec a, vec b)
{
	return _mm256_div_ps(a, b);
}

INLINE vec
vec_sqrt(vec x)
{
	return _mm256_sqrt_ps(x);
}

INLINE vec
vec_min(vec a, vec b)
{
	return _mm256_min_ps(a, b);
}

INLINE vec
vec_max(vec a, vec b)
{
	return _mm256_max_ps(a, b);
}

INLINE mask
mask_less(vec a, vec b)
{
	return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

INLINE mask
mask_equal(vec a, vec b)
{
	return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

INLINE mask
mask_finite(vec x)
{
	vec magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
	return _mm256_cmp_ps(magnitude, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ);
}

INLINE unsigned
mask_bits(mask m)
{
	return (unsigned)_mm256_movemask_ps(m);
}

INLINE vec
vec_select(mask m, vec yes, vec no)
{
	return _mm256_blendv_ps(no, yes, m);
}

INLINE ivec
ivec_truncate(vec x)
{
	return _mm256_cvttps_epi32(x);
}

INLINE ivec
ivec_sub(ivec a, ivec b)
{
	return _mm256_sub_epi32(a, b);
}

INLINE vec
vec_power_of_2(ivec n)
{
	n = _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
	return _mm256_castsi256_ps(n);
}

INLINE vec
vec_exponent(vec x)
{
	ivec n = _mm256_srli_epi32(_mm256_castps_si256(x), 23);
	n = _mm256_and_si256(n, _mm256_set1_epi32(0xff));
	return _mm256_cvtepi32_ps(_mm256_sub_epi32(n, _mm256_set1_epi32(127)));
}

INLINE vec
vec_mantissa(vec x)
{
	ivec bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffff));
	return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
}

INLINE ivec
ivec_magnitude(vec x)
{
	return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

INLINE ivec
ivec_max(ivec a, ivec b)
{
	return _mm256_max_epi32(a, b);
}

INLINE ivec
ivec_set(uint32_t x)
{
	return _mm256_set1_epi32((int)x);
}

INLINE ivec
ivec_load(const uint32_t *from)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE ivec
ivec_xor(ivec a, ivec b)
{
	return _mm256_xor_si256(a, b);
}

/* Even lanes, then odd ones: a product is as wide as two lanes. */
INLINE void
ivec_multiply(ivec a, uint32_t by, ivec *high, ivec *low)
{
	ivec even = _mm256_mul_epu32(a, _mm256_set1_epi32((int)by));
	ivec odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_set1_epi32((int)by));
	*low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
	*high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

INLINE vec
vec_of_high_bits(ivec x)
{
	return _mm256_cvtepi32_ps(_mm256_srli_epi32(x, 8));
}

INLINE bool
ivec_has_above(ivec magnitude, int bits)
{
	ivec above = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(bits));
	return _mm256_movemask_epi8(above) != 0;
}

INLINE vec
vec_load_bf16(const uint16_t *from)
{
	__m128i half = _mm_loadu_si128((const __m128i *)(const void *)from);
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* The lower 16 bits of each lane. */
INLINE void
store_low_halves(uint16_t *to, ivec x)
{
	ivec packed = _mm256_packus_epi32(x, x); /* halves of each 128 bits, twice */
	packed = _mm256_permute4x64_epi64(packed, 0x08);
	_mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(packed));
}

INLINE void
vec_store_bf16(uint16_t *to, vec x)
{
	ivec bits = _mm256_castps_si256(x);
	ivec high = _mm256_srli_epi32(bits, 16);
	ivec odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
	ivec rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
	ivec quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
	ivec is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
	store_low_halves(to, _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, is_nan));
}

INLINE vec
vec_load_f16(const uint16_t *from)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

INLINE void
vec_store_f16(uint16_t *to, vec x)
{
	__m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	_mm_storeu_si128((__m128i *)(void *)to, half);
}

/* wf_bf16_by. */
INLINE void
vec_store_bf16_by(uint16_t *to, vec x, ivec chance)
{
	ivec bits = _mm256_castps_si256(x);
	ivec high = _mm256_srli_epi32(bits, 16);
	ivec magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
	ivec drawn = _mm256_add_epi32(bits, _mm256_srli_epi32(chance, 16));
	ivec is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
	ivec is_large = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f7fffff));
	ivec large = _mm256_or_si256(high, _mm256_and_si256(is_nan, _mm256_set1_epi32(0x40)));
	store_low_halves(to, _mm256_blendv_epi8(_mm256_srli_epi32(drawn, 16), large, is_large));
}

/* wf_f16_by. Shifts by 32 and more, and by less than nothing, leave 0. */
INLINE void
vec_store_f16_by(uint16_t *to, vec x, ivec chance)
{
	ivec bits = _mm256_castps_si256(x);
	ivec sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
	ivec magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
	ivec exponent = _mm256_srli_epi32(magnitude, 23);
	ivec normal = _mm256_sub_epi32(magnitude, _mm256_set1_epi32(112 << 23));
	normal = _mm256_add_epi32(normal, _mm256_srli_epi32(chance, 19));
	ivec shift = _mm256_sub_epi32(_mm256_set1_epi32(126), exponent);
	ivec whole = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff));
	whole = _mm256_or_si256(whole, _mm256_set1_epi32(0x800000));
	ivec part = _mm256_srlv_epi32(chance, _mm256_sub_epi32(_mm256_set1_epi32(32), shift));
	ivec half = _mm256_srlv_epi32(_mm256_add_epi32(whole, part), shift);
	ivec is_normal = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(112));
	half = _mm256_blendv_epi8(half, _mm256_srli_epi32(normal, 13), is_normal);
	ivec payload = _mm256_and_si256(_mm256_srli_epi32(bits, 13), _mm256_set1_epi32(0x3ff));
	payload = _mm256_or_si256(payload, _mm256_set1_epi32(0x200));
	ivec is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
	ivec large = _mm256_or_si256(_mm256_and_si256(payload, is_nan), _mm256_set1_epi32(0x7c00));
	ivec is_large = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(142));
	store_low_halves(to, _mm256_or_si256(sign, _mm256_blendv_epi8(half, large, is_large)));
}

#include "kernels/wide.h"

#include "kernels/rows_wide.h"

#include "kernels/halves_wide.h"

static const struct wf_kernels avx2 = WIDE_TABLE("avx2");

const struct wf_kernels *
wf_kernels_avx2(void)
{
	return &avx2;
}
