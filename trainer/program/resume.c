/* SPDX-License-Identifier: Apache-2.0 */
/* resume: see resume.h. A position is a text, so that people can read it in a snapshot. Thread: the
 * run's. */
#include "trainer/program/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "weft/restart.h"

/* The order of rows follows from seed and pass. */
#define POSITION_FORMAT "weft train seed %" PRIu64 " pass %" PRIu64 " batch %" PRIu64
#define POSITION_SCAN "weft train seed %" SCNu64 " pass %" SCNu64 " batch %" SCNu64 "%n"

enum weft_status
wf_run_give_position(const struct wf_run *job, struct weft_session *session)
{
	char text[WEFT_POSITION_BYTES_MAX];
	int count =
		snprintf(text, sizeof(text), POSITION_FORMAT, job->seed, job->pass, job->batch + 1);

	enum weft_status st = weft_session_position(session, text, (size_t)count);
	/* Without positions such a job trains as well, and cannot go on from a snapshot. */
	return st == WEFT_UNSUPPORTED ? WEFT_OK : st;
}

static enum weft_status
read_position(struct wf_run *job, const struct weft_resumed *resumed)
{
	char text[WEFT_POSITION_BYTES_MAX + 1] = "";
	uint64_t seed = 0;
	uint64_t pass = 0;
	uint64_t batch = 0;
	int used = -1;

	memcpy(text, resumed->position, resumed->position_bytes);
	if (sscanf(text, POSITION_SCAN, &seed, &pass, &batch, &used) != 3 || used < 0 ||
	    (size_t)used != resumed->position_bytes || pass > resumed->pass_count) {
		return wf_fail(WEFT_DATA,
			       "the snapshot of step %" PRIu64
			       " has no position of weft train for trainer %" PRIu32
			       ", but \"%.60s\"; start the pservers without --resume",
			       resumed->step, job->opts->session.trainer_id, text);
	}
	if (job->opts->seed != 0 && job->opts->seed != seed) {
		return wf_fail(WEFT_MISMATCH,
			       "seed=%" PRIu64 ": the snapshot of step %" PRIu64
			       " is of a run with seed=%" PRIu64 "; give that one",
			       job->opts->seed, resumed->step, seed);
	}
	job->seed = seed;
	/* Otherwise this trainer has had no batch of the others' pass. */
	job->first_batch = pass == resumed->pass_count ? batch : 0;
	return WEFT_OK;
}

enum weft_status
wf_run_resume(struct wf_run *job, const struct weft_session *session, bool *is_resumed,
	      uint64_t *samples)
{
	struct weft_resumed resumed;
	enum weft_status st = WEFT_OK;

	*is_resumed = weft_session_resumed(session, &resumed);
	if (!*is_resumed) {
		return WEFT_OK;
	}
	/* A trainer without data never has a position; the others' have the pass. */
	if (resumed.position_bytes > 0 || job->opts->session.trainer_id == 0) {
		st = read_position(job, &resumed);
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (resumed.pass_count >= job->opts->num_passes) {
		return wf_fail(WEFT_INVALID,
			       "num_passes=%" PRIu64 ": the snapshot of step %" PRIu64
			       " is in pass %" PRIu64 ", from 0; give more",
			       job->opts->num_passes, resumed.step, resumed.pass_count);
	}
	job->first_pass = resumed.pass_count;
	*samples = resumed.samples;
	wf_log(job->env, WF_LOG_INFO,
	       "trainer %" PRIu32 ": goes on in pass %" PRIu64 " after batch %" PRIu64
	       ", step %" PRIu64 " of the job",
	       job->opts->session.trainer_id, job->first_pass, job->first_batch, resumed.step);
	return WEFT_OK;
}
