/* SPDX-License-Identifier: Apache-2.0 */
/* Least squares by gradient descent: the original's fit_a_line. Thread: any. */
#include "trainer/models/model.h"

#include <cblas.h>

#include "base/assert.h"
#include "base/rng.h"

#define WEIGHT 0u
#define BIAS 1u
#define INITIAL_LIMIT 0.01f

static void
linear_init(const struct wf_model *model, uint64_t seed, float *const *param)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	wf_model_fill_uniform(&rng, INITIAL_LIMIT, param[WEIGHT], model->width[0]);
	param[BIAS][0] = 0.0f;
}

/* work[row] = x[row] . w + b - y[row]; returns the sum of squares. */
static double
residuals(const struct wf_model *model, const struct wf_model_call *call)
{
	const int rows = (int)call->rows;
	const int features = (int)model->width[0];
	double sum = 0.0;

	for (size_t row = 0; row < call->rows; row++) {
		call->work[row] = call->param[BIAS][0];
	}
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, 1, features, 1.0f, call->x,
		    features, call->param[WEIGHT], 1, 1.0f, call->work, 1);
	for (size_t row = 0; row < call->rows; row++) {
		call->work[row] -= call->y[row];
		sum += (double)call->work[row] * (double)call->work[row];
	}
	return sum;
}

/* d/dw sum r^2 = x^T 2r */
static double
linear_gradient(const struct wf_model *model, const struct wf_model_call *call)
{
	const int rows = (int)call->rows;
	const int features = (int)model->width[0];
	float bias = 0.0f;

	WF_ASSERT(call->rows >= 1);
	double cost = residuals(model, call);
	for (size_t row = 0; row < call->rows; row++) {
		call->work[row] *= 2.0f;
		bias += call->work[row];
	}
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, features, 1, rows, 1.0f, call->x,
		    features, call->work, 1, 0.0f, call->grad[WEIGHT], 1);
	call->grad[BIAS][0] = bias;
	return cost;
}

enum weft_status
wf_model_linear_init(const struct wf_model_opts *opts, struct wf_model *out)
{
	static const struct wf_model_ops ops = {
		.init = linear_init,
		.gradient = linear_gradient,
		.test = residuals,
	};
	WF_ASSERT(opts->features >= 1);
	if (opts->hidden != NULL && opts->hidden[0] != '\0') {
		return wf_fail(
			WEFT_INVALID,
			"hidden=%.80s: the linear model has no hidden layers; use mlp, or leave "
			"the option out",
			opts->hidden);
	}
	*out = (struct wf_model){
		.ops = &ops,
		.kernels = opts->kernels,
		.tensor_count = 2,
		.tensor = {[WEIGHT] = {.name = "fc_w", .rows = opts->features, .cols = 1},
			   [BIAS] = {.name = "fc_b", .rows = 1, .cols = 1}},
		.features = opts->features,
		.layer_count = 1,
		.width = {opts->features, 1},
	};
	return WEFT_OK;
}
