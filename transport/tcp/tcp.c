/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: the backend over TCP sockets: open and close, the turn that poll is, and sleeping.
 *
 * Edge-triggered epoll says once that a socket has something; the connection then stays in the
 * ready list until the socket has run dry, so a busy one costs no epoll_wait. All that can wake a
 * sleeper is behind the epoll descriptor: sockets, and an eventfd for the helper thread and for
 * what poll itself leaves over. Thread: the transport's owner. */
#include "transport/tcp/tcp_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EPOLL_EVENTS 64
/* While some are busy the others are looked at so often. */
#define TURNS_WITHOUT_EPOLL_MAX 8u
/* Where there is one connection, the others are only listeners and the eventfd. */
#define TURNS_OF_ONE_MAX 64u

enum weft_status
wf_tcp_watch(struct wf_tcp *t, int fd, uint32_t mask, struct wf_tcp_source *source)
{
	struct epoll_event event = {.events = mask, .data.ptr = source};
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "epoll_ctl");
	}
	return WEFT_OK;
}

void
wf_tcp_watch_room(struct wf_tcp_conn *c, bool wanted)
{
	struct epoll_event event = {.events = WF_TCP_EDGES | (wanted ? EPOLLOUT : 0u),
				    .data.ptr = &c->source};
	int err = epoll_ctl(c->t->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
	WF_ASSERT(err == 0); /* it is in there, and nothing needs memory */
	c->room_watched = wanted;
}

static void
tcp_close(struct wf_transport *transport)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	wf_medium_end_all(&t->medium); /* the ready list is not looked at any more */
	wf_tcp_resolve_reap(t, true);
	wf_tcp_listeners_close(t);
	if (t->epoll_fd >= 0) {
		close(t->epoll_fd);
	}
	if (t->wake_fd >= 0) {
		close(t->wake_fd);
	}
	wf_free(transport->env, t, sizeof(*t));
}

/* A task of the helper thread has ended, or poll left something over. */
static void
on_wake(struct wf_tcp *t)
{
	for (struct wf_life *life = t->medium.first; life != NULL; life = life->next) {
		struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
		if (c->resolve != NULL) {
			wf_tcp_conn_ready(c);
		}
	}
	wf_tcp_resolve_reap(t, false);
}

static void
on_conn(struct wf_tcp_conn *c, uint32_t mask)
{
	const uint32_t over = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
	if ((mask & EPOLLOUT) != 0 && c->tx.error == 0) {
		c->tx.writable = true;
	}
	if ((mask & (EPOLLIN | over)) != 0) {
		c->rx.readable = true;
	}
	if ((mask & over) != 0) {
		c->rx.hung_up = true;
	}
	wf_tcp_conn_ready(c);
}

static void
on_source(struct wf_tcp *t, const struct epoll_event *event)
{
	const struct wf_tcp_source *source = event->data.ptr;
	switch (source->kind) {
	case WF_TCP_SOURCE_WAKE:
		on_wake(t);
		break;
	case WF_TCP_SOURCE_LISTENER:
		((struct wf_tcp_listener *)source->owner)->readable = true;
		t->listener_readable = true;
		break;
	case WF_TCP_SOURCE_CONN:
		on_conn(source->owner, event->events);
		break;
	}
}

/* true: epoll had no more than it gave. */
static bool
take_in(struct wf_tcp *t, const struct epoll_event *event, int count)
{
	for (int i = 0; i < count; i++) {
		on_source(t, &event[i]);
	}
	t->turns_without_epoll = 0;
	return count < EPOLL_EVENTS;
}

static bool
collect(struct wf_tcp *t)
{
	struct epoll_event event[EPOLL_EVENTS];
	int count = epoll_wait(t->epoll_fd, event, EPOLL_EVENTS, 0);
	return take_in(t, event, count);
}

static bool
timer_is_due(struct wf_tcp *t)
{
	return t->medium.timer_ns != WF_NEVER && t->medium.timer_ns <= wf_tcp_now_ns(t);
}

static void
run_timers(struct wf_tcp *t)
{
	uint64_t now_ns = wf_tcp_now_ns(t);
	wf_medium_expire(&t->medium, now_ns);
	for (unsigned i = 0; i < t->listener_count; i++) {
		uint64_t retry_ns = t->listener[i].retry_ns;
		if (retry_ns > now_ns) {
			wf_medium_timer_before(&t->medium, retry_ns);
		}
	}
}

static bool
listener_waits(struct wf_tcp *t)
{
	for (unsigned i = 0; i < t->listener_count && t->listener_readable; i++) {
		if (t->listener[i].readable && t->listener[i].retry_ns <= wf_tcp_now_ns(t)) {
			return true;
		}
	}
	return false;
}

static struct wf_tcp_conn *
ready_pop(struct wf_tcp *t)
{
	struct wf_tcp_conn *c = t->ready_first;
	t->ready_first = c->ready_next;
	if (t->ready_first == NULL) {
		t->ready_last = NULL;
	}
	t->ready_count--;
	c->ready = false;
	return c;
}

static void
visit_ready(struct wf_tcp *t, struct wf_events *events)
{
	for (unsigned left = t->ready_count; left > 0 && !wf_events_full(events); left--) {
		wf_tcp_conn_visit(ready_pop(t), events);
	}
}

static void
kick(struct wf_tcp *t)
{
	uint64_t one = 1;
	ssize_t n = write(t->wake_fd, &one, sizeof(one));
	(void)n; /* EAGAIN: the counter is at its end, and the descriptor readable */
}

static uint64_t
due_ns(const struct wf_tcp *t)
{
	return t->medium.timer_ns < t->look_ns ? t->medium.timer_ns : t->look_ns;
}

/* A caller that armed sleeps after an empty poll: nothing may be left that no descriptor and no
 * deadline tells of. */
static void
settle_armed(struct wf_tcp *t, unsigned event_count)
{
	if (!t->armed) {
		return;
	}
	t->armed = false;
	if (event_count > 0) {
		return;
	}
	t->slept = true; /* unless the kick below ends it at once */
	if (t->ready_count > 0 || listener_waits(t) || due_ns(t) < t->armed_ns) {
		kick(t);
	}
}

/* What a poll with nothing at hand, or too long without, asks for. Not inlined: the empty poll
 * before a sleep does not come here, and should be short. */
__attribute__((noinline)) static void
look_around(struct wf_tcp *t, bool due)
{
	bool emptied;
	do {
		emptied = collect(t);
	} while (!emptied && due); /* nobody is late whose bytes are here */
	if (due) {
		run_timers(t);
	}
	if (t->look_ns != WF_NEVER) {
		wf_tcp_host_look(t);
	}
	if (t->listener_readable) {
		wf_tcp_accept_all(t);
	}
}

/* The only connection, if it can be read without asking epoll first. Not one that epoll also tells
 * of room for: there an old edge, which nobody has fetched, would end every sleep. */
static struct wf_tcp_conn *
find_only(const struct wf_tcp *t)
{
	struct wf_life *life = t->medium.first;
	if (life == NULL || life->next != NULL || life->state != WF_LIFE_UP) {
		return NULL;
	}
	struct wf_tcp_conn *only = wf_tcp_conn_of(&life->conn);
	return only->room_watched ? NULL : only;
}

/* Fills the ready list. False: it may have been something else that ended the sleep. */
static bool
find_work(struct wf_tcp *t, bool due)
{
	struct wf_tcp_conn *only = find_only(t);
	unsigned turns_max = only != NULL ? TURNS_OF_ONE_MAX : TURNS_WITHOUT_EPOLL_MAX;
	if (due || ++t->turns_without_epoll >= turns_max) {
		look_around(t, due);
		return true;
	}
	if (!t->slept && (t->ready_count > 0 || t->armed)) {
		return true; /* if there were more, epoll_fd would be readable */
	}
	if (only == NULL) {
		look_around(t, false);
		return true;
	}
	only->rx.readable = true;
	wf_tcp_conn_ready(only);
	return !t->slept;
}

static enum weft_status
tcp_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	struct wf_events events = {.at = at, .max = max};
	t->turn++;
	t->heads_used = 0;
	if (t->medium.dead_waiting) {
		wf_medium_reap(&t->medium);
	}
	bool found = find_work(t, timer_is_due(t));
	if (t->listener_readable) { /* tcp_wait may have heard of it, and nothing else looks */
		wf_tcp_accept_all(t);
	}
	visit_ready(t, &events);
	if (!found && events.count == 0) {
		look_around(t, false);
		visit_ready(t, &events);
	}
	t->slept = false;
	*event_count = events.count;
	settle_armed(t, events.count);
	return WEFT_OK;
}

static int
tcp_wait_fd(struct wf_transport *transport)
{
	return wf_tcp_of(transport)->epoll_fd;
}

/* Send what was posted. True: the ready have nothing left but DONEs. */
static bool
flush_ready(struct wf_tcp *t)
{
	for (struct wf_tcp_conn *c = t->ready_first; c != NULL; c = c->ready_next) {
		if (c->life.state != WF_LIFE_UP || c->rx.readable || c->rx.stalled) {
			return false;
		}
		wf_tcp_flush(c);
		if (c->tx.error != 0 || (c->tx.writable && !wf_tcp_tx_idle(c))) {
			return false;
		}
	}
	return true;
}

/* Quiet: what epoll has not told makes its descriptor readable. */
static bool
tcp_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	bool quiet = flush_ready(t) && !listener_waits(t);
	t->armed = true;
	t->slept = t->slept || quiet;
	t->armed_ns = quiet ? due_ns(t) : 0;
	*deadline_ns = t->armed_ns;
	return quiet;
}

static void
tcp_wait(struct wf_transport *transport, uint64_t deadline_ns)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	struct epoll_event event[EPOLL_EVENTS];
	int count = wf_wait_events(transport->env, t->epoll_fd, deadline_ns, event, EPOLL_EVENTS);
	/* What ended it is here: the poll that follows need not look, but for what is due. */
	t->slept = !take_in(t, event, count) || count <= 0;
}

static void
tcp_wake(struct wf_transport *transport)
{
	kick(wf_tcp_of(transport));
}

static const struct wf_transport_ops tcp_ops = {
	.name = "tcp",
	.close = tcp_close,
	.query = wf_medium_query,
	.region_add = wf_tcp_region_add,
	.region_remove = wf_tcp_region_remove,
	.grant = wf_life_grant,
	.release = wf_tcp_release,
	.listen = wf_tcp_listen,
	.answer = wf_life_answer,
	.connect = wf_tcp_connect,
	.disconnect = wf_life_disconnect,
	.path = wf_path_alone,
	.post = wf_tcp_post,
	.poll = tcp_poll,
	.wait_fd = tcp_wait_fd,
	.arm = tcp_arm,
	.wait = tcp_wait,
	.wake = tcp_wake,
};

static enum weft_status
tcp_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	const char *congestion = opts->tcp_congestion != NULL ? opts->tcp_congestion : "";
	enum weft_status st = wf_tcp_congestion_check(congestion);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_tcp *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "tcp: %zu bytes", sizeof(*t));
	}
	snprintf(t->congestion, sizeof(t->congestion), "%s", congestion);
	wf_medium_init(&t->medium, &tcp_ops, &wf_tcp_life_ops, opts);
	for (uint64_t entries = 1; entries < opts->op_max; entries *= 2) {
		t->entry_mask = entries * 2 - 1;
	}
	t->body_max = opts->put_bytes_max > WF_MSG_BODY_MAX ? opts->put_bytes_max : WF_MSG_BODY_MAX;
	t->look_ns = WF_NEVER;
	t->wake.kind = WF_TCP_SOURCE_WAKE;
	t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->wake_fd < 0 || t->epoll_fd < 0) {
		st = wf_fail_errno(WEFT_IO, errno, "tcp: epoll and eventfd");
	} else {
		st = wf_tcp_watch(t, t->wake_fd, EPOLLIN | EPOLLET, &t->wake);
	}
	if (st != WEFT_OK) {
		tcp_close(&t->medium.transport);
		return st;
	}
	*out = &t->medium.transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_tcp = {
	.name = "tcp",
	.open = tcp_open,
};
