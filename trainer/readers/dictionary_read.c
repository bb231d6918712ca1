/* SPDX-License-Identifier: Apache-2.0 */
/* Reads words and their numbers from a file. Thread: see dictionary.h. */
#include <stdio.h>
#include <string.h>

#include "trainer/readers/dictionary.h"
#include "trainer/readers/letters.h"
#include "trainer/readers/words.h"

/* Copies a line into `out` if it is a word: what it is cut into is itself. */
static enum weft_status
read_word(const struct wf_field *line, char out[WF_WORD_BYTES_MAX + 1])
{
	char bytes[WF_WORD_BYTES_MAX + 1] = "";
	const struct wf_text_piece piece = {.path = line->path, .line = line->line, .lines = 1};
	struct wf_text text = {.path = line->path,
			       .bytes = bytes,
			       .count = line->count,
			       .piece = &piece,
			       .piece_count = 1};
	size_t piece_words = 0;
	size_t words = 0;

	if (line->count > WF_WORD_BYTES_MAX) {
		return wf_field_refuse(line, "is longer than the 63 bytes of a word");
	}
	memcpy(bytes, line->at, line->count);
	enum weft_status st = wf_letters_cut(&text, &piece_words, &words);
	if (st != WEFT_OK) {
		return st;
	}
	if (words != 1 || memcmp(bytes, line->at, line->count) != 0) {
		return wf_field_refuse(line, "is no word as texts have them: a line of a "
					     "dictionary is letters, none of A to Z, with "
					     "apostrophes between them");
	}
	memcpy(out, bytes, line->count + 1);
	return WEFT_OK;
}

static enum weft_status
add_word(struct wf_env *env, struct wf_census *census, const struct wf_field *line)
{
	char word[WF_WORD_BYTES_MAX + 1];
	char why[64];

	enum weft_status st = read_word(line, word);
	if (st != WEFT_OK) {
		return st;
	}
	if (census->names.count == WF_WORDS_VOCABULARY_MAX - 1) {
		snprintf(why, sizeof(why), "is behind the %u words that a dictionary may have",
			 WF_WORDS_VOCABULARY_MAX - 1);
		return wf_field_refuse(line, why);
	}
	const uint32_t before = wf_names_find(&census->names, word);
	if (before != WF_NAMES_NONE) {
		snprintf(why, sizeof(why), "is in line %u, too", before + 1);
		return wf_field_refuse(line, why);
	}
	return wf_census_add(env, census, line->path, word, 1);
}

static enum weft_status
add_words(struct wf_env *env, const struct wf_text *text, struct wf_census *census)
{
	struct wf_cut cut = {.text = text};
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && wf_cut_line(&cut)) {
		const struct wf_field line = {.at = cut.at,
					      .count = (size_t)(cut.end - cut.at),
					      .path = cut.path,
					      .line = cut.line,
					      .column = 1};
		st = add_word(env, census, &line);
	}
	return st == WEFT_OK && census->names.count == 0
		       ? wf_fail(WEFT_DATA, "%s: is empty; a dictionary has a word in each line",
				 text->path)
		       : st;
}

enum weft_status
wf_dictionary_read(struct wf_env *env, const char *path, struct wf_dictionary **out)
{
	struct wf_census census = {0};
	struct wf_text text;

	enum weft_status st = wf_text_read(env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	st = add_words(env, &text, &census);
	wf_text_fini(env, &text);
	if (st == WEFT_OK) {
		st = wf_dictionary_create_in_order(env, &census, out);
	}
	wf_census_fini(env, &census);
	return st;
}
