/* SPDX-License-Identifier: Apache-2.0 */
/* init: see init.h. Philox's counter is (key low, key high, column / 4, table), its key the seed;
 * each block gives four columns. Plain arithmetic throughout: no libm. Thread: any. */
#include "sparse/table/init.h"

#include "base/assert.h"
#include "base/philox.h"
#include "kernels/kernels.h"

enum weft_status
wf_init_check(const struct wf_init *init)
{
	const double large = 1e30;

	if ((unsigned)init->kind >= WF_INIT_COUNT) {
		return wf_fail(WEFT_INVALID, "initialiser %d: give a number from 0 to %d",
			       (int)init->kind, WF_INIT_COUNT - 1);
	}
	if (init->kind == WF_INIT_ZERO) {
		return WEFT_OK;
	}
	if (!(init->a >= -large && init->a <= large && init->b >= -large && init->b <= large)) {
		return wf_fail(WEFT_INVALID,
			       "initialiser with %g and %g: give numbers from -1e30 to 1e30",
			       init->a, init->b);
	}
	if (init->kind == WF_INIT_UNIFORM && init->a > init->b) {
		return wf_fail(WEFT_INVALID,
			       "initialiser uniform from %g to %g: give the lower first", init->a,
			       init->b);
	}
	if (init->kind == WF_INIT_NORMAL && init->b < 0.0) {
		return wf_fail(WEFT_INVALID, "initialiser normal of deviation %g: give 0 or more",
			       init->b);
	}
	return WEFT_OK;
}

/* M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988: three
 * quotients of polynomials, PPND7. */

static double
central(double q)
{
	double r = 0.180625 - q * q;
	double above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179;
	double below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0;
	return q * above / below;
}

/* r: sqrt(-log of the smaller tail) */
static double
tail(double r)
{
	if (r <= 5.0) {
		r -= 1.6;
		double above =
			((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777;
		double below = (0.12021132975 * r + 0.73700164250) * r + 1.0;
		return above / below;
	}
	r -= 5.0;
	double above = ((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150;
	double below = (0.012258202635 * r + 0.24197894225) * r + 1.0;
	return above / below;
}

double
wf_init_normal(uint32_t bits)
{
	double share = ((double)bits + 0.5) * 0x1p-32;
	double q = share - 0.5;

	if (q >= -0.425 && q <= 0.425) {
		return central(q);
	}
	double smaller = q < 0.0 ? share : 1.0 - share;
	double size = tail(__builtin_sqrt(-wf_log_f64(smaller)));
	return q < 0.0 ? -size : size;
}

struct wf_row_uniform
wf_init_uniform(const struct wf_init *init)
{
	return (struct wf_row_uniform){
		.seed = init->seed,
		.table = init->table,
		.low = (float)init->a,
		.span = (float)(init->b - init->a),
	};
}

void
wf_init_values(const struct wf_init *init, uint64_t key, float *out, size_t dim)
{
	if (init->kind == WF_INIT_ZERO) {
		for (size_t i = 0; i < dim; i++) {
			out[i] = 0.0f;
		}
		return;
	}
	if (init->kind == WF_INIT_UNIFORM) {
		struct wf_row_uniform draw = wf_init_uniform(init);
		wf_kernels_ref()->rows->uniform(&draw, &key, &out, 1, dim);
		return;
	}
	for (size_t i = 0; i < dim; i += 4) {
		struct wf_philox counter = {
			{(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)(i / 4), init->table}};
		struct wf_philox bits = wf_philox(counter, init->seed);
		for (size_t j = i; j < i + 4 && j < dim; j++) {
			out[j] = (float)(init->a + init->b * wf_init_normal(bits.word[j - i]));
		}
	}
}
