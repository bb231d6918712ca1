/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs with a table in every mode, under seeded delays, cuts, refusals and stalls: each push counts
 * once, whatever order lanes apply them in. Rows count how often their key was pushed: sums of
 * whole numbers, which no order changes. Usage: test_modes [FIRST COUNT]; WEFT_SEED=S runs one
 * seed, and WEFT_CLUSTER_LOG=1 shows the log lines of all processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "pserver/server.h"
#include "sparse/server/service.h"
#include "transport/sim/world.h"
#include "weft/sparse.h"
#include "weft/weft.h"

#define PSERVERS_MAX 2u
#define TRAINERS_MAX 4u
#define KEYS 64u /* there are */
#define STEPS_MAX 12u
#define BATCH_MAX 24u
#define UNTIL_NS (900 * WF_NS_PER_S)

struct run {
	uint64_t seed;
	struct wf_world_opts world;
	enum weft_sparse_mode mode;
	uint32_t staleness;
	uint32_t pservers, lanes, trainers, slot_count;
	uint32_t steps[TRAINERS_MAX];
	bool prefetch;
	char why[256]; /* the first that is not as it should be */
	uint32_t ended;
};

struct member {
	struct run *run;
	uint32_t idx;
	struct weft_session *session;
	struct weft_table *table;
};

static void
complain(struct run *run, const char *who, uint32_t idx)
{
	if (run->why[0] == '\0') {
		(void)snprintf(run->why, sizeof(run->why), "%s %u: %.200s", who, idx,
			       weft_last_error());
	}
}

static int
run_pserver(struct wf_env *env, void *arg)
{
	const struct member *m = arg;
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.transport = "sim";
	(void)snprintf(opts.listen.name, sizeof(opts.listen.name), "0.0.0.0");
	opts.ports_num_for_sparse = m->run->lanes;
	opts.sparse = &wf_sparse_service;
	opts.inline_lanes = true;
	opts.once = true;
	opts.slot_count = m->run->slot_count;
	opts.slot_bytes_max = 4096;
	opts.max_shard_bytes = 64u << 20;
	enum weft_status st = wf_server_create(&opts, &server);
	if (st == WEFT_OK) {
		st = wf_server_run(server);
	}
	if (st != WEFT_OK) {
		complain(m->run, "pserver", m->idx);
	}
	wf_server_destroy(server);
	return 0;
}

/* Keys of a trainer's step, some of them twice. */
static uint32_t
keys_of(const struct run *run, uint32_t trainer, uint64_t step, uint64_t *out)
{
	struct wf_rng rng;
	wf_rng_init(&rng, run->seed, 1000 * (trainer + 1) + step);
	uint32_t count = (uint32_t)wf_rng_below(&rng, BATCH_MAX + 1);
	for (uint32_t i = 0; i < count; i++) {
		out[i] = wf_rng_below(&rng, KEYS);
	}
	return count;
}

static enum weft_status
open_session(struct member *m, struct wf_env *env)
{
	const struct run *run = m->run;
	struct weft_session_opts opts;
	struct weft_table_opts table;
	weft_session_opts_init(&opts);
	opts.pservers = run->pservers == 1 ? "ps0" : "ps0,ps1";
	opts.ports_num_for_sparse = run->lanes;
	opts.num_gradient_servers = run->trainers;
	opts.trainer_id = m->idx;
	opts.transport = "sim";
	opts.slice_bytes = 256; /* there are no tensors, but the lane compares */
	opts.progress = WEFT_PROGRESS_CALLER;
	opts.sparse_mode = run->mode;
	opts.sparse_staleness = run->staleness;
	opts.env = env;
	enum weft_status st = weft_session_open(&opts, &m->session);
	weft_table_opts_init(&table);
	table.name = "counts";
	table.dim = 3;
	table.batch_keys_max = KEYS;
	table.optimizer.method = "sgd";
	table.optimizer.learning_rate = 1;
	if (st == WEFT_OK) {
		st = weft_table_add(m->session, &table, &m->table);
	}
	if (st == WEFT_OK) {
		st = weft_session_seal(m->session);
	}
	return st == WEFT_OK ? weft_session_start(m->session) : st;
}

static enum weft_status
pull(struct member *m, uint64_t step, struct weft_rows **out)
{
	uint64_t key[BATCH_MAX];
	uint32_t count = keys_of(m->run, m->idx, step, key);
	return weft_rows_pull(m->table, key, count, WEFT_ROWS_CREATE, out);
}

static enum weft_status
train(struct member *m)
{
	const struct run *run = m->run;
	float grad[BATCH_MAX * 3];
	struct weft_rows *next = NULL;
	for (uint32_t i = 0; i < BATCH_MAX * 3; i++) {
		grad[i] = -1;
	}
	enum weft_status st = WEFT_OK;
	for (uint64_t step = 1; step <= run->steps[m->idx] && st == WEFT_OK; step++) {
		struct weft_rows *rows = next;
		next = NULL;
		st = rows == NULL ? pull(m, step, &rows) : WEFT_OK;
		if (st == WEFT_OK) {
			st = weft_rows_wait(rows);
		}
		if (st == WEFT_OK) {
			st = weft_step(m->session, 1, 0);
		}
		if (st == WEFT_OK && run->prefetch && step < run->steps[m->idx]) {
			st = pull(m, step + 1, &next);
		}
		if (st == WEFT_OK) {
			st = weft_rows_push(rows, grad, NULL, NULL);
		}
		if (st == WEFT_OK) {
			st = weft_wait_all(m->session);
		}
	}
	return st == WEFT_OK ? weft_pass_end(m->session) : st;
}

/* All that was pushed is in the rows, and nothing else. */
static enum weft_status
compare(struct member *m)
{
	const struct run *run = m->run;
	uint64_t key[KEYS];
	uint32_t expected[KEYS] = {0};
	struct weft_rows *rows = NULL;
	for (uint32_t t = 0; t < run->trainers; t++) {
		for (uint64_t step = 1; step <= run->steps[t]; step++) {
			uint32_t count = keys_of(run, t, step, key);
			for (uint32_t i = 0; i < count; i++) {
				expected[key[i]]++;
			}
		}
	}
	for (uint32_t k = 0; k < KEYS; k++) {
		key[k] = k;
	}
	enum weft_status st = weft_rows_pull(m->table, key, KEYS, 0, &rows);
	if (st == WEFT_OK) {
		st = weft_rows_wait(rows);
	}
	for (uint32_t k = 0; k < KEYS && st == WEFT_OK; k++) {
		float value = weft_rows_values(rows)[weft_rows_place(rows)[k] * 3];
		if (value != (float)expected[k]) {
			st = wf_fail(WEFT_DATA, "key %u was pushed %u times, its row says %g", k,
				     expected[k], (double)value);
		}
	}
	weft_rows_free(rows);
	return st;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	struct member *m = arg;
	enum weft_status st = open_session(m, env);
	if (st == WEFT_OK) {
		st = train(m);
	}
	if (st == WEFT_OK) {
		st = compare(m);
	}
	if (st == WEFT_OK) {
		st = weft_barrier(m->session);
	}
	if (st == WEFT_OK) {
		st = weft_session_close(m->session);
	} else {
		complain(m->run, "trainer", m->idx);
		weft_session_abort(m->session, st, "failed");
	}
	if (st == WEFT_OK) {
		m->run->ended++;
	}
	return 0;
}

static void
draw(uint64_t seed, struct run *run)
{
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 41);
	bool calm = wf_rng_below(&rng, 5) == 0;
	*run = (struct run){
		.seed = seed,
		.mode = (enum weft_sparse_mode)wf_rng_below(&rng, 3),
		.pservers = 1 + (uint32_t)wf_rng_below(&rng, PSERVERS_MAX),
		.lanes = 1 + (uint32_t)wf_rng_below(&rng, 2),
		.trainers = 1 + (uint32_t)wf_rng_below(&rng, TRAINERS_MAX),
		.slot_count = 1u << wf_rng_below(&rng, 4),
		.prefetch = wf_rng_below(&rng, 2) == 0,
	};
	run->staleness = run->mode == WEFT_SPARSE_BOUNDED ? (uint32_t)wf_rng_below(&rng, 4) : 0;
	for (uint32_t t = 0; t < run->trainers; t++) {
		run->steps[t] = 1 + (uint32_t)wf_rng_below(&rng, STEPS_MAX);
	}
	run->world = (struct wf_world_opts){
		.seed = seed,
		.delay_min_ns = WF_NS_PER_US,
		.delay_max_ns = (1 + wf_rng_below(&rng, 2000)) * WF_NS_PER_US,
		.split_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 500),
		.cut_per_million = calm ? 0 : (uint32_t)wf_rng_below(&rng, 30000),
		.cut_max = 1 + (uint32_t)wf_rng_below(&rng, 40),
		.refuse_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 200),
		.down_delay_max_ns = wf_rng_below(&rng, 50) * WF_NS_PER_MS,
		.stall_max_ns = calm ? 0 : wf_rng_below(&rng, 20) * WF_NS_PER_MS,
		.stall_per_mille = calm ? 0 : (uint32_t)wf_rng_below(&rng, 20),
		.log_level = WF_LOG_DEBUG,
		.log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1,
	};
}

static enum weft_status
play(struct run *run, struct wf_world_stats *stats)
{
	struct member member[PSERVERS_MAX + TRAINERS_MAX];
	struct wf_world *world = NULL;
	struct wf_proc *proc = NULL;
	enum weft_status st = wf_world_create(&run->world, &world);
	for (uint32_t i = 0; i < run->pservers + run->trainers && st == WEFT_OK; i++) {
		bool trainer = i >= run->pservers;
		char host[16];
		member[i] = (struct member){.run = run, .idx = trainer ? i - run->pservers : i};
		(void)snprintf(host, sizeof(host), "%s%u", trainer ? "tr" : "ps", member[i].idx);
		st = wf_world_spawn(world, host, i * WF_NS_PER_MS,
				    trainer ? run_trainer : run_pserver, &member[i], &proc);
	}
	if (st == WEFT_OK) {
		st = wf_world_run(world, UNTIL_NS);
	}
	if (st != WEFT_OK) {
		complain(run, "world", 0);
	}
	wf_world_stats(world, stats);
	wf_world_destroy(world);
	return st;
}

int
main(int argc, char **argv)
{
	const char *one = getenv("WEFT_SEED");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
	uint64_t failed = 0;
	uint64_t cuts = 0;
	first = one != NULL ? strtoull(one, NULL, 0) : first;
	count = one != NULL ? 1 : count;
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct run run;
		struct wf_world_stats stats = {0};
		draw(seed, &run);
		enum weft_status st = play(&run, &stats);
		cuts += stats.cuts;
		if (st != WEFT_OK || run.ended != run.trainers || run.why[0] != '\0') {
			failed++;
			(void)printf("FAILED seed %" PRIu64
				     " (mode %d, staleness %u, %u pservers, %u lanes, %u trainers, "
				     "%u slots, prefetch %d): %s; repeat: WEFT_SEED=%" PRIu64
				     " test_modes\n",
				     seed, (int)run.mode, run.staleness, run.pservers, run.lanes,
				     run.trainers, run.slot_count, run.prefetch, run.why, seed);
		}
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " cuts\n", count, failed,
		     cuts);
	/* A sweep that injected nothing proves nothing. */
	return failed == 0 && (count < 20 || cuts > 0) ? 0 : 1;
}
