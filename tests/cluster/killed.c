/* SPDX-License-Identifier: Apache-2.0 */
/* killed: see killed.h. Thread: one. */
#include "tests/cluster/killed.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pserver/lane.h"

#define PSERVERS_STREAM 73u /* of the seed */

void
killed_draw(struct wf_rng *rng, uint64_t seed, struct crew *out)
{
	struct wf_rng own; /* the rest of a job does not depend on the most pservers */
	wf_rng_init(&own, seed, PSERVERS_STREAM);
	*out = (struct crew){.seed = seed};
	out->pservers = 1 + (uint32_t)wf_rng_below(&own, KILLED_PSERVERS_MAX);
	out->lanes = 1 + (uint32_t)wf_rng_below(rng, 3);
	out->trainers = 1 + (uint32_t)wf_rng_below(rng, CREW_TRAINERS_MAX);
	out->slot_count = 1u << wf_rng_below(rng, 3);
	out->transport = wf_rng_below(rng, 2) == 0 ? "sim" : "sim-auto";
}

bool
killed_make_dir(struct killed *job)
{
	const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	(void)snprintf(job->dir, sizeof(job->dir), "%s/weft-snapshot-XXXXXX", root);
	return mkdtemp(job->dir) != NULL;
}

static int
remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
	(void)info;
	(void)kind;
	(void)walk;
	return remove(path);
}

void
killed_remove_dir(const struct killed *job)
{
	(void)nftw(job->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void
killed_fill_server(const struct killed *job, struct wf_server_opts *out)
{
	if (job->dir[0] != '\0') {
		out->snapshots = (struct wf_snapshots_opts){
			.dir = job->dir,
			.registrar = "ps0",
			.steps = job->snapshot_steps,
			.ring_bytes = job->ring_bytes,
			.rate = job->rate,
			.keep = job->keep,
			.resume = WF_RESUME_AUTO,
			.goes_back = job->goes_back,
		};
	}
}

void
killed_add_waits(struct killed *job, struct wf_server *server, uint32_t first)
{
	for (uint32_t i = first; i < wf_server_lane_count(server); i++) {
		job->waits += wf_stats_get(wf_server_stats(server, i), WF_LANE_WAIT_SNAPSHOT_COUNT);
	}
}

void
killed_begin_run(struct crew *crew, uint32_t run, uint32_t runs)
{
	const uint64_t turn = crew->seed + run;
	crew->lanes = 1 + (uint32_t)(turn % 3);
	crew->kills = run + 1 < runs;
	crew->victim = turn % 2 == 0 ? CREW_PSERVER : CREW_TRAINER;
	crew->victim_idx = (uint32_t)(turn / 2 % (turn % 2 == 0 ? crew->pservers : crew->trainers));
	if (turn % 5 == 0) {
		crew->victim = CREW_ALL;
	}
	crew->kill_stream = run;
	crew->world.seed = crew->seed * 16 + run;
}

bool
killed_may_go_on(const struct crew *crew)
{
	return crew->kills && crew->victim != CREW_TRAINER;
}
