/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_conn: the states of a connection, and its end.
 *
 *   RESOLVING - ADDRESSING - ROUTING - PREPARING - CONNECTING - SHAKING - DECIDED - UP   connecting
 *                                                  (SHAKING -) DECIDED - WAITING - UP   accepting
 * end UP - DRAINING - LINGERING - DYING - DEAD; any - (ENDING -) DYING - DEAD
 *
 * SHAKING is passed through by an accepting end only where the hello was too long for the request.
 * Thread: the transport's owner. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

struct wf_verbs_conn *
wf_verbs_conn_create(struct wf_verbs *t, bool incoming)
{
	if (wf_places_table_is_full(&t->places)) {
		return NULL;
	}
	struct wf_verbs_conn *c = wf_zalloc(t->transport.env, sizeof(*c));
	if (c == NULL) {
		return NULL;
	}
	if (incoming) {
		wf_places_come(&t->places, &c->place, c);
	} else if (!wf_places_take(&t->places, &c->place)) {
		wf_free(t->transport.env, c, sizeof(*c));
		return NULL;
	}
	uint32_t idx = 0;
	while (t->conn[idx] != NULL) {
		idx++;
	}
	c->conn.transport = &t->transport;
	c->t = t;
	c->idx = idx;
	c->generation = ++t->conn_generation;
	wf_grants_init(&c->grants, t->transport.env, &t->regions, c->peer);
	c->incoming = incoming;
	c->state = WF_VERBS_RESOLVING;
	c->deadline_ns = WF_NEVER;
	c->mark = 1 + (uint32_t)(wf_random(t->transport.env) % WF_VERBS_MARK_MAX);
	t->conn[idx] = c;
	t->conn_count++;
	return c;
}

void
wf_verbs_conn_destroy(struct wf_verbs_conn *c)
{
	struct wf_verbs *t = c->t;
	struct wf_env *env = t->transport.env;
	WF_ASSERT(!c->task.running);
	wf_verbs_link_close(c);
	wf_verbs_link_leave(c);
	t->conn[c->idx] = NULL;
	t->conn_count--;
	wf_places_leave(&t->places, &c->place);
	wf_free(env, c->tx.entry, c->tx.entry_count * sizeof(*c->tx.entry));
	wf_free(env, c->tx.ring,
		WF_VERBS_RING_BYTES + WF_VERBS_CREDIT_FRAMES * WF_VERBS_FRAME_BYTES);
	wf_free(env, c, sizeof(*c));
}

void
wf_verbs_conn_ready(struct wf_verbs_conn *c)
{
	struct wf_verbs *t = c->t;
	if (c->ready ||
	    c->state == WF_VERBS_DEAD) { /* about to be freed: what is flushed is late */
		return;
	}
	c->ready = true;
	c->ready_next = NULL;
	if (t->ready_last == NULL) {
		t->ready_first = c;
	} else {
		t->ready_last->ready_next = c;
	}
	t->ready_last = c;
	t->ready_count++;
}

void
wf_verbs_conn_deadline(struct wf_verbs_conn *c, uint64_t deadline_ns)
{
	c->deadline_ns = deadline_ns;
	wf_verbs_timer_before(c->t, deadline_ns);
}

void
wf_verbs_conn_is_up(struct wf_verbs_conn *c)
{
	struct wf_verbs *t = c->t;
	c->state = WF_VERBS_UP;
	c->was_up = true;
	c->steady = true;
	t->steady_count++;
	t->info.conns_up++;
	uint64_t span_ns = c->may_send ? t->opts.peer_timeout_ns / 4 : t->opts.handshake_timeout_ns;
	wf_verbs_conn_deadline(c, wf_now_ns(t->transport.env) + span_ns);
	wf_verbs_conn_ready(c);
}

static void
unsettle(struct wf_verbs_conn *c)
{
	c->t->steady_count -= c->steady ? 1 : 0;
	c->steady = false;
}

static void
count_down(struct wf_verbs_conn *c)
{
	struct wf_verbs *t = c->t;
	if (!c->visible) {
		wf_verbs_stranger(t, c->why);
	} else if (c->down_status == WEFT_PROTOCOL) {
		t->info.protocol_errors++;
	}
	if (c->was_up) {
		t->info.conns_down++;
	}
}

static void
set_down(struct wf_verbs_conn *c, enum weft_status status, const char *text)
{
	/* A name may be as long as the line: the text gets what it leaves, and more than half. */
	int named = snprintf(c->why, sizeof(c->why), "%.110s: ", c->peer);
	snprintf(c->why + named, sizeof(c->why) - (size_t)named, "%.*s",
		 (int)sizeof(c->why) - named - 1, text);
	c->down_status = status;
	unsettle(c);
	c->state = WF_VERBS_DYING; /* before the link: its last completions mean nothing now */
	wf_verbs_rx_drop(c);
	wf_verbs_link_close(c);
	wf_grants_drop(&c->grants);
	count_down(c);
	wf_places_end(&c->t->places, &c->place);
	c->deadline_ns = WF_NEVER;
	if (c->visible) {
		wf_verbs_conn_ready(c);
	} else {
		c->state = WF_VERBS_DEAD;
		c->t->dead_waiting = true;
	}
}

void
wf_verbs_conn_down(struct wf_verbs_conn *c, enum weft_status status, const char *format, ...)
{
	if (c->state >= WF_VERBS_DYING) {
		return;
	}
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	set_down(c, status, text);
}

void
wf_verbs_conn_end(struct wf_verbs_conn *c, enum weft_status status, const char *format, ...)
{
	if (c->state >= WF_VERBS_ENDING) {
		return;
	}
	va_list args;
	va_start(args, format);
	vsnprintf(c->end_why, sizeof(c->end_why), format, args);
	va_end(args);
	c->end_status = status;
	if (c->disconnected || c->refused) {
		c->end_status = WEFT_CLOSED;
		snprintf(c->end_why, sizeof(c->end_why), "%s by this end",
			 c->refused ? "refused" : "closed");
	} else if (!c->incoming && c->state < WF_VERBS_UP && status != WEFT_TIMEOUT) {
		c->end_status = WEFT_UNAVAILABLE;
	}
	unsettle(c);
	wf_places_end(&c->t->places, &c->place);
	c->state = WF_VERBS_ENDING;
	c->verdict_waits = false;
	wf_verbs_link_stop(c);
	c->drains = !wf_verbs_link_is_drained(c);
	wf_verbs_conn_deadline(c, wf_now_ns(c->t->transport.env) + WF_VERBS_DRAINED_NS);
	wf_verbs_conn_ready(c);
}

void
wf_verbs_conn_gone(struct wf_verbs_conn *c)
{
	if (c->state == WF_VERBS_ENDING && c->verdict_waits) {
		c->verdict_waits = false; /* it is here */
		if (c->end_status == WEFT_LOST) {
			snprintf(c->end_why, sizeof(c->end_why), "the peer closed without warning");
		}
		wf_verbs_conn_ready(c);
	}
	if (c->state >= WF_VERBS_ENDING) {
		return;
	}
	if (c->qp != NULL) {
		wf_verbs_poll_send(c->queues); /* an error of ours may be the cause */
	}
	if (wf_verbs_link_was_violated(c)) {
		wf_verbs_conn_end(c, WEFT_PROTOCOL, "%s refused what the peer sent", c->dev->name);
	} else {
		wf_verbs_conn_end(c, WEFT_LOST, "the peer closed without warning");
	}
}

void
wf_verbs_conn_suspect(struct wf_verbs_conn *c)
{
	if (c->state < WF_VERBS_ENDING) {
		c->suspected = true;
		wf_verbs_conn_ready(c);
	}
}

/* Completions of receptions were polled, perhaps not those of sends, which may say the cause. */
static void
judge(struct wf_verbs_conn *c)
{
	c->suspected = false;
	if (c->qp != NULL && c->state < WF_VERBS_ENDING) {
		wf_verbs_poll_send(c->queues);
		c->suspected = false; /* those that were flushed say nothing new */
	}
	if (c->state >= WF_VERBS_ENDING) {
		return;
	}
	if (wf_verbs_link_was_violated(c)) {
		wf_verbs_conn_end(c, WEFT_PROTOCOL, "%s refused what the peer sent", c->dev->name);
		return;
	}
	wf_verbs_conn_end(c, WEFT_LOST, "the queue pair broke");
	c->verdict_waits = true;
	wf_verbs_conn_deadline(c, wf_now_ns(c->t->transport.env) + WF_VERBS_VERDICT_NS);
}

void
wf_verbs_conn_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(conn);
	if (c->state >= WF_VERBS_DYING) {
		return;
	}
	if (how == WF_DISCONNECT_DRAIN && c->state >= WF_VERBS_UP && c->state < WF_VERBS_ENDING) {
		if (c->state == WF_VERBS_UP) {
			c->disconnected = true;
			unsettle(c);
			c->state = WF_VERBS_DRAINING;
			wf_verbs_conn_deadline(c,
					       wf_now_ns(c->t->transport.env) + WF_VERBS_DRAIN_NS);
			wf_verbs_conn_ready(c);
		}
		return;
	}
	c->disconnected = true;
	wf_verbs_conn_down(c, WEFT_CLOSED, "closed by this end");
}

/* ---- turns ---- */

/* Credits come without one of their own, so buffers are posted also where none are owed. */
static void
return_buffers(struct wf_verbs_conn *c)
{
	wf_verbs_return_credits(c);
	if (wf_verbs_rx_is_due(&c->rx.fresh)) {
		wf_verbs_rx_flush(c);
	}
}

static void
serve(struct wf_verbs_conn *c, struct wf_events *events)
{
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, false);
	if (c->windows_waiting > 0 || c->tx.posted < c->tx.taken) {
		wf_verbs_pump(c);
	}
	return_buffers(c);
}

static void
drain(struct wf_verbs_conn *c, struct wf_events *events)
{
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, true);
	if (c->state == WF_VERBS_DRAINING && !c->last_queued && wf_verbs_tx_idle(c)) {
		wf_verbs_say(c, WF_VERBS_CLOSE, NULL, 0);
		c->last_queued = true;
	}
	wf_verbs_pump(c);
	return_buffers(c);
	if (c->state == WF_VERBS_DRAINING && c->last_queued && wf_verbs_tx_idle(c)) {
		c->state = WF_VERBS_LINGERING;
	}
	if (c->state == WF_VERBS_LINGERING && c->peer_closed) {
		wf_verbs_conn_end(c, WEFT_CLOSED, "closed by this end");
	}
}

static void
finish(struct wf_verbs_conn *c, struct wf_events *events)
{
	bool discard = c->disconnected || c->refused || !c->was_up;
	bool late = c->t->now_ns >= c->deadline_ns;
	if (late) { /* this end may have been, and not have looked since */
		wf_verbs_link_look(c);
	}
	bool drained = wf_verbs_link_is_drained(c); /* before the last look */
	if (c->qp != NULL) {
		wf_verbs_poll_receive_all(c->queues);
		drained = drained || wf_verbs_link_is_drained(c);
	}
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, discard);
	if (c->state != WF_VERBS_ENDING || c->rx.list.first != NULL) {
		return;
	}
	if (late && !drained) {
		wf_verbs_link_undrained(c);
	}
	if (late || (drained && !c->verdict_waits)) {
		wf_verbs_conn_down(c, c->end_status, "%s", c->end_why);
	}
}

static void
emit_down(struct wf_verbs_conn *c, struct wf_events *events)
{
	wf_verbs_emit_done(c, events, WEFT_LOST);
	if (c->tx.done < c->tx.taken || wf_events_full(events)) {
		return;
	}
	struct wf_event *event = wf_events_add(events, &c->conn, WF_EVENT_DOWN);
	event->down.status = c->down_status;
	event->down.why = c->why;
	if (c->down_status == WEFT_REFUSED) {
		event->down.blob = c->blob;
		event->down.blob_bytes = c->blob_bytes;
	}
	c->state = WF_VERBS_DEAD;
	c->t->dead_waiting = true;
}

static void
visit_state(struct wf_verbs_conn *c, struct wf_events *events)
{
	if (c->suspected) {
		judge(c);
	}
	switch (c->state) {
	case WF_VERBS_RESOLVING:
	case WF_VERBS_PREPARING:
	case WF_VERBS_CONNECTING:
		wf_verbs_connect_visit(c);
		break;
	case WF_VERBS_ADDRESSING:
	case WF_VERBS_ROUTING:
	case WF_VERBS_DEAD:
		break;
	case WF_VERBS_DECIDED:
		wf_verbs_shake_emit(c, events);
		break;
	case WF_VERBS_SHAKING:
	case WF_VERBS_WAITING:
	case WF_VERBS_UP:
		serve(c, events);
		break;
	case WF_VERBS_DRAINING:
	case WF_VERBS_LINGERING:
		drain(c, events);
		break;
	case WF_VERBS_ENDING:
		finish(c, events);
		break;
	case WF_VERBS_DYING:
		emit_down(c, events);
		break;
	}
}

/* Something that no completion and no deadline will tell of. */
static bool
has_work(struct wf_verbs_conn *c)
{
	const struct wf_verbs_tx *tx = &c->tx;
	if (c->state == WF_VERBS_DEAD ||
	    (c->state == WF_VERBS_DECIDED && wf_verbs_shake_is_held_up(c))) {
		return false;
	}
	if (c->state == WF_VERBS_DECIDED || c->state == WF_VERBS_DYING || c->suspected ||
	    c->rx.list.first != NULL) {
		return true;
	}
	return tx->done < tx->posted &&
	       wf_verbs_sq_is_over(&tx->sq, tx->entry[tx->done & (tx->entry_count - 1)].last);
}

void
wf_verbs_conn_visit(struct wf_verbs_conn *c, struct wf_events *events)
{
	enum wf_verbs_state before;
	do {
		before = c->state;
		visit_state(c, events);
	} while (c->state != before && !wf_events_full(events));
	if (has_work(c)) {
		wf_verbs_conn_ready(c);
	}
}

/* ---- time ---- */

uint64_t
wf_verbs_conn_due_ns(const struct wf_verbs_conn *c)
{
	return c->state < WF_VERBS_DYING ? c->deadline_ns : WF_NEVER;
}

/* Is the peer's device there? What it owes is completions; credits, and with them slots of its
 * memory, are its process's to give, which may be stopped. On InfiniBand the device of this end
 * says when the other one is silent. */
static void
expire_up(struct wf_verbs_conn *c)
{
	const struct wf_verbs_tx *tx = &c->tx;
	uint64_t timeout_ns = c->t->opts.peer_timeout_ns;
	uint64_t now_ns = c->t->now_ns;
	bool waits = tx->sq.completed < tx->sq.posted;
	if (!c->may_send) {
		wf_verbs_conn_end(
			c, WEFT_TIMEOUT, "accepted, but silent for %llu ms",
			(unsigned long long)(c->t->opts.handshake_timeout_ns / WF_NS_PER_MS));
		return;
	}
	if (tx->progress_ns == WF_NEVER) {
		c->tx.progress_ns = now_ns; /* it begins to count */
	}
	if (c->dev->caps.iwarp && waits && now_ns > tx->progress_ns &&
	    now_ns - tx->progress_ns >= timeout_ns) {
		wf_verbs_conn_end(c, WEFT_TIMEOUT, "its device is silent for %llu ms",
				  (unsigned long long)(timeout_ns / WF_NS_PER_MS));
		return;
	}
	if (!waits && now_ns - c->rx.heard_ns >= timeout_ns / 4) {
		wf_verbs_ask_alive(c);
	}
	wf_verbs_conn_deadline(c, now_ns + timeout_ns / 4);
}

/* How far an attempt has come. */
static const char *
what_is_missing(const struct wf_verbs_conn *c)
{
	if (c->state == WF_VERBS_RESOLVING) {
		return "the name was not looked up";
	}
	if (c->state > WF_VERBS_CONNECTING) {
		return "connected, but not answered";
	}
	if (c->state == WF_VERBS_CONNECTING && c->repeated) {
		return "two requests were not answered";
	}
	return c->state == WF_VERBS_CONNECTING || c->repeated ? "the request was not answered"
							      : "no way there was found";
}

void
wf_verbs_conn_give_time(struct wf_verbs_conn *c, uint64_t since_ns)
{
	bool up = c->state == WF_VERBS_UP && c->may_send;
	if (up && c->t->now_ns - since_ns >= c->t->opts.peer_timeout_ns / 2) {
		c->tx.progress_ns = c->t->now_ns; /* what came meanwhile was not looked at */
		c->rx.heard_ns = c->t->now_ns;
	}
	bool handshake = c->state <= WF_VERBS_UP && !up;
	if (!handshake || c->stood_still || c->deadline_ns == WF_NEVER) {
		return;
	}
	uint64_t begun_ns = c->incoming ? since_ns : c->attempt_ns - c->t->opts.connect_timeout_ns;
	uint64_t span_ns = c->t->now_ns - (begun_ns > since_ns ? begun_ns : since_ns);
	if (span_ns >= WF_VERBS_STILL_NS) { /* it did not begin at the end of that time */
		c->stood_still = true;
		c->deadline_ns += span_ns;
		c->attempt_ns += span_ns;
	}
}

static void
expire_attempt(struct wf_verbs_conn *c)
{
	bool early = c->deadline_ns < c->attempt_ns;
	if (!early || !wf_verbs_connect_repeat(c, "the request or its answer may be lost")) {
		wf_verbs_conn_down(
			c, WEFT_TIMEOUT, "%s within %llu ms", what_is_missing(c),
			(unsigned long long)(c->t->opts.connect_timeout_ns / WF_NS_PER_MS));
	}
}

void
wf_verbs_conn_expire(struct wf_verbs_conn *c)
{
	const struct wf_transport_opts *opts = &c->t->opts;
	if (c->state == WF_VERBS_UP) {
		expire_up(c);
	} else if (c->state == WF_VERBS_WAITING && wf_verbs_link_is_asked(c)) {
		wf_verbs_conn_deadline(c, c->t->now_ns + WF_VERBS_WITHDRAWN_NS);
	} else if (c->state == WF_VERBS_WAITING) {
		wf_verbs_conn_end(c, WEFT_LOST, "the peer gave up");
	} else if (c->state == WF_VERBS_ENDING || (c->incoming && c->state == WF_VERBS_DECIDED)) {
		wf_verbs_conn_ready(c);
	} else if (c->state == WF_VERBS_DRAINING || c->state == WF_VERBS_LINGERING) {
		wf_verbs_conn_end(c, WEFT_CLOSED, "closed by this end");
	} else if (c->incoming) {
		wf_verbs_conn_down(c, WEFT_TIMEOUT, "no hello within %llu ms",
				   (unsigned long long)(opts->handshake_timeout_ns / WF_NS_PER_MS));
	} else {
		expire_attempt(c);
	}
}
