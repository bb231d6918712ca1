/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: see snapshot.h. Thread: the lane's. */
#include "pserver/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"

/* A trainer that is here: the first one may have been another process, of a life of the job that
 * this pserver has not seen. */
static const struct wf_hello *
find_member(const struct wf_lane *lane)
{
	const struct wf_hello *found = &lane->admission.first;
	for (uint32_t i = 0; i < lane->peers.count; i++) {
		const struct wf_peer *peer = &lane->peers.all[i];
		found = peer->state == WF_PEER_UP ? &peer->hello : found;
	}
	return found;
}

enum weft_status
wf_snapshot_lane_open(struct wf_lane *lane, const struct wf_snapshot_content *content,
		      struct wf_snapshot_lane *out)
{
	struct wf_snapshots *all = lane->opts.snapshots;
	const struct wf_snapshots_opts *set = wf_snapshots_opts(all);
	uint64_t least = wf_outgoing_ring_bytes(content->longest);
	uint64_t bytes = set->ring_bytes != 0 ? set->ring_bytes : content->all_bytes;
	if (set->ring_bytes != 0 && bytes < least) {
		return wf_fail(WEFT_INVALID,
			       "lane %u: --snapshot_bytes=%" PRIu64
			       " has no room for two slices, or blocks of rows, which take %" PRIu64
			       " bytes; give at least that, or a smaller --slice_bytes",
			       lane->opts.idx, bytes, least);
	}
	const struct wf_outgoing_opts opts = {
		.env = lane->env,
		.folder = wf_snapshots_folder(all),
		.ring_bytes = bytes < least ? least : bytes,
		.rate = set->rate,
		.numa_node = lane->opts.numa_node,
		.before = content->slab,
	};
	enum weft_status st = wf_outgoing_open(&opts, &out->outgoing);
	if (st != WEFT_OK) {
		return st;
	}
	wf_turn_tick_before(&lane->turn, 0); /* a border may be due */
	out->all = all;
	out->seat = wf_snapshots_join(all, lane->opts.idx, find_member(lane), content->tables);
	return WEFT_OK;
}

void
wf_snapshot_lane_close(struct wf_snapshot_lane *self)
{
	wf_outgoing_close(self->outgoing);
	if (self->seat != NULL) {
		wf_snapshots_leave(self->all, self->seat);
	}
	*self = (struct wf_snapshot_lane){0};
}

static void
begin_part(struct wf_snapshot_lane *self, const struct wf_lane *lane)
{
	const struct wf_snapshot_id id = wf_snapshots_id(self->all, self->border);
	const uint32_t number =
		lane->admission.first.pserver_idx * lane->opts.lane_count + lane->opts.service_idx;
	const struct wf_part_head head = {
		.service = lane->service->number,
		.lane = number,
		.lane_count = lane->admission.first.pserver_count * lane->opts.lane_count,
		.epoch = id.epoch,
		.step = id.step,
		.job_digest = lane->admission.first.job_digest,
	};
	char leaf[WF_MANIFEST_PART_NAME_BYTES];
	wf_manifest_part_name((enum wf_service)lane->service->number, number, leaf);
	wf_outgoing_begin(self->outgoing, id, leaf, &head);
	self->is_copying = true;
}

/* Begins the part, unless the one before is still being written. */
static bool
begin(struct wf_snapshot_lane *self, struct wf_lane *lane)
{
	if (wf_outgoing_state(self->outgoing) != WF_OUTGOING_IDLE) {
		(void)wf_fail(WEFT_UNAVAILABLE,
			      "lane %u is still writing its part of an earlier snapshot",
			      lane->opts.idx);
		wf_snapshots_report(self->all, self->seat, self->border, NULL);
		return false;
	}
	begin_part(self, lane);
	wf_turn_tick_before(&lane->turn, 0);
	return true;
}

bool
wf_snapshot_lane_ordered(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t step)
{
	uint64_t border = wf_snapshot_seat_applied(self->seat, step);
	if (border == 0 || border == self->border) {
		return false;
	}
	self->border = border;
	return begin(self, lane);
}

bool
wf_snapshot_lane_applied(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t step)
{
	uint64_t border = wf_snapshot_seat_applied(self->seat, step);
	if (border == 0 || step < border || border == self->border) {
		return false;
	}
	self->border = border;
	if (step > border) {
		(void)wf_fail(WEFT_UNAVAILABLE,
			      "lane %u had applied step %" PRIu64
			      " when the snapshot of step %" PRIu64 " was ordered",
			      lane->opts.idx, step, border);
		wf_snapshots_report(self->all, self->seat, border, NULL);
		return false;
	}
	return begin(self, lane);
}

void
wf_snapshot_lane_copied(struct wf_snapshot_lane *self)
{
	WF_ASSERT(self->is_copying);
	self->is_copying = false;
	wf_outgoing_end(self->outgoing);
}

void
wf_snapshot_lane_hold(struct wf_snapshot_lane *self, struct wf_lane *lane)
{
	if (!self->is_holding && !self->retries) {
		wf_stats_add(&lane->stats, WF_LANE_WAIT_SNAPSHOT_COUNT, 1);
		wf_turn_tick_before(&lane->turn, 0);
	}
	self->is_holding = true;
}

/* The part has ended, well or not. */
static void
report(struct wf_snapshot_lane *self)
{
	const struct wf_part_sum *sum = NULL;
	struct wf_part_sum durable;
	if (wf_outgoing_state(self->outgoing) == WF_OUTGOING_DURABLE) {
		durable = wf_outgoing_sum(self->outgoing);
		sum = &durable;
	} else {
		*wf_error_record() = *wf_outgoing_failure(self->outgoing);
	}
	self->is_copying = false;
	wf_outgoing_rest(self->outgoing);
	wf_snapshots_report(self->all, self->seat, self->border, sum);
}

void
wf_snapshot_lane_tick(struct wf_snapshot_lane *self, struct wf_lane *lane, uint64_t now_ns,
		      void (*retry)(struct wf_lane *lane))
{
	uint64_t next_ns = wf_outgoing_pump(self->outgoing, now_ns);
	enum wf_outgoing_state state = wf_outgoing_state(self->outgoing);
	if (state == WF_OUTGOING_DURABLE || state == WF_OUTGOING_FAILED) {
		report(self);
	}
	wf_turn_tick_before(&lane->turn, next_ns);
	if (self->is_holding) {
		self->is_holding = false;
		self->retries = true;
		retry(lane);
		self->retries = false;
	}
}
