/* SPDX-License-Identifier: Apache-2.0 */
/* local: local steps of a trainer (WEFT_DENSE_LOCAL, WEFT_DENSE_ELASTIC): formulas in local.c. For
 * such sessions only. Thread: the owner's. */
#pragma once

#include "kernels/kernels.h"
#include "trainer/session/core.h"

struct wf_local {
	const struct wf_kernels *kernels;
	unsigned state_count;
	/* Laid out as the parameters. */
	struct wf_slab base;                /* the center that this trainer had last */
	struct wf_slab kept;                /* ELASTIC: its parameters, while the center comes */
	struct wf_slab state[WF_STATE_MAX]; /* of the optimizer */

	uint64_t step;           /* of this trainer, from 1 */
	uint64_t samples;        /* of it */
	uint64_t samples_before; /* of those before */
	uint64_t pass;           /* from 0 */
	bool exchanging;         /* it ends with an exchange */
	uint32_t since;          /* steps since the last exchange */
	uint64_t since_samples;  /* of these */
	double since_cost;       /* of these */
	uint64_t told_samples;   /* of those of the exchange under way */
};

static inline bool
wf_local_is_on(const struct wf_core *core)
{
	return wf_session_has_local_steps(&core->job.set);
}

/* Memory, at seal. */
enum weft_status wf_local_open(struct weft_session *session) WEFT_MUST_CHECK;
void wf_local_close(struct weft_session *session); /* accepts a session without */

/* A step of this trainer begins. */
void wf_local_begin(struct weft_session *session, uint64_t samples, double cost);
/* The step that has begun ends with an exchange. */
bool wf_local_exchanges(const struct weft_session *session);
/* Begins an exchange; the number of samples that it represents. */
uint64_t wf_local_reset_samples(struct weft_session *session);
void wf_local_pass_ends(struct weft_session *session);

/* Apply the tensor's gradient to its parameters. WEFT_DATA: it is not finite. */
enum weft_status wf_local_apply(struct weft_tensor *tensor) WEFT_MUST_CHECK;
/* Writes what is to be pushed into the gradient array. */
void wf_local_offer(struct weft_tensor *tensor);
/* Applies the answer of the exchange to the parameters. A second call does nothing. */
void wf_local_settle(struct weft_tensor *tensor);
