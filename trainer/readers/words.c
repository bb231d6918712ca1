/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words, numbers them, and builds rows of context and next word. Thread: the caller's. */
#include "trainer/readers/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/names.h"
#include "trainer/readers/letters.h"

#define TOKENS_MIN 50u /* so that a fifth of them is a context, a target, and some more */

struct entry {
	const char *spelling;
	uint64_t count; /* among the training words */
	uint32_t idx;   /* in order of appearance */
};

/* The different training words. */
struct index {
	struct entry *entry; /* [names.name_max] by number in names, until they are sorted */
	struct wf_names names;
	uint32_t *number; /* [names.name_max] what a word becomes, by idx */
};

static void
index_fini(struct wf_env *env, struct index *index)
{
	wf_free(env, index->entry, index->names.name_max * sizeof(*index->entry));
	wf_free(env, index->number, index->names.name_max * sizeof(*index->number));
	wf_names_fini(env, &index->names);
}

static enum weft_status
index_init(struct wf_env *env, size_t tokens, struct index *index)
{
	uint32_t most = tokens < WF_WORDS_DISTINCT_MAX ? (uint32_t)tokens : WF_WORDS_DISTINCT_MAX;
	enum weft_status st = wf_names_init(env, most, &index->names);
	if (st != WEFT_OK) {
		return st;
	}
	index->entry = wf_zalloc_array(env, most, sizeof(*index->entry));
	index->number = wf_zalloc_array(env, most, sizeof(*index->number));
	if (index->entry == NULL || index->number == NULL) {
		return wf_fail(WEFT_NOMEM, "vocabulary: %u words", most);
	}
	return WEFT_OK;
}

/* Number the words in order of appearance for now; test words that training has not are
 * WF_NAMES_NONE. */
static enum weft_status
index_words(struct index *index, const struct wf_text *text, struct wf_words *words)
{
	const char *at = text->bytes;

	for (size_t i = 0; i < words->tokens; i++, at += strlen(at) + 1) {
		uint32_t word = wf_names_find(&index->names, at);
		if (word == WF_NAMES_NONE && i < words->train_tokens) {
			if (index->names.count == index->names.name_max) {
				return wf_fail(WEFT_DATA,
					       "%s: has more than %u different words, the first "
					       "one too many is \"%s\"",
					       text->path, index->names.name_max, at);
			}
			word = wf_names_add(&index->names, at);
			index->entry[word] = (struct entry){.spelling = at, .idx = word};
		}
		words->token[i] = word;
		if (i < words->train_tokens) {
			index->entry[word].count++;
		}
	}
	WF_ASSERT(at == text->bytes + text->count);
	return WEFT_OK;
}

static int
by_count(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->count != b->count) {
		return a->count > b->count ? -1 : 1;
	}
	return strcmp(a->spelling, b->spelling);
}

/* Sorts by count, assigns the numbers, and replaces the numbers in order of appearance by them. */
static void
number_words(struct index *index, struct wf_words *words)
{
	qsort(index->entry, index->names.count, sizeof(*index->entry), by_count);
	words->word[WF_WORDS_UNKNOWN] = "<unk>";
	for (uint32_t i = 0; i < index->names.count; i++) {
		const struct entry *entry = &index->entry[i];
		uint32_t number = i + 1 < words->vocabulary ? i + 1 : WF_WORDS_UNKNOWN;
		index->number[entry->idx] = number;
		words->count[number] += entry->count;
		if (number != WF_WORDS_UNKNOWN) {
			words->word[number] = entry->spelling;
		}
	}
	for (size_t i = 0; i < words->tokens; i++) {
		words->token[i] = words->token[i] == WF_NAMES_NONE ? WF_WORDS_UNKNOWN
								   : index->number[words->token[i]];
	}
}

static enum weft_status
split(const struct wf_text *text, size_t tokens, struct wf_words *words)
{
	if (tokens < TOKENS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu words; at least %u are needed", text->path,
			       tokens, TOKENS_MIN);
	}
	words->tokens = tokens;
	words->train_tokens = tokens * 4 / 5;
	words->train_rows = words->train_tokens - WF_WORDS_CONTEXT;
	words->rows = words->train_rows + (tokens - words->train_tokens) - WF_WORDS_CONTEXT;
	return WEFT_OK;
}

/* `vocabulary` at most; with all words numbered, 0 still stands for those that only the test has.
 */
static enum weft_status
build_vocabulary(struct wf_env *env, const struct index *index, uint32_t vocabulary,
		 struct wf_words *words)
{
	uint32_t most = index->names.count + 1;

	words->vocabulary = most < vocabulary ? most : vocabulary;
	words->word = wf_zalloc_array(env, words->vocabulary, sizeof(*words->word));
	words->count = wf_zalloc_array(env, words->vocabulary, sizeof(*words->count));
	if (words->word == NULL || words->count == NULL) {
		return wf_fail(WEFT_NOMEM, "vocabulary: %u words", words->vocabulary);
	}
	return WEFT_OK;
}

enum weft_status
wf_words_parse(struct wf_env *env, struct wf_text *text, uint32_t vocabulary, struct wf_words *out)
{
	struct wf_words words = {.spelling = *text};
	struct index index = {0};
	size_t tokens = 0;

	WF_ASSERT(vocabulary >= 2 && vocabulary <= WF_WORDS_VOCABULARY_MAX);
	*text = (struct wf_text){0};
	enum weft_status st = wf_letters_cut(&words.spelling, &tokens);
	if (st == WEFT_OK) {
		st = split(&words.spelling, tokens, &words);
	}
	if (st == WEFT_OK) {
		words.token = wf_zalloc_array(env, tokens, sizeof(*words.token));
		st = words.token == NULL ? wf_fail(WEFT_NOMEM, "text: %zu words", tokens)
					 : index_init(env, words.train_tokens, &index);
	}
	if (st == WEFT_OK) {
		st = index_words(&index, &words.spelling, &words);
	}
	if (st == WEFT_OK) {
		st = build_vocabulary(env, &index, vocabulary, &words);
	}
	if (st == WEFT_OK) {
		number_words(&index, &words);
		*out = words;
	} else {
		wf_words_fini(env, &words);
	}
	index_fini(env, &index);
	return st;
}

enum weft_status
wf_words_read(struct wf_env *env, const char *path, uint32_t vocabulary, struct wf_words *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	return st == WEFT_OK ? wf_words_parse(env, &text, vocabulary, out) : st;
}

void
wf_words_fini(struct wf_env *env, struct wf_words *words)
{
	wf_free(env, words->word, words->vocabulary * sizeof(*words->word));
	wf_free(env, words->count, words->vocabulary * sizeof(*words->count));
	wf_free(env, words->token, words->tokens * sizeof(*words->token));
	wf_text_fini(env, &words->spelling);
	*words = (struct wf_words){0};
}

void
wf_words_gather(const struct wf_words *words, const uint32_t *row, size_t count,
		struct wf_bag_batch *batch)
{
	WF_ASSERT(batch->slots == WF_WORDS_CONTEXT && batch->features == 0);
	WF_ASSERT(count <= batch->rows_max && batch->entries_max >= count * WF_WORDS_CONTEXT);
	batch->rows = count;
	batch->first[0] = 0;
	for (size_t i = 0; i < count; i++) {
		WF_ASSERT(row[i] < words->rows);
		const uint32_t *token = words->token + wf_words_row_start(words, row[i]);
		for (uint32_t slot = 0; slot < WF_WORDS_CONTEXT; slot++) {
			size_t entry = i * WF_WORDS_CONTEXT + slot;
			batch->key[entry] = token[slot];
			batch->weight[entry] = 1.0f;
			batch->first[entry + 1] = (uint32_t)entry + 1;
		}
		batch->y[i] = (float)token[WF_WORDS_CONTEXT];
	}
}
