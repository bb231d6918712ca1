/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of what the tcp backend makes of a stream.
 *
 * byte 0: bits 0-1: what the stream meets (enum meets); bit 2: heads are repaired, so that the
 * bytes get past magic and CRC; bit 3: and PUTs carry the nonce of a grant; bit 4: slots, not
 * places byte 1: bytes per write, 0: all at once rest:   the stream */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "transport/tcp/tcp_internal.h"

#define STREAM_MAX 20000u
#define MEMORY_BYTES 16384u
#define GRANT_AT 4096u
#define GRANT_BYTES 8192u
#define SLOT_COUNT 4u
#define POLLS_MAX 100000

enum meets {
	MEETS_LISTENER,   /* who waits for a hello */
	MEETS_UNDECIDED,  /* who has the hello and has not answered */
	MEETS_UP,         /* who has answered, and granted */
	MEETS_CONNECTING, /* who waits for the verdict */
};

struct target {
	struct wf_env *env;
	struct wf_transport *transport;
	struct wf_conn *conn; /* NULL: not seen yet, or gone */
	uint8_t memory[MEMORY_BYTES];
	int fd; /* the far end */
	enum meets meets;
	bool slots;
	struct wf_grant_key key;
	unsigned ups, downs;
};

static void
on_event(struct target *t, const struct wf_event *event)
{
	WF_ASSERT(t->downs == 0); /* nothing comes after DOWN */
	switch (event->kind) {
	case WF_EVENT_UP:
		t->ups++;
		t->conn = event->conn;
		WF_ASSERT(event->up.blob_bytes <= WF_BLOB_MAX);
		break;
	case WF_EVENT_DOWN:
		t->downs++;
		t->conn = NULL;
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
		WF_ASSERT(false); /* nothing was posted */
		break;
	}
}

static unsigned
poll_once(struct target *t)
{
	struct wf_event event[4];
	unsigned count = 0;
	WF_ASSERT(wf_transport_poll(t->transport, event, 4, &count) == WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		on_event(t, &event[i]);
	}
	return count;
}

/* Until there is nothing left to do without new bytes. */
static void
poll_dry(struct target *t)
{
	const struct wf_tcp *tcp = wf_tcp_of(t->transport);
	unsigned empty = 0;
	for (int i = 0; empty < 2; i++) {
		WF_ASSERT(i < POLLS_MAX);
		unsigned count = poll_once(t);
		empty = count == 0 && tcp->medium.loop.ready_count == 0 ? empty + 1 : 0;
	}
}

static void
write_all(struct target *t, const uint8_t *bytes, size_t count, size_t each)
{
	while (count > 0) {
		size_t n = each == 0 || each > count ? count : each;
		ssize_t sent = send(t->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN) {
			return; /* the target has closed */
		}
		bytes += sent < 0 ? 0 : sent;
		count -= sent < 0 ? 0 : (size_t)sent;
		poll_dry(t);
	}
}

static void
write_hello(struct target *t)
{
	uint8_t hello[WF_HEAD_BYTES];
	struct wf_head head = {.type = WF_TCP_HELLO};
	wf_head_encode(&head, hello);
	write_all(t, hello, sizeof(hello), 0);
	WF_ASSERT(t->ups == 1 && t->conn != NULL);
}

static void
answer_and_grant(struct target *t)
{
	WF_ASSERT(wf_transport_answer(t->conn, true, NULL, 0) == WEFT_OK);
	struct wf_region region = {.base = t->memory, .bytes = sizeof(t->memory), .memfd = -1};
	struct wf_grant grant = {.offset = GRANT_AT, .bytes = GRANT_BYTES};
	if (t->slots) {
		grant.kind = WF_GRANT_SLOTS;
		grant.bytes = GRANT_BYTES / SLOT_COUNT;
		grant.slot_count = SLOT_COUNT;
	}
	WF_ASSERT(wf_transport_region_add(t->transport, &region, &grant.region) == WEFT_OK);
	WF_ASSERT(wf_transport_grant(t->conn, &grant, &t->key) == WEFT_OK);
	poll_dry(t);
}

/* A connecting end whose connect(2) has just succeeded. */
static void
begin_connecting(struct target *t, int near)
{
	struct wf_tcp *tcp = wf_tcp_of(t->transport);
	struct wf_life *life = wf_life_create(&tcp->medium, false);
	WF_ASSERT(life != NULL);
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	wf_tcp_conn_init(c);
	WF_ASSERT(wf_tcp_conn_buffers(c) == WEFT_OK);
	life->visible = true;
	c->fd = near;
	wf_life_enter(life, WF_LIFE_SHAKING);
	t->conn = &life->conn;
	wf_tcp_control(c, WF_TCP_HELLO, NULL, 0);
	uint32_t mask = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	WF_ASSERT(wf_loop_watch(&tcp->medium.loop, near, mask, &c->source) == WEFT_OK);
	poll_dry(t);
}

static void
begin(struct target *t)
{
	int fd[2];
	WF_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
	t->fd = fd[1];
	if (t->meets == MEETS_CONNECTING) {
		begin_connecting(t, fd[0]);
		return;
	}
	struct sockaddr_storage nobody = {0};
	poll_dry(t); /* the clock of the transport goes */
	wf_tcp_adopt(wf_tcp_of(t->transport), fd[0], &nobody);
	if (t->meets != MEETS_LISTENER) {
		write_hello(t);
	}
	if (t->meets == MEETS_UP) {
		answer_and_grant(t);
	}
}

/* Give each head of the stream its magic, version and CRC, and a length that ends within it or a
 * little behind. */
static void
repair(struct target *t, uint8_t *stream, size_t bytes, bool with_nonce)
{
	size_t at = 0;
	while (at + WF_HEAD_BYTES <= bytes) {
		uint8_t *raw = stream + at;
		struct wf_head head = {
			.service = raw[5] & 3,
			.type = raw[6] & 7,
			.flags = raw[7] & 1,
			.body_bytes = (size_t)(raw[8] | (raw[9] & 0x1f) << 8),
			.slice = raw[32] | (uint32_t)raw[33] << 8,
			.region = raw[36] & 3,
			.offset = (size_t)(raw[40] | (raw[41] & 0x1f) << 8),
		};
		if (with_nonce) {
			uint32_t number = 0;
			wf_grant_key_read(&t->key, &number, &head.request_id);
		}
		wf_head_encode(&head, raw);
		at += WF_HEAD_BYTES + head.body_bytes;
	}
}

static void
check_guards(const struct target *t)
{
	for (size_t i = 0; i < MEMORY_BYTES; i++) {
		bool granted = i >= GRANT_AT && i < GRANT_AT + GRANT_BYTES;
		WF_ASSERT(granted || t->memory[i] == 0xa5);
	}
}

static void
finish(struct target *t)
{
	close(t->fd);
	poll_dry(t);
	poll_dry(t);
	/* Whoever was seen has gone, and nobody is left behind. */
	WF_ASSERT(t->downs == (t->ups > 0 || t->meets == MEETS_CONNECTING ? 1u : 0u));
	WF_ASSERT(wf_places_count(&wf_medium_of(t->transport)->places) == 0);
	check_guards(t);
	wf_transport_close(t->transport);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct wf_env *env; /* one for all inputs */
	static uint8_t stream[STREAM_MAX];
	if (bytes < 2 || bytes - 2 > STREAM_MAX) {
		return 0;
	}
	if (env == NULL) {
		WF_ASSERT(wf_env_system_create(WF_LOG_ERROR, -1, &env) == WEFT_OK);
	}
	struct target t = {.env = env, .meets = data[0] & 3, .slots = (data[0] & 16) != 0};
	struct wf_transport_opts opts = {.env = env, .op_max = 4, .put_bytes_max = 1u << 20};
	memset(t.memory, 0xa5, sizeof(t.memory));
	WF_ASSERT(wf_transport_open("tcp", &opts, &t.transport) == WEFT_OK);
	begin(&t);
	memcpy(stream, data + 2, bytes - 2);
	if ((data[0] & 4) != 0) {
		repair(&t, stream, bytes - 2, (data[0] & 8) != 0 && t.meets == MEETS_UP);
	}
	write_all(&t, stream, bytes - 2, data[1]);
	finish(&t);
	return 0;
}
