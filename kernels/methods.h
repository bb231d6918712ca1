/* SPDX-License-Identifier: Apache-2.0 */
/* methods: the formula of each optimizer, the one text from which every form is made: over one
 * element (ref.c) and over vectors of them (wide.h). A file that includes this one defines INLINE,
 * the types vec (f32) and mask, and operations on them; alone it is empty. vec_min(a, b) is a < b ?
 * a : b, vec_max likewise; a mask from a comparison with NaN is clear; vec_select takes the first
 * where the mask is set; every operation rounds to f32. Thread: any. */
#pragma once

#ifdef INLINE

#include "kernels/kernels.h"

#include <stdbool.h>

#include "kernels/forms.h"

/* Of struct wf_apply_torch. */
struct torch_scalars {
	vec rest1, rest2, root_share, kept; /* kept: of decoupled decay */
	vec carried, fresh, direct, onward;
};

/* wf_apply's scalars, as vectors. */
struct scalars {
	vec divisor, reciprocal, low, high, rate, plain_rate, decay, momentum;
	vec beta1, rest1, beta2, rest2, epsilon, rho, rest_rho, square_share, drop;
	struct torch_scalars torch;
	int calm_bits;
	bool drops; /* of plain_rate * l1; a constant but for MANY inputs */
};

INLINE struct scalars
open_scalars(const struct wf_apply *apply, bool drops)
{
	/* Clipping to infinity leaves a finite number unchanged. */
	float clip = apply->clip > 0.0f ? apply->clip : __builtin_inff();
	return (struct scalars){
		.divisor = vec_set(apply->divisor),
		.reciprocal = vec_set(wf_exact_reciprocal(apply->divisor)),
		.low = vec_set(-clip),
		.high = vec_set(clip),
		.rate = vec_set(apply->rate),
		.plain_rate = vec_set(apply->plain_rate),
		.decay = vec_set(apply->decay),
		.momentum = vec_set(apply->momentum),
		.beta1 = vec_set(apply->beta1),
		.rest1 = vec_set(1.0f - apply->beta1),
		.beta2 = vec_set(apply->beta2),
		.rest2 = vec_set(1.0f - apply->beta2),
		.epsilon = vec_set(apply->epsilon),
		.rho = vec_set(apply->rho),
		.rest_rho = vec_set(1.0f - apply->rho),
		.square_share = vec_set(apply->square_share),
		.drop = vec_set(apply->plain_rate * apply->l1),
		.torch.rest1 = vec_set(apply->torch.rest1),
		.torch.rest2 = vec_set(apply->torch.rest2),
		.torch.root_share = vec_set(apply->torch.root_share),
		.torch.kept = vec_set(wf_apply_kept(apply)),
		.torch.carried = vec_set(apply->torch.carried),
		.torch.fresh = vec_set(apply->torch.fresh),
		.torch.direct = vec_set(apply->torch.direct),
		.torch.onward = vec_set(apply->torch.onward),
		.calm_bits = wf_calm_bits(apply),
		.drops = drops,
	};
}

/* Moves w towards 0 by `drop`, and not beyond. NaN stays NaN. */
INLINE vec
vec_soft(vec w, vec drop)
{
	vec rest = vec_select(mask_less(w, vec_sub(vec_set(0.0f), drop)), vec_add(w, drop),
			      vec_mul(w, vec_set(0.0f)));
	return vec_select(mask_less(drop, w), vec_sub(w, drop), rest);
}

/* An element, or as many as a vector has lanes: the parameter and its state, of which a method may
 * have less. */
struct element {
	vec w, s, t;
};

/* In the functions below: the elements after a step with the gradients g, which are finite and
 * clipped. Sums and products are taken in the order in which they stand here. */

INLINE struct element
move_by(const struct scalars *k, struct element e, vec d)
{
	e.w = vec_sub(e.w, vec_mul(k->rate, d));
	return e;
}

INLINE struct element
next_sgd(const struct scalars *k, struct element e, vec g)
{
	return move_by(k, e, vec_add(g, vec_mul(k->decay, e.w)));
}

INLINE struct element
next_momentum(const struct scalars *k, struct element e, vec g)
{
	vec d = vec_add(g, vec_mul(k->decay, e.w));
	e.s = vec_sub(vec_mul(k->momentum, e.s), vec_mul(k->rate, d));
	e.w = vec_add(e.w, e.s);
	return e;
}

INLINE struct element
next_nesterov(const struct scalars *k, struct element e, vec g)
{
	vec step = vec_mul(k->rate, vec_add(g, vec_mul(k->decay, e.w)));
	e.s = vec_sub(vec_mul(k->momentum, e.s), step);
	e.w = vec_add(e.w, vec_sub(vec_mul(k->momentum, e.s), step));
	return e;
}

/* w - rate d / sqrt(square + epsilon) */
INLINE vec
less_over_root(const struct scalars *k, vec w, vec g, vec square)
{
	vec d = vec_add(g, vec_mul(k->decay, w));
	vec root = vec_sqrt(vec_add(square, k->epsilon));
	return vec_sub(w, vec_div(vec_mul(k->rate, d), root));
}

INLINE struct element
next_adagrad(const struct scalars *k, struct element e, vec g)
{
	e.s = vec_add(e.s, vec_mul(g, g));
	e.w = less_over_root(k, e.w, g, e.s);
	return e;
}

INLINE struct element
next_decayed_adagrad(const struct scalars *k, struct element e, vec g)
{
	e.s = vec_add(vec_mul(k->rho, e.s), vec_mul(k->square_share, vec_mul(g, g)));
	e.w = less_over_root(k, e.w, g, e.s);
	return e;
}

INLINE struct element
next_rmsprop(const struct scalars *k, struct element e, vec g)
{
	e.s = vec_add(vec_mul(k->rho, e.s), vec_mul(k->square_share, vec_mul(g, g)));
	e.t = vec_add(vec_mul(k->rho, e.t), vec_mul(k->rest_rho, g));
	vec variance = vec_max(vec_sub(e.s, vec_mul(e.t, e.t)), vec_set(0.0f));
	e.w = less_over_root(k, e.w, g, variance);
	return e;
}

INLINE struct element
next_adadelta(const struct scalars *k, struct element e, vec g)
{
	e.s = vec_add(vec_mul(k->rho, e.s), vec_mul(k->rest_rho, vec_mul(g, g)));
	vec below = vec_add(e.s, k->epsilon);
	vec ratio = vec_sqrt(vec_div(vec_add(e.t, k->epsilon), below));
	vec move = vec_mul(g, ratio);
	e.t = vec_add(vec_mul(k->rho, e.t), vec_mul(k->rest_rho, vec_mul(move, move)));
	vec d = vec_add(g, vec_mul(k->decay, e.w));
	e.w = vec_sub(e.w, vec_mul(vec_mul(k->rate, d), ratio));
	return e;
}

INLINE struct element
next_adamax(const struct scalars *k, struct element e, vec g)
{
	vec d = vec_add(g, vec_mul(k->decay, e.w));
	e.s = vec_add(vec_mul(k->beta1, e.s), vec_mul(k->rest1, d));
	vec size = vec_max(d, vec_sub(vec_set(0.0f), d));
	e.t = vec_max(vec_mul(k->beta2, e.t), size);
	vec step = vec_div(vec_mul(k->rate, e.s), vec_add(e.t, k->epsilon));
	e.w = vec_sub(e.w, step);
	return e;
}

/* Updates both means of adam and adamw from d. Returns rate m / (sqrt(v) + epsilon). */
INLINE vec
step_of_means(const struct scalars *k, struct element *e, vec d)
{
	e->s = vec_add(vec_mul(k->beta1, e->s), vec_mul(k->rest1, d));
	e->t = vec_add(vec_mul(k->beta2, e->t), vec_mul(k->rest2, vec_mul(d, d)));
	vec below = vec_add(vec_sqrt(e->t), k->epsilon);
	return vec_div(vec_mul(k->rate, e->s), below);
}

INLINE struct element
next_adam(const struct scalars *k, struct element e, vec g)
{
	vec step = step_of_means(k, &e, vec_add(g, vec_mul(k->decay, e.w)));
	e.w = vec_sub(e.w, step);
	return e;
}

INLINE struct element
next_adamw(const struct scalars *k, struct element e, vec g)
{
	vec step = step_of_means(k, &e, g);
	vec decayed = vec_mul(k->plain_rate, vec_mul(k->decay, e.w));
	e.w = vec_sub(e.w, vec_add(step, decayed));
	return e;
}

/* Updates both means of torch's adams from d. Returns rate m / (sqrt(v) / share + epsilon). */
INLINE vec
step_of_torch(const struct scalars *k, struct element *e, vec d)
{
	e->s = vec_add(vec_mul(k->beta1, e->s), vec_mul(k->torch.rest1, d));
	vec square = vec_mul(vec_mul(k->torch.rest2, d), d);
	e->t = vec_add(vec_mul(k->beta2, e->t), square);
	vec below = vec_add(vec_div(vec_sqrt(e->t), k->torch.root_share), k->epsilon);
	return vec_div(vec_mul(k->rate, e->s), below);
}

INLINE struct element
next_torch_adam(const struct scalars *k, struct element e, vec g)
{
	vec step = step_of_torch(k, &e, vec_add(g, vec_mul(k->decay, e.w)));
	e.w = vec_sub(e.w, step);
	return e;
}

INLINE struct element
next_torch_adamw(const struct scalars *k, struct element e, vec g)
{
	vec step = step_of_torch(k, &e, g);
	e.w = vec_sub(vec_mul(e.w, k->torch.kept), step);
	return e;
}

INLINE struct element
next_torch_sgd(const struct scalars *k, struct element e, vec g)
{
	vec d = vec_add(g, vec_mul(k->decay, e.w));
	e.s = vec_add(vec_mul(k->torch.carried, e.s), vec_mul(k->torch.fresh, d));
	vec step = vec_add(vec_mul(k->torch.direct, d), vec_mul(k->torch.onward, e.s));
	e.w = vec_sub(e.w, vec_mul(k->rate, step));
	return e;
}

INLINE struct element
next_of_kind(enum wf_optimizer kind, const struct scalars *k, struct element e, vec g)
{
	switch (kind) {
	case WF_SGD:
		return next_sgd(k, e, g);
	case WF_MOMENTUM:
	case WF_TORCH_MOMENTUM:
		return next_momentum(k, e, g);
	case WF_ADAM:
		return next_adam(k, e, g);
	case WF_NESTEROV:
		return next_nesterov(k, e, g);
	case WF_ADAGRAD:
		return next_adagrad(k, e, g);
	case WF_ADAMW:
		return next_adamw(k, e, g);
	case WF_DECAYED_ADAGRAD:
		return next_decayed_adagrad(k, e, g);
	case WF_RMSPROP:
		return next_rmsprop(k, e, g);
	case WF_ADADELTA:
		return next_adadelta(k, e, g);
	case WF_ADAMAX:
		return next_adamax(k, e, g);
	case WF_TORCH_ADAM:
		return next_torch_adam(k, e, g);
	case WF_TORCH_ADAMW:
		return next_torch_adamw(k, e, g);
	case WF_TORCH_SGD:
		return next_torch_sgd(k, e, g);
	case WF_OPTIMIZER_COUNT:
		break;
	}
	return e;
}

#endif
