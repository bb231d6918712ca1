/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/doors.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/assert.h"

#define ACCEPTS_PER_TURN 32u
#define ACCEPT_RETRY_NS (100 * WF_NS_PER_MS)
#define LOG_PERIOD_NS WF_NS_PER_S

static void
notify(struct wf_loop_source *source, uint32_t mask)
{
	struct wf_door *door = WF_LOOP_OWNER(source, struct wf_door, source);
	(void)mask;
	door->readable = true;
	door->doors->readable = true;
}

static enum weft_status
add_one(struct wf_doors *doors, int fd, const struct wf_host *at)
{
	struct wf_door *door = &doors->door[doors->count];
	*door = (struct wf_door){.source = {.notify = notify}, .doors = doors, .at = *at, .fd = fd};
	enum weft_status st =
		wf_loop_watch(&doors->medium->loop, fd, EPOLLIN | EPOLLET, &door->source);
	doors->count += st == WEFT_OK ? 1 : 0;
	return st;
}

enum weft_status
wf_doors_add(struct wf_doors *doors, const int *fd, unsigned fd_count, const struct wf_host *at)
{
	struct wf_loop *loop = &doors->medium->loop;
	unsigned before = doors->count;
	enum weft_status st = WEFT_OK;
	if (fd_count > WF_DOORS_MAX - before) {
		st = wf_fail(WEFT_NOMEM, "%s: %u listening sockets are the most",
			     doors->medium->info.name, WF_DOORS_MAX);
	}
	for (unsigned i = 0; i < fd_count && st == WEFT_OK; i++) {
		st = add_one(doors, fd[i], at);
	}
	if (st != WEFT_OK) {
		doors->count = before;
		for (unsigned i = 0; i < fd_count; i++) {
			int unused = fd[i];
			wf_loop_close_fd(loop, &unused);
		}
	}
	return st;
}

void
wf_doors_close(struct wf_doors *doors)
{
	while (doors->count > 0) {
		wf_loop_close_fd(&doors->medium->loop, &doors->door[--doors->count].fd);
	}
}

/* accept(2) failed, most likely for lack of descriptors or memory, and no newcomer could be
 * dropped: retries later, and logs it. */
static void
accept_later(struct wf_door *door, int err)
{
	struct wf_medium *medium = door->doors->medium;
	uint64_t now_ns = wf_loop_now_ns(&medium->loop);
	door->retry_ns = now_ns + ACCEPT_RETRY_NS;
	wf_loop_timer_before(&medium->loop, door->retry_ns);
	if (wf_log_limit_pass(&door->doors->log, now_ns, LOG_PERIOD_NS)) {
		wf_log(medium->transport.env, WF_LOG_WARN,
		       "%s: cannot accept a connection: %s; tried again each %llu ms",
		       medium->info.name, strerror(err),
		       (unsigned long long)(ACCEPT_RETRY_NS / WF_NS_PER_MS));
	}
}

/* Whether only that one connection failed, before it was accepted. */
static bool
is_of_the_peer(int err)
{
	return err == ECONNABORTED || err == EINTR || err == EPERM || err == EPROTO ||
	       err == ENETDOWN || err == ENETUNREACH || err == EHOSTUNREACH || err == EHOSTDOWN ||
	       err == ENONET || err == ENOPROTOOPT || err == EOPNOTSUPP || err == ETIMEDOUT;
}

/* accept(2) fails for lack of descriptors before it checks whether a connection waits, so poll(2)
 * is asked. */
static bool
somebody_waits(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	return poll(&ready, 1, 0) > 0;
}

/* Refused connections that stay are dropped to make room. If the doors are still closed after that,
 * they wait for DOWNs, which come with later polls. */
static bool
is_open(struct wf_medium *medium)
{
	bool open = wf_places_may_come(&medium->places);
	while (!open && wf_places_are_overfull(&medium->places)) {
		(void)wf_medium_make_room(medium);
		open = wf_places_may_come(&medium->places);
	}
	return open;
}

static void
accept_from(struct wf_door *door)
{
	struct wf_medium *medium = door->doors->medium;
	for (unsigned i = 0; i < ACCEPTS_PER_TURN && is_open(medium); i++) {
		struct sockaddr_storage peer = {0};
		socklen_t bytes = sizeof(peer);
		int fd = accept4(door->fd, (struct sockaddr *)&peer, &bytes,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			door->doors->adopt(medium, fd, &peer, door);
			continue;
		}
		int err = errno;
		if (err == EAGAIN || err == EWOULDBLOCK || !somebody_waits(door->fd)) {
			door->readable = false;
			return;
		}
		if (!is_of_the_peer(err) && !wf_medium_make_room(medium)) {
			accept_later(door, err);
			return;
		}
	}
}

static bool
is_due(struct wf_door *door)
{
	return door->readable && door->retry_ns <= wf_loop_now_ns(&door->doors->medium->loop);
}

void
wf_doors_accept(struct wf_doors *doors)
{
	bool readable = false;
	for (unsigned i = 0; i < doors->count && doors->readable; i++) {
		struct wf_door *door = &doors->door[i];
		if (is_due(door)) {
			accept_from(door);
		}
		readable = readable || door->readable;
	}
	doors->readable = readable;
}

bool
wf_doors_look(struct wf_doors *doors)
{
	bool due = false;
	for (unsigned i = 0; i < doors->count; i++) {
		due = due || is_due(&doors->door[i]);
	}
	return due;
}

void
wf_doors_expire(struct wf_doors *doors, uint64_t now_ns)
{
	for (unsigned i = 0; i < doors->count; i++) {
		if (doors->door[i].retry_ns > now_ns) {
			wf_loop_timer_before(&doors->medium->loop, doors->door[i].retry_ns);
		}
	}
}
