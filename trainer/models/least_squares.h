/* SPDX-License-Identifier: Apache-2.0 */
/* least_squares: the closed-form solution that the linear model is measured against. Thread: any.
 */
#pragma once

#include "base/env.h"
#include "trainer/readers/dataset.h"

struct wf_least_squares {
	double train; /* mean squared error over the training rows */
	double test;  /* over the test rows */
};

/* Solve for weights and bias on the training rows: normal equations and Cholesky in f64.
 * WEFT_DATA: the features depend on one another; WEFT_NOMEM. */
enum weft_status wf_least_squares_solve(struct wf_env *env, const struct wf_dataset *dataset,
					struct wf_least_squares *out) WEFT_MUST_CHECK;
