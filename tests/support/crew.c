/* SPDX-License-Identifier: Apache-2.0 */
/* crew: see crew.h. Thread: one. */
#include "tests/support/crew.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "tests/support/fleet.h"

#define UNTIL_NS (900 * WF_NS_PER_S)
#define KILL_STREAM 44u  /* of the seed */
#define LIVES_STREAM 79u /* likewise */

void
crew_draw_world(struct wf_rng *rng, bool calm, uint32_t cut_per_million, uint32_t refuse_per_mille,
		struct crew *crew)
{
	struct wf_world_opts *world = &crew->world;
	*world = (struct wf_world_opts){
		.seed = crew->seed,
		.delay_min_ns = WF_NS_PER_US,
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1,
	};
	world->delay_max_ns = (1 + wf_rng_below(rng, 2000)) * WF_NS_PER_US;
	world->split_per_mille = calm ? 0 : (uint32_t)wf_rng_below(rng, 500);
	world->cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(rng, cut_per_million);
	world->cut_max = 1 + (uint32_t)wf_rng_below(rng, 40);
	world->refuse_per_mille = calm ? 0 : (uint32_t)wf_rng_below(rng, refuse_per_mille);
	world->down_delay_max_ns = wf_rng_below(rng, 50) * WF_NS_PER_MS;
	world->stall_max_ns = calm ? 0 : wf_rng_below(rng, 20) * WF_NS_PER_MS;
	world->stall_per_mille = calm ? 0 : (uint32_t)wf_rng_below(rng, 20);
}

void
crew_fill_opts(const struct crew *crew, uint32_t idx, struct weft_session_opts *out)
{
	static const char *const lists[CREW_PSERVERS_MAX] = {"ps0", "ps0,ps1", "ps0,ps1,ps2"};
	weft_session_opts_init(out);
	out->pservers = lists[crew->pservers - 1];
	out->ports_num = crew->sparse != NULL ? 1 : crew->lanes;
	out->ports_num_for_sparse = crew->sparse != NULL ? crew->lanes : 0;
	out->num_gradient_servers = crew->trainers;
	out->trainer_id = idx;
	out->transport = crew->transport;
	out->progress = WEFT_PROGRESS_CALLER;
}

static void
complain(struct crew *crew, const char *who, uint32_t idx, const char *text)
{
	if (crew->why[0] == '\0') {
		(void)snprintf(crew->why, sizeof(crew->why), "%s %u: %.200s", who, idx, text);
	}
}

void
crew_complain(struct crew *crew, const char *who, uint32_t idx)
{
	complain(crew, who, idx, weft_last_error());
}

enum weft_status
crew_end_session(const struct crew_seat *seat, struct weft_session *session, enum weft_status st)
{
	struct crew *crew = seat->crew;
	if (st == WEFT_OK) {
		st = weft_session_close(session);
	} else {
		if (!crew->kills || st == WEFT_DATA) {
			crew_complain(crew, "trainer", seat->idx);
		}
		weft_session_abort(session, st, "failed");
	}
	crew->ended += st == WEFT_OK ? 1 : 0;
	return st;
}

static void
look(struct fleet_seat *seat, struct wf_server *server)
{
	struct crew *crew = seat->fleet->run;
	if (crew->look != NULL) {
		crew->look(crew, server);
	}
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	struct crew *crew = seat->fleet->run;
	struct wf_server_opts opts;
	fleet_server_opts(env, crew->transport, &opts);
	opts.session.ports_num = crew->sparse != NULL ? 1 : crew->lanes;
	opts.session.ports_num_for_sparse = crew->sparse != NULL ? crew->lanes : 0;
	opts.sparse = crew->sparse;
	opts.slot_count = crew->slot_count != 0 ? crew->slot_count : opts.slot_count;
	opts.inbox_bytes = crew->inbox_bytes;
	opts.slot_bytes_max = 4096;
	opts.max_shard_bytes = 64u << 20;
	if (crew->fill_server != NULL) {
		crew->fill_server(crew, &opts);
	}
	fleet_serve(seat, &opts, look);
	if (seat->end->status != WEFT_OK && !crew->kills && !crew->ends_badly) {
		complain(crew, "pserver", seat->idx, seat->end->text);
	}
	return 0;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct fleet_seat *seat = arg;
	struct crew *crew = seat->fleet->run;
	struct crew_seat own = {.crew = crew, .idx = seat->idx};
	int result = crew->run_trainer(env, &own);
	fleet_note(seat, env, WEFT_OK); /* the crew keeps what is wrong */
	return result;
}

static void
disturb(struct fleet *fleet, struct wf_world *world, struct wf_proc *const *proc)
{
	struct crew *crew = fleet->run;
	crew->disturb(crew, world, proc);
}

/* Who of the pservers, or of the trainers, is killed. */
static uint32_t
victim_of(const struct crew *crew, enum crew_victim kind)
{
	if (crew->victim == CREW_ALL) {
		return FLEET_ALL;
	}
	return crew->victim == kind ? crew->victim_idx : FLEET_NOBODY;
}

/* Who is killed when, and when it is there again: soon, or after the others have noticed. */
static void
draw_lives(const struct crew *crew, struct fleet *fleet)
{
	struct wf_rng rng;
	uint64_t now_ns = 0;
	uint64_t there_ns[FLEET_PSERVERS_MAX + FLEET_TRAINERS_MAX] = {0};
	WF_ASSERT(crew->lives <= FLEET_LIVES_MAX);
	wf_rng_init(&rng, crew->seed, LIVES_STREAM);
	for (uint32_t i = 0; i < crew->lives; i++) {
		now_ns += 1 + wf_rng_below(&rng, crew->kill_within_ns);
		uint32_t who = (uint32_t)wf_rng_below(&rng, crew->pservers + crew->trainers);
		uint64_t away_ns =
			wf_rng_below(&rng, (1 + 5 * wf_rng_below(&rng, 2)) * WF_NS_PER_S);
		now_ns = now_ns > there_ns[who] ? now_ns : there_ns[who];
		there_ns[who] = now_ns + away_ns + WF_NS_PER_MS;
		fleet->life[i] = (struct fleet_life){
			.process = who, .kill_ns = now_ns, .again_ns = now_ns + away_ns};
		now_ns += wf_rng_below(&rng, 2) == 0 ? away_ns : 0;
	}
	fleet->lives = crew->lives;
}

enum weft_status
crew_play(struct crew *crew, struct wf_world_stats *stats)
{
	struct wf_rng rng;
	struct fleet fleet = {
		.world = crew->world,
		.pservers = crew->pservers,
		.trainers = crew->trainers,
		.run_pserver = run_pserver,
		.run_trainer = run_trainer,
		.run = crew,
		.start_ns = crew->start_ns,
		.disturb = crew->disturb != NULL ? disturb : NULL,
		.until_ns = UNTIL_NS,
		.kill_pserver = FLEET_NOBODY,
		.kill_trainer = FLEET_NOBODY,
	};
	WF_ASSERT(crew->pservers <= CREW_PSERVERS_MAX && crew->trainers <= CREW_TRAINERS_MAX);
	crew->ended = 0;
	if (crew->kills) {
		wf_rng_init(&rng, crew->seed, KILL_STREAM + crew->kill_stream);
		fleet.kill_pserver = victim_of(crew, CREW_PSERVER);
		fleet.kill_trainer = victim_of(crew, CREW_TRAINER);
		fleet.kill_ns =
			1 + wf_rng_below(&rng, crew->kill_within_ns != 0 ? crew->kill_within_ns
									 : 400 * WF_NS_PER_MS);
	}
	draw_lives(crew, &fleet);
	enum weft_status st = fleet_run(&fleet);
	if (st != WEFT_OK) {
		crew_complain(crew, "world", 0);
	}
	*stats = fleet.stats;
	crew->end_ns = fleet.end_ns;
	return st;
}

bool
crew_ends_well(struct crew *crew, uint64_t *cuts)
{
	struct wf_world_stats stats = {0};
	enum weft_status st = crew_play(crew, &stats);
	*cuts += stats.cuts;
	return st == WEFT_OK && crew->ended == crew->trainers && crew->why[0] == '\0';
}
