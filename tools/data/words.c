/* SPDX-License-Identifier: Apache-2.0 */
/* weft data words: a dictionary, of the words that files of text have most often. Thread: main. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "tools/data/verb.h"
#include "trainer/readers/dictionary.h"
#include "trainer/readers/letters.h"
#include "trainer/readers/windows.h"

static const struct wf_option table[] = {
	{.name = "vocabulary",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(vocabulary),
	 .initial = "2000",
	 .min = 2,
	 .max = WF_WORDS_VOCABULARY_MAX,
	 .help = "The number of words in the vocabulary. One of them stands for all words that the "
		 "dictionary does not have, so that this is one more than are printed."},
};

static const struct wf_help help = {
	.usage = "weft data words IN... [--vocabulary=N]",
	.about =
		"Counts the words of running text and prints the most frequent ones on standard "
		"output, a word in each line, by falling count, equal counts in the order of their "
		"bytes: a dictionary for --dictionary of weft train ngram, which would give the "
		"words of these files the same numbers. IN is a file, a folder, a pattern or a "
		"list "
		"file, as for --data of weft train.",
	.examples = "  weft data words texts > dictionary\n"
		    "  weft data words 'part-*.gz' --vocabulary=50000 > dictionary",
	.exit_codes = "   0  the words are printed\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is missing or damaged, or is no text\n"
		      "  70  an internal error\n"
		      "  74  input or output failed, or standard output was closed",
};

static enum weft_status
count_window(struct wf_env *env, void *arg, struct wf_text *text)
{
	struct wf_census *census = arg;
	size_t *piece_words = wf_zalloc_array(env, text->piece_count, sizeof(*piece_words));
	size_t words = 0;

	if (piece_words == NULL) {
		return wf_fail(WEFT_NOMEM, "window of %zu files", text->piece_count);
	}
	enum weft_status st = wf_letters_cut(text, piece_words, &words);
	if (st == WEFT_OK) {
		st = wf_census_add(env, census, text->path, text->bytes, words);
	}
	wf_free(env, piece_words, text->piece_count * sizeof(*piece_words));
	return st;
}

static enum weft_status
print_words(const struct wf_dictionary *dictionary)
{
	for (uint32_t i = WF_WORDS_UNKNOWN + 1; i < dictionary->vocabulary; i++) {
		if (puts(dictionary->word[i]) == EOF) {
			/* main turns a closed pipe into the exit code, and prints nothing */
			return errno == EPIPE ? WEFT_OK
					      : wf_fail_errno(WEFT_IO, errno, "standard output");
		}
	}
	return WEFT_OK;
}

static enum weft_status
work(struct wf_data_job *job)
{
	struct wf_dictionary *dictionary = NULL;
	struct wf_census census = {0};

	enum weft_status st =
		wf_windows_visit(job->env, &job->files, WF_TEXT_BYTES_MAX, count_window, &census);
	if (st == WEFT_OK && census.names.count == 0) {
		st = wf_fail(WEFT_DATA, "%s: has no words", job->files.file[0].path);
	}
	if (st == WEFT_OK) {
		st = wf_dictionary_create(job->env, &census, (uint32_t)job->opts->vocabulary,
					  &dictionary);
	}
	wf_census_fini(job->env, &census);
	wf_progress_stop(job->progress); /* all is read */
	job->progress = NULL;
	if (st == WEFT_OK) {
		st = print_words(dictionary);
	}
	wf_dictionary_destroy(job->env, dictionary);
	return st;
}

const struct wf_data_verb wf_data_words = {
	.name = "words",
	.summary = "print the most frequent words of texts: a dictionary for training",
	.program = "weft data words",
	.table = table,
	.option_count = WF_ARRAY_COUNT(table),
	.help = &help,
	.work = work,
};
