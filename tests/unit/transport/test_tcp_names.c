/* SPDX-License-Identifier: Apache-2.0 */
/* Names that no name server of a test has: one of many addresses, one that takes its time. What
 * tcp asks the system is asked here. Thread: the test's, and one that looks a name up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/resolver.h"
#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

static void
a_name_of_many_addresses_is_listened_on_at_the_first_of_them(void **state)
{
	const struct wf_transport_opts plain = {0};
	struct rig *rig = rig_open(&plain);
	const struct wf_transport_opts opts = {.env = &rig->env};
	struct wf_transport *second = NULL;
	struct wf_host at = {.name = "many"};
	(void)state;
	assert_int_equal(wf_transport_open("tcp", &opts, &second), WEFT_OK);
	assert_int_equal(wf_transport_listen(second, &at, &at.port), WEFT_OK);
	for (unsigned i = 0; i < RESOLVER_MANY; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in to = resolver_loopback(i, at.port);
		int result = connect(fd, (struct sockaddr *)&to, sizeof(to));
		assert_int_equal(result, i < WF_DOORS_MAX ? 0 : -1);
		close(fd);
	}
	wf_transport_close(second);
	rig_close(rig);
}

/* Who connects to it hears nothing at all. */
static int
listen_silently(uint16_t *port)
{
	struct sockaddr_in at = resolver_loopback(0, 0);
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	raw_fall_silent(fd);
	*port = ntohs(at.sin_port);
	return fd;
}

static void
a_name_that_is_looked_up_for_too_long_is_told_from_a_host_that_is_silent(void **state)
{
	const struct wf_transport_opts opts = {.connect_timeout_ns = 3600 * WF_NS_PER_S};
	const char *const name[] = {"slow", "silent"};
	const char *const text[] = {"the name was not looked up within 3600000 ms",
				    "not connected within 3600000 ms"};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig *rig = rig_open(&opts);
		struct wf_host to = {0};
		int silent = listen_silently(&to.port);
		struct wf_conn *conn = NULL;
		(void)snprintf(to.name, sizeof(to.name), "%s", name[i]);
		resolver_hold(true);
		assert_int_equal(wf_transport_connect(rig->transport, &to, NULL, 0, NULL, &conn),
				 WEFT_OK);
		const struct wf_tcp_conn *c = (const struct wf_tcp_conn *)conn;
		/* The thread that looks it up takes its time. */
		bool looks_up = true;
		for (int n = 0; n < 50 || (n < 100000 && i == 1 && looks_up); n++) {
			rig_pump(rig);
			looks_up = c->look_up != NULL;
		}
		assert_int_equal(c->life.state, WF_LIFE_CONNECTING);
		assert_int_equal(c->look_up != NULL, i == 0);
		assert_int_equal(rig->seen_count, 0);
		rig->ahead_ns += 3601 * WF_NS_PER_S;
		struct rig_seen *down = rig_await(rig, WF_EVENT_DOWN, 1);
		resolver_hold(false);
		assert_int_equal(down->status, WEFT_TIMEOUT);
		assert_non_null(strstr(down->why, text[i]));
		close(silent);
		rig_close(rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_of_many_addresses_is_listened_on_at_the_first_of_them),
		cmocka_unit_test(
			a_name_that_is_looked_up_for_too_long_is_told_from_a_host_that_is_silent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
