/* SPDX-License-Identifier: Apache-2.0 */
/* What the models share. Thread: any. */
#include "trainer/models/model.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

/* Outputs of every layer, one scratch of the widest layer, and two numbers per row; with tables,
 * also the input put together, and the scratch has to hold the gradient at it. */
size_t
wf_model_work_count(const struct wf_model *model, size_t rows)
{
	size_t widest = model->table_count > 0 ? (size_t)model->width[0] + 1 : 0;
	size_t total = model->table_count > 0 ? model->width[0] : 0;

	for (unsigned layer = 1; layer <= model->layer_count; layer++) {
		total += model->width[layer];
		widest = model->width[layer] > widest ? model->width[layer] : widest;
	}
	return rows * (total + widest + 2);
}

void
wf_model_merge_rows(const float *entry_grad, const uint32_t *place, size_t entries, uint32_t width,
		    float *row_grad, size_t rows)
{
	memset(row_grad, 0, rows * width * sizeof(float));
	for (size_t entry = 0; entry < entries; entry++) {
		float *out = row_grad + (size_t)place[entry] * width;
		WF_ASSERT(place[entry] < rows);
		for (uint32_t i = 0; i < width; i++) {
			out[i] += entry_grad[entry * width + i];
		}
	}
}

void
wf_model_fill_uniform(struct wf_rng *rng, float limit, float *param, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		param[i] = (float)((2.0 * wf_rng_f64(rng) - 1.0) * (double)limit);
	}
}
