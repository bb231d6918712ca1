/* SPDX-License-Identifier: Apache-2.0 */
/* verbs_wire: the bytes that verbs ends exchange: private data of the connection manager, and the
 * frames of SEND. Thread: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "transport/transport.h"

/* ---- private data: little-endian, with its length inside, because InfiniBand pads it ----
 *
 * offset size
 *      0    4 magic "WVBS"
 *      4    1 version
 *      5    1 type, enum wf_verbs_private_type
 *      6    1 bytes of the blob that follows the head
 *      7    1 features, enum wf_verbs_feature
 *      8    2 credits: frames that the other end may have in flight
 *     10    2 zero
 *     12    4 mark: goes into the keys that this end makes on this connection; 24 bits, not 0
 *     16    8 authentication; zero, and checked to be zero, until there is one
 *     24    8 put_bytes_max
 *     32      blob */
#define WF_VERBS_MAGIC 0x53425657u
#define WF_VERBS_VERSION 2u
#define WF_VERBS_PRIVATE_MAX 148u  /* in an answer; a request has room for 56 */
#define WF_VERBS_HELLO_SHORT 24u   /* a longer hello follows in a frame */
#define WF_VERBS_VERDICT_SHORT 96u /* so does a longer verdict */
#define WF_VERBS_MARK_MAX 0xffffffu

enum wf_verbs_private_type {
	WF_VERBS_REQUEST = 1, /* blob: the hello, unless it follows */
	WF_VERBS_REPLY = 2,   /* blob: the verdict, unless it follows */
	WF_VERBS_REFUSE = 3,  /* a rejection; blob: the verdict */
	WF_VERBS_DENY = 4,    /* a rejection before the user was asked; blob: the reason as text */
};

enum wf_verbs_feature {
	WF_VERBS_BLOB_FOLLOWS = 1 << 0, /* hello or verdict comes in a frame */
	WF_VERBS_TAKES_IMMEDIATE = 1 << 1,
	WF_VERBS_FEATURES_KNOWN = 3,
};

struct wf_verbs_private {
	enum wf_verbs_private_type type;
	uint8_t features;
	uint16_t credits;
	uint32_t mark;
	uint64_t put_bytes_max;
	uint8_t blob_bytes;
	uint8_t blob[WF_VERBS_VERDICT_SHORT];
};

/* Returns the bytes written. */
size_t wf_verbs_private_encode(const struct wf_verbs_private *p, uint8_t out[WF_VERBS_PRIVATE_MAX]);
/* `bytes` may be more than were sent. WEFT_PROTOCOL names the field and its value. */
enum weft_status wf_verbs_private_decode(const uint8_t *in, size_t bytes,
					 struct wf_verbs_private *out) WEFT_MUST_CHECK;

/* ---- frames: a 64-byte head, and a body of messages, hellos and verdicts ----
 *
 * offset size field          MESSAGE       PUT
 *      0    1 kind
 *      1    1                service       0
 *      2    1                type          0
 *      3    1                flags         WF_VERBS_UNWRITTEN
 *      4    4 body_bytes
 *      8    8                request_id    nonce
 *     16    8                step          bytes
 *     24    4                slice         tag
 *     28    4                region        grant
 *     32    8                offset        offset
 *     40    8                epoch         0
 *     48    4                payload_crc   0
 *     52    4 credits: frames received and freed since the beginning, modulo 2^32
 *     56    8 put_bytes: bytes of PUTs whose notice has no length, since the beginning */
#define WF_VERBS_FRAME_BYTES 64u
/* PUT: the bytes were not written, because it breaks a rule: refuse it. */
#define WF_VERBS_UNWRITTEN 1u

enum wf_verbs_frame_kind {
	WF_VERBS_MESSAGE = 1,
	WF_VERBS_PUT = 2,    /* the bytes were written before it */
	WF_VERBS_CREDIT = 3, /* needs no credit */
	/* Connecting end, first; the other end sends nothing before it arrives. */
	WF_VERBS_START = 4,
	WF_VERBS_HELLO = 5,   /* connecting end; body: the hello */
	WF_VERBS_ACCEPTS = 6, /* accepting end; body: the verdict */
	WF_VERBS_REFUSES = 7, /* accepting end, last; body: the verdict */
	WF_VERBS_CLOSE = 8,   /* the last frame of an end that closes in good order */
	WF_VERBS_KIND_MAX = 8,
};

struct wf_verbs_frame {
	enum wf_verbs_frame_kind kind;
	struct wf_head head; /* its fields as in the table */
	uint32_t credits;
	uint64_t put_bytes;
};

void wf_verbs_frame_encode(const struct wf_verbs_frame *frame, uint8_t out[WF_VERBS_FRAME_BYTES]);
/* `bytes`: head and body together. WEFT_PROTOCOL: the text names what is wrong. */
enum weft_status wf_verbs_frame_decode(const uint8_t *in, size_t bytes,
				       struct wf_verbs_frame *out) WEFT_MUST_CHECK;

/* ---- keys: behind number and nonce (transport/grants.h) ---- */

/* What the sender must know to write into a grant. The end that granted trusts nothing of it. */
struct wf_verbs_key {
	uint32_t mark;  /* of the connection on which it was made */
	uint32_t rkey;  /* of the window or region */
	uint64_t at;    /* remote address; below 2^48 */
	uint64_t bytes; /* of the place, or of one slot; below 2^48 */
	uint32_t slots; /* 0: a place */
};

void wf_verbs_key_write(const struct wf_verbs_key *k, struct wf_grant_key *out);
void wf_verbs_key_read(const struct wf_grant_key *key, struct wf_verbs_key *out);
