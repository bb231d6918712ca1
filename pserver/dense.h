/* SPDX-License-Identifier: Apache-2.0 */
/* dense: the dense service of a lane: slices of tensors. Shared by these files only.
 *
 * dense.c   the service: the job description, its memory, messages
 * round.c   steps, gradients, the apply
 * answer.c  everything it sends
 * store.c   parameters, state, room for parked gradients
 *
 * Steps are kept as "next": the step something waits for. Initial values are waited for as steps
 * 0 - (sections - 1) .. 0, modulo 2^64: wf_is_initial. Thread: the lane's. */
#pragma once

#include "pserver/service.h"
#include "pserver/store.h"

#define WF_BUFFER_FREE UINT32_MAX
#define WF_PULLS_MAX 16 /* ranges one trainer may have asked for and not got */

/* A range of slices that a trainer asked for. */
struct wf_pull_range {
	uint64_t request_id;
	uint64_t step;
	uint32_t next, end; /* ordinals not answered yet */
	bool state;         /* section */
	uint8_t state_idx;
};

/* One trainer as the service sees it: peer->own. */
struct wf_dense_peer {
	uint32_t pushed; /* slices, for step step_next - 1 */

	/* Path: forgotten at DOWN. */
	uint32_t resume_next; /* ordinal of the next RESUME; UINT32_MAX: all sent, or not due */
	uint32_t had;         /* slices that HAVE told of: only these are answered unasked */
	bool slots_granted;
	struct wf_grant_key slots_key;
	bool slots_due;
	bool have_values, have_state[WF_STATE_MAX];
	struct wf_grant_key values_key, state_key[WF_STATE_MAX];
	bool init_due; /* to be told where the job begins, once all initial values are here */
	uint32_t credit_count;
	uint16_t *credit; /* [slot_count] buffers to give back */
	struct wf_pull_range pull[WF_PULLS_MAX];
	uint32_t pull_count;
	bool nack_due;
	struct wf_msg_nack nack;

	/* Answers to pushes: ring of ordinals, at most one entry per slice. */
	uint32_t *answer; /* [stored_count] */
	uint32_t answer_first, answer_count;

	/* Window. */
	uint32_t *buffer; /* [slot_count] ordinal whose gradient is in it, or WF_BUFFER_FREE */
	uint32_t held;    /* buffers that are not free */
};

/* What trainer t has pushed of slice s: push[s * trainer_count + t]. */
struct wf_push {
	uint64_t next;     /* step waited for */
	bool mine;         /* the step before `next` was pushed, so its answer is owed */
	const float *data; /* gradient not consumed yet; NULL: none */
	uint32_t buffer;   /* of the window; WF_BUFFER_FREE: parked */
	uint32_t chunk;    /* of the park, if parked */
	bool answer_due;   /* is in the trainer's ring of answers */
};

struct wf_round {
	uint64_t next;    /* step waited for; 0: initial values */
	uint32_t arrived; /* trainers whose push of `next` is here */
	uint32_t lent;    /* PUTs out of the store that are not DONE */
};

/* lane->own. */
struct wf_dense {
	uint8_t *job_bytes; /* encoded, while it arrives */
	struct wf_job job;
	struct wf_placement placement;
	struct wf_store store;
	bool store_added, inbox_added; /* regions of the transport */
	uint32_t store_region;
	struct wf_slab inbox; /* [trainer_count][slot_count] slots */
	uint32_t inbox_region;
	uint64_t slot_bytes;

	struct wf_dense_peer *peer; /* [peer_count] */
	struct wf_push *push;       /* [stored_count * peer_count] */
	struct wf_round *round;     /* [stored_count] */
	struct wf_msg_init init;    /* where the job begins */
	uint32_t uninitialised;     /* slices without initial values */
	uint32_t applied;           /* slices, in this step */
	const float **gradient;     /* [peer_count] scratch of the apply */
	struct wf_log_limit nonfinite_log;
	struct wf_msg_steps steps; /* scratch of one encode */
	struct wf_msg_credit credit;
};

/* dense.c */
extern const struct wf_lane_service wf_dense_service;

/* Is a section of the initial values waited for, rather than a step? */
static inline bool
wf_is_initial(uint64_t next)
{
	return next == 0 || next > INT64_MAX;
}

/* round.c */
enum weft_status wf_round_init(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_init *msg) WEFT_MUST_CHECK;
static inline struct wf_push *
wf_push_of(const struct wf_lane *lane, uint32_t ordinal, uint32_t trainer)
{
	struct wf_dense *dense = lane->own;
	return &dense->push[(uint64_t)ordinal * lane->peer_count + trainer];
}
enum weft_status wf_round_step(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_step *msg) WEFT_MUST_CHECK;
enum weft_status wf_round_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t tag,
			      const void *data) WEFT_MUST_CHECK;
enum weft_status wf_round_have(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_steps *msg) WEFT_MUST_CHECK;
/* A PUT out of the store is DONE. */
void wf_round_done(struct wf_lane *lane, uint64_t cookie);
/* The peer's path is gone: copy what is in its window aside, so that all of it can be granted
 * again. */
void wf_round_park_window(struct wf_lane *lane, struct wf_peer *peer);
bool wf_round_is_missing(const struct wf_lane *lane, const struct wf_peer *peer);

/* answer.c */
enum wf_flush wf_answer_flush(struct wf_lane *lane, struct wf_peer *peer);
void wf_answer_path_begins(struct wf_lane *lane, struct wf_peer *peer);
void wf_answer_push(struct wf_peer *peer, uint32_t ordinal);
void wf_answer_forget(struct wf_peer *peer);
enum weft_status wf_answer_pull(struct wf_lane *lane, struct wf_peer *peer,
				const struct wf_msg_pull *msg) WEFT_MUST_CHECK;
