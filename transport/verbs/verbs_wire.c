/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_wire: encoding and decoding. Thread: any. */
#include "transport/verbs/verbs_wire.h"

#include <string.h>

#include "base/assert.h"
#include "transport/grants.h"
#include "wire/bytes.h"

#define HEAD_BYTES 32u
#define KEY_48_BITS ((1ull << 48) - 1)

static size_t
private_blob_max(enum wf_verbs_private_type type)
{
	return type == WF_VERBS_REQUEST ? WF_VERBS_HELLO_SHORT : WF_VERBS_VERDICT_SHORT;
}

WF_STATIC_ASSERT(HEAD_BYTES + WF_VERBS_HELLO_SHORT <= 56, "what rdma_cm carries in a request");
WF_STATIC_ASSERT(HEAD_BYTES + WF_VERBS_VERDICT_SHORT <= WF_VERBS_PRIVATE_MAX, "a rejection");

size_t
wf_verbs_private_encode(const struct wf_verbs_private *p, uint8_t out[WF_VERBS_PRIVATE_MAX])
{
	WF_ASSERT(p->blob_bytes <= private_blob_max(p->type));
	struct wf_writer w = {.base = out, .capacity = WF_VERBS_PRIVATE_MAX};
	wf_put_u32(&w, WF_VERBS_MAGIC);
	wf_put_u8(&w, WF_VERBS_VERSION);
	wf_put_u8(&w, (uint8_t)p->type);
	wf_put_u8(&w, p->blob_bytes);
	wf_put_u8(&w, p->features);
	wf_put_u16(&w, p->credits);
	wf_put_u16(&w, 0);
	wf_put_u32(&w, p->mark);
	wf_put_u64(&w, 0); /* authentication */
	wf_put_u64(&w, p->put_bytes_max);
	wf_put_bytes(&w, p->blob, p->blob_bytes);
	WF_ASSERT(!w.bad);
	return w.used;
}

static enum weft_status
check_private(const struct wf_verbs_private *p, uint16_t reserved, uint64_t authentication)
{
	if (p->blob_bytes > private_blob_max(p->type)) {
		return wf_fail(WEFT_PROTOCOL, "private data: a blob of %u bytes", p->blob_bytes);
	}
	if (reserved != 0 || (p->features & ~(unsigned)WF_VERBS_FEATURES_KNOWN) != 0) {
		return wf_fail(WEFT_PROTOCOL, "private data: features %#x, reserved %#x",
			       p->features, reserved);
	}
	if (authentication != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "private data: it authenticates itself, which this version cannot "
			       "check");
	}
	bool lives = p->type == WF_VERBS_REQUEST || p->type == WF_VERBS_REPLY;
	if (lives && (p->credits == 0 || p->mark == 0 || p->mark > WF_VERBS_MARK_MAX)) {
		return wf_fail(WEFT_PROTOCOL, "private data: %u credits, mark %#x", p->credits,
			       p->mark);
	}
	return WEFT_OK;
}

enum weft_status
wf_verbs_private_decode(const uint8_t *in, size_t bytes, struct wf_verbs_private *out)
{
	struct wf_reader r = {.base = in, .bytes = bytes};
	uint32_t magic = wf_get_u32(&r);
	uint8_t version = wf_get_u8(&r);
	uint8_t type = wf_get_u8(&r);
	if (r.bad || magic != WF_VERBS_MAGIC) {
		return wf_fail(WEFT_PROTOCOL, "private data: %zu bytes, magic %#x", bytes, magic);
	}
	if (version != WF_VERBS_VERSION) {
		return wf_fail(WEFT_PROTOCOL, "private data: version %u, and %u is needed", version,
			       WF_VERBS_VERSION);
	}
	if (type < WF_VERBS_REQUEST || type > WF_VERBS_DENY) {
		return wf_fail(WEFT_PROTOCOL, "private data: type %u", type);
	}
	struct wf_verbs_private p = {.type = (enum wf_verbs_private_type)type};
	p.blob_bytes = wf_get_u8(&r);
	p.features = wf_get_u8(&r);
	p.credits = wf_get_u16(&r);
	uint16_t reserved = wf_get_u16(&r);
	p.mark = wf_get_u32(&r);
	uint64_t authentication = wf_get_u64(&r);
	p.put_bytes_max = wf_get_u64(&r);
	enum weft_status st = check_private(&p, reserved, authentication);
	if (st != WEFT_OK) {
		return st;
	}
	wf_get_bytes(&r, p.blob, p.blob_bytes);
	if (r.bad) {
		return wf_fail(WEFT_PROTOCOL, "private data: %zu bytes, and %u are needed", bytes,
			       HEAD_BYTES + p.blob_bytes);
	}
	*out = p;
	return WEFT_OK;
}

void
wf_verbs_frame_encode(const struct wf_verbs_frame *frame, uint8_t out[WF_VERBS_FRAME_BYTES])
{
	const struct wf_head *head = &frame->head;
	struct wf_writer w = {.base = out, .capacity = WF_VERBS_FRAME_BYTES};
	wf_put_u8(&w, (uint8_t)frame->kind);
	wf_put_u8(&w, head->service);
	wf_put_u8(&w, head->type);
	wf_put_u8(&w, head->flags);
	wf_put_u32(&w, (uint32_t)head->body_bytes);
	wf_put_u64(&w, head->request_id);
	wf_put_u64(&w, head->step);
	wf_put_u32(&w, head->slice);
	wf_put_u32(&w, head->region);
	wf_put_u64(&w, head->offset);
	wf_put_u64(&w, head->epoch);
	wf_put_u32(&w, head->payload_crc);
	wf_put_u32(&w, frame->credits);
	wf_put_u64(&w, frame->put_bytes);
	WF_ASSERT(!w.bad && w.used == WF_VERBS_FRAME_BYTES);
}

static bool
kind_has_body(enum wf_verbs_frame_kind kind)
{
	return kind == WF_VERBS_MESSAGE || kind == WF_VERBS_HELLO || kind == WF_VERBS_ACCEPTS ||
	       kind == WF_VERBS_REFUSES;
}

static enum weft_status
check_frame(const struct wf_verbs_frame *frame, size_t bytes)
{
	const struct wf_head *head = &frame->head;
	if (head->body_bytes != bytes - WF_VERBS_FRAME_BYTES ||
	    (head->body_bytes > 0 && !kind_has_body(frame->kind)) ||
	    head->body_bytes > WF_MSG_BODY_MAX) {
		return wf_fail(WEFT_PROTOCOL, "frame: %zu bytes, kind %d, a body of %llu bytes",
			       bytes, (int)frame->kind, (unsigned long long)head->body_bytes);
	}
	unsigned known = frame->kind == WF_VERBS_MESSAGE ? WF_HEAD_FLAGS_KNOWN
			 : frame->kind == WF_VERBS_PUT   ? WF_VERBS_UNWRITTEN
							 : 0;
	if ((head->flags & ~known) != 0) {
		return wf_fail(WEFT_PROTOCOL, "frame: kind %d, flags %#x", (int)frame->kind,
			       head->flags);
	}
	if ((frame->kind == WF_VERBS_MESSAGE) == (head->service == WF_SERVICE_TRANSPORT)) {
		return wf_fail(WEFT_PROTOCOL, "frame: kind %d for service %u", (int)frame->kind,
			       head->service);
	}
	return WEFT_OK;
}

enum weft_status
wf_verbs_frame_decode(const uint8_t *in, size_t bytes, struct wf_verbs_frame *out)
{
	if (bytes < WF_VERBS_FRAME_BYTES) {
		return wf_fail(WEFT_PROTOCOL, "frame: %zu bytes", bytes);
	}
	struct wf_reader r = {.base = in, .bytes = WF_VERBS_FRAME_BYTES};
	uint8_t kind = wf_get_u8(&r);
	if (kind == 0 || kind > WF_VERBS_KIND_MAX) {
		return wf_fail(WEFT_PROTOCOL, "frame: kind %u", kind);
	}
	struct wf_verbs_frame frame = {.kind = (enum wf_verbs_frame_kind)kind};
	struct wf_head *head = &frame.head;
	head->version = WF_WIRE_VERSION;
	head->service = wf_get_u8(&r);
	head->type = wf_get_u8(&r);
	head->flags = wf_get_u8(&r);
	head->body_bytes = wf_get_u32(&r);
	head->request_id = wf_get_u64(&r);
	head->step = wf_get_u64(&r);
	head->slice = wf_get_u32(&r);
	head->region = wf_get_u32(&r);
	head->offset = wf_get_u64(&r);
	head->epoch = wf_get_u64(&r);
	head->payload_crc = wf_get_u32(&r);
	frame.credits = wf_get_u32(&r);
	frame.put_bytes = wf_get_u64(&r);
	WF_ASSERT(wf_reader_done(&r));
	enum weft_status st = check_frame(&frame, bytes);
	if (st == WEFT_OK) {
		*out = frame;
	}
	return st;
}

/* ---- keys ---- */

static unsigned
log2_of(uint32_t power)
{
	return (unsigned)__builtin_ctz(power);
}

/* u24 mark, u8 0 for a place, else 1 + log2 of the slots, u32 rkey, u48 address, u48 bytes. */
void
wf_verbs_key_write(const struct wf_verbs_key *k, struct wf_grant_key *out)
{
	WF_ASSERT(k->mark <= WF_VERBS_MARK_MAX);
	WF_ASSERT(k->at <= KEY_48_BITS && k->bytes <= KEY_48_BITS);
	struct wf_writer w = {
		.base = out->bytes + WF_GRANT_KEY_USED_BYTES,
		.capacity = WF_GRANT_KEY_BYTES - WF_GRANT_KEY_USED_BYTES,
	};
	uint32_t shape = k->slots == 0 ? 0 : 1 + log2_of(k->slots);
	wf_put_u32(&w, k->mark | shape << 24);
	wf_put_u32(&w, k->rkey);
	wf_put_u32(&w, (uint32_t)k->at);
	wf_put_u16(&w, (uint16_t)(k->at >> 32));
	wf_put_u16(&w, (uint16_t)(k->bytes >> 32));
	wf_put_u32(&w, (uint32_t)k->bytes);
	WF_ASSERT(!w.bad && w.used == w.capacity);
}

void
wf_verbs_key_read(const struct wf_grant_key *key, struct wf_verbs_key *out)
{
	const uint8_t *at = key->bytes + WF_GRANT_KEY_USED_BYTES;
	WF_STATIC_ASSERT(WF_GRANT_KEY_USED_BYTES + 20 == WF_GRANT_KEY_BYTES, "as written above");
	uint32_t first = wf_load_u32(at);
	unsigned shape = first >> 24;
	out->mark = first & WF_VERBS_MARK_MAX;
	out->slots = shape == 0 || shape > 11 ? 0 : 1u << (shape - 1);
	out->rkey = wf_load_u32(at + 4);
	out->at = wf_load_u32(at + 8) | (uint64_t)wf_load_u16(at + 12) << 32;
	out->bytes = wf_load_u32(at + 16) | (uint64_t)wf_load_u16(at + 14) << 32;
}
