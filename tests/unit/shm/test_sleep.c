/* SPDX-License-Identifier: Apache-2.0 */
/* What wakes an end that sleeps, and what does not: room, and an answer; and how much one poll
 * delivers. Thread: the test's. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/shm/shm_rig.h"
#include "transport/shm/shm_internal.h"

#define CELLS 512u /* of a way: messages that are under way at a time */
#define MANY (2 * CELLS)

static struct shm_rig server, client;

static int
set_up(void **state)
{
	const struct wf_transport_opts opts = {.op_max = 2 * MANY};
	shm_rig_open(&server, true, &opts);
	shm_rig_open(&client, false, &opts);
	struct wf_conn *conn;
	assert_int_equal(wf_transport_connect(client.transport, &server.at, NULL, 0, NULL, &conn),
			 WEFT_OK);
	while (client.ups == 0) {
		unsigned before = server.ups;
		(void)shm_rig_pump(&server);
		if (server.ups > before) {
			assert_int_equal(wf_transport_answer(server.conn, true, NULL, 0), WEFT_OK);
		}
		(void)shm_rig_pump(&client);
	}
	return 0;
}

static int
tear_down(void **state)
{
	shm_rig_close(&client);
	shm_rig_close(&server);
	return 0;
}

static void
post_messages(struct shm_rig *rig, unsigned count, size_t body_bytes)
{
	static const uint8_t body[WF_MSG_BODY_MAX];
	const struct wf_head head = {.service = WF_SERVICE_CONTROL};
	const struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = body_bytes};
	for (unsigned i = 0; i < count; i++) {
		unsigned taken = 0;
		assert_int_equal(wf_transport_post(rig->conn, &op, 1, &taken), WEFT_OK);
	}
}

static bool
is_woken(struct shm_rig *rig)
{
	struct pollfd fd = {.fd = wf_transport_wait_fd(rig->transport), .events = POLLIN};
	return poll(&fd, 1, 0) > 0;
}

/* Poll until a sleep would follow that nothing ends at once. */
static void
fall_asleep(struct shm_rig *rig)
{
	bool asleep = false;
	for (unsigned i = 0; i < 10 * MANY && !asleep; i++) {
		uint64_t deadline_ns = 0;
		(void)wf_transport_arm(rig->transport, &deadline_ns);
		struct wf_event event[16];
		unsigned count = 0;
		assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
		asleep = count == 0 && !is_woken(rig);
	}
	assert_true(asleep);
}

/* Without sleeping, for as long as there are messages. */
static unsigned
take_messages(struct shm_rig *rig)
{
	unsigned msgs = 0;
	unsigned quiet = 0;
	while (quiet < 32) {
		struct wf_event event[16];
		unsigned count = 0;
		assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
		for (unsigned i = 0; i < count; i++) {
			msgs += event[i].kind == WF_EVENT_MSG ? 1 : 0;
		}
		quiet = count == 0 ? quiet + 1 : 0;
	}
	return msgs;
}

/* Everything arrives, though the sender polls only when it is woken. */
static void
arrive_by_waking(unsigned count, size_t body_bytes)
{
	post_messages(&client, count, body_bytes);
	unsigned arrived = 0;
	do {
		fall_asleep(&client);
		arrived += take_messages(&server);
	} while (arrived < count && is_woken(&client));
	assert_int_equal(arrived, count);
}

static void
who_waits_for_cells_is_woken(void **state)
{
	arrive_by_waking(MANY, 8);
}

static void
who_waits_for_data_is_woken(void **state)
{
	arrive_by_waking(120, WF_MSG_BODY_MAX); /* 256 KiB of data, and as much waits */
}

static void
who_waits_for_an_answer_is_not_woken_for_room(void **state)
{
	post_messages(&client, 2, 8);
	fall_asleep(&client);
	assert_int_equal(take_messages(&server), 2);
	assert_false(is_woken(&client));
	post_messages(&server, 1, 8);
	assert_int_equal(take_messages(&server), 0);
	assert_true(is_woken(&client));
	assert_int_equal(take_messages(&client), 1);
}

static unsigned
poll_messages(struct shm_rig *rig)
{
	struct wf_event event[16];
	unsigned count = 0, msgs = 0;
	assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		msgs += event[i].kind == WF_EVENT_MSG ? 1 : 0;
	}
	return msgs;
}

/* It armed, and found something: it does not sleep, so what comes next wakes nobody. */
static void
who_found_something_before_its_sleep_is_not_woken(void **state)
{
	uint64_t deadline_ns = 0;
	fall_asleep(&server);
	(void)take_messages(&server);
	post_messages(&client, 1, 8);
	(void)wf_transport_arm(server.transport, &deadline_ns);
	assert_int_equal(poll_messages(&server), 1);
	post_messages(&client, 1, 8);
	assert_int_equal(take_messages(&client), 0);
	assert_false(is_woken(&server));
	assert_int_equal(take_messages(&server), 1);
}

/* Nothing is under way: no poll is needed before the sleep, nor one that only collects DONEs. */
static void
who_waits_for_its_peer_is_quiet(void **state)
{
	uint64_t deadline_ns = 0;
	(void)take_messages(&server);
	(void)take_messages(&client);
	assert_true(wf_transport_arm(server.transport, &deadline_ns));
	post_messages(&client, 1, 8);
	assert_true(wf_transport_arm(client.transport, &deadline_ns)); /* and has sent it */
	assert_true(is_woken(&server));
	wf_transport_wait(server.transport, deadline_ns);
	assert_int_equal(poll_messages(&server), 1);
	assert_false(is_woken(&client));
	post_messages(&client, 1, 8);
	assert_int_equal(take_messages(&client), 0);
	assert_false(wf_transport_arm(server.transport, &deadline_ns)); /* it has arrived */
	assert_int_equal(poll_messages(&server), 1);
}

/* A ring that brings nothing (there is room again) clears the flag. A poll that takes its edge must
 * not be followed by a sleep that the next message does not end. */
static void
who_was_rung_for_nothing_does_not_sleep_with_its_flag_down(void **state)
{
	uint64_t deadline_ns = 0;
	post_messages(&server, CELLS / 2, 8);
	(void)take_messages(&server);
	fall_asleep(&server);
	(void)wf_transport_arm(server.transport, &deadline_ns); /* the next poll looks */
	assert_int_equal(take_messages(&client), CELLS / 2);    /* and rings for the room */
	assert_int_equal(poll_messages(&server), 0);
	if (!is_woken(&server)) {
		post_messages(&client, 1, 8);
		(void)take_messages(&client);
	}
	assert_true(is_woken(&server));
}

/* Bytes that have woken it stay on the socket for a while: they end no sleep again, they never fill
 * the socket, and the end of the connection is not missed behind them. */
static void
bytes_that_woke_it_are_read_together(void **state)
{
	uint64_t deadline_ns = 0;
	(void)take_messages(&server);
	for (unsigned i = 0; i < MANY; i++) {
		assert_true(wf_transport_arm(server.transport, &deadline_ns));
		assert_false(is_woken(&server));
		post_messages(&client, 1, 8);
		(void)take_messages(&client);
		assert_true(is_woken(&server));
		wf_transport_wait(server.transport, deadline_ns);
		assert_int_equal(poll_messages(&server), 1);
	}
	(void)wf_transport_arm(server.transport, &deadline_ns);
	shm_rig_close(&client);
	assert_true(is_woken(&server));
	wf_transport_wait(server.transport, deadline_ns);
	while (server.downs == 0) {
		(void)shm_rig_pump(&server);
	}
	shm_rig_open(&client, false, NULL); /* for tear_down */
}

/* A process that rang and was killed at once: both come with one edge. */
static void
end_behind_a_ring_is_seen(void **state)
{
	uint64_t deadline_ns = 0;
	(void)take_messages(&server);
	assert_true(wf_transport_arm(server.transport, &deadline_ns));
	post_messages(&client, 1, 8);
	(void)take_messages(&client);
	assert_int_equal(shutdown(wf_shm_conn_of(client.conn)->fd, SHUT_RDWR), 0);
	wf_transport_wait(server.transport, deadline_ns);
	shm_rig_await(&server, &server.msgs, 1);
	shm_rig_await(&server, &server.downs, 1);
	assert_int_equal(server.down_status, WEFT_LOST);
}

/* The byte of who rang behind the arm is read, so that it does not end the next sleep. */
static void
ring_before_the_sleep_does_not_end_the_next_one(void **state)
{
	uint64_t deadline_ns = 0;
	(void)take_messages(&server);
	(void)wf_transport_arm(server.transport, &deadline_ns);
	post_messages(&client, 1, 8);
	assert_int_equal(take_messages(&client), 0);
	assert_true(is_woken(&server));
	assert_int_equal(poll_messages(&server), 1);
	assert_int_equal(poll_messages(&server), 0);
	assert_false(is_woken(&server));
}

/* In one poll. */
static unsigned
poll_puts(struct shm_rig *rig)
{
	struct wf_event event[16];
	unsigned count = 0;
	unsigned puts = 0;
	assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		puts += event[i].kind == WF_EVENT_PUT ? 1 : 0;
	}
	return puts;
}

/* PUTs of a whole slice: each poll delivers one. */
static void
deliver_slices(enum wf_grant_kind kind)
{
	const uint64_t slice_bytes = 256u << 10;
	const uint32_t slices = 4;
	const struct wf_grant grant = {.kind = kind,
				       .region = server.region,
				       .bytes = slice_bytes,
				       .slot_count = kind == WF_GRANT_SLOTS ? slices : 0};
	struct wf_grant_key key;
	assert_int_equal(wf_transport_grant(server.conn, &grant, &key), WEFT_OK);
	for (uint32_t slot = 0; slot < slices; slot++) {
		const struct wf_op op = {.kind = WF_OP_PUT,
					 .region = client.region,
					 .src = client.slab.base,
					 .bytes = slice_bytes,
					 .key = key,
					 .tag = wf_tag(slot, 0)};
		unsigned taken = 0;
		assert_int_equal(wf_transport_post(client.conn, &op, 1, &taken), WEFT_OK);
	}
	for (uint32_t slot = 0; slot < slices; slot++) {
		assert_int_equal(poll_puts(&server), 1);
	}
	struct wf_transport_info info;
	wf_transport_query(server.transport, &info);
	assert_true(info.bytes_received >= slices * slice_bytes);
}

/* Where they are, without a copy. */
static void
poll_delivers_a_slice_before_it_looks_at_the_next(void **state)
{
	deliver_slices(WF_GRANT_SLOTS);
}

static void
poll_copies_a_slice_before_it_looks_at_the_next(void **state)
{
	deliver_slices(WF_GRANT_PLACE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_waits_for_cells_is_woken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_waits_for_data_is_woken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_waits_for_an_answer_is_not_woken_for_room,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_found_something_before_its_sleep_is_not_woken,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(ring_before_the_sleep_does_not_end_the_next_one,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_waits_for_its_peer_is_quiet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_was_rung_for_nothing_does_not_sleep_with_its_flag_down, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(bytes_that_woke_it_are_read_together, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(end_behind_a_ring_is_seen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(poll_delivers_a_slice_before_it_looks_at_the_next,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(poll_copies_a_slice_before_it_looks_at_the_next,
						set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
