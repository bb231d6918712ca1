/* SPDX-License-Identifier: Apache-2.0 */
/* packer: text is collected, packed and written in pieces of 256 KiB. Thread: the caller's. */
#include "tools/data/packer.h"

#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "base/assert.h"

#define PIECE_BYTES (256u << 10)
#define GZIP_WINDOW_BITS 31 /* 15, and 16 for gzip's header and trailer */
#define GZIP_MEMORY_LEVEL 8 /* zlib's default */

struct wf_packer {
	struct wf_env *env;
	enum wf_packing packing;
	struct wf_saved_file *file; /* lent */
	size_t count;               /* bytes of `text` that are not written */
	z_stream zlib;
	ZSTD_CCtx *zstd;
	uint8_t text[PIECE_BYTES];
	uint8_t packed[PIECE_BYTES];
};

static enum weft_status
open_compressor(struct wf_packer *packer)
{
	bool is_open = true;

	if (packer->packing == WF_PACKING_GZIP) {
		is_open = deflateInit2(&packer->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
				       GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
				       Z_DEFAULT_STRATEGY) == Z_OK;
	} else if (packer->packing == WF_PACKING_ZSTD) {
		packer->zstd = ZSTD_createCCtx();
		is_open =
			packer->zstd != NULL &&
			!ZSTD_isError(ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_checksumFlag, 1));
	}
	return is_open ? WEFT_OK : wf_fail(WEFT_NOMEM, "no memory to compress with");
}

enum weft_status
wf_packer_open(struct wf_env *env, enum wf_packing packing, struct wf_packer **out)
{
	struct wf_packer *packer = wf_zalloc(env, sizeof(*packer));

	if (packer == NULL) {
		return wf_fail(WEFT_NOMEM, "%zu bytes to write with", sizeof(*packer));
	}
	packer->env = env;
	packer->packing = packing;
	enum weft_status st = open_compressor(packer);
	if (st != WEFT_OK) {
		wf_packer_close(packer);
		return st;
	}
	*out = packer;
	return WEFT_OK;
}

void
wf_packer_close(struct wf_packer *packer)
{
	if (packer == NULL) {
		return;
	}
	if (packer->packing == WF_PACKING_GZIP) {
		(void)deflateEnd(&packer->zlib); /* refuses one that is not open */
	}
	(void)ZSTD_freeCCtx(packer->zstd); /* accepts NULL */
	wf_free(packer->env, packer, sizeof(*packer));
}

void
wf_packer_begin(struct wf_packer *packer, struct wf_saved_file *file)
{
	WF_ASSERT(packer->file == NULL && packer->count == 0);
	packer->file = file;
	if (packer->packing == WF_PACKING_GZIP) {
		int code = deflateReset(&packer->zlib);
		WF_ASSERT(code == Z_OK);
	}
}

static enum weft_status
deflate_text(struct wf_packer *packer, bool is_last)
{
	z_stream *zlib = &packer->zlib;
	enum weft_status st = WEFT_OK;

	zlib->next_in = packer->text;
	zlib->avail_in = (uInt)packer->count;
	do {
		zlib->next_out = packer->packed;
		zlib->avail_out = PIECE_BYTES;
		int code = deflate(zlib, is_last ? Z_FINISH : Z_NO_FLUSH);
		WF_ASSERT(code != Z_STREAM_ERROR);
		st = wf_saved_file_write(packer->file, packer->packed,
					 PIECE_BYTES - zlib->avail_out);
	} while (st == WEFT_OK && zlib->avail_out == 0);
	return st;
}

static enum weft_status
zstd_text(struct wf_packer *packer, bool is_last)
{
	ZSTD_inBuffer in = {.src = packer->text, .size = packer->count};
	size_t left = 0;

	do {
		ZSTD_outBuffer out = {.dst = packer->packed, .size = PIECE_BYTES};
		left = ZSTD_compressStream2(packer->zstd, &out, &in,
					    is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left)) {
			return wf_fail(WEFT_NOMEM, "%s: zstd: %s", packer->file->path,
				       ZSTD_getErrorName(left));
		}
		enum weft_status st = wf_saved_file_write(packer->file, packer->packed, out.pos);
		if (st != WEFT_OK) {
			return st;
		}
	} while (is_last ? left > 0 : in.pos < in.size);
	return WEFT_OK;
}

/* Writes the text that was collected. */
static enum weft_status
write_text(struct wf_packer *packer, bool is_last)
{
	enum weft_status st = WEFT_OK;

	switch (packer->packing) {
	case WF_PACKING_NONE:
		st = wf_saved_file_write(packer->file, packer->text, packer->count);
		break;
	case WF_PACKING_GZIP:
		st = deflate_text(packer, is_last);
		break;
	case WF_PACKING_ZSTD:
		st = zstd_text(packer, is_last);
		break;
	}
	packer->count = 0;
	return st;
}

enum weft_status
wf_packer_write(struct wf_packer *packer, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	while (count > 0) {
		size_t room = PIECE_BYTES - packer->count;
		size_t piece = count < room ? count : room;
		memcpy(packer->text + packer->count, at, piece);
		packer->count += piece;
		at += piece;
		count -= piece;
		if (packer->count == PIECE_BYTES) {
			enum weft_status st = write_text(packer, false);
			if (st != WEFT_OK) {
				return st;
			}
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_packer_finish(struct wf_packer *packer)
{
	enum weft_status st = write_text(packer, true);
	packer->file = NULL;
	return st;
}
