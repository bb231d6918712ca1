/* SPDX-License-Identifier: Apache-2.0 */
/* source: the rows that a run trains and tests on, from any kind of file: a table of numbers, rows
 * of keyed features, or running text. Rows are identified by number, the training rows first; a
 * batch consists of any of them. Thread: read-only after loading. */
#pragma once

#include "trainer/readers/bags.h"
#include "trainer/readers/sheet.h"
#include "trainer/readers/words.h"

enum wf_source_kind {
	WF_SOURCE_DATASET,
	WF_SOURCE_BAGS,
	WF_SOURCE_WORDS,
};

struct wf_source {
	enum wf_source_kind kind;
	uint32_t features;      /* columns of x */
	uint32_t classes;       /* 0: y is a real number */
	uint32_t slots;         /* bags of a row; 0: no keys */
	uint64_t key_count;     /* keys are 0 .. key_count - 1; 0: any u64 */
	size_t row_entries_max; /* of the row that has most */
	size_t rows;
	size_t train_rows; /* the first ones; > 0 */

	/* The member of its kind is set, the others are zeroed. */
	struct wf_dataset dataset;
	struct wf_bags bags;
	struct wf_words words;
};

struct wf_source_opts {
	const char *path; /* for error texts, and a folder of idx files */
	/* What is read; lent for the call, and readers may write to it. NULL: the file `path`. */
	struct wf_text *text;
	/* Of keyed features: "strikes", "libsvm", "criteo"; of digits: "idx"; of tables of numbers
	 * with a header: "csv". */
	const char *format;
	const char *target;  /* of csv: the name of its column; NULL or "": the last one */
	bool is_scaled;      /* of csv: features less their mean, divided by their range */
	uint64_t vocabulary; /* the most words, "unknown" included */
	/* The numbers of words; lent until fini. NULL: those of the text. */
	const struct wf_dictionary *dictionary;
	/* Do not use the test rows: train on four fifths of the training rows, test on the rest.
	 * The vocabulary is still that of all training rows. */
	bool is_validating;
	bool is_whole; /* there are other test rows: all of these are for training */
	/* The text is a part of a set, of any number of rows, none included, which are not split.
	 */
	bool is_window;
	/* Of running text that is a window: where that is. */
	struct wf_words_place *place;
	/* What rows of a table of numbers need to know of all of them; lent. NULL: the text has all
	 * of them, and it is no window. */
	const struct wf_sheet *sheet;
};

typedef enum weft_status wf_source_reader(struct wf_env *env, const struct wf_source_opts *opts,
					  struct wf_source *out);
/* Opens the sheet of a table of numbers, which `text` is the beginning of. As wf_sheet_open. */
typedef enum weft_status wf_source_opener(struct wf_env *env, const struct wf_source_opts *opts,
					  struct wf_sheet *out);

/* Each: WEFT_OK, and `out` ends with wf_source_fini; WEFT_DATA, WEFT_IO, WEFT_NOMEM as of the
 * readers; WEFT_INVALID: format. */
wf_source_reader wf_source_read_housing WEFT_MUST_CHECK;
wf_source_reader wf_source_read_digits WEFT_MUST_CHECK;
wf_source_reader wf_source_read_bags WEFT_MUST_CHECK;
wf_source_reader wf_source_read_words WEFT_MUST_CHECK;
void wf_source_fini(struct wf_env *env, struct wf_source *source); /* accepts a zeroed one */
wf_source_opener wf_source_open_housing WEFT_MUST_CHECK;
wf_source_opener wf_source_open_digits WEFT_MUST_CHECK;

/* What is known of the rows of running text before it is read, of which file_words [files] says how
 * many words each file has, and `opts` has path, dictionary and is_whole; it is not split for
 * validation. WEFT_DATA: as of wf_words_outline; WEFT_NOMEM. */
enum weft_status wf_source_outline_words(struct wf_env *env, const struct wf_source_opts *opts,
					 const size_t *file_words, size_t files,
					 struct wf_source *out) WEFT_MUST_CHECK;

/* Memory for batches of up to `rows_max` rows. WEFT_NOMEM. */
enum weft_status wf_source_batch_init(struct wf_env *env, const struct wf_source *source,
				      size_t rows_max, struct wf_bag_batch *out) WEFT_MUST_CHECK;
/* Copies `count` rows, given by number, into such a batch. */
void wf_source_gather(const struct wf_source *source, const uint32_t *row, size_t count,
		      struct wf_bag_batch *batch);

/* The digest of the words that have numbers. WEFT_NOMEM. */
enum weft_status wf_source_digest_words(struct wf_env *env, const struct wf_dictionary *dictionary,
					uint64_t *out) WEFT_MUST_CHECK;
/* The digest of all rows as they were read, test rows included: of their values, not of their file.
 * WEFT_NOMEM. */
enum weft_status wf_source_digest(struct wf_env *env, const struct wf_source *source,
				  uint64_t *out) WEFT_MUST_CHECK;

/* Every key that a training or test row has, each once, ascending. */
struct wf_key_list {
	uint64_t *key; /* [count] */
	size_t count;
	size_t alloc;
};

/* Of a source with keys; `out` ends with wf_key_list_fini. WEFT_NOMEM. */
enum weft_status wf_source_list_keys(struct wf_env *env, const struct wf_source *source,
				     struct wf_key_list *out) WEFT_MUST_CHECK;
void wf_key_list_fini(struct wf_env *env, struct wf_key_list *list); /* accepts a zeroed one */
