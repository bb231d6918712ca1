/* SPDX-License-Identifier: Apache-2.0 */
/* How the simulated network breaks: cuts, kills, refusals, and what lands meanwhile. WEFT_SEED
 * picks the first seed of those tests that try many. One thread. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/sim/transfer.h"

/* A server that watches the place of a client that was cut off in mid-PUT. */
static int
run_watcher(struct wf_env *env, void *arg)
{
	struct node *server = arg;
	struct wf_host at = {.name = "0.0.0.0", .port = PORT};
	uint16_t port = 0;
	if (open_node(server, env) != WEFT_OK ||
	    wf_transport_listen(server->transport, &at, &port) != WEFT_OK) {
		return 1;
	}
	while (server->downs == 0) {
		if (poll_node(server) == 0) {
			wf_wait(env, -1, WF_NEVER);
		}
	}
	look_for_early_bytes(server);
	uint8_t before[ITEM_COUNT * ITEM_BYTES];
	memcpy(before, server->slab.base, sizeof(before));
	uint64_t end_ns = wf_now_ns(env) + WF_NS_PER_S;
	while (wf_now_ns(env) < end_ns) {
		wf_wait(env, -1, end_ns);
	}
	const uint8_t *after = server->slab.base;
	for (size_t i = 0; i < sizeof(before); i++) {
		server->after_down += before[i] != after[i];
	}
	close_node(server);
	return 0;
}

struct saboteur {
	struct wf_world *world;
	const struct node *server;
	struct wf_proc *victim; /* NULL: cut */
	uint64_t at_ns;
};

/* Strikes in the middle of the transfer. */
static int
run_saboteur(struct wf_env *env, void *arg)
{
	struct saboteur *s = arg;
	while (s->server->puts < 3) {
		wf_wait(env, -1, wf_now_ns(env) + 50 * WF_NS_PER_US);
	}
	s->at_ns = wf_now_ns(env);
	if (s->victim != NULL) {
		wf_world_kill(s->world, s->victim);
	} else {
		wf_world_cut(s->world, "client", "server");
	}
	return 0;
}

static void
puts_without_event_land_in_part_until_down(void **state)
{
	unsigned early = 0;
	unsigned partial = 0;
	for (uint64_t seed = first_seed(); seed < first_seed() + 50; seed++) {
		struct wf_world_opts opts = calm;
		opts.seed = seed;
		opts.split_per_mille = 1000;
		opts.down_delay_max_ns = 2 * WF_NS_PER_MS;
		struct wf_world *world = world_of(opts);
		struct node server = {0};
		struct node client = {.server_host = "server", .attempts_max = 1};
		struct saboteur cutter = {.world = world, .server = &server};
		struct wf_proc *watcher = spawn(world, "server", 0, run_watcher, &server);
		spawn(world, "client", 0, run_client, &client);
		spawn(world, "elsewhere", 0, run_saboteur, &cutter);
		assert_run(world, seed);
		assert_returned(watcher, seed);
		assert_true(server.down_status == WEFT_LOST || server.puts == ITEM_COUNT);
		assert_int_equal(server.after_down, 0);
		early += server.early;
		partial += server.partial;
		wf_world_destroy(world);
	}
	assert_true(early > 0);
	assert_true(partial > 0);
}

static void
ends_notice_a_cut_at_different_times(void **state)
{
	unsigned server_first = 0;
	unsigned client_first = 0;
	for (uint64_t seed = first_seed(); seed < first_seed() + 100; seed++) {
		struct wf_world_opts opts = calm;
		opts.seed = seed;
		opts.down_delay_max_ns = 3 * WF_NS_PER_MS;
		struct wf_world *world = world_of(opts);
		struct node server = {0};
		struct node client = {.server_host = "server", .attempts_max = 1};
		struct saboteur cutter = {.world = world, .server = &server};
		spawn(world, "server", 0, run_watcher, &server);
		spawn(world, "client", 0, run_client, &client);
		spawn(world, "elsewhere", 0, run_saboteur, &cutter);
		assert_run(world, seed);
		/* Else the transfer was over before anybody noticed. */
		if (server.down_status == WEFT_LOST && client.down_status == WEFT_LOST) {
			server_first += server.down_ns < client.down_ns;
			client_first += client.down_ns < server.down_ns;
		}
		wf_world_destroy(world);
	}
	assert_true(server_first > 0);
	assert_true(client_first > 0);
}

static void
a_killed_proc_resets_its_connections(void **state)
{
	for (uint64_t seed = first_seed(); seed < first_seed() + 30; seed++) {
		struct wf_world_opts opts = rough(seed);
		opts.cut_per_million = 0;
		opts.refuse_per_mille = 0;
		struct wf_world *world = world_of(opts);
		struct node server = {0};
		struct node client = {.server_host = "server", .attempts_max = 1};
		struct wf_proc *watcher = spawn(world, "server", 0, run_watcher, &server);
		struct wf_proc *victim = spawn(world, "client", 0, run_client, &client);
		struct saboteur killer = {.world = world, .server = &server, .victim = victim};
		spawn(world, "elsewhere", 0, run_saboteur, &killer);
		assert_run(world, seed);
		assert_returned(watcher, seed);
		assert_int_equal(server.down_status, WEFT_LOST);
		assert_non_null(strstr(server.why, "client:"));
		assert_true(server.down_ns >= killer.at_ns);
		assert_int_equal(server.after_down, 0);
		wf_world_destroy(world);
	}
}

static void
nobody_listens_where_a_proc_was_killed(void **state)
{
	struct wf_world *world = world_of(calm);
	struct node server = {0};
	struct node client = {.server_host = "server", .attempts_max = 1};
	struct node late = {0};
	struct wf_proc *victim = spawn(world, "server", 0, run_server, &server);
	spawn(world, "client", 20 * WF_NS_PER_MS, run_client, &client);
	wf_world_kill_at(world, victim, 10 * WF_NS_PER_MS);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(client.ups, 0);
	assert_int_equal(client.down_status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(client.why, "server:7000"));

	/* Its successor finds the port free. */
	client = (struct node){.server_host = "server", .attempts_max = 1};
	struct wf_proc *successor = spawn(world, "server", 0, run_server, &late);
	struct wf_proc *again = spawn(world, "client", 0, run_client, &client);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_returned(successor, 1);
	assert_returned(again, 1);
	assert_true(client.thanked);
	wf_world_destroy(world);
}

static void
refused_connects_are_unavailable(void **state)
{
	struct wf_world_opts opts = calm;
	opts.refuse_per_mille = 1000;
	struct wf_world *world = world_of(opts);
	struct node server = {0};
	struct node client = {.server_host = "server", .attempts_max = 5};
	struct wf_proc *listening = spawn(world, "server", 0, run_server, &server);
	spawn(world, "client", 0, run_client, &client);
	wf_world_kill_at(world, listening, WF_NS_PER_S);
	assert_int_equal(wf_world_run(world, WF_NEVER), WEFT_OK);
	assert_int_equal(client.downs, 5);
	assert_int_equal(client.down_status, WEFT_UNAVAILABLE);
	assert_int_equal(server.ups, 0);
	struct wf_world_stats stats;
	wf_world_stats(world, &stats);
	assert_int_equal(stats.refusals, 5);
	wf_world_destroy(world);
}

/* --- programmers' errors, and peers that break the rules --- */

/* Connects, waits for the key, PUTs once, then does what `arg` says. */
struct culprit {
	struct node node;
	uint64_t offset; /* of the PUT in the place */
	bool writes_to_lent;
	bool removes_lent;
};

static int
run_culprit(struct wf_env *env, void *arg)
{
	struct culprit *c = arg;
	struct node *node = &c->node;
	if (open_node(node, env) != WEFT_OK) {
		return 1;
	}
	begin_attempt(node);
	while (!node->has_key) {
		if (poll_node(node) == 0) {
			wf_wait(env, -1, WF_NEVER);
		}
	}
	struct wf_op op = {.kind = WF_OP_PUT,
			   .cookie = 1,
			   .region = node->region,
			   .src = node->slab.base,
			   .bytes = ITEM_BYTES,
			   .key = node->key,
			   .offset = c->offset,
			   .tag = wf_tag(0, 1)};
	memset(node->slab.base, item_byte(0), ITEM_BYTES);
	if (wf_transport_post(node->conn, &op, 1, &node->posted) != WEFT_OK) {
		return 2;
	}
	if (c->writes_to_lent) {
		memset(node->slab.base, 0, ITEM_BYTES);
	}
	if (c->removes_lent) {
		wf_transport_region_remove(node->transport, node->region);
	}
	while (node->downs == 0 && node->dones == 0) {
		wf_wait(env, -1, WF_NEVER);
		(void)poll_node(node);
	}
	while (node->downs == 0 && c->offset > 0) {
		wf_wait(env, -1, WF_NEVER);
		(void)poll_node(node);
	}
	close_node(node);
	return 0;
}

static void
run_against_watcher(uint64_t seed, struct culprit *culprit, struct node *server)
{
	struct wf_world_opts opts = calm;
	opts.seed = seed;
	struct wf_world *world = world_of(opts);
	culprit->node.server_host = "server";
	struct wf_proc *watcher = spawn(world, "server", 0, run_watcher, server);
	struct wf_proc *client = spawn(world, "client", 0, run_culprit, culprit);
	assert_run(world, seed);
	assert_returned(watcher, seed);
	assert_returned(client, seed);
	wf_world_destroy(world);
}

static void
a_sender_that_breaks_the_rules_may_learn_why_or_be_reset(void **state)
{
	unsigned told = 0;
	unsigned reset = 0;
	for (uint64_t seed = first_seed(); seed < first_seed() + 40; seed++) {
		struct culprit culprit = {.offset = ITEM_COUNT * ITEM_BYTES - 1};
		struct node server = {0};
		run_against_watcher(seed, &culprit, &server);
		assert_int_equal(server.down_status, WEFT_PROTOCOL);
		assert_int_equal(server.early, 0);
		told += culprit.node.down_status == WEFT_PROTOCOL;
		reset += culprit.node.down_status == WEFT_LOST;
	}
	assert_true(told > 0 && reset > 0);
	assert_int_equal(told + reset, 40);
}

/* cmocka catches no SIGABRT, but whoever started us may. */
static bool
takes_aborts(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	return sigaction(SIGABRT, &action, NULL) == 0;
}

/* The run aborts: in a process of its own. */
static void
assert_aborts(struct culprit culprit)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int null_fd = open("/dev/null", O_WRONLY);
		struct node server = {0};
		if (null_fd < 0 || dup2(null_fd, 2) < 0 || !takes_aborts()) {
			_exit(3);
		}
		run_against_watcher(1, &culprit, &server);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void
writing_to_a_lent_buffer_ends_the_run(void **state)
{
	assert_aborts((struct culprit){.writes_to_lent = true});
}

static void
removing_a_lent_region_ends_the_run(void **state)
{
	assert_aborts((struct culprit){.removes_lent = true});
}

static void
a_culprit_that_does_nothing_wrong_ends_well(void **state)
{
	struct culprit culprit = {0};
	struct node server = {0};
	run_against_watcher(1, &culprit, &server);
	assert_int_equal(culprit.node.dones_lost, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_without_event_land_in_part_until_down),
		cmocka_unit_test(ends_notice_a_cut_at_different_times),
		cmocka_unit_test(a_killed_proc_resets_its_connections),
		cmocka_unit_test(nobody_listens_where_a_proc_was_killed),
		cmocka_unit_test(refused_connects_are_unavailable),
		cmocka_unit_test(a_sender_that_breaks_the_rules_may_learn_why_or_be_reset),
		cmocka_unit_test(a_culprit_that_does_nothing_wrong_ends_well),
		cmocka_unit_test(writing_to_a_lent_buffer_ends_the_run),
		cmocka_unit_test(removing_a_lent_region_ends_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
