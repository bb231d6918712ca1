/* SPDX-License-Identifier: Apache-2.0 */
/* shm: the backend over shared memory: open, close, poll and sleep.
 *
 * Each poll reads the memory of all connections that are UP; sockets are checked after a sleep, by
 * the clock (1 ms), and while no connection is UP. While all connections are UP, only one of 16
 * polls reads the clock: a poll of a busy transport reads one word of each.
 *
 * An end that is about to sleep raises its flag in each segment, then checks once more; an end that
 * has filled or emptied a cell reads the flag, and sends one byte on the socket if it is up.
 * Thread: the transport's owner. */
#include "transport/shm/shm_internal.h"
#include "wire/path.h"

#define LOOK_TURNS 16u /* polls between two readings of the clock of a busy transport */

static void
shm_close(struct wf_transport *transport)
{
	struct wf_shm *t = wf_shm_of(transport);
	wf_medium_end_all(&t->medium);
	wf_doors_close(&t->doors);
	wf_loop_close(&t->medium.loop);
	wf_free(transport->env, t, sizeof(*t));
}

static void
collect(struct wf_shm *t)
{
	struct wf_loop *loop = &t->medium.loop;
	bool all = wf_loop_collect(loop);
	loop->left |= !all;
	t->look_ns = all ? loop->now_ns + WF_SHM_LOOK_NS : 0;
}

static void
run_timers(struct wf_shm *t)
{
	uint64_t now_ns = t->medium.loop.now_ns;
	wf_medium_expire(&t->medium, now_ns);
	wf_doors_expire(&t->doors, now_ns);
}

/* Raises the flag of a connection, whose segment is there. */
static void
raise_flag(struct wf_shm_conn *c, bool was_up)
{
	/* K1: conn_kick rings the doorbell, then reads the flag. */
	uint32_t before = atomic_exchange_explicit(&c->own->sleeping, 1, memory_order_seq_cst);
	if (was_up && before == 0) {
		wf_shm_conn_rung(c);
	}
	/* K2: what was written before a ring that is seen here is seen by the look that follows;
	 * for one that is not seen, the flag is. */
	(void)atomic_load_explicit(&c->peer_end->doorbell, memory_order_seq_cst);
}

/* Sends what is due to wake peers, and raises the flag in each segment. It is down in state AWAKE
 * of the loop, and up in all others. Returns whether all connections wait for their peers: a poll
 * would bring nothing but DONEs. */
static bool
raise_flags(struct wf_shm *t)
{
	bool all_wait = true;
	for (struct wf_life *life = t->medium.first; life != NULL; life = life->next) {
		struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
		if (c->tx.dirty && c->fd >= 0) {
			wf_shm_conn_kick(c);
		}
		if (c->segment != NULL) {
			raise_flag(c, t->flags_are_up);
		}
		all_wait = all_wait && wf_shm_conn_waits(c);
	}
	t->flags_are_up = true;
	return all_wait;
}

/* Lowers the flags. Returns true if a peer had cleared one, so that a byte is on its socket, or
 * about to be. */
static bool
lower_flags(struct wf_shm *t)
{
	bool rung = false;
	for (struct wf_life *life = t->medium.first; life != NULL && t->flags_are_up;
	     life = life->next) {
		struct wf_shm_conn *c = wf_shm_conn_of(&life->conn);
		/* K1, as above: while the flag is down, a peer that kicks sends no byte. */
		if (c->segment != NULL &&
		    atomic_exchange_explicit(&c->own->sleeping, 0, memory_order_seq_cst) == 0) {
			wf_shm_conn_rung(c);
			rung = true;
		}
	}
	t->flags_are_up = false;
	return rung;
}

static void
visit_all(struct wf_shm *t, struct wf_events *events)
{
	struct wf_life *life = t->visit_next != NULL ? t->visit_next : t->medium.first;
	struct wf_life *begun = life;
	for (uint32_t left = t->medium.conn_count; left > 0; left--) {
		if (wf_events_full(events)) {
			t->visit_next = life;
			t->medium.loop.left = true;
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

/* Checks everything except the memory of connections that are UP. Not inlined: most polls of a busy
 * transport do not come here. */
__attribute__((noinline)) static void
look_around(struct wf_shm *t)
{
	struct wf_loop *loop = &t->medium.loop;
	uint64_t now_ns = wf_loop_now_ns(loop);
	bool armed = wf_loop_is_armed(loop);
	bool woken = wf_loop_must_look(loop);
	t->looked_turn = loop->turn;
	if (t->medium.dead_waiting) {
		wf_medium_reap(&t->medium);
	}
	bool due = now_ns >= loop->timer_ns;
	/* A peer that rang ended the sleep: then nothing else has to be checked at once. */
	bool rung = woken && !armed && lower_flags(t);
	/* Anything that an armed poll would find on a socket ends the sleep anyway. */
	bool idle = t->medium.up_count == 0 && !armed;
	if ((woken && !rung) || due || idle || now_ns >= t->look_ns) {
		collect(t); /* before timers: a connection whose answer has arrived is not late */
	}
	if (due) {
		run_timers(t);
	}
	wf_doors_accept(&t->doors);
	loop->left |= wf_doors_are_due(&t->doors);
}

/* Whether only memory has to be checked. */
static inline bool
is_busy(const struct wf_shm *t)
{
	const struct wf_loop *loop = &t->medium.loop;
	return t->medium.up_count > 0 && t->medium.up_count == t->medium.conn_count &&
	       loop->state == WF_LOOP_AWAKE && !t->doors.readable &&
	       loop->turn - t->looked_turn < LOOK_TURNS;
}

static enum weft_status
shm_poll(struct wf_transport *transport, struct wf_event *at, unsigned max, unsigned *event_count)
{
	struct wf_shm *t = wf_shm_of(transport);
	struct wf_events events = {.at = at, .max = max};
	struct wf_loop *loop = &t->medium.loop;
	bool armed = wf_loop_is_armed(loop);
	wf_loop_begin(loop);
	loop->left = false;
	t->msg_count = 0;
	t->body_bytes = 0;
	if (!is_busy(t)) {
		look_around(t);
	}
	visit_all(t, &events);
	*event_count = events.count;
	if (wf_loop_end(loop, events.count)) {
		loop->left |= t->medium.dead_waiting;
		wf_loop_rest(loop);
	} else if (armed) {
		(void)lower_flags(t); /* peers need not wake an end that is awake */
	}
	return WEFT_OK;
}

/* Quiet: nothing had arrived when the flags were up, and what comes after that wakes this end. */
static bool
shm_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_shm *t = wf_shm_of(transport);
	struct wf_loop *loop = &t->medium.loop;
	bool quiet = raise_flags(t) && !loop->left && !t->medium.dead_waiting &&
		     !wf_doors_are_due(&t->doors);
	*deadline_ns = loop->left ? 0 : loop->timer_ns;
	wf_loop_arm(loop, quiet, *deadline_ns);
	return quiet;
}

static void
shm_wait(struct wf_transport *transport, uint64_t deadline_ns)
{
	struct wf_shm *t = wf_shm_of(transport);
	wf_loop_wait(&t->medium.loop, deadline_ns);
	if (t->medium.loop.state == WF_LOOP_AWAKE) { /* everything was looked at */
		(void)lower_flags(t);
		t->looked_turn = t->medium.loop.turn;
	}
}

static void
shm_path(struct wf_conn *conn, struct wf_path_info *out)
{
	wf_path_alone(conn, out);
	out->in_place = true;
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
	.path = shm_path,
	.post = wf_shm_post,
	.poll = shm_poll,
	.wait_fd = wf_medium_wait_fd,
	.arm = shm_arm,
	.wait = shm_wait,
	.wake = wf_medium_wake,
};

static enum weft_status
shm_open(const struct wf_transport_opts *opts, struct wf_transport **out)
{
	struct wf_shm *t = wf_zalloc(opts->env, sizeof(*t));
	if (t == NULL) {
		return wf_fail(WEFT_NOMEM, "shm: %zu bytes", sizeof(*t));
	}
	wf_medium_init(&t->medium, &shm_ops, &wf_shm_life_ops, opts);
	t->medium.info.in_place = true;
	wf_shm_doors_init(t);
	enum weft_status st = wf_loop_open(&t->medium.loop);
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
	.is_path = true,
	.path_id = WF_PATH_SHM,
	.one_host = true,
	.listen = "127.0.0.1",
	.why = "same host",
};
