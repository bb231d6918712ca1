/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that all trainers of a run must have in common, beside those that their sessions compare
 * themselves: the job's description and that of the tables. A difference in them would not be
 * detected, and would end with other bits. Thread: the run's. */
#include "trainer/program/job.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"

enum weft_status
wf_run_compared(const struct wf_run *job, char *out)
{
	const struct wf_train_opts *opts = job->opts;
	uint64_t digest = 0;
	enum weft_status st = wf_source_digest(job->env, &job->source, &digest);
	if (st != WEFT_OK) {
		return st;
	}
	/* A setting that changes the ones after it precedes them: the first difference is the one
	 * that is reported. */
	int used = snprintf(out, WF_COMPARED_BYTES,
			    "model=%s seed=%" PRIu64 " batch_size=%" PRIu64 " start_pass=%" PRIu64
			    " num_passes=%" PRIu64 " validate=%s",
			    job->kind->name, job->seed, opts->batch_size, opts->start_pass,
			    opts->num_passes, opts->validate ? "true" : "false");
	if (job->source.kind == WF_SOURCE_WORDS) {
		used += snprintf(out + used, WF_COMPARED_BYTES - (size_t)used,
				 " vocabulary=%" PRIu64, opts->vocabulary);
	}
	used += snprintf(out + used, WF_COMPARED_BYTES - (size_t)used, " data=%zu,%016" PRIx64,
			 job->source.rows, digest);
	WF_ASSERT(used < (int)WF_COMPARED_BYTES);
	return WEFT_OK;
}
