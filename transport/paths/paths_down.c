/* SPDX-License-Identifier: Apache-2.0 */
/* paths_down: what happens to a connection when an inner connection is DOWN, a deadline passes, or
 * the user disconnects. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>

void
wf_paths_conn_expire(struct wf_paths_conn *m)
{
	const struct wf_transport_opts *opts = &m->t->opts;
	m->deadline_ns = WF_NEVER;
	switch (m->state) {
	case WF_PATHS_BOOTING:
	case WF_PATHS_UPGRADING:
		wf_paths_conn_cause(m, WEFT_TIMEOUT, "not answered within %llu ms%s%s",
				    (unsigned long long)(opts->connect_timeout_ns / WF_NS_PER_MS),
				    m->fast == NULL ? "" : " over ",
				    m->fast == NULL ? "" : m->path->kind->name);
		if (m->fast != NULL) {
			wf_paths_hung(m, m->end.why);
		}
		wf_paths_conn_kill(m);
		break;
	case WF_PATHS_JUDGING:
		wf_paths_connect_again(m);
		break;
	case WF_PATHS_OFFERED:
		wf_paths_conn_gone(m);
		wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
		m->boot = NULL;
		break;
	case WF_PATHS_UP: /* the bootstrap has gone, and data in flight has had time to arrive */
		wf_paths_conn_kill(m);
		break;
	case WF_PATHS_GONE:
		wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
		m->boot = NULL;
		m->t->conns.dead_waiting = true;
		wf_paths_attend(m->t);
		break;
	case WF_PATHS_ASKED:
	case WF_PATHS_DYING:
	case WF_PATHS_FAILED:
		break;
	}
}

/* The inner connection that carried is DOWN. */
static void
carry_down(struct wf_paths_conn *m, struct wf_event *event)
{
	enum weft_status status = event->down.status;
	bool by_path = m->state == WF_PATHS_UP && m->boot != NULL && m->boot != m->carry &&
		       status != WEFT_CLOSED;
	if (by_path) {
		m->end.broke = true;
		m->path->conns_broken++;
		if (!m->incoming) {
			wf_paths_broke(m, event->down.why);
		}
	}
	/* What this end of the path found out itself takes precedence over how the bootstrap ended;
	 * a disorderly end of the bootstrap takes precedence over how the peer then ended the path.
	 */
	if (m->end.cause == WEFT_CLOSED || (status != WEFT_LOST && status != WEFT_CLOSED)) {
		wf_paths_conn_excuse(m);
	}
}

/* The bootstrap of an upgraded connection is DOWN, so the host, the process or the connection has
 * ended. What was sent before is delivered first, and the path reports its own end when that is
 * done. */
static void
boot_down_in_up(struct wf_paths_conn *m, const struct wf_event *event)
{
	wf_paths_conn_cause(m, event->down.status, "%s", event->down.why);
	if (event->down.status == WEFT_CLOSED || event->down.status == WEFT_LOST) {
		wf_paths_conn_deadline(m, wf_now_ns(m->t->transport.env) + WF_PATHS_LINGER_NS);
		wf_paths_changed(m->t);
	} else {
		wf_paths_conn_kill(m);
	}
}

/* The bootstrap is DOWN, and there is, will be or was another inner connection. */
static bool
boot_down(struct wf_paths_conn *m, struct wf_event *event)
{
	struct wf_paths *t = m->t;
	enum weft_status status = event->down.status;
	uint64_t linger_ns = wf_now_ns(t->transport.env) + WF_PATHS_LINGER_NS;
	switch (m->state) {
	case WF_PATHS_UPGRADING: /* an answer may be in flight over the path */
		wf_paths_conn_cause(m, status == WEFT_TIMEOUT ? status : WEFT_UNAVAILABLE, "%s",
				    event->down.why);
		wf_paths_conn_deadline(m, linger_ns < m->attempt.end_ns ? linger_ns
									: m->attempt.end_ns);
		return false;
	case WF_PATHS_JUDGING:
		wf_paths_conn_excuse(m);
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "%s", event->down.why);
		wf_paths_conn_report(m, event);
		return true;
	case WF_PATHS_OFFERED:
		wf_paths_conn_gone(m);
		return false;
	case WF_PATHS_ASKED:
		wf_paths_conn_cause(m, status, "%s", event->down.why);
		wf_paths_conn_kill(m);
		return false;
	case WF_PATHS_UP:
		boot_down_in_up(m, event);
		return false;
	case WF_PATHS_GONE:
		wf_paths_forgive(m);
		if (m->end.stranger) {
			t->info.strangers_refused++;
			(void)snprintf(t->info.last_stranger, sizeof(t->info.last_stranger),
				       "%.100s: %.150s", event->down.why, m->end.why);
		}
		t->conns.dead_waiting = true;
		wf_paths_attend(t);
		return false;
	case WF_PATHS_BOOTING:
	case WF_PATHS_DYING:
	case WF_PATHS_FAILED:
		break;
	}
	return false;
}

bool
wf_paths_conn_inner_down(struct wf_paths_conn *m, struct wf_event *event)
{
	bool is_fast = event->conn == m->fast;
	WF_ASSERT(is_fast || event->conn == m->boot);
	bool alone = is_fast || m->fast == NULL;
	if (is_fast) {
		m->fast = NULL;
	} else {
		m->boot = NULL;
	}
	bool waits = m->state == WF_PATHS_JUDGING || m->state == WF_PATHS_OFFERED ||
		     m->state == WF_PATHS_GONE;
	if (!alone || waits) {
		return boot_down(m, event);
	}
	if (m->state == WF_PATHS_BOOTING) {
		return wf_paths_connect_refused(m, event);
	}
	if (m->state == WF_PATHS_UPGRADING) {
		return wf_paths_connect_path_down(m, event);
	}
	if (m->state == WF_PATHS_UP) {
		carry_down(m, event);
	}
	wf_paths_conn_report(m, event);
	return true;
}

void
wf_paths_disconnect(struct wf_conn *conn, enum wf_disconnect how)
{
	struct wf_paths_conn *m = wf_paths_conn_of(conn);
	bool was_up = m->state == WF_PATHS_UP;
	if (m->state == WF_PATHS_GONE) {
		return;
	}
	if (how == WF_DISCONNECT_DRAIN && m->end.disconnected) {
		return;
	}
	m->end.disconnected = true;
	if (m->state == WF_PATHS_FAILED) {
		return;
	}
	if (was_up && how == WF_DISCONNECT_DRAIN) {
		m->deadline_ns = WF_NEVER;
		wf_paths_conn_state(m, WF_PATHS_DYING);
		wf_transport_disconnect(m->carry, WF_DISCONNECT_DRAIN);
		return;
	}
	wf_paths_conn_kill(m);
}
