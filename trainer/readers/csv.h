/* SPDX-License-Identifier: Apache-2.0 */
/* csv: a strict reader of numeric CSV, a whole text at once. Anything that differs from
 * the format is refused with file, line, column and value; nothing is guessed or skipped. Thread:
 * any. */
#pragma once

#include <stddef.h>

#include "base/env.h"
#include "trainer/readers/text.h"

#define WF_CSV_COLUMNS_MAX 4096u

struct wf_csv_format {
	const char *header;            /* the exact first line of each file; NULL: there is none */
	const char *remedy;            /* where the first line is that of a table of another kind */
	char separator;                /* of fields */
	bool has_quotes;               /* a field may stand between two of them, as in RFC 4180 */
	unsigned columns;              /* 2..WF_CSV_COLUMNS_MAX */
	unsigned target_column;        /* below columns */
	struct wf_number_rule feature; /* of every column but the target's */
	struct wf_number_rule target;
};

struct wf_csv {
	double *value; /* [rows, columns], row-major */
	size_t rows;   /* may be 0 */
	unsigned columns;
	size_t value_bytes; /* as allocated */
};

/**
 * Reads a text.
 * @param out ends with wf_csv_fini
 * @return WEFT_OK; WEFT_DATA: file, line, column, value; WEFT_NOMEM
 */
enum weft_status wf_csv_parse(struct wf_env *env, const struct wf_text *text,
			      const struct wf_csv_format *format,
			      struct wf_csv *out) WEFT_MUST_CHECK;
void wf_csv_fini(struct wf_env *env, struct wf_csv *csv); /* accepts a zeroed one */
/* `at` is behind an opening quote. The closing one; NULL: it does not come before `end`. Two quotes
 * in a row stand for one that is in the field. */
const char *wf_csv_closing_quote(const char *at, const char *end);
