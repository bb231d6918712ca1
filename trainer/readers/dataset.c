/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a data set. Thread: the caller's. */
#include "trainer/readers/dataset.h"

#include <string.h>

void
wf_dataset_row(const struct wf_dataset *dataset, size_t row, float *x)
{
	const size_t at = row * dataset->features;

	if (dataset->pixel == NULL) {
		memcpy(x, dataset->x + at, dataset->features * sizeof(float));
		return;
	}
	for (uint32_t i = 0; i < dataset->features; i++) {
		x[i] = (float)(dataset->pixel[at + i] / 255.0);
	}
}

void
wf_dataset_fini(struct wf_env *env, struct wf_dataset *dataset)
{
	wf_free(env, dataset->x, dataset->rows * dataset->features * sizeof(float));
	wf_free(env, dataset->pixel, dataset->rows * dataset->features);
	wf_free(env, dataset->y, dataset->rows * sizeof(float));
	*dataset = (struct wf_dataset){0};
}
