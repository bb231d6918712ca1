/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of running text; the first byte is the vocabulary less two, and if it
 * is odd, the first lines are files of their own. Every number is a word, counts fall and add up,
 * no row crosses a border, and memory stays in proportion. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/words.h"

#define AMPLIFICATION_MAX 64 /* bytes of tables per byte of text: words of one letter */
#define ALLOWANCE_BYTES 512
#define FILES_MAX 4u

/* Each of the first lines is a file, and the rest is the last one. Returns how many there are. */
static size_t
cut_files(const struct wf_text *text, struct wf_text_piece piece[FILES_MAX])
{
	const char *end = text->bytes + text->count;
	const char *at = text->bytes;
	size_t files = 0;

	while (at < end && files < FILES_MAX) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		piece[files] = (struct wf_text_piece){.path = text->path,
						      .at = (size_t)(at - text->bytes),
						      .line = 1,
						      .lines = 1,
						      .file = files};
		files++;
		at = feed == NULL ? end : feed + 1;
	}
	return files;
}

/* Rows are in the order of their words, and each is within one run. */
static void
check_rows(const struct wf_words *words)
{
	const struct wf_words_runs *runs = &words->runs;
	size_t rows = 0;

	for (size_t i = 0; i < runs->count; i++) {
		const struct wf_words_run *run = &runs->run[i];
		WF_ASSERT(run->token + run->tokens <= words->tokens);
		WF_ASSERT(run->token + run->tokens <= words->train_tokens ||
			  run->token >= words->train_tokens);
		for (size_t at = 0; at + WF_WORDS_CONTEXT < run->tokens; at++, rows++) {
			WF_ASSERT(wf_words_row_start(runs, rows) == run->token + at);
		}
		WF_ASSERT(run->token + run->tokens > words->train_tokens ||
			  rows <= words->train_rows);
	}
	WF_ASSERT(rows == words->rows);
}

static void
check_words(const struct wf_words *words, uint32_t vocabulary)
{
	uint64_t trained = 0;

	WF_ASSERT(words->dictionary->vocabulary >= 2 &&
		  words->dictionary->vocabulary <= vocabulary);
	for (size_t i = 0; i < words->tokens; i++) {
		WF_ASSERT(words->token[i] < words->dictionary->vocabulary);
	}
	for (uint32_t i = 0; i < words->dictionary->vocabulary; i++) {
		WF_ASSERT(i < 2 || words->dictionary->count[i] <= words->dictionary->count[i - 1]);
		WF_ASSERT(i == 0 || words->dictionary->count[i] > 0);
		WF_ASSERT(words->dictionary->word[i][0] != '\0' &&
			  strlen(words->dictionary->word[i]) <= WF_WORD_BYTES_MAX);
		trained += words->dictionary->count[i];
	}
	WF_ASSERT(trained == words->train_tokens);
	check_rows(words);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct wf_words words;

	if (bytes == 0) {
		return 0;
	}
	struct wf_text text = {.path = "input", .count = bytes - 1, .alloc_bytes = bytes};
	text.bytes = wf_zalloc(&heap.env, bytes);
	WF_ASSERT(text.bytes != NULL);
	memcpy(text.bytes, data + 1, bytes - 1);
	struct wf_text_piece piece[FILES_MAX];
	if (data[0] % 2 == 1) {
		text.piece = piece;
		text.piece_count = cut_files(&text, piece);
	}
	const struct wf_words_opts opts = {.vocabulary = 2u + data[0]};
	enum weft_status st = wf_words_parse(&heap.env, &text, &opts, &words);
	wf_free(&heap.env, text.bytes, bytes);
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes + ALLOWANCE_BYTES);
	if (st == WEFT_OK) {
		check_words(&words, opts.vocabulary);
		wf_words_fini(&heap.env, &words);
	} else {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(strncmp(weft_last_error(), "input: ", 7) == 0);
	}
	WF_ASSERT(heap.out_bytes == 0);
	return 0;
}
