/* SPDX-License-Identifier: Apache-2.0 */
/* model: what the training program knows of a model: named tensors, initial values, the gradient
 * summed over some rows, and a figure to test with.
 *
 * A model holds no parameters and no memory that a call writes to: all of it comes with the call,
 * so one model serves any number of threads. Nothing allocates after create. libm is not used: exp
 * and log come from kernels/, sqrt is IEEE's own. Thread: read-only after create. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "kernels/kernels.h"

#define WF_MODEL_LAYERS_MAX 9u /* of mlp: eight hidden ones and the output */
#define WF_MODEL_TENSORS_MAX (2 * WF_MODEL_LAYERS_MAX)
#define WF_MODEL_NAME_BYTES 16u

struct wf_model;

struct wf_model_tensor {
	char name[WF_MODEL_NAME_BYTES];
	uint32_t rows, cols;
};

/* One computation over `rows` rows. Borrowed for the call. */
struct wf_model_call {
	const float *const *param; /* one array per tensor */
	float *const *grad;        /* one array per tensor, overwritten; NULL for test */
	const float *x;            /* [rows, features] */
	const float *y;            /* [rows] */
	size_t rows;               /* >= 1 */
	float *work;               /* [wf_model_work_count(model, rows)], contents of no meaning */
};

struct wf_model_ops {
	/* Initial values from a seed. */
	void (*init)(const struct wf_model *model, uint64_t seed, float *const *param);
	/* Gradients of the summed cost; returns that sum. */
	double (*gradient)(const struct wf_model *model, const struct wf_model_call *call);
	/* The test figure, summed over the rows: squared errors, or wrong answers. */
	double (*test)(const struct wf_model *model, const struct wf_model_call *call);
};

struct wf_model {
	const struct wf_model_ops *ops;
	const struct wf_kernels *kernels; /* lent until destroy */
	unsigned tensor_count;
	struct wf_model_tensor tensor[WF_MODEL_TENSORS_MAX];
	unsigned layer_count;                    /* linear: 1 */
	uint32_t width[WF_MODEL_LAYERS_MAX + 1]; /* of the input and of each layer */
};

struct wf_model_opts {
	uint32_t features;
	uint32_t classes;   /* mlp: >= 2 */
	const char *hidden; /* mlp: widths of the hidden layers, "32,16"; "" or NULL: none */
	const struct wf_kernels *kernels;
};

/* Least squares, y = x w + b. Tensors fc_w [features, 1] and fc_b [1]. Cost and test figure are
 * squared errors. Weights start within +-0.01, the bias at 0. */
enum weft_status wf_model_linear_init(const struct wf_model_opts *opts,
				      struct wf_model *out) WEFT_MUST_CHECK;
/* Layers with ReLU, then softmax with cross-entropy. Tensors fc1_w [in, out], fc1_b [out], fc2_w ..
 * Cost is -log of the right class's probability, the test figure counts wrong answers. Weights of a
 * layer start within +-sqrt(6 / in) (He et al., "Delving deep into rectifiers", 2015), biases at 0.
 * WEFT_INVALID: `hidden`, the entry and what is allowed. */
enum weft_status wf_model_mlp_init(const struct wf_model_opts *opts,
				   struct wf_model *out) WEFT_MUST_CHECK;

static inline size_t
wf_model_tensor_count(const struct wf_model *model, unsigned idx)
{
	return (size_t)model->tensor[idx].rows * model->tensor[idx].cols;
}

/* How many floats of work memory a call over `rows` rows needs. */
size_t wf_model_work_count(const struct wf_model *model, size_t rows);
/* Fill `param` with `count` values, uniform in [-limit, limit). */
struct wf_rng;
void wf_model_fill_uniform(struct wf_rng *rng, float limit, float *param, size_t count);
