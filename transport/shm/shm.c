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

void
wf_shm_timer_before(struct wf_shm *t, uint64_t when_ns)
{
	if (when_ns < t->timer_ns) {
		t->timer_ns = when_ns;
	}
}

static void
shm_close(struct wf_transport *transport)
{
	struct wf_shm *t = wf_shm_of(transport);
	for (uint32_t i = 0; i < t->conn_count; i++) {
		wf_shm_conn_disconnect(&t->conn[i]->conn, WF_DISCONNECT_NOW);
	}
	while (t->conn_count > 0) {
		wf_shm_conn_destroy(t->conn[t->conn_count - 1]);
	}
	wf_shm_listeners_close(t);
	if (t->epoll_fd >= 0) {
		(void)close(t->epoll_fd);
	}
	if (t->wake_fd >= 0) {
		(void)close(t->wake_fd);
	}
	wf_free(transport->env, t->conn,
		wf_places_table(&t->places) * sizeof(struct wf_shm_conn *));
	wf_free(transport->env, t, sizeof(*t));
}

static void
shm_query(struct wf_transport *transport, struct wf_transport_info *out)
{
	*out = wf_shm_of(transport)->info;
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

/* Free those whose DOWN went out in an earlier poll. */
static void
reap_dead(struct wf_shm *t)
{
	if (!t->dead_waiting) {
		return;
	}
	t->dead_waiting = false;
	for (uint32_t i = t->conn_count; i-- > 0;) {
		if (t->conn[i]->state == WF_SHM_DEAD) {
			wf_shm_conn_destroy(t->conn[i]);
		}
	}
}

static void
run_timers(struct wf_shm *t)
{
	if (t->now_ns < t->timer_ns) {
		return;
	}
	t->timer_ns = WF_NEVER;
	for (uint32_t i = 0; i < t->conn_count; i++) {
		struct wf_shm_conn *c = t->conn[i];
		if (wf_shm_conn_due_ns(c) <= t->now_ns) {
			wf_shm_conn_expire(c);
		}
		/* Those that die look at their deadline themselves, once it has come. */
		uint64_t due_ns = wf_shm_conn_due_ns(c);
		if (due_ns > t->now_ns) {
			wf_shm_timer_before(t, due_ns);
		}
	}
	for (unsigned i = 0; i < t->listener_count; i++) {
		uint64_t retry_ns = t->listener[i].retry_ns;
		if (retry_ns > t->now_ns) {
			wf_shm_timer_before(t, retry_ns);
		}
	}
}

/* Raise or lower the flag in each segment. */
static void
set_sleeping(struct wf_shm *t, uint32_t sleeping)
{
	for (uint32_t i = 0; i < t->conn_count; i++) {
		struct wf_shm_conn *c = t->conn[i];
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
	uint32_t count = t->conn_count;
	uint32_t idx = t->first < count ? t->first : 0;
	t->first = idx + 1;
	for (uint32_t i = 0; i < count; i++) {
		if (wf_events_full(events)) {
			t->first = idx;
			t->work_left = true;
			return;
		}
		if (!wf_shm_conn_rests(t->conn[idx])) {
			wf_shm_conn_visit(t->conn[idx], events);
		}
		idx = idx + 1 == count ? 0 : idx + 1;
	}
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
	if (event_count == 0 && (t->work_left || t->dead_waiting || t->timer_ns < timer_ns)) {
		kick(t);
	}
}

/* All but the memory of connections that are up. Not inlined: most polls of a busy transport do not
 * come here. */
__attribute__((noinline)) static void
look_around(struct wf_shm *t)
{
	t->turns = 0;
	t->now_ns = wf_now_ns(t->transport.env);
	reap_dead(t);
	bool due = t->now_ns >= t->timer_ns;
	bool woken = t->slept;
	if (woken && !t->armed) {
		set_sleeping(t, 0);
	}
	t->slept = false;
	/* What an armed poll would find on a socket ends the sleep anyway. */
	bool idle = t->up_count == 0 && !t->armed;
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
	return t->up_count > 0 && t->up_count == t->conn_count && !t->armed && !t->slept &&
	       ++t->turns < LOOK_TURNS;
}

static enum weft_status
shm_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_shm *t = wf_shm_of(transport);
	struct wf_events events = {.at = at, .max = max};
	uint64_t timer_ns = t->timer_ns;
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
	*deadline_ns = t->work_left ? 0 : t->timer_ns;
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
	.query = shm_query,
	.region_add = wf_shm_region_add,
	.region_remove = wf_shm_region_remove,
	.grant = wf_shm_grant,
	.release = wf_shm_release,
	.listen = wf_shm_listen,
	.answer = wf_shm_answer,
	.connect = wf_shm_connect,
	.disconnect = wf_shm_conn_disconnect,
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
	t->transport.ops = &shm_ops;
	t->transport.env = opts->env;
	t->opts = *opts;
	wf_places_init(&t->places, opts->conn_max, opts->newcomer_max);
	t->info.name = "shm";
	t->info.put_bytes_max = opts->put_bytes_max;
	t->timer_ns = WF_NEVER;
	t->now_ns = wf_now_ns(opts->env);
	t->conn = wf_zalloc_array(opts->env, wf_places_table(&t->places),
				  sizeof(struct wf_shm_conn *));
	t->wake.kind = WF_SHM_SOURCE_WAKE;
	t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	enum weft_status st = WEFT_OK;
	if (t->conn == NULL) {
		st = wf_fail(WEFT_NOMEM, "shm: a table of %u connections",
			     wf_places_table(&t->places));
	} else if (t->wake_fd < 0 || t->epoll_fd < 0) {
		st = wf_fail_errno(WEFT_IO, errno, "shm: epoll and eventfd");
	} else {
		st = wf_shm_watch(t, t->wake_fd, &t->wake);
	}
	if (st != WEFT_OK) {
		shm_close(&t->transport);
		return st;
	}
	*out = &t->transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_shm = {
	.name = "shm",
	.open = shm_open,
};
