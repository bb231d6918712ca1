/* SPDX-License-Identifier: Apache-2.0 */
/* Packed formats whose files are frames, one after the other, and nothing else: gzip's members,
 * zstd's frames. A library unpacks each; what is between them and behind the last is the same for
 * all. Thread: the input's owner. */
#include <stdio.h>

#include "base/assert.h"
#include "trainer/readers/input_internal.h"

#define WHY_BYTES 96u

static enum weft_status
refuse(const struct wf_input *input, const char *what)
{
	char why[WHY_BYTES];

	snprintf(why, sizeof(why), "the %s data %s", input->ops->name, what);
	return wf_input_refuse(input, wf_input_offset(input), why);
}

/* A frame begins where the last one ended, or the file is over. */
static enum weft_status
begin_frame(struct wf_input *input)
{
	const struct wf_input_frames *frames = input->ops->frames;

	WF_ASSERT(frames->magic_bytes <= WF_INPUT_HEAD_BYTES);
	enum weft_status st = wf_input_fill(input, frames->magic_bytes);
	if (st != WEFT_OK || wf_input_have(input) == 0) {
		return st;
	}
	if (!input->ops->recognises(input->chunk + input->at, wf_input_have(input))) {
		return refuse(input, "are over, but more bytes follow them");
	}
	st = frames->begin == NULL ? WEFT_OK : frames->begin(input);
	input->is_in_frame = st == WEFT_OK;
	return st;
}

static enum weft_status
unpack_some(struct wf_input *input, struct wf_input_room *room)
{
	bool is_over = false;

	enum weft_status st = wf_input_fill(input, 1);
	if (st != WEFT_OK) {
		return st;
	}
	const bool is_at_end = wf_input_have(input) == 0;
	st = input->ops->frames->unpack(input, room, &is_over);
	input->is_in_frame = !is_over;
	if (st == WEFT_OK && is_at_end && !is_over && room->used == 0) {
		st = refuse(input, "end too early: the file is truncated");
	}
	return st;
}

enum weft_status
wf_input_read_frames(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got)
{
	struct wf_input_room out = {.bytes = bytes, .count = room};
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && out.used == 0) {
		if (!input->is_in_frame) {
			st = begin_frame(input);
		}
		if (st == WEFT_OK && !input->is_in_frame) {
			break; /* the end */
		}
		if (st == WEFT_OK) {
			st = unpack_some(input, &out);
		}
	}
	*got = out.used;
	return st;
}
