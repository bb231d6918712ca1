/* SPDX-License-Identifier: Apache-2.0 */
/* crew: see crew.h. Thread: one. */
#include "tests/support/crew.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

#define UNTIL_NS (900 * WF_NS_PER_S)
#define KILL_STREAM 44u /* of the seed */

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

void
crew_complain(struct crew *crew, const char *who, uint32_t idx)
{
	if (crew->why[0] == '\0') {
		(void)snprintf(crew->why, sizeof(crew->why), "%s %u: %.200s", who, idx,
			       weft_last_error());
	}
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	const struct crew_seat *seat = arg;
	struct crew *crew = seat->crew;
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.transport = crew->transport;
	(void)snprintf(opts.listen.name, sizeof(opts.listen.name), "0.0.0.0");
	opts.session.ports_num = crew->sparse != NULL ? 1 : crew->lanes;
	opts.session.ports_num_for_sparse = crew->sparse != NULL ? crew->lanes : 0;
	opts.sparse = crew->sparse;
	opts.inline_lanes = true;
	opts.once = true;
	opts.slot_count = crew->slot_count != 0 ? crew->slot_count : opts.slot_count;
	opts.inbox_bytes = crew->inbox_bytes;
	opts.slot_bytes_max = 4096;
	opts.max_shard_bytes = 64u << 20;
	if (crew->fill_server != NULL) {
		crew->fill_server(crew, &opts);
	}
	enum weft_status st = wf_server_create(&opts, &server);
	if (st == WEFT_OK) {
		st = wf_server_run(server);
	}
	if (st != WEFT_OK && !crew->kills && !crew->ends_badly) {
		crew_complain(crew, "pserver", seat->idx);
	} else if (st == WEFT_OK && crew->look != NULL) {
		crew->look(crew, server);
	}
	wf_server_destroy(server);
	return 0;
}

/* Process i: pservers, then trainers. */
static enum weft_status
spawn(struct crew *crew, struct wf_world *world, uint32_t i, struct crew_seat *seat)
{
	bool trains = i >= crew->pservers;
	struct wf_proc *proc = NULL;
	struct wf_rng rng;
	char host[16];
	*seat = (struct crew_seat){.crew = crew, .idx = trains ? i - crew->pservers : i};
	(void)snprintf(host, sizeof(host), "%s%u", trains ? "tr" : "ps", seat->idx);
	enum weft_status st = wf_world_spawn(world, host, i * WF_NS_PER_MS,
					     trains ? crew->run_trainer : run_pserver, seat, &proc);
	if (st == WEFT_OK && crew->kills && trains && seat->idx == 0) {
		wf_rng_init(&rng, crew->seed, KILL_STREAM);
		wf_world_kill_at(world, proc, 1 + wf_rng_below(&rng, 400 * WF_NS_PER_MS));
	}
	return st;
}

enum weft_status
crew_play(struct crew *crew, struct wf_world_stats *stats)
{
	struct crew_seat seat[CREW_PSERVERS_MAX + CREW_TRAINERS_MAX];
	struct wf_world *world = NULL;
	WF_ASSERT(crew->pservers >= 1 && crew->pservers <= CREW_PSERVERS_MAX);
	WF_ASSERT(crew->trainers >= 1 && crew->trainers <= CREW_TRAINERS_MAX);
	enum weft_status st = wf_world_create(&crew->world, &world);
	for (uint32_t i = 0; i < crew->pservers + crew->trainers && st == WEFT_OK; i++) {
		st = spawn(crew, world, i, &seat[i]);
	}
	if (st == WEFT_OK) {
		st = wf_world_run(world, UNTIL_NS);
	}
	if (st != WEFT_OK) {
		crew_complain(crew, "world", 0);
	}
	wf_world_stats(world, stats);
	wf_world_destroy(world);
	return st;
}
