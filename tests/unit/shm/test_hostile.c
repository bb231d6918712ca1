/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer that writes its segment and its packets by hand can do: take its own connection down.
 * Thread: one; the peer and the transport take turns. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/shm/shm_rig.h"
#include "transport/shm/shm_internal.h"

#define GRANT_AT 4096u
#define GRANT_BYTES 8192u

struct hostile {
	struct shm_rig rig;
	int fd;
	struct wf_shm_segment *segment;
	struct wf_shm_way *way; /* the one that the peer fills */
	uint64_t filled;
	struct wf_grant_key key;
};

static int
make_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (seals != 0) {
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	}
	return fd;
}

static void
dial(struct hostile *h)
{
	h->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(h->fd >= 0);
	struct sockaddr_un address;
	socklen_t bytes = wf_shm_address(h->rig.at.port, &address);
	assert_int_equal(connect(h->fd, (const struct sockaddr *)&address, bytes), 0);
}

static void
say_hello(struct hostile *h, int memfd)
{
	struct wf_shm_packet hello = {.type = WF_SHM_HELLO, .bytes = sizeof(struct wf_shm_segment)};
	assert_int_equal(wf_shm_send(h->fd, &hello, memfd), 0);
}

static void
open_with(struct hostile *h, const struct wf_transport_opts *opts)
{
	memset(h, 0, sizeof(*h));
	shm_rig_open(&h->rig, true, opts);
	memset(h->rig.slab.base, 0xa5, 65536);
	dial(h);
	int memfd = make_memfd(sizeof(*h->segment), F_SEAL_SHRINK);
	h->segment = mmap(NULL, sizeof(*h->segment), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_true(h->segment != MAP_FAILED);
	h->way = &h->segment->way[0];
	say_hello(h, memfd);
	close(memfd);
	shm_rig_accept(&h->rig);
}

static void
hostile_open(struct hostile *h, uint32_t slots)
{
	open_with(h, NULL);
	struct wf_grant grant = {.kind = slots > 0 ? WF_GRANT_SLOTS : WF_GRANT_PLACE,
				 .region = h->rig.region,
				 .offset = GRANT_AT,
				 .bytes = slots > 0 ? GRANT_BYTES / slots : GRANT_BYTES,
				 .slot_count = slots};
	assert_int_equal(wf_transport_grant(h->rig.conn, &grant, &h->key), WEFT_OK);
}

static void
hostile_close(struct hostile *h)
{
	const uint8_t *memory = h->rig.slab.base;
	for (size_t i = 0; i < 65536; i++) {
		bool granted = i >= GRANT_AT && i < GRANT_AT + GRANT_BYTES;
		assert_true(granted || memory[i] == 0xa5);
	}
	close(h->fd);
	munmap(h->segment, sizeof(*h->segment));
	shm_rig_close(&h->rig);
}

static void
fill(struct hostile *h, const union wf_shm_note *note)
{
	struct wf_shm_cell *cell = &h->way->cell[h->filled % WF_SHM_CELLS];
	cell->note = *note;
	h->filled++;
	atomic_store_explicit(&cell->seq, h->filled, memory_order_release); /* S1 */
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
	fill(&h, &notes[0]);
	if (second != NULL) {
		notes[1] = *second;
		if (with_key) {
			wf_grant_key_read(&h.key, &notes[1].put.grant, &notes[1].put.nonce);
		}
		fill(&h, &notes[1]);
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
	bad[4].put.offset = GRANT_BYTES - 9;
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
	fill(&h, &begun);
	fill(&h, &msg);
	expect_protocol(&h);
	hostile_close(&h);
}

static void
send_region(struct hostile *h, uint32_t id, uint64_t bytes, int memfd)
{
	struct wf_shm_packet packet = {.type = WF_SHM_REGION, .region = id, .bytes = bytes};
	assert_int_equal(wf_shm_send(h->fd, &packet, memfd), 0);
}

static void
a_published_put_from_outside_its_region_takes_the_connection_down(void **state)
{
	(void)state;
	static const uint64_t at[] = {4096 - 9, 4096, 4097, UINT64_MAX};
	for (size_t i = 0; i < WF_ARRAY_COUNT(at); i++) {
		struct hostile h;
		hostile_open(&h, i % 2 == 0 ? 0 : 4);
		int memfd = make_memfd(4096, F_SEAL_SHRINK);
		send_region(&h, wf_shm_region_id(3, 1), 4096, memfd);
		close(memfd);
		union wf_shm_note note = {.put = good_put(&h)};
		note.put.where = WF_SHM_REF;
		note.put.region = wf_shm_region_id(3, 1);
		note.put.at = at[i];
		fill(&h, &note);
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
		{0x101, 4096, make_memfd(4096, 0)},
		{0x101, 4096, make_memfd(4096, F_SEAL_GROW)},
		{0x101, 8192, make_memfd(4096, F_SEAL_SHRINK)},
		{0x101, UINT64_MAX, make_memfd(4096, F_SEAL_SHRINK)},
		{0x101, 0, make_memfd(4096, F_SEAL_SHRINK)},
		{0x100, 4096, make_memfd(4096, F_SEAL_SHRINK)},
		{0x141, 4096, make_memfd(4096, F_SEAL_SHRINK)},
		{0x101, 4096, file},
		{0x101, 4096, ends[0]},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		struct hostile h;
		hostile_open(&h, 0);
		send_region(&h, bad[i].id, bad[i].bytes, bad[i].fd);
		expect_protocol(&h);
		hostile_close(&h);
		close(bad[i].fd);
	}
	close(ends[1]);
}

static void
a_segment_that_may_shrink_or_is_short_is_refused(void **state)
{
	(void)state;
	const size_t whole = sizeof(struct wf_shm_segment);
	const int bad[] = {make_memfd(whole, 0), make_memfd(whole, F_SEAL_GROW),
			   make_memfd(whole - 4096, F_SEAL_SHRINK), STDERR_FILENO, -1};
	struct hostile h = {0};
	shm_rig_open(&h.rig, true, NULL);
	for (size_t i = 0; i < WF_ARRAY_COUNT(bad); i++) {
		dial(&h);
		say_hello(&h, bad[i]);
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
	open_with(&h, &opts);
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
	struct wf_region region = {rig.slab.base, 8192, make_memfd(4096, 0)};
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
		dial(&h);
		idle[i] = h.fd;
	}
	dial(&h);
	int memfd = make_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	say_hello(&h, memfd);
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
	int memfd = make_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	dial(&h);
	say_hello(&h, memfd);
	struct rlimit before = leave_descriptors(1);
	await_strangers(&h.rig, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	wf_transport_query(h.rig.transport, &info);
	assert_non_null(strstr(info.last_stranger, "no room"));
	assert_int_equal(wf_shm_receive_mail(h.fd, &mail), 1);
	assert_int_equal(mail.packet.type, WF_SHM_DENY);
	assert_non_null(strstr((const char *)mail.packet.blob, "ulimit"));
	close(h.fd);
	dial(&h);
	say_hello(&h, memfd);
	shm_rig_accept(&h.rig);
	/* Who sends none at all is told apart. */
	int peer = h.fd;
	dial(&h);
	say_hello(&h, -1);
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
		dial(&h);
		idle[i] = h.fd;
	}
	for (int i = 0; i < 5; i++) {
		shm_rig_pump(&h.rig);
	}
	int memfd = make_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	dial(&h);
	say_hello(&h, memfd);
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

static void
a_region_without_a_descriptor_takes_the_connection_down(void **state)
{
	(void)state;
	struct hostile h;
	hostile_open(&h, 0);
	send_region(&h, wf_shm_region_id(3, 1), 4096, -1);
	expect_protocol(&h);
	hostile_close(&h);
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

/* Somebody sends wake-ups as fast as they are read: no poll reads more than its share. */
static void
no_poll_is_longer_for_a_flood(struct hostile *h)
{
	assert_true(flood(h) > 2 * WF_SHM_MAIL_BUDGET);
	unsigned read_in_all = 0;
	for (int i = 0; i < 100; i++) {
		shm_rig_pump(&h->rig);
		unsigned read_now = flood(h);
		assert_true(read_now <= WF_SHM_MAIL_BUDGET);
		read_in_all += read_now;
	}
	assert_true(read_in_all > WF_SHM_MAIL_BUDGET); /* and it goes on, without another edge */
}

static void
wake_ups_before_the_answer_hold_no_poll_up(void **state)
{
	(void)state;
	struct hostile h = {.fd = -1};
	shm_rig_open(&h.rig, true, NULL);
	dial(&h);
	int memfd = make_memfd(sizeof(struct wf_shm_segment), F_SEAL_SHRINK);
	say_hello(&h, memfd);
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
	open_with(&h, NULL);
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
	dial(&h);
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
		cmocka_unit_test(a_message_that_cannot_be_takes_the_connection_down),
		cmocka_unit_test(a_put_that_cannot_be_takes_the_connection_down),
		cmocka_unit_test(cells_between_the_parts_of_a_put_take_the_connection_down),
		cmocka_unit_test(a_published_put_from_outside_its_region_takes_the_connection_down),
		cmocka_unit_test(a_region_that_may_shrink_or_is_short_takes_the_connection_down),
		cmocka_unit_test(a_segment_that_may_shrink_or_is_short_is_refused),
		cmocka_unit_test(bytes_that_are_no_packet_take_the_connection_down),
		cmocka_unit_test(consuming_what_was_not_sent_takes_the_connection_down),
		cmocka_unit_test(completing_what_was_not_sent_takes_the_connection_down),
		cmocka_unit_test(a_peer_that_takes_nothing_in_is_there_until_its_socket_closes),
		cmocka_unit_test(who_is_given_a_region_cannot_write_it),
		cmocka_unit_test(a_region_whose_memfd_is_too_short_is_invalid),
		cmocka_unit_test(a_name_of_another_host_is_unavailable),
		cmocka_unit_test(idle_sockets_keep_nobody_out),
		cmocka_unit_test(want_of_a_descriptor_is_no_fault_of_the_peers),
		cmocka_unit_test(descriptors_of_strangers_are_had_for_peers),
		cmocka_unit_test(a_region_without_a_descriptor_takes_the_connection_down),
		cmocka_unit_test(reason_of_a_denial_is_one_line_of_any_length),
		cmocka_unit_test(who_wakes_before_its_hello_is_sent_away),
		cmocka_unit_test(wake_ups_before_the_answer_hold_no_poll_up),
		cmocka_unit_test(wake_ups_after_the_end_hold_no_poll_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
