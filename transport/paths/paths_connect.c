/* SPDX-License-Identifier: Apache-2.0 */
/* paths_connect: the connecting end, from connect to UP: over the bootstrap, then over the path
 * that is offered, and over the bootstrap again without that path if it cannot be established.
 * Thread: the transport's owner. */
#include "transport/paths/paths_internal.h"

#include <stdio.h>
#include <string.h>

#define UNPROVED "its answer is not sealed with the secret of this end"

/* Writes this end's hello. Returns its bytes. */
static size_t
write_hello(const struct wf_paths_conn *m, uint8_t blob[WF_BLOB_ROOM])
{
	const struct wf_paths *t = m->t;
	struct wf_path_head head = {
		.kind = WF_PATH_HELLO,
		.flags = (uint8_t)((t->must ? WF_PATH_MUST : 0) | wf_paths_seal_flag(m)),
		.paths = m->attempt.paths,
	};
	memcpy(head.id, t->host_id, sizeof(head.id));
	wf_paths_copy_nonce(m, head.nonce);
	(void)snprintf(head.text, sizeof(head.text), "%s", m->meeting.left_out);
	size_t used = wf_path_encode(&head, blob);
	memcpy(blob + used, m->meeting.hello, m->meeting.hello_bytes);
	used += m->meeting.hello_bytes;
	wf_paths_seal(m, WF_PATHS_WORD_HELLO, blob, used);
	return used;
}

/* Connects over the bootstrap with the remaining paths; where the job has a secret, to be
 * challenged first. */
static enum weft_status
begin(struct wf_paths_conn *m)
{
	struct wf_paths *t = m->t;
	uint8_t blob[WF_BLOB_ROOM];
	size_t bytes = t->guard != NULL ? wf_paths_knock(m, blob) : write_hello(m, blob);
	wf_paths_conn_state(m, WF_PATHS_BOOTING);
	wf_paths_conn_deadline(m, m->attempt.end_ns);
	m->path = NULL;
	return wf_transport_connect(t->path[0].inner, &m->attempt.to, blob, bytes, m, &m->boot);
}

/* BOOTING: the bootstrap was refused with a challenge. Connects again, with the proof. */
static void
prove(struct wf_paths_conn *m)
{
	uint8_t blob[WF_BLOB_ROOM];
	size_t bytes = write_hello(m, blob);
	wf_paths_changed(m->t);
	if (wf_transport_connect(m->t->path[0].inner, &m->attempt.to, blob, bytes, m, &m->boot) !=
	    WEFT_OK) {
		m->boot = NULL;
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "%s", weft_last_error());
		wf_paths_conn_kill(m);
	}
}

enum weft_status
wf_paths_connect(struct wf_transport *transport, const struct wf_host *to, const void *hello,
		 size_t hello_bytes, void *user, struct wf_conn **out)
{
	struct wf_paths *t = wf_paths_of(transport);
	if (t->conns.places.conn_count >= t->opts.conn_max) {
		return wf_fail(WEFT_NOMEM, "connect to %s: this end has its %u connections",
			       to->name, t->opts.conn_max);
	}
	struct wf_paths_conn *m = wf_paths_conn_create(t, false);
	if (m == NULL) {
		return wf_fail(WEFT_NOMEM, "connect to %s: %zu bytes", to->name, sizeof(*m));
	}
	m->conn.user = user;
	m->attempt.to = *to;
	wf_host_format(to, m->attempt.peer, sizeof(m->attempt.peer));
	if (hello_bytes > 0) {
		memcpy(m->meeting.hello, hello, hello_bytes);
	}
	m->meeting.hello_bytes = hello_bytes;
	m->attempt.end_ns = wf_now_ns(transport->env) + t->opts.connect_timeout_ns;
	m->attempt.paths = wf_paths_towards(t, to, m->meeting.left_out);
	enum weft_status st = begin(m);
	if (st != WEFT_OK) {
		m->boot = NULL;
		wf_paths_conn_gone(m);
		return st;
	}
	*out = &m->conn;
	return WEFT_OK;
}

/* The path cannot be established: adds the recorded reason to those of paths that are left out. */
static void
leave_out(struct wf_paths_conn *m)
{
	char text[WF_PATH_TEXT_BYTES];
	m->attempt.paths &= ~wf_paths_bit(m->path);
	(void)snprintf(text, sizeof(text), "%s: %.110s", m->path->kind->name, m->end.why);
	wf_paths_left_out(m->meeting.left_out, text);
	/* A remedy, such as that for too little locked memory, is long. */
	if (m->path->kind->rdma) {
		wf_log(m->t->transport.env, WF_LOG_WARN, "%s is left out: %s", m->path->kind->name,
		       m->end.why);
	}
	wf_paths_conn_excuse(m);
}

void
wf_paths_connect_again(struct wf_paths_conn *m)
{
	WF_ASSERT(m->state == WF_PATHS_JUDGING && m->fast == NULL);
	if (m->t->must) {
		char text[WF_WHY_BYTES];
		(void)snprintf(text, sizeof(text), "%.100s: %.150s", m->path->kind->name,
			       m->end.why);
		wf_paths_conn_excuse(m);
		wf_paths_conn_cause(m, WEFT_REFUSED, "--transport=%s, but %s", m->t->asked, text);
		wf_paths_conn_state(m, WF_PATHS_FAILED);
		return;
	}
	bool may_outlast = m->path->kind->rdma;
	leave_out(m);
	wf_paths_abandon(m->boot, WF_DISCONNECT_NOW);
	m->boot = NULL;
	/* Registering memory for devices does not count there, and is not the bootstrap's fault.
	 * This happens once in an attempt, because the path is then left out. */
	uint64_t now_ns = wf_now_ns(m->t->transport.env);
	if (may_outlast && now_ns >= m->attempt.end_ns) {
		m->attempt.end_ns = now_ns + m->t->opts.connect_timeout_ns;
	}
	if (begin(m) != WEFT_OK) {
		m->boot = NULL;
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "%s", weft_last_error());
		wf_paths_conn_kill(m);
	}
}

/* Why the bootstrap carries, as this end sees it. */
static void
explain_bootstrap(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	const struct wf_paths *t = m->t;
	char *out = m->path_why;
	const size_t bytes = sizeof(m->path_why);
	if (t->path_count == 1 && strcmp(t->asked, "tcp") == 0) {
		(void)snprintf(out, bytes, "--transport=tcp");
	} else if (t->path_count == 1) {
		(void)snprintf(out, bytes, "the only one");
	} else if (m->meeting.left_out[0] != '\0') {
		(void)snprintf(out, bytes, "%s", m->meeting.left_out);
	} else if (head->reason == WF_PATH_ONLY) {
		(void)snprintf(out, bytes, "peer offers %s only", t->path[0].kind->name);
	} else if (head->reason == WF_PATH_OTHER_HOST) {
		(void)snprintf(out, bytes, "on another host");
	} else if (head->text[0] == '\0') { /* this end has paths, and the peer has others */
		(void)snprintf(out, bytes, "the two ends have no other path in common");
	} else {
		(void)snprintf(out, bytes, "peer says: %s", head->text);
	}
}

static void
explain_path(struct wf_paths_conn *m)
{
	if (m->rails.count > 1 && m->path->kind->rdma) {
		(void)snprintf(m->path_why, sizeof(m->path_why), "%s, rail %s", m->path->kind->why,
			       m->rails.offer[m->rails.idx].host);
	} else {
		(void)snprintf(m->path_why, sizeof(m->path_why), "%s", m->path->kind->why);
	}
}

/* Delivers UP with the user's verdict, which follows the path head. */
static bool
up(struct wf_paths_conn *m, struct wf_event *event, size_t used)
{
	bool over_fast = event->conn == m->fast;
	wf_paths_conn_up(m, event->conn, over_fast ? m->path : &m->t->path[0]);
	if (over_fast) {
		explain_path(m);
	}
	event->conn = &m->conn;
	event->up.blob += used;
	event->up.blob_bytes -= used;
	return true;
}

static void
upgrade(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	if (!wf_paths_rails_begin(m, head)) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "it offers none of the paths asked for");
		wf_paths_conn_kill(m);
		return;
	}
	wf_paths_conn_state(m, WF_PATHS_UPGRADING);
	if (!wf_paths_rails_next(m)) {
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "its rails broke recently");
		wf_paths_conn_state(m, WF_PATHS_JUDGING);
		wf_paths_connect_again(m);
	}
}

/* Whether a verdict is from a peer with the secret; without one here, from a peer without. */
static bool
is_proved(const struct wf_paths_conn *m, bool on_boot, const struct wf_path_head *head,
	  const uint8_t *blob, size_t bytes)
{
	enum wf_paths_word word = on_boot ? WF_PATHS_WORD_VERDICT : WF_PATHS_WORD_PATH_VERDICT;
	return wf_paths_is_sealed(m, word, head, blob, bytes);
}

bool
wf_paths_connect_up(struct wf_paths_conn *m, struct wf_event *event)
{
	struct wf_path_head head;
	size_t used = 0;
	bool on_boot = event->conn == m->boot;
	bool expected = m->state == (on_boot ? WF_PATHS_BOOTING : WF_PATHS_UPGRADING);
	if (!expected) {
		return false; /* disconnected meanwhile */
	}
	if (wf_path_decode(event->up.blob, event->up.blob_bytes, &head, &used) != WEFT_OK) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "%s", weft_last_error());
		wf_paths_conn_kill(m);
		return false;
	}
	if (!is_proved(m, on_boot, &head, event->up.blob, event->up.blob_bytes)) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "%s", UNPROVED);
		wf_paths_conn_kill(m);
		return false;
	}
	if (on_boot && head.kind == WF_PATH_UPGRADE) {
		upgrade(m, &head);
		return false;
	}
	if (head.kind != WF_PATH_HERE || (on_boot && m->t->must)) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "its verdict is a path head of kind %u",
				    head.kind);
		wf_paths_conn_kill(m);
		return false;
	}
	if (on_boot) {
		explain_bootstrap(m, &head);
	}
	return up(m, event, used);
}

/* One of the two ends requires a path that the other lacks. */
static void
explain_refusal(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	const struct wf_paths *t = m->t;
	if (head->reason == WF_PATH_FULL) {
		wf_paths_conn_cause(m, WEFT_UNAVAILABLE, "%s", head->text);
	} else if (!t->must) {
		wf_paths_conn_cause(m, WEFT_REFUSED, "%s", head->text);
	} else if (head->reason == WF_PATH_ONLY) {
		wf_paths_conn_cause(
			m, WEFT_REFUSED,
			"--transport=%s here, but the peer uses tcp only; start it with "
			"--transport=auto or %s, or this end with auto",
			t->asked, t->asked);
	} else if (head->reason == WF_PATH_OTHER_HOST) {
		wf_paths_conn_cause(m, WEFT_REFUSED,
				    "--transport=%s here, but the peer is on another host; use "
				    "--transport=auto or tcp",
				    t->asked);
	} else {
		wf_paths_conn_cause(m, WEFT_REFUSED, "--transport=%s here, but the peer says: %s",
				    t->asked, head->text);
	}
}

/* A refusal that proves nothing, from a peer with another secret, with none, or with one where this
 * end has none. */
static void
explain_unproved(struct wf_paths_conn *m, const struct wf_path_head *head)
{
	bool here = m->t->guard != NULL;
	if (head->kind != WF_PATH_NO) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "%s", UNPROVED);
	} else if (head->reason == WF_PATH_SECRET && here) {
		wf_paths_conn_cause(m, WEFT_REFUSED,
				    "it has another secret than this end: compare the files of "
				    "--secret_file at both (sha256sum), every byte counts");
	} else if (head->reason == WF_PATH_SECRET) {
		wf_paths_conn_cause(m, WEFT_REFUSED,
				    "it has a secret, and this end has none: give this end "
				    "--secret_file (WEFT_SECRET_FILE) with the same file");
	} else if (head->reason == WF_PATH_NO_SECRET) {
		wf_paths_conn_cause(m, WEFT_REFUSED,
				    "it has no secret, and this end demands one: start it with "
				    "the same --secret_file, or this end without");
	} else {
		wf_paths_conn_cause(m, WEFT_REFUSED,
				    "it does not know secrets, and this end has one; it says: %s",
				    head->text);
	}
}

/* Reads the verdict of a refusal: the path's, or the user's. Returns false if it is neither. */
static bool
read_refusal(struct wf_paths_conn *m, bool on_boot, struct wf_event *event)
{
	struct wf_path_head head;
	size_t used = 0;
	if (wf_path_decode(event->down.blob, event->down.blob_bytes, &head, &used) != WEFT_OK) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "%s", weft_last_error());
		return false;
	}
	bool of_secret = head.kind == WF_PATH_NO && head.reason >= WF_PATH_SECRET;
	if (of_secret || !is_proved(m, on_boot, &head, event->down.blob, event->down.blob_bytes)) {
		explain_unproved(m, &head);
		return false;
	}
	if (head.kind == WF_PATH_HERE) {
		event->down.blob += used;
		event->down.blob_bytes -= used;
		return true;
	}
	if (head.kind != WF_PATH_NO) {
		wf_paths_conn_cause(m, WEFT_PROTOCOL, "its refusal is a path head of kind %u",
				    head.kind);
		return false;
	}
	explain_refusal(m, &head);
	return false;
}

/* Whether it is the user's verdict, or FULL, which means that the bootstrap has no room either;
 * otherwise only the ticket was refused. */
static bool
is_final_refusal(const struct wf_paths_conn *m, const struct wf_event *event)
{
	struct wf_path_head head;
	size_t used = 0;
	return wf_path_decode(event->down.blob, event->down.blob_bytes, &head, &used) == WEFT_OK &&
	       is_proved(m, false, &head, event->down.blob, event->down.blob_bytes) &&
	       (head.kind == WF_PATH_HERE ||
		(head.kind == WF_PATH_NO && head.reason == WF_PATH_FULL));
}

bool
wf_paths_connect_refused(struct wf_paths_conn *m, struct wf_event *event)
{
	struct wf_path_head head;
	size_t used = 0;
	bool is_refused = event->down.status == WEFT_REFUSED;
	if (is_refused && m->t->guard != NULL &&
	    wf_path_decode(event->down.blob, event->down.blob_bytes, &head, &used) == WEFT_OK &&
	    wf_paths_accept_challenge(m, &head)) {
		prove(m);
		return false;
	}
	if (is_refused) {
		(void)read_refusal(m, true, event);
	}
	wf_paths_conn_report(m, event);
	return true;
}

bool
wf_paths_connect_path_down(struct wf_paths_conn *m, struct wf_event *event)
{
	enum weft_status status = event->down.status;
	bool is_final = status == WEFT_REFUSED && is_final_refusal(m, event);
	if (is_final || m->boot != NULL) {
		wf_paths_conn_excuse(m); /* it tells more than that the bootstrap has gone too */
	}
	if (is_final) {
		(void)read_refusal(m, false, event);
		wf_paths_conn_report(m, event);
		return true;
	}
	if (m->boot == NULL || status == WEFT_TIMEOUT) {
		wf_paths_conn_cause(m, status == WEFT_REFUSED ? WEFT_UNAVAILABLE : status, "%s",
				    event->down.why);
		if (status == WEFT_TIMEOUT) {
			wf_paths_hung(m, event->down.why);
		}
		wf_paths_conn_report(m, event);
		return true;
	}
	if (status != WEFT_REFUSED && wf_paths_rails_failed(m, event->down.why)) {
		return false;
	}
	wf_paths_conn_note(m, status == WEFT_REFUSED ? "its ticket was not accepted"
						     : event->down.why);
	wf_paths_conn_state(m, WF_PATHS_JUDGING);
	wf_paths_conn_deadline(m, wf_now_ns(m->t->transport.env) + WF_PATHS_JUDGE_NS);
	return false;
}
