/* SPDX-License-Identifier: Apache-2.0 */
/* reach: see reach.h. */
#include "tools/launch/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/launch/ports.h"

#define STEP_NS (WF_NS_PER_S / 100)
#define PACKET_BYTES_MAX 65536

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	const struct sockaddr_in6 *in6 = (const void *)address;
	return address->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
		(IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127));
}

static struct addrinfo *
look_up(const char *name, const char *service, int flags, int *error)
{
	const struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;

	*error = getaddrinfo(name, service, &hints, &list);
	return *error == 0 ? list : NULL;
}

bool
wf_reach_is_loopback(const char *address)
{
	int error;
	struct addrinfo *list = look_up(address, NULL, AI_NUMERICHOST, &error);
	bool loopback = list != NULL && is_loopback(list->ai_addr);

	if (list != NULL) {
		freeaddrinfo(list);
	}
	return loopback;
}

enum weft_status
wf_reach_resolve(const char *name, char *out, size_t bytes)
{
	size_t used = 0;
	int error;
	struct addrinfo *list = look_up(name, NULL, AI_ADDRCONFIG, &error);

	if (list == NULL) {
		return wf_fail(WEFT_UNAVAILABLE, "the name '%.200s' has no address: %s", name,
			       gai_strerror(error));
	}
	out[0] = '\0';
	for (const struct addrinfo *i = list; i != NULL; i = i->ai_next) {
		char text[NI_MAXHOST];
		if (is_loopback(i->ai_addr) ||
		    getnameinfo(i->ai_addr, i->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) != 0) {
			continue;
		}
		int wanted = snprintf(out + used, bytes - used, "%s%s", used > 0 ? " " : "", text);
		if (wanted < 0 || (size_t)wanted >= bytes - used) {
			out[used] = '\0';
			break;
		}
		used += (size_t)wanted;
	}
	freeaddrinfo(list);
	return used > 0 ? WEFT_OK
			: wf_fail(WEFT_UNAVAILABLE,
				  "the name '%.200s' has only addresses of loopback", name);
}

static void
close_from(struct wf_reach *reach, unsigned first)
{
	while (reach->count > first) {
		close(reach->fd[--reach->count]);
	}
}

void
wf_reach_close(struct wf_reach *reach)
{
	close_from(reach, 0);
}

/* All of `count` ports from at->port on, or none. */
static enum weft_status
listen_at(struct wf_reach *reach, const struct wf_host *at, unsigned count)
{
	struct wf_host one = *at;
	unsigned first = reach->count;
	enum weft_status st = WEFT_OK;

	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		one.port = (uint16_t)(at->port + i);
		st = wf_ports_open(&one, count, &reach->fd[reach->count]);
		reach->count += st == WEFT_OK;
	}
	if (st != WEFT_OK) {
		close_from(reach, first);
	}
	return st;
}

/* The first range at this address that is free. */
static enum weft_status
listen_in(struct wf_reach *reach, struct wf_host *at, uint16_t lowest, uint16_t highest,
	  unsigned count)
{
	for (uint32_t port = lowest; port + count - 1 <= highest; port++) {
		at->port = (uint16_t)port;
		enum weft_status st = listen_at(reach, at, count);
		if (st != WEFT_UNAVAILABLE) {
			return st;
		}
	}
	char needed[48] = "a port is needed";
	if (count > 1) {
		snprintf(needed, sizeof(needed), "%u consecutive ports are needed", count);
	}
	return wf_fail(WEFT_UNAVAILABLE,
		       "%s on %.100s, and there is none free from %u to %u; stop the process that "
		       "uses it, or choose another one with --port or --port_range",
		       needed, at->name, lowest, highest);
}

enum weft_status
wf_reach_listen(struct wf_reach *reach, const char *addresses, uint16_t lowest, uint16_t highest,
		unsigned count, struct wf_host *out)
{
	if (count == 0 || count > WF_REACH_LISTENERS_MAX - reach->count) {
		return wf_fail(WEFT_INVALID, "more than %u ports on one host",
			       WF_REACH_LISTENERS_MAX);
	}
	for (const char *at = addresses; *at != '\0';) {
		size_t bytes = strcspn(at, " ");
		snprintf(out->name, sizeof(out->name), "%.*s", (int)bytes, at);
		if (bytes > 0 && bytes < sizeof(out->name)) {
			enum weft_status st = listen_in(reach, out, lowest, highest, count);
			if (st != WEFT_INVALID) {
				return st;
			}
		}
		at += bytes + (at[bytes] == ' ');
	}
	return wf_fail(WEFT_INVALID,
		       "it has none of the addresses by which other hosts know it (%.200s); list "
		       "it by an address of its own",
		       addresses);
}

/* 0: connected; EINPROGRESS: `*out` becomes writable; otherwise the reason. */
static int
begin(const struct wf_host *host, int *out)
{
	char service[8];
	int error;

	snprintf(service, sizeof(service), "%u", host->port);
	struct addrinfo *list =
		look_up(host->name, service, AI_NUMERICHOST | AI_NUMERICSERV, &error);
	if (list == NULL) {
		return error == EAI_SYSTEM ? errno : EADDRNOTAVAIL;
	}
	int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? errno : 0;
	if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
		err = errno;
	}
	freeaddrinfo(list);
	*out = fd;
	return err;
}

static int
finish(struct wf_env *env, int fd, int err, uint64_t deadline_ns)
{
	struct sockaddr_storage peer;

	while (err == EINPROGRESS) {
		socklen_t bytes = sizeof(peer);
		socklen_t error_bytes = sizeof(err);
		if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0) {
			return 0;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &error_bytes) != 0) {
			return errno;
		}
		if (err != 0) {
			return err;
		}
		if (wf_now_ns(env) >= deadline_ns) {
			return ETIMEDOUT;
		}
		wf_wait(env, -1, wf_now_ns(env) + STEP_NS);
		err = EINPROGRESS;
	}
	return err;
}

enum weft_status
wf_reach_connect(struct wf_env *env, const struct wf_host *host, unsigned count,
		 uint64_t deadline_ns, struct wf_reach_result *out)
{
	int fd[WF_REACH_LISTENERS_MAX];
	int err[WF_REACH_LISTENERS_MAX];
	enum weft_status st = WEFT_OK;

	WF_ASSERT(count <= WF_REACH_LISTENERS_MAX);
	*out = (struct wf_reach_result){.failed = count};
	for (unsigned i = 0; i < count; i++) {
		fd[i] = -1;
		err[i] = begin(&host[i], &fd[i]);
	}
	for (unsigned i = 0; i < count && st == WEFT_OK && out->failed == count; i++) {
		err[i] = finish(env, fd[i], err[i], deadline_ns);
		if (err[i] == EMFILE || err[i] == ENFILE) {
			st = wf_ports_fail_descriptors(err[i], count);
		} else if (err[i] != 0) {
			out->failed = i;
			snprintf(out->why, sizeof(out->why), "%s", strerror(err[i]));
		}
	}
	for (unsigned i = 0; i < count; i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
	return st;
}

static unsigned
read_option(int fd, int level, int name)
{
	int value = 0;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, level, name, &value, &bytes) == 0 && value > 0 ? (unsigned)value : 0;
}

static unsigned
read_mtu(int fd)
{
	struct sockaddr_storage peer;
	socklen_t bytes = sizeof(peer);

	if (getpeername(fd, (struct sockaddr *)&peer, &bytes) != 0) {
		return 0;
	}
	return peer.ss_family == AF_INET6 ? read_option(fd, IPPROTO_IPV6, IPV6_MTU)
					  : read_option(fd, IPPROTO_IP, IP_MTU);
}

static bool
is_acknowledged(int fd)
{
	int left = 1;

	return ioctl(fd, SIOCOUTQ, &left) == 0 && left == 0;
}

/* The first packet, before the kernel gathers several of them. */
static void
send_packet(struct wf_env *env, int fd, uint64_t deadline_ns, struct wf_reach_path *out)
{
	static const char data[PACKET_BYTES_MAX];

	out->mtu = read_mtu(fd);
	out->segment = read_option(fd, IPPROTO_TCP, TCP_MAXSEG);
	size_t bytes = out->segment < sizeof(data) ? out->segment : sizeof(data);
	out->acknowledged = false;
	if (bytes == 0 || send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)bytes) {
		return;
	}
	while (!is_acknowledged(fd) && wf_now_ns(env) < deadline_ns) {
		wf_wait(env, -1, wf_now_ns(env) + STEP_NS);
	}
	out->acknowledged = is_acknowledged(fd);
	/* A router may have said meanwhile that its next link is smaller. */
	unsigned mtu = read_mtu(fd);
	if (mtu < out->mtu) {
		out->segment = read_option(fd, IPPROTO_TCP, TCP_MAXSEG);
	}
}

enum weft_status
wf_reach_measure(struct wf_env *env, const struct wf_host *host, uint64_t deadline_ns,
		 struct wf_reach_path *out)
{
	int fd = -1;
	int err = begin(host, &fd);

	*out = (struct wf_reach_path){0};
	err = finish(env, fd, err, deadline_ns);
	if (err == 0) {
		send_packet(env, fd, deadline_ns, out);
	}
	if (fd >= 0) {
		close(fd);
	}
	return err == 0 ? WEFT_OK
			: wf_fail(WEFT_UNAVAILABLE, "%.200s port %u: %s", host->name, host->port,
				  strerror(err));
}
