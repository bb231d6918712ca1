/* SPDX-License-Identifier: Apache-2.0 */
/* average: means of parameters over the last steps, as PaddlePaddle 0.10 keeps them: three sums of
 * a parameter's values after each step, and from them the mean over a window that grows with the
 * number of steps. kernels/formulas.md, "Averages". Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* The state of the sums after `step` steps, a function of the settings and that number alone. */
struct wf_average {
	double window;    /* share of all steps */
	uint64_t longest; /* the most steps of a window */
	uint64_t step;
	uint64_t count;  /* steps in the first two sums */
	uint64_t before; /* steps in the third */
	bool folds;      /* after this step the first sum goes into the second */
	bool turns;      /* after this step, and after folding, both make up the third */
};

/* Sets the state after `step` steps, from 0. The settings have passed wf_optimizer_check. */
void wf_average_begin(const struct wf_optimizer_opts *opts, uint64_t step, struct wf_average *out);
/* Advances by one step. */
void wf_average_next(struct wf_average *average);
/* Applies that step to the sums: sum[0] += value, and so on. */
void wf_average_add(const struct wf_kernels *kernels, const struct wf_average *average,
		    const float *value, float *const sum[WF_AVERAGE_SUMS], size_t count);
/* out = ((sum[0] + sum[1]) + sum[2]) / steps in them, or `value` if there are none. */
void wf_average_value(const struct wf_average *average, const float *value,
		      const float *const sum[WF_AVERAGE_SUMS], float *out, size_t count);
