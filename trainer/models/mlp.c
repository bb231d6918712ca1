/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers with ReLU, softmax and cross-entropy at the end. Thread: any. */
#include "base/assert.h"
#include "trainer/models/layers.h"

static double
mlp_gradient(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);

	WF_ASSERT(call->rows >= 1);
	wf_layers_forward(model, call, &work);
	double cost = wf_layers_cross_entropy(model, call, &work);
	wf_layers_backward(model, call, &work);
	return cost;
}

static double
mlp_test(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);
	const uint32_t classes = model->width[model->layer_count];
	size_t wrong = 0;

	wf_layers_forward(model, call, &work);
	for (size_t row = 0; row < call->rows; row++) {
		const float *z = work.out[model->layer_count] + row * classes;
		uint32_t best = 0;
		for (uint32_t i = 1; i < classes; i++) {
			best = z[i] > z[best] ? i : best;
		}
		wrong += best != (uint32_t)call->y[row];
	}
	return (double)wrong;
}

enum weft_status
wf_model_mlp_init(const struct wf_model_opts *opts, struct wf_model *out)
{
	static const struct wf_model_ops ops = {
		.init = wf_layers_init,
		.gradient = mlp_gradient,
		.test = mlp_test,
	};
	struct wf_model model = {.ops = &ops,
				 .kernels = opts->kernels,
				 .features = opts->features,
				 .activation = WF_MODEL_RELU};

	WF_ASSERT(opts->features >= 1 && opts->classes >= 2);
	model.width[0] = opts->features;
	enum weft_status st = wf_layers_parse_hidden(opts->hidden, &model);
	if (st != WEFT_OK) {
		return st;
	}
	model.width[++model.layer_count] = opts->classes;
	wf_layers_name(&model);
	*out = model;
	return WEFT_OK;
}
