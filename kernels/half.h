/* SPDX-License-Identifier: Apache-2.0 */
/* half: values in 16 bits: bf16 (the upper half of an f32) and f16 (IEEE binary16). From f32 they
 * are rounded to nearest, ties to even; values that are too large become infinite, and a NaN stays
 * one, made quiet. To f32 they are exact. These functions are the definition, and give the same
 * bits as the processor's instructions. Thread: any; pure functions. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t
wf_f32_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline float
wf_f32_of_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline uint16_t
wf_bf16_of(float x)
{
	uint32_t bits = wf_f32_bits(x);

	if ((bits & 0x7fffffffu) > 0x7f800000u) {
		return (uint16_t)(bits >> 16 | 0x40u);
	}
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float
wf_f32_of_bf16(uint16_t half)
{
	return wf_f32_of_bits((uint32_t)half << 16);
}

/* `value` without its lowest `bits`, rounded to nearest, ties to even; bits: 1 to 31. */
static inline uint32_t
wf_round_off(uint32_t value, unsigned bits)
{
	uint32_t below = value & ((1u << bits) - 1);
	uint32_t middle = 1u << (bits - 1);
	uint32_t kept = value >> bits;
	return kept + (below > middle || (below == middle && (kept & 1u) != 0));
}

static inline uint16_t
wf_f16_of(float x)
{
	const uint32_t bits = wf_f32_bits(x);
	const uint32_t sign = bits >> 16 & 0x8000u;
	const uint32_t magnitude = bits & 0x7fffffffu;
	const uint32_t exponent = magnitude >> 23;
	uint32_t half = 0;

	if (magnitude > 0x7f800000u) { /* NaN: the upper bits of its payload stay */
		half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
	} else if (exponent >= 143) { /* 2^16 and more */
		half = 0x7c00u;
	} else if (exponent >= 113) { /* normal; rounding may carry up to infinity */
		half = wf_round_off(magnitude - (112u << 23), 13);
	} else if (exponent >= 102) { /* subnormal, or 0, in units of 2^-24 */
		half = wf_round_off((magnitude & 0x7fffffu) | 0x800000u, 126 - exponent);
	}
	return (uint16_t)(sign | half);
}

static inline float
wf_f32_of_f16(uint16_t half)
{
	const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
	const uint32_t exponent = half >> 10 & 0x1fu;
	const uint32_t fraction = half & 0x3ffu;

	if (exponent == 31) {
		uint32_t quiet = fraction != 0 ? 0x400000u : 0;
		return wf_f32_of_bits(sign | 0x7f800000u | quiet | fraction << 13);
	}
	if (exponent == 0) { /* units of 2^-24, all of which are exact in f32 */
		float x = (float)fraction * 0x1p-24f;
		return wf_f32_of_bits(sign | wf_f32_bits(x));
	}
	return wf_f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* From f32, rounded at random: `chance` is uniform over 32 bits, and the probability of rounding up
 * in magnitude is the remainder divided by the distance between the two neighbours. NaN and
 * infinity as above; a value that is too large, or rounded up from the largest, becomes infinite.
 */
static inline uint16_t
wf_bf16_by(float x, uint32_t chance)
{
	const uint32_t bits = wf_f32_bits(x);

	if ((bits & 0x7fffffffu) >= 0x7f800000u) {
		return wf_bf16_of(x);
	}
	return (uint16_t)((bits + (chance >> 16)) >> 16);
}

/* Magnitudes below 2^-32 become 0. */
static inline uint16_t
wf_f16_by(float x, uint32_t chance)
{
	const uint32_t bits = wf_f32_bits(x);
	const uint32_t sign = bits >> 16 & 0x8000u;
	const uint32_t magnitude = bits & 0x7fffffffu;
	const uint32_t exponent = magnitude >> 23;
	uint32_t half = 0;

	if (exponent >= 143) {
		return wf_f16_of(x);
	}
	if (exponent >= 113) {
		half = (magnitude - (112u << 23) + (chance >> 19)) >> 13;
	} else if (exponent >= 95) {                   /* subnormal, or 0 */
		const uint32_t shift = 126 - exponent; /* 14 to 31 */
		const uint32_t whole = (magnitude & 0x7fffffu) | 0x800000u;
		half = (whole + (chance >> (32 - shift))) >> shift;
	}
	return (uint16_t)(sign | half);
}
