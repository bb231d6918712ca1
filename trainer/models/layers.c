/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers. Matrices are row-major: layer l computes out[l] = f(out[l-1] W + b), W
 * [in, out]. Going back, the array that held out[l] is reused for the gradient at layer l's sums.
 * Thread: any. */
#include "trainer/models/layers.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

#define WIDTH_MAX 65536u

static unsigned
weight_of(unsigned layer)
{
	return 2 * (layer - 1);
}

static unsigned
bias_of(unsigned layer)
{
	return 2 * (layer - 1) + 1;
}

enum weft_status
wf_layers_parse_hidden(const char *text, struct wf_model *model)
{
	const char *at = text == NULL ? "" : text;

	while (*at != '\0') {
		char *end = NULL;
		unsigned long width = 0;
		if (*at >= '0' && *at <= '9') {
			width = strtoul(at, &end, 10);
		}
		if (end == NULL || width < 1 || width > WIDTH_MAX ||
		    (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
			return wf_fail(WEFT_INVALID,
				       "hidden=%.80s: \"%.16s\" is not a width of 1..%u; give "
				       "widths separated by commas, as in --hidden=32,16",
				       text, at, WIDTH_MAX);
		}
		if (model->layer_count == WF_MODEL_LAYERS_MAX - 1) {
			return wf_fail(WEFT_INVALID, "hidden=%.80s: has more than %u layers", text,
				       WF_MODEL_LAYERS_MAX - 1);
		}
		model->width[++model->layer_count] = (uint32_t)width;
		at = *end == ',' ? end + 1 : end;
	}
	return WEFT_OK;
}

void
wf_layers_name(struct wf_model *model)
{
	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		struct wf_model_tensor *weight = &model->tensor[weight_of(layer)];
		struct wf_model_tensor *bias = &model->tensor[bias_of(layer)];
		snprintf(weight->name, sizeof(weight->name), "fc%u_w", layer);
		weight->rows = model->width[layer - 1];
		weight->cols = model->width[layer];
		snprintf(bias->name, sizeof(bias->name), "fc%u_b", layer);
		bias->rows = 1;
		bias->cols = model->width[layer];
	}
	model->tensor_count = 2 * model->layer_count;
}

void
wf_layers_init(const struct wf_model *model, uint64_t seed, float *const *param)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		double fan = (double)model->width[layer - 1];
		if (model->activation == WF_MODEL_SIGMOID) {
			fan += (double)model->width[layer];
		}
		float limit = (float)sqrt(6.0 / fan);
		unsigned weight = weight_of(layer);
		wf_model_fill_uniform(&rng, limit, param[weight],
				      wf_model_tensor_count(model, weight));
		memset(param[bias_of(layer)], 0, model->width[layer] * sizeof(float));
	}
}

struct wf_layers_work
wf_layers_divide(const struct wf_model *model, const struct wf_model_call *call)
{
	struct wf_layers_work work = {.in = call->x};
	float *at = call->work;

	work.total = at;
	work.right = at + call->rows;
	at += 2 * call->rows;
	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		work.out[layer] = at;
		at += call->rows * model->width[layer];
	}
	if (model->table_count > 0) {
		work.in = work.joined = at;
		at += call->rows * model->width[0];
	}
	work.scratch = at;
	return work;
}

static void
relu(float *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Written so that NaN stays NaN: the fabric must see it. */
		value[i] = value[i] < 0.0f ? 0.0f : value[i];
	}
}

/* 1 / (1 + exp(-v)); exp's overflow makes it 0. */
static void
sigmoid(const struct wf_kernels *kernels, float *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		value[i] = -value[i];
	}
	kernels->exp_f32(value, value, count);
	for (size_t i = 0; i < count; i++) {
		value[i] = 1.0f / (1.0f + value[i]);
	}
}

void
wf_layers_forward(const struct wf_model *model, const struct wf_model_call *call,
		  const struct wf_layers_work *work)
{
	const float *in = work->in;

	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		const int in_width = (int)model->width[layer - 1];
		const int out_width = (int)model->width[layer];
		const size_t count = call->rows * model->width[layer];
		float *out = work->out[layer];
		for (size_t row = 0; row < call->rows; row++) {
			memcpy(out + row * model->width[layer], call->param[bias_of(layer)],
			       model->width[layer] * sizeof(float));
		}
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)call->rows, out_width,
			    in_width, 1.0f, in, in_width, call->param[weight_of(layer)], out_width,
			    1.0f, out, out_width);
		if (layer < model->layer_count && model->activation == WF_MODEL_RELU) {
			relu(out, count);
		} else if (layer < model->layer_count) {
			sigmoid(model->kernels, out, count);
		}
		in = out;
	}
}

/* Softmax of one row whose exponentials are in z, less one at the right class: the gradient of the
 * cross-entropy at the output layer's sums. */
static float
softmax_row(float *z, uint32_t classes, size_t label)
{
	float total = 0.0f;
	for (uint32_t i = 0; i < classes; i++) {
		total += z[i];
	}
	for (uint32_t i = 0; i < classes; i++) {
		z[i] = z[i] / total;
	}
	z[label] -= 1.0f;
	return total;
}

double
wf_layers_cross_entropy(const struct wf_model *model, const struct wf_model_call *call,
			const struct wf_layers_work *work)
{
	const uint32_t classes = model->width[model->layer_count];
	float *out = work->out[model->layer_count];
	double cost = 0.0;

	for (size_t row = 0; row < call->rows; row++) {
		float *z = out + row * classes;
		float max = z[0];
		for (uint32_t i = 1; i < classes; i++) {
			max = z[i] > max ? z[i] : max;
		}
		for (uint32_t i = 0; i < classes; i++) {
			z[i] -= max;
		}
		work->right[row] = z[(size_t)call->y[row]];
	}
	model->kernels->exp_f32(out, out, call->rows * classes);
	for (size_t row = 0; row < call->rows; row++) {
		work->total[row] = softmax_row(out + row * classes, classes, (size_t)call->y[row]);
	}
	model->kernels->log_f32(work->total, work->total, call->rows);
	for (size_t row = 0; row < call->rows; row++) {
		cost += (double)work->total[row] - (double)work->right[row];
	}
	return cost;
}

/* bias[col] = delta[0, col] + delta[1, col] + ... */
static void
sum_rows(const float *delta, size_t rows, uint32_t cols, float *bias)
{
	memcpy(bias, delta, cols * sizeof(float));
	for (size_t row = 1; row < rows; row++) {
		for (uint32_t col = 0; col < cols; col++) {
			bias[col] += delta[row * cols + col];
		}
	}
}

/* From the gradient at a layer's outputs to that at its sums, in the place of the outputs. */
static void
through_activation(const struct wf_model *model, const float *grad, float *out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (model->activation == WF_MODEL_RELU) {
			out[i] = out[i] > 0.0f ? grad[i] : 0.0f;
		} else {
			out[i] = grad[i] * (out[i] * (1.0f - out[i]));
		}
	}
}

/* scratch = the gradient at layer `layer`'s input, from that at its sums. */
static void
backward_through(const struct wf_model *model, const struct wf_model_call *call,
		 const struct wf_layers_work *work, unsigned layer)
{
	const int in_width = (int)model->width[layer - 1];
	const int out_width = (int)model->width[layer];

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)call->rows, in_width, out_width,
		    1.0f, work->out[layer], out_width, call->param[weight_of(layer)], out_width,
		    0.0f, work->scratch, in_width);
}

void
wf_layers_backward(const struct wf_model *model, const struct wf_model_call *call,
		   const struct wf_layers_work *work)
{
	for (unsigned layer = model->layer_count; layer >= 1; layer--) {
		const int in_width = (int)model->width[layer - 1];
		const int out_width = (int)model->width[layer];
		const float *in = layer == 1 ? work->in : work->out[layer - 1];
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in_width, out_width,
			    (int)call->rows, 1.0f, in, in_width, work->out[layer], out_width, 0.0f,
			    call->grad[weight_of(layer)], out_width);
		sum_rows(work->out[layer], call->rows, model->width[layer],
			 call->grad[bias_of(layer)]);
		if (layer > 1 || model->table_count > 0) {
			backward_through(model, call, work, layer);
		}
		if (layer > 1) {
			through_activation(model, work->scratch, work->out[layer - 1],
					   call->rows * model->width[layer - 1]);
		}
	}
}

/* The columns of `joined` that belong to a slot of a row. */
static size_t
slot_at(const struct wf_model *model, unsigned table, size_t row, uint32_t slot)
{
	return row * model->width[0] + (size_t)slot * model->table[table].width;
}

void
wf_layers_join(const struct wf_model *model, const struct wf_model_call *call, unsigned table,
	       float *joined)
{
	const struct wf_model_bags *bags = call->bags;
	const uint32_t width = model->table[table].width;

	for (size_t bag = 0; bag < call->rows * model->slots; bag++) {
		float *out = joined + slot_at(model, table, bag / model->slots,
					      (uint32_t)(bag % model->slots));
		memset(out, 0, width * sizeof(float));
		for (uint32_t entry = bags->first[bag]; entry < bags->first[bag + 1]; entry++) {
			const float *row =
				bags->row[table] + (size_t)bags->place[table][entry] * width;
			for (uint32_t i = 0; i < width; i++) {
				out[i] += bags->weight[entry] * row[i];
			}
		}
	}
}

void
wf_layers_part(const struct wf_model *model, const struct wf_model_call *call, unsigned table,
	       const float *joined_grad)
{
	const struct wf_model_bags *bags = call->bags;
	const uint32_t width = model->table[table].width;

	for (size_t bag = 0; bag < call->rows * model->slots; bag++) {
		const float *in = joined_grad + slot_at(model, table, bag / model->slots,
							(uint32_t)(bag % model->slots));
		for (uint32_t entry = bags->first[bag]; entry < bags->first[bag + 1]; entry++) {
			float *grad = bags->entry_grad[table] + (size_t)entry * width;
			for (uint32_t i = 0; i < width; i++) {
				grad[i] = bags->weight[entry] * in[i];
			}
		}
	}
}
