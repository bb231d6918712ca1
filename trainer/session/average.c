/* SPDX-License-Identifier: Apache-2.0 */
/* average: averages from the pservers' sums in the state that was pulled last. Thread: the
 * owner's. */
#include "kernels/average.h"

#include <inttypes.h>
#include <string.h>

#include "trainer/session/gate.h"
#include "trainer/session/session.h"

static enum weft_status
check_average(const struct weft_session *session, const char *name)
{
	if (!wf_optimizer_averages(&session->core.job.set.optimizer)) {
		return wf_fail(WEFT_INVALID,
			       "average of %s: the job keeps none; set average_window in the "
			       "options of the optimizer",
			       name);
	}
	if (!session->has_state) {
		return wf_fail(WEFT_INVALID,
			       "average of %s: its sums are not here; call weft_pull_state first, "
			       "with keep_state in the options",
			       name);
	}
	return WEFT_OK;
}

enum weft_status
weft_tensor_average(struct weft_tensor *tensor, float *out)
{
	WF_ENTER(tensor->session);
	const struct weft_session *session = tensor->session;
	const struct wf_job *job = &session->core.job;
	const size_t count = job->tensor[tensor->idx].count;
	const float *sum[WF_AVERAGE_SUMS];
	struct wf_average average;

	enum weft_status st = check_average(session, job->tensor[tensor->idx].name);
	if (st != WEFT_OK) {
		return st;
	}
	if (!wf_job_has_state(&job->tensor[tensor->idx])) {
		memcpy(out, weft_tensor_exact(tensor), count * sizeof(float));
		return WEFT_OK;
	}
	for (uint32_t i = 0; i < WF_AVERAGE_SUMS; i++) {
		uint32_t first = weft_state_count(session) - WF_AVERAGE_SUMS;
		sum[i] = weft_tensor_state(tensor, first + i);
	}
	const struct wf_optimizer_opts optimizer = wf_job_optimizer(job);
	wf_average_begin(&optimizer, tensor->state_step, &average);
	wf_average_value(&average, weft_tensor_exact(tensor), sum, out, count);
	return WEFT_OK;
}
