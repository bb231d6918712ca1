/* SPDX-License-Identifier: Apache-2.0 */
/* verbs: the backend over RDMA devices: open, close, poll and sleep.
 *
 * A poll reads the completion queues, in memory; it checks descriptors (the connection manager,
 * events of devices) after a sleep, by the clock (1 ms), and while a connection comes or goes. To
 * sleep, the completion queues are armed, and everything that can end the sleep is behind the
 * loop's epoll descriptor (transport/loop.h). Thread: the transport's owner. */
#include <errno.h>
#include <fcntl.h>

#include "transport/rdma.h"
#include "transport/verbs/verbs_internal.h"
#include "wire/path.h"

/* Polls between two readings of the clock while the caller spins: on some machines a reading is
 * slow. */
#define POLLS_PER_CLOCK 16u

/* A task of the helper thread may have ended. */
static void
on_wake(struct wf_loop *loop)
{
	struct wf_verbs *t = WF_LOOP_OWNER(loop, struct wf_verbs, medium.loop);
	wf_verbs_registrations_visit(t);
	wf_look_up_reap(t->medium.transport.env, &t->orphans, false);
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		if (c->attempt.task.running || c->attempt.look_up != NULL) {
			wf_verbs_connect_visit(c);
			t->medium.dead_waiting |= c->life.state == WF_LIFE_DEAD;
		}
	}
}

static void
notify_cm(struct wf_loop_source *source, uint32_t mask)
{
	(void)mask;
	wf_verbs_cm_read(WF_LOOP_OWNER(source, struct wf_verbs, cm_source));
}

static void
look(struct wf_verbs *t)
{
	struct wf_loop *loop = &t->medium.loop;
	loop->left |= !wf_loop_collect(loop);
	t->look_ns = loop->now_ns + WF_VERBS_LOOK_NS;
}

/* Frees connections whose DOWN was delivered in an earlier poll, then devices that are not used any
 * more. */
static void
reap_dead(struct wf_verbs *t)
{
	if (!t->medium.dead_waiting) {
		return;
	}
	wf_medium_reap(&t->medium);
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX; i++) {
		struct wf_verbs_device *dev = t->device[i];
		if (dev != NULL) {
			wf_verbs_queues_reap(dev);
		}
		if (dev != NULL && dev->gone && dev->conn_count == 0 && dev->registering == 0) {
			wf_verbs_device_close(dev);
			t->device[i] = NULL;
			wf_verbs_devices_forget(t);
		}
	}
}

/* A completion while a queue is armed has an event. Completions that the poll after an arm finds,
 * or leaves, may have been there before. */
static inline void
note_owed(const struct wf_verbs *t, struct wf_verbs_cq *q, unsigned count)
{
	if (count == 0 || !q->armed) {
		return;
	}
	if (wf_loop_is_armed(&t->medium.loop)) {
		q->armed = count < WF_VERBS_POLL_MAX;
	} else if (q->owed_ns == 0) {
		q->owed_ns = t->medium.loop.now_ns;
	}
}

/* Receptions are polled first; send completions at least in every second poll, and in those before
 * and after a sleep (`all`). */
static void
poll_queues(struct wf_verbs *t, bool all)
{
	for (struct wf_verbs_queues *q = t->queues; q != NULL; q = q->next) {
		if (wf_verbs_rx_is_due(&q->fresh)) {
			/* Now and not with the event, which may cause an answer. */
			wf_verbs_rx_flush_shared(q);
		}
		unsigned received = wf_verbs_poll_receive(q);
		t->medium.loop.left |= received >= WF_VERBS_POLL_MAX;
		note_owed(t, &q->receive, received);
		q->send_waits = received > 0 && !all && !q->send_waits;
		if (!q->send_waits) {
			unsigned sent = wf_verbs_poll_send(q);
			t->medium.loop.left |= sent >= WF_VERBS_POLL_MAX;
			note_owed(t, &q->send, sent);
		}
	}
}

static void
visit_ready(struct wf_verbs *t, struct wf_events *events)
{
	struct wf_loop *loop = &t->medium.loop;
	for (unsigned left = loop->ready_count; left > 0 && !wf_events_full(events); left--) {
		struct wf_loop_ready *ready = wf_loop_pop(loop);
		wf_verbs_conn_visit(WF_LOOP_OWNER(ready, struct wf_verbs_conn, life.ready), events);
	}
}

/* While there are connections a sleep is short: a long time without a poll means that the process,
 * or the host, was not running. */
static void
read_clock(struct wf_verbs *t)
{
	uint64_t before_ns = t->medium.loop.now_ns;
	uint64_t span_ns = wf_loop_now_ns(&t->medium.loop) - before_ns;
	if (span_ns < WF_VERBS_STILL_NS && span_ns < t->medium.opts.peer_timeout_ns / 2) {
		return;
	}
	for (struct wf_verbs_conn *c = wf_verbs_conn_first(t); c != NULL;
	     c = wf_verbs_conn_next(c)) {
		wf_verbs_conn_give_time(c, before_ns);
	}
}

static enum weft_status
verbs_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_verbs *t = wf_verbs_of(transport);
	struct wf_events events = {.at = at, .max = max};
	struct wf_loop *loop = &t->medium.loop;
	bool armed = wf_loop_is_armed(loop);
	bool woken = wf_loop_must_look(loop);
	bool changing = t->medium.up_count < t->medium.conn_count || t->medium.conn_count == 0;
	wf_loop_begin(loop);
	loop->left = false;
	if (woken || changing || armed || wf_loop_turns_blind(loop) >= POLLS_PER_CLOCK) {
		read_clock(t);
	}
	wf_verbs_rx_reclaim(t);
	reap_dead(t);
	poll_queues(t, woken || armed);
	/* Anything that an armed poll would find on a descriptor ends the sleep anyway. */
	bool due = loop->now_ns >= loop->timer_ns;
	if (woken || due || (changing && !armed) || loop->now_ns >= t->look_ns) {
		look(t); /* before timers: a connection whose answer has arrived is not late */
	}
	if (loop->now_ns >= loop->timer_ns) {
		wf_medium_expire(&t->medium, loop->now_ns);
	}
	visit_ready(t, &events);
	*event_count = events.count;
	if (wf_loop_end(loop, events.count)) {
		loop->left |= t->medium.dead_waiting;
		wf_loop_rest(loop);
	}
	return WEFT_OK;
}

static void
log_lost(struct wf_verbs *t, const struct wf_verbs_device *dev)
{
	t->medium.info.wakeups_lost++;
	if (!t->event_lost) {
		t->event_lost = true;
		wf_log(t->medium.transport.env, WF_LOG_WARN,
		       "verbs: %s lost an event of a completion; weft polls each %llu ms in any "
		       "case, so this only costs time",
		       dev->name, WF_VERBS_EVENT_NS / WF_NS_PER_MS);
	}
}

/* The descriptors were checked since, without an event: then none comes while the queue counts as
 * armed. */
static void
arm_cq(struct wf_verbs *t, const struct wf_verbs_queues *queues, struct wf_verbs_cq *q)
{
	/* When a poll last checked them, or shortly before. */
	uint64_t looked_ns = t->look_ns - WF_VERBS_LOOK_NS;
	if (q->owed_ns > 0 && looked_ns >= q->owed_ns + WF_VERBS_EVENT_NS) {
		log_lost(t, queues->dev);
		q->owed_ns = 0;
		q->armed = false;
	}
	if (!q->armed && ibv_req_notify_cq(q->cq, 0) == 0) {
		q->armed = true;
	}
}

static bool
verbs_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_verbs *t = wf_verbs_of(transport);
	const struct wf_loop *loop = &t->medium.loop;
	for (struct wf_verbs_queues *q = t->queues; q != NULL; q = q->next) {
		arm_cq(t, q, &q->receive);
		arm_cq(t, q, &q->send);
	}
	*deadline_ns = loop->ready_count > 0 ? 0 : loop->timer_ns;
	if (t->medium.conn_count > 0 && loop->now_ns + WF_VERBS_EVENT_NS < *deadline_ns) {
		*deadline_ns = loop->now_ns + WF_VERBS_EVENT_NS;
	}
	wf_loop_arm(&t->medium.loop, false, *deadline_ns);
	return false; /* what completed before the arm wakes nobody */
}

/* ---- open and close ---- */

static void
verbs_close(struct wf_transport *transport)
{
	struct wf_verbs *t = wf_verbs_of(transport);
	struct wf_env *env = transport->env;
	wf_medium_end_all(&t->medium); /* no list is used any more */
	wf_look_up_reap(env, &t->orphans, true);
	while (t->registrations != NULL) {
		wf_verbs_registrations_visit(t);
		wf_wait(env, -1, wf_now_ns(env) + WF_NS_PER_MS);
	}
	wf_verbs_listeners_close(t);
	for (unsigned i = 0; i < WF_VERBS_DEVICES_MAX; i++) {
		if (t->device[i] != NULL) {
			wf_verbs_device_close(t->device[i]);
		}
	}
	if (t->cm != NULL) {
		wf_loop_unwatch(&t->medium.loop, t->cm->fd);
		t->lib->destroy_event_channel(t->cm);
	}
	wf_loop_close(&t->medium.loop);
	wf_free(env, t->conn, wf_places_table(&t->medium.places) * sizeof(struct wf_verbs_conn *));
	wf_free(env, t, sizeof(*t));
}

static const struct wf_transport_ops verbs_ops = {
	.name = "verbs",
	.close = verbs_close,
	.query = wf_medium_query,
	.region_add = wf_verbs_region_add,
	.region_remove = wf_verbs_region_remove,
	.grant = wf_verbs_grant,
	.release = wf_verbs_release,
	.listen = wf_verbs_listen,
	.answer = wf_life_answer,
	.connect = wf_verbs_connect,
	.disconnect = wf_life_disconnect,
	.path = wf_path_alone,
	.post = wf_verbs_post,
	.poll = verbs_poll,
	.wait_fd = wf_medium_wait_fd,
	.arm = verbs_arm,
	.wait = wf_wait_on_fd,
	.wake = wf_medium_wake,
};

static enum weft_status
open_channel(struct wf_verbs *t)
{
	t->cm = t->lib->create_event_channel();
	if (t->cm == NULL) {
		int err = errno;
		enum weft_status st = wf_verbs_rights(&t->settings);
		if (st != WEFT_OK) {
			return st;
		}
		return wf_fail_errno(
			WEFT_UNSUPPORTED, err,
			"verbs: this host has no RDMA connection manager; look for a "
			"device (rdma link show) and load rdma_ucm (modprobe rdma_ucm)");
	}
	int flags = fcntl(t->cm->fd, F_GETFL);
	if (fcntl(t->cm->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "verbs: fcntl");
	}
	return wf_loop_watch(&t->medium.loop, t->cm->fd, EPOLLIN, &t->cm_source);
}

static enum weft_status
set_up(struct wf_verbs *t)
{
	enum weft_status st = wf_verbs_settings_parse(t->medium.opts.verbs, &t->settings);
	if (st == WEFT_OK) {
		st = wf_verbs_lib_get(&t->lib);
	}
	if (st != WEFT_OK) {
		return st;
	}
	t->medium.opts.verbs = NULL; /* the text was the caller's */
	t->conn = wf_zalloc_array(t->medium.transport.env, wf_places_table(&t->medium.places),
				  sizeof(struct wf_verbs_conn *));
	if (t->conn == NULL) {
		return wf_fail(WEFT_NOMEM, "verbs: a table of %u connections",
			       wf_places_table(&t->medium.places));
	}
	st = wf_loop_open(&t->medium.loop);
	return st == WEFT_OK ? open_channel(t) : st;
}

static enum weft_status
verbs_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_verbs *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "verbs: %zu bytes", sizeof(*t));
	}
	struct wf_transport_opts capped = *opts;
	uint32_t most = WF_VERBS_CONNS_MAX - 2 * opts->newcomer_max;
	capped.conn_max = opts->conn_max < most ? opts->conn_max : most;
	wf_medium_init(&t->medium, &verbs_ops, &wf_verbs_life_ops, &capped);
	t->medium.info.locks_memory = true;
	t->medium.loop.on_wake = on_wake;
	t->medium.loop.member.apart = true; /* its sources read events, and may end connections */
	(void)wf_loop_now_ns(&t->medium.loop);
	t->cm_source.notify = notify_cm;
	t->async_notify = wf_verbs_async_notify;
	enum weft_status st = set_up(t);
	if (st != WEFT_OK) {
		verbs_close(&t->medium.transport);
		return st;
	}
	*out = &t->medium.transport;
	return WEFT_OK;
}

const struct wf_backend wf_backend_verbs = {WF_RDMA_BACKEND, .open = verbs_open};
