/* SPDX-License-Identifier: Apache-2.0 */
/* A pserver that gets no thread for one of its lanes, when another one has a job already: what it
 * ends with is that, and not that it stopped the job. The linker puts __wrap_pthread_create in the
 * place of pthread_create. Thread: the test's, and those of lanes. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "pserver/server.h"
#include "tests/support/hello.h"
#include "transport/transport.h"

#define TURNS_MAX 1000

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

/* A trainer that says its hello and nothing else. */
static struct newcomer {
	struct wf_transport *transport;
	struct wf_conn *conn;
	bool up;
	char down[WF_WHY_BYTES]; /* why it went down; "": it has not */
} newcomer;

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
	for (unsigned i = 0; i < TURNS_MAX && !newcomer.up; i++) {
		struct wf_event event;
		uint64_t deadline_ns;
		unsigned count = 0;
		(void)wf_transport_arm(newcomer.transport, &deadline_ns);
		WF_ASSERT(wf_transport_poll(newcomer.transport, &event, 1, &count) == WEFT_OK);
		newcomer.up = newcomer.up || (count == 1 && event.kind == WF_EVENT_UP);
		if (count == 1 && event.kind == WF_EVENT_DOWN) {
			(void)snprintf(newcomer.down, sizeof(newcomer.down), "%s", event.down.why);
			return;
		}
		if (count == 0) {
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

static void
come(struct wf_env *env, uint16_t port)
{
	const struct wf_transport_opts opts = {.env = env, .paths = "tcp"};
	struct wf_hello hello = hello_in_order();
	const struct wf_host to = {.name = "127.0.0.1", .port = port};
	uint8_t bytes[WF_HELLO_MAX];
	hello.lane_count = 2;
	size_t used = wf_hello_encode(&hello, bytes);
	assert_int_equal(wf_transport_open("mux", &opts, &newcomer.transport), WEFT_OK);
	assert_int_equal(
		wf_transport_connect(newcomer.transport, &to, bytes, used, NULL, &newcomer.conn),
		WEFT_OK);
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
	opts.transport = "tcp";
	opts.ports_num = 2;
	opts.listen.port = 0;
	assert_int_equal(wf_server_create(&opts, &server), WEFT_OK);
	come(env, wf_server_port(server, 0));
	refusal.by = pthread_self();
	refusal.on = true;
	assert_int_equal(wf_server_run(server), WEFT_NOMEM);
	refusal.on = false;
	assert_int_equal(refusal.asked, 2);
	assert_string_equal(newcomer.down, "");
	assert_true(newcomer.up); /* so lane 0 had a job, which had to be stopped */
	assert_non_null(strstr(weft_last_error(), "lane 1: no thread"));
	assert_false(wf_server_ended_job(server));
	wf_transport_close(newcomer.transport);
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
