/* SPDX-License-Identifier: Apache-2.0 */
/* watch_messages: encode and decode the messages of the WATCH service. Layouts: wire/protocol.md.
 * Thread: any; pure functions. */
#include "wire/watch_messages.h"

#include <string.h>

#include "base/assert.h"
#include "wire/job.h"
#include "wire/shape.h"

#define ASK_BYTES 18
#define RECORD_FIXED_BYTES 10
#define END_FIXED_BYTES 12

/* How many numbers and texts each kind has. */
static const struct {
	uint8_t values, texts;
} shape_of[] = {
	[WF_WATCH_PSERVER] = {WF_PSERVER_VALUES, WF_PSERVER_TEXTS},
	[WF_WATCH_LANE] = {WF_WLANE_VALUES, WF_WLANE_TEXTS},
	[WF_WATCH_MEMBER] = {WF_MEMBER_VALUES, WF_MEMBER_TEXTS},
	[WF_WATCH_TABLE] = {WF_TAB_VALUES, WF_TAB_TEXTS},
	[WF_WATCH_NEWS] = {WF_NEWS_VALUES, WF_NEWS_TEXTS},
	[WF_WATCH_TRACED] = {WF_WTRACE_VALUES, WF_WTRACE_TEXTS},
};
WF_STATIC_ASSERT(WF_ARRAY_COUNT(shape_of) == WF_WATCH_KIND_MAX + 1, "each kind has a shape");
WF_STATIC_ASSERT(WF_WLANE_VALUES <= WF_WATCH_VALUES_MAX &&
			 WF_WTRACE_VALUES <= WF_WATCH_VALUES_MAX &&
			 WF_TAB_VALUES <= WF_WATCH_VALUES_MAX &&
			 WF_MEMBER_VALUES <= WF_WATCH_VALUES_MAX &&
			 WF_MEMBER_TEXTS <= WF_WATCH_TEXTS_MAX &&
			 WF_WLANE_TEXTS <= WF_WATCH_TEXTS_MAX,
		 "a record holds each kind");
WF_STATIC_ASSERT(sizeof(struct wf_watch_record) % sizeof(uint64_t) == 0, "whole words");
WF_STATIC_ASSERT(RECORD_FIXED_BYTES + WF_WATCH_VALUES_MAX * sizeof(uint64_t) +
				 WF_WATCH_TEXTS_MAX * (2 + WF_REASON_BYTES) <=
			 WF_MSG_BODY_MAX,
		 "the longest record fits a message");

static const struct wf_shape ask_shape = {
	.name = "ASK",
	.service = WF_SERVICE_WATCH,
	.type = WF_WATCH_ASK,
	.uses = WF_USE_REQUEST_ID,
	.body_min = ASK_BYTES,
	.body_max = ASK_BYTES,
};

static const struct wf_shape record_shape = {
	.name = "RECORD",
	.service = WF_SERVICE_WATCH,
	.type = WF_WATCH_RECORD,
	.uses = WF_USE_REQUEST_ID,
	.body_min = RECORD_FIXED_BYTES,
	.body_max = WF_MSG_BODY_MAX,
};

static const struct wf_shape end_shape = {
	.name = "END",
	.service = WF_SERVICE_WATCH,
	.type = WF_WATCH_END,
	.uses = WF_USE_REQUEST_ID,
	.body_min = END_FIXED_BYTES,
	.body_max = END_FIXED_BYTES + WF_REASON_BYTES - 1,
};

unsigned
wf_watch_value_count(uint64_t kind)
{
	WF_ASSERT(kind >= 1 && kind <= WF_WATCH_KIND_MAX);
	return shape_of[kind].values;
}

unsigned
wf_watch_text_count(uint64_t kind)
{
	WF_ASSERT(kind >= 1 && kind <= WF_WATCH_KIND_MAX);
	return shape_of[kind].texts;
}

uint64_t
wf_watch_bucket_ns(unsigned bucket)
{
	static const uint64_t upper_ns[WF_WATCH_BUCKETS] = {
		10000,       30000,       100000,       300000,     1000000,    3000000,
		10000000,    30000000,    100000000,    300000000,  1000000000, 3000000000,
		10000000000, 30000000000, 100000000000, UINT64_MAX,
	};
	WF_ASSERT(bucket < WF_WATCH_BUCKETS);
	return upper_ns[bucket];
}

static enum weft_status
check_request(const char *name, uint64_t request_id)
{
	return request_id != 0 ? WEFT_OK : wf_refuse(name, "request_id", 0, "above 0");
}

void
wf_watch_ask_encode(const struct wf_watch_ask *in, struct wf_msg *out)
{
	WF_ASSERT(in->request_id != 0);
	struct wf_writer w = wf_shape_begin(&ask_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u16(&w, in->question);
	wf_put_u64(&w, in->argument[0]);
	wf_put_u64(&w, in->argument[1]);
	wf_shape_end(&ask_shape, &w, out);
}

enum weft_status
wf_watch_ask_decode(const struct wf_head *head, const uint8_t *body, struct wf_watch_ask *out)
{
	enum weft_status st = wf_shape_check(&ask_shape, head);
	st = st == WEFT_OK ? check_request("ASK", head->request_id) : st;
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_watch_ask ask = {.request_id = head->request_id};
	ask.question = wf_get_u16(&r);
	ask.argument[0] = wf_get_u64(&r);
	ask.argument[1] = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	*out = ask;
	return WEFT_OK;
}

void
wf_watch_answer_encode(const struct wf_watch_answer *in, struct wf_msg *out)
{
	const struct wf_watch_record *record = &in->record;
	WF_ASSERT(in->request_id != 0 && record->lane < WF_LANE_COUNT_MAX &&
		  record->idx <= UINT32_MAX);
	struct wf_writer w = wf_shape_begin(&record_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u16(&w, (uint16_t)record->kind);
	wf_put_u32(&w, (uint32_t)record->lane);
	wf_put_u32(&w, (uint32_t)record->idx);
	for (unsigned i = 0; i < wf_watch_value_count(record->kind); i++) {
		wf_put_u64(&w, record->value[i]);
	}
	for (unsigned i = 0; i < wf_watch_text_count(record->kind); i++) {
		wf_put_text(&w, record->text[i], WF_REASON_BYTES);
	}
	wf_shape_end(&record_shape, &w, out);
}

static enum weft_status
get_record(struct wf_reader *r, struct wf_watch_record *record)
{
	record->kind = wf_get_u16(r);
	record->lane = wf_get_u32(r);
	record->idx = wf_get_u32(r);
	if (record->kind < 1 || record->kind > WF_WATCH_KIND_MAX) {
		return wf_refuse("RECORD", "kind", record->kind, "1 to 6");
	}
	if (record->lane >= WF_LANE_COUNT_MAX) {
		return wf_refuse("RECORD", "lane", record->lane, "below 65536");
	}
	for (unsigned i = 0; i < wf_watch_value_count(record->kind); i++) {
		record->value[i] = wf_get_u64(r);
	}
	if (r->bad) {
		return wf_refuse_length("RECORD", r);
	}
	for (unsigned i = 0; i < wf_watch_text_count(record->kind); i++) {
		wf_get_string(r, record->text[i], WF_REASON_BYTES);
		if (r->bad) {
			return wf_refuse_text("RECORD", "text", r, WF_REASON_BYTES);
		}
	}
	return wf_reader_done(r) ? WEFT_OK : wf_refuse_length("RECORD", r);
}

enum weft_status
wf_watch_answer_decode(const struct wf_head *head, const uint8_t *body, struct wf_watch_answer *out)
{
	enum weft_status st = wf_shape_check(&record_shape, head);
	st = st == WEFT_OK ? check_request("RECORD", head->request_id) : st;
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_watch_record record = {0};
	st = get_record(&r, &record);
	if (st == WEFT_OK) {
		out->request_id = head->request_id;
		out->record = record;
	}
	return st;
}

void
wf_watch_end_encode(const struct wf_watch_end *in, struct wf_msg *out)
{
	WF_ASSERT(in->request_id != 0);
	struct wf_writer w = wf_shape_begin(&end_shape, out);
	out->head.request_id = in->request_id;
	wf_put_u64(&w, in->count);
	wf_put_u16(&w, in->status);
	wf_put_text(&w, in->reason, sizeof(in->reason));
	wf_shape_end(&end_shape, &w, out);
}

enum weft_status
wf_watch_end_decode(const struct wf_head *head, const uint8_t *body, struct wf_watch_end *out)
{
	enum weft_status st = wf_shape_check(&end_shape, head);
	st = st == WEFT_OK ? check_request("END", head->request_id) : st;
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_reader r = wf_body_reader(head, body);
	struct wf_watch_end end = {.request_id = head->request_id};
	end.count = wf_get_u64(&r);
	end.status = wf_get_u16(&r);
	wf_get_string(&r, end.reason, sizeof(end.reason));
	if (r.bad) {
		return wf_refuse_text("END", "reason", &r, sizeof(end.reason));
	}
	if (!wf_reader_done(&r)) {
		return wf_refuse_length("END", &r);
	}
	if (end.status != WEFT_OK) {
		st = wf_status_check("END", "status", end.status);
	}
	if (st == WEFT_OK) {
		*out = end;
	}
	return st;
}
