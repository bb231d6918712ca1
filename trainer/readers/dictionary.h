/* SPDX-License-Identifier: Apache-2.0 */
/* dictionary: the different words of a text, how often each is there, and the numbers that the most
 * frequent ones get: from 1 by falling count, equal counts in the order of their bytes; 0 is the
 * number of all others. A file of words may have the numbers instead. What a word is, letters.h and
 * words.h say.
 *
 * Memory: while words are counted, at most 64 bytes and the spelling for each different one,
 * whatever the size of the text; afterwards that of the numbered ones. Thread: the owner's while
 * words are counted; a dictionary is read-only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/names.h"

#define WF_WORDS_UNKNOWN 0u
#define WF_WORDS_DISTINCT_MAX (1u << 24) /* different words that are counted */
#define WF_WORDS_VOCABULARY_MAX (1u << 20)

struct wf_spellings;

/* Words that are being counted. Start with a zeroed one. */
struct wf_census {
	struct wf_names names; /* in the order of their appearance */
	uint64_t *count;       /* [names.name_max] of each */
	struct wf_spellings *spellings;
};

/* Counts `count` words, each ended by a zero byte. WEFT_DATA: `path` and the word that is one too
 * many; WEFT_NOMEM. */
enum weft_status wf_census_add(struct wf_env *env, struct wf_census *census, const char *path,
			       const char *words, size_t count) WEFT_MUST_CHECK;
void wf_census_fini(struct wf_env *env, struct wf_census *census); /* accepts a zeroed one */

struct wf_dictionary {
	uint32_t vocabulary; /* words are numbered 0..vocabulary-1 */
	const char **word;   /* [vocabulary] spelled; [0] is "<unk>" */
	uint64_t *count;     /* [vocabulary] among the words counted */

	struct wf_names names; /* of all of them, under their numbers */
	struct wf_spellings *spellings;
};

/* Numbers the words of a census, of which `vocabulary` at most, "unknown" included, are kept;
 * 2..WF_WORDS_VOCABULARY_MAX. `out` ends with wf_dictionary_destroy. WEFT_NOMEM. */
enum weft_status wf_dictionary_create(struct wf_env *env, const struct wf_census *census,
				      uint32_t vocabulary,
				      struct wf_dictionary **out) WEFT_MUST_CHECK;
/* The same with the numbers 1, 2, 3, ... in the order in which the census met the words, of which
 * there are 1 to WF_WORDS_VOCABULARY_MAX - 1. */
enum weft_status wf_dictionary_create_in_order(struct wf_env *env, const struct wf_census *census,
					       struct wf_dictionary **out) WEFT_MUST_CHECK;
/**
 * Reads a file of words, which may be packed: line N has the word of number N and nothing else.
 * @param out ends with wf_dictionary_destroy
 * @return WEFT_OK; WEFT_DATA: the file is missing, damaged or empty, or has more than
 *         WF_WORDS_VOCABULARY_MAX - 1 lines; or a line is no word, or has one that is in a line
 *         before it: file and line; WEFT_IO; WEFT_NOMEM
 */
enum weft_status wf_dictionary_read(struct wf_env *env, const char *path,
				    struct wf_dictionary **out) WEFT_MUST_CHECK;
void wf_dictionary_destroy(struct wf_env *env, struct wf_dictionary *dictionary); /* or NULL */
/* The number of a word. */
uint32_t wf_dictionary_find(const struct wf_dictionary *dictionary, const char *word);
