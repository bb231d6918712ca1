/* SPDX-License-Identifier: Apache-2.0 */
/* feature: which features there are, and calls of their hooks. Thread: the lane's. */
#include "pserver/feature.h"

#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"

/* In the order in which they send and act. The last one records what all others have allowed. */
static const struct wf_feature_hooks *const known[] = {
	&wf_leave_hooks,    &wf_snapshot_hooks, &wf_averages_hooks, &wf_halves_hooks,
	&wf_announce_hooks, &wf_norm_hooks,     &wf_straggle_hooks, &wf_inquiry_hooks,
	&wf_change_hooks,   &wf_position_hooks, &wf_trace_hooks,
};
WF_STATIC_ASSERT(WF_ARRAY_COUNT(known) <= WF_FEATURES_MAX, "there is room for all of them");

static struct wf_features *
features_of(const struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	return &dense->features;
}

uint64_t
wf_features_bytes(const struct wf_lane *lane)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(known); i++) {
		bytes += known[i]->bytes(lane);
	}
	return bytes;
}

const char *
wf_features_need_step(const struct wf_lane *lane)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(known); i++) {
		if (known[i]->needs_step != NULL && known[i]->bytes(lane) > 0) {
			return known[i]->needs_step;
		}
	}
	return NULL;
}

static uint32_t
points_of(const struct wf_feature_hooks *hooks)
{
	uint32_t points = 0;
	points |= hooks->step_said != NULL ? WF_AT_STEP_SAID : 0;
	points |= hooks->may_put != NULL ? WF_AT_PUT : 0;
	points |= hooks->step_is_here != NULL ? WF_AT_STEP_HERE : 0;
	points |= hooks->may_apply != NULL ? WF_AT_APPLY : 0;
	points |= hooks->after_apply != NULL ? WF_AT_APPLIED : 0;
	points |= hooks->step_done != NULL ? WF_AT_STEP_DONE : 0;
	points |= hooks->mark != NULL ? WF_AT_MARK : 0;
	return points;
}

/* At which points some feature that is awake has a hook. */
static void
count_points(struct wf_features *features)
{
	features->points = 0;
	memset(features->at, 0, sizeof(features->at));
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		uint32_t points = feature->sleeps ? 0 : points_of(feature->hooks);
		features->points |= points;
		for (; points != 0; points &= points - 1) {
			features->at[__builtin_ctz(points)] |= feature->bit;
		}
	}
}

/* Bits of the features that are awake and have a hook at the point. */
static inline uint32_t
awake_at(const struct wf_features *features, enum wf_feature_point point)
{
	return features->at[__builtin_ctz(point)];
}

enum weft_status
wf_features_open(struct wf_lane *lane)
{
	struct wf_features *features = features_of(lane);
	for (unsigned i = 0; i < WF_ARRAY_COUNT(known); i++) {
		if (known[i]->bytes(lane) == 0) {
			continue;
		}
		struct wf_feature *feature = &features->on[features->count];
		*feature = (struct wf_feature){.hooks = known[i],
					       .bit = 1u << features->count,
					       .sleeps = known[i]->sleeps};
		enum weft_status st = known[i]->open(feature, lane);
		if (st != WEFT_OK) {
			known[i]->close(feature, lane);
			return st;
		}
		features->count++;
		count_points(features);
		features->codec = known[i]->codec != NULL ? feature : features->codec;
	}
	return WEFT_OK;
}

void
wf_features_close(struct wf_lane *lane)
{
	struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		features->on[i].hooks->close(&features->on[i], lane);
	}
	*features = (struct wf_features){0};
}

static const struct wf_feature *
find_on(const struct wf_features *features, uint8_t message)
{
	for (uint32_t i = 0; i < features->count; i++) {
		if (features->on[i].hooks->message == message) {
			return &features->on[i];
		}
	}
	return NULL;
}

enum weft_status
wf_features_recv(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
		 const uint8_t *body)
{
	const struct wf_feature *feature = find_on(features_of(lane), head->type);
	if (feature != NULL && lane->job.is_ready && head->type != 0) {
		return feature->hooks->recv(feature, lane, peer, head, body);
	}
	for (unsigned i = 0; i < WF_ARRAY_COUNT(known); i++) {
		if (known[i]->message == head->type && head->type != 0) {
			return wf_fail(WEFT_PROTOCOL,
				       "dense message of type %u: this lane has no %s", head->type,
				       known[i]->name);
		}
	}
	return wf_fail(WEFT_PROTOCOL, "dense message of type %u, which a lane does not take",
		       head->type);
}

void
wf_feature_wake(const struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_features *features = features_of(lane);
	features->on[self - features->on].sleeps = false;
	count_points(features);
}

void
wf_feature_sleep(const struct wf_feature *self, struct wf_lane *lane)
{
	struct wf_features *features = features_of(lane);
	features->on[self - features->on].sleeps = true;
	count_points(features);
}

void
wf_feature_due(const struct wf_feature *self, struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	own->features_due |= self->bit;
	wf_peer_due(peer);
}

const struct wf_feature *
wf_feature_find(const struct wf_lane *lane, const struct wf_feature_hooks *hooks)
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		if (features->on[i].hooks == hooks) {
			return &features->on[i];
		}
	}
	return NULL;
}

bool
wf_features_open_path(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_features *features = features_of(lane);
	struct wf_dense_peer *own = peer->own;
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		bool due =
			feature->hooks->precedes_resume && (own->features_due & feature->bit) != 0;
		if (due && !feature->hooks->flush(feature, lane, peer)) {
			return false;
		}
		own->features_due &= due ? ~feature->bit : UINT32_MAX;
	}
	return true;
}

bool
wf_features_flush(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_features *features = features_of(lane);
	struct wf_dense_peer *own = peer->own;
	while (own->features_due != 0) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(own->features_due)];
		if (!feature->hooks->flush(feature, lane, peer)) {
			return false;
		}
		own->features_due &= ~feature->bit;
	}
	return true;
}

void
wf_features_path_begins(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		if (features->on[i].hooks->flush != NULL) {
			wf_feature_due(&features->on[i], peer);
		}
	}
}

void
wf_features_path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_features *features = features_of(lane);
	struct wf_dense_peer *own = peer->own;
	own->features_due = 0;
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		if (feature->hooks->path_ends != NULL) {
			feature->hooks->path_ends(feature, lane, peer);
		}
	}
}

void
wf_features_words(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		  size_t bytes)
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		if (feature->hooks->words != NULL) {
			size_t used = strlen(out);
			feature->hooks->words(feature, lane, line, out + used, bytes - used);
		}
	}
}

void
wf_features_step_said(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_step *msg)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_STEP_SAID);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		feature->hooks->step_said(feature, lane, peer, msg);
	}
}

bool
wf_features_may_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_PUT);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		if (!feature->hooks->may_put(feature, lane, peer, ordinal)) {
			return false;
		}
	}
	return true;
}

bool
wf_features_may_apply(struct wf_lane *lane, uint32_t ordinal, double *divisor)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_APPLY);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		if (!feature->hooks->may_apply(feature, lane, ordinal, divisor)) {
			return false;
		}
	}
	return true;
}

void
wf_features_after_apply(struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_APPLIED);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		feature->hooks->after_apply(feature, lane, ordinal);
	}
}

void
wf_features_step_is_here(struct wf_lane *lane, struct wf_peer *peer)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_STEP_HERE);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		feature->hooks->step_is_here(feature, lane, peer);
	}
}

void
wf_features_step_done(struct wf_lane *lane, uint64_t applied_ns)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_STEP_DONE);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		feature->hooks->step_done(feature, lane, applied_ns);
	}
}

void
wf_features_mark(struct wf_lane *lane, const struct wf_peer *peer, enum wf_trace_what what,
		 uint32_t ordinal)
{
	const struct wf_features *features = features_of(lane);
	uint32_t left = awake_at(features, WF_AT_MARK);
	for (; left != 0; left &= left - 1) {
		const struct wf_feature *feature = &features->on[__builtin_ctz(left)];
		feature->hooks->mark(feature, lane, peer, what, ordinal);
	}
}

void
wf_features_tick(struct wf_lane *lane, uint64_t now_ns)
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		if (feature->hooks->tick != NULL) {
			feature->hooks->tick(feature, lane, now_ns);
		}
	}
}

void
wf_features_lines(struct wf_lane *lane, bool job_ends)
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		if (feature->hooks->lines != NULL) {
			feature->hooks->lines(feature, lane, job_ends);
		}
	}
}

void
wf_features_report(const struct wf_lane *lane, uint32_t trainer, uint64_t value[WF_REPORT_VALUES])
{
	const struct wf_features *features = features_of(lane);
	for (uint32_t i = 0; i < features->count; i++) {
		const struct wf_feature *feature = &features->on[i];
		if (feature->hooks->report != NULL) {
			feature->hooks->report(feature, trainer, value);
		}
	}
}
