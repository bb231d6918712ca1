/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_listen: listeners, and the connections that they accept. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"

#define PORT_TRIES 16 /* port 0 on a name with several addresses */

static int
option_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

void
wf_tcp_socket_options(struct wf_tcp *t, int fd)
{
	/* Probes are sent at whole seconds; the connection ends at the one after the last. While
	 * bytes wait there are none: tcp_host.c. */
	uint64_t timeout_s = t->medium.opts.peer_timeout_ns / WF_NS_PER_S;
	uint64_t part_s = timeout_s / 4;
	int probe_s = part_s < 1 ? 1 : part_s > 32767 ? 32767 : (int)part_s;
	int probe_count = timeout_s < 3 ? 1 : timeout_s < 4 ? 2 : 3;
	(void)option_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	(void)option_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, probe_s);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_s);
	(void)option_int(fd, IPPROTO_TCP, TCP_KEEPCNT, probe_count);
	wf_congestion_set(&t->congestion, fd);
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
	    listen(fd, WF_DOORS_BACKLOG) == 0) {
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
		return wf_fail(
			WEFT_UNAVAILABLE,
			"listen on %s: the port is in use; stop the program that uses it (ss -ltnp "
			"names it) or choose another port",
			text);
	}
	if (err == EADDRNOTAVAIL || err == EAFNOSUPPORT) {
		return wf_fail_errno(WEFT_UNAVAILABLE, err,
				     "listen on %s: not an address of this host", text);
	}
	return wf_fail_errno(err == EACCES ? WEFT_PERM : WEFT_IO, err, "listen on %s", text);
}

struct bind_set {
	struct wf_addresses addresses;
	int fd[WF_ADDRESSES_MAX];
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

/* Binds all addresses to one port. An address that this host lacks (::1 if IPv6 is off) is left out
 * as long as another one can be bound. */
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
listen_addresses(struct wf_tcp *t, struct bind_set *set, const struct wf_host *at, uint16_t *port)
{
	uint16_t asked = at->port;
	uint16_t got = asked;
	bool bound = bind_all(set, &got);
	for (int i = 1; !bound && asked == 0 && set->err == EADDRINUSE && i < PORT_TRIES; i++) {
		got = 0;
		bound = bind_all(set, &got);
	}
	if (!bound) {
		return fail_listen(&set->addresses.at[set->err_idx], set->err);
	}
	for (unsigned i = 0; i < set->fd_count; i++) {
		wf_congestion_set(&t->congestion, set->fd[i]); /* accepted sockets inherit it */
	}
	enum weft_status st = wf_doors_add(&t->doors, set->fd, set->fd_count, at);
	if (st != WEFT_OK) {
		return st;
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
	return listen_addresses(wf_tcp_of(transport), &set, at, port);
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

static void
let_in(struct wf_medium *medium, int fd, const struct sockaddr_storage *peer,
       const struct wf_door *door)
{
	struct wf_tcp *t = wf_tcp_of(&medium->transport);
	(void)door;
	wf_tcp_socket_options(t, fd);
	wf_tcp_adopt(t, fd, peer);
}

void
wf_tcp_doors_init(struct wf_tcp *t)
{
	t->doors = (struct wf_doors){.medium = &t->medium, .adopt = let_in};
}
