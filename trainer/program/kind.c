/* SPDX-License-Identifier: Apache-2.0 */
/* The models that can be trained. Thread: any. */
#include "trainer/program/kind.h"

#include <string.h>

#include "base/assert.h"

static const struct wf_kind kinds[] = {
	{
		.name = "linear",
		.summary = "least squares on the Boston housing data, 506 x 13 (fit_a_line)",
		.data_file = "housing.csv",
		.has_closed_form = true,
		.read = wf_housing_read,
		.init = wf_model_linear_init,
		.num_passes = 400,
		.batch_size = 0,
		.learning_rate = 1.0,
		.hidden = "",
	},
	{
		.name = "mlp",
		.summary = "layers with ReLU and softmax on the UCI digits, 1,797 x 64",
		.data_file = "digits.csv",
		.read = wf_digits_read,
		.init = wf_model_mlp_init,
		.num_passes = 20,
		.batch_size = 32,
		.learning_rate = 0.05,
		.hidden = "40",
	},
};

enum weft_status
wf_kind_by_name(const char *name, const struct wf_kind **out)
{
	for (unsigned i = 0; name != NULL && i < WF_ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0) {
			*out = &kinds[i];
			return WEFT_OK;
		}
	}
	if (name == NULL) {
		return wf_fail(WEFT_INVALID, "no model named; name one of: linear, mlp");
	}
	return wf_fail(WEFT_INVALID,
		       "model %.60s: there is no such model; name one of: linear, mlp", name);
}

const struct wf_kind *
wf_kind_at(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(kinds) ? &kinds[idx] : NULL;
}
