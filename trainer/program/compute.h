/* SPDX-License-Identifier: Apache-2.0 */
/* compute: the gradient of one batch on trainer_count threads. Thread t takes the t-th contiguous
 * part of the rows and sums into buffers of its own; the parts are then summed in thread order, so
 * the result depends on how many threads there are, never on their timing.
 *
 * Threads: the owner computes part 0; the others sleep on a condition variable between batches.
 * With one thread there is no other, and nothing here waits. */
#pragma once

#include "base/env.h"
#include "base/pin.h"
#include "trainer/models/model.h"
#include "trainer/readers/dataset.h"

#define WF_COMPUTE_THREADS_MAX 256u

struct wf_compute;

struct wf_compute_opts {
	const struct wf_model *model; /* lent until destroy */
	unsigned thread_count;        /* 1..WF_COMPUTE_THREADS_MAX */
	size_t batch_rows;            /* largest batch */
	const struct wf_pin *pin; /* place t is thread t's; NULL: unpinned; lent until destroy */
};

struct wf_batch {
	const float *x; /* [rows, features] */
	const float *y; /* [rows] */
	size_t rows;    /* >= 1 */
};

/* Starts the threads. WEFT_NOMEM. */
enum weft_status wf_compute_create(struct wf_env *env, const struct wf_compute_opts *opts,
				   struct wf_compute **out) WEFT_MUST_CHECK;
/* Ends the threads. Accepts NULL. */
void wf_compute_destroy(struct wf_compute *compute);
/* Gradient summed over the batch into `grad`, one array per tensor; returns the summed cost. */
double wf_compute_gradient(struct wf_compute *compute, const struct wf_batch *batch,
			   const float *const *param, float *const *grad);
/* The model's test figure, a mean over the test rows. On the owner's thread alone. */
double wf_compute_test(struct wf_compute *compute, const struct wf_dataset *dataset,
		       const float *const *param);
