/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_load: the slices of a dense lane out of the parts of a snapshot. The snapshot may be of
 * another number of lanes, and of other slices: a block is a range of a tensor, and what of it
 * belongs to this lane is copied. Blocks of other lanes are left out: the registrar has read all of
 * the snapshot, and each block that is used is compared with its checksum once more. Memory does
 * not depend on the files. Thread: the lane's. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/position.h"
#include "pserver/snapshot_dense.h"
#include "saved/names.h"
#include "wire/little.h"

#define SCRATCH_FLOATS 16384u

/* A slice of this lane. */
struct target {
	uint32_t item; /* its tensor in the manifest */
	uint32_t ordinal;
	uint64_t first, count; /* elements of the tensor */
	uint64_t loaded;       /* elements so far, of all its arrays */
	bool has_versions;
};

struct loading {
	struct wf_lane *lane;
	const struct wf_snapshot *from;
	uint32_t *item;        /* [tensor_count] */
	struct target *target; /* [target_count], by item and first */
	uint32_t target_count;
	float *scratch;
	uint8_t *versions; /* [versions_bytes], of a slice in a vector */
	uint64_t versions_bytes;
};

static int
compare_targets(const void *a, const void *b)
{
	const struct target *x = a;
	const struct target *y = b;
	if (x->item != y->item) {
		return x->item < y->item ? -1 : 1;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

/* The first target that ends behind the element; target_count: there is none. */
static uint32_t
find_target(const struct loading *loading, uint32_t item, uint64_t element)
{
	uint32_t low = 0;
	uint32_t high = loading->target_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct target *target = &loading->target[middle];
		bool before = target->item < item ||
			      (target->item == item && target->first + target->count <= element);
		low = before ? middle + 1 : low;
		high = before ? high : middle;
	}
	return low;
}

static float *
array_of(const struct loading *loading, const struct target *target, unsigned section)
{
	const struct wf_dense *dense = loading->lane->own;
	const struct wf_stored *stored = &dense->store.stored[target->ordinal];
	return section == 0 ? wf_store_param(&dense->store, stored)
			    : wf_store_state(&dense->store, stored, section - 1);
}

/* Reads the next elements of a section, from `first` to before `end`, or fewer: to the slice that
 * has the first of them, or to nowhere. Returns where it has come to in `*next`. */
static enum weft_status
read_some(const struct loading *loading, struct wf_part_reader *reader, unsigned section,
	  const struct target *range, uint64_t *next)
{
	const uint64_t first = range->first;
	const uint64_t end = first + range->count;
	const uint32_t i = find_target(loading, range->item, first);
	struct target *target = i < loading->target_count ? &loading->target[i] : NULL;
	bool has_some = target != NULL && target->item == range->item && target->first < end;
	if (!has_some || first < target->first) {
		uint64_t to = has_some ? target->first : end;
		to = to - first < SCRATCH_FLOATS ? to : first + SCRATCH_FLOATS;
		*next = to;
		return wf_part_read(reader, loading->scratch, (to - first) * sizeof(float));
	}
	const uint64_t target_end = target->first + target->count;
	const uint64_t to = end < target_end ? end : target_end;
	target->loaded += to - first;
	*next = to;
	return wf_part_read(reader, array_of(loading, target, section) + (first - target->first),
			    (to - first) * sizeof(float));
}

/* Straight to the slices that have it: what a damaged block has left there is not used. */
static enum weft_status
load_section(const struct loading *loading, struct wf_part_reader *reader,
	     const struct wf_part_block *block, unsigned section)
{
	const uint64_t end = block->first + block->count;
	uint64_t at = block->first;
	enum weft_status st = WEFT_OK;
	while (at < end && st == WEFT_OK) {
		const struct target range = {.item = block->item, .first = at, .count = end - at};
		st = read_some(loading, reader, section, &range, &at);
	}
	return st;
}

static unsigned
sections_of(const struct loading *loading, uint32_t item)
{
	return 1 + wf_snapshot_manifest(loading->from)->tensor[item].state_count;
}

static enum weft_status
load_slice(const struct loading *loading, struct wf_part_reader *reader,
	   const struct wf_part_block *block)
{
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	if (block->item >= manifest->tensor_count) {
		return wf_fail(WEFT_DATA, "a block is of tensor %u of %u", block->item,
			       manifest->tensor_count);
	}
	const unsigned sections = sections_of(loading, block->item);
	const struct wf_manifest_tensor *tensor = &manifest->tensor[block->item];
	const uint64_t elements = tensor->rows * tensor->cols;
	if (block->first > elements || block->count > elements - block->first ||
	    block->bytes != block->count * sections * sizeof(float)) {
		return wf_fail(WEFT_DATA,
			       "a block has elements %" PRIu64 " and %" PRIu64
			       " more of tensor %.60s, in %" PRIu64 " bytes",
			       block->first, block->count, tensor->name, block->bytes);
	}
	uint32_t i = find_target(loading, block->item, block->first);
	if (i == loading->target_count || loading->target[i].item != block->item ||
	    loading->target[i].first >= block->first + block->count) {
		wf_part_leave(reader);
		return WEFT_OK;
	}
	enum weft_status st = WEFT_OK;
	for (unsigned section = 0; section < sections && st == WEFT_OK; section++) {
		st = load_section(loading, reader, block, section);
	}
	return st;
}

static enum weft_status
load_versions(const struct loading *loading, struct wf_part_reader *reader,
	      const struct wf_part_block *block)
{
	const struct wf_dense *dense = loading->lane->own;
	struct target *target = &loading->target[find_target(loading, block->item, block->first)];
	if (block->bytes != loading->versions_bytes) {
		return wf_fail(WEFT_DATA, "versions of a slice in %" PRIu64 " bytes, not %" PRIu64,
			       block->bytes, loading->versions_bytes);
	}
	bool is_there = target < &loading->target[loading->target_count] &&
			target->item == block->item && target->first < block->first + block->count;
	if (!is_there || !wf_slice_is_async(dense, target->ordinal)) {
		wf_part_leave(reader);
		return WEFT_OK;
	}
	if (target->first != block->first || target->count != block->count) {
		return wf_fail(WEFT_MISMATCH,
			       "the snapshot is a vector of versions, with slices of %" PRIu64
			       " elements where this job has %" PRIu64
			       "; give the same slice_bytes",
			       block->count, target->count);
	}
	enum weft_status st = wf_part_read(reader, loading->versions, block->bytes);
	target->has_versions = st == WEFT_OK;
	return st == WEFT_OK ? wf_snapshot_load_versions(loading->lane, target->ordinal,
							 loading->versions)
			     : st;
}

/* Every lane to which trainers push has those of all tensors, whatever slices it has: its part of
 * the next snapshot has them again, with those that are changed by then. */
static enum weft_status
load_numbers(const struct loading *loading, struct wf_part_reader *reader,
	     const struct wf_part_block *block)
{
	const struct wf_dense *dense = loading->lane->own;
	uint8_t payload[WF_SNAPSHOT_NUMBERS_BYTES];
	struct wf_numbers numbers;
	if (block->bytes != sizeof(payload)) {
		return wf_fail(WEFT_DATA, "numbers of a tensor in %" PRIu64 " bytes, not %zu",
			       block->bytes, sizeof(payload));
	}
	enum weft_status st = wf_part_read(reader, payload, sizeof(payload));
	st = st == WEFT_OK ? wf_snapshot_numbers_get(payload, &numbers) : st;
	for (uint32_t i = 0; i < dense->job.tensor_count && st == WEFT_OK; i++) {
		if (loading->item[i] == block->item && !dense->job.tensor[i].is_piece) {
			return dense->store.pushable_count > 0
				       ? wf_change_load(loading->lane, i, &numbers)
				       : WEFT_OK;
		}
	}
	return st != WEFT_OK ? st
			     : wf_fail(WEFT_DATA, "numbers of tensor %u, which there is not",
				       block->item);
}

static enum weft_status
load_part(const struct loading *loading, struct wf_part_reader *reader)
{
	struct wf_part_block block;
	wf_part_forgo_sum(reader); /* the registrar has compared it */
	enum weft_status st = wf_part_next(reader, &block);
	while (st == WEFT_OK) {
		if (block.kind == WF_PART_SLICE) {
			st = load_slice(loading, reader, &block);
		} else if (block.kind == WF_PART_NUMBERS) {
			st = load_numbers(loading, reader, &block);
		} else if (block.kind == WF_PART_VERSIONS && loading->versions != NULL) {
			st = load_versions(loading, reader, &block);
		} else {
			st = wf_fail(WEFT_DATA, "a block is of kind %u, which a dense part has not",
				     block.kind);
		}
		st = st == WEFT_OK ? wf_part_next(reader, &block) : st;
	}
	return st == WEFT_CLOSED ? WEFT_OK : st;
}

/* Whether the snapshot has the tensors of the job. */
static enum weft_status
check_tensors(const struct loading *loading)
{
	const struct wf_dense *dense = loading->lane->own;
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	const struct wf_job *job = &dense->job;
	uint32_t count = 0;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		const struct wf_job_tensor *tensor = &job->tensor[i];
		if (tensor->is_piece) {
			continue;
		}
		count++;
		const struct wf_manifest_tensor *saved =
			loading->item[i] < manifest->tensor_count
				? &manifest->tensor[loading->item[i]]
				: NULL;
		unsigned states = wf_job_has_state(tensor) ? dense->store.state_count : 0;
		char file[WF_SAVED_NAME_BYTES];
		enum weft_status st = wf_saved_name_settle(tensor->name, file);
		if (st != WEFT_OK) {
			return st;
		}
		if (saved == NULL || strcmp(saved->name, file) != 0 ||
		    saved->rows * saved->cols != tensor->count || saved->state_count != states) {
			return wf_fail(WEFT_MISMATCH,
				       "tensor %.60s of %" PRIu64
				       " elements with %u arrays of state is not in the snapshot",
				       tensor->name, tensor->count, states);
		}
	}
	return count == manifest->tensor_count
		       ? WEFT_OK
		       : wf_fail(WEFT_MISMATCH, "the snapshot has %u tensors, the job has %u",
				 manifest->tensor_count, count);
}

static void
list_targets(struct loading *loading)
{
	const struct wf_dense *dense = loading->lane->own;
	for (uint32_t i = 0; i < dense->store.stored_count; i++) {
		const struct wf_stored *stored = &dense->store.stored[i];
		if (!wf_slice_is_piece(dense, i)) {
			loading->target[loading->target_count++] = (struct target){
				.item = loading->item[stored->tensor_idx],
				.ordinal = i,
				.first = dense->placement.slice[stored->slice].first,
				.count = stored->count,
			};
		}
	}
	if (loading->target_count > 0) {
		qsort(loading->target, loading->target_count, sizeof(*loading->target),
		      compare_targets);
	}
}

/* Each element of each array once: parts do not overlap, so a sum is enough. */
static enum weft_status
check_all_loaded(const struct loading *loading)
{
	const struct wf_dense *dense = loading->lane->own;
	for (uint32_t i = 0; i < loading->target_count; i++) {
		const struct target *target = &loading->target[i];
		uint64_t due = target->count * sections_of(loading, target->item);
		if (target->loaded != due) {
			return wf_fail(WEFT_DATA,
				       "%" PRIu64 " of %" PRIu64 " elements of slice %u of %.60s",
				       target->loaded, due,
				       dense->store.stored[target->ordinal].slice,
				       dense->store.stored[target->ordinal].tensor->name);
		}
		if (loading->versions != NULL && !target->has_versions &&
		    wf_slice_is_async(dense, target->ordinal)) {
			return wf_fail(WEFT_DATA, "slice %u of %.60s has no version",
				       dense->store.stored[target->ordinal].slice,
				       dense->store.stored[target->ordinal].tensor->name);
		}
	}
	return WEFT_OK;
}

static enum weft_status
load_all(struct loading *loading)
{
	const struct wf_manifest *manifest = wf_snapshot_manifest(loading->from);
	enum weft_status st = check_tensors(loading);
	if (st == WEFT_OK && manifest->parts.is_vector &&
	    !wf_snapshot_is_vector(&((const struct wf_dense *)loading->lane->own)->job)) {
		st = wf_fail(WEFT_MISMATCH,
			     "the snapshot is a vector of versions, of an asynchronous job, and "
			     "trainers of this job make common steps");
	}
	if (st == WEFT_OK) {
		list_targets(loading);
	}
	for (uint32_t i = 0; i < manifest->parts.part_count && st == WEFT_OK; i++) {
		struct wf_part_reader *reader = NULL;
		char path[WF_SAVED_PATH_BYTES];
		st = wf_snapshot_part_path(loading->from, i, path);
		st = st == WEFT_OK
			     ? wf_part_open(loading->lane->env, wf_saved_posix(), path, &reader)
			     : st;
		if (st == WEFT_OK && wf_part_head(reader)->service == WF_SERVICE_DENSE) {
			st = load_part(loading, reader);
		}
		wf_part_close(reader);
	}
	return st == WEFT_OK ? check_all_loaded(loading) : st;
}

enum weft_status
wf_snapshot_load_dense(struct wf_lane *lane, const struct wf_snapshot *from)
{
	const struct wf_dense *dense = lane->own;
	const size_t items = dense->job.tensor_count + 1u;
	const size_t targets = dense->store.stored_count + 1u;
	struct loading loading = {
		.lane = lane,
		.from = from,
		.item = wf_zalloc_array(lane->env, items, sizeof(*loading.item)),
		.target = wf_zalloc_array(lane->env, targets, sizeof(*loading.target)),
		.scratch = wf_zalloc_array(lane->env, SCRATCH_FLOATS, sizeof(*loading.scratch)),
	};
	const bool is_vector = wf_snapshot_manifest(from)->parts.is_vector;
	if (is_vector) {
		loading.versions_bytes = wf_snapshot_versions_words(lane) * sizeof(uint64_t);
		loading.versions = wf_zalloc(lane->env, loading.versions_bytes);
	}
	enum weft_status st = WEFT_OK;
	if (loading.item == NULL || loading.target == NULL || loading.scratch == NULL ||
	    (is_vector && loading.versions == NULL)) {
		st = wf_fail(WEFT_NOMEM, "no memory to load %u slices", dense->store.stored_count);
	}
	st = st == WEFT_OK ? wf_snapshot_items(lane->env, &dense->job, loading.item) : st;
	st = st == WEFT_OK ? load_all(&loading) : st;
	wf_free(lane->env, loading.item, items * sizeof(*loading.item));
	wf_free(lane->env, loading.target, targets * sizeof(*loading.target));
	if (st == WEFT_OK && is_vector && dense->async.count > 0) {
		wf_snapshot_log_ahead(lane);
	}
	wf_free(lane->env, loading.versions, loading.versions_bytes);
	wf_free(lane->env, loading.scratch, SCRATCH_FLOATS * sizeof(*loading.scratch));
	return st;
}

/* Lane 0 keeps where the trainers are in their data. */
static enum weft_status
load_positions(struct wf_lane *lane, const struct wf_manifest *manifest)
{
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < manifest->parts.position_count && st == WEFT_OK; i++) {
		const struct wf_manifest_position *position = &manifest->parts.position[i];
		if (position->trainer < lane->peers.count && position->bytes > 0) {
			uint64_t step =
				manifest->parts.is_vector ? position->step : manifest->about.step;
			st = wf_position_set(lane, position->trainer, step, position->position,
					     position->bytes);
		}
	}
	return st;
}

/* Trainers make steps of their own. A sparse lane has nothing of a vector. */
static enum weft_status
start_vector(struct wf_lane *lane, const struct wf_manifest *manifest, struct wf_msg_init *out)
{
	return lane->service->number == WF_SERVICE_DENSE
		       ? wf_snapshot_load_starts(lane, manifest, out)
		       : wf_fail(WEFT_MISMATCH,
				 "the snapshot is a vector of versions, of a job without tables");
}

static enum weft_status
load_snapshot(struct wf_lane *lane, struct wf_snapshot_id id, struct wf_msg_init *out)
{
	const char *dir = wf_snapshots_opts(lane->opts.snapshots)->dir;
	struct wf_snapshot *from = NULL;
	enum weft_status st = wf_snapshot_open(lane->env, wf_saved_posix(), dir, id, &from);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_manifest *manifest = wf_snapshot_manifest(from);
	*out = (struct wf_msg_init){
		.step = manifest->about.step, .samples = manifest->about.samples, .sections = 1};
	st = manifest->parts.is_vector ? start_vector(lane, manifest, out) : WEFT_OK;
	st = st == WEFT_OK ? lane->service->load(lane, from) : st;
	if (st == WEFT_OK && lane->opts.idx == 0 && lane->admission.first.pserver_idx == 0) {
		st = load_positions(lane, manifest);
	}
	wf_snapshot_close(from);
	return st;
}

static enum weft_status
load(const struct wf_lane_source *source, struct wf_lane *lane, struct wf_msg_init *out)
{
	struct wf_snapshots *all = lane->opts.snapshots;
	struct wf_snapshot_base base;
	(void)source;
	enum weft_status st = wf_snapshots_base(all, lane->opts.idx, &base);
	if (st != WEFT_OK) {
		return st;
	}
	if (base.id.step == 0) {
		return WEFT_CLOSED;
	}
	st = load_snapshot(lane, base.id, out);
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		return wf_fail(st,
			       "lane %u cannot go on from the snapshot of step %" PRIu64
			       ": %.300s; --resume=never begins anew",
			       lane->opts.idx, base.id.step, why.text);
	}
	wf_snapshots_begin_at(all, lane->opts.idx, base.id.step);
	return WEFT_OK;
}

static void
waits_for(const struct wf_lane_source *source, const struct wf_lane *lane, char *out, size_t bytes)
{
	(void)source;
	wf_snapshots_waits_for(lane->opts.snapshots, out, bytes);
}

const struct wf_lane_source wf_snapshot_lane_source = {.load = load, .waits_for = waits_for};
