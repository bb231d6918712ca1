/* SPDX-License-Identifier: Apache-2.0 */
/* job: what the two ways of training share: data, model, compute threads, batches, and the lines
 * that a pass ends with. Private to trainer/program. Thread: the run's. */
#pragma once

#include "base/env.h"
#include "base/pin.h"
#include "kernels/kernels.h"
#include "trainer/program/compute.h"
#include "trainer/program/kind.h"
#include "trainer/program/shard.h"
#include "trainer/program/train.h"

struct wf_run {
	const struct wf_train_opts *opts; /* lent for the run */
	const struct wf_train_sink *sink; /* lent for the run */
	struct wf_env *env;
	const struct wf_kind *kind;
	const struct wf_kernels *kernels;
	struct wf_optimizer_opts optimizer;
	bool is_mean;     /* grad_reduce */
	bool is_skipping; /* nonfinite */
	bool is_sequential;
	uint64_t seed;

	struct wf_dataset dataset;
	struct wf_model model;
	struct wf_pin *pin; /* places 0.. of the compute threads, then the progress thread's */
	struct wf_compute *compute;
	float *x, *y;      /* one batch */
	size_t batch_rows; /* largest batch of any trainer */

	uint64_t pass;  /* current, from 0 */
	uint64_t batch; /* batches done in this pass */

	uint64_t save_failures; /* passes that could not be saved */
	uint64_t first_unsaved_pass;
	struct wf_error first_save_failure;
};

/* What a trainer has done in a pass. */
struct wf_tally {
	double cost; /* summed over the samples */
	double samples;
};

/* Check the options, read the data, make model and threads. Whatever it returns, the job ends with
 * wf_run_fini. */
enum weft_status wf_run_init(struct wf_run *job, const struct wf_train_opts *opts,
			     struct wf_env *env, const struct wf_train_sink *sink) WEFT_MUST_CHECK;
void wf_run_fini(struct wf_run *job);
/* Shard of a trainer, with the job's batch size. */
enum weft_status wf_run_shard(const struct wf_run *job, uint32_t trainer,
			      struct wf_shard *out) WEFT_MUST_CHECK;
/* Compute one batch of a shard; adds to the tally, returns its samples, `*cost` is its cost. */
uint64_t wf_run_gradient(struct wf_run *job, const struct wf_shard *shard,
			 const float *const *param, float *const *grad, double *cost);
/* After each batch: dots, log lines, tests, as the periods say. `is_reporter`: trainer 0. */
void wf_run_batch_done(struct wf_run *job, const struct wf_tally *tally, const float *const *param,
		       bool is_reporter);
/* The line of a pass, by trainer 0. */
enum weft_status wf_run_report(struct wf_run *job, const struct wf_tally *tally,
			       const float *const *param, uint64_t digest) WEFT_MUST_CHECK;

/* sequential.c */
enum weft_status wf_run_run_sequential(struct wf_run *job) WEFT_MUST_CHECK;
/* fabric.c */
enum weft_status wf_run_run_fabric(struct wf_run *job) WEFT_MUST_CHECK;
