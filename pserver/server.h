/* SPDX-License-Identifier: Apache-2.0 */
/* server: one pserver process: its lanes, their threads, and how it ends.
 *
 * Thread: made, run and destroyed by one thread; wf_server_stop_by may be called by any, and from a
 * signal handler. With `inline_lanes` no thread is started and run polls all lanes in turn (for
 * simulated environments). */
#pragma once

#include "base/env.h"
#include "base/settings.h"
#include "base/url.h"
#include "pserver/snapshots.h"

struct wf_server;
struct wf_lane_service; /* service.h */
struct wf_lane_source;  /* lane.h */
struct wf_views;        /* view.h */

#define WF_SERVER_SLOT_COUNT 8u /* opts.slot_count is 0 */
/* The same where pushes stay in the trainer's memory, at most: half of the operations that a
 * transport has under way. */
#define WF_SERVER_SLOT_COUNT_MAX 128u

struct wf_server_opts {
	struct wf_env *env;
	/* The settings that both ends have (base/settings.c). These differ here:
	 * num_gradient_servers 0 means as the first trainer sends, up to max_trainers;
	 * stall_timeout_ns is that of a lane; connect_timeout_ns runs from the first trainer of a
	 * job to the last, and with `once` also until the first one connects. In tests transport
	 * may be "sim", too. */
	union {
		struct weft_session_opts session;
		struct wf_session_values values; /* the same, with what has no field there */
	};
	struct wf_host listen; /* address, and port of lane 0; lane i listens on port + i; port 0:
				* each lane picks one (tests) */
	const struct wf_lane_service *sparse; /* what sparse lanes do; NULL: ports are kept free */
	uint32_t max_trainers;
	uint32_t newcomer_max; /* connections of a lane that were not admitted; 0: 64 */
	bool inline_lanes;
	bool once;               /* end with OK when all trainers of the first job have sent
				   * GOODBYE */
	uint64_t stop_grace_ns;  /* a stop by SIGTERM leaves a running job so long to end */
	uint64_t slot_bytes_max; /* longest slice accepted, bytes */
	/* Window per trainer and lane; a power of two, 1..256. 0: 8, and over shared memory as many
	 * as fit the job (README.md, "Life of a gradient"). */
	uint32_t slot_count;
	uint64_t max_shard_bytes; /* parameters and state of one lane */
	/* Gradients that a dense lane copies aside; 0: one shard for each trainer. With less,
	 * pushes are announced (README.md, "A small inbox"). */
	uint64_t inbox_bytes;
	const struct wf_lane_source *source; /* a state that lanes begin with; lent until destroy;
					      * NULL: none */
	struct wf_snapshots_opts snapshots;  /* dir NULL: none are taken */
	bool is_watched;                     /* what the lanes show is read all the time (view.h) */
	const char *version; /* of the program, as shown; lent for create; NULL: none */
	/* A job that has lost a trainer goes on with the others, if they are so many; 0: it ends,
	 * or goes back. */
	uint32_t min_trainers;
};

/* Settings at their defaults, but for a number of trainers that is left to the first and a stall
 * timeout of 1,800 s; 127.0.0.1:7164, at most 1,024 trainers, window 8, slices to 64 MiB, shards to
 * 64 GiB. */
void wf_server_opts_init(struct wf_server_opts *opts);
/* Single values, and what two of them rule together. WEFT_INVALID: which, and what is allowed. */
enum weft_status wf_server_opts_check(const struct wf_server_opts *opts) WEFT_MUST_CHECK;

/* Opens all ports. WEFT_UNAVAILABLE: address in use, names it; WEFT_INVALID; WEFT_NOMEM. */
enum weft_status wf_server_create(const struct wf_server_opts *opts,
				  struct wf_server **out) WEFT_MUST_CHECK;
/* Of all services: dense ones come first. */
uint32_t wf_server_lane_count(const struct wf_server *server);
/* The bound port of lane `lane_idx`. */
uint16_t wf_server_port(const struct wf_server *server, uint32_t lane_idx);
/* Counters of lane `lane_idx` (enum wf_lane_counter); any thread may read them. */
const struct wf_stats *wf_server_stats(const struct wf_server *server, uint32_t lane_idx);
/* What the lanes show; belongs to the server. */
struct wf_views *wf_server_views(const struct wf_server *server);
/* Lines, separated by newlines: the addresses it listens on, who can reach it, the trainers that it
 * serves, and how. */
void wf_server_describe(const struct wf_server *server, char *out, size_t bytes);
/* Serves until it is stopped (OK; in a job the cause that was sent to its members); with `once`
 * until the job is done (OK), until the job fails (its first cause), or until no trainer has
 * connected in time (WEFT_TIMEOUT). Without `once` a finished or failed job is logged, and it waits
 * for the next one. */
enum weft_status wf_server_run(struct wf_server *server) WEFT_MUST_CHECK;
/* Finishes: ABORT reports to members of a running job that this pserver was stopped by the signal,
 * or, with 0, on request. */
void wf_server_stop_by(struct wf_server *server, int signal_number);
static inline void
wf_server_stop(struct wf_server *server)
{
	wf_server_stop_by(server, 0);
}
/* After run: it was stopped in a job, which it has ended, and that is what run ended with. */
bool wf_server_ended_job(const struct wf_server *server);
void wf_server_destroy(struct wf_server *server); /* accepts NULL */
