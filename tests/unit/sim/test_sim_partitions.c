/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions between two hosts of a simulated world, in one direction or both: bytes come late, and
 * connections that hear nothing for too long go down. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "tests/unit/sim/transfer.h"

#define PEER_TIMEOUT_NS (10 * WF_NS_PER_S) /* the default */
#define BEGIN_NS (3 * WF_NS_PER_MS)        /* in the middle of a transfer */

static const struct wf_world_partition ways[] = {
	{.from = "client", .to = "server", .both = true},
	{.from = "client", .to = "server"},
	{.from = "server", .to = "client"},
};

/* One attempt of a client, in a world with this partition. */
static void
transfer_in(struct wf_world_partition partition, uint64_t begin_ns, uint64_t end_ns,
	    struct transfer *out)
{
	struct wf_world *world = world_of(calm);
	*out = (struct transfer){.client = {.server_host = "server", .attempts_max = 1}};
	out->client.peer = &out->server;
	partition.begin_ns = begin_ns;
	partition.end_ns = end_ns;
	wf_world_partition(world, &partition);
	struct wf_proc *server = spawn(world, "server", 0, run_server, &out->server);
	wf_world_kill_at(world, server, 150 * WF_NS_PER_S); /* if it waits for its first client */
	spawn(world, "client", 0, run_client, &out->client);
	assert_int_equal(wf_world_run(world, 200 * WF_NS_PER_S), WEFT_OK);
	wf_world_stats(world, &out->stats);
	assert_int_equal(out->client.violations + out->server.violations, 0);
	wf_world_destroy(world);
}

static void
a_partition_holds_bytes_up_and_loses_none(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(ways); i++) {
		struct transfer t;
		transfer_in(ways[i], BEGIN_NS, 8 * WF_NS_PER_S, &t);
		assert_true(t.client.thanked);
		assert_int_equal(t.server.puts, ITEM_COUNT);
		assert_int_equal(t.stats.silences, 0);
		assert_int_equal(t.stats.two_way_partitions, i == 0 ? 1 : 0);
		assert_int_equal(t.stats.one_way_partitions, i == 0 ? 0 : 1);
		assert_true(t.client.down_ns >= 8 * WF_NS_PER_S);
	}
}

static void
connections_go_down_after_a_long_silence(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(ways); i++) {
		struct transfer t;
		transfer_in(ways[i], BEGIN_NS, 100 * WF_NS_PER_S, &t);
		assert_int_equal(t.client.down_status, WEFT_LOST);
		assert_non_null(strstr(t.client.why, "silent"));
		assert_int_equal(t.server.down_status, WEFT_LOST);
		assert_true(t.client.down_ns >= BEGIN_NS + PEER_TIMEOUT_NS);
		assert_true(t.server.down_ns < BEGIN_NS + PEER_TIMEOUT_NS + WF_NS_PER_S);
		/* The reset of the first may arrive at the other where the way is open. */
		assert_in_range(t.stats.silences, i == 0 ? 2 : 1, 2);
	}
}

/* Nor in the direction that is open: a connection begins with a handshake. */
static void
nobody_connects_in_a_partition(void **state)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(ways); i++) {
		struct transfer t;
		transfer_in(ways[i], 0, 100 * WF_NS_PER_S, &t);
		assert_int_equal(t.client.ups, 0);
		assert_int_equal(t.client.down_status, WEFT_TIMEOUT);
		assert_int_equal(t.server.ups, 0);
	}
}

static void
a_partition_that_hits_nothing_does_not_count(void **state)
{
	struct transfer t;
	transfer_in((struct wf_world_partition){.from = "elsewhere", .to = "server", .both = true},
		    0, 100 * WF_NS_PER_S, &t);
	assert_true(t.client.thanked);
	assert_int_equal(t.stats.two_way_partitions, 0);
	transfer_in(ways[1], 90 * WF_NS_PER_S, 91 * WF_NS_PER_S, &t);
	assert_true(t.client.thanked);
	assert_int_equal(t.stats.one_way_partitions, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_partition_holds_bytes_up_and_loses_none),
		cmocka_unit_test(connections_go_down_after_a_long_silence),
		cmocka_unit_test(nobody_connects_in_a_partition),
		cmocka_unit_test(a_partition_that_hits_nothing_does_not_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
