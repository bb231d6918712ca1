/* SPDX-License-Identifier: Apache-2.0 */
/* csv: a strict reader of small numeric CSV files, whole file at once. Anything that differs from
 * the format is refused with file, line, column and value; nothing is guessed or skipped. Thread:
 * any. */
#pragma once

#include <stddef.h>

#include "base/env.h"
#include "trainer/readers/text.h"

#define WF_CSV_COLUMNS_MAX 4096u

struct wf_csv_format {
	const char *header;            /* the exact first line; NULL: there is none */
	unsigned columns;              /* 2..WF_CSV_COLUMNS_MAX */
	struct wf_number_rule feature; /* of every column but the last */
	struct wf_number_rule target;  /* of the last column */
};

struct wf_csv {
	double *value; /* [rows, columns], row-major */
	size_t rows;   /* >= 1 */
	unsigned columns;
	size_t value_bytes; /* as allocated */
};

/**
 * Reads a file.
 * @param out ends with wf_csv_fini
 * @return WEFT_OK; WEFT_DATA: file, line, column, value; WEFT_IO: file and the system's reason;
 *         WEFT_NOMEM
 */
enum weft_status wf_csv_read(struct wf_env *env, const char *path,
			     const struct wf_csv_format *format,
			     struct wf_csv *out) WEFT_MUST_CHECK;
void wf_csv_fini(struct wf_env *env, struct wf_csv *csv); /* accepts a zeroed one */
