/* SPDX-License-Identifier: Apache-2.0 */
/* paths_conn: the states of a connection, and its cleanup. The other files decide when one state
 * follows another.
 *
 *   BOOTING - UP                             connecting end, the bootstrap carries
 *   BOOTING - UPGRADING - UP                 connecting end, another path carries
 *             UPGRADING - JUDGING - BOOTING  that path cannot be had
 *             OFFERED - ASKED - UP           accepting end; without offer: ASKED - UP
 *   UP - DYING - GONE; any - DYING - GONE; any - FAILED - GONE
 *
 * DOWN is delivered together with that of the inner connection that carries, or would have: memory
 * that it lent is valid for exactly as long. The bootstrap of an upgraded connection was never
 * granted anything; it may end later. Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
free_memory(struct wf_paths *t, struct wf_paths_conn *m)
{
	wf_paths_proof_close(t, m->proof);
	wf_free(t->transport.env, m, sizeof(*m));
}

struct wf_paths_conn *
wf_paths_conn_create(struct wf_paths *t, bool incoming)
{
	struct wf_paths_conn *m = wf_zalloc(t->transport.env, sizeof(*m));
	if (m == NULL) {
		return NULL;
	}
	if (wf_paths_proof_open(t, &m->proof) != WEFT_OK) {
		free_memory(t, m);
		return NULL;
	}
	if (incoming) {
		wf_places_come(&t->conns.places, &m->place, m);
	} else if (!wf_places_claim(&t->conns.places, &m->place)) {
		free_memory(t, m);
		return NULL;
	}
	wf_conn_init(&m->conn, &t->transport);
	m->t = t;
	m->incoming = incoming;
	m->state = incoming ? WF_PATHS_ASKED : WF_PATHS_BOOTING;
	m->deadline_ns = WF_NEVER;
	m->next = t->conns.first;
	m->prev_next = &t->conns.first;
	if (t->conns.first != NULL) {
		t->conns.first->prev_next = &m->next;
	}
	t->conns.first = m;
	wf_paths_changed(t);
	return m;
}

void
wf_paths_conn_free(struct wf_paths_conn *m)
{
	struct wf_paths *t = m->t;
	*m->prev_next = m->next;
	if (m->next != NULL) {
		m->next->prev_next = m->prev_next;
	}
	free_memory(t, m);
}

void
wf_paths_conn_state(struct wf_paths_conn *m, enum wf_paths_state state)
{
	struct wf_paths *t = m->t;
	t->conns.failed_count += state == WF_PATHS_FAILED && m->state != WF_PATHS_FAILED;
	t->conns.failed_count -= state != WF_PATHS_FAILED && m->state == WF_PATHS_FAILED;
	m->state = state;
	wf_paths_changed(t);
}

void
wf_paths_conn_gone(struct wf_paths_conn *m)
{
	WF_ASSERT(m->state != WF_PATHS_GONE);
	wf_paths_conn_state(m, WF_PATHS_GONE);
	wf_places_leave(&m->t->conns.places, &m->place);
	m->t->conns.dead_waiting = true;
	m->carry = NULL;
	wf_conn_init(&m->conn, &m->t->transport);
}

void
wf_paths_conns_reap(struct wf_paths *t)
{
	struct wf_paths_conn *next = NULL;
	t->conns.dead_waiting = false;
	for (struct wf_paths_conn *m = t->conns.first; m != NULL; m = next) {
		next = m->next;
		if (m->state == WF_PATHS_GONE && m->boot == NULL && m->fast == NULL) {
			wf_paths_conn_free(m);
		}
	}
}

void
wf_paths_conn_deadline(struct wf_paths_conn *m, uint64_t deadline_ns)
{
	m->deadline_ns = deadline_ns;
	wf_paths_timer_before(m->t, deadline_ns);
}

void
wf_paths_abandon(struct wf_conn *inner, enum wf_disconnect how)
{
	if (inner != NULL) {
		inner->user = NULL;
		wf_transport_disconnect(inner, how);
	}
}

void
wf_paths_conn_cause(struct wf_paths_conn *m, enum weft_status status, const char *format, ...)
{
	if (m->end.cause != WEFT_OK) {
		return;
	}
	char text[WF_WHY_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	m->end.cause = status;
	if (m->attempt.peer[0] == '\0' ||
	    strncmp(text, m->attempt.peer, strlen(m->attempt.peer)) == 0) {
		(void)snprintf(m->end.why, sizeof(m->end.why), "%.*s", WF_WHY_BYTES - 1, text);
	} else {
		(void)snprintf(m->end.why, sizeof(m->end.why), "%.80s: %.170s", m->attempt.peer,
			       text);
	}
}

void
wf_paths_conn_excuse(struct wf_paths_conn *m)
{
	m->end.cause = WEFT_OK;
}

void
wf_paths_conn_note(struct wf_paths_conn *m, const char *why)
{
	m->end.cause = WEFT_OK;
	(void)snprintf(m->end.why, sizeof(m->end.why), "%.*s", WF_WHY_BYTES - 1, why);
}

void
wf_paths_conn_kill(struct wf_paths_conn *m)
{
	WF_ASSERT(m->end.cause != WEFT_OK || m->end.disconnected);
	m->deadline_ns = WF_NEVER;
	if (m->fast == NULL && m->boot == NULL) {
		wf_paths_conn_state(m, WF_PATHS_FAILED);
		return;
	}
	wf_paths_conn_state(m, WF_PATHS_DYING);
	if (m->fast != NULL) {
		wf_transport_disconnect(m->fast, WF_DISCONNECT_NOW);
	} else {
		wf_transport_disconnect(m->boot, WF_DISCONNECT_NOW);
	}
}

void
wf_paths_conn_up(struct wf_paths_conn *m, struct wf_conn *carry, struct wf_path *path)
{
	wf_paths_conn_state(m, WF_PATHS_UP);
	m->carry = carry;
	m->conn.ops = carry->ops;
	m->conn.carrier = carry;
	carry->shown = &m->conn;
	m->path = path;
	wf_paths_proof_clear(m->proof); /* nothing is sealed any more */
	m->was_up = true;
	m->up_ns = wf_now_ns(m->t->transport.env);
	if (m->boot != NULL) { /* otherwise it lingers */
		m->deadline_ns = WF_NEVER;
	}
	path->conns_up++;
	m->t->info.conns_up++;
}

/* Only the bootstrap of a connection is left, whose DOWN is delivered. If the path broke, the
 * bootstrap stays for a while: if it ends by itself, the path was not to blame. The accepting end
 * keeps it for the other end's judgement. A refused connection does not linger: its place is
 * needed. */
static void
settle_boot(struct wf_paths_conn *m, bool in_order)
{
	if (m->boot == NULL) {
		return;
	}
	if (m->end.broke) {
		uint64_t wait_ns = WF_PATHS_JUDGE_NS * (m->incoming ? 2 : 1);
		wf_paths_conn_deadline(m, wf_now_ns(m->t->transport.env) + wait_ns);
		return;
	}
	bool drains = in_order && m->was_up;
	wf_paths_abandon(m->boot, drains ? WF_DISCONNECT_DRAIN : WF_DISCONNECT_NOW);
	m->boot = NULL;
}

static void
set_down(struct wf_paths_conn *m, struct wf_event *event)
{
	event->conn = &m->conn;
	if (m->end.disconnected) {
		event->down.status = WEFT_CLOSED;
	} else if (m->end.cause != WEFT_OK) {
		event->down.status = m->end.cause;
		event->down.why = m->end.why;
		event->down.blob = NULL;
		event->down.blob_bytes = 0;
	}
	if (m->was_up) {
		m->t->info.conns_down++;
	}
	wf_paths_conn_gone(m);
	settle_boot(m, event->down.status == WEFT_CLOSED);
}

void
wf_paths_conn_report(struct wf_paths_conn *m, struct wf_event *event)
{
	/* The inner connection's text names the peer by the address of the path. */
	if (m->end.cause == WEFT_OK && m->attempt.peer[0] != '\0' &&
	    event->down.status != WEFT_REFUSED) {
		if (strncmp(event->down.why, m->attempt.peer, strlen(m->attempt.peer)) != 0) {
			wf_paths_conn_cause(m, event->down.status, "%s%s%s",
					    m->path == NULL ? "" : m->path->kind->name,
					    m->path == NULL ? "" : ": ", event->down.why);
		}
	}
	set_down(m, event);
}

void
wf_paths_conn_report_failed(struct wf_paths_conn *m, struct wf_event *event)
{
	WF_ASSERT(m->state == WF_PATHS_FAILED);
	memset(event, 0, sizeof(*event));
	event->kind = WF_EVENT_DOWN;
	event->down.why = m->end.why;
	set_down(m, event);
}
