/* SPDX-License-Identifier: Apache-2.0 */
/* starved: a lane of any service that runs out of memory, at every allocation in turn from its
 * creation to the accepted job: it reports that, frees everything, and does not crash. A trainer
 * (tests/support/peer.h) brings the job, over TCP on loopback, because a simulated world does not
 * accept an env around its own. Thread: the test's. */
#pragma once

#include "pserver/lane.h"
#include "tests/support/peer.h"

struct starved_job {
	const struct wf_lane_service *service; /* NULL: the dense one */
	uint64_t max_shard_bytes;
	/* Fills in the fields of the job: service, digests, job_bytes. */
	void (*describe)(const struct starved_job *job, struct wf_env *env, struct wf_hello *hello);
	/* The trainer is admitted: sends the description of the job, of which the lane may have
	 * read enough. */
	void (*send)(const struct starved_job *job, struct peer *trainer);
	const void *arg; /* of these two */
};

void starved_refuse_each(const struct starved_job *job);
