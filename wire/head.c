/* SPDX-License-Identifier: Apache-2.0 */
/* head: the 64 bytes in front of each message. Thread: any; pure functions. */
#include "wire/head.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/little.h"

WF_STATIC_ASSERT(WF_HEAD_BYTES == WF_HEAD_CRC_AT + sizeof(uint32_t), "the CRC ends the head");
WF_STATIC_ASSERT(WF_HEAD_CRC_AT == WF_CRC32C_HEAD_BYTES, "and covers what is in front of it");
WF_STATIC_ASSERT(WF_HEAD_BYTES + WF_MSG_BODY_MAX == 4096, "a message fills 4,096 bytes");

/* Refuses bytes that are not from this protocol, or were damaged in transit. */
static enum weft_status
check_integrity(const uint8_t *in)
{
	uint32_t magic = wf_load_u32(in);
	uint8_t version = in[4];
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
	uint32_t head_crc = wf_load_u32(in + WF_HEAD_CRC_AT);
	if (head_crc != computed) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: head_crc is 0x%08" PRIx32 ", its bytes give 0x%08" PRIx32,
			       head_crc, computed);
	}
	return WEFT_OK;
}

static enum weft_status
refuse_fields(const uint8_t *in, uint64_t body_max)
{
	uint64_t body_bytes = wf_load_u64(in + 8);
	uint8_t service = in[5];
	uint8_t flags = in[7];
	uint32_t payload_crc = wf_load_u32(in + 56);
	if (body_bytes > body_max) {
		return wf_fail(WEFT_PROTOCOL,
			       "head: body_bytes is %" PRIu64 ", the limit here is %" PRIu64,
			       body_bytes, body_max);
	}
	if (service > WF_SERVICE_WATCH) {
		return wf_fail(WEFT_PROTOCOL, "head: service is %u, known are 0 to %u", service,
			       WF_SERVICE_WATCH);
	}
	if ((flags & ~WF_HEAD_FLAGS_KNOWN) != 0) {
		return wf_fail(WEFT_PROTOCOL, "head: flags is 0x%02x, known are 0x%02x", flags,
			       WF_HEAD_FLAGS_KNOWN);
	}
	return wf_fail(WEFT_PROTOCOL,
		       "head: payload_crc is 0x%08" PRIx32 " without its flag, must be 0",
		       payload_crc);
}

enum weft_status
wf_head_refuse(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max)
{
	enum weft_status st = check_integrity(in);
	return st == WEFT_OK ? refuse_fields(in, body_max) : st;
}

enum weft_status
wf_head_decode(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max, struct wf_head *out)
{
	enum weft_status st = wf_head_check(in, body_max);
	if (st == WEFT_OK) {
		*out = wf_head_read(in);
	}
	return st;
}
