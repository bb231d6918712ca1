/* SPDX-License-Identifier: Apache-2.0 */
/* compute: the gradient of one batch on trainer_count threads. Thread t computes the t-th
 * contiguous part of the rows and sums into its own buffers; the parts are then summed in thread
 * order, so the result depends on the number of threads, never on their timing.
 *
 * Threads: the owner computes part 0; the others sleep on a condition variable between batches.
 * With one thread there is no other, and nothing here waits. */
#pragma once

#include "base/env.h"
#include "base/pin.h"
#include "trainer/models/model.h"
#include "trainer/readers/bags.h"

#define WF_COMPUTE_THREADS_MAX 256u
#define WF_COMPUTE_TEST_ROWS 256u /* largest batch of a test */

struct wf_compute;

struct wf_compute_opts {
	const struct wf_model *model; /* lent until destroy */
	unsigned thread_count;        /* 1..WF_COMPUTE_THREADS_MAX */
	size_t batch_rows;            /* largest batch of training */
	const struct wf_pin *pin; /* place t is thread t's; NULL: unpinned; lent until destroy */
};

/* Rows with what the model's tables have for them, as in struct wf_model_bags. Borrowed. */
struct wf_batch {
	const struct wf_bag_batch *rows; /* at least one */
	const float *row[WF_MODEL_TABLES_MAX];
	const uint32_t *place[WF_MODEL_TABLES_MAX];
	float *entry_grad[WF_MODEL_TABLES_MAX]; /* not used in a test */
	float *score;                           /* of a test; NULL: not wanted */
};

/* Starts the threads. WEFT_NOMEM. */
enum weft_status wf_compute_create(struct wf_env *env, const struct wf_compute_opts *opts,
				   struct wf_compute **out) WEFT_MUST_CHECK;
/* Ends the threads. Accepts NULL. */
void wf_compute_destroy(struct wf_compute *compute);
/* Gradient summed over the batch into `grad`, one array per tensor; returns the summed cost. */
double wf_compute_gradient(struct wf_compute *compute, const struct wf_batch *batch,
			   const float *const *param, float *const *grad);
/* The model's test figure, summed over a batch of up to WF_COMPUTE_TEST_ROWS. On the owner's thread
 * alone. */
double wf_compute_test(struct wf_compute *compute, const struct wf_batch *batch,
		       const float *const *param);
