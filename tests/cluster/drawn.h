/* SPDX-License-Identifier: Apache-2.0 */
/* drawn: what trainers of a crew do, drawn from a seed: how many steps each has in each pass, and
 * gradients that no other trainer, step or element has, so that their sums depend on their order;
 * and the bits with which they end. Thread: one. */
#pragma once

#include <stddef.h>

#include "base/rng.h"
#include "tests/support/crew.h"
#include "weft/restart.h"

#define DRAWN_PASSES 2u
#define DRAWN_TENSORS_MAX 6u
#define DRAWN_DIGEST 0xcbf29ce484222325u /* of nothing */

struct drawn {
	uint32_t tensors;
	uint32_t count[DRAWN_TENSORS_MAX]; /* elements */
	uint32_t steps[DRAWN_PASSES][CREW_TRAINERS_MAX];
};

/* Where a trainer is in its data: what it gives as its position. */
struct drawn_place {
	uint32_t pass;
	uint32_t step; /* of the pass */
};

/* From 1 to `most` steps each, but for those who have no data in a pass, from `idle_from` on. */
void drawn_steps(struct wf_rng *rng, uint32_t trainers, uint32_t most, uint32_t idle_from,
		 struct drawn *out);
void drawn_gradients(const struct drawn *drawn, uint64_t seed, uint32_t trainer, uint32_t step,
		     struct weft_tensor *const *tensor);
/* Of the parameters of the first `tensors`. */
uint64_t drawn_digest(const struct drawn *drawn, uint32_t tensors,
		      struct weft_tensor *const *tensor);
/* The digest with more bits. */
uint64_t drawn_add_bits(uint64_t digest, const float *value, size_t count);
/* Where the trainer begins, or goes on. Whether the latter; then `*resumed` is filled in, too. */
bool drawn_find_place(const struct drawn *drawn, uint32_t trainer,
		      const struct weft_session *session, struct weft_resumed *resumed,
		      struct drawn_place *out);
/* Whether all trainers have ended with this digest; if not, the crew complains. */
bool drawn_compare(struct crew *crew, const uint64_t *digest, uint64_t expected);
