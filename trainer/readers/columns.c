/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers as users have them: CSV with a header of any width. The header of the first
 * file says how fields are separated, how many there are, and which is the target. Thread: the
 * caller's. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/sheet_internal.h"

#define VALUE_MAX 1e30 /* so that it is finite as f32 */

#define NAME_SHOWN_BYTES 24u
#define NAMES_SHOWN_BYTES 256u

static const char separators[] = ",;\t";

struct head {
	char *line; /* a copy of the header; ends with wf_free */
	size_t line_bytes;
	char separator;
	unsigned columns;
	unsigned target_column;
};

/* --- the header --- */

/* A name in the header, without its quotes. */
struct name {
	struct wf_field field;
	bool is_quoted;   /* two quotes in a row stand for one */
	const char *next; /* behind its separator; NULL: it is the last one */
};

static enum weft_status
refuse_line(const struct wf_cut *cut, const char *why)
{
	return wf_fail(WEFT_DATA, "%s: line %zu: %s", cut->path, cut->line, why);
}

/* `column` counts from 1. */
static enum weft_status
cut_name(const struct wf_cut *cut, const char *at, unsigned column, struct name *out)
{
	const bool is_quoted = at < cut->end && at[0] == '"';
	const char *quote = is_quoted ? wf_csv_closing_quote(at + 1, cut->end) : NULL;
	const char *from = quote == NULL ? at : quote + 1;
	const char *stop = memchr(from, cut->separator, (size_t)(cut->end - from));
	const char *end = stop == NULL ? cut->end : stop;
	struct wf_field field = {.at = at,
				 .count = (size_t)(end - at),
				 .path = cut->path,
				 .line = cut->line,
				 .column = column};

	if (is_quoted && (quote == NULL || quote + 1 != end)) {
		return wf_field_refuse(&field, "does not end with its closing quote");
	}
	if (is_quoted) {
		field.at = at + 1;
		field.count = (size_t)(quote - field.at);
	}
	if (field.count == 0) {
		return wf_field_refuse(&field, "is no name; a column without one, such as the "
					       "index that pandas writes, has to be left out");
	}
	*out = (struct name){
		.field = field, .is_quoted = is_quoted, .next = stop == NULL ? NULL : stop + 1};
	return WEFT_OK;
}

static bool
name_is(const struct name *name, const char *text)
{
	const char *end = name->field.at + name->field.count;

	for (const char *at = name->field.at; at < end; at++, text++) {
		if (*text == '\0' || *text != *at) {
			return false;
		}
		at += name->is_quoted && *at == '"';
	}
	return *text == '\0';
}

/* "there are a, b and 3 more", of a header that was read. */
static void
list_names(const struct wf_cut *cut, unsigned columns, char *out, size_t room)
{
	struct name name = {.next = cut->at};
	size_t used = (size_t)snprintf(out, room, "there are ");

	for (unsigned column = 0; column < columns; column++) {
		char shown[NAME_SHOWN_BYTES + 1];
		enum weft_status st = cut_name(cut, name.next, column + 1, &name);
		WF_ASSERT(st == WEFT_OK);
		if (used + NAME_SHOWN_BYTES + 32 > room) {
			snprintf(out + used, room - used, " and %u more", columns - column);
			return;
		}
		wf_text_show(name.field.at, name.field.count, shown, sizeof(shown));
		used += (size_t)snprintf(out + used, room - used, "%s%s", column == 0 ? "" : ", ",
					 shown);
	}
}

static enum weft_status
refuse_target(const struct wf_cut *cut, const struct head *head, unsigned found, const char *target)
{
	char names[NAMES_SHOWN_BYTES];

	if (found > 1) {
		return wf_fail(WEFT_DATA,
			       "%s: line %zu: has %u columns named %.80s; target needs one",
			       cut->path, cut->line, found, target);
	}
	list_names(cut, head->columns, names, sizeof(names));
	return wf_fail(WEFT_DATA, "%s: line %zu: no column is named %.80s; %s", cut->path,
		       cut->line, target, names);
}

/* The one separator that the header has outside of quotes. */
static enum weft_status
find_separator(struct wf_cut *cut)
{
	for (const char *at = cut->at; at < cut->end; at++) {
		if (*at == '"') {
			const char *quote = wf_csv_closing_quote(at + 1, cut->end);
			at = quote == NULL ? cut->end - 1 : quote;
		} else if (*at != '\0' && strchr(separators, *at) != NULL) {
			if (cut->separator != '\0' && cut->separator != *at) {
				return refuse_line(cut, "has two of comma, semicolon and tab; a "
							"name with one in it has to be quoted");
			}
			cut->separator = *at;
		}
	}
	return cut->separator != '\0'
		       ? WEFT_OK
		       : refuse_line(cut, "is no header of at least two names with commas, "
					  "semicolons or tabs between them");
}

/* Whether a line is a row already: a table without a header. */
static bool
is_number(const struct wf_field *field)
{
	for (size_t i = 0; i < field->count; i++) {
		if (strchr("0123456789.+-eE", field->at[i]) == NULL || field->at[i] == '\0') {
			return false;
		}
	}
	return field->at[0] != 'e' && field->at[0] != 'E';
}

static enum weft_status
parse_names(const struct wf_cut *cut, const char *target, struct head *head)
{
	const bool is_last = target == NULL || target[0] == '\0';
	unsigned found = 0;
	unsigned numbers = 0;
	struct name name = {.next = cut->at};

	while (name.next != NULL) {
		enum weft_status st = cut_name(cut, name.next, head->columns + 1, &name);
		if (st != WEFT_OK) {
			return st;
		}
		if (head->columns == WF_CSV_COLUMNS_MAX) {
			return wf_field_refuse(&name.field, "is one column too many: 4096 are "
							    "read");
		}
		if (!is_last && name_is(&name, target)) {
			head->target_column = head->columns;
			found++;
		}
		numbers += is_number(&name.field);
		head->columns++;
	}
	if (numbers == head->columns) {
		return refuse_line(cut, "is no header, its fields are numbers; write the names of "
					"the columns above it");
	}
	if (is_last) {
		head->target_column = head->columns - 1;
	} else if (found != 1) {
		return refuse_target(cut, head, found, target);
	}
	return WEFT_OK;
}

static enum weft_status
parse_head(struct wf_env *env, const struct wf_text *text, const char *target, struct head *out)
{
	struct wf_cut cut = {.text = text};
	struct head head = {0};

	if (!wf_cut_line(&cut)) {
		return wf_fail(WEFT_DATA, "%s: line 1: has no header", text->path);
	}
	wf_cut_skip_mark(&cut);
	head.line_bytes = (size_t)(cut.end - cut.at) + 1;
	head.line = wf_zalloc(env, head.line_bytes);
	if (head.line == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", text->path, head.line_bytes);
	}
	memcpy(head.line, cut.at, head.line_bytes - 1);
	enum weft_status st = find_separator(&cut);
	if (st == WEFT_OK) {
		head.separator = cut.separator;
		st = parse_names(&cut, target, &head);
	}
	if (st != WEFT_OK) {
		wf_free(env, head.line, head.line_bytes);
		return st;
	}
	*out = head;
	return WEFT_OK;
}

static bool
next_in_header(struct wf_sheet_names *names)
{
	const struct wf_sheet *sheet = names->sheet;
	const struct wf_cut cut = {.path = names->name.path,
				   .end = sheet->header + sheet->header_bytes - 1,
				   .line = 1,
				   .separator = sheet->format.separator};
	const char *at = names->next == NULL ? sheet->header : names->next;
	struct name name;

	if (names->columns >= sheet->format.columns) {
		return false;
	}
	enum weft_status st = cut_name(&cut, at, names->columns + 1, &name);
	WF_ASSERT(st == WEFT_OK); /* parse_names was through it */
	names->name = name.field;
	names->next = name.next;
	names->columns++;
	return true;
}

bool
wf_sheet_next_name(struct wf_sheet_names *names)
{
	const struct wf_sheet *sheet = names->sheet;

	if (sheet->header == NULL) {
		return false;
	}
	while (next_in_header(names)) {
		if (names->columns - 1 != sheet->format.target_column) {
			return true;
		}
		names->target = names->name;
	}
	names->name = names->target;
	return names->columns++ == sheet->format.columns;
}

/* --- its format --- */

enum weft_status
wf_columns_open(struct wf_env *env, const struct wf_text *text, const struct wf_sheet_opts *opts,
		struct wf_sheet *sheet)
{
	struct head head = {0};

	enum weft_status st = parse_head(env, text, opts->target, &head);
	if (st != WEFT_OK) {
		return st;
	}
	sheet->header = head.line;
	sheet->header_bytes = head.line_bytes;
	sheet->format = (struct wf_csv_format){
		.header = head.line,
		.separator = head.separator,
		.has_quotes = true,
		.columns = head.columns,
		.target_column = head.target_column,
		.feature = {.min = -VALUE_MAX, .max = VALUE_MAX},
		.target = {.min = opts->has_classes ? 0 : -VALUE_MAX,
			   .max = opts->has_classes ? WF_SHEET_CLASSES_MAX - 1 : VALUE_MAX,
			   .is_whole = opts->has_classes,
			   .remedy = opts->has_classes ? "; classes are numbered from 0: give each "
							 "a number, as pandas.factorize does"
						       : NULL},
	};
	return WEFT_OK;
}
