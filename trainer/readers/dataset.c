/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of tables of numbers: housing and digits. Arithmetic in f64, rounded to f32 once.
 * Thread: the caller's. */
#include "trainer/readers/dataset_internal.h"

#include <string.h>

#define HOUSING_FEATURES 13u
#define DIGIT_PIXELS 64u
#define DIGIT_CLASSES 10u
#define ROWS_MIN 5u /* so that four fifths leave a row to test on */

enum weft_status
wf_dataset_init(struct wf_env *env, const struct wf_csv *csv, const char *path,
		unsigned target_column, struct wf_dataset *dataset)
{
	*dataset = (struct wf_dataset){
		.features = csv->columns - 1,
		.rows = csv->rows,
		.train_rows = csv->rows * 4 / 5,
	};
	if (csv->rows < ROWS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu rows; at least %u are needed", path,
			       csv->rows, ROWS_MIN);
	}
	dataset->x = wf_zalloc_array(env, csv->rows * dataset->features, sizeof(float));
	dataset->y = wf_zalloc_array(env, csv->rows, sizeof(float));
	if (dataset->x == NULL || dataset->y == NULL) {
		wf_dataset_fini(env, dataset);
		return wf_fail(WEFT_NOMEM, "%s: %zu rows", path, csv->rows);
	}
	for (size_t row = 0; row < csv->rows; row++) {
		dataset->y[row] = (float)csv->value[row * csv->columns + target_column];
	}
	return WEFT_OK;
}

enum weft_status
wf_dataset_scale_column(const struct wf_csv *csv, const char *path, unsigned column,
			unsigned feature, struct wf_dataset *dataset)
{
	double min = csv->value[column];
	double max = min;
	double sum = 0.0;

	for (size_t row = 0; row < csv->rows; row++) {
		double value = csv->value[row * csv->columns + column];
		min = value < min ? value : min;
		max = value > max ? value : max;
		sum += value;
	}
	if (!(max > min)) {
		return wf_fail(WEFT_DATA,
			       "%s: line 2, column %u: \"%g\" is the same in every row, so the "
			       "column cannot be scaled",
			       path, column + 1, min);
	}
	double mean = sum / (double)csv->rows;
	for (size_t row = 0; row < csv->rows; row++) {
		double value = csv->value[row * csv->columns + column];
		dataset->x[row * dataset->features + feature] =
			(float)((value - mean) / (max - min));
	}
	return WEFT_OK;
}

enum weft_status
wf_housing_parse(struct wf_env *env, const struct wf_text *text, struct wf_dataset *out)
{
	static const struct wf_csv_format format = {
		.header = "crim,zn,indus,chas,nox,rm,age,dis,rad,tax,ptratio,b,lstat,medv",
		.separator = ',',
		.columns = HOUSING_FEATURES + 1,
		.target_column = HOUSING_FEATURES,
		.feature = {.min = -1e6, .max = 1e6},
		.target = {.min = -1e6, .max = 1e6},
	};
	struct wf_csv csv;
	struct wf_dataset dataset;

	enum weft_status st = wf_csv_parse(env, text, &format, &csv);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_dataset_init(env, &csv, text->path, HOUSING_FEATURES, &dataset);
	if (st == WEFT_OK) {
		for (unsigned column = 0; st == WEFT_OK && column < HOUSING_FEATURES; column++) {
			st = wf_dataset_scale_column(&csv, text->path, column, column, &dataset);
		}
		if (st == WEFT_OK) {
			*out = dataset;
		} else {
			wf_dataset_fini(env, &dataset);
		}
	}
	wf_csv_fini(env, &csv);
	return st;
}

enum weft_status
wf_digits_parse(struct wf_env *env, const struct wf_text *text, struct wf_dataset *out)
{
	static const struct wf_csv_format format = {
		.separator = ',',
		.columns = DIGIT_PIXELS + 1,
		.target_column = DIGIT_PIXELS,
		.feature = {.min = 0, .max = 16, .is_whole = true},
		.target = {.min = 0, .max = DIGIT_CLASSES - 1, .is_whole = true},
	};
	struct wf_csv csv;
	struct wf_dataset dataset;

	enum weft_status st = wf_csv_parse(env, text, &format, &csv);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_dataset_init(env, &csv, text->path, DIGIT_PIXELS, &dataset);
	if (st == WEFT_OK) {
		dataset.classes = DIGIT_CLASSES;
		for (size_t row = 0; row < csv.rows; row++) {
			for (unsigned pixel = 0; pixel < DIGIT_PIXELS; pixel++) {
				double value = csv.value[row * csv.columns + pixel];
				dataset.x[row * DIGIT_PIXELS + pixel] = (float)(value / 16.0);
			}
		}
		*out = dataset;
	}
	wf_csv_fini(env, &csv);
	return st;
}

static enum weft_status
read_file(struct wf_env *env, const char *path,
	  enum weft_status (*parse)(struct wf_env *env, const struct wf_text *text,
				    struct wf_dataset *out),
	  struct wf_dataset *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	st = parse(env, &text, out);
	wf_text_fini(env, &text);
	return st;
}

enum weft_status
wf_housing_read(struct wf_env *env, const char *path, struct wf_dataset *out)
{
	return read_file(env, path, wf_housing_parse, out);
}

enum weft_status
wf_digits_read(struct wf_env *env, const char *path, struct wf_dataset *out)
{
	return read_file(env, path, wf_digits_parse, out);
}

void
wf_dataset_row(const struct wf_dataset *dataset, size_t row, float *x)
{
	const size_t at = row * dataset->features;

	if (dataset->pixel == NULL) {
		memcpy(x, dataset->x + at, dataset->features * sizeof(float));
		return;
	}
	for (uint32_t i = 0; i < dataset->features; i++) {
		x[i] = (float)(dataset->pixel[at + i] / 255.0);
	}
}

void
wf_dataset_fini(struct wf_env *env, struct wf_dataset *dataset)
{
	wf_free(env, dataset->x, dataset->rows * dataset->features * sizeof(float));
	wf_free(env, dataset->pixel, dataset->rows * dataset->features);
	wf_free(env, dataset->y, dataset->rows * sizeof(float));
	*dataset = (struct wf_dataset){0};
}
