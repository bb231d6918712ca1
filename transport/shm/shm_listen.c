/* SPDX-License-Identifier: Apache-2.0 */
/* shm_listen: listeners, and who comes in through them. Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096
#define ACCEPTS_PER_TURN 32u
#define ACCEPT_RETRY_NS (100 * WF_NS_PER_MS)
#define LOG_PERIOD_NS WF_NS_PER_S
/* Port 0: the range that systems pick from, too. */
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
	if (bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, BACKLOG) == 0) {
		return fd;
	}
	int err = errno;
	(void)close(fd);
	return -err;
}

/* As listen_one; a port that nobody has. */
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

static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	(void)mask;
	WF_LOOP_OWNER(source, struct wf_shm_listener, source)->readable = true;
}

enum weft_status
wf_shm_listen(struct wf_transport *transport, const struct wf_host *at, uint16_t *port)
{
	struct wf_shm *t = wf_shm_of(transport);
	enum weft_status st = wf_shm_name_check("listen on", at, true);
	if (st != WEFT_OK) {
		return st;
	}
	if (t->listener_count == WF_SHM_LISTENER_MAX) {
		return wf_fail(WEFT_NOMEM, "shm: %u listeners are the most", WF_SHM_LISTENER_MAX);
	}
	uint16_t got = at->port;
	int fd = got == 0 ? listen_any(t, &got) : listen_one(got);
	if (fd < 0) {
		return fail_listen(at, -fd);
	}
	struct wf_shm_listener *l = &t->listener[t->listener_count];
	*l = (struct wf_shm_listener){.source = {.notify = notify}, .fd = fd, .at = *at};
	l->at.port = got;
	st = wf_loop_watch(&t->medium.loop, fd, WF_SHM_EDGES, &l->source);
	if (st != WEFT_OK) {
		(void)close(fd);
		return st;
	}
	t->listener_count++;
	*port = got;
	return WEFT_OK;
}

/* Memory comes with its hello, in a descriptor of its own: one is had from those who say nothing.
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

/* accept(2) said no, for want of descriptors or memory most likely, and nobody's can be had: look
 * again later, and say so. */
static void
accept_later(struct wf_shm *t, struct wf_shm_listener *l, int err)
{
	l->retry_ns = wf_loop_now_ns(&t->medium.loop) + ACCEPT_RETRY_NS;
	wf_loop_timer_before(&t->medium.loop, l->retry_ns);
	if (wf_log_limit_pass(&t->accept_log, wf_loop_now_ns(&t->medium.loop), LOG_PERIOD_NS)) {
		wf_log(t->medium.transport.env, WF_LOG_WARN,
		       "shm: cannot accept a connection: %s; tried again each %llu ms",
		       strerror(err), (unsigned long long)(ACCEPT_RETRY_NS / WF_NS_PER_MS));
	}
}

/* Want of descriptors is found before it is looked whether anybody waits. */
static bool
somebody_waits(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	return poll(&ready, 1, 0) > 0;
}

static void
accept_from(struct wf_shm *t, struct wf_shm_listener *l)
{
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && wf_places_may_come(&t->medium.places); i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			wf_shm_adopt(t, fd, &l->at);
			continue;
		}
		int err = errno;
		if (err == EAGAIN || err == EWOULDBLOCK || !somebody_waits(l->fd)) {
			l->readable = false;
			return;
		}
		if (err != EINTR && err != ECONNABORTED && !wf_medium_make_room(&t->medium)) {
			accept_later(t, l, err);
			return;
		}
	}
	t->medium.loop.left = true;
}

void
wf_shm_accept_all(struct wf_shm *t)
{
	for (unsigned i = 0; i < t->listener_count; i++) {
		struct wf_shm_listener *l = &t->listener[i];
		if (l->readable && l->retry_ns <= wf_loop_now_ns(&t->medium.loop)) {
			l->retry_ns = 0;
			accept_from(t, l);
		}
	}
}

void
wf_shm_listeners_close(struct wf_shm *t)
{
	for (unsigned i = 0; i < t->listener_count; i++) {
		(void)close(t->listener[i].fd);
	}
	t->listener_count = 0;
}
