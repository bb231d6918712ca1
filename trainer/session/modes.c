/* SPDX-License-Identifier: Apache-2.0 */
/* modes: when pushes of tensors are applied, as given in the job's description. Thread: the
 * owner's. */
#include "trainer/session/session.h"

/* Nothing is applied to a tensor that is only reduced, so that there is nothing to set. */
static enum weft_status
check_reduced(const struct weft_tensor_opts *opts)
{
	bool plain = opts->rate_multiplier == 0 || opts->rate_multiplier == 1;
	if (opts->is_reduced == 0 ||
	    (plain && opts->decay == 0 && opts->clip == 0 && opts->l1 == 0)) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID,
		       "tensor %s: is_reduced: nothing is applied to it; leave rate_multiplier, "
		       "decay, clip and l1 0",
		       opts->name);
}

enum weft_status
wf_modes_fill_tensor(const struct wf_job *job, const struct weft_tensor_opts *opts,
		     struct wf_job_tensor *tensor)
{
	tensor->is_static = opts->is_static != 0;
	tensor->is_reduced = opts->is_reduced != 0;
	tensor->mode = opts->mode;
	tensor->staleness = opts->staleness;
	tensor->discard_ratio = opts->discard_ratio;
	enum weft_status st = check_reduced(opts);
	if (st == WEFT_OK) {
		st = wf_job_check_terms(job, tensor);
	}
	if (st == WEFT_OK) {
		st = wf_job_check_steps(job, tensor);
	}
	if (tensor->mode == WEFT_TENSOR_BOUNDED && tensor->staleness == 0) {
		tensor->mode = WEFT_TENSOR_SYNC;
		tensor->discard_ratio = 0;
	}
	return st;
}
