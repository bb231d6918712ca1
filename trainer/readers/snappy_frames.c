/* SPDX-License-Identifier: Apache-2.0 */
/* Snappy's framing format: a stream identifier, then frames of at most 64 KiB of text, each with a
 * type, 24 bits of length and the masked CRC-32C of its text. libsnappy knows blocks only.
 * Source: framing_format.txt of Snappy. Thread: the caller's. */
#include <string.h>

#include <snappy-c.h>

#include "base/crc32c.h"
#include "trainer/readers/payload.h"

#define TEXT_BYTES_MAX 65536u
#define HEAD_BYTES 4u /* type and length */
#define CRC_BYTES 4u

enum frame_type {
	FRAME_SNAPPY = 0x00,
	FRAME_PLAIN = 0x01,
	FRAME_SKIPPED = 0x80, /* from here to 0xfd: reserved, and skipped */
	FRAME_IDENTIFIER = 0xff,
};

static const uint8_t identifier[] = {0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y'};

static uint32_t
masked_crc(const uint8_t *text, size_t count)
{
	uint32_t crc = wf_crc32c_long(0, text, count);
	return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void
put_head(uint8_t *at, enum frame_type type, size_t body, uint32_t crc)
{
	const uint8_t head[HEAD_BYTES + CRC_BYTES] = {
		(uint8_t)type, (uint8_t)body,       (uint8_t)(body >> 8), (uint8_t)(body >> 16),
		(uint8_t)crc,  (uint8_t)(crc >> 8), (uint8_t)(crc >> 16), (uint8_t)(crc >> 24),
	};
	memcpy(at, head, sizeof(head));
}

/* Writes one frame to `at`, which has room for the longest; returns its bytes. */
static size_t
pack_frame(const uint8_t *text, size_t count, uint8_t *at)
{
	uint8_t *body = at + HEAD_BYTES + CRC_BYTES;
	size_t packed = snappy_max_compressed_length(count);
	bool is_smaller =
		snappy_compress((const char *)text, count, (char *)body, &packed) == SNAPPY_OK &&
		packed < count - count / 8;

	if (!is_smaller) {
		memcpy(body, text, count);
		packed = count;
	}
	put_head(at, is_smaller ? FRAME_SNAPPY : FRAME_PLAIN, packed + CRC_BYTES,
		 masked_crc(text, count));
	return HEAD_BYTES + CRC_BYTES + packed;
}

enum weft_status
wf_snappy_pack(struct wf_env *env, const struct wf_bytes *in, struct wf_bytes *out)
{
	size_t frames = in->count / TEXT_BYTES_MAX + 1;
	/* A frame that does not shrink is stored as it is; the last may be tried beyond that. */
	size_t room = sizeof(identifier) + in->count + frames * (HEAD_BYTES + CRC_BYTES) +
		      snappy_max_compressed_length(TEXT_BYTES_MAX);

	out->count = 0;
	enum weft_status st = wf_bytes_reserve(env, out, room);
	if (st != WEFT_OK) {
		return st;
	}
	memcpy(out->at, identifier, sizeof(identifier));
	out->count = sizeof(identifier);
	for (size_t done = 0; done < in->count;) {
		size_t count = in->count - done;
		count = count < TEXT_BYTES_MAX ? count : TEXT_BYTES_MAX;
		out->count += pack_frame(in->at + done, count, out->at + out->count);
		done += count;
	}
	return WEFT_OK;
}

/* A frame found in a stream. */
struct frame {
	uint8_t type;
	const uint8_t *body; /* [count], behind the CRC where the frame has text */
	size_t count;
	uint32_t crc;
	size_t text_bytes; /* 0: it has none */
};

static bool
has_text(const struct frame *frame)
{
	return frame->type == FRAME_SNAPPY || frame->type == FRAME_PLAIN;
}

/* Splits the CRC off, and finds out how long the text is. */
static enum weft_status
parse_text_frame(struct frame *frame)
{
	if (frame->count < CRC_BYTES) {
		return wf_fail(WEFT_DATA, "a snappy frame has no room for its checksum");
	}
	const uint8_t *crc = frame->body;
	frame->crc =
		crc[0] | (uint32_t)crc[1] << 8 | (uint32_t)crc[2] << 16 | (uint32_t)crc[3] << 24;
	frame->body += CRC_BYTES;
	frame->count -= CRC_BYTES;
	frame->text_bytes = frame->count;
	if (frame->type == FRAME_SNAPPY &&
	    snappy_uncompressed_length((const char *)frame->body, frame->count,
				       &frame->text_bytes) != SNAPPY_OK) {
		return wf_fail(WEFT_DATA, "a snappy frame does not begin with its length");
	}
	if (frame->text_bytes > TEXT_BYTES_MAX) {
		return wf_fail(WEFT_DATA,
			       "a snappy frame has %zu bytes of text; at most %u are valid",
			       frame->text_bytes, TEXT_BYTES_MAX);
	}
	return WEFT_OK;
}

static enum weft_status
parse_frame(const struct wf_bytes *in, size_t *at, struct frame *out)
{
	const uint8_t *head = in->at + *at;
	size_t left = in->count - *at;

	if (left < HEAD_BYTES) {
		return wf_fail(WEFT_DATA, "its snappy stream ends within a frame");
	}
	struct frame frame = {
		.type = head[0],
		.body = head + HEAD_BYTES,
		.count = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16,
	};
	if (frame.count > left - HEAD_BYTES) {
		return wf_fail(WEFT_DATA, "its snappy stream ends within a frame");
	}
	*at += HEAD_BYTES + frame.count;
	if (has_text(&frame)) {
		enum weft_status st = parse_text_frame(&frame);
		if (st != WEFT_OK) {
			return st;
		}
	} else if (frame.type < FRAME_SKIPPED) {
		return wf_fail(WEFT_DATA,
			       "a snappy frame has the type 0x%02x, which is not defined",
			       frame.type);
	} else if (frame.type == FRAME_IDENTIFIER &&
		   (frame.count != sizeof(identifier) - HEAD_BYTES ||
		    memcmp(frame.body, identifier + HEAD_BYTES, frame.count) != 0)) {
		return wf_fail(WEFT_DATA, "its snappy stream has a wrong identifier");
	}
	*out = frame;
	return WEFT_OK;
}

/* Walks all frames: how many bytes of text there are. */
static enum weft_status
measure(const struct wf_bytes *in, size_t *out)
{
	size_t total = 0;
	bool is_first = true;

	for (size_t at = 0; at < in->count; is_first = false) {
		struct frame frame = {0};
		enum weft_status st = parse_frame(in, &at, &frame);
		if (st != WEFT_OK) {
			return st;
		}
		if (is_first && frame.type != FRAME_IDENTIFIER) {
			return wf_fail(WEFT_DATA, "its snappy stream does not begin with the "
						  "identifier");
		}
		total += frame.text_bytes;
		if (total > WF_RECORDIO_CHUNK_BYTES_MAX) {
			return wf_fail(WEFT_DATA, "it has more than %u bytes unpacked",
				       WF_RECORDIO_CHUNK_BYTES_MAX);
		}
	}
	*out = total;
	return WEFT_OK;
}

static enum weft_status
unpack_frame(const struct frame *frame, uint8_t *text)
{
	size_t count = frame->text_bytes;

	if (frame->type == FRAME_PLAIN) {
		memcpy(text, frame->body, count);
	} else if (snappy_uncompress((const char *)frame->body, frame->count, (char *)text,
				     &count) != SNAPPY_OK) {
		return wf_fail(WEFT_DATA, "a snappy frame is damaged");
	}
	if (masked_crc(text, count) != frame->crc) {
		return wf_fail(WEFT_DATA, "the checksum of a snappy frame is wrong");
	}
	return WEFT_OK;
}

enum weft_status
wf_snappy_unpack(struct wf_env *env, const struct wf_bytes *in, struct wf_bytes *out)
{
	size_t total = 0;

	out->count = 0;
	enum weft_status st = measure(in, &total);
	if (st == WEFT_OK) {
		st = wf_bytes_reserve(env, out, total);
	}
	for (size_t at = 0; st == WEFT_OK && at < in->count;) {
		struct frame frame = {0};
		st = parse_frame(in, &at, &frame);
		if (st == WEFT_OK && has_text(&frame)) {
			st = unpack_frame(&frame, out->at + out->count);
			out->count += frame.text_bytes;
		}
	}
	return st;
}
