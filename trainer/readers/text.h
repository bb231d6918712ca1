/* SPDX-License-Identifier: Apache-2.0 */
/* text: a file in memory, cut into lines and fields, and how a field that does not fit is refused:
 * by file, line, column and value. Lines and columns count from 1; a column is a field of its line,
 * in running text a byte of it.
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/env.h"

#define WF_TEXT_BYTES_MAX (64u << 20)
#define WF_NUMBER_BYTES_MAX 31u /* of a number, in a file */

/* Whole lines of a text that follow each other in one file. */
struct wf_text_piece {
	const char *path; /* lent */
	size_t at;        /* of the first one in the text */
	size_t line;      /* its number in the file */
	size_t lines;     /* how many there are */
	size_t file;      /* whose they are, as the text's maker counts its files */
};

struct wf_text {
	const char *path; /* for error texts; lent */
	char *bytes;      /* [count], and a zero byte after them; readers may write to it */
	size_t count;
	size_t alloc_bytes;
	/* [piece_count] lent; they cover the text. NULL: it is one whole file. */
	const struct wf_text_piece *piece;
	size_t piece_count;
};

/* Reads a whole file, unpacked (input.h). WEFT_DATA: more than WF_TEXT_BYTES_MAX, or as of
 * wf_input_read; WEFT_IO: file and the system's reason; WEFT_NOMEM. */
enum weft_status wf_text_read(struct wf_env *env, const char *path,
			      struct wf_text *out) WEFT_MUST_CHECK;
void wf_text_fini(struct wf_env *env, struct wf_text *text); /* accepts a zeroed one */
/* How many lines there are; the last one may lack its line feed. */
size_t wf_text_line_count(const struct wf_text *text);
/* How many of them are the first of a file. */
size_t wf_text_first_line_count(const struct wf_text *text);

struct wf_field {
	const char *at;
	size_t count;
	const char *path;
	size_t line;
	unsigned column;
};

/* WEFT_DATA: file, line, column, value (its start, printable), `why`. */
enum weft_status wf_field_refuse(const struct wf_field *field, const char *why) WEFT_MUST_CHECK;
bool wf_field_is(const struct wf_field *field, const char *text);
/* Copies as many bytes as there is room for, less a zero byte, as a message may show them: a
 * question mark for each that is not printable. How many these are. */
size_t wf_text_show(const char *at, size_t count, char *out, size_t room);
/* Adds what to do to the refusal that was recorded last, if `st` is WEFT_DATA; then `st`. */
enum weft_status wf_text_add_remedy(enum weft_status st, const char *remedy) WEFT_MUST_CHECK;

/* What a number may be. */
struct wf_number_rule {
	double min, max;
	bool is_whole;      /* no fraction */
	const char *remedy; /* end of each refusal; NULL: "" */
};

/* A decimal number: digits with sign, point and exponent, nothing else. */
enum weft_status wf_field_number(const struct wf_field *field, const struct wf_number_rule *rule,
				 double *out) WEFT_MUST_CHECK;

/* A text being cut. Start with {.text = text, .separator = ','}. */
struct wf_cut {
	const struct wf_text *text;
	char separator;
	size_t next;          /* where the next line starts */
	size_t piece;         /* pieces that have begun */
	const char *path;     /* file of this line, */
	size_t line;          /* and its number there; 0 before the first one */
	const char *at, *end; /* the rest of it, without line feed or carriage return */
	unsigned column;      /* number of fields read from it */
};

/* Advances to the next line. false: there is none. */
bool wf_cut_line(struct wf_cut *cut);
/* The next of the `columns` fields of a line; they are read one by one. WEFT_DATA: the line has
 * fewer, or, at the last one, more. */
enum weft_status wf_cut_field(struct wf_cut *cut, unsigned columns,
			      struct wf_field *out) WEFT_MUST_CHECK;
/* Skips the byte order mark with which some programs begin a file, as Excel does. */
void wf_cut_skip_mark(struct wf_cut *cut);
/* The line, without such a mark, is `header` to the letter, or the first column that differs is
 * refused. */
enum weft_status wf_cut_header(struct wf_cut *cut, const char *header) WEFT_MUST_CHECK;
