/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of places: a trainer's end grants them over a transport that accepts as much as the test
 * allows, and a lane's end receives what was sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "exchange/places.h"
#include "transport/ops.h"

#define PLACES 3u

static enum weft_status grant_says; /* of the transport */
static unsigned room;               /* messages that it takes */
static unsigned granted;
static struct wf_grant last_grant;
static unsigned sent;
static struct wf_msg_grant sent_grant[PLACES];

static enum weft_status
fake_grant(struct wf_conn *conn, const struct wf_grant *grant, struct wf_grant_key *out)
{
	(void)conn;
	if (grant_says != WEFT_OK) {
		return wf_fail(grant_says, "as the test says");
	}
	last_grant = *grant;
	memset(out->bytes, (int)++granted, sizeof(out->bytes));
	return WEFT_OK;
}

static enum weft_status
fake_post(struct wf_conn *conn, const struct wf_op *op, unsigned op_count, unsigned *taken)
{
	(void)conn;
	assert_int_equal(op_count, 1);
	assert_int_equal(op->cookie, 0);
	*taken = room > 0 ? 1 : 0;
	if (room == 0) {
		return WEFT_AGAIN;
	}
	struct wf_head head = *op->head;
	head.body_bytes = op->body_bytes;
	assert_true(sent < PLACES);
	assert_int_equal(wf_msg_grant_decode(&head, op->body, &sent_grant[sent++]), WEFT_OK);
	room--;
	return WEFT_OK;
}

static const struct wf_transport_ops fake = {.grant = fake_grant, .post = fake_post};
static struct wf_transport transport = {.ops = &fake};
static struct wf_conn conn = {.transport = &transport, .ops = &fake, .carrier = &conn};
static struct wf_answer_grants grants;
static struct wf_answer_places known;

static const struct wf_answer_place place[PLACES] = {{4, 100}, {5, 200}, {9, 1ull << 40}};

static enum weft_status
send_places(unsigned count)
{
	static struct wf_msg msg;
	return wf_answer_places_send(&grants, &conn, place, count, &msg);
}

static int
set_up(void **state)
{
	(void)state;
	grants = (struct wf_answer_grants){0};
	known = (struct wf_answer_places){0};
	grant_says = WEFT_OK;
	room = 100;
	granted = 0;
	sent = 0;
	return 0;
}

static void
assert_refused(enum weft_status st, const char *text)
{
	assert_int_equal(st, WEFT_PROTOCOL);
	assert_non_null(strstr(weft_last_error(), text));
}

static void
every_place_is_granted_and_known_to_the_lane(void **state)
{
	(void)state;
	assert_int_equal(send_places(PLACES), WEFT_OK);
	assert_int_equal(granted, PLACES);
	assert_int_equal(sent, PLACES);
	assert_int_equal(last_grant.kind, WF_GRANT_PLACE);
	assert_int_equal(last_grant.region, 9);
	assert_true(last_grant.offset == 0 && last_grant.bytes == 1ull << 40);
	for (unsigned i = 0; i < PLACES; i++) {
		assert_false(wf_answer_places_has(&known, i));
		assert_int_equal(wf_answer_places_recv(&known, &sent_grant[i], PLACES), WEFT_OK);
		assert_true(wf_answer_places_has(&known, i));
		assert_true(known.bytes[i] == place[i].bytes);
		assert_int_equal(known.key[i].bytes[0], i + 1);
	}
	assert_int_equal(send_places(PLACES), WEFT_OK); /* nothing is left to be said */
	assert_int_equal(sent, PLACES);
}

static void
a_place_that_could_not_be_sent_is_not_granted_again(void **state)
{
	(void)state;
	room = 1;
	assert_int_equal(send_places(PLACES), WEFT_AGAIN);
	assert_int_equal(granted, 2);
	assert_int_equal(sent, 1);
	room = 2;
	assert_int_equal(send_places(PLACES), WEFT_OK);
	assert_int_equal(granted, PLACES);
	assert_int_equal(sent, PLACES);
	assert_int_equal(sent_grant[1].key[0], 2);
	assert_int_equal(sent_grant[2].key[0], 3);
}

static void
a_connection_on_its_way_down_is_no_failure(void **state)
{
	(void)state;
	grant_says = WEFT_CLOSED;
	assert_int_equal(send_places(1), WEFT_AGAIN);
	assert_int_equal(sent, 0);
}

static void
a_place_that_cannot_be_granted_is_one(void **state)
{
	(void)state;
	grant_says = WEFT_NOMEM;
	assert_int_equal(send_places(1), WEFT_NOMEM);
	assert_int_equal(sent, 0);
}

static void
what_is_no_place_of_a_lane_is_refused(void **state)
{
	struct wf_msg_grant msg = {.kind = WF_GRANT_WIRE_SLOTS, .slot_count = 1, .bytes = 64};
	(void)state;
	assert_refused(wf_answer_places_recv(&known, &msg, PLACES), "GRANT: kind 1 (place 0 of 3)");
	msg = (struct wf_msg_grant){.kind = WF_GRANT_WIRE_PLACE, .place = PLACES, .bytes = 64};
	assert_refused(wf_answer_places_recv(&known, &msg, PLACES), "GRANT: kind 2 (place 3 of 3)");
	msg.place = UINT8_MAX;
	assert_refused(wf_answer_places_recv(&known, &msg, PLACES),
		       "GRANT: kind 2 (place 255 of 3)");
	assert_int_equal(known.known, 0);
}

static void
a_place_is_granted_once_on_a_path(void **state)
{
	struct wf_msg_grant msg = {
		.kind = WF_GRANT_WIRE_PLACE, .place = 1, .bytes = 64, .key = {1}};
	(void)state;
	assert_int_equal(wf_answer_places_recv(&known, &msg, PLACES), WEFT_OK);
	msg.key[0] = 2;
	assert_refused(wf_answer_places_recv(&known, &msg, PLACES), "which has granted it before");
	assert_int_equal(known.key[1].bytes[0], 1);
	known = (struct wf_answer_places){0}; /* DOWN */
	assert_int_equal(wf_answer_places_recv(&known, &msg, PLACES), WEFT_OK);
	assert_int_equal(known.key[1].bytes[0], 2);
}

#define fresh(name) cmocka_unit_test_setup(name, set_up)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		fresh(every_place_is_granted_and_known_to_the_lane),
		fresh(a_place_that_could_not_be_sent_is_not_granted_again),
		fresh(a_connection_on_its_way_down_is_no_failure),
		fresh(a_place_that_cannot_be_granted_is_one),
		fresh(what_is_no_place_of_a_lane_is_refused),
		fresh(a_place_is_granted_once_on_a_path),
	};
	return cmocka_run_group_tests_name("places", tests, NULL, NULL);
}
