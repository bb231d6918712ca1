/* SPDX-License-Identifier: Apache-2.0 */
/* killed: see killed.h. Thread: one. */
#include "tests/cluster/killed.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pserver/lane.h"
#include "tests/cluster/drawn.h"
#include "weft/restart.h"

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
			.full = job->full,
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

uint64_t
killed_count_records(const struct killed *job)
{
	char path[160];
	uint64_t count = 0;
	do {
		(void)snprintf(path, sizeof(path), "%s/record-%05" PRIu64, job->dir, count + 1);
	} while (access(path, F_OK) == 0 && ++count > 0);
	return count;
}

/* A process may have been killed after that, while trainers were still saying GOODBYE. */
bool
killed_has_ended(const struct killed *job, uint64_t epoch)
{
	char path[160];
	char text[200] = "";
	(void)snprintf(path, sizeof(path), "%s/record-%05" PRIu64, job->dir, epoch);
	FILE *file = fopen(path, "r");
	size_t bytes = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file != NULL) {
		(void)fclose(file);
	}
	return bytes > 0 && strstr(text, "\nends\n") != NULL;
}

enum weft_status
killed_train(struct killed *job, struct weft_session *session, enum weft_status (*train)(void *arg),
	     void *arg)
{
	enum weft_status st = train(arg);
	st = st == WEFT_OK ? weft_session_finish(session) : st;
	while (st == WEFT_ROLLED_BACK) {
		job->rejoined++;
		st = weft_session_rejoin(session);
		st = st == WEFT_OK ? train(arg) : st;
		st = st == WEFT_OK ? weft_session_finish(session) : st;
	}
	return st;
}

bool
killed_end_session(struct killed *job, const struct crew_seat *seat, struct weft_session *session,
		   enum weft_status st)
{
	if (st != WEFT_OK && job->goes_back && killed_has_ended(job, killed_count_records(job))) {
		job->unseen |= 1u << seat->idx;
		seat->crew->ended++;
		weft_session_abort(session, st, "");
		return false;
	}
	if (st == WEFT_UNAVAILABLE && job->goes_back) {
		job->anew++; /* it has no initial values any more */
		weft_session_abort(session, st, "");
		return true;
	}
	(void)crew_end_session(seat, session, st);
	return false;
}

bool
killed_play_lives(struct killed *job, struct crew *crew, uint64_t *digest, uint64_t expected,
		  uint64_t *cuts)
{
	job->goes_back = true;
	crew->ends_badly = true; /* a pserver that is killed when all is over finds nobody */
	crew->lives = 1 + (uint32_t)(crew->seed % 4);
	crew->kill_within_ns =
		crew->kill_within_ns != 0 ? crew->kill_within_ns : 300 * WF_NS_PER_MS;
	bool ok = killed_make_dir(job) && crew_ends_well(crew, cuts);
	for (uint32_t i = 0; i < crew->trainers; i++) { /* a trainer that was not seen to end */
		digest[i] = (job->unseen & 1u << i) != 0 ? expected : digest[i];
	}
	ok = ok && drawn_compare(crew, digest, expected);
	killed_remove_dir(job);
	return ok;
}
