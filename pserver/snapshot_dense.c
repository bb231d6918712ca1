/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_dense: the part of a snapshot that a dense lane writes. When the step of the border is
 * applied, all slices are of it. Each is copied before it is applied again, or in the lane's next
 * turns, whichever comes first: values and arrays of state in one block. Numbers of optimizers that
 * trainers have changed go first, because those of the next step come before it. Thread: the
 * lane's.
 *
 * A vector of versions (snapshot_vector.c) has slices as they are when they are copied, and then
 * their versions, so nothing waits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/dense.h"
#include "pserver/refuse.h"
#include "pserver/registry.h"
#include "pserver/snapshot.h"
#include "pserver/snapshot_dense.h"
#include "wire/little.h"

struct snapshot {
	struct wf_snapshot_lane lane;
	uint32_t *item;   /* [tensor_count] numbers of tensors in the manifest */
	uint64_t *copied; /* [stored_count] the border for which the slice was copied last */
	uint32_t next;    /* slice that is looked at next; in a vector, then its versions */
	bool is_vector;
	uint64_t *noted; /* vector: [stored_count][noted_words], as the slice was copied */
	uint64_t noted_words;
};

/* Lane 0's; NULL on the others. */
static struct wf_registry *
registry_of(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	return dense->registry;
}

static uint64_t
snapshot_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	if (lane->opts.snapshots == NULL) {
		return 0;
	}
	uint64_t words = wf_snapshot_is_vector(&dense->job) ? wf_snapshot_versions_words(lane) : 0;
	return sizeof(struct snapshot) + dense->job.tensor_count * sizeof(uint32_t) +
	       dense->store.stored_count * (1 + words) * sizeof(uint64_t);
}

/* The arrays of a slice. */
static unsigned
sections_of(const struct wf_store *store, const struct wf_stored *stored)
{
	return 1 + (stored->has_state ? store->state_count : 0);
}

static uint64_t
payload_bytes(const struct wf_store *store, const struct wf_stored *stored)
{
	return stored->count * sizeof(float) * sections_of(store, stored);
}

/* Whether snapshots are possible in this job. */
static enum weft_status
check_job(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	if (wf_session_has_local_steps(&dense->job.set)) {
		return wf_fail(WEFT_UNSUPPORTED,
			       "lane %u: --snapshot_dir is not possible with this job: trainers "
			       "make local steps, whose optimizer is their own",
			       lane->opts.idx);
	}
	return wf_snapshot_check_modes(lane);
}

static enum weft_status
alloc(struct snapshot *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	self->item = wf_zalloc_array(lane->env, dense->job.tensor_count, sizeof(*self->item));
	self->copied =
		wf_zalloc_array(lane->env, dense->store.stored_count + 1u, sizeof(*self->copied));
	self->is_vector = wf_snapshot_is_vector(&dense->job);
	if (self->is_vector) {
		self->noted_words = wf_snapshot_versions_words(lane);
		self->noted = wf_zalloc_array(lane->env,
					      dense->store.stored_count * self->noted_words + 1,
					      sizeof(*self->noted));
	}
	if ((self->item == NULL && dense->job.tensor_count > 0) || self->copied == NULL ||
	    (self->is_vector && self->noted == NULL)) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for snapshots of %u slices",
			       lane->opts.idx, dense->store.stored_count);
	}
	return wf_snapshot_items(lane->env, &dense->job, self->item);
}

static enum weft_status
open_lane(struct snapshot *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const uint64_t versions = self->noted_words * sizeof(*self->noted);
	uint64_t longest = sizeof(struct wf_numbers);
	uint64_t all = 0;
	longest = versions > longest ? versions : longest;
	for (uint32_t i = 0; i < store->stored_count; i++) {
		uint64_t bytes = payload_bytes(store, &store->stored[i]);
		longest = bytes > longest ? bytes : longest;
		all += wf_outgoing_ring_bytes(bytes) / 2;
		all += self->is_vector ? wf_outgoing_ring_bytes(versions) / 2 : 0;
	}
	const struct wf_snapshot_content content = {
		.longest = longest, .all_bytes = all + longest, .slab = &store->slab};
	return wf_snapshot_lane_open(lane, &content, &self->lane);
}

static enum weft_status
open_registry(const struct snapshot *self, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	struct wf_manifest about;
	enum weft_status st = wf_snapshot_describe(lane, self->item, &about);
	if (st != WEFT_OK) {
		wf_manifest_fini(lane->env, &about);
		return st;
	}
	return wf_registry_open(lane, &about, &dense->registry);
}

static enum weft_status
open_snapshot(struct wf_feature *feature, struct wf_lane *lane)
{
	struct snapshot *self = wf_zalloc(lane->env, sizeof(*self));
	feature->state = self;
	if (self == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for snapshots", lane->opts.idx);
	}
	enum weft_status st = check_job(lane);
	st = st == WEFT_OK ? alloc(self, lane) : st;
	st = st == WEFT_OK ? open_lane(self, lane) : st;
	return st == WEFT_OK && lane->opts.idx == 0 ? open_registry(self, lane) : st;
}

static void
close_snapshot(struct wf_feature *feature, struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	struct snapshot *self = feature->state;
	if (self == NULL) {
		return;
	}
	wf_registry_close(dense->registry);
	dense->registry = NULL;
	wf_snapshot_lane_close(&self->lane);
	wf_free(lane->env, self->item, dense->job.tensor_count * sizeof(*self->item));
	wf_free(lane->env, self->copied, (dense->store.stored_count + 1u) * sizeof(*self->copied));
	wf_free(lane->env, self->noted,
		(dense->store.stored_count * self->noted_words + 1) * sizeof(*self->noted));
	wf_free(lane->env, self, sizeof(*self));
}

/* Copies a slice. False: there is no room yet. */
static bool
copy_slice(struct snapshot *self, struct wf_lane *lane, uint32_t ordinal)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_stored *stored = &store->stored[ordinal];
	const struct wf_part_block block = {
		.kind = WF_PART_SLICE,
		.item = self->item[stored->tensor_idx],
		.first = dense->placement.slice[stored->slice].first,
		.count = stored->count,
		.bytes = payload_bytes(store, stored),
	};
	char *to = wf_outgoing_claim(self->lane.outgoing, &block);
	if (to == NULL) {
		return false;
	}
	const size_t bytes = stored->count * sizeof(float);
	memcpy(to, wf_store_param(store, stored), bytes);
	for (unsigned i = 1; i < sections_of(store, stored); i++) {
		memcpy(to + i * bytes, wf_store_state(store, stored, i - 1), bytes);
	}
	wf_outgoing_add(self->lane.outgoing);
	self->copied[ordinal] = self->lane.border;
	if (self->is_vector && wf_slice_is_async(dense, ordinal)) {
		wf_snapshot_note_versions(lane, ordinal, self->noted + ordinal * self->noted_words);
	}
	return true;
}

/* Adds the versions that a slice had when it was copied. False: there is no room yet. */
static bool
add_versions(struct snapshot *self, const struct wf_dense *dense, uint32_t ordinal)
{
	const struct wf_stored *stored = &dense->store.stored[ordinal];
	const struct wf_part_block block = {
		.kind = WF_PART_VERSIONS,
		.item = self->item[stored->tensor_idx],
		.first = dense->placement.slice[stored->slice].first,
		.count = stored->count,
		.bytes = self->noted_words * sizeof(*self->noted),
	};
	if (!wf_slice_is_async(dense, ordinal)) {
		return true;
	}
	uint8_t *to = wf_outgoing_claim(self->lane.outgoing, &block);
	for (uint64_t i = 0; i < self->noted_words && to != NULL; i++) {
		wf_store_u64(to + 8 * i, self->noted[ordinal * self->noted_words + i]);
	}
	if (to != NULL) {
		wf_outgoing_add(self->lane.outgoing);
	}
	return to != NULL;
}

/* Whether the slice may change: it is copied, or needs no copy. */
static bool
may_apply(const struct wf_feature *feature, struct wf_lane *lane, uint32_t ordinal, double *divisor)
{
	struct snapshot *self = feature->state;
	(void)divisor;
	if (!self->lane.is_copying || self->copied[ordinal] == self->lane.border ||
	    copy_slice(self, lane, ordinal)) {
		return true;
	}
	wf_snapshot_lane_hold(&self->lane, lane);
	return false;
}

/* Copies the numbers that trainers have changed: room for them was left free at the beginning. */
static bool
copy_numbers(struct snapshot *self, const struct wf_dense *dense)
{
	for (uint32_t i = 0; dense->store.numbers != NULL && i < dense->job.tensor_count; i++) {
		const struct wf_numbers *numbers = &dense->store.numbers[i];
		const struct wf_part_block block = {
			.kind = WF_PART_NUMBERS,
			.item = self->item[i],
			.bytes = WF_SNAPSHOT_NUMBERS_BYTES,
		};
		if (numbers->given == 0) {
			continue;
		}
		uint8_t *to = wf_outgoing_claim(self->lane.outgoing, &block);
		if (to == NULL) {
			return false;
		}
		wf_snapshot_numbers_put(numbers, to);
		wf_outgoing_add(self->lane.outgoing);
	}
	return true;
}

static void
note_border(struct snapshot *self, const struct wf_lane *lane)
{
	const struct wf_snapshot_moment moment = wf_snapshot_moment_of(lane);
	struct wf_manifest_position *position =
		wf_registry_note(registry_of(lane), self->lane.border, &moment);
	if (position != NULL && self->is_vector) {
		wf_snapshot_gather_vector(lane, position);
	} else if (position != NULL) {
		wf_snapshot_gather_positions(lane, position);
	}
}

static void
begin(struct snapshot *self, struct wf_lane *lane)
{
	self->next = 0;
	if (!copy_numbers(self, lane->own)) {
		wf_outgoing_give_up(self->lane.outgoing);
		self->lane.is_copying = false;
		return;
	}
	if (registry_of(lane) != NULL) {
		note_border(self, lane);
	}
}

/* Looks whether a vector of versions has been ordered. */
static void
look_for_order(struct snapshot *self, struct wf_lane *lane)
{
	if (wf_snapshot_lane_ordered(&self->lane, lane, lane->order.highest)) {
		begin(self, lane);
	}
}

static void
step_said(const struct wf_feature *feature, struct wf_lane *lane, struct wf_peer *peer,
	  const struct wf_msg_step *msg)
{
	struct snapshot *self = feature->state;
	(void)peer;
	(void)msg;
	if (self->is_vector) {
		look_for_order(self, lane);
		if (registry_of(lane) != NULL) {
			wf_turn_tick_before(&lane->turn, 0); /* one may be due */
		}
	}
}

static void
step_done(const struct wf_feature *feature, struct wf_lane *lane, uint64_t applied_ns)
{
	struct snapshot *self = feature->state;
	(void)applied_ns;
	if (wf_snapshot_lane_applied(&self->lane, lane, lane->order.sum.step)) {
		begin(self, lane);
	}
}

/* Copies some of the slices that have not changed. */
static void
copy_some(struct snapshot *self, struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	uint64_t copied = 0;
	while (self->next < store->stored_count && copied < WF_SNAPSHOT_PIECE_BYTES) {
		uint32_t ordinal = self->next;
		if (self->copied[ordinal] != self->lane.border &&
		    !wf_slice_is_piece(dense, ordinal)) {
			if (!copy_slice(self, lane, ordinal)) {
				return;
			}
			copied += payload_bytes(store, &store->stored[ordinal]);
		}
		self->next++;
	}
	const uint32_t all = self->is_vector ? 2 * store->stored_count : store->stored_count;
	while (self->next >= store->stored_count && self->next < all &&
	       add_versions(self, dense, self->next - store->stored_count)) {
		self->next++;
	}
	if (self->next == all) {
		wf_snapshot_lane_copied(&self->lane);
	}
}

/* Lane 0: an order is seen before another message changes where the trainers are. */
static uint64_t
look(struct snapshot *self, struct wf_lane *lane, uint64_t now_ns)
{
	if (self->is_vector) {
		wf_registry_allow(registry_of(lane), wf_snapshot_is_even(lane));
	}
	uint64_t next_ns = wf_registry_look(registry_of(lane), now_ns);
	if (self->is_vector) {
		look_for_order(self, lane);
	}
	return next_ns;
}

static void
tick(const struct wf_feature *feature, struct wf_lane *lane, uint64_t now_ns)
{
	struct snapshot *self = feature->state;
	if (self->is_vector) {
		look_for_order(self, lane);
	}
	if (self->lane.is_copying) {
		uint32_t before = self->next;
		copy_some(self, lane);
		if (self->next > before) {
			wf_turn_tick_before(&lane->turn, 0);
		}
	}
	wf_snapshot_lane_tick(&self->lane, lane, now_ns, wf_round_try_all);
	if (registry_of(lane) != NULL) {
		wf_turn_tick_before(&lane->turn, look(self, lane, now_ns));
	}
}

static void
words(const struct wf_feature *feature, const struct wf_lane *lane,
      const struct wf_report_line *line, char *out, size_t bytes)
{
	(void)feature;
	(void)lane;
	(void)snprintf(out, bytes, " waits_snapshot %" PRIu64,
		       line->since[WF_LANE_WAIT_SNAPSHOT_COUNT]);
}

void
wf_snapshot_ended(struct wf_lane *lane)
{
	struct wf_registry *registry = registry_of(lane);
	if (registry != NULL) {
		wf_registry_end(registry);
	}
}

bool
wf_snapshot_is_over(struct wf_lane *lane, uint64_t now_ns)
{
	struct wf_registry *registry = registry_of(lane);
	uint64_t next_ns = WF_NEVER;
	bool is_over = registry == NULL || wf_registry_is_over(registry, now_ns, &next_ns);
	wf_turn_tick_before(&lane->turn, next_ns);
	return is_over;
}

void
wf_snapshot_registry(struct wf_lane *lane, const struct wf_event *event,
		     const struct wf_hello *hello)
{
	struct wf_registry *registry = registry_of(lane);
	if (registry != NULL) {
		wf_registry_event(registry, event, hello);
	} else if (hello != NULL && lane->opts.idx == 0 && lane->opts.snapshots == NULL &&
		   lane->opts.members == NULL) {
		(void)wf_fail(WEFT_MISMATCH,
			      "the pserver at this address takes no snapshots and drops no "
			      "trainer; give all pservers of the job the same --snapshot_dir and "
			      "--on_trainer_death, or check --registrar");
		wf_refuse_other(lane, event->conn, "pserver");
	} else if (hello != NULL && lane->opts.idx == 0) {
		(void)wf_fail(WEFT_UNAVAILABLE, "pserver 0 has no job yet; try again");
		wf_refuse_other(lane, event->conn, "pserver");
	} else if (hello != NULL) {
		wf_refuse_other_port(lane, event->conn);
	}
}

const struct wf_feature_hooks wf_snapshot_hooks = {
	.name = "snapshots",
	.bytes = snapshot_bytes,
	.open = open_snapshot,
	.close = close_snapshot,
	.may_apply = may_apply,
	.step_said = step_said,
	.step_done = step_done,
	.tick = tick,
	.words = words,
};
