/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads: gzip by zlib, and the choice of the compressor. Thread: the caller's. */
#include "trainer/readers/payload.h"

#include <zlib.h>

#include "base/assert.h"

#define GZIP_WINDOW_BITS 31 /* 15, and 16 for gzip's header and trailer */
#define GZIP_MEMORY_LEVEL 8 /* zlib's default */

static void
free_stream(struct wf_env *env, struct wf_payload_zlib *zlib)
{
	wf_free(env, zlib->stream, sizeof(z_stream));
	zlib->stream = NULL;
}

void
wf_payload_packer_fini(struct wf_env *env, struct wf_payload_zlib *zlib)
{
	if (zlib->stream != NULL) {
		(void)deflateEnd(zlib->stream);
		free_stream(env, zlib);
	}
}

void
wf_payload_unpacker_fini(struct wf_env *env, struct wf_payload_zlib *zlib)
{
	if (zlib->stream != NULL) {
		(void)inflateEnd(zlib->stream);
		free_stream(env, zlib);
	}
}

/* A stream of zlib, at its beginning. */
static enum weft_status
start_stream(struct wf_env *env, struct wf_payload_zlib *zlib, bool packs)
{
	if (zlib->stream != NULL) {
		int code = packs ? deflateReset(zlib->stream) : inflateReset(zlib->stream);
		WF_ASSERT(code == Z_OK);
		return WEFT_OK;
	}
	z_stream *stream = wf_zalloc(env, sizeof(*stream));
	if (stream != NULL) {
		zlib->stream = stream;
		int code = packs ? deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
						GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
						Z_DEFAULT_STRATEGY)
				 : inflateInit2(stream, GZIP_WINDOW_BITS);
		if (code == Z_OK) {
			return WEFT_OK;
		}
		free_stream(env, zlib);
	}
	return wf_fail(WEFT_NOMEM, "no memory to compress or decompress with");
}

static enum weft_status
gzip_pack(struct wf_env *env, struct wf_payload_zlib *zlib, const struct wf_bytes *in,
	  struct wf_bytes *out)
{
	enum weft_status st = start_stream(env, zlib, true);
	if (st != WEFT_OK) {
		return st;
	}
	z_stream *stream = zlib->stream;
	st = wf_bytes_reserve(env, out, deflateBound(stream, in->count));
	if (st != WEFT_OK) {
		return st;
	}
	stream->next_in = in->at;
	stream->avail_in = (uInt)in->count;
	stream->next_out = out->at;
	stream->avail_out = (uInt)out->room;
	int code = deflate(stream, Z_FINISH);
	WF_ASSERT(code == Z_STREAM_END); /* it has room for all of it */
	out->count = out->room - stream->avail_out;
	return WEFT_OK;
}

/* Inflates into the room that there is, and makes more where it was too little. A gzip file may be
 * several streams one behind the other. `*is_done`: all of the input is used. */
static enum weft_status
inflate_more(struct wf_env *env, z_stream *stream, struct wf_bytes *out, bool *is_done)
{
	if (out->count > WF_RECORDIO_CHUNK_BYTES_MAX) {
		return wf_fail(WEFT_DATA, "it has more than %u bytes unpacked",
			       WF_RECORDIO_CHUNK_BYTES_MAX);
	}
	size_t twice = 2 * out->room < WF_RECORDIO_CHUNK_BYTES_MAX
			       ? 2 * out->room
			       : WF_RECORDIO_CHUNK_BYTES_MAX + 1;
	enum weft_status st = out->count < out->room ? WEFT_OK : wf_bytes_reserve(env, out, twice);
	if (st != WEFT_OK) {
		return st;
	}
	stream->next_out = out->at + out->count;
	stream->avail_out = (uInt)(out->room - out->count);
	int code = inflate(stream, Z_NO_FLUSH);
	out->count = out->room - stream->avail_out;
	if (code == Z_MEM_ERROR) {
		return wf_fail(WEFT_NOMEM, "no memory to decompress with");
	}
	if (code == Z_STREAM_END) {
		*is_done = stream->avail_in == 0;
		return *is_done || inflateReset(stream) == Z_OK
			       ? WEFT_OK
			       : wf_fail(WEFT_INTERNAL, "zlib cannot begin another stream");
	}
	if (code != Z_OK) { /* Z_BUF_ERROR where there is no input left */
		return wf_fail(WEFT_DATA, "its gzip stream is %s",
			       stream->avail_in == 0 ? "truncated" : "damaged");
	}
	return WEFT_OK;
}

static enum weft_status
gzip_unpack(struct wf_env *env, struct wf_payload_zlib *zlib, const struct wf_bytes *in,
	    struct wf_bytes *out)
{
	bool is_done = in->count == 0;

	enum weft_status st = start_stream(env, zlib, false);
	if (st == WEFT_OK) {
		st = wf_bytes_reserve(env, out, in->count);
	}
	if (st != WEFT_OK) {
		return st;
	}
	z_stream *stream = zlib->stream;
	stream->next_in = in->at;
	stream->avail_in = (uInt)in->count;
	while (st == WEFT_OK && !is_done) {
		st = inflate_more(env, stream, out, &is_done);
	}
	if (st == WEFT_OK && out->count > WF_RECORDIO_CHUNK_BYTES_MAX) {
		st = wf_fail(WEFT_DATA, "it has more than %u bytes unpacked",
			     WF_RECORDIO_CHUNK_BYTES_MAX);
	}
	return st;
}

enum weft_status
wf_payload_pack(struct wf_env *env, struct wf_payload_zlib *zlib,
		enum wf_recordio_compressor compressor, const struct wf_bytes *in,
		struct wf_bytes *out)
{
	WF_ASSERT(compressor == WF_RECORDIO_SNAPPY || compressor == WF_RECORDIO_GZIP);
	out->count = 0;
	return compressor == WF_RECORDIO_SNAPPY ? wf_snappy_pack(env, in, out)
						: gzip_pack(env, zlib, in, out);
}

enum weft_status
wf_payload_unpack(struct wf_env *env, struct wf_payload_zlib *zlib,
		  enum wf_recordio_compressor compressor, const struct wf_bytes *in,
		  struct wf_bytes *out)
{
	WF_ASSERT(compressor == WF_RECORDIO_SNAPPY || compressor == WF_RECORDIO_GZIP);
	out->count = 0;
	return compressor == WF_RECORDIO_SNAPPY ? wf_snappy_unpack(env, in, out)
						: gzip_unpack(env, zlib, in, out);
}
