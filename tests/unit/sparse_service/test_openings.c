/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what opens a path on the trainer's side, GRANT and HAVE: each invalid one costs the
 * connection. */
#include "tests/unit/sparse_service/ground.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
grant_twice(struct doll *doll)
{
	const struct wf_msg_grant grant = {.kind = WF_GRANT_WIRE_PLACE, .bytes = 1};
	struct wf_msg msg;
	wf_msg_grant_encode(&grant, &msg);
	peer_send(&doll->peer, &msg);
}

static void
grant_of_slots(struct doll *doll)
{
	const struct wf_msg_grant grant = {
		.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 1, .bytes = 1, .held_bytes = 1};
	struct wf_msg msg;
	wf_msg_grant_encode(&grant, &msg);
	peer_send(&doll->peer, &msg);
}

static void
have_twice(struct doll *doll)
{
	doll_have(doll, WF_STEP_NONE, WF_STEP_NONE);
}

/* A new path, on which the doll has said nothing. */
static void
reconnect(struct doll *doll)
{
	peer_disconnect(&doll->peer, WF_DISCONNECT_NOW);
	ground_settle(doll->ground);
	peer_connect(&doll->peer);
	ground_settle(doll->ground);
}

static void
send_have(struct doll *doll, const struct wf_msg_steps *have)
{
	struct wf_msg msg;
	reconnect(doll);
	wf_msg_have_encode(have, &msg);
	peer_send(&doll->peer, &msg);
}

static void
have_of_no_unit(struct doll *doll)
{
	send_have(doll, &(struct wf_msg_steps){.last = true});
}

static void
have_of_two_units(struct doll *doll)
{
	send_have(doll, &(struct wf_msg_steps){.last = true, .count = 2});
}

static void
have_of_another_unit(struct doll *doll)
{
	send_have(doll, &(struct wf_msg_steps){.last = true, .first = 1, .count = 1});
}

static void
have_that_goes_on(struct doll *doll)
{
	send_have(doll, &(struct wf_msg_steps){.count = 1});
}

static void
have_of_more_than_was_begun(struct doll *doll)
{
	reconnect(doll);
	doll_have(doll, 4, 5);
}

static void
have_of_what_was_never_begun(struct doll *doll)
{
	reconnect(doll);
	doll_have(doll, WF_STEP_NONE, 0);
}

static void
grant_of_state(struct doll *doll)
{
	peer_grant_place(&doll->peer, 1, 0, 64);
}

static const struct {
	void (*act)(struct doll *doll);
	const char *says;
} offences[] = {
	{grant_twice, "which has granted it before"},
	{grant_of_slots, "GRANT: kind 1 (place 0 of 1) from a trainer"},
	{grant_of_state, "GRANT: kind 2 (place 1 of 1) from a trainer"},
	{have_twice, "HAVE: units 0 and 1 more, the last, 1 of 1 are there, and no more"},
	{have_of_no_unit, "HAVE: units 0 and 0 more, the last, 0 of 1"},
	{have_of_two_units, "HAVE: units 0 and 2 more, the last, 0 of 1"},
	{have_of_another_unit, "HAVE: units 1 and 1 more, the last, 0 of 1"},
	{have_that_goes_on, "HAVE: units 0 and 1 more, 0 of 1"},
	{have_of_more_than_was_begun, "HAVE says that step 5 was applied, but 4 is the last"},
	{have_of_what_was_never_begun, "HAVE says that step 0 was applied, but 18446744073709551"},
};

static void
a_wrong_opening_costs_the_connection_and_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(offences) / sizeof(offences[0]); i++) {
		ground_offend(i, offences[i].act, offences[i].says);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_opening_costs_the_connection_and_is_told),
	};
	return cmocka_run_group_tests_name("sparse_service_openings", tests, NULL, NULL);
}
