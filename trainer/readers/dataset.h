/* SPDX-License-Identifier: Apache-2.0 */
/* dataset: rows of features with a target each, the training rows before the test rows. They come
 * from tables of numbers (sheet.h) and of images (idx.h).
 * Thread: read-only after loading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

struct wf_dataset {
	uint32_t features; /* columns of x */
	uint32_t classes;  /* 0: y is a real number; else y is one of 0..classes-1 */
	size_t rows;
	size_t train_rows; /* the first ones, once split: 0 < train_rows < rows */
	float *x;          /* [rows, features], as scaled by the reader; NULL for images */
	uint8_t *pixel;    /* [rows, features] of images: x is a 255th of it; else NULL */
	float *y;          /* [rows] */
};

/* Copies row `row` into x [features]. */
void wf_dataset_row(const struct wf_dataset *dataset, size_t row, float *x);
void wf_dataset_fini(struct wf_env *env, struct wf_dataset *dataset); /* accepts a zeroed one */

#define WF_DATA_PATH_BYTES 4096u

/**
 * Finds a file of the project's data folder: in $WEFT_DATA_DIR if set; otherwise in data/ or
 * share/weft/ of the program's folder and the four above it, so that build trees and moved
 * prefixes work; else in the data folder of the prefix it was built for.
 * @param out [WF_DATA_PATH_BYTES]
 * @return WEFT_OK; WEFT_DATA: where it was looked for, and the remedy
 */
enum weft_status wf_data_find(const char *file, char *out) WEFT_MUST_CHECK;
