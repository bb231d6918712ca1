/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes: one that is killed, one of another user, one in another network namespace.
 * Thread: one per process. */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/paths/paths_rig.h"

#define NOBODY 65534
#define SKIPPED 77
#define MESSAGES 100u

static struct wf_host server_at; /* for the child */
static bool (*child_body)(struct conf *t);
static const char *child_paths;

/* Runs `body` as a node of its own. It ends with 0 if that said so, with SKIPPED or 1. */
static pid_t
spawn(const struct node *server, const char *paths, bool (*body)(struct conf *t))
{
	server_at = server->at;
	child_body = body;
	child_paths = paths;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		_exit(conf_run("paths", 1, child_body) ? 0 : 1);
	}
	return pid;
}

static int
exit_code_of(pid_t pid)
{
	int status = 0;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool
come_up(struct conf *t, struct node **out, struct wf_conn **conn)
{
	t->paths = child_paths;
	*out = conf_node(t, NULL);
	CHECK(*out != NULL);
	CHECK(wf_transport_connect((*out)->transport, &server_at, "hi", 2, NULL, conn) == WEFT_OK);
	CHECK(conf_await(t, *out, *conn, WF_EVENT_UP) != NULL);
	return true;
}

/* Say all that, make sure that it is on its way, and die. */
static bool
die_speaking(struct conf *t)
{
	struct node *n = NULL;
	struct wf_conn *conn = NULL;
	CHECK(come_up(t, &n, &conn) && is_over(conn, "shm", "same host"));
	for (uint64_t i = 0; i < MESSAGES; i++) {
		CHECK(conf_send_all(t, conn, i, 40));
	}
	CHECK(conf_await_count(t, n, conn, WF_EVENT_DONE, MESSAGES));
	kill(getpid(), SIGKILL);
	return false;
}

static bool
hear_the_dead(struct conf *t)
{
	struct node *server = conf_server(t, NULL);
	CHECK(server != NULL);
	pid_t pid = spawn(server, "auto", die_speaking);
	CHECK(pid > 0);
	struct seen *up = conf_await(t, server, NULL, WF_EVENT_UP);
	CHECK(up != NULL && wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
	struct wf_conn *conn = up->conn;
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	/* From here on the bootstrap's end is there to be seen, and so is what was published. */
	struct seen *down = conf_await(t, server, conn, WF_EVENT_DOWN);
	CHECK(ended_with(down, WEFT_LOST, "127.0.0.1"));
	CHECK(conf_count(server, conn, WF_EVENT_MSG) == MESSAGES);
	for (unsigned i = 0; i < MESSAGES; i++) {
		CHECK(conf_is_message(conf_nth(server, conn, WF_EVENT_MSG, i), i, 40));
	}
	return true;
}

static void
what_a_killed_process_had_published_is_delivered(void **state)
{
	(void)state;
	run_on("paths", hear_the_dead);
}

static bool
be_nobody(struct conf *t)
{
	struct node *n = NULL;
	struct wf_conn *conn = NULL;
	gid_t group = NOBODY;
	if (setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		_exit(SKIPPED);
	}
	CHECK(come_up(t, &n, &conn) && is_over(conn, "tcp", "have no group in common"));
	CHECK(conf_send_all(t, conn, 1, 100));
	CHECK(conf_await(t, n, conn, WF_EVENT_DOWN) != NULL);
	return true;
}

static bool
be_elsewhere(struct conf *t)
{
	struct node *n = NULL;
	struct wf_conn *conn = NULL;
	/* The sockets of the transport stay where they are; what is opened later is elsewhere. */
	t->paths = child_paths;
	n = conf_node(t, NULL);
	CHECK(n != NULL);
	CHECK(wf_transport_connect(n->transport, &server_at, "hi", 2, NULL, &conn) == WEFT_OK);
	if (unshare(CLONE_NEWNET) != 0) {
		_exit(SKIPPED);
	}
	/* The bootstrap's socket is the old namespace's; its verdict sends this end to memory that
	 * is not there, and back to an address that is not there either. */
	struct seen *down = conf_await(t, n, conn, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_UNAVAILABLE);
	return true;
}

static bool
demand_as_nobody(struct conf *t)
{
	gid_t group = NOBODY;
	if (setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		_exit(SKIPPED);
	}
	t->paths = child_paths;
	struct node *n = conf_node(t, NULL);
	struct wf_conn *conn = NULL;
	CHECK(n != NULL);
	CHECK(wf_transport_connect(n->transport, &server_at, "hi", 2, NULL, &conn) == WEFT_OK);
	struct seen *down = conf_await(t, n, conn, WF_EVENT_DOWN);
	CHECK(ended_with(down, WEFT_REFUSED, "--transport=shm, but shm: "));
	CHECK(ended_with(down, WEFT_REFUSED, "no group in common"));
	return true;
}

static int child_code;

static bool
serve_child(struct conf *t, const char *paths, bool (*body)(struct conf *t), const char *why)
{
	struct node *server = conf_server(t, NULL);
	CHECK(server != NULL);
	pid_t pid = spawn(server, paths, body);
	CHECK(pid > 0);
	if (why != NULL) {
		uint64_t limit_ns = wf_now_ns(t->env) + 60 * WF_NS_PER_S;
		while (conf_count(server, NULL, WF_EVENT_UP) == 0 && wf_now_ns(t->env) < limit_ns &&
		       waitpid(pid, &child_code, WNOHANG) == 0) {
			conf_pump(t);
		}
		struct seen *up = conf_nth(server, NULL, WF_EVENT_UP, 0);
		if (up == NULL) { /* it has ended: skipped, or failed */
			child_code = WIFEXITED(child_code) ? WEXITSTATUS(child_code) : -1;
			return true;
		}
		CHECK(is_over(up->conn, "tcp", why));
		CHECK(wf_transport_answer(up->conn, true, NULL, 0) == WEFT_OK);
		CHECK(conf_await(t, server, up->conn, WF_EVENT_MSG) != NULL);
		wf_transport_disconnect(up->conn, WF_DISCONNECT_DRAIN);
		CHECK(conf_await(t, server, up->conn, WF_EVENT_DOWN) != NULL);
		child_code = exit_code_of(pid);
		return true;
	}
	while (waitpid(pid, &child_code, WNOHANG) == 0) {
		conf_pump(t);
	}
	child_code = WIFEXITED(child_code) ? WEXITSTATUS(child_code) : -1;
	CHECK(conf_count(server, NULL, WF_EVENT_UP) == 0);
	return true;
}

static bool
serve_nobody(struct conf *t)
{
	return serve_child(t, "auto", be_nobody, "have no group in common");
}

static bool
serve_demand(struct conf *t)
{
	return serve_child(t, "shm", demand_as_nobody, NULL);
}

static bool
serve_elsewhere(struct conf *t)
{
	return serve_child(t, "auto", be_elsewhere, NULL);
}

static void
run_with_child(bool (*body)(struct conf *t))
{
	run_on("paths", body);
	if (child_code == SKIPPED) {
		skip();
	}
	assert_int_equal(child_code, 0);
}

static void
users_without_a_common_group_use_tcp(void **state)
{
	(void)state;
	run_with_child(serve_nobody);
}

static void
a_demand_that_the_users_cannot_meet_is_refused_with_the_reason(void **state)
{
	(void)state;
	run_with_child(serve_demand);
}

static void
a_peer_that_cannot_be_reached_again_is_unavailable(void **state)
{
	(void)state;
	run_with_child(serve_elsewhere);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_killed_process_had_published_is_delivered),
		cmocka_unit_test(users_without_a_common_group_use_tcp),
		cmocka_unit_test(a_demand_that_the_users_cannot_meet_is_refused_with_the_reason),
		cmocka_unit_test(a_peer_that_cannot_be_reached_again_is_unavailable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
