/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of the reader of running text; the first byte is the vocabulary less two. Every
 * number is a word, counts fall and add up, and memory stays in proportion. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/wire/heap_env.h"
#include "trainer/readers/words.h"

#define AMPLIFICATION_MAX 64 /* bytes of tables per byte of text: words of one letter */
#define ALLOWANCE_BYTES 256

static void
check_words(const struct wf_words *words, uint32_t vocabulary)
{
	uint64_t trained = 0;

	WF_ASSERT(words->vocabulary >= 2 && words->vocabulary <= vocabulary);
	WF_ASSERT(words->rows + 2 * (size_t)WF_WORDS_CONTEXT == words->tokens);
	for (size_t i = 0; i < words->tokens; i++) {
		WF_ASSERT(words->token[i] < words->vocabulary);
	}
	for (uint32_t i = 0; i < words->vocabulary; i++) {
		WF_ASSERT(i < 2 || words->count[i] <= words->count[i - 1]);
		WF_ASSERT(i == 0 || words->count[i] > 0);
		WF_ASSERT(words->word[i][0] != '\0' && strlen(words->word[i]) <= WF_WORD_BYTES_MAX);
		trained += words->count[i];
	}
	WF_ASSERT(trained == words->train_tokens);
	size_t last = wf_words_row_start(words, words->rows - 1);
	WF_ASSERT(last + WF_WORDS_CONTEXT + 1 == words->tokens);
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
	const uint32_t vocabulary = 2u + data[0];
	enum weft_status st = wf_words_parse(&heap.env, &text, vocabulary, &words);
	WF_ASSERT(heap.asked_bytes <= AMPLIFICATION_MAX * bytes + ALLOWANCE_BYTES);
	if (st == WEFT_OK) {
		check_words(&words, vocabulary);
		wf_words_fini(&heap.env, &words);
	} else {
		WF_ASSERT(st == WEFT_DATA);
		WF_ASSERT(strncmp(weft_last_error(), "input: ", 7) == 0);
	}
	WF_ASSERT(heap.out_bytes == 0);
	return 0;
}
