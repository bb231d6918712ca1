/* SPDX-License-Identifier: Apache-2.0 */
/* position: where the data of each trainer is, for those who keep and load a lane's state. Lane 0
 * of pserver 0 has it, in jobs whose trainers send it. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weft/status.h"

struct wf_lane;

/* Where a trainer is that makes steps of its own, for a snapshot that is a vector of versions. */
struct wf_position_now {
	uint64_t step; /* after which the position holds, and which all slices of all lanes have */
	uint64_t made; /* steps of this trainer up to it, over all passes */
	const uint8_t *bytes; /* as for wf_position_at; NULL: none */
	uint32_t count;
};

/* The position that holds for the trainer when step `step` is applied: of the positions that are
 * kept, which are those of the two newest steps for which it has sent one, the newest whose step is
 * not above `step`. A trainer may have sent that of step b + 1 before the state after step b is
 * kept, and no later one, so that of step b is here then; a trainer that was out of data before b,
 * or has sent none for b, is where its last one says. In the asynchronous modes steps are the
 * trainer's own. `*bytes` is what POSITION has, at most WF_POSITION_BYTES_MAX, and lent until the
 * lane's next turn. False: none is known, and nothing is written. */
bool wf_position_at(const struct wf_lane *lane, uint32_t trainer, uint64_t step,
		    const uint8_t **bytes, uint32_t *count);
/* The last step of the trainer that every lane has applied for certain: it has begun the next one,
 * for which it had to have all answers, or is out of data. Of jobs whose trainers make steps of
 * their own. */
uint64_t wf_position_sure(const struct wf_lane *lane, uint32_t trainer);
/* The position of that step, or the newest before it. */
void wf_position_now(const struct wf_lane *lane, uint32_t trainer, struct wf_position_now *out);
/* Puts the position of a state that is being loaded back (struct wf_lane_source); `step` is the one
 * at which the lane begins. WEFT_INVALID: this lane keeps none, or there is no such trainer;
 * WEFT_DATA: no trainer can have sent that; WEFT_NOMEM. */
enum weft_status wf_position_set(struct wf_lane *lane, uint32_t trainer, uint64_t step,
				 const uint8_t *bytes, uint32_t count) WEFT_MUST_CHECK;
