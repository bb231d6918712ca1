/* SPDX-License-Identifier: Apache-2.0 */
/* job: everything that both ends must agree on: options of the exchange and the tensors.
 * The encoded form travels in JOB messages; its parts have digests in the hello. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

#define WF_TENSOR_NAME_BYTES 128 /* with NUL */
#define WF_TENSOR_COUNT_MAX 65536
#define WF_TENSOR_ELEMENTS_MAX (1ull << 40)
#define WF_JOB_BYTES_MAX (16ull << 20) /* of the encoded form */
#define WF_SLICE_BYTES_MIN 64
#define WF_SLICE_BYTES_MAX (64ull << 20)
#define WF_SLICE_COUNT_MAX (1u << 21)     /* per lane: so that slice * slot_count fits a tag */
#define WF_JOB_SLICE_COUNT_MAX (1u << 24) /* of all lanes: bounds what placement allocates */
#define WF_TRAINER_COUNT_MAX 65536
#define WF_LANE_COUNT_MAX 65536 /* pservers times dense lanes of each */

enum wf_grad_reduce {
	WF_REDUCE_SUM = 0,
	WF_REDUCE_MEAN = 1, /* divide by the exact number of samples of the step */
};

enum wf_nonfinite {
	WF_NONFINITE_ABORT = 0, /* the job ends, naming trainer and tensor */
	WF_NONFINITE_SKIP = 1,  /* elements whose summed gradient is not finite keep their value */
};

struct wf_job_tensor {
	char name[WF_TENSOR_NAME_BYTES]; /* unique in the job; printable, no spaces */
	uint64_t count;                  /* elements, f32; > 0 */
	double rate_multiplier;          /* of the learning rate */
	double decay;                    /* L2; negative: the job's */
	double clip;                     /* by value; 0: off; negative: the job's */
	bool is_static; /* never pushed, never updated; still initialised and pulled */
};

/* The optimizer's settings as numbers; kernels/optimizer.h says what they mean. The wire checks
 * only that they are finite; whoever applies them checks the rest. */
struct wf_job_optimizer {
	uint32_t kind;
	uint32_t schedule;
	double learning_rate;
	double momentum;
	double beta1, beta2, epsilon;
	double decay;
	double clip;
	double schedule_a, schedule_b;
};

struct wf_job {
	uint32_t trainer_count; /* num_gradient_servers */
	uint32_t pserver_count;
	uint32_t lane_count;  /* dense lanes of each pserver */
	uint64_t slice_bytes; /* a multiple of 64, WF_SLICE_BYTES_MIN..MAX */
	enum wf_grad_reduce grad_reduce;
	enum wf_nonfinite nonfinite;
	struct wf_job_optimizer optimizer;
	struct wf_job_tensor *tensor; /* [tensor_count] */
	uint32_t tensor_count;
};

/* WEFT_INVALID names field, value and limit. */
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

/* Digest over everything but the tensors, and over the tensors. */
uint64_t wf_job_digest(const struct wf_job *job);
uint64_t wf_job_tensors_digest(const struct wf_job *job);
