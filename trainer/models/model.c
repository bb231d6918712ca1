/* SPDX-License-Identifier: Apache-2.0 */
/* What the models share. Thread: any. */
#include "trainer/models/model.h"

#include "base/rng.h"

/* Outputs of every layer, one scratch of the widest layer, and two numbers per row. */
size_t
wf_model_work_count(const struct wf_model *model, size_t rows)
{
	size_t widest = 0;
	size_t total = 0;

	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		total += model->width[layer];
		widest = model->width[layer] > widest ? model->width[layer] : widest;
	}
	return rows * (total + widest + 2);
}

void
wf_model_fill_uniform(struct wf_rng *rng, float limit, float *param, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		param[i] = (float)((2.0 * wf_rng_f64(rng) - 1.0) * (double)limit);
	}
}
