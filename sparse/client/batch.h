/* SPDX-License-Identifier: Apache-2.0 */
/* batch: a trainer's batch of keys, prepared for the lanes: each key once, assigned to lanes, cut
 * into parts that fit a slot, and the gradients of repeated keys summed. It does no network I/O:
 * the session stands between this and the lanes. sparse/exchange.md describes how the parts travel.
 *
 * A batch is filled again and again, and allocates nothing after it was created. Its output is a
 * function of the keys and of the settings: of the keys alone, and not of their order, except for
 * place, for the order of sums, and if the caller's order is requested. Thread: its owner's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/limits.h"
#include "kernels/kernels.h"
#include "wire/keys.h"
#include "wire/tables.h"

#define WF_BATCH_ALIGN 64u /* of parts in the buffer that they are sent from */

struct wf_batch_opts {
	uint32_t dim;                  /* values of a row; 1 .. WF_ROW_DIM_MAX */
	enum weft_value_format format; /* in which gradients are sent; the caller's are f32 */
	uint64_t vocabulary;           /* keys 0 .. vocabulary - 1; 0: any u64 */
	uint32_t lane_count;           /* sparse lanes of all pservers; 1 .. WF_LANE_COUNT_MAX */
	uint32_t keys_max;       /* of one batch, repetitions included; 1 .. WF_BATCH_KEYS_MAX */
	uint64_t part_bytes_max; /* the smallest slot_bytes that any lane grants */
	bool has_scores;         /* show and click go with each row */
	bool may_delta;          /* keys that lie close together are sent as differences */
	const struct wf_kernels *kernels; /* NULL: the best there is */
};

/* Rows of one lane that fit a slot, as they lie in the send buffer: gradients [row_count * dim] in
 * their format, then show and click, [row_count] each, if the table has scores, then the keys. A
 * PUSH sends all of it, a PULL the keys. */
struct wf_batch_part {
	uint32_t first; /* row */
	uint32_t row_count;
	size_t at;     /* offset of the part in the send buffer; a multiple of WF_BATCH_ALIGN */
	size_t key_at; /* offset of its keys */
	uint32_t key_bytes;
	enum wf_key_coding coding;
};

/* Valid until the batch is filled again. Row r belongs to key[r]; rows are ordered by lane, and
 * within a lane by ascending key, or as the caller gave them. Answers land at r * dim in the
 * caller's array of rows. */
struct wf_batch_view {
	const uint64_t *key; /* [row_count], each once */
	uint32_t row_count;
	const uint32_t *place; /* [key_count]: the row of each of the caller's keys */
	uint32_t key_count;
	bool is_straight;           /* row i belongs to the caller's key i, for every i */
	const uint32_t *lane_first; /* [lane_count + 1]: rows of lane l are lane_first[l] up to
				     * lane_first[l + 1], not included */
	const uint32_t *lane_part;  /* [lane_count + 1]: its parts, likewise; none without rows */
	const struct wf_batch_part *part; /* [lane_part[lane_count]] */
};

struct wf_batch;

/* WEFT_INVALID names field, value and limit; or WEFT_NOMEM. */
enum weft_status wf_batch_create(struct wf_env *env, const struct wf_batch_opts *opts,
				 struct wf_batch **out) WEFT_MUST_CHECK;
void wf_batch_destroy(struct wf_batch *batch); /* accepts NULL */

/* The greatest lengths of the two buffers of a batch: rows [row_count * dim], and what is sent.
 * Both are the caller's, so that they can be in registered memory. */
size_t wf_batch_rows_bytes(const struct wf_batch *batch);
size_t wf_batch_send_bytes(const struct wf_batch *batch);

/**
 * Fill the batch. `key` is borrowed for the call.
 * @param key    [count], in any order, repeated at will
 * @param count  0 .. keys_max; 0 gives a batch without rows and parts
 * @return WEFT_OK; WEFT_INVALID: too many keys, or one outside the vocabulary, which is named: the
 *         batch is as it was
 */
enum weft_status wf_batch_fill(struct wf_batch *batch, const uint64_t *key,
			       uint32_t count) WEFT_MUST_CHECK;
/* The same, but rows of a lane lie in the order in which their keys first occur. If these do not
 * ascend, they are pulled as WF_KEYS_ANY, and sorted when gradients are written: keys ascend within
 * each part, but not from one part of a lane to the next. */
enum weft_status wf_batch_fill_in_order(struct wf_batch *batch, const uint64_t *key,
					uint32_t count) WEFT_MUST_CHECK;
void wf_batch_view(const struct wf_batch *batch, struct wf_batch_view *out);

/* Writes the keys of every part to its place in the send buffer, aligned to WF_BATCH_ALIGN. */
void wf_batch_put_keys(const struct wf_batch *batch, uint8_t *send);

/* Gradients and scores, in the caller's order of keys. */
struct wf_batch_grads {
	const float *grad;  /* [key_count * dim] */
	const float *show;  /* [key_count], or NULL: 1 each */
	const float *click; /* [key_count], or NULL: 0 each; both are read only with has_scores */
};

/* Sums the gradients of each row, in the order of the caller's keys, into the send buffer: the
 * first is copied, bit for bit, and the others are added to it one after the other, as f32; with 16
 * bits on the wire each sum is rounded once, to nearest, ties to even. Keys stay unchanged, except
 * those in the caller's order: they are written again, ascending within each part, so the batch
 * cannot be pulled after it. */
void wf_batch_put_grads(struct wf_batch *batch, const struct wf_batch_grads *grads, uint8_t *send);
