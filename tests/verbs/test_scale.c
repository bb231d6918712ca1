/* SPDX-License-Identifier: Apache-2.0 */
/* Many peers on one lane, many lives one after the other, and what is left behind: nothing.
 * Thread: one, and processes that are killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define PEERS 80u /* more than share one set of queues */
#define CYCLES 40u
#define CYCLES_LONG 500u /* with WEFT_LONG */
#define KILLS 3u
#define KILLS_LONG 500u
#define LEFT_BYTES 4096u /* of memory, that allocators may keep over so many lives */
#define RESOURCES_BYTES 4096

/* What this machine has of queue pairs, regions and so on, as text. */
static bool
count_resources(char out[RESOURCES_BYTES])
{
	const char *words[] = {"rdma", "resource", "show", NULL};
	int fd = memfd_create("resources", MFD_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(rig_command_output(words, fd) == 0);
	ssize_t n = pread(fd, out, RESOURCES_BYTES - 1, 0);
	(void)close(fd);
	CHECK(n > 0);
	out[n] = '\0';
	return true;
}

static unsigned
count_descriptors(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (dir != NULL && readdir(dir) != NULL) {
		count++;
	}
	(void)(dir == NULL || closedir(dir));
	return count;
}

static bool
many_peers(struct conf *t, const char *settings)
{
	struct node *server = rig_node(t, settings, "10.9.0.1", NULL);
	struct node *client = rig_node(t, settings, NULL, NULL);
	CHECK(server != NULL && client != NULL);
	static struct pair pair[PEERS];
	static struct wf_grant_key key[PEERS];
	for (uint64_t i = 0; i < PEERS; i++) {
		CHECK(rig_join(t, server, client, &pair[i]));
		CHECK(conf_grant_place(server, pair[i].sc, i * 1000, 1000, &key[i]));
		conf_fill(client->memory + i * 1000, 1000, i);
	}
	for (uint64_t i = 0; i < PEERS; i++) {
		struct wf_op put = conf_put_op(client, &key[i], i * 1000, 1000, i);
		CHECK(conf_post_all(t, pair[i].cc, &put));
		CHECK(conf_send_all(t, pair[i].cc, i, 200));
		CHECK(conf_send_all(t, pair[i].sc, 1000 + i, 300));
	}
	CHECK(conf_await_count(t, server, NULL, WF_EVENT_MSG, PEERS));
	CHECK(conf_await_count(t, client, NULL, WF_EVENT_MSG, PEERS));
	CHECK(conf_count(server, NULL, WF_EVENT_PUT) == PEERS);
	for (uint64_t i = 0; i < PEERS; i++) {
		CHECK(conf_is_filled(server->memory + i * 1000, 1000, i));
		wf_transport_disconnect(pair[i].cc, WF_DISCONNECT_DRAIN);
	}
	CHECK(conf_await_count(t, server, NULL, WF_EVENT_DOWN, PEERS));
	CHECK(conf_await_count(t, client, NULL, WF_EVENT_DOWN, PEERS));
	return true;
}

static bool
many_peers_body(struct conf *t)
{
	return many_peers(t, "");
}

static bool
many_peers_bare_body(struct conf *t)
{
	return many_peers(t, "imm=off,mw=off");
}

/* A connection that is ended while bytes are under way, one end or the other, in good order or not.
 */
static bool
one_life(struct conf *t, struct node *server, struct node *client, unsigned number)
{
	struct pair p;
	struct wf_grant_key key;
	conf_forget(server);
	conf_forget(client);
	CHECK(rig_join(t, server, client, &p));
	CHECK(conf_grant_place(server, p.sc, 0, 1u << 20, &key));
	for (unsigned i = 0; i < 3; i++) {
		struct wf_op put = conf_put_op(client, &key, 0, 1u << 20, i);
		CHECK(conf_post_all(t, p.cc, &put));
		CHECK(conf_send_all(t, p.sc, i, 1000));
	}
	wf_transport_disconnect(number % 2 == 0 ? p.cc : p.sc,
				number % 3 == 0 ? WF_DISCONNECT_DRAIN : WF_DISCONNECT_NOW);
	CHECK(conf_await(t, client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_await(t, server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_is_done_once(client, p.cc, 3));
	return true;
}

/* A shared queue keeps the buffers of as many connections as there were at a time, and one may
 * begin before the one before it is freed. */
static bool
two_at_a_time(struct conf *t, struct node *server, struct node *client)
{
	struct pair p[2];
	CHECK(rig_join(t, server, client, &p[0]) && rig_join(t, server, client, &p[1]));
	CHECK(rig_warm(t, &p[0]));
	for (int i = 0; i < 2; i++) {
		wf_transport_disconnect(p[i].cc, WF_DISCONNECT_NOW);
		CHECK(conf_await(t, client, p[i].cc, WF_EVENT_DOWN) != NULL);
		CHECK(conf_await(t, server, p[i].sc, WF_EVENT_DOWN) != NULL);
	}
	return true;
}

static bool
lives(struct conf *t, const char *settings)
{
	static char before[RESOURCES_BYTES], after[RESOURCES_BYTES];
	const unsigned cycles = getenv("WEFT_LONG") == NULL ? CYCLES : CYCLES_LONG;
	struct node *server = rig_node(t, settings, "10.9.0.1", NULL);
	struct node *client = rig_node(t, settings, NULL, NULL);
	CHECK(server != NULL && client != NULL);
	CHECK(two_at_a_time(t, server, client));
	CHECK(one_life(t, server, client, 0));
	conf_settle(t);
	CHECK(count_resources(before));
	unsigned descriptors = count_descriptors();
	size_t bytes = mallinfo2().uordblks;
	for (unsigned i = 0; i < cycles; i++) {
		CHECK(one_life(t, server, client, i));
	}
	conf_forget(server);
	conf_forget(client);
	conf_settle(t);
	CHECK(mallinfo2().uordblks <= bytes + LEFT_BYTES);
	CHECK(count_resources(after));
	if (strcmp(before, after) != 0) {
		fprintf(stderr, "before:\n%safter:\n%s", before, after);
		return false;
	}
	CHECK(count_descriptors() == descriptors);
	return true;
}

/* ---- killed processes ---- */

/* In the child: connect, give and take without end, until it is killed. */
static bool
child_body(struct conf *t)
{
	const char *port = getenv("CHILD_PORT");
	struct node *client = rig_node(t, getenv("CHILD_SETTINGS"), NULL, NULL);
	CHECK(client != NULL && port != NULL);
	struct wf_host at = {.name = "10.9.0.1", .port = (uint16_t)strtoul(port, NULL, 10)};
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &at, NULL, 0, NULL, &conn) == WEFT_OK);
	CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
	for (uint64_t i = 0;; i++) {
		CHECK(conf_send_all(t, conn, i, 1000));
		conf_pump(t);
		conf_forget(client);
	}
}

static bool
one_kill(struct conf *t, struct node *server)
{
	const char *words[] = {"/proc/self/exe", NULL};
	conf_forget(server);
	pid_t pid = rig_command_start(words);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	CHECK(conf_send_all(t, sc, 1, 1000));
	for (uint64_t i = wf_rng_below(&t->rng, 100); i > 0; i--) {
		conf_pump(t);
	}
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	return conf_await(t, server, sc, WF_EVENT_DOWN) != NULL;
}

static bool
kills(struct conf *t, const char *settings)
{
	static char before[RESOURCES_BYTES], after[RESOURCES_BYTES];
	const unsigned count = getenv("WEFT_LONG") == NULL ? KILLS : KILLS_LONG;
	char port[8];
	struct node *server = rig_node(t, settings, "10.9.0.1", NULL);
	CHECK(server != NULL);
	(void)snprintf(port, sizeof(port), "%u", server->at.port);
	CHECK(setenv("CHILD_PORT", port, 1) == 0);
	CHECK(setenv("CHILD_SETTINGS", settings, 1) == 0);
	struct node *client = rig_node(t, settings, NULL, NULL);
	CHECK(client != NULL && two_at_a_time(t, server, client));
	conf_node_close(t, &t->node[--t->node_count]);
	CHECK(one_kill(t, server) && one_kill(t, server));
	conf_settle(t);
	conf_forget(server);
	CHECK(count_resources(before));
	unsigned descriptors = count_descriptors();
	size_t bytes = mallinfo2().uordblks;
	for (unsigned i = 0; i < count; i++) {
		CHECK(one_kill(t, server));
	}
	conf_forget(server);
	conf_settle(t);
	CHECK(count_resources(after));
	CHECK(strcmp(before, after) == 0);
	CHECK(count_descriptors() == descriptors);
	CHECK(mallinfo2().uordblks <= bytes + LEFT_BYTES);
	return unsetenv("CHILD_PORT") == 0;
}

static bool
kills_body(struct conf *t)
{
	return kills(t, "");
}

static bool
kills_bare_body(struct conf *t)
{
	return kills(t, "imm=off,mw=off");
}

static bool
lives_body(struct conf *t)
{
	return lives(t, "");
}

static bool
lives_bare_body(struct conf *t)
{
	return lives(t, "imm=off,mw=off");
}

/* With all transports closed not even the devices are open any more. */
static bool
closed_body(struct conf *t)
{
	static char before[RESOURCES_BYTES], after[RESOURCES_BYTES];
	unsigned descriptors = count_descriptors();
	CHECK(count_resources(before));
	struct node *server = rig_node(t, "", "10.9.0.1", NULL);
	struct node *client = rig_node(t, "", NULL, NULL);
	CHECK(server != NULL && client != NULL);
	CHECK(one_life(t, server, client, 1));
	struct pair p;
	CHECK(rig_join(t, server, client, &p));
	conf_node_close(t, client);
	conf_node_close(t, server);
	CHECK(count_resources(after));
	CHECK(strcmp(before, after) == 0);
	/* librdmacm keeps what it has opened for itself. */
	CHECK(count_descriptors() <= descriptors + 2);
	return true;
}

static bool
memlock_body(struct conf *t)
{
	const struct rlimit little = {.rlim_cur = 1u << 20, .rlim_max = RLIM_INFINITY};
	const struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	struct node *server = rig_node(t, "", "10.8.0.1", NULL);
	struct node *client = rig_node(t, "", NULL, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(setrlimit(RLIMIT_MEMLOCK, &little) == 0);
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &conn) ==
	      WEFT_OK);
	const struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(setrlimit(RLIMIT_MEMLOCK, &all) == 0);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	CHECK(strstr(down->why, "the limit is 1024 KiB") != NULL);
	struct pair p;
	return rig_join(t, server, client, &p);
}

static void
many_peers_share_one_lane(void **state)
{
	assert_true(rig_run(many_peers_body));
}

static void
many_peers_share_one_lane_without_windows(void **state)
{
	assert_true(rig_run(many_peers_bare_body));
}

static void
many_lives_leave_nothing_behind(void **state)
{
	assert_true(rig_run(lives_body));
}

static void
many_lives_leave_nothing_behind_without_windows(void **state)
{
	assert_true(rig_run(lives_bare_body));
}

static void
killed_peers_leave_nothing_behind(void **state)
{
	assert_true(rig_run(kills_body));
}

static void
killed_peers_leave_nothing_behind_without_windows(void **state)
{
	assert_true(rig_run(kills_bare_body));
}

static void
closed_transports_leave_nothing_behind(void **state)
{
	assert_true(rig_run(closed_body));
}

static void
too_little_locked_memory_is_said(void **state)
{
	if (!rig_has("siw0")) {
		skip(); /* others do not count what a privileged process locks */
	}
	assert_true(rig_run(memlock_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe0")) {
		return 77;
	}
	if (getenv("CHILD_PORT") != NULL) {
		return rig_run(child_body) ? 0 : 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_peers_share_one_lane),
		cmocka_unit_test(many_peers_share_one_lane_without_windows),
		cmocka_unit_test(many_lives_leave_nothing_behind),
		cmocka_unit_test(many_lives_leave_nothing_behind_without_windows),
		cmocka_unit_test(killed_peers_leave_nothing_behind),
		cmocka_unit_test(killed_peers_leave_nothing_behind_without_windows),
		cmocka_unit_test(closed_transports_leave_nothing_behind),
		cmocka_unit_test(too_little_locked_memory_is_said),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
