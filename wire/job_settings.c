/* SPDX-License-Identifier: Apache-2.0 */
/* job_settings: the settings in a job's description: as the table of settings has them, as bytes,
 * and their check. Thread: any; not on the data path. */
#include "wire/job_settings.h"

#include <inttypes.h>
#include <math.h>

#include "wire/shape.h"

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
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	wf_job_settings(job, &values);
	for (unsigned i = 0; i < count; i++) {
		uint64_t number = table[i].job_bytes > 0 ? wf_option_number(&table[i], &values) : 0;
		for (unsigned byte = 0; byte < table[i].job_bytes; byte++) {
			out[table[i].job_at + byte] = (uint8_t)(number >> (8 * byte));
		}
	}
}

enum weft_status
wf_job_settings_get(const uint8_t *in, struct wf_job *job)
{
	struct wf_session_values values = {0};
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	for (unsigned i = 0; i < count; i++) {
		uint64_t number = 0;
		for (unsigned byte = 0; byte < table[i].job_bytes; byte++) {
			number |= (uint64_t)in[table[i].job_at + byte] << (8 * byte);
		}
		if (table[i].type == WF_OPTION_BOOL && number > 1) {
			return wf_refuse("job", table[i].name, number, "0 or 1");
		}
		if (table[i].job_bytes > 0) {
			wf_option_set_number(&table[i], number, &values);
		}
	}
	wf_job_set(&values.opts, job);
	return WEFT_OK;
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
	enum weft_status st = wf_job_settings_check(&values);
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
