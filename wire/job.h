/* SPDX-License-Identifier: Apache-2.0 */
/* job: everything on which both ends must agree: options of the exchange and the tensors. The
 * encoded form travels in JOB messages; its parts have digests in the hello. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/limits.h"
#include "base/optimizer.h"
#include "base/settings.h"
#include "weft/weft.h"

#define WF_TENSOR_NAME_BYTES 128 /* with NUL */
#define WF_TENSOR_COUNT_MAX 65536
#define WF_TENSOR_ELEMENTS_MAX (1ull << 40)
#define WF_JOB_BYTES_MAX (16ull << 20)    /* of the encoded form */
#define WF_SLICE_COUNT_MAX (1u << 21)     /* per lane: so that slice * slot_count fits a tag */
#define WF_JOB_SLICE_COUNT_MAX (1u << 24) /* over all lanes: bounds what placement allocates */
#define WF_LANE_COUNT_MAX 65536           /* pservers times dense lanes of each */

/* The enums of weft.h (weft_grad_reduce, weft_dense_mode, weft_tensor_mode, weft_dense_wire,
 * weft_rounding) travel as the numbers that they have there. */

struct wf_job_tensor {
	char name[WF_TENSOR_NAME_BYTES]; /* unique in the job; printable, no spaces */
	uint64_t count;                  /* elements, f32; > 0 */
	double rate_multiplier;          /* multiplies the learning rate */
	double decay;                    /* L2; negative: the job's */
	double clip;                     /* by value; 0: off; negative: the job's */
	double l1;                       /* 0: off; negative: the job's */
	bool is_static; /* never pushed, never updated; still initialised and pulled */
	/* Pushes are reduced, synchronously, and answered with the result: nothing is applied, and
	 * nothing kept but the last result. Not static, without a mode of its own, and not of a job
	 * in mode LOCAL or ELASTIC, with clipping by the norm, or with a wire of 16 bits. */
	bool is_reduced;
	/* A piece of the ring through which weft_all_reduce sends arrays (wire/piece.h): one slice,
	 * which has no initial values, is in no step, and is counted by itself. It is static too,
	 * for whatever concerns steps. */
	bool is_piece;
	/* A mode other than AS_SESSION: only if not static, and not in a job with mode LOCAL or
	 * ELASTIC. */
	enum weft_tensor_mode mode;
	uint32_t staleness;   /* with a mode of its own, BOUNDED: steps, > 0; otherwise 0 */
	double discard_ratio; /* with a mode of its own, ASYNC or BOUNDED; otherwise 0 */
	/* Of the trainer alone, and not in a description: the result of a reduced tensor replaces
	 * its gradient. */
	bool is_in_place;
	/* If tensors wait for the same resource, the higher priority goes first; any value. */
	int32_t priority;
};

struct wf_job {
	/* The session's settings. Those that have a place in a description (base/settings.c)
	 * travel, and are the same at both ends; at a pserver the others are 0. Settings in which 0
	 * stands for another value have that value (wf_session_settle, wf_optimizer_read). */
	union {
		struct weft_session_opts set;
		/* The same, with the values that have no field there. */
		struct wf_session_values values;
	};
	uint32_t pserver_count;
	/* What method, schedule and schedule_args stand for. The code that applies the optimizer
	 * checks their rules. */
	struct wf_method method;
	struct wf_job_tensor *tensor; /* [tensor_count] */
	uint32_t tensor_count;
};

/* The optimizer's settings in the form that kernels use. */
static inline struct wf_optimizer_opts
wf_job_optimizer(const struct wf_job *job)
{
	return (struct wf_optimizer_opts){.set = job->set.optimizer, .method = job->method};
}

static inline bool
wf_job_is_mean(const struct wf_job *job)
{
	return job->set.grad_reduce == WEFT_REDUCE_MEAN;
}

/* Whether elements whose summed gradient is not finite keep their value; otherwise the job ends. */
static inline bool
wf_job_skips(const struct wf_job *job)
{
	return wf_session_skips(&job->set);
}

/* When the pushes of a tensor are applied. */
struct wf_job_terms {
	/* SYNC for a static tensor, which does not change, and for one that is only reduced. */
	enum weft_dense_mode mode;
	uint32_t staleness;
	double discard_ratio;
};

struct wf_job_terms wf_job_terms_of(const struct wf_job *job, const struct wf_job_tensor *tensor);

/* Whether pushes are applied on arrival. */
static inline bool
wf_job_terms_lag(const struct wf_job_terms *terms)
{
	return terms->mode == WEFT_DENSE_ASYNC || terms->mode == WEFT_DENSE_BOUNDED;
}

/* Whether the optimizer keeps arrays of state for it. */
static inline bool
wf_job_has_state(const struct wf_job_tensor *tensor)
{
	return !tensor->is_static && !tensor->is_reduced;
}

/* Whether tensors differ in priority. */
bool wf_job_has_priorities(const struct wf_job *job);

/* The first tensor whose pushes are applied on arrival, or NULL. */
const struct wf_job_tensor *wf_job_first_lagging(const struct wf_job *job);

/* Checks that a tensor's own mode and is_reduced agree with the job's settings; BOUNDED by 0 steps
 * may still stand for SYNC. WEFT_INVALID: the text names tensor, setting and remedy. */
enum weft_status wf_job_check_terms(const struct wf_job *job,
				    const struct wf_job_tensor *tensor) WEFT_MUST_CHECK;
/* Checks that no setting which needs whole steps covers a tensor that is applied on arrival. For
 * the code that applies steps; a description may contain it. */
enum weft_status wf_job_check_steps(const struct wf_job *job,
				    const struct wf_job_tensor *tensor) WEFT_MUST_CHECK;
/* WEFT_INVALID: the text names field, value and limit. */
enum weft_status wf_job_check(const struct wf_job *job) WEFT_MUST_CHECK;
/* Bytes of the encoded form. */
size_t wf_job_encoded_bytes(const struct wf_job *job);
/* `out` has wf_job_encoded_bytes. */
void wf_job_encode(const struct wf_job *job, uint8_t *out);
/* Decodes and checks. Nothing is allocated before the stated count fits `bytes`.
 * wf_job_fini releases what was allocated. WEFT_PROTOCOL, WEFT_NOMEM. */
enum weft_status wf_job_decode(struct wf_env *env, const uint8_t *in, size_t bytes,
			       struct wf_job *out) WEFT_MUST_CHECK;
void wf_job_fini(struct wf_env *env, struct wf_job *job); /* accepts a zeroed job */

/* The digests of everything except the tensors, and of the tensors. */
uint64_t wf_job_digest(const struct wf_job *job);
uint64_t wf_job_tensors_digest(const struct wf_job *job);
