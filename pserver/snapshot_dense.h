/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_dense: what the files about snapshots of dense lanes share. Thread: the lane's. */
#pragma once

#include "kernels/numbers.h"
#include "pserver/dense.h"
#include "pserver/registrar.h"

/* The numbers of tensors in the manifest, where names ascend and pieces are not. `item` is
 * [job->tensor_count]. WEFT_INVALID: two names are one as names of files; WEFT_NOMEM. */
enum weft_status wf_snapshot_items(struct wf_env *env, const struct wf_job *job,
				   uint32_t *item) WEFT_MUST_CHECK;
/* Lane 0: describes its job. wf_manifest_fini ends `out`, also after a failure. */
enum weft_status wf_snapshot_describe(const struct wf_lane *lane, const uint32_t *item,
				      struct wf_manifest *out) WEFT_MUST_CHECK;
/* The dense service's `ended`: the registrar records the end (rule 15). */
void wf_snapshot_ended(struct wf_lane *lane);
/* The dense service's `is_over`. */
bool wf_snapshot_is_over(struct wf_lane *lane, uint64_t now_ns);
/* The dense service's `registry`. */
void wf_snapshot_registry(struct wf_lane *lane, const struct wf_event *event,
			  const struct wf_hello *hello);
/* snapshot_load.c: the dense service's `load`. */
enum weft_status wf_snapshot_load_dense(struct wf_lane *lane,
					const struct wf_snapshot *from) WEFT_MUST_CHECK;
/* Lane 0 has come to the border: what is known of the moment, and the trainers' positions, of
 * which there are as many as trainers. */
struct wf_snapshot_moment wf_snapshot_moment_of(const struct wf_lane *lane);
void wf_snapshot_gather_positions(const struct wf_lane *lane, struct wf_manifest_position *out);

/* ---- snapshot_vector.c: jobs whose tensors are applied as their pushes arrive ---- */

/* Whether a snapshot of the job is a vector of versions. The same on all of its lanes. */
bool wf_snapshot_is_vector(const struct wf_job *job);
/* WEFT_UNSUPPORTED: modes of the job with which no snapshots are possible. */
enum weft_status wf_snapshot_check_modes(const struct wf_lane *lane) WEFT_MUST_CHECK;
/* Lane 0: whether all trainers have data of the same pass, or no more in it, so that the position
 * of each is of this pass: a vector is ordered at no other moment. */
bool wf_snapshot_is_even(const struct wf_lane *lane);
/* As wf_snapshot_gather_positions, at the moment of the order. */
void wf_snapshot_gather_vector(const struct wf_lane *lane, struct wf_manifest_position *out);
/* Of the slice of this lane that has most. */
uint64_t wf_snapshot_samples_of(const struct wf_lane *lane);
/* What a slice has: words, and they, in the machine's order. */
uint64_t wf_snapshot_versions_words(const struct wf_lane *lane);
void wf_snapshot_note_versions(const struct wf_lane *lane, uint32_t ordinal, uint64_t *out);
/* Where each trainer begins, and, as out->step, the furthest of them. WEFT_MISMATCH: the job has
 * other trainers; WEFT_DATA */
enum weft_status wf_snapshot_load_starts(struct wf_lane *lane, const struct wf_manifest *manifest,
					 struct wf_msg_init *out) WEFT_MUST_CHECK;
/* The versions of a slice, after the starts. WEFT_DATA: it lacks a step that nobody pushes again.
 */
enum weft_status wf_snapshot_load_versions(struct wf_lane *lane, uint32_t ordinal,
					   const uint8_t *payload) WEFT_MUST_CHECK;
/* Logs what slices have beyond the positions. */
void wf_snapshot_log_ahead(const struct wf_lane *lane);

/* The payload of a block WF_PART_VERSIONS, little-endian u64: pushes applied to the slice, samples
 * of these, and for each trainer how many of its steps the slice has. */
#define WF_SNAPSHOT_VERSION_WORDS 2u

/* The payload of a block WF_PART_NUMBERS, little-endian: u32 given, u32 0, u64 updates_step, u64
 * assigned_step, then f64 x WF_NUMBER_COUNT. */
#define WF_SNAPSHOT_NUMBERS_BYTES (24u + 8u * WF_NUMBER_COUNT)
void wf_snapshot_numbers_put(const struct wf_numbers *numbers, uint8_t *out);
/* WEFT_DATA: it is none. */
enum weft_status wf_snapshot_numbers_get(const uint8_t *payload,
					 struct wf_numbers *out) WEFT_MUST_CHECK;
