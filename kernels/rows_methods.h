/* SPDX-License-Identifier: Apache-2.0 */
/* rows_methods: the formula of each optimizer of rows, the one text from which every form is made:
 * over one element (rows_ref.c) and over vectors of them (rows_wide.h). A file that includes this
 * one defines what methods.h needs; alone it is empty. What is computed once for a row is in
 * rows_forms.h. Thread: any.
 *
 * `plain` says that no divisor, clip, decay, l1 or l2 is in play, and is a constant wherever it
 * matters. Unlike those of tensors, terms of a setting that is 0 are left out, not added. */
#pragma once

#ifdef INLINE

#include <stdbool.h>
#include <stddef.h>

#include "kernels/methods.h"
#include "kernels/rows_forms.h"

struct row_vecs {
	const struct wf_row_scalars *k;
	vec rate, decay, momentum, beta1, rest1, beta2, rest2, rho, rest_rho, epsilon;
	vec square_share, drop, shrink, l1, l2, ftrl_beta;
};

INLINE struct row_vecs
open_row_vecs(const struct wf_row_scalars *k)
{
	return (struct row_vecs){
		.k = k,
		.rate = vec_set(k->rate),
		.decay = vec_set(k->decay),
		.momentum = vec_set(k->momentum),
		.beta1 = vec_set(k->beta1),
		.rest1 = vec_set(1.0f - k->beta1),
		.beta2 = vec_set(k->beta2),
		.rest2 = vec_set(1.0f - k->beta2),
		.rho = vec_set(k->rho),
		.rest_rho = vec_set(1.0f - k->rho),
		.epsilon = vec_set(k->epsilon),
		.square_share = vec_set(k->square_share),
		.drop = vec_set(k->drop),
		.shrink = vec_set(k->shrink),
		.l1 = vec_set(k->l1),
		.l2 = vec_set(k->l2),
		.ftrl_beta = vec_set(k->ftrl_beta),
	};
}

/* The gradient with the decay term. */
INLINE vec
row_decayed(const struct row_vecs *v, bool plain, vec w, vec g)
{
	if (plain || !(v->k->decay > 0.0f)) {
		return g;
	}
	return vec_add(g, vec_mul(v->decay, w));
}

/* L1 and L2 after the step. */
INLINE vec
row_regular(const struct row_vecs *v, bool plain, vec w)
{
	if (!plain && v->k->drop > 0.0f) {
		w = vec_soft(w, v->drop);
	}
	if (!plain && v->k->shrink < 1.0f) {
		w = vec_mul(w, v->shrink);
	}
	return w;
}

/* Arrays of state with a value for each element. */
INLINE unsigned
row_states(enum wf_row_optimizer kind)
{
	const bool has_none = kind == WF_ROW_SGD || kind == WF_ROW_ADAGRAD_ROWWISE;
	const bool has_one = kind == WF_ROW_MOMENTUM || kind == WF_ROW_SPARSE_MOMENTUM ||
			     kind == WF_ROW_ADAGRAD || kind == WF_ROW_ADAM_ROWWISE;
	return has_none ? 0 : has_one ? 1 : 2;
}

/* Whether the elements of a row depend on a sum over all of them. */
INLINE bool
row_is_whole(enum wf_row_optimizer kind)
{
	return kind == WF_ROW_ADAGRAD_ROWWISE || kind == WF_ROW_ADAM_ROWWISE ||
	       kind == WF_ROW_FTRL_GROUP;
}

/* Of such a kind: the one value of state that all elements share; `none`: there is none. */
INLINE float *
row_accumulator(enum wf_row_optimizer kind, float *s, float *t, float *none)
{
	float *rowwise = kind == WF_ROW_ADAGRAD_ROWWISE ? s : t;
	return kind == WF_ROW_FTRL_GROUP ? none : rowwise;
}

/* In the functions below: the elements after a step with the gradients g, which are finite. */

INLINE struct element
next_row_sgd(const struct row_vecs *v, bool plain, struct element e, vec g)
{
	vec d = row_decayed(v, plain, e.w, g);
	e.w = row_regular(v, plain, vec_sub(e.w, vec_mul(v->rate, d)));
	return e;
}

INLINE struct element
next_row_momentum(const struct row_vecs *v, bool plain, struct element e, vec g)
{
	vec d = row_decayed(v, plain, e.w, g);
	e.s = vec_sub(vec_mul(v->momentum, e.s), vec_mul(v->rate, d));
	e.w = row_regular(v, plain, vec_add(e.w, e.s));
	return e;
}

/* w - rate d / sqrt(square + epsilon) */
INLINE vec
row_over_root(const struct row_vecs *v, bool plain, vec w, vec g, vec square)
{
	vec root = vec_sqrt(vec_add(square, v->epsilon));
	vec step = vec_div(vec_mul(v->rate, row_decayed(v, plain, w, g)), root);
	return row_regular(v, plain, vec_sub(w, step));
}

INLINE struct element
next_row_adagrad(const struct row_vecs *v, bool plain, struct element e, vec g)
{
	e.s = vec_add(e.s, vec_mul(g, g));
	e.w = row_over_root(v, plain, e.w, g, e.s);
	return e;
}

/* The argument of the root may fall below 0 by rounding. */
INLINE struct element
next_row_rmsprop(const struct row_vecs *v, bool plain, struct element e, vec g)
{
	e.s = vec_add(vec_mul(v->rho, e.s), vec_mul(v->square_share, vec_mul(g, g)));
	e.t = vec_add(vec_mul(v->rho, e.t), vec_mul(v->rest_rho, g));
	vec variance = vec_max(vec_sub(e.s, vec_mul(e.t, e.t)), vec_set(0.0f));
	e.w = row_over_root(v, plain, e.w, g, variance);
	return e;
}

INLINE struct element
next_row_adam(const struct row_vecs *v, bool plain, struct element e, vec g)
{
	vec d = row_decayed(v, plain, e.w, g);
	e.s = vec_add(vec_mul(v->beta1, e.s), vec_mul(v->rest1, d));
	e.t = vec_add(vec_mul(v->beta2, e.t), vec_mul(v->rest2, vec_mul(d, d)));
	vec step = vec_div(vec_mul(v->rate, e.s), vec_add(vec_sqrt(e.t), v->epsilon));
	e.w = row_regular(v, plain, vec_sub(e.w, step));
	return e;
}

/* z and n of FTRL-proximal; w stays. */
INLINE struct element
next_row_ftrl_state(const struct row_vecs *v, struct element e, vec g)
{
	vec next = vec_add(e.t, vec_mul(g, g));
	vec sigma = vec_div(vec_sub(vec_sqrt(next), vec_sqrt(e.t)), v->rate);
	e.s = vec_add(e.s, vec_sub(g, vec_mul(sigma, e.w)));
	e.t = next;
	return e;
}

/* (0 - y) / ((beta + sqrt(n)) / rate + l2) */
INLINE vec
row_ftrl_value(const struct row_vecs *v, vec y, vec n)
{
	vec below = vec_div(vec_add(v->ftrl_beta, vec_sqrt(n)), v->rate);
	return vec_div(vec_sub(vec_set(0.0f), y), vec_add(below, v->l2));
}

INLINE struct element
next_row_ftrl(const struct row_vecs *v, struct element e, vec g)
{
	e = next_row_ftrl_state(v, e, g);
	e.w = row_ftrl_value(v, vec_soft(e.s, v->l1), e.t);
	return e;
}

/* Of a kind whose elements do not depend on each other. */
INLINE struct element
next_of_row_kind(enum wf_row_optimizer kind, const struct row_vecs *v, bool plain, struct element e,
		 vec g)
{
	switch (kind) {
	case WF_ROW_SGD:
		return next_row_sgd(v, plain, e, g);
	case WF_ROW_MOMENTUM:
	case WF_ROW_SPARSE_MOMENTUM:
		return next_row_momentum(v, plain, e, g);
	case WF_ROW_ADAGRAD:
		return next_row_adagrad(v, plain, e, g);
	case WF_ROW_RMSPROP:
		return next_row_rmsprop(v, plain, e, g);
	case WF_ROW_ADAM:
		return next_row_adam(v, plain, e, g);
	case WF_ROW_FTRL:
		return next_row_ftrl(v, e, g);
	case WF_ROW_ADAGRAD_ROWWISE:
	case WF_ROW_ADAM_ROWWISE:
	case WF_ROW_FTRL_GROUP:
	case WF_ROW_OPTIMIZER_COUNT:
		break;
	}
	return e;
}

/* The value whose squares are summed over a row: WF_ROW_ADAGRAD_ROWWISE: the gradients;
 * WF_ROW_ADAM_ROWWISE: with decay; WF_ROW_FTRL_GROUP: z without l1. */
INLINE vec
row_term(enum wf_row_optimizer kind, const struct row_vecs *v, bool plain, struct element e, vec g)
{
	if (kind == WF_ROW_FTRL_GROUP) {
		return vec_soft(e.s, v->l1);
	}
	return kind == WF_ROW_ADAGRAD_ROWWISE ? g : row_decayed(v, plain, e.w, g);
}

/* Of a kind that has such a sum, from which `share` is: the row's rate, or what its norm leaves. */
INLINE struct element
next_of_whole_row(enum wf_row_optimizer kind, const struct row_vecs *v, bool plain,
		  struct element e, vec g, vec share)
{
	vec d = g;
	if (kind == WF_ROW_FTRL_GROUP) {
		e.w = row_ftrl_value(v, vec_mul(vec_soft(e.s, v->l1), share), e.t);
		return e;
	}
	d = row_decayed(v, plain, e.w, g);
	if (kind == WF_ROW_ADAM_ROWWISE) {
		e.s = vec_add(vec_mul(v->beta1, e.s), vec_mul(v->rest1, d));
		d = e.s;
	}
	e.w = row_regular(v, plain, vec_sub(e.w, vec_mul(share, d)));
	return e;
}

#endif
