/* SPDX-License-Identifier: Apache-2.0 */
/* modes: when what is pushed of tensors is applied, as the job's description has it. Thread: the
 * owner's. */
#include "trainer/session.h"

#define ELASTIC_SHARE 0.9 /* of the way to the center, all trainers together */

void
wf_modes_settle(struct wf_job *job)
{
	if (job->mode == WEFT_DENSE_BOUNDED && job->staleness == 0) {
		job->mode = WEFT_DENSE_SYNC; /* who may be no step ahead does all others' steps */
		job->discard_ratio = 0;
	}
	if (job->mode == WEFT_DENSE_ELASTIC && job->elastic_rate == 0) {
		job->elastic_rate = ELASTIC_SHARE / job->trainer_count;
	}
}

/* A mode of its own goes with steps that the lanes apply, and with nothing that takes whole ones.
 */
static enum weft_status
check_own_mode(const struct wf_job *job, const struct weft_tensor_opts *opts)
{
	static const char *const word[] = {[WEFT_TENSOR_SYNC] = "WEFT_TENSOR_SYNC",
					   [WEFT_TENSOR_ASYNC] = "WEFT_TENSOR_ASYNC",
					   [WEFT_TENSOR_BOUNDED] = "WEFT_TENSOR_BOUNDED"};
	const char *why = NULL;
	bool strict = opts->mode == WEFT_TENSOR_SYNC ||
		      (opts->mode == WEFT_TENSOR_BOUNDED && opts->staleness == 0);
	if (opts->is_static) {
		why = "it is static, and never pushed";
	} else if (job->mode == WEFT_DENSE_LOCAL || job->mode == WEFT_DENSE_ELASTIC) {
		why = "with WEFT_DENSE_LOCAL or _ELASTIC trainers exchange all tensors together";
	} else if (!strict && wf_optimizer_clips_norm(&job->optimizer.set)) {
		why = "with clip_norm the gradient is of all tensors in one step";
	} else if (!strict && wf_optimizer_averages(&job->optimizer.set)) {
		why = "with average_window averages are of whole steps";
	}
	return why == NULL ? WEFT_OK
			   : wf_fail(WEFT_INVALID, "tensor %s: mode %s: %s; leave it 0", opts->name,
				     word[opts->mode], why);
}

/* Nothing is applied to it, so that there is nothing to set; and what cannot be, with its name. */
static enum weft_status
check_reduced(const struct wf_job *job, const struct weft_tensor_opts *opts)
{
	const char *why = NULL;
	bool plain = opts->rate_multiplier == 0 || opts->rate_multiplier == 1;
	if (!opts->is_reduced) {
		return WEFT_OK;
	}
	if (opts->is_static) {
		why = "it is static, and never pushed; leave one of the two 0";
	} else if (!plain || opts->decay != 0 || opts->clip != 0 || opts->l1 != 0) {
		why = "nothing is applied to it; leave rate_multiplier, decay, clip and l1 0";
	} else if (opts->mode != WEFT_TENSOR_AS_SESSION) {
		why = "it is reduced when all trainers have pushed it, in any mode; leave mode 0";
	} else if (job->mode == WEFT_DENSE_LOCAL || job->mode == WEFT_DENSE_ELASTIC) {
		why = "with WEFT_DENSE_LOCAL or _ELASTIC trainers exchange what they have moved; "
		      "use WEFT_DENSE_SYNC";
	} else if (wf_optimizer_clips_norm(&job->optimizer.set)) {
		why = "with clip_norm the norm is of all tensors; leave clip_norm 0";
	} else if (job->wire != WEFT_WIRE_F32) {
		why = "in 16 bits results would be rounded; use dense_wire WEFT_WIRE_F32";
	}
	return why == NULL ? WEFT_OK
			   : wf_fail(WEFT_INVALID, "tensor %s: is_reduced: %s", opts->name, why);
}

enum weft_status
wf_modes_check_tensor(const struct wf_job *job, const struct weft_tensor_opts *opts)
{
	bool lags = opts->mode == WEFT_TENSOR_ASYNC || opts->mode == WEFT_TENSOR_BOUNDED;
	if ((unsigned)opts->mode > WEFT_TENSOR_BOUNDED) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: mode %d: 0, WEFT_TENSOR_SYNC, _ASYNC or _BOUNDED is "
			       "needed",
			       opts->name, (int)opts->mode);
	}
	if (opts->staleness > 0 && opts->mode != WEFT_TENSOR_BOUNDED) {
		return wf_fail(WEFT_INVALID,
			       "tensor %s: staleness %u: it goes with WEFT_TENSOR_BOUNDED; leave "
			       "it 0",
			       opts->name, opts->staleness);
	}
	if (!(opts->discard_ratio >= 0 && opts->discard_ratio <= (lags ? 1e6 : 0))) {
		return wf_fail(WEFT_INVALID, "tensor %s: discard_ratio %g: %s", opts->name,
			       opts->discard_ratio,
			       lags ? "0 to 1,000,000 is allowed"
				    : "it goes with WEFT_TENSOR_ASYNC and _BOUNDED; leave it 0");
	}
	enum weft_status st = check_reduced(job, opts);
	return st != WEFT_OK || opts->mode == WEFT_TENSOR_AS_SESSION ? st
								     : check_own_mode(job, opts);
}

void
wf_modes_fill_tensor(const struct weft_tensor_opts *opts, struct wf_job_tensor *tensor)
{
	bool strict = opts->mode == WEFT_TENSOR_BOUNDED && opts->staleness == 0;
	tensor->mode = strict ? WEFT_TENSOR_SYNC : opts->mode;
	tensor->staleness = opts->staleness;
	tensor->discard_ratio = strict ? 0 : opts->discard_ratio;
}
