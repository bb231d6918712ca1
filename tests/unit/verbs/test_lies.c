/* SPDX-License-Identifier: Apache-2.0 */
/* The backend on devices that lie: each test is something that a kind of real device does, or that
 * happens to it, and that soft devices do not show. In a simulated world. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "fake.h"
#include "tests/conformance/conformance.h"
#include "transport/verbs/verbs_internal.h"

static void
on(const char *url, bool (*body)(struct conf *t))
{
	const char *seed = getenv("WEFT_SEED");
	assert_true(conf_run(url, seed != NULL ? strtoull(seed, NULL, 0) : 1, body));
}

static void
pass(struct conf *t, uint64_t span_ns)
{
	uint64_t until_ns = wf_now_ns(t->env) + span_ns;
	while (wf_now_ns(t->env) < until_ns) {
		conf_pump(t);
	}
}

/* ---- what a keepalive carries ---- */

/* After a message, so that something stands where the next work request will. */
static bool
idle_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	CHECK(conf_send_all(t, p.cc, 1, 300));
	CHECK(conf_send_all(t, p.sc, 1, 300));
	pass(t, 30 * WF_NS_PER_S);
	CHECK(conf_count(p.client, p.cc, WF_EVENT_DOWN) == 0);
	CHECK(conf_count(p.server, p.sc, WF_EVENT_DOWN) == 0);
	return conf_send_all(t, p.cc, 2, 300) &&
	       conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL && fake_seen.stale == 0;
}

static void
idle_connection_stays_where_devices_take_a_piece_that_is_none(void **state)
{
	on("fake-irdma", idle_body);
}

/* ---- queues that cannot be read ---- */

static bool
poll_error_body(struct conf *t)
{
	struct pair p;
	CHECK(conf_pair(t, NULL, &p));
	uint64_t begin_ns = wf_now_ns(t->env);
	fake_break_polls();
	const struct seen *down = conf_await(t, p.client, p.cc, WF_EVENT_DOWN);
	CHECK(down != NULL && down->status == WEFT_LOST);
	CHECK(strstr(down->why, "fake0: a completion queue cannot be read (ibv_poll_cq: -2)") !=
	      NULL);
	CHECK(conf_await(t, p.server, p.sc, WF_EVENT_DOWN) != NULL);
	CHECK(wf_now_ns(t->env) - begin_ns < WF_NS_PER_S);
	/* It is left: who connects now opens it anew. */
	return conf_join(t, p.server, p.client, &p) && conf_send_all(t, p.cc, 1, 300) &&
	       conf_await(t, p.server, p.sc, WF_EVENT_MSG) != NULL;
}

static void
device_whose_queue_cannot_be_read_is_named_and_left(void **state)
{
	on("fake-kind", poll_error_body);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_connection_stays_where_devices_take_a_piece_that_is_none),
		cmocka_unit_test(device_whose_queue_cannot_be_read_is_named_and_left),
	};
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
