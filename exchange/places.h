/* SPDX-License-Identifier: Apache-2.0 */
/* places: the memory of a trainer that answers land in. A trainer grants the same places on every
 * path, by their index: 0 are parameters or rows, 1 + i array i of optimizer state. The lane
 * answers into those that it knows. Thread: the end's. */
#pragma once

#include "base/status.h"
#include "transport/transport.h"
#include "wire/messages.h"

#define WF_ANSWER_PLACES_MAX 8u /* of one trainer on one path */

/* ---- a trainer's end ---- */

/* A place, on whatever path. */
struct wf_answer_place {
	uint32_t region; /* of the end's transport, from its beginning on */
	uint64_t bytes;
};

/* How far they are granted on one path. Zero: not at all, as after DOWN. */
struct wf_answer_grants {
	unsigned granted, sent;
	struct wf_grant_key key; /* of the last one granted, until that is sent */
};

/* Grant what is missing of place[count], and send it. WEFT_OK: the lane knows all; WEFT_AGAIN: the
 * transport takes no more now, or the connection is on its way down; anything else: a place cannot
 * be granted. `msg`: scratch. */
enum weft_status wf_answer_places_send(struct wf_answer_grants *grants, struct wf_conn *conn,
				       const struct wf_answer_place *place, unsigned count,
				       struct wf_msg *msg) WEFT_MUST_CHECK;

/* ---- a lane's end ---- */

/* What a trainer has granted on its path. Zero: nothing, as after DOWN. */
struct wf_answer_places {
	uint32_t known; /* bit i: place i */
	uint64_t bytes[WF_ANSWER_PLACES_MAX];
	struct wf_grant_key key[WF_ANSWER_PLACES_MAX];
};

static inline bool
wf_answer_places_has(const struct wf_answer_places *places, unsigned place)
{
	return (places->known & 1u << place) != 0;
}

/* GRANT of a trainer, of whose places the first `count` are asked for. WEFT_PROTOCOL: it is no
 * place, or none of these, or was granted before on this path. */
enum weft_status wf_answer_places_recv(struct wf_answer_places *places,
				       const struct wf_msg_grant *msg,
				       unsigned count) WEFT_MUST_CHECK;
