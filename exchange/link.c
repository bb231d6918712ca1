/* SPDX-License-Identifier: Apache-2.0 */
/* link: see the header. Thread: the end's. */
#include "exchange/link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define LINE_BYTES 1024

__attribute__((format(printf, 3, 4))) static void
fail(struct wf_link *link, enum weft_status status, const char *format, ...)
{
	char text[WF_ERROR_BYTES]; /* the arguments may point into the error record */
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	link->end->ops->fail(link->end, status, text);
}

__attribute__((format(printf, 3, 4))) static void
log_line(const struct wf_link *link, enum weft_log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	link->end->ops->log(link->end, level, line);
}

void
wf_link_init(struct wf_link *link, struct wf_link_end *end, const struct wf_link_ops *ops)
{
	link->end = end;
	link->ops = ops;
	wf_retry_begin(&link->retry);
}

void
wf_link_close(struct wf_link *link)
{
	if (link == NULL || link->end == NULL) {
		return;
	}
	link->ops->close(link);
	wf_send_window_close(&link->window, link->end->env);
}

void
wf_link_describe(const struct wf_link *link, char *out, size_t bytes)
{
	char host[WF_HOST_BYTES + 8];
	wf_host_format(&link->host, host, sizeof(host));
	(void)snprintf(out, bytes, "pserver %u %s %u (%.120s)", link->pserver_idx,
		       link->ops->lane_name, link->lane_idx, host);
}

static void
connect_once(struct wf_link *link)
{
	struct wf_link_end *end = link->end;
	struct wf_hello hello = end->hello;
	uint8_t bytes[WF_HELLO_MAX];
	hello.path = ++link->path;
	hello.pserver_idx = link->pserver_idx;
	hello.lane_idx = link->lane_idx;
	if (link->ops->fill_hello != NULL) {
		link->ops->fill_hello(link, &hello);
	}
	size_t used = wf_hello_encode(&hello, bytes);
	enum weft_status st = wf_transport_connect(end->turn->transport, &link->host, bytes, used,
						   link, &link->conn);
	if (st != WEFT_OK) {
		fail(link, st, "%s", weft_last_error());
		return;
	}
	link->state = WF_LINK_CONNECTING;
}

static void
retry_later(struct wf_link *link)
{
	link->state = WF_LINK_IDLE;
	wf_retry_later(&link->retry, link->end->env);
}

/* The lane does not acknowledge our GOODBYE. All our steps are answered, so nothing is lost. */
static void
give_up_leaving(struct wf_link *link)
{
	struct wf_link_end *end = link->end;
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	(void)snprintf(end->unacknowledged, sizeof(end->unacknowledged),
		       "%.160s did not acknowledge GOODBYE within %.1f s, all steps before were "
		       "answered: %.160s",
		       who, (double)end->reconnect_timeout_ns / 1e9,
		       link->retry.why[0] != '\0' ? link->retry.why : "no answer");
	if (end->goes_back) { /* the job may not have ended */
		fail(link, WEFT_LOST, "%s", end->unacknowledged);
		return;
	}
	link->state = WF_LINK_LEFT;
	wf_retry_found(&link->retry);
	if (link->conn != NULL) {
		wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
	}
}

/* Since when GOODBYE may be sent on this link; 0: not yet. */
static uint64_t
leaving_since(const struct wf_link *link)
{
	const struct wf_link_end *end = link->end;
	return link->idx == 0 ? end->last_leaving_ns : end->leaving ? end->leaving_ns : 0;
}

static void
check_left(struct wf_link *link, uint64_t now)
{
	const struct wf_link_end *end = link->end;
	/* Others may not have sent theirs yet, or the border is not here yet. A lane that does not
	 * run is found by BEAT. */
	bool waits_for_others =
		(link->ends_together || end->leaves) && link->state == WF_LINK_READY;
	/* A path that is lost after such a wait has all of the time to come back. */
	const uint64_t lost_ns = link->retry.lost_ns;
	uint64_t since_ns = leaving_since(link);
	since_ns = lost_ns > since_ns ? lost_ns : since_ns;
	if (waits_for_others || now - since_ns < end->reconnect_timeout_ns) {
		return;
	}
	if (link->state != WF_LINK_LEFT) {
		give_up_leaving(link);
	} else if (link->conn != NULL) { /* acknowledged, but the connection does not end */
		wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
	}
}

static void
check_lost(struct wf_link *link, uint64_t now)
{
	struct wf_link_end *end = link->end;
	uint64_t timeout = end->reconnect_timeout_ns;
	if (leaving_since(link) != 0 && !(link->ends_together && link->state < WF_LINK_READY)) {
		check_left(link, now);
		return;
	}
	if (!wf_retry_is_over(&link->retry, now, timeout)) {
		return;
	}
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	fail(link, WEFT_LOST, "%s was lost: %s; not back within %.1f s", who, link->retry.why,
	     (double)timeout / 1e9);
}

void
wf_link_tick(struct wf_link *link, uint64_t now)
{
	struct wf_link_end *end = link->end;
	check_lost(link, now);
	if (end->ops->failed(end) || link->state == WF_LINK_LEFT) {
		return;
	}
	if (!link->was_ready && now - end->started_ns >= end->connect_timeout_ns) {
		char who[WF_REASON_BYTES];
		wf_link_describe(link, who, sizeof(who));
		fail(link, WEFT_TIMEOUT, "%s did not answer within %.1f s, last error: %s", who,
		     (double)end->connect_timeout_ns / 1e9, link->retry.why);
		return;
	}
	if (link->state == WF_LINK_IDLE && now >= link->retry.at_ns && link->conn == NULL) {
		connect_once(link);
	}
}

static enum weft_status
check_welcome(struct wf_link *link, const struct wf_welcome *welcome)
{
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	bool send_job = (welcome->flags & WF_WELCOME_SEND_JOB) != 0;
	if (welcome->version < WF_WIRE_VERSION_MIN || welcome->version > WF_WIRE_VERSION) {
		return wf_fail(WEFT_MISMATCH, "%.160s chose wire version %u", who,
			       welcome->version);
	}
	if (link->server_incarnation != 0 &&
	    (link->server_incarnation != welcome->incarnation || (send_job && link->was_ready))) {
		return wf_fail(WEFT_LOST, "%.160s was restarted and has lost the job", who);
	}
	return WEFT_OK;
}

static void
log_path(const struct wf_link *link)
{
	char who[WF_REASON_BYTES];
	struct wf_path_info path;
	wf_link_describe(link, who, sizeof(who));
	wf_transport_path(link->conn, &path);
	log_line(link, WEFT_LOG_INFO, "%s: %s %s over %s: %s", link->end->name,
		 link->server_incarnation == 0 ? "reached" : "regained", who, path.name, path.why);
}

void
wf_link_up(struct wf_link *link, const struct wf_event *event)
{
	struct wf_welcome welcome;
	enum weft_status st = wf_welcome_decode(event->up.blob, event->up.blob_bytes, &welcome);
	if (st == WEFT_OK) {
		st = check_welcome(link, &welcome);
	}
	if (st != WEFT_OK) {
		fail(link, st, "%s", weft_last_error());
		return;
	}
	log_path(link);
	link->server_incarnation = welcome.incarnation;
	link->ends_together = (welcome.flags & WF_WELCOME_ENDS_TOGETHER) != 0;
	link->end->goes_back = link->end->goes_back || (welcome.flags & WF_WELCOME_GOES_BACK) != 0;
	if ((welcome.flags & WF_WELCOME_JOINS) != 0) {
		atomic_store_explicit(&link->end->joins, true, memory_order_relaxed);
	}
	if ((welcome.flags & WF_WELCOME_MAY_LEAVE) == 0) {
		atomic_store_explicit(&link->end->must_stay, true, memory_order_relaxed);
	}
	link->end->measures = link->end->measures || (welcome.flags & WF_WELCOME_MEASURES) != 0;
	link->state = WF_LINK_GREETING;
	wf_retry_begin(&link->retry);
	link->to_send.job = (welcome.flags & WF_WELCOME_SEND_JOB) != 0;
	wf_cursor_begin(&link->opening.resume, link->content.unit_count);
}

/* The lane refused the hello. Some refusals are temporary, and are retried. */
static void
refused(struct wf_link *link, const struct wf_event *event)
{
	struct wf_welcome verdict;
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	/* Not refused by the lane: the two ends have no path in common. */
	if (event->down.blob_bytes == 0) {
		fail(link, WEFT_MISMATCH, "pserver %u %s %u: %s", link->pserver_idx,
		     link->ops->lane_name, link->lane_idx, event->down.why);
		return;
	}
	if (wf_welcome_decode(event->down.blob, event->down.blob_bytes, &verdict) != WEFT_OK ||
	    verdict.refusal == WEFT_OK || verdict.refusal >= WEFT_STATUS_COUNT) {
		fail(link, WEFT_PROTOCOL, "%s refused without a reason", who);
		return;
	}
	wf_retry_fail(&link->retry, "refused: %.*s", WF_WHY_BYTES - 16, verdict.reason);
	if ((verdict.flags & WF_WELCOME_JOB_OVER) != 0) {
		fail(link, (enum weft_status)verdict.refusal, "%s", verdict.reason);
		return;
	}
	if (link->end->leaves && link->was_ready && verdict.refusal != WEFT_PROTOCOL) {
		link->state = WF_LINK_LEFT; /* its place is empty, or another one's */
		return;
	}
	if (verdict.refusal == WEFT_UNAVAILABLE || verdict.refusal == WEFT_REFUSED) {
		retry_later(link);
		return;
	}
	fail(link, (enum weft_status)verdict.refusal, "refused by %.150s: %s", who, verdict.reason);
}

/* Resets everything that belongs to the path. */
static void
forget_path(struct wf_link *link)
{
	link->to_send = (struct wf_link_to_send){0};
	link->absent = (struct wf_link_absent){0};
	wf_send_window_forget(&link->window);
	wf_cursor_end(&link->opening.resume);
	wf_cursor_end(&link->opening.have);
	link->opening.places = (struct wf_answer_grants){0};
	link->ops->forget_path(link);
}

void
wf_link_down(struct wf_link *link, const struct wf_event *event)
{
	struct wf_link_end *end = link->end;
	bool was_up = link->state == WF_LINK_GREETING || link->state == WF_LINK_READY;
	link->conn = NULL;
	forget_path(link);
	if (link->state == WF_LINK_LEFT || end->ops->failed(end)) {
		return;
	}
	/* The two ends had a path in common, and have none now: a network link may be down. */
	bool had_path = link->server_incarnation != 0 && event->down.blob_bytes == 0;
	if (event->down.status == WEFT_REFUSED && !had_path) {
		refused(link, event);
		return;
	}
	wf_retry_fail(&link->retry, "%.*s", WF_WHY_BYTES - 1, event->down.why);
	if (was_up) {
		char who[WF_REASON_BYTES];
		wf_link_describe(link, who, sizeof(who));
		log_line(link, WEFT_LOG_WARN, "lost %s: %s; trying again for %.1f s", who,
			 link->retry.why, (double)end->reconnect_timeout_ns / 1e9);
		wf_retry_begin(&link->retry);
	}
	if (link->server_incarnation != 0) {
		wf_retry_lost(&link->retry, wf_now_ns(end->env));
	}
	retry_later(link);
}

static enum weft_status
recv_grant(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_grant msg;
	enum weft_status st = wf_msg_grant_decode(event->msg.head, event->msg.body, &msg);
	if (st == WEFT_OK && (link->state != WF_LINK_GREETING || link->content.unit_count == 0)) {
		st = wf_fail(WEFT_PROTOCOL, "GRANT: kind %u was not expected", msg.kind);
	}
	if (st == WEFT_OK && link->ops->check_window != NULL) {
		st = link->ops->check_window(link, &msg);
	}
	return st != WEFT_OK ? st : wf_send_window_open(&link->window, link->end->env, &msg);
}

/* What is sent on every path is due now. */
static void
become_ready(struct wf_link *link)
{
	struct wf_link_end *end = link->end;
	WF_ASSERT(link->state == WF_LINK_GREETING);
	bool again = link->was_ready;
	link->state = WF_LINK_READY;
	link->was_ready = true;
	wf_retry_found(&link->retry);
	wf_beat_begin(&link->beat, &end->beats);
	link->to_send.goodbye = leaving_since(link) != 0;
	if (link->content.unit_count > 0) {
		wf_cursor_begin(&link->opening.have, link->content.unit_count);
	}
	end->ops->ready(link, again);
}

static enum weft_status
recv_resume(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_steps *msg = &link->end->steps;
	enum weft_status st = wf_msg_resume_decode(event->msg.head, event->msg.body, msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (link->state != WF_LINK_GREETING || link->to_send.job) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: step %" PRIu64 " was not expected",
			       msg->step);
	}
	if (link->content.unit_count > 0 && !wf_send_window_is_open(&link->window)) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: there was no grant of slots before it");
	}
	st = wf_cursor_recv(&link->opening.resume, "RESUME", msg);
	if (st == WEFT_OK) {
		st = link->ops->resume(link, msg);
	}
	if (st == WEFT_OK && msg->last) {
		become_ready(link);
	}
	return st;
}

static enum weft_status
recv_credit(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_credit msg;
	enum weft_status st = wf_msg_credit_decode(event->msg.head, event->msg.body, &msg);
	return st != WEFT_OK ? st : wf_send_window_credit(&link->window, &msg);
}

static enum weft_status
recv_goodbye(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_goodbye msg;
	enum weft_status st = wf_msg_goodbye_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (!msg.ack || leaving_since(link) == 0) {
		return wf_fail(WEFT_PROTOCOL, "GOODBYE was not expected");
	}
	link->state = WF_LINK_LEFT;
	/* If it is lost, the lane waits for a while for a trainer that will not come back. */
	wf_msg_goodbye_encode(&msg, &link->end->msg);
	(void)wf_link_send(link, &link->end->msg);
	wf_transport_disconnect(link->conn, WF_DISCONNECT_DRAIN);
	return WEFT_OK;
}

/* Sends what opens the path at this end: GRANT of each place, then HAVE. */
bool
wf_link_flush_opening(struct wf_link *link)
{
	struct wf_link_end *end = link->end;
	struct wf_msg_steps *msg = &end->steps;
	enum weft_status st =
		wf_answer_places_send(&link->opening.places, link->conn, link->content.place,
				      link->content.place_count, &end->msg);
	if (st != WEFT_OK && st != WEFT_AGAIN) {
		fail(link, st, "%s", weft_last_error());
	}
	while (st == WEFT_OK && wf_cursor_is_open(&link->opening.have)) {
		wf_cursor_fill(&link->opening.have, msg);
		msg->step = end->ops->step(end);
		for (uint32_t i = 0; i < msg->count; i++) {
			msg->step_of[i] = link->ops->answered(link, msg->first + i);
		}
		wf_msg_have_encode(msg, &end->msg);
		if (!wf_link_send(link, &end->msg)) {
			return false;
		}
		wf_cursor_advance(&link->opening.have, msg);
	}
	return st == WEFT_OK;
}

bool
wf_link_flush_goodbye(struct wf_link *link)
{
	const struct wf_msg_goodbye msg = {.ack = false, .leaves = link->end->leaves};
	wf_msg_goodbye_encode(&msg, &link->end->msg);
	link->to_send.goodbye = !wf_link_send(link, &link->end->msg);
	return !link->to_send.goodbye;
}

static enum weft_status
recv_control(struct wf_link *link, const struct wf_event *event)
{
	switch (event->msg.head->type) {
	case WF_MSG_GRANT:
		return recv_grant(link, event);
	case WF_MSG_RESUME:
		return recv_resume(link, event);
	case WF_MSG_CREDIT:
		return recv_credit(link, event);
	case WF_MSG_GOODBYE:
		return recv_goodbye(link, event);
	default:
		return link->end->ops->control(link, event);
	}
}

enum weft_status
wf_link_msg(struct wf_link *link, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	if (head->service == WF_SERVICE_CONTROL) {
		return recv_control(link, event);
	}
	if (head->service != link->ops->service) {
		return wf_fail(WEFT_PROTOCOL, "message for service %u at a trainer", head->service);
	}
	return link->ops->msg(link, event);
}
