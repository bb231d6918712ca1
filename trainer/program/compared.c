/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers of one run have to have alike, beside what their sessions compare of themselves:
 * the job's description and the tables'. A difference here would be found by nobody, and end with
 * other bits. Thread: the run's. */
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
	/* What makes the rest differ stands before it: the first difference is the one that is
	 * named. */
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
