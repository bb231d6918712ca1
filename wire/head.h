/* SPDX-License-Identifier: Apache-2.0 */
/* head: the 64 bytes in front of each message, and of each frame on a byte stream.
 *
 * offset size field            meaning
 *      0    4 magic            "WEFT", 0x54464557 little-endian
 *      4    1 version          of the wire; WF_WIRE_VERSION
 *      5    1 service          enum wf_service: who the message is for
 *      6    1 type             of the service
 *      7    1 flags            WF_HEAD_PAYLOAD_CRC; unknown bits are refused; flags of a message
 *                              stand in its body
 *      8    8 body_bytes       what follows the head
 *     16    8 request_id       chosen by who asks, repeated by who answers; 0: none
 *     24    8 step             training step; 0: initial values
 *     32    4 slice            dense: ordinal of a slice on its lane; TCP PUT: the tag
 *     36    4 region           TCP PUT: number of the grant
 *     40    8 offset           TCP PUT: offset within the grant
 *     48    8 epoch            membership epoch
 *     56    4 payload_crc      CRC32C of the body, 0 unless flag WF_HEAD_PAYLOAD_CRC
 *     60    4 head_crc         CRC32C of bytes 0..59
 *
 * Little-endian, no padding. A receiver checks magic, version, CRC and the limit on body_bytes
 * before it looks at anything else, and allocates nothing before that. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/crc32c.h"
#include "base/status.h"
#include "wire/little.h"

#define WF_HEAD_BYTES 64
#define WF_HEAD_CRC_AT 60    /* bytes in front of the head's own CRC, which it covers */
#define WF_MSG_BODY_MAX 4032 /* bytes: head and body of a message fill 4,096 */
#define WF_WIRE_MAGIC 0x54464557u
#define WF_WIRE_VERSION 3
#define WF_WIRE_VERSION_MIN 3

enum wf_service {
	WF_SERVICE_TRANSPORT = 0, /* frames of a transport itself; never delivered as MSG */
	/* For every lane: GRANT, CREDIT, RESUME, HAVE, GOODBYE, ABORT, ... */
	WF_SERVICE_CONTROL = 1,
	WF_SERVICE_DENSE = 2,    /* JOB, STEP, PULL, ... */
	WF_SERVICE_SPARSE = 3,   /* TABLE, PUSH, PULL, ... */
	WF_SERVICE_REGISTRY = 4, /* between pservers: JOIN, LOAD, SNAPSHOT, PART, ... */
	WF_SERVICE_WATCH = 5,    /* for whoever asks how a job is: ASK, RECORD, END */
};

enum wf_head_flag {
	WF_HEAD_PAYLOAD_CRC = 1 << 0,
	WF_HEAD_FLAGS_KNOWN = 1,
};

struct wf_head {
	uint8_t version; /* encode: written as WF_WIRE_VERSION when 0 */
	uint8_t service;
	uint8_t type;
	uint8_t flags;
	uint64_t body_bytes;
	uint64_t request_id;
	uint64_t step;
	uint32_t slice;
	uint32_t region;
	uint64_t offset;
	uint64_t epoch;
	uint32_t payload_crc;
};

/* Offsets: the table above. Inlined, so that fields that a frame does not use cost only a store of
 * zeros. */
static inline void
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
	wf_store_u32(out + WF_HEAD_CRC_AT, wf_crc32c_head(out));
}

/* The fields of a head that was checked. Inlined, so that a caller that needs some of them reads
 * only those. */
static inline struct wf_head
wf_head_read(const uint8_t in[WF_HEAD_BYTES])
{
	return (struct wf_head){
		.version = in[4],
		.service = in[5],
		.type = in[6],
		.flags = in[7],
		.body_bytes = wf_load_u64(in + 8),
		.request_id = wf_load_u64(in + 16),
		.step = wf_load_u64(in + 24),
		.slice = wf_load_u32(in + 32),
		.region = wf_load_u32(in + 36),
		.offset = wf_load_u64(in + 40),
		.epoch = wf_load_u64(in + 48),
		.payload_crc = wf_load_u32(in + 56),
	};
}

static inline uint8_t
wf_head_service(const uint8_t in[WF_HEAD_BYTES])
{
	return in[5];
}

/* Fails with WEFT_PROTOCOL: the text names the field that is wrong and its value. */
enum weft_status wf_head_refuse(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max)
	__attribute__((cold)) WEFT_MUST_CHECK;

/* Whether all that is to be checked of a head is right. */
static inline bool
wf_head_is_sound(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max)
{
	const uint8_t version = in[4];
	const uint8_t flags = in[7];
	return wf_load_u32(in) == WF_WIRE_MAGIC && version >= WF_WIRE_VERSION_MIN &&
	       version <= WF_WIRE_VERSION &&
	       wf_load_u32(in + WF_HEAD_CRC_AT) == wf_crc32c_head(in) &&
	       wf_load_u64(in + 8) <= body_max && wf_head_service(in) <= WF_SERVICE_WATCH &&
	       (flags & ~WF_HEAD_FLAGS_KNOWN) == 0 &&
	       ((flags & WF_HEAD_PAYLOAD_CRC) != 0 || wf_load_u32(in + 56) == 0);
}

/* WEFT_PROTOCOL: see wf_head_refuse. `body_max`: limit on body_bytes. Inlined, as part of the cost
 * of every PUT. */
WEFT_MUST_CHECK static inline enum weft_status
wf_head_check(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max)
{
	return wf_head_is_sound(in, body_max) ? WEFT_OK : wf_head_refuse(in, body_max);
}

/* Checks and reads. */
enum weft_status wf_head_decode(const uint8_t in[WF_HEAD_BYTES], uint64_t body_max,
				struct wf_head *out) WEFT_MUST_CHECK;

/* The tag of a PUT: a granted slot (24 bits) and the low 8 bits of the step. */
#define WF_SLOT_MAX 0xffffffu
#define WF_SLOT_NONE UINT32_MAX /* stands for "in no slot" where the number of a slot is kept */

static inline uint32_t
wf_tag(uint32_t slot, uint64_t step)
{
	return (slot << 8) | (uint32_t)(step & 0xff);
}

static inline uint32_t
wf_tag_slot(uint32_t tag)
{
	return tag >> 8;
}

static inline uint8_t
wf_tag_step(uint32_t tag)
{
	return (uint8_t)tag;
}
