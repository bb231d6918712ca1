/* SPDX-License-Identifier: Apache-2.0 */
/* watch: see watch.h. Thread: the lane's. */
#include "pserver/watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "exchange/send.h"
#include "pserver/refuse.h"
#include "pserver/service.h"
#include "pserver/trace.h"
#include "pserver/view.h"

#define RECORDS_PER_LOOK 16u
#define LOOK_NS (2 * WF_NS_PER_MS)
#define FRESH_NS WF_NS_PER_S            /* an older record is waited for, */
#define STALE_WAIT_NS (WF_NS_PER_S / 2) /* for so long */
#define PAUSE_NS (50 * WF_NS_PER_MS)    /* between two answers to the same watcher */
#define WATCHED_NS (10 * WF_NS_PER_S)   /* from a question on, lanes show what they do */
#define SILENT_NS (60 * WF_NS_PER_S)    /* who asks nothing, or takes no answer, is closed */

struct watcher {
	struct wf_conn *conn; /* NULL: none */
	bool closing;
	bool has_asked; /* and has not been answered */
	struct wf_watch_ask ask;
	uint64_t asked_ns;
	uint64_t last_ns; /* when it came, or the last message of an answer was sent */
	/* How it ends: WEFT_OK, or why it has no records. */
	enum weft_status status;
	char reason[WF_REASON_BYTES];
	struct wf_view_cursor cursor;
	struct wf_trace_cursor trace_cursor;
	bool has_record; /* `record` is to be sent next */
	bool is_sent;    /* all records: END is to be sent */
	uint64_t sent;
	struct wf_watch_record record;
};

struct wf_watchers {
	struct watcher at[WF_WATCHERS_MAX];
	uint32_t next;                 /* whose turn is first in the next look */
	struct wf_watch_answer answer; /* scratch */
};

static struct watcher *
find(struct wf_lane *lane, const struct wf_conn *conn)
{
	for (uint32_t i = 0; lane->watchers != NULL && i < WF_WATCHERS_MAX; i++) {
		if (lane->watchers->at[i].conn == conn) {
			return &lane->watchers->at[i];
		}
	}
	return NULL;
}

/* A place for one more. WEFT_MISMATCH, WEFT_NOMEM, WEFT_UNAVAILABLE */
static enum weft_status
claim_place(struct wf_lane *lane, struct watcher **out)
{
	if (lane->opts.views == NULL || lane->opts.idx != 0) {
		return wf_fail(
			WEFT_MISMATCH,
			"this is lane %u of a pserver, and lane 0 answers questions; ask its "
			"first port",
			lane->opts.idx);
	}
	if (lane->watchers == NULL) {
		lane->watchers = wf_zalloc(lane->env, sizeof(*lane->watchers));
	}
	if (lane->watchers == NULL) {
		return wf_fail(WEFT_NOMEM, "no memory for who watches");
	}
	*out = find(lane, NULL);
	return *out != NULL ? WEFT_OK
			    : wf_fail(WEFT_UNAVAILABLE,
				      "%u others watch this pserver, and more may not; try again",
				      WF_WATCHERS_MAX);
}

void
wf_watch_up(struct wf_lane *lane, struct wf_conn *conn)
{
	struct watcher *watcher;
	if (claim_place(lane, &watcher) != WEFT_OK) {
		wf_refuse_other(lane, conn, "watcher");
		return;
	}
	const struct wf_welcome yes = {
		.version = WF_WIRE_VERSION,
		.incarnation = lane->opts.incarnation,
		.slot_count = lane->opts.slot_count,
		.msg_bytes_max = WF_MSG_BODY_MAX,
		.put_bytes_max = lane->opts.slot_bytes_max,
	};
	uint8_t bytes[WF_HELLO_MAX];
	size_t used = wf_welcome_encode(&yes, bytes);
	conn->user = NULL;
	if (wf_transport_answer(conn, true, bytes, used) == WEFT_OK) {
		*watcher = (struct watcher){.conn = conn, .last_ns = wf_now_ns(lane->env)};
	}
}

static void
close_watcher(struct watcher *watcher, enum wf_disconnect how)
{
	watcher->closing = true;
	watcher->has_asked = false;
	wf_transport_disconnect(watcher->conn, how);
}

/* The question is new: whether there will be records. */
static void
begin_answer(struct wf_lane *lane, struct watcher *watcher)
{
	bool has_records = false;
	watcher->status = WEFT_OK;
	switch (watcher->ask.question) {
	case WF_WATCH_STATUS:
		wf_views_want(lane->opts.views, watcher->asked_ns + WATCHED_NS);
		has_records = true;
		break;
	case WF_WATCH_TRACE:
		watcher->status = wf_traces_ask(lane, watcher->ask.argument, &has_records);
		break;
	default:
		watcher->status =
			wf_fail(WEFT_UNSUPPORTED,
				"question %u is not known to this pserver; use its version of weft",
				watcher->ask.question);
		break;
	}
	watcher->is_sent = !has_records;
	(void)snprintf(watcher->reason, sizeof(watcher->reason), "%.*s", (int)WF_REASON_BYTES - 1,
		       watcher->status != WEFT_OK ? weft_last_error() : "");
}

static enum weft_status
on_ask(struct wf_lane *lane, struct watcher *watcher, const struct wf_event *event)
{
	struct wf_watch_ask ask;
	const struct wf_head *head = event->msg.head;
	if (head->service != WF_SERVICE_WATCH || head->type != WF_WATCH_ASK) {
		return wf_fail(WEFT_PROTOCOL, "message of type %u of service %u, a watcher has ASK",
			       head->type, head->service);
	}
	enum weft_status st = wf_watch_ask_decode(head, event->msg.body, &ask);
	if (st != WEFT_OK) {
		return st;
	}
	if (watcher->has_asked) {
		return wf_fail(WEFT_PROTOCOL, "ASK: the one before it is not answered");
	}
	watcher->has_asked = true;
	watcher->ask = ask;
	watcher->asked_ns = wf_now_ns(lane->env);
	watcher->cursor = (struct wf_view_cursor){0};
	watcher->has_record = false;
	watcher->trace_cursor = (struct wf_trace_cursor){0};
	watcher->sent = 0;
	begin_answer(lane, watcher);
	wf_turn_tick_before(&lane->turn, 0);
	return WEFT_OK;
}

bool
wf_watch_event(struct wf_lane *lane, const struct wf_event *event)
{
	struct watcher *watcher = find(lane, event->conn);
	if (watcher == NULL) {
		return false;
	}
	if (event->kind == WF_EVENT_DOWN) {
		*watcher = (struct watcher){0};
		return true;
	}
	if (event->kind == WF_EVENT_DONE || watcher->closing) {
		return true;
	}
	enum weft_status st = event->kind == WF_EVENT_MSG
				      ? on_ask(lane, watcher, event)
				      : wf_fail(WEFT_PROTOCOL, "a watcher sends messages only");
	if (st != WEFT_OK) {
		if (wf_lane_may_warn(lane)) {
			wf_log(lane->env, WF_LOG_WARN,
			       "lane %u: closed the connection of a watcher: %.200s",
			       lane->opts.idx, weft_last_error());
		}
		close_watcher(watcher, WF_DISCONNECT_NOW);
	}
	return true;
}

/* ---- answers ---- */

/* All lanes have shown what they do not long ago. */
static bool
is_fresh(const struct wf_lane *lane, uint64_t now_ns)
{
	struct wf_watch_record record;
	const struct wf_views *views = lane->opts.views;
	bool fresh = true;
	for (uint32_t i = 0; i < wf_views_lane_count(views) && fresh; i++) {
		fresh = wf_views_read(views, WF_WATCH_LANE, i, 0, &record) &&
			record.value[WF_WLANE_AT_NS] + FRESH_NS >= now_ns;
	}
	return fresh;
}

/* Whether the answer may begin, or has begun. */
static bool
may_answer(const struct wf_lane *lane, const struct watcher *watcher, uint64_t now_ns)
{
	bool is_trace = watcher->ask.question == WF_WATCH_TRACE; /* it has its own age */
	if (!watcher->has_asked || watcher->sent > 0 || watcher->is_sent || is_trace) {
		return watcher->has_asked;
	}
	return now_ns >= watcher->last_ns + PAUSE_NS &&
	       (is_fresh(lane, now_ns) || now_ns >= watcher->asked_ns + STALE_WAIT_NS);
}

/* False: the transport accepts no more. */
static bool
send_end(struct wf_lane *lane, struct watcher *watcher)
{
	struct wf_watch_end end = {
		.request_id = watcher->ask.request_id,
		.count = watcher->sent,
		.status = (uint16_t)watcher->status,
	};
	(void)snprintf(end.reason, sizeof(end.reason), "%s", watcher->reason);
	wf_watch_end_encode(&end, &lane->msg);
	bool sent = wf_send(watcher->conn, &lane->msg, 0);
	watcher->has_asked = !sent;
	return sent;
}

/* The next record of the answer; false: there are no more. */
static bool
next_record(struct wf_lane *lane, struct watcher *watcher, uint64_t now_ns)
{
	return watcher->ask.question == WF_WATCH_TRACE
		       ? wf_traces_next(lane->opts.traces, &watcher->trace_cursor, &watcher->record)
		       : wf_views_next(lane->opts.views, now_ns, &watcher->cursor,
				       &watcher->record);
}

/* Sends one message of the answer. False: the transport accepts no more. */
static bool
send_next(struct wf_lane *lane, struct watcher *watcher, uint64_t now_ns)
{
	if (!watcher->has_record && !watcher->is_sent) {
		watcher->has_record = next_record(lane, watcher, now_ns);
		watcher->is_sent = !watcher->has_record;
	}
	if (watcher->is_sent) {
		return send_end(lane, watcher);
	}
	struct wf_watch_answer *answer = &lane->watchers->answer;
	answer->request_id = watcher->ask.request_id;
	answer->record = watcher->record;
	wf_watch_answer_encode(answer, &lane->msg);
	bool sent = wf_send(watcher->conn, &lane->msg, 0);
	watcher->has_record = !sent;
	watcher->sent += sent ? 1 : 0;
	return sent;
}

/* It has asked nothing, or taken nothing of its answer, for long: others may want its place. */
static bool
is_silent(const struct watcher *watcher, uint64_t now_ns)
{
	bool is_new = watcher->has_asked && watcher->asked_ns > watcher->last_ns;
	return now_ns >= (is_new ? watcher->asked_ns : watcher->last_ns) + SILENT_NS;
}

/* Returns whether there is more to send. */
static bool
look_at_one(struct wf_lane *lane, struct watcher *watcher, uint64_t now_ns, unsigned *left)
{
	if (watcher->conn == NULL || watcher->closing) {
		return false;
	}
	if (is_silent(watcher, now_ns)) {
		close_watcher(watcher,
			      watcher->has_asked ? WF_DISCONNECT_NOW : WF_DISCONNECT_DRAIN);
	}
	bool goes_on = may_answer(lane, watcher, now_ns);
	while (goes_on && *left > 0 && watcher->has_asked) {
		goes_on = send_next(lane, watcher, now_ns);
		watcher->last_ns = goes_on ? now_ns : watcher->last_ns;
		--*left;
	}
	return watcher->has_asked;
}

void
wf_watch_look(struct wf_lane *lane, uint64_t now_ns)
{
	struct wf_watchers *watchers = lane->watchers;
	unsigned left = RECORDS_PER_LOOK;
	bool more = false;
	if (watchers == NULL) {
		return;
	}
	for (uint32_t i = 0; i < WF_WATCHERS_MAX; i++) {
		struct watcher *watcher = &watchers->at[(watchers->next + i) % WF_WATCHERS_MAX];
		more = look_at_one(lane, watcher, now_ns, &left) || more;
	}
	watchers->next = (watchers->next + 1) % WF_WATCHERS_MAX;
	if (more) {
		wf_turn_tick_before(&lane->turn, now_ns + LOOK_NS);
	}
}

void
wf_watch_close(struct wf_lane *lane)
{
	wf_free(lane->env, lane->watchers, sizeof(*lane->watchers));
	lane->watchers = NULL;
}
