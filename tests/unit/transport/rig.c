/* SPDX-License-Identifier: Apache-2.0 */
/* rig: see rig.h. Thread: the test's. */
#include "tests/unit/transport/rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/tcp/tcp_internal.h"

#define PUMPS_MAX 200000
#define REST_NS (200 * WF_NS_PER_US)

static struct rig *
rig_of(struct wf_env *env)
{
	return (struct rig *)((uint8_t *)env - offsetof(struct rig, env));
}

static uint64_t
clock_now_ns(struct wf_env *env)
{
	struct rig *rig = rig_of(env);
	return (rig->stopped_ns > 0 ? rig->stopped_ns : wf_now_ns(rig->system)) + rig->ahead_ns;
}

/* Waits take as long as they would, also where the clock stands still. */
static uint64_t
system_deadline_ns(struct wf_env *env, uint64_t deadline_ns)
{
	struct rig *rig = rig_of(env);
	uint64_t now_ns = clock_now_ns(env);
	uint64_t span_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
	return deadline_ns == WF_NEVER ? WF_NEVER : wf_now_ns(rig->system) + span_ns;
}

static uint64_t
clock_random(struct wf_env *env)
{
	return wf_random(rig_of(env)->system);
}

static void *
clock_alloc(struct wf_env *env, size_t bytes, size_t align)
{
	struct wf_env *inner = &rig_of(env)->failing.env;
	return inner->ops->alloc(inner, bytes, align);
}

static void
clock_free(struct wf_env *env, void *memory, size_t bytes)
{
	wf_free(&rig_of(env)->failing.env, memory, bytes);
}

static enum weft_status
clock_slab_open(struct wf_env *env, size_t bytes, int numa_node, struct wf_slab *out)
{
	struct wf_env *inner = &rig_of(env)->failing.env;
	return inner->ops->slab_open(inner, bytes, numa_node, out);
}

static void
clock_slab_close(struct wf_env *env, struct wf_slab *slab)
{
	struct wf_env *inner = &rig_of(env)->failing.env;
	inner->ops->slab_close(inner, slab);
}

static void
clock_wait(struct wf_env *env, int fd, uint64_t deadline_ns)
{
	wf_wait(rig_of(env)->system, fd, system_deadline_ns(env, deadline_ns));
}

static int
clock_wait_events(struct wf_env *env, int epoll_fd, uint64_t deadline_ns,
		  struct epoll_event *events, int max)
{
	return wf_wait_events(rig_of(env)->system, epoll_fd, system_deadline_ns(env, deadline_ns),
			      events, max);
}

static enum weft_status
clock_submit(struct wf_env *env, struct wf_task *task)
{
	struct wf_env *system = rig_of(env)->system;
	return system->ops->submit(system, task);
}

static void
clock_log(struct wf_env *env, enum weft_log_level level, const char *line)
{
	(void)env;
	(void)level;
	(void)line;
}

static const struct wf_env_ops clock_ops = {
	.now_ns = clock_now_ns,
	.random = clock_random,
	.alloc = clock_alloc,
	.free = clock_free,
	.slab_open = clock_slab_open,
	.slab_close = clock_slab_close,
	.wait = clock_wait,
	.wait_events = clock_wait_events,
	.submit = clock_submit,
	.log = clock_log,
};

struct rig *
rig_open(const struct wf_transport_opts *opts)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	assert_non_null(rig);
	assert_int_equal(wf_env_system_create(WF_LOG_ERROR, 2, &rig->system), WEFT_OK);
	wf_failing_env_init(&rig->failing, rig->system);
	rig->env.ops = &clock_ops;
	struct wf_transport_opts full = *opts;
	full.env = &rig->env;
	assert_int_equal(wf_transport_open("tcp", &full, &rig->transport), WEFT_OK);
	rig->at = (struct wf_host){.name = "127.0.0.1"};
	assert_int_equal(wf_transport_listen(rig->transport, &rig->at, &rig->at.port), WEFT_OK);
	struct wf_region region = {.base = rig->memory, .bytes = sizeof(rig->memory), .memfd = -1};
	assert_int_equal(wf_transport_region_add(rig->transport, &region, &rig->region), WEFT_OK);
	return rig;
}

void
rig_close(struct rig *rig)
{
	wf_transport_close(rig->transport);
	assert_true(wf_failing_env_is_clean(&rig->failing));
	wf_env_system_destroy(rig->system);
	free(rig);
}

static unsigned
poll_once(struct rig *rig)
{
	struct wf_event event[16];
	unsigned count = 0;
	assert_int_equal(wf_transport_poll(rig->transport, event, 16, &count), WEFT_OK);
	for (unsigned i = 0; i < count; i++) {
		assert_true(rig->seen_count < RIG_SEEN_MAX);
		struct rig_seen *seen = &rig->seen[rig->seen_count++];
		*seen = (struct rig_seen){.kind = event[i].kind, .conn = event[i].conn};
		if (event[i].kind == WF_EVENT_DOWN) {
			seen->status = event[i].down.status;
			strncpy(seen->why, event[i].down.why, sizeof(seen->why) - 1);
		} else if (event[i].kind == WF_EVENT_DONE) {
			seen->status = event[i].done.status;
		} else if (event[i].kind == WF_EVENT_MSG) {
			seen->request_id = event[i].msg.head->request_id;
		}
	}
	return count;
}

void
rig_pump(struct rig *rig)
{
	if (poll_once(rig) == 0) {
		int fd = wf_transport_wait_fd(rig->transport);
		wf_wait(&rig->env, fd, wf_now_ns(&rig->env) + REST_NS);
	}
}

unsigned
rig_count(const struct rig *rig, enum wf_event_kind kind)
{
	unsigned count = 0;
	for (unsigned i = 0; i < rig->seen_count; i++) {
		count += rig->seen[i].kind == kind ? 1 : 0;
	}
	return count;
}

struct rig_seen *
rig_await(struct rig *rig, enum wf_event_kind kind, unsigned count)
{
	for (int i = 0; i < PUMPS_MAX && rig_count(rig, kind) < count; i++) {
		rig_pump(rig);
	}
	unsigned at = 0;
	for (unsigned i = 0; i < rig->seen_count; i++) {
		if (rig->seen[i].kind == kind && ++at == count) {
			return &rig->seen[i];
		}
	}
	fail_msg("event %d did not come %u times", (int)kind, count);
	return NULL;
}

struct wf_transport_info
rig_info(struct rig *rig)
{
	struct wf_transport_info info;
	wf_transport_query(rig->transport, &info);
	return info;
}

void
rig_await_strangers(struct rig *rig, uint64_t count)
{
	for (int i = 0; i < PUMPS_MAX && rig_info(rig).strangers_refused < count; i++) {
		rig_pump(rig);
	}
	assert_int_equal(rig_info(rig).strangers_refused, count);
}

void
rig_await_newcomers(struct rig *rig, uint32_t count)
{
	const struct wf_places *places = &wf_medium_of(rig->transport)->places;
	for (int i = 0; i < PUMPS_MAX && places->newcomer_count < count; i++) {
		rig_pump(rig);
	}
	assert_int_equal(places->newcomer_count, count);
}

void
rig_await_spoken(struct rig *rig, size_t bytes)
{
	const struct wf_place *last = wf_medium_of(rig->transport)->places.last;
	const struct wf_tcp_conn *c = NULL;
	for (int i = 0; i < PUMPS_MAX && (c == NULL || c->shake_got < bytes); i++) {
		rig_pump(rig);
		last = wf_medium_of(rig->transport)->places.last;
		c = last != NULL ? last->owner : NULL;
	}
	assert_true(c != NULL && c->shake_got == bytes);
}

void
rig_stop_clock(struct rig *rig)
{
	rig->stopped_ns = wf_now_ns(rig->system);
}

bool
rig_would_sleep(struct rig *rig)
{
	struct pollfd pollfd = {.fd = wf_transport_wait_fd(rig->transport), .events = POLLIN};
	uint64_t deadline_ns = 0;
	(void)wf_transport_arm(rig->transport, &deadline_ns);
	return poll_once(rig) == 0 && poll(&pollfd, 1, 0) == 0 &&
	       deadline_ns > wf_now_ns(&rig->env);
}

bool
rig_rests(struct rig *rig, bool awaits_done)
{
	bool quiet = wf_transport_arm(rig->transport, &rig->deadline_ns);
	return (quiet && !awaits_done) || poll_once(rig) == 0;
}

void
rig_sleep(struct rig *rig)
{
	wf_transport_wait(rig->transport, rig->deadline_ns);
	(void)poll_once(rig);
}

int
raw_connect(const struct rig *rig)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(rig->at.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

void
raw_send(int fd, const void *bytes, size_t count)
{
	assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

void
raw_fall_silent(int fd)
{
	struct sock_filter drop = {.code = BPF_RET | BPF_K};
	const struct sock_fprog program = {.len = 1, .filter = &drop};
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
			 0);
}

void
raw_await_close(struct rig *rig, int fd)
{
	uint8_t bytes[256];
	for (int i = 0; i < PUMPS_MAX; i++) {
		rig_pump(rig);
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			return;
		}
	}
	fail_msg("the transport did not close");
}

static void
await_bytes(struct rig *rig, int fd, uint8_t *out, size_t count)
{
	size_t got = 0;
	for (int i = 0; i < PUMPS_MAX && got < count; i++) {
		ssize_t n = recv(fd, out + got, count - got, MSG_DONTWAIT);
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		if (n > 0) {
			got += (size_t)n;
		} else {
			rig_pump(rig);
		}
	}
	assert_int_equal(got, count);
}

struct wf_head
raw_await_frame(struct rig *rig, int fd)
{
	uint8_t bytes[WF_TCP_BLOB_FRAME_BYTES];
	struct wf_head head;
	await_bytes(rig, fd, bytes, WF_HEAD_BYTES);
	assert_int_equal(wf_head_decode(bytes, WF_BLOB_MAX, &head), WEFT_OK);
	await_bytes(rig, fd, bytes, head.body_bytes);
	return head;
}

size_t
raw_frame(uint8_t *out, uint8_t type, const void *body, size_t body_bytes)
{
	struct wf_head head = {
		.service = WF_SERVICE_TRANSPORT, .type = type, .body_bytes = body_bytes};
	wf_head_encode(&head, out);
	if (body_bytes > 0) {
		memcpy(out + WF_HEAD_BYTES, body, body_bytes);
	}
	return WF_HEAD_BYTES + body_bytes;
}

int
raw_join(struct rig *rig, struct wf_conn **conn)
{
	uint8_t hello[WF_HEAD_BYTES + 3];
	int fd = raw_connect(rig);
	raw_send(fd, hello, raw_frame(hello, WF_TCP_HELLO, "raw", 3));
	struct rig_seen *up = rig_await(rig, WF_EVENT_UP, rig_count(rig, WF_EVENT_UP) + 1);
	*conn = up->conn;
	assert_int_equal(wf_transport_answer(up->conn, true, NULL, 0), WEFT_OK);
	assert_int_equal(raw_await_frame(rig, fd).type, WF_TCP_ACCEPT);
	return fd;
}
