/* SPDX-License-Identifier: Apache-2.0 */
/* job_settings: the settings in a job's description: as the table of settings has them, as bytes,
 * and their check. Thread: any; not on the data path. */
#include "wire/job_settings.h"

#include <inttypes.h>
#include <math.h>

#include "wire/settings.h"

void
wf_job_settings(const struct wf_job *job, struct wf_session_values *out)
{
	*out = (struct wf_session_values){.opts = {
						  .num_gradient_servers = job->trainer_count,
						  .ports_num = job->lane_count,
						  .slice_bytes = job->slice_bytes,
						  .grad_reduce = job->grad_reduce,
						  .skip_nonfinite = (int)job->nonfinite,
						  .optimizer = job->optimizer.set,
						  .dense_mode = job->mode,
						  .dense_staleness = job->staleness,
						  .dense_discard_ratio = job->discard_ratio,
						  .local_steps = job->local_steps,
						  .elastic_rate = job->elastic_rate,
						  .dense_wire = job->wire,
						  .dense_rounding = job->rounding,
					  }};
}

void
wf_job_set(const struct weft_session_opts *opts, struct wf_job *job)
{
	job->trainer_count = opts->num_gradient_servers;
	job->lane_count = opts->ports_num;
	job->slice_bytes = opts->slice_bytes;
	job->grad_reduce = opts->grad_reduce;
	job->nonfinite = opts->skip_nonfinite != 0 ? WF_NONFINITE_SKIP : WF_NONFINITE_ABORT;
	job->optimizer.set = opts->optimizer;
	job->mode = opts->dense_mode;
	job->staleness = opts->dense_staleness;
	job->discard_ratio = opts->dense_discard_ratio;
	job->local_steps = opts->local_steps;
	job->elastic_rate = opts->elastic_rate;
	job->wire = opts->dense_wire;
	job->rounding = opts->dense_rounding;
}

void
wf_job_settings_put(const struct wf_job *job, uint8_t *out)
{
	struct wf_session_values values;
	wf_job_settings(job, &values);
	wf_settings_encode(WEFT_SETTINGS_SESSION, &values, out);
}

enum weft_status
wf_job_settings_get(const uint8_t *in, struct wf_job *job)
{
	struct wf_session_values values = {0};
	enum weft_status st = wf_settings_decode(WEFT_SETTINGS_SESSION, "job", in, &values);
	if (st == WEFT_OK) {
		wf_job_set(&values.opts, job);
	}
	return st;
}

static enum weft_status
check_method(const struct wf_method *method)
{
	if (method->segment_count > WF_SEGMENTS_MAX) {
		return wf_fail(WEFT_INVALID,
			       "job: the number of segments is %" PRIu32 ", must be at most %d",
			       method->segment_count, WF_SEGMENTS_MAX);
	}
	for (uint32_t i = 0; i < method->segment_count; i++) {
		if (!isfinite(method->segment[i].factor)) {
			return wf_fail(WEFT_INVALID,
				       "job: factor of segment %" PRIu32 " is %g, must be finite",
				       i, method->segment[i].factor);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_job_check_settings(const struct wf_job *job)
{
	struct wf_session_values values;
	wf_job_settings(job, &values);
	enum weft_status st = wf_settings_check_wire(WEFT_SETTINGS_SESSION, &values);
	if (st == WEFT_OK) {
		st = wf_mode_rules_check(&values);
	}
	if (st != WEFT_OK) {
		return st;
	}
	/* What these stand for at 0 is settled before a job is described. */
	if (job->mode == WEFT_DENSE_BOUNDED && job->staleness == 0) {
		return wf_fail(
			WEFT_INVALID,
			"job: dense_staleness is 0, must be above 0 with dense_mode=bounded");
	}
	if (job->mode == WEFT_DENSE_ELASTIC && job->elastic_rate == 0) {
		return wf_fail(WEFT_INVALID,
			       "job: elastic_rate is 0, must be above 0 with dense_mode=elastic");
	}
	return check_method(&job->optimizer.method);
}
