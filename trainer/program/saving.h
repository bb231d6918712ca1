/* SPDX-License-Identifier: Apache-2.0 */
/* saving: what a run saves at the ends of passes, and what it starts from. Private to
 * trainer/program. Thread: the run's. */
#pragma once

#include "trainer/program/job.h"
#include "trainer/program/local_tables.h"
#include "trainer/program/remote_tables.h"

/* A run's parameters and its optimizer's state, by tensor of the model. */
struct wf_run_arrays {
	float *const *param;
	float *(*state)[WF_MODEL_TENSORS_MAX]; /* [states of the optimizer] */
	float *const *average;          /* saved in its own folder beside the passes; NULL: none */
	struct wf_local_tables *tables; /* of a sequential run; else NULL */
	const struct wf_remote_tables *remote; /* of a trainer in a job; else NULL */
};

/* The progress of the job from which a run continues. */
struct wf_run_past {
	uint64_t step;
	uint64_t samples;
	uint64_t batch; /* saving in the middle of a pass: batches done; 0: it is complete */
};

/* Checks the options, and opens and locks the folders that this process saves to. WEFT_INVALID:
 * option, value, remedy; WEFT_IO: the folder and the reason; WEFT_UNAVAILABLE: the process that
 * saves there. wf_run_close_saving ends it whatever it returns. */
enum weft_status wf_run_open_saving(struct wf_run *job) WEFT_MUST_CHECK;
void wf_run_close_saving(struct wf_run *job);
/* Fills the arrays from the saved model that the options name, if they name one: values and state
 * for --start_pass, or the values alone for --init_model_path, at pass 0. WEFT_DATA, WEFT_IO: file
 * and reason; WEFT_MISMATCH: another optimizer */
enum weft_status wf_run_restore(struct wf_run *job, const struct wf_run_arrays *arrays,
				struct wf_run_past *out) WEFT_MUST_CHECK;
/* The same for the tables of a job, on its lanes: trainer 0, after weft_session_start. */
enum weft_status wf_run_restore_remote(struct wf_run *job,
				       const struct wf_remote_tables *tables) WEFT_MUST_CHECK;
/* Whether this process ever saves. */
bool wf_run_is_saver(const struct wf_run *job);
/* Whether the pass that has just ended is to be saved by this process: as the period says, and
 * where the run ends. */
bool wf_run_is_save_due(const struct wf_run *job);
/* Saves the pass. A failure is logged and kept for wf_run_saving_result: training goes on. */
void wf_run_save(struct wf_run *job, const struct wf_run_arrays *arrays, struct wf_run_past past);
/* After the last pass: WEFT_IO if a save failed, with the first reason. */
enum weft_status wf_run_saving_result(const struct wf_run *job) WEFT_MUST_CHECK;
