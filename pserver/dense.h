/* SPDX-License-Identifier: Apache-2.0 */
/* dense: the dense service of a lane: slices of tensors. Shared by these files only.
 *
 * dense.c   the service: the job description, its memory, messages
 * round.c   steps and gradients, and the apply of what is summed
 * async.c   the same for the asynchronous modes
 * leave.c   a trainer that is dropped, leaves or joins while the job goes on
 * pieces.c  pieces of arrays that are reduced outside of steps
 * apply.c   what kernels need of a slice, and values that are not finite
 * answer.c  everything it sends
 * store.c   parameters, state, room for parked gradients
 *
 * Steps are kept as "next": the step something waits for. Initial values are waited for as steps
 * 0 - (sections - 1) .. 0, modulo 2^64: wf_is_initial. Thread: the lane's. */
#pragma once

#include "kernels/norm.h"
#include "pserver/feature.h"
#include "pserver/fresh.h"
#include "pserver/service.h"
#include "pserver/store.h"
#include "wire/priority.h"

#define WF_COPY_COOKIE (1ull << 63) /* of a PUT out of a copy; the others leave from the store */
#define WF_PLACE_VALUES 0u /* place of a trainer's parameters, as they travel; those of state, */
#define WF_PLACE_STATE 1u  /* then, with a wire of 16 bits, parameters as f32 */
WF_STATIC_ASSERT(WF_PLACE_STATE + WF_STATE_MAX + 1 <= WF_ANSWER_PLACES_MAX, "all have one");
#define WF_PULLS_MAX 16 /* the most ranges that one trainer may have requested without an answer */

/* A range of slices that a trainer requested. */
struct wf_pull_range {
	uint64_t request_id;
	uint64_t step;
	uint32_t next, end; /* ordinals not answered yet */
	bool state;         /* section */
	uint8_t state_idx;
};

/* Its requests, in order, and the last one that is refused. */
struct wf_pulls {
	struct wf_pull_range range[WF_PULLS_MAX];
	uint32_t count;
	bool nack_due;
	struct wf_msg_nack nack;
};

/* Where a trainer begins whose steps are its own, in a job that goes on from a vector of versions.
 */
struct wf_async_start {
	uint64_t step; /* after which; 0: where all begin */
	uint64_t made; /* its steps before, over all passes */
	uint32_t pass; /* in which it is, from 1; 0: nobody has said */
	/* It joins while the job goes on: of all trainers, in the steps up to `step`. */
	bool joins;
	uint64_t samples;
	uint64_t left; /* its predecessor's last step, as far as lanes agree on that */
};

/* One trainer as the service sees it: peer->own. */
struct wf_dense_peer {
	struct wf_async_start start;

	/* Path: forgotten at DOWN. */
	bool init_due; /* the start of the job must be sent to it, once all initial values are here
		        * */
	/* Its last word on this path about steps was a STEP with samples: the first PUT of the next
	 * step announces that step as the last one was announced. */
	bool implies_steps;
	bool copies_past; /* the apply of a push fills its answer past the caches */
	struct wf_pulls pulls;
	uint32_t features_due; /* bits of those that have something to send */

	struct wf_ordinal_ring answers; /* to pushes */

	/* Where slices are applied as they come. */
	uint64_t since_ns;                             /* STEP of its last step; 0 without stats */
	uint64_t applied, discarded, lag_sum, lag_max; /* its pushes of slices */
};

/* What trainer t has pushed of slice s: push[s * trainer_count + t]. */
struct wf_push {
	uint64_t next;    /* step waited for */
	const void *data; /* gradient not consumed yet, as on the wire; NULL: none */
	uint32_t slot;    /* of the window; WF_SLOT_NONE: parked */
	uint32_t chunk;   /* of the park, if parked */
	bool mine;        /* the step before `next` was pushed, so its answer is owed */
	bool answer_due;  /* is in the trainer's ring of answers */
};
WF_STATIC_ASSERT(sizeof(struct wf_push) == 32, "there are many, and each is looked for often");

struct wf_round {
	uint64_t next;    /* step waited for; 0: initial values */
	uint32_t arrived; /* trainers whose push of `next` is here */
	uint32_t lent;    /* PUTs out of the store that are not DONE */
};

struct wf_async_slice {
	uint64_t version; /* pushes applied; if the job continues from step k: k more */
	uint64_t samples; /* of these */
	/* Fixed: what follows from the tensor's mode. */
	bool is_async; /* applied when it comes */
	struct wf_order_terms terms;
};

/* Of a lane; all but the count where some slices are applied when they come. */
struct wf_async {
	uint32_t count;               /* of such slices; the others that can be pushed are summed */
	struct wf_order_view *view;   /* [stored_count * peers.count], as `push` */
	struct wf_async_slice *slice; /* [stored_count] */
	/* [stored_count * peers.count], with snapshots: how many steps of the trainer the slice
	 * has, over all lives of the job, applied or dropped because they lagged. */
	uint64_t *seen;
	bool is_loaded;           /* versions, samples and `seen` are those of a snapshot */
	uint64_t staleness_max;   /* of the slices that are applied when they come */
	struct wf_staging copies; /* a window for each trainer: answers on their way */
	struct wf_fresh fresh;    /* of these, the ones that were filled with the push */
};

/* The ring of pieces through which trainers reduce arrays: pieces.c's. */
struct wf_pieces {
	uint32_t count;           /* on this lane; 0: no memory */
	struct wf_piece_sum *sum; /* [stored_count], used for those that are pieces */
};

/* lane->own. */
struct wf_dense {
	uint8_t *job_bytes; /* encoded, while it arrives */
	struct wf_job job;
	struct wf_placement placement;
	struct wf_store store;
	bool store_added; /* to the transport, as */
	uint32_t store_region;

	struct wf_dense_peer *peer; /* [peers.count]: lane->peers.own, from alloc on */
	struct wf_push *push;       /* [stored_count * peers.count] */
	struct wf_round *round;     /* [stored_count] */
	struct wf_msg_init init;    /* where the job begins */
	bool is_loaded;             /* with a state that the lane had: no values come */
	uint32_t uninitialised;     /* slices without initial values */
	uint32_t applied;           /* slices, in this step */
	int32_t *priority;          /* [stored_count]; NULL: all alike */
	const float **gradient;     /* [peers.count] scratch of the apply */
	struct wf_log_limit nonfinite_log;

	struct wf_async async;
	struct wf_pieces pieces;
	struct wf_features features;
	struct wf_registry *registry; /* lane 0 of a job whose pservers talk; NULL: none */
};

/* dense.c */
extern const struct wf_lane_service wf_dense_service;

/* Is a section of the initial values waited for, rather than a step? */
static inline bool
wf_is_initial(uint64_t next)
{
	return next == 0 || next > INT64_MAX;
}

/* Whether pushes of the slice are applied as they arrive. */
static inline bool
wf_slice_is_async(const struct wf_dense *dense, uint32_t ordinal)
{
	return dense->async.count > 0 && dense->async.slice[ordinal].is_async;
}

/* Has a feature of the job a hook at the point? */
static inline bool
wf_dense_has_hook(const struct wf_dense *dense, enum wf_feature_point point)
{
	return (dense->features.points & point) != 0;
}

static inline struct wf_push *
wf_push_of(const struct wf_lane *lane, uint32_t ordinal, uint32_t trainer)
{
	struct wf_dense *dense = lane->own;
	return &dense->push[(uint64_t)ordinal * lane->peers.count + trainer];
}

/* Give the memory of a push that has been read back: its slot, or its chunk of the park. */
static inline void
wf_push_consume(struct wf_lane *lane, struct wf_peer *peer, struct wf_push *push)
{
	struct wf_dense *dense = lane->own;
	if (push->slot != WF_SLOT_NONE) {
		wf_slots_free(&peer->slots, peer->conn, push->slot);
		push->slot = WF_SLOT_NONE;
	}
	if (push->chunk != WF_PARK_NONE) {
		wf_store_unpark(&dense->store, push->chunk);
		push->chunk = WF_PARK_NONE;
	}
	push->data = NULL;
}

/* round.c */
/* All slices of the step are applied. */
void wf_round_step_ends(struct wf_lane *lane, uint64_t applied_ns);
/* Apply what can be applied of the step. */
void wf_round_try_all(struct wf_lane *lane);
enum weft_status wf_round_init(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_init *msg) WEFT_MUST_CHECK;
/* The store has a state after step `init->step`, with which all trainers begin. WEFT_DATA: there is
 * no such step. */
enum weft_status wf_round_begin_loaded(struct wf_lane *lane,
				       const struct wf_msg_init *init) WEFT_MUST_CHECK;
enum weft_status wf_round_step(struct wf_lane *lane, struct wf_peer *peer,
			       const struct wf_msg_step *msg) WEFT_MUST_CHECK;
enum weft_status wf_round_put(struct wf_lane *lane, struct wf_peer *peer,
			      const struct wf_put *put) WEFT_MUST_CHECK;
uint64_t wf_round_next(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal);
enum weft_status wf_round_has(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal,
			      uint64_t next, uint64_t begun) WEFT_MUST_CHECK;
/* The service's stands, drop, enter and go_on. */
void wf_round_stands(const struct wf_lane *lane, const struct wf_peer *peer, uint64_t *applied,
		     uint64_t *received);
void wf_round_drop(struct wf_lane *lane, struct wf_peer *peer);
void wf_round_enter(struct wf_lane *lane, struct wf_peer *peer);
/* A PUT out of the store is DONE. */
void wf_round_done(struct wf_lane *lane, uint64_t cookie);
/* Copy the gradient of a slice aside, so that its slot is free again. Returns bytes. */
uint64_t wf_round_park(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal);

/* async.c */
/* How many slices are applied when they come: of what the store holds of the job. */
void wf_async_count(struct wf_lane *lane);
/* Memory of the job beyond that of a synchronous one: one more window each, and these tables. */
uint64_t wf_async_table_bytes(const struct wf_lane *lane, uint32_t slices);
enum weft_status wf_async_alloc(struct wf_lane *lane) WEFT_MUST_CHECK;
void wf_async_release(struct wf_lane *lane); /* accepts a state that is half allocated, or not at
					      * all */
void wf_async_init(struct wf_lane *lane, const struct wf_msg_init *init);
/* The same where the lane has loaded a vector of versions: each trainer goes on at its own step. */
void wf_async_go_on(struct wf_lane *lane);
void wf_async_path_begins(struct wf_lane *lane, struct wf_peer *peer);
void wf_async_push(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, const void *data);
/* Lets `op` leave from a buffer of the peer's, which has or gets what is at op->src: the slice's
 * values, in answer to a push. False: none is free. */
bool wf_async_answer(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal,
		     struct wf_op *op);
/* The same for anything else. */
bool wf_async_copy(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal, struct wf_op *op);
/* For the tag of the answer to a push: WF_TAG_DISCARDED or 0. */
uint32_t wf_async_verdict(const struct wf_lane *lane, const struct wf_peer *peer, uint32_t ordinal);
/* The transport has accepted the operation that was copied, or has not. Releases the copy unless a
 * DONE will. */
void wf_async_posted(struct wf_lane *lane, struct wf_peer *peer, const struct wf_op *op,
		     bool taken);
/* No answer to the peer is due any more. */
void wf_async_forget(struct wf_lane *lane, const struct wf_peer *peer);
/* Its DONE. */
void wf_async_done(struct wf_lane *lane, uint64_t cookie);
void wf_async_lines(const struct wf_lane *lane);
/* Of one trainer. */
void wf_async_report(const struct wf_lane *lane, uint32_t trainer,
		     uint64_t value[WF_REPORT_VALUES]);

/* pieces.c */
/* Memory of the job beyond its slices'. */
uint64_t wf_pieces_table_bytes(const struct wf_lane *lane);
enum weft_status wf_pieces_alloc(struct wf_lane *lane) WEFT_MUST_CHECK;
void wf_pieces_release(struct wf_lane *lane); /* accepts one that was never allocated */
/* A PUT into the slice, which is a piece. */
enum weft_status wf_pieces_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal,
			       const struct wf_put *put) WEFT_MUST_CHECK;
/* A PUT out of the store is DONE. */
void wf_pieces_done(struct wf_lane *lane, uint32_t ordinal);
/* The bytes of each push of the sum under way, and of the answer with the last result. */
uint64_t wf_pieces_push_bytes(const struct wf_dense *dense, uint32_t ordinal);
uint64_t wf_pieces_answer_bytes(const struct wf_dense *dense, uint32_t ordinal);
static inline bool
wf_slice_is_piece(const struct wf_dense *dense, uint32_t ordinal)
{
	return dense->pieces.count > 0 && dense->store.stored[ordinal].tensor->is_piece;
}

/* change.c */
/* Of a state that is being loaded: what trainers had changed of the tensor's optimizer, as it was
 * in store.numbers. WEFT_INVALID, WEFT_DATA, WEFT_NOMEM. */
enum weft_status wf_change_load(struct wf_lane *lane, uint32_t tensor,
				const struct wf_numbers *numbers) WEFT_MUST_CHECK;
/* Undoes the changes that come with step `step`, unless a trainer that is not dropped makes them,
 * too. It is the newest step with changes, or nothing is undone. */
void wf_change_drop(struct wf_lane *lane, uint64_t step);

/* answer.c */
enum wf_flush wf_answer_flush(struct wf_lane *lane, struct wf_peer *peer);
bool wf_answer_flush_owed(struct wf_lane *lane, struct wf_peer *peer);
void wf_answer_path_begins(struct wf_lane *lane, struct wf_peer *peer);
/* What precedes RESUME: of a job that began with a state that the lane had. */
bool wf_answer_open_path(struct wf_lane *lane, struct wf_peer *peer);
/* Whether an answer about the slice could be due; if not, HAVE will report that the peer lacks it.
 */
static inline bool
wf_answer_can_be_due(const struct wf_peer *peer, uint32_t ordinal)
{
	return peer->conn != NULL && wf_path_has_unit(peer, ordinal);
}

/* The peer is owed an answer to `push`, which is its push of the slice. */
static inline void
wf_answer_to(struct wf_peer *peer, uint32_t ordinal, struct wf_push *push)
{
	struct wf_dense_peer *own = peer->own;
	if (!wf_answer_can_be_due(peer, ordinal)) {
		return;
	}
	if (push->answer_due) {
		return; /* what goes out will be the newest */
	}
	push->answer_due = true;
	wf_ordinal_ring_push(&own->answers, ordinal);
	wf_peer_owes(peer);
}
static inline void
wf_answer_push(struct wf_peer *peer, uint32_t ordinal)
{
	wf_answer_to(peer, ordinal, wf_push_of(peer->lane, ordinal, peer->trainer));
}
void wf_answer_forget(struct wf_peer *peer);
enum weft_status wf_answer_pull(struct wf_lane *lane, struct wf_peer *peer,
				const struct wf_msg_pull *msg) WEFT_MUST_CHECK;
