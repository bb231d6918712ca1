/* SPDX-License-Identifier: Apache-2.0 */
/* peer_words: see peer_words.h. */
#include "tools/rdma_bench/peer_words.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/head.h"

WF_STATIC_ASSERT(WF_PEER_MESSAGE_MAX == WF_MSG_BODY_MAX, "a message is one of weft's");

#define FLAG_BARE (1u << 0)
#define FLAG_PING (1u << 1)
#define FLAG_VERIFY (1u << 2)
#define FLAG_UPDATES (1u << 3)
#define FLAGS_KNOWN 15u

void
wf_peer_head_encode(const struct wf_peer_head *head, uint8_t out[WF_PEER_HEAD_BYTES])
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_HEAD_BYTES};
	wf_put_u32(&w, WF_PEER_MAGIC);
	wf_put_u16(&w, head->version);
	wf_put_u16(&w, (uint16_t)head->type);
	wf_put_u32(&w, head->body_bytes);
	wf_put_u32(&w, 0);
}

enum weft_status
wf_peer_head_decode(const uint8_t in[WF_PEER_HEAD_BYTES], struct wf_peer_head *out)
{
	struct wf_reader r = {.base = in, .bytes = WF_PEER_HEAD_BYTES};
	uint32_t magic = wf_get_u32(&r);
	uint16_t version = wf_get_u16(&r);
	uint16_t type = wf_get_u16(&r);
	uint32_t bytes = wf_get_u32(&r);
	if (magic != WF_PEER_MAGIC) {
		return wf_fail(WEFT_PROTOCOL,
			       "the other side is not rdma_bench (it began with %08x)", magic);
	}
	bool known = version == WF_PEER_VERSION;
	if (known && (type < WF_PEER_PLAN || type > WF_PEER_WORD_MAX || bytes > WF_PEER_BODY_MAX)) {
		return wf_fail(WEFT_PROTOCOL, "the other side sent type %u with %u bytes", type,
			       bytes);
	}
	*out = (struct wf_peer_head){
		.version = version,
		.type = known ? (enum wf_peer_word)type : WF_PEER_FAIL,
		.body_bytes = known ? bytes : 0,
	};
	return WEFT_OK;
}

static enum weft_status
malformed(const char *what)
{
	return wf_fail(WEFT_PROTOCOL, "the other side sent a malformed %s", what);
}

size_t
wf_peer_plan_encode(const struct wf_peer_plan *plan, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_BODY_MAX};
	wf_put_u64(&w, plan->token);
	wf_put_u64(&w, plan->bytes_max);
	wf_put_u32(&w, (uint32_t)plan->over);
	wf_put_u32(&w, plan->depth);
	return w.used;
}

enum weft_status
wf_peer_plan_decode(const uint8_t *in, size_t bytes, struct wf_peer_plan *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_peer_plan plan = {0};
	plan.token = wf_get_u64(&r);
	plan.bytes_max = wf_get_u64(&r);
	uint32_t over = wf_get_u32(&r);
	plan.depth = wf_get_u32(&r);
	if (!wf_reader_done(&r)) {
		return malformed("plan");
	}
	if (over > WF_PEER_OVER_MAX || plan.bytes_max == 0 || plan.bytes_max > WF_PEER_BYTES_MAX ||
	    plan.depth == 0 || plan.depth > WF_PEER_DEPTH_MAX) {
		return wf_fail(WEFT_PROTOCOL,
			       "the client plans %u messages of %" PRIu64
			       " bytes over transport %u; %u, %llu and %u are the most",
			       plan.depth, plan.bytes_max, over, WF_PEER_DEPTH_MAX,
			       WF_PEER_BYTES_MAX, (unsigned)WF_PEER_OVER_MAX);
	}
	plan.over = (enum wf_peer_over)over;
	*out = plan;
	return WEFT_OK;
}

size_t
wf_peer_offer_encode(const struct wf_peer_offer *offer, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_BODY_MAX};
	wf_put_u64(&w, offer->pid);
	wf_put_u64(&w, offer->fd);
	wf_put_string(&w, offer->address);
	return w.used;
}

enum weft_status
wf_peer_offer_decode(const uint8_t *in, size_t bytes, struct wf_peer_offer *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_peer_offer offer = {0};
	offer.pid = wf_get_u64(&r);
	offer.fd = wf_get_u64(&r);
	wf_get_string(&r, offer.address, sizeof(offer.address));
	if (!wf_reader_done(&r)) {
		return malformed("offer");
	}
	*out = offer;
	return WEFT_OK;
}

size_t
wf_peer_leg_encode(const struct wf_peer_leg *leg, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_BODY_MAX};
	uint32_t flags = (leg->bare ? FLAG_BARE : 0) | (leg->ping ? FLAG_PING : 0) |
			 (leg->verify ? FLAG_VERIFY : 0) | (leg->updates ? FLAG_UPDATES : 0);
	wf_put_u32(&w, flags);
	wf_put_u32(&w, (uint32_t)leg->op);
	wf_put_u64(&w, leg->bytes);
	wf_put_u64(&w, leg->send_count);
	wf_put_u64(&w, leg->receive_count);
	return w.used;
}

static bool
leg_is_sane(const struct wf_peer_leg *leg, const struct wf_peer_plan *plan)
{
	uint64_t most = leg->op == WF_PEER_SEND ? WF_PEER_MESSAGE_MAX : plan->bytes_max;
	bool counts = leg->send_count <= WF_PEER_COUNT_MAX &&
		      leg->receive_count <= WF_PEER_COUNT_MAX &&
		      leg->send_count + leg->receive_count > 0;
	bool alike = !leg->ping || leg->send_count == leg->receive_count;
	bool whole = !leg->updates || leg->bytes % WF_PEER_UPDATE_BYTES == 0;
	return leg->bytes > 0 && leg->bytes <= most && leg->bytes <= plan->bytes_max && counts &&
	       alike && whole;
}

enum weft_status
wf_peer_leg_decode(const uint8_t *in, size_t bytes, const struct wf_peer_plan *plan,
		   struct wf_peer_leg *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	uint32_t flags = wf_get_u32(&r);
	uint32_t op = wf_get_u32(&r);
	struct wf_peer_leg leg = {
		.bare = (flags & FLAG_BARE) != 0,
		.ping = (flags & FLAG_PING) != 0,
		.verify = (flags & FLAG_VERIFY) != 0,
		.updates = (flags & FLAG_UPDATES) != 0,
		.op = (enum wf_peer_op)op,
	};
	leg.bytes = wf_get_u64(&r);
	leg.receive_count = wf_get_u64(&r); /* what one sends the other gets */
	leg.send_count = wf_get_u64(&r);
	if (!wf_reader_done(&r) || (flags & ~FLAGS_KNOWN) != 0 || op > WF_PEER_OP_MAX ||
	    !leg_is_sane(&leg, plan)) {
		return malformed("leg");
	}
	*out = leg;
	return WEFT_OK;
}

size_t
wf_peer_report_encode(const struct wf_peer_report *report, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_BODY_MAX};
	wf_put_u64(&w, report->checked);
	wf_put_u64(&w, report->wrong);
	wf_put_u64(&w, report->wrong_number);
	wf_put_u64(&w, report->wrong_at);
	return w.used;
}

enum weft_status
wf_peer_report_decode(const uint8_t *in, size_t bytes, struct wf_peer_report *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	struct wf_peer_report report = {0};
	report.checked = wf_get_u64(&r);
	report.wrong = wf_get_u64(&r);
	report.wrong_number = wf_get_u64(&r);
	report.wrong_at = wf_get_u64(&r);
	if (!wf_reader_done(&r)) {
		return malformed("report");
	}
	*out = report;
	return WEFT_OK;
}

size_t
wf_peer_failure_encode(enum weft_status status, const char *text, uint8_t *out)
{
	struct wf_writer w = {.base = out, .capacity = WF_PEER_BODY_MAX};
	char line[WF_PEER_TEXT_BYTES];
	size_t used = 0;
	for (; text[used] != '\0' && used + 1 < sizeof(line); used++) {
		unsigned char c = (unsigned char)text[used];
		line[used] = text[used];
		if (c < 0x20 || c > 0x7e) {
			line[used] = '?';
		}
	}
	line[used] = '\0';
	wf_put_u32(&w, (uint32_t)status);
	wf_put_string(&w, line);
	return w.used;
}

enum weft_status
wf_peer_failure_decode(const uint8_t *in, size_t bytes)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	char text[WF_PEER_TEXT_BYTES];
	uint32_t status = wf_get_u32(&r);
	wf_get_string(&r, text, sizeof(text));
	if (!wf_reader_done(&r) || status == WEFT_OK || status == WEFT_AGAIN ||
	    status > WEFT_INTERNAL) {
		return malformed("failure");
	}
	return wf_fail((enum weft_status)status, "the other side: %s", text);
}
