/* SPDX-License-Identifier: Apache-2.0 */
/* socket: see socket.h. */
#include "tools/rdma_bench/limits/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
wf_socket_set_up(int fd, const char *congestion)
{
	int one = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (congestion[0] != '\0') {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
				 (socklen_t)strlen(congestion));
	}
}

/* An accepted socket has the listener's congestion control. */
static int
listen_at(const char *congestion, const struct sockaddr *where, socklen_t bytes,
	  struct sockaddr_storage *at)
{
	socklen_t at_bytes = sizeof(*at);
	int fd = socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		wf_socket_set_up(fd, congestion);
		if (bind(fd, where, bytes) == 0 && listen(fd, 1) == 0 &&
		    getsockname(fd, (struct sockaddr *)at, &at_bytes) == 0) {
			return fd;
		}
		close(fd);
	}
	return -1;
}

/* At ::1 on a host that has no other address of loopback. */
static int
listen_on_loopback(const char *congestion, struct sockaddr_storage *at, socklen_t *bytes)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	*bytes = sizeof(v4);
	int fd = listen_at(congestion, (const struct sockaddr *)&v4, *bytes, at);
	if (fd < 0) {
		*bytes = sizeof(v6);
		fd = listen_at(congestion, (const struct sockaddr *)&v6, *bytes, at);
	}
	return fd;
}

enum weft_status
wf_socket_pair(const char *congestion, int fd[2])
{
	struct sockaddr_storage at = {0};
	socklen_t bytes = 0;
	int listener = listen_on_loopback(congestion, &at, &bytes);
	fd[0] = listener < 0 ? -1 : socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[1] = -1;
	if (fd[0] >= 0) {
		wf_socket_set_up(fd[0], congestion);
		if (connect(fd[0], (const struct sockaddr *)&at, bytes) == 0) {
			fd[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		}
	}
	int err = errno;
	if (listener >= 0) {
		close(listener);
	}
	if (fd[1] < 0) {
		wf_socket_close_pair(fd);
		return wf_fail_errno(WEFT_IO, err, "a raw TCP connection over loopback");
	}
	wf_socket_set_up(fd[1], congestion);
	return WEFT_OK;
}

void
wf_socket_close_pair(const int fd[2])
{
	for (unsigned i = 0; i < 2; i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
}

/* `n`: what recv or send has returned. */
static inline enum weft_status
count(ssize_t n, const char *what, uint64_t *done)
{
	if (n > 0) {
		*done += (uint64_t)n;
		return WEFT_OK;
	}
	if (n == 0) {
		return wf_fail(WEFT_LOST, "the raw socket: the other side has closed it");
	}
	return errno == EAGAIN || errno == EINTR
		       ? WEFT_OK
		       : wf_fail_errno(WEFT_LOST, errno, "the raw socket: %s", what);
}

enum weft_status
wf_socket_put(int fd, const void *from, uint64_t bytes, uint64_t *done)
{
	return count(send(fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL), "send", done);
}

enum weft_status
wf_socket_get(int fd, void *to, uint64_t bytes, uint64_t *done)
{
	return count(recv(fd, to, bytes, MSG_DONTWAIT), "recv", done);
}

enum weft_status
wf_socket_put_all(int fd, const void *from, uint64_t bytes, bool spin)
{
	const int flags = MSG_NOSIGNAL | (spin ? MSG_DONTWAIT : 0);
	enum weft_status st = WEFT_OK;
	for (uint64_t done = 0; st == WEFT_OK && done < bytes;) {
		st = count(send(fd, (const char *)from + done, bytes - done, flags), "send", &done);
	}
	return st;
}

enum weft_status
wf_socket_get_all(int fd, void *to, uint64_t bytes, bool spin)
{
	const int flags = spin ? MSG_DONTWAIT : MSG_WAITALL;
	enum weft_status st = WEFT_OK;
	for (uint64_t done = 0; st == WEFT_OK && done < bytes;) {
		st = count(recv(fd, (char *)to + done, bytes - done, flags), "recv", &done);
	}
	return st;
}
