/* SPDX-License-Identifier: Apache-2.0 */
/* PUTs that come one at a time, each into an empty socket. One that fits into the receive buffer is
 * read in one call with its head, a longer one is not. Whatever parts they come in, and whatever
 * follows, their bytes land where they belong. Thread: one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

#define PUT_BYTES_MAX (WF_TCP_RX_BYTES - WF_HEAD_BYTES + 1000u)
WF_STATIC_ASSERT(WF_TCP_RX_BYTES > 65536u, "a PUT of 64 KiB fits with its head");

static const struct wf_transport_opts plain = {0};

/* Memory that is longer than the rig's, and the place in it that the peer may fill. */
static struct {
	struct rig *rig;
	struct wf_conn *conn;
	int fd; /* the peer's */
	uint8_t memory[PUT_BYTES_MAX + 64];
	struct wf_head head; /* of a PUT into the place */
	unsigned puts, msgs; /* that were sent */
} test;

static unsigned scattered; /* calls of readv */

/* In place of libc's. */
ssize_t
readv(int fd, const struct iovec *iov, int count)
{
	scattered++;
	return syscall(SYS_readv, fd, iov, count);
}

static void
begin(void)
{
	test.puts = 0;
	test.msgs = 0;
	test.rig = rig_open(&plain);
	test.fd = raw_join(test.rig, &test.conn);
	const struct wf_region region = {
		.base = test.memory, .bytes = sizeof(test.memory), .memfd = -1};
	struct wf_grant grant = {.kind = WF_GRANT_PLACE, .bytes = sizeof(test.memory)};
	struct wf_grant_key key;
	assert_int_equal(wf_transport_region_add(test.rig->transport, &region, &grant.region),
			 WEFT_OK);
	assert_int_equal(wf_transport_grant(test.conn, &grant, &key), WEFT_OK);
	test.head = (struct wf_head){.service = WF_SERVICE_TRANSPORT, .type = WF_TCP_PUT};
	wf_grant_key_read(&key, &test.head.region, &test.head.request_id);
}

static void
end(void)
{
	close(test.fd);
	rig_close(test.rig);
}

/* Polls until the socket has been found empty. */
static void
rest(void)
{
	const struct wf_tcp_conn *c = (const struct wf_tcp_conn *)test.conn;
	for (unsigned i = 0; i < 100000 && !c->rx.was_empty; i++) {
		rig_pump(test.rig);
	}
	assert_true(c->rx.was_empty);
}

/* A frame with `bytes` of payload, which depend on `seed`, and then a message. */
static size_t
frame_of(uint8_t *out, uint32_t bytes, uint8_t seed)
{
	const struct wf_head msg = {.service = WF_SERVICE_DENSE, .request_id = seed};
	test.head.body_bytes = bytes;
	wf_head_encode(&test.head, out);
	for (uint32_t i = 0; i < bytes; i++) {
		out[WF_HEAD_BYTES + i] = (uint8_t)(i * 7 + seed);
	}
	wf_head_encode(&msg, out + WF_HEAD_BYTES + bytes);
	return WF_HEAD_BYTES + bytes;
}

/* Sends them in two parts, with a rest between them, and checks what has come. */
static void
put(uint32_t bytes, uint32_t first, bool and_message)
{
	static uint8_t frame[PUT_BYTES_MAX + 2 * WF_HEAD_BYTES];
	const uint8_t seed = (uint8_t)++test.puts;
	size_t count = frame_of(frame, bytes, seed) + (and_message ? WF_HEAD_BYTES : 0);
	memset(test.memory, 0xee, sizeof(test.memory));
	rest();
	raw_send(test.fd, frame, first);
	for (unsigned i = 0; i < 8; i++) {
		rig_pump(test.rig);
	}
	raw_send(test.fd, frame + first, count - first);
	rig_await(test.rig, WF_EVENT_PUT, test.puts);
	assert_memory_equal(test.memory, frame + WF_HEAD_BYTES, bytes);
	assert_int_equal(test.memory[bytes], 0xee);
	test.msgs += and_message ? 1 : 0;
	if (and_message) {
		assert_int_equal(rig_await(test.rig, WF_EVENT_MSG, test.msgs)->request_id, seed);
	}
}

static void
a_put_lands_whole_in_whatever_parts_it_comes(void **state)
{
	static const uint32_t bytes[] = {WF_TCP_RX_BULK_BYTES + 1, 65536,
					 WF_TCP_RX_BYTES - WF_HEAD_BYTES, PUT_BYTES_MAX};
	static const uint32_t first[] = {1,
					 WF_HEAD_BYTES - 1,
					 WF_HEAD_BYTES,
					 WF_HEAD_BYTES + 1,
					 WF_TCP_RX_BULK_BYTES,
					 WF_TCP_RX_BULK_BYTES + WF_HEAD_BYTES};
	(void)state;
	begin();
	for (size_t i = 0; i < WF_ARRAY_COUNT(bytes); i++) {
		for (size_t j = 0; j < WF_ARRAY_COUNT(first); j++) {
			put(bytes[i], first[j], j % 2 == 1);
		}
	}
	end();
}

/* All of it waits in the socket before anything is read. Returns how often its payload was read
 * apart from its head. */
static unsigned
reads_of(uint32_t bytes)
{
	static uint8_t frame[PUT_BYTES_MAX + 2 * WF_HEAD_BYTES];
	const struct wf_tcp_conn *c = (const struct wf_tcp_conn *)test.conn;
	size_t count = frame_of(frame, bytes, 1);
	rest();
	raw_send(test.fd, frame, count);
	for (int there = 0; there < (int)count;) {
		assert_int_equal(ioctl(c->fd, FIONREAD, &there), 0);
	}
	scattered = 0;
	rig_await(test.rig, WF_EVENT_PUT, ++test.puts);
	return scattered;
}

static void
a_put_that_comes_alone_is_read_at_once_if_the_buffer_has_room(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 3; i++) {
		put(65536, WF_HEAD_BYTES, false);
		assert_int_equal(reads_of(65536), 0);
		put(PUT_BYTES_MAX, WF_HEAD_BYTES, false);
		assert_int_equal(reads_of(65536), 1); /* one as long as that was expected */
	}
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_lands_whole_in_whatever_parts_it_comes),
		cmocka_unit_test(a_put_that_comes_alone_is_read_at_once_if_the_buffer_has_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
