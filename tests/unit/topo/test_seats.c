/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of seats: the rules of base/seats.h, one by one, on machines with and without devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "base/seats.h"
#include "tests/support/failing_env.h"

#define SEATS_MAX 64

static struct wf_env *env;

static int
set_up(void **state)
{
	return wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
	wf_env_system_destroy(env);
	return 0;
}

static struct wf_topo *
open_machine(const char *synthetic, const char *xml)
{
	char path[512];
	struct wf_topo *topo = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", WF_MACHINES, xml != NULL ? xml : "");
	const struct wf_topo_source source = {.synthetic = synthetic,
					      .xml = xml != NULL ? path : NULL};
	assert_int_equal(wf_topo_open(env, &source, &topo), WEFT_OK);
	return topo;
}

/* A device more, as if the machine had it; there is room for those without hardware. */
static void
add_device(struct wf_topo *topo, const char *name, enum wf_topo_device_kind kind, int node)
{
	struct wf_topo_device *device = &topo->device[topo->device_count++];
	assert_true(topo->device_count <= topo->device_room);
	*device = (struct wf_topo_device){.kind = kind, .numa_node = node, .port_count = 1};
	device->port[0] = WF_TOPO_ACTIVE;
	(void)snprintf(device->name, sizeof(device->name), "%s", name);
}

static enum wf_seat_share
plan(const struct wf_topo *topo, const struct wf_seat_process *process, uint32_t count,
     struct wf_seat *seat)
{
	const struct wf_seat_ask ask = {.process = process, .process_count = count};
	enum wf_seat_share share = WF_SEAT_NOTHING;
	assert_true(wf_seat_count(&ask) <= SEATS_MAX);
	assert_int_equal(wf_seats_plan(topo, &ask, seat, &share), WEFT_OK);
	return share;
}

/* "0@0 4@1": CPU and node of each. */
static void
expect(const struct wf_seat *seat, uint32_t count, const char *wanted)
{
	char got[512] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < count; i++) {
		used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%d@%d",
					 i > 0 ? " " : "", seat[i].cpu, seat[i].numa_node);
		assert_true(used < sizeof(got));
	}
	assert_string_equal(got, wanted);
}

/* "mlx5_0/1 -" */
static void
expect_devices(const struct wf_topo *topo, const struct wf_seat *seat, uint32_t count,
	       const char *wanted)
{
	char got[512] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < count; i++) {
		const char *name = seat[i].device < 0 ? "-" : topo->device[seat[i].device].name;
		used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%s/%u",
					 i > 0 ? " " : "", name, seat[i].port);
		assert_true(used < sizeof(got));
	}
	assert_string_equal(got, wanted);
}

static void
seats_are_named_by_process_role_and_number(void **state)
{
	struct wf_topo *topo = open_machine("node:1 core:8 pu:1", NULL);
	static const struct wf_seat_process process[] = {{.dense = 2, .sparse = 1},
							 {.compute = 2, .progress = 1}};
	struct wf_seat seat[SEATS_MAX];
	static const enum wf_seat_role roles[] = {WF_SEAT_DENSE,   WF_SEAT_DENSE,
						  WF_SEAT_SPARSE,  WF_SEAT_COMPUTE,
						  WF_SEAT_COMPUTE, WF_SEAT_PROGRESS};
	static const uint32_t idx[] = {0, 1, 0, 0, 1, 0};
	assert_int_equal(plan(topo, process, 2, seat), WF_SEAT_CORES);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(seat[i].role, roles[i]);
		assert_int_equal(seat[i].process, i / 3);
		assert_int_equal(seat[i].idx, idx[i]);
	}
	wf_topo_close(topo);
}

static void
devices_that_cannot_be_opened_carry_no_lane(void **state)
{
	struct wf_topo *topo = open_machine("node:1 core:8 pu:1", NULL);
	static const struct wf_seat_process process = {.dense = 3};
	struct wf_seat seat[SEATS_MAX];
	add_device(topo, "a", WF_TOPO_RDMA, 0);
	add_device(topo, "b", WF_TOPO_RDMA, 0);
	topo->device[0].port_mbps[0] = 100000; /* nor is it the measure of what is slow */
	topo->device[1].port_mbps[0] = 10000;
	(void)snprintf(topo->device[0].closed, sizeof(topo->device[0].closed), "no rights");
	(void)plan(topo, &process, 1, seat);
	expect_devices(topo, seat, 3, "b/1 b/1 b/1");
	topo->device[0].closed[0] = '\0';
	(void)plan(topo, &process, 1, seat);
	expect_devices(topo, seat, 3, "a/1 a/1 a/1");
	wf_topo_close(topo);
}

static void
ports_much_slower_than_the_fastest_are_left_out(void **state)
{
	struct wf_topo *topo = open_machine("node:1 core:8 pu:1", NULL);
	static const struct wf_seat_process process = {.dense = 3};
	struct wf_seat seat[SEATS_MAX];
	add_device(topo, "a", WF_TOPO_RDMA, 0);
	add_device(topo, "b", WF_TOPO_RDMA, 0);
	add_device(topo, "c", WF_TOPO_RDMA, 0);
	topo->device[0].port_mbps[0] = 10000;
	topo->device[1].port_mbps[0] = 100000;
	(void)plan(topo, &process, 1, seat); /* nobody knows how fast c is */
	expect_devices(topo, seat, 3, "b/1 c/1 b/1");
	topo->device[0].port_mbps[0] = 25000;
	(void)plan(topo, &process, 1, seat);
	expect_devices(topo, seat, 3, "a/1 b/1 c/1");
	topo->device[0].port_mbps[0] = 10000;
	topo->device[1].port[0] = WF_TOPO_DOWN;
	(void)plan(topo, &process, 1, seat);
	expect_devices(topo, seat, 3, "a/1 c/1 a/1");
	const struct wf_seat_ask named = {.process = &process, .process_count = 1, .device = "a"};
	enum wf_seat_share share = WF_SEAT_NOTHING;
	topo->device[1].port[0] = WF_TOPO_ACTIVE;
	assert_int_equal(wf_seats_plan(topo, &named, seat, &share), WEFT_OK);
	expect_devices(topo, seat, 3, "a/1 a/1 a/1");
	wf_topo_close(topo);
}

static void
lanes_without_devices_spread_over_the_nodes(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:2", NULL);
	struct wf_seat seat[SEATS_MAX];
	plan(topo, &(struct wf_seat_process){.dense = 3, .sparse = 1}, 1, seat);
	expect(seat, 4, "0@0 4@1 2@0 6@1");
	expect_devices(topo, seat, 4, "-/0 -/0 -/0 -/0");
	wf_topo_close(topo);
}

static void
a_trainer_stays_on_one_node(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:4 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	static const struct wf_seat_process process[] = {{.compute = 3, .progress = 1},
							 {.compute = 3, .progress = 1}};
	plan(topo, process, 2, seat);
	expect(seat, 8, "1@0 2@0 3@0 0@0 5@1 6@1 7@1 4@1");
	wf_topo_close(topo);
}

static void
a_trainer_that_fits_nowhere_is_spread(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	plan(topo, &(struct wf_seat_process){.compute = 3, .progress = 1}, 1, seat);
	expect(seat, 4, "1@0 2@1 3@1 0@0");
	wf_topo_close(topo);
}

static void
cores_are_shared_only_when_all_are_taken(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:2", NULL);
	struct wf_seat seat[SEATS_MAX];
	assert_int_equal(plan(topo, &(struct wf_seat_process){.dense = 4}, 1, seat), WF_SEAT_CORES);
	assert_int_equal(plan(topo, &(struct wf_seat_process){.dense = 6}, 1, seat), WF_SEAT_CPUS);
	expect(seat, 6, "0@0 4@1 2@0 6@1 1@0 5@1");
	assert_int_equal(plan(topo, &(struct wf_seat_process){.dense = 8}, 1, seat), WF_SEAT_CPUS);
	assert_int_equal(plan(topo, &(struct wf_seat_process){.dense = 9}, 1, seat),
			 WF_SEAT_NOTHING);
	expect(seat, 9, "-1@-1 -1@-1 -1@-1 -1@-1 -1@-1 -1@-1 -1@-1 -1@-1 -1@-1");
	wf_topo_close(topo);
}

static void
lanes_sit_at_the_node_of_their_device_while_there_is_room(void **state)
{
	struct wf_topo *topo = open_machine(NULL, "32em64t-2n8c2t-pci-normalio.xml");
	struct wf_seat seat[SEATS_MAX];
	plan(topo, &(struct wf_seat_process){.dense = 10}, 1, seat);
	expect(seat, 10, "8@1 9@1 10@1 11@1 12@1 13@1 14@1 15@1 0@0 1@0");
	expect_devices(topo, seat, 2, "mlx5_0/1 mlx5_0/1");
	expect_devices(topo, &seat[9], 1, "mlx5_0/1");
	wf_topo_close(topo);
}

static void
a_trainer_goes_where_its_device_is_or_where_all_of_it_fits(void **state)
{
	struct wf_topo *topo = open_machine(NULL, "24em64t-2n6c2t-pci.xml");
	struct wf_seat seat[SEATS_MAX];
	plan(topo, &(struct wf_seat_process){.compute = 2, .progress = 1}, 1, seat);
	expect(seat, 3, "2@0 4@0 0@0");
	expect_devices(topo, seat, 3, "-/0 -/0 mlx4_0/1");
	static const struct wf_seat_process both[] = {{.dense = 4}, {.compute = 2, .progress = 1}};
	plan(topo, both, 2, seat);
	expect(seat, 7, "0@0 2@0 4@0 6@0 3@1 5@1 1@1");
	wf_topo_close(topo);
}

static void
ports_take_turns_and_those_that_are_down_are_left_out(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:4 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	add_device(topo, "a", WF_TOPO_RDMA, 1);
	add_device(topo, "b", WF_TOPO_RDMA, 0);
	topo->device[1].port_count = 3;
	topo->device[1].port[1] = WF_TOPO_DOWN;
	topo->device[1].port[2] = WF_TOPO_UNKNOWN;
	plan(topo, &(struct wf_seat_process){.dense = 4}, 1, seat);
	expect_devices(topo, seat, 4, "a/1 b/1 b/3 a/1");
	expect(seat, 4, "4@1 0@0 1@0 5@1");
	wf_topo_close(topo);
}

static void
who_has_to_sit_elsewhere_takes_a_device_there(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	add_device(topo, "a", WF_TOPO_RDMA, 0);
	add_device(topo, "b", WF_TOPO_RDMA, 0);
	add_device(topo, "c", WF_TOPO_RDMA, 1);
	plan(topo, &(struct wf_seat_process){.dense = 4}, 1, seat);
	expect(seat, 4, "0@0 1@0 2@1 3@1");
	expect_devices(topo, seat, 4, "a/1 b/1 c/1 c/1");
	wf_topo_close(topo);
}

static void
network_devices_count_only_where_all_agree(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	add_device(topo, "eth0", WF_TOPO_NET, 1);
	add_device(topo, "eth1", WF_TOPO_NET, 0);
	plan(topo, &(struct wf_seat_process){.dense = 2}, 1, seat);
	expect(seat, 2, "0@0 2@1");
	topo->device[1].port[0] = WF_TOPO_DOWN;
	plan(topo, &(struct wf_seat_process){.dense = 2}, 1, seat);
	expect(seat, 2, "2@1 3@1");
	expect_devices(topo, seat, 2, "-/0 -/0");
	wf_topo_close(topo);
}

static void
a_device_that_is_asked_for_is_the_only_one(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	enum wf_seat_share share;
	const struct wf_seat_process process = {.dense = 2};
	struct wf_seat_ask ask = {.process = &process, .process_count = 1, .device = "b"};
	add_device(topo, "a", WF_TOPO_RDMA, 0);
	add_device(topo, "b", WF_TOPO_RDMA, 1);
	assert_int_equal(wf_seats_plan(topo, &ask, seat, &share), WEFT_OK);
	expect(seat, 2, "2@1 3@1");
	ask.device = "b+a";
	assert_int_equal(wf_seats_plan(topo, &ask, seat, &share), WEFT_OK);
	expect_devices(topo, seat, 2, "b/1 a/1");
	ask.device = "bb";
	assert_int_equal(wf_seats_plan(topo, &ask, seat, &share), WEFT_INVALID);
	assert_non_null(strstr(weft_last_error(), "device bb is not in this machine, which has a "
						  "b"));
	wf_topo_close(topo);
}

static void
cpus_that_somebody_chose_get_the_devices_at_their_node(void **state)
{
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	static const uint32_t cpus[] = {3, 0, 1};
	const struct wf_seat_process process = {.dense = 3, .compute = 1, .progress = 1};
	const struct wf_seat_ask ask = {.process = &process, .process_count = 1};
	add_device(topo, "a", WF_TOPO_RDMA, 0);
	add_device(topo, "b", WF_TOPO_RDMA, 0);
	add_device(topo, "c", WF_TOPO_RDMA, 1);
	assert_int_equal(wf_seats_on(topo, &ask, cpus, 3, seat), WEFT_OK);
	expect(seat, 5, "3@1 0@0 1@0 3@1 0@0");
	expect_devices(topo, seat, 5, "c/1 a/1 b/1 -/0 a/1");
	wf_topo_close(topo);
}

/* Whatever is asked: no CPU twice, all in the machine, the same answer again. */
static void
nobody_sits_on_another_and_a_plan_is_always_the_same(void **state)
{
	static const char *const machines[] = {"node:1 core:3 pu:2", "node:2 core:4 pu:2",
					       "node:4 core:2 pu:1", "pack:2 node:2 core:3 pu:2"};
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 20261120;
	struct wf_rng rng;
	print_message("WEFT_SEED=%llu\n", (unsigned long long)seed);
	wf_rng_init(&rng, seed, 0);
	for (unsigned round = 0; round < 400; round++) {
		struct wf_topo *topo = open_machine(machines[wf_rng_below(&rng, 4)], NULL);
		struct wf_seat_process process[3];
		struct wf_seat seat[SEATS_MAX];
		struct wf_seat again[SEATS_MAX];
		for (unsigned i = 0; i < 3; i++) {
			process[i] = (struct wf_seat_process){
				.dense = (uint32_t)wf_rng_below(&rng, 4),
				.sparse = (uint32_t)wf_rng_below(&rng, 2),
				.compute = (uint32_t)wf_rng_below(&rng, 4),
				.progress = (uint32_t)wf_rng_below(&rng, 2),
			};
		}
		for (uint64_t i = wf_rng_below(&rng, 3); i > 0; i--) {
			add_device(topo, "dev", WF_TOPO_RDMA, (int)wf_rng_below(&rng, 3) - 1);
		}
		const struct wf_seat_ask ask = {.process = process, .process_count = 3};
		uint32_t count = wf_seat_count(&ask);
		enum wf_seat_share share = plan(topo, process, 3, seat);
		assert_int_equal(plan(topo, process, 3, again), share);
		assert_memory_equal(seat, again, count * sizeof(*seat));
		uint64_t taken = 0;
		for (uint32_t i = 0; i < count && share != WF_SEAT_NOTHING; i++) {
			const struct wf_topo_core *core =
				wf_topo_core_of(topo, (uint32_t)seat[i].cpu);
			assert_non_null(core);
			assert_int_equal(seat[i].numa_node, core->numa_node);
			assert_int_equal(taken >> seat[i].cpu & 1, 0);
			taken |= (uint64_t)1 << seat[i].cpu;
		}
		assert_int_equal(share == WF_SEAT_NOTHING, count > topo->cpu_count);
		wf_topo_close(topo);
	}
}

static void
no_memory_is_a_status_and_leaves_nothing_behind(void **state)
{
	struct wf_failing_env failing;
	struct wf_topo *topo = open_machine("node:2 core:2 pu:1", NULL);
	struct wf_seat seat[SEATS_MAX];
	enum wf_seat_share share;
	const struct wf_seat_process process = {.dense = 2};
	const struct wf_seat_ask ask = {.process = &process, .process_count = 1};
	uint64_t nth = 0;
	wf_failing_env_init(&failing, env);
	topo->env = &failing.env;
	do {
		wf_failing_env_fail(&failing, ++nth, false);
		enum weft_status st = wf_seats_plan(topo, &ask, seat, &share);
		assert_int_equal(st, failing.failed > 0 ? WEFT_NOMEM : WEFT_OK);
		assert_true(wf_failing_env_is_clean(&failing));
	} while (failing.failed > 0);
	assert_true(nth > 2);
	topo->env = env;
	wf_topo_close(topo);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(seats_are_named_by_process_role_and_number),
		TEST(lanes_without_devices_spread_over_the_nodes),
		TEST(devices_that_cannot_be_opened_carry_no_lane),
		TEST(ports_much_slower_than_the_fastest_are_left_out),
		TEST(a_trainer_stays_on_one_node),
		TEST(a_trainer_that_fits_nowhere_is_spread),
		TEST(cores_are_shared_only_when_all_are_taken),
		TEST(lanes_sit_at_the_node_of_their_device_while_there_is_room),
		TEST(a_trainer_goes_where_its_device_is_or_where_all_of_it_fits),
		TEST(ports_take_turns_and_those_that_are_down_are_left_out),
		TEST(who_has_to_sit_elsewhere_takes_a_device_there),
		TEST(network_devices_count_only_where_all_agree),
		TEST(a_device_that_is_asked_for_is_the_only_one),
		TEST(cpus_that_somebody_chose_get_the_devices_at_their_node),
		TEST(nobody_sits_on_another_and_a_plan_is_always_the_same),
		TEST(no_memory_is_a_status_and_leaves_nothing_behind),
	};
	/* hwloc keeps its plugins while there is a topology. It would load and unload them, and
	 * the libraries of X11 and OpenCL, for each of some hundred machines. */
	hwloc_topology_t kept = NULL;
	if (hwloc_topology_init(&kept) != 0) {
		return 1;
	}
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	hwloc_topology_destroy(kept);
	return failed;
}
