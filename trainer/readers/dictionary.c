/* SPDX-License-Identifier: Apache-2.0 */
/* Counts words and numbers them. Thread: see dictionary.h. */
#include "trainer/readers/dictionary.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define FIRST_WORDS 16u
#define FIRST_BYTES 256u
#define CHUNK_BYTES (1u << 20)

/* --- spellings --- */

/* A chunk of spellings, which never move, and the chunks before it. */
struct wf_spellings {
	struct wf_spellings *before;
	size_t alloc_bytes, used;
	char text[];
};

static void
free_spellings(struct wf_env *env, struct wf_spellings *spellings)
{
	while (spellings != NULL) {
		struct wf_spellings *before = spellings->before;
		wf_free(env, spellings, sizeof(*spellings) + spellings->alloc_bytes);
		spellings = before;
	}
}

/* Keeps a copy of a word. NULL: there is no memory. */
static const char *
keep_spelling(struct wf_env *env, struct wf_spellings **spellings, const char *word)
{
	struct wf_spellings *last = *spellings;
	const size_t bytes = strlen(word) + 1;

	if (last == NULL || last->alloc_bytes - last->used < bytes) {
		size_t alloc = last == NULL ? FIRST_BYTES : 2 * last->alloc_bytes;
		alloc = alloc < CHUNK_BYTES ? alloc : CHUNK_BYTES;
		struct wf_spellings *next = wf_zalloc(env, sizeof(*next) + alloc);
		if (next == NULL) {
			return NULL;
		}
		WF_ASSERT(bytes <= alloc);
		next->before = last;
		next->alloc_bytes = alloc;
		*spellings = last = next;
	}
	char *copy = last->text + last->used;
	memcpy(copy, word, bytes);
	last->used += bytes;
	return copy;
}

/* --- counting --- */

void
wf_census_fini(struct wf_env *env, struct wf_census *census)
{
	wf_free(env, census->count, census->names.name_max * sizeof(*census->count));
	wf_names_fini(env, &census->names);
	free_spellings(env, census->spellings);
	*census = (struct wf_census){0};
}

/* Room for twice as many words. */
static enum weft_status
grow(struct wf_env *env, struct wf_census *census)
{
	const uint32_t had = census->names.name_max;
	const uint32_t most = had == 0 ? FIRST_WORDS : 2 * had;
	struct wf_names names;

	uint64_t *count = wf_zalloc_array(env, most, sizeof(*count));
	if (count == NULL) {
		return wf_fail(WEFT_NOMEM, "counts of %u words", most);
	}
	enum weft_status st = wf_names_init(env, most, &names);
	if (st != WEFT_OK) {
		wf_free(env, count, most * sizeof(*count));
		return st;
	}
	for (uint32_t i = 0; i < census->names.count; i++) {
		(void)wf_names_add(&names, census->names.name[i]);
		count[i] = census->count[i];
	}
	wf_free(env, census->count, had * sizeof(*count));
	wf_names_fini(env, &census->names);
	census->names = names;
	census->count = count;
	return WEFT_OK;
}

static enum weft_status
add_new(struct wf_env *env, struct wf_census *census, const char *path, const char *word)
{
	if (census->names.count == WF_WORDS_DISTINCT_MAX) {
		return wf_fail(WEFT_DATA,
			       "%s: has more than %u different words, the first one too many is "
			       "\"%s\"",
			       path, WF_WORDS_DISTINCT_MAX, word);
	}
	if (census->names.count == census->names.name_max) {
		enum weft_status st = grow(env, census);
		if (st != WEFT_OK) {
			return st;
		}
	}
	const char *copy = keep_spelling(env, &census->spellings, word);
	if (copy == NULL) {
		return wf_fail(WEFT_NOMEM, "spellings of %u words", census->names.count + 1);
	}
	census->count[wf_names_add(&census->names, copy)] = 1;
	return WEFT_OK;
}

enum weft_status
wf_census_add(struct wf_env *env, struct wf_census *census, const char *path, const char *words,
	      size_t count)
{
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; st == WEFT_OK && i < count; i++, words += strlen(words) + 1) {
		const uint32_t word = wf_names_find(&census->names, words);
		if (word == WF_NAMES_NONE) {
			st = add_new(env, census, path, words);
		} else {
			census->count[word]++;
		}
	}
	return st;
}

/* --- numbers --- */

struct entry {
	const char *spelling;
	uint64_t count;
};

static int
by_count(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	if (a->count != b->count) {
		return a->count > b->count ? -1 : 1;
	}
	return strcmp(a->spelling, b->spelling);
}

void
wf_dictionary_destroy(struct wf_env *env, struct wf_dictionary *dictionary)
{
	if (dictionary == NULL) {
		return;
	}
	wf_free(env, dictionary->count, dictionary->vocabulary * sizeof(*dictionary->count));
	wf_names_fini(env, &dictionary->names);
	free_spellings(env, dictionary->spellings);
	wf_free(env, dictionary, sizeof(*dictionary));
}

/* A dictionary with room for `vocabulary` words, which has none yet. */
static enum weft_status
alloc_dictionary(struct wf_env *env, uint32_t vocabulary, struct wf_dictionary **out)
{
	struct wf_dictionary *dictionary = wf_zalloc(env, sizeof(*dictionary));

	if (dictionary == NULL) {
		return wf_fail(WEFT_NOMEM, "vocabulary: %u words", vocabulary);
	}
	enum weft_status st = wf_names_init(env, vocabulary, &dictionary->names);
	if (st == WEFT_OK) {
		dictionary->vocabulary = vocabulary;
		dictionary->word = dictionary->names.name;
		dictionary->count = wf_zalloc_array(env, vocabulary, sizeof(*dictionary->count));
	}
	if (st == WEFT_OK && dictionary->count == NULL) {
		st = wf_fail(WEFT_NOMEM, "vocabulary: %u words", vocabulary);
	}
	if (st != WEFT_OK) {
		wf_dictionary_destroy(env, dictionary);
		return st;
	}
	*out = dictionary;
	return WEFT_OK;
}

/* The next number. */
static enum weft_status
number_word(struct wf_env *env, struct wf_dictionary *dictionary, const char *word, uint64_t count)
{
	const char *copy = keep_spelling(env, &dictionary->spellings, word);

	if (copy == NULL) {
		return wf_fail(WEFT_NOMEM, "vocabulary: %u words", dictionary->vocabulary);
	}
	dictionary->count[wf_names_add(&dictionary->names, copy)] = count;
	return WEFT_OK;
}

static enum weft_status
number_entries(struct wf_env *env, const struct entry *entry, uint32_t count,
	       struct wf_dictionary *dictionary)
{
	enum weft_status st = number_word(env, dictionary, "<unk>", 0); /* no text has this one */

	for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
		if (i + 1 < dictionary->vocabulary) {
			st = number_word(env, dictionary, entry[i].spelling, entry[i].count);
		} else {
			dictionary->count[WF_WORDS_UNKNOWN] += entry[i].count;
		}
	}
	return st;
}

/* `vocabulary` at most, "unknown" included. */
static enum weft_status
create(struct wf_env *env, const struct wf_census *census, uint32_t vocabulary, bool by_order,
       struct wf_dictionary **out)
{
	const uint32_t words = census->names.count;
	struct wf_dictionary *dictionary = NULL;

	struct entry *entry = wf_zalloc_array(env, words + 1u, sizeof(*entry));
	if (entry == NULL) {
		return wf_fail(WEFT_NOMEM, "vocabulary: order of %u words", words);
	}
	for (uint32_t i = 0; i < words; i++) {
		entry[i] = (struct entry){census->names.name[i], census->count[i]};
	}
	if (!by_order) {
		qsort(entry, words, sizeof(*entry), by_count);
	}
	/* With all words numbered, 0 still stands for those that only other texts have. */
	enum weft_status st =
		alloc_dictionary(env, words + 1 < vocabulary ? words + 1 : vocabulary, &dictionary);
	if (st == WEFT_OK) {
		st = number_entries(env, entry, words, dictionary);
	}
	wf_free(env, entry, (words + 1u) * sizeof(*entry));
	if (st != WEFT_OK) {
		wf_dictionary_destroy(env, dictionary);
		return st;
	}
	*out = dictionary;
	return WEFT_OK;
}

enum weft_status
wf_dictionary_create(struct wf_env *env, const struct wf_census *census, uint32_t vocabulary,
		     struct wf_dictionary **out)
{
	WF_ASSERT(vocabulary >= 2 && vocabulary <= WF_WORDS_VOCABULARY_MAX);
	return create(env, census, vocabulary, false, out);
}

enum weft_status
wf_dictionary_create_in_order(struct wf_env *env, const struct wf_census *census,
			      struct wf_dictionary **out)
{
	WF_ASSERT(census->names.count >= 1 && census->names.count < WF_WORDS_VOCABULARY_MAX);
	return create(env, census, WF_WORDS_VOCABULARY_MAX, true, out);
}

uint32_t
wf_dictionary_find(const struct wf_dictionary *dictionary, const char *word)
{
	const uint32_t number = wf_names_find(&dictionary->names, word);

	return number == WF_NAMES_NONE ? WF_WORDS_UNKNOWN : number;
}
