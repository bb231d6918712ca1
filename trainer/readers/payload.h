/* SPDX-License-Identifier: Apache-2.0 */
/* payload: packs and unpacks the payloads of RecordIO chunks, in memory that grows as needed and is
 * used again. Thread: each object belongs to its caller. */
#pragma once

#include "base/env.h"
#include "trainer/readers/bytes.h"
#include "trainer/readers/recordio.h"

/* What zlib keeps between two payloads. Start with {0}. */
struct wf_payload_zlib {
	void *stream; /* a z_stream; NULL: none is open */
};

void wf_payload_packer_fini(struct wf_env *env, struct wf_payload_zlib *zlib);
void wf_payload_unpacker_fini(struct wf_env *env, struct wf_payload_zlib *zlib);

/* Replaces `out` by the packed bytes. Not for WF_RECORDIO_NONE, which has no other form. WEFT_NOMEM
 */
enum weft_status wf_payload_pack(struct wf_env *env, struct wf_payload_zlib *zlib,
				 enum wf_recordio_compressor compressor, const struct wf_bytes *in,
				 struct wf_bytes *out) WEFT_MUST_CHECK;
/* The reverse. WEFT_DATA: `in` is damaged, or has more than WF_RECORDIO_CHUNK_BYTES_MAX unpacked;
 * the text is the reason alone. WEFT_NOMEM */
enum weft_status wf_payload_unpack(struct wf_env *env, struct wf_payload_zlib *zlib,
				   enum wf_recordio_compressor compressor,
				   const struct wf_bytes *in, struct wf_bytes *out) WEFT_MUST_CHECK;

/* Snappy's framing format, by which the two above stand. */
enum weft_status wf_snappy_pack(struct wf_env *env, const struct wf_bytes *in,
				struct wf_bytes *out) WEFT_MUST_CHECK;
enum weft_status wf_snappy_unpack(struct wf_env *env, const struct wf_bytes *in,
				  struct wf_bytes *out) WEFT_MUST_CHECK;
