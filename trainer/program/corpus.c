/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the words of files of text. Thread: the caller's. */
#include "trainer/program/corpus.h"

#include <inttypes.h>
#include <string.h>

#include "trainer/readers/letters.h"
#include "trainer/readers/windows.h"
#include "trainer/readers/words.h"

/* A file, of whichever trainer. */
struct listed {
	uint32_t owner;
	size_t train_words; /* of its words, the first ones */
	size_t seen;        /* words that have been read */
};

struct survey {
	const struct wf_corpus_opts *opts;
	size_t *words;       /* [opts->files->count] being measured; or else */
	struct listed *file; /* [opts->files->count] whose words are counted */
	size_t *piece_words; /* [piece_alloc] of a window */
	size_t piece_alloc;
	struct wf_census census;
};

/* --- windows --- */

static enum weft_status
cut_window(struct wf_env *env, struct survey *survey, struct wf_text *text)
{
	size_t words = 0;

	if (text->piece_count > survey->piece_alloc) {
		wf_free(env, survey->piece_words,
			survey->piece_alloc * sizeof(*survey->piece_words));
		survey->piece_alloc = 0;
		survey->piece_words =
			wf_zalloc_array(env, text->piece_count, sizeof(*survey->piece_words));
		if (survey->piece_words == NULL) {
			return wf_fail(WEFT_NOMEM, "window of %zu files", text->piece_count);
		}
		survey->piece_alloc = text->piece_count;
	}
	return wf_letters_cut(text, survey->piece_words, &words);
}

/* How many words each file has. */
static enum weft_status
add_window_words(struct wf_env *env, void *arg, struct wf_text *text)
{
	struct survey *survey = arg;

	enum weft_status st = cut_window(env, survey, text);
	for (size_t i = 0; st == WEFT_OK && i < text->piece_count; i++) {
		survey->words[text->piece[i].file] += survey->piece_words[i];
	}
	return st;
}

static const char *
skip_words(const char *at, size_t words)
{
	while (words-- > 0) {
		at += strlen(at) + 1;
	}
	return at;
}

/* How often each training word is there. */
static enum weft_status
add_window_counts(struct wf_env *env, void *arg, struct wf_text *text)
{
	struct survey *survey = arg;

	enum weft_status st = cut_window(env, survey, text);
	const char *at = text->bytes;
	for (size_t i = 0; st == WEFT_OK && i < text->piece_count; i++) {
		struct listed *file = &survey->file[text->piece[i].file];
		const size_t words = survey->piece_words[i];
		const size_t left =
			file->train_words > file->seen ? file->train_words - file->seen : 0;
		st = wf_census_add(env, &survey->census, text->piece[i].path, at,
				   left < words ? left : words);
		file->seen += words;
		at = skip_words(at, words);
	}
	return st;
}

/* --- what is trained on --- */

static enum weft_status
list_owners(struct wf_env *env, const struct wf_corpus_opts *opts, struct listed *file)
{
	const size_t count = opts->files->count;
	uint32_t *owner = wf_zalloc_array(env, count, sizeof(*owner));

	if (owner == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", count);
	}
	enum weft_status st = wf_files_owners(env, opts->files, opts->trainers, owner);
	for (size_t i = 0; st == WEFT_OK && i < count; i++) {
		file[i].owner = owner[i];
	}
	wf_free(env, owner, count * sizeof(*owner));
	return st;
}

/* Each trainer trains on the first words of its own files. */
static enum weft_status
split_words(struct wf_env *env, const struct survey *survey)
{
	const size_t count = survey->opts->files->count;
	const uint32_t trainers = survey->opts->trainers;
	size_t *left = wf_zalloc_array(env, trainers, sizeof(*left));

	if (left == NULL) {
		return wf_fail(WEFT_NOMEM, "words of %" PRIu32 " trainers", trainers);
	}
	for (size_t i = 0; i < count; i++) {
		left[survey->file[i].owner] += survey->opts->words[i];
	}
	for (uint32_t trainer = 0; trainer < trainers; trainer++) {
		left[trainer] = wf_words_train_part(left[trainer], survey->opts->is_whole);
	}
	for (size_t i = 0; i < count; i++) {
		struct listed *file = &survey->file[i];
		size_t *words = &left[file->owner];
		file->train_words =
			survey->opts->words[i] < *words ? survey->opts->words[i] : *words;
		*words -= file->train_words;
	}
	wf_free(env, left, trainers * sizeof(*left));
	return WEFT_OK;
}

static void
fini(struct wf_env *env, struct survey *survey)
{
	wf_census_fini(env, &survey->census);
	wf_free(env, survey->file, survey->opts->files->count * sizeof(*survey->file));
	wf_free(env, survey->piece_words, survey->piece_alloc * sizeof(*survey->piece_words));
}

enum weft_status
wf_corpus_measure(struct wf_env *env, const struct wf_corpus_opts *opts, size_t *words)
{
	struct survey survey = {.opts = opts, .words = words};

	memset(words, 0, opts->files->count * sizeof(*words));
	enum weft_status st =
		wf_windows_visit(env, opts->files, opts->window_bytes, add_window_words, &survey);
	fini(env, &survey);
	return st;
}

static enum weft_status
read_words(struct wf_env *env, struct survey *survey, struct wf_dictionary **out)
{
	const struct wf_corpus_opts *opts = survey->opts;

	survey->file = wf_zalloc_array(env, opts->files->count, sizeof(*survey->file));
	enum weft_status st =
		survey->file != NULL ? list_owners(env, opts, survey->file)
				     : wf_fail(WEFT_NOMEM, "list of %zu files", opts->files->count);
	if (st == WEFT_OK) {
		st = split_words(env, survey);
	}
	if (st == WEFT_OK) {
		st = wf_windows_visit(env, opts->files, opts->window_bytes, add_window_counts,
				      survey);
	}
	return st == WEFT_OK
		       ? wf_dictionary_create(env, &survey->census, (uint32_t)opts->vocabulary, out)
		       : st;
}

enum weft_status
wf_corpus_count(struct wf_env *env, const struct wf_corpus_opts *opts, struct wf_dictionary **out)
{
	struct survey survey = {.opts = opts};

	enum weft_status st = read_words(env, &survey, out);
	fini(env, &survey);
	return st;
}
