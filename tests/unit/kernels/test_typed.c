/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of arrays of each type: the bits of adding one element after the other, with every form of
 * the kernels, for lengths around whole vectors; and values worked out by hand. Thread: one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/half.h"
#include "kernels/typed.h"

#define ARRAYS 5u
#define COUNT 2200u

static const char *const forms[] = {"ref", "avx2", "avx512"};
static uint64_t in[ARRAYS][COUNT], out[COUNT], want[COUNT];

static void
types_have_names_and_sizes(void **state)
{
	(void)state;
	static const char *const names[] = {"f32", "f64", "bf16", "f16", "i32", "i64"};
	static const size_t bytes[] = {4, 8, 2, 2, 4, 8};
	for (uint32_t type = 0; type < WF_TYPE_COUNT; type++) {
		assert_string_equal(wf_type_name((enum weft_type)type), names[type]);
		assert_int_equal(wf_type_bytes(type), bytes[type]);
		assert_int_equal(wf_type_is_integer((enum weft_type)type), names[type][0] == 'i');
	}
	assert_int_equal(wf_type_bytes(WF_TYPE_COUNT), 0);
	assert_int_equal(wf_type_bytes(UINT32_MAX), 0);
}

static void
known_sums_are_what_they_should_be(void **state)
{
	(void)state;
	const struct wf_kernels *k = wf_kernels_ref();
	/* 1 + 2^-8 + 2^-8: each addition falls back to 1 in bf16, where f32 would keep both. */
	uint16_t one = wf_bf16_of(1), small = wf_bf16_of(0x1p-8f), sum = 0;
	wf_typed_sum(k, WEFT_TYPE_BF16, &sum, (const void *const[]){&one, &small, &small}, 3, 1);
	assert_int_equal(sum, one);
	wf_typed_sum(k, WEFT_TYPE_BF16, &sum, (const void *const[]){&small, &small, &one}, 3, 1);
	assert_int_equal(sum, wf_bf16_of(1.0078125f));
	uint16_t most = wf_f16_of(65504), infinite = wf_f16_of(INFINITY);
	wf_typed_sum(k, WEFT_TYPE_F16, &sum, (const void *const[]){&most, &most}, 2, 1);
	assert_int_equal(sum, infinite);
	int32_t top = INT32_MAX, two = 2, wrapped = 0;
	wf_typed_sum(k, WEFT_TYPE_I32, &wrapped, (const void *const[]){&top, &two}, 2, 1);
	assert_int_equal(wrapped, INT32_MIN + 1);
	int64_t low = INT64_MIN, less = -1, around = 0;
	wf_typed_sum(k, WEFT_TYPE_I64, &around, (const void *const[]){&low, &less}, 2, 1);
	assert_true(around == INT64_MAX);
	double third = 1, thirds[2] = {1, -7};
	wf_typed_divide(k, WEFT_TYPE_F64, thirds, 3, 2);
	assert_true(thirds[0] == third / 3 && thirds[1] == -7.0 / 3);
	sum = wf_f16_of(1);
	wf_typed_divide(k, WEFT_TYPE_F16, &sum, 3, 1);
	assert_int_equal(sum, wf_f16_of(1.0f / 3));
}

static float
widen(enum weft_type type, uint16_t half)
{
	return type == WEFT_TYPE_BF16 ? wf_f32_of_bf16(half) : wf_f32_of_f16(half);
}

/* One element, added the plain way. */
static void
add_one(enum weft_type type, uint8_t *sum, const uint8_t *next)
{
	union {
		float f32;
		double f64;
		uint16_t half;
		uint32_t i32;
		uint64_t i64;
	} a, b;
	size_t each = wf_type_bytes(type);
	memcpy(&a, sum, each);
	memcpy(&b, next, each);
	if (type == WEFT_TYPE_F32) {
		a.f32 += b.f32;
	} else if (type == WEFT_TYPE_F64) {
		a.f64 += b.f64;
	} else if (type == WEFT_TYPE_I32) {
		a.i32 += b.i32;
	} else if (type == WEFT_TYPE_I64) {
		a.i64 += b.i64;
	} else {
		float both = widen(type, a.half) + widen(type, b.half);
		a.half = type == WEFT_TYPE_BF16 ? wf_bf16_of(both) : wf_f16_of(both);
	}
	memcpy(sum, &a, each);
}

static bool
is_nan(enum weft_type type, const uint8_t *at)
{
	float f32;
	double f64;
	uint16_t half;
	memcpy(&half, at, sizeof(half));
	if (type == WEFT_TYPE_F32) {
		memcpy(&f32, at, sizeof(f32));
		return isnan(f32);
	}
	if (type == WEFT_TYPE_F64) {
		memcpy(&f64, at, sizeof(f64));
		return isnan(f64);
	}
	return !wf_type_is_integer(type) && isnan(widen(type, half));
}

static void
compare(enum weft_type type, size_t count)
{
	size_t each = wf_type_bytes(type);
	const uint8_t *got = (const uint8_t *)out, *due = (const uint8_t *)want;
	for (size_t i = 0; i < count; i++, got += each, due += each) {
		if (!is_nan(type, due) || !is_nan(type, got)) {
			assert_memory_equal(got, due, each);
		}
	}
	assert_int_equal(*got, 0xa5); /* nothing behind it */
}

static void
each_form_has_the_bits_of_adding_in_order(void **state)
{
	(void)state;
	static const size_t counts[] = {1, 2, 15, 63, 64, 65, 1023, 1024, 1025, 2199};
	struct wf_rng rng;
	wf_rng_init(&rng, 11, 1);
	for (uint32_t a = 0; a < ARRAYS; a++) {
		for (size_t i = 0; i < COUNT; i++) {
			in[a][i] = wf_rng_u64(&rng); /* any bits: NaN, infinities, subnormals */
		}
	}
	for (uint32_t type = 0; type < WF_TYPE_COUNT; type++) {
		for (size_t c = 0; c < WF_ARRAY_COUNT(counts) * ARRAYS; c++) {
			size_t count = counts[c / ARRAYS];
			unsigned arrays = 1 + (unsigned)(c % ARRAYS);
			size_t each = wf_type_bytes(type);
			const void *list[ARRAYS];
			memcpy(want, in[0], sizeof(want));
			for (unsigned a = 0; a < arrays; a++) {
				list[a] = in[a];
				for (size_t i = 0; a > 0 && i < count; i++) {
					add_one((enum weft_type)type, (uint8_t *)want + i * each,
						(const uint8_t *)in[a] + i * each);
				}
			}
			for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
				const struct wf_kernels *k = wf_kernels_by_name(forms[f]);
				if (k != NULL) {
					memset(out, 0xa5, sizeof(out));
					wf_typed_sum(k, (enum weft_type)type, out, list, arrays,
						     count);
					compare((enum weft_type)type, count);
				}
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_have_names_and_sizes),
		cmocka_unit_test(known_sums_are_what_they_should_be),
		cmocka_unit_test(each_form_has_the_bits_of_adding_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
