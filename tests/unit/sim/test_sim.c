/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend "sim" does beyond the contract: how it draws landings, ends and faults, and that
 * a seed replays. tests/conformance tests the contract. WEFT_SEED picks the first seed of those
 * tests that try many. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/sim/transfer.h"

static void
a_transfer_arrives_in_order(void **state)
{
	struct transfer t;
	transfer(calm, &t);
	assert_int_equal(t.server.puts, ITEM_COUNT);
	assert_int_equal(t.server.msgs, ITEM_COUNT);
	assert_int_equal(t.client.dones, 2 * ITEM_COUNT);
	assert_int_equal(t.client.dones_lost, 0);
	assert_int_equal(t.server.down_status, WEFT_CLOSED);
	assert_int_equal(t.client.down_status, WEFT_CLOSED);
	assert_int_equal(t.client.attempts, 1);
}

static void
a_seed_replays_and_another_differs(void **state)
{
	struct transfer first;
	struct transfer again;
	struct transfer other;
	transfer(rough(11), &first);
	transfer(rough(11), &again);
	transfer(rough(12), &other);
	assert_memory_equal(&first.stats, &again.stats, sizeof(first.stats));
	assert_true(first.stats.trace_digest != other.stats.trace_digest);
}

static void
transfers_survive_every_fault_of_two_hundred_seeds(void **state)
{
	struct wf_world_stats sum = {0};
	for (uint64_t seed = first_seed(); seed < first_seed() + 200; seed++) {
		struct transfer t;
		transfer(rough(seed), &t);
		sum.cuts += t.stats.cuts;
		sum.refusals += t.stats.refusals;
		sum.splits += t.stats.splits;
		sum.stalls += t.stats.stalls;
	}
	assert_true(sum.cuts > 0 && sum.refusals > 0 && sum.splits > 0 && sum.stalls > 0);
}

static void
bytes_land_apart_from_their_event(void **state)
{
	unsigned early = 0;
	unsigned partial = 0;
	for (uint64_t seed = first_seed(); seed < first_seed() + 20; seed++) {
		struct transfer t;
		struct wf_world_opts opts = calm;
		opts.seed = seed;
		opts.split_per_mille = 1000;
		transfer(opts, &t);
		early += t.server.early;
		partial += t.server.partial;
	}
	assert_true(early > 0);
	assert_true(partial > 0);
}

static void
done_comes_before_the_event_and_after_it(void **state)
{
	unsigned before = 0;
	for (uint64_t seed = first_seed(); seed < first_seed() + 20; seed++) {
		struct transfer t;
		struct wf_world_opts opts = calm;
		opts.seed = seed;
		transfer(opts, &t);
		before += t.client.early;
	}
	assert_true(before > 0);
	assert_true(before < 20 * ITEM_COUNT);
}

static void
cuts_are_limited_in_number(void **state)
{
	struct wf_world_opts opts = rough(1);
	opts.cut_per_million = 200000;
	opts.cut_max = 3;
	struct transfer t;
	transfer(opts, &t);
	assert_int_equal(t.stats.cuts, 3);
}

/* --- waking --- */

struct wake {
	struct wf_env *env;
	struct wf_transport *transport;
	uint64_t woken_ns;
};

static int
wait_for_a_caller(struct wf_env *env, void *arg)
{
	struct wake *wake = arg;
	struct wf_transport_opts opts = {.env = env};
	struct wf_host at = {.name = "localhost", .port = PORT};
	uint16_t port = 0;
	if (wf_transport_open("sim", &opts, &wake->transport) != WEFT_OK ||
	    wf_transport_listen(wake->transport, &at, &port) != WEFT_OK ||
	    wf_transport_wait_fd(wake->transport) != -1) {
		return 1;
	}
	struct wf_event event;
	unsigned count = 0;
	uint64_t deadline_ns = 0;
	unsigned waits = 0;
	while (count == 0) {
		(void)wf_transport_arm(wake->transport, &deadline_ns);
		if (wf_transport_poll(wake->transport, &event, 1, &count) != WEFT_OK) {
			return 2;
		}
		if (count == 0) {
			waits++;
			wf_wait(env, -1, deadline_ns);
		}
	}
	wake->woken_ns = wf_now_ns(env);
	wf_transport_close(wake->transport);
	return waits == 1 ? 0 : 3; /* nothing but the arrival ends it */
}

static void
wait_ends_when_something_arrives(void **state)
{
	struct wf_world *world = world_of(calm);
	struct wake wake = {0};
	struct node client = {.server_host = "server", .attempts_max = 1};
	struct wf_proc *waiter = spawn(world, "server", 0, wait_for_a_caller, &wake);
	spawn(world, "client", 5 * WF_NS_PER_S, run_client, &client);
	assert_run(world, 1);
	assert_returned(waiter, 1);
	assert_true(wake.woken_ns >= 5 * WF_NS_PER_S + calm.delay_min_ns);
	assert_true(wake.woken_ns <= 5 * WF_NS_PER_S + calm.delay_max_ns);
	wf_world_destroy(world);
}

/* One proc, two transports, polled in turn. */
static int
run_both_ends(struct wf_env *env, void *arg)
{
	struct node *ends = arg;
	struct node *server = &ends[0];
	struct node *client = &ends[1];
	struct wf_host at = {.name = "127.0.0.1", .port = PORT};
	uint16_t port = 0;
	if (open_node(server, env) != WEFT_OK || open_node(client, env) != WEFT_OK ||
	    wf_transport_listen(server->transport, &at, &port) != WEFT_OK) {
		return 1;
	}
	begin_attempt(client);
	while (!client->thanked) {
		unsigned count = poll_node(server) + poll_node(client);
		if (client->has_key) {
			post_items(client);
		}
		if (count == 0) {
			wf_wait(env, -1, WF_NEVER);
		}
	}
	close_node(client);
	close_node(server);
	return (int)(server->violations + client->violations);
}

static void
one_proc_may_hold_both_ends(void **state)
{
	struct wf_world *world = world_of(calm);
	struct node ends[2] = {{0}, {.server_host = "127.0.0.1"}};
	struct wf_proc *proc = spawn(world, "alone", 0, run_both_ends, ends);
	assert_run(world, 1);
	assert_returned(proc, 1);
	assert_int_equal(ends[0].puts, ITEM_COUNT);
	wf_world_destroy(world);
}

static int
poll_only_one_end(struct wf_env *env, void *arg)
{
	struct node *ends = arg;
	struct wf_host at = {.name = "127.0.0.1", .port = PORT};
	uint16_t port = 0;
	if (open_node(&ends[0], env) != WEFT_OK || open_node(&ends[1], env) != WEFT_OK ||
	    wf_transport_listen(ends[0].transport, &at, &port) != WEFT_OK) {
		return 1;
	}
	begin_attempt(&ends[1]);
	while (ends[1].downs == 0) { /* the listening end never answers */
		(void)poll_node(&ends[1]);
		wf_wait(env, -1, WF_NEVER);
	}
	close_node(&ends[1]);
	close_node(&ends[0]);
	return ends[1].down_status == WEFT_TIMEOUT ? 0 : 2;
}

static void
time_goes_on_while_an_event_is_left_waiting(void **state)
{
	struct wf_world_opts opts = calm;
	struct wf_world *world = world_of(opts);
	struct node ends[2] = {{0}, {.server_host = "127.0.0.1"}};
	struct wf_proc *proc = spawn(world, "alone", 0, poll_only_one_end, ends);
	assert_run(world, 1);
	assert_returned(proc, 1);
	wf_world_destroy(world);
}

/* --- addresses --- */

static int
listen_twice(struct wf_env *env, void *arg)
{
	struct wf_transport_opts opts = {.env = env};
	struct wf_transport *t = NULL;
	uint16_t first = 0;
	uint16_t second = 0;
	struct wf_host any = {.name = "::"};
	struct wf_host other = {.name = "elsewhere", .port = PORT};
	if (wf_transport_open("sim", &opts, &t) != WEFT_OK ||
	    wf_transport_listen(t, &any, &first) != WEFT_OK ||
	    wf_transport_listen(t, &any, &second) != WEFT_OK || first == 0 || first == second) {
		return 1;
	}
	any.port = first;
	if (wf_transport_listen(t, &any, &second) != WEFT_UNAVAILABLE ||
	    strstr(weft_last_error(), "in use") == NULL ||
	    wf_transport_listen(t, &other, &second) != WEFT_UNAVAILABLE) {
		return 2;
	}
	wf_transport_close(t);
	return 0;
}

static void
ports_belong_to_one_listener_of_a_host(void **state)
{
	struct wf_world *world = world_of(calm);
	struct wf_proc *a = spawn(world, "a", 0, listen_twice, NULL);
	struct wf_proc *b = spawn(world, "b", 0, listen_twice, NULL);
	assert_run(world, 1);
	assert_returned(a, 1);
	assert_returned(b, 1);
	wf_world_destroy(world);
}

static void
other_envs_are_refused(void **state)
{
	struct wf_env *env = NULL;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	struct wf_transport_opts opts = {.env = env};
	struct wf_transport *t = NULL;
	assert_int_equal(wf_transport_open("sim", &opts, &t), WEFT_INVALID);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transfer_arrives_in_order),
		cmocka_unit_test(a_seed_replays_and_another_differs),
		cmocka_unit_test(transfers_survive_every_fault_of_two_hundred_seeds),
		cmocka_unit_test(bytes_land_apart_from_their_event),
		cmocka_unit_test(done_comes_before_the_event_and_after_it),
		cmocka_unit_test(cuts_are_limited_in_number),
		cmocka_unit_test(wait_ends_when_something_arrives),
		cmocka_unit_test(one_proc_may_hold_both_ends),
		cmocka_unit_test(time_goes_on_while_an_event_is_left_waiting),
		cmocka_unit_test(ports_belong_to_one_listener_of_a_host),
		cmocka_unit_test(other_envs_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
