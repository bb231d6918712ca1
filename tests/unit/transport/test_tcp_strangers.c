/* SPDX-License-Identifier: Apache-2.0 */
/* Who connects and is no peer: sent away, counted, and nobody else notices. Thread: one. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/unit/transport/rig.h"
#include "transport/tcp/tcp_internal.h"

static const struct wf_transport_opts plain = {0};

static void
assert_stranger(struct rig *rig, const char *text)
{
	struct wf_transport_info info = rig_info(rig);
	if (strstr(info.last_stranger, text) == NULL ||
	    strstr(info.last_stranger, "127.0.0.1:") == NULL) {
		fail_msg("\"%s\" does not name the address and \"%s\"", info.last_stranger, text);
	}
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 0);
	assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
}

static void
random_bytes_are_sent_away_and_counted(void **state)
{
	(void)state;
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text == NULL ? 1 : strtoull(text, NULL, 0);
	struct wf_rng rng;
	wf_rng_init(&rng, seed, 0);
	struct rig *rig = rig_open(&plain);
	for (uint64_t i = 1; i <= 50; i++) {
		uint8_t bytes[300];
		for (size_t b = 0; b < sizeof(bytes); b++) {
			bytes[b] = (uint8_t)wf_rng_u64(&rng);
		}
		int fd = raw_connect(rig);
		raw_send(fd, bytes, 64 + wf_rng_below(&rng, sizeof(bytes) - 64));
		raw_await_close(rig, fd);
		close(fd);
		rig_await_strangers(rig, i);
	}
	assert_stranger(rig, "magic");
	rig_close(rig);
}

static void
length_of_two_to_the_63_is_sent_away(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	uint8_t hello[WF_HEAD_BYTES];
	struct wf_head head = {.type = WF_TCP_HELLO, .body_bytes = 1ull << 63};
	wf_head_encode(&head, hello);
	uint64_t live_before = rig->failing.live_bytes;
	int fd = raw_connect(rig);
	raw_send(fd, hello, sizeof(hello));
	raw_await_close(rig, fd);
	rig_await_strangers(rig, 1);
	assert_stranger(rig, "9223372036854775808");
	rig_pump(rig);
	assert_int_equal(rig->failing.live_bytes, live_before);
	close(fd);
	rig_close(rig);
}

static void
hello_over_the_limit_is_sent_away(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	uint8_t hello[WF_HEAD_BYTES];
	struct wf_head head = {.type = WF_TCP_HELLO, .body_bytes = WF_BLOB_MAX + 1};
	wf_head_encode(&head, hello);
	int fd = raw_connect(rig);
	raw_send(fd, hello, sizeof(hello));
	raw_await_close(rig, fd);
	rig_await_strangers(rig, 1);
	assert_stranger(rig, "1025");
	close(fd);
	rig_close(rig);
}

static void
first_frame_that_is_no_hello_is_sent_away(void **state)
{
	(void)state;
	static const uint8_t types[] = {0,          WF_TCP_ACCEPT, WF_TCP_REFUSE,
					WF_TCP_PUT, WF_TCP_CLOSE,  99};
	struct rig *rig = rig_open(&plain);
	for (size_t i = 0; i < sizeof(types); i++) {
		uint8_t frame[WF_HEAD_BYTES];
		int fd = raw_connect(rig);
		raw_send(fd, frame, raw_frame(frame, types[i], NULL, 0));
		raw_await_close(rig, fd);
		close(fd);
		rig_await_strangers(rig, i + 1);
	}
	assert_stranger(rig, "first frame");
	rig_close(rig);
}

/* `bytes` of a hello, then silence: closed when the time for a hello is over, and not before. */
static void
goes_silent_after(size_t bytes)
{
	struct wf_transport_opts opts = {.handshake_timeout_ns = 3600 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	uint8_t hello[WF_HEAD_BYTES + 10] = {0};
	raw_frame(hello, WF_TCP_HELLO, "0123456789", 10);
	int fd = raw_connect(rig);
	if (bytes > 0) {
		raw_send(fd, hello, bytes);
	}
	rig_await_newcomers(rig, 1);
	rig_await_spoken(rig, bytes);
	for (int i = 0; i < 100; i++) {
		rig_pump(rig);
	}
	assert_int_equal(rig_info(rig).strangers_refused, 0);
	rig->ahead_ns += 3601 * WF_NS_PER_S;
	raw_await_close(rig, fd);
	rig_await_strangers(rig, 1);
	char text[32];
	snprintf(text, sizeof(text), "but %zu bytes", bytes);
	assert_stranger(rig, text);
	close(fd);
	rig_close(rig);
}

static void
silent_peer_is_sent_away_when_its_time_is_over(void **state)
{
	(void)state;
	goes_silent_after(0);
}

static void
half_a_head_is_sent_away_when_its_time_is_over(void **state)
{
	(void)state;
	goes_silent_after(32);
	goes_silent_after(63);
}

static void
half_a_hello_is_sent_away_when_its_time_is_over(void **state)
{
	(void)state;
	goes_silent_after(64);
	goes_silent_after(73);
}

static void
hello_that_trickles_is_taken_in_time(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	uint8_t hello[WF_HEAD_BYTES + 10];
	size_t bytes = raw_frame(hello, WF_TCP_HELLO, "0123456789", 10);
	int fd = raw_connect(rig);
	for (size_t i = 0; i < bytes; i++) {
		raw_send(fd, hello + i, 1);
		rig_pump(rig);
	}
	rig_await(rig, WF_EVENT_UP, 1);
	assert_int_equal(rig_info(rig).strangers_refused, 0);
	close(fd);
	rig_close(rig);
}

/* Each byte is progress, but the time is for the whole hello. */
static void
hello_that_trickles_too_long_is_sent_away(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.handshake_timeout_ns = 3600 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	uint8_t hello[WF_HEAD_BYTES + 10];
	raw_frame(hello, WF_TCP_HELLO, "0123456789", 10);
	int fd = raw_connect(rig);
	rig_await_newcomers(rig, 1); /* from here on its time is counted */
	for (size_t i = 0; i < 37; i++) {
		raw_send(fd, hello + i, 1);
		rig_pump(rig);
		rig->ahead_ns += 100 * WF_NS_PER_S;
	}
	raw_await_close(rig, fd);
	rig_await_strangers(rig, 1);
	close(fd);
	rig_close(rig);
}

static void
raw_reset(int fd)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

static void
reset_and_close_before_hello_are_counted(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	for (uint64_t i = 0; i < 10; i++) {
		int fd = raw_connect(rig);
		rig_pump(rig); /* it may be in by now, or not: either is fine */
		raw_send(fd, "WEFT", i % 5 == 0 ? 0 : 4);
		if (i % 2 == 0) {
			raw_reset(fd);
		} else {
			close(fd);
		}
	}
	int fd = raw_connect(rig); /* behind all of them */
	raw_send(fd, "bye", 3);
	close(fd);
	rig_await_strangers(rig, 11);
	rig_close(rig);
}

static const struct wf_transport_opts crowded = {
	.conn_max = 1, .newcomer_max = 4, .handshake_timeout_ns = 3600 * WF_NS_PER_S};

static bool
is_open(int fd)
{
	uint8_t byte;
	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static void
assert_sent_away(struct rig *rig, int fd)
{
	for (int i = 0; i < 10000 && is_open(fd); i++) {
		rig_pump(rig); /* what was sent to it takes a while */
	}
	assert_false(is_open(fd));
}

/* The newest of them are there, the others know why they are not, and a peer still comes in. */
static void
strangers_make_room_for_who_comes_later(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&crowded);
	int fd[10];
	for (int i = 0; i < 10; i++) {
		fd[i] = raw_connect(rig);
	}
	rig_await_strangers(rig, 6);
	assert_stranger(rig, "no room");
	for (int i = 0; i < 6; i++) {
		assert_sent_away(rig, fd[i]);
	}
	for (int i = 6; i < 10; i++) {
		assert_true(is_open(fd[i]));
	}
	assert_int_equal(raw_await_frame(rig, fd[0]).type, WF_TCP_CLOSE);
	struct wf_conn *conn = NULL;
	int peer = raw_join(rig, &conn);
	rig_await_strangers(rig, 7);
	assert_sent_away(rig, fd[6]);
	rig->ahead_ns += 3601 * WF_NS_PER_S;
	rig_await_strangers(rig, 10);
	assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
	for (int i = 0; i < 10; i++) {
		close(fd[i]);
	}
	close(peer);
	rig_close(rig);
}

/* Who has said something stays longer than who says nothing, whoever came first. */
static void
silent_stranger_goes_before_one_that_speaks(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&crowded);
	int fd[5];
	for (int i = 0; i < 4; i++) {
		fd[i] = raw_connect(rig);
		rig_await_newcomers(rig, (uint32_t)i + 1);
	}
	uint8_t hello[WF_HEAD_BYTES] = {0};
	raw_frame(hello, WF_TCP_HELLO, NULL, 0);
	raw_send(fd[0], hello, 10);
	rig_await_spoken(rig, 10);
	fd[4] = raw_connect(rig);
	rig_await_strangers(rig, 1);
	assert_sent_away(rig, fd[1]);
	assert_true(is_open(fd[0]));
	for (int i = 0; i < 5; i++) {
		close(fd[i]);
	}
	rig_close(rig);
}

/* Its hello came together with those who crowd it out: it is read before anybody is sent away. */
static void
hello_that_is_there_is_read_before_its_sender_makes_room(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&crowded);
	uint8_t hello[WF_HEAD_BYTES];
	size_t bytes = raw_frame(hello, WF_TCP_HELLO, NULL, 0);
	int peer = raw_connect(rig);
	raw_send(peer, hello, bytes);
	int fd[20];
	for (int i = 0; i < 20; i++) {
		fd[i] = raw_connect(rig);
	}
	rig_await(rig, WF_EVENT_UP, 1);
	rig_await_strangers(rig, 16);
	assert_true(is_open(peer));
	for (int i = 0; i < 20; i++) {
		close(fd[i]);
	}
	close(peer);
	rig_close(rig);
}

/* As many hellos as newcomers may be are here before any is looked at, and behind them one more
 * that says nothing yet. Nobody comes behind it, so it may stay. */
static void
who_comes_beside_hellos_that_are_read_for_it_may_stay(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&(struct wf_transport_opts){.newcomer_max = 4});
	uint8_t hello[WF_HEAD_BYTES];
	size_t bytes = raw_frame(hello, WF_TCP_HELLO, NULL, 0);
	int fd[5];
	for (int i = 0; i < 5; i++) {
		fd[i] = raw_connect(rig);
		raw_send(fd[i], hello, i < 4 ? bytes : 0);
	}
	rig_await(rig, WF_EVENT_UP, 4);
	for (int i = 0; i < 50; i++) {
		rig_pump(rig);
	}
	assert_int_equal(rig_info(rig).strangers_refused, 0);
	for (int i = 0; i < 5; i++) {
		assert_true(is_open(fd[i]));
		close(fd[i]);
	}
	rig_close(rig);
}

/* Whose hello is good, but for whom there is no place, is told so. */
static void
who_says_hello_to_a_full_house_is_told(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&crowded);
	struct wf_conn *conn = NULL;
	int peer = raw_join(rig, &conn);
	uint8_t hello[WF_HEAD_BYTES];
	int late = raw_connect(rig);
	raw_send(late, hello, raw_frame(hello, WF_TCP_HELLO, NULL, 0));
	struct wf_head head = raw_await_frame(rig, late);
	assert_int_equal(head.type, WF_TCP_CLOSE);
	assert_true(head.body_bytes > 0);
	rig_await_strangers(rig, 1);
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 1);
	close(late);
	close(peer);
	rig_close(rig);
}

/* As many as there are places were refused, and keep their sockets: who comes now is let in by the
 * next polls, not when the time of the others is over, and nothing spins meanwhile. */
static void
crowd_that_was_refused_and_stays_keeps_nobody_out(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.conn_max = 16, .newcomer_max = 4};
	struct rig *rig = rig_open(&opts);
	uint8_t hello[WF_HEAD_BYTES];
	size_t bytes = raw_frame(hello, WF_TCP_HELLO, NULL, 0);
	int fd[16];
	for (int i = 0; i < 16; i++) {
		fd[i] = raw_connect(rig);
		raw_send(fd[i], hello, bytes);
	}
	(void)rig_await(rig, WF_EVENT_UP, 16);
	for (int i = 0; i < 16; i++) {
		struct wf_conn *conn = rig->seen[i].conn;
		assert_int_equal(wf_transport_answer(conn, false, "no", 2), WEFT_OK);
	}
	rig_stop_clock(rig); /* the time of the others is not over */
	int peer = raw_connect(rig);
	raw_send(peer, hello, bytes);
	(void)rig_await(rig, WF_EVENT_UP, 17);
	bool sleeps = false;
	for (int i = 0; i < 20 && !sleeps; i++) {
		sleeps = rig_would_sleep(rig);
	}
	assert_true(sleeps);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(raw_await_frame(rig, fd[i]).type, WF_TCP_REFUSE);
		close(fd[i]);
	}
	(void)rig_await(rig, WF_EVENT_DOWN, 16);
	close(peer);
	rig_close(rig);
}

static void
peers_notice_nothing_of_strangers(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	struct wf_conn *conn = NULL;
	int peer = raw_join(rig, &conn);
	uint8_t frame[WF_HEAD_BYTES];
	for (uint64_t i = 1; i <= 20; i++) {
		int fd = raw_connect(rig);
		uint8_t noise[200];
		memset(noise, (int)i, sizeof(noise));
		raw_send(fd, noise, sizeof(noise));
		struct wf_head head = {.service = WF_SERVICE_CONTROL, .request_id = i};
		wf_head_encode(&head, frame);
		raw_send(peer, frame, sizeof(frame));
		assert_int_equal(rig_await(rig, WF_EVENT_MSG, (unsigned)i)->request_id, i);
		rig_await_strangers(rig, i);
		close(fd);
	}
	assert_int_equal(rig_count(rig, WF_EVENT_DOWN), 0);
	close(peer);
	rig_close(rig);
}

/* With no descriptor left, the pending connection keeps the listener readable for ever. */
static void
want_of_descriptors_neither_spins_nor_lasts(void **state)
{
	(void)state;
	struct rig *rig = rig_open(&plain);
	uint8_t hello[WF_HEAD_BYTES];
	int fd = raw_connect(rig);
	raw_send(fd, hello, raw_frame(hello, WF_TCP_HELLO, NULL, 0));
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int lowest = dup(fd); /* all below are taken */
	close(lowest);
	struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 20; i++) {
		rig_pump(rig);
	}
	/* The clock stands still against the retry: nothing but the deadline may wake. */
	bool sleeps = false;
	for (int i = 0; i < 100 && !sleeps; i++) {
		sleeps = rig_would_sleep(rig);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(sleeps);
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 0);
	rig->ahead_ns += WF_NS_PER_S;
	rig_await(rig, WF_EVENT_UP, 1);
	close(fd);
	rig_close(rig);
}

/* Strangers have all the descriptors that there are: one is taken from them. */
static void
descriptors_of_strangers_are_had_for_peers(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.handshake_timeout_ns = 3600 * WF_NS_PER_S};
	struct rig *rig = rig_open(&opts);
	int stranger[3];
	for (int i = 0; i < 3; i++) {
		stranger[i] = raw_connect(rig);
		rig_await_newcomers(rig, (uint32_t)i + 1);
	}
	uint8_t hello[WF_HEAD_BYTES];
	int peer = raw_connect(rig);
	raw_send(peer, hello, raw_frame(hello, WF_TCP_HELLO, NULL, 0));
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int lowest = dup(peer);
	close(lowest);
	struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 100000 && rig_count(rig, WF_EVENT_UP) == 0; i++) {
		rig_pump(rig);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rig_count(rig, WF_EVENT_UP), 1);
	assert_int_equal(rig_info(rig).strangers_refused, 1);
	assert_sent_away(rig, stranger[0]);
	assert_true(is_open(stranger[1]) && is_open(stranger[2]));
	for (int i = 0; i < 3; i++) {
		close(stranger[i]);
	}
	close(peer);
	rig_close(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_bytes_are_sent_away_and_counted),
		cmocka_unit_test(length_of_two_to_the_63_is_sent_away),
		cmocka_unit_test(hello_over_the_limit_is_sent_away),
		cmocka_unit_test(first_frame_that_is_no_hello_is_sent_away),
		cmocka_unit_test(silent_peer_is_sent_away_when_its_time_is_over),
		cmocka_unit_test(half_a_head_is_sent_away_when_its_time_is_over),
		cmocka_unit_test(half_a_hello_is_sent_away_when_its_time_is_over),
		cmocka_unit_test(hello_that_trickles_is_taken_in_time),
		cmocka_unit_test(hello_that_trickles_too_long_is_sent_away),
		cmocka_unit_test(reset_and_close_before_hello_are_counted),
		cmocka_unit_test(strangers_make_room_for_who_comes_later),
		cmocka_unit_test(silent_stranger_goes_before_one_that_speaks),
		cmocka_unit_test(hello_that_is_there_is_read_before_its_sender_makes_room),
		cmocka_unit_test(who_comes_beside_hellos_that_are_read_for_it_may_stay),
		cmocka_unit_test(who_says_hello_to_a_full_house_is_told),
		cmocka_unit_test(crowd_that_was_refused_and_stays_keeps_nobody_out),
		cmocka_unit_test(peers_notice_nothing_of_strangers),
		cmocka_unit_test(want_of_descriptors_neither_spins_nor_lasts),
		cmocka_unit_test(descriptors_of_strangers_are_had_for_peers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
