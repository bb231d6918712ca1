/* SPDX-License-Identifier: Apache-2.0 */
/* tcp: the backend over TCP sockets: open, close, poll and sleep.
 *
 * Edge-triggered epoll reports once that a socket has something; the connection then stays in the
 * ready list until the socket is empty, so a busy one costs no epoll_wait. Everything that can end
 * a sleep is behind the loop's epoll descriptor (transport/loop.h). Thread: the transport's owner.
 */
#include "transport/tcp/tcp_internal.h"
#include "wire/path.h"

/* While some connections are busy, epoll is called after this many polls. */
#define TURNS_WITHOUT_EPOLL_MAX 8u
/* The same if there is only one connection, so that epoll has only listeners and the eventfd
 * besides. */
#define TURNS_OF_ONE_MAX 64u

static void
tcp_close(struct wf_transport *transport)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	wf_medium_end_all(&t->medium); /* the ready list is not used any more */
	wf_look_up_reap(t->medium.transport.env, &t->orphans, true);
	wf_doors_close(&t->doors);
	wf_loop_close(&t->medium.loop);
	wf_free(transport->env, t, sizeof(*t));
}

/* A task of the helper thread has ended, or a poll left work. */
static void
on_wake(struct wf_loop *loop)
{
	struct wf_tcp *t = WF_LOOP_OWNER(loop, struct wf_tcp, medium.loop);
	for (struct wf_life *life = t->medium.first; life != NULL; life = life->next) {
		struct wf_tcp_conn *c = wf_tcp_conn_of(&life->conn);
		if (c->look_up != NULL) {
			wf_tcp_conn_ready(c);
		}
	}
	wf_look_up_reap(t->medium.transport.env, &t->orphans, false);
}

static void
run_timers(struct wf_tcp *t)
{
	uint64_t now_ns = wf_loop_now_ns(&t->medium.loop);
	wf_medium_expire(&t->medium, now_ns);
	wf_doors_expire(&t->doors, now_ns);
}

static inline bool
has_work(const struct wf_tcp_conn *c)
{
	if (c->life.state == WF_LIFE_CONNECTING || c->life.state >= WF_LIFE_DYING) {
		return false;
	}
	return c->rx.readable || c->rx.stalled || wf_tcp_has_done(c) ||
	       (c->tx.writable && !wf_tcp_tx_idle(c));
}

static inline void
visit(struct wf_tcp_conn *c, struct wf_events *events)
{
	if (c->life.state == WF_LIFE_UP) { /* the most frequent case */
		wf_tcp_visit_up(c, events);
	}
	if (c->life.state != WF_LIFE_UP && !wf_events_full(events)) {
		wf_life_visit(&c->life, events);
	}
	if (has_work(c)) {
		wf_tcp_conn_ready(c);
	}
}

static inline void
visit_ready(struct wf_tcp *t, struct wf_events *events)
{
	struct wf_loop *loop = &t->medium.loop;
	for (unsigned left = loop->ready_count; left > 0 && !wf_events_full(events); left--) {
		struct wf_loop_ready *ready = wf_loop_pop(loop);
		visit(WF_LOOP_OWNER(ready, struct wf_tcp_conn, life.ready), events);
	}
}

/* Calls epoll, for a poll that has nothing to do or has not called it for too long. Not inlined:
 * the empty poll before a sleep does not come here, and should be short. */
__attribute__((noinline)) static void
look_around(struct wf_tcp *t, bool due)
{
	bool emptied;
	do {
		emptied = wf_loop_collect(&t->medium.loop);
	} while (!emptied && due); /* a connection whose bytes have arrived is not late */
	if (due) {
		run_timers(t);
	}
	if (t->look_ns != WF_NEVER) {
		wf_tcp_host_look(t);
	}
	if (t->doors.readable) {
		wf_doors_accept(&t->doors);
	}
}

/* The only connection, if it can be read without calling epoll first. Not one for which epoll also
 * reports room to send: there an old edge, never fetched, would end every sleep. */
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

/* Fills the ready list. Returns false if something else may have ended the sleep. */
static bool
find_work(struct wf_tcp *t, bool due)
{
	const struct wf_loop *loop = &t->medium.loop;
	const uint64_t turns = loop->turn - loop->look_turn;
	if (!due && turns < TURNS_WITHOUT_EPOLL_MAX && loop->state == WF_LOOP_AWAKE &&
	    loop->ready_count > 0) {
		return true; /* a wait has just brought it: the most frequent case */
	}
	struct wf_tcp_conn *only = find_only(t);
	unsigned turns_max = only != NULL ? TURNS_OF_ONE_MAX : TURNS_WITHOUT_EPOLL_MAX;
	if (due || turns >= turns_max) {
		look_around(t, due);
		return true;
	}
	if (loop->state == WF_LOOP_ARMED ||
	    (loop->state == WF_LOOP_AWAKE && loop->ready_count > 0)) {
		return true; /* epoll_fd would be readable if there were more */
	}
	if (only == NULL) {
		look_around(t, false);
		return true;
	}
	only->rx.readable = true;
	wf_tcp_conn_ready(only);
	return loop->state == WF_LOOP_AWAKE;
}

/* Not inlined: most polls of a busy transport do not come here. */
__attribute__((noinline)) static void
rest(struct wf_tcp *t)
{
	struct wf_loop *loop = &t->medium.loop;
	loop->left = wf_doors_are_due(&t->doors) || t->look_ns < loop->armed_ns;
	wf_loop_rest(loop);
}

static enum weft_status
tcp_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	struct wf_loop *loop = &t->medium.loop;
	struct wf_events events = {.at = at, .max = max};
	wf_loop_begin(loop);
	t->heads_used = 0;
	if (t->medium.dead_waiting) {
		wf_medium_reap(&t->medium);
	}
	bool found = find_work(t, wf_loop_timer_is_due(loop));
	/* tcp_wait may have been notified of it, and nothing else checks. */
	if (t->doors.readable) {
		wf_doors_accept(&t->doors);
	}
	visit_ready(t, &events);
	if (!found && events.count == 0) {
		look_around(t, false);
		visit_ready(t, &events);
	}
	*event_count = events.count;
	if (wf_loop_end(loop, events.count)) {
		rest(t);
	}
	return WEFT_OK;
}

/* Sends what was posted. Returns true if the ready connections have nothing left but DONEs. */
static bool
flush_ready(struct wf_tcp *t)
{
	struct wf_loop_ready *ready = t->medium.loop.ready_first;
	for (; ready != NULL; ready = ready->next) {
		struct wf_tcp_conn *c = WF_LOOP_OWNER(ready, struct wf_tcp_conn, life.ready);
		if (c->life.state != WF_LIFE_UP || c->rx.readable || c->rx.stalled) {
			return false;
		}
		if (wf_tcp_tx_idle(c)) {
			continue;
		}
		wf_tcp_flush(c);
		if (!wf_tcp_tx_idle(c) && (c->tx.writable || c->tx.error != 0)) {
			return false;
		}
	}
	return true;
}

/* Quiet: anything that epoll has not reported makes its descriptor readable. */
static bool
tcp_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_tcp *t = wf_tcp_of(transport);
	struct wf_loop *loop = &t->medium.loop;
	if (!flush_ready(t) || wf_doors_are_due(&t->doors)) {
		*deadline_ns = 0;
		wf_loop_arm(loop, false, 0);
		return false;
	}
	*deadline_ns = loop->timer_ns < t->look_ns ? loop->timer_ns : t->look_ns;
	wf_loop_arm(loop, true, *deadline_ns);
	return true;
}

static void
tcp_wait(struct wf_transport *transport, uint64_t deadline_ns)
{
	wf_loop_wait(&wf_tcp_of(transport)->medium.loop, deadline_ns);
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
	.wait_fd = wf_medium_wait_fd,
	.arm = tcp_arm,
	.wait = tcp_wait,
	.wake = wf_medium_wake,
};

static enum weft_status
tcp_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_congestion congestion;
	enum weft_status st = wf_congestion_choose(opts->congestion, &congestion);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_tcp *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "tcp: %zu bytes", sizeof(*t));
	}
	t->congestion = congestion;
	wf_medium_init(&t->medium, &tcp_ops, &wf_tcp_life_ops, opts);
	wf_tcp_doors_init(t);
	for (uint64_t entries = 1; entries < opts->op_max; entries *= 2) {
		t->entry_mask = entries * 2 - 1;
	}
	t->piece_mask = 4 * t->entry_mask + 3;
	t->body_max = opts->put_bytes_max > WF_MSG_BODY_MAX ? opts->put_bytes_max : WF_MSG_BODY_MAX;
	t->look_ns = WF_NEVER;
	t->medium.loop.on_wake = on_wake;
	st = wf_loop_open(&t->medium.loop);
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
	.is_path = true,
	.path_id = WF_PATH_BOOTSTRAP,
	.path_retry_ns = 10 * WF_NS_PER_S,
};
