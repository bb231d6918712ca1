/* SPDX-License-Identifier: Apache-2.0 */
/* rounded: there and back, a part at a time. Thread: any. */
#include "base/settings.h"
#include "trainer/program/rounded.h"

#include <inttypes.h>

#include "kernels/halves.h"

#define PART 1024u /* elements at a time */

static void
round_gradient(const struct wf_run *job, struct wf_halves_draw *draw, float *grad, size_t count)
{
	const struct wf_row_half *half = &job->kernels->rows->half[job->terms.dense_wire];
	uint16_t part[PART];

	for (size_t first = 0; first < count; first += PART) {
		const size_t here = count - first < PART ? count - first : PART;
		draw->first = first;
		draw->in = grad + first;
		draw->count = here;
		if (job->terms.is_drawing) {
			wf_halves_draw(job->kernels, draw, part);
		} else {
			half->narrow(part, grad + first, here);
		}
		half->widen(grad + first, part, here);
	}
}

void
wf_run_round_gradients(const struct wf_run *job, uint32_t trainer, uint64_t step,
		       float *const *grad)
{
	for (unsigned t = 0; wf_run_rounds(job) && t < job->model.tensor_count; t++) {
		struct wf_halves_draw draw = {.form = job->terms.dense_wire,
					      .seed = job->seed,
					      .trainer = trainer,
					      .tensor = t,
					      .step = step};
		round_gradient(job, &draw, grad[t], wf_model_tensor_count(&job->model, t));
	}
}

enum weft_status
wf_run_round_values(const struct wf_run *job, unsigned tensor, const float *exact, float *out)
{
	const struct wf_row_half *half = &job->kernels->rows->half[job->terms.dense_wire];
	const size_t count = wf_model_tensor_count(&job->model, tensor);
	uint16_t part[PART];
	size_t lost = 0;

	for (size_t first = 0; first < count; first += PART) {
		const size_t here = count - first < PART ? count - first : PART;
		half->narrow(part, exact + first, here);
		lost += wf_halves_overflows(job->kernels, job->terms.dense_wire, part,
					    exact + first, here);
		half->widen(out + first, part, here);
	}
	if (lost > 0) {
		return wf_fail(WEFT_DATA,
			       "tensor %s: %zu values are too large for dense_wire=%s; a smaller "
			       "learning_rate may help, or dense_wire=%s",
			       job->model.tensor[tensor].name, lost,
			       wf_setting_text(&job->opts->values, "dense_wire").text,
			       job->terms.dense_wire == WEFT_VALUES_F16 ? "bf16" : "f32");
	}
	return WEFT_OK;
}
