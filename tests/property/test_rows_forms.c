/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of the row kernels gives the bits of rows_ref.c, whatever the sizes, the settings and
 * the values; and these give the same bits in every build. Which NaN a NaN is does not count.
 * WEFT_SEED chooses other cases. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "tests/support/sweep.h"

#define CASES 3000
#define GOLDEN_CASES 300
#define MAX_ROWS 20
#define MAX_GRADS 6 /* of a row */
#define MAX_DIM 300
#define MARGIN 17
#define LINE_BYTES 64 /* of the cache */
#define ROW_ROOM (3 * MAX_DIM + 1 + MARGIN)
#define GRADS (MAX_ROWS * MAX_GRADS)

static const char *const forms[] = {"ref", "avx2", "avx512"};

struct rows {
	float value[MAX_ROWS][ROW_ROOM];
	float gathered[MAX_ROWS * MAX_DIM + MARGIN];
	alignas(LINE_BYTES) float past[MAX_ROWS * MAX_DIM + MARGIN];
	float summed[MAX_ROWS * MAX_DIM + MARGIN];
	float uniform[MAX_ROWS * MAX_DIM + MARGIN];
};

static struct rows ref_side;
static struct rows form_side;
static float grad[GRADS][MAX_DIM];
static uint64_t seed;

struct setup {
	enum wf_row_optimizer kind;
	struct wf_row_scalars scalars;
	size_t count, dim;
	uint32_t first[MAX_ROWS + 1];
	bool one_each;
	struct wf_row_uniform uniform;
	uint64_t key;
	bool has_stamps;
	uint32_t stamp[MAX_ROWS];
};

static float
draw(struct wf_rng *rng, unsigned rare)
{
	static const float special[] = {
		0.0f,       -0.0f,  0x1p-140f, -0x1p-126f,       1.0f,
		0x1.8p127f, -1e30f, 1e-30f,    __builtin_inff(), -__builtin_inff()};
	if (rare > 0 && wf_rng_below(rng, rare) == 0) {
		uint64_t i = wf_rng_below(rng, WF_ARRAY_COUNT(special) + 1);
		return i == WF_ARRAY_COUNT(special) ? __builtin_nanf("") : special[i];
	}
	return (float)(wf_rng_f64(rng) * 2.0 - 1.0);
}

static void
draw_arrays(struct wf_rng *rng)
{
	/* None, some or many that are out of the ordinary. */
	unsigned rare_grad = (unsigned[]){0, 2000, 5}[wf_rng_below(rng, 3)];
	unsigned rare_row = (unsigned[]){0, 2000, 5}[wf_rng_below(rng, 3)];

	for (size_t n = 0; n < GRADS; n++) {
		for (size_t i = 0; i < MAX_DIM; i++) {
			grad[n][i] = draw(rng, rare_grad);
		}
	}
	for (size_t n = 0; n < MAX_ROWS; n++) {
		for (size_t i = 0; i < ROW_ROOM; i++) {
			float x = draw(rng, rare_row);
			/* State is mostly not negative. */
			ref_side.value[n][i] = i >= MAX_DIM && x < 0.0f ? -x : x;
		}
	}
	memset(ref_side.gathered, 0x55, sizeof(ref_side.gathered));
	memset(ref_side.past, 0x55, sizeof(ref_side.past));
	memset(ref_side.summed, 0x55, sizeof(ref_side.summed));
	memset(ref_side.uniform, 0x55, sizeof(ref_side.uniform));
	form_side = ref_side;
}

static float
draw_scalar(struct wf_rng *rng, float usual)
{
	return wf_rng_below(rng, 3) == 0 ? 0.0f : usual * (float)wf_rng_f64(rng);
}

/* One draw a statement: C leaves the order within an initialiser open. */
static struct setup
draw_setup(struct wf_rng *rng)
{
	struct setup setup = {0};
	struct wf_row_scalars *k = &setup.scalars;
	bool plain = wf_rng_below(rng, 2) == 0;

	setup.kind = (enum wf_row_optimizer)wf_rng_below(rng, WF_ROW_OPTIMIZER_COUNT);
	setup.count = wf_rng_below(rng, MAX_ROWS + 1);
	setup.dim = 1 + wf_rng_below(rng, wf_rng_below(rng, 2) == 0 ? 70 : MAX_DIM);
	setup.one_each = wf_rng_below(rng, 3) == 0;
	for (size_t i = 0; i < setup.count; i++) {
		uint64_t grads = setup.one_each ? 1 : 1 + wf_rng_below(rng, MAX_GRADS);
		setup.first[i + 1] = setup.first[i] + (uint32_t)grads;
	}
	setup.uniform.seed = wf_rng_u64(rng);
	setup.uniform.table = (uint32_t)wf_rng_u64(rng);
	setup.uniform.low = draw(rng, 0);
	setup.uniform.span = draw(rng, 0);
	setup.key = wf_rng_u64(rng);
	k->divisor = 1.0f;
	k->shrink = 1.0f;
	k->rate = 0.01f + draw_scalar(rng, 0.1f);
	k->momentum = draw_scalar(rng, 1.0f);
	k->beta1 = draw_scalar(rng, 1.0f);
	k->beta2 = draw_scalar(rng, 1.0f);
	k->rho = draw_scalar(rng, 1.0f);
	k->epsilon = draw_scalar(rng, 1e-6f);
	k->l1 = draw_scalar(rng, 0.5f);
	k->l2 = draw_scalar(rng, 0.5f);
	k->square_share = draw_scalar(rng, 1.0f);
	setup.has_stamps = wf_rng_below(rng, 2) == 0;
	for (size_t i = 0; i < setup.count; i++) {
		setup.stamp[i] = (uint32_t)wf_rng_below(rng, 3);
	}
	k->l21 = draw_scalar(rng, 0.5f);
	k->ftrl_beta = draw_scalar(rng, 1.0f);
	if (!plain) {
		k->divisor = (float)(1 + wf_rng_below(rng, 100));
		k->clip = draw_scalar(rng, 1.0f);
		k->decay = draw_scalar(rng, 0.1f);
		k->drop = draw_scalar(rng, 0.1f);
		k->shrink = 1.0f - draw_scalar(rng, 0.1f);
	}
	return setup;
}

/* Rows that first values are drawn for: at least one. */
static size_t
draws_of(const struct setup *setup)
{
	return setup->count == 0 ? 1 : setup->count;
}

/* Sums the gradients of the rows in another order than they lie in. */
static void
run_sum(const struct wf_kernels *kernels, const struct setup *setup, float *out)
{
	uint32_t place[GRADS];
	const struct wf_row_sums sums = {.grad = &grad[0][0],
					 .place = place,
					 .first = setup->first,
					 .count = setup->count,
					 .dim = setup->dim};

	for (uint32_t j = 0; j < GRADS; j++) {
		place[j] = GRADS - 1 - j;
	}
	kernels->rows->sum(out, &sums);
}

static size_t
run(const struct wf_kernels *kernels, const struct setup *setup, struct rows *side)
{
	float *row[MAX_ROWS];
	const float *from[MAX_ROWS];
	const float *list[GRADS];
	uint64_t key[MAX_ROWS];
	float *drawn[MAX_ROWS];
	struct wf_row_batch batch = {
		.row = row,
		.count = setup->count,
		.dim = setup->dim,
		.grad = list,
		.first = setup->one_each ? NULL : setup->first,
		.stamp = setup->has_stamps ? setup->stamp : NULL,
	};

	for (size_t i = 0; i < setup->count; i++) {
		row[i] = side->value[i];
		from[i] = side->value[setup->count - 1 - i];
	}
	for (size_t n = 0; n < GRADS; n++) {
		list[n] = grad[n];
	}
	size_t skipped = kernels->rows->apply[setup->kind](&setup->scalars, &batch);
	kernels->rows->gather(side->gathered, from, setup->count, setup->dim);
	/* At a line's beginning, or not. */
	kernels->rows->gather_past(side->past + setup->key % 2, from, setup->count, setup->dim);
	run_sum(kernels, setup, side->summed);
	for (size_t i = 0; i < draws_of(setup); i++) {
		key[i] = setup->key + i * 0x100000001u;
		drawn[i] = side->uniform + i * setup->dim;
	}
	kernels->rows->uniform(&setup->uniform, key, drawn, draws_of(setup), setup->dim);
	return skipped;
}

static bool
same(float a, float b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (a != a && b != b);
}

static void
compare(const struct wf_kernels *form, const struct setup *setup, unsigned number)
{
	size_t want = run(wf_kernels_ref(), setup, &ref_side);
	size_t got = run(form, setup, &form_side);

	if (want != got) {
		fail_msg("WEFT_SEED=%" PRIu64 " case %u: %s skipped %zu, ref %zu", seed, number,
			 form->name, got, want);
	}
	for (size_t n = 0; n < MAX_ROWS; n++) {
		for (size_t i = 0; i < ROW_ROOM; i++) {
			if (!same(ref_side.value[n][i], form_side.value[n][i])) {
				fail_msg("WEFT_SEED=%" PRIu64 " case %u, %s, dim %zu: row %zu[%zu] "
					 "of %s is %a, ref has %a",
					 seed, number, wf_row_optimizer_name(setup->kind),
					 setup->dim, n, i, form->name,
					 (double)form_side.value[n][i],
					 (double)ref_side.value[n][i]);
			}
		}
	}
	if (memcmp(ref_side.uniform, form_side.uniform, sizeof(ref_side.uniform)) != 0) {
		fail_msg("WEFT_SEED=%" PRIu64 " case %u: uniform of %s", seed, number, form->name);
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(ref_side.gathered); i++) {
		if (!same(ref_side.gathered[i], form_side.gathered[i])) {
			fail_msg("WEFT_SEED=%" PRIu64 " case %u: gathered %zu of %s", seed, number,
				 i, form->name);
		}
		if (!same(ref_side.past[i], form_side.past[i])) {
			fail_msg("WEFT_SEED=%" PRIu64 " case %u: gathered past %zu of %s", seed,
				 number, i, form->name);
		}
		if (!same(ref_side.summed[i], form_side.summed[i])) {
			fail_msg("WEFT_SEED=%" PRIu64 " case %u: sum %zu of %s", seed, number, i,
				 form->name);
		}
	}
}

static void
every_form_updates_rows_as_ref_does(void **state)
{
	for (size_t f = 1; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *form = wf_kernels_by_name(forms[f]);
		if (form == NULL) {
			print_message("form %s is not offered here\n", forms[f]);
			continue;
		}
		unsigned number, end;
		for (wf_sweep_cases(CASES, &number, &end); number < end; number++) {
			struct wf_rng rng;
			wf_rng_init(&rng, seed, number);
			struct setup setup = draw_setup(&rng);
			draw_arrays(&rng);
			compare(form, &setup, number);
		}
	}
}

/* What is beside a row, and behind what was gathered, is nobody's. */
static void
nothing_beside_a_row_is_touched(void **state)
{
	for (unsigned number = 0; number < GOLDEN_CASES; number++) {
		struct wf_rng rng;
		wf_rng_init(&rng, seed, number);
		struct setup setup = draw_setup(&rng);
		draw_arrays(&rng);
		(void)run(wf_kernels_best(), &setup, &form_side);
		size_t floats = setup.dim + wf_row_state_floats(setup.kind, setup.dim);
		for (size_t n = 0; n < MAX_ROWS; n++) {
			size_t from = n < setup.count ? floats : 0;
			assert_memory_equal(&form_side.value[n][from], &ref_side.value[n][from],
					    (ROW_ROOM - from) * sizeof(float));
		}
		size_t used = setup.count * setup.dim;
		assert_memory_equal(&form_side.gathered[used], &ref_side.gathered[used],
				    MARGIN * sizeof(float));
		assert_memory_equal(&form_side.summed[used], &ref_side.summed[used],
				    MARGIN * sizeof(float));
		used = draws_of(&setup) * setup.dim;
		assert_memory_equal(&form_side.uniform[used], &ref_side.uniform[used],
				    MARGIN * sizeof(float));
	}
}

static uint64_t
digest(uint64_t hash, const float *array, size_t count)
{
	for (size_t i = 0; i < count; i++) {
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

/* Computed once with gcc 12 at -O2. Whoever changes a formula changes this number in the same
 * commit, and says so. */
#define GOLDEN_DIGEST 0xf4ccbecd474de8e4

static void
the_bits_are_the_same_in_every_build(void **state)
{
	for (size_t f = 0; f < WF_ARRAY_COUNT(forms); f++) {
		const struct wf_kernels *kernels = wf_kernels_by_name(forms[f]);
		uint64_t hash = 0xcbf29ce484222325;
		for (unsigned number = 0; kernels != NULL && number < GOLDEN_CASES; number++) {
			struct wf_rng rng;
			wf_rng_init(&rng, 2016, number); /* never WEFT_SEED */
			struct setup setup = draw_setup(&rng);
			draw_arrays(&rng);
			(void)run(kernels, &setup, &form_side);
			hash = digest(hash, form_side.value[0], MAX_ROWS * ROW_ROOM);
			/* Of the first key only. */
			memcpy(form_side.uniform + setup.dim, ref_side.uniform + setup.dim,
			       MAX_DIM * sizeof(float));
			hash = digest(hash, form_side.uniform, MAX_DIM + MARGIN);
		}
		if (kernels != NULL && hash != GOLDEN_DIGEST) {
			fail_msg("%s: digest %#" PRIx64, forms[f], hash);
		}
	}
}

int
main(void)
{
	const char *given = getenv("WEFT_SEED");
	seed = given == NULL ? 1 : strtoull(given, NULL, 0);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_updates_rows_as_ref_does),
		cmocka_unit_test(nothing_beside_a_row_is_touched),
		cmocka_unit_test(the_bits_are_the_same_in_every_build),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
