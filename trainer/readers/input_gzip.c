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
	bool is_in_member;
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

/* A member begins where the last one ended, or the file is over. */
static enum weft_status
begin_member(struct wf_input *input, struct gzip *gzip)
{
	enum weft_status st = wf_input_fill(input, MAGIC_BYTES);
	if (st != WEFT_OK || wf_input_have(input) == 0) {
		return st;
	}
	if (!gzip_recognises(input->chunk + input->at, wf_input_have(input))) {
		return wf_input_refuse(input, wf_input_offset(input),
				       "the gzip data are over, but more bytes follow them");
	}
	if (inflateReset(&gzip->z) != Z_OK) {
		return wf_fail(WEFT_INTERNAL, "%s: inflateReset", input->path);
	}
	gzip->is_in_member = true;
	return WEFT_OK;
}

static enum weft_status
check_code(const struct wf_input *input, const struct gzip *gzip, int code)
{
	char why[128];

	if (code == Z_OK || code == Z_STREAM_END) {
		return WEFT_OK;
	}
	if (code == Z_MEM_ERROR) {
		return wf_fail(WEFT_NOMEM, "%s: no memory to decompress with", input->path);
	}
	if (code == Z_BUF_ERROR) { /* there is no input left, and no output to flush */
		return wf_input_refuse(input, wf_input_offset(input),
				       "the gzip data end too early: the file is truncated");
	}
	snprintf(why, sizeof(why), "the gzip data are damaged (%.80s)",
		 gzip->z.msg == NULL ? "?" : gzip->z.msg);
	return wf_input_refuse(input, wf_input_offset(input), why);
}

static enum weft_status
inflate_some(struct wf_input *input, struct gzip *gzip, uint8_t *bytes, size_t room, size_t *got)
{
	z_stream *z = &gzip->z;

	enum weft_status st = wf_input_fill(input, 1);
	if (st != WEFT_OK) {
		return st;
	}
	const uInt room_now = room < ROOM_MAX ? (uInt)room : ROOM_MAX;
	z->next_in = input->chunk + input->at;
	z->avail_in = (uInt)wf_input_have(input);
	z->next_out = bytes;
	z->avail_out = room_now;
	int code = inflate(z, Z_NO_FLUSH);
	input->at = input->end - z->avail_in;
	*got = room_now - z->avail_out;
	gzip->is_in_member = code != Z_STREAM_END;
	return check_code(input, gzip, code);
}

static enum weft_status
gzip_read(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got)
{
	struct gzip *gzip = input->state;
	enum weft_status st = WEFT_OK;

	*got = 0;
	while (st == WEFT_OK && *got == 0) {
		if (!gzip->is_in_member) {
			st = begin_member(input, gzip);
		}
		if (st == WEFT_OK && !gzip->is_in_member) {
			return WEFT_OK; /* the end */
		}
		if (st == WEFT_OK) {
			st = inflate_some(input, gzip, bytes, room, got);
		}
	}
	return st;
}

const struct wf_input_ops wf_input_gzip_ops = {
	.name = "gzip",
	.recognises = gzip_recognises,
	.state_bytes = sizeof(struct gzip),
	.ratio_max = RATIO_MAX,
	.open = gzip_open,
	.read = gzip_read,
	.close = gzip_close,
};
