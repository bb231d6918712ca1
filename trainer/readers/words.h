/* SPDX-License-Identifier: Apache-2.0 */
/* words: running text as numbered words, for models that predict the next word.
 *
 * A word is a run of letters, lower-cased where they are A to Z; an apostrophe (' or U+2019, kept
 * as ') between two letters belongs to it. Letters are those of ASCII and, unchanged, everything in
 * Unicode from U+00C0 on except the times and division signs, U+2000 to U+206F, U+3000 to U+303F
 * and U+FEFF. Everything else, digits and hyphens included, separates words and is dropped.
 *
 * The first four fifths of the words are the training part, from which the numbers of words follow
 * (dictionary.h). A row is WF_WORDS_CONTEXT words and the one after them as target; no row crosses
 * the border between training and test words, or between two files. Thread: read-only after
 * loading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "trainer/readers/bags.h"
#include "trainer/readers/dictionary.h"

#define WF_WORDS_CONTEXT 4u
#define WF_WORD_BYTES_MAX 63u
#define WF_WORDS_MIN 50u /* of a text, so that a fifth is a context, a target, and some more */

/* Words that follow each other, and all rows in them. */
struct wf_words_run {
	size_t token; /* the first word, */
	size_t tokens;
	size_t row;    /* and the number of the first row */
	size_t file;   /* whose words they are, by its place in the list of files, */
	uint64_t word; /* and the first one's place in it */
};

struct wf_words_runs {
	struct wf_words_run *run; /* [count], in the order of their words and rows */
	size_t count, alloc;
	size_t rows, train_rows;
};

struct wf_words {
	const struct wf_dictionary *dictionary; /* the numbers; lent, unless it is */
	struct wf_dictionary *own;              /* this one */
	uint32_t *token;                        /* [tokens] the text; NULL of an outline */
	size_t tokens;
	size_t train_tokens;
	size_t rows;
	size_t train_rows;
	struct wf_words_runs runs;
};

struct wf_words_opts {
	const struct wf_dictionary *dictionary; /* lent until fini; NULL: of the training words */
	/* How many words such a one numbers at most, "unknown" included;
	 * 2..WF_WORDS_VOCABULARY_MAX. */
	uint32_t vocabulary;
	bool is_whole; /* all words are for training */
};

/**
 * Reads a text of UTF-8.
 * @param out ends with wf_words_fini
 * @return WEFT_OK; WEFT_DATA: file, and the line and byte where it is no text, or why there are too
 *         few words; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_words_read(struct wf_env *env, const char *path,
			       const struct wf_words_opts *opts,
			       struct wf_words *out) WEFT_MUST_CHECK;
/* The same for a text in memory, of which nothing is left but the memory. */
enum weft_status wf_words_parse(struct wf_env *env, struct wf_text *text,
				const struct wf_words_opts *opts,
				struct wf_words *out) WEFT_MUST_CHECK;
void wf_words_fini(struct wf_env *env, struct wf_words *words); /* accepts a zeroed one */

/* What is known of a text whose files have so many words, file_words [files]: its runs and rows, as
 * wf_words_parse has them, and no words. WEFT_DATA: `path` and why there are too few words;
 * WEFT_NOMEM. */
enum weft_status wf_words_outline(struct wf_env *env, const char *path,
				  const struct wf_words_opts *opts, const size_t *file_words,
				  size_t files, struct wf_words *out) WEFT_MUST_CHECK;

/* The words of a file that rows are made of. */
struct wf_words_span {
	const char *path;
	uint64_t words;      /* that the file has; > 0 */
	uint64_t first, end; /* the words first .. end - 1 */
};

/* A place in files that are read window by window, from the first window on. Set the spans, and
 * nothing else. */
struct wf_words_place {
	const struct wf_words_span *span; /* [span_count] lent */
	size_t span_count;
	size_t at;                       /* the span being read, */
	uint64_t seen;                   /* how many words of its file have been, */
	uint32_t lead[WF_WORDS_CONTEXT]; /* and the last ones of them that rows are made of, with */
	size_t lead_count;               /* which rows of the next window begin */
};

/**
 * Reads the next window. A row is in the window that has its last word.
 * @param text  with pieces, whose `file` is the number of a span
 * @param out   has a run for each piece; ends with wf_words_fini
 * @return WEFT_OK; WEFT_DATA: as of wf_words_read, or a file has another number of words;
 *         WEFT_NOMEM
 */
enum weft_status wf_words_parse_window(struct wf_env *env, struct wf_text *text,
				       const struct wf_dictionary *dictionary,
				       struct wf_words_place *place,
				       struct wf_words *out) WEFT_MUST_CHECK;
/* There is no window left. WEFT_DATA: a file has another number of words. */
enum weft_status wf_words_end_windows(struct wf_words_place *place) WEFT_MUST_CHECK;

/* The first word of a row. */
size_t wf_words_row_start(const struct wf_words_runs *runs, size_t row);

/* How many of the words of a text, its first ones, are for training. */
static inline size_t
wf_words_train_part(size_t words, bool is_whole)
{
	return is_whole ? words : words * 4 / 5;
}

/* Puts rows, given by number, into a batch of WF_WORDS_CONTEXT slots and no features: keys are the
 * numbers of the context's words, all of weight 1, the target is that of the next word. */
void wf_words_gather(const struct wf_words *words, const uint32_t *row, size_t count,
		     struct wf_bag_batch *batch);
