/* SPDX-License-Identifier: Apache-2.0 */
/* Counts pairs of neighbours by sorting them. Thread: any. */
#include "trainer/models/word_counts.h"

#include <stdlib.h>

#include "base/assert.h"
#include "kernels/kernels.h"

/* The training words' pairs of neighbours, first word in the upper half, in ascending order. */
struct pairs {
	uint64_t *pair; /* [count] */
	size_t count;
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
unigram(const struct wf_words *words, uint32_t next)
{
	return (double)(words->count[next] + 1) / (double)(words->train_tokens + words->vocabulary);
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
		return unigram(words, next);
	}
	return (both + kinds * unigram(words, next)) / ((double)(end - first) + kinds);
}

enum weft_status
wf_word_counts_solve(struct wf_env *env, const struct wf_words *words, struct wf_word_counts *out)
{
	struct pairs pairs = {.count = words->train_tokens - 1};
	double alone = 0.0;
	double paired = 0.0;

	WF_ASSERT(words->rows > words->train_rows && words->train_tokens >= 2);
	pairs.pair = wf_zalloc_array(env, pairs.count, sizeof(*pairs.pair));
	if (pairs.pair == NULL) {
		return wf_fail(WEFT_NOMEM, "word counts: %zu pairs", pairs.count);
	}
	for (size_t i = 0; i < pairs.count; i++) {
		pairs.pair[i] = (uint64_t)words->token[i] << 32 | words->token[i + 1];
	}
	qsort(pairs.pair, pairs.count, sizeof(*pairs.pair), by_value);
	for (size_t row = words->train_rows; row < words->rows; row++) {
		const uint32_t *token = words->token + wf_words_row_start(words, row);
		const uint32_t next = token[WF_WORDS_CONTEXT];
		alone -= wf_log_f64(unigram(words, next));
		paired -= wf_log_f64(bigram(words, &pairs, token[WF_WORDS_CONTEXT - 1], next));
	}
	wf_free(env, pairs.pair, pairs.count * sizeof(*pairs.pair));
	const double rows = (double)(words->rows - words->train_rows);
	out->unigram = wf_exp_f64(alone / rows);
	out->bigram = wf_exp_f64(paired / rows);
	return WEFT_OK;
}
