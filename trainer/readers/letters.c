/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, letters, words. Words are written over the text they come from: each is at most as long as
 * what was read for it, and the byte that ended it leaves room for its zero. Thread: the caller's.
 */
#include "trainer/readers/letters.h"

#include <stdint.h>

#include "base/assert.h"
#include "trainer/readers/words.h"

#define RIGHT_QUOTE 0x2019u

struct scan {
	struct wf_text *text;
	size_t at;    /* next byte to read */
	size_t to;    /* next byte to write; <= at */
	size_t begun; /* where the word being written starts */
	size_t words;
	size_t line;
	size_t line_start;
	size_t *piece_words; /* of the pieces that have ended */
	size_t piece;        /* how many have begun, */
	size_t piece_begun;  /* and the words before the last one */
};

/* One code point. `bytes` 0: not a code point (the table of The Unicode Standard, section 3.9: no
 * overlong forms, no surrogates, nothing above U+10FFFF). */
struct point {
	uint32_t value;
	unsigned bytes;
};

static struct point
decode(const struct wf_text *text, size_t at)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *in = (const unsigned char *)text->bytes + at;
	size_t left = text->count - at;
	struct point point = {.value = in[0], .bytes = 1};

	if (in[0] < 0x80) {
		return point;
	}
	if (in[0] >= 0xf8 || in[0] < 0xc0) {
		return (struct point){0};
	}
	point.bytes = in[0] >= 0xf0 ? 4 : in[0] >= 0xe0 ? 3 : 2;
	point.value = in[0] & (0x7fu >> point.bytes);
	if (point.bytes > left) {
		return (struct point){0};
	}
	for (unsigned i = 1; i < point.bytes; i++) {
		if ((in[i] & 0xc0) != 0x80) {
			return (struct point){0};
		}
		point.value = point.value << 6 | (in[i] & 0x3fu);
	}
	if (point.value < least[point.bytes] || point.value > 0x10ffff ||
	    (point.value >= 0xd800 && point.value <= 0xdfff)) {
		return (struct point){0};
	}
	return point;
}

static bool
is_text(uint32_t point)
{
	return (point >= ' ' && point != 0x7f) || point == '\t' || point == '\n' || point == '\r' ||
	       point == '\f';
}

static bool
is_letter(uint32_t point)
{
	if (point < 0xc0) {
		return (point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z');
	}
	return point != 0xd7 && point != 0xf7 && !(point >= 0x2000 && point <= 0x206f) &&
	       !(point >= 0x3000 && point <= 0x303f) && point != 0xfeff;
}

static enum weft_status
refuse(const struct scan *scan, size_t at, size_t bytes, const char *why)
{
	const struct wf_text *text = scan->text;
	struct wf_field field = {
		.at = text->bytes + at,
		.count = bytes,
		.path = text->path,
		.line = scan->line,
		.column = (unsigned)(at - scan->line_start) + 1,
	};
	size_t before = 0; /* lines before the piece */

	for (size_t i = 0; i < text->piece_count && text->piece[i].at <= at; i++) {
		field.path = text->piece[i].path;
		field.line = scan->line - before + text->piece[i].line - 1;
		before += text->piece[i].lines;
	}
	return wf_field_refuse(&field, why);
}

static enum weft_status
add_letter(struct scan *scan, struct point point)
{
	char *bytes = scan->text->bytes;

	if (scan->to - scan->begun + point.bytes > WF_WORD_BYTES_MAX) {
		return refuse(scan, scan->at, point.bytes, "is in a word longer than 63 bytes");
	}
	for (unsigned i = 0; i < point.bytes; i++) {
		char c = bytes[scan->at + i];
		bytes[scan->to++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	return WEFT_OK;
}

static bool
is_apostrophe_inside(const struct scan *scan, struct point point)
{
	size_t next = scan->at + point.bytes;

	if ((point.value != '\'' && point.value != RIGHT_QUOTE) || scan->to == scan->begun ||
	    next >= scan->text->count) {
		return false;
	}
	struct point after = decode(scan->text, next);
	return after.bytes > 0 && is_letter(after.value);
}

static void
end_word(struct scan *scan)
{
	if (scan->to > scan->begun) {
		scan->text->bytes[scan->to++] = '\0';
		scan->begun = scan->to;
		scan->words++;
	}
}

/* Processes one code point. */
static enum weft_status
step(struct scan *scan)
{
	struct point point = decode(scan->text, scan->at);
	enum weft_status st = WEFT_OK;

	if (point.bytes == 0) {
		return refuse(scan, scan->at, 1, "is not UTF-8");
	}
	if (!is_text(point.value)) {
		return refuse(scan, scan->at, 1, "is a control character, not text");
	}
	if (is_letter(point.value)) {
		st = add_letter(scan, point);
	} else if (is_apostrophe_inside(scan, point)) {
		scan->text->bytes[scan->to++] = '\'';
	} else {
		end_word(scan);
	}
	scan->at += point.bytes;
	if (point.value == '\n') {
		scan->line++;
		scan->line_start = scan->at;
	}
	return st;
}

/* The piece that was begun has ended; all of its words too, for it ends with its line. */
static void
end_piece(struct scan *scan)
{
	if (scan->piece > 0) {
		scan->piece_words[scan->piece - 1] = scan->words - scan->piece_begun;
	}
	scan->piece_begun = scan->words;
}

enum weft_status
wf_letters_cut(struct wf_text *text, size_t *piece_words, size_t *out)
{
	struct scan scan = {.text = text, .line = 1, .piece_words = piece_words};
	enum weft_status st = WEFT_OK;

	WF_ASSERT(text->bytes[text->count] == '\0');
	while (st == WEFT_OK && scan.at < text->count) {
		if (scan.piece < text->piece_count && text->piece[scan.piece].at == scan.at) {
			end_piece(&scan);
			scan.piece++;
		}
		st = step(&scan);
		WF_ASSERT(scan.to <= scan.at || st != WEFT_OK);
	}
	if (st != WEFT_OK) {
		return st;
	}
	end_word(&scan);
	end_piece(&scan);
	text->count = scan.to;
	*out = scan.words;
	return WEFT_OK;
}
