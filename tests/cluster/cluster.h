/* SPDX-License-Identifier: Apache-2.0 */
/* cluster: a whole job in one process: pservers and trainers as simulated processes, the real
 * lanes, sessions and training program, on the sim transport under a virtual clock and a seed.
 * Thread: one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pserver/server.h"
#include "trainer/program/command.h"
#include "transport/fault/fault.h"
#include "tests/support/fleet.h"

#define CLUSTER_LANES_MAX 8u
#define CLUSTER_LINE_BYTES 256u

struct cluster_opts {
	struct wf_world_opts world;
	const char *transport;         /* "sim", or "sim-auto": with the second network */
	const char *trainer_transport; /* NULL: the same */
	uint32_t pservers, trainers, lanes;
	uint32_t slot_count;
	const char *model;       /* "mlp"; with sparse_lanes "ctr" */
	uint32_t sparse_lanes;   /* of each pserver */
	const char *sparse_wire; /* of its tables' values; NULL: f32 */
	const char *dense_wire;  /* of its tensors; NULL: f32 */
	uint64_t batch_size;     /* of each trainer */
	uint64_t passes;
	const char *optimizer;
	const char *slice_bytes;
	const char *more_args[3]; /* of weft train; NULL: none */
	uint64_t until_ns;        /* virtual time by which the job must have ended */
	uint64_t reconnect_ns;    /* time for a lost trainer to reconnect; 0: the default */
	const struct wf_lane_source *source;   /* of the pservers; NULL: none */
	void (*dot)(void *arg);                /* after each batch of trainer 0; NULL: nothing */
	void *arg;                             /* for dot */
	void (*enter)(struct wf_world *world); /* before its processes begin; NULL: nothing */
	/* kill -9: at kill_ns; FLEET_NOBODY: none. */
	uint32_t kill_pserver, kill_trainer;
	uint64_t kill_ns;
};

struct cluster_result {
	struct fleet fleet;                 /* how each process ended */
	char last_line[CLUSTER_LINE_BYTES]; /* of a pass, by trainer 0 */
	/* Lanes that a trainer reached over the first network because the second broke, or because
	 * it could not be had; and that went back to the second afterwards. */
	uint64_t breaks, refusals, returns;
	/* Lanes that were reached over RDMA, and those that went on without because that broke. */
	uint64_t verbs_ups, verbs_breaks;
	struct wf_fault_counts faults; /* by wrappers; 0 unless the log is at DEBUG */
};

/* Faults and a job drawn from the seed: any lane count, window, delays, cuts. */
void cluster_draw(uint64_t seed, struct cluster_opts *out);
/* Make it a job with tables. Of the trainers some run out of data before others. */
void cluster_draw_tables(uint64_t seed, struct cluster_opts *opts);
/* Run the job to its end. False: the world could not be made. */
bool cluster_run(const struct cluster_opts *opts, struct cluster_result *out);
/* What is not as it should be: everybody ends well, with the line `expected`; NULL: nothing. */
const char *cluster_what_is_wrong(const struct cluster_opts *opts,
				  const struct cluster_result *result, const char *expected,
				  char *out, size_t bytes);
/* The last line of a pass of a sequential run of the same job. */
bool cluster_sequential(const struct cluster_opts *opts, char line[CLUSTER_LINE_BYTES]);
/* The digest of a result line; "" if it has none. */
const char *cluster_digest(const char *line);
