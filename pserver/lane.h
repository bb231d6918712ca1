/* SPDX-License-Identifier: Apache-2.0 */
/* lane: one thread, one core, one port: a transport, the peers on it, and their slices.
 *
 * A lane is a state machine: wf_lane_poll moves it, wf_lane_arm says until when it may sleep.
 * Thread: whoever polls it first; the others may make, and afterwards destroy it. */
#pragma once

#include "base/env.h"
#include "base/url.h"
#include "wire/hello.h"

struct wf_lane;

struct wf_lane_opts {
	struct wf_env *env;
	const char *transport; /* backend name: "tcp", "sim" */
	struct wf_host listen;
	uint32_t idx;                  /* within this pserver */
	uint32_t lane_count;           /* dense lanes of this pserver */
	uint32_t num_gradient_servers; /* 0: as the first trainer says */
	int numa_node;
	uint64_t incarnation; /* of the pserver process */
	uint32_t slot_count;
	uint64_t slot_bytes_max;
	uint64_t max_shard_bytes;
	uint64_t reconnect_timeout_ns;
	uint64_t peer_timeout_ns;
	uint64_t connect_timeout_ns;
};

/* How the job on this lane stands. */
enum wf_lane_job {
	WF_LANE_IDLE, /* no trainer yet */
	WF_LANE_RUNNING,
	WF_LANE_FINISHED, /* all trainers said GOODBYE; wf_lane_reset makes it idle */
	WF_LANE_FAILED, /* aborted, everybody who can be told has been; wf_lane_reset makes it idle
			 */
};

/* The first cause of a failed job. */
struct wf_lane_cause {
	enum weft_status status; /* OK: none */
	uint64_t step;
	char who[WF_MEMBER_NAME_BYTES];
	char reason[WF_REASON_BYTES];
};

struct wf_lane_stats {
	uint64_t steps_applied; /* highest step applied to any slice */
	uint64_t slices_applied;
	uint64_t slices_parked;
	uint64_t parked_bytes_peak;
	uint64_t gradients_nonfinite; /* elements skipped */
	uint64_t reconnects;
	uint64_t hellos_refused;
	uint64_t strangers;   /* connections closed before a valid hello; since the lane was made */
	uint64_t shard_bytes; /* parameters and state */
	uint64_t slots_bytes;
};

enum weft_status wf_lane_create(const struct wf_lane_opts *opts,
				struct wf_lane **out) WEFT_MUST_CHECK;
void wf_lane_destroy(struct wf_lane *lane); /* accepts NULL */
uint16_t wf_lane_port(const struct wf_lane *lane);

/* Do what can be done without waiting. Returns whether anything happened. */
bool wf_lane_poll(struct wf_lane *lane);
/* After this, poll once more, and sleep on wf_lane_wait_fd until `*deadline_ns` if that did
 * nothing. */
void wf_lane_arm(struct wf_lane *lane, uint64_t *deadline_ns);
int wf_lane_wait_fd(struct wf_lane *lane);

enum wf_lane_job wf_lane_job_state(const struct wf_lane *lane);
const struct wf_lane_cause *wf_lane_cause(const struct wf_lane *lane);
void wf_lane_stats(const struct wf_lane *lane, struct wf_lane_stats *out);
/* End the job for everybody on this lane with this cause. A no-op when it has ended already. */
void wf_lane_abort(struct wf_lane *lane, const struct wf_lane_cause *cause);
/* Forget a finished or failed job and wait for the next. */
void wf_lane_reset(struct wf_lane *lane);
