/* SPDX-License-Identifier: Apache-2.0 */
/* layers: the stack of fully connected layers of mlp, ngram and ctr. Tensors 2 l - 2 and 2 l - 1 of
 * a model are weights [in, out] and bias of layer l, counted from 1. Thread: any; each call writes
 * to its own work memory. */
#pragma once

#include "trainer/models/model.h"

/* How a call's work memory is divided. */
struct wf_layers_work {
	const float *in;                     /* [rows, width[0]]: the call's x, or `joined` */
	float *joined;                       /* [rows, width[0]] of a model with tables */
	float *out[WF_MODEL_LAYERS_MAX + 1]; /* [rows, width[layer]]; 0 is the input, not here */
	float *scratch;                      /* [rows, widest]; at the end of wf_layers_backward the
						gradient at `in` */
	float *right;                        /* [rows] */
	float *total;                        /* [rows] */
};

/* Appends the widths in "32,16". WEFT_INVALID: the entry and what is allowed. */
enum weft_status wf_layers_parse_hidden(const char *text, struct wf_model *model) WEFT_MUST_CHECK;
/* Sets the names and sizes of the tensors of all layers. */
void wf_layers_name(struct wf_model *model);
/* Draws weights: ReLU within +-sqrt(6 / in), sigmoid within +-sqrt(6 / (in + out)). Biases are
 * 0. */
void wf_layers_init(const struct wf_model *model, uint64_t seed, float *const *param);
struct wf_layers_work wf_layers_divide(const struct wf_model *model,
				       const struct wf_model_call *call);
/* From work->in to the sums of the last layer, which has no activation. */
void wf_layers_forward(const struct wf_model *model, const struct wf_model_call *call,
		       const struct wf_layers_work *work);
/* From the gradient at the last layer's sums, which is in their place, to call->grad; of a model
 * with tables also to that at its input. */
void wf_layers_backward(const struct wf_model *model, const struct wf_model_call *call,
			const struct wf_layers_work *work);
/* Softmax and cross-entropy: turn the last layer's sums into their gradient; returns the summed
 * cost. Afterwards right[row] - total[row] is log p of the row's target. */
double wf_layers_cross_entropy(const struct wf_model *model, const struct wf_model_call *call,
			       const struct wf_layers_work *work);

/* joined[row, first column of the slot ..] = sum over the slot's entries of weight * row of the
 * table. With tables of width `table_width` the slots take slots * table_width columns. */
void wf_layers_join(const struct wf_model *model, const struct wf_model_call *call, unsigned table,
		    float *joined);
/* The gradient at each entry's row out of that at the joined input. */
void wf_layers_part(const struct wf_model *model, const struct wf_model_call *call, unsigned table,
		    const float *joined_grad);
