/* SPDX-License-Identifier: Apache-2.0 */
/* The strict CSV reader. A file is read whole, then cut into lines and fields in place; the only
 * memory taken is bounded by the file's size. Thread: the caller's. */
#include "trainer/readers/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define SHOWN_BYTES 24u /* of a bad value, in an error text */

struct text {
	char *bytes;  /* [count] */
	size_t count; /* of the file */
	size_t alloc_bytes;
};

struct field {
	const char *at;
	size_t count;
	const char *path;
	size_t line;     /* from 1 */
	unsigned column; /* from 1 */
};

/* A value as an error text may carry it: printable, bounded. */
static void
show(const struct field *field, char out[SHOWN_BYTES + 4])
{
	size_t shown = field->count < SHOWN_BYTES ? field->count : SHOWN_BYTES;
	for (size_t i = 0; i < shown; i++) {
		char c = field->at[i];
		out[i] = (c >= ' ' && c <= '~') ? c : '?';
	}
	const char *end = shown < field->count ? "..." : "";
	memcpy(out + shown, end, strlen(end) + 1);
}

static enum weft_status
refuse(const struct field *field, const char *why)
{
	char value[SHOWN_BYTES + 4];
	show(field, value);
	return wf_fail(WEFT_DATA, "%s: line %zu, column %u: \"%s\" %s", field->path, field->line,
		       field->column, value, why);
}

/* Digits, with sign, point and exponent: what strtod takes beyond that (blanks, hexadecimal, inf,
 * nan) is no number here. */
static bool
looks_like_number(const struct field *field)
{
	for (size_t i = 0; i < field->count; i++) {
		char c = field->at[i];
		if (!(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '+' && c != 'e' &&
		    c != 'E') {
			return false;
		}
	}
	return field->count > 0 && field->count <= WF_CSV_FIELD_BYTES_MAX;
}

static enum weft_status
parse_number(const struct field *field, const struct wf_csv_rule *rule, double *out)
{
	char copy[WF_CSV_FIELD_BYTES_MAX + 1];
	char *end = NULL;

	if (!looks_like_number(field)) {
		return refuse(field, "is not a decimal number");
	}
	memcpy(copy, field->at, field->count);
	copy[field->count] = '\0';
	double value = strtod(copy, &end);
	if (end != copy + field->count) {
		return refuse(field, "is not a decimal number");
	}
	if (!(value >= rule->min && value <= rule->max)) {
		char why[64];
		snprintf(why, sizeof(why), "is not within %g..%g", rule->min, rule->max);
		return refuse(field, why);
	}
	if (rule->is_whole && (double)(long long)value != value) {
		return refuse(field, "is not a whole number");
	}
	*out = value;
	return WEFT_OK;
}

static enum weft_status
parse_line(struct field *field, const char *end, const struct wf_csv_format *format, double *out)
{
	const char *at = field->at;

	for (unsigned column = 0; column < format->columns; column++) {
		bool is_last = column + 1 == format->columns;
		const char *stop = memchr(at, ',', (size_t)(end - at));
		field->at = at;
		field->column = column + 1;
		field->count = (size_t)((stop == NULL ? end : stop) - at);
		if (!is_last && stop == NULL) {
			return wf_fail(WEFT_DATA, "%s: line %zu: has %u of %u columns", field->path,
				       field->line, column + 1, format->columns);
		}
		if (is_last && stop != NULL) {
			field->at = stop + 1;
			field->count = (size_t)(end - field->at);
			field->column = column + 2;
			return refuse(field, "is one column too many");
		}
		enum weft_status st = parse_number(
			field, is_last ? &format->target : &format->feature, &out[column]);
		if (st != WEFT_OK) {
			return st;
		}
		at = is_last ? end : stop + 1;
	}
	return WEFT_OK;
}

static enum weft_status
check_header(struct field *field, const char *end, const struct wf_csv_format *format)
{
	const char *want = format->header;

	if (strlen(want) == (size_t)(end - field->at) &&
	    memcmp(want, field->at, strlen(want)) == 0) {
		return WEFT_OK;
	}
	field->column = 1;
	const char *start = field->at;
	for (const char *at = field->at; at < end && *at == *want; at++, want++) {
		if (*at == ',') {
			field->column++;
			start = at + 1;
		}
	}
	const char *stop = memchr(start, ',', (size_t)(end - start));
	field->at = start;
	field->count = (size_t)((stop == NULL ? end : stop) - start);
	char why[256];
	snprintf(why, sizeof(why), "is not what the header has to say there; expected \"%.160s\"",
		 format->header);
	return refuse(field, why);
}

/* The end of the line that starts at `at`, without its line feed or carriage return. */
static const char *
line_end(const char *at, const char *end, const char **next)
{
	const char *stop = memchr(at, '\n', (size_t)(end - at));
	*next = stop == NULL ? end : stop + 1;
	stop = stop == NULL ? end : stop;
	return stop > at && stop[-1] == '\r' ? stop - 1 : stop;
}

static enum weft_status
parse_text(const struct text *text, const char *path, const struct wf_csv_format *format,
	   struct wf_csv *out)
{
	const char *end = text->bytes + text->count;
	const char *next = text->bytes;
	size_t row_max = out->value_bytes / sizeof(double) / format->columns;

	for (size_t line = 1; next < end; line++) {
		struct field field = {.at = next, .path = path, .line = line};
		const char *stop = line_end(next, end, &next);
		enum weft_status st;
		if (line == 1 && format->header != NULL) {
			st = check_header(&field, stop, format);
		} else {
			double *row = out->value + out->rows * format->columns;
			if (out->rows == row_max) { /* a line too short to hold all columns */
				return wf_fail(WEFT_DATA,
					       "%s: line %zu: has too few columns, %u "
					       "are expected",
					       path, line, format->columns);
			}
			st = parse_line(&field, stop, format, row);
			out->rows++;
		}
		if (st != WEFT_OK) {
			return st;
		}
	}
	if (out->rows == 0) {
		return wf_fail(WEFT_DATA, "%s: line 1: holds no row of data", path);
	}
	return WEFT_OK;
}

static enum weft_status
read_all(int fd, const char *path, struct text *text)
{
	size_t got = 0;

	while (got < text->count) {
		ssize_t n = read(fd, text->bytes + got, text->count - got);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return wf_fail_errno(WEFT_IO, errno, "%s: read", path);
		}
		if (n == 0) {
			return wf_fail(WEFT_IO,
				       "%s: shrank while it was read, after %zu of %zu bytes", path,
				       got, text->count);
		}
		got += (size_t)n;
	}
	return WEFT_OK;
}

static enum weft_status
text_read(struct wf_env *env, const char *path, struct text *text)
{
	struct stat about;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		return wf_fail_errno(WEFT_IO, errno, "%s: open", path);
	}
	enum weft_status st = WEFT_OK;
	if (fstat(fd, &about) != 0) {
		st = wf_fail_errno(WEFT_IO, errno, "%s: stat", path);
	} else if (!S_ISREG(about.st_mode)) {
		st = wf_fail(WEFT_IO, "%s: is not a regular file", path);
	} else if ((uint64_t)about.st_size > WF_CSV_FILE_BYTES_MAX) {
		st = wf_fail(WEFT_DATA, "%s: has %lld bytes, at most %u are read", path,
			     (long long)about.st_size, WF_CSV_FILE_BYTES_MAX);
	} else {
		text->count = (size_t)about.st_size;
		text->alloc_bytes = text->count + 1;
		text->bytes = wf_zalloc(env, text->alloc_bytes);
		st = text->bytes == NULL
			     ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, text->alloc_bytes)
			     : read_all(fd, path, text);
	}
	close(fd);
	return st;
}

enum weft_status
wf_csv_read(struct wf_env *env, const char *path, const struct wf_csv_format *format,
	    struct wf_csv *out)
{
	struct text text = {0};
	struct wf_csv csv = {.columns = format->columns};

	WF_ASSERT(format->columns >= 2 && format->columns <= WF_CSV_COLUMNS_MAX);
	enum weft_status st = text_read(env, path, &text);
	if (st != WEFT_OK) {
		goto done;
	}
	/* A full row has at least a digit and a separator per column. */
	size_t row_max = (text.count + 1) / (2 * (size_t)format->columns) + 1;
	csv.value_bytes = row_max * format->columns * sizeof(double);
	csv.value = wf_zalloc(env, csv.value_bytes);
	st = csv.value == NULL ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, csv.value_bytes)
			       : parse_text(&text, path, format, &csv);
	if (st == WEFT_OK) {
		*out = csv;
	} else {
		wf_csv_fini(env, &csv);
	}
done:
	if (text.bytes != NULL) {
		wf_free(env, text.bytes, text.alloc_bytes);
	}
	return st;
}

void
wf_csv_fini(struct wf_env *env, struct wf_csv *csv)
{
	wf_free(env, csv->value, csv->value_bytes);
	*csv = (struct wf_csv){0};
}
