/* SPDX-License-Identifier: Apache-2.0 */
/* average: the end of windows, and the sums. Thread: any. */
#include "kernels/average.h"

#include <string.h>

#include "base/assert.h"

#define FOLD_STEPS 16384u /* an f32 sum over more steps would lose precision */
#define WINDOW_LEAST 10000u

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether a window of `count` steps that ends with step `step` is long enough. */
static bool
is_over(const struct wf_average *average, uint64_t count, uint64_t step)
{
	return count >= smaller(WINDOW_LEAST, average->longest) &&
	       (count >= average->longest || (double)count >= average->window * (double)step);
}

/* The first step that ends a window which began after `begun`. A binary search between the least
 * and the greatest length: once a window is long enough it stays so. */
static uint64_t
end_of_window(const struct wf_average *average, uint64_t begun)
{
	uint64_t low = begun + smaller(WINDOW_LEAST, average->longest);
	uint64_t high =
		average->longest > UINT64_MAX - begun ? UINT64_MAX : begun + average->longest;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (is_over(average, middle - begun, middle)) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}

/* Whether all further windows have the greatest length. */
static bool
is_longest(const struct wf_average *average, uint64_t begun)
{
	return average->longest <= WINDOW_LEAST ||
	       average->window * (double)begun >= (double)average->longest;
}

/* The number of windows that are gone through one by one is bounded by the least share. */
void
wf_average_begin(const struct wf_optimizer_opts *opts, uint64_t step, struct wf_average *out)
{
	uint64_t begun = 0;

	*out = (struct wf_average){
		.window = opts->set.average_window,
		.longest = opts->set.max_average_window,
		.step = step,
	};
	WF_ASSERT(out->longest > 0);
	while (!is_longest(out, begun)) {
		uint64_t end = end_of_window(out, begun);
		if (end > step) {
			break;
		}
		out->before = end - begun;
		begun = end;
	}
	if (is_longest(out, begun) && step - begun >= out->longest) {
		begun = step - (step - begun) % out->longest;
		out->before = out->longest;
	}
	out->count = step - begun;
}

void
wf_average_next(struct wf_average *average)
{
	average->step++;
	average->count++;
	average->folds = average->step % FOLD_STEPS == 0;
	average->turns = is_over(average, average->count, average->step);
	if (average->turns) {
		average->before = average->count;
		average->count = 0;
	}
}

void
wf_average_add(const struct wf_kernels *kernels, const struct wf_average *average,
	       const float *value, float *const sum[WF_AVERAGE_SUMS], size_t count)
{
	kernels->sum(sum[0], (const float *const[]){sum[0], value}, 2, count);
	if (average->folds) {
		kernels->sum(sum[1], (const float *const[]){sum[1], sum[0]}, 2, count);
		memset(sum[0], 0, count * sizeof(float));
	}
	if (average->turns) {
		kernels->sum(sum[2], (const float *const[]){sum[0], sum[1]}, 2, count);
		memset(sum[0], 0, count * sizeof(float));
		memset(sum[1], 0, count * sizeof(float));
	}
}

void
wf_average_value(const struct wf_average *average, const float *value,
		 const float *const sum[WF_AVERAGE_SUMS], float *out, size_t count)
{
	const float steps = (float)(average->count + average->before);

	for (size_t i = 0; i < count; i++) {
		out[i] = steps > 0.0f ? (sum[0][i] + sum[1][i] + sum[2][i]) / steps : value[i];
	}
}
