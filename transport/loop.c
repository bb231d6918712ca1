/* SPDX-License-Identifier: Apache-2.0 */
/* loop: descriptors, and the end of a poll that a sleep follows. Thread: the transport's owner. */
#include "transport/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/forked.h"

static void
wake(struct wf_loop *loop)
{
	if (loop->on_wake != NULL) {
		loop->on_wake(loop);
	}
}

static void
notify_wake(struct wf_loop_source *source, uint32_t mask)
{
	(void)mask;
	wake(source->loop);
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
		.turn = 1, /* so that the clock counts as not read */
		.timer_ns = WF_NEVER,
		.armed_ns = WF_NEVER,
	};
}

static void
join(struct wf_loop *loop, struct wf_loop *owner)
{
	WF_ASSERT(owner->epoll_fd >= 0 && owner->owner == NULL);
	loop->epoll_fd = owner->epoll_fd;
	loop->member.next = owner->member.first;
	owner->member.first = loop;
}

/* Accepts one that has not joined. */
static void
leave(struct wf_loop *loop, struct wf_loop *owner)
{
	struct wf_loop **at = &owner->member.first;
	while (*at != NULL && *at != loop) {
		at = &(*at)->member.next;
	}
	if (*at != NULL) {
		*at = loop->member.next;
	}
}

enum weft_status
wf_loop_open(struct wf_loop *loop)
{
	loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->owner != NULL) {
		join(loop, loop->owner);
	} else {
		loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	}
	if (loop->wake_fd < 0 || loop->epoll_fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll and eventfd");
	}
	return wf_loop_watch(loop, loop->wake_fd, EPOLLIN | EPOLLET, &loop->wake_source);
}

void
wf_loop_close(struct wf_loop *loop)
{
	WF_ASSERT(loop->member.first == NULL);
	if (loop->owner != NULL) {
		leave(loop, loop->owner);
	}
	if (loop->wake_fd >= 0) {
		wf_loop_close_fd(loop, &loop->wake_fd);
	}
	if (loop->owner == NULL && loop->epoll_fd >= 0) {
		(void)close(loop->epoll_fd);
	}
	loop->epoll_fd = -1;
}

enum weft_status
wf_loop_watch(struct wf_loop *loop, int fd, uint32_t mask, struct wf_loop_source *source)
{
	struct epoll_event event = {.events = mask, .data.ptr = source};
	source->loop = loop;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return wf_forked_add_fd(fd);
}

void
wf_loop_watch_change(struct wf_loop *loop, int fd, uint32_t mask, struct wf_loop_source *source)
{
	struct epoll_event event = {.events = mask, .data.ptr = source};
	int err = epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
	WF_ASSERT(err == 0); /* it is watched already, and the call allocates nothing */
}

void
wf_loop_unwatch(struct wf_loop *loop, int fd)
{
	wf_forked_remove_fd(fd);
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void
wf_loop_close_fd(struct wf_loop *loop, int *fd)
{
	wf_loop_unwatch(loop, *fd);
	(void)close(*fd);
	*fd = -1;
}

/* A look of `loop` found something for another loop. Returns false if that one has to look itself.
 */
static __attribute__((noinline)) bool
notice(struct wf_loop *loop, struct wf_loop_source *source)
{
	struct wf_loop *other = source->loop;
	if (other == loop->owner) {
		return true; /* the owner gets only kicks, which have served their purpose */
	}
	other->member.noticed = true;
	if (loop->member.told != NULL) {
		*loop->member.told = true;
	}
	if (other->member.apart &&
	    source == &other->wake_source) { /* which is not reported again */
		other->member.woken = true;
		other->state = wf_loop_is_armed(other) ? WF_LOOP_LOOKING : WF_LOOP_ASLEEP;
	}
	return !other->member.apart;
}

__attribute__((always_inline)) static inline void
dispatch(struct wf_loop *loop, const struct epoll_event *event, int count)
{
	for (int i = 0; i < count; i++) {
		struct wf_loop_source *source = event[i].data.ptr;
		if (source->loop == loop || notice(loop, source)) {
			source->notify(source, event[i].events);
		}
	}
	if (loop->member.woken) {
		loop->member.woken = false;
		wake(loop);
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
