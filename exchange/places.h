/* SPDX-License-Identifier: Apache-2.0 */
/* places: the memory of a trainer into which a lane PUTs its answers. A trainer grants the same
 * places on every path, by their index: 0 holds parameters or rows, 1 + i holds array i of the
 * optimizer's state. The lane answers into those that were granted. Thread: the end's. */
#pragma once

#include "base/status.h"
#include "transport/transport.h"
#include "wire/messages.h"

#define WF_ANSWER_PLACES_MAX 8u /* the most places of one trainer on one path */

/* ---- a trainer's end ---- */

/* A place, the same on every path. */
struct wf_answer_place {
	uint32_t region; /* of the end's transport; the place begins where the region begins */
	uint64_t bytes;
};

/* How many of them are granted on one path. Zero: none, as after DOWN. */
struct wf_answer_grants {
	unsigned granted, sent;
	struct wf_grant_key key; /* key of the last one granted, until it has been sent */
};

/* Grants those of place[count] that are missing, and sends GRANT for each. WEFT_OK: all have been
 * sent; WEFT_AGAIN: the transport accepts no more now, or the connection is going down; other
 * statuses: a place cannot be granted. `msg` is scratch. */
enum weft_status wf_answer_places_send(struct wf_answer_grants *grants, struct wf_conn *conn,
				       const struct wf_answer_place *place, unsigned count,
				       struct wf_msg *msg) WEFT_MUST_CHECK;

/* ---- a lane's end ---- */

/* The places that a trainer has granted on its path. Zero: none, as after DOWN. */
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

/* Records a trainer's GRANT; the lane needs the first `count` places. WEFT_PROTOCOL: it is not a
 * place, not one of these, or was granted before on this path. */
enum weft_status wf_answer_places_recv(struct wf_answer_places *places,
				       const struct wf_msg_grant *msg,
				       unsigned count) WEFT_MUST_CHECK;
