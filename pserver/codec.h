/* SPDX-License-Identifier: Apache-2.0 */
/* codec: gradients and values as they travel. As f32 the kernels take them as they are; a feature
 * of the job (halves.c) may have them travel otherwise. Thread: the lane's. */
#pragma once

#include "kernels/norm.h"
#include "pserver/dense.h"

/* Apply what dense->gradient has, apply->grad_count of them, and leave new values for answers.
 * Returns how many summed gradients were not finite. */
static inline size_t
wf_codec_apply(struct wf_lane *lane, uint32_t ordinal, const struct wf_apply *apply, uint64_t step)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_feature *codec = dense->features.codec;
	return codec == NULL ? store->kernels->apply[store->optimizer.method.kind](apply)
			     : codec->hooks->codec->apply(codec, lane, ordinal, apply, step);
}

/* Of the first `count` of dense->gradient, gradients of the slice: what wf_norm_squares says. */
static inline double
wf_codec_squares(const struct wf_dense *dense, unsigned count, uint32_t ordinal)
{
	const size_t elements = dense->store.stored[ordinal].count;
	const struct wf_feature *codec = dense->features.codec;
	return codec == NULL ? wf_norm_squares(dense->gradient, count, elements)
			     : codec->hooks->codec->squares(codec, dense, count, elements);
}

/* For a gradient as it arrived. */
static inline size_t
wf_codec_count_nonfinite(const struct wf_dense *dense, const void *gradient, size_t count)
{
	const struct wf_feature *codec = dense->features.codec;
	return codec == NULL ? dense->store.kernels->count_nonfinite(gradient, count)
			     : codec->hooks->codec->count_nonfinite(dense, gradient, count);
}

/* What to try where gradients are not finite, besides what goes for all jobs. */
static inline const char *
wf_codec_remedy(const struct wf_dense *dense)
{
	const struct wf_feature *codec = dense->features.codec;
	return codec == NULL ? "" : codec->hooks->codec->remedy(dense);
}

/* The slice's initial values have come, as f32. */
static inline void
wf_codec_begin(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	if (dense->features.codec != NULL) {
		dense->features.codec->hooks->codec->begin(lane, ordinal);
	}
}
