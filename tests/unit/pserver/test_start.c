/* SPDX-License-Identifier: Apache-2.0 */
/* A pserver that gets no thread for one of its lanes, when another one has a job already: it ends
 * with that failure, and not because it stopped the job. The linker replaces pthread_create by
 * __wrap_pthread_create. Thread: the test's, and those of lanes. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pserver/server.h"
#include "tests/support/hello.h"
#include "tests/support/peer.h"

#define TURNS_MAX 1000

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

/* A trainer that says its hello and nothing else. */
static struct script script;
static struct peer newcomer;

/* While it is on, all threads but the first that `by` asks for are refused, when the newcomer has
 * been let in. */
static struct {
	bool on;
	unsigned asked;
	pthread_t by;
} refusal;

static void
wait_until_up(void)
{
	for (unsigned i = 0; i < TURNS_MAX && !newcomer.up && !newcomer.down; i++) {
		uint64_t deadline_ns;
		(void)wf_transport_arm(newcomer.transport, &deadline_ns);
		if (peer_poll(&newcomer) == 0) {
			wf_transport_wait(newcomer.transport, deadline_ns);
		}
	}
}

int
__wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	bool counts = refusal.on && pthread_equal(pthread_self(), refusal.by) != 0;
	if (counts && refusal.asked++ > 0) {
		wait_until_up();
		return EAGAIN;
	}
	return __real_pthread_create(out, attr, run, arg);
}

static enum weft_status
recv(struct peer *peer, const struct wf_head *head, const uint8_t *body)
{
	return WEFT_OK;
}

static void
come(struct wf_env *env, uint16_t port)
{
	static const struct peer_ops ops = {.recv = recv};
	script.env = env;
	newcomer.ops = &ops;
	newcomer.to = (struct wf_host){.name = "127.0.0.1", .port = port};
	newcomer.hello = hello_in_order();
	newcomer.hello.lane_count = 2;
	peer_open(&newcomer, &script, "tcp", 4096);
	peer_connect(&newcomer);
}

static void
a_pserver_that_gets_no_thread_ends_with_that_whatever_it_stopped(void **state)
{
	(void)state;
	struct wf_env *env = NULL;
	struct wf_server_opts opts;
	struct wf_server *server = NULL;
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, -1, &env), WEFT_OK);
	wf_server_opts_init(&opts);
	opts.env = env;
	opts.session.transport = "tcp";
	opts.session.ports_num = 2;
	opts.listen.port = 0;
	assert_int_equal(wf_server_create(&opts, &server), WEFT_OK);
	come(env, wf_server_port(server, 0));
	refusal.by = pthread_self();
	refusal.on = true;
	assert_int_equal(wf_server_run(server), WEFT_NOMEM);
	refusal.on = false;
	assert_int_equal(refusal.asked, 2);
	assert_false(newcomer.down);
	assert_string_equal(script.failure, "");
	assert_true(newcomer.up); /* so lane 0 had a job, which had to be stopped */
	assert_non_null(strstr(weft_last_error(), "lane 1: no thread"));
	assert_false(wf_server_ended_job(server));
	peer_close(&newcomer);
	wf_server_destroy(server);
	wf_env_system_destroy(env);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pserver_that_gets_no_thread_ends_with_that_whatever_it_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
