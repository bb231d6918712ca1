/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_vector: snapshots of jobs whose tensors are applied as their pushes arrive. No step is
 * common to all slices, so a snapshot is a vector of versions: each slice is copied once, in some
 * turn of its lane after the order, and the part has how many pushes it had then, and how many
 * steps of each trainer. Positions are those of the moment of the order, before any copy, so every
 * slice has what a trainer does not push again; and what a slice has beyond that it drops when the
 * trainer pushes it once more (async.c). Thread: the lane's. */
#include <inttypes.h>
#include <string.h>

#include "pserver/position.h"
#include "pserver/snapshot_dense.h"
#include "wire/little.h"

bool
wf_snapshot_is_vector(const struct wf_job *job)
{
	return wf_job_first_lagging(job) != NULL;
}

enum weft_status
wf_snapshot_check_modes(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_job_tensor *lagging = wf_job_first_lagging(&dense->job);
	const char *other = NULL;
	for (uint32_t i = 0; i < dense->job.tensor_count && lagging != NULL; i++) {
		const struct wf_job_tensor *tensor = &dense->job.tensor[i];
		const struct wf_job_terms terms = wf_job_terms_of(&dense->job, tensor);
		bool is_summed = wf_job_has_state(tensor) && !wf_job_terms_lag(&terms);
		other = is_summed ? tensor->name : other;
	}
	if (other != NULL) {
		return wf_fail(
			WEFT_UNSUPPORTED,
			"lane %u: --snapshot_dir is not possible with this job: tensor %.60s "
			"is applied as its pushes arrive, and tensor %.60s when those of all "
			"trainers are there; give all tensors the same kind of mode",
			lane->opts.idx, lagging->name, other);
	}
	if (lagging != NULL && lane->opts.has_tables) {
		return wf_fail(
			WEFT_UNSUPPORTED,
			"lane %u: --snapshot_dir is not possible with this job: tensor %.60s "
			"is applied as its pushes arrive, beside tables; give "
			"--ports_num_for_sparse=0 if the job has no tables",
			lane->opts.idx, lagging->name);
	}
	return WEFT_OK;
}

/* ---- the moment of the order ---- */

/* The pass in which the trainers are that are furthest. */
static uint32_t
find_pass(const struct wf_lane *lane)
{
	uint32_t pass = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_member *member = &lane->peers.all[t].member;
		pass = member->pass > pass ? member->pass : pass;
	}
	return pass;
}

bool
wf_snapshot_is_even(const struct wf_lane *lane)
{
	const uint32_t pass = find_pass(lane);
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_member *member = &lane->peers.all[t].member;
		bool is_out = member->out && member->out_pass >= pass;
		bool is_in = member->pass == pass && wf_position_sure(lane, t) > member->base;
		if (!is_out && !is_in) {
			return false;
		}
	}
	return pass > 0;
}

void
wf_snapshot_gather_vector(const struct wf_lane *lane, struct wf_manifest_position *out)
{
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		struct wf_position_now now;
		wf_position_now(lane, t, &now);
		out[t] = (struct wf_manifest_position){
			.trainer = t, .bytes = now.count, .step = now.step, .made = now.made};
		if (now.count > 0) {
			memcpy(out[t].position, now.bytes, now.count);
		}
	}
}

uint64_t
wf_snapshot_samples_of(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	uint64_t most = 0;
	for (uint32_t i = 0; i < dense->store.stored_count && dense->async.count > 0; i++) {
		uint64_t samples = dense->async.slice[i].samples;
		most = samples > most ? samples : most;
	}
	return most;
}

/* ---- versions of slices ---- */

uint64_t
wf_snapshot_versions_words(const struct wf_lane *lane)
{
	return WF_SNAPSHOT_VERSION_WORDS + (uint64_t)lane->peers.count;
}

void
wf_snapshot_note_versions(const struct wf_lane *lane, uint32_t ordinal, uint64_t *out)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_async_slice *slice = &dense->async.slice[ordinal];
	const uint32_t trainers = lane->peers.count;
	out[0] = slice->version;
	out[1] = slice->samples;
	memcpy(out + WF_SNAPSHOT_VERSION_WORDS, &dense->async.seen[(uint64_t)ordinal * trainers],
	       trainers * sizeof(*out));
}

/* ---- a job that goes on ---- */

enum weft_status
wf_snapshot_load_starts(struct wf_lane *lane, const struct wf_manifest *manifest,
			struct wf_msg_init *out)
{
	struct wf_dense *dense = lane->own;
	const struct wf_manifest_parts *parts = &manifest->parts;
	uint32_t pass = 0;
	if (parts->trainer_count != lane->peers.count) {
		return wf_fail(
			WEFT_MISMATCH,
			"the snapshot is a vector of versions over the steps of %u trainers, "
			"the job has %u",
			parts->trainer_count, lane->peers.count);
	}
	out->step = 0;
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const struct wf_manifest_position *position = &parts->position[t];
		struct wf_async_start *start = &dense->peer[t].start;
		if (position->step > WF_INIT_STEP_MAX || position->made > WF_INIT_STEP_MAX) {
			return wf_fail(WEFT_DATA,
				       "trainer %u goes on after its step %" PRIu64 ", the %" PRIu64
				       ". of them",
				       t, position->step, position->made);
		}
		uint32_t in = position->bytes >= WF_POSITION_PASS_BYTES
				      ? wf_load_u32(position->position)
				      : 0;
		pass = in > pass ? in : pass;
		/* A trainer that has made no step, and has no more data, may be at any. */
		start->step = position->step > 0 ? position->step : 1;
		start->made = position->made;
		out->step = start->step > out->step ? start->step : out->step;
	}
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		dense->peer[t].start.pass = pass;
	}
	return WEFT_OK;
}

enum weft_status
wf_snapshot_load_versions(struct wf_lane *lane, uint32_t ordinal, const uint8_t *payload)
{
	struct wf_dense *dense = lane->own;
	struct wf_async_slice *slice = &dense->async.slice[ordinal];
	const uint32_t trainers = lane->peers.count;
	uint64_t *seen = &dense->async.seen[(uint64_t)ordinal * trainers];
	slice->version = wf_load_u64(payload);
	slice->samples = wf_load_u64(payload + 8);
	bool is_good = slice->version <= INT64_MAX && slice->samples <= INT64_MAX;
	for (uint32_t t = 0; t < trainers && is_good; t++) {
		seen[t] = wf_load_u64(payload + 8 * (WF_SNAPSHOT_VERSION_WORDS + (uint64_t)t));
		is_good = seen[t] >= dense->peer[t].start.made && seen[t] <= INT64_MAX;
	}
	dense->async.is_loaded = true;
	return is_good ? WEFT_OK
		       : wf_fail(WEFT_DATA,
				 "slice %u of %.60s lacks steps that a trainer does not make again",
				 dense->store.stored[ordinal].slice,
				 dense->store.stored[ordinal].tensor->name);
}

void
wf_snapshot_log_ahead(const struct wf_lane *lane)
{
	const struct wf_dense *dense = lane->own;
	for (uint32_t t = 0, lines = 0; t < lane->peers.count && lines < 8; t++) {
		const struct wf_async_start *start = &dense->peer[t].start;
		uint32_t ahead = 0;
		uint64_t most = 0;
		for (uint32_t i = 0; i < dense->store.stored_count; i++) {
			uint64_t seen = dense->async.seen[(uint64_t)i * lane->peers.count + t];
			ahead += seen > start->made ? 1 : 0;
			most = seen > most ? seen : most;
		}
		if (ahead > 0) {
			lines++;
			wf_log(lane->env, WF_LOG_INFO,
			       "lane %u: trainer %u goes on after %" PRIu64
			       " steps; %u of %u slices have up to %" PRIu64
			       " of them already, and drop those when they come again",
			       lane->opts.idx, t, start->made, ahead, dense->async.count, most);
		}
	}
}
