/* SPDX-License-Identifier: Apache-2.0 */
/* letters: cuts running text into words, in place (words.h defines a word). Thread: any. */
#pragma once

#include "trainer/readers/text.h"

/**
 * Replaces the text by its words, each ended by a zero byte.
 * @param text        count becomes the bytes of words and zero bytes
 * @param piece_words [text->piece_count] how many words each piece has; a text that is one whole
 *                    file has no pieces
 * @param out         how many words there are
 * @return WEFT_OK; WEFT_DATA: a byte that is not UTF-8 or not text, or a word that is too long, by
 *         line and byte
 */
enum weft_status wf_letters_cut(struct wf_text *text, size_t *piece_words,
				size_t *out) WEFT_MUST_CHECK;
