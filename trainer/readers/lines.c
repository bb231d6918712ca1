/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of whole lines, one file after the other. Thread: the owner's. */
#include "trainer/readers/lines.h"

#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "trainer/readers/input.h"

#define FIRST_PIECES 16u
#define FIRST_BYTES ((size_t)16 << 10)
#define GROWTH 4u
#define SCAN_BYTES (256u << 10)

struct wf_lines {
	struct wf_env *env;
	size_t window_bytes;
	char *bytes; /* [room + 2]: a line feed and a zero byte may follow */
	size_t room; /* what the texts so far have needed; window_bytes at most */

	const struct wf_span *span; /* [span_count] lent */
	size_t span_count;
	size_t at;              /* the span being read */
	struct wf_input *input; /* its file; NULL: not open */
	size_t line;            /* number of its next line */

	size_t used; /* bytes in the buffer */
	size_t done; /* of them, those of whole lines */
	/* What lies behind `done` is the beginning of the next window. Its first byte is kept here,
	 * because the zero byte of the text is in its place. */
	char kept;

	struct wf_text_piece *piece; /* [piece_count] of this window */
	size_t piece_count, piece_alloc;
};

/* Room for so many bytes, or for a window, which most texts are smaller than. */
static enum weft_status
make_room(struct wf_lines *lines, size_t wanted)
{
	const size_t room = wanted < lines->window_bytes ? wanted : lines->window_bytes;
	char *bytes = wf_zalloc(lines->env, room + 2);

	if (bytes == NULL) {
		return wf_fail(WEFT_NOMEM, "window of %zu bytes", room);
	}
	if (lines->bytes != NULL) {
		memcpy(bytes, lines->bytes, lines->used);
		wf_free(lines->env, lines->bytes, lines->room + 2);
	}
	lines->bytes = bytes;
	lines->room = room;
	return WEFT_OK;
}

enum weft_status
wf_lines_open(struct wf_env *env, size_t window_bytes, struct wf_lines **out)
{
	struct wf_lines *lines = wf_zalloc(env, sizeof(*lines));

	WF_ASSERT(window_bytes >= WF_WINDOW_BYTES_MIN && window_bytes <= WF_WINDOW_BYTES_MAX);
	if (lines == NULL) {
		return wf_fail(WEFT_NOMEM, "lines: %zu bytes", sizeof(*lines));
	}
	lines->env = env;
	lines->window_bytes = window_bytes;
	enum weft_status st = make_room(lines, FIRST_BYTES);
	if (st != WEFT_OK) {
		wf_lines_close(lines);
		return st;
	}
	*out = lines;
	return WEFT_OK;
}

void
wf_lines_close(struct wf_lines *lines)
{
	if (lines == NULL) {
		return;
	}
	wf_input_close(lines->input);
	wf_free(lines->env, lines->piece, lines->piece_alloc * sizeof(*lines->piece));
	wf_free(lines->env, lines->bytes, lines->bytes == NULL ? 0 : lines->room + 2);
	wf_free(lines->env, lines, sizeof(*lines));
}

void
wf_lines_begin(struct wf_lines *lines, const struct wf_span *span, size_t count)
{
	wf_input_close(lines->input);
	lines->input = NULL;
	lines->span = span;
	lines->span_count = count;
	lines->at = 0;
	lines->used = 0;
	lines->done = 0;
}

static void
end_span(struct wf_lines *lines)
{
	wf_input_close(lines->input);
	lines->input = NULL;
	lines->at++;
	lines->used = lines->done;
}

/* A piece of the current file, for a line that begins at `at`. */
static enum weft_status
add_piece(struct wf_lines *lines, size_t at)
{
	if (lines->piece_count == lines->piece_alloc) {
		const size_t alloc =
			lines->piece_alloc == 0 ? FIRST_PIECES : 2 * lines->piece_alloc;
		struct wf_text_piece *piece = wf_zalloc_array(lines->env, alloc, sizeof(*piece));
		if (piece == NULL) {
			return wf_fail(WEFT_NOMEM, "window of %zu files", alloc);
		}
		if (lines->piece_count > 0) {
			memcpy(piece, lines->piece, lines->piece_count * sizeof(*piece));
		}
		wf_free(lines->env, lines->piece, lines->piece_alloc * sizeof(*piece));
		lines->piece = piece;
		lines->piece_alloc = alloc;
	}
	lines->piece[lines->piece_count++] = (struct wf_text_piece){
		.path = lines->span[lines->at].path,
		.at = at,
		.line = lines->line,
		.file = lines->at,
	};
	return WEFT_OK;
}

/* Counts the whole lines that have come, and drops those before the span. The span ends with its
 * last one. */
static enum weft_status
count_lines(struct wf_lines *lines)
{
	const struct wf_span *span = &lines->span[lines->at];
	const char *end = lines->bytes + lines->used;
	size_t drop_to = lines->done;
	size_t at = lines->done;

	while (at < lines->used && lines->line <= span->last) {
		const char *stop =
			memchr(lines->bytes + at, '\n', (size_t)(end - lines->bytes) - at);
		if (stop == NULL) {
			break;
		}
		const bool is_first = lines->piece_count == 0 ||
				      lines->piece[lines->piece_count - 1].file != lines->at;
		if (lines->line >= span->first && is_first) {
			enum weft_status st = add_piece(lines, lines->done);
			if (st != WEFT_OK) {
				return st;
			}
		}
		at = (size_t)(stop + 1 - lines->bytes);
		if (lines->line < span->first) {
			drop_to = at;
		} else {
			lines->piece[lines->piece_count - 1].lines++;
		}
		lines->line++;
	}
	const size_t dropped = drop_to - lines->done;
	memmove(lines->bytes + lines->done, lines->bytes + drop_to, lines->used - drop_to);
	lines->used -= dropped;
	lines->done = at - dropped;
	if (lines->line > span->last) {
		end_span(lines);
	}
	return WEFT_OK;
}

/* The file has ended. */
static enum weft_status
end_file(struct wf_lines *lines)
{
	const struct wf_span *span = &lines->span[lines->at];

	if (lines->used > lines->done) {
		lines->bytes[lines->used++] = '\n';
		enum weft_status st = count_lines(lines);
		if (st != WEFT_OK || lines->input == NULL) {
			return st;
		}
	}
	if (span->last != SIZE_MAX) {
		return wf_fail(WEFT_DATA,
			       "%s: has %zu lines now, and had at least %zu when it was opened: it "
			       "must not change while it is in use",
			       span->path, lines->line - 1, span->last);
	}
	end_span(lines);
	return WEFT_OK;
}

static enum weft_status
open_span(struct wf_lines *lines)
{
	const struct wf_span *span = &lines->span[lines->at];
	const struct wf_file *listed = span->listed;

	lines->line = 1;
	enum weft_status st = wf_input_open(lines->env, span->path, &lines->input);
	return st == WEFT_OK && listed != NULL && listed->changed.tv_sec != 0
		       ? wf_input_check_unchanged(lines->input, listed->bytes, &listed->changed)
		       : st;
}

/* Bytes of the current span, or the next one. */
static enum weft_status
read_more(struct wf_lines *lines)
{
	size_t got = 0;

	if (lines->input == NULL) {
		enum weft_status st = open_span(lines);
		if (st != WEFT_OK) {
			return st;
		}
	}
	enum weft_status st = WEFT_OK;
	if (lines->used >= lines->room) { /* one more after the line feed that ended a file */
		st = make_room(lines, GROWTH * lines->room);
	}
	if (st == WEFT_OK) {
		st = wf_input_read(lines->input, lines->bytes + lines->used,
				   lines->room - lines->used, &got);
	}
	if (st != WEFT_OK) {
		return st;
	}
	lines->used += got;
	return got == 0 ? end_file(lines) : count_lines(lines);
}

/* The end of the last window is the beginning of this one. */
static enum weft_status
keep_rest(struct wf_lines *lines)
{
	const size_t rest = lines->used - lines->done;

	if (rest > 0) {
		lines->bytes[lines->done] = lines->kept;
		memmove(lines->bytes, lines->bytes + lines->done, rest);
	}
	lines->used = rest;
	lines->done = 0;
	lines->piece_count = 0;
	return WEFT_OK;
}

enum weft_status
wf_lines_next(struct wf_lines *lines, struct wf_text *out)
{
	enum weft_status st = keep_rest(lines);

	while (st == WEFT_OK && lines->used < lines->window_bytes &&
	       lines->at < lines->span_count) {
		st = read_more(lines);
	}
	if (st == WEFT_OK && lines->done == 0 && lines->used > 0) {
		st = wf_fail(WEFT_DATA,
			     "%s: line %zu: has more than the %zu bytes of a window; a larger "
			     "--data_window has room for it",
			     lines->span[lines->at].path, lines->line, lines->window_bytes);
	}
	if (st != WEFT_OK) {
		return st;
	}
	lines->kept = lines->bytes[lines->done];
	lines->bytes[lines->done] = '\0';
	/* Of files without a line the first one is named. */
	const char *first = lines->span_count == 0 ? "" : lines->span[0].path;
	*out = (struct wf_text){
		.path = lines->piece_count == 0 ? first : lines->piece[0].path,
		.bytes = lines->bytes,
		.count = lines->done,
		.piece = lines->piece,
		.piece_count = lines->piece_count,
	};
	return WEFT_OK;
}

bool
wf_lines_is_over(const struct wf_lines *lines)
{
	return lines->at == lines->span_count;
}

/* Adds what one chunk of a file has. `marks` is of the line that the chunk ends in. */
struct scanning {
	char mark;
	size_t marks; /* in this line so far */
};

static void
scan_start(char first, struct wf_scan *scan)
{
	if (first == '0' && scan->zero_line == 0) {
		scan->zero_line = scan->lines + 1;
	} else if (first == '-' && scan->minus_line == 0) {
		scan->minus_line = scan->lines + 1;
	}
}

/* `last`: the byte before the chunk; a line feed before the first one. */
static void
scan_chunk(const char *bytes, size_t count, char last, struct scanning *scanning,
	   struct wf_scan *scan)
{
	for (size_t i = 0; i < count; i++) {
		if (last == '\n') {
			scan_start(bytes[i], scan);
		}
		if (bytes[i] == '\n') {
			scan->lines++;
			scanning->marks = 0;
		} else if (bytes[i] == scanning->mark && ++scanning->marks > scan->marks_max) {
			scan->marks_max = scanning->marks;
		}
		last = bytes[i];
	}
	scan->crc = wf_crc32c(scan->crc, bytes, count);
	scan->bytes += count;
}

enum weft_status
wf_lines_scan(struct wf_env *env, const char *path, char mark, struct wf_scan *out)
{
	struct wf_scan scan = {0};
	struct scanning scanning = {.mark = mark};
	struct wf_input *input = NULL;
	size_t got = 0;
	char last = '\n';
	char *bytes = wf_zalloc(env, SCAN_BYTES);

	enum weft_status st = bytes == NULL ? wf_fail(WEFT_NOMEM, "%s: %u bytes", path, SCAN_BYTES)
					    : wf_input_open(env, path, &input);
	while (st == WEFT_OK) {
		st = wf_input_read(input, bytes, SCAN_BYTES, &got);
		if (st != WEFT_OK || got == 0) {
			break;
		}
		scan_chunk(bytes, got, last, &scanning, &scan);
		last = bytes[got - 1];
	}
	scan.lines += last != '\n';
	wf_input_close(input);
	wf_free(env, bytes, SCAN_BYTES);
	if (st == WEFT_OK) {
		*out = scan;
	}
	return st;
}
