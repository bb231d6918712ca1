/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_handshake: from connect(2) or accept(2) to UP. The connecting end sends HELLO, the accepting
 * end ACCEPT or REFUSE; until then exactly the bytes of that one frame are read, into memory that
 * the connection has anyway. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"

enum weft_status
wf_tcp_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
	       size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_life *life = NULL;
	enum weft_status st = wf_life_begin(wf_medium_of(transport), to, user, &life);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	wf_tcp_conn_init(c);
	st = wf_tcp_conn_buffers(c);
	if (st != WEFT_OK) {
		goto fail;
	}
	if (wf_addresses_numeric(to, &c->addresses)) {
		wf_tcp_connect_next(c);
	} else {
		st = wf_look_up_start(transport->env, to, c->t->medium.loop.wake_fd, &c->look_up);
		if (st != WEFT_OK) {
			goto fail;
		}
	}
	if (life->state < WF_LIFE_DYING) {
		wf_tcp_control(c, WF_TCP_HELLO, hello, hello_bytes);
	}
	*out = &life->conn;
	return WEFT_OK;
fail:
	wf_life_destroy(life);
	return st;
}

/* Returns 0 if the connect is under way, otherwise errno. */
static int
connect_one(struct wf_tcp_conn *c, const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return errno;
	}
	wf_tcp_socket_options(c->t, fd);
	if (connect(fd, (const struct sockaddr *)address, wf_address_bytes(address)) != 0 &&
	    errno != EINPROGRESS) {
		int err = errno;
		close(fd);
		return err;
	}
	c->fd = fd;
	c->tx.writable = false;
	c->rx.readable = false;
	c->rx.hung_up = false;
	c->room_watched = true;
	if (wf_loop_watch(&c->t->medium.loop, fd, WF_TCP_EDGES | EPOLLOUT, &c->source) != WEFT_OK) {
		wf_tcp_conn_close(c);
		return ENOMEM;
	}
	return 0;
}

/* The first mistake of who starts a job on two hosts. */
static const char *
hint(const struct wf_tcp_conn *c)
{
	for (unsigned i = 0; i < c->addresses.count && c->connect_error == ECONNREFUSED; i++) {
		if (!wf_address_is_loopback(&c->addresses.at[i])) {
			return "; a server that listens on loopback only cannot be reached there";
		}
	}
	return "";
}

void
wf_tcp_connect_next(struct wf_tcp_conn *c)
{
	uint64_t now_ns = wf_now_ns(c->t->medium.transport.env);
	while (c->address_next < c->addresses.count) {
		unsigned left = c->addresses.count - c->address_next;
		const struct sockaddr_storage *address = &c->addresses.at[c->address_next++];
		wf_address_name(&c->life.to, address, c->life.peer, sizeof(c->life.peer));
		c->connect_error = connect_one(c, address);
		if (c->connect_error == 0) {
			uint64_t span =
				c->life.attempt_ns > now_ns ? c->life.attempt_ns - now_ns : 0;
			wf_life_deadline(&c->life, now_ns + span / left);
			return;
		}
	}
	if (c->connect_error == ETIMEDOUT) {
		wf_life_down(&c->life, WEFT_TIMEOUT,
			     "connecting took too long (addresses tried: %u)", c->addresses.count);
		return;
	}
	wf_life_down(&c->life, WEFT_UNAVAILABLE, "%s (addresses tried: %u)%s",
		     strerror(c->connect_error), c->addresses.count, hint(c));
}

/* Whether the socket is connected to itself, which can happen with a port of our own host on which
 * nothing listens. */
static bool
is_self_connected(int fd)
{
	struct sockaddr_storage ours = {0};
	struct sockaddr_storage theirs = {0};
	socklen_t our_bytes = sizeof(ours);
	socklen_t their_bytes = sizeof(theirs);
	return getsockname(fd, (struct sockaddr *)&ours, &our_bytes) == 0 &&
	       getpeername(fd, (struct sockaddr *)&theirs, &their_bytes) == 0 &&
	       our_bytes == their_bytes && memcmp(&ours, &theirs, our_bytes) == 0;
}

/* Checks whether the helper thread has finished. */
static void
resolve_visit(struct wf_tcp_conn *c)
{
	struct wf_env *env = c->t->medium.transport.env;
	enum weft_status st = wf_look_up_end(env, &c->look_up, &c->addresses);
	if (st == WEFT_OK) {
		wf_tcp_connect_next(c);
	} else if (st != WEFT_AGAIN) {
		wf_life_down(&c->life, st, "%s", weft_last_error());
	}
}

void
wf_tcp_connect_visit(struct wf_tcp_conn *c)
{
	if (c->look_up != NULL) {
		resolve_visit(c);
		return;
	}
	if (!c->tx.writable && !c->rx.hung_up) {
		return; /* epoll has reported nothing yet */
	}
	int err = 0;
	socklen_t err_bytes = sizeof(err);
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &err_bytes) != 0) {
		err = errno;
	} else if (err == 0 && is_self_connected(c->fd)) {
		err = ECONNREFUSED;
	}
	if (err != 0) {
		wf_tcp_conn_close(c);
		c->connect_error = err;
		wf_tcp_connect_next(c);
		return;
	}
	wf_life_enter(&c->life, WF_LIFE_SHAKING);
	wf_life_deadline(&c->life, c->life.attempt_ns);
}

static enum weft_status
check_first_head(const struct wf_tcp_conn *c)
{
	const struct wf_head *head = &c->shake_head;
	bool expected = c->life.incoming
				? head->type == WF_TCP_HELLO
				: head->type == WF_TCP_ACCEPT || head->type == WF_TCP_REFUSE;
	if (head->service != WF_SERVICE_TRANSPORT || !expected || head->flags != 0) {
		return wf_fail(WEFT_PROTOCOL, "its first frame has service %u and type %u",
			       head->service, head->type);
	}
	if (head->body_bytes > c->t->medium.opts.blob_max) {
		return wf_fail(WEFT_PROTOCOL, "its first frame has %llu bytes; %zu are the most",
			       (unsigned long long)head->body_bytes, c->t->medium.opts.blob_max);
	}
	return WEFT_OK;
}

/* Whether the peer closes instead of answering, with the reason in the body. */
static bool
is_farewell(const struct wf_tcp_conn *c)
{
	const struct wf_head *head = &c->shake_head;
	return !c->life.incoming && head->service == WF_SERVICE_TRANSPORT &&
	       head->type == WF_TCP_CLOSE;
}

static void
on_farewell(struct wf_tcp_conn *c)
{
	char text[WF_WHY_BYTES];
	wf_peer_text(c->shake + WF_HEAD_BYTES, c->shake_head.body_bytes, text);
	wf_life_down(&c->life, WEFT_UNAVAILABLE, "the peer closed instead of answering%s%s",
		     text[0] != '\0' ? ": " : "", text);
}

/* The head is complete. A farewell may fill the buffer: blob_max bounds only blobs for the caller.
 */
static void
shake_head(struct wf_tcp_conn *c)
{
	enum weft_status st = wf_head_decode(c->shake, WF_BLOB_ROOM, &c->shake_head);
	if (st == WEFT_OK && !is_farewell(c)) {
		st = check_first_head(c);
	}
	if (st != WEFT_OK) {
		wf_life_down(&c->life, WEFT_PROTOCOL, "%s", weft_last_error());
		return;
	}
	c->shake_need = (uint32_t)(WF_HEAD_BYTES + c->shake_head.body_bytes);
}

/* Head and body are complete. */
static void
shake_whole(struct wf_tcp_conn *c)
{
	if (is_farewell(c)) {
		on_farewell(c);
		return;
	}
	if (c->life.incoming && wf_tcp_conn_buffers(c) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_NOMEM, "%s", weft_last_error());
		return;
	}
	wf_life_decide(&c->life, c->shake + WF_HEAD_BYTES, c->shake_head.body_bytes,
		       c->shake_head.type == WF_TCP_REFUSE);
	if (c->life.incoming) {
		/* Makes room for the head of a CLOSE; the hello behind it stays where it is. */
		c->shake_got = 0;
		c->shake_need = WF_HEAD_BYTES;
	}
}

/* Whether what listens there is no pserver: a frame of weft begins with "WEFT". Known servers are
 * named by what they send first; the others are quoted. */
static bool
is_foreign(struct wf_tcp_conn *c)
{
	static const struct {
		const char *first, *server;
	} known[] = {
		{"HTTP/", "an HTTP server"},
		{"<!DOCTYPE", "an HTTP server"}, /* the answer of HTTP/0.9 has no head */
		{"<html", "an HTTP server"},
		{"SSH-", "an SSH server"},
		{"-ERR", "a Redis server"},
		{"\x15\x03", "a TLS server"},
	};
	static const char ours[] = "WEFT";
	char text[WF_WHY_BYTES];
	size_t bytes = c->shake_got < WF_HEAD_BYTES ? c->shake_got : WF_HEAD_BYTES;

	if (c->life.incoming || memcmp(c->shake, ours, bytes < 4 ? bytes : 4) == 0) {
		return false;
	}
	const char *server = "another server";
	for (size_t i = 0; i < WF_ARRAY_COUNT(known); i++) {
		size_t length = strlen(known[i].first);
		if (bytes >= length && memcmp(c->shake, known[i].first, length) == 0) {
			server = known[i].server;
		}
	}
	wf_peer_text(c->shake, bytes, text);
	wf_life_down(&c->life, WEFT_PROTOCOL,
		     "this is the port of %s, not of a weft pserver; it answered \"%.60s\"", server,
		     text);
	return true;
}

/* The connection broke in the handshake. Who connected and got no byte back may have met a server
 * of another kind, that closes when it reads no request of its own; a close with data that it has
 * not read arrives as a reset. */
static void
shake_broken(struct wf_tcp_conn *c, int err)
{
	bool closed = err == 0 || err == ECONNRESET || err == EPIPE;

	if (c->life.incoming || c->shake_got > 0 || !closed) {
		wf_tcp_conn_broken(c, err);
		return;
	}
	char text[WF_WHY_BYTES];
	snprintf(text, sizeof(text),
		 "what listens there has closed the connection without an answer (%s); it may be "
		 "no weft pserver: check host and port",
		 err == 0 ? "end of data" : strerror(err));
	wf_life_lost(&c->life, WEFT_LOST, text);
}

/* Reads at most to the end of the frame. Returns the bytes read. */
static uint32_t
shake_recv(struct wf_tcp_conn *c)
{
	uint32_t asked = c->shake_need - c->shake_got;
	ssize_t n = recv(c->fd, c->shake + c->shake_got, asked, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		c->rx.readable = false;
		c->rx.hung_up = false;
		if (c->tx.error != 0) {
			shake_broken(c, c->tx.error);
		}
		return 0;
	}
	if (n <= 0) {
		shake_broken(c, n == 0 ? c->tx.error : errno);
		return 0;
	}
	c->shake_got += (uint32_t)n;
	c->life.heard_bytes = c->shake_got;
	c->t->medium.info.bytes_received += (uint64_t)n;
	wf_places_spoke(&c->t->medium.places, &c->life.place);
	return (uint32_t)n;
}

void
wf_tcp_shake_read(struct wf_tcp_conn *c)
{
	while (c->life.state == WF_LIFE_SHAKING && c->rx.readable) {
		if (shake_recv(c) == 0 || is_foreign(c)) {
			return;
		}
		if (c->shake_got == WF_HEAD_BYTES && c->shake_need == WF_HEAD_BYTES) {
			shake_head(c);
		}
		if (c->life.state == WF_LIFE_SHAKING && c->shake_got == c->shake_need) {
			shake_whole(c);
		}
	}
}

void
wf_tcp_waiting_read(struct wf_tcp_conn *c)
{
	while (c->rx.readable && shake_recv(c) > 0) {
		if (c->shake_got < c->shake_need) {
			continue;
		}
		struct wf_head head;
		if (wf_head_decode(c->shake, 0, &head) == WEFT_OK &&
		    head.service == WF_SERVICE_TRANSPORT && head.type == WF_TCP_CLOSE) {
			wf_life_down(&c->life, WEFT_CLOSED, "closed by the peer");
		} else {
			wf_life_down(&c->life, WEFT_PROTOCOL, "sent data before it was answered");
		}
		return;
	}
}

bool
wf_tcp_answer(struct wf_life *life, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	wf_tcp_control(c, accept ? WF_TCP_ACCEPT : WF_TCP_REFUSE, verdict, verdict_bytes);
	if (!accept) {
		c->last_queued = true;
		return false;
	}
	/* Bytes that arrived early are the beginning of an ordinary frame. */
	memcpy(c->rx.buffer, c->shake, c->shake_got);
	c->rx.end = c->shake_got;
	return false;
}
