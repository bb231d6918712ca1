/* SPDX-License-Identifier: Apache-2.0 */
/* What an established peer, or one that this end connects to, can do wrong on the stream itself.
 * Thread: one. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

static const struct wf_transport_opts plain = {0};

static void
assert_down(struct rig *rig, enum weft_status status, const char *text)
{
	struct rig_seen *down = rig_await(rig, WF_EVENT_DOWN, 1);
	assert_string_equal(weft_status_name(down->status), weft_status_name(status));
	if (strstr(down->why, text) == NULL || strstr(down->why, "127.0.0.1:") == NULL) {
		fail_msg("\"%s\" does not name the address and \"%s\"", down->why, text);
	}
}

/* A peer that sends `bytes` once it is up goes down for breach of protocol. */
static void
breaks_the_protocol(const void *bytes, size_t count, const char *text)
{
	struct rig *rig = rig_open(&plain);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	raw_send(fd, bytes, count);
	assert_down(rig, WEFT_PROTOCOL, text);
	raw_await_close(rig, fd);
	assert_int_equal(rig_info(rig).protocol_errors, 1);
	assert_int_equal(rig_info(rig).conns_down, 1);
	close(fd);
	rig_close(rig);
}

static void
garbage_on_an_established_stream_takes_it_down(void **state)
{
	(void)state;
	uint8_t frame[WF_HEAD_BYTES + 10] = {0};
	memset(frame, 'x', WF_HEAD_BYTES);
	breaks_the_protocol(frame, WF_HEAD_BYTES, "magic");
	raw_frame(frame, WF_TCP_CLOSE, NULL, 0);
	frame[20] ^= 1;
	breaks_the_protocol(frame, WF_HEAD_BYTES, "crc");
	breaks_the_protocol(frame, raw_frame(frame, WF_TCP_HELLO, NULL, 0), "type 1");
	breaks_the_protocol(frame, raw_frame(frame, WF_TCP_ACCEPT, NULL, 0), "type 2");
	breaks_the_protocol(frame, raw_frame(frame, 77, NULL, 0), "type 77");
	breaks_the_protocol(frame, raw_frame(frame, WF_TCP_CLOSE, "x", 1), "type 5");
	breaks_the_protocol(frame, raw_frame(frame, WF_TCP_PUT, "x", 1), "no such grant");
	breaks_the_protocol(frame, raw_frame(frame, WF_TCP_PUT, NULL, 0), "length");
}

static void
message_that_is_too_long_takes_the_stream_down(void **state)
{
	(void)state;
	uint8_t frame[WF_HEAD_BYTES];
	struct wf_head head = {.service = WF_SERVICE_DENSE, .body_bytes = WF_MSG_BODY_MAX + 1};
	wf_head_encode(&head, frame);
	breaks_the_protocol(frame, sizeof(frame), "4033");
	head.body_bytes = 1ull << 63;
	wf_head_encode(&head, frame);
	breaks_the_protocol(frame, sizeof(frame), "9223372036854775808");
}

static void
message_whose_body_fails_its_crc_takes_the_stream_down(void **state)
{
	(void)state;
	uint8_t frame[WF_HEAD_BYTES + 4] = {0};
	struct wf_head head = {.service = WF_SERVICE_DENSE,
			       .body_bytes = 4,
			       .flags = WF_HEAD_PAYLOAD_CRC,
			       .payload_crc = 0x12345678};
	wf_head_encode(&head, frame);
	breaks_the_protocol(frame, sizeof(frame), "CRC");
}

static void
peer_that_speaks_before_its_answer_goes_down(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	uint8_t frame[2 * WF_HEAD_BYTES];
	size_t bytes = raw_frame(frame, WF_TCP_HELLO, NULL, 0);
	struct wf_head head = {.service = WF_SERVICE_DENSE};
	wf_head_encode(&head, frame + bytes);
	int fd = raw_connect(rig);
	raw_send(fd, frame, sizeof(frame));
	rig_await(rig, WF_EVENT_UP, 1);
	assert_down(rig, WEFT_PROTOCOL, "before it was answered");
	close(fd);
	rig_close(rig);
}

static void
end_of_stream_without_close_is_a_loss(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	close(fd);
	assert_down(rig, WEFT_LOST, "without warning");
	rig_close(rig);
}

static void
end_of_stream_after_close_is_orderly(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_conn *conn = NULL;
	uint8_t frame[WF_HEAD_BYTES];
	int fd = raw_join(rig, &conn);
	raw_send(fd, frame, raw_frame(frame, WF_TCP_CLOSE, NULL, 0));
	close(fd);
	assert_down(rig, WEFT_CLOSED, "by the peer");
	rig_close(rig);
}

static void
reset_of_an_established_stream_is_a_loss(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	struct linger linger = {.l_onoff = 1, .l_linger = 0};
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
	assert_down(rig, WEFT_LOST, "reset");
	rig_close(rig);
}

/* Sending fails while something is there to be read, of which epoll has told already: another
 * connection's messages had filled the turn. */
static void
what_came_before_a_failed_send_is_read_and_then_it_is_a_loss(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.op_max = 64};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *busy = NULL;
	struct wf_conn *conn = NULL;
	uint8_t frame[40][WF_HEAD_BYTES];
	uint8_t body[WF_MSG_BODY_MAX] = {0};
	struct wf_head head = {.service = WF_SERVICE_DENSE};
	int fd[] = {raw_join(rig, &busy), raw_join(rig, &conn)};
	for (size_t i = 0; i < WF_ARRAY_COUNT(frame); i++) {
		wf_head_encode(&head, frame[i]);
	}
	for (int i = 0; i < 50; i++) {
		rig_pump(rig);
	}
	raw_send(fd[0], frame, sizeof(frame));
	raw_send(fd[1], frame[0], sizeof(frame[0]));
	while (rig_count(rig, WF_EVENT_MSG) == 0) {
		rig_pump(rig);
	}
	assert_int_equal(rig_count(rig, WF_EVENT_MSG), 16); /* those of the first, and not all */
	assert_int_equal(shutdown(((struct wf_tcp_conn *)conn)->fd, SHUT_WR), 0);
	const struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = sizeof(body)};
	for (unsigned i = 0; i < 8; i++) { /* so much leaves within post */
		unsigned taken = 0;
		(void)!wf_transport_post(conn, &op, 1, &taken);
	}
	assert_down(rig, WEFT_LOST, "roken pipe");
	unsigned heard = 0;
	for (unsigned i = 0; i < rig->seen_count && rig->seen[i].kind != WF_EVENT_DOWN; i++) {
		heard += rig->seen[i].kind == WF_EVENT_MSG && rig->seen[i].conn == conn ? 1 : 0;
	}
	assert_int_equal(heard, 1);
	close(fd[0]);
	close(fd[1]);
	rig_close(rig);
}

/* `bytes` of a frame, and the rest long after: the process may have been stopped meanwhile. */
static void
pauses_after(const void *frame, size_t bytes, size_t whole)
{
	struct wf_transport_opts opts = {.peer_timeout_ns = 3600 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	raw_send(fd, frame, bytes);
	for (int i = 0; i < 50; i++) {
		rig_pump(rig);
	}
	rig->ahead_ns += 24 * opts.peer_timeout_ns;
	for (int i = 0; i < 50; i++) {
		rig_pump(rig);
	}
	assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
	raw_send(fd, (const uint8_t *)frame + bytes, whole - bytes);
	rig_await(rig, WF_EVENT_MSG, 1);
	close(fd);
	rig_close(rig);
}

static void
frame_may_stop_half_way_for_however_long(void **state)
{
	(void)state;
	uint8_t frame[WF_HEAD_BYTES + 100] = {0};
	struct wf_head head = {.service = WF_SERVICE_DENSE, .body_bytes = 100};
	wf_head_encode(&head, frame);
	pauses_after(frame, 1, sizeof(frame));
	pauses_after(frame, 63, sizeof(frame));
	pauses_after(frame, 64, sizeof(frame));
	pauses_after(frame, 163, sizeof(frame));
}

static unsigned
option_of(int fd, int name)
{
	int value = 0;
	socklen_t bytes = sizeof(value);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &bytes), 0);
	assert_true(value > 0);
	return (unsigned)value;
}

/* When the kernel gives up, without waiting for it: between half and all of peer_timeout. */
static void
keepalive_lasts_at_least_half_of_the_time(void **state)
{
	(void)state;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	for (uint64_t ms = 1; ms < 100000; ms += 37) {
		struct wf_tcp t = {.medium.opts = {.peer_timeout_ns = ms * WF_NS_PER_MS}};
		wf_tcp_socket_options(&t, fd);
		uint64_t end_ms =
			1000ull * (option_of(fd, TCP_KEEPIDLE) +
				   option_of(fd, TCP_KEEPCNT) * option_of(fd, TCP_KEEPINTVL));
		assert_true(2 * end_ms >= ms);
		assert_true(end_ms <= (ms > 2000 ? ms : 2000));
	}
	close(fd);
}

static void
idle_peer_whose_host_is_silent_is_a_timeout(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.peer_timeout_ns = 2 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	raw_fall_silent(fd);
	assert_down(rig, WEFT_TIMEOUT, "silent");
	close(fd);
	rig_close(rig);
}

static void
host_that_is_silent_while_bytes_wait_is_a_timeout(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.peer_timeout_ns = 5 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	const struct wf_head head = {.service = WF_SERVICE_CONTROL};
	const struct wf_op op = {.kind = WF_OP_SEND, .head = &head};
	unsigned taken = 0;
	raw_fall_silent(fd);
	uint64_t since_ns = wf_now_ns(&rig->env);
	assert_int_equal(wf_transport_post(conn, &op, 1, &taken), WEFT_OK);
	assert_down(rig, WEFT_TIMEOUT, "silent");
	assert_true(wf_now_ns(&rig->env) - since_ns >= opts.peer_timeout_ns / 2);
	close(fd);
	rig_close(rig);
}

/* Its process has long taken nothing in when the host goes: what is asked then is its window. */
static void
host_that_goes_with_its_window_closed_is_a_timeout(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.peer_timeout_ns = 800 * WF_NS_PER_MS, .op_max = 64};
	struct rig *rig = rig_open(&opts);
	struct wf_conn *conn = NULL;
	int fd = raw_join(rig, &conn);
	uint8_t body[WF_MSG_BODY_MAX] = {0};
	const struct wf_head head = {.service = WF_SERVICE_CONTROL};
	const struct wf_op op = {
		.kind = WF_OP_SEND, .head = &head, .body = body, .body_bytes = sizeof(body)};
	unsigned taken = 1;
	for (unsigned full = 0; full < 50; full += taken == 0 ? 1 : 0) {
		taken = 0;
		(void)!wf_transport_post(conn, &op, 1, &taken);
		if (taken == 0) {
			rig_pump(rig);
			assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
			rig->seen_count = 0; /* DONEs */
		}
	}
	raw_fall_silent(fd);
	assert_down(rig, WEFT_TIMEOUT, "silent");
	close(fd);
	rig_close(rig);
}

/* A host that answers a hello with `bytes`, or with nothing. Returns the rig, connecting. */
static struct rig *
connects_to(const void *bytes, size_t count, int *listener, int *accepted)
{
	struct wf_transport_opts opts = {.connect_timeout_ns = 3600 * WF_NS_PER_S, .blob_max = 16};
	struct rig *rig = rig_open(&opts);
	*listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t at_bytes = sizeof(at);
	assert_int_equal(bind(*listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(*listener, 4), 0);
	assert_int_equal(getsockname(*listener, (struct sockaddr *)&at, &at_bytes), 0);
	struct wf_host to = {.name = "127.0.0.1", .port = ntohs(at.sin_port)};
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig->transport, &to, "hi", 2, NULL, &conn), WEFT_OK);
	*accepted = accept(*listener, NULL, NULL);
	assert_true(*accepted >= 0);
	const struct wf_head hello = raw_await_frame(rig, *accepted);
	uint8_t line_ends[sizeof(hello.request_id)];
	assert_int_equal(hello.type, WF_TCP_HELLO);
	wf_store_u64(line_ends, hello.request_id); /* a server that reads lines answers it */
	assert_memory_equal(line_ends, "\r\n\r\n\r\n\r\n", sizeof(line_ends));
	if (count > 0) {
		raw_send(*accepted, bytes, count);
	}
	return rig;
}

static void
ends_as(const void *bytes, size_t count, enum weft_status status, const char *text)
{
	int listener = -1;
	int accepted = -1;
	struct rig *rig = connects_to(bytes, count, &listener, &accepted);
	if (count == 0) {
		rig->ahead_ns += 3601 * WF_NS_PER_S;
	}
	assert_down(rig, status, text);
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 0);
	close(accepted);
	close(listener);
	rig_close(rig);
}

static void
who_answers_a_hello_with_something_else_is_told_apart(void **state)
{
	(void)state;
	static const char http[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n"
				   "Connection: close\r\nServer: something\r\n\r\n";
	uint8_t frame[WF_HEAD_BYTES];
	ends_as(http, sizeof(http), WEFT_PROTOCOL, "port of an HTTP server, not of a weft pserver");
	ends_as("<!DOCTYPE HTML>\n", 16, WEFT_PROTOCOL, "an HTTP server, not of a weft pserver");
	ends_as("<html>", 6, WEFT_PROTOCOL, "an HTTP server, not of a weft pserver");
	ends_as("SSH-2.0-x\r\n", 11, WEFT_PROTOCOL,
		"an SSH server, not of a weft pserver; it "
		"answered \"SSH-2.0-x??\"");
	ends_as("\x15\x03\x01", 3, WEFT_PROTOCOL, "a TLS server");
	ends_as("-ERR", 4, WEFT_PROTOCOL, "a Redis server");
	ends_as("W\n", 2, WEFT_PROTOCOL, "the port of another server");
	ends_as(frame, raw_frame(frame, WF_TCP_HELLO, NULL, 0), WEFT_PROTOCOL, "first frame");
	ends_as(frame, raw_frame(frame, WF_TCP_CLOSE, NULL, 0), WEFT_UNAVAILABLE, "closed");
	ends_as(NULL, 0, WEFT_TIMEOUT, "not answered");
}

/* A server of another kind that closes: once the hello is read, and once with a reset. */
static void
who_closes_without_an_answer_may_be_no_pserver(void **state)
{
	(void)state;
	for (int unread = 0; unread < 2; unread++) {
		int listener = -1;
		int accepted = -1;
		struct rig *rig = connects_to(NULL, 0, &listener, &accepted);
		if (unread == 0) {
			char hello[256];
			while (recv(accepted, hello, sizeof(hello), MSG_DONTWAIT) > 0) {
			}
		} else {
			const struct linger reset = {.l_onoff = 1};
			assert_int_equal(
				setsockopt(accepted, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)),
				0);
		}
		close(accepted);
		assert_down(rig, WEFT_UNAVAILABLE,
			    unread == 0 ? "without an answer (end of data); it may be no weft "
					  "pserver: check host and port"
					: "without an answer (Connection reset by peer); it may");
		close(listener);
		rig_close(rig);
	}
}

/* What this end takes of its peer's callers bounds no reason that the peer's transport gives. */
static void
reason_that_is_longer_than_a_verdict_may_be_is_told(void **state)
{
	(void)state;
	uint8_t frame[WF_HEAD_BYTES + WF_BLOB_ROOM + 1];
	uint8_t text[WF_BLOB_ROOM + 1];
	memset(text, '\n', sizeof(text));
	memcpy(text, "this is why", 11);
	ends_as(frame, raw_frame(frame, WF_TCP_CLOSE, text, 17), WEFT_UNAVAILABLE, "is why?????");
	ends_as(frame, raw_frame(frame, WF_TCP_CLOSE, text, WF_BLOB_ROOM), WEFT_UNAVAILABLE,
		"this is why????????");
	ends_as(frame, raw_frame(frame, WF_TCP_CLOSE, text, WF_BLOB_ROOM + 1), WEFT_PROTOCOL,
		"1281");
	ends_as(frame, raw_frame(frame, WF_TCP_ACCEPT, text, 17), WEFT_PROTOCOL, "17");
	ends_as(frame, raw_frame(frame, WF_TCP_REFUSE, text, 17), WEFT_PROTOCOL, "17");
	ends_as(frame, raw_frame(frame, WF_TCP_REFUSE, text, 16), WEFT_REFUSED, "refused");
}

/* It comes while this end sleeps, and the sleep itself takes in that the listener is readable; with
 * one connection, which is read without asking, no turn after it asks again. Counted in turns: what
 * has come is there before each of them. */
static void
takes_a_second_at_once(bool awaits_done)
{
	uint8_t frame[WF_HEAD_BYTES + 3];
	int listener = -1;
	int accepted = -1;
	size_t bytes = raw_frame(frame, WF_TCP_ACCEPT, NULL, 0);
	struct rig *rig = connects_to(frame, bytes, &listener, &accepted);
	rig_await(rig, WF_EVENT_UP, 1);
	bool sleeps = false;
	for (int i = 0; i < 100 && !sleeps; i++) {
		sleeps = rig_would_sleep(rig);
	}
	assert_true(sleeps && rig_rests(rig, awaits_done));
	int second = raw_connect(rig);
	raw_send(second, frame, raw_frame(frame, WF_TCP_HELLO, "raw", 3));
	for (int i = 0; i < 4 && rig_count(rig, WF_EVENT_UP) < 2; i++) {
		if (i == 0 || rig_rests(rig, awaits_done)) {
			rig_sleep(rig);
		}
	}
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 2);
	assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
	close(second);
	close(accepted);
	close(listener);
	rig_close(rig);
}

static void
sleeper_with_one_connection_takes_a_second_at_once(void **state)
{
	(void)state;
	takes_a_second_at_once(true);
	takes_a_second_at_once(false);
}

static void
host_is_found_by_name(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_host to = {.name = "localhost", .port = rig->at.port};
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig->transport, &to, "hi", 2, NULL, &conn), WEFT_OK);
	struct wf_conn *incoming = rig_await(rig, WF_EVENT_UP, 1)->conn;
	assert_true(incoming != conn);
	assert_int_equal(wf_transport_answer(incoming, true, NULL, 0), WEFT_OK);
	assert_ptr_equal(rig_await(rig, WF_EVENT_UP, 2)->conn, conn);
	rig_close(rig);
}

static void
listener_is_found_by_name(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_host at = {.name = "localhost"};
	assert_int_equal(wf_transport_listen(rig->transport, &at, &at.port), WEFT_OK);
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig->transport, &at, "hi", 2, NULL, &conn), WEFT_OK);
	rig_await(rig, WF_EVENT_UP, 1);
	rig_close(rig);
}

/* A label of more than 63 letters cannot be asked for, so no name server is. */
static void
unknown_name_is_unavailable(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_host to = {.port = 7164};
	memset(to.name, 'a', 70);
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig->transport, &to, NULL, 0, NULL, &conn), WEFT_OK);
	struct rig_seen *down = rig_await(rig, WF_EVENT_DOWN, 1);
	assert_int_equal(down->status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(down->why, "name is not known"));
	rig_close(rig);
}

static void
transport_closes_while_a_name_is_looked_up(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_host to = {.name = "localhost", .port = rig->at.port};
	struct wf_conn *conn = NULL;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(wf_transport_connect(rig->transport, &to, NULL, 0, NULL, &conn),
				 WEFT_OK);
	}
	wf_transport_disconnect(conn, WF_DISCONNECT_NOW);
	rig_close(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_on_an_established_stream_takes_it_down),
		cmocka_unit_test(message_that_is_too_long_takes_the_stream_down),
		cmocka_unit_test(message_whose_body_fails_its_crc_takes_the_stream_down),
		cmocka_unit_test(peer_that_speaks_before_its_answer_goes_down),
		cmocka_unit_test(end_of_stream_without_close_is_a_loss),
		cmocka_unit_test(end_of_stream_after_close_is_orderly),
		cmocka_unit_test(reset_of_an_established_stream_is_a_loss),
		cmocka_unit_test(what_came_before_a_failed_send_is_read_and_then_it_is_a_loss),
		cmocka_unit_test(frame_may_stop_half_way_for_however_long),
		cmocka_unit_test(keepalive_lasts_at_least_half_of_the_time),
		cmocka_unit_test(idle_peer_whose_host_is_silent_is_a_timeout),
		cmocka_unit_test(host_that_is_silent_while_bytes_wait_is_a_timeout),
		cmocka_unit_test(host_that_goes_with_its_window_closed_is_a_timeout),
		cmocka_unit_test(sleeper_with_one_connection_takes_a_second_at_once),
		cmocka_unit_test(who_answers_a_hello_with_something_else_is_told_apart),
		cmocka_unit_test(who_closes_without_an_answer_may_be_no_pserver),
		cmocka_unit_test(reason_that_is_longer_than_a_verdict_may_be_is_told),
		cmocka_unit_test(host_is_found_by_name),
		cmocka_unit_test(listener_is_found_by_name),
		cmocka_unit_test(unknown_name_is_unavailable),
		cmocka_unit_test(transport_closes_while_a_name_is_looked_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
