/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of kernels/halves: gradients and values in 16 bits. WEFT_SEED chooses other cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/half.h"
#include "kernels/halves.h"
#include "kernels/norm.h"

#define MAX_COUNT 5000
#define GRADS 5
#define CASES 40

static const char *const forms[] = {"ref", "avx2", "avx512"};
static const enum weft_value_format formats[] = {WEFT_VALUES_BF16, WEFT_VALUES_F16};

static uint64_t seed = 1;
static uint16_t grad[GRADS][MAX_COUNT + 8];
static float widened[GRADS][MAX_COUNT];
static float param[2][MAX_COUNT], state[2][2][MAX_COUNT], sum[MAX_COUNT];
static uint16_t value[2][MAX_COUNT];

static float
widen(enum weft_value_format form, uint16_t half)
{
	return form == WEFT_VALUES_BF16 ? wf_f32_of_bf16(half) : wf_f32_of_f16(half);
}

static uint16_t
narrow(enum weft_value_format form, float x)
{
	return form == WEFT_VALUES_BF16 ? wf_bf16_of(x) : wf_f16_of(x);
}

/* Gradients of any bits now and then, at addresses of any alignment. */
struct setup {
	enum weft_value_format form;
	size_t count;
	unsigned grad_count;
	const uint16_t *grad[GRADS];
	const float *widened[GRADS];
};

static struct setup
draw_setup(struct wf_rng *rng)
{
	struct setup s = {.form = formats[wf_rng_below(rng, 2)]};
	bool any = wf_rng_below(rng, 4) == 0;
	bool is_small = wf_rng_below(rng, 2) == 0;
	s.count = wf_rng_below(rng, is_small ? 40 : MAX_COUNT + 1);
	s.grad_count = 1 + (unsigned)wf_rng_below(rng, GRADS);
	for (unsigned n = 0; n < s.grad_count; n++) {
		size_t offset = wf_rng_below(rng, 8);
		for (size_t i = 0; i < s.count; i++) {
			float ordinary = (float)(wf_rng_f64(rng) * 2.0 - 1.0);
			uint16_t half = any ? (uint16_t)wf_rng_u64(rng) : narrow(s.form, ordinary);
			grad[n][offset + i] = half;
			widened[n][i] = widen(s.form, half);
		}
		s.grad[n] = grad[n] + offset;
		s.widened[n] = widened[n];
	}
	for (size_t i = 0; i < s.count; i++) {
		param[0][i] = (float)wf_rng_f64(rng);
		state[0][0][i] = (float)wf_rng_f64(rng);
		state[0][1][i] = (float)wf_rng_f64(rng);
	}
	memcpy(param[1], param[0], sizeof(param[0]));
	memcpy(state[1], state[0], sizeof(state[0]));
	return s;
}

static struct wf_apply
adam(unsigned side, const struct setup *s)
{
	const struct wf_optimizer_opts opts = {
		.method = {.kind = WF_ADAM},
		.set = {.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6},
	};
	struct wf_apply apply = {
		.param = param[side],
		.state = {state[side][0], state[side][1]},
		.grad = s->widened,
		.grad_count = s->grad_count,
		.count = s->count,
		.divisor = 3,
		.clip = 0.5f,
	};
	wf_apply_scalars(&opts, 0.1, 7, &apply);
	return apply;
}

static void
check_case(const struct wf_kernels *kernels, const struct setup *s)
{
	struct wf_apply by_f32 = adam(0, s);
	struct wf_apply by_halves = adam(1, s);
	by_halves.grad = NULL;
	const struct wf_halves halves = {
		.form = s->form, .grad = s->grad, .grad_count = s->grad_count, .value = value[1]};
	size_t bad = wf_kernels_ref()->apply[WF_ADAM](&by_f32);

	assert_true(wf_halves_apply(kernels, WF_ADAM, &by_halves, &halves) == bad);
	assert_memory_equal(param[0], param[1], s->count * sizeof(float));
	assert_memory_equal(state[0][0], state[1][0], s->count * sizeof(float));
	assert_memory_equal(state[0][1], state[1][1], s->count * sizeof(float));
	for (size_t i = 0; i < s->count; i++) {
		value[0][i] = narrow(s->form, param[0][i]);
	}
	assert_memory_equal(value[0], value[1], s->count * sizeof(uint16_t));
	assert_true(wf_halves_squares(kernels, &halves, s->count) ==
		    wf_norm_squares(s->widened, s->grad_count, s->count));
	size_t nonfinite = wf_kernels_ref()->count_nonfinite(s->widened[0], s->count);
	assert_true(wf_halves_count_nonfinite(s->form, s->grad[0], s->count) == nonfinite);
}

static void
halves_are_applied_as_what_they_widen_to(void **unused)
{
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f]);
		struct wf_rng rng;
		wf_rng_init(&rng, seed, 0);
		for (unsigned i = 0; i < CASES && kernels != NULL; i++) {
			const struct setup s = draw_setup(&rng);
			check_case(kernels, &s);
		}
	}
}

/* The sum alone, from an element on, as every form has it. */
static void
a_sum_widens_first_and_adds_in_order(void **unused)
{
	const uint16_t one[] = {narrow(WEFT_VALUES_F16, 1.0f), narrow(WEFT_VALUES_F16, 65504.0f)};
	const uint16_t two[] = {narrow(WEFT_VALUES_F16, 0.25f), narrow(WEFT_VALUES_F16, 65504.0f)};
	const uint16_t *const both[] = {one, two};
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f]);
		if (kernels != NULL) {
			kernels->sum_half[WEFT_VALUES_F16](sum, both, 2, 1, 1);
			assert_true(sum[0] == 131008.0f); /* more than f16 has */
			kernels->sum_half[WEFT_VALUES_F16](sum, both, 2, 0, 2);
			assert_true(sum[0] == 1.25f && sum[1] == 131008.0f);
		}
	}
}

static void
overflows_are_what_was_finite(void **unused)
{
	const float in[] = {1,    65519.9f, 65520, -70000, __builtin_inff(), __builtin_nanf(""),
			    3e38f};
	uint16_t half[WF_ARRAY_COUNT(in)];
	for (size_t i = 0; i < WF_ARRAY_COUNT(in); i++) {
		half[i] = wf_f16_of(in[i]);
	}
	assert_int_equal(wf_halves_count_nonfinite(WEFT_VALUES_F16, half, WF_ARRAY_COUNT(in)), 5);
	assert_int_equal(wf_halves_overflows(wf_kernels_ref(), WEFT_VALUES_F16, half, in,
					     WF_ARRAY_COUNT(in)),
			 3);
}

/* What chance decides between: the neighbours of x, or x. */
static void
check_drawn(enum weft_value_format form, float x, uint16_t drawn)
{
	float got = widen(form, drawn);
	if (x != x) {
		assert_true(got != got);
		return;
	}
	float above = widen(form, (uint16_t)(drawn + 1)),
	      below = widen(form, (uint16_t)(drawn - 1));
	if ((drawn & 0x7fffu) == 0) {
		assert_true(x <= widen(form, 1) && x >= -widen(form, 1));
	} else if (got != x) {
		bool inside = x > 0 ? x > below && x < above : x < below && x > above;
		assert_true(inside || got - got != 0); /* infinite: it was too large */
	}
}

static void
chance_takes_a_neighbour_and_leaves_alone_what_is_one(void **unused)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 1);
	for (unsigned i = 0; i < 200000; i++) {
		enum weft_value_format form = formats[i % 2];
		float x = wf_f32_of_bits((uint32_t)wf_rng_u64(&rng));
		uint32_t chance = (uint32_t)wf_rng_u64(&rng);
		uint16_t half =
			form == WEFT_VALUES_BF16 ? wf_bf16_by(x, chance) : wf_f16_by(x, chance);
		check_drawn(form, x, half);
		uint16_t any = (uint16_t)(x == x ? half : 0);
		float exact = widen(form, any);
		assert_int_equal(form == WEFT_VALUES_BF16 ? wf_bf16_by(exact, chance)
							  : wf_f16_by(exact, chance),
				 any);
	}
}

/* Of n draws between 0 and 1 units the mean is within 5 standard deviations, at most half a unit /
 * sqrt(n) each. */
static void
the_mean_of_many_draws_is_the_gradient(void **unused)
{
	static const float in[4] = {1.0009765625f, -3e-6f, 0x1.5p-26f, 300.3f};
	const unsigned draws = 20000;
	for (size_t f = 0; f < WF_ARRAY_COUNT(formats); f++) {
		double mean[4] = {0};
		for (unsigned step = 1; step <= draws; step++) {
			const struct wf_halves_draw draw = {.form = formats[f],
							    .in = in,
							    .count = 4,
							    .seed = seed,
							    .step = step};
			uint16_t out[4];
			wf_halves_draw(wf_kernels_ref(), &draw, out);
			for (unsigned i = 0; i < 4; i++) {
				mean[i] += (double)widen(formats[f], out[i]) / draws;
			}
		}
		for (unsigned i = 0; i < 4; i++) {
			uint16_t near = narrow(formats[f], in[i]);
			double unit = fabs((double)widen(formats[f], (uint16_t)(near + 1)) -
					   (double)widen(formats[f], near));
			assert_true(fabs(mean[i] - (double)in[i]) < 2.5 * unit / sqrt(draws));
		}
	}
}

#define DRAWN 1000u

/* Specials among them. */
static void
fill_drawn(float in[DRAWN])
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 2);
	for (size_t i = 0; i < DRAWN; i++) {
		uint32_t bits = (uint32_t)wf_rng_u64(&rng);
		bits = i % 16 == 0 ? bits | 0x7f800000u : bits;
		bits = i % 64 == 0 ? bits & 0xff800000u : bits;
		in[i] = i % 3 == 0 ? wf_f32_of_bits(bits) : 1.0f + (float)i * 1e-4f;
	}
}

#define NOT_DRAWN 0x7fffu /* a quiet NaN that no input becomes */

/* In one go, or in parts that begin anywhere, and whatever the form of the kernels. */
static void
draws_depend_on_their_place_alone(void **unused)
{
	static float in[DRAWN];
	static uint16_t all[DRAWN], part[DRAWN + 1];
	fill_drawn(in);
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms) * WF_ARRAY_COUNT(formats); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f / 2]);
		struct wf_halves_draw draw = {.form = formats[f % 2],
					      .in = in,
					      .count = DRAWN,
					      .seed = seed,
					      .trainer = 3,
					      .tensor = 5,
					      .step = 9,
					      .first = (1ull << 34) - 128};
		wf_halves_draw(wf_kernels_ref(), &draw, all);
		for (size_t at = 0; at < DRAWN && kernels != NULL; at += draw.count) {
			draw.in = in + at;
			draw.first = (1ull << 34) - 128 + at;
			draw.count = DRAWN - at < 333 ? DRAWN - at : 333;
			part[at + draw.count] = NOT_DRAWN;
			wf_halves_draw(kernels, &draw, part + at);
			assert_int_equal(part[at + draw.count], NOT_DRAWN); /* not beyond the end */
		}
		if (kernels != NULL) {
			assert_memory_equal(all, part, sizeof(all));
		}
	}
}

static void
other_seeds_trainers_tensors_and_steps_draw_otherwise(void **unused)
{
	static float in[DRAWN];
	static uint16_t all[DRAWN], other[DRAWN];
	fill_drawn(in);
	struct wf_halves_draw draw = {
		.form = WEFT_VALUES_BF16, .in = in, .count = DRAWN, .seed = seed};
	wf_halves_draw(wf_kernels_best(), &draw, all);
	struct wf_halves_draw changed[] = {draw, draw, draw, draw, draw};
	changed[0].seed++;
	changed[1].trainer++;
	changed[2].tensor++;
	changed[3].step++;
	changed[4].first += 64;
	for (size_t i = 0; i < WF_ARRAY_COUNT(changed); i++) {
		wf_halves_draw(wf_kernels_best(), &changed[i], other);
		assert_memory_not_equal(all, other, sizeof(all));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_are_applied_as_what_they_widen_to),
		cmocka_unit_test(a_sum_widens_first_and_adds_in_order),
		cmocka_unit_test(overflows_are_what_was_finite),
		cmocka_unit_test(chance_takes_a_neighbour_and_leaves_alone_what_is_one),
		cmocka_unit_test(the_mean_of_many_draws_is_the_gradient),
		cmocka_unit_test(draws_depend_on_their_place_alone),
		cmocka_unit_test(other_seeds_trainers_tensors_and_steps_draw_otherwise),
	};
	const char *given = getenv("WEFT_SEED");
	seed = given != NULL ? strtoull(given, NULL, 0) : 1;
	printf("WEFT_SEED=%" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
