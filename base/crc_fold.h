/* SPDX-License-Identifier: Apache-2.0 */
/* crc_fold: a long message is replaced by 16 bytes that have the same remainder, by multiplications
 * without carries, of 64 bytes at a time where the processor has them. Whoever includes it computes
 * the CRC of these. Only for x86-64. Source of the method: V. Gopal and others, "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. Thread: any. */
#pragma once

#if defined(__x86_64__)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#define WF_CRC_FOLDED __attribute__((target("pclmul,sse4.2")))
#define WF_CRC_FOLD_LANES 4u /* of 16 bytes, so that multiplications overlap */
#define WF_CRC_FOLD_BYTES (WF_CRC_FOLD_LANES * sizeof(__m128i))
#define WF_CRC_FOLD_BYTES_MIN (2 * WF_CRC_FOLD_BYTES)

#define WF_CRC_FOLDED_WIDE __attribute__((target("pclmul,sse4.2,avx512f,vpclmulqdq")))
#define WF_CRC_FOLD_WIDE_LANES 4u /* of 64 bytes */
#define WF_CRC_FOLD_WIDE_BYTES (WF_CRC_FOLD_WIDE_LANES * sizeof(__m512i))

/* Of a polynomial: the remainders of x to the powers of 8 n + 32 and 8 n - 32, reflected, for n
 * bytes by which a value moves. */
struct wf_crc_factors {
	uint64_t by_256[2], by_64[2], by_16[2];
};

struct wf_crc_folded {
	uint8_t bytes[16];   /* with the register in them: continue with one of 0 */
	const uint8_t *rest; /* of the message, behind what was folded */
};

static inline bool
wf_crc_can_fold(size_t count)
{
	return count >= WF_CRC_FOLD_BYTES_MIN && __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("sse4.2");
}

static inline bool
wf_crc_can_fold_wide(size_t count)
{
	return count >= 2 * WF_CRC_FOLD_WIDE_BYTES && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("avx512f");
}

/* Moves `value` as far forward as `factors` say, onto `next`. */
WF_CRC_FOLDED static inline __m128i
wf_crc_fold_lane(__m128i value, __m128i factors, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
	__m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

WF_CRC_FOLDED static inline __m128i
wf_crc_fold_load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)(const void *)at);
}

WF_CRC_FOLDED_WIDE static inline __m512i
wf_crc_fold_wide_lane(__m512i value, __m512i factors, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(value, factors, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(value, factors, 0x11);
	return _mm512_xor_si512(_mm512_xor_si512(low, high), next);
}

WF_CRC_FOLDED_WIDE static inline __m512i
wf_crc_fold_wide_factors(const uint64_t *factors)
{
	return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)factors));
}

/* Folds as many whole WF_CRC_FOLD_WIDE_BYTES as there are, behind the register `begin`, into `out`,
 * [WF_CRC_FOLD_BYTES]; returns where they end. wf_crc_can_fold_wide(count) */
WF_CRC_FOLDED_WIDE static const uint8_t *
wf_crc_fold_wide(const struct wf_crc_factors *factors, uint32_t begin, const uint8_t *at,
		 size_t count, uint8_t *out)
{
	const __m512i by_256 = wf_crc_fold_wide_factors(factors->by_256);
	const __m512i by_64 = wf_crc_fold_wide_factors(factors->by_64);
	const uint8_t *end = at + count;
	__m512i lane[WF_CRC_FOLD_WIDE_LANES];

	for (unsigned i = 0; i < WF_CRC_FOLD_WIDE_LANES; i++) {
		lane[i] = _mm512_loadu_si512(at + i * sizeof(__m512i));
	}
	lane[0] = _mm512_xor_si512(lane[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)begin)));
	at += WF_CRC_FOLD_WIDE_BYTES;
	for (; (size_t)(end - at) >= WF_CRC_FOLD_WIDE_BYTES; at += WF_CRC_FOLD_WIDE_BYTES) {
		for (unsigned i = 0; i < WF_CRC_FOLD_WIDE_LANES; i++) {
			lane[i] = wf_crc_fold_wide_lane(
				lane[i], by_256, _mm512_loadu_si512(at + i * sizeof(__m512i)));
		}
	}
	for (unsigned i = 1; i < WF_CRC_FOLD_WIDE_LANES; i++) {
		lane[i] = wf_crc_fold_wide_lane(lane[i - 1], by_64, lane[i]);
	}
	_mm512_storeu_si512(out, lane[WF_CRC_FOLD_WIDE_LANES - 1]);
	return at;
}

/* Folds all of the message but its last `rest` bytes, behind the register `begin`, which is
 * UINT32_MAX at a message's first byte. wf_crc_can_fold(count) */
WF_CRC_FOLDED static inline struct wf_crc_folded
wf_crc_fold(const struct wf_crc_factors *factors, uint32_t begin, const uint8_t *at, size_t count)
{
	const __m128i by_64 = _mm_loadu_si128((const __m128i *)(const void *)factors->by_64);
	const __m128i by_16 = _mm_loadu_si128((const __m128i *)(const void *)factors->by_16);
	const bool is_wide = wf_crc_can_fold_wide(count);
	const uint8_t *end = at + count;
	uint8_t wide[WF_CRC_FOLD_BYTES];
	struct wf_crc_folded folded;
	__m128i lane[WF_CRC_FOLD_LANES];

	if (is_wide) {
		at = wf_crc_fold_wide(factors, begin, at, count, wide);
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < WF_CRC_FOLD_LANES; i++) {
		lane[i] = wf_crc_fold_load((is_wide ? wide : at) + i * sizeof(__m128i));
	}
	if (!is_wide) {
		lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)begin));
		at += WF_CRC_FOLD_BYTES;
	}
	for (; (size_t)(end - at) >= WF_CRC_FOLD_BYTES; at += WF_CRC_FOLD_BYTES) {
#pragma GCC unroll 4
		for (unsigned i = 0; i < WF_CRC_FOLD_LANES; i++) {
			lane[i] = wf_crc_fold_lane(lane[i], by_64,
						   wf_crc_fold_load(at + i * sizeof(__m128i)));
		}
	}
#pragma GCC unroll 4
	for (unsigned i = 1; i < WF_CRC_FOLD_LANES; i++) {
		lane[i] = wf_crc_fold_lane(lane[i - 1], by_16, lane[i]);
	}
	_mm_storeu_si128((__m128i *)(void *)folded.bytes, lane[WF_CRC_FOLD_LANES - 1]);
	folded.rest = at;
	return folded;
}

#endif
