/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what the shm backend makes of a segment that the peer writes, and of its packets.
 *
 * byte 0: bit 0: slots, not places; bit 1: PUTs carry the key of the grant; bit 2: the peer has
 * sent a region; bit 3: this end has something under way. Then records of 57 bytes: what to write
 * (enum writes, modulo its size), and the bytes. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_target.h"
#include "transport/shm/shm_internal.h"

#define RECORD_BYTES (1 + sizeof(union wf_shm_note))
#define RECORDS_MAX 600u
#define MEMORY_BYTES 32768u
#define GRANT_AT 4096u
#define GRANT_BYTES 8192u
#define SLOT_COUNT 4u
#define PEER_REGION 0x103u
#define POLLS_MAX 10000

enum writes {
	WRITES_CELL,
	WRITES_CELL_BEFORE, /* the cell that was filled last, after the fact */
	WRITES_PACKET,
	WRITES_COMPLETION,
	WRITES_CONSUMED,
	WRITES_CLOSING,
	WRITES_COUNT,
};

struct target {
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_conn *conn;
	struct wf_slab slab;
	uint32_t region;
	struct wf_grant_key key;
	int fd; /* the peer's */
	struct wf_shm_segment *segment;
	uint64_t filled, completed;
	unsigned downs, dones, posted;
	bool slots;
};

static void
on_event(struct target *t, const struct wf_event *event)
{
	WF_ASSERT(t->downs == 0); /* nothing comes after DOWN */
	switch (event->kind) {
	case WF_EVENT_UP:
		t->conn = event->conn;
		break;
	case WF_EVENT_DOWN:
		t->downs++;
		WF_ASSERT(event->down.status != WEFT_OK && event->down.why[0] != '\0');
		break;
	case WF_EVENT_MSG:
		WF_ASSERT(event->msg.head->service != WF_SERVICE_TRANSPORT);
		WF_ASSERT(event->msg.head->body_bytes <= WF_MSG_BODY_MAX);
		break;
	case WF_EVENT_PUT:
		WF_ASSERT((event->put.data != NULL) == t->slots);
		if (t->slots && wf_tag_step(event->put.tag) != 0) {
			wf_transport_release(event->conn, wf_tag_slot(event->put.tag));
		}
		break;
	case WF_EVENT_DONE:
		t->dones++;
		WF_ASSERT(t->dones <= t->posted);
		break;
	}
}

static void
poll_dry(struct target *t)
{
	struct wf_shm *shm = wf_shm_of(t->transport);
	unsigned empty = 0;
	for (int i = 0; empty < 2; i++) {
		WF_ASSERT(i < POLLS_MAX);
		struct wf_event event[4];
		unsigned count = 0;
		shm->medium.loop.state = WF_LOOP_ASLEEP; /* look at the sockets, too */
		WF_ASSERT(wf_transport_poll(t->transport, event, 4, &count) == WEFT_OK);
		for (unsigned j = 0; j < count; j++) {
			on_event(t, &event[j]);
		}
		empty = count == 0 && !shm->medium.loop.left ? empty + 1 : 0;
	}
}

static int
make_memfd(size_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	WF_ASSERT(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	WF_ASSERT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return fd;
}

static void
begin(struct target *t)
{
	int fd[2];
	WF_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
	t->fd = fd[1];
	int memfd = make_memfd(sizeof(*t->segment));
	void *memory =
		mmap(NULL, sizeof(*t->segment), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	WF_ASSERT(memory != MAP_FAILED);
	t->segment = memory;
	struct wf_shm_packet hello = {.type = WF_SHM_HELLO, .bytes = sizeof(*t->segment)};
	WF_ASSERT(wf_shm_send(t->fd, &hello, memfd) == 0);
	close(memfd);
	struct wf_host at = {.name = "localhost", .port = 1};
	wf_shm_adopt(wf_shm_of(t->transport), fd[0], &at);
	poll_dry(t);
	WF_ASSERT(t->conn != NULL && wf_transport_answer(t->conn, true, NULL, 0) == WEFT_OK);
	struct wf_region region = {t->slab.base, t->slab.bytes, t->slab.memfd};
	WF_ASSERT(wf_transport_region_add(t->transport, &region, &t->region) == WEFT_OK);
	struct wf_grant grant = {.region = t->region, .offset = GRANT_AT, .bytes = GRANT_BYTES};
	if (t->slots) {
		grant.kind = WF_GRANT_SLOTS;
		grant.bytes = GRANT_BYTES / SLOT_COUNT;
		grant.slot_count = SLOT_COUNT;
	}
	WF_ASSERT(wf_transport_grant(t->conn, &grant, &t->key) == WEFT_OK);
}

static void
send_region(struct target *t)
{
	int memfd = make_memfd(MEMORY_BYTES);
	struct wf_shm_packet packet = {
		.type = WF_SHM_REGION, .region = PEER_REGION, .bytes = MEMORY_BYTES};
	WF_ASSERT(wf_shm_send(t->fd, &packet, memfd) == 0);
	close(memfd);
}

/* A published PUT, and a message. */
static void
post(struct target *t)
{
	struct wf_head head = {.service = WF_SERVICE_CONTROL};
	struct wf_op ops[2] = {
		{.kind = WF_OP_PUT, .region = t->region, .src = t->slab.base, .bytes = 20000},
		{.kind = WF_OP_SEND, .head = &head},
	};
	WF_ASSERT(wf_transport_post(t->conn, ops, 2, &t->posted) == WEFT_OK);
}

static void
write_cell(struct target *t, const uint8_t *bytes, uint64_t number, bool with_key)
{
	struct wf_shm_cell *cell = &t->segment->way[0].cell[number % WF_SHM_CELLS];
	memcpy(&cell->note, bytes, sizeof(cell->note));
	if (with_key && cell->note.put.kind != WF_SHM_MSG) {
		wf_grant_key_read(&t->key, &cell->note.put.grant, &cell->note.put.nonce);
	}
	atomic_store_explicit(&cell->seq, number + 1, memory_order_release); /* S1 */
}

static void
write_record(struct target *t, const uint8_t *record, bool with_key)
{
	const uint8_t *bytes = record + 1;
	uint64_t word = 0;
	memcpy(&word, bytes, sizeof(word));
	switch ((enum writes)(record[0] % WRITES_COUNT)) {
	case WRITES_CELL:
		write_cell(t, bytes, t->filled++, with_key);
		break;
	case WRITES_CELL_BEFORE:
		write_cell(t, bytes, t->filled - (t->filled > 0 ? 1 : 0), with_key);
		t->filled += t->filled == 0 ? 1 : 0;
		break;
	case WRITES_PACKET:
		(void)send(t->fd, bytes, bytes[55] % 56u, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case WRITES_COMPLETION:
		t->completed++;
		word = (uint64_t)(uint32_t)t->completed << 32 | (uint32_t)word;
		atomic_store_explicit(
			&t->segment->way[1].completion[(t->completed - 1) % WF_SHM_REFS], word,
			memory_order_release); /* S3 */
		break;
	case WRITES_CONSUMED:
		atomic_store_explicit(&t->segment->way[1].consumed, word,
				      memory_order_seq_cst); /* S2 */
		break;
	case WRITES_CLOSING:
	case WRITES_COUNT:
		atomic_store_explicit(&t->segment->end[0].closing, (uint32_t)word,
				      memory_order_seq_cst); /* S4 */
		break;
	}
	if ((bytes[54] & 1) != 0) {
		poll_dry(t);
	}
}

static void
finish(struct target *t)
{
	close(t->fd);
	poll_dry(t);
	poll_dry(t);
	/* It has gone, with all that was under way, and nothing is left. */
	WF_ASSERT(t->downs == 1 && t->dones == t->posted);
	WF_ASSERT(wf_medium_of(t->transport)->conn_count == 0);
	const uint8_t *memory = t->slab.base;
	for (size_t i = 0; i < MEMORY_BYTES; i++) {
		bool granted = i >= GRANT_AT && i < GRANT_AT + GRANT_BYTES;
		WF_ASSERT(granted || memory[i] == 0xa5);
	}
	wf_transport_close(t->transport);
	munmap(t->segment, sizeof(*t->segment));
	t->env->ops->slab_close(t->env, &t->slab);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct wf_env *env; /* one for all inputs */
	if (bytes < 1 || (bytes - 1) / RECORD_BYTES > RECORDS_MAX) {
		return 0;
	}
	if (env == NULL) {
		WF_ASSERT(wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK);
	}
	struct target t = {.env = env, .slots = (data[0] & 1) != 0};
	struct wf_transport_opts opts = {.env = env, .op_max = 4, .put_bytes_max = 1u << 20};
	WF_ASSERT(env->ops->slab_open(env, MEMORY_BYTES, -1, &t.slab) == WEFT_OK);
	memset(t.slab.base, 0xa5, MEMORY_BYTES);
	WF_ASSERT(wf_transport_open("shm", &opts, &t.transport) == WEFT_OK);
	begin(&t);
	if ((data[0] & 4) != 0) {
		send_region(&t);
	}
	if ((data[0] & 8) != 0) {
		post(&t);
	}
	for (size_t at = 1; at + RECORD_BYTES <= bytes; at += RECORD_BYTES) {
		write_record(&t, data + at, (data[0] & 2) != 0);
	}
	poll_dry(&t);
	finish(&t);
	return 0;
}
