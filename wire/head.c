/* SPDX-License-Identifier: Apache-2.0 */
/* head: the 64 bytes in front of each message. Thread: any; pure functions. */
#include "wire/head.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/bytes.h"

#define HEAD_CRC_AT 60 /* bytes in front of the head's own CRC: what it covers */

WF_STATIC_ASSERT(WF_HEAD_BYTES == HEAD_CRC_AT + sizeof(uint32_t), "the CRC ends the head");
WF_STATIC_ASSERT(WF_HEAD_BYTES + WF_MSG_BODY_MAX == 4096, "a message fills 4,096 bytes");

void
wf_head_encode(const struct wf_head *head, uint8_t out[WF_HEAD_BYTES])
{
	struct wf_writer w = {.base = out, .capacity = WF_HEAD_BYTES};

	wf_put_u32(&w, WF_WIRE_MAGIC);
	wf_put_u8(&w, head->version == 0 ? WF_WIRE_VERSION : head->version);
	wf_put_u8(&w, head->service);
	wf_put_u8(&w, head->type);
	wf_put_u8(&w, head->flags);
	wf_put_u64(&w, head->body_bytes);
	wf_put_u64(&w, head->request_id);
	wf_put_u64(&w, head->step);
	wf_put_u32(&w, head->slice);
	wf_put_u32(&w, head->region);
	wf_put_u64(&w, head->offset);
	wf_put_u64(&w, head->epoch);
	wf_put_u32(&w, head->payload_crc);
	WF_ASSERT(w.used == HEAD_CRC_AT);
	wf_put_u32(&w, wf_crc32c(0, out, HEAD_CRC_AT));
	WF_ASSERT(!w.bad);
}

static void
read_fields(struct wf_reader *r, struct wf_head *head)
{
	head->version = wf_get_u8(r);
	head->service = wf_get_u8(r);
	head->type = wf_get_u8(r);
	head->flags = wf_get_u8(r);
	head->body_bytes = wf_get_u64(r);
	head->request_id = wf_get_u64(r);
	head->step = wf_get_u64(r);
	head->slice = wf_get_u32(r);
	head->region = wf_get_u32(r);
	head->offset = wf_get_u64(r);
	head->epoch = wf_get_u64(r);
	head->payload_crc = wf_get_u32(r);
}

/* Bytes that are nothing of ours, or were damaged on the way. */
static enum weft_status
check_integrity(const uint8_t *in, uint32_t magic, const struct wf_head *head, uint32_t head_crc)
{
	if (magic != WF_WIRE_MAGIC) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: magic is 0x%08" PRIx32 ", a peer of weft sends 0x%08x", magic,
			       WF_WIRE_MAGIC);
	}
	if (head->version < WF_WIRE_VERSION_MIN || head->version > WF_WIRE_VERSION) {
		return wf_fail(WEFT_PROTOCOL, "head: version is %u, this end speaks %u to %u",
			       head->version, WF_WIRE_VERSION_MIN, WF_WIRE_VERSION);
	}
	uint32_t computed = wf_crc32c(0, in, HEAD_CRC_AT);
	if (head_crc != computed) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: head_crc is 0x%08" PRIx32 ", its bytes give 0x%08" PRIx32,
			       head_crc, computed);
	}
	return WEFT_OK;
}

static enum weft_status
check_fields(const struct wf_head *head)
{
	if (head->service > WF_SERVICE_SPARSE) {
		return wf_fail(WEFT_PROTOCOL, "head: service is %u, known are 0 to %u",
			       head->service, WF_SERVICE_SPARSE);
	}
	if ((head->flags & ~WF_HEAD_FLAGS_KNOWN) != 0) {
		return wf_fail(WEFT_PROTOCOL, "head: flags is 0x%02x, known are 0x%02x",
			       head->flags, WF_HEAD_FLAGS_KNOWN);
	}
	if ((head->flags & WF_HEAD_PAYLOAD_CRC) == 0 && head->payload_crc != 0) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: payload_crc is 0x%08" PRIx32 " without its flag, must be 0",
			       head->payload_crc);
	}
	return WEFT_OK;
}

enum weft_status
wf_head_decode(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max, struct wf_head *out)
{
	struct wf_reader r = {.base = in, .bytes = WF_HEAD_BYTES};
	struct wf_head head = {0};

	uint32_t magic = wf_get_u32(&r);
	read_fields(&r, &head);
	uint32_t head_crc = wf_get_u32(&r);
	WF_ASSERT(wf_reader_done(&r));

	enum weft_status st = check_integrity(in, magic, &head, head_crc);
	if (st != WEFT_OK) {
		return st;
	}
	if (head.body_bytes > body_max) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: body_bytes is %" PRIu64 ", the limit here is %" PRIu64,
			       head.body_bytes, body_max);
	}
	st = check_fields(&head);
	if (st != WEFT_OK) {
		return st;
	}
	*out = head;
	return WEFT_OK;
}
