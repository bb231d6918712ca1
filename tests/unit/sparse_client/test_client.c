/* SPDX-License-Identifier: Apache-2.0 */
/* The client of sparse tables against a scripted pserver: its values equal those of plain tables,
 * and refusals and mistakes of a lane end as they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_lane.h"
#include "sparse_job.h"
#include "tests/support/fleet.h"

/* One job in a simulated world. */
struct rig {
	struct fleet fleet;
	struct sparse_job job;
	struct fake_opts fake;
	struct fake_seen seen[FLEET_PSERVERS_MAX];
	struct sparse_seen trainer[SPARSE_TRAINERS_MAX];
	uint32_t ended; /* trainers */
	bool stop;
};

static int
run_pserver(struct wf_env *env, void *arg)
{
	const struct fleet_seat *seat = arg;
	struct rig *rig = seat->fleet->run;
	struct fake_opts opts = rig->fake;
	opts.pserver_idx = seat->idx;
	fake_pserver(env, &opts, &rig->stop, &rig->seen[seat->idx]);
	return 0;
}

static int
run_trainer(struct wf_env *env, void *arg)
{
	const struct fleet_seat *seat = arg;
	struct rig *rig = seat->fleet->run;
	sparse_job_train(&rig->job, env, seat->idx, &rig->trainer[seat->idx]);
	rig->stop = ++rig->ended == rig->job.trainers;
	return 0;
}

static void
make_rig(struct rig *rig, uint64_t seed)
{
	memset(rig, 0, sizeof(*rig));
	sparse_job_draw(seed, &rig->job);
	rig->job.transport = "sim";
	rig->job.pservers = "ps0";
	rig->job.ports_num = 1;
	rig->job.ports_num_for_sparse = 2;
	rig->fake = (struct fake_opts){
		.trainers = rig->job.trainers,
		.lanes = 2,
		.slot_count = 8,
		.slot_bytes = 4096,
		.held_bytes = 1 << 20,
	};
	rig->fleet = (struct fleet){
		.world =
			{
				.seed = seed,
				.delay_min_ns = WF_NS_PER_US,
				.delay_max_ns = 500 * WF_NS_PER_US,
				.log_level = WF_LOG_WARN,
				.log_fd = getenv("WEFT_CLUSTER_LOG") != NULL ? 2 : -1,
			},
		.pservers = 1,
		.run_pserver = run_pserver,
		.run_trainer = run_trainer,
		.until_ns = 600 * WF_NS_PER_S,
	};
}

static void
run_rig(struct rig *rig)
{
	rig->fleet.run = rig;
	rig->fleet.trainers = rig->job.trainers;
	enum weft_status st = fleet_run(&rig->fleet);
	if (st != WEFT_OK) {
		print_error("seed %llu: %s\n", (unsigned long long)rig->job.seed,
			    weft_last_error());
	}
	assert_int_equal(st, WEFT_OK);
}

/* Every trainer was given what plain tables give. */
static void
assert_equals_sequential(const struct rig *rig)
{
	uint64_t digest[SPARSE_TRAINERS_MAX];
	struct wf_env *env = NULL;
	assert_int_equal(wf_env_system_create(WF_LOG_WARN, 2, &env), WEFT_OK);
	assert_int_equal(sparse_job_sequential(&rig->job, env, digest), WEFT_OK);
	wf_env_system_destroy(env);
	for (uint32_t t = 0; t < rig->job.trainers; t++) {
		if (rig->trainer[t].status != WEFT_OK || rig->trainer[t].digest != digest[t]) {
			print_error("seed %llu, trainer %u: %s\n",
				    (unsigned long long)rig->job.seed, t, rig->trainer[t].why);
		}
		assert_int_equal(rig->trainer[t].status, WEFT_OK);
		assert_true(rig->trainer[t].digest == digest[t]);
		assert_true(rig->trainer[t].dense_digest == rig->trainer[0].dense_digest);
	}
}

static void
run_and_check(struct rig *rig)
{
	run_rig(rig);
	assert_equals_sequential(rig);
}

static void
one_trainer_and_one_lane_equal_plain_tables(void **state)
{
	struct rig rig;
	(void)state;
	make_rig(&rig, 1);
	rig.job.trainers = 1;
	rig.fake.trainers = 1;
	rig.fake.lanes = 1;
	rig.job.ports_num_for_sparse = 1;
	run_and_check(&rig);
	assert_true(rig.seen[0].ended_well);
}

static uint64_t
seeds(uint64_t *first, uint64_t count)
{
	const char *one = getenv("WEFT_SEED");
	*first = one != NULL ? strtoull(one, NULL, 0) : *first;
	return one != NULL ? 1 : count;
}

/* Lanes, windows, prefetch, coding and credits of a run, apart from the job's own seed. */
static void
vary(struct rig *rig, uint64_t seed)
{
	rig->fleet.pservers = 1 + seed % 2;
	rig->job.pservers = rig->fleet.pservers == 1 ? "ps0" : "ps0,ps1";
	rig->fake.lanes = 1 + (uint32_t)(seed / 2) % 3;
	rig->job.ports_num_for_sparse = rig->fake.lanes;
	rig->fake.slot_count = 1u << (seed / 3) % 4;
	rig->fake.slot_bytes = seed % 5 == 0 ? 1024 : 4096;
	rig->fake.credits_early = seed % 3 == 0;
	rig->job.prefetch = seed % 2 == 0;
	rig->job.raw_keys = seed % 7 == 0;
	rig->job.in_order = seed % 4 < 2;
}

static void
any_job_over_any_lanes_and_windows_equals_plain_tables(void **state)
{
	uint64_t first = 1;
	uint64_t count = seeds(&first, 24);
	(void)state;
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct rig rig;
		make_rig(&rig, seed);
		vary(&rig, seed);
		run_and_check(&rig);
	}
}

static void
cuts_and_refusals_change_nothing(void **state)
{
	uint64_t first = 1000;
	uint64_t count = seeds(&first, 24);
	uint64_t pulls = 0;
	uint64_t pushes = 0;
	(void)state;
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct rig rig;
		make_rig(&rig, seed);
		vary(&rig, seed);
		rig.fleet.world.cut_per_million = 20000;
		rig.fleet.world.cut_max = 20;
		rig.fleet.world.refuse_per_mille = 100;
		rig.fleet.world.split_per_mille = 300;
		rig.fleet.world.down_delay_max_ns = (seed % 20) * WF_NS_PER_MS;
		run_and_check(&rig);
		for (uint32_t t = 0; t < rig.job.trainers; t++) {
			pulls += rig.trainer[t].pulls_repeated;
			pushes += rig.trainer[t].pushes_repeated;
		}
	}
	if (count > 1) { /* else it proves nothing */
		assert_true(pulls > 0 && pushes > 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_trainer_and_one_lane_equal_plain_tables),
		cmocka_unit_test(any_job_over_any_lanes_and_windows_equals_plain_tables),
		cmocka_unit_test(cuts_and_refusals_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
