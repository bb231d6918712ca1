/* SPDX-License-Identifier: Apache-2.0 */
/* The strict reader of CSV files of numbers. Its memory is bounded by the file's size. Thread: the
 * caller's. */
#include "trainer/readers/csv.h"

#include <string.h>

#include "base/assert.h"

const char *
wf_csv_closing_quote(const char *at, const char *end)
{
	const char *quote = memchr(at, '"', (size_t)(end - at));

	while (quote != NULL && quote + 1 < end && quote[1] == '"') {
		quote = memchr(quote + 2, '"', (size_t)(end - quote - 2));
	}
	return quote;
}

/* The next field, without the quotes that it may have. */
static enum weft_status
cut_field(struct wf_cut *cut, const struct wf_csv_format *format, struct wf_field *out)
{
	struct wf_field rest;

	if (!format->has_quotes || cut->at == cut->end || cut->at[0] != '"') {
		return wf_cut_field(cut, format->columns, out);
	}
	const char *start = cut->at + 1;
	const char *quote = wf_csv_closing_quote(start, cut->end);
	cut->at = quote == NULL ? cut->at : quote + 1;
	enum weft_status st = wf_cut_field(cut, format->columns, &rest);
	if (st != WEFT_OK) {
		return st;
	}
	if (quote == NULL) {
		return wf_field_refuse(&rest, "has no closing quote in its line");
	}
	if (rest.count > 0) {
		return wf_field_refuse(&rest, "stands behind a closing quote");
	}
	*out = rest;
	out->at = start;
	out->count = (size_t)(quote - start);
	return WEFT_OK;
}

static enum weft_status
parse_line(struct wf_cut *cut, const struct wf_csv_format *format, double *out)
{
	for (unsigned column = 0; column < format->columns; column++) {
		bool is_target = column == format->target_column;
		struct wf_field field;
		enum weft_status st = cut_field(cut, format, &field);
		if (st != WEFT_OK) {
			return st;
		}
		st = wf_field_number(&field, is_target ? &format->target : &format->feature,
				     &out[column]);
		if (st != WEFT_OK) {
			return st;
		}
	}
	return WEFT_OK;
}

static enum weft_status
parse_text(const struct wf_text *text, const struct wf_csv_format *format, struct wf_csv *out)
{
	struct wf_cut cut = {.text = text, .separator = format->separator};
	size_t row_max = out->value_bytes / sizeof(double) / format->columns;

	while (wf_cut_line(&cut)) {
		enum weft_status st;
		if (cut.line == 1 && format->header != NULL) {
			st = wf_cut_header(&cut, format->header);
		} else {
			double *row = out->value + out->rows * format->columns;
			if (out->rows == row_max) { /* a line too short to hold all columns */
				return wf_fail(WEFT_DATA,
					       "%s: line %zu: has too few columns, %u "
					       "are expected",
					       cut.path, cut.line, format->columns);
			}
			st = parse_line(&cut, format, row);
			out->rows++;
		}
		if (st != WEFT_OK) {
			return cut.line == 1 && format->remedy != NULL
				       ? wf_text_add_remedy(st, format->remedy)
				       : st;
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_csv_parse(struct wf_env *env, const struct wf_text *text, const struct wf_csv_format *format,
	     struct wf_csv *out)
{
	struct wf_csv csv = {.columns = format->columns};

	WF_ASSERT(format->columns >= 2 && format->columns <= WF_CSV_COLUMNS_MAX);
	WF_ASSERT(format->target_column < format->columns);
	/* A full row has at least a digit and a separator per column. */
	const size_t lines = wf_text_line_count(text);
	size_t row_max = (text->count + 1) / (2 * (size_t)format->columns) + 1;
	row_max = row_max < lines + 1 ? row_max : lines + 1;
	csv.value_bytes = row_max * format->columns * sizeof(double);
	csv.value = wf_zalloc(env, csv.value_bytes);
	enum weft_status st = csv.value == NULL ? wf_fail(WEFT_NOMEM, "%s: %zu bytes", text->path,
							  csv.value_bytes)
						: parse_text(text, format, &csv);
	if (st != WEFT_OK) {
		wf_csv_fini(env, &csv);
		return st;
	}
	*out = csv;
	return WEFT_OK;
}

void
wf_csv_fini(struct wf_env *env, struct wf_csv *csv)
{
	wf_free(env, csv->value, csv->value_bytes);
	*csv = (struct wf_csv){0};
}
