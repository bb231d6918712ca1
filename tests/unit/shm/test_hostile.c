/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer that writes its segment and its packets by hand can do: take its own connection down.
 * Thread: one; the peer and the transport take turns. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/shm/hostile.h"

static void
hostile_open(struct hostile *h, uint32_t slots)
{
	hostile_join(h, NULL);
	struct wf_grant grant = {.kind = slots > 0 ? WF_GRANT_SLOTS : WF_GRANT_PLACE,
				 .region = h->rig.region,
				 .offset = HOSTILE_GRANT_AT,
				 .bytes = slots > 0 ? HOSTILE_GRANT_BYTES / slots
						    : HOSTILE_GRANT_BYTES,
				 .slot_count = slots};
	assert_int_equal(wf_transport_grant(h->rig.conn, &grant, &h->key), WEFT_OK);
}

static struct wf_shm_put
good_put(const struct hostile *h)
{
	struct wf_shm_put put = {.kind = WF_SHM_PUT,
				 .where = WF_SHM_INLINE,
				 .tag = wf_tag(1, 0),
				 .bytes = 10,
				 .part_bytes = 10};
	wf_grant_key_read(&h->key, &put.grant, &put.nonce);
	return put;
}

static void
expect_protocol(struct hostile *h)
{
	shm_rig_await(&h->rig, &h->rig.downs, 1);
	assert_int_equal(h->rig.down_status, WEFT_PROTOCOL);
	assert_int_equal(h->rig.msgs, 0);
	assert_int_equal(h->rig.puts, 0);
	struct wf_transport_info info;
	wf_transport_query(h->rig.transport, &info);
	assert_int_equal(info.protocol_errors, 1);
}

/* One cell, or two, and the end. */
static void
refused(const union wf_shm_note *first, const union wf_shm_note *second, bool with_key)
{
	struct hostile h;
	hostile_open(&h, 0);
	union wf_shm_note notes[2] = {*first, {{0}}};
	if (with_key) {
		wf_grant_key_read(&h.key, &notes[0].put.grant, &notes[0].put.nonce);
	}
	hostile_fill(&h, &notes[0]);
	if (second != NULL) {
		notes[1] = *second;
		if (with_key) {
			wf_grant_key_read(&h.key, &notes[1].put.grant, &notes[1].put.nonce);
		}
		hostile_fill(&h, &notes[1]);
	}
	expect_protocol(&h);
	hostile_close(&h);
}

static void
a_message_that_cannot_be_takes_the_connection_down(void **state)
{
	(void)state;
	const struct wf_shm_msg good = {
		.kind = WF_SHM_MSG, .where = WF_SHM_INLINE, .service = 1, .bytes = 10};
	union wf_shm_note bad[] = {
		{.msg = good}, {.msg = good}, {.msg = good}, {.msg = good},
		{.msg = good}, {.msg = good}, {.msg = good}, {.msg = good},
	};
	bad[0].msg.kind = 0;
	bad[1].msg.kind = 77;
	bad[2].msg.bytes = WF_SHM_INLINE_BYTES + 1;
	bad[3].msg.where = WF_SHM_DATA;
	bad[3].msg.bytes = WF_MSG_BODY_MAX + 1;
	bad[4].msg.where = WF_SHM_DATA;
	bad[4].msg.data_at = WF_SHM_DATA_BYTES - 9;
	bad[5].msg.where = WF_SHM_DATA;
	bad[5].msg.data_at = UINT32_MAX;
	bad[6].msg.where = WF_SHM_REF;
	bad[7].msg.service = WF_SERVICE_TRANSPORT;
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		refused(&bad[i], NULL, false);
	}
}

static void
a_put_that_cannot_be_takes_the_connection_down(void **state)
{
	(void)state;
	const struct wf_shm_put good = {
		.kind = WF_SHM_PUT, .where = WF_SHM_INLINE, .bytes = 10, .part_bytes = 10};
	union wf_shm_note bad[11];
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		bad[i].put = good;
	}
	bad[0].put.part_bytes = 0;
	bad[1].put.part_bytes = 11;
	bad[2].put.bytes = 0;
	bad[3].put.bytes = UINT64_MAX;
	bad[4].put.offset = HOSTILE_GRANT_BYTES - 9;
	bad[5].put.offset = UINT64_MAX;
	bad[6].put.where = WF_SHM_DATA;
	bad[6].put.at = WF_SHM_DATA_BYTES - 9;
	bad[7].put.where = WF_SHM_DATA;
	bad[7].put.at = UINT64_MAX;
	bad[8].put.where = 9;
	bad[9].put.kind = WF_SHM_MORE;
	bad[10].put.where = WF_SHM_REF;
	bad[10].put.region = 0xffffffff;
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		refused(&bad[i], NULL, true);
	}
	refused(&(union wf_shm_note){.put = good}, NULL, false); /* without a key */
}

static void
cells_between_the_parts_of_a_put_take_the_connection_down(void **state)
{
	(void)state;
	union wf_shm_note begun = {
		.put = {.kind = WF_SHM_PUT, .where = WF_SHM_INLINE, .bytes = 90, .part_bytes = 10}};
	union wf_shm_note msg = {.msg = {.kind = WF_SHM_MSG, .where = WF_SHM_INLINE, .service = 1}};
	union wf_shm_note ref = begun;
	ref.put.kind = WF_SHM_MORE;
	ref.put.where = WF_SHM_REF;
	union wf_shm_note long_part = begun;
	long_part.put.kind = WF_SHM_MORE;
	long_part.put.where = WF_SHM_DATA;
	long_part.put.part_bytes = 81;
	refused(&begun, &begun, true);
	refused(&begun, &ref, true);
	refused(&begun, &long_part, true);
	/* Not the key of a PUT, but a message. */
	struct hostile h;
	hostile_open(&h, 0);
	wf_grant_key_read(&h.key, &begun.put.grant, &begun.put.nonce);
	hostile_fill(&h, &begun);
	hostile_fill(&h, &msg);
	expect_protocol(&h);
	hostile_close(&h);
}

static void
a_published_put_from_outside_its_region_takes_the_connection_down(void **state)
{
	(void)state;
	static const uint64_t at[] = {4096 - 9, 4096, 4097, UINT64_MAX};
	for (size_t i = 0; i < WF_ARRAY_COUNT(at); i++) {
		struct hostile h;
		hostile_open(&h, i % 2 == 0 ? 0 : 4);
		int memfd = hostile_memfd(4096, F_SEAL_SHRINK);
		hostile_region(&h, wf_shm_region_id(3, 1), 4096, memfd);
		close(memfd);
		union wf_shm_note note = {.put = good_put(&h)};
		note.put.where = WF_SHM_REF;
		note.put.region = wf_shm_region_id(3, 1);
		note.put.at = at[i];
		hostile_fill(&h, &note);
		expect_protocol(&h);
		hostile_close(&h);
	}
}

static void
a_region_that_may_shrink_or_is_short_takes_the_connection_down(void **state)
{
	(void)state;
	char path[] = "/tmp/weft_test_XXXXXX";
	int file = mkstemp(path);
	assert_true(file >= 0);
	unlink(path);
	assert_int_equal(ftruncate(file, 8192), 0);
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	const struct {
		uint32_t id;
		uint64_t bytes;
		int fd;
	} bad[] = {
		{0x101, 4096, hostile_memfd(4096, 0)},
		{0x101, 4096, hostile_memfd(4096, F_SEAL_GROW)},
		{0x101, 8192, hostile_memfd(4096, F_SEAL_SHRINK)},
		{0x101, UINT64_MAX, hostile_memfd(4096, F_SEAL_SHRINK)},
		{0x101, 0, hostile_memfd(4096, F_SEAL_SHRINK)},
		{0x100, 4096, hostile_memfd(4096, F_SEAL_SHRINK)},
		{0x141, 4096, hostile_memfd(4096, F_SEAL_SHRINK)},
		{0x101, 4096, file},
		{0x101, 4096, ends[0]},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct hostile h;
		hostile_open(&h, 0);
		hostile_region(&h, bad[i].id, bad[i].bytes, bad[i].fd);
		expect_protocol(&h);
		hostile_close(&h);
		close(bad[i].fd);
	}
	close(ends[1]);
}

static void
bytes_that_are_no_packet_take_the_connection_down(void **state)
{
	(void)state;
	struct wf_shm_packet good = {.magic = WF_SHM_MAGIC,
				     .version = WF_SHM_VERSION,
				     .type = WF_SHM_HELLO,
				     .blob_bytes = 4};
	struct wf_shm_packet magic = good, version = good, length = good, type = good;
	magic.magic++;
	version.version++;
	length.blob_bytes = 5;
	type.type = 99;
	const struct {
		const void *bytes;
		size_t count;
	} bad[] = {{&good, 20},
		   {&good, WF_SHM_PACKET_BYTES + 4},
		   {&magic, WF_SHM_PACKET_BYTES + 4},
		   {&version, WF_SHM_PACKET_BYTES + 4},
		   {&length, WF_SHM_PACKET_BYTES + 4},
		   {&type, WF_SHM_PACKET_BYTES + 4}};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct hostile h;
		hostile_open(&h, 0);
		assert_int_equal(send(h.fd, bad[i].bytes, bad[i].count, 0), bad[i].count);
		expect_protocol(&h);
		hostile_close(&h);
	}
}

static unsigned
count_descriptors(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 256; fd++) {
		count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
	}
	return count;
}

/* A peer that says that it has rung, often, so that mail is read many at a time. What follows bytes
 * that are no packet is closed. */
static void
descriptors_behind_what_is_no_packet_are_closed(void **state)
{
	(void)state;
	struct hostile h;
	hostile_open(&h, 0);
	int memfd = hostile_memfd(4096, F_SEAL_SHRINK);
	const unsigned before = count_descriptors();
	assert_int_equal(send(h.fd, "no packet", 9, 0), 9);
	for (uint32_t i = 1; i <= 3; i++) {
		hostile_region(&h, wf_shm_region_id(i, 1), 4096, memfd);
	}
	for (unsigned i = 0; i < 2 * WF_SHM_RINGS_UNREAD_MAX; i++) {
		uint64_t deadline_ns;
		(void)wf_transport_arm(h.rig.transport, &deadline_ns);
		atomic_store_explicit(&h.segment->end[0].sleeping, 0, memory_order_seq_cst);
		atomic_store_explicit(&h.segment->end[1].sleeping, 0, memory_order_seq_cst);
	}
	expect_protocol(&h);
	assert_int_equal(count_descriptors(), before);
	hostile_close(&h);
	close(memfd);
}

static void
consuming_what_was_not_sent_takes_the_connection_down(void **state)
{
	(void)state;
	struct hostile h;
	hostile_open(&h, 0);
	atomic_store_explicit(&h.segment->way[1].consumed, 100000, memory_order_seq_cst); /* S2 */
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op op = {.kind = WF_OP_SEND, .head = &head};
	unsigned taken = 0;
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < 2 * WF_SHM_CELLS && st != WEFT_CLOSED; i++) {
		st = wf_transport_post(h.rig.conn, &op, 1, &taken);
		if (st == WEFT_AGAIN) {
			shm_rig_pump(&h.rig);
		}
	}
	assert_int_equal(st, WEFT_CLOSED);
	expect_protocol(&h);
	hostile_close(&h);
}

static void
completing_what_was_not_sent_takes_the_connection_down(void **state)
{
	(void)state;
	static const uint32_t ops[] = {1, 255, 256, UINT32_MAX};
	for (size_t i = 0; i < WF_ARRAY_COUNT(ops); i++) {
		struct hostile h;
		hostile_open(&h, 0);
		struct wf_op op = {.kind = WF_OP_PUT,
				   .region = h.rig.region,
				   .src = h.rig.slab.base,
				   .bytes = 100000};
		unsigned taken = 0;
		assert_int_equal(wf_transport_post(h.rig.conn, &op, 1, &taken), WEFT_OK);
		uint64_t word = (uint64_t)1 << 32 | ops[i];
		atomic_store_explicit(&h.segment->way[1].completion[0], word,
				      memory_order_release); /* S3 */
		expect_protocol(&h);
		assert_int_equal(h.rig.dones, 1);
		hostile_close(&h);
	}
}

/* A process that is stopped is like that. That it has gone, its socket says. */
static void
a_peer_that_takes_nothing_in_is_there_until_its_socket_closes(void **state)
{
	(void)state;
	struct hostile h;
	struct wf_transport_opts opts = {.peer_timeout_ns = 20 * WF_NS_PER_MS};
	hostile_join(&h, &opts);
	struct wf_op op = {
		.kind = WF_OP_PUT, .region = h.rig.region, .src = h.rig.slab.base, .bytes = 100000};
	unsigned taken = 0;
	assert_int_equal(wf_transport_post(h.rig.conn, &op, 1, &taken), WEFT_OK);
	uint64_t until_ns = wf_now_ns(h.rig.env) + 10 * opts.peer_timeout_ns;
	while (wf_now_ns(h.rig.env) < until_ns) {
		shm_rig_pump(&h.rig);
	}
	assert_int_equal(h.rig.downs, 0);
	assert_int_equal(shutdown(h.fd, SHUT_RDWR), 0);
	shm_rig_await(&h.rig, &h.rig.downs, 1);
	assert_int_equal(h.rig.down_status, WEFT_LOST);
	assert_int_equal(h.rig.dones, 1);
	hostile_close(&h);
}

/* It takes in what was said before the end for so long, and no longer. */
static void
a_peer_that_takes_nothing_in_is_drained_until_time_is_up(void **state)
{
	(void)state;
	struct hostile h;
	struct wf_transport_opts opts = {.peer_timeout_ns = 20 * WF_NS_PER_MS};
	hostile_join(&h, &opts);
	struct wf_shm_conn *c = wf_shm_conn_of(h.rig.conn);
	struct wf_op op = {
		.kind = WF_OP_PUT, .region = h.rig.region, .src = h.rig.slab.base, .bytes = 100000};
	unsigned taken = 0;
	assert_int_equal(wf_transport_post(h.rig.conn, &op, 1, &taken), WEFT_OK);
	wf_transport_disconnect(h.rig.conn, WF_DISCONNECT_DRAIN);
	wf_life_deadline(&c->life, wf_now_ns(h.rig.env) + 3600 * WF_NS_PER_S);
	uint64_t until_ns = wf_now_ns(h.rig.env) + 5 * opts.peer_timeout_ns;
	while (wf_now_ns(h.rig.env) < until_ns) {
		shm_rig_pump(&h.rig);
	}
	assert_int_equal(h.rig.downs, 0);
	wf_life_deadline(&c->life, wf_now_ns(h.rig.env));
	shm_rig_await(&h.rig, &h.rig.downs, 1);
	assert_int_equal(h.rig.down_status, WEFT_CLOSED);
	assert_int_equal(h.rig.dones, 1);
	hostile_close(&h);
}

static void
who_is_given_a_region_cannot_write_it(void **state)
{
	(void)state;
	struct hostile h;
	hostile_open(&h, 0);
	struct wf_op op = {
		.kind = WF_OP_PUT, .region = h.rig.region, .src = h.rig.slab.base, .bytes = 100000};
	unsigned taken = 0;
	assert_int_equal(wf_transport_post(h.rig.conn, &op, 1, &taken), WEFT_OK);
	struct wf_shm_mail mail = {0};
	do {
		assert_int_equal(wf_shm_receive_mail(h.fd, &mail), 1);
	} while (mail.wake || mail.packet.type != WF_SHM_REGION);
	assert_true(mail.fd >= 0);
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mail.fd, 0);
	assert_true(memory == MAP_FAILED);
	assert_int_equal(pwrite(mail.fd, "x", 1, 0), -1);
	assert_int_not_equal(ftruncate(mail.fd, 0), 0);
	assert_int_not_equal(
		fallocate(mail.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	close(mail.fd);
	hostile_close(&h);
}

static void
a_region_whose_memfd_is_too_short_is_invalid(void **state)
{
	(void)state;
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	struct wf_region region = {rig.slab.base, 8192, hostile_memfd(4096, 0)};
	uint32_t number = 0;
	assert_int_equal(wf_transport_region_add(rig.transport, &region, &number), WEFT_INVALID);
	close(region.memfd);
	shm_rig_close(&rig);
}

static void
a_name_of_another_host_is_unavailable(void **state)
{
	(void)state;
	struct shm_rig rig;
	shm_rig_open(&rig, false, NULL);
	struct wf_host away = {.name = "192.0.2.1", .port = 7164};
	uint16_t port = 0;
	assert_int_equal(wf_transport_listen(rig.transport, &away, &port), WEFT_UNAVAILABLE);
	assert_non_null(strstr(weft_last_error(), "192.0.2.1"));
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig.transport, &away, NULL, 0, NULL, &conn), WEFT_OK);
	shm_rig_await(&rig, &rig.downs, 1);
	assert_int_equal(rig.down_status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(rig.why, "this host"));
	shm_rig_close(&rig);
}

static int send_error; /* of all packets; 0: none */

/* In place of the system's. */
ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (send_error != 0) {
		errno = send_error;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static void
a_hello_that_cannot_be_sent_is_unavailable_at_once(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {.connect_timeout_ns = 10 * WF_NS_PER_S};
	struct shm_rig server, client;
	struct wf_conn *conn = NULL;
	shm_rig_open(&server, true, NULL);
	shm_rig_open(&client, false, &opts);
	send_error = ENOBUFS;
	assert_int_equal(wf_transport_connect(client.transport, &server.at, NULL, 0, NULL, &conn),
			 WEFT_OK);
	send_error = 0;
	shm_rig_await(&client, &client.downs, 1);
	assert_int_equal(client.down_status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(client.why, "No buffer space"));
	shm_rig_close(&client);
	shm_rig_close(&server);
}

static void
a_region_without_a_descriptor_takes_the_connection_down(void **state)
{
	(void)state;
	struct hostile h;
	hostile_open(&h, 0);
	hostile_region(&h, wf_shm_region_id(3, 1), 4096, -1);
	expect_protocol(&h);
	hostile_close(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_cannot_be_takes_the_connection_down),
		cmocka_unit_test(a_put_that_cannot_be_takes_the_connection_down),
		cmocka_unit_test(cells_between_the_parts_of_a_put_take_the_connection_down),
		cmocka_unit_test(a_published_put_from_outside_its_region_takes_the_connection_down),
		cmocka_unit_test(a_region_that_may_shrink_or_is_short_takes_the_connection_down),
		cmocka_unit_test(bytes_that_are_no_packet_take_the_connection_down),
		cmocka_unit_test(descriptors_behind_what_is_no_packet_are_closed),
		cmocka_unit_test(consuming_what_was_not_sent_takes_the_connection_down),
		cmocka_unit_test(completing_what_was_not_sent_takes_the_connection_down),
		cmocka_unit_test(a_peer_that_takes_nothing_in_is_there_until_its_socket_closes),
		cmocka_unit_test(a_peer_that_takes_nothing_in_is_drained_until_time_is_up),
		cmocka_unit_test(a_hello_that_cannot_be_sent_is_unavailable_at_once),
		cmocka_unit_test(who_is_given_a_region_cannot_write_it),
		cmocka_unit_test(a_region_whose_memfd_is_too_short_is_invalid),
		cmocka_unit_test(a_name_of_another_host_is_unavailable),
		cmocka_unit_test(a_region_without_a_descriptor_takes_the_connection_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
