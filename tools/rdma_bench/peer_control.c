/* SPDX-License-Identifier: Apache-2.0 */
/* peer_control: see peer_control.h. */
#include "tools/rdma_bench/peer_control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/env.h"
#include "base/url.h"

#define BACKLOG 8
#define CONNECT_NS (5 * WF_NS_PER_S)
#define FAREWELL_NS (1 * WF_NS_PER_S)
#define ADDRESS_BYTES 64

static int
left_ms(struct wf_env *env, uint64_t deadline_ns)
{
	uint64_t now_ns = wf_now_ns(env);
	if (deadline_ns == WF_NEVER) {
		return -1;
	}
	uint64_t left = deadline_ns > now_ns ? (deadline_ns - now_ns) / WF_NS_PER_MS + 1 : 0;
	return left < INT32_MAX ? (int)left : INT32_MAX;
}

/* `timeout_ns` from now. */
static uint64_t
deadline_of(struct wf_env *env, uint64_t timeout_ns)
{
	return timeout_ns == WF_NEVER ? WF_NEVER : wf_now_ns(env) + timeout_ns;
}

static bool
wait_for(struct wf_env *env, int fd, short events, uint64_t deadline_ns)
{
	struct pollfd wait = {.fd = fd, .events = events};
	int n = 0;
	do {
		n = poll(&wait, 1, left_ms(env, deadline_ns));
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

static void
set_no_delay(int fd)
{
	int one = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct addrinfo *
look_up(const char *name, uint16_t port, int flags, int *error)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | flags,
	};
	struct addrinfo *list = NULL;
	char text[8];
	(void)snprintf(text, sizeof(text), "%u", port);
	*error = getaddrinfo(name, text, &hints, &list);
	return *error == 0 ? list : NULL;
}

/* -1 with errno. */
static int
listen_one(const struct addrinfo *ai)
{
	int one = 1, zero = 0;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -1;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6) {
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	}
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
		return fd;
	}
	int err = errno;
	close(fd);
	errno = err;
	return -1;
}

enum weft_status
wf_peer_control_listen(struct wf_peer_control *control, const char *address, uint16_t port)
{
	int error = 0;
	const char *name = address != NULL ? address : "::";
	struct addrinfo *list = look_up(name, port, AI_PASSIVE, &error);
	if (list == NULL) {
		return wf_fail(WEFT_UNAVAILABLE, "--listen=%.100s: %s", name, gai_strerror(error));
	}
	control->listener = listen_one(list);
	int err = errno;
	freeaddrinfo(list);
	if (control->listener < 0 && address == NULL) { /* a host without IPv6 */
		list = look_up("0.0.0.0", port, AI_PASSIVE, &error);
		control->listener = list != NULL ? listen_one(list) : -1;
		err = errno;
		if (list != NULL) {
			freeaddrinfo(list);
		}
	}
	if (control->listener < 0 && err == EADDRINUSE) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "port %u is in use; end the process that uses it, or give both "
			       "sides another port (-p)",
			       port);
	}
	if (control->listener < 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, err, "listen on %.100s port %u", name, port);
	}
	return WEFT_OK;
}

enum weft_status
wf_peer_control_accept(const struct wf_peer_control *control, uint64_t timeout_ns, int *fd)
{
	uint64_t deadline_ns = deadline_of(control->env, timeout_ns);
	for (;;) {
		if (!wait_for(control->env, control->listener, POLLIN, deadline_ns)) {
			return wf_fail(WEFT_TIMEOUT, "no client connected within %llu s",
				       (unsigned long long)(timeout_ns / WF_NS_PER_S));
		}
		int got = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC);
		if (got >= 0) {
			set_no_delay(got);
			*fd = got;
			return WEFT_OK;
		}
		if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
			return wf_fail_errno(WEFT_IO, errno, "accept");
		}
	}
}

/* 0 with a connected socket in `*fd`, or errno. */
static int
connect_one(struct wf_env *env, const struct addrinfo *ai, int *fd)
{
	int err = 0;
	socklen_t bytes = sizeof(err);
	int got = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (got < 0) {
		return errno;
	}
	if (connect(got, ai->ai_addr, ai->ai_addrlen) != 0) {
		err = errno;
	}
	if (err == EINPROGRESS) {
		err = ETIMEDOUT;
		if (wait_for(env, got, POLLOUT, wf_now_ns(env) + CONNECT_NS) &&
		    getsockopt(got, SOL_SOCKET, SO_ERROR, &err, &bytes) != 0) {
			err = errno;
		}
	}
	if (err != 0) {
		close(got);
		return err;
	}
	set_no_delay(got);
	*fd = got;
	return 0;
}

enum weft_status
wf_peer_control_connect(struct wf_env *env, const struct wf_host *to, int *fd)
{
	int error = 0;
	char text[WF_HOST_BYTES + 8];
	wf_host_format(to, text, sizeof(text));
	struct addrinfo *list = look_up(to->name, to->port, 0, &error);
	if (list == NULL) {
		return wf_fail(WEFT_UNAVAILABLE, "%.100s: %s", to->name, gai_strerror(error));
	}
	for (const struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next) {
		error = connect_one(env, ai, fd);
		if (error == 0) {
			break;
		}
	}
	freeaddrinfo(list);
	if (error == ECONNREFUSED) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "nobody listens at %.100s; start the same command there first, "
			       "without a host",
			       text);
	}
	if (error != 0) {
		return wf_fail_errno(WEFT_UNAVAILABLE, error, "%.100s cannot be reached", text);
	}
	return WEFT_OK;
}

void
wf_peer_control_close(struct wf_peer_control *control)
{
	if (control->fd >= 0) {
		close(control->fd);
	}
	if (control->listener >= 0) {
		close(control->listener);
	}
	control->fd = -1;
	control->listener = -1;
}

/* ---- frames ---- */

static enum weft_status
gone(void)
{
	return wf_fail(WEFT_LOST, "the other side has gone");
}

enum weft_status
wf_peer_control_send(const struct wf_peer_control *control, enum wf_peer_word type,
		     const void *body, size_t bytes)
{
	uint8_t frame[WF_PEER_HEAD_BYTES + WF_PEER_BODY_MAX];
	const struct wf_peer_head head = {
		.version = WF_PEER_VERSION, .type = type, .body_bytes = (uint32_t)bytes};
	WF_ASSERT(bytes <= WF_PEER_BODY_MAX);
	wf_peer_head_encode(&head, frame);
	if (bytes > 0) {
		memcpy(frame + WF_PEER_HEAD_BYTES, body, bytes);
	}
	size_t all = WF_PEER_HEAD_BYTES + bytes;
	for (size_t sent = 0; sent < all;) {
		ssize_t n =
			send(control->fd, frame + sent, all - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			sent += (size_t)n;
		} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
			return gone();
		} else if (!wait_for(control->env, control->fd, POLLOUT,
				     wf_now_ns(control->env) + WF_PEER_REPLY_NS)) {
			return gone();
		}
	}
	return WEFT_OK;
}

static enum weft_status
receive(const struct wf_peer_control *control, uint8_t *out, size_t bytes, uint64_t deadline_ns)
{
	for (size_t have = 0; have < bytes;) {
		if (!wait_for(control->env, control->fd, POLLIN, deadline_ns)) {
			return wf_fail(WEFT_TIMEOUT, "the other side is silent");
		}
		ssize_t n = recv(control->fd, out + have, bytes - have, MSG_DONTWAIT);
		if (n > 0) {
			have += (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			return gone();
		}
	}
	return WEFT_OK;
}

static enum weft_status
mismatch(const struct wf_peer_control *control, uint16_t version)
{
	enum weft_status st =
		wf_fail(WEFT_MISMATCH,
			"the other side uses version %u of the protocol, and this side "
			"(weft %s) version %u; run the same rdma_bench on both",
			version, WEFT_PROJECT_VERSION, WF_PEER_VERSION);
	wf_peer_control_fail(control, st); /* it sees the version in the head */
	return st;
}

enum weft_status
wf_peer_control_recv(const struct wf_peer_control *control, uint64_t timeout_ns,
		     struct wf_peer_frame *out)
{
	uint64_t deadline_ns = deadline_of(control->env, timeout_ns);
	uint8_t bytes[WF_PEER_HEAD_BYTES];
	struct wf_peer_head head;
	enum weft_status st = receive(control, bytes, sizeof(bytes), deadline_ns);
	if (st == WEFT_OK) {
		st = wf_peer_head_decode(bytes, &head);
	}
	if (st == WEFT_OK && head.version != WF_PEER_VERSION) {
		st = mismatch(control, head.version);
	}
	if (st == WEFT_OK) {
		st = receive(control, out->body, head.body_bytes, deadline_ns);
	}
	if (st != WEFT_OK) {
		return st;
	}
	out->type = head.type;
	out->bytes = head.body_bytes;
	return head.type == WF_PEER_FAIL ? wf_peer_failure_decode(out->body, out->bytes) : WEFT_OK;
}

enum weft_status
wf_peer_control_expect(const struct wf_peer_control *control, enum wf_peer_word type,
		       struct wf_peer_frame *out)
{
	enum weft_status st = wf_peer_control_recv(control, WF_PEER_REPLY_NS, out);
	if (st == WEFT_OK && out->type != type) {
		return wf_fail(WEFT_PROTOCOL, "the other side sent message %d where %d was due",
			       (int)out->type, (int)type);
	}
	return st;
}

enum weft_status
wf_peer_control_look(const struct wf_peer_control *control)
{
	uint8_t bytes[WF_PEER_HEAD_BYTES];
	struct wf_peer_head head;
	struct wf_peer_frame frame;
	ssize_t n = recv(control->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		return gone();
	}
	if (n < (ssize_t)sizeof(bytes)) {
		return WEFT_OK;
	}
	enum weft_status st = wf_peer_head_decode(bytes, &head);
	if (st == WEFT_OK && head.type == WF_PEER_FAIL) {
		st = wf_peer_control_recv(control, WF_PEER_REPLY_NS, &frame);
	}
	return st; /* a report may be early */
}

/* Unread bytes would make the kernel discard what was sent. */
static void
let_it_arrive(const struct wf_peer_control *control)
{
	uint8_t unused[WF_PEER_BODY_MAX];
	uint64_t deadline_ns = wf_now_ns(control->env) + FAREWELL_NS;
	(void)shutdown(control->fd, SHUT_WR);
	while (wait_for(control->env, control->fd, POLLIN, deadline_ns) &&
	       recv(control->fd, unused, sizeof(unused), MSG_DONTWAIT) > 0) {
		/* nothing */
	}
}

void
wf_peer_control_fail(const struct wf_peer_control *control, enum weft_status status)
{
	uint8_t body[WF_PEER_BODY_MAX];
	if (control->fd >= 0) {
		const struct wf_error error = *wf_error_record();
		size_t bytes = wf_peer_failure_encode(status, error.text, body);
		if (wf_peer_control_send(control, WF_PEER_FAIL, body, bytes) == WEFT_OK) {
			let_it_arrive(control);
		}
		*wf_error_record() = error;
	}
}

/* ---- addresses ---- */

static void
format(const struct sockaddr_storage *address, socklen_t bytes, char *out)
{
	struct sockaddr_storage at = *address;
	if (at.ss_family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
		if (IN6_IS_ADDR_V4MAPPED(v6)) {
			struct sockaddr_in v4 = {.sin_family = AF_INET};
			memcpy(&v4.sin_addr, v6->s6_addr + 12, sizeof(v4.sin_addr));
			memcpy(&at, &v4, sizeof(v4));
			bytes = sizeof(v4);
		}
	}
	if (getnameinfo((const struct sockaddr *)&at, bytes, out, ADDRESS_BYTES, NULL, 0,
			NI_NUMERICHOST) != 0) {
		out[0] = '\0';
	}
}

void
wf_peer_control_own_address(int fd, char *out)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	out[0] = '\0';
	if (getsockname(fd, (struct sockaddr *)&at, &bytes) == 0) {
		format(&at, bytes, out);
	}
}

void
wf_peer_control_peer_address(int fd, char *out)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	out[0] = '\0';
	if (getpeername(fd, (struct sockaddr *)&at, &bytes) == 0) {
		format(&at, bytes, out);
	}
}
