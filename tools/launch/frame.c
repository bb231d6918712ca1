/* SPDX-License-Identifier: Apache-2.0 */
/* frame: see frame.h. */
#include "tools/launch/frame.h"

#include <string.h>

#include "base/assert.h"

static void
put_number(uint8_t out[4], uint32_t number)
{
	for (int i = 0; i < 4; i++) {
		out[i] = (uint8_t)(number >> (8 * i));
	}
}

static uint32_t
get_number(const uint8_t in[4])
{
	return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

void
wf_frame_begin(struct wf_frame_writer *writer, enum wf_frame_type type)
{
	writer->used = WF_FRAME_HEAD_BYTES;
	writer->overflow = false;
	memset(writer->bytes, 0, WF_FRAME_HEAD_BYTES);
	writer->bytes[0] = (uint8_t)type;
}

void
wf_frame_add_bytes(struct wf_frame_writer *writer, const void *bytes, size_t count)
{
	if (count > sizeof(writer->bytes) - writer->used) {
		writer->overflow = true;
		return;
	}
	memcpy(writer->bytes + writer->used, bytes, count);
	writer->used += count;
}

void
wf_frame_add_number(struct wf_frame_writer *writer, uint32_t number)
{
	uint8_t bytes[4];

	put_number(bytes, number);
	wf_frame_add_bytes(writer, bytes, sizeof(bytes));
}

void
wf_frame_add_text(struct wf_frame_writer *writer, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes > WF_FRAME_BODY_BYTES) {
		writer->overflow = true;
		return;
	}
	wf_frame_add_number(writer, (uint32_t)bytes);
	wf_frame_add_bytes(writer, text, bytes + 1);
}

void
wf_frame_add_texts(struct wf_frame_writer *writer, const struct wf_args *texts)
{
	wf_frame_add_number(writer, texts->count);
	for (unsigned i = 0; i < texts->count; i++) {
		wf_frame_add_text(writer, texts->argv[i]);
	}
}

enum weft_status
wf_frame_end(struct wf_frame_writer *writer)
{
	if (writer->overflow) {
		return wf_fail(WEFT_INVALID,
			       "the arguments and variables of one process are longer than %u "
			       "bytes",
			       WF_FRAME_BODY_BYTES);
	}
	put_number(writer->bytes + 4, (uint32_t)(writer->used - WF_FRAME_HEAD_BYTES));
	return WEFT_OK;
}

static uint8_t *
read_bytes(struct wf_frame *frame, size_t count)
{
	uint8_t *at = frame->body;

	if (frame->bad || count > frame->left) {
		frame->bad = true;
		return NULL;
	}
	frame->body += count;
	frame->left -= count;
	return at;
}

uint32_t
wf_frame_read_number(struct wf_frame *frame)
{
	const uint8_t *at = read_bytes(frame, 4);
	return at != NULL ? get_number(at) : 0;
}

char *
wf_frame_read_text(struct wf_frame *frame)
{
	size_t bytes = wf_frame_read_number(frame);
	uint8_t *at = read_bytes(frame, bytes + 1);

	if (at == NULL || memchr(at, '\0', bytes + 1) != at + bytes) {
		frame->bad = true;
		frame->nothing[0] = '\0';
		return frame->nothing;
	}
	return (char *)at;
}

void
wf_frame_read_texts(struct wf_frame *frame, struct wf_args *out)
{
	uint32_t count = wf_frame_read_number(frame);

	wf_args_init(out);
	if (count >= WF_ARGS_MAX) {
		frame->bad = true;
		return;
	}
	for (uint32_t i = 0; i < count && !frame->bad; i++) {
		wf_args_borrow(out, wf_frame_read_text(frame));
	}
}

enum weft_status
wf_frame_check(const struct wf_frame *frame)
{
	if (frame->bad || frame->left > 0) {
		return wf_fail(WEFT_PROTOCOL, "a message of type %u is malformed", frame->type);
	}
	return WEFT_OK;
}

void *
wf_frame_room(struct wf_frame_stream *stream, size_t *room)
{
	if (stream->done > 0) {
		memmove(stream->bytes, stream->bytes + stream->done, stream->used - stream->done);
		stream->used -= stream->done;
		stream->done = 0;
	}
	*room = sizeof(stream->bytes) - stream->used;
	WF_ASSERT(*room > 0);
	return stream->bytes + stream->used;
}

void
wf_frame_received(struct wf_frame_stream *stream, size_t bytes)
{
	WF_ASSERT(bytes <= sizeof(stream->bytes) - stream->used);
	stream->used += bytes;
}

enum weft_status
wf_frame_next(struct wf_frame_stream *stream, struct wf_frame *out)
{
	uint8_t *at = stream->bytes + stream->done;
	size_t there = stream->used - stream->done;

	/* A type that cannot be is refused at its first byte: what a shell prints may be short. */
	if (there > 0 && (at[0] < WF_FRAME_HELLO || at[0] >= WF_FRAME_TYPE_END)) {
		return wf_fail(WEFT_PROTOCOL, "a message has the unknown type %u", at[0]);
	}
	if (there < WF_FRAME_HEAD_BYTES) {
		return WEFT_AGAIN;
	}
	uint32_t bytes = get_number(at + 4);
	if (at[1] != 0 || at[2] != 0 || at[3] != 0 || bytes > WF_FRAME_BODY_BYTES) {
		return wf_fail(WEFT_PROTOCOL, "a message has a malformed header");
	}
	if (there - WF_FRAME_HEAD_BYTES < bytes) {
		return WEFT_AGAIN;
	}
	stream->done += WF_FRAME_HEAD_BYTES + bytes;
	*out = (struct wf_frame){
		.type = (enum wf_frame_type)at[0], .body = at + WF_FRAME_HEAD_BYTES, .left = bytes};
	return WEFT_OK;
}
