/* SPDX-License-Identifier: Apache-2.0 */
/* shm: the backend over shared memory: open and close, the turn that poll is, and sleeping.
 *
 * Connections that are up are looked at in memory, all of them at each poll; sockets are looked at
 * after a sleep, by the clock (1 ms), and while nothing is up. While all there are are up, only one
 * of 16 polls looks at the clock: a poll of a busy transport is a look at one word of each.
 *
 * Who means to sleep raises its flag in each segment, then looks once more; who has filled or
 * emptied a cell looks at the flag, and if it is up sends one byte on the socket. Thread: the
 * transport's owner. */
#include "transport/shm/shm_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EPOLL_EVENTS 64
#define LOOK_TURNS 16u /* how often a busy transport looks at the clock */

enum weft_status
wf_shm_watch(struct wf_shm *t, int fd, struct wf_shm_source *source)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = source};
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

static void
shm_close(struct wf_transport *transport)
{
	struct wf_shm *t = wf_shm_of(transport);
	wf_medium_end_all(&t->medium);
	wf_shm_listeners_close(t);
	if (t->epoll_fd >= 0) {
		(void)close(t->epoll_fd);
	}
	if (t->wake_fd >= 0) {
		(void)close(t->wake_fd);
	}
	wf_free(transport->env, t, sizeof(*t));
}

static void
collect(struct wf_shm *t)
{
	struct epoll_event event[EPOLL_EVENTS];
	int count = epoll_wait(t->epoll_fd, event, EPOLL_EVENTS, 0);
	for (int i = 0; i < count; i++) {
		const struct wf_shm_source *source = event[i].data.ptr;
		if (source->kind == WF_SHM_SOURCE_LISTENER) {
			((struct wf_shm_listener *)source->owner)->readable = true;
		} else if (source->kind == WF_SHM_SOURCE_CONN) {
			((struct wf_shm_conn *)source->owner)->readable = true;
		}
	}
	t->work_left = count == EPOLL_EVENTS;
	t->look_ns = count == EPOLL_EVENTS ? 0 : t->now_ns + WF_SHM_LOOK_NS;
}

static void
run_timers(struct wf_shm *t)
{
	if (t->now_ns < t->medium.loop.timer_ns) {
		return;
	}
	wf_medium_expire(&t->medium, t->now_ns);
	for (unsigned i = 0; i < t->listener_count; i++) {
		uint64_t retry_ns = t->listener[i].retry_ns;
		if (retry_ns > t->now_ns) {
			wf_loop_timer_before(&t->medium.loop, retry_ns);
		}
	}
}

/* Raise or lower the flag in each segment. */
static void
set_sleeping(struct wf_shm *t, uint32_t sleeping)
{
	for (struct wf_life *life = t->medium.first; life != NULL; life = life->next) {
		struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
		if (c->segment == NULL) {
			continue;
		}
		/* K1: conn_kick rings the doorbell, then reads the flag. */
		atomic_store_explicit(&c->own->sleeping, sleeping, memory_order_seq_cst);
		if (sleeping != 0) {
			/* K2: what was written before a ring that is seen here is seen by the
			 * look that follows; for one that is not seen, the flag is. */
			(void)atomic_load_explicit(&c->peer_end->doorbell, memory_order_seq_cst);
		}
	}
}

static void
visit_all(struct wf_shm *t, struct wf_events *events)
{
	struct wf_life *life = t->visit_next != NULL ? t->visit_next : t->medium.first;
	struct wf_life *begun = life;
	for (uint32_t left = t->medium.conn_count; left > 0; left--) {
		if (wf_events_full(events)) {
			t->visit_next = life;
			t->work_left = true;
			return;
		}
		struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
		if (!wf_shm_conn_rests(c)) {
			wf_shm_conn_visit(c, events);
		}
		life = life->next != NULL ? life->next : t->medium.first;
	}
	t->visit_next = begun != NULL ? begun->next : NULL;
}

static void
kick(struct wf_shm *t)
{
	uint64_t one = 1;
	ssize_t n = write(t->wake_fd, &one, sizeof(one));
	(void)n; /* EAGAIN: the counter is at its end, and the descriptor readable */
}

/* A caller that armed sleeps after an empty poll: nothing may be left that no descriptor and no
 * deadline tells of. */
static void
settle_armed(struct wf_shm *t, uint64_t timer_ns, unsigned event_count)
{
	t->armed = false;
	t->slept = true;
	if (event_count == 0 &&
	    (t->work_left || t->medium.dead_waiting || t->medium.loop.timer_ns < timer_ns)) {
		kick(t);
	}
}

/* All but the memory of connections that are up. Not inlined: most polls of a busy transport do not
 * come here. */
__attribute__((noinline)) static void
look_around(struct wf_shm *t)
{
	t->turns = 0;
	t->now_ns = wf_now_ns(t->medium.transport.env);
	if (t->medium.dead_waiting) {
		wf_medium_reap(&t->medium);
	}
	bool due = t->now_ns >= t->medium.loop.timer_ns;
	bool woken = t->slept;
	if (woken && !t->armed) {
		set_sleeping(t, 0);
	}
	t->slept = false;
	/* What an armed poll would find on a socket ends the sleep anyway. */
	bool idle = t->medium.up_count == 0 && !t->armed;
	if (woken || due || idle || t->now_ns >= t->look_ns) {
		collect(t); /* before timers: nobody is late whose word is here */
	}
	run_timers(t);
	wf_shm_accept_all(t);
}

/* Nothing but memory has to be looked at. */
static inline bool
is_busy(struct wf_shm *t)
{
	return t->medium.up_count > 0 && t->medium.up_count == t->medium.conn_count && !t->armed &&
	       !t->slept && ++t->turns < LOOK_TURNS;
}

static enum weft_status
shm_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_shm *t = wf_shm_of(transport);
	struct wf_events events = {.at = at, .max = max};
	uint64_t timer_ns = t->medium.loop.timer_ns;
	t->msg_count = 0;
	t->body_bytes = 0;
	t->work_left = false;
	if (!is_busy(t)) {
		look_around(t);
	}
	visit_all(t, &events);
	*event_count = events.count;
	if (t->armed) {
		settle_armed(t, timer_ns, events.count);
	}
	return WEFT_OK;
}

static int
shm_wait_fd(struct wf_transport *transport)
{
	return wf_shm_of(transport)->epoll_fd;
}

static bool
shm_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_shm *t = wf_shm_of(transport);
	t->armed = true;
	set_sleeping(t, 1);
	*deadline_ns = t->work_left ? 0 : t->medium.loop.timer_ns;
	return false; /* what came before the flag was set wakes nobody */
}

static void
shm_wake(struct wf_transport *transport)
{
	kick(wf_shm_of(transport));
}

static const struct wf_transport_ops shm_ops = {
	.name = "shm",
	.close = shm_close,
	.query = wf_medium_query,
	.region_add = wf_shm_region_add,
	.region_remove = wf_shm_region_remove,
	.grant = wf_life_grant,
	.release = wf_shm_release,
	.listen = wf_shm_listen,
	.answer = wf_life_answer,
	.connect = wf_shm_connect,
	.disconnect = wf_life_disconnect,
	.path = wf_path_alone,
	.post = wf_shm_post,
	.poll = shm_poll,
	.wait_fd = shm_wait_fd,
	.arm = shm_arm,
	.wait = wf_wait_on_fd,
	.wake = shm_wake,
};

static enum weft_status
shm_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_shm *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "shm: %zu bytes", sizeof(*t));
	}
	wf_medium_init(&t->medium, &shm_ops, &wf_shm_life_ops, opts);
	t->now_ns = wf_now_ns(opts->env);
	t->wake.kind = WF_SHM_SOURCE_WAKE;
	t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	enum weft_status st = WEFT_OK;
	if (t->wake_fd < 0 || t->epoll_fd < 0) {
		st = wf_fail_errno(WEFT_IO, errno, "shm: epoll and eventfd");
	} else {
		st = wf_shm_watch(t, t->wake_fd, &t->wake);
	}
	if (st != WEFT_OK) {
		shm_close(&t->medium.transport);
		return st;
	}
	*out = &t->medium.transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_shm = {
	.name = "shm",
	.open = shm_open,
};
