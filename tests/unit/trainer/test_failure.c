/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of a session: what it remembers of an ABORT, and what its own ABORT says. A
 * core without links, so nothing is sent. Thread: the test's. */
#include "tests/unit/trainer/fabric.h"

#include "trainer/session/core.h"

#define OWN_ID 7u
#define STEP 12u

struct fixture {
	struct wf_core core;
	struct wf_link link;
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, 2, &f->core.end.env), WEFT_OK);
	f->core.opts.trainer_id = OWN_ID;
	f->core.step.number = STEP;
	f->link.end = &f->core.end;
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;
	wf_env_system_destroy(f->core.end.env);
	free(f);
	return 0;
}

/* A lane sends it. */
static void
recv_abort(struct fixture *f, const char *who, enum weft_status status, const char *reason)
{
	struct wf_msg_abort abort = {.status = (uint16_t)status, .step = 3};
	struct wf_msg msg;
	(void)snprintf(abort.who, sizeof(abort.who), "%s", who);
	(void)snprintf(abort.reason, sizeof(abort.reason), "%s", reason);
	wf_msg_abort_encode(&abort, &msg);
	const struct wf_event event = {.kind = WF_EVENT_MSG,
				       .msg = {.head = &msg.head, .body = msg.body}};
	assert_int_equal(wf_core_end_ops.control(&f->link, &event), WEFT_OK);
}

/* What the session says to all lanes. */
static void
expect_abort(struct fixture *f, const char *who, enum weft_status status, const char *reason)
{
	struct wf_msg_abort said;
	wf_failure_encode(&f->core);
	const struct wf_msg *msg = &f->core.end.msg;
	assert_int_equal(wf_msg_abort_decode(&msg->head, msg->body, &said), WEFT_OK);
	assert_string_equal(said.who, who);
	assert_int_equal(said.status, status);
	assert_string_equal(said.reason, reason);
	assert_int_equal(said.step, STEP);
}

static void
an_abort_is_passed_on_in_the_name_of_who_reported_it(void **state)
{
	struct fixture *f = *state;
	recv_abort(f, "trainer 2", WEFT_DATA, "line 7 of data.csv is no number");
	assert_true(wf_core_failed(&f->core));
	assert_string_equal(f->core.failure.text, "line 7 of data.csv is no number");
	expect_abort(f, "trainer 2", WEFT_DATA, "line 7 of data.csv is no number");
}

static void
a_failure_of_its_own_is_reported_in_its_own_name(void **state)
{
	struct fixture *f = *state;
	wf_core_fail(&f->core, WEFT_TIMEOUT, "pserver %u is not there", 1u);
	expect_abort(f, "trainer 7", WEFT_TIMEOUT, "pserver 1 is not there");
}

static void
the_first_failure_and_its_reporter_stay(void **state)
{
	struct fixture *f = *state;
	recv_abort(f, "pserver 0 lane 1", WEFT_UNAVAILABLE, "the first cause");
	recv_abort(f, "trainer 3", WEFT_DATA, "what came later");
	wf_core_fail(&f->core, WEFT_INTERNAL, "what came last");
	expect_abort(f, "pserver 0 lane 1", WEFT_UNAVAILABLE, "the first cause");
}

static void
who_reports_later_is_not_named_for_a_failure_of_its_own(void **state)
{
	struct fixture *f = *state;
	wf_core_fail(&f->core, WEFT_PROTOCOL, "the first cause");
	recv_abort(f, "trainer 3", WEFT_DATA, "what came later");
	expect_abort(f, "trainer 7", WEFT_PROTOCOL, "the first cause");
}

#define failure(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		failure(an_abort_is_passed_on_in_the_name_of_who_reported_it),
		failure(a_failure_of_its_own_is_reported_in_its_own_name),
		failure(the_first_failure_and_its_reporter_stay),
		failure(who_reports_later_is_not_named_for_a_failure_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
