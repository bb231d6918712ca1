/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/apply.h"

#include <inttypes.h>
#include <stdio.h>

#include "pserver/codec.h"

void
wf_apply_rate_anew(struct wf_store *store, double rate, uint64_t updates)
{
	struct wf_rated *rated = &store->rated;
	rated->apply = rated->constants;
	rated->rate = rate;
	rated->updates = updates;
	wf_apply_rates(&store->optimizer, rate, updates, &rated->apply);
}

void
wf_apply_fill_changed(const struct wf_store *store, const struct wf_stored *stored,
		      const struct wf_apply_scale *scale, struct wf_apply *apply)
{
	const struct wf_numbers *numbers = &store->numbers[stored->tensor_idx];
	if (numbers->assigned_step == scale->updates) {
		return; /* no step of the optimizer: it has no number */
	}
	const struct wf_optimizer_opts opts = wf_numbers_apply(numbers, &store->optimizer);
	double rate = wf_learning_rate(&opts, scale->samples_before, scale->samples,
				       scale->pass > 0 ? scale->pass - 1 : 0);
	apply->decay =
		wf_numbers_have(numbers, WF_NUMBER_DECAY) ? (float)opts.set.decay : apply->decay;
	apply->clip = wf_numbers_have(numbers, WF_NUMBER_CLIP) ? (float)opts.set.clip : apply->clip;
	apply->l1 = wf_numbers_have(numbers, WF_NUMBER_L1) ? (float)opts.set.l1 : apply->l1;
	wf_apply_constants(&opts, apply);
	wf_apply_rates(&opts, rate * stored->rate_multiplier,
		       wf_numbers_updates(numbers, scale->updates), apply);
}

/* Names the trainer whose gradient was not finite. If there is none, sum or update overflowed. */
void
wf_apply_report_nonfinite(struct wf_lane *lane, uint32_t ordinal, uint64_t step, size_t bad)
{
	struct wf_dense *dense = lane->own;
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	uint32_t culprit = UINT32_MAX;
	size_t found = 0;
	for (uint32_t t = 0; t < lane->peers.count && found == 0; t++) {
		const struct wf_push *push = wf_push_of(lane, ordinal, t);
		if (push->data != NULL) {
			found = wf_codec_count_nonfinite(dense, push->data, stored->count);
			culprit = t;
		}
	}
	wf_stats_add(&lane->stats, WF_LANE_GRADIENT_SKIPPED_COUNT, bad);
	char what[192];
	if (found > 0) {
		(void)snprintf(what, sizeof(what),
			       "of the gradient of %.60s from trainer %u are NaN or infinite in "
			       "step %" PRIu64,
			       stored->tensor->name, culprit, step);
	} else {
		(void)snprintf(what, sizeof(what),
			       "of %.60s would be NaN or infinite after step %" PRIu64
			       ": the gradients' sum, its square or the step is above 3.4e38",
			       stored->tensor->name, step);
	}
	bool abort = !wf_job_skips(&dense->job);
	if (abort) {
		wf_lane_fail(lane, WEFT_DATA, step,
			     "%zu values %s; lower the learning rate, clip, or run with "
			     "--nonfinite=skip%s",
			     bad, what, wf_codec_remedy(dense));
		return;
	}
	if (!wf_log_limit_pass(&dense->nonfinite_log, wf_now_ns(lane->env), WF_NS_PER_S)) {
		return; /* counted; logged once a second */
	}
	wf_log(lane->env, WF_LOG_WARN, "lane %u: %zu values %s: skipped, %" PRIu64 " so far",
	       lane->opts.idx, bad, what,
	       wf_stats_get(&lane->stats, WF_LANE_GRADIENT_SKIPPED_COUNT) -
		       lane->report.lines.whole.counter[WF_LANE_GRADIENT_SKIPPED_COUNT]);
}
