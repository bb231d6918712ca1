/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of dictionaries, and of the windows of a text whose words they number. The first byte
 * is the number of lines of the dictionary, the second one that of a window of the text, which is
 * the rest. An accepted dictionary gives each line its number; every number is a word's; rows of
 * windows are those of the whole text; and memory stays in proportion. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/dictionary.h"
#include "trainer/readers/letters.h"
#include "trainer/readers/text.h"
#include "trainer/readers/words.h"

#define AMPLIFICATION_MAX 128   /* bytes of tables per byte of text */
#define ALLOWANCE_BYTES 1048576 /* the buffers of an open file */

static int file = -1;
static char path[64];

/* Offset behind so many lines. */
static size_t
skip_lines(const uint8_t *bytes, size_t count, unsigned lines)
{
	size_t at = 0;
	while (at < count && lines > 0) {
		lines -= bytes[at++] == '\n';
	}
	return at;
}

/* The reader takes files. */
static void
fill_file(const uint8_t *bytes, size_t count)
{
	if (file < 0) {
		file = memfd_create("dictionary", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	WF_ASSERT(file >= 0 && ftruncate(file, 0) == 0);
	WF_ASSERT(pwrite(file, bytes, count, 0) == (ssize_t)count);
}

static void
check_dictionary(const struct wf_dictionary *dictionary)
{
	WF_ASSERT(dictionary->vocabulary >= 2);
	for (uint32_t i = 0; i < dictionary->vocabulary; i++) {
		const char *word = dictionary->word[i];
		WF_ASSERT(word[0] != '\0' && strlen(word) <= WF_WORD_BYTES_MAX);
		WF_ASSERT(i == 0 || wf_dictionary_find(dictionary, word) == i);
	}
}

/* A text of its own, as a reader may write to it. */
static struct wf_text
text_of(const uint8_t *bytes, size_t count, struct wf_text_piece *piece)
{
	struct wf_text text = {.path = "input", .bytes = malloc(count + 1), .count = count};
	WF_ASSERT(text.bytes != NULL);
	memcpy(text.bytes, bytes, count);
	text.bytes[count] = '\0';
	*piece = (struct wf_text_piece){.path = "input", .line = 1, .lines = 1};
	text.piece = piece;
	text.piece_count = 1;
	return text;
}

/* The words of a text; false: it is none. */
static bool
count_words(const uint8_t *bytes, size_t count, size_t *out)
{
	struct wf_text_piece piece;
	struct wf_text text = text_of(bytes, count, &piece);
	size_t words = 0;

	enum weft_status st = wf_letters_cut(&text, out, &words);
	WF_ASSERT(st == WEFT_OK || st == WEFT_DATA);
	WF_ASSERT(st != WEFT_OK || words == *out);
	free(text.bytes);
	return st == WEFT_OK;
}

/* Reads one window. Its rows are added to `rows`. */
static enum weft_status
read_window(struct wf_env *env, const struct wf_dictionary *dictionary,
	    struct wf_words_place *place, const uint8_t *bytes, size_t count, size_t *rows)
{
	struct wf_text_piece piece;
	struct wf_text text = text_of(bytes, count, &piece);
	struct wf_words words;

	enum weft_status st = wf_words_parse_window(env, &text, dictionary, place, &words);
	for (size_t i = 0; st == WEFT_OK && i < words.tokens; i++) {
		WF_ASSERT(words.token[i] < dictionary->vocabulary);
	}
	for (size_t row = 0; st == WEFT_OK && row < words.rows; row++) {
		WF_ASSERT(wf_words_row_start(&words.runs, row) + WF_WORDS_CONTEXT < words.tokens);
	}
	if (st == WEFT_OK) {
		*rows += words.rows;
		wf_words_fini(env, &words);
	}
	free(text.bytes);
	return st;
}

/* The text in two windows, where a file is said to have `announced` words. */
static void
read_windows(struct wf_env *env, const struct wf_dictionary *dictionary, const uint8_t *bytes,
	     size_t count, unsigned lines, size_t announced)
{
	const size_t border = skip_lines(bytes, count, lines);
	const struct wf_words_span span = {.path = "input", .words = announced, .end = announced};
	struct wf_words_place place = {.span = &span, .span_count = 1};
	size_t words = 0;
	size_t rows = 0;

	bool is_text = count_words(bytes, count, &words);
	enum weft_status st = WEFT_OK;
	if (border > 0) {
		st = read_window(env, dictionary, &place, bytes, border, &rows);
	}
	if (st == WEFT_OK && border < count) {
		st = read_window(env, dictionary, &place, bytes + border, count - border, &rows);
	}
	if (st == WEFT_OK) {
		st = wf_words_end_windows(&place);
	}
	WF_ASSERT((st == WEFT_OK) == (is_text && words == announced));
	WF_ASSERT(st == WEFT_OK || st == WEFT_DATA);
	WF_ASSERT(st != WEFT_OK ||
		  rows == (words > WF_WORDS_CONTEXT ? words - WF_WORDS_CONTEXT : 0));
}

/* Packed ones are those of fuzz_input. */
static bool
is_packed(const uint8_t *bytes, size_t count)
{
	return count > 0 && (bytes[0] == '(' || (bytes[0] < ' ' && bytes[0] != '\n'));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct heap_env heap = heap_env_make();
	struct wf_dictionary *dictionary = NULL;
	size_t words = 0;

	if (bytes < 2) {
		return 0;
	}
	const uint8_t *text = data + 2;
	const size_t border = skip_lines(text, bytes - 2, data[0]);
	const size_t rest = bytes - 2 - border;
	if (is_packed(text, border)) {
		return 0;
	}
	fill_file(text, border);
	enum weft_status st = wf_dictionary_read(&heap.env, path, &dictionary);
	if (st == WEFT_OK) {
		check_dictionary(dictionary);
		bool is_text = count_words(text + border, rest, &words);
		if (is_text && words > 0) {
			read_windows(&heap.env, dictionary, text + border, rest, data[1], words);
		}
		read_windows(&heap.env, dictionary, text + border, rest, data[1], words + 1);
		wf_dictionary_destroy(&heap.env, dictionary);
	} else {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(strncmp(weft_last_error(), path, strlen(path)) == 0);
	}
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes + ALLOWANCE_BYTES);
	WF_ASSERT(heap.out_bytes == 0);
	return 0;
}
