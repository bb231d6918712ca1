/* SPDX-License-Identifier: Apache-2.0 */
/* source: see source.h. Thread: the caller's. */
#include "tools/data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "trainer/readers/input.h"

#define TEXT_BYTES (256u << 10)                       /* read at once */
#define LINE_ROOM_MAX (WF_SOURCE_LINE_BYTES_MAX + 1u) /* with the line feed */

struct wf_source {
	struct wf_env *env;
	const char *path; /* lent */
	uint64_t unpacked_bytes;
	/* of a text */
	struct wf_input *input; /* NULL: it is RecordIO */
	uint8_t *text;          /* [room] */
	size_t room, at, end;   /* of which [at, end) is not delivered */
	uint64_t line;
	bool is_read; /* to its end */
	/* of RecordIO */
	int fd;
	struct wf_recordio_reader *reader;
	struct wf_recordio_chunk chunk; /* the one that is being delivered */
	bool has_chunk;
	enum wf_recordio_compressor first_compressor;
};

static enum weft_status
open_recordio(struct wf_source *source)
{
	source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (source->fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be opened", source->path);
	}
	return wf_recordio_reader_open(source->env, source->fd, source->path, &source->reader);
}

/* The input is needed to know what the file is, and for text. */
static enum weft_status
open_input(struct wf_source *source)
{
	enum weft_status st = wf_input_open(source->env, source->path, &source->input);
	if (st != WEFT_OK) {
		return st;
	}
	if (strcmp(wf_input_format(source->input), "recordio") == 0) {
		wf_input_close(source->input);
		source->input = NULL;
		return open_recordio(source);
	}
	source->room = TEXT_BYTES;
	source->text = wf_zalloc(source->env, source->room);
	return source->text != NULL ? WEFT_OK
				    : wf_fail(WEFT_NOMEM, "%s: %zu bytes to read it with",
					      source->path, source->room);
}

enum weft_status
wf_source_open(struct wf_env *env, const char *path, struct wf_source **out)
{
	struct wf_source *source = wf_zalloc(env, sizeof(*source));

	if (source == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes to read it with", path, sizeof(*source));
	}
	source->env = env;
	source->path = path;
	source->fd = -1;
	enum weft_status st = open_input(source);
	if (st != WEFT_OK) {
		wf_source_close(source);
		return st;
	}
	*out = source;
	return WEFT_OK;
}

void
wf_source_close(struct wf_source *source)
{
	if (source == NULL) {
		return;
	}
	wf_recordio_reader_close(source->reader);
	if (source->fd >= 0) {
		close(source->fd);
	}
	wf_input_close(source->input);
	wf_free(source->env, source->text, source->room);
	wf_free(source->env, source, sizeof(*source));
}

static enum weft_status
read_record(struct wf_source *source, struct wf_record *out)
{
	struct wf_record record = wf_recordio_chunk_record(source->reader);

	if (record.bytes == NULL) {
		enum weft_status st = wf_recordio_read_chunk(source->reader, &source->chunk);
		if (st != WEFT_OK) {
			return st;
		}
		if (!source->has_chunk && source->chunk.records > 0) {
			source->has_chunk = true;
			source->first_compressor = source->chunk.compressor;
		}
		source->unpacked_bytes += source->chunk.bytes;
		record = wf_recordio_chunk_record(source->reader);
	}
	*out = record;
	return WEFT_OK;
}

/* Room for more text behind what is there: moves it to the front, and doubles the room if that is
 * not enough. */
static enum weft_status
make_room(struct wf_source *source)
{
	size_t have = source->end - source->at;

	if (source->at > 0) {
		memmove(source->text, source->text + source->at, have);
		source->at = 0;
		source->end = have;
	}
	if (source->end < source->room) {
		return WEFT_OK;
	}
	if (source->room == LINE_ROOM_MAX) {
		return wf_fail(WEFT_DATA, "%s: line %" PRIu64 ": has more than %u bytes",
			       source->path, source->line + 1, WF_SOURCE_LINE_BYTES_MAX);
	}
	size_t room = 2 * source->room < LINE_ROOM_MAX ? 2 * source->room : LINE_ROOM_MAX;
	uint8_t *text = wf_zalloc(source->env, room);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes for a line", source->path, room);
	}
	memcpy(text, source->text, have);
	wf_free(source->env, source->text, source->room);
	source->text = text;
	source->room = room;
	return WEFT_OK;
}

/* The line feed that ends the next line, or the end of the text. */
static enum weft_status
find_line_end(struct wf_source *source, const uint8_t **out)
{
	size_t looked_at = 0; /* bytes from `at` that have none */

	for (;;) {
		const uint8_t *from = source->text + source->at;
		size_t have = source->end - source->at;
		const uint8_t *feed = memchr(from + looked_at, '\n', have - looked_at);
		if (feed != NULL || source->is_read) {
			*out = feed != NULL ? feed : source->text + source->end;
			return WEFT_OK;
		}
		looked_at = have;
		enum weft_status st = make_room(source);
		size_t got = 0;
		if (st == WEFT_OK) {
			st = wf_input_read(source->input, source->text + source->end,
					   source->room - source->end, &got);
		}
		if (st != WEFT_OK) {
			return st;
		}
		source->end += got;
		source->is_read = got == 0;
	}
}

static enum weft_status
read_line(struct wf_source *source, struct wf_record *out)
{
	const uint8_t *stop = NULL;

	enum weft_status st = find_line_end(source, &stop);
	if (st != WEFT_OK) {
		return st;
	}
	const uint8_t *start = source->text + source->at;
	bool has_feed = stop < source->text + source->end;
	if (stop == start && !has_feed) {
		*out = (struct wf_record){0};
		return WEFT_OK;
	}
	*out = (struct wf_record){.bytes = start, .count = (size_t)(stop - start)};
	source->at += out->count + has_feed;
	source->unpacked_bytes += out->count + has_feed;
	source->line++;
	return WEFT_OK;
}

enum weft_status
wf_source_read(struct wf_source *source, struct wf_record *out)
{
	return source->input == NULL ? read_record(source, out) : read_line(source, out);
}

bool
wf_source_skip_damage(struct wf_source *source)
{
	return source->input == NULL;
}

struct wf_source_kind
wf_source_kind(const struct wf_source *source)
{
	struct wf_source_kind kind = {.is_recordio = source->input == NULL};

	if (kind.is_recordio) {
		kind.compressor = wf_recordio_compressor_name(source->first_compressor);
	} else {
		const char *format = wf_input_format(source->input);
		kind.compressor = strcmp(format, "plain") == 0 ? "none" : format;
	}
	return kind;
}

uint64_t
wf_source_unpacked_bytes(const struct wf_source *source)
{
	return source->unpacked_bytes;
}
