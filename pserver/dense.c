/* SPDX-License-Identifier: Apache-2.0 */
/* dense: the dense service of a lane: the description of the job, its memory, and which message
 * goes where. Thread: the lane's. */
#include "pserver/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/snapshot_dense.h"

static enum weft_status
alloc_peer_memory(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense *dense = lane->own;
	struct wf_dense_peer *own = peer->own;
	own->answers = (struct wf_ordinal_ring){
		.ordinal = wf_zalloc_array(lane->env, dense->store.stored_count + 1u,
					   sizeof(*own->answers.ordinal)),
		.capacity = dense->store.stored_count,
		.priority = dense->priority,
	};
	if (own->answers.ordinal == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for trainer %u", lane->opts.idx,
			       peer->trainer);
	}
	return WEFT_OK;
}

/* The memory that trainers PUT into, and from which they are answered. */
static enum weft_status
open_memory(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	enum weft_status st = wf_path_open(lane, lane->windows.slot_count, dense->store.slot_bytes);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_slab *slab = &dense->store.slab;
	const struct wf_region store = {slab->base, slab->bytes, slab->memfd};
	st = wf_transport_region_add(lane->turn.transport, &store, &dense->store_region);
	dense->store_added = st == WEFT_OK;
	return st;
}

/* Of all trainers: beyond opts.slot_count windows take no more of the address space. */
#define WIDE_WINDOWS_BYTES (64ull << 20)

/* What a trainer's state and its part of the tables take, beside its window. */
static uint64_t
peer_bytes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	const struct wf_dense_peer *own = NULL;
	uint64_t slices =
		store->stored_count * (sizeof(struct wf_push) + sizeof(*own->answers.ordinal)) +
		store->hold_max * sizeof(*store->park.free);
	return sizeof(struct wf_peer) + sizeof(*own) + slices +
	       wf_slots_table_bytes(lane->windows.slot_count);
}

/* Windows and tables grow with the number of trainers: bounded like the shard itself. */
static enum weft_status
check_memory(const struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	uint64_t most = lane->opts.max_shard_bytes;
	uint64_t windows =
		(uint64_t)lane->peers.count * lane->windows.slot_count * dense->store.slot_bytes;
	uint64_t tables = lane->peers.count * peer_bytes(lane);
	tables += wf_features_bytes(lane) + store->stored_count * sizeof(*dense->priority);
	tables += wf_pieces_table_bytes(lane);
	if (dense->async.count > 0) {
		windows *= 2;
		tables += wf_async_table_bytes(lane, store->stored_count);
	}
	if (windows > most || tables > most - windows) {
		return wf_fail(WEFT_NOMEM,
			       "lane %u: windows of %u trainers x %u slots x %" PRIu64
			       " bytes and tables of %" PRIu64
			       " bytes, --max_shard_bytes allows %" PRIu64
			       "; raise it, or change --slice_bytes or --slot_count",
			       lane->opts.idx, lane->peers.count, lane->windows.slot_count,
			       dense->store.slot_bytes, tables, most);
	}
	return WEFT_OK;
}

/* Slices of the lane that has most. */
static uint32_t
longest_lane(const struct wf_placement *placement)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < placement->lane_count; i++) {
		uint32_t count = placement->lane_first[i + 1] - placement->lane_first[i];
		most = count > most ? count : most;
	}
	return most;
}

/* How many slots a window has where pushes stay in the trainer's memory: enough for all that it may
 * push in a step, which is never copied aside then. What is applied on arrival holds no slots.
 * Where a device would lock the memory that this reserves, windows are as on other paths. */
static uint32_t
wide_window(const struct wf_lane *lane)
{
	struct wf_transport_info info;
	wf_transport_query(lane->turn.transport, &info);
	if (!info.in_place || info.locks_memory) {
		return lane->opts.slot_count;
	}
	const struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	uint32_t due = dense->async.count > 0 ? 0 : store->hold_max + store->piece_count;
	uint64_t most = WF_SLOT_MAX / (longest_lane(&dense->placement) + 1u);
	uint64_t room = WIDE_WINDOWS_BYTES / (lane->peers.count * store->slot_bytes + 1);
	most = room < most ? room : most;
	most = lane->opts.slot_count_max < most ? lane->opts.slot_count_max : most;
	uint32_t count = lane->opts.slot_count;
	while (count < due && 2 * count <= most) {
		count *= 2;
	}
	return count;
}

static enum weft_status
size_windows(struct wf_lane *lane)
{
	lane->windows.slot_count = wide_window(lane);
	enum weft_status st = check_memory(lane);
	if (st != WEFT_OK && lane->windows.slot_count > lane->opts.slot_count) {
		lane->windows.slot_count = lane->opts.slot_count;
		st = check_memory(lane);
	}
	return st;
}

static enum weft_status
copy_priorities(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	if (store->stored_count == 0 || !wf_job_has_priorities(&dense->job)) {
		return WEFT_OK;
	}
	dense->priority = wf_zalloc_array(lane->env, store->stored_count, sizeof(*dense->priority));
	if (dense->priority == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u priorities", lane->opts.idx,
			       store->stored_count);
	}
	for (uint32_t i = 0; i < store->stored_count; i++) {
		dense->priority[i] = store->stored[i].tensor->priority;
	}
	return WEFT_OK;
}

/* A tensor that is summed waits for every trainer in each step, wherever its slices are. A job that
 * pushes nothing makes reduces, which do so too, or has tables, which are not known here. */
static bool
needs_all(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_job *job = &dense->job;
	bool pushes = false;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		const struct wf_job_terms terms = wf_job_terms_of(job, &job->tensor[i]);
		bool pushed = !job->tensor[i].is_static;
		if (pushed && !wf_job_terms_lag(&terms)) {
			return true;
		}
		pushes = pushes || pushed;
	}
	return !pushes && !lane->opts.has_tables;
}

static enum weft_status
alloc_memory(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	enum weft_status checked = size_windows(lane);
	if (checked != WEFT_OK) {
		return checked;
	}
	wf_peers_begin_all(lane);
	dense->peer = lane->peers.own;
	uint64_t pushes = (uint64_t)store->stored_count * lane->peers.count;
	dense->push = wf_zalloc_array(lane->env, pushes + 1, sizeof(*dense->push));
	dense->round = wf_zalloc_array(lane->env, store->stored_count + 1u, sizeof(*dense->round));
	dense->gradient = wf_zalloc_array(lane->env, lane->peers.count, sizeof(*dense->gradient));
	if (dense->push == NULL || dense->round == NULL || dense->gradient == NULL) {
		return wf_fail(WEFT_NOMEM, "lane %u: no memory for %u slices of %u trainers",
			       lane->opts.idx, store->stored_count, lane->peers.count);
	}
	for (uint64_t i = 0; i < pushes; i++) {
		/* Initial values come from trainer 0 only, and pieces have none. */
		bool by_zero = i % lane->peers.count == 0 &&
			       !store->stored[i / lane->peers.count].tensor->is_piece;
		dense->push[i].next = by_zero ? 0 : 1;
		dense->push[i].slot = WF_SLOT_NONE;
		dense->push[i].chunk = WF_PARK_NONE;
	}
	for (uint32_t i = 0; i < store->stored_count; i++) {
		dense->round[i].next = store->stored[i].tensor->is_piece ? 1 : 0;
	}
	enum weft_status taken = wf_pieces_alloc(lane);
	taken = taken == WEFT_OK ? copy_priorities(lane) : taken;
	for (uint32_t i = 0; i < lane->peers.count && taken == WEFT_OK; i++) {
		taken = alloc_peer_memory(lane, &lane->peers.all[i]);
	}
	if (taken != WEFT_OK) {
		return taken;
	}
	dense->uninitialised = store->stored_count - store->piece_count;
	lane->job.unit_count = store->stored_count;
	lane->job.place_count = WF_PLACE_STATE + WF_STATE_MAX + store->wire_shift;
	lane->job.owed = dense->uninitialised > 0 ? "the initial values from trainer 0" : NULL;
	dense->init = (struct wf_msg_init){.sections = 1};
	lane->job.has_steps = store->pushable_count > 0;
	lane->job.needs_all = needs_all(lane);
	taken = store->stored_count == 0 ? WEFT_OK : open_memory(lane);
	taken = taken == WEFT_OK ? wf_features_open(lane) : taken;
	return taken == WEFT_OK && dense->async.count > 0 ? wf_async_alloc(lane) : taken;
}

/* The whole description is here: check it against the hello, then take the memory it needs. */
static enum weft_status
accept_job(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_hello *first = &lane->admission.first;
	enum weft_status st =
		wf_job_decode(lane->env, dense->job_bytes, first->job_bytes, &dense->job);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_job *job = &dense->job;
	if (wf_job_digest(job) != first->job_digest ||
	    wf_job_tensors_digest(job) != first->tensors_digest ||
	    job->set.num_gradient_servers != first->trainer_count ||
	    job->set.ports_num != first->lane_count || job->pserver_count != first->pserver_count) {
		return wf_fail(WEFT_MISMATCH, "job description and hello of trainer %u differ",
			       first->trainer_id);
	}
	if (job->set.slice_bytes > lane->opts.slot_bytes_max) {
		return wf_fail(WEFT_INVALID,
			       "slice_bytes %" PRIu64 " is above this pserver's limit %" PRIu64,
			       job->set.slice_bytes, lane->opts.slot_bytes_max);
	}
	st = wf_placement_init(lane->env, job, &dense->placement);
	if (st != WEFT_OK) {
		return st;
	}
	if ((uint64_t)longest_lane(&dense->placement) * lane->opts.slot_count > WF_SLOT_MAX) {
		return wf_fail(
			WEFT_INVALID,
			"%u slices on a lane and %u slots a trainer do not fit a tag of 24 bits; "
			"raise --slice_bytes or lower --slot_count",
			longest_lane(&dense->placement), lane->opts.slot_count);
	}
	if (wf_placement_digest(&dense->placement) != first->placement_digest) {
		return wf_fail(WEFT_MISMATCH,
			       "trainer %u places slices otherwise than this pserver",
			       first->trainer_id);
	}
	uint32_t lane_number = first->pserver_idx * lane->opts.lane_count + lane->opts.service_idx;
	const struct wf_store_room room = {
		.max_shard_bytes = lane->opts.max_shard_bytes,
		.inbox_bytes = lane->opts.inbox_bytes,
		.numa_node = lane->opts.numa_node,
	};
	st = wf_store_init(lane->env, job, &dense->placement, lane_number, &room, &dense->store);
	if (st != WEFT_OK) {
		return st;
	}
	wf_async_count(lane);
	dense->pieces.count = dense->store.piece_count;
	return alloc_memory(lane);
}

static void
describe_job(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	const struct wf_store *store = &dense->store;
	uint64_t shard_bytes = wf_store_bytes(store);
	const char *trainers = lane->peers.count == 1 ? "trainer" : "trainers";
	wf_stats_set(&lane->stats, WF_LANE_SHARD_ALLOCATED_BYTES, shard_bytes);
	if (dense->is_loaded) {
		wf_log(lane->env, WF_LOG_INFO,
		       "lane %u: the job goes on after step %" PRIu64 " and %" PRIu64
		       " samples, with the state that this lane has loaded",
		       lane->opts.idx, dense->init.step, dense->init.samples);
	}
	if (dense->job.tensor_count == 0) {
		wf_log(lane->env, WF_LOG_INFO, "lane %u: job of %u %s, without tensors",
		       lane->opts.idx, lane->peers.count, trainers);
		return;
	}
	if (store->stored_count == 0) {
		wf_log(lane->env, WF_LOG_WARN,
		       "lane %u: no slice for this lane: %u slices, %u lanes; fewer ports_num or a "
		       "smaller "
		       "slice_bytes would use it",
		       lane->opts.idx, dense->placement.slice_count, dense->placement.lane_count);
		return;
	}
	wf_log(lane->env, WF_LOG_INFO,
	       "lane %u: job of %u %s, %u %s: %u of %u slices here, %" PRIu64
	       " bytes of parameters and state, optimizer %s, kernels %s",
	       lane->opts.idx, lane->peers.count, trainers, dense->job.tensor_count,
	       dense->job.tensor_count == 1 ? "tensor" : "tensors", store->stored_count,
	       dense->placement.slice_count, shard_bytes,
	       wf_optimizer_name(store->optimizer.method.kind), store->kernels->name);
}

static enum weft_status
begin(struct wf_lane *lane, const struct wf_msg_init *init)
{
	enum weft_status st = init != NULL ? wf_round_begin_loaded(lane, init) : WEFT_OK;
	if (st == WEFT_OK) {
		describe_job(lane);
	}
	return st;
}

/* Room for the description, while it comes. */
static enum weft_status
alloc_description(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	uint64_t bytes = lane->admission.first.job_bytes;
	if (dense->job_bytes == NULL) {
		dense->job_bytes = wf_zalloc_array(lane->env, 1, bytes);
	}
	return dense->job_bytes != NULL
		       ? WEFT_OK
		       : wf_fail(WEFT_NOMEM,
				 "lane %u: no memory for a description of %" PRIu64 " bytes",
				 lane->opts.idx, bytes);
}

static enum weft_status
on_job(struct wf_lane *lane, struct wf_peer *peer, const struct wf_msg_job *msg)
{
	struct wf_dense *dense = lane->own;
	if (!peer->loading.is_due || msg->total_bytes != lane->admission.first.job_bytes ||
	    msg->offset != lane->job.received_bytes) {
		return wf_fail(WEFT_PROTOCOL,
			       "JOB: bytes %" PRIu64 " of %" PRIu64 " were not asked for",
			       msg->offset, msg->total_bytes);
	}
	enum weft_status st = alloc_description(lane);
	if (st == WEFT_OK) {
		memcpy(dense->job_bytes + msg->offset, msg->bytes, msg->byte_count);
		lane->job.received_bytes += msg->byte_count;
		if (lane->job.received_bytes < lane->admission.first.job_bytes) {
			return WEFT_OK;
		}
		st = accept_job(lane);
	}
	wf_admit_job_is_here(lane, peer, st);
	return WEFT_OK;
}

static enum weft_status
on_message(struct wf_lane *lane, struct wf_peer *peer, const struct wf_head *head,
	   const uint8_t *body)
{
	union {
		struct wf_msg_job job;
		struct wf_msg_step step;
		struct wf_msg_pull pull;
		struct wf_msg_init init;
	} msg;
	enum weft_status st;
	switch (head->type) {
	case WF_MSG_JOB:
		st = wf_msg_job_decode(head, body, &msg.job);
		return st != WEFT_OK ? st : on_job(lane, peer, &msg.job);
	case WF_MSG_INIT:
		st = wf_msg_init_decode(head, body, &msg.init);
		return st != WEFT_OK ? st : wf_round_init(lane, peer, &msg.init);
	case WF_MSG_STEP:
		st = wf_msg_step_decode(head, body, &msg.step);
		return st != WEFT_OK ? st : wf_round_step(lane, peer, &msg.step);
	case WF_MSG_PULL:
		st = wf_msg_pull_decode(head, body, &msg.pull);
		return st != WEFT_OK ? st : wf_answer_pull(lane, peer, &msg.pull);
	default:
		return wf_features_recv(lane, peer, head, body);
	}
}

static void
release_peers(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	for (uint32_t i = 0; dense->peer != NULL && i < lane->peers.count; i++) {
		struct wf_dense_peer *own = &dense->peer[i];
		wf_free(lane->env, own->answers.ordinal,
			(dense->store.stored_count + 1u) * sizeof(*own->answers.ordinal));
	}
}

static void
release(struct wf_lane *lane)
{
	struct wf_dense *dense = lane->own;
	uint64_t pushes = (uint64_t)dense->store.stored_count * lane->peers.count;
	if (lane->turn.transport != NULL && dense->store_added) {
		wf_transport_region_remove(lane->turn.transport, dense->store_region);
	}
	wf_async_release(lane);
	wf_pieces_release(lane);
	wf_features_close(lane);
	wf_free(lane->env, dense->priority, dense->store.stored_count * sizeof(*dense->priority));
	wf_free(lane->env, dense->push, (pushes + 1) * sizeof(*dense->push));
	wf_free(lane->env, dense->round, (dense->store.stored_count + 1u) * sizeof(*dense->round));
	wf_free(lane->env, dense->gradient, lane->peers.count * sizeof(*dense->gradient));
	release_peers(lane);
	wf_free(lane->env, dense->job_bytes, lane->admission.first.job_bytes);
	wf_store_fini(&dense->store);
	wf_placement_fini(lane->env, &dense->placement);
	wf_job_fini(lane->env, &dense->job);
	*dense = (struct wf_dense){0};
}

static void
path_ends(struct wf_lane *lane, struct wf_peer *peer)
{
	struct wf_dense_peer *own = peer->own;
	own->init_due = false;
	own->implies_steps = false;
	own->pulls.count = 0;
	own->pulls.nack_due = false;
	wf_answer_forget(peer);
	wf_features_path_ends(lane, peer);
}

static void
gather(struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	wf_stats_set(&lane->stats, WF_LANE_PARK_USED_BYTES, wf_store_parked_bytes(&dense->store));
}

static void
words(const struct wf_lane *lane, const struct wf_report_line *line, char *out, size_t bytes)
{
	const struct wf_dense *dense = lane->own;
	const uint64_t *d = line->since;
	(void)snprintf(out, bytes, " slices_applied %" PRIu64, d[WF_LANE_SLICE_APPLIED_COUNT]);
	wf_features_words(lane, line, out, bytes);
	if (dense->async.count > 0) {
		size_t used = strlen(out);
		(void)snprintf(out + used, bytes - used, " slices_discarded %" PRIu64,
			       d[WF_LANE_SLICE_DISCARDED_COUNT]);
	}
}

static void
lines(struct wf_lane *lane, bool job_ends)
{
	const struct wf_dense *dense = lane->own;
	if (job_ends && dense->async.count > 0) {
		wf_async_lines(lane);
	}
	wf_features_lines(lane, job_ends);
}

static void
measure(struct wf_lane *lane)
{
	const struct wf_feature *times = wf_feature_find(lane, &wf_straggle_hooks);
	if (times != NULL) {
		wf_feature_wake(times, lane);
	}
}

const struct wf_lane_service wf_dense_service = {
	.number = WF_SERVICE_DENSE,
	.name = "dense",
	.payload = "tensors",
	.ports = "ports_num",
	.own_bytes = sizeof(struct wf_dense),
	.peer_bytes = sizeof(struct wf_dense_peer),
	.release = release,
	.path_begins = wf_answer_path_begins,
	.open_path = wf_answer_open_path,
	.path_ends = path_ends,
	.message = on_message,
	.put = wf_round_put,
	.park = wf_round_park,
	.done = wf_round_done,
	.next = wf_round_next,
	.has = wf_round_has,
	.flush = wf_answer_flush,
	.flush_owed = wf_answer_flush_owed,
	.stands = wf_round_stands,
	.drop = wf_round_drop,
	.enter = wf_round_enter,
	.go_on = wf_round_try_all,
	.tick = wf_features_tick,
	.load = wf_snapshot_load_dense,
	.begin = begin,
	.registry = wf_snapshot_registry,
	.ended = wf_snapshot_ended,
	.is_over = wf_snapshot_is_over,
	.gather = gather,
	.words = words,
	.measure = measure,
	.lines = lines,
};
