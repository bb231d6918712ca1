/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layers with ReLU, softmax and cross-entropy at the end. Thread: any.
 *
 * Matrices are row-major: layer l computes out[l] = relu(out[l-1] W + b), W [in, out]. Going back,
 * the array that held out[l] is reused for the gradient at layer l's sums. */
#include "trainer/models/model.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

#define WIDTH_MAX 65536u

/* How a call's work memory is divided. */
struct work {
	float *out[WF_MODEL_LAYERS_MAX + 1]; /* [rows, width[layer]]; 0 is the input and not here */
	float *scratch;                      /* [rows, widest] */
	float *right; /* [rows] the right class's sum, less the row's maximum */
	float *total; /* [rows] sum of exponentials, then its logarithm */
};

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

static struct work
divide(const struct wf_model *model, const struct wf_model_call *call)
{
	struct work work = {0};
	float *at = call->work;

	work.total = at;
	work.right = at + call->rows;
	at += 2 * call->rows;
	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		work.out[layer] = at;
		at += call->rows * model->width[layer];
	}
	work.scratch = at;
	return work;
}

static void
mlp_init(const struct wf_model *model, uint64_t seed, float *const *param)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		float limit = (float)sqrt(6.0 / (double)model->width[layer - 1]);
		unsigned weight = weight_of(layer);
		wf_model_fill_uniform(&rng, limit, param[weight],
				      wf_model_tensor_count(model, weight));
		memset(param[bias_of(layer)], 0, model->width[layer] * sizeof(float));
	}
}

static void
relu(float *value, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* Written so that NaN stays NaN: the fabric has to see it. */
		value[i] = value[i] < 0.0f ? 0.0f : value[i];
	}
}

/* Sums of all layers, up to those of the output layer (no softmax yet). */
static void
forward(const struct wf_model *model, const struct wf_model_call *call, const struct work *work)
{
	const float *in = call->x;

	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		const int in_width = (int)model->width[layer - 1];
		const int out_width = (int)model->width[layer];
		float *out = work->out[layer];
		for (size_t row = 0; row < call->rows; row++) {
			memcpy(out + row * model->width[layer], call->param[bias_of(layer)],
			       model->width[layer] * sizeof(float));
		}
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)call->rows, out_width,
			    in_width, 1.0f, in, in_width, call->param[weight_of(layer)], out_width,
			    1.0f, out, out_width);
		if (layer < model->layer_count) {
			relu(out, call->rows * model->width[layer]);
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

/* Turn the output layer's sums into their gradient; returns the summed cost. */
static double
cross_entropy(const struct wf_model *model, const struct wf_model_call *call,
	      const struct work *work)
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

/* From the gradient at layer `layer`'s sums to that at the sums of the layer before it. */
static void
backward_through(const struct wf_model *model, const struct wf_model_call *call,
		 const struct work *work, unsigned layer)
{
	const int in_width = (int)model->width[layer - 1];
	const int out_width = (int)model->width[layer];
	const size_t count = call->rows * model->width[layer - 1];
	float *before = work->out[layer - 1];

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)call->rows, in_width, out_width,
		    1.0f, work->out[layer], out_width, call->param[weight_of(layer)], out_width,
		    0.0f, work->scratch, in_width);
	for (size_t i = 0; i < count; i++) {
		before[i] = before[i] > 0.0f ? work->scratch[i] : 0.0f;
	}
}

static double
mlp_gradient(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct work work = divide(model, call);

	WF_ASSERT(call->rows >= 1);
	forward(model, call, &work);
	double cost = cross_entropy(model, call, &work);
	for (unsigned layer = model->layer_count; layer >= 1; layer--) {
		const int in_width = (int)model->width[layer - 1];
		const int out_width = (int)model->width[layer];
		const float *in = layer == 1 ? call->x : work.out[layer - 1];
		cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in_width, out_width,
			    (int)call->rows, 1.0f, in, in_width, work.out[layer], out_width, 0.0f,
			    call->grad[weight_of(layer)], out_width);
		sum_rows(work.out[layer], call->rows, model->width[layer],
			 call->grad[bias_of(layer)]);
		if (layer > 1) {
			backward_through(model, call, &work, layer);
		}
	}
	return cost;
}

static double
mlp_test(const struct wf_model *model, const struct wf_model_call *call)
{
	const struct work work = divide(model, call);
	const uint32_t classes = model->width[model->layer_count];
	size_t wrong = 0;

	forward(model, call, &work);
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

/* Widths of the hidden layers out of "32,16". */
static enum weft_status
parse_hidden(const char *text, struct wf_model *model)
{
	const char *at = text;

	while (*at != '\0') {
		char *end = NULL;
		unsigned long width = 0;
		if (*at >= '0' && *at <= '9') {
			width = strtoul(at, &end, 10);
		}
		if (end == NULL || width < 1 || width > WIDTH_MAX ||
		    (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
			return wf_fail(
				WEFT_INVALID,
				"hidden=%.80s: \"%.16s\" is not a width of 1..%u; give widths "
				"with commas, as in --hidden=32,16",
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

static void
name_tensors(struct wf_model *model)
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

enum weft_status
wf_model_mlp_init(const struct wf_model_opts *opts, struct wf_model *out)
{
	static const struct wf_model_ops ops = {
		.init = mlp_init,
		.gradient = mlp_gradient,
		.test = mlp_test,
	};
	struct wf_model model = {.ops = &ops, .kernels = opts->kernels};

	WF_ASSERT(opts->features >= 1 && opts->classes >= 2);
	model.width[0] = opts->features;
	enum weft_status st = parse_hidden(opts->hidden == NULL ? "" : opts->hidden, &model);
	if (st != WEFT_OK) {
		return st;
	}
	model.width[++model.layer_count] = opts->classes;
	name_tensors(&model);
	*out = model;
	return WEFT_OK;
}
