/* SPDX-License-Identifier: Apache-2.0 */
/* Wide and deep: will there be a click, or damage. Thread: any.
 *
 * Without embedding, features and hidden layers there is no layer, and one bias is all the dense
 * tensors there are. */
#include <string.h>

#include "base/assert.h"
#include "trainer/models/layers.h"

#define WIDE 0u
#define DEEP 1u
#define ROW_LIMIT 0.05f

static bool
has_deep_table(const struct wf_model *model)
{
	return model->table_count > DEEP;
}

static float *
log_odds(const struct wf_model *model, const struct wf_layers_work *work)
{
	return model->layer_count == 0 ? work->scratch : work->out[model->layer_count];
}

/* The rows' sums of the deep table and their features, side by side. */
static void
join(const struct wf_model *model, const struct wf_model_call *call,
     const struct wf_layers_work *work)
{
	const size_t left = model->width[0] - model->features;

	if (has_deep_table(model)) {
		wf_layers_join(model, call, DEEP, work->joined);
	}
	for (size_t row = 0; row < call->rows && model->features > 0; row++) {
		memcpy(work->joined + row * model->width[0] + left, call->x + row * model->features,
		       model->features * sizeof(float));
	}
}

static void
add_wide(const struct wf_model *model, const struct wf_model_call *call, float *z)
{
	const struct wf_model_bags *bags = call->bags;

	for (size_t row = 0; row < call->rows; row++) {
		uint32_t end = bags->first[(row + 1) * model->slots];
		for (uint32_t entry = bags->first[row * model->slots]; entry < end; entry++) {
			z[row] += bags->weight[entry] * bags->row[WIDE][bags->place[WIDE][entry]];
		}
	}
}

/* From log-odds z to the gradient p - y at them; returns the summed cost, log(1 + exp(-z)) for y 1
 * and log(1 + exp(z)) for y 0, both written with exp(-|z|), which cannot overflow. */
static double
logistic(const struct wf_model *model, const struct wf_model_call *call,
	 const struct wf_layers_work *work, float *z)
{
	double cost = 0.0;

	for (size_t row = 0; row < call->rows; row++) {
		work->total[row] = z[row] < 0.0f ? z[row] : -z[row];
	}
	model->kernels->exp_f32(work->total, work->total, call->rows);
	for (size_t row = 0; row < call->rows; row++) {
		work->right[row] = 1.0f + work->total[row];
	}
	model->kernels->log_f32(work->right, work->right, call->rows);
	for (size_t row = 0; row < call->rows; row++) {
		const float small = work->total[row];
		const float p = (z[row] < 0.0f ? small : 1.0f) / (1.0f + small);
		const float linear = (z[row] < 0.0f ? 0.0f : z[row]) - z[row] * call->y[row];
		cost += (double)linear + (double)work->right[row];
		z[row] = p - call->y[row];
	}
	return cost;
}

static double
forward(const struct wf_model *model, const struct wf_model_call *call,
	const struct wf_layers_work *work)
{
	float *z = log_odds(model, work);

	join(model, call, work);
	wf_layers_forward(model, call, work);
	for (size_t row = 0; model->layer_count == 0 && row < call->rows; row++) {
		z[row] = call->param[0][0];
	}
	add_wide(model, call, z);
	if (call->bags->score != NULL) {
		memcpy(call->bags->score, z, call->rows * sizeof(float));
	}
	return logistic(model, call, work, z);
}

/* Entries of the wide table; must come before the layers reuse the gradient's memory. */
static void
backward_wide(const struct wf_model *model, const struct wf_model_call *call, const float *delta)
{
	const struct wf_model_bags *bags = call->bags;

	for (size_t row = 0; row < call->rows; row++) {
		uint32_t end = bags->first[(row + 1) * model->slots];
		for (uint32_t entry = bags->first[row * model->slots]; entry < end; entry++) {
			bags->entry_grad[WIDE][entry] = bags->weight[entry] * delta[row];
		}
	}
}

static double
ctr_gradient(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);
	const float *delta = log_odds(model, &work);

	WF_ASSERT(call->rows >= 1 && call->bags != NULL);
	double cost = forward(model, call, &work);
	backward_wide(model, call, delta);
	if (model->layer_count == 0) {
		float sum = 0.0f;
		for (size_t row = 0; row < call->rows; row++) {
			sum += delta[row];
		}
		call->grad[0][0] = sum;
	}
	wf_layers_backward(model, call, &work);
	if (has_deep_table(model)) {
		wf_layers_part(model, call, DEEP, work.scratch);
	}
	return cost;
}

static double
ctr_test(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct wf_layers_work work = wf_layers_divide(model, call);

	WF_ASSERT(call->rows >= 1 && call->bags != NULL);
	return forward(model, call, &work);
}

static void
ctr_init(const struct wf_model *model, uint64_t seed, float *const *param)
{
	wf_layers_init(model, seed, param);
	if (model->layer_count == 0) {
		param[0][0] = 0.0f;
	} else if (model->layer_count == 1 && !has_deep_table(model)) {
		memset(param[0], 0, wf_model_tensor_count(model, 0) * sizeof(float));
	}
}

static enum weft_status
set_layers(const struct wf_model_opts *opts, struct wf_model *model)
{
	model->width[0] = opts->slots * opts->embedding + opts->features;
	enum weft_status st = wf_layers_parse_hidden(opts->hidden, model);
	if (st != WEFT_OK) {
		return st;
	}
	if (model->width[0] == 0 && model->layer_count > 0) {
		return wf_fail(WEFT_INVALID,
			       "hidden=%.80s: there is nothing below the hidden layers, neither "
			       "dense features nor an embedding; give --embedding, or leave "
			       "hidden out",
			       opts->hidden);
	}
	if (model->width[0] > 0) {
		model->width[++model->layer_count] = 1;
		wf_layers_name(model);
	} else {
		model->tensor_count = 1;
		model->tensor[0] = (struct wf_model_tensor){.name = "fc1_b", .rows = 1, .cols = 1};
	}
	return WEFT_OK;
}

enum weft_status
wf_model_ctr_init(const struct wf_model_opts *opts, struct wf_model *out)
{
	static const struct wf_model_ops ops = {
		.init = ctr_init,
		.gradient = ctr_gradient,
		.test = ctr_test,
	};
	struct wf_model model = {
		.ops = &ops,
		.kernels = opts->kernels,
		.activation = WF_MODEL_RELU,
		.features = opts->features,
		.slots = opts->slots,
		.table_count = opts->embedding > 0 ? 2 : 1,
		.table = {[WIDE] = {.name = "wide", .width = 1, .limit = 0.0f},
			  [DEEP] = {.name = "deep", .width = opts->embedding, .limit = ROW_LIMIT}},
	};
	WF_ASSERT(opts->slots >= 1);
	enum weft_status st = set_layers(opts, &model);
	if (st == WEFT_OK) {
		*out = model;
	}
	return st;
}
