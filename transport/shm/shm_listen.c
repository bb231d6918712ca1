/* SPDX-License-Identifier: Apache-2.0 */
/* shm_listen: listeners, and the connections that they accept. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Port 0 picks from the range that systems use for this as well. */
#define PORT_FIRST 32768u
#define PORT_COUNT 28232u

/* Returns a listening socket, or -errno. */
static int
listen_one(uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		return -errno;
	}
	struct sockaddr_un address;
	socklen_t bytes = wf_shm_address(port, &address);
	if (bind(fd, (const struct sockaddr *)&address, bytes) == 0 &&
	    listen(fd, WF_DOORS_BACKLOG) == 0) {
		return fd;
	}
	int err = errno;
	(void)close(fd);
	return -err;
}

/* As listen_one, on a free port. */
static int
listen_any(struct wf_shm *t, uint16_t *port)
{
	uint32_t at = (uint32_t)(wf_random(t->medium.transport.env) % PORT_COUNT);
	int fd = -EADDRINUSE;
	for (uint32_t i = 0; i < PORT_COUNT && fd == -EADDRINUSE; i++) {
		*port = (uint16_t)(PORT_FIRST + (at + i) % PORT_COUNT);
		fd = listen_one(*port);
	}
	return fd;
}

static enum weft_status
fail_listen(const struct wf_host *at, int err)
{
	char text[WF_HOST_BYTES + 8];
	wf_host_format(at, text, sizeof(text));
	if (err == EADDRINUSE) {
		return wf_fail(WEFT_UNAVAILABLE,
			       "listen on %.100s: the port is in use among shm listeners; stop "
			       "who uses it (ss -xlp names it) or choose another port",
			       text);
	}
	return wf_fail_errno(WEFT_IO, err, "listen on %.100s", text);
}

enum weft_status
wf_shm_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_shm *t = wf_shm_of(transport);
	enum weft_status st = wf_shm_name_check("listen on", at, true);
	if (st != WEFT_OK) {
		return st;
	}
	uint16_t got = at->port;
	int fd = got == 0 ? listen_any(t, &got) : listen_one(got);
	if (fd < 0) {
		return fail_listen(at, -fd);
	}
	struct wf_host here = *at;
	here.port = got;
	st = wf_doors_add(&t->doors, &fd, 1, &here);
	if (st != WEFT_OK) {
		return st;
	}
	*port = got;
	return WEFT_OK;
}

/* A hello brings a second descriptor, for memory: obtains one by dropping a silent newcomer.
 */
static void
keep_a_descriptor(struct wf_shm *t, int fd)
{
	int probe = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	while (probe < 0 && errno == EMFILE && wf_medium_make_room(&t->medium)) {
		probe = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (probe >= 0) {
		(void)close(probe);
	}
}

void
wf_shm_adopt(struct wf_shm *t, int fd, const struct wf_host *at)
{
	char text[WF_LIFE_PEER_BYTES] = "peer at ";
	wf_host_format(at, text + strlen(text), WF_HOST_BYTES + 8);
	keep_a_descriptor(t, fd);
	struct wf_life *life = wf_life_come(&t->medium, text);
	if (life == NULL) {
		(void)close(fd);
		return;
	}
	struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
	wf_shm_conn_init(c);
	c->fd = fd;
	if (wf_loop_watch(&t->medium.loop, fd, WF_SHM_EDGES, &c->source) != WEFT_OK) {
		wf_life_down(&c->life, WEFT_NOMEM, "%s", weft_last_error());
	}
}

static void
let_in(struct wf_medium *medium, int fd, const struct sockaddr_storage *peer,
       const struct wf_door *door)
{
	(void)peer; /* the peer's socket has no name */
	wf_shm_adopt(wf_shm_of(&medium->transport), fd, &door->at);
}

void
wf_shm_doors_init(struct wf_shm *t)
{
	t->doors = (struct wf_doors){.medium = &t->medium, .adopt = let_in};
}
