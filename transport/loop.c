/* SPDX-License-Identifier: Apache-2.0 */
/* loop: descriptors, and the end of a poll that a sleep follows. Thread: the transport's owner. */
#include "transport/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void
notify_wake(struct wf_loop_source *source, uint32_t mask)
{
	struct wf_loop *loop = WF_LOOP_OWNER(source, struct wf_loop, wake_source);
	(void)mask;
	if (loop->on_wake != NULL) {
		loop->on_wake(loop);
	}
}

void
wf_loop_init(struct wf_loop *loop, struct wf_env *env, void (*on_wake)(struct wf_loop *loop))
{
	*loop = (struct wf_loop){
		.env = env,
		.epoll_fd = -1,
		.wake_fd = -1,
		.wake_source = {.notify = notify_wake},
		.on_wake = on_wake,
		.turn = 1, /* the clock was not read yet */
		.timer_ns = WF_NEVER,
		.armed_ns = WF_NEVER,
	};
}

enum weft_status
wf_loop_open(struct wf_loop *loop)
{
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->wake_fd < 0 || loop->epoll_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll and eventfd");
	}
	return wf_loop_watch(loop, loop->wake_fd, EPOLLIN | EPOLLET, &loop->wake_source);
}

void
wf_loop_close(struct wf_loop *loop)
{
	if (loop->epoll_fd >= 0) {
		(void)close(loop->epoll_fd);
	}
	if (loop->wake_fd >= 0) {
		(void)close(loop->wake_fd);
	}
	loop->epoll_fd = -1;
	loop->wake_fd = -1;
}

enum weft_status
wf_loop_watch(struct wf_loop *loop, int fd, uint32_t mask, struct wf_loop_source *source)
{
	struct epoll_event event = {.events = mask, .data.ptr = source};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

void
wf_loop_watch_change(struct wf_loop *loop, int fd, uint32_t mask, struct wf_loop_source *source)
{
	struct epoll_event event = {.events = mask, .data.ptr = source};
	int err = epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
	WF_ASSERT(err == 0); /* it is in there, and nothing needs memory */
}

void
wf_loop_unwatch(struct wf_loop *loop, int fd)
{
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void
dispatch(struct wf_loop *loop, const struct epoll_event *event, int count)
{
	for (int i = 0; i < count; i++) {
		struct wf_loop_source *source = event[i].data.ptr;
		source->notify(source, event[i].events);
	}
	loop->look_turn = loop->turn;
}

bool
wf_loop_collect(struct wf_loop *loop)
{
	struct epoll_event event[WF_LOOP_EVENTS];
	int count = epoll_wait(loop->epoll_fd, event, WF_LOOP_EVENTS, 0);
	dispatch(loop, event, count);
	return count < WF_LOOP_EVENTS;
}

void
wf_loop_wait(struct wf_loop *loop, uint64_t deadline_ns)
{
	struct epoll_event event[WF_LOOP_EVENTS];
	int count = wf_wait_events(loop->env, loop->epoll_fd, deadline_ns, event, WF_LOOP_EVENTS);
	dispatch(loop, event, count);
	loop->state = WF_LOOP_AWAKE;
	if (count <= 0 || count == WF_LOOP_EVENTS) {
		loop->state = WF_LOOP_ASLEEP;
	}
}

void
wf_loop_kick(struct wf_loop *loop)
{
	uint64_t one = 1;
	ssize_t n = write(loop->wake_fd, &one, sizeof(one));
	(void)n; /* EAGAIN: the counter is at its end, and the descriptor readable */
}

void
wf_loop_rest(struct wf_loop *loop)
{
	if (loop->ready_count > 0 || loop->left || loop->timer_ns < loop->armed_ns) {
		wf_loop_kick(loop);
	}
}
