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
#define WF_MODEL_TABLES_MAX 2u

struct wf_model;

struct wf_model_tensor {
	char name[WF_MODEL_NAME_BYTES];
	uint32_t rows, cols;
};

/* A table of rows that are found by key. The owner of the table gives new rows their values. */
struct wf_model_table {
	char name[WF_MODEL_NAME_BYTES];
	uint32_t width; /* values of a row */
	float limit;    /* new rows are uniform in [-limit, limit); 0: zeros */
};

/* The arguments of a call for a model with tables. Bags and entries are those of
 * trainer/readers/bags.h: row r of the batch has the bags r * slots + slot, and bag b the entries
 * first[b] .. first[b + 1] - 1, the same ones for all tables. A part of a batch is given by
 * advancing `first`: its values, and so entry[] and entry_grad[], count from the start of the whole
 * batch. Borrowed for the call. */
struct wf_model_bags {
	const uint32_t *first;        /* [rows * slots + 1] */
	const uint32_t *const *place; /* per table [entries]: which of its rows is the entry's */
	const float *weight;          /* [entries] */
	const float *const *row;  /* per table [.., width]: the rows, each as often as one likes */
	float *const *entry_grad; /* per table [entries, width]: gradient at each entry's row,
				     overwritten; NULL for test */
	float *score; /* [rows] ngram: log p of the target; ctr: the log-odds; NULL: not wanted */
};

/* One computation over `rows` rows. Borrowed for the call. */
struct wf_model_call {
	const float *const *param; /* one array per tensor */
	float *const *grad;        /* one array per tensor, overwritten; NULL for test */
	const float *x;            /* [rows, features] */
	const float *y;            /* [rows] */
	size_t rows;               /* >= 1 */
	float *work;               /* [wf_model_work_count(model, rows)], contents of no meaning */
	const struct wf_model_bags *bags; /* of a model with tables, else NULL */
};

struct wf_model_ops {
	/* Initial values from a seed. */
	void (*init)(const struct wf_model *model, uint64_t seed, float *const *param);
	/* Gradients of the summed cost; returns that sum. */
	double (*gradient)(const struct wf_model *model, const struct wf_model_call *call);
	/* The test figure, summed over the rows: squared errors, wrong answers, or the cost. */
	double (*test)(const struct wf_model *model, const struct wf_model_call *call);
};

/* Between layers; the model interprets the sums of the last one. */
enum wf_model_activation {
	WF_MODEL_RELU,
	WF_MODEL_SIGMOID,
};

struct wf_model {
	const struct wf_model_ops *ops;
	const struct wf_kernels *kernels; /* lent until destroy */
	unsigned tensor_count;
	struct wf_model_tensor tensor[WF_MODEL_TENSORS_MAX];
	unsigned layer_count;                    /* linear: 1 */
	uint32_t width[WF_MODEL_LAYERS_MAX + 1]; /* of the input and of each layer */
	enum wf_model_activation activation;
	uint32_t features; /* columns of x */
	uint32_t slots;    /* bags of a row; 0: no tables */
	unsigned table_count;
	struct wf_model_table table[WF_MODEL_TABLES_MAX];
};

struct wf_model_opts {
	uint32_t features;
	uint32_t classes;   /* mlp, ngram: >= 2 */
	const char *hidden; /* widths of the hidden layers, "32,16"; "" or NULL: none */
	uint32_t slots;     /* ngram, ctr: bags of a row, >= 1 */
	uint32_t embedding; /* ngram, ctr: width of a row; ctr 0: wide part only */
	const struct wf_kernels *kernels;
};

/* Least squares, y = x w + b. Tensors fc_w [features, 1] and fc_b [1]. Cost and test figure are
 * squared errors. Weights start within +-0.01, the bias at 0. */
enum weft_status wf_model_linear_init(const struct wf_model_opts *opts,
				      struct wf_model *out) WEFT_MUST_CHECK;
/* Layers with ReLU, then softmax with cross-entropy. Tensors fc1_w [in, out], fc1_b [out], fc2_w ..
 * The cost is -log of the right class's probability; the test figure counts wrong answers. Weights
 * of a layer start within +-sqrt(6 / in) (He et al., "Delving deep into rectifiers", 2015), biases
 * at 0. WEFT_INVALID: `hidden`, the entry and what is allowed. */
enum weft_status wf_model_mlp_init(const struct wf_model_opts *opts,
				   struct wf_model *out) WEFT_MUST_CHECK;
/* The original's word2vec: rows of the table "proj" [embedding] for the words of the context, side
 * by side, through sigmoid layers to softmax with cross-entropy over the vocabulary. Tensors as of
 * mlp; the weights of a layer start within +-sqrt(6 / (in + out)) (Glorot and Bengio,
 * "Understanding the difficulty of training deep feedforward neural networks", 2010). Cost and test
 * figure are -log of the right word's probability. WEFT_INVALID as of mlp. */
enum weft_status wf_model_ngram_init(const struct wf_model_opts *opts,
				     struct wf_model *out) WEFT_MUST_CHECK;
/* Wide and deep (Cheng et al., "Wide & deep learning for recommender systems", 2016): the log-odds
 * are the sum of the entries' rows of the table "wide" [1] and what ReLU layers make of the slots'
 * sums of rows of the table "deep" [embedding], side by side, then the dense features. Tensors as
 * of mlp, with one output. With embedding 0 and no hidden layers it is logistic regression, and all
 * its weights start at 0. Cost and test figure are -log of the right class's probability.
 * WEFT_INVALID: as of mlp, or hidden layers with neither embedding nor features below them. */
enum weft_status wf_model_ctr_init(const struct wf_model_opts *opts,
				   struct wf_model *out) WEFT_MUST_CHECK;

static inline size_t
wf_model_tensor_count(const struct wf_model *model, unsigned idx)
{
	return (size_t)model->tensor[idx].rows * model->tensor[idx].cols;
}

/* How many floats of work memory a call over `rows` rows needs. */
size_t wf_model_work_count(const struct wf_model *model, size_t rows);
/* row_grad[place[e]] += entry_grad[e] in the order of the entries, from zero: the gradient at each
 * of `rows` rows, whatever parts the batch was computed in. */
void wf_model_merge_rows(const float *entry_grad, const uint32_t *place, size_t entries,
			 uint32_t width, float *row_grad, size_t rows);
/* Fills `param` with `count` values, uniform in [-limit, limit). */
struct wf_rng;
void wf_model_fill_uniform(struct wf_rng *rng, float limit, float *param, size_t count);
