/* SPDX-License-Identifier: Apache-2.0 */
/* crew: one job in one process, for tests whose trainers are functions of their own on the public
 * library: real pservers and those functions as simulated processes, under a virtual clock and a
 * seed's faults. Thread: one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "pserver/server.h"
#include "tests/double/sim/world.h"
#include "weft/weft.h"

#define CREW_PSERVERS_MAX 3u
#define CREW_TRAINERS_MAX 4u

struct fleet;

enum crew_victim {
	CREW_TRAINER,
	CREW_PSERVER,
	CREW_ALL,
};

struct crew {
	/* The test's. */
	uint64_t seed;
	struct wf_world_opts world;
	const char *transport; /* "sim", "sim-auto": with a second network */
	uint32_t pservers, trainers;
	uint32_t slot_count;  /* 0: the default */
	uint64_t inbox_bytes; /* of each lane; 0: enough */
	uint32_t lanes;       /* of each pserver: dense ones, or of `sparse` beside one dense one */
	const struct wf_lane_service *sparse; /* NULL: none */
	/* What else a pserver is opened with, and a look at it when it has ended well. NULL: no. */
	void (*fill_server)(const struct crew *crew, struct wf_server_opts *out);
	void (*look)(struct crew *crew, struct wf_server *server);
	/* As struct fleet has it; NULL: in their order. */
	uint64_t (*start_ns)(struct fleet *fleet, uint32_t i);
	bool kills; /* somebody is killed at a time of chance, and pservers may end badly */
	enum crew_victim victim; /* that is killed: a trainer, a pserver, or all processes */
	uint32_t victim_idx;     /* of the trainer, or of the pserver */
	uint32_t kill_stream;    /* of the seed's chances: another time for each run of a job */
	uint64_t kill_within_ns; /* of the beginning; 0: 400 ms */
	bool ends_badly;         /* pservers may */
	/* Some are killed and started again, at times of chance, so often; 0: nobody. */
	uint32_t lives;
	/* As struct fleet has it; NULL: nothing. */
	void (*disturb)(struct crew *crew, struct wf_world *world, struct wf_proc *const *proc);
	int (*run_trainer)(struct wf_env *env, void *arg); /* arg: its struct crew_seat */
	void *run;                                         /* the test's, for run_trainer */

	/* What happened. */
	char why[256];   /* the first that is not as it should be */
	uint32_t ended;  /* trainers that ended well; run_trainer counts, or crew_end_session */
	uint64_t end_ns; /* virtual time at which the last process had ended */
};

struct crew_seat {
	struct crew *crew;
	uint32_t idx;
};

/* Faults by chance; `calm`: delays only. */
void crew_draw_world(struct wf_rng *rng, bool calm, uint32_t cut_per_million,
		     uint32_t refuse_per_mille, struct crew *crew);
/* Defaults, and what follows from the crew. */
void crew_fill_opts(const struct crew *crew, uint32_t idx, struct weft_session_opts *out);
/* Keep weft_last_error as `why`, unless there is one. */
void crew_complain(struct crew *crew, const char *who, uint32_t idx);
/* Ends the session of a trainer whose work came to `st`: closes it and counts the trainer, or keeps
 * why and aborts it. Of a job in which somebody is killed only WEFT_DATA is kept. Returns the
 * status with which the trainer ends. */
enum weft_status crew_end_session(const struct crew_seat *seat, struct weft_session *session,
				  enum weft_status st);
/* Run the job to its end. */
enum weft_status crew_play(struct crew *crew, struct wf_world_stats *stats) WEFT_MUST_CHECK;
/* The same. Whether all trainers have ended well, and there is no `why`; the cuts are added. */
bool crew_ends_well(struct crew *crew, uint64_t *cuts);
