/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: the optimizer's settings as the job has them.
 * Thread: the owner's. */
#include "kernels/optimizer.h"
#include "trainer/session.h"

WF_STATIC_ASSERT(WF_SEGMENTS_MAX == WF_JOB_SEGMENTS_MAX, "the job has room for all segments");

enum weft_status
wf_session_optimizer_fill(const struct weft_optimizer_opts *in, struct wf_job *job)
{
	struct wf_job_optimizer *out = &job->optimizer;
	struct wf_optimizer_opts opts;
	enum weft_status st = wf_optimizer_read(in, &opts);
	if (st != WEFT_OK) {
		return st;
	}
	*out = (struct wf_job_optimizer){
		.kind = (uint32_t)opts.kind,
		.schedule = (uint32_t)opts.schedule,
		.learning_rate = opts.learning_rate,
		.momentum = opts.momentum,
		.beta1 = opts.beta1,
		.beta2 = opts.beta2,
		.epsilon = opts.epsilon,
		.decay = opts.decay,
		.clip = opts.clip,
		.schedule_a = opts.schedule_a,
		.schedule_b = opts.schedule_b,
		.rho = opts.rho,
		.l1 = opts.l1,
		.first_pass = opts.first_pass,
		.clip_norm = opts.clip_norm,
		.average_window = opts.average_window,
		.average_max = opts.average_max,
		.segment_count = opts.segment_count,
	};
	for (uint32_t i = 0; i < opts.segment_count; i++) {
		out->segment[i].until = opts.segment[i].until;
		out->segment[i].factor = opts.segment[i].factor;
	}
	return WEFT_OK;
}
