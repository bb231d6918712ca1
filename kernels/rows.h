/* SPDX-License-Identifier: Apache-2.0 */
/* rows: optimizers for the rows of sparse tables: settings, and kernels that sum the gradients of
 * all trainers and update one row after the other. What holds for kernels.h holds here: ref is the
 * definition, every form gives the same bits, nothing allocates, nothing fails, no libm. Formulas
 * with their sources: kernels/formulas.md.
 *
 * A row lies in memory as `dim` values, then its state: arrays of dim f32, then scalars. Thread:
 * any; everything here is pure except for the rows that it updates. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "kernels/optimizer.h"
#include "weft/sparse.h"

#define WF_ROW_DIM_MAX 4096u
/* f32 of state beyond dim: state arrays are at most 2, scalars at most 1. */
#define WF_ROW_FLOATS_MAX (3u * WF_ROW_DIM_MAX + 1u)

/* sgd; momentum 0, betas 0.9 and 0.999, rho 0.95, epsilon 1e-6, rate 1e-3, constant, lazy. */
struct wf_row_opts wf_row_defaults(void);
/* The same, with momentum, betas, clipping and schedule of a dense optimizer. */
struct wf_row_opts wf_row_like(const struct wf_optimizer_opts *dense);
/* WEFT_INVALID: the text names field, value and limit; WEFT_UNSUPPORTED: dense_equivalent with an
 * optimizer, or with settings, that has no closed form. */
enum weft_status wf_row_check(const struct wf_row_opts *opts) WEFT_MUST_CHECK;
const char *wf_row_optimizer_name(enum wf_row_optimizer kind);
/* WEFT_INVALID: the text lists all names. */
enum weft_status wf_row_optimizer_parse(const char *name,
					enum wf_row_optimizer *out) WEFT_MUST_CHECK;
/* The number of f32 of state behind the values of a row. */
size_t wf_row_state_floats(enum wf_row_optimizer kind, size_t dim);
/* As wf_learning_rate. */
double wf_row_rate(const struct wf_row_opts *opts, uint64_t samples_before, uint64_t samples);

/* The scalars of a step, as f32. */
struct wf_row_scalars {
	float divisor; /* 1 for sum; samples of the step for mean */
	float clip;    /* 0: off */
	float rate;    /* adam, adam_rowwise: bias-corrected */
	float decay;
	float momentum, beta1, beta2, rho, epsilon;
	float square_share; /* rmsprop: the weight of a new square, except a row's first */
	float drop;         /* rate * l1, applied after the update; 0: off */
	float shrink;       /* 1 / (1 + rate * l2), applied after the update; 1: off */
	float l1, l2, l21, ftrl_beta; /* for ftrl */
};

/* `rate` is wf_row_rate(); `updates` counts applied steps including this one, from 1. */
void wf_row_scalars_fill(const struct wf_row_opts *opts, double rate, float divisor,
			 uint64_t updates, struct wf_row_scalars *out);

/* Rows to update. No row occurs twice, and no gradient lies in a row. */
struct wf_row_batch {
	float *const *row; /* [count] */
	size_t count;
	size_t dim; /* 1 .. WF_ROW_DIM_MAX */
	/* Gradients of row i, in the order in which they are summed: grad[first[i]] up to
	 * grad[first[i + 1]] (not included), at least one, each [dim]. first NULL: one each. */
	const float *const *grad;
	const uint32_t *first; /* [count + 1] */
	bool is_near;          /* rows are in cache: nothing has to be prefetched */
	/* [count] for rmsprop: 0 for a row in its first step, whose square has full weight. NULL:
	 * no row is. Other methods ignore it. */
	const uint32_t *stamp;
};

/* Gradients of a batch, by row: those of row i are grad[place[j] * dim ...] for j from first[i] up
 * to first[i + 1] (not included), at least one. */
struct wf_row_sums {
	const float *grad;
	const uint32_t *place; /* [first[count]] */
	const uint32_t *first; /* [count + 1]; place[first[0]] is the first that is read */
	size_t count;
	size_t dim; /* 1 .. WF_ROW_DIM_MAX */
};

/* Initial values between low and low + span: columns 4 b to 4 b + 3 are low + span (x >> 8) 2^-24
 * for the words x of Philox's block (key low, key high, b, table) under the seed: base/philox.h. */
struct wf_row_uniform {
	uint64_t seed;
	uint32_t table;
	float low, span;
};

/* Values in 16 bits to f32 and back: kernels/half.h. */
struct wf_row_half {
	void (*widen)(float *out, const uint16_t *in, size_t count);
	void (*narrow)(uint16_t *out, const float *in, size_t count);
};

struct wf_row_kernels {
	/* Returns how many elements were left as they are, with their state: their summed gradients
	 * were not finite, or in a row with a gradient above 2^40 the outcome was not. */
	size_t (*apply[WF_ROW_OPTIMIZER_COUNT])(const struct wf_row_scalars *scalars,
						const struct wf_row_batch *batch);
	/* out[i * dim ...] = the first dim f32 at row[i]. */
	void (*gather)(float *out, const float *const *row, size_t count, size_t dim);
	/* The same bits, for what this core does not read soon: written past the caches where rows
	 * are whole lines and out begins on one. Visible before anything that this thread writes
	 * later. */
	void (*gather_past)(float *out, const float *const *row, size_t count, size_t dim);
	/* out[i * dim ...] = the first gradient of row i, bit for bit, and the others added to it
	 * one after the other. out overlaps no gradient. */
	void (*sum)(float *out, const struct wf_row_sums *sums);
	/* The first dim f32 at out[i] become the initial values of key i. */
	void (*uniform)(const struct wf_row_uniform *draw, const uint64_t *key, float *const *out,
			size_t count, size_t dim);
	struct wf_row_half half[WF_VALUE_FORMAT_COUNT]; /* there is none for WEFT_VALUES_F32 */
};

/* Steps without a gradient, in closed form. */
enum wf_row_motion_kind {
	WF_ROW_STILL = 0,  /* nothing changes */
	WF_ROW_SHRINK = 1, /* |w| = max(ww |w| - drop, 0) */
	WF_ROW_LINEAR = 2, /* (w, m) = ((ww, wm), (mw, mm)) (w, m) */
	WF_ROW_FADE = 3,   /* both state arrays times mm; values as WF_ROW_SHRINK */
	/* w = w ((1 + mw / sqrt(a + epsilon)) ww)^steps, where a is the accumulator of the element,
	 * or of the row */
	WF_ROW_ROOTED = 4,
	WF_ROW_ROOTED_ROWWISE = 5,
};

/* One step (or several) as f64. */
struct wf_row_motion {
	enum wf_row_motion_kind kind;
	double ww, wm, mw, mm, drop;
	float epsilon;  /* WF_ROW_ROOTED only */
	uint64_t steps; /* likewise */
};

/* One step without a gradient, at the settings' learning rate; WF_ROW_STILL if lazy. */
struct wf_row_motion wf_row_motion_of(const struct wf_row_opts *opts);
/* The same at another rate. */
struct wf_row_motion wf_row_motion_at(const struct wf_row_opts *opts, double rate);
/* Whether such steps differ from each other because the rate does: then they are multiplied one by
 * one, not raised to a power. */
bool wf_row_motion_varies(const struct wf_row_opts *opts);
/* First `a`, then `b`; neither is WF_ROW_ROOTED. */
struct wf_row_motion wf_row_motion_chain(const struct wf_row_motion *a,
					 const struct wf_row_motion *b);
/* `steps` of them: by squaring, about 12 operations for each bit of `steps`. */
struct wf_row_motion wf_row_motion_power(const struct wf_row_motion *step, uint64_t steps);
/* Applies the motion to values and state of a row. */
void wf_row_move(const struct wf_row_motion *motion, float *row, size_t dim);
/* out[dim] = the values as wf_row_move would leave them; the row is unchanged. */
void wf_row_look(const struct wf_row_motion *motion, float *out, const float *row, size_t dim);
