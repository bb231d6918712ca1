/* SPDX-License-Identifier: Apache-2.0 */
/* feature: what a job may have beside plain steps, on a link to a dense lane: the norm of the whole
 * gradient, an inbox that pushes are announced to, what lanes know of trainers. As at the lane
 * (pserver/feature.h) each is one file with hooks and a state that only this file looks into; the
 * code of a step tests one word for whether any of them has something to send. Thread: the core's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weft/weft.h"

struct wf_dense_link;
struct wf_event;

/* Those that there are, in the order in which they send. */
enum wf_link_feature {
	WF_FEATURE_NORM,
	WF_FEATURE_ANNOUNCE,
	WF_FEATURE_OTHERS,
	WF_FEATURE_POSITION,
	WF_FEATURE_TRACE,
};
#define WF_FEATURE_COUNT (WF_FEATURE_TRACE + 1u)

/* `dense->feature` has the states. */
struct wf_link_hooks {
	uint8_t message; /* type of the message that it decodes */
	/* Allocates the state, if the job has the feature. close accepts one that was not
	 * opened. NULL, like flush: there is nothing to do. */
	enum weft_status (*open)(struct wf_dense_link *dense);
	void (*close)(struct wf_dense_link *dense);
	/* A message of its type: a failure is the lane's offence. */
	enum weft_status (*recv)(struct wf_dense_link *dense, const struct wf_event *event);
	/* Called after wf_link_feature_due and STEP: sends what is due, which may be nothing.
	 * False: not all. */
	bool (*flush)(struct wf_dense_link *dense);
	/* READY, and DOWN; NULL: nothing to do there. */
	void (*path_begins)(struct wf_dense_link *dense);
	void (*path_ends)(struct wf_dense_link *dense);
};

extern const struct wf_link_hooks wf_link_norm_hooks;     /* norm.c */
extern const struct wf_link_hooks wf_link_announce_hooks; /* announce.c */
extern const struct wf_link_hooks wf_link_others_hooks;   /* others.c */
extern const struct wf_link_hooks wf_link_position_hooks; /* position_send.c */
extern const struct wf_link_hooks wf_link_trace_hooks;    /* trace.c */

enum weft_status wf_link_features_open(struct wf_dense_link *dense) WEFT_MUST_CHECK;
void wf_link_features_close(struct wf_dense_link *dense); /* accepts one that is half opened */
/* A message of a type that is no one else's. */
enum weft_status wf_link_features_recv(struct wf_dense_link *dense,
				       const struct wf_event *event) WEFT_MUST_CHECK;
void wf_link_feature_due(struct wf_dense_link *dense, enum wf_link_feature feature);
/* False: not all that is due was sent. */
bool wf_link_features_flush(struct wf_dense_link *dense);
void wf_link_features_path_begins(struct wf_dense_link *dense);
void wf_link_features_path_ends(struct wf_dense_link *dense);

/* others.c: whether a request to the lane is unanswered. */
bool wf_others_asks(const struct wf_dense_link *dense);

/* announce.c: the push is announced to the lane first, and allowed later. */
void wf_announce_push(struct wf_dense_link *dense, uint32_t ordinal);
/* The lane has requested announcements: makes room for them. */
enum weft_status wf_announce_grant(struct wf_dense_link *dense) WEFT_MUST_CHECK;
