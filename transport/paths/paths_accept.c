/* SPDX-License-Identifier: Apache-2.0 */
/* paths_accept: the accepting end, from the hello on the bootstrap to UP: the choice of a faster
 * path, the ticket with which the peer connects over it, and the answer. Thread: the transport's
 * owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>
#include <string.h>

static void
add_offer(const struct wf_path *path, const char *host, bool is_up, struct wf_path_head *out)
{
	if (out->offer_count < WF_PATH_OFFERS_MAX) {
		struct wf_path_offer *offer = &out->offer[out->offer_count++];
		*offer = (struct wf_path_offer){
			.path = (uint8_t)path->kind->path_id,
			.port = is_up ? path->port : 0,
		};
		(void)snprintf(offer->host, sizeof(offer->host), "%s", host);
	}
}

/* Adds all rails, because they are numbered; one that is down is logged once. Returns how many are
 * up. */
static unsigned
add_rails(const struct wf_paths *t, struct wf_path *path, struct wf_path_head *out)
{
	unsigned up = 0;
	for (unsigned i = 0; i < path->at.count; i++) {
		const struct wf_rdma_address *at = &path->at.at[i];
		bool was_down = (path->down & 1u << i) != 0;
		bool is_up = wf_rdma_is_up(at->device, at->port);
		add_offer(path, at->text, is_up, out);
		up += is_up ? 1 : 0;
		if (is_up == was_down) {
			path->down ^= 1u << i;
			wf_log(t->transport.env, WF_LOG_WARN, "%s: rail %s (%s port %u) is %s",
			       path->kind->name, at->text, at->device, at->port,
			       is_up ? "up again" : "down, and left out");
		}
	}
	return up;
}

/* Adds an offer for each address at which the path listens. Returns false if none can be reached.
 */
static bool
add_offers(const struct wf_paths *t, struct wf_path *path, struct wf_path_head *out)
{
	unsigned before = out->offer_count;
	if (!path->kind->rdma) {
		add_offer(path, path->kind->listen == NULL ? "" : path->kind->listen, true, out);
	} else if (add_rails(t, path, out) == 0) {
		out->offer_count = (uint8_t)before;
	}
	return out->offer_count > before;
}

static bool
is_known(const uint8_t id[WF_PATH_ID_BYTES])
{
	static const uint8_t unknown[WF_PATH_ID_BYTES];
	return memcmp(id, unknown, sizeof(unknown)) != 0;
}

/* Chooses what this end offers to the sender of `hello`: fills in offers, or reason and text. */
static void
choose(struct wf_paths *t, const struct wf_path_head *hello, struct wf_path_head *out)
{
	bool both_known = is_known(hello->id) && is_known(t->host_id);
	bool same_host = both_known && memcmp(hello->id, t->host_id, sizeof(hello->id)) == 0;
	out->reason = t->path_count == 1 ? WF_PATH_ONLY : WF_PATH_PEER_LEFT;
	for (unsigned i = 1; i < t->path_count; i++) {
		struct wf_path *path = &t->path[i];
		if ((hello->paths & wf_paths_bit(path)) == 0) {
			continue;
		}
		if (path->kind->one_host && !both_known) {
			out->reason = WF_PATH_MISSING;
			(void)snprintf(out->text, sizeof(out->text),
				       "%s: whether both ends are on one host is unknown, for one "
				       "has no /proc",
				       path->kind->name);
		} else if (path->kind->one_host && !same_host) {
			out->reason = WF_PATH_OTHER_HOST;
		} else if (path->port == 0) {
			out->reason = WF_PATH_MISSING;
			(void)snprintf(out->text, sizeof(out->text), "%s: %.110s", path->kind->name,
				       path->missing);
		} else if (!add_offers(t, path, out)) {
			out->reason = WF_PATH_MISSING;
			(void)snprintf(out->text, sizeof(out->text), "%s: its devices are down",
				       path->kind->name);
		}
	}
}

/* Why the bootstrap carries, as this end sees it. */
static void
explain_bootstrap(struct wf_paths_conn *m, const struct wf_path_head *verdict)
{
	const struct wf_paths *t = m->t;
	char *out = m->path_why;
	const size_t bytes = sizeof(m->path_why);
	if (verdict->reason == WF_PATH_ONLY) {
		(void)snprintf(out, bytes, "%s",
			       strcmp(t->asked, "tcp") == 0 ? "--transport=tcp" : "the only one");
	} else if (verdict->reason == WF_PATH_OTHER_HOST) {
		(void)snprintf(out, bytes, "on another host");
	} else if (verdict->reason == WF_PATH_MISSING) {
		(void)snprintf(out, bytes, "%s", verdict->text);
	} else if (m->meeting.left_out[0] != '\0') {
		(void)snprintf(out, bytes, "peer says: %s", m->meeting.left_out);
	} else {
		(void)snprintf(out, bytes, "peer allows %s only", t->path[0].kind->name);
	}
}

/* Refuses a connection that is not shown to the user; it is counted as a stranger when it has gone.
 * Where the reason is the secret, the text is for this end alone. */
static void
turn_away(struct wf_paths_conn *m, struct wf_conn *inner, struct wf_path_head *no)
{
	uint8_t blob[WF_BLOB_ROOM];
	wf_paths_conn_note(m, no->text);
	no->kind = WF_PATH_NO;
	no->flags = wf_paths_seal_flag(m);
	no->offer_count = 0;
	if (no->reason == WF_PATH_SECRET) {
		no->text[0] = '\0';
	}
	m->end.stranger = true;
	m->boot = inner;
	inner->user = m;
	wf_paths_conn_gone(m);
	size_t used = wf_path_encode(no, blob);
	wf_paths_seal(m, WF_PATHS_WORD_VERDICT, blob, used);
	if (wf_transport_answer(inner, false, blob, used) != WEFT_OK) {
		wf_transport_disconnect(inner, WF_DISCONNECT_NOW);
	}
}

/* `m`: whose ticket it was; NULL: it was none. */
static void
turn_away_fast(struct wf_paths *t, const struct wf_paths_conn *m, struct wf_conn *inner,
	       struct wf_path_head *no)
{
	uint8_t blob[WF_BLOB_ROOM];
	no->kind = WF_PATH_NO;
	no->flags = m != NULL ? wf_paths_seal_flag(m) : 0;
	size_t used = wf_path_encode(no, blob);
	if (m != NULL) {
		wf_paths_seal(m, WF_PATHS_WORD_PATH_VERDICT, blob, used);
	}
	t->info.strangers_refused++;
	(void)snprintf(t->info.last_stranger, sizeof(t->info.last_stranger), "%s", no->text);
	inner->user = NULL;
	if (wf_transport_answer(inner, false, blob, used) != WEFT_OK) {
		wf_transport_disconnect(inner, WF_DISCONNECT_NOW);
	}
}

static void
fill_full(const struct wf_paths *t, struct wf_path_head *no)
{
	no->reason = WF_PATH_FULL;
	(void)snprintf(no->text, sizeof(no->text), "no room beside %u connections; try again",
		       t->conns.places.conn_count);
}

/* Drops the connection that has waited longest of those that were offered a path and have not
 * connected over it; one that the user knows only if it knows all of them. Returns false if that is
 * `m`. */
static bool
make_room(struct wf_paths *t, const struct wf_paths_conn *m)
{
	while (t->conns.places.newcomer_count > t->opts.newcomer_max) {
		const struct wf_place *at = t->conns.places.first;
		while (at != NULL && ((struct wf_paths_conn *)at->owner)->meeting.known) {
			at = at->next;
		}
		struct wf_paths_conn *out = at != NULL ? at->owner : t->conns.places.first->owner;
		if (out == m) {
			return false;
		}
		t->info.strangers_refused++;
		(void)snprintf(t->info.last_stranger, sizeof(t->info.last_stranger),
			       "no room: too many peers were offered a path and have not "
			       "connected over it");
		wf_paths_conn_gone(out);
		wf_paths_abandon(out->boot, WF_DISCONNECT_NOW);
		out->boot = NULL;
	}
	return true;
}

/* How long to wait for the ticket. Over an RDMA device the peer may have to register memory first,
 * and tries several rails. */
static uint64_t
patience_ns(const struct wf_paths *t, const struct wf_path_head *verdict)
{
	for (unsigned i = 0; i < verdict->offer_count; i++) {
		if (verdict->offer[i].path == WF_PATH_VERBS) {
			return WF_PATHS_RDMA_HANDSHAKES * t->opts.handshake_timeout_ns;
		}
	}
	return t->opts.handshake_timeout_ns;
}

/* Issues a random ticket; the offers are complete. */
static void
offer_upgrade(struct wf_paths_conn *m, struct wf_path_head *verdict)
{
	struct wf_paths *t = m->t;
	uint8_t blob[WF_BLOB_ROOM];
	for (size_t i = 0; i < sizeof(m->meeting.ticket); i += sizeof(uint64_t)) {
		uint64_t chance = wf_random(t->transport.env);
		memcpy(m->meeting.ticket + i, &chance, sizeof(chance));
	}
	verdict->kind = WF_PATH_UPGRADE;
	verdict->flags = wf_paths_seal_flag(m);
	verdict->reason = 0;
	verdict->text[0] = '\0';
	memcpy(verdict->id, m->meeting.ticket, sizeof(m->meeting.ticket));
	size_t used = wf_path_encode(verdict, blob);
	wf_paths_seal(m, WF_PATHS_WORD_VERDICT, blob, used);
	wf_paths_conn_state(m, WF_PATHS_OFFERED);
	wf_paths_conn_deadline(m, wf_now_ns(t->transport.env) + patience_ns(t, verdict));
	if (wf_transport_answer(m->boot, true, blob, used) != WEFT_OK) {
		wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
		m->boot = NULL;
		wf_paths_conn_gone(m);
	}
}

/* One end requires a path that the other lacks: the text that both log. */
static void
explain_demand(struct wf_paths *t, const struct wf_path_head *hello, struct wf_path_head *no)
{
	const size_t bytes = sizeof(no->text);
	char missing[WF_PATH_TEXT_BYTES];
	memcpy(missing, no->text, sizeof(missing));
	if (!t->must && no->reason != WF_PATH_MISSING) {
		(void)snprintf(
			no->text, bytes, "%s",
			no->reason == WF_PATH_OTHER_HOST
				? "it requires a path within one host, and is on another host"
				: "it requires a path that is excluded here; start both with "
				  "--transport=auto");
	} else if (no->reason == WF_PATH_OTHER_HOST) {
		(void)snprintf(
			no->text, bytes,
			"the listener demands --transport=%s, the connecting end is on another "
			"host; use auto or tcp",
			t->asked);
	} else if (no->reason == WF_PATH_PEER_LEFT && hello->text[0] != '\0') {
		(void)snprintf(no->text, bytes, "the listener demands --transport=%s; %.80s",
			       t->asked, hello->text);
	} else if (no->reason == WF_PATH_PEER_LEFT) {
		(void)snprintf(
			no->text, bytes,
			"the listener demands --transport=%s, the connecting end excludes it; "
			"start both with auto or %s",
			t->asked, t->asked);
	} else {
		(void)snprintf(no->text, bytes, "%s", missing);
	}
}

/* Whether the sender of a hello and this end have the same secret, or both none; otherwise why not.
 */
static bool
is_of_the_job(struct wf_paths_conn *m, const struct wf_path_head *hello,
	      const struct wf_event *event, struct wf_path_head *no)
{
	const size_t bytes = sizeof(no->text);
	bool is_sealed = (hello->flags & WF_PATH_SEALED) != 0;
	if (m->t->guard == NULL && !is_sealed && hello->kind != WF_PATH_KNOCK) {
		return true;
	}
	if (m->t->guard == NULL) {
		no->reason = WF_PATH_NO_SECRET;
		(void)snprintf(no->text, bytes,
			       "it has a secret, and this end was started without --secret_file");
		return false;
	}
	no->reason = WF_PATH_SECRET;
	if (!is_sealed) {
		(void)snprintf(no->text, bytes, "it does not prove that it has the job's secret");
		return false;
	}
	(void)snprintf(no->text, bytes,
		       "it has another secret (compare the files of --secret_file), or its hello "
		       "was altered or sent twice");
	return wf_paths_admits(m, hello, event->up.blob, event->up.blob_bytes);
}

/* Handles a hello on the bootstrap. */
static bool
accept_boot(struct wf_paths *t, struct wf_paths_conn *m, struct wf_event *event)
{
	struct wf_path_head hello;
	struct wf_path_head verdict = {0};
	size_t used = 0;
	enum weft_status st = wf_path_decode(event->up.blob, event->up.blob_bytes, &hello, &used);
	if (st == WEFT_OK && hello.kind != WF_PATH_HELLO && hello.kind != WF_PATH_KNOCK) {
		st = wf_fail(WEFT_PROTOCOL, "path head: a hello of kind %u", hello.kind);
	}
	if (st != WEFT_OK) {
		(void)snprintf(verdict.text, sizeof(verdict.text), "%.*s", WF_PATH_TEXT_BYTES - 1,
			       weft_last_error());
		verdict.reason = t->guard != NULL ? WF_PATH_SECRET : 0;
		turn_away(m, event->conn, &verdict);
		return false;
	}
	if (!is_of_the_job(m, &hello, event, &verdict)) {
		turn_away(m, event->conn, &verdict);
		return false;
	}
	verdict = (struct wf_path_head){0};
	choose(t, &hello, &verdict);
	if (verdict.offer_count == 0 && (t->must || (hello.flags & WF_PATH_MUST) != 0)) {
		explain_demand(t, &hello, &verdict);
		turn_away(m, event->conn, &verdict);
		return false;
	}
	m->boot = event->conn;
	m->boot->user = m;
	m->meeting.hello_bytes = event->up.blob_bytes - used;
	memcpy(m->meeting.left_out, hello.text, sizeof(m->meeting.left_out));
	const uint8_t *users = event->up.blob + used;
	m->meeting.known = t->opts.knows != NULL &&
			   t->opts.knows(t->opts.knows_arg, users, m->meeting.hello_bytes);
	bool upgrades = verdict.offer_count > 0;
	bool full = t->conns.places.conn_count >= t->opts.conn_max;
	if (full || (upgrades ? !make_room(t, m) : !wf_places_claim(&t->conns.places, &m->place))) {
		fill_full(t, &verdict);
		turn_away(m, event->conn, &verdict);
		return false;
	}
	if (upgrades) {
		memcpy(m->meeting.hello, users, m->meeting.hello_bytes);
		offer_upgrade(m, &verdict);
		return false;
	}
	explain_bootstrap(m, &verdict);
	m->meeting.reason = verdict.reason;
	event->conn = &m->conn;
	event->up.blob += used;
	event->up.blob_bytes -= used;
	return true;
}

/* Finds the connection that was offered a path with that ticket, and is its sender's. */
static struct wf_paths_conn *
find_offered(struct wf_paths *t, const struct wf_path_head *ticket, const struct wf_event *event)
{
	for (struct wf_paths_conn *m = t->conns.first; m != NULL; m = m->next) {
		if (m->state == WF_PATHS_OFFERED &&
		    memcmp(m->meeting.ticket, ticket->id, sizeof(m->meeting.ticket)) == 0 &&
		    wf_paths_is_sealed(m, WF_PATHS_WORD_TICKET, ticket, event->up.blob,
				       event->up.blob_bytes)) {
			return m;
		}
	}
	return NULL;
}

/* Handles a ticket on one of the paths: it must have been issued, and is valid once. */
static bool
accept_fast(struct wf_paths *t, struct wf_path *path, struct wf_event *event)
{
	struct wf_path_head ticket;
	struct wf_path_head no = {0};
	size_t used = 0;
	struct wf_paths_conn *m = NULL;
	enum weft_status st = wf_path_decode(event->up.blob, event->up.blob_bytes, &ticket, &used);
	if (st == WEFT_OK &&
	    (ticket.kind != WF_PATH_TICKET || ticket.path != path->kind->path_id)) {
		st = wf_fail(WEFT_PROTOCOL, "path head: kind %u for path %u on %s", ticket.kind,
			     ticket.path, path->kind->name);
	}
	if (st == WEFT_OK) {
		m = find_offered(t, &ticket, event);
	}
	if (m == NULL || path->lost) {
		bool tells = st != WEFT_OK && t->guard == NULL;
		const char *why = m != NULL ? path->missing
				  : tells   ? weft_last_error()
					    : "its ticket is unknown";
		(void)snprintf(no.text, sizeof(no.text), "%.*s", WF_PATH_TEXT_BYTES - 1, why);
		turn_away_fast(t, m, event->conn, &no);
		return false;
	}
	if (!wf_places_claim(&t->conns.places, &m->place)) {
		fill_full(t, &no);
		turn_away_fast(t, m, event->conn, &no);
		wf_paths_conn_gone(m);
		wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
		m->boot = NULL;
		return false;
	}
	m->fast = event->conn;
	m->fast->user = m;
	m->path = path;
	memset(m->meeting.ticket, 0, sizeof(m->meeting.ticket));
	(void)snprintf(m->path_why, sizeof(m->path_why), "%s", path->kind->why);
	m->deadline_ns = WF_NEVER;
	wf_paths_conn_state(m, WF_PATHS_ASKED);
	event->conn = &m->conn;
	event->up.blob = m->meeting.hello;
	event->up.blob_bytes = m->meeting.hello_bytes;
	return true;
}

bool
wf_paths_accept(struct wf_paths *t, struct wf_path *path, struct wf_event *event)
{
	if (path != &t->path[0]) {
		return accept_fast(t, path, event);
	}
	if (wf_paths_challenge(t, event)) {
		return false;
	}
	struct wf_paths_conn *m = wf_paths_conn_create(t, true);
	if (m == NULL) {
		event->conn->user = &t->conns.no_room;
		wf_transport_disconnect(event->conn, WF_DISCONNECT_NOW);
		return false;
	}
	return accept_boot(t, m, event);
}

enum weft_status
wf_paths_answer(struct wf_conn *conn, bool accept, const void *verdict, size_t verdict_bytes)
{
	struct wf_paths_conn *m = wf_paths_conn_of(conn);
	if (m->state != WF_PATHS_ASKED) {
		bool over = m->state >= WF_PATHS_DYING;
		return wf_fail(over ? WEFT_CLOSED : WEFT_INVALID,
			       over ? "answer: the connection has gone"
				    : "answer: the connection does not wait for one");
	}
	uint8_t blob[WF_BLOB_ROOM];
	struct wf_path_head head = {.kind = WF_PATH_HERE, .flags = wf_paths_seal_flag(m)};
	struct wf_conn *lead = m->fast != NULL ? m->fast : m->boot;
	if (m->fast != NULL) {
		head.path = (uint8_t)m->path->kind->path_id;
	} else {
		head.reason = m->meeting.reason;
		(void)snprintf(head.text, sizeof(head.text), "%.*s", WF_PATH_TEXT_BYTES - 1,
			       m->meeting.reason == WF_PATH_MISSING ? m->path_why : "");
	}
	size_t used = wf_path_encode(&head, blob);
	if (verdict_bytes > 0) {
		memcpy(blob + used, verdict, verdict_bytes);
	}
	wf_paths_seal(m, m->fast != NULL ? WF_PATHS_WORD_PATH_VERDICT : WF_PATHS_WORD_VERDICT, blob,
		      used + verdict_bytes);
	enum weft_status st = wf_transport_answer(lead, accept, blob, used + verdict_bytes);
	if (st != WEFT_OK) {
		return st;
	}
	if (accept) {
		wf_paths_conn_up(m, lead, m->fast != NULL ? m->path : &m->t->path[0]);
		return WEFT_OK;
	}
	wf_places_refuse(&m->t->conns.places, &m->place);
	wf_places_end(&m->t->conns.places, &m->place);
	if (m->fast != NULL) { /* the peer may delay its end on the path */
		wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
		m->boot = NULL;
	}
	m->end.disconnected = true;
	wf_paths_conn_state(m, WF_PATHS_DYING);
	return WEFT_OK;
}
