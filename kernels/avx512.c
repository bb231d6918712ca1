/* SPDX-License-Identifier: Apache-2.0 */
/* avx512: the operations of wide.h on sixteen f32. Built with -mavx512f, uses nothing beyond
 * AVX-512F, and is called only where dispatch.c found that. Thread: any.
 *
 * AVX-512F includes fused multiply-add, and clang cannot disable that alone (-mno-fma would switch
 * the whole set off): only -ffp-contract=off keeps it from being used. */
#include <float.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define WIDTH 16

typedef __m512 vec;
typedef __m512i ivec;
typedef __mmask16 mask;

INLINE vec
vec_load(const float *from)
{
	return _mm512_loadu_ps(from);
}

INLINE void
vec_store(float *to, vec x)
{
	_mm512_storeu_ps(to, x);
}

INLINE void
vec_stream(float *to, vec x)
{
	_mm512_stream_ps(to, x);
}

INLINE void
stream_end(void)
{
	_mm_sfence();
}

INLINE vec
vec_set(float x)
{
	return _mm512_set1_ps(x);
}

INLINE vec
vec_add(vec a, vec b)
{
	return _mm512_add_ps(a, b);
}

INLINE vec
vec_sub(vec a, vec b)
{
	return _mm512_sub_ps(a, b);
}

INLINE vec
vec_mul(vec a, vec b)
{
	return _mm512_mul_ps(a, b);
}

INLINE vec
vec_div(vec a, vec b)
{
	return _mm512_div_ps(a, b);
}

INLINE vec
vec_sqrt(vec x)
{
	return _mm512_sqrt_ps(x);
}

INLINE vec
vec_min(vec a, vec b)
{
	return _mm512_min_ps(a, b);
}

INLINE vec
vec_max(vec a, vec b)
{
	return _mm512_max_ps(a, b);
}

INLINE mask
mask_less(vec a, vec b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

INLINE mask
mask_equal(vec a, vec b)
{
	return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

INLINE mask
mask_finite(vec x)
{
	return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(FLT_MAX), _CMP_LE_OQ);
}

INLINE unsigned
mask_bits(mask m)
{
	return m;
}

INLINE vec
vec_select(mask m, vec yes, vec no)
{
	return _mm512_mask_blend_ps(m, no, yes);
}

INLINE ivec
ivec_truncate(vec x)
{
	return _mm512_cvttps_epi32(x);
}

INLINE ivec
ivec_sub(ivec a, ivec b)
{
	return _mm512_sub_epi32(a, b);
}

INLINE vec
vec_power_of_2(ivec n)
{
	n = _mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23);
	return _mm512_castsi512_ps(n);
}

INLINE vec
vec_exponent(vec x)
{
	ivec n = _mm512_srli_epi32(_mm512_castps_si512(x), 23);
	n = _mm512_and_si512(n, _mm512_set1_epi32(0xff));
	return _mm512_cvtepi32_ps(_mm512_sub_epi32(n, _mm512_set1_epi32(127)));
}

INLINE vec
vec_mantissa(vec x)
{
	ivec bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffff));
	return _mm512_castsi512_ps(_mm512_or_si512(bits, _mm512_set1_epi32(0x3f800000)));
}

INLINE ivec
ivec_magnitude(vec x)
{
	return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

INLINE ivec
ivec_max(ivec a, ivec b)
{
	return _mm512_max_epi32(a, b);
}

INLINE ivec
ivec_set(uint32_t x)
{
	return _mm512_set1_epi32((int)x);
}

INLINE ivec
ivec_load(const uint32_t *from)
{
	return _mm512_loadu_si512(from);
}

INLINE ivec
ivec_xor(ivec a, ivec b)
{
	return _mm512_xor_si512(a, b);
}

/* Even lanes, then odd ones: a product is as wide as two lanes. */
INLINE void
ivec_multiply(ivec a, uint32_t by, ivec *high, ivec *low)
{
	ivec even = _mm512_mul_epu32(a, _mm512_set1_epi32((int)by));
	ivec odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_set1_epi32((int)by));
	*low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
	*high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
}

INLINE vec
vec_of_high_bits(ivec x)
{
	return _mm512_cvtepi32_ps(_mm512_srli_epi32(x, 8));
}

INLINE bool
ivec_has_above(ivec magnitude, int bits)
{
	return _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(bits)) != 0;
}

INLINE vec
vec_load_bf16(const uint16_t *from)
{
	__m256i half = _mm256_loadu_si256((const __m256i *)(const void *)from);
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

INLINE void
vec_store_bf16(uint16_t *to, vec x)
{
	ivec bits = _mm512_castps_si512(x);
	ivec high = _mm512_srli_epi32(bits, 16);
	ivec odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
	ivec rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
	ivec quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
	__mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
	ivec half = _mm512_mask_blend_epi32(is_nan, _mm512_srli_epi32(rounded, 16), quiet);
	_mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(half));
}

INLINE vec
vec_load_f16(const uint16_t *from)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

INLINE void
vec_store_f16(uint16_t *to, vec x)
{
	__m256i half = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	_mm256_storeu_si256((__m256i *)(void *)to, half);
}

/* wf_bf16_by. */
INLINE void
vec_store_bf16_by(uint16_t *to, vec x, ivec chance)
{
	ivec bits = _mm512_castps_si512(x);
	ivec high = _mm512_srli_epi32(bits, 16);
	ivec magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
	ivec drawn = _mm512_add_epi32(bits, _mm512_srli_epi32(chance, 16));
	__mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
	__mmask16 is_large = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f7fffff));
	ivec large = _mm512_mask_or_epi32(high, is_nan, high, _mm512_set1_epi32(0x40));
	ivec half = _mm512_mask_blend_epi32(is_large, _mm512_srli_epi32(drawn, 16), large);
	_mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(half));
}

/* wf_f16_by. Shifts by 32 and more, and by less than nothing, leave 0. */
INLINE void
vec_store_f16_by(uint16_t *to, vec x, ivec chance)
{
	ivec bits = _mm512_castps_si512(x);
	ivec sign = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x8000));
	ivec magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
	ivec exponent = _mm512_srli_epi32(magnitude, 23);
	ivec normal = _mm512_sub_epi32(magnitude, _mm512_set1_epi32(112 << 23));
	normal = _mm512_add_epi32(normal, _mm512_srli_epi32(chance, 19));
	ivec shift = _mm512_sub_epi32(_mm512_set1_epi32(126), exponent);
	ivec whole = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffff));
	whole = _mm512_or_si512(whole, _mm512_set1_epi32(0x800000));
	ivec part = _mm512_srlv_epi32(chance, _mm512_sub_epi32(_mm512_set1_epi32(32), shift));
	ivec half = _mm512_srlv_epi32(_mm512_add_epi32(whole, part), shift);
	__mmask16 is_normal = _mm512_cmpgt_epi32_mask(exponent, _mm512_set1_epi32(112));
	half = _mm512_mask_blend_epi32(is_normal, half, _mm512_srli_epi32(normal, 13));
	ivec payload = _mm512_and_si512(_mm512_srli_epi32(bits, 13), _mm512_set1_epi32(0x3ff));
	payload = _mm512_or_si512(payload, _mm512_set1_epi32(0x7e00));
	__mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
	ivec large = _mm512_mask_blend_epi32(is_nan, _mm512_set1_epi32(0x7c00), payload);
	__mmask16 is_large = _mm512_cmpgt_epi32_mask(exponent, _mm512_set1_epi32(142));
	half = _mm512_or_si512(sign, _mm512_mask_blend_epi32(is_large, half, large));
	_mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16(half));
}

#include "kernels/wide.h"

#include "kernels/rows_wide.h"

#include "kernels/halves_wide.h"

static const struct wf_kernels avx512 = WIDE_TABLE("avx512");

const struct wf_kernels *
wf_kernels_avx512(void)
{
	return &avx512;
}
