/* SPDX-License-Identifier: Apache-2.0 */
/* dense: the payload of the links to dense lanes: slices of tensors, which are pushed, answered and
 * pulled. dense.c  slices and messages; flow.c  pushes, pulls, answers; feature.h what some
 * jobs have beside that. Thread: the core's. */
#pragma once

#include "trainer/session/core.h"
#include "trainer/session/feature.h"
#include "trainer/session/service.h"
#include "wire/priority.h"

enum wf_slice_state {
	WF_SLICE_REST,
	WF_SLICE_QUEUED,      /* a push that is not PUT on this path */
	WF_SLICE_SENT,        /* a push that the lane has, or has been PUT */
	WF_SLICE_PULL_QUEUED, /* a pull that is not requested on this path */
	WF_SLICE_PULL_SENT,
};

/* One slice of a lane, by its ordinal there. */
struct wf_dense_slice {
	uint32_t tensor;
	uint8_t state;     /* enum wf_slice_state */
	uint8_t section;   /* of the push or pull: 0 values, 1 + i array i of state */
	bool is_rounded;   /* the push, for a wire of 16 bits */
	bool is_in_place;  /* the gradient lies where the answer comes */
	bool in_flight;    /* its PUT is not DONE: the gradient is lent to the transport */
	uint32_t slot;     /* it was PUT into; WF_SLOT_NONE */
	uint64_t step;     /* of the push or pull */
	uint64_t answered; /* last push answered, + 1 */
	uint64_t offset;   /* bytes, in both slabs */
	uint64_t bytes;
};

struct wf_dense_link {
	struct wf_link link; /* first: functions of the payload cast back */

	/* Fixed when it is opened. */
	struct wf_dense_slice *slice; /* [slice_count] */
	uint32_t slice_count;
	uint32_t *first_of;      /* [tensors + 1] a tensor's first slice here; its last precedes the
				  * next tensor's first */
	uint32_t pushable_count; /* slices that are not static */
	uint64_t longest_bytes;  /* of a slice */
	int32_t *priority;       /* [slice_count]; NULL: all alike */
	bool is_loaded;          /* the lane begins with a state that it had; known before READY */

	uint32_t pull_queued, pull_sent; /* slices in these states */
	struct wf_ordinal_ring queue;    /* pushes to be PUT */

	void *feature[WF_FEATURE_COUNT]; /* their states; NULL: the job does not have it */

	/* Path: forgotten at DOWN. */
	uint64_t job_sent; /* bytes */
	bool init_due;
	/* Samples and pass of the last STEP: a step with the same is announced by its first PUT. */
	uint64_t said_samples; /* 0: no STEP was sent */
	uint32_t said_pass;
	uint32_t features_due;  /* bits 1 << enum wf_link_feature: they have something to send */
	uint64_t changes_step;  /* the step of which changes were sent, */
	uint32_t changes_sent;  /* and how many */
	uint64_t position_step; /* of which the position was sent */
};

/* Of a link with the table wf_dense_link_ops. */
static inline struct wf_dense_link *
wf_dense_of(struct wf_link *link)
{
	return (struct wf_dense_link *)link;
}

/* How gradients and values travel, if it is not as they lie: halves.c. */
struct wf_link_codec {
	/* The slice's gradient is about to leave, maybe not for the first time: from op->region,
	 * op->src and op->bytes, which it sets. */
	void (*copy_out)(struct wf_core *core, struct wf_dense_slice *slice, struct wf_op *op);
	/* The slice's values have come: into the parameters. Those that the lane answers an initial
	 * push with, once more when it is DONE: until then the array is lent. */
	void (*copy_in)(struct wf_core *core, const struct wf_dense_slice *slice);
};

/* change_send.c */
/* Whether the step that is about to be sent has changes. */
static inline bool
wf_change_is_due(const struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	return core->changes.step == core->step.number;
}

/* Sends them. False: not all. */
bool wf_change_flush(struct wf_dense_link *dense);

/* position_send.c */
/* Whether the step that is about to be sent has a position, which goes to this lane. */
static inline bool
wf_position_is_due(const struct wf_dense_link *dense)
{
	const struct wf_core *core = wf_core_of(&dense->link);
	return dense->link.idx == 0 && core->position.own.step == core->step.number &&
	       dense->position_step != core->step.number;
}

/* Sends it. False: the transport accepts no more. */
bool wf_position_flush(struct wf_dense_link *dense);

/* loaded.c */
/* INIT before RESUME. A failure is the lane's offence. */
enum weft_status wf_loaded_recv_init(struct wf_dense_link *dense,
				     const struct wf_msg_init *msg) WEFT_MUST_CHECK;
/* A part of RESUME on the first path of the lane on which one is complete, before its slices are
 * looked at. Initial values that the lane has already are pulled from it. */
enum weft_status wf_loaded_resume(struct wf_dense_link *dense,
				  const struct wf_msg_steps *msg) WEFT_MUST_CHECK;
/* An initial push to this lane is a pull. */
static inline bool
wf_loaded_has(const struct wf_dense_link *dense, const struct wf_dense_slice *wanted)
{
	return dense->is_loaded && wanted->state == WF_SLICE_QUEUED &&
	       wf_is_initial_push(wanted->step);
}

/* flow.c */
enum weft_status wf_flow_open(struct wf_core *core) WEFT_MUST_CHECK;
void wf_flow_close(struct wf_core *core); /* accepts one that was never opened */
bool wf_flow_flush(struct wf_link *link); /* as wf_link_flush */
bool wf_flow_flush_owed(struct wf_link *link);
enum weft_status wf_flow_answer(struct wf_link *link, const struct wf_put *put) WEFT_MUST_CHECK;
void wf_flow_done(struct wf_link *link, uint32_t ordinal);
enum weft_status wf_flow_resume(struct wf_link *link,
				const struct wf_msg_steps *msg) WEFT_MUST_CHECK;
uint64_t wf_flow_answered(const struct wf_link *link, uint32_t ordinal);
void wf_flow_forget_path(struct wf_link *link); /* DOWN */
