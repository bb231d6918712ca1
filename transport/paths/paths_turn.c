/* SPDX-License-Identifier: Apache-2.0 */
/* paths_turn: poll and sleep.
 *
 * A path that carries data is polled on every turn, directly into the caller's array, and its
 * events are translated in place. A quiet path (listeners, the bootstraps of connections that
 * another path carries) sleeps until a look of another path notices it, or its deadline has passed.
 * A path without descriptors, in a simulation, is polled by the clock instead, and in the poll
 * after an arm. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>

/* Handles UP, DOWN, and events of inner connections that are not shown. Returns false if the event
 * is not for the caller. */
static bool
on_event(struct wf_paths *t, struct wf_path *path, struct wf_event *event)
{
	struct wf_paths_conn *m = event->conn->user;
	if (event->kind == WF_EVENT_UP && event->up.incoming) {
		return wf_paths_accept(t, path, event);
	}
	if (m == &t->conns.no_room && event->kind == WF_EVENT_DOWN) {
		t->info.strangers_refused++;
		(void)snprintf(t->info.last_stranger, sizeof(t->info.last_stranger),
			       "%.150s; no memory for a connection", event->down.why);
	}
	if (m == NULL || m == &t->conns.no_room) {
		return false; /* it was abandoned */
	}
	if (event->kind == WF_EVENT_UP) {
		return wf_paths_connect_up(m, event);
	}
	if (event->kind == WF_EVENT_DOWN) {
		return wf_paths_conn_inner_down(m, event);
	}
	if (m->state < WF_PATHS_DYING && event->kind != WF_EVENT_DONE) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "it spoke where it has nothing to say");
		m->t->info.protocol_errors++;
		wf_paths_conn_kill(m);
	}
	return false;
}

/* Some of the events from `first` on are not events of this transport's connections. Returns how
 * many of `count` are left. */
static __attribute__((noinline)) unsigned
sort_out(struct wf_paths *t, struct wf_path *path, struct wf_event *at, unsigned first,
	 unsigned count)
{
	unsigned kept = first;
	for (unsigned i = first; i < count; i++) {
		struct wf_event *event = &at[i];
		bool inner = event->conn->transport != &t->transport;
		if (inner && event->kind > WF_EVENT_DOWN && event->conn->shown != event->conn) {
			event->conn = event->conn->shown; /* arrived together with its UP */
		} else if (inner && !on_event(t, path, event)) {
			continue;
		}
		if (kept != i) {
			at[kept] = *event;
		}
		kept++;
	}
	if (kept < count) {
		t->turn.hidden = true;
		wf_paths_attend(t);
	}
	return kept;
}

/* Translates the events of an inner transport in place. Returns how many are left. */
static inline unsigned
translate(struct wf_paths *t, struct wf_path *path, struct wf_event *at, unsigned count)
{
	path->inner->told = false;
	for (struct wf_event *event = at; event < at + count; event++) {
		if (event->conn->transport != &t->transport) {
			return sort_out(t, path, at, (unsigned)(event - at), count);
		}
	}
	return count;
}

/* Finds the paths that have to be polled on every turn: those with connections that carry, or are
 * beginning or ending. If there are none, all are. The change may also have given work to a path
 * that sleeps. */
static void
find_hot(struct wf_paths *t)
{
	bool any = false;
	t->turn.changed = false;
	t->turn.timer_ns = WF_NEVER;
	for (unsigned i = 0; i < t->path_count; i++) {
		t->path[i].hot = false;
		t->path[i].asleep = false;
	}
	for (struct wf_paths_conn *m = t->conns.first; m != NULL; m = m->next) {
		bool upgraded = m->state == WF_PATHS_UP && m->carry == m->fast;
		wf_paths_timer_before(t, m->deadline_ns);
		t->path[0].hot |= !upgraded && m->state != WF_PATHS_GONE;
		if (m->fast != NULL) {
			m->path->hot = true;
		}
		for (unsigned i = 1; m->state == WF_PATHS_OFFERED && i < t->path_count; i++) {
			t->path[i].hot = true;
		}
	}
	for (unsigned i = 0; i < t->path_count; i++) {
		any |= t->path[i].hot;
	}
	unsigned hot_count = 0;
	for (unsigned i = 0; i < t->path_count; i++) {
		struct wf_path *path = &t->path[i];
		path->hot = (path->hot || !any) && path->inner != NULL;
		hot_count += path->hot ? 1 : 0;
		t->turn.only = path->hot ? path : t->turn.only;
	}
	t->turn.only = hot_count == 1 ? t->turn.only : NULL;
}

static void
run_timers(struct wf_paths *t)
{
	for (struct wf_paths_conn *m = t->conns.first; m != NULL; m = m->next) {
		if (m->deadline_ns <= t->turn.now_ns) {
			wf_paths_conn_expire(m);
		}
	}
	t->turn.changed = true; /* and so when the next one is due */
}

/* Does the extra work of a turn. Returns true if all paths have to be polled. */
static bool
attend(struct wf_paths *t)
{
	t->turn.turns = 0;
	t->turn.now_ns = wf_now_ns(t->transport.env);
	if (t->conns.dead_waiting) {
		wf_paths_conns_reap(t);
	}
	if (t->turn.now_ns >= t->turn.timer_ns) {
		run_timers(t);
	}
	if (t->turn.changed) {
		find_hot(t);
	}
	t->turn.attention = t->turn.timer_ns != WF_NEVER;
	if (t->turn.now_ns < t->turn.look_ns) {
		return false;
	}
	t->turn.look_ns = t->turn.now_ns + WF_PATHS_LOOK_NS;
	return true;
}

/* Reports DOWN of connections that no inner connection reports. */
static unsigned
report_failed(struct wf_paths *t, struct wf_event *at, unsigned max)
{
	unsigned count = 0;
	for (struct wf_paths_conn *m = t->conns.first; m != NULL && count < max; m = m->next) {
		if (m->state == WF_PATHS_FAILED) {
			wf_paths_conn_report_failed(m, &at[count++]);
		}
	}
	return count;
}

/* May be called by any thread. */
static void
wake(struct wf_paths *t)
{
	if (t->shares) {
		wf_loop_kick(&t->loop);
	} else {
		t->path[0].inner->ops->wake(t->path[0].inner);
	}
}

/* A caller that armed sleeps after an empty poll. It does not know that this poll consumed an
 * event, or that something is due earlier than arm returned. */
static __attribute__((noinline)) void
wake_if_due(struct wf_paths *t)
{
	if (t->turn.hidden || t->turn.changed || t->conns.failed_count > 0 ||
	    t->conns.dead_waiting || t->turn.passed_by || t->turn.timer_ns < t->turn.armed_ns) {
		wake(t);
	}
	t->turn.hidden = false;
}

static inline void
settle_armed(struct wf_paths *t, unsigned event_count)
{
	if ((t->turn.attention || t->turn.passed_by) && event_count == 0) {
		wake_if_due(t);
	}
	t->turn.armed = false;
	t->turn.passed_by = false;
	t->turn.slept = true;
}

/* A path that was asleep is polled in a poll after which the caller may sleep: it reports work that
 * it leaves only if it was armed. */
static void
arm_again(struct wf_paths *t, struct wf_path *path)
{
	(void)path->inner->ops->arm(path->inner, &path->armed_ns);
	if (t->turn.armed && path->armed_ns < t->turn.armed_ns) {
		t->turn.hidden = true; /* the caller got a later deadline */
		t->turn.attention = true;
	}
}

/* Polls a path. A quiet one is put to sleep as soon as it has nothing, whatever the caller does. */
static enum weft_status
poll_path(struct wf_paths *t, struct wf_path *path, struct wf_event *events, unsigned max,
	  unsigned *count)
{
	unsigned got = 0;
	bool quiet = !path->hot && path->loop != NULL;
	if (t->turn.armed ? path->asleep : quiet) {
		arm_again(t, path);
	}
	if (path->loop != NULL) {
		path->loop->member.noticed = false;
	}
	enum weft_status st =
		path->inner->ops->poll(path->inner, events + *count, max - *count, &got);
	/* A timer has run: there may be another one now. */
	bool ran = path->armed_ns <= t->turn.now_ns;
	path->asleep = (t->turn.armed || quiet) && got == 0 && !ran;
	*count += translate(t, path, events + *count, got);
	return st;
}

/* Whether the path has to be polled; `all` includes those that no look notices. */
static bool
is_wanted(const struct wf_paths *t, const struct wf_path *path, bool all)
{
	if (path->inner == NULL || path->hot) {
		return path->inner != NULL;
	}
	if (path->loop == NULL) {
		return all || (t->turn.armed && !path->asleep);
	}
	return !path->asleep || path->loop->member.noticed || path->armed_ns <= t->turn.now_ns;
}

static enum weft_status
poll_each(struct wf_paths *t, bool all, struct wf_event *events, unsigned max, unsigned *count)
{
	unsigned idx = t->turn.first;
	enum weft_status st = WEFT_OK;
	t->turn.first = 0;
	for (unsigned i = 0; i < t->path_count && st == WEFT_OK; i++) {
		struct wf_path *path = &t->path[idx];
		if (is_wanted(t, path, all)) {
			if (*count == max) {
				t->turn.first = idx;
				wf_paths_attend(t);
				t->turn.look_ns = all ? 0 : t->turn.look_ns;
				return WEFT_OK;
			}
			st = poll_path(t, path, events, max, count);
		}
		idx = idx + 1 == t->path_count ? 0 : idx + 1;
	}
	return st;
}

static bool
is_any_noticed(const struct wf_paths *t)
{
	bool any = false;
	for (unsigned i = 0; i < t->path_count; i++) {
		any |= t->path[i].loop != NULL && t->path[i].loop->member.noticed;
	}
	return any;
}

/* If only `only` has to be polled, because the others sleep and would be noticed, calls go directly
 * to it from now on. */
static void
try_to_rest(struct wf_paths *t)
{
	bool rests = !t->turn.attention && t->turn.only != NULL;
	uint64_t soonest_ns = WF_NEVER;
	for (unsigned i = 0; i < t->path_count && rests; i++) {
		const struct wf_path *path = &t->path[i];
		if (path->inner != NULL && path != t->turn.only) {
			rests = path->asleep && path->loop != NULL && !path->loop->member.noticed;
			soonest_ns = path->armed_ns < soonest_ns ? path->armed_ns : soonest_ns;
		}
	}
	if (rests) {
		t->transport.active = t->turn.only->inner;
		t->transport.rest_ns = soonest_ns;
		t->transport.passes_left = WF_PASSED_MAX;
		t->turn.only->asleep = false; /* unknown from now on */
	}
}

/* The look of a path may have noticed another one whose turn had passed. */
static void
poll_soon_if_noticed(struct wf_paths *t)
{
	if (is_any_noticed(t)) {
		t->turn.hidden = true;
		wf_paths_attend(t);
	}
}

enum weft_status
wf_paths_poll(struct wf_transport *transport, struct wf_event *events, unsigned max,
	      unsigned *event_count)
{
	struct wf_paths *t = wf_paths_of(transport);
	if (t->turn.slept) { /* the deadline of a quiet path may have ended that sleep */
		t->turn.now_ns = wf_now_ns(transport->env);
	}
	bool all = (t->turn.attention || ++t->turn.turns >= WF_PATHS_LOOK_TURNS) && attend(t);
	t->turn.hidden = false;
	unsigned count = t->conns.failed_count > 0 ? report_failed(t, events, max) : 0;
	enum weft_status st = poll_each(t, all, events, max, &count);
	if (t->turn.slept && !t->turn.armed && !all && count == 0 && st == WEFT_OK) {
		if (t->shares) { /* something else may have woken the caller */
			(void)wf_loop_collect(&t->loop);
		}
		st = poll_each(t, true, events, max, &count);
	}
	t->turn.slept = false;
	*event_count = count;
	if (t->turn.armed || t->turn.passed_by) {
		poll_soon_if_noticed(t);
		settle_armed(t, count);
	}
	try_to_rest(t);
	return st;
}

/* At rest: the events of `only` include UP or DOWN, or its look noticed another path, or a deadline
 * may have passed. */
unsigned
wf_paths_sift(struct wf_transport *transport, struct wf_event *events, unsigned count)
{
	struct wf_paths *t = wf_paths_of(transport);
	transport->passes_left = WF_PASSED_MAX;
	if (transport->rest_ns != WF_NEVER && wf_now_ns(transport->env) >= transport->rest_ns) {
		t->turn.hidden = true;
		wf_paths_attend(t);
	}
	unsigned kept = count;
	if (t->turn.only->inner->told) {
		kept = translate(t, t->turn.only, events, count);
		poll_soon_if_noticed(t);
	}
	if (kept == 0 && t->turn.attention) {
		wake_if_due(t); /* the caller may be sleeping on this */
	}
	return kept;
}

bool
wf_paths_arm(struct wf_transport *transport, uint64_t *deadline_ns)
{
	struct wf_paths *t = wf_paths_of(transport);
	t->turn.armed = true;
	uint64_t soonest_ns = t->conns.failed_count > 0 ? 0 : t->turn.timer_ns;
	for (unsigned i = 0; i < t->path_count; i++) {
		struct wf_path *path = &t->path[i];
		if (path->inner != NULL && !path->asleep) {
			(void)path->inner->ops->arm(path->inner, &path->armed_ns);
		}
		soonest_ns = path->armed_ns < soonest_ns ? path->armed_ns : soonest_ns;
	}
	t->turn.armed_ns = soonest_ns;
	*deadline_ns = soonest_ns;
	return false; /* a connection of a sleeping path may have been posted to since */
}

void
wf_paths_wake(struct wf_transport *transport)
{
	wake(wf_paths_of(transport));
}
