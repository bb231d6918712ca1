/* SPDX-License-Identifier: Apache-2.0 */
/* link: one connection to one lane: finding it, greeting, coming back, leaving.
 * Thread: the core's. */
#include "trainer/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/service.h"

#define RETRY_FIRST_NS (20 * WF_NS_PER_MS)
#define RETRY_MAX_NS (WF_NS_PER_S)

enum weft_status
wf_link_open(struct wf_core *core, struct wf_link *link, uint32_t idx)
{
	bool dense = idx < core->dense_count;
	uint32_t lane = dense ? idx : idx - core->dense_count;
	uint32_t lane_count = dense ? core->job.lane_count : core->service_lane_count;
	link->core = core;
	link->idx = idx;
	link->ops = dense ? &wf_dense_link_ops : core->service->link;
	link->pserver_idx = lane / lane_count;
	link->lane_idx = lane % lane_count;
	link->retry_wait_ns = RETRY_FIRST_NS;
	return link->ops->open(link, lane);
}

void
wf_link_close(struct wf_link *link)
{
	if (link == NULL || link->core == NULL) {
		return;
	}
	link->ops->close(link);
	wf_send_window_close(&link->window, link->core->env);
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
	struct wf_core *core = link->core;
	struct wf_hello hello = core->hello;
	uint8_t bytes[WF_HELLO_MAX];
	hello.path = ++link->path;
	hello.pserver_idx = link->pserver_idx;
	hello.lane_idx = link->lane_idx;
	if (link->ops->fill_hello != NULL) {
		link->ops->fill_hello(link, &hello);
	}
	size_t used = wf_hello_encode(&hello, bytes);
	enum weft_status st = wf_transport_connect(core->turn.transport, &link->host, bytes, used,
						   link, &link->conn);
	if (st != WEFT_OK) {
		wf_core_fail(core, st, "%s", weft_last_error());
		return;
	}
	link->state = WF_LINK_CONNECTING;
}

/* Ever longer waits, with up to a quarter of chance, so that trainers do not come in step. */
static void
retry_later(struct wf_link *link)
{
	struct wf_env *env = link->core->env;
	uint64_t wait = link->retry_wait_ns;
	link->state = WF_LINK_IDLE;
	link->retry_ns = wf_now_ns(env) + wait + wf_random(env) % (wait / 4);
	link->retry_wait_ns = wait * 2 < RETRY_MAX_NS ? wait * 2 : RETRY_MAX_NS;
}

/* Nobody is left to acknowledge our GOODBYE: all our steps are answered, so nothing is lost. */
static void
give_up_leaving(struct wf_link *link)
{
	struct wf_core *core = link->core;
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	(void)snprintf(core->unacknowledged, sizeof(core->unacknowledged),
		       "%.160s did not acknowledge GOODBYE within %.1f s, all steps before were "
		       "answered: %.160s",
		       who, (double)core->opts.reconnect_timeout_ns / 1e9,
		       link->last_error[0] != '\0' ? link->last_error : "no answer");
	link->state = WF_LINK_LEFT;
	link->lost_ns = 0;
	if (link->conn != NULL) {
		wf_transport_disconnect(link->conn, WF_DISCONNECT_NOW);
	}
}

static void
check_left(struct wf_link *link, uint64_t now)
{
	const struct wf_core *core = link->core;
	if (now - core->leaving_ns < core->opts.reconnect_timeout_ns) {
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
	struct wf_core *core = link->core;
	uint64_t timeout = core->opts.reconnect_timeout_ns;
	if (core->leaving) {
		check_left(link, now);
		return;
	}
	if (link->lost_ns == 0 || now - link->lost_ns < timeout) {
		return;
	}
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	wf_core_fail(core, WEFT_LOST, "%s was lost: %s; not back within %.1f s", who,
		     link->last_error, (double)timeout / 1e9);
}

void
wf_link_tick(struct wf_link *link, uint64_t now)
{
	struct wf_core *core = link->core;
	check_lost(link, now);
	if (wf_core_failed(core) || link->state == WF_LINK_LEFT) {
		return;
	}
	if (!link->was_ready && now - core->started_ns >= core->opts.connect_timeout_ns) {
		char who[WF_REASON_BYTES];
		wf_link_describe(link, who, sizeof(who));
		wf_core_fail(core, WEFT_TIMEOUT, "%s was not there within %.1f s, last error: %s",
			     who, (double)core->opts.connect_timeout_ns / 1e9, link->last_error);
		return;
	}
	if (link->state == WF_LINK_IDLE && now >= link->retry_ns && link->conn == NULL) {
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
	wf_core_log(link->core, WEFT_LOG_INFO, "trainer %u: %s %s over %s: %s",
		    link->core->opts.trainer_id,
		    link->server_incarnation == 0 ? "reached" : "regained", who, path.name,
		    path.why);
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
		wf_core_fail(link->core, st, "%s", weft_last_error());
		return;
	}
	log_path(link);
	link->server_incarnation = welcome.incarnation;
	link->state = WF_LINK_GREETING;
	link->retry_wait_ns = RETRY_FIRST_NS;
	link->job_due = (welcome.flags & WF_WELCOME_SEND_JOB) != 0;
	wf_cursor_begin(&link->resume, link->unit_count);
}

/* The lane said no. Some refusals pass by themselves. */
static void
refused(struct wf_link *link, const struct wf_event *event)
{
	struct wf_welcome verdict;
	char who[WF_REASON_BYTES];
	wf_link_describe(link, who, sizeof(who));
	if (event->down.blob_bytes == 0) { /* not the lane: the two have no path in common */
		wf_core_fail(link->core, WEFT_MISMATCH, "pserver %u %s %u: %s", link->pserver_idx,
			     link->ops->lane_name, link->lane_idx, event->down.why);
		return;
	}
	if (wf_welcome_decode(event->down.blob, event->down.blob_bytes, &verdict) != WEFT_OK ||
	    verdict.refusal == WEFT_OK || verdict.refusal >= WEFT_STATUS_COUNT) {
		wf_core_fail(link->core, WEFT_PROTOCOL, "%s refused without a reason", who);
		return;
	}
	(void)snprintf(link->last_error, sizeof(link->last_error), "refused: %.*s",
		       WF_WHY_BYTES - 16, verdict.reason);
	if ((verdict.flags & WF_WELCOME_JOB_OVER) != 0) {
		wf_core_fail(link->core, (enum weft_status)verdict.refusal, "%s", verdict.reason);
		return;
	}
	if (verdict.refusal == WEFT_UNAVAILABLE || verdict.refusal == WEFT_REFUSED) {
		retry_later(link);
		return;
	}
	wf_core_fail(link->core, (enum weft_status)verdict.refusal, "refused by %.150s: %s", who,
		     verdict.reason);
}

/* What was due on a path is forgotten with it. */
static void
forget_path(struct wf_link *link)
{
	link->step_due = false;
	link->out_due = false;
	link->reduce_due = false;
	link->goodbye_due = false;
	link->abort_due = false;
	link->job_due = false;
	link->absent = (struct wf_msg_absent){0};
	wf_send_window_forget(&link->window);
	wf_cursor_end(&link->resume);
	wf_cursor_end(&link->have);
	link->places = (struct wf_answer_grants){0};
	link->ops->forget_path(link);
}

void
wf_link_down(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = link->core;
	bool was_up = link->state == WF_LINK_GREETING || link->state == WF_LINK_READY;
	link->conn = NULL;
	forget_path(link);
	if (link->state == WF_LINK_LEFT || wf_core_failed(core)) {
		return;
	}
	/* The two have no path in common now, and had one: a link is down, say. */
	bool had_path = link->server_incarnation != 0 && event->down.blob_bytes == 0;
	if (event->down.status == WEFT_REFUSED && !had_path) {
		refused(link, event);
		return;
	}
	(void)snprintf(link->last_error, sizeof(link->last_error), "%.*s", WF_WHY_BYTES - 1,
		       event->down.why);
	if (was_up) {
		char who[WF_REASON_BYTES];
		wf_link_describe(link, who, sizeof(who));
		wf_core_log(core, WEFT_LOG_WARN, "lost %s: %s; trying again for %.1f s", who,
			    link->last_error, (double)core->opts.reconnect_timeout_ns / 1e9);
		link->retry_wait_ns = RETRY_FIRST_NS;
	}
	if (link->server_incarnation != 0 && link->lost_ns == 0) {
		link->lost_ns = wf_now_ns(core->env);
	}
	retry_later(link);
}

static enum weft_status
recv_grant(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_grant msg;
	enum weft_status st = wf_msg_grant_decode(event->msg.head, event->msg.body, &msg);
	if (st == WEFT_OK && (link->state != WF_LINK_GREETING || link->unit_count == 0)) {
		st = wf_fail(WEFT_PROTOCOL, "GRANT: kind %u was not expected", msg.kind);
	}
	if (st == WEFT_OK && link->ops->check_window != NULL) {
		st = link->ops->check_window(link, &msg);
	}
	return st != WEFT_OK ? st : wf_send_window_open(&link->window, link->core->env, &msg);
}

/* What is said on every path is due. */
static void
become_ready(struct wf_link *link)
{
	struct wf_core *core = link->core;
	WF_ASSERT(link->state == WF_LINK_GREETING);
	wf_stats_add(&core->stats, WF_CORE_LANE_RECONNECTED_COUNT, link->was_ready ? 1 : 0);
	link->state = WF_LINK_READY;
	link->was_ready = true;
	link->lost_ns = 0;
	wf_beat_begin(&link->beat, &core->beats);
	link->out_due = link->takes_steps && core->out;
	link->reduce_due = link->idx == 0 && core->reduce_since_ns != 0;
	link->goodbye_due = core->leaving;
	if (link->unit_count > 0) {
		wf_cursor_begin(&link->have, link->unit_count);
	}
}

static enum weft_status
recv_resume(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_steps *msg = &link->core->steps;
	enum weft_status st = wf_msg_resume_decode(event->msg.head, event->msg.body, msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (link->state != WF_LINK_GREETING || link->job_due) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: step %" PRIu64 " was not expected",
			       msg->step);
	}
	if (link->unit_count > 0 && !wf_send_window_is_open(&link->window)) {
		return wf_fail(WEFT_PROTOCOL, "RESUME: there was no grant of slots before it");
	}
	st = wf_cursor_recv(&link->resume, "RESUME", msg);
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
take_reduced(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = link->core;
	struct wf_msg_reduce *msg = &core->reduce;
	enum weft_status st = wf_msg_reduced_decode(event->msg.head, event->msg.body, msg);
	if (st != WEFT_OK) {
		return st;
	}
	bool waits = core->reduce_since_ns != 0;
	if (link->idx == 0 && msg->request_id < core->reduce_id + (waits ? 0 : 1)) {
		return WEFT_OK; /* said again, after a reconnect; the next may be under way by now
				 */
	}
	if (!waits || link->idx != 0 || msg->request_id != core->reduce_id ||
	    msg->count != core->reduce_count) {
		return wf_fail(WEFT_PROTOCOL,
			       "REDUCED %" PRIu64 " with %u values was not asked for",
			       msg->request_id, msg->count);
	}
	if (msg->step >= INT64_MAX) {
		return wf_fail(WEFT_PROTOCOL, "REDUCED %" PRIu64 ": step %" PRIu64, msg->request_id,
			       msg->step);
	}
	for (uint32_t i = 0; i < msg->count; i++) {
		core->reduce_value[i] = msg->value[i];
	}
	core->reduce_step = msg->step;
	core->reduce_since_ns = 0;
	link->reduce_due = false;
	atomic_store_explicit(&core->reduce_busy, 0, memory_order_release); /* B1 */
	return WEFT_OK;
}

static enum weft_status
take_goodbye(struct wf_link *link, const struct wf_event *event)
{
	struct wf_msg_goodbye msg;
	enum weft_status st = wf_msg_goodbye_decode(event->msg.head, event->msg.body, &msg);
	if (st != WEFT_OK) {
		return st;
	}
	if (!msg.ack || !link->core->leaving) {
		return wf_fail(WEFT_PROTOCOL, "GOODBYE was not expected");
	}
	link->state = WF_LINK_LEFT;
	/* If it does not get there, the lane waits a while for one who will not come back. */
	wf_msg_goodbye_encode(&msg, &link->core->msg);
	(void)wf_link_send(link, &link->core->msg);
	wf_transport_disconnect(link->conn, WF_DISCONNECT_DRAIN);
	return WEFT_OK;
}

static enum weft_status
take_control(struct wf_link *link, const struct wf_event *event)
{
	struct wf_core *core = link->core;
	const struct wf_head *head = event->msg.head;
	struct wf_msg_abort abort;
	enum weft_status st;
	switch (head->type) {
	case WF_MSG_GOODBYE:
		return take_goodbye(link, event);
	case WF_MSG_REDUCED:
		return take_reduced(link, event);
	case WF_MSG_ABSENT:
		return wf_link_absent_take(link, event);
	case WF_MSG_BEAT:
		return wf_link_beat_take(link, event);
	case WF_MSG_ABORT:
		st = wf_msg_abort_decode(head, event->msg.body, &abort);
		if (st == WEFT_OK && !wf_core_failed(core)) {
			memcpy(core->failure_who, abort.who, sizeof(abort.who));
			wf_core_fail(core, (enum weft_status)abort.status, "%s", abort.reason);
		}
		return st;
	case WF_MSG_GRANT:
		return recv_grant(link, event);
	case WF_MSG_RESUME:
		return recv_resume(link, event);
	case WF_MSG_CREDIT:
		return recv_credit(link, event);
	default:
		return wf_fail(WEFT_PROTOCOL, "control message of type %u", head->type);
	}
}

enum weft_status
wf_link_msg(struct wf_link *link, const struct wf_event *event)
{
	const struct wf_head *head = event->msg.head;
	if (head->service == WF_SERVICE_CONTROL) {
		return take_control(link, event);
	}
	if (head->service != link->ops->service) {
		return wf_fail(WEFT_PROTOCOL, "message for service %u at a trainer", head->service);
	}
	return link->ops->msg(link, event);
}

static bool
flush_abort(struct wf_link *link)
{
	struct wf_core *core = link->core;
	struct wf_msg_abort msg = {
		.status = (uint16_t)atomic_load_explicit(&core->status, memory_order_relaxed),
		.step = core->step,
	};
	if (core->failure_who[0] != '\0') {
		memcpy(msg.who, core->failure_who, sizeof(msg.who)); /* who said it first */
	} else {
		(void)snprintf(msg.who, sizeof(msg.who), "trainer %u", core->opts.trainer_id);
	}
	(void)snprintf(msg.reason, sizeof(msg.reason), "%.*s", WF_REASON_BYTES - 1, core->failure);
	wf_msg_abort_encode(&msg, &core->msg);
	if (!wf_link_send(link, &core->msg)) {
		return false;
	}
	link->abort_due = false;
	wf_transport_disconnect(link->conn, WF_DISCONNECT_DRAIN);
	return true;
}

static bool
flush_goodbye(struct wf_link *link)
{
	const struct wf_msg_goodbye msg = {.ack = false};
	wf_msg_goodbye_encode(&msg, &link->core->msg);
	link->goodbye_due = !wf_link_send(link, &link->core->msg);
	return !link->goodbye_due;
}

static bool
flush_reduce(struct wf_link *link)
{
	struct wf_core *core = link->core;
	struct wf_msg_reduce *msg = &core->reduce;
	msg->request_id = core->reduce_id;
	msg->step = core->step;
	msg->count = core->reduce_count;
	for (uint32_t i = 0; i < msg->count; i++) {
		msg->value[i] = core->reduce_value[i];
	}
	wf_msg_reduce_encode(msg, &core->msg);
	link->reduce_due = !wf_link_send(link, &core->msg);
	return !link->reduce_due;
}

/* What opens the path at this end: GRANT of each place, then HAVE. */
static bool
flush_opening(struct wf_link *link)
{
	struct wf_core *core = link->core;
	struct wf_msg_steps *msg = &core->steps;
	enum weft_status st = wf_answer_places_send(&link->places, link->conn, link->place,
						    link->place_count, &core->msg);
	if (st != WEFT_OK && st != WEFT_AGAIN) {
		wf_core_fail(core, st, "%s", weft_last_error());
	}
	while (st == WEFT_OK && wf_cursor_is_open(&link->have)) {
		wf_cursor_fill(&link->have, msg);
		msg->step = core->step;
		for (uint32_t i = 0; i < msg->count; i++) {
			msg->step_of[i] = link->ops->answered(link, msg->first + i);
		}
		wf_msg_have_encode(msg, &core->msg);
		if (!wf_link_send(link, &core->msg)) {
			return false;
		}
		wf_cursor_advance(&link->have, msg);
	}
	return st == WEFT_OK;
}

bool
wf_link_flush(struct wf_link *link)
{
	if (link->conn == NULL) {
		return false; /* forgotten with the path */
	}
	if (wf_core_failed(link->core)) {
		return link->abort_due && !flush_abort(link);
	}
	if (link->state == WF_LINK_GREETING && link->job_due) {
		return !link->ops->flush_job(link);
	}
	if (link->state != WF_LINK_READY) {
		return false;
	}
	if (wf_beat_speaks(&link->beat) && !wf_link_beat_say(link)) {
		return true;
	}
	if (wf_cursor_is_open(&link->have) && !flush_opening(link)) {
		return true;
	}
	bool left = link->ops->flush(link);
	bool said =
		!link->step_due && !link->out_due; /* a reduce counts the steps said before it */
	if (link->reduce_due && (!said || !flush_reduce(link))) {
		return true;
	}
	return (link->goodbye_due && !flush_goodbye(link)) || left;
}
