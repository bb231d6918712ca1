/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: taken at setup, refused in good order, given back, and left alone in between; and how the
 * transport lets its caller sleep. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

static const struct wf_transport_opts plain = {0};

struct loop {
	struct rig *rig;
	struct wf_conn *out, *in;
	struct wf_grant_key place, slots;
};

/* The transport connected to itself. */
static struct loop
loop_open(void)
{
	struct loop l = {.rig = rig_open(&plain)};
	struct rig *rig = l.rig;
	assert_int_equal(wf_transport_connect(rig->transport, &rig->at, "me", 2, NULL, &l.out),
			 WEFT_OK);
	l.in = rig_await(rig, WF_EVENT_UP, 1)->conn;
	assert_int_equal(wf_transport_answer(l.in, true, NULL, 0), WEFT_OK);
	rig_await(rig, WF_EVENT_UP, 2);
	struct wf_grant place = {.kind = WF_GRANT_PLACE, .region = rig->region, .bytes = 16384};
	struct wf_grant slots = {.kind = WF_GRANT_SLOTS,
				 .region = rig->region,
				 .offset = 16384,
				 .bytes = 4096,
				 .slot_count = 4};
	assert_int_equal(wf_transport_grant(l.in, &place, &l.place), WEFT_OK);
	assert_int_equal(wf_transport_grant(l.out, &slots, &l.slots), WEFT_OK);
	return l;
}

static void
exchange(struct loop *l, uint32_t slot)
{
	struct rig *rig = l->rig;
	struct wf_head head = {.service = WF_SERVICE_DENSE};
	struct wf_op push[2] = {
		{.kind = WF_OP_SEND, .head = &head, .body = rig->memory, .body_bytes = 1000},
		{.kind = WF_OP_PUT,
		 .region = rig->region,
		 .src = rig->memory + 40000,
		 .bytes = 16384,
		 .key = l->place},
	};
	struct wf_op answer = {.kind = WF_OP_PUT,
			       .region = rig->region,
			       .src = rig->memory + 40000,
			       .bytes = 4096,
			       .key = l->slots,
			       .tag = wf_tag(slot, 0)};
	unsigned taken = 0;
	rig->seen_count = 0;
	assert_int_equal(wf_transport_post(l->out, push, 2, &taken), WEFT_OK);
	assert_int_equal(wf_transport_post(l->in, &answer, 1, &taken), WEFT_OK);
	rig_await(rig, WF_EVENT_PUT, 2);
	rig_await(rig, WF_EVENT_DONE, 3);
	rig_await(rig, WF_EVENT_MSG, 1);
	wf_transport_release(l->out, slot);
}

static void
data_path_allocates_nothing(void **state)
{
	(void)state;
	struct loop l = loop_open();
	wf_failing_env_fail(&l.rig->failing, 1, true);
	for (uint32_t i = 0; i < 200; i++) {
		exchange(&l, i);
	}
	assert_int_equal(l.rig->failing.asked, 0);
	wf_failing_env_fail(&l.rig->failing, 0, false);
	rig_close(l.rig);
}

static void
want_of_memory_refuses_a_connection_and_nothing_else(void **state)
{
	(void)state;
	struct loop l = loop_open();
	struct rig *rig = l.rig;
	uint64_t refused = 0;
	for (uint64_t nth = 1; nth < 100; nth++) {
		struct wf_conn *conn = NULL;
		rig->seen_count = 0;
		wf_failing_env_fail(&rig->failing, nth, false);
		enum weft_status st =
			wf_transport_connect(rig->transport, &rig->at, NULL, 0, NULL, &conn);
		if (st == WEFT_OK) {
			/* The accepting end goes without, or it comes up. */
			for (int i = 0; i < 100000 && rig->seen_count == 0; i++) {
				rig_pump(rig);
			}
			assert_true(rig->seen_count > 0);
			wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
		} else {
			assert_int_equal(st, WEFT_NOMEM);
		}
		bool all = rig->failing.failed == 0;
		refused += rig->failing.failed;
		wf_failing_env_fail(&rig->failing, 0, false);
		if (all) {
			break;
		}
		exchange(&l, (uint32_t)nth);
	}
	assert_true(refused >= 6);
	rig_close(rig);
}

static void
transport_that_gets_no_memory_does_not_open(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_transport_opts opts = {.env = &rig->env};
	struct wf_transport *none = NULL;
	wf_failing_env_fail(&rig->failing, 1, false);
	assert_int_equal(wf_transport_open("tcp", &opts, &none), WEFT_NOMEM);
	assert_null(none);
	wf_failing_env_fail(&rig->failing, 0, false);
	rig_close(rig);
}

static void
idle_transport_lets_its_caller_sleep(void **state)
{
	(void)state;
	struct loop l = loop_open();
	exchange(&l, 0);
	bool sleeps = false;
	for (int i = 0; i < 100 && !sleeps; i++) {
		rig_pump(l.rig);
		sleeps = rig_would_sleep(l.rig);
	}
	assert_true(sleeps);
	struct wf_head head = {.service = WF_SERVICE_DENSE};
	struct wf_op op = {.kind = WF_OP_SEND, .head = &head};
	unsigned taken = 0;
	assert_int_equal(wf_transport_post(l.out, &op, 1, &taken), WEFT_OK);
	assert_false(rig_would_sleep(l.rig));
	rig_close(l.rig);
}

static void
backend_that_is_not_built_in_is_unsupported(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_transport_opts opts = {.env = &rig->env};
	struct wf_transport *none = NULL;
	assert_int_equal(wf_transport_open("pigeon", &opts, &none), WEFT_UNSUPPORTED);
	assert_non_null(strstr(weft_last_error(), "pigeon"));
	assert_non_null(strstr(weft_last_error(), "tcp"));
	opts.op_max = 1u << 20;
	assert_int_equal(wf_transport_open("tcp", &opts, &none), WEFT_INVALID);
	rig_close(rig);
}

static void
regions_are_bounded(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_region region = {.base = rig->memory, .bytes = 1, .memfd = -1};
	uint32_t id[WF_REGIONS_MAX];
	for (unsigned i = 1; i < WF_REGIONS_MAX; i++) {
		assert_int_equal(wf_transport_region_add(rig->transport, &region, &id[i]), WEFT_OK);
	}
	assert_int_equal(wf_transport_region_add(rig->transport, &region, &id[0]), WEFT_NOMEM);
	wf_transport_region_remove(rig->transport, id[5]);
	assert_int_equal(wf_transport_region_add(rig->transport, &region, &id[0]), WEFT_OK);
	region.bytes = 0;
	assert_int_equal(wf_transport_region_add(rig->transport, &region, &id[0]), WEFT_INVALID);
	rig_close(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_path_allocates_nothing),
		cmocka_unit_test(want_of_memory_refuses_a_connection_and_nothing_else),
		cmocka_unit_test(transport_that_gets_no_memory_does_not_open),
		cmocka_unit_test(idle_transport_lets_its_caller_sleep),
		cmocka_unit_test(backend_that_is_not_built_in_is_unsupported),
		cmocka_unit_test(regions_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
