/* SPDX-License-Identifier: Apache-2.0 */
/* zlib inflates; ranges, ends and reasons are handled here. Thread: the caller's. */
#include "saved/unpack.h"

#include <inttypes.h>
#include <limits.h>

#include "base/assert.h"

enum weft_status
wf_unpack_open(struct wf_unpack *out, struct wf_saved_file *file, uint64_t at,
	       uint64_t stored_bytes, bool is_deflated)
{
	out->file = file;
	out->at = at;
	out->left = stored_bytes;
	out->zip_crc = 0;
	out->is_deflated = is_deflated;
	out->is_over = false;
	out->inflater = (z_stream){0};
	/* Negative: without the frame of zlib's own format. */
	if (is_deflated && inflateInit2(&out->inflater, -MAX_WBITS) != Z_OK) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", file->path);
	}
	return WEFT_OK;
}

static enum weft_status
read_stored(struct wf_unpack *unpack, uint8_t *bytes, size_t count)
{
	if (count > unpack->left) {
		return wf_fail(WEFT_DATA, "%s: an array ends %zu bytes too early",
			       unpack->file->path, (size_t)(count - unpack->left));
	}
	enum weft_status st = wf_saved_file_read_at(unpack->file, unpack->at, bytes, count);
	if (st == WEFT_OK) {
		unpack->at += count;
		unpack->left -= count;
	}
	return st;
}

/* More stored bytes for the inflater. */
static enum weft_status
refill(struct wf_unpack *unpack)
{
	const size_t count =
		unpack->left < WF_UNPACK_CHUNK_BYTES ? (size_t)unpack->left : WF_UNPACK_CHUNK_BYTES;

	WF_ASSERT(count > 0);
	enum weft_status st = read_stored(unpack, unpack->chunk, count);
	unpack->inflater.next_in = unpack->chunk;
	unpack->inflater.avail_in = (uInt)count;
	return st;
}

/* The result of inflate(). Without a stored byte left it may still owe some of what it was given;
 * it has nothing more when it reports that it cannot continue. */
static enum weft_status
check_code(struct wf_unpack *unpack, int code)
{
	const z_stream *z = &unpack->inflater;

	unpack->is_over = code == Z_STREAM_END;
	if (code == Z_OK || code == Z_STREAM_END) {
		return WEFT_OK;
	}
	if (code == Z_MEM_ERROR) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", unpack->file->path);
	}
	if (code == Z_BUF_ERROR && z->avail_in == 0 && unpack->left == 0) {
		return wf_fail(WEFT_DATA, "%s: deflated data end too early", unpack->file->path);
	}
	return wf_fail(WEFT_DATA, "%s: deflated data are damaged (%s)", unpack->file->path,
		       z->msg == NULL ? "?" : z->msg);
}

/* Inflate until the room is full or the data are over. */
static enum weft_status
inflate_into(struct wf_unpack *unpack, uint8_t *bytes, uInt room)
{
	z_stream *z = &unpack->inflater;
	enum weft_status st = WEFT_OK;

	z->next_out = bytes;
	z->avail_out = room;
	while (st == WEFT_OK && z->avail_out > 0 && !unpack->is_over) {
		if (z->avail_in == 0 && unpack->left > 0) {
			st = refill(unpack);
		}
		if (st == WEFT_OK) {
			st = check_code(unpack, inflate(z, Z_NO_FLUSH));
		}
	}
	return st;
}

static enum weft_status
read_deflated(struct wf_unpack *unpack, uint8_t *bytes, size_t count)
{
	WF_ASSERT(count <= UINT_MAX);
	enum weft_status st = inflate_into(unpack, bytes, (uInt)count);
	if (st == WEFT_OK && unpack->inflater.avail_out > 0) {
		return wf_fail(WEFT_DATA, "%s: an array ends %u bytes too early",
			       unpack->file->path, unpack->inflater.avail_out);
	}
	return st;
}

enum weft_status
wf_unpack_read(struct wf_unpack *unpack, void *bytes, size_t count)
{
	enum weft_status st = unpack->is_deflated ? read_deflated(unpack, bytes, count)
						  : read_stored(unpack, bytes, count);
	if (st == WEFT_OK) {
		unpack->zip_crc = (uint32_t)crc32_z(unpack->zip_crc, bytes, count);
	}
	return st;
}

enum weft_status
wf_unpack_end(struct wf_unpack *unpack)
{
	uint8_t more;
	uint64_t left = unpack->left;

	if (unpack->is_deflated) {
		/* The mark of the end may still be in front of us. */
		enum weft_status st = inflate_into(unpack, &more, sizeof(more));
		if (st != WEFT_OK) {
			return st;
		}
		left = unpack->left + unpack->inflater.avail_in +
		       (sizeof(more) - unpack->inflater.avail_out);
	}
	if (left > 0) {
		return wf_fail(WEFT_DATA, "%s: %" PRIu64 " bytes are left over after an array",
			       unpack->file->path, left);
	}
	return WEFT_OK;
}

void
wf_unpack_close(struct wf_unpack *unpack)
{
	if (unpack->is_deflated) {
		(void)inflateEnd(&unpack->inflater);
	}
}
