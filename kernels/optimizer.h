/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer: the settings of an optimizer and its schedule, and the scalars of a step that follow
 * from them. Formulas with their sources: kernels/formulas.md. Thread: any; everything here is
 * pure. */
#pragma once

#include <stdint.h>

#include "base/optimizer.h"
#include "base/status.h"

#define WF_AVERAGE_SUMS 3
#define WF_STATE_MAX (2 + WF_AVERAGE_SUMS) /* state arrays: an optimizer's, then the averages' */

/* The defaults of a session's settings (base/settings.c). */
struct wf_optimizer_opts wf_optimizer_defaults(void);
/* WEFT_INVALID names field, value and limit. */
enum weft_status wf_optimizer_check(const struct wf_optimizer_opts *opts) WEFT_MUST_CHECK;
/* The number of arrays of state: 0, 1 or 2. */
unsigned wf_optimizer_state_count(enum wf_optimizer kind);
/* The same, plus those of averages, which follow them. */
unsigned wf_state_count(const struct wf_optimizer_opts *opts);
const char *wf_optimizer_name(enum wf_optimizer kind);
const char *wf_schedule_name(enum wf_schedule schedule);
/* WEFT_INVALID: the text lists all names. */
enum weft_status wf_optimizer_parse(const char *name, enum wf_optimizer *out) WEFT_MUST_CHECK;
enum weft_status wf_schedule_parse(const char *name, enum wf_schedule *out) WEFT_MUST_CHECK;
/* Converts the public struct's settings, and checks them. WEFT_INVALID: the text names setting,
 * value and limit. */
enum weft_status wf_optimizer_read(const struct weft_optimizer_opts *in,
				   struct wf_optimizer_opts *out) WEFT_MUST_CHECK;
/* Checks only the settings of a schedule, as wf_optimizer_check does. */
enum weft_status wf_schedule_check(const struct wf_optimizer_opts *opts) WEFT_MUST_CHECK;
/* "1000:1.0,2000:0.5": until and factor of each segment. `out` is [WF_SEGMENTS_MAX]; none in "".
 * WEFT_INVALID: where the text goes wrong. */
enum weft_status wf_segments_parse(const char *text, struct wf_segment *out,
				   uint32_t *out_count) WEFT_MUST_CHECK;

/* The number of updates as far as the rates of wf_apply_rates depend on it: other methods than
 * these correct no bias, and only their first update may differ. */
static inline uint64_t
wf_updates_that_count(const struct wf_optimizer_opts *opts, uint64_t updates)
{
	const unsigned correcting = 1u << WF_ADAM | 1u << WF_ADAMW | 1u << WF_ADAMAX |
				    1u << WF_TORCH_ADAM | 1u << WF_TORCH_ADAMW;
	return (correcting >> opts->method.kind & 1) != 0 || updates < 2 ? updates : 2;
}

/* wf_learning_rate of a schedule under which it changes. */
double wf_scheduled_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before,
			 uint64_t samples, uint64_t pass);
/* Rate of a step: `samples_before` samples were applied before it, it has `samples` itself, and it
 * is in the job's pass number `pass`, from 0. */
static inline double
wf_learning_rate(const struct wf_optimizer_opts *opts, uint64_t samples_before, uint64_t samples,
		 uint64_t pass)
{
	return opts->method.schedule == WF_SCHEDULE_CONSTANT
		       ? opts->set.learning_rate
		       : wf_scheduled_rate(opts, samples_before, samples, pass);
}
