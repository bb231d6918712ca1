/* SPDX-License-Identifier: Apache-2.0 */
/* One interface for the sets of all readers. Thread: the caller's. */
#include "trainer/program/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "trainer/readers/idx.h"

/* Splits the rows as the reader and the options require; on failure the set is gone. */
static enum weft_status
finish(struct wf_env *env, const struct wf_source_opts *opts, struct wf_source *source,
       struct wf_source *out)
{
	if (opts->is_whole || opts->is_window) {
		source->train_rows = source->rows;
	}
	if (opts->is_window) {
		*out = *source;
		return WEFT_OK;
	}
	if (opts->is_validating) {
		source->rows = source->train_rows;
		source->train_rows = source->rows * 4 / 5;
	}
	if (source->train_rows == 0 || source->rows >= UINT32_MAX) {
		size_t rows = source->train_rows;
		wf_source_fini(env, source);
		return wf_fail(WEFT_DATA, "%s: %zu rows to train on; must be 1 to %u", opts->path,
			       rows, UINT32_MAX - 1);
	}
	*out = *source;
	return WEFT_OK;
}

static enum weft_status
finish_dataset(struct wf_env *env, const struct wf_source_opts *opts,
	       const struct wf_dataset *dataset, struct wf_source *out)
{
	struct wf_source source = {
		.kind = WF_SOURCE_DATASET,
		.features = dataset->features,
		.classes = dataset->classes,
		.rows = dataset->rows,
		.train_rows = dataset->train_rows,
		.dataset = *dataset,
	};
	return finish(env, opts, &source, out);
}

static bool
has_format(const struct wf_source_opts *opts, const char *format)
{
	return opts->format != NULL && strcmp(opts->format, format) == 0;
}

/* A table with a header is of any width, with a real target or with classes; without the format
 * it is the model's own. */
static struct wf_sheet_opts
sheet_of(const struct wf_source_opts *opts, enum wf_sheet_kind own)
{
	return (struct wf_sheet_opts){
		.kind = has_format(opts, "csv") ? WF_SHEET_COLUMNS : own,
		.target = opts->target,
		.has_classes = own == WF_SHEET_DIGITS,
		.is_scaled = opts->is_scaled,
	};
}

static enum weft_status
read_sheet(struct wf_env *env, const struct wf_source_opts *opts, enum wf_sheet_kind own,
	   struct wf_source *out)
{
	const struct wf_sheet_opts sheet = sheet_of(opts, own);
	struct wf_dataset dataset;
	enum weft_status st;

	if (opts->sheet != NULL) {
		st = wf_sheet_parse(env, opts->sheet, opts->text, &dataset);
		if (st == WEFT_OK && !opts->is_window) {
			st = wf_sheet_split(opts->text->path, &dataset);
			if (st != WEFT_OK) {
				wf_dataset_fini(env, &dataset);
			}
		}
	} else {
		st = opts->text != NULL ? wf_sheet_parse_whole(env, opts->text, &sheet, &dataset)
					: wf_sheet_read(env, opts->path, &sheet, &dataset);
	}
	return st == WEFT_OK ? finish_dataset(env, opts, &dataset, out) : st;
}

enum weft_status
wf_source_read_housing(struct wf_env *env, const struct wf_source_opts *opts, struct wf_source *out)
{
	return read_sheet(env, opts, WF_SHEET_HOUSING, out);
}

enum weft_status
wf_source_read_digits(struct wf_env *env, const struct wf_source_opts *opts, struct wf_source *out)
{
	struct wf_dataset dataset;

	if (!has_format(opts, "idx")) {
		return read_sheet(env, opts, WF_SHEET_DIGITS, out);
	}
	enum weft_status st = wf_images_read(env, opts->path, &dataset);
	return st == WEFT_OK ? finish_dataset(env, opts, &dataset, out) : st;
}

enum weft_status
wf_source_open_housing(struct wf_env *env, const struct wf_source_opts *opts, struct wf_sheet *out)
{
	const struct wf_sheet_opts sheet = sheet_of(opts, WF_SHEET_HOUSING);

	return wf_sheet_open(env, opts->text, &sheet, out);
}

enum weft_status
wf_source_open_digits(struct wf_env *env, const struct wf_source_opts *opts, struct wf_sheet *out)
{
	const struct wf_sheet_opts sheet = sheet_of(opts, WF_SHEET_DIGITS);

	return wf_sheet_open(env, opts->text, &sheet, out);
}

static enum weft_status
read_bags(struct wf_env *env, const struct wf_source_opts *opts, struct wf_bags *out)
{
	static const struct {
		const char *format;
		enum weft_status (*read)(struct wf_env *env, const char *path, struct wf_bags *out);
		enum weft_status (*parse)(struct wf_env *env, const struct wf_text *text,
					  struct wf_bags *out);
	} readers[] = {
		{"strikes", wf_strikes_read, wf_strikes_parse},
		{"libsvm", wf_libsvm_read, wf_libsvm_parse},
		{"criteo", wf_criteo_read, wf_criteo_parse},
	};
	for (size_t i = 0; i < WF_ARRAY_COUNT(readers); i++) {
		if (strcmp(readers[i].format, opts->format) == 0) {
			return opts->text != NULL ? readers[i].parse(env, opts->text, out)
						  : readers[i].read(env, opts->path, out);
		}
	}
	return wf_fail(WEFT_INVALID, "format=%.40s: must be strikes, libsvm or criteo",
		       opts->format);
}

enum weft_status
wf_source_read_bags(struct wf_env *env, const struct wf_source_opts *opts, struct wf_source *out)
{
	struct wf_source source = {.kind = WF_SOURCE_BAGS};

	enum weft_status st = read_bags(env, opts, &source.bags);
	if (st == WEFT_OK && opts->text != NULL && !opts->is_whole && !opts->is_window) {
		st = wf_bags_split(opts->path, &source.bags);
	}
	if (st != WEFT_OK) {
		wf_bags_fini(env, &source.bags);
		return st;
	}
	source.features = source.bags.features;
	source.classes = source.bags.classes;
	source.slots = source.bags.slots;
	source.row_entries_max = source.bags.row_entries_max;
	source.rows = source.bags.rows;
	source.train_rows = source.bags.train_rows;
	return finish(env, opts, &source, out);
}

static struct wf_source
source_of_words(const struct wf_words *words)
{
	return (struct wf_source){
		.kind = WF_SOURCE_WORDS,
		.classes = words->dictionary->vocabulary,
		.slots = WF_WORDS_CONTEXT,
		.key_count = words->dictionary->vocabulary,
		.row_entries_max = WF_WORDS_CONTEXT,
		.rows = words->rows,
		.train_rows = words->train_rows,
		.words = *words,
	};
}

enum weft_status
wf_source_outline_words(struct wf_env *env, const struct wf_source_opts *opts,
			const size_t *file_words, size_t files, struct wf_source *out)
{
	const struct wf_words_opts words_opts = {
		.dictionary = opts->dictionary,
		.is_whole = opts->is_whole,
	};
	struct wf_words words;

	enum weft_status st =
		wf_words_outline(env, opts->path, &words_opts, file_words, files, &words);
	if (st == WEFT_OK) {
		*out = source_of_words(&words);
	}
	return st;
}

static enum weft_status
read_words(struct wf_env *env, const struct wf_source_opts *opts, struct wf_words *out)
{
	const struct wf_words_opts words = {
		.dictionary = opts->dictionary,
		.vocabulary = (uint32_t)opts->vocabulary,
		.is_whole = opts->is_whole,
	};

	if (opts->is_window) {
		return wf_words_parse_window(env, opts->text, opts->dictionary, opts->place, out);
	}
	return opts->text != NULL ? wf_words_parse(env, opts->text, &words, out)
				  : wf_words_read(env, opts->path, &words, out);
}

enum weft_status
wf_source_read_words(struct wf_env *env, const struct wf_source_opts *opts, struct wf_source *out)
{
	struct wf_words words;

	if (opts->vocabulary < 2 || opts->vocabulary > WF_WORDS_VOCABULARY_MAX) {
		return wf_fail(WEFT_INVALID, "vocabulary=%" PRIu64 ": must be 2 to %u",
			       opts->vocabulary, WF_WORDS_VOCABULARY_MAX);
	}
	enum weft_status st = read_words(env, opts, &words);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_source source = source_of_words(&words);
	return finish(env, opts, &source, out);
}

void
wf_source_fini(struct wf_env *env, struct wf_source *source)
{
	switch (source->kind) {
	case WF_SOURCE_DATASET:
		wf_dataset_fini(env, &source->dataset);
		break;
	case WF_SOURCE_BAGS:
		wf_bags_fini(env, &source->bags);
		break;
	case WF_SOURCE_WORDS:
		wf_words_fini(env, &source->words);
		break;
	}
	*source = (struct wf_source){0};
}

enum weft_status
wf_source_batch_init(struct wf_env *env, const struct wf_source *source, size_t rows_max,
		     struct wf_bag_batch *out)
{
	return wf_bag_batch_init(env,
				 &(struct wf_bag_batch_opts){
					 .slots = source->slots,
					 .features = source->features,
					 .rows_max = rows_max,
					 .row_entries_max = source->row_entries_max,
				 },
				 out);
}

static void
gather_dataset(const struct wf_dataset *dataset, const uint32_t *row, size_t count,
	       struct wf_bag_batch *batch)
{
	batch->rows = count;
	for (size_t i = 0; i < count; i++) {
		wf_dataset_row(dataset, row[i], batch->x + i * dataset->features);
		batch->y[i] = dataset->y[row[i]];
	}
}

void
wf_source_gather(const struct wf_source *source, const uint32_t *row, size_t count,
		 struct wf_bag_batch *batch)
{
	WF_ASSERT(count <= batch->rows_max && batch->features == source->features);
	switch (source->kind) {
	case WF_SOURCE_DATASET:
		gather_dataset(&source->dataset, row, count, batch);
		break;
	case WF_SOURCE_BAGS:
		wf_bags_gather(&source->bags, row, count, batch);
		break;
	case WF_SOURCE_WORDS:
		wf_words_gather(&source->words, row, count, batch);
		break;
	}
}

static void
digest_dataset(struct wf_digest *digest, const struct wf_dataset *set)
{
	const size_t count = set->rows * set->features;

	wf_digest_u64(digest, set->rows);
	wf_digest_u64(digest, set->train_rows);
	if (set->pixel != NULL) {
		wf_digest_bytes(digest, set->pixel, count);
	} else {
		wf_digest_bytes(digest, set->x, count * sizeof(*set->x));
	}
	wf_digest_bytes(digest, set->y, set->rows * sizeof(*set->y));
}

static void
digest_bags(struct wf_digest *digest, const struct wf_bags *bags)
{
	wf_digest_u64(digest, bags->rows);
	wf_digest_u64(digest, bags->train_rows);
	wf_digest_bytes(digest, bags->first, (bags->rows * bags->slots + 1) * sizeof(*bags->first));
	wf_digest_bytes(digest, bags->key, bags->entries * sizeof(*bags->key));
	wf_digest_bytes(digest, bags->weight, bags->entries * sizeof(*bags->weight));
	wf_digest_bytes(digest, bags->x, bags->rows * bags->features * sizeof(*bags->x));
	wf_digest_bytes(digest, bags->y, bags->rows * sizeof(*bags->y));
}

static void
digest_dictionary(struct wf_digest *digest, const struct wf_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->vocabulary; i++) {
		wf_digest_string(digest, dictionary->word[i]);
	}
}

static void
digest_words(struct wf_digest *digest, const struct wf_words *words)
{
	wf_digest_u64(digest, words->tokens);
	wf_digest_u64(digest, words->train_tokens);
	wf_digest_bytes(digest, words->token, words->tokens * sizeof(*words->token));
	for (size_t i = 0; i < words->runs.count; i++) {
		wf_digest_u64(digest, words->runs.run[i].tokens);
	}
	digest_dictionary(digest, words->dictionary);
}

enum weft_status
wf_source_digest_words(struct wf_env *env, const struct wf_dictionary *dictionary, uint64_t *out)
{
	struct wf_digest *digest;
	enum weft_status st = wf_digest_create(env, &digest);
	if (st == WEFT_OK) {
		digest_dictionary(digest, dictionary);
		*out = wf_digest_value(digest);
		wf_digest_destroy(digest);
	}
	return st;
}

enum weft_status
wf_source_digest(struct wf_env *env, const struct wf_source *source, uint64_t *out)
{
	struct wf_digest *digest;
	enum weft_status st = wf_digest_create(env, &digest);
	if (st != WEFT_OK) {
		return st;
	}
	wf_digest_u64(digest, source->features);
	wf_digest_u64(digest, source->classes);
	switch (source->kind) {
	case WF_SOURCE_DATASET:
		digest_dataset(digest, &source->dataset);
		break;
	case WF_SOURCE_BAGS:
		digest_bags(digest, &source->bags);
		break;
	case WF_SOURCE_WORDS:
		digest_words(digest, &source->words);
		break;
	}
	*out = wf_digest_value(digest);
	wf_digest_destroy(digest);
	return WEFT_OK;
}

static int
by_value(const void *left, const void *right)
{
	const uint64_t a = *(const uint64_t *)left;
	const uint64_t b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

enum weft_status
wf_source_list_keys(struct wf_env *env, const struct wf_source *source, struct wf_key_list *out)
{
	const size_t all = source->key_count > 0 ? (size_t)source->key_count : source->bags.entries;
	struct wf_key_list list = {.alloc = all + 1};

	WF_ASSERT(source->slots > 0);
	list.key = wf_zalloc_array(env, list.alloc, sizeof(*list.key));
	if (list.key == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu keys", all);
	}
	for (size_t i = 0; i < all; i++) {
		list.key[i] = source->key_count > 0 ? i : source->bags.key[i];
	}
	if (source->key_count == 0) {
		qsort(list.key, all, sizeof(*list.key), by_value);
	}
	for (size_t i = 0; i < all; i++) {
		if (i == 0 || list.key[i] != list.key[i - 1]) {
			list.key[list.count++] = list.key[i];
		}
	}
	*out = list;
	return WEFT_OK;
}

void
wf_key_list_fini(struct wf_env *env, struct wf_key_list *list)
{
	wf_free(env, list->key, list->alloc * sizeof(*list->key));
	*list = (struct wf_key_list){0};
}
