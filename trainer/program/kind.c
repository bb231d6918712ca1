/* SPDX-License-Identifier: Apache-2.0 */
/* The models that can be trained. Thread: any. */
#include "trainer/program/kind.h"

#include <string.h>

#include "base/assert.h"
#include "trainer/readers/idx.h"

static const struct wf_kind kinds[] = {
	{
		.name = "linear",
		.summary = "least squares on the Boston housing data, 506 x 13 (fit_a_line)",
		.data_file = "housing.csv",
		.whole = "scales its columns by the ranges of all rows",
		.has_closed_form = true,
		.can_stream = true,
		.read = wf_source_read_housing,
		.open_sheet = wf_source_open_housing,
		.init = wf_model_linear_init,
		.usual.num_passes = 400,
		.usual.batch_size = 0,
		.usual.optimizer = "momentum",
		.usual.learning_rate = 1.0,
		.usual.hidden = "",
	},
	{
		.name = "mlp",
		.summary = "layers with ReLU and softmax on the UCI digits, 1,797 x 64",
		.data_file = "digits.csv",
		.other_format = "idx",
		.other_data = WF_IDX_FASHION_MNIST,
		.other_package = "dataset-fashion-mnist",
		.can_stream = true,
		.read = wf_source_read_digits,
		.open_sheet = wf_source_open_digits,
		.init = wf_model_mlp_init,
		.usual.num_passes = 20,
		.usual.batch_size = 32,
		.usual.optimizer = "momentum",
		.usual.learning_rate = 0.05,
		.usual.hidden = "40",
	},
	{
		.name = "ngram",
		.summary = "the next word from four before it, in Moby-Dick (word2vec); one table",
		.data_file = "moby-dick.txt",
		.whole = "numbers the words of its text",
		.can_stream = true,
		.has_words = true,
		.has_tables = true,
		.read = wf_source_read_words,
		.init = wf_model_ngram_init,
		.usual.num_passes = 3,
		.usual.batch_size = 64,
		.usual.optimizer = "adagrad",
		.usual.learning_rate = 0.03,
		.usual.sparse_learning_rate = 1.0,
		.usual.hidden = "256",
		.usual.embedding = 32,
	},
	{
		.name = "ctr",
		.summary = "wide and deep on keyed features: damage by bird strikes; two tables",
		.data_file = "birdstrikes.csv",
		.data_format = "strikes",
		.can_stream = true,
		.has_tables = true,
		.read = wf_source_read_bags,
		.init = wf_model_ctr_init,
		.usual.num_passes = 3,
		.usual.batch_size = 32,
		.usual.optimizer = "adagrad",
		.usual.learning_rate = 0.02,
		.usual.sparse_learning_rate = 0.02,
		.usual.hidden = "32,16",
		.usual.embedding = 4,
	},
};

enum weft_status
wf_kind_by_name(const char *name, const struct wf_kind **out)
{
	enum weft_status st = wf_kind_check_name(name);
	if (st != WEFT_OK) {
		return st;
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*out = &kinds[i];
			return WEFT_OK;
		}
	}
	WF_ASSERT(false); /* the names of kind_name.c are those of the table */
	return WEFT_INTERNAL;
}

const struct wf_kind *
wf_kind_at(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(kinds) ? &kinds[idx] : NULL;
}
