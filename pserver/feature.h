/* SPDX-License-Identifier: Apache-2.0 */
/* feature: what a job may have beside plain steps, at the lane: an inbox that holds less than a
 * step, clipping by the norm, and so on. A feature is one file with a table of hooks and a state
 * that only this file looks into; the state exists where the job has the feature.
 *
 * The code of a step knows points, not features: at each it tests once whether a feature of this
 * job has a hook there, and calls it. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trace.h"
#include "pserver/service.h"

#define WF_FEATURES_MAX 12u

struct wf_apply;
struct wf_dense;
struct wf_feature;

/* The points of a step at which features have hooks. */
enum wf_feature_point {
	WF_AT_STEP_SAID = 1 << 0,
	WF_AT_PUT = 1 << 1,
	WF_AT_APPLY = 1 << 2,
	WF_AT_APPLIED = 1 << 3,
	WF_AT_STEP_HERE = 1 << 4,
	WF_AT_STEP_DONE = 1 << 5,
	WF_AT_MARK = 1 << 6,
};
#define WF_AT_POINTS 7u

/* How gradients and values travel: codec.h describes each function. */
struct wf_codec {
	size_t (*apply)(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal,
			const struct wf_apply *apply, uint64_t step);
	double (*squares)(const struct wf_feature *self, const struct wf_dense *dense,
			  unsigned count, size_t elements);
	size_t (*count_nonfinite)(const struct wf_dense *dense, const void *gradient, size_t count);
	const char *(*remedy)(const struct wf_dense *dense);
	void (*begin)(struct wf_lane *lane, uint32_t ordinal);
};

/* All but bytes, open and close may be NULL: nothing to do there. */
struct wf_feature_hooks {
	const char *name; /* in messages: "this job has no NAME" */
	uint8_t message;  /* type of the message that it decodes; 0: none */
	const struct wf_codec *codec;
	bool sleeps; /* its hooks at points of a step are off until wf_feature_wake */
	/* In a job that began with a state that the lane had, flush is called before RESUME. */
	bool precedes_resume;
	/* The setting by which gradients of a step wait for each other, so that all of them have to
	 * be here at a time; NULL: they do not. */
	const char *needs_step;

	/* Bytes that it needs in this job; 0: the job does not have it. Known before memory is
	 * allocated. */
	uint64_t (*bytes)(const struct wf_lane *lane);
	/* Allocates the state, self->state. At the end of the job, and after a failure, which ends
	 * it: close, which accepts a state that is half allocated. */
	enum weft_status (*open)(struct wf_feature *self, struct wf_lane *lane);
	void (*close)(struct wf_feature *self, struct wf_lane *lane);

	/* A message of its type. A failure is the peer's offence. */
	enum weft_status (*recv)(const struct wf_feature *self, struct wf_lane *lane,
				 struct wf_peer *peer, const struct wf_head *head,
				 const uint8_t *body);
	/* Called after wf_feature_due and at the beginning of a path: sends what is due, which may
	 * be nothing. False: the transport accepts no more. */
	bool (*flush)(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer);
	/* DOWN: forget what belonged to the path. */
	void (*path_ends)(const struct wf_feature *self, struct wf_lane *lane,
			  struct wf_peer *peer);

	/* The peer has sent STEP, or is out of data, and it has been counted. */
	void (*step_said)(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
			  const struct wf_msg_step *msg);
	/* All else is right about a PUT of a gradient that is summed. May it be, and is it counted?
	 */
	bool (*may_put)(const struct wf_feature *self, struct wf_lane *lane, struct wf_peer *peer,
			uint32_t ordinal);
	/* All that is summed of the peer's step is here. */
	void (*step_is_here)(const struct wf_feature *self, struct wf_lane *lane,
			     struct wf_peer *peer);
	/* All that is summed of the slice is here. Returns whether it may be applied, and may
	 * replace *divisor, by which the sums are divided. It is called again until it returns
	 * true. */
	bool (*may_apply)(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal,
			  double *divisor);
	/* The slice is applied in the step, and not answered yet. */
	void (*after_apply)(const struct wf_feature *self, struct wf_lane *lane, uint32_t ordinal);
	/* All of the step is applied; `applied_ns`: when. */
	void (*step_done)(const struct wf_feature *self, struct wf_lane *lane, uint64_t applied_ns);

	/* The clock was looked at: ten times a second at least, and when wf_turn_tick_before says.
	 */
	void (*tick)(const struct wf_feature *self, struct wf_lane *lane, uint64_t now_ns);
	/* Its words in a line; a blank before each. */
	void (*words)(const struct wf_feature *self, const struct wf_lane *lane,
		      const struct wf_report_line *line, char *out, size_t bytes);
	/* Something has become of a slice that no other hook is called for: `what` is
	 * WF_TRACE_PARKED, WF_TRACE_APPLIED of one push, or WF_TRACE_ANSWER_POSTED. */
	void (*mark)(const struct wf_feature *self, struct wf_lane *lane,
		     const struct wf_peer *peer, enum wf_trace_what what, uint32_t ordinal);
	/* Its own lines, of the period or of the job. */
	void (*lines)(const struct wf_feature *self, struct wf_lane *lane, bool job_ends);
	/* Its statistics of one trainer. */
	void (*report)(const struct wf_feature *self, uint32_t trainer,
		       uint64_t value[WF_REPORT_VALUES]);
};

struct wf_feature {
	const struct wf_feature_hooks *hooks;
	void *state;
	uint32_t bit; /* among those of a peer's that have something to send */
	bool sleeps;  /* its hooks at points of a step are off */
};

/* Those of a job. */
struct wf_features {
	struct wf_feature on[WF_FEATURES_MAX];
	uint32_t count;
	uint32_t points;                /* enum wf_feature_point: some feature has a hook there */
	const struct wf_feature *codec; /* the one that has it; NULL: f32 */
	uint32_t at[WF_AT_POINTS]; /* of each point: bits of the features that have a hook there */
};

/* Bytes of the features that the job has. */
uint64_t wf_features_bytes(const struct wf_lane *lane);
/* The setting by which one of these needs all gradients of a step here; NULL: none does. */
const char *wf_features_need_step(const struct wf_lane *lane);
enum weft_status wf_features_open(struct wf_lane *lane) WEFT_MUST_CHECK;
void wf_features_close(struct wf_lane *lane); /* accepts some of them, and none */
/* A message of a type that the service itself does not know. */
enum weft_status wf_features_recv(struct wf_lane *lane, struct wf_peer *peer,
				  const struct wf_head *head, const uint8_t *body) WEFT_MUST_CHECK;
/* From now on its hooks at points of a step count. */
void wf_feature_wake(const struct wf_feature *self, struct wf_lane *lane);
/* And from now on they do not. */
void wf_feature_sleep(const struct wf_feature *self, struct wf_lane *lane);
/* The feature has something to send to the peer. */
void wf_feature_due(const struct wf_feature *self, struct wf_peer *peer);
/* The feature of the lane's job that has these hooks; NULL: the job does not have it. */
const struct wf_feature *wf_feature_find(const struct wf_lane *lane,
					 const struct wf_feature_hooks *hooks);
/* Sends what is due before RESUME. False: the transport accepts no more. */
bool wf_features_open_path(struct wf_lane *lane, struct wf_peer *peer);
/* Sends what is due to the peer. False: the transport accepts no more. */
bool wf_features_flush(struct wf_lane *lane, struct wf_peer *peer);
void wf_features_path_begins(struct wf_lane *lane, struct wf_peer *peer);
void wf_features_path_ends(struct wf_lane *lane, struct wf_peer *peer);
void wf_features_tick(struct wf_lane *lane, uint64_t now_ns);
void wf_features_lines(struct wf_lane *lane, bool job_ends);
void wf_features_report(const struct wf_lane *lane, uint32_t trainer,
			uint64_t value[WF_REPORT_VALUES]);
void wf_features_words(const struct wf_lane *lane, const struct wf_report_line *line, char *out,
		       size_t bytes);

/* At the points of a step: for callers that have tested that there is one. */
void wf_features_step_said(struct wf_lane *lane, struct wf_peer *peer,
			   const struct wf_msg_step *msg);
bool wf_features_may_put(struct wf_lane *lane, struct wf_peer *peer, uint32_t ordinal);
void wf_features_step_is_here(struct wf_lane *lane, struct wf_peer *peer);
bool wf_features_may_apply(struct wf_lane *lane, uint32_t ordinal, double *divisor);
void wf_features_after_apply(struct wf_lane *lane, uint32_t ordinal);
void wf_features_step_done(struct wf_lane *lane, uint64_t applied_ns);
void wf_features_mark(struct wf_lane *lane, const struct wf_peer *peer, enum wf_trace_what what,
		      uint32_t ordinal);

extern const struct wf_feature_hooks wf_announce_hooks; /* announce.c */
extern const struct wf_feature_hooks wf_averages_hooks; /* averages.c */
extern const struct wf_feature_hooks wf_change_hooks;   /* change.c */
extern const struct wf_feature_hooks wf_halves_hooks;   /* halves.c */
extern const struct wf_feature_hooks wf_inquiry_hooks;  /* inquiry.c */
extern const struct wf_feature_hooks wf_leave_hooks;    /* leave.c */
extern const struct wf_feature_hooks wf_norm_hooks;     /* norm.c */
extern const struct wf_feature_hooks wf_position_hooks; /* position.c */
extern const struct wf_feature_hooks wf_snapshot_hooks; /* snapshot_dense.c */
extern const struct wf_feature_hooks wf_straggle_hooks; /* straggle.c */
extern const struct wf_feature_hooks wf_trace_hooks;    /* trace_dense.c */
