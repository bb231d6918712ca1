/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers the words of a text, and builds rows of context and next word. Thread: the caller's. */
#include "trainer/readers/words.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "trainer/readers/letters.h"

/* --- rows --- */

static void
add_run(struct wf_words_runs *runs, const struct wf_words_run *run)
{
	WF_ASSERT(runs->count < runs->alloc);
	runs->run[runs->count] = *run;
	runs->run[runs->count++].row = runs->rows;
	runs->rows += run->tokens > WF_WORDS_CONTEXT ? run->tokens - WF_WORDS_CONTEXT : 0;
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
		add_run(&runs,
			&(struct wf_words_run){.token = at, .tokens = border - at, .file = i});
		if (border <= train_words) {
			runs.train_rows = runs.rows;
		}
		if (border < end) {
			add_run(&runs, &(struct wf_words_run){.token = border,
							      .tokens = end - border,
							      .file = i,
							      .word = border - at});
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

enum weft_status
wf_words_outline(struct wf_env *env, const char *path, const struct wf_words_opts *opts,
		 const size_t *file_words, size_t files, struct wf_words *out)
{
	struct wf_words words = {.dictionary = opts->dictionary};

	for (size_t i = 0; i < files; i++) {
		words.tokens += file_words[i];
	}
	words.train_tokens = wf_words_train_part(words.tokens, opts->is_whole);
	enum weft_status st = runs_init(env, file_words, files, words.train_tokens, &words.runs);
	if (st == WEFT_OK) {
		st = check_rows(path, words.tokens, &words.runs, opts->is_whole);
	}
	if (st != WEFT_OK) {
		wf_words_fini(env, &words);
		return st;
	}
	words.rows = words.runs.rows;
	words.train_rows = words.runs.train_rows;
	*out = words;
	return WEFT_OK;
}

/* The words of a text that has been cut, with the words of each of its files. */
static enum weft_status
fill_words(struct wf_env *env, const struct wf_text *text, const struct wf_words_opts *opts,
	   const size_t *file_words, size_t files, struct wf_words *words)
{
	enum weft_status st = wf_words_outline(env, text->path, opts, file_words, files, words);
	if (st == WEFT_OK && opts->dictionary == NULL) {
		st = count_words(env, text, opts, words);
	}
	return st == WEFT_OK ? number_words(env, text, words) : st;
}

enum weft_status
wf_words_parse(struct wf_env *env, struct wf_text *text, const struct wf_words_opts *opts,
	       struct wf_words *out)
{
	const size_t files = text->piece_count > 0 ? text->piece_count : 1;
	struct wf_words words = {0};
	size_t tokens = 0;
	size_t *file_words = wf_zalloc_array(env, files, sizeof(*file_words));

	WF_ASSERT(opts->dictionary != NULL || opts->vocabulary >= 2);
	if (file_words == NULL) {
		return wf_fail(WEFT_NOMEM, "%s: words of %zu files", text->path, files);
	}
	enum weft_status st = wf_letters_cut(text, file_words, &tokens);
	if (st == WEFT_OK) {
		file_words[0] = text->piece_count > 0 ? file_words[0] : tokens;
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

/* --- windows --- */

static enum weft_status
end_span(struct wf_words_place *place)
{
	const struct wf_words_span *span = &place->span[place->at];

	if (place->seen != span->words) {
		return wf_fail(WEFT_DATA,
			       "%s: has %" PRIu64 " words now, and had %" PRIu64
			       " when it was opened: it must not change while it is in use",
			       span->path, place->seen, span->words);
	}
	place->at++;
	place->seen = 0;
	place->lead_count = 0;
	return WEFT_OK;
}

/* A file that has lost all of its lines has no piece, and is noticed by the next one that has. */
static enum weft_status
enter_span(struct wf_words_place *place, size_t at)
{
	enum weft_status st = WEFT_OK;

	WF_ASSERT(at >= place->at && at < place->span_count);
	while (st == WEFT_OK && place->at < at) {
		st = end_span(place);
	}
	return st;
}

enum weft_status
wf_words_end_windows(struct wf_words_place *place)
{
	enum weft_status st = WEFT_OK;

	while (st == WEFT_OK && place->at < place->span_count) {
		st = end_span(place);
	}
	return st;
}

/* How many of the next `count` words are before the `limit`th of the file. */
static size_t
count_before(const struct wf_words_place *place, uint64_t limit, size_t count)
{
	const uint64_t left = limit > place->seen ? limit - place->seen : 0;

	return left < count ? (size_t)left : count;
}

/* Adds the run of a piece, which has `count` words. `*next` is the first of them, and then the
 * first one behind. */
static void
add_piece(struct wf_words *words, struct wf_words_place *place, size_t count, const char **next)
{
	const struct wf_words_span *span = &place->span[place->at];
	const size_t first = count_before(place, span->first, count);
	const size_t end = count_before(place, span->end, count);
	const struct wf_words_runs *runs = &words->runs;
	const struct wf_words_run *last = runs->count > 0 ? &runs->run[runs->count - 1] : NULL;
	struct wf_words_run run = {
		.token = last == NULL ? 0 : last->token + last->tokens,
		.tokens = place->lead_count,
		.file = place->at,
		.word = place->seen + first - place->lead_count,
	};
	uint32_t *token = words->token + run.token;

	memcpy(token, place->lead, place->lead_count * sizeof(*token));
	for (size_t i = 0; i < count; i++, *next += strlen(*next) + 1) {
		if (i >= first && i < end) {
			token[run.tokens++] = wf_dictionary_find(words->dictionary, *next);
		}
	}
	place->seen += count;
	place->lead_count = run.tokens < WF_WORDS_CONTEXT ? run.tokens : WF_WORDS_CONTEXT;
	memcpy(place->lead, token + run.tokens - place->lead_count,
	       place->lead_count * sizeof(*token));
	add_run(&words->runs, &run);
}

/* `piece_words` is [text->piece_count]. */
static enum weft_status
add_pieces(struct wf_env *env, struct wf_text *text, size_t *piece_words,
	   struct wf_words_place *place, struct wf_words *words)
{
	const char *next = text->bytes;
	size_t count = 0;

	enum weft_status st = wf_letters_cut(text, piece_words, &count);
	if (st != WEFT_OK) {
		return st;
	}
	words->tokens = WF_WORDS_CONTEXT + count; /* those before the window are at most these */
	words->token = wf_zalloc_array(env, words->tokens, sizeof(*words->token));
	words->runs.alloc = text->piece_count;
	words->runs.run = wf_zalloc_array(env, words->runs.alloc, sizeof(*words->runs.run));
	if (words->token == NULL || words->runs.run == NULL) {
		return wf_fail(WEFT_NOMEM, "window of %zu words", count);
	}
	for (size_t i = 0; st == WEFT_OK && i < text->piece_count; i++) {
		st = enter_span(place, text->piece[i].file);
		if (st == WEFT_OK) {
			add_piece(words, place, piece_words[i], &next);
		}
	}
	words->rows = words->runs.rows;
	return st;
}

enum weft_status
wf_words_parse_window(struct wf_env *env, struct wf_text *text,
		      const struct wf_dictionary *dictionary, struct wf_words_place *place,
		      struct wf_words *out)
{
	struct wf_words words = {.dictionary = dictionary};
	size_t *piece_words = wf_zalloc_array(env, text->piece_count, sizeof(*piece_words));

	WF_ASSERT(text->piece_count > 0);
	if (piece_words == NULL) {
		return wf_fail(WEFT_NOMEM, "window of %zu files", text->piece_count);
	}
	enum weft_status st = add_pieces(env, text, piece_words, place, &words);
	wf_free(env, piece_words, text->piece_count * sizeof(*piece_words));
	if (st != WEFT_OK) {
		wf_words_fini(env, &words);
		return st;
	}
	*out = words;
	return WEFT_OK;
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
