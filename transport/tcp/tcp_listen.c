/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_listen: listeners, and who comes in through them. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"

#define BACKLOG 4096
#define ACCEPTS_PER_TURN 32u
#define ACCEPT_RETRY_NS (100 * WF_NS_PER_MS)
#define PORT_TRIES 16 /* port 0 on a name with several addresses */
#define LOG_PERIOD_NS WF_NS_PER_S

static int
option_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

void
wf_tcp_socket_options(struct wf_tcp *t, int fd)
{
	/* Probes go out at whole seconds; the end comes with the one after the last. Bytes that
	 * wait are not asked about: tcp_host.c. */
	uint64_t timeout_s = t->medium.opts.peer_timeout_ns / WF_NS_PER_S;
	uint64_t part_s = timeout_s / 4;
	int probe_s = part_s < 1 ? 1 : part_s > 32767 ? 32767 : (int)part_s;
	int probe_count = timeout_s < 3 ? 1 : timeout_s < 4 ? 2 : 3;
	(void)option_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	(void)option_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, probe_s);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPCNT, probe_count);
	wf_tcp_congestion_set(fd, t->congestion);
}

static uint16_t
bound_port(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t bytes = sizeof(address);
	bool known = getsockname(fd, (struct sockaddr *)&address, &bytes) == 0;
	return known ? wf_address_port(&address) : 0;
}

/* Returns a listening socket, or -errno. */
static int
listen_one(const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -errno;
	}
	if (address->ss_family == AF_INET6) {
		(void)option_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	}
	if (option_int(fd, SOL_SOCKET, SO_REUSEADDR, 1) == 0 &&
	    bind(fd, (const struct sockaddr *)address, wf_address_bytes(address)) == 0 &&
	    listen(fd, BACKLOG) == 0) {
		return fd;
	}
	int err = errno;
	close(fd);
	return -err;
}

static enum weft_status
fail_listen(const struct sockaddr_storage *address, int err)
{
	char text[WF_ADDRESS_TEXT_BYTES];
	wf_address_format((const struct sockaddr *)address, text);
	if (err == EADDRINUSE) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on %s: the port is in use; stop who uses it (ss -ltnp "
			       "names it) or choose another port",
			       text);
	}
	if (err == EADDRNOTAVAIL || err == EAFNOSUPPORT) {
		return wf_fail_errno(WEFT_UNAVAILABLE, err,
				     "listen on %s: not an address of this host", text);
	}
	return wf_fail_errno(err == EACCES ? WEFT_PERM : WEFT_IO, err, "listen on %s", text);
}

static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	struct wf_tcp_listener *l = WF_LOOP_OWNER(source, struct wf_tcp_listener, source);
	(void)mask;
	l->readable = true;
	l->t->listener_readable = true;
}

static enum weft_status
listener_add(struct wf_tcp *t, int fd)
{
	struct wf_tcp_listener *l = &t->listener[t->listener_count];
	*l = (struct wf_tcp_listener){.source = {.notify = notify}, .t = t, .fd = fd};
	wf_tcp_congestion_set(fd, t->congestion); /* what it accepts begins with it */
	enum weft_status st = wf_loop_watch(&t->medium.loop, fd, EPOLLIN | EPOLLET, &l->source);
	if (st == WEFT_OK) {
		t->listener_count++;
	}
	return st;
}

struct bind_set {
	struct wf_addresses addresses;
	int fd[WF_TCP_LISTENER_MAX];
	unsigned fd_count;
	int err; /* of the address that failed */
	unsigned err_idx;
};

static void
unbind_all(struct bind_set *set)
{
	while (set->fd_count > 0) {
		close(set->fd[--set->fd_count]);
	}
}

/* Bind all addresses to one port. An address that this host has not (::1 where IPv6 is off) is left
 * out as long as another one can be had. */
static bool
bind_all(struct bind_set *set, uint16_t *port)
{
	set->err = 0;
	for (unsigned i = 0; i < set->addresses.count; i++) {
		wf_address_set_port(&set->addresses.at[i], *port);
		int fd = listen_one(&set->addresses.at[i]);
		if (fd >= 0) {
			set->fd[set->fd_count++] = fd;
			*port = bound_port(fd);
			continue;
		}
		if (set->err == 0) {
			set->err = -fd;
			set->err_idx = i;
		}
		if (fd != -EADDRNOTAVAIL && fd != -EAFNOSUPPORT) {
			set->err = -fd;
			set->err_idx = i;
			unbind_all(set);
			return false;
		}
	}
	return set->fd_count > 0;
}

static enum weft_status
listen_addresses(struct wf_tcp *t, struct bind_set *set, uint16_t asked, uint16_t *port)
{
	uint16_t got = asked;
	bool bound = bind_all(set, &got);
	for (int i = 1; !bound && asked == 0 && set->err == EADDRINUSE && i < PORT_TRIES; i++) {
		got = 0;
		bound = bind_all(set, &got);
	}
	if (!bound) {
		return fail_listen(&set->addresses.at[set->err_idx], set->err);
	}
	if (t->listener_count + set->fd_count > WF_TCP_LISTENER_MAX) {
		unbind_all(set);
		return wf_fail(WEFT_NOMEM, "tcp: %u listening sockets are the most",
			       WF_TCP_LISTENER_MAX);
	}
	while (set->fd_count > 0) {
		enum weft_status st = listener_add(t, set->fd[set->fd_count - 1]);
		if (st != WEFT_OK) {
			unbind_all(set);
			return st;
		}
		set->fd_count--;
	}
	*port = got;
	return WEFT_OK;
}

enum weft_status
wf_tcp_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct bind_set set = {0};
	enum weft_status st = wf_addresses_here(at->name, &set.addresses);
	if (st != WEFT_OK) {
		return st;
	}
	return listen_addresses(wf_tcp_of(transport), &set, at->port, port);
}

void
wf_tcp_adopt(struct wf_tcp *t, int fd, const struct sockaddr_storage *peer)
{
	char text[WF_ADDRESS_TEXT_BYTES];
	wf_address_format((const struct sockaddr *)peer, text);
	struct wf_life *life = wf_life_come(&t->medium, text);
	if (life == NULL) {
		close(fd);
		return;
	}
	struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
	wf_tcp_conn_init(c);
	c->fd = fd;
	c->room_watched = true;
	if (wf_loop_watch(&t->medium.loop, fd, WF_TCP_EDGES | EPOLLOUT, &c->source) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_NOMEM, "%s", weft_last_error());
	}
}

/* accept(2) said no, for want of descriptors or memory most likely, and nobody's can be had: look
 * again later, and say so. */
static void
accept_later(struct wf_tcp *t, struct wf_tcp_listener *l, int err)
{
	uint64_t now_ns = wf_loop_now_ns(&t->medium.loop);
	l->retry_ns = now_ns + ACCEPT_RETRY_NS;
	wf_loop_timer_before(&t->medium.loop, l->retry_ns);
	if (wf_log_limit_pass(&t->accept_log, now_ns, LOG_PERIOD_NS)) {
		wf_log(t->medium.transport.env, WF_LOG_WARN,
		       "tcp: cannot accept a connection: %s; tried again each %llu ms",
		       strerror(err), (unsigned long long)(ACCEPT_RETRY_NS / WF_NS_PER_MS));
	}
}

/* Only that one connection failed, before it was accepted. */
static bool
is_of_the_peer(int err)
{
	return err == ECONNABORTED || err == EINTR || err == EPERM || err == EPROTO ||
	       err == ENETDOWN || err == ENETUNREACH || err == EHOSTUNREACH || err == EHOSTDOWN ||
	       err == ENONET || err == ENOPROTOOPT || err == EOPNOTSUPP || err == ETIMEDOUT;
}

/* Want of descriptors is found before it is looked whether anybody waits. */
static bool
somebody_waits(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	return poll(&ready, 1, 0) > 0;
}

/* Those who were refused and stay are sent away for it. If it is shut after that it waits for
 * DOWNs, which come with the polls that follow. */
static bool
door_is_open(struct wf_tcp *t)
{
	bool open = wf_places_may_come(&t->medium.places);
	while (!open && wf_places_are_overfull(&t->medium.places)) {
		(void)wf_medium_make_room(&t->medium);
		open = wf_places_may_come(&t->medium.places);
	}
	return open;
}

static void
accept_from(struct wf_tcp *t, struct wf_tcp_listener *l)
{
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && door_is_open(t); i++) {
		struct sockaddr_storage peer = {0};
		socklen_t bytes = sizeof(peer);
		int fd = accept4(l->fd, (struct sockaddr *)&peer, &bytes,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			wf_tcp_socket_options(t, fd);
			wf_tcp_adopt(t, fd, &peer);
			continue;
		}
		int err = errno;
		if (err == EAGAIN || err == EWOULDBLOCK || !somebody_waits(l->fd)) {
			l->readable = false;
			return;
		}
		if (!is_of_the_peer(err) && !wf_medium_make_room(&t->medium)) {
			accept_later(t, l, err);
			return;
		}
	}
}

void
wf_tcp_accept_all(struct wf_tcp *t)
{
	t->listener_readable = false;
	for (unsigned i = 0; i < t->listener_count; i++) {
		struct wf_tcp_listener *l = &t->listener[i];
		if (l->readable && l->retry_ns <= wf_loop_now_ns(&t->medium.loop)) {
			l->retry_ns = 0;
			accept_from(t, l);
		}
		t->listener_readable = t->listener_readable || l->readable;
	}
}

void
wf_tcp_listeners_close(struct wf_tcp *t)
{
	for (unsigned i = 0; i < t->listener_count; i++) {
		close(t->listener[i].fd);
	}
	t->listener_count = 0;
}
