/* SPDX-License-Identifier: Apache-2.0 */
/* A peer whose stream never runs dry, because its bytes come faster than they are taken in: it gets
 * its share of a turn, in bytes, and the others get theirs. No real socket holds that much, so
 * readv of that one connection is answered here. Thread: one. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

/* Longer than what is read ahead: wherever a read ends, it ends within a payload, and the next is a
 * readv again. */
#define PUT_BYTES 60000u
#define FRAME_BYTES (WF_HEAD_BYTES + PUT_BYTES)
#define EVENTS 64u /* of a poll: several times what the budget has room for */
#define TURNS 64u  /* sockets are looked at in one of fewer */
WF_STATIC_ASSERT(PUT_BYTES > WF_TCP_RX_BULK_BYTES && PUT_BYTES <= RIG_MEMORY_BYTES, "see above");
WF_STATIC_ASSERT((uint64_t)EVENTS *PUT_BYTES > 4 * WF_TCP_RX_BUDGET, "the budget ends the turn");

/* The endless stream: one frame again and again. */
static struct {
	int fd; /* of this end; -1: none */
	uint8_t frame[FRAME_BYTES];
	uint64_t position;
} flood = {.fd = -1};

static void
flood_read(uint8_t *out, size_t bytes)
{
	while (bytes > 0) {
		size_t at = flood.position % FRAME_BYTES;
		size_t n = bytes < FRAME_BYTES - at ? bytes : FRAME_BYTES - at;
		memcpy(out, flood.frame + at, n);
		out += n;
		bytes -= n;
		flood.position += n;
	}
}

/* In place of libc's. */
ssize_t
readv(int fd, const struct iovec *iov, int count)
{
	if (fd != flood.fd) {
		return syscall(SYS_readv, fd, iov, count);
	}
	ssize_t bytes = 0;
	for (int i = 0; i < count; i++) {
		flood_read(iov[i].iov_base, iov[i].iov_len);
		bytes += (ssize_t)iov[i].iov_len;
	}
	return bytes;
}

static int
fd_of(const struct wf_conn *conn)
{
	return ((const struct wf_tcp_conn *)conn)->fd;
}

/* The kernel may take its time even with what stays on this host. */
static void
send_until_it_is_there(int fd, const void *bytes, size_t count, const struct wf_conn *conn)
{
	struct pollfd there = {.fd = fd_of(conn), .events = POLLIN};
	raw_send(fd, bytes, count);
	assert_int_equal(poll(&there, 1, 60000), 1);
}

/* From the first head on, which really comes, the connection is fed by readv. */
static void
flood_begin(struct rig *rig, struct wf_conn *conn, int fd)
{
	struct wf_grant grant = {.kind = WF_GRANT_PLACE, .region = rig->region, .bytes = PUT_BYTES};
	struct wf_grant_key key;
	assert_int_equal(wf_transport_grant(conn, &grant, &key), WEFT_OK);
	struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT, .type = WF_TCP_PUT, .body_bytes = PUT_BYTES};
	wf_grant_key_read(&key, &head.region, &head.request_id);
	wf_head_encode(&head, flood.frame);
	raw_send(fd, flood.frame, WF_HEAD_BYTES);
	const struct wf_tcp_conn *c = (const struct wf_tcp_conn *)conn;
	for (int i = 0; i < 100000 && !c->rx.put_open; i++) {
		rig_pump(rig);
	}
	assert_true(c->rx.put_open);
	flood.position = WF_HEAD_BYTES;
	flood.fd = fd_of(conn);
	send_until_it_is_there(fd, "x", 1, conn); /* nobody reads it: it stays readable */
}

struct turn {
	unsigned puts, msgs;
	uint64_t bytes;
};

static struct turn
take_turn(struct rig *rig, const struct wf_conn *flooder)
{
	struct turn turn = {0};
	struct wf_event event[EVENTS];
	unsigned count = 0;
	uint64_t before = rig_info(rig).bytes_received;
	assert_int_equal(wf_transport_poll(rig->transport, event, EVENTS, &count), WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		turn.puts += event[i].kind == WF_EVENT_PUT && event[i].conn == flooder ? 1 : 0;
		turn.msgs += event[i].kind == WF_EVENT_MSG && event[i].conn != flooder ? 1 : 0;
	}
	turn.bytes = rig_info(rig).bytes_received - before;
	return turn;
}

static void
flood_of_bytes_takes_no_more_than_its_share_of_a_turn(void **state)
{
	static const struct wf_transport_opts plain = {0};
	struct wf_conn *flooder = NULL;
	struct wf_conn *honest = NULL;
	uint8_t msg[WF_HEAD_BYTES];
	const struct wf_head head = {.service = WF_SERVICE_DENSE};
	(void)state;
	wf_head_encode(&head, msg);
	struct rig *rig = rig_open(&plain);
	int honest_fd = raw_join(rig, &honest);
	int fd = raw_join(rig, &flooder);
	flood_begin(rig, flooder, fd);
	send_until_it_is_there(honest_fd, msg, sizeof(msg), honest);
	unsigned msgs = 0;
	unsigned puts = 0;
	for (unsigned i = 0; i < TURNS; i++) {
		struct turn turn = take_turn(rig, flooder);
		assert_true(turn.bytes <=
			    WF_TCP_RX_BUDGET + PUT_BYTES + WF_TCP_RX_BULK_BYTES + sizeof(msg));
		msgs += turn.msgs;
		puts += turn.puts;
	}
	assert_int_equal(msgs, 1);
	assert_true(puts >= TURNS / 2 * (WF_TCP_RX_BUDGET / FRAME_BYTES)); /* and its share */
	flood.fd = -1;
	close(fd);
	close(honest_fd);
	rig_close(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood_of_bytes_takes_no_more_than_its_share_of_a_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
