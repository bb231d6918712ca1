/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of numbers: layouts, surveys and rows. Arithmetic in f64, rounded to f32 once. Thread: the
 * caller's. */
#include "trainer/readers/sheet.h"

#include "base/assert.h"
#include "trainer/readers/sheet_internal.h"

#define HOUSING_FEATURES 13u
#define DIGIT_PIXELS 64u
#define DIGIT_CLASSES 10u
#define ROWS_MIN 5u /* so that four fifths leave a row to test on */

#define REMEDY "--format=csv reads other tables, with the names of their columns in the first line"

static const struct wf_sheet housing = {
	.format = {.header = "crim,zn,indus,chas,nox,rm,age,dis,rad,tax,ptratio,b,lstat,medv",
		   .remedy = REMEDY,
		   .separator = ',',
		   .columns = HOUSING_FEATURES + 1,
		   .target_column = HOUSING_FEATURES,
		   .feature = {.min = -1e6, .max = 1e6},
		   .target = {.min = -1e6, .max = 1e6}},
};

static const struct wf_sheet digits = {
	.format = {.remedy = REMEDY,
		   .separator = ',',
		   .columns = DIGIT_PIXELS + 1,
		   .target_column = DIGIT_PIXELS,
		   .feature = {.min = 0, .max = 16, .is_whole = true},
		   .target = {.min = 0, .max = DIGIT_CLASSES - 1, .is_whole = true}},
	.divisor = 16.0,
	.has_classes = true,
	.classes = DIGIT_CLASSES,
};

/* --- what a table has in common --- */

enum weft_status
wf_sheet_open(struct wf_env *env, const struct wf_text *text, const struct wf_sheet_opts *opts,
	      struct wf_sheet *out)
{
	struct wf_sheet sheet = {.divisor = 1.0, .has_classes = opts->has_classes};
	enum weft_status st = WEFT_OK;

	switch (opts->kind) {
	case WF_SHEET_HOUSING:
		sheet = housing;
		break;
	case WF_SHEET_DIGITS:
		sheet = digits;
		break;
	case WF_SHEET_COLUMNS:
		st = wf_columns_open(env, text, opts, &sheet);
		break;
	}
	if (st != WEFT_OK) {
		return st;
	}
	if (opts->kind == WF_SHEET_HOUSING || opts->is_scaled) {
		sheet.column = wf_zalloc_array(env, sheet.format.columns, sizeof(*sheet.column));
		if (sheet.column == NULL) {
			const unsigned columns = sheet.format.columns;
			wf_sheet_fini(env, &sheet);
			return wf_fail(WEFT_NOMEM, "%s: %u columns", text->path, columns);
		}
	}
	*out = sheet;
	return WEFT_OK;
}

void
wf_sheet_fini(struct wf_env *env, struct wf_sheet *sheet)
{
	wf_free(env, sheet->column, sheet->format.columns * sizeof(*sheet->column));
	wf_free(env, sheet->header, sheet->header_bytes);
	*sheet = (struct wf_sheet){0};
}

bool
wf_sheet_needs_survey(const struct wf_sheet *sheet)
{
	return sheet->column != NULL || (sheet->has_classes && sheet->classes == 0);
}

static bool
is_scaled(const struct wf_sheet *sheet, unsigned column)
{
	return sheet->column != NULL && column != sheet->format.target_column;
}

/* The rows are added one by one, so that a survey by windows has the bits of one of all rows. */
static void
add_rows(struct wf_sheet *sheet, const struct wf_csv *csv)
{
	for (size_t row = 0; row < csv->rows; row++, sheet->rows++) {
		const double *value = csv->value + row * csv->columns;
		const double target = value[sheet->format.target_column];
		if (sheet->has_classes && target >= (double)sheet->classes) {
			sheet->classes = (uint32_t)target + 1;
		}
		for (unsigned column = 0; sheet->column != NULL && column < csv->columns;
		     column++) {
			struct wf_sheet_column *about = &sheet->column[column];
			const double x = value[column];
			about->min = sheet->rows == 0 || x < about->min ? x : about->min;
			about->max = sheet->rows == 0 || x > about->max ? x : about->max;
			about->mean += x;
		}
	}
}

enum weft_status
wf_sheet_survey(struct wf_env *env, struct wf_sheet *sheet, const struct wf_text *text)
{
	struct wf_csv csv;

	enum weft_status st = wf_csv_parse(env, text, &sheet->format, &csv);
	if (st == WEFT_OK) {
		add_rows(sheet, &csv);
		wf_csv_fini(env, &csv);
	}
	return st;
}

enum weft_status
wf_sheet_end_survey(struct wf_sheet *sheet, const char *path)
{
	for (unsigned column = 0; column < sheet->format.columns; column++) {
		if (!is_scaled(sheet, column)) {
			continue;
		}
		struct wf_sheet_column *about = &sheet->column[column];
		if (!(about->max > about->min)) {
			return wf_fail(WEFT_DATA,
				       "%s: line 2, column %u: \"%g\" is the same in every row, so "
				       "the column cannot be scaled",
				       path, column + 1, about->min);
		}
		about->mean /= (double)sheet->rows;
	}
	if (sheet->has_classes && sheet->classes < 2) {
		return wf_fail(WEFT_DATA,
			       "%s: the target is 0 in every row; there have to be at "
			       "least two classes",
			       path);
	}
	if (sheet->has_classes) {
		sheet->format.target.max = sheet->classes - 1; /* in each window from now on */
	}
	return WEFT_OK;
}

/* --- rows --- */

/* Room for the rows, and y; x is the caller's to set. */
static enum weft_status
alloc_rows(struct wf_env *env, const struct wf_sheet *sheet, const struct wf_csv *csv,
	   const char *path, struct wf_dataset *out)
{
	struct wf_dataset dataset = {
		.features = csv->columns - 1,
		.classes = sheet->classes,
		.rows = csv->rows,
		.train_rows = csv->rows,
	};

	if (csv->rows > 0) {
		dataset.x = wf_zalloc_array(env, csv->rows * dataset.features, sizeof(float));
		dataset.y = wf_zalloc_array(env, csv->rows, sizeof(float));
		if (dataset.x == NULL || dataset.y == NULL) {
			wf_dataset_fini(env, &dataset);
			return wf_fail(WEFT_NOMEM, "%s: %zu rows", path, csv->rows);
		}
	}
	*out = dataset;
	return WEFT_OK;
}

static void
fill_rows(const struct wf_sheet *sheet, const struct wf_csv *csv, struct wf_dataset *dataset)
{
	const unsigned target_column = sheet->format.target_column;

	for (size_t row = 0; row < csv->rows; row++) {
		const double *value = csv->value + row * csv->columns;
		float *x = dataset->x + row * dataset->features;
		dataset->y[row] = (float)value[target_column];
		for (unsigned column = 0; column < csv->columns; column++) {
			if (column == target_column) {
				continue;
			}
			const struct wf_sheet_column *about =
				sheet->column == NULL ? NULL : &sheet->column[column];
			*x++ = about == NULL ? (float)(value[column] / sheet->divisor)
					     : (float)((value[column] - about->mean) /
						       (about->max - about->min));
		}
	}
}

enum weft_status
wf_sheet_parse(struct wf_env *env, const struct wf_sheet *sheet, const struct wf_text *text,
	       struct wf_dataset *out)
{
	struct wf_csv csv;

	enum weft_status st = wf_csv_parse(env, text, &sheet->format, &csv);
	if (st != WEFT_OK) {
		return st;
	}
	st = alloc_rows(env, sheet, &csv, text->path, out);
	if (st == WEFT_OK) {
		fill_rows(sheet, &csv, out);
	}
	wf_csv_fini(env, &csv);
	return st;
}

static enum weft_status
check_rows(const char *path, size_t rows)
{
	if (rows == 0) {
		return wf_fail(WEFT_DATA, "%s: line 1: has no rows of data", path);
	}
	if (rows < ROWS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu rows; at least %u are needed", path, rows,
			       ROWS_MIN);
	}
	return WEFT_OK;
}

enum weft_status
wf_sheet_split(const char *path, struct wf_dataset *dataset)
{
	dataset->train_rows = dataset->rows * 4 / 5;
	return check_rows(path, dataset->rows);
}

/* The survey and the rows, from the same values. */
static enum weft_status
parse_all(struct wf_env *env, struct wf_sheet *sheet, const struct wf_csv *csv, const char *path,
	  struct wf_dataset *out)
{
	enum weft_status st = check_rows(path, csv->rows);
	if (st == WEFT_OK) {
		add_rows(sheet, csv);
		st = wf_sheet_end_survey(sheet, path);
	}
	if (st == WEFT_OK) {
		st = alloc_rows(env, sheet, csv, path, out);
	}
	if (st == WEFT_OK) {
		fill_rows(sheet, csv, out);
		st = wf_sheet_split(path, out);
	}
	return st;
}

enum weft_status
wf_sheet_parse_whole(struct wf_env *env, const struct wf_text *text,
		     const struct wf_sheet_opts *opts, struct wf_dataset *out)
{
	struct wf_sheet sheet;
	struct wf_csv csv;

	enum weft_status st = wf_sheet_open(env, text, opts, &sheet);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_csv_parse(env, text, &sheet.format, &csv);
	if (st == WEFT_OK) {
		st = parse_all(env, &sheet, &csv, text->path, out);
		wf_csv_fini(env, &csv);
	}
	wf_sheet_fini(env, &sheet);
	return st;
}

enum weft_status
wf_sheet_read(struct wf_env *env, const char *path, const struct wf_sheet_opts *opts,
	      struct wf_dataset *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_sheet_parse_whole(env, &text, opts, out);
	wf_text_fini(env, &text);
	return st;
}
