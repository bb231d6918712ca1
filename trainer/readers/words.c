/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers the words of a text, and builds rows of context and next word. Thread: the caller's. */
#include "trainer/readers/words.h"

#include <string.h>

#include "base/assert.h"
#include "trainer/readers/letters.h"

/* --- rows --- */

static void
add_run(struct wf_words_runs *runs, size_t token, size_t tokens)
{
	WF_ASSERT(runs->count < runs->alloc);
	runs->run[runs->count++] =
		(struct wf_words_run){.token = token, .tokens = tokens, .row = runs->rows};
	runs->rows += tokens > WF_WORDS_CONTEXT ? tokens - WF_WORDS_CONTEXT : 0;
}

/* A run for each file, and one more where the border between training and test words is within one.
 * `file_words` is [files]. */
static enum weft_status
runs_init(struct wf_env *env, const size_t *file_words, size_t files, size_t train_words,
	  struct wf_words_runs *out)
{
	struct wf_words_runs runs = {.alloc = files + 1};
	size_t at = 0;

	runs.run = wf_zalloc_array(env, runs.alloc, sizeof(*runs.run));
	if (runs.run == NULL) {
		return wf_fail(WEFT_NOMEM, "rows of %zu files", files);
	}
	for (size_t i = 0; i < files; i++) {
		const size_t end = at + file_words[i];
		const size_t border = at < train_words && train_words < end ? train_words : end;
		add_run(&runs, at, border - at);
		if (border <= train_words) {
			runs.train_rows = runs.rows;
		}
		if (border < end) {
			add_run(&runs, border, end - border);
		}
		at = end;
	}
	*out = runs;
	return WEFT_OK;
}

/* Whether there are rows enough. */
static enum weft_status
check_rows(const char *path, size_t words, const struct wf_words_runs *runs, bool is_whole)
{
	if (words < WF_WORDS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu words; at least %u are needed", path, words,
			       WF_WORDS_MIN);
	}
	if (runs->train_rows == 0 || (!is_whole && runs->train_rows == runs->rows)) {
		return wf_fail(WEFT_DATA,
			       "%s: its words %s are in files of less than %u, and a row has words "
			       "of one file; put the files together",
			       path, runs->train_rows == 0 ? "to train on" : "to test on",
			       WF_WORDS_CONTEXT + 1);
	}
	return WEFT_OK;
}

size_t
wf_words_row_start(const struct wf_words_runs *runs, size_t row)
{
	size_t low = 0;
	size_t high = runs->count;

	/* The last run whose first row is not after this one; an empty run has none, and shares the
	 * number of the one behind it. */
	WF_ASSERT(row < runs->rows);
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;
		if (runs->run[middle].row <= row) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return runs->run[low].token + (row - runs->run[low].row);
}

/* --- words --- */

static enum weft_status
count_words(struct wf_env *env, const struct wf_text *text, const struct wf_words_opts *opts,
	    struct wf_words *words)
{
	struct wf_census census = {0};

	enum weft_status st =
		wf_census_add(env, &census, text->path, text->bytes, words->train_tokens);
	if (st == WEFT_OK) {
		st = wf_dictionary_create(env, &census, opts->vocabulary, &words->own);
		words->dictionary = words->own;
	}
	wf_census_fini(env, &census);
	return st;
}

/* The words of a text that has been cut. */
static enum weft_status
number_words(struct wf_env *env, const struct wf_text *text, struct wf_words *words)
{
	const char *at = text->bytes;

	words->token = wf_zalloc_array(env, words->tokens, sizeof(*words->token));
	if (words->token == NULL) {
		return wf_fail(WEFT_NOMEM, "text: %zu words", words->tokens);
	}
	for (size_t i = 0; i < words->tokens; i++, at += strlen(at) + 1) {
		words->token[i] = wf_dictionary_find(words->dictionary, at);
	}
	WF_ASSERT(at == text->bytes + text->count);
	return WEFT_OK;
}

/* The words of a text that has been cut, with the words of each of its files. */
static enum weft_status
fill_words(struct wf_env *env, const struct wf_text *text, const struct wf_words_opts *opts,
	   const size_t *file_words, size_t files, struct wf_words *words)
{
	words->train_tokens = wf_words_train_part(words->tokens, opts->is_whole);
	words->dictionary = opts->dictionary;
	enum weft_status st = runs_init(env, file_words, files, words->train_tokens, &words->runs);
	if (st == WEFT_OK) {
		st = check_rows(text->path, words->tokens, &words->runs, opts->is_whole);
	}
	if (st == WEFT_OK && opts->dictionary == NULL) {
		st = count_words(env, text, opts, words);
	}
	if (st == WEFT_OK) {
		st = number_words(env, text, words);
	}
	words->rows = words->runs.rows;
	words->train_rows = words->runs.train_rows;
	return st;
}

enum weft_status
wf_words_parse(struct wf_env *env, struct wf_text *text, const struct wf_words_opts *opts,
	       struct wf_words *out)
{
	const size_t files = text->piece_count > 0 ? text->piece_count : 1;
	struct wf_words words = {0};
	size_t *file_words = wf_zalloc_array(env, files, sizeof(*file_words));

	WF_ASSERT(opts->dictionary != NULL || opts->vocabulary >= 2);
	if (file_words == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: words of %zu files", text->path, files);
	}
	enum weft_status st = wf_letters_cut(text, file_words, &words.tokens);
	if (st == WEFT_OK) {
		file_words[0] = text->piece_count > 0 ? file_words[0] : words.tokens;
		st = fill_words(env, text, opts, file_words, files, &words);
	}
	wf_free(env, file_words, files * sizeof(*file_words));
	if (st != WEFT_OK) {
		wf_words_fini(env, &words);
		return st;
	}
	*out = words;
	return WEFT_OK;
}

enum weft_status
wf_words_read(struct wf_env *env, const char *path, const struct wf_words_opts *opts,
	      struct wf_words *out)
{
	struct wf_text text = {0};
	enum weft_status st = wf_text_read(env, path, &text);
	if (st != WEFT_OK) {
		return st;
	}
	st = wf_words_parse(env, &text, opts, out);
	wf_text_fini(env, &text);
	return st;
}

void
wf_words_fini(struct wf_env *env, struct wf_words *words)
{
	wf_dictionary_destroy(env, words->own);
	wf_free(env, words->token, words->tokens * sizeof(*words->token));
	wf_free(env, words->runs.run, words->runs.alloc * sizeof(*words->runs.run));
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
		const uint32_t *token = words->token + wf_words_row_start(&words->runs, row[i]);
		for (uint32_t slot = 0; slot < WF_WORDS_CONTEXT; slot++) {
			size_t entry = i * WF_WORDS_CONTEXT + slot;
			batch->key[entry] = token[slot];
			batch->weight[entry] = 1.0f;
			batch->first[entry + 1] = (uint32_t)entry + 1;
		}
		batch->y[i] = (float)token[WF_WORDS_CONTEXT];
	}
}
