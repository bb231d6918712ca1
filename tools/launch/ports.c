/* SPDX-License-Identifier: Apache-2.0 */
/* ports: see ports.h. */
#include "tools/launch/ports.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

#define TRIES_MAX 64

/* 0, or the errno of the first call that failed. */
static int
bind_once(const struct addrinfo *address, int *out)
{
	int one = 1;

	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return errno;
	}
	/* As servers do: connections of an earlier job that are still in TIME_WAIT do not count. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
		int err = errno;
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

enum weft_status
wf_ports_fail_descriptors(int err, unsigned count)
{
	struct rlimit most = {0};

	(void)getrlimit(RLIMIT_NOFILE, &most);
	return wf_fail_errno(WEFT_IO, err,
			     "%u ports need as many descriptors, and a process may have %llu "
			     "('ulimit -n' raises that)",
			     count, (unsigned long long)most.rlim_cur);
}

enum weft_status
wf_ports_open(const struct wf_host *at, unsigned count, int *out)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	char service[8];
	char text[WF_HOST_BYTES + 8];

	snprintf(service, sizeof(service), "%u", at->port);
	wf_host_format(at, text, sizeof(text));
	int err = getaddrinfo(at->name, service, &hints, &list);
	if (err != 0) {
		return wf_fail(WEFT_INVALID, "%s: %s", text, gai_strerror(err));
	}
	err = bind_once(list, out);
	freeaddrinfo(list);
	switch (err) {
	case 0:
		return WEFT_OK;
	case EADDRINUSE:
		return wf_fail(WEFT_UNAVAILABLE, "%s is in use", text);
	case EACCES:
		return wf_fail_errno(WEFT_PERM, err, "%s: ports below 1024 are reserved", text);
	case EMFILE:
	case ENFILE:
		return wf_ports_fail_descriptors(err, count);
	case EADDRNOTAVAIL:
		return wf_fail(WEFT_INVALID, "%s is not an address of this host", text);
	default:
		return wf_fail_errno(WEFT_IO, err, "%s", text);
	}
}

static enum weft_status
probe_one(const struct wf_host *at)
{
	int fd = -1;

	enum weft_status st = wf_ports_open(at, 1, &fd);
	if (st == WEFT_OK) {
		close(fd);
	}
	return st;
}

enum weft_status
wf_ports_probe(const struct wf_host *at, unsigned count)
{
	struct wf_host one = *at;

	WF_ASSERT(count >= 1);
	if (at->port == 0 || (uint32_t)at->port + count - 1 > 65535) {
		return wf_fail(WEFT_INVALID,
			       "port %u and the %u after it are not all within 1 to 65535",
			       at->port, count - 1);
	}
	for (unsigned i = 0; i < count; i++) {
		one.port = (uint16_t)(at->port + i);
		enum weft_status st = probe_one(&one);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_ports_find(struct wf_host *at, unsigned count)
{
	struct wf_host one = *at;
	uint32_t port = at->port; /* of the next try; 65,536 after the last port */

	for (unsigned i = 0; i < TRIES_MAX && port + count - 1 <= 65535; i++, port += count) {
		one.port = (uint16_t)port;
		enum weft_status st = wf_ports_probe(&one, count);
		if (st != WEFT_UNAVAILABLE) {
			at->port = one.port;
			return st;
		}
	}
	if (count == 1) {
		return wf_fail(WEFT_UNAVAILABLE, "%s: no free port from %u on", at->name, at->port);
	}
	return wf_fail(WEFT_UNAVAILABLE, "%s: no %u consecutive free ports from %u on", at->name,
		       count, at->port);
}
