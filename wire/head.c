/* SPDX-License-Identifier: Apache-2.0 */
/* head: the 64 bytes in front of each message. Thread: any; pure functions. */
#include "wire/head.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/little.h"

#define HEAD_CRC_AT 60 /* bytes in front of the head's own CRC: what it covers */

WF_STATIC_ASSERT(WF_HEAD_BYTES == HEAD_CRC_AT + sizeof(uint32_t), "the CRC ends the head");
WF_STATIC_ASSERT(HEAD_CRC_AT == WF_CRC32C_HEAD_BYTES, "and covers what is in front of it");
WF_STATIC_ASSERT(WF_HEAD_BYTES + WF_MSG_BODY_MAX == 4096, "a message fills 4,096 bytes");

/* Offsets: the table in head.h. */
void
wf_head_encode(const struct wf_head *head, uint8_t out[WF_HEAD_BYTES])
{
	wf_store_u32(out, WF_WIRE_MAGIC);
	out[4] = head->version == 0 ? WF_WIRE_VERSION : head->version;
	out[5] = head->service;
	out[6] = head->type;
	out[7] = head->flags;
	wf_store_u64(out + 8, head->body_bytes);
	wf_store_u64(out + 16, head->request_id);
	wf_store_u64(out + 24, head->step);
	wf_store_u32(out + 32, head->slice);
	wf_store_u32(out + 36, head->region);
	wf_store_u64(out + 40, head->offset);
	wf_store_u64(out + 48, head->epoch);
	wf_store_u32(out + 56, head->payload_crc);
	wf_store_u32(out + HEAD_CRC_AT, wf_crc32c_head(out));
}

static void
read_fields(const uint8_t *in, struct wf_head *head)
{
	head->version = in[4];
	head->service = in[5];
	head->type = in[6];
	head->flags = in[7];
	head->body_bytes = wf_load_u64(in + 8);
	head->request_id = wf_load_u64(in + 16);
	head->step = wf_load_u64(in + 24);
	head->slice = wf_load_u32(in + 32);
	head->region = wf_load_u32(in + 36);
	head->offset = wf_load_u64(in + 40);
	head->epoch = wf_load_u64(in + 48);
	head->payload_crc = wf_load_u32(in + 56);
}

/* Bytes that are nothing of ours, or were damaged on the way. */
static enum weft_status
check_integrity(const uint8_t *in)
{
	uint32_t magic = wf_load_u32(in);
	uint8_t version = in[4];
	uint32_t head_crc = wf_load_u32(in + HEAD_CRC_AT);
	if (magic != WF_WIRE_MAGIC) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: magic is 0x%08" PRIx32 ", a peer of weft sends 0x%08x", magic,
			       WF_WIRE_MAGIC);
	}
	if (version < WF_WIRE_VERSION_MIN || version > WF_WIRE_VERSION) {
		return wf_fail(WEFT_PROTOCOL, "head: version is %u, this end speaks %u to %u",
			       version, WF_WIRE_VERSION_MIN, WF_WIRE_VERSION);
	}
	uint32_t computed = wf_crc32c_head(in);
	if (head_crc != computed) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: head_crc is 0x%08" PRIx32 ", its bytes give 0x%08" PRIx32,
			       head_crc, computed);
	}
	return WEFT_OK;
}

static enum weft_status
check_fields(const struct wf_head *head, uint64_t body_max)
{
	if (head->body_bytes > body_max) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: body_bytes is %" PRIu64 ", the limit here is %" PRIu64,
			       head->body_bytes, body_max);
	}
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
	enum weft_status st = check_integrity(in);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_head head; /* `out` is written on WEFT_OK only */
	read_fields(in, &head);
	st = check_fields(&head, body_max);
	if (st == WEFT_OK) {
		*out = head;
	}
	return st;
}
