/* SPDX-License-Identifier: Apache-2.0 */
/* Which path is chosen, when it breaks, and when it is used again. One thread. */
#include "tests/unit/paths/paths_rig.h"

#include <poll.h>

#define BROKEN_NS (50 * WF_NS_PER_MS) /* how long a path is left out in a world */

static bool
both_over(struct pair *p, const char *name, const char *client_why, const char *server_why)
{
	return is_over(p->cc, name, client_why) && is_over(p->sc, name, server_why);
}

static bool
same_host(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(both_over(&p, "shm", "same host", "same host"));
	return true;
}

static bool
asked_for_tcp(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(both_over(&p, "tcp", "--transport=tcp", "--transport=tcp"));
	return true;
}

static bool
second_network(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(both_over(&p, "sim2", "both ends have it", "both ends have it"));
	return true;
}

static void
the_best_common_path_is_taken_and_named(void **state)
{
	(void)state;
	run_on("paths", same_host);
	run_on("paths-tcp", asked_for_tcp);
	run_on("paths-sim-auto", second_network);
}

/* From UP to DOWN the calls for a connection go to what carries it, and its transport is polled
 * there; then they come back, and say why nothing is possible. */
static bool
call_what_carries(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	conf_settle(t);
	struct wf_conn *carrier = p.cc->carrier;
	CHECK(carrier != p.cc && carrier->shown == p.cc && p.cc->ops == carrier->transport->ops);
	CHECK(carrier->transport != p.client->transport);
	bool rests = strstr(t->paths, "sim") == NULL; /* nobody notices the other network there */
	CHECK(p.client->transport->active == (rests ? carrier->transport : p.client->transport));
	CHECK(conf_send_all(t, p.cc, 1, 100));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 100));
	wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
	CHECK(p.client->transport->active == p.client->transport);
	CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
	CHECK(p.cc->carrier == p.cc && p.cc->ops == p.client->transport->ops);
	struct wf_head head = {.service = WF_SERVICE_DENSE};
	const struct wf_op op = {.kind = WF_OP_SEND, .head = &head};
	unsigned taken = 0;
	CHECK(wf_transport_post(p.cc, &op, 1, &taken) == WEFT_CLOSED && taken == 0);
	wf_transport_release(p.cc, 0);
	return true;
}

static void
what_carries_is_called_from_up_to_down(void **state)
{
	(void)state;
	run_on("paths-tcp", call_what_carries);
	run_on("paths", call_what_carries);
	run_on("paths-sim-auto", call_what_carries);
	run_on("paths-fault+sim,fault+sim2", call_what_carries);
}

static bool
one_end_tcp_only(struct conf *t)
{
	struct pair p;
	t->paths = "tcp";
	p.server = conf_server(t, NULL);
	t->paths = "auto";
	p.client = conf_node(t, NULL);
	CHECK(p.server != NULL && p.client != NULL && conf_join(t, p.server, p.client, &p));
	CHECK(both_over(&p, "tcp", "peer offers tcp only", "--transport=tcp"));
	struct node *server = conf_server(t, NULL);
	t->paths = "tcp";
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL && conf_join(t, server, client, &p));
	CHECK(both_over(&p, "tcp", "--transport=tcp", "peer allows tcp only"));
	return true;
}

static void
what_one_end_excludes_is_not_taken(void **state)
{
	(void)state;
	run_on("paths", one_end_tcp_only);
}

static bool
only_bootstrap(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(both_over(&p, "sim", "the only one", "the only one"));
	return true;
}

/* The listener cannot open it, and both ends say why. */
static bool
second_missing(struct conf *t)
{
	struct pair p;
	t->paths = "sim,fault(none=1)+sim2";
	p.server = conf_server(t, NULL);
	t->paths = "sim-auto";
	p.client = conf_node(t, NULL);
	CHECK(p.server != NULL && p.client != NULL && conf_join(t, p.server, p.client, &p));
	CHECK(both_over(&p, "sim",
			"peer says: sim2: transport fault: ", "sim2: transport fault: "));
	return true;
}

static void
why_there_is_no_better_path_is_said_at_both_ends(void **state)
{
	(void)state;
	run_on("paths-sim", only_bootstrap);
	run_on("paths-sim-auto", second_missing);
}

static bool
refused_by(struct conf *t, const char *server_paths, const char *client_paths, const char *why)
{
	t->paths = server_paths;
	struct node *server = conf_server(t, NULL);
	t->paths = client_paths;
	struct node *client = conf_node(t, NULL);
	CHECK(server != NULL && client != NULL);
	struct wf_conn *conn = NULL;
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &conn) ==
	      WEFT_OK);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(ended_with(down, WEFT_REFUSED, why) && down->byte_count == 0);
	conf_settle(t);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	struct wf_transport_info info;
	wf_transport_query(server->transport, &info);
	CHECK(info.strangers_refused == 1 && strstr(info.last_stranger, "127.0.0.1") != NULL);
	return true;
}

static bool
demands(struct conf *t)
{
	CHECK(refused_by(t, "tcp", "shm",
			 "--transport=shm here, but the peer uses tcp only; start it with "
			 "--transport=auto or shm"));
	CHECK(refused_by(
		t, "shm", "tcp",
		"the listener demands --transport=shm, the connecting end excludes it; start "
		"both with auto or shm"));
	return true;
}

static void
a_demanded_path_that_is_missing_is_refused_at_once(void **state)
{
	(void)state;
	run_on("paths", demands);
}

/* The path is offered, but cannot be had. */
static bool
refuse_second(struct conf *t)
{
	struct pair p;
	world_of(t)->opts.second_refuse_per_mille = 1000;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(both_over(&p, "sim", "sim2: ", "peer says: sim2: "));
	CHECK(conf_count(p.server, NULL, WF_EVENT_UP) == 1 &&
	      conf_count(p.server, NULL, WF_EVENT_DOWN) == 0);
	CHECK(conf_send_all(t, p.cc, 1, 100));
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 100));
	return true;
}

static void
a_path_that_cannot_be_had_costs_one_more_try(void **state)
{
	(void)state;
	run_on("paths-sim-auto", refuse_second);
}

static bool
cut_and_join(struct conf *t, unsigned net, struct pair *p)
{
	wf_world_cut_net(world_of(t), net, SIM_HOST, SIM_HOST);
	struct seen *down = conf_await(t, p->client, p->cc, WF_EVENT_DOWN);
	CHECK(ended_with(down, WEFT_LOST, SIM_HOST));
	CHECK(conf_await(t, p->server, p->sc, WF_EVENT_DOWN) != NULL);
	CHECK(conf_join(t, p->server, p->client, p));
	return true;
}

/* Go, let some time pass, and come again. */
static bool
join_later(struct conf *t, uint64_t after_ns, struct pair *p)
{
	wf_transport_disconnect(p->cc, WF_DISCONNECT_DRAIN);
	CHECK(ended_with(conf_await(t, p->client, p->cc, WF_EVENT_DOWN), WEFT_CLOSED, ""));
	CHECK(conf_await(t, p->server, p->sc, WF_EVENT_DOWN) != NULL);
	uint64_t until_ns = wf_now_ns(t->env) + after_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
	return conf_join(t, p->server, p->client, p);
}

static bool
break_and_return(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(cut_and_join(t, 1, &p));
	CHECK(both_over(&p, "sim", "sim2 broke 0.", "peer says: sim2 broke 0."));
	struct wf_transport_info info;
	wf_transport_query(p.client->transport, &info);
	CHECK(info.path_count == 2 && info.path[1].conns_broken == 1);
	CHECK(info.path[0].conns_up == 1 && info.path[1].conns_up == 1);
	CHECK(join_later(t, 0, &p) && is_over(p.cc, "sim", "sim2 broke 0."));
	CHECK(join_later(t, BROKEN_NS, &p) && is_over(p.cc, "sim2", ""));
	/* Again, and at once: it is left out for twice as long. */
	CHECK(cut_and_join(t, 1, &p) && is_over(p.cc, "sim", "sim2 broke 0."));
	CHECK(join_later(t, BROKEN_NS * 5 / 4, &p) && is_over(p.cc, "sim", "sim2 broke 0."));
	CHECK(join_later(t, BROKEN_NS, &p) && is_over(p.cc, "sim2", ""));
	return true;
}

static void
a_path_that_broke_is_left_out_for_a_while(void **state)
{
	(void)state;
	run_on("paths-sim-auto", break_and_return);
}

static bool
cut_bootstrap(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(cut_and_join(t, 0, &p));
	CHECK(is_over(p.cc, "sim2", "")); /* nobody blames it */
	struct wf_transport_info info;
	wf_transport_query(p.client->transport, &info);
	CHECK(info.path[1].conns_broken == 0);
	return true;
}

static void
the_end_of_the_bootstrap_is_the_end_of_the_connection(void **state)
{
	(void)state;
	run_on("paths-sim-auto", cut_bootstrap);
}

#define ENDS 20

/* Both connections end, in whatever order the two networks deliver it: it is one orderly end, and
 * all that was sent is there before. */
static bool
drain_often(struct conf *t)
{
	struct pair p;
	p.server = conf_server(t, NULL);
	p.client = conf_node(t, NULL);
	CHECK(p.server != NULL && p.client != NULL);
	for (uint64_t i = 0; i < ENDS; i++) {
		CHECK(conf_join(t, p.server, p.client, &p));
		for (uint64_t k = 0; k < 5; k++) {
			CHECK(conf_send_all(t, p.cc, k, 50));
		}
		wf_transport_disconnect(p.cc, WF_DISCONNECT_DRAIN);
		struct seen *down = conf_await(t, p.server, p.sc, WF_EVENT_DOWN);
		CHECK(ended_with(down, WEFT_CLOSED, ""));
		CHECK(conf_count(p.server, p.sc, WF_EVENT_MSG) == 5);
		CHECK(conf_await(t, p.client, p.cc, WF_EVENT_DOWN) != NULL);
		conf_settle(t);
		conf_forget(p.server);
		conf_forget(p.client);
	}
	return true;
}

static void
an_orderly_end_is_one_through_both_connections(void **state)
{
	(void)state;
	run_on("paths-sim-auto", drain_often);
	run_on("paths", drain_often);
}

static bool
reject(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	struct node *client = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	CHECK(server != NULL && client != NULL);
	CHECK(wf_transport_connect(client->transport, &server->at, "hi", 2, NULL, &conn) ==
	      WEFT_OK);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && up->byte_count == 2 && memcmp(up->bytes, "hi", 2) == 0);
	CHECK(wf_transport_answer(up->conn, false, "no", 2) == WEFT_OK);
	struct seen *down = conf_await(t, client, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_REFUSED && down->byte_count == 2);
	conf_settle(t);
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 1); /* no second try over the bootstrap */
	return true;
}

static void
a_refusal_over_a_path_is_the_users(void **state)
{
	(void)state;
	run_on("paths", reject);
	run_on("paths-sim-auto", reject);
}

static bool
count_paths(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	for (uint64_t i = 0; i < 10; i++) {
		CHECK(conf_send_all(t, p.cc, i, 1000));
	}
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 10));
	struct wf_transport_info info;
	char text[256];
	static const struct wf_path_counts none[WF_PATHS_MAX];
	wf_transport_query(p.client->transport, &info);
	CHECK(info.path_count == 2 && strcmp(info.path[0].name, "tcp") == 0 &&
	      strcmp(info.path[1].name, "shm") == 0);
	CHECK(info.path[1].bytes_sent >= 10000 && info.path[0].bytes_sent < 2000);
	CHECK(info.bytes_sent == info.path[0].bytes_sent + info.path[1].bytes_sent);
	wf_transport_paths_format(&info, none, text, sizeof(text));
	CHECK(strstr(text, " shm_sent_bytes 1") != NULL && strstr(text, " paths_broken 0"));
	return true;
}

static void
bytes_are_counted_by_path(void **state)
{
	(void)state;
	run_on("paths", count_paths);
}

/* Whether an end that has nothing to do says so within a few turns. */
static bool
says_quiet(struct conf *t, struct node *node)
{
	bool quiet = false;
	for (int i = 0; i < 100 && !quiet; i++) {
		uint64_t deadline_ns = 0;
		conf_settle(t);
		quiet = wf_transport_arm(node->transport, &deadline_ns);
	}
	return quiet;
}

/* Over shm and over tcp to one server. */
static bool
never_quiet(struct conf *t)
{
	struct pair p, other;
	CHECK(conf_pair(t, NULL, &p));
	t->paths = "tcp";
	other.client = conf_node(t, NULL);
	CHECK(other.client != NULL && conf_join(t, p.server, other.client, &other));
	CHECK(!says_quiet(t, p.server));
	CHECK(conf_send_all(t, other.cc, 1, 100) && conf_send_all(t, p.cc, 1, 100));
	CHECK(!says_quiet(t, p.server));
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 1));
	CHECK(conf_await_count(t, p.server, other.sc, WF_EVENT_MSG, 1));
	return true;
}

static bool
quiet_at_last(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(says_quiet(t, p.server) && says_quiet(t, p.client));
	CHECK(conf_send_all(t, p.cc, 1, 100));
	CHECK(conf_await_count(t, p.server, p.sc, WF_EVENT_MSG, 1));
	return true;
}

/* One path sleeps on while another is looked at, and may have been posted to since: who takes a
 * quiet arm at its word would leave that lying. If one carries everything, it is that path's own
 * word. */
static void
several_paths_are_never_quiet(void **state)
{
	(void)state;
	run_on("paths", never_quiet);
	run_on("paths", quiet_at_last); /* over shm */
	run_on("paths-tcp", quiet_at_last);
}

/* Arm and poll until a sleep would follow. False: it never would. */
static bool
falls_asleep(struct conf *t, struct node *node, uint64_t *deadline_ns)
{
	struct pollfd fd = {.fd = wf_transport_wait_fd(node->transport), .events = POLLIN};
	bool asleep = false;
	for (int i = 0; i < 10000 && !asleep; i++) {
		(void)wf_transport_arm(node->transport, deadline_ns);
		asleep = conf_poll(t, node) == 0 && poll(&fd, 1, 0) == 0;
	}
	return asleep;
}

/* Somebody comes, and says nothing yet: that has a limit of its own, far below what was due. */
static bool
newcomer_in_an_armed_poll(struct conf *t)
{
	const uint64_t limit_ns = 60 * WF_NS_PER_S;
	const struct wf_transport_opts opts = {.peer_timeout_ns = 3600 * WF_NS_PER_S};
	struct pair p;
	p.server = conf_server(t, &opts);
	t->paths = "tcp";
	p.client = conf_node(t, &opts);
	CHECK(p.server != NULL && p.client != NULL && conf_join(t, p.server, p.client, &p));
	struct wf_conn *second = NULL;
	uint64_t deadline_ns = 0;
	conf_settle(t);
	CHECK(falls_asleep(t, p.server, &deadline_ns));
	CHECK(deadline_ns > wf_now_ns(t->env) + limit_ns);
	CHECK(wf_transport_connect(p.client->transport, &p.server->at, NULL, 0, NULL, &second) ==
	      WEFT_OK);
	CHECK(falls_asleep(t, p.server, &deadline_ns));
	struct pollfd fd = {.fd = wf_transport_wait_fd(p.server->transport), .events = POLLIN};
	for (int i = 0; i < 10 && deadline_ns > wf_now_ns(t->env) + limit_ns; i++) {
		CHECK(poll(&fd, 1, 60000) == 1); /* it was not there yet */
		CHECK(falls_asleep(t, p.server, &deadline_ns));
	}
	CHECK(deadline_ns < wf_now_ns(t->env) + limit_ns);
	return conf_await(t, p.server, NULL, WF_EVENT_UP) != NULL;
}

/* The path sleeps on while the caller arms again; what a poll then begins has its time limit. */
static void
a_deadline_that_begins_in_an_armed_poll_is_told(void **state)
{
	(void)state;
	run_on("paths", newcomer_in_an_armed_poll);
}

/* What comes over any of the paths wakes who sleeps on the one descriptor. */
static bool
wake_over_the_path(struct conf *t)
{
	struct pair p;
	uint64_t deadline_ns = 0;
	CHECK(conf_pair(t, NULL, &p));
	conf_settle(t);
	CHECK(falls_asleep(t, p.server, &deadline_ns));
	struct pollfd fd = {.fd = wf_transport_wait_fd(p.server->transport), .events = POLLIN};
	CHECK(conf_send_all(t, p.cc, 1, 100));
	for (int i = 0; i < 10; i++) {
		(void)conf_poll(t, p.client);
	}
	CHECK(poll(&fd, 1, 60000) == 1);
	CHECK(conf_is_message(conf_await(t, p.server, p.sc, WF_EVENT_MSG), 1, 100));
	return true;
}

static void
a_sleeper_wakes_by_whatever_path_something_comes(void **state)
{
	(void)state;
	run_on("paths", wake_over_the_path);
	run_on("paths-tcp", wake_over_the_path);
}

/* Nothing carries, and nothing is being made: whatever there is, is looked at in each turn. */
static bool
come_to_the_idle(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	t->transport = "sim";
	t->paths = NULL;
	const struct wf_transport_opts opts = {.blob_max = WF_BLOB_ROOM};
	struct node *raw = conf_node(t, &opts);
	CHECK(server != NULL && raw != NULL);
	for (unsigned i = 1; i <= 3; i++) { /* not by chance in the turn that looks anyway */
		const struct wf_path_head head = {.kind = WF_PATH_HELLO};
		uint8_t blob[WF_BLOB_ROOM];
		struct wf_conn *conn = NULL;
		size_t used = wf_path_encode(&head, blob);
		CHECK(wf_transport_connect(raw->transport, &server->at, blob, used, NULL, &conn) ==
		      WEFT_OK);
		for (int n = 0; n < 20; n++) { /* the hello arrives */
			(void)conf_poll(t, raw);
			conf_rest(t);
		}
		(void)conf_poll(t, server);
		CHECK(conf_count(server, NULL, WF_EVENT_UP) == i);
		wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
		CHECK(conf_await_count(t, server, NULL, WF_EVENT_DOWN, i));
		conf_settle(t);
	}
	return true;
}

static void
who_comes_to_an_idle_end_is_seen_in_the_next_turn(void **state)
{
	(void)state;
	run_on("paths-sim-auto", come_to_the_idle);
}

static bool
open_others(struct conf *t)
{
	static const char *const wrong[] = {"", "pigeon", "shm,tcp", "tcp,tcp", "tcp,,shm"};
	for (size_t i = 0; i < WF_ARRAY_COUNT(wrong); i++) {
		struct wf_transport_opts opts = {.env = t->env, .paths = wrong[i]};
		struct wf_transport *none = NULL;
		CHECK(wf_transport_open("paths", &opts, &none) == WEFT_UNSUPPORTED);
		CHECK(strstr(weft_last_error(), "auto, shm, verbs and tcp") != NULL);
	}
	return true;
}

static void
unknown_paths_are_refused_with_those_there_are(void **state)
{
	(void)state;
	run_on("paths", open_others);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_common_path_is_taken_and_named),
		cmocka_unit_test(what_carries_is_called_from_up_to_down),
		cmocka_unit_test(what_one_end_excludes_is_not_taken),
		cmocka_unit_test(why_there_is_no_better_path_is_said_at_both_ends),
		cmocka_unit_test(a_demanded_path_that_is_missing_is_refused_at_once),
		cmocka_unit_test(a_path_that_cannot_be_had_costs_one_more_try),
		cmocka_unit_test(a_path_that_broke_is_left_out_for_a_while),
		cmocka_unit_test(the_end_of_the_bootstrap_is_the_end_of_the_connection),
		cmocka_unit_test(an_orderly_end_is_one_through_both_connections),
		cmocka_unit_test(a_refusal_over_a_path_is_the_users),
		cmocka_unit_test(bytes_are_counted_by_path),
		cmocka_unit_test(several_paths_are_never_quiet),
		cmocka_unit_test(a_deadline_that_begins_in_an_armed_poll_is_told),
		cmocka_unit_test(a_sleeper_wakes_by_whatever_path_something_comes),
		cmocka_unit_test(who_comes_to_an_idle_end_is_seen_in_the_next_turn),
		cmocka_unit_test(unknown_paths_are_refused_with_those_there_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
