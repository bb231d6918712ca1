/* SPDX-License-Identifier: Apache-2.0 */
/* How connections end when it is not the peer's backend that ends them: processes that are killed,
 * links that are cut, devices that are taken away. Nothing may abort, all that was lent comes back.
 * Thread: one, and a process that is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define PUTS 12u
#define PUT_BYTES (1u << 20)
#define HASTY "retry=1,ack_timeout=14"

/* Something is lent at the client when the end comes. */
static bool
keep_busy(struct conf *t, const struct pair *p)
{
	struct wf_grant_key key;
	CHECK(conf_grant_place(p->server, p->sc, 0, PUT_BYTES, &key));
	for (unsigned i = 0; i < PUTS; i++) {
		struct wf_op put = conf_put_op(p->client, &key, 0, PUT_BYTES, i);
		CHECK(conf_post_all(t, p->cc, &put));
	}
	return true;
}

static bool
cut(const char *netdev)
{
	const char *words[] = {"tc",   "qdisc", "add",  "dev",  netdev,
			       "root", "netem", "loss", "100%", NULL};
	return rig_command(words) == 0;
}

static bool
heal(const char *netdev)
{
	const char *words[] = {"tc", "qdisc", "del", "dev", netdev, "root", NULL};
	return rig_command(words) == 0;
}

/* ---- processes ---- */

/* In the child: connect, say so, and wait to be killed. */
static bool
child_body(struct conf *t)
{
	const char *port = getenv("CHILD_PORT");
	struct node *client = rig_node(t, "", NULL, NULL);
	CHECK(client != NULL && port != NULL);
	struct wf_host at = {.name = "10.9.0.1", .port = (uint16_t)strtoul(port, NULL, 10)};
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &at, NULL, 0, NULL, &conn) == WEFT_OK);
	CHECK(conf_await(t, client, conn, WF_EVENT_UP) != NULL);
	struct wf_grant_key key;
	CHECK(conf_grant_place(client, conn, 0, 8 * PUT_BYTES, &key));
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = &key, .body_bytes = sizeof(key)};
	CHECK(conf_post(conn, &op));
	for (;;) {
		conf_pump(t);
	}
}

static bool
killed_body(struct conf *t)
{
	struct node *server = rig_node(t, "", "10.9.0.1", NULL);
	CHECK(server != NULL);
	char port[8];
	(void)snprintf(port, sizeof(port), "%u", server->at.port);
	CHECK(setenv("CHILD_PORT", port, 1) == 0);
	const char *words[] = {"/proc/self/exe", NULL};
	pid_t pid = rig_command_start(words);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL);
	struct wf_conn *sc = up->conn;
	CHECK(wf_transport_answer(sc, true, NULL, 0) == WEFT_OK);
	struct seen *msg = conf_await(t, server, sc, WF_EVENT_MSG);
	CHECK(msg != NULL && msg->byte_count == sizeof(struct wf_grant_key));
	struct wf_grant_key key;
	memcpy(&key, msg->bytes, sizeof(key));
	for (unsigned i = 0; i < PUTS; i++) {
		struct wf_op put = conf_put_op(server, &key, 0, PUT_BYTES, i);
		CHECK(conf_post_all(t, sc, &put));
	}
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	CHECK(rig_down(t, server, sc) == WEFT_LOST);
	CHECK(conf_is_done_once(server, sc, PUTS));
	CHECK(unsetenv("CHILD_PORT") == 0);
	return true;
}

/* ---- links ---- */

static bool
pair_across(struct conf *t, const char *settings, const struct wf_transport_opts *opts,
	    struct pair *p)
{
	char client_settings[96];
	(void)snprintf(client_settings, sizeof(client_settings), "device=rxe1,%s", settings);
	struct node *server = rig_node(t, settings, "10.9.2.1", opts);
	struct node *client = rig_node(t, client_settings, NULL, opts);
	CHECK(server != NULL && client != NULL);
	return rig_join(t, server, client, p);
}

static bool
black_hole_body(struct conf *t)
{
	struct pair p;
	CHECK(pair_across(t, HASTY, NULL, &p));
	CHECK(keep_busy(t, &p));
	CHECK(cut("e1") && cut("e2"));
	enum weft_status client = rig_down(t, p.client, p.cc);
	bool done = conf_is_done_once(p.client, p.cc, PUTS);
	CHECK(heal("e1") && heal("e2"));
	CHECK(client == WEFT_TIMEOUT && done);
	return true;
}

/* Nobody has anything to say, and both learn that the other is gone. */
static bool
idle_black_hole_body(struct conf *t)
{
	struct wf_transport_opts opts = {.peer_timeout_ns = 2 * WF_NS_PER_S};
	struct pair p;
	CHECK(pair_across(t, HASTY, &opts, &p));
	CHECK(cut("e1") && cut("e2"));
	enum weft_status client = rig_down(t, p.client, p.cc);
	enum weft_status server = rig_down(t, p.server, p.sc);
	CHECK(heal("e1") && heal("e2"));
	CHECK(client == WEFT_TIMEOUT && server == WEFT_TIMEOUT);
	return true;
}

/* The kernel would send it again, but after more than 4 s: too late for this attempt. */
static bool
lost_request_body(struct conf *t)
{
	struct wf_transport_opts opts = {.connect_timeout_ns = 4 * WF_NS_PER_S};
	struct node *server = rig_node(t, "", "10.9.2.1", &opts);
	struct node *client = rig_node(t, "device=rxe1", NULL, &opts);
	struct pair p = {.server = server, .client = client};
	CHECK(server != NULL && client != NULL);
	CHECK(cut("e1"));
	CHECK(wf_transport_connect(client->transport, &server->at, NULL, 0, NULL, &p.cc) ==
	      WEFT_OK);
	uint64_t until_ns = wf_now_ns(t->env) + opts.connect_timeout_ns / 4;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
	CHECK(heal("e1"));
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	CHECK(conf_await(t, client, p.cc, WF_EVENT_UP) != NULL);
	return conf_send_all(t, p.cc, 1, 100);
}

/* An idle connection whose peer answers stays as it is. */
static bool
idle_body(struct conf *t)
{
	struct wf_transport_opts opts = {.peer_timeout_ns = 400 * WF_NS_PER_MS};
	struct pair p;
	CHECK(pair_across(t, "", &opts, &p));
	uint64_t until_ns = wf_now_ns(t->env) + 3 * opts.peer_timeout_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
	CHECK(conf_send_all(t, p.cc, 1, 100));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 100));
	return true;
}

/* Into the network namespace; the threads that are there already stay where they are. */
static bool
enter(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
	(void)(fd < 0 || close(fd));
	return entered;
}

/* siw1 here and siw2 in the namespace "far", which is as good as another host. */
static bool
pair_iwarp(struct conf *t, const struct wf_transport_opts *opts, struct pair *p)
{
	t->transport = "paths";
	t->paths = "tcp,verbs";
	struct node *server = rig_node(t, "", "10.8.1.1", opts);
	CHECK(server != NULL);
	CHECK(enter("/run/netns/far"));
	struct node *client = rig_node(t, "", NULL, opts);
	bool joined = client != NULL && rig_join(t, server, client, p);
	CHECK(enter("/proc/1/ns/net"));
	return joined;
}

/* There the device does not tell, but the bootstrap's keepalive does. */
static bool
idle_iwarp_body(struct conf *t)
{
	const char *cut_far[] = {"ip",  "netns", "exec", "far",   "tc",   "qdisc", "add",
				 "dev", "w2",    "root", "netem", "loss", "100%",  NULL};
	const char *heal_far[] = {"ip",  "netns", "exec", "far",  "tc", "qdisc",
				  "del", "dev",   "w2",   "root", NULL};
	struct wf_transport_opts opts = {.peer_timeout_ns = 2 * WF_NS_PER_S};
	struct pair p;
	CHECK(pair_iwarp(t, &opts, &p));
	struct wf_path_info path;
	wf_transport_path(p.cc, &path);
	CHECK(strcmp(path.name, "verbs") == 0);
	uint64_t until_ns = wf_now_ns(t->env) + 2 * opts.peer_timeout_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
	CHECK(cut("w1") && rig_command(cut_far) == 0);
	enum weft_status client = rig_down(t, p.client, p.cc);
	enum weft_status server = rig_down(t, p.server, p.sc);
	CHECK(heal("w1") && rig_command(heal_far) == 0);
	CHECK(client == WEFT_TIMEOUT && server == WEFT_TIMEOUT);
	return true;
}

/* So many PUTs and messages over a link that e1 does `words` to. */
static bool
poor_link(struct conf *t, const char *const *words, uint64_t count)
{
	struct pair p;
	struct wf_grant_key key;
	CHECK(pair_across(t, "ack_timeout=14", NULL, &p));
	CHECK(conf_grant_place(p.server, p.sc, 0, count * 10000, &key));
	CHECK(rig_command(words) == 0);
	bool sent = true;
	for (uint64_t i = 0; i < count && sent; i++) {
		conf_fill(p.client->memory + i * 10000, 10000, i);
		struct wf_op put = conf_put_op(p.client, &key, i * 10000, 10000, i);
		put.offset = i * 10000;
		sent = conf_post_all(t, p.cc, &put) && conf_send_all(t, p.cc, 100 + i, 500);
	}
	bool came = sent && conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, (unsigned)count);
	CHECK(heal("e1"));
	CHECK(came && conf_count(p.server, p.sc, WF_EVENT_PUT) == count);
	for (uint64_t i = 0; i < count; i++) {
		CHECK(conf_is_filled(p.server->memory + i * 10000, 10000, i));
	}
	return true;
}

static bool
lossy_body(struct conf *t)
{
	const char *words[] = {"tc",    "qdisc", "add",   "dev",  "e1",   "root", "netem",
			       "delay", "1ms",   "500us", "loss", "0.5%", NULL};
	return poor_link(t, words, 100);
}

/* Each packet out of turn is one sent again, so it takes its time. */
static bool
reordering_body(struct conf *t)
{
	const char *words[] = {"tc",    "qdisc", "add", "dev",     "e1", "root",
			       "netem", "delay", "1ms", "reorder", "5%", NULL};
	return poor_link(t, words, 15);
}

/* ---- devices ---- */

/* As who reconnects: an emulated connection manager may be busy for as long as an attempt lasts. */
static bool
join_again(struct conf *t, struct node *server, struct node *client, struct pair *out)
{
	for (unsigned i = 0; i < 3; i++) {
		if (rig_join(t, server, client, out)) {
			return true;
		}
		fprintf(stderr, "attempt %u did not come through\n", i + 1);
		conf_forget(server);
		conf_forget(client);
	}
	return false;
}

static bool
removed_body(struct conf *t)
{
	const char *removal[] = {"rdma", "link", "delete", "rxe4", NULL};
	const char *back[] = {"rdma", "link", "add", "rxe4", "type", "rxe", "netdev", "e4", NULL};
	struct node *server = rig_node(t, "", "10.9.4.1", NULL);
	/* It has the time of the default: the removal takes longer than HASTY on a busy machine. */
	struct node *client = rig_node(t, "device=rxe3", NULL, NULL);
	CHECK(server != NULL && client != NULL);
	struct pair p;
	CHECK(rig_join(t, server, client, &p));
	CHECK(keep_busy(t, &p));
	pid_t pid = rig_command_start(removal);
	enum weft_status sc = rig_down(t, p.server, p.sc);
	enum weft_status cc = rig_down(t, p.client, p.cc);
	CHECK(rig_command_wait(t, pid) == 0);
	CHECK(rig_command(back) == 0);
	CHECK(sc == WEFT_LOST && (cc == WEFT_LOST || cc == WEFT_TIMEOUT));
	CHECK(conf_is_done_once(p.client, p.cc, PUTS));
	conf_forget(server);
	conf_forget(client);
	server->at.port = 0;
	CHECK(wf_transport_listen(server->transport, &server->at, &server->at.port) == WEFT_OK);
	CHECK(join_again(t, server, client, &p));
	CHECK(conf_send_all(t, p.cc, 1, 100));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 100));
	return true;
}

static bool
link_down_body(struct conf *t)
{
	const char *down[] = {"ip", "link", "set", "e1", "down", NULL};
	const char *devices = getenv("GUEST_DEVICES");
	const char *up[] = {"sh", devices, "netdev", "1", NULL};
	struct pair p;
	CHECK(devices != NULL);
	CHECK(pair_across(t, HASTY, NULL, &p));
	CHECK(keep_busy(t, &p));
	CHECK(rig_command(down) == 0);
	enum weft_status st = rig_down(t, p.client, p.cc);
	bool done = conf_is_done_once(p.client, p.cc, PUTS);
	CHECK(rig_command(up) == 0);
	CHECK((st == WEFT_TIMEOUT || st == WEFT_LOST) && done);
	return true;
}

/* Nothing gets through for a moment, and the retries are not used up: nobody above hears of it. */
static bool
moment_body(struct conf *t)
{
	struct pair p;
	CHECK(pair_across(t, "", NULL, &p));
	CHECK(keep_busy(t, &p));
	CHECK(cut("e1"));
	for (unsigned i = 0; i < 20; i++) {
		conf_pump(t);
	}
	CHECK(heal("e1"));
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_PUT, PUTS));
	CHECK(conf_await_count(t, p.client, p.cc, WF_EVENT_DONE, PUTS));
	CHECK(conf_is_done_once(p.client, p.cc, PUTS));
	return conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0;
}

static void
killed_peer_is_lost_and_gives_back_what_was_lent(void **state)
{
	assert_true(rig_run(killed_body));
}

static void
peer_behind_a_black_hole_times_out(void **state)
{
	assert_true(rig_run(black_hole_body));
}

static void
idle_ends_learn_that_the_other_is_gone(void **state)
{
	assert_true(rig_run(idle_black_hole_body));
}

static void
request_that_is_lost_is_made_once_more(void **state)
{
	assert_true(rig_run(lost_request_body));
}

static void
idle_connection_of_a_living_peer_stays(void **state)
{
	assert_true(rig_run(idle_body));
}

static void
lossy_link_loses_nothing(void **state)
{
	assert_true(rig_run(lossy_body));
}

static void
idle_ends_learn_that_the_other_is_gone_over_iwarp(void **state)
{
	if (!rig_has("siw2")) {
		skip();
	}
	assert_true(rig_run(idle_iwarp_body));
}

static void
link_that_is_cut_for_a_moment_loses_nothing(void **state)
{
	assert_true(rig_run(moment_body));
}

static void
link_that_reorders_loses_nothing(void **state)
{
	assert_true(rig_run(reordering_body));
}

static void
removed_device_ends_its_connections_and_may_come_back(void **state)
{
	assert_true(rig_run(removed_body));
}

static void
link_that_goes_down_ends_its_connections(void **state)
{
	assert_true(rig_run(link_down_body));
}

/* argv[1]: a pattern of the tests to run. */
int
main(int argc, char **argv)
{
	if (!rig_has("rxe4")) {
		return 77;
	}
	if (getenv("CHILD_PORT") != NULL) {
		return rig_run(child_body) ? 0 : 1;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_peer_is_lost_and_gives_back_what_was_lent),
		cmocka_unit_test(request_that_is_lost_is_made_once_more),
		cmocka_unit_test(idle_connection_of_a_living_peer_stays),
		cmocka_unit_test(lossy_link_loses_nothing),
		cmocka_unit_test(link_that_reorders_loses_nothing),
		cmocka_unit_test(peer_behind_a_black_hole_times_out),
		cmocka_unit_test(idle_ends_learn_that_the_other_is_gone),
		cmocka_unit_test(removed_device_ends_its_connections_and_may_come_back),
		cmocka_unit_test(idle_ends_learn_that_the_other_is_gone_over_iwarp),
		cmocka_unit_test(link_that_is_cut_for_a_moment_loses_nothing),
		cmocka_unit_test(link_that_goes_down_ends_its_connections),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
