/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are not a peer, or not yet: they are closed or waited for, and no other
 * connection is affected. Thread: one; the peer and the transport take turns. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/shm/hostile.h"

static void
a_segment_that_may_shrink_or_is_short_is_refused(void **state)
{
	(void)state;
	const size_t whole = sizeof(struct wf_shm_segment);
	const int bad[] = {hostile_memfd(whole, 0), hostile_memfd(whole, F_SEAL_GROW),
			   hostile_memfd(whole - 4096, F_SEAL_SHRINK), STDERR_FILENO, -1};
	struct hostile h = {0};
	shm_rig_open(&h.rig, true, NULL);
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		hostile_dial(&h);
		hostile_hello(&h, bad[i]);
		struct wf_transport_info info = {0};
		while (info.strangers_refused <= i) {
			shm_rig_pump(&h.rig);
			wf_transport_query(h.rig.transport, &info);
		}
		struct wf_shm_mail mail;
		assert_int_equal(wf_shm_receive_mail(h.fd, &mail), 1);
		assert_int_equal(mail.packet.type, WF_SHM_DENY);
		assert_true(mail.packet.blob_bytes > 0);
		close(h.fd);
		if (bad[i] > STDERR_FILENO) {
			close(bad[i]);
		}
	}
	assert_int_equal(h.rig.ups, 0);
	shm_rig_close(&h.rig);
}

/* They say nothing; who comes last says hello. The oldest of them makes room, and knows why. */
static void
idle_sockets_keep_nobody_out(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {
		.conn_max = 1, .newcomer_max = 4, .handshake_timeout_ns = 3600 * WF_NS_PER_S};
	struct hostile h = {.fd = -1};
	struct wf_shm_packet told = {0};
	int idle[12];
	shm_rig_open(&h.rig, true, &opts);
	for (int i = 0; i < 12; i++) {
		hostile_dial(&h);
		idle[i] = h.fd;
	}
	hostile_dial(&h);
	int memfd = hostile_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	hostile_hello(&h, memfd);
	close(memfd);
	shm_rig_accept(&h.rig);
	struct wf_transport_info info;
	wf_transport_query(h.rig.transport, &info);
	assert_true(info.strangers_refused == 9 || info.strangers_refused == 8);
	assert_non_null(strstr(info.last_stranger, "no room"));
	assert_true(recv(idle[0], &told, sizeof(told), MSG_DONTWAIT) > 0);
	assert_int_equal(told.type, WF_SHM_DENY);
	assert_non_null(strstr((const char *)told.blob, "no room"));
	assert_int_equal(recv(idle[0], &told, sizeof(told), MSG_DONTWAIT), 0);
	assert_true(recv(idle[11], &told, sizeof(told), MSG_DONTWAIT) < 0);
	for (int i = 0; i < 12; i++) {
		close(idle[i]);
	}
	close(h.fd);
	shm_rig_close(&h.rig);
}

/* From now on `count` more descriptors may be had. Returns the limit before. */
static struct rlimit
leave_descriptors(unsigned count)
{
	struct rlimit before;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int lowest = dup(STDERR_FILENO); /* all below are taken */
	assert_true(lowest >= 0);
	close(lowest);
	struct rlimit few = {.rlim_cur = (rlim_t)lowest + count, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return before;
}

static void
await_strangers(struct shm_rig *rig, uint64_t count)
{
	struct wf_transport_info info = {0};
	for (int i = 0; i < 10000 && info.strangers_refused < count; i++) {
		shm_rig_pump(rig);
		wf_transport_query(rig->transport, &info);
	}
	assert_int_equal(info.strangers_refused, count);
}

/* There is one for its socket, and none for the memory that its hello brings. */
static void
want_of_a_descriptor_is_no_fault_of_the_peers(void **state)
{
	(void)state;
	struct hostile h = {.fd = -1};
	struct wf_shm_mail mail;
	struct wf_transport_info info;
	shm_rig_open(&h.rig, true, NULL);
	int memfd = hostile_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	hostile_dial(&h);
	hostile_hello(&h, memfd);
	struct rlimit before = leave_descriptors(1);
	await_strangers(&h.rig, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	wf_transport_query(h.rig.transport, &info);
	assert_non_null(strstr(info.last_stranger, "no room"));
	assert_int_equal(wf_shm_receive_mail(h.fd, &mail), 1);
	assert_int_equal(mail.packet.type, WF_SHM_DENY);
	assert_non_null(strstr((const char *)mail.packet.blob, "ulimit"));
	close(h.fd);
	hostile_dial(&h);
	hostile_hello(&h, memfd);
	shm_rig_accept(&h.rig);
	/* Who sends none at all is told apart. */
	int peer = h.fd;
	hostile_dial(&h);
	hostile_hello(&h, -1);
	await_strangers(&h.rig, 2);
	wf_transport_query(h.rig.transport, &info);
	assert_non_null(strstr(info.last_stranger, "without a descriptor"));
	close(h.fd);
	close(peer);
	close(memfd);
	shm_rig_close(&h.rig);
}

/* They have all that there are but one, and who says hello needs two. */
static void
descriptors_of_strangers_are_had_for_peers(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.handshake_timeout_ns = 3600 * WF_NS_PER_S};
	struct hostile h = {.fd = -1};
	int idle[3];
	shm_rig_open(&h.rig, true, &opts);
	for (int i = 0; i < 3; i++) {
		hostile_dial(&h);
		idle[i] = h.fd;
	}
	for (int i = 0; i < 5; i++) {
		shm_rig_pump(&h.rig);
	}
	int memfd = hostile_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	hostile_dial(&h);
	hostile_hello(&h, memfd);
	close(memfd);
	struct rlimit before = leave_descriptors(0);
	struct wf_transport_info info;
	for (int i = 0; i < 1000 && h.rig.ups == 0; i++) {
		shm_rig_pump(&h.rig);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(h.rig.ups, 1);
	wf_transport_query(h.rig.transport, &info);
	assert_int_equal(info.strangers_refused, 2);
	assert_true(recv(idle[2], &info, 1, MSG_DONTWAIT) < 0);
	for (int i = 0; i < 3; i++) {
		close(idle[i]);
	}
	close(h.fd);
	shm_rig_close(&h.rig);
}

/* As many wake-ups as the socket takes; returns how many. */
static unsigned
flood(const struct hostile *h)
{
	unsigned count = 0;
	while (send(h->fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
		count++;
	}
	return count;
}

/* A lane that armed, and polled once more, sleeps now. */
static bool
would_sleep(struct shm_rig *rig)
{
	struct pollfd pollfd = {.fd = wf_transport_wait_fd(rig->transport), .events = POLLIN};
	struct wf_event event;
	uint64_t deadline_ns = 0;
	unsigned count = 0;
	(void)wf_transport_arm(rig->transport, &deadline_ns);
	assert_int_equal(wf_transport_poll(rig->transport, &event, 1, &count), WEFT_OK);
	return count == 0 && poll(&pollfd, 1, 0) == 0;
}

/* Somebody sends wake-ups as fast as they are read: no poll reads more than its share, and nobody
 * sleeps before all that came is read, for nothing tells of it once more. */
static void
no_poll_is_longer_for_a_flood(struct hostile *h)
{
	assert_true(flood(h) > 2 * WF_SHM_MAIL_BUDGET);
	for (int i = 0; i < 100; i++) {
		shm_rig_pump(&h->rig);
		assert_true(flood(h) <= WF_SHM_MAIL_BUDGET);
	}
	bool sleeps = false;
	for (int i = 0; i < 100 && !sleeps; i++) {
		sleeps = would_sleep(&h->rig);
	}
	assert_true(sleeps);
	assert_true(flood(h) > 2 * WF_SHM_MAIL_BUDGET);
}

static void
wake_ups_before_the_answer_hold_no_poll_up(void **state)
{
	(void)state;
	struct hostile h = {.fd = -1};
	shm_rig_open(&h.rig, true, NULL);
	hostile_dial(&h);
	int memfd = hostile_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	hostile_hello(&h, memfd);
	close(memfd);
	shm_rig_await(&h.rig, &h.rig.ups, 1);
	no_poll_is_longer_for_a_flood(&h);
	assert_int_equal(h.rig.downs, 0);
	close(h.fd);
	shm_rig_await(&h.rig, &h.rig.downs, 1);
	shm_rig_close(&h.rig);
}

/* It has consumed what was published, and holds it: its end waits for that. */
static void
wake_ups_after_the_end_hold_no_poll_up(void **state)
{
	(void)state;
	struct hostile h;
	hostile_join(&h, NULL);
	struct wf_op op = {
		.kind = WF_OP_PUT, .region = h.rig.region, .src = h.rig.slab.base, .bytes = 100000};
	unsigned taken = 0;
	assert_int_equal(wf_transport_post(h.rig.conn, &op, 1, &taken), WEFT_OK);
	shm_rig_pump(&h.rig);
	atomic_store_explicit(&h.segment->way[1].consumed, 1, memory_order_seq_cst); /* S2 */
	wf_transport_disconnect(h.rig.conn, WF_DISCONNECT_NOW);
	no_poll_is_longer_for_a_flood(&h);
	assert_int_equal(h.rig.downs, 0);
	assert_int_equal(shutdown(h.fd, SHUT_RDWR), 0);
	shm_rig_await(&h.rig, &h.rig.downs, 1);
	hostile_close(&h);
}

static void
who_wakes_before_its_hello_is_sent_away(void **state)
{
	(void)state;
	struct hostile h = {.fd = -1};
	struct wf_transport_info info = {0};
	shm_rig_open(&h.rig, true, NULL);
	hostile_dial(&h);
	(void)flood(&h);
	for (int i = 0; i < 100 && info.strangers_refused == 0; i++) {
		shm_rig_pump(&h.rig);
		wf_transport_query(h.rig.transport, &info);
	}
	assert_int_equal(info.strangers_refused, 1);
	assert_non_null(strstr(info.last_stranger, "wake-up"));
	close(h.fd);
	shm_rig_close(&h.rig);
}

/* Whoever listens there denies, at length: one line, whatever bounds hellos and verdicts. */
static void
reason_of_a_denial_is_one_line_of_any_length(void **state)
{
	(void)state;
	struct wf_transport_opts opts = {.blob_max = 16};
	struct shm_rig rig;
	struct wf_host at;
	struct sockaddr_un address;
	shm_rig_open(&rig, true, NULL); /* a port that nobody else has then */
	at = rig.at;
	shm_rig_close(&rig);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t bytes = wf_shm_address(at.port, &address);
	assert_int_equal(bind(listener, (const struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(listener, 4), 0);
	shm_rig_open(&rig, false, &opts);
	struct wf_conn *conn = NULL;
	assert_int_equal(wf_transport_connect(rig.transport, &at, NULL, 0, NULL, &conn), WEFT_OK);
	int accepted = accept(listener, NULL, NULL);
	assert_true(accepted >= 0);
	struct wf_shm_packet packet = {.type = WF_SHM_DENY, .blob_bytes = WF_BLOB_ROOM};
	memset(packet.blob, '\n', sizeof(packet.blob));
	memcpy(packet.blob, "this is why", 11);
	assert_int_equal(wf_shm_send(accepted, &packet, -1), 0);
	shm_rig_await(&rig, &rig.downs, 1);
	assert_int_equal(rig.down_status, WEFT_UNAVAILABLE);
	assert_non_null(strstr(rig.why, "this is why????"));
	close(accepted);
	close(listener);
	shm_rig_close(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segment_that_may_shrink_or_is_short_is_refused),
		cmocka_unit_test(idle_sockets_keep_nobody_out),
		cmocka_unit_test(want_of_a_descriptor_is_no_fault_of_the_peers),
		cmocka_unit_test(descriptors_of_strangers_are_had_for_peers),
		cmocka_unit_test(wake_ups_before_the_answer_hold_no_poll_up),
		cmocka_unit_test(wake_ups_after_the_end_hold_no_poll_up),
		cmocka_unit_test(who_wakes_before_its_hello_is_sent_away),
		cmocka_unit_test(reason_of_a_denial_is_one_line_of_any_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
