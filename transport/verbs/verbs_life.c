/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_life: what a connection does in each state (transport/life.h).
 *
 * RESOLVING - ADDRESSING - ROUTING - PREPARING - REQUESTING are the stages of CONNECTING. An
 * accepting end passes through SHAKING only if the hello was too long for the request. Thread: the
 * transport's owner. */
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs_internal.h"

/* A task can be running here only if the transport is being closed: otherwise such a connection is
 * held. */
static void
verbs_fini(struct wf_life *life)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	struct wf_env *env = life->conn.transport->env;
	while (c->attempt.task.running) {
		wf_verbs_connect_visit(c);
		wf_wait(env, -1, wf_now_ns(env) + WF_NS_PER_MS);
	}
	wf_verbs_connect_abandon(c);
	wf_verbs_link_close(c);
	wf_verbs_link_leave(c);
	c->t->conn[c->idx] = NULL;
	wf_free(env, c->tx.entry, c->tx.entry_count * sizeof(*c->tx.entry));
	wf_free(env, c->tx.ring,
		WF_VERBS_RING_BYTES + WF_VERBS_CREDIT_FRAMES * WF_VERBS_FRAME_BYTES);
}

static bool
verbs_is_held(struct wf_life *life)
{
	return wf_verbs_conn_of(&life->conn)->attempt.task.running;
}

static void
verbs_up(struct wf_life *life)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	const struct wf_transport_opts *opts = &c->t->medium.opts;
	uint64_t span_ns = c->may_send ? opts->peer_timeout_ns / 4 : opts->handshake_timeout_ns;
	wf_life_deadline(life, wf_now_ns(opts->env) + span_ns);
	wf_life_ready(&c->life);
}

static void
verbs_cut(struct wf_life *life, enum wf_life_state before)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	(void)before;
	wf_verbs_connect_abandon(c);
	wf_verbs_rx_drop(c);
	wf_verbs_link_close(c);
}

void
wf_verbs_conn_gone(struct wf_verbs_conn *c)
{
	if (c->link.qp != NULL && c->life.state < WF_LIFE_ENDING) {
		wf_verbs_poll_send(c->link.queues); /* an error of this end may be the cause */
	}
	wf_verbs_conn_left(c);
}

/* Receive completions were polled, but perhaps not send completions, which may show the cause. */
static void
judge(struct wf_verbs_conn *c)
{
	if (c->link.qp != NULL && c->life.state < WF_LIFE_ENDING) {
		wf_verbs_poll_send(c->link.queues);
	}
	wf_verbs_conn_clear(c); /* flushed ones show nothing new */
	wf_verbs_conn_judge(c);
}

/* ---- turns ---- */

/* CREDIT frames need no credit, so buffers are posted even if no credits are due. */
static void
return_buffers(struct wf_verbs_conn *c)
{
	wf_verbs_return_credits(c);
	if (wf_verbs_rx_is_due(&c->rx.fresh)) {
		wf_verbs_rx_flush(c);
	}
}

/* Windows are bound before anything else is posted: a message with the key of one may be in the
 * queue. */
static void
send_waiting(struct wf_verbs_conn *c)
{
	if (c->access.waiting > 0) {
		wf_verbs_access_bind(c);
	}
	if (c->tx.posted < c->tx.taken) {
		wf_verbs_pump(c);
	}
}

static void
serve(struct wf_verbs_conn *c, struct wf_events *events)
{
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, false);
	send_waiting(c);
	return_buffers(c);
}

static void
drain(struct wf_verbs_conn *c, struct wf_events *events)
{
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, true);
	if (c->life.state == WF_LIFE_DRAINING && !c->last_queued && wf_verbs_tx_idle(c)) {
		wf_verbs_send_frame(c, WF_VERBS_CLOSE, NULL, 0);
		c->last_queued = true;
	}
	send_waiting(c);
	return_buffers(c);
	if (c->life.state == WF_LIFE_DRAINING && c->last_queued && wf_verbs_tx_idle(c)) {
		wf_life_enter(&c->life, WF_LIFE_LINGERING);
	}
	if (c->life.state == WF_LIFE_LINGERING && c->peer_closed) {
		wf_verbs_conn_end(c, WEFT_CLOSED, "closed by this end");
	}
}

/* ENDING. */
static void
wind_up(struct wf_verbs_conn *c, struct wf_events *events)
{
	bool discard = c->life.disconnected || c->life.refused || !c->life.was_up;
	bool late = c->t->medium.loop.now_ns >= c->life.deadline_ns;
	if (late) { /* this end itself may be late, and not have polled since */
		wf_verbs_link_look(c);
	}
	bool drained = wf_verbs_link_is_drained(c); /* before the last look */
	if (c->link.qp != NULL) {
		wf_verbs_poll_receive_all(c->link.queues);
		drained = drained || wf_verbs_link_is_drained(c);
	}
	wf_verbs_emit_done(c, events, WEFT_OK);
	wf_verbs_receive(c, events, discard);
	if (c->life.state != WF_LIFE_ENDING || c->rx.list.first != NULL) {
		return;
	}
	if (late && !drained) {
		wf_verbs_link_undrained(c);
	}
	if (late || (drained && !c->end.verdict_waits)) {
		wf_life_down(&c->life, c->end.status, "%s", c->end.why);
	}
}

static bool
verbs_finish(struct wf_life *life, struct wf_events *events)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	wf_verbs_emit_done(c, events, WEFT_LOST);
	return c->tx.done == c->tx.taken;
}

static void
verbs_visit(struct wf_life *life, struct wf_events *events)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	switch (life->state) {
	case WF_LIFE_CONNECTING:
		wf_verbs_connect_visit(c);
		break;
	case WF_LIFE_SHAKING:
	case WF_LIFE_WAITING:
	case WF_LIFE_UP:
		serve(c, events);
		break;
	case WF_LIFE_DRAINING:
	case WF_LIFE_LINGERING:
		drain(c, events);
		break;
	case WF_LIFE_ENDING:
		wind_up(c, events);
		break;
	case WF_LIFE_DECIDED:
	case WF_LIFE_DYING:
	case WF_LIFE_DEAD:
		break;
	}
}

/* Whether there is work that neither a completion nor a deadline announces. */
static bool
has_work(struct wf_verbs_conn *c)
{
	const struct wf_verbs_tx *tx = &c->tx;
	if (c->life.state == WF_LIFE_DECIDED || c->life.state >= WF_LIFE_DYING) {
		return false; /* life.c handles the other states */
	}
	if (c->end.suspected || c->rx.list.first != NULL) {
		return true;
	}
	return tx->done < tx->posted &&
	       wf_verbs_sq_is_over(&tx->sq, tx->entry[tx->done & (tx->entry_count - 1)].last);
}

void
wf_verbs_conn_visit(struct wf_verbs_conn *c, struct wf_events *events)
{
	if (c->end.suspected) {
		judge(c);
	}
	if (c->life.state == WF_LIFE_UP) { /* the most frequent case */
		serve(c, events);
	}
	if (c->life.state != WF_LIFE_UP && !wf_events_full(events)) {
		wf_life_visit(&c->life, events);
	}
	if (has_work(c)) {
		wf_life_ready(&c->life);
	}
}

/* ---- time ---- */

/* How long the device may leave a work request without a completion. On iWARP nobody but this end
 * notices that the peer's device is silent. On InfiniBand and RoCE the device of this end reports
 * it, each try after at most four times `ack_timeout` (InfiniBand specification, volume 1,
 * 9.7.6.1.3). It gets that and peer_timeout, because some devices lose a retry and then report
 * nothing. */
static uint64_t
completion_limit_ns(const struct wf_verbs_conn *c)
{
	const struct wf_verbs_settings *s = &c->t->settings;
	uint64_t limit_ns = c->t->medium.opts.peer_timeout_ns;
	if (!c->link.dev->caps.iwarp) {
		limit_ns += 4 * (4096ull << s->ack_timeout) * (s->retry_count + 1);
	}
	return limit_ns;
}

static void
end_silent(struct wf_verbs_conn *c, uint64_t limit_ns)
{
	unsigned long long limit_ms = limit_ns / WF_NS_PER_MS;
	if (c->link.dev->caps.iwarp) {
		wf_verbs_conn_end(c, WEFT_TIMEOUT, "its device is silent for %llu ms", limit_ms);
	} else {
		wf_verbs_conn_end(c, WEFT_TIMEOUT,
				  "%s has neither completed a request nor reported an error for "
				  "%llu ms: is the link down?",
				  c->link.dev->name, limit_ms);
	}
}

/* Checks that the peer's device answers. The device owes completions; credits, and so slots of its
 * memory, come from the peer's process, which may be stopped. */
static void
expire_up(struct wf_verbs_conn *c)
{
	const struct wf_verbs_tx *tx = &c->tx;
	uint64_t timeout_ns = c->t->medium.opts.peer_timeout_ns;
	uint64_t now_ns = c->t->medium.loop.now_ns;
	bool waits = tx->sq.completed < tx->sq.posted;
	if (!c->may_send) {
		wf_verbs_conn_end(c, WEFT_TIMEOUT, "accepted, but silent for %llu ms",
				  (unsigned long long)(c->t->medium.opts.handshake_timeout_ns /
						       WF_NS_PER_MS));
		return;
	}
	if (tx->progress_ns == WF_NEVER) {
		c->tx.progress_ns = now_ns; /* the time begins to count */
	}
	uint64_t limit_ns = completion_limit_ns(c);
	if (waits && now_ns > tx->progress_ns && now_ns - tx->progress_ns >= limit_ns) {
		end_silent(c, limit_ns);
		return;
	}
	if (!waits && now_ns - c->rx.heard_ns >= timeout_ns / 4) {
		wf_verbs_ask_alive(c);
	}
	wf_life_deadline(&c->life, now_ns + timeout_ns / 4);
}

/* What an attempt lacks, by its stage. */
static const char *
what_is_missing(const struct wf_verbs_conn *c)
{
	if (c->attempt.stage == WF_VERBS_RESOLVING) {
		return "the name was not looked up";
	}
	if (c->attempt.stage == WF_VERBS_REQUESTING && c->attempt.repeated) {
		return "two requests were not answered";
	}
	return c->attempt.stage == WF_VERBS_REQUESTING || c->attempt.repeated
		       ? "the request was not answered"
		       : "no route to it was found";
}

void
wf_verbs_conn_give_time(struct wf_verbs_conn *c, uint64_t since_ns)
{
	bool up = c->life.state == WF_LIFE_UP && c->may_send;
	if (up && c->t->medium.loop.now_ns - since_ns >= c->t->medium.opts.peer_timeout_ns / 2) {
		c->tx.progress_ns =
			c->t->medium.loop.now_ns; /* what arrived meanwhile was not read */
		c->rx.heard_ns = c->t->medium.loop.now_ns;
	}
	bool handshake = c->life.state <= WF_LIFE_UP && !up;
	if (!handshake || c->stood_still || c->life.deadline_ns == WF_NEVER) {
		return;
	}
	uint64_t begun_ns = c->life.incoming
				    ? since_ns
				    : c->life.attempt_ns - c->t->medium.opts.connect_timeout_ns;
	uint64_t span_ns = c->t->medium.loop.now_ns - (begun_ns > since_ns ? begun_ns : since_ns);
	/* Unless the handshake began only at the end of that time. */
	if (span_ns >= WF_VERBS_STILL_NS) {
		c->stood_still = true;
		c->life.attempt_ns += span_ns;
		wf_life_deadline(&c->life, c->life.deadline_ns + span_ns);
	}
}

static const char *
verbs_late(struct wf_life *life)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	if (life->state == WF_LIFE_CONNECTING) {
		bool early = life->deadline_ns < life->attempt_ns;
		bool goes_on = early &&
			       wf_verbs_connect_repeat(c, "the request or its answer may be lost");
		return goes_on ? NULL : what_is_missing(c);
	}
	if (life->state == WF_LIFE_UP) {
		expire_up(c);
	} else if (life->state == WF_LIFE_WAITING && wf_verbs_link_is_asked(c)) {
		wf_life_deadline(life, c->t->medium.loop.now_ns + WF_VERBS_WITHDRAWN_NS);
	} else if (life->state == WF_LIFE_WAITING) {
		wf_verbs_conn_end(c, WEFT_LOST, "the peer gave up");
	} else {
		wf_life_ready(&c->life); /* DECIDED, ENDING: it waited for this deadline */
	}
	return NULL;
}

static void
verbs_end(struct wf_life *life)
{
	wf_verbs_conn_end(wf_verbs_conn_of(&life->conn), WEFT_CLOSED, "closed by this end");
}

static void
verbs_deny(struct wf_life *life, const char *why)
{
	struct wf_verbs_conn *c = wf_verbs_conn_of(&life->conn);
	if (c->link.qp == NULL) { /* otherwise there is a link, which ends */
		wf_verbs_deny(c, why);
	}
}

const struct wf_life_ops wf_verbs_life_ops = {
	.conn_bytes = sizeof(struct wf_verbs_conn),
	.ready = wf_life_ready,
	.visit = verbs_visit,
	.late = verbs_late,
	.end = verbs_end,
	.may_show = wf_verbs_may_show,
	.shown = wf_verbs_shown,
	.up = verbs_up,
	.answer = wf_verbs_answer,
	.deny = verbs_deny,
	.cut = verbs_cut,
	.finish = verbs_finish,
	.is_held = verbs_is_held,
	.fini = verbs_fini,
};
