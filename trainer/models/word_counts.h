/* SPDX-License-Identifier: Apache-2.0 */
/* word_counts: predictions of the next word by counting alone, the baselines of ngram. Thread:
 * any. */
#pragma once

#include "base/env.h"
#include "trainer/readers/words.h"

/* Perplexities, exp(mean of -log p), over the targets of the test rows, where each word of the
 * vocabulary counts by itself, and the unknown one too. Lower is better; those of vocabularies of
 * different sizes cannot be compared. */
struct wf_word_counts {
	double unigram; /* p(w) = (count(w) + 1) / (training words + vocabulary) */
	double bigram;  /* p(w | v) = (count(v w) + kinds(v) p(w)) / (count(v) + kinds(v)), kinds(v)
			   being how many different words follow v: interpolation after Witten and
			   Bell, "The zero-frequency problem", 1991, in which nothing is tuned */
};

/* From the training words of a text and its test rows. WEFT_NOMEM. */
enum weft_status wf_word_counts_solve(struct wf_env *env, const struct wf_words *words,
				      struct wf_word_counts *out) WEFT_MUST_CHECK;
