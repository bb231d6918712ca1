/* SPDX-License-Identifier: Apache-2.0 */
/* words: running text as numbered words, for models that predict the next word.
 *
 * A word is a run of letters, lower-cased where they are A to Z; an apostrophe (' or U+2019, kept
 * as ') between two letters belongs to it. Letters are those of ASCII and, unchanged, everything in
 * Unicode from U+00C0 on except the times and division signs, U+2000 to U+206F, U+3000 to U+303F
 * and U+FEFF. Everything else, digits and hyphens included, separates words and is dropped.
 *
 * The first four fifths of the words are the training part. Its most frequent words are the
 * vocabulary, numbered from 1 by falling count, equal counts in the order of their bytes; 0 is the
 * number of all others. Row r of the set is WF_WORDS_CONTEXT words and the one after them as
 * target; no row crosses the border between training and test words. Thread: read-only after
 * loading. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "trainer/readers/bags.h"

#define WF_WORDS_CONTEXT 4u
#define WF_WORDS_UNKNOWN 0u
#define WF_WORD_BYTES_MAX 63u
#define WF_WORDS_DISTINCT_MAX (1u << 20) /* different words of a text */
#define WF_WORDS_VOCABULARY_MAX WF_WORDS_DISTINCT_MAX

struct wf_words {
	uint32_t vocabulary; /* words are numbered 0..vocabulary-1 */
	const char **word;   /* [vocabulary] spelled; [0] is "<unk>" */
	uint64_t *count;     /* [vocabulary] among the training words */
	uint32_t *token;     /* [tokens] the text */
	size_t tokens;
	size_t train_tokens;
	size_t rows; /* row r: the words from wf_words_row_start(r) on */
	size_t train_rows;

	struct wf_text spelling; /* what `word` points into */
};

/**
 * Reads a text of UTF-8.
 * @param vocabulary how many words to number at most, "unknown"
 * included; 2..WF_WORDS_VOCABULARY_MAX
 * @param out        ends with wf_words_fini
 * @return WEFT_OK; WEFT_DATA: file, and the line and byte where it is no text, or why there are too
 *         few words; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_words_read(struct wf_env *env, const char *path, uint32_t vocabulary,
			       struct wf_words *out) WEFT_MUST_CHECK;
/* The same for a text in memory, which it owns from then on: it is freed with the set, or by the
 * failure. */
enum weft_status wf_words_parse(struct wf_env *env, struct wf_text *text, uint32_t vocabulary,
				struct wf_words *out) WEFT_MUST_CHECK;
void wf_words_fini(struct wf_env *env, struct wf_words *words); /* accepts a zeroed one */

/* Index in `token` of a row's first word. */
static inline size_t
wf_words_row_start(const struct wf_words *words, size_t row)
{
	return row < words->train_rows ? row : words->train_tokens + (row - words->train_rows);
}

/* Puts rows, given by number, into a batch of WF_WORDS_CONTEXT slots and no features: keys are the
 * numbers of the context's words, all of weight 1, the target is that of the next word. */
void wf_words_gather(const struct wf_words *words, const uint32_t *row, size_t count,
		     struct wf_bag_batch *batch);
