/* SPDX-License-Identifier: Apache-2.0 */
/* sheet: what the rows of a table of numbers have in common: how its lines are laid out, how its
 * features are scaled, and how many classes there are. A table that is larger than memory is read
 * in windows, and before that once for what follows from all of its rows (a survey). Both ways end
 * with the same values. Thread: read-only once surveyed. */
#pragma once

#include "trainer/readers/csv.h"
#include "trainer/readers/dataset.h"

enum wf_sheet_kind {
	WF_SHEET_HOUSING, /* Boston housing, as the original's uci_housing: 13 features, scaled by
			     their ranges; y is the price in 1000 dollars */
	WF_SHEET_DIGITS,  /* UCI optical digits: 64 pixels 0..16, divided by 16; y is the digit */
	WF_SHEET_COLUMNS, /* any table with a header in the first line of each file, the same in
			     all; its fields are separated by commas, semicolons or tabs, as in
			     the header */
};

#define WF_SHEET_CLASSES_MAX 4096u

struct wf_sheet_opts {
	enum wf_sheet_kind kind;
	/* Of columns. */
	const char *target; /* name of the target's column; NULL or "": the last one */
	bool has_classes;   /* it is a whole number, 0 .. classes - 1, not a real one */
	/* Each feature less its mean and divided by its range, over all rows of the table, test
	 * rows included; else as it stands. */
	bool is_scaled;
};

/* A column over all rows. */
struct wf_sheet_column {
	double min, max;
	double mean; /* the sum until the survey is over */
};

struct wf_sheet {
	struct wf_csv_format format; /* with `header` as its header, if there is one */
	char *header;                /* [header_bytes] owned; NULL: the format's is a constant */
	size_t header_bytes;
	double divisor;   /* of features that are not scaled */
	bool has_classes; /* of which there are 0 until the survey is over, */
	uint32_t classes; /* unless the format says how many; of a real target: 0 */
	/* [format.columns] NULL: features are not scaled. */
	struct wf_sheet_column *column;
	uint64_t rows; /* surveyed */
};

/* Reads the layout of a table from the beginning of its first file; `out` ends with wf_sheet_fini.
 * WEFT_DATA: file, line, column, value; WEFT_NOMEM. */
enum weft_status wf_sheet_open(struct wf_env *env, const struct wf_text *text,
			       const struct wf_sheet_opts *opts,
			       struct wf_sheet *out) WEFT_MUST_CHECK;
void wf_sheet_fini(struct wf_env *env, struct wf_sheet *sheet); /* accepts a zeroed one */

/* The names in the header of a table that was opened, one after the other: those of the features in
 * their order, and then that of the target, wherever it stands. Start with {.sheet, .name.path}. */
struct wf_sheet_names {
	const struct wf_sheet *sheet;
	struct wf_field name;   /* the last one that was found, without its quotes */
	struct wf_field target; /* once it has been passed */
	const char *next;       /* behind the last one in the header; NULL: at its beginning */
	unsigned columns;       /* passed; one more: the target was found, too */
};
/* false: there are no more, or the table has no header of its own. */
bool wf_sheet_next_name(struct wf_sheet_names *names);

/* Whether anything follows from all rows. If not, there need not be a survey. */
bool wf_sheet_needs_survey(const struct wf_sheet *sheet);
/* Adds the rows of a window; windows come in the order of the set. WEFT_DATA: file, line, column,
 * value; WEFT_NOMEM. */
enum weft_status wf_sheet_survey(struct wf_env *env, struct wf_sheet *sheet,
				 const struct wf_text *text) WEFT_MUST_CHECK;
/* That was the last one. `path` is of the first file. WEFT_DATA: a column cannot be scaled; there
 * are fewer than two classes. */
enum weft_status wf_sheet_end_survey(struct wf_sheet *sheet, const char *path) WEFT_MUST_CHECK;
/* The rows of a window, which may be none; they are not split. `out` ends with wf_dataset_fini.
 * WEFT_DATA: file, line, column, value; WEFT_NOMEM. */
enum weft_status wf_sheet_parse(struct wf_env *env, const struct wf_sheet *sheet,
				const struct wf_text *text, struct wf_dataset *out) WEFT_MUST_CHECK;

/* Splits rows 80/20 in their order. WEFT_DATA: too few. */
enum weft_status wf_sheet_split(const char *path, struct wf_dataset *dataset) WEFT_MUST_CHECK;

/* A whole table at once, split 80/20 in file order: from a text in memory, or from a file. `out`
 * ends with wf_dataset_fini. WEFT_DATA: file, line, column, value; WEFT_IO; WEFT_NOMEM. */
enum weft_status wf_sheet_parse_whole(struct wf_env *env, const struct wf_text *text,
				      const struct wf_sheet_opts *opts,
				      struct wf_dataset *out) WEFT_MUST_CHECK;
enum weft_status wf_sheet_read(struct wf_env *env, const char *path,
			       const struct wf_sheet_opts *opts,
			       struct wf_dataset *out) WEFT_MUST_CHECK;
