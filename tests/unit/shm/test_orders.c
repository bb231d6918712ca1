/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a connection in one process, on one mapping of the segment and of the regions, each
 * driven by a thread of its own: what one end publishes and the other consumes, and back, has no
 * other order than the numbered ones of shm (S1, S2, S3). Under ThreadSanitizer a weaker one is a
 * data race on a cell, on the way's data or on the memory of a PUT; without it, this is a test that
 * the bytes are right. What keeps the threads in step is relaxed, and orders nothing.
 * Thread: as each function says. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/shm/shm_rig.h"
#include "transport/shm/shm_internal.h"

#define PUT_BYTES 8192u /* longer than what is copied by the sender */
#define SLOTS 4u
#define MESSAGES 3000u /* the cells and the data are used several times */
#define ROUNDS 40u

WF_STATIC_ASSERT(PUT_BYTES > WF_SHM_COPY_BYTES && MESSAGES > 4 * WF_SHM_CELLS, "see above");

/* The client PUTs and sends, the server takes in. */
static struct shm_rig server, client;
static struct wf_grant_key granted;
static void *server_mapping;
static struct wf_shm_foreign server_foreign;

/* How many events the server has had. Relaxed: it orders nothing. */
static _Atomic unsigned taken;

static void
raise_count(_Atomic unsigned *count)
{
	(void)atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static void
await_count(_Atomic unsigned *count, unsigned value)
{
	while (atomic_load_explicit(count, memory_order_relaxed) < value) {
		(void)sched_yield();
	}
}

static struct wf_shm_conn *
conn_of(const struct shm_rig *rig)
{
	return wf_shm_conn_of(rig->conn);
}

/* Not in a thread of cmocka's. */
static void
must(bool holds)
{
	if (!holds) {
		abort();
	}
}

/* ---- one mapping for both ends ---- */

static void
take_sides(struct wf_shm_conn *c, struct wf_shm_segment *segment)
{
	unsigned own = c->life.incoming ? 1 : 0;
	c->segment = segment;
	c->own = &segment->end[own];
	c->peer_end = &segment->end[1 - own];
	c->tx_way = &segment->way[own];
	c->rx_way = &segment->way[1 - own];
}

static struct wf_shm_foreign *
foreign_of_client(void)
{
	return &conn_of(&server)->rx.foreign[client.region - 1];
}

static void
share_mappings(void)
{
	server_mapping = conn_of(&server)->segment;
	take_sides(conn_of(&server), conn_of(&client)->segment);
	server_foreign = *foreign_of_client();
	assert_non_null(server_foreign.base); /* it came with the first PUT */
	foreign_of_client()->base = client.slab.base;
}

/* Each end closes what it has opened. */
static void
part_mappings(void)
{
	take_sides(conn_of(&server), server_mapping);
	*foreign_of_client() = server_foreign;
}

/* ---- the rig ---- */

static void
post(const struct wf_op *op)
{
	unsigned count = 0;
	while (wf_transport_post(client.conn, op, 1, &count) != WEFT_OK) {
		struct wf_event event[16];
		unsigned events = 0;
		must(wf_transport_poll(client.transport, event, 16, &events) == WEFT_OK);
		(void)sched_yield();
	}
}

static void
put(uint32_t slot)
{
	const struct wf_op op = {.kind = WF_OP_PUT,
				 .region = client.region,
				 .src = client.slab.base,
				 .bytes = PUT_BYTES,
				 .key = granted,
				 .tag = wf_tag(slot, 0)};
	post(&op);
}

/* Awake, and without anything that the other would have to wake it for. */
static void
settle(struct shm_rig *rig)
{
	for (unsigned i = 0; i < 64; i++) {
		struct wf_event event[16];
		unsigned count = 0;
		assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
		assert_int_equal(count, 0);
	}
}

static void
connect_both(void)
{
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
}

static int
set_up(uint32_t slot_count)
{
	const struct wf_transport_opts opts = {.op_max = 2 * WF_SHM_REFS};
	const struct wf_grant grant = {.kind = slot_count > 0 ? WF_GRANT_SLOTS : WF_GRANT_PLACE,
				       .region = 1, /* the only one of the server */
				       .bytes = PUT_BYTES,
				       .slot_count = slot_count};
	shm_rig_open(&server, true, &opts);
	shm_rig_open(&client, false, &opts);
	connect_both();
	assert_int_equal(server.region, grant.region);
	assert_int_equal(wf_transport_grant(server.conn, &grant, &granted), WEFT_OK);
	put(0);
	shm_rig_await(&server, &server.puts, 1);
	if (slot_count > 0) {
		wf_transport_release(server.conn, 0);
	}
	while (client.dones == 0) {
		(void)shm_rig_pump(&server);
		(void)shm_rig_pump(&client);
	}
	settle(&server);
	settle(&client);
	settle(&server);
	share_mappings();
	atomic_store_explicit(&taken, 0, memory_order_relaxed);
	return 0;
}

static int
set_up_place(void **state)
{
	(void)state;
	return set_up(0);
}

static int
set_up_slots(void **state)
{
	(void)state;
	return set_up(SLOTS);
}

static int
tear_down(void **state)
{
	(void)state;
	part_mappings();
	shm_rig_close(&client);
	shm_rig_close(&server);
	return 0;
}

/* ---- the server's thread ---- */

static uint8_t
pattern(unsigned number, unsigned at)
{
	return (uint8_t)(number * 7 + at);
}

static bool
has_pattern(const uint8_t *bytes, size_t count, unsigned number)
{
	for (unsigned i = 0; i < count; i++) {
		if (bytes[i] != pattern(number, i)) {
			return false;
		}
	}
	return true;
}

static void
set_pattern(uint8_t *bytes, size_t count, unsigned number)
{
	for (unsigned i = 0; i < count; i++) {
		bytes[i] = pattern(number, i);
	}
}

static size_t
body_bytes(unsigned number)
{
	return number % 3 == 0 ? 700 : 20; /* in the way's data, and in the cell */
}

static void
take_event(const struct wf_event *event, unsigned number)
{
	if (event->kind == WF_EVENT_MSG) {
		must(event->msg.head->request_id == number);
		must(event->msg.head->body_bytes == body_bytes(number));
		must(has_pattern(event->msg.body, body_bytes(number), number));
	} else {
		must(event->kind == WF_EVENT_PUT);
	}
	const uint8_t *lent = event->kind == WF_EVENT_PUT ? event->put.data : NULL;
	if (lent != NULL) {
		must(has_pattern(lent, PUT_BYTES, number));
		wf_transport_release(event->conn, wf_tag_slot(event->put.tag));
	}
}

/* Take in so many events, never asleep. */
static void *
serve(void *arg)
{
	const unsigned *count = arg;
	unsigned got = 0;
	while (got < *count) {
		struct wf_event event[64];
		unsigned events = 0;
		must(wf_transport_poll(server.transport, event, 64, &events) == WEFT_OK);
		for (unsigned i = 0; i < events; i++) {
			take_event(&event[i], got++);
			raise_count(&taken);
		}
	}
	/* What was released in the last of them. */
	struct wf_event none;
	unsigned events = 0;
	must(wf_transport_poll(server.transport, &none, 1, &events) == WEFT_OK && events == 0);
	return NULL;
}

static void
play(unsigned count, void (*send)(void))
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, serve, &count), 0);
	send();
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- tests: the main thread is the client's ---- */

static void
send_messages(void)
{
	uint8_t body[WF_MSG_BODY_MAX];
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct wf_head head = {.service = WF_SERVICE_CONTROL, .request_id = i};
		const struct wf_op op = {.kind = WF_OP_SEND,
					 .head = &head,
					 .body = body,
					 .body_bytes = body_bytes(i)};
		set_pattern(body, sizeof(body), i);
		post(&op);
	}
	while (conn_of(&client)->tx.queue.first != NULL) {
		wf_shm_flush(conn_of(&client));
		(void)sched_yield();
	}
}

/* S1: a note and its payload are there when the cell's sequence is. S2: both have been read when
 * the cell is filled again. */
static void
cells_are_filled_again_when_they_have_been_read(void **state)
{
	(void)state;
	play(MESSAGES, send_messages);
}

/* All at once, and no look at completions: room comes from what was consumed, in the middle of a
 * turn of the other end. */
static void
publish_puts(void)
{
	for (unsigned i = 0; i < WF_SHM_REFS; i++) {
		put(0);
	}
	while (conn_of(&client)->tx.queue.first != NULL) {
		wf_shm_flush(conn_of(&client));
	}
}

/* S2 as consume stores it. */
static void
cells_of_published_puts_are_filled_again_when_they_have_been_read(void **state)
{
	(void)state;
	play(WF_SHM_REFS, publish_puts);
}

static void
await_done(unsigned count)
{
	unsigned dones = 0;
	while (dones < count) {
		struct wf_event event[16];
		unsigned events = 0;
		must(wf_transport_poll(client.transport, event, 16, &events) == WEFT_OK);
		for (unsigned i = 0; i < events; i++) {
			must(event[i].kind == WF_EVENT_DONE && event[i].done.status == WEFT_OK);
			dones++;
		}
	}
}

static void
put_again_and_again(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		set_pattern(client.slab.base, PUT_BYTES, i);
		put(i % SLOTS); /* a place takes any tag */
		await_count(&taken, i + 1);
		await_done(1);
	}
}

/* S3: what was published has been copied when it is DONE. */
static void
memory_is_written_again_when_its_put_is_done(void **state)
{
	(void)state;
	play(ROUNDS, put_again_and_again);
}

/* S3: whoever holds the slot reads the sender's memory until the release. */
static void
memory_that_is_lent_is_written_again_when_it_was_released(void **state)
{
	(void)state;
	play(ROUNDS, put_again_and_again);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cells_are_filled_again_when_they_have_been_read,
						set_up_place, tear_down),
		cmocka_unit_test_setup_teardown(
			cells_of_published_puts_are_filled_again_when_they_have_been_read,
			set_up_place, tear_down),
		cmocka_unit_test_setup_teardown(memory_is_written_again_when_its_put_is_done,
						set_up_place, tear_down),
		cmocka_unit_test_setup_teardown(
			memory_that_is_lent_is_written_again_when_it_was_released, set_up_slots,
			tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
