/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs over RDMA devices of every kind that are late, lose things and break by seed, with a
 * simulated network to fall back to: each ends with the digest of the sequential run, and leaves no
 * object of a device behind. Usage: test_cards FIRST COUNT [tables | tensors]; WEFT_SEED=S runs one
 * seed, WEFT_LONG a hundred times as many, and WEFT_CLUSTER_LOG=1 shows the log lines of all its
 * processes. Thread: one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "tests/double/verbs/fake.h"
#include "tests/double/verbs/fake_world.h"
#include "tests/support/sweep.h"

/* Of all seeds. */
static struct fake_happened all;
static uint64_t ups, breaks;

static bool has_tables;
static const char *kind;
static struct fake_knobs knobs;

static void
enter(struct wf_world *world)
{
	fake_world_enter(world);
	fake_turn_knobs(&knobs);
}

static void
draw(uint64_t seed, struct cluster_opts *out)
{
	unsigned kinds = 0;
	while (fake_habits[kinds].name != NULL) {
		kinds++;
	}
	cluster_draw(seed, out);
	if (has_tables) {
		cluster_draw_tables(seed, out);
	}
	out->transport = "sim,verbs";
	out->enter = enter;
	out->reconnect_ns = 15 * WF_NS_PER_S; /* two requests that are lost take 5 */
	kind = fake_habits[seed % kinds].name;
	/* A quarter of the jobs meets nothing but delays. */
	fake_draw_knobs(seed, 1, seed % 4 == 0 ? 0 : 1, &knobs);
}

static void
add_up(const struct cluster_result *result)
{
	uint64_t *sum = (uint64_t *)&all;
	const uint64_t *one = (const uint64_t *)&fake_happened;
	for (unsigned i = 0; i < sizeof(all) / sizeof(*sum); i++) {
		sum[i] += one[i];
	}
	ups += result->verbs_ups;
	breaks += result->verbs_breaks;
}

static bool
run_seed(uint64_t seed, const char *expected)
{
	struct cluster_opts opts;
	struct cluster_result result;
	char why[1024];
	char left[512];
	draw(seed, &opts);
	fake_reset();
	(void)fake_be(kind);
	if (!cluster_run(&opts, &result)) {
		(void)fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, weft_last_error());
		return false;
	}
	add_up(&result);
	const char *wrong = cluster_what_is_wrong(&opts, &result, expected, why, sizeof(why));
	wrong = wrong != NULL ? wrong : fake_left_over(left, sizeof(left));
	if (wrong == NULL) {
		return true;
	}
	(void)printf("FAILED seed %" PRIu64 " (fake-%s, %u pservers, %u + %u lanes, %u slots): "
		     "%s; repeat: WEFT_SEED=%" PRIu64 " test_cards 1 1 %s\n",
		     seed, kind, opts.pservers, opts.lanes, opts.sparse_lanes, opts.slot_count,
		     wrong, seed, has_tables ? "tables" : "tensors");
	return false;
}

int
main(int argc, char **argv)
{
	const struct wf_sweep sweep = wf_sweep_of(argc, argv, 100, 100);
	has_tables = argc > 3 && strcmp(argv[3], "tables") == 0;
	struct cluster_opts opts;
	char expected[CLUSTER_LINE_BYTES];
	uint64_t failed = 0;
	draw(sweep.first, &opts);
	if (!cluster_sequential(&opts, expected)) {
		return 1;
	}
	for (uint64_t seed = sweep.first; seed < sweep.first + sweep.count; seed++) {
		failed += run_seed(seed, expected) ? 0 : 1;
	}
	(void)printf("%" PRIu64 " seeds, %" PRIu64 " failed: %" PRIu64 " pairs over verbs, %" PRIu64
		     " broke; %" PRIu64 " cuts, %" PRIu64 " fatal, %" PRIu64 " removed, %" PRIu64
		     " ports down, %" PRIu64 " queues unreadable, %" PRIu64
		     " calls without memory, %" PRIu64 " datagrams lost, %" PRIu64 " late, %" PRIu64
		     " dry, %" PRIu64 " slow registrations\n",
		     sweep.count, failed, ups, breaks, all.cuts, all.fatals, all.removals,
		     all.ports, all.polls, all.nomem, all.cm_lost, all.late, all.dry, all.slow);
	/* A sweep that injected nothing proves nothing. */
	bool idle =
		!sweep.is_part && sweep.count >= 50 &&
		(ups == 0 || breaks == 0 || all.cuts == 0 || all.fatals == 0 || all.removals == 0 ||
		 all.ports == 0 || all.polls == 0 || all.cm_lost == 0 || all.late == 0 ||
		 all.dry == 0 || (has_tables && all.slow == 0)); /* tensors are small */
	return failed == 0 && !idle ? 0 : 1;
}
