/* SPDX-License-Identifier: Apache-2.0 */
/* shard: which training rows a trainer sees, and in which order. Trainer i of N has rows i, i + N,
 * i + 2N, ... of the training rows; each pass visits them in a new order, drawn from seed, pass and
 * trainer alone, so that a sequential run sees the same batches. Thread: the owner's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

struct wf_shard {
	uint32_t trainer, trainers;
	uint32_t *order;   /* [count] place within the shard: row trainer + order[i] * trainers */
	size_t count;      /* rows of this shard; may be 0 */
	size_t batch_rows; /* of every batch but the last */
};

struct wf_shard_opts {
	size_t train_rows;          /* below UINT32_MAX */
	uint32_t trainer, trainers; /* trainer < trainers */
	uint64_t batch_size;        /* 0: all rows of the shard */
};

/* WEFT_NOMEM */
enum weft_status wf_shard_init(struct wf_env *env, const struct wf_shard_opts *opts,
			       struct wf_shard *out) WEFT_MUST_CHECK;
void wf_shard_fini(struct wf_env *env, struct wf_shard *shard); /* accepts a zeroed one */
/* Draws the order of a pass. */
void wf_shard_shuffle(struct wf_shard *shard, uint64_t seed, uint64_t pass);
/* Batches in a pass; 0 if there are no rows. */
size_t wf_shard_batch_count(const struct wf_shard *shard);
/* The numbers of a batch's rows, row [batch_rows]; returns how many it has. */
size_t wf_shard_rows(const struct wf_shard *shard, size_t batch, uint32_t *row);
