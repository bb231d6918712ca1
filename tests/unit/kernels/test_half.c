/* SPDX-License-Identifier: Apache-2.0 */
/* Values in 16 bits: every one of them, and what lies between any two neighbours; and that every
 * form has the bits of the definition. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

#define ALL 65536u
#define DRAWN 400000u
#define WITHOUT_SIGN 0x7fffu

static const char *const forms[] = {"ref", "avx2", "avx512"};

struct format {
	enum weft_value_format rest;
	uint16_t infinity;
	float (*widen)(uint16_t half);
	uint16_t (*narrow)(float x);
};

static const struct format formats[] = {
	{WEFT_VALUES_BF16, 0x7f80, wf_f32_of_bf16, wf_bf16_of},
	{WEFT_VALUES_F16, 0x7c00, wf_f32_of_f16, wf_f16_of},
};

static float widened[ALL + 17], narrowed_from[DRAWN];
static uint16_t halves[ALL], out[DRAWN + 33], want[DRAWN];

static void
known_values_are_what_the_standard_says(void **state)
{
	(void)state;
	assert_int_equal(wf_f16_of(1.0f), 0x3c00);
	assert_int_equal(wf_f16_of(-2.0f), 0xc000);
	assert_int_equal(wf_f16_of(65504.0f), 0x7bff);
	assert_int_equal(wf_f16_of(65519.996f), 0x7bff);
	assert_int_equal(wf_f16_of(65520.0f), 0x7c00);
	assert_int_equal(wf_f16_of(0x1p-14f), 0x0400);
	assert_int_equal(wf_f16_of(0x1p-24f), 0x0001);
	assert_int_equal(wf_f16_of(0x1p-25f), 0x0000);
	assert_int_equal(wf_f16_of(0x1.000002p-25f), 0x0001);
	assert_int_equal(wf_f16_of(-0x1p-26f), 0x8000);
	assert_int_equal(wf_f16_of(0.1f), 0x2e66);
	assert_int_equal(wf_f16_of(__builtin_inff()), 0x7c00);
	assert_int_equal(wf_bf16_of(1.0f), 0x3f80);
	assert_int_equal(wf_bf16_of(0x1.01p0f), 0x3f80); /* half way: to even */
	assert_int_equal(wf_bf16_of(0x1.03p0f), 0x3f82);
	assert_int_equal(wf_bf16_of(0x1.fffffep127f), 0x7f80);
	assert_int_equal(wf_bf16_of(0x1p-149f), 0x0000);
	assert_true(wf_f32_of_f16(0x3555) > 0.333f && wf_f32_of_f16(0x3555) < 0.3334f);
}

static void
each_value_comes_back_as_itself(void **state)
{
	(void)state;
	for (size_t f = 0; f < 2; f++) {
		for (uint32_t half = 0; half < ALL; half++) {
			float x = formats[f].widen((uint16_t)half);
			uint16_t back = formats[f].narrow(x);
			bool is_nan = (half & WITHOUT_SIGN) > formats[f].infinity;
			if (is_nan) { /* made quiet */
				assert_true(x != x);
				assert_true((back & WITHOUT_SIGN) > formats[f].infinity);
			} else {
				assert_int_equal(back, half);
			}
		}
	}
}

/* The middle of two neighbours goes to the even one, what is a little off to the nearer. */
static void
what_lies_between_two_goes_to_the_nearer_and_ties_to_even(void **state)
{
	(void)state;
	for (size_t f = 0; f < 2; f++) {
		for (uint16_t low = 0; low + 1 < formats[f].infinity; low++) {
			double a = (double)formats[f].widen(low);
			double b = (double)formats[f].widen((uint16_t)(low + 1));
			float middle = (float)((a + b) / 2);
			if ((double)middle < (a + b) / 2 || (double)middle > (a + b) / 2) {
				continue; /* below what f32 can say */
			}
			uint32_t bits = wf_f32_bits(middle);
			uint16_t even = low % 2 == 0 ? low : (uint16_t)(low + 1);
			assert_int_equal(formats[f].narrow(middle), even);
			assert_int_equal(formats[f].narrow(wf_f32_of_bits(bits - 1)), low);
			assert_int_equal(formats[f].narrow(wf_f32_of_bits(bits + 1)), low + 1);
			assert_int_equal(formats[f].narrow(-middle), 0x8000u | even);
		}
	}
}

static void
every_form_widens_as_the_definition(void **state)
{
	(void)state;
	for (uint32_t half = 0; half < ALL; half++) {
		halves[half] = (uint16_t)half;
	}
	for (size_t n = 0; n < 6; n++) {
		const struct format *format = &formats[n % 2];
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[n / 2]);
		for (size_t cut = 0; kernels != NULL && cut < 17; cut++) {
			widened[ALL - cut] = 77.0f;
			kernels->rows->half[format->rest].widen(widened, halves, ALL - cut);
			assert_true(cut == 0 || widened[ALL - cut] == 77.0f);
			for (uint32_t half = 0; half < ALL - cut; half++) {
				assert_int_equal(wf_f32_bits(widened[half]),
						 wf_f32_bits(format->widen((uint16_t)half)));
			}
		}
	}
}

static void
every_form_narrows_as_the_definition(void **state)
{
	struct wf_rng rng;

	(void)state;
	wf_rng_init(&rng, 16, 0); /* always the same: all exponents, many ties */
	for (size_t i = 0; i < DRAWN; i++) {
		uint32_t bits = (uint32_t)wf_rng_u64(&rng);
		bits &= (uint32_t[]){UINT32_MAX, 0xfffff000u, 0xffff8000u, 0xfffffffcu}[i % 4];
		if (i % 3 == 0) { /* about what f16 has */
			bits = (bits & 0x83ffffffu) + (0x66u << 23);
		}
		narrowed_from[i] = wf_f32_of_bits(bits);
	}
	for (size_t n = 0; n < 6; n++) {
		const struct format *format = &formats[n % 2];
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[n / 2]);
		const size_t count = DRAWN - n;
		if (kernels == NULL) {
			continue;
		}
		for (size_t i = 0; i < count; i++) {
			want[i] = format->narrow(narrowed_from[i]);
		}
		out[count] = 0x7777;
		kernels->rows->half[format->rest].narrow(out, narrowed_from, count);
		assert_memory_equal(out, want, count * sizeof(*out));
		assert_int_equal(out[count], 0x7777);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_values_are_what_the_standard_says),
		cmocka_unit_test(each_value_comes_back_as_itself),
		cmocka_unit_test(what_lies_between_two_goes_to_the_nearer_and_ties_to_even),
		cmocka_unit_test(every_form_widens_as_the_definition),
		cmocka_unit_test(every_form_narrows_as_the_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
