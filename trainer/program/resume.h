/* SPDX-License-Identifier: Apache-2.0 */
/* resume: with each step a trainer gives the position of its data: seed, pass, and batches done.
 * Where the pservers begin with a snapshot, the same command line goes on there, in the pass of the
 * job and behind the trainer's own batch, without --start_pass, which is refused then; what
 * --init_model_path names is not loaded again. A snapshot behind the last batch of a pass gives
 * that pass a line with `cost nan`, the mean of no batch. Private to trainer/program. Thread: the
 * run's. */
#pragma once

#include "trainer/program/job.h"
#include "weft/weft.h"

/* Before each step: after it, this trainer's data is behind the batch that is being computed. */
enum weft_status wf_run_give_position(const struct wf_run *job,
				      struct weft_session *session) WEFT_MUST_CHECK;
/* After weft_session_start: whether the run goes on from a snapshot. Then it begins in the pass and
 * behind the batch of the position, and `*samples` are those of all trainers before that.
 * WEFT_DATA: there is no position of a run like this; WEFT_MISMATCH: another seed; WEFT_INVALID:
 * num_passes. */
enum weft_status wf_run_resume(struct wf_run *job, const struct weft_session *session,
			       bool *is_resumed, uint64_t *samples) WEFT_MUST_CHECK;
