/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_job: what a manifest has of a dense job beside the parts. Thread: the lane's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pserver/position.h"
#include "pserver/snapshot_dense.h"
#include "saved/saved.h"
#include "wire/little.h"

/* A tensor by the name of its file. */
struct named {
	char name[WF_SAVED_NAME_BYTES];
	uint32_t tensor_idx;
};

static int
compare_named(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

enum weft_status
wf_snapshot_items(struct wf_env *env, const struct wf_job *job, uint32_t *item)
{
	uint32_t count = 0;
	enum weft_status st = WEFT_OK;
	struct named *named = wf_zalloc_array(env, job->tensor_count + 1u, sizeof(*named));
	if (named == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for the names of %u tensors",
			       job->tensor_count);
	}
	for (uint32_t i = 0; i < job->tensor_count && st == WEFT_OK; i++) {
		item[i] = UINT32_MAX;
		if (!job->tensor[i].is_piece) {
			st = wf_saved_name_settle(job->tensor[i].name, named[count].name);
			named[count++].tensor_idx = i;
		}
	}
	if (count > 0) {
		qsort(named, count, sizeof(*named), compare_named);
	}
	for (uint32_t i = 0; i < count && st == WEFT_OK; i++) {
		item[named[i].tensor_idx] = i;
		if (i > 0 && strcmp(named[i - 1].name, named[i].name) == 0) {
			st = wf_fail(WEFT_INVALID, "tensor %.60s: another one has the same file",
				     job->tensor[named[i].tensor_idx].name);
		}
	}
	wf_free(env, named, (job->tensor_count + 1u) * sizeof(*named));
	return st;
}

/* One tensor of the manifest. Shapes are not known here: all elements are one row. */
static enum weft_status
describe_tensor(const struct wf_dense *dense, uint32_t idx, struct wf_manifest_tensor *out)
{
	const struct wf_job_tensor *tensor = &dense->job.tensor[idx];
	out->rows = 1;
	out->cols = tensor->count;
	out->state_count = wf_job_has_state(tensor) ? dense->store.state_count : 0;
	return wf_saved_name_settle(tensor->name, out->name);
}

/* The tensors, in the order of their names. */
static enum weft_status
describe_tensors(const struct wf_lane *lane, const uint32_t *item, struct wf_manifest *about)
{
	const struct wf_dense *dense = lane->own;
	const struct wf_job *job = &dense->job;
	enum weft_status st = WEFT_OK;
	for (uint32_t i = 0; i < job->tensor_count; i++) {
		about->tensor_count += job->tensor[i].is_piece ? 0 : 1;
	}
	if (about->tensor_count == 0) {
		return WEFT_OK;
	}
	about->tensor = wf_zalloc_array(lane->env, about->tensor_count, sizeof(*about->tensor));
	if (about->tensor == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory to describe %u tensors", about->tensor_count);
	}
	for (uint32_t i = 0; i < job->tensor_count && st == WEFT_OK; i++) {
		if (!job->tensor[i].is_piece) {
			st = describe_tensor(dense, i, &about->tensor[item[i]]);
		}
	}
	return st;
}

/* The lanes, a part of each, and the trainers, a position of each. */
static enum weft_status
describe_members(const struct wf_lane *lane, struct wf_manifest_parts *parts)
{
	const uint32_t each = wf_snapshots_lane_count(lane->opts.snapshots);
	const uint32_t lanes = each * lane->admission.first.pserver_count;
	parts->dense_lanes = lane->opts.lane_count;
	parts->sparse_lanes = each - parts->dense_lanes;
	parts->pserver_count = lane->admission.first.pserver_count;
	parts->trainer_count = lane->peers.count;
	parts->is_vector = wf_snapshot_is_vector(&((const struct wf_dense *)lane->own)->job);
	parts->part = wf_zalloc_array(lane->env, lanes, sizeof(*parts->part));
	parts->position =
		wf_zalloc_array(lane->env, parts->trainer_count, sizeof(*parts->position));
	if (parts->part != NULL) {
		parts->part_count = lanes;
	}
	if (parts->position != NULL) {
		parts->position_count = parts->trainer_count;
	}
	if (parts->part == NULL || parts->position == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory to describe %u lanes and %u trainers", lanes,
			       parts->trainer_count);
	}
	for (uint32_t i = 0; i < parts->part_count; i++) {
		wf_manifest_part_at(parts, i, &parts->part[i]);
	}
	return WEFT_OK;
}

/* The settings as a trainer has them, whose texts do not travel, and of which 0 stands for a value.
 */
static void
describe_settings(const struct wf_job *job, struct wf_saved_about *about)
{
	struct wf_session_values values = job->values;
	struct weft_optimizer_opts *optimizer = &values.opts.optimizer;
	optimizer->method = wf_optimizer_name(job->method.kind);
	optimizer->schedule = wf_schedule_name(job->method.schedule);
	optimizer->max_average_window =
		optimizer->max_average_window == UINT64_MAX ? 0 : optimizer->max_average_window;
	wf_saved_describe(&values, about);
	(void)snprintf(about->version, sizeof(about->version), "%d.%d.%d", WEFT_VERSION_MAJOR,
		       WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
}

enum weft_status
wf_snapshot_describe(const struct wf_lane *lane, const uint32_t *item, struct wf_manifest *out)
{
	const struct wf_dense *dense = lane->own;
	*out = (struct wf_manifest){0};
	describe_settings(&dense->job, &out->about);
	enum weft_status st = describe_tensors(lane, item, out);
	return st == WEFT_OK ? describe_members(lane, &out->parts) : st;
}

WF_STATIC_ASSERT(WF_POSITION_BYTES_MAX == WF_MANIFEST_POSITION_BYTES_MAX,
		 "a manifest has room for each position");

void
wf_snapshot_gather_positions(const struct wf_lane *lane, struct wf_manifest_position *out)
{
	for (uint32_t t = 0; t < lane->peers.count; t++) {
		const uint8_t *bytes = NULL;
		uint32_t count = 0;
		out[t] = (struct wf_manifest_position){.trainer = t};
		if (wf_position_at(lane, t, lane->order.sum.step, &bytes, &count)) {
			memcpy(out[t].position, bytes, count);
			out[t].bytes = count;
		}
	}
}

struct wf_snapshot_moment
wf_snapshot_moment_of(const struct wf_lane *lane)
{
	const struct wf_step_sum *sum = &lane->order.sum;
	uint64_t samples = lane->order.own_steps
				   ? wf_snapshot_samples_of(lane)
				   : sum->samples_before + sum->samples + sum->gone_samples;
	return (struct wf_snapshot_moment){.samples = samples,
					   .pass = sum->pass > 0 ? sum->pass - 1 : 0};
}

void
wf_snapshot_numbers_put(const struct wf_numbers *numbers, uint8_t *out)
{
	wf_store_u32(out, numbers->given);
	wf_store_u32(out + 4, 0);
	wf_store_u64(out + 8, numbers->updates_step);
	wf_store_u64(out + 16, numbers->assigned_step);
	for (unsigned i = 0; i < WF_NUMBER_COUNT; i++) {
		uint64_t bits;
		memcpy(&bits, &numbers->value[i], sizeof(bits));
		wf_store_u64(out + 24 + 8 * (size_t)i, bits);
	}
}

enum weft_status
wf_snapshot_numbers_get(const uint8_t *payload, struct wf_numbers *out)
{
	*out = (struct wf_numbers){
		.given = wf_load_u32(payload),
		.updates_step = wf_load_u64(payload + 8),
		.assigned_step = wf_load_u64(payload + 16),
	};
	bool is_good = out->given >> WF_NUMBER_COUNT == 0 && wf_load_u32(payload + 4) == 0;
	for (unsigned i = 0; i < WF_NUMBER_COUNT; i++) {
		uint64_t bits = wf_load_u64(payload + 24 + 8 * (size_t)i);
		memcpy(&out->value[i], &bits, sizeof(bits));
		is_good = is_good && isfinite(out->value[i]);
	}
	return is_good ? WEFT_OK : wf_fail(WEFT_DATA, "numbers of an optimizer that there are not");
}
