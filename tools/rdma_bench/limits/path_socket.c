/* SPDX-License-Identifier: Apache-2.0 */
/* path_socket: a TCP connection without weft, which both ends poll: what the transport tcp is held
 * against. Messages are bytes one behind the other; what is handed over together goes out in one
 * call. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/rdma_bench/limits/paths.h"

struct socket_path {
	struct wf_peer_path path; /* first */
	int fd;
	struct wf_slab slab;
	uint64_t bytes_in;  /* of messages, in this leg */
	uint64_t bytes_out; /* of messages, in this leg */
};

static struct socket_path *
socket_of(struct wf_peer_path *path)
{
	return (struct socket_path *)path;
}

static const char *
socket_name(const struct wf_peer_path *path, const struct wf_peer_leg *leg)
{
	return "raw socket";
}

static void
socket_begin(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	path->stride = path->leg->bytes;
	path->areas_max = UINT64_MAX;
	s->bytes_in = 0;
	s->bytes_out = 0;
}

static bool
is_for_later(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static enum weft_status
fail_stream(ssize_t n, const char *what)
{
	if (n == 0) {
		return wf_fail(WEFT_LOST, "the raw socket: the other side has closed it");
	}
	return wf_fail_errno(WEFT_LOST, errno, "the raw socket: %s", what);
}

/* Parts of a message count when all of it has gone. */
static enum weft_status
socket_send(struct wf_peer_path *path, uint64_t first, uint64_t count, uint64_t *taken)
{
	struct socket_path *s = socket_of(path);
	uint64_t end = (first + count) * path->leg->bytes;
	uint64_t ring_bytes = path->areas * path->stride;
	uint64_t at = s->bytes_out % ring_bytes;
	uint64_t bytes = end - s->bytes_out;
	bytes = bytes < ring_bytes - at ? bytes : ring_bytes - at;
	ssize_t n = send(s->fd, path->src + at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		return is_for_later(n) ? WEFT_OK : fail_stream(n, "send");
	}
	s->bytes_out += (uint64_t)n;
	*taken = s->bytes_out / path->leg->bytes - first;
	path->done += *taken;
	path->moved = true;
	return WEFT_OK;
}

static enum weft_status
socket_tell(struct wf_peer_path *path, uint64_t count, bool *taken)
{
	static const uint8_t byte = 1;
	ssize_t n = send(socket_of(path)->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	*taken = n == 1;
	return n == 1 || is_for_later(n) ? WEFT_OK : fail_stream(n, "send");
}

/* Behind all messages comes one byte: the other end has all of ours. */
static enum weft_status
take_byte(struct wf_peer_path *path)
{
	uint8_t byte = 0;
	ssize_t n = recv(socket_of(path)->fd, &byte, 1, MSG_DONTWAIT);
	if (n == 1) {
		path->peer_has = path->leg->send_count;
		path->moved = true;
		return WEFT_OK;
	}
	return is_for_later(n) ? WEFT_OK : fail_stream(n, "recv");
}

static enum weft_status
socket_progress(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	const struct wf_peer_leg *leg = path->leg;
	if (path->received == leg->receive_count) {
		return leg->ping ? WEFT_OK : take_byte(path);
	}
	uint64_t ring_bytes = path->areas * path->stride;
	uint64_t at = s->bytes_in % ring_bytes;
	uint64_t bytes = leg->receive_count * leg->bytes - s->bytes_in;
	bytes = bytes < ring_bytes - at ? bytes : ring_bytes - at;
	ssize_t n = recv(s->fd, path->dst + at, bytes, MSG_DONTWAIT);
	if (n <= 0) {
		return is_for_later(n) ? WEFT_OK : fail_stream(n, "recv");
	}
	enum weft_status st = WEFT_OK;
	path->moved = true;
	s->bytes_in += (uint64_t)n;
	while (st == WEFT_OK && (path->received + 1) * leg->bytes <= s->bytes_in) {
		st = wf_peer_take(path, wf_peer_dst(path, path->received));
	}
	return st;
}

static void
socket_close(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	struct wf_env *env = path->end->env;
	if (s->fd >= 0) {
		close(s->fd);
	}
	if (s->slab.base != NULL) {
		env->ops->slab_close(env, &s->slab);
	}
	wf_peer_path_fini(path);
	wf_free(env, s, sizeof(*s));
}

static const struct wf_peer_path_ops socket_ops = {
	.name = socket_name,
	.begin = socket_begin,
	.send = socket_send,
	.tell = socket_tell,
	.progress = socket_progress,
	.close = socket_close,
};

enum weft_status
wf_bare_socket_open(struct wf_peer_end *end, struct wf_peer_path **out)
{
	struct socket_path *s = wf_zalloc(end->env, sizeof(*s));
	if (s == NULL) {
		return wf_fail(WEFT_NOMEM, "a path: %zu bytes", sizeof(*s));
	}
	s->fd = -1;
	*out = &s->path;
	enum weft_status st = wf_peer_path_init(&s->path, &socket_ops, end);
	if (st == WEFT_OK) {
		st = wf_bare_memory_of(&s->path, &s->slab);
	}
	return st;
}

/* The server's: whoever knows the token. Others are sent away. */
static enum weft_status
accept_one(struct wf_peer_end *end, int *fd)
{
	struct wf_peer_control second = {.env = end->env, .fd = -1, .listener = -1};
	struct wf_peer_frame frame;
	struct wf_peer_plan plan = {0};
	uint64_t deadline_ns = wf_now_ns(end->env) + WF_PEER_REPLY_NS;
	while (wf_now_ns(end->env) < deadline_ns) {
		enum weft_status st =
			wf_peer_control_accept(&end->control, WF_PEER_REPLY_NS, &second.fd);
		if (st != WEFT_OK) {
			return st;
		}
		st = wf_peer_control_expect(&second, WF_PEER_JOIN, &frame);
		if (st == WEFT_OK) {
			st = wf_peer_plan_decode(frame.body, frame.bytes, &plan);
		}
		if (st == WEFT_OK && plan.token == end->plan.token) {
			*fd = second.fd;
			return WEFT_OK;
		}
		close(second.fd);
	}
	return wf_fail(WEFT_TIMEOUT, "the client opened no raw socket within %llu s",
		       WF_PEER_REPLY_NS / WF_NS_PER_S);
}

static enum weft_status
connect_one(struct wf_peer_end *end, int *fd)
{
	struct wf_peer_control second = {.env = end->env, .fd = -1, .listener = -1};
	struct wf_host host = {.port = end->port};
	uint8_t body[WF_PEER_BODY_MAX];
	(void)snprintf(host.name, sizeof(host.name), "%s", end->address);
	enum weft_status st = wf_peer_control_connect(end->env, &host, &second.fd);
	if (st == WEFT_OK) {
		*fd = second.fd;
		size_t bytes = wf_peer_plan_encode(&end->plan, body);
		st = wf_peer_control_say(&second, WF_PEER_JOIN, body, bytes);
	}
	return st;
}

enum weft_status
wf_bare_socket_join(struct wf_peer_path *path)
{
	struct socket_path *s = socket_of(path);
	struct wf_peer_end *end = path->end;
	int one = 1;
	enum weft_status st = end->client ? connect_one(end, &s->fd) : accept_one(end, &s->fd);
	if (st == WEFT_OK) {
		(void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		wf_tcp_congestion_set(s->fd, end->congestion);
	}
	return st;
}
