/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection sends to a peer that reads slowly, or is left in the middle: every frame whole
 * and in order, however often the ring goes round, and a DONE that says whether it is out.
 * Thread: one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

#define MESSAGES 6000u /* some 12 MiB: the ring goes round and round */
#define READ_MAX 30000u

/* What the peer has read of the stream. */
struct reader {
	int fd;
	uint8_t bytes[WF_HEAD_BYTES + WF_MSG_BODY_MAX];
	size_t have;
	unsigned msgs;
	bool closed; /* a CLOSE was the last frame */
	bool ended;  /* end of the stream */
};

static size_t
body_bytes_of(unsigned number)
{
	return number * 37 % (WF_MSG_BODY_MAX + 1);
}

static uint8_t
body_byte_of(unsigned number, size_t at)
{
	return (uint8_t)(number * 7 + at);
}

/* Posts messages from `number` on, until one is refused. Returns the next number. */
static unsigned
post_all(struct wf_conn *conn, unsigned number, unsigned end)
{
	uint8_t body[WF_MSG_BODY_MAX];
	for (unsigned taken = 1; number < end; number++) {
		const struct wf_head head = {.service = WF_SERVICE_CONTROL, .request_id = number};
		const struct wf_op op = {.kind = WF_OP_SEND,
					 .cookie = number,
					 .head = &head,
					 .body = body,
					 .body_bytes = body_bytes_of(number)};
		for (size_t i = 0; i < op.body_bytes; i++) {
			body[i] = body_byte_of(number, i);
		}
		enum weft_status st = wf_transport_post(conn, &op, 1, &taken);
		assert_true(st == WEFT_OK || st == WEFT_AGAIN);
		if (taken == 0) {
			break;
		}
	}
	return number;
}

/* A whole frame is here. */
static void
check_frame(struct reader *r, const struct wf_head *head)
{
	assert_false(r->closed);
	if (head->service == WF_SERVICE_TRANSPORT) {
		assert_int_equal(head->type, WF_TCP_CLOSE);
		r->closed = true;
		return;
	}
	assert_int_equal(head->request_id, r->msgs);
	assert_int_equal(head->body_bytes, body_bytes_of(r->msgs));
	for (size_t i = 0; i < head->body_bytes; i++) {
		assert_int_equal(r->bytes[WF_HEAD_BYTES + i], body_byte_of(r->msgs, i));
	}
	r->msgs++;
}

/* Reads at most `max` bytes of what is there. */
static void
read_some(struct reader *r, size_t max)
{
	while (max > 0 && !r->ended) {
		struct wf_head head = {0};
		bool has_head = r->have >= WF_HEAD_BYTES;
		if (has_head) {
			assert_int_equal(wf_head_decode(r->bytes, WF_MSG_BODY_MAX, &head), WEFT_OK);
		}
		size_t whole = WF_HEAD_BYTES + (size_t)head.body_bytes;
		if (has_head && r->have == whole) {
			check_frame(r, &head);
			r->have = 0;
			continue;
		}
		size_t want = whole - r->have < max ? whole - r->have : max;
		ssize_t n = recv(r->fd, r->bytes + r->have, want, MSG_DONTWAIT);
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			return;
		}
		r->ended = n == 0;
		r->have += (size_t)n;
		max -= (size_t)n;
	}
}

static unsigned
count_done(struct rig *rig, enum weft_status status)
{
	unsigned count = 0;
	for (unsigned i = 0; i < rig->seen_count; i++) {
		count += rig->seen[i].kind == WF_EVENT_DONE && rig->seen[i].status == status;
	}
	return count;
}

static void
slow_reader_gets_every_message_in_order(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {.op_max = 200};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	struct reader r = {.fd = raw_join(rig, &conn)};
	unsigned done = 0;
	rig->seen_count = 0;
	unsigned posted = 0;
	for (unsigned round = 0; r.msgs < MESSAGES; round++) {
		posted = post_all(conn, posted, MESSAGES);
		read_some(&r, round * 7919 % READ_MAX);
		rig_pump(rig);
		done += count_done(rig, WEFT_OK);
		assert_int_equal(rig->seen_count, count_done(rig, WEFT_OK));
		assert_true(done <= posted && r.msgs <= posted);
		rig->seen_count = 0;
	}
	for (; done < MESSAGES; rig->seen_count = 0) {
		rig_pump(rig);
		done += count_done(rig, WEFT_OK);
	}
	assert_int_equal(done, MESSAGES);
	close(r.fd);
	rig_close(rig);
}

/* Disconnects with `posted`, of which `done` are DONE, and reads to the end: what a DONE calls out
 * has come, and nothing else has. */
static void
assert_cut(struct rig *rig, struct wf_conn *conn, struct reader *r, unsigned posted, unsigned done)
{
	rig->seen_count = 0;
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	(void)rig_await(rig, WF_EVENT_DOWN, 1);
	while (!r->ended) {
		read_some(r, READ_MAX);
	}
	assert_int_equal(done + count_done(rig, WEFT_OK), r->msgs);
	assert_int_equal(count_done(rig, WEFT_LOST), posted - r->msgs);
	assert_true(r->closed == (r->have == 0)); /* a CLOSE, unless a frame is half out */
	for (size_t i = WF_HEAD_BYTES; i < r->have; i++) {
		assert_int_equal(r->bytes[i], body_byte_of(r->msgs, i - WF_HEAD_BYTES));
	}
}

static void
messages_that_are_not_out_are_lost_by_a_disconnect(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {0};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	struct reader r = {.fd = raw_join(rig, &conn)};
	unsigned posted = post_all(conn, 0, 3); /* too few to leave before the next poll */
	assert_int_equal(posted, 3);
	assert_cut(rig, conn, &r, posted, 0);
	assert_int_equal(r.msgs, 0);
	assert_true(r.closed);
	close(r.fd);
	rig_close(rig);
}

static void
messages_that_are_out_are_done_after_a_disconnect(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {0};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	struct reader r = {.fd = raw_join(rig, &conn)};
	uint64_t deadline_ns = 0;
	unsigned posted = post_all(conn, 0, 3);
	(void)wf_transport_arm(rig->transport, &deadline_ns); /* sends them */
	assert_cut(rig, conn, &r, posted, 0);
	assert_int_equal(r.msgs, 3);
	assert_true(r.closed);
	close(r.fd);
	rig_close(rig);
}

/* The socket has room again when the disconnect comes, but a frame is half out. */
static void
messages_behind_a_full_socket_are_lost_by_a_disconnect(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {.op_max = 128};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	struct reader r = {.fd = raw_join(rig, &conn)};
	unsigned posted = 0;
	unsigned done = 0;
	for (unsigned full = 0; full < 20;) { /* until nothing leaves any more */
		unsigned next = post_all(conn, posted, UINT32_MAX);
		full = next == posted ? full + 1 : 0;
		posted = next;
		rig->seen_count = 0;
		rig_pump(rig);
		done += count_done(rig, WEFT_OK);
	}
	for (unsigned i = 0; i < 100; i++) {
		read_some(&r, READ_MAX);
	}
	assert_cut(rig, conn, &r, posted, done);
	assert_true(r.msgs < posted);
	close(r.fd);
	rig_close(rig);
}

/* Everything is done, and the socket has taken its last byte: what is posted now begins the ring
 * anew, and has it full before any of it is out. */
static void
messages_behind_what_is_done_wait_until_a_full_socket_has_room(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {.op_max = 400};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	struct reader r = {.fd = raw_join(rig, &conn)};
	struct wf_tcp_tx *tx = &wf_tcp_conn_of(conn)->tx;
	unsigned before = post_all(conn, 0, 60);
	assert_int_equal(before, 60);
	while (r.msgs < before || tx->done < tx->posted) {
		rig_pump(rig);
		read_some(&r, READ_MAX);
	}
	tx->writable = false;
	unsigned posted = post_all(conn, before, UINT32_MAX);
	assert_true(posted - before < opts.op_max); /* it was the ring that had no room */
	wf_tcp_watch_room(wf_tcp_conn_of(conn), true);
	while (r.msgs < posted) {
		rig->seen_count = 0;
		rig_pump(rig);
		read_some(&r, READ_MAX);
	}
	close(r.fd);
	rig_close(rig);
}

/* A CLOSE in the middle of a PUT would be taken for its bytes. A PUT that was copied has no entry
 * that says where it begins, so only what is all out, or ends where the next operation begins, is
 * between two frames. */
static void
only_what_is_between_two_frames_is_closed(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {0};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	bool copied = false;
	unsigned taken = 0;
	const struct wf_op put = {.kind = WF_OP_PUT,
				  .region = rig->region,
				  .src = rig->memory,
				  .bytes = 64,
				  .copied = &copied};
	const uint64_t begin = c->tx.sent_bytes;
	assert_true(wf_tcp_tx_cut(c));
	assert_int_equal(wf_transport_post(conn, &put, 1, &taken), WEFT_OK);
	assert_true(copied);
	assert_int_equal(post_all(conn, 0, 1), 1);
	const uint64_t end = begin + WF_HEAD_BYTES + put.bytes;
	for (uint64_t sent = begin; sent < end; sent++) {
		c->tx.sent_bytes = sent;
		assert_false(wf_tcp_tx_cut(c));
	}
	c->tx.sent_bytes = end;
	assert_true(wf_tcp_tx_cut(c));
	c->tx.sent_bytes = begin;
	close(fd);
	rig_close(rig);
}

/* The peer sends a message, which lies in the socket when this returns. */
static void
send_msg(int fd, const struct wf_tcp_conn *c)
{
	uint8_t frame[WF_HEAD_BYTES];
	int bytes = 0;
	wf_head_encode(&(struct wf_head){.service = WF_SERVICE_CONTROL}, frame);
	raw_send(fd, frame, sizeof(frame));
	while (bytes < (int)sizeof(frame)) {
		assert_int_equal(ioctl(c->fd, FIONREAD, &bytes), 0);
	}
}

/* A poll that has DONEs to deliver does not read. After much was sent the next one does, so that
 * its owner knows what has come before it sends as much again. */
static void
what_comes_while_much_is_sent_is_in_the_next_poll(void **state)
{
	(void)state;
	const struct wf_transport_opts opts = {0};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	const struct wf_tcp_conn *c = wf_tcp_conn_of(conn);
	const int room = 1 << 20;
	struct wf_op put[4];
	unsigned taken = 0;
	assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	for (unsigned i = 0; i < 4; i++) {
		put[i] = (struct wf_op){.kind = WF_OP_PUT,
					.region = rig->region,
					.src = rig->memory,
					.bytes = RIG_MEMORY_BYTES,
					.cookie = i};
	}
	send_msg(fd, c);
	rig_await(rig, WF_EVENT_MSG, 1); /* the last read found no more */
	send_msg(fd, c);
	assert_int_equal(wf_transport_post(conn, put, 4, &taken), WEFT_OK);
	rig_pump(rig);
	assert_int_equal(count_done(rig, WEFT_OK), 4);
	assert_int_equal(rig_count(rig, WF_EVENT_MSG), 2);
	close(fd);
	rig_close(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_reader_gets_every_message_in_order),
		cmocka_unit_test(messages_that_are_not_out_are_lost_by_a_disconnect),
		cmocka_unit_test(messages_that_are_out_are_done_after_a_disconnect),
		cmocka_unit_test(messages_behind_a_full_socket_are_lost_by_a_disconnect),
		cmocka_unit_test(messages_behind_what_is_done_wait_until_a_full_socket_has_room),
		cmocka_unit_test(only_what_is_between_two_frames_is_closed),
		cmocka_unit_test(what_comes_while_much_is_sent_is_in_the_next_poll),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
