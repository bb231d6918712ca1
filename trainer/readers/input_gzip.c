/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952): members, one after the other. zlib inflates, and checks each one's CRC and
 * length. Thread: the input's owner. */
#include <limits.h>
#include <stdio.h>

#include <zlib.h>

#include "trainer/readers/input_internal.h"

#define MAGIC_BYTES 2u
#define GZIP_ONLY 16     /* added to zlib's window bits: expect the frame of gzip */
#define RATIO_MAX 1032u  /* of deflate */
#define ROOM_MAX INT_MAX /* of one call, which counts with an unsigned int */

struct gzip {
	z_stream z;
	bool is_open;
};

static bool
gzip_recognises(const uint8_t *head, size_t count)
{
	return count >= MAGIC_BYTES && head[0] == 0x1f && head[1] == 0x8b;
}

static enum weft_status
gzip_open(struct wf_input *input)
{
	struct gzip *gzip = input->state;

	if (inflateInit2(&gzip->z, MAX_WBITS + GZIP_ONLY) != Z_OK) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", input->path);
	}
	gzip->is_open = true;
	return WEFT_OK;
}

static void
gzip_close(struct wf_input *input)
{
	struct gzip *gzip = input->state;

	if (gzip->is_open) {
		(void)inflateEnd(&gzip->z);
	}
}

static enum weft_status
begin_member(struct wf_input *input)
{
	struct gzip *gzip = input->state;

	return inflateReset(&gzip->z) == Z_OK
		       ? WEFT_OK
		       : wf_fail(WEFT_INTERNAL, "%s: inflateReset", input->path);
}

/* Z_BUF_ERROR: there is no input left, and no output to flush. */
static enum weft_status
check_code(const struct wf_input *input, const struct gzip *gzip, int code)
{
	char why[128];

	if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) {
		return WEFT_OK;
	}
	if (code == Z_MEM_ERROR) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", input->path);
	}
	snprintf(why, sizeof(why), "the gzip data are damaged (%.80s)",
		 gzip->z.msg == NULL ? "?" : gzip->z.msg);
	return wf_input_refuse(input, wf_input_offset(input), why);
}

static enum weft_status
unpack_member(struct wf_input *input, struct wf_input_room *room, bool *is_over)
{
	struct gzip *gzip = input->state;
	z_stream *z = &gzip->z;

	const uInt room_now = room->count < ROOM_MAX ? (uInt)room->count : ROOM_MAX;
	z->next_in = input->chunk + input->at;
	z->avail_in = (uInt)wf_input_have(input);
	z->next_out = room->bytes;
	z->avail_out = room_now;
	int code = inflate(z, Z_NO_FLUSH);
	input->at = input->end - z->avail_in;
	room->used = room_now - z->avail_out;
	*is_over = code == Z_STREAM_END;
	return check_code(input, gzip, code);
}

static const struct wf_input_frames members = {
	.magic_bytes = MAGIC_BYTES,
	.begin = begin_member,
	.unpack = unpack_member,
};

const struct wf_input_ops wf_input_gzip_ops = {
	.name = "gzip",
	.recognises = gzip_recognises,
	.state_bytes = sizeof(struct gzip),
	.ratio_max = RATIO_MAX,
	.open = gzip_open,
	.read = wf_input_read_frames,
	.close = gzip_close,
	.frames = &members,
};
