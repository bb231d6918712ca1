/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats of input.h have in common: the stored bytes of a file, in chunks, and how a file
 * is refused. To add a format: a file input_NAME.c with its wf_input_ops, and its line in the table
 * of input.c. Thread: the input's owner. */
#pragma once

#include <stdbool.h>

#include "trainer/readers/input.h"

#define WF_INPUT_CHUNK_BYTES (128u << 10)
#define WF_INPUT_HEAD_BYTES 10u /* that a format is recognised by, at most */

struct wf_input_frames;
struct wf_input_room;

struct wf_input_ops {
	const char *name;
	/* The first min(WF_INPUT_HEAD_BYTES, size) bytes of a file are of this format. */
	bool (*recognises)(const uint8_t *head, size_t count);
	size_t state_bytes; /* of wf_input.state, which is zeroed before open */
	uint32_t ratio_max; /* the most bytes that one stored byte can become */
	/* On failure close is called too. */
	enum weft_status (*open)(struct wf_input *input);
	/* At least one byte, or 0 at the end of the file. */
	enum weft_status (*read)(struct wf_input *input, uint8_t *bytes, size_t room, size_t *got);
	void (*close)(struct wf_input *input);
	const struct wf_input_frames *frames; /* of a format that wf_input_read_frames reads */
};

/* A format of frames (gzip calls them members) that follow each other and that a library unpacks.
 */
struct wf_input_frames {
	size_t magic_bytes; /* that a frame begins with; at most WF_INPUT_HEAD_BYTES */
	/* Makes the library expect a frame; NULL: it does so by itself. */
	enum weft_status (*begin)(struct wf_input *input);
	/* Unpacks stored bytes that are in the chunk, and consumes them; there are none where the
	 * file ends. Sets `*is_over` where the frame ends. */
	enum weft_status (*unpack)(struct wf_input *input, struct wf_input_room *room,
				   bool *is_over);
};

/* Where unpacked bytes go. */
struct wf_input_room {
	uint8_t *bytes;
	size_t count;
	size_t used;
};

struct wf_input {
	struct wf_env *env;
	const char *path; /* lent */
	int fd;
	uint64_t file_bytes;     /* when it was opened */
	struct timespec changed; /* likewise: the last change before */
	uint64_t read_bytes;     /* of the file, into the chunk and past it */
	const struct wf_input_ops *ops;
	void *state; /* of the format */
	bool is_in_frame;
	uint8_t *chunk; /* [WF_INPUT_CHUNK_BYTES] */
	size_t at;      /* first byte of the chunk that the format has not consumed */
	size_t end;     /* behind the last byte of the chunk that was read */
};

extern const struct wf_input_ops wf_input_gzip_ops;
extern const struct wf_input_ops wf_input_other_ops; /* refuses what others packed */
extern const struct wf_input_ops wf_input_recordio_ops;
extern const struct wf_input_ops wf_input_zstd_ops;

/* Stored bytes that are in the chunk and not consumed. */
static inline size_t
wf_input_have(const struct wf_input *input)
{
	return input->end - input->at;
}

/* The offset in the file of the first byte that is not consumed. */
static inline uint64_t
wf_input_offset(const struct wf_input *input)
{
	return input->read_bytes - wf_input_have(input);
}

/* Makes at least `want` stored bytes lie at chunk[at], or all that are left if these are fewer.
 * WEFT_DATA: the file became shorter; WEFT_IO */
enum weft_status wf_input_fill(struct wf_input *input, size_t want) WEFT_MUST_CHECK;
/* The `read` of a format of frames. */
enum weft_status wf_input_read_frames(struct wf_input *input, uint8_t *bytes, size_t room,
				      size_t *got) WEFT_MUST_CHECK;
/* WEFT_DATA: path, offset, `why`. */
enum weft_status wf_input_refuse(const struct wf_input *input, uint64_t offset,
				 const char *why) WEFT_MUST_CHECK;
