/* SPDX-License-Identifier: Apache-2.0 */
/* dataset: rows of features with a target each, the training rows before the test rows. Every
 * trainer reads the whole file and selects its share by row number (trainer/program/shard.h).
 * Thread: read-only after loading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "trainer/readers/text.h"

struct wf_dataset {
	uint32_t features; /* columns of x */
	uint32_t classes;  /* 0: y is a real number; else y is one of 0..classes-1 */
	size_t rows;
	size_t train_rows; /* the first ones; 0 < train_rows < rows */
	float *x;          /* [rows, features], as scaled by the reader; NULL for images */
	uint8_t *pixel;    /* [rows, features] of images: x is a 255th of it; else NULL */
	float *y;          /* [rows] */
};

/* Each reader: WEFT_OK, and `out` ends with wf_dataset_fini; WEFT_DATA: file, line, column, value;
 * WEFT_IO; WEFT_NOMEM. All split 80/20 in file order. The *_parse functions read a text that is
 * already in memory. */

/* Boston housing, as the original's uci_housing: 13 features, each less its mean and divided by its
 * range (both over all rows of the file, test rows included); y is the price in 1000 dollars. */
enum weft_status wf_housing_read(struct wf_env *env, const char *path,
				 struct wf_dataset *out) WEFT_MUST_CHECK;
enum weft_status wf_housing_parse(struct wf_env *env, const struct wf_text *text,
				  struct wf_dataset *out) WEFT_MUST_CHECK;
/* UCI optical digits: 64 pixels 0..16, divided by 16; y is the digit. */
enum weft_status wf_digits_read(struct wf_env *env, const char *path,
				struct wf_dataset *out) WEFT_MUST_CHECK;
enum weft_status wf_digits_parse(struct wf_env *env, const struct wf_text *text,
				 struct wf_dataset *out) WEFT_MUST_CHECK;

struct wf_columns_opts {
	const char *target; /* name of the target's column; NULL or "": the last one */
	bool has_classes;   /* it is a whole number, 0 .. classes - 1, not a real one */
	/* Each feature less its mean and divided by its range, over all rows; else as it stands. */
	bool is_scaled;
};

#define WF_COLUMNS_CLASSES_MAX 4096u

/* Any table of numbers with a header in the first line of each file, the same in all. Its fields
 * are separated by commas, semicolons or tabs, as in the header. At most WF_CSV_COLUMNS_MAX
 * columns. */
enum weft_status wf_columns_read(struct wf_env *env, const char *path,
				 const struct wf_columns_opts *opts,
				 struct wf_dataset *out) WEFT_MUST_CHECK;
enum weft_status wf_columns_parse(struct wf_env *env, const struct wf_text *text,
				  const struct wf_columns_opts *opts,
				  struct wf_dataset *out) WEFT_MUST_CHECK;
/* Copies row `row` into x [features]. */
void wf_dataset_row(const struct wf_dataset *dataset, size_t row, float *x);
void wf_dataset_fini(struct wf_env *env, struct wf_dataset *dataset); /* accepts a zeroed one */

#define WF_DATA_PATH_BYTES 4096u

/**
 * Finds a file of the project's data folder: in $WEFT_DATA_DIR if set; otherwise in data/ or
 * share/weft/ of the program's folder and the four above it, so that build trees and moved
 * prefixes work; else in the data folder of the prefix it was built for.
 * @param out [WF_DATA_PATH_BYTES]
 * @return WEFT_OK; WEFT_IO: where it was looked for, and the remedy
 */
enum weft_status wf_data_find(const char *file, char *out) WEFT_MUST_CHECK;
