/* SPDX-License-Identifier: Apache-2.0 */
/* Counts pairs of neighbours by sorting them. Thread: any. */
#include "trainer/models/word_counts.h"

#include <stdlib.h>

#include "base/assert.h"
#include "kernels/kernels.h"

/* What is counted of the training words. */
struct pairs {
	uint64_t
		*pair; /* [count] of neighbours, first word in the upper half, in ascending order */
	size_t count, alloc;
	uint64_t *word; /* [vocabulary] how often each is there */
};

static int
by_value(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left;
	const uint64_t b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

/* How many pairs are below `limit`. */
static size_t
count_below(const struct pairs *pairs, uint64_t limit)
{
	size_t low = 0;
	size_t high = pairs->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (pairs->pair[middle] < limit) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static double
unigram(const struct wf_words *words, const struct pairs *pairs, uint32_t next)
{
	return (double)(pairs->word[next] + 1) /
	       (double)(words->train_tokens + words->dictionary->vocabulary);
}

static double
bigram(const struct wf_words *words, const struct pairs *pairs, uint32_t before, uint32_t next)
{
	const uint64_t pair = (uint64_t)before << 32 | next;
	const size_t first = count_below(pairs, (uint64_t)before << 32);
	const size_t end = count_below(pairs, ((uint64_t)before + 1) << 32);
	const double both = (double)(count_below(pairs, pair + 1) - count_below(pairs, pair));
	double kinds = 0.0;

	for (size_t i = first; i < end; i++) {
		kinds += i == first || pairs->pair[i] != pairs->pair[i - 1] ? 1.0 : 0.0;
	}
	if (first == end) { /* never seen before another word: nothing to interpolate with */
		return unigram(words, pairs, next);
	}
	return (both + kinds * unigram(words, pairs, next)) / ((double)(end - first) + kinds);
}

static void
free_pairs(struct wf_env *env, const struct wf_words *words, struct pairs *pairs)
{
	wf_free(env, pairs->pair, pairs->alloc * sizeof(*pairs->pair));
	wf_free(env, pairs->word, words->dictionary->vocabulary * sizeof(*pairs->word));
}

/* Words of different files are no neighbours. */
static enum weft_status
count_pairs(struct wf_env *env, const struct wf_words *words, struct pairs *out)
{
	struct pairs pairs = {.alloc = words->train_tokens - 1};

	pairs.pair = wf_zalloc_array(env, pairs.alloc, sizeof(*pairs.pair));
	pairs.word = wf_zalloc_array(env, words->dictionary->vocabulary, sizeof(*pairs.word));
	if (pairs.pair == NULL || pairs.word == NULL) {
		free_pairs(env, words, &pairs);
		return wf_fail(WEFT_NOMEM, "word counts: %zu pairs", pairs.alloc);
	}
	for (size_t i = 0; i < words->runs.count; i++) {
		const struct wf_words_run *run = &words->runs.run[i];
		const uint32_t *token = words->token + run->token;
		const size_t tokens = run->token < words->train_tokens ? run->tokens : 0;
		for (size_t at = 0; at < tokens; at++) {
			pairs.word[token[at]]++;
			if (at > 0) {
				pairs.pair[pairs.count++] =
					(uint64_t)token[at - 1] << 32 | token[at];
			}
		}
	}
	qsort(pairs.pair, pairs.count, sizeof(*pairs.pair), by_value);
	*out = pairs;
	return WEFT_OK;
}

enum weft_status
wf_word_counts_solve(struct wf_env *env, const struct wf_words *words, struct wf_word_counts *out)
{
	struct pairs pairs = {0};
	double alone = 0.0;
	double paired = 0.0;

	WF_ASSERT(words->rows > words->train_rows && words->train_tokens >= 2);
	enum weft_status st = count_pairs(env, words, &pairs);
	if (st != WEFT_OK) {
		return st;
	}
	for (size_t row = words->train_rows; row < words->rows; row++) {
		const uint32_t *token = words->token + wf_words_row_start(&words->runs, row);
		const uint32_t next = token[WF_WORDS_CONTEXT];
		alone -= wf_log_f64(unigram(words, &pairs, next));
		paired -= wf_log_f64(bigram(words, &pairs, token[WF_WORDS_CONTEXT - 1], next));
	}
	free_pairs(env, words, &pairs);
	const double rows = (double)(words->rows - words->train_rows);
	out->unigram = wf_exp_f64(alone / rows);
	out->bigram = wf_exp_f64(paired / rows);
	return WEFT_OK;
}
