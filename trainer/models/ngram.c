/* SPDX-License-Identifier: Apache-2.0 */
/* The original's word2vec: the next word from those before it. Thread: any. */
#include <stdio.h>

#include "base/assert.h"
#include "trainer/models/layers.h"

#define PROJ 0u
#define ROW_LIMIT 0.05f

/* Leaves the gradient at the last layer's sums in their place. */
static double
forward(const struct wf_model *model, const struct wf_model_call *call,
	const struct wf_layers_work *work)
{
	wf_layers_join(model, call, PROJ, work->joined);
	wf_layers_forward(model, call, work);
	double cost = wf_layers_cross_entropy(model, call, work);
	for (size_t row = 0; call->bags->score != NULL && row < call->rows; row++) {
		call->bags->score[row] = work->right[row] - work->total[row];
	}
	return cost;
}

static double
ngram_gradient(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);

	WF_ASSERT(call->rows >= 1 && call->bags != NULL);
	double cost = forward(model, call, &work);
	wf_layers_backward(model, call, &work);
	wf_layers_part(model, call, PROJ, work.scratch);
	return cost;
}

static double
ngram_test(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);

	WF_ASSERT(call->rows >= 1 && call->bags != NULL);
	return forward(model, call, &work);
}

enum weft_status
wf_model_ngram_init(const struct wf_model_opts *opts, struct wf_model *out)
{
	static const struct wf_model_ops ops = {
		.init = wf_layers_init,
		.gradient = ngram_gradient,
		.test = ngram_test,
	};
	struct wf_model model = {
		.ops = &ops,
		.kernels = opts->kernels,
		.activation = WF_MODEL_SIGMOID,
		.slots = opts->slots,
		.table_count = 1,
		.table = {[PROJ] = {.name = "proj", .width = opts->embedding, .limit = ROW_LIMIT}},
	};
	WF_ASSERT(opts->slots >= 1 && opts->embedding >= 1 && opts->classes >= 2);
	WF_ASSERT(opts->features == 0);
	model.width[0] = opts->slots * opts->embedding;
	enum weft_status st = wf_layers_parse_hidden(opts->hidden, &model);
	if (st != WEFT_OK) {
		return st;
	}
	model.width[++model.layer_count] = opts->classes;
	wf_layers_name(&model);
	*out = model;
	return WEFT_OK;
}
