/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of the kernels gives the bits of ref.c, whatever the sizes, the addresses, the
 * settings and the values; and ref.c gives the same bits in every build. Which NaN a NaN is does
 * not count. WEFT_SEED chooses other cases. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "tests/support/sweep.h"

#define CASES 1500
#define GOLDEN_CASES 120
#define MAX_COUNT 5000
#define MAX_GRADS 9
#define OFFSETS 16 /* of an address, in f32: all there are in the widest vector */
#define MARGIN 32  /* f32 before and after an array, which nobody may touch */
#define ROOM (MARGIN + OFFSETS + MAX_COUNT + MARGIN)

static const char *const wide_forms[] = {"avx2", "avx512"};

/* Everything a call may write, twice: by ref and by the form under test. */
struct arrays {
	float param[ROOM], state[WF_STATE_MAX][ROOM], out[ROOM];
	_Alignas(64) float copy[ROOM]; /* a line of its own: offset 0 begins one */
};

static struct arrays ref_side;
static struct arrays form_side;
static float grad[MAX_GRADS][ROOM];
static uint64_t seed;
static unsigned current_case;

/* A case; pointers begin `offset` f32 behind a margin. */
struct setup {
	enum wf_optimizer kind;
	unsigned grad_count;
	size_t count;
	size_t offset[MAX_GRADS + 4];
	size_t copy_offset;
	bool copies;
	struct wf_apply apply; /* scalars only */
};

static float
from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static const uint32_t special_bits[] = {
	0x00000000, 0x80000000,                         /* zeros */
	0x7f800000, 0xff800000,                         /* infinities */
	0x7fc00000, 0xffc00001, 0x7f800001, 0xffabcdef, /* NaN, quiet and signalling */
	0x00000001, 0x80000001, 0x007fffff, 0x00400000, /* subnormal */
	0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, /* least and largest normal */
	0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, /* around one */
	0x42b17218, 0xc2aeac50, 0x7e800000, 0x1e000000, /* limits of exp; roots and squares */
};

/* How the values of an array are drawn. */
enum values { ORDINARY, SMALL, HUGE_ONES, ANY_BITS, SPECIAL, MIXED, VALUES_COUNT };

static float
draw(struct wf_rng *rng, enum values values)
{
	float ordinary = (float)(wf_rng_f64(rng) * 2.0 - 1.0);

	switch (values) {
	case ORDINARY:
		return ordinary;
	case SMALL:
		return ordinary * 0x1p-126f;
	case HUGE_ONES:
		return ordinary * 0x1p127f;
	case ANY_BITS:
		return from_bits((uint32_t)wf_rng_u64(rng));
	case SPECIAL:
		return from_bits(special_bits[wf_rng_below(rng, WF_ARRAY_COUNT(special_bits))]);
	case MIXED:
	case VALUES_COUNT:
		break;
	}
	return draw(rng, (enum values)wf_rng_below(rng, MIXED));
}

/* All of the array, margins too. Half of all arrays are ordinary throughout. */
static void
draw_array(struct wf_rng *rng, float *array)
{
	enum values values = ORDINARY;
	if (wf_rng_below(rng, 2) == 0) {
		values = (enum values)wf_rng_below(rng, VALUES_COUNT);
	}
	for (size_t i = 0; i < ROOM; i++) {
		array[i] = draw(rng, values);
	}
}

/* Small numbers often, up to MAX_COUNT. */
static size_t
draw_count(struct wf_rng *rng)
{
	switch (wf_rng_below(rng, 4)) {
	case 0:
		return wf_rng_below(rng, 18);
	case 1:
		return wf_rng_below(rng, 300);
	default:
		return wf_rng_below(rng, MAX_COUNT + 1);
	}
}

/* Divisors around those that have an exact reciprocal. */
static const float powers[] = {
	0x1p0f,   0x1p1f,   0x1p7f,        0x1p23f,        0x1p125f,        0x1p126f,
	0x1p127f, 0x1.8p0f, 0x1.000002p1f, 0x1.fffffep63f, 0x1.fffffep126f, 0x1.fffffep127f,
};

/* A scalar that is mostly what a job would give. */
static float
draw_scalar(struct wf_rng *rng, float usual)
{
	switch (wf_rng_below(rng, 8)) {
	case 0:
		return 0.0f;
	case 1:
		return draw(rng, MIXED);
	default:
		return usual * (float)wf_rng_f64(rng);
	}
}

/* One draw a statement: C leaves the order within an initialiser open. */
static struct setup
draw_setup(struct wf_rng *rng)
{
	struct setup setup = {0};
	struct wf_apply *apply = &setup.apply;

	setup.kind = (enum wf_optimizer)wf_rng_below(rng, WF_OPTIMIZER_COUNT);
	setup.grad_count = 1 + (unsigned)wf_rng_below(rng, MAX_GRADS);
	setup.count = draw_count(rng);
	for (size_t i = 0; i < WF_ARRAY_COUNT(setup.offset); i++) {
		setup.offset[i] = MARGIN + wf_rng_below(rng, OFFSETS);
	}
	bool clip = wf_rng_below(rng, 2) == 0;
	bool decay = wf_rng_below(rng, 2) == 0;
	bool mean = wf_rng_below(rng, 2) == 0;
	apply->divisor = mean ? (float)(1 + wf_rng_below(rng, 1000)) : 1.0f;
	apply->clip = clip ? draw_scalar(rng, 1.0f) : 0.0f;
	apply->rate = draw_scalar(rng, 0.1f);
	apply->plain_rate = draw_scalar(rng, 0.1f);
	apply->decay = decay ? draw_scalar(rng, 0.01f) : 0.0f;
	apply->momentum = draw_scalar(rng, 1.0f);
	apply->beta1 = draw_scalar(rng, 1.0f);
	apply->beta2 = draw_scalar(rng, 1.0f);
	apply->epsilon = draw_scalar(rng, 1e-6f);
	apply->rho = draw_scalar(rng, 1.0f);
	apply->square_share = draw_scalar(rng, 1.0f);
	apply->torch.rest1 = draw_scalar(rng, 1.0f);
	apply->torch.rest2 = draw_scalar(rng, 1.0f);
	apply->torch.carried = draw_scalar(rng, 1.0f);
	apply->torch.fresh = draw_scalar(rng, 1.0f);
	apply->torch.direct = draw_scalar(rng, 1.0f);
	apply->torch.onward = draw_scalar(rng, 1.0f);
	apply->torch.root_share = draw_scalar(rng, 1.0f);
	bool l1 = wf_rng_below(rng, 2) == 0;
	apply->l1 = l1 ? draw_scalar(rng, 1.0f) : 0.0f;
	return setup;
}

/* What came later, and is no part of the golden number. */
static void
draw_rest(struct wf_rng *rng, struct setup *setup)
{
	struct wf_apply *apply = &setup->apply;
	const float power = powers[wf_rng_below(rng, WF_ARRAY_COUNT(powers))];
	apply->divisor = wf_rng_below(rng, 4) == 0 ? power : apply->divisor;
	apply->is_far = wf_rng_below(rng, 2) == 0;
	apply->copy_past = wf_rng_below(rng, 2) == 0;
	setup->copies = wf_rng_below(rng, 2) == 0;
	setup->copy_offset = MARGIN + wf_rng_below(rng, OFFSETS);
	setup->grad_count = wf_rng_below(rng, 4) == 0 ? 1 : setup->grad_count;
}

static void
draw_arrays(struct wf_rng *rng)
{
	for (unsigned n = 0; n < MAX_GRADS; n++) {
		draw_array(rng, grad[n]);
	}
	draw_array(rng, ref_side.param);
	draw_array(rng, ref_side.state[0]);
	draw_array(rng, ref_side.state[1]);
	draw_array(rng, ref_side.out);
	form_side = ref_side;
}

static bool
same(float a, float b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b);
}

static void
expect_same(const char *what, const struct setup *setup, const float *want, const float *got)
{
	for (size_t i = 0; i < ROOM; i++) {
		if (!same(want[i], got[i])) {
			fail_msg("WEFT_SEED=%" PRIu64 " case %u: %s[%td] is %a, ref has %a; count "
				 "%zu, grad_count %u, kind %s",
				 seed, current_case, what, (ptrdiff_t)i - MARGIN, (double)got[i],
				 (double)want[i], setup->count, setup->grad_count,
				 wf_optimizer_name(setup->kind));
		}
	}
}

static void
expect_equal(const char *what, size_t want, size_t got)
{
	if (want != got) {
		fail_msg("WEFT_SEED=%" PRIu64 " case %u: %s is %zu, ref has %zu", seed,
			 current_case, what, got, want);
	}
}

static size_t
run_apply(const struct wf_kernels *kernels, const struct setup *setup, struct arrays *side)
{
	const float *grads[MAX_GRADS];
	for (unsigned n = 0; n < setup->grad_count; n++) {
		grads[n] = grad[n] + setup->offset[n];
	}
	struct wf_apply apply = setup->apply;
	apply.param = side->param + setup->offset[MAX_GRADS];
	apply.state[0] = side->state[0] + setup->offset[MAX_GRADS + 1];
	apply.state[1] = side->state[1] + setup->offset[MAX_GRADS + 2];
	apply.copy = setup->copies ? side->copy + setup->copy_offset : NULL;
	apply.grad = grads;
	apply.grad_count = setup->grad_count;
	apply.count = setup->count;
	return kernels->apply[setup->kind](&apply);
}

/* Sums into `out`, or into out as the first input. */
static void
run_sum(const struct wf_kernels *kernels, const struct setup *setup, struct arrays *side)
{
	const float *in[MAX_GRADS];
	float *out = side->out + setup->offset[MAX_GRADS + 3];
	for (unsigned n = 0; n < setup->grad_count; n++) {
		in[n] = grad[n] + setup->offset[n];
	}
	if (current_case % 2 == 0) {
		in[0] = out;
	}
	kernels->sum(out, in, setup->grad_count, setup->count);
}

/* The parameters after the pass, whatever was skipped; without one nothing is written. */
static void
expect_copy(const struct setup *setup, const struct arrays *side)
{
	const float *param = side->param + setup->offset[MAX_GRADS];
	const float *copy = side->copy + setup->copy_offset;
	for (size_t i = 0; setup->copies && i < setup->count; i++) {
		if (!same(param[i], copy[i])) {
			fail_msg("WEFT_SEED=%" PRIu64 " case %u: copy[%zu] is %a, the parameter %a",
				 seed, current_case, i, (double)copy[i], (double)param[i]);
		}
	}
}

static void
compare_apply(const struct wf_kernels *form, const struct setup *setup)
{
	size_t want = run_apply(wf_kernels_ref(), setup, &ref_side);
	size_t got = run_apply(form, setup, &form_side);
	expect_equal("what apply skipped", want, got);
	expect_same("param", setup, ref_side.param, form_side.param);
	expect_same("copy", setup, ref_side.copy, form_side.copy);
	expect_copy(setup, &ref_side);
	expect_same("state 0", setup, ref_side.state[0], form_side.state[0]);
	expect_same("state 1", setup, ref_side.state[1], form_side.state[1]);
}

static void
compare_sum(const struct wf_kernels *form, const struct setup *setup)
{
	run_sum(wf_kernels_ref(), setup, &ref_side);
	run_sum(form, setup, &form_side);
	expect_same("sum", setup, ref_side.out, form_side.out);
}

static void
run_mean(const struct wf_kernels *kernels, const struct setup *setup, struct arrays *side)
{
	const float *in[MAX_GRADS];
	for (unsigned n = 0; n < setup->grad_count; n++) {
		in[n] = grad[n] + setup->offset[n];
	}
	kernels->mean(side->out + setup->offset[MAX_GRADS + 3], in, setup->grad_count,
		      (float)(1 + current_case % 9), setup->count);
}

static void
compare_mean(const struct wf_kernels *form, const struct setup *setup)
{
	run_mean(wf_kernels_ref(), setup, &ref_side);
	run_mean(form, setup, &form_side);
	expect_same("mean", setup, ref_side.out, form_side.out);
}

static void
compare_maps(const struct wf_kernels *form, const struct setup *setup)
{
	const struct wf_kernels *ref = wf_kernels_ref();
	const float *in = grad[0] + setup->offset[0];
	float *want = ref_side.out + setup->offset[MAX_GRADS + 3];
	float *got = form_side.out + setup->offset[MAX_GRADS + 3];

	expect_equal("count_nonfinite", ref->count_nonfinite(in, setup->count),
		     form->count_nonfinite(in, setup->count));
	ref->exp_f32(want, in, setup->count);
	form->exp_f32(got, in, setup->count);
	expect_same("exp", setup, ref_side.out, form_side.out);
	ref->log_f32(want, want, setup->count); /* in place */
	form->log_f32(got, got, setup->count);
	expect_same("log(exp)", setup, ref_side.out, form_side.out);
	ref->log_f32(want, in, setup->count);
	form->log_f32(got, in, setup->count);
	expect_same("log", setup, ref_side.out, form_side.out);
}

/* Mostly zeros of either sign and numbers around one; one of 256 is special or huge. */
static void
draw_signs(struct wf_rng *rng, float *array)
{
	const float common[] = {0.0f, -0.0f, 0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f};
	for (size_t i = 0; i < ROOM; i++) {
		array[i] = common[wf_rng_below(rng, WF_ARRAY_COUNT(common))];
		if (wf_rng_below(rng, 256) == 0) {
			array[i] = draw(rng, wf_rng_below(rng, 2) == 0 ? SPECIAL : HUGE_ONES);
		}
	}
}

/* For a step of SGD that neither clips nor divides, which wide forms make of whole blocks. */
static void
make_plain(struct wf_rng *rng, struct setup *setup)
{
	struct wf_apply *apply = &setup->apply;
	setup->kind = WF_SGD;
	setup->grad_count = 1u << wf_rng_below(rng, 3);
	apply->divisor = 1.0f;
	apply->clip = 0.0f;
	apply->l1 = 0.0f;
	switch (wf_rng_below(rng, 4)) {
	case 0:
		apply->decay = -0.0f;
		break;
	case 1:
		apply->decay = 0.01f;
		break;
	default:
		apply->decay = 0.0f;
	}
	if (wf_rng_below(rng, 2) == 0) {
		for (unsigned n = 0; n < MAX_GRADS; n++) {
			draw_signs(rng, grad[n]);
		}
		draw_signs(rng, ref_side.param);
		form_side = ref_side;
	}
}

static void
compare_plain(const struct wf_kernels *form, const struct setup *drawn)
{
	struct setup setup = *drawn;
	struct wf_rng rng;
	wf_rng_init(&rng, seed + 1, current_case);
	make_plain(&rng, &setup);
	compare_apply(form, &setup);
}

static void
compare_all(void (*compare)(const struct wf_kernels *form, const struct setup *setup))
{
	for (size_t f = 0; f < WF_ARRAY_COUNT(wide_forms); f++) {
		const struct wf_kernels *form = wf_kernels_by_name(wide_forms[f]);
		if (form == NULL) {
			print_message("form %s is not offered here\n", wide_forms[f]);
			continue;
		}
		unsigned end;
		for (wf_sweep_cases(CASES, &current_case, &end); current_case < end;
		     current_case++) {
			struct wf_rng rng;
			wf_rng_init(&rng, seed, current_case);
			struct setup setup = draw_setup(&rng);
			draw_arrays(&rng);
			draw_rest(&rng, &setup);
			compare(form, &setup);
		}
	}
}

static void
every_form_applies_as_ref_does(void **state)
{
	compare_all(compare_apply);
}

static void
every_form_makes_a_plain_step_of_sgd_as_ref_does(void **state)
{
	compare_all(compare_plain);
}

static void
every_form_sums_as_ref_does(void **state)
{
	compare_all(compare_sum);
}

static void
every_form_takes_means_as_ref_does(void **state)
{
	compare_all(compare_mean);
}

static void
every_form_counts_and_takes_exp_and_log_as_ref_does(void **state)
{
	compare_all(compare_maps);
}

/* All 2^23 fractions of one exponent, and each exponent at 2,048 fractions. */
static void
compare_exponents_and_fractions(const struct wf_kernels *form)
{
	enum { AT_ONCE = 4096 };
	const struct wf_kernels *ref = wf_kernels_ref();
	static float in[AT_ONCE];
	static float want[2][AT_ONCE];
	static float got[2][AT_ONCE];

	for (uint32_t block = 0; block < 2048 + 256; block++) {
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			uint32_t dense = 0x3f800000 + block * AT_ONCE + i;
			uint32_t sparse = (block - 2048) << 24 | i << 12 | i;
			in[i] = from_bits(block < 2048 ? dense : sparse);
		}
		ref->exp_f32(want[0], in, AT_ONCE);
		ref->log_f32(want[1], in, AT_ONCE);
		form->exp_f32(got[0], in, AT_ONCE);
		form->log_f32(got[1], in, AT_ONCE);
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			if (!same(want[0][i], got[0][i]) || !same(want[1][i], got[1][i])) {
				fail_msg("exp or log of %a: %s differs from ref", (double)in[i],
					 form->name);
			}
		}
	}
}

static void
exp_and_log_agree_on_all_exponents_and_all_fractions(void **state)
{
	for (size_t f = 0; f < WF_ARRAY_COUNT(wide_forms); f++) {
		const struct wf_kernels *form = wf_kernels_by_name(wide_forms[f]);
		if (form != NULL) {
			compare_exponents_and_fractions(form);
		}
	}
}

/* FNV-1a over the bits; all NaN count as one. */
static uint64_t
digest(uint64_t hash, const float *array)
{
	for (size_t i = 0; i < ROOM; i++) {
		uint32_t bits = 0x7fc00000;
		if (array[i] == array[i]) {
			memcpy(&bits, &array[i], sizeof(bits));
		}
		for (int byte = 0; byte < 4; byte++) {
			hash = (hash ^ (bits >> 8 * byte & 0xff)) * 0x100000001b3;
		}
	}
	return hash;
}

static uint64_t
digest_of_cases(const struct wf_kernels *kernels)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (current_case = 0; current_case < GOLDEN_CASES; current_case++) {
		struct wf_rng rng;
		wf_rng_init(&rng, 2016, current_case); /* never WEFT_SEED */
		struct setup setup = draw_setup(&rng);
		draw_arrays(&rng);
		(void)run_apply(kernels, &setup, &form_side);
		run_sum(kernels, &setup, &form_side);
		hash = digest(hash, form_side.param);
		hash = digest(hash, form_side.state[0]);
		hash = digest(hash, form_side.state[1]);
		hash = digest(hash, form_side.out);
		kernels->exp_f32(form_side.out, grad[0], ROOM);
		hash = digest(hash, form_side.out);
		kernels->log_f32(form_side.out, grad[0], ROOM);
		hash = digest(hash, form_side.out);
		double scalar = wf_pow_f64(0.999, (double)setup.count) +
				wf_exp_f64((double)setup.apply.rate) +
				wf_log_f64(1.0 + (double)setup.count);
		memcpy(form_side.out, &scalar, sizeof(scalar));
		hash = digest(hash, form_side.out);
	}
	return hash;
}

/* Computed once with gcc 12 at -O2; gcc and clang, -O0 to -O3, with and without sanitizers agree.
 * Whoever changes a formula changes this number in the same commit, and says so. */
#define GOLDEN_DIGEST 0x50ee2ca43af589e2

static void
the_bits_are_the_same_in_every_build(void **state)
{
	const char *const names[] = {"ref", "avx2", "avx512"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(names); i++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(names[i]);
		uint64_t found = kernels == NULL ? GOLDEN_DIGEST : digest_of_cases(kernels);
		if (found != GOLDEN_DIGEST) {
			fail_msg("%s: digest %#" PRIx64 ", not %#" PRIx64, names[i], found,
				 (uint64_t)GOLDEN_DIGEST);
		}
	}
}

/* An argument is the name of the only test to run; * and ? stand for what they usually do. */
int
main(int argc, char **argv)
{
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	const char *given = getenv("WEFT_SEED");
	seed = given == NULL ? 1 : strtoull(given, NULL, 0);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_applies_as_ref_does),
		cmocka_unit_test(every_form_makes_a_plain_step_of_sgd_as_ref_does),
		cmocka_unit_test(every_form_sums_as_ref_does),
		cmocka_unit_test(every_form_takes_means_as_ref_does),
		cmocka_unit_test(every_form_counts_and_takes_exp_and_log_as_ref_does),
		cmocka_unit_test(exp_and_log_agree_on_all_exponents_and_all_fractions),
		cmocka_unit_test(the_bits_are_the_same_in_every_build),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
