/* SPDX-License-Identifier: Apache-2.0 */
/* Opens sets. Thread: the caller's. */
#include "trainer/program/set.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/digest.h"
#include "trainer/readers/windows.h"

#define ROWS_MIN 5u /* so that four fifths leave a row to test on */

static bool
has_format(const struct wf_set_opts *opts, const char *format)
{
	return opts->source.format != NULL && strcmp(opts->source.format, format) == 0;
}

static bool
has_sheet(const struct wf_set *set)
{
	return set->opts.open_sheet != NULL;
}

/* --- which files --- */

/* Names without folders: the same files may lie elsewhere on another host. */
static enum weft_status
digest_list(struct wf_env *env, struct wf_set *set)
{
	struct wf_digest *digest;
	enum weft_status st = wf_digest_create(env, &digest);
	if (st != WEFT_OK) {
		return st;
	}
	set->listed_count = set->files.count;
	wf_marks_begin(&set->listed, set->files.count);
	for (size_t i = 0; i < set->files.count; i++) {
		const struct wf_file *file = &set->files.file[i];
		const char *slash = strrchr(file->path, '/');
		wf_digest_reset(digest);
		wf_digest_string(digest, slash == NULL ? file->path : slash + 1);
		wf_digest_u64(digest, file->bytes);
		wf_marks_add(&set->listed, i, file->path, file->bytes, wf_digest_value(digest));
	}
	wf_digest_destroy(digest);
	return WEFT_OK;
}

/* A path that is no list of items: it may have commas in it. */
static enum weft_status
list_one(struct wf_env *env, const char *path, struct wf_files *out)
{
	struct wf_files files = {.count = 1, .alloc = 1};

	files.file = wf_zalloc(env, sizeof(*files.file));
	char *copy = wf_zalloc(env, strlen(path) + 1);
	if (files.file == NULL || copy == NULL) {
		wf_free(env, files.file, sizeof(*files.file));
		wf_free(env, copy, strlen(path) + 1);
		return wf_fail(WEFT_NOMEM, "%s: %zu bytes", path, strlen(path) + 1);
	}
	memcpy(copy, path, strlen(path));
	files.file->path = copy;
	*out = files;
	return WEFT_OK;
}

/* --- what is known of all rows --- */

/* The numbers of words; NULL: they are not known yet, or there are none. */
static const struct wf_dictionary *
dictionary_of(const struct wf_set *set)
{
	return set->dictionary != NULL ? set->dictionary : set->opts.source.dictionary;
}

/* Of a streamed set. */
static size_t
stream_bytes(const struct wf_set *set)
{
	return set->opts.window_bytes != 0 ? (size_t)set->opts.window_bytes : WF_SET_WINDOW_BYTES;
}

/* From the beginning of the first file. */
static enum weft_status
open_sheet(struct wf_env *env, struct wf_set *set, struct wf_text *text)
{
	struct wf_source_opts opts = set->opts.source;

	opts.text = text;
	return set->opts.open_sheet(env, &opts, &set->sheet);
}

/* What the rows of a table have in common is known when all of them have been seen: windows are
 * added in the order of the files. */
static enum weft_status
add_rows(struct wf_env *env, void *arg, struct wf_text *text)
{
	struct wf_set *set = arg;

	enum weft_status st = set->sheet.format.columns == 0 ? open_sheet(env, set, text) : WEFT_OK;
	return st == WEFT_OK ? wf_sheet_survey(env, &set->sheet, text) : st;
}

static enum weft_status
survey_table(struct wf_env *env, struct wf_set *set)
{
	wf_log(env, WF_LOG_INFO,
	       "%s%s: the ranges of columns or the classes of all rows are looked for in a first "
	       "pass",
	       set->files.file[0].path, set->files.count == 1 ? "" : " and the other files");
	enum weft_status st = wf_windows_visit(env, &set->files, stream_bytes(set), add_rows, set);
	return st == WEFT_OK ? wf_sheet_end_survey(&set->sheet, set->files.file[0].path) : st;
}

/* How many words each file has, and, unless they have numbers already, which words there are in
 * them. `words` is [files.count]. */
static enum weft_status
count_text(struct wf_env *env, struct wf_set *set, size_t *words)
{
	const bool is_numbered = dictionary_of(set) != NULL;
	const struct wf_corpus_opts opts = {
		.files = &set->files,
		.words = words,
		.trainers = set->opts.split == WF_SPLIT_FILES ? set->opts.trainers : 1,
		.window_bytes = stream_bytes(set),
		.vocabulary = set->opts.source.vocabulary,
		.is_whole = set->opts.source.is_whole,
	};

	wf_log(env, WF_LOG_INFO, "%s%s: %s", set->files.file[0].path,
	       set->files.count == 1 ? "" : " and the other files",
	       is_numbered ? "how many words each file has is counted in a first pass"
			   : "their words are counted in two first passes");
	enum weft_status st = wf_corpus_measure(env, &opts, words);
	return st == WEFT_OK && !is_numbered ? wf_corpus_count(env, &opts, &set->dictionary) : st;
}

static enum weft_status
survey_text(struct wf_env *env, struct wf_set *set)
{
	size_t *words = wf_zalloc_array(env, set->files.count, sizeof(*words));

	if (words == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", set->files.count);
	}
	enum weft_status st = count_text(env, set, words);
	wf_free(env, words, set->files.count * sizeof(*words));
	return st;
}

static enum weft_status
survey(struct wf_env *env, struct wf_set *set)
{
	return has_sheet(set) ? survey_table(env, set) : survey_text(env, set);
}

/* Adds to the reason why there are no such files which option has named them. */
static enum weft_status
name_option(const struct wf_set_opts *opts, enum weft_status st)
{
	const struct wf_error why = *wf_error_record();

	return st == WEFT_OK || opts->option == NULL
		       ? st
		       : wf_fail(st, "%s (--%s)", why.text, opts->option);
}

static enum weft_status
list_files(struct wf_env *env, const struct wf_set_opts *opts, struct wf_set *set)
{
	enum weft_status st =
		opts->items != NULL
			? name_option(opts, wf_files_list(env, opts->items, &set->files))
			: list_one(env, opts->source.path, &set->files);
	if (st == WEFT_OK) {
		st = digest_list(env, set);
	}
	if (st == WEFT_OK && opts->items != NULL && opts->split == WF_SPLIT_ROWS) {
		st = wf_files_check_whole(env, &set->files);
	}
	/* Of a set of all trainers, the first one warns. */
	if (st == WEFT_OK && (opts->split == WF_SPLIT_MINE || opts->trainer == 0)) {
		wf_files_warn_mixed(env, &set->files, opts->split == WF_SPLIT_FILES);
	}
	if (st != WEFT_OK || opts->split != WF_SPLIT_FILES) {
		return st;
	}
	if (set->files.count < opts->trainers) {
		return wf_fail(WEFT_INVALID,
			       "data_split=files: %zu files for %" PRIu32
			       " trainers, of which some would have none; give at least as many "
			       "files, or --data_split=rows",
			       set->files.count, opts->trainers);
	}
	/* The files of others are looked at as well. */
	if (opts->is_surveyed && (has_sheet(set) || dictionary_of(set) == NULL)) {
		st = survey(env, set);
	}
	return st == WEFT_OK ? wf_files_keep(env, &set->files, opts->trainer, opts->trainers) : st;
}

/* --- sets in memory --- */

/* What kind of rows the set has, as its first window shows. */
static enum weft_status
learn_kind(struct wf_env *env, struct wf_set *set, struct wf_text *text)
{
	if (set->opts.open_sheet == NULL) {
		return wf_set_parse(env, set, text, NULL, &set->source);
	}
	enum weft_status st = set->opts.is_surveyed ? WEFT_OK : open_sheet(env, set, text);
	set->source = (struct wf_source){
		.kind = WF_SOURCE_DATASET,
		.features = st == WEFT_OK ? set->sheet.format.columns - 1 : 0,
	};
	return st;
}

/* The names of columns are compared with those of other sets. */
static enum weft_status
read_whole(struct wf_env *env, struct wf_set *set, struct wf_text *text)
{
	const bool has_names = has_sheet(set) && has_format(&set->opts, "csv");
	struct wf_source_opts opts = set->opts.source;

	enum weft_status st =
		has_names && set->sheet.header == NULL ? open_sheet(env, set, text) : WEFT_OK;
	if (st != WEFT_OK) {
		return st;
	}
	opts.text = text;
	opts.sheet = has_sheet(set) && set->opts.is_surveyed ? &set->sheet : NULL;
	opts.dictionary = dictionary_of(set);
	return set->opts.read(env, &opts, &set->source);
}

/* The set's first window, whole files as they are. `*is_all`: it is the set. */
static enum weft_status
read_first(struct wf_env *env, struct wf_set *set, size_t window_bytes, bool *is_all)
{
	struct wf_lines *lines = NULL;
	struct wf_span *span = NULL;
	struct wf_text text;

	enum weft_status st = wf_windows_spans(env, &set->files, &span);
	if (st == WEFT_OK) {
		st = wf_lines_open(env, window_bytes, &lines);
	}
	if (st == WEFT_OK) {
		wf_lines_begin(lines, span, set->files.count);
		st = wf_lines_next(lines, &text);
	}
	if (st == WEFT_OK) {
		*is_all = wf_lines_is_over(lines);
		set->bytes = text.count;
		if (set->is_streamed) {
			st = learn_kind(env, set, &text);
		} else if (*is_all) {
			st = read_whole(env, set, &text);
		}
	}
	wf_lines_close(lines);
	wf_free(env, span, set->files.count * sizeof(*span));
	return st;
}

/* --- streamed sets --- */

/* As the reader does of rows in memory: the lower class of two is -1 or 0 in all files. */
static enum weft_status
check_labels(struct wf_set *set, size_t idx, const struct wf_scan *scan)
{
	if (scan->zero_line != 0 && set->labels.zero_line == 0) {
		set->labels.zero_line = scan->zero_line;
		set->labels.zero_file = idx;
	}
	if (scan->minus_line != 0 && set->labels.minus_line == 0) {
		set->labels.minus_line = scan->minus_line;
		set->labels.minus_file = idx;
	}
	if (set->labels.zero_line == 0 || set->labels.minus_line == 0) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%.300s: line %" PRIu64 " has the label 0 for the lower class, but %.300s: "
		       "line %" PRIu64 " has -1: with +1 that would be three; use one of the two",
		       set->files.file[set->labels.zero_file].path, set->labels.zero_line,
		       set->files.file[set->labels.minus_file].path, set->labels.minus_line);
}

/* A file whose lines are rows. */
static void
add_lines(struct wf_set *set, size_t idx, const struct wf_scan *scan)
{
	const uint64_t headers = has_sheet(set) ? set->sheet.format.header != NULL
						: has_format(&set->opts, "strikes");

	set->file[idx] = (struct wf_set_file){
		.idx = idx,
		.first_row = set->source.rows,
		.rows = scan->lines > headers ? scan->lines - headers : 0,
		.lines = scan->lines,
	};
	set->source.rows += (size_t)set->file[idx].rows;
	if (has_format(&set->opts, "libsvm") && scan->marks_max > set->source.row_entries_max) {
		set->source.row_entries_max = scan->marks_max;
	}
}

/* Adds a file to what is known of all of them. */
static enum weft_status
scan_file(struct wf_env *env, struct wf_set *set, size_t idx, struct wf_digest *digest)
{
	struct wf_scan scan;

	enum weft_status st = wf_lines_scan(env, set->files.file[idx].path, ':', &scan);
	if (st != WEFT_OK) {
		return st;
	}
	if (!set->opts.has_words) {
		add_lines(set, idx, &scan);
	}
	set->bytes += scan.bytes;
	wf_digest_reset(digest);
	wf_digest_u64(digest, scan.lines);
	wf_digest_u64(digest, scan.bytes);
	wf_digest_u64(digest, scan.crc);
	wf_marks_add(&set->content, idx, set->files.file[idx].path, scan.bytes,
		     wf_digest_value(digest));
	return has_format(&set->opts, "libsvm") ? check_labels(set, idx, &scan) : WEFT_OK;
}

static enum weft_status
alloc_files(struct wf_env *env, struct wf_set *set, size_t count)
{
	set->file = wf_zalloc_array(env, count, sizeof(*set->file));
	if (set->file == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", count);
	}
	set->file_count = count;
	return WEFT_OK;
}

static enum weft_status
scan_files(struct wf_env *env, struct wf_set *set)
{
	struct wf_digest *digest = NULL;

	set->bytes = 0;
	enum weft_status st = wf_digest_create(env, &digest);
	if (st != WEFT_OK) {
		return st;
	}
	wf_marks_begin(&set->content, set->files.count);
	for (size_t i = 0; st == WEFT_OK && i < set->files.count; i++) {
		st = scan_file(env, set, i, digest);
	}
	wf_digest_destroy(digest);
	return st;
}

/* As the readers split what they read whole. */
static enum weft_status
split_rows(struct wf_set *set)
{
	struct wf_source *source = &set->source;

	if (source->rows < ROWS_MIN) {
		return wf_fail(WEFT_DATA, "%s: has %zu rows; at least %u are needed",
			       set->files.file[0].path, source->rows, ROWS_MIN);
	}
	if (!set->opts.source.is_whole && !set->opts.has_words) {
		source->train_rows = source->rows * 4 / 5;
	}
	if (set->opts.source.is_validating) {
		source->rows = source->train_rows;
		source->train_rows = source->rows * 4 / 5;
	}
	return WEFT_OK;
}

/* The runs of words are what is streamed: a file that has words to train on and words to test on is
 * two. */
static enum weft_status
outline_text(struct wf_env *env, struct wf_set *set, const size_t *words)
{
	struct wf_source_opts opts = set->opts.source;

	opts.path = set->files.file[0].path;
	opts.dictionary = dictionary_of(set);
	enum weft_status st =
		wf_source_outline_words(env, &opts, words, set->files.count, &set->source);
	if (st == WEFT_OK) {
		st = alloc_files(env, set, set->source.words.runs.count);
	}
	for (size_t i = 0; st == WEFT_OK && i < set->file_count; i++) {
		const struct wf_words_run *run = &set->source.words.runs.run[i];
		const size_t lead = WF_WORDS_CONTEXT;
		set->file[i] = (struct wf_set_file){
			.idx = run->file,
			.first_row = run->row,
			.rows = run->tokens > lead ? run->tokens - lead : 0,
			.words = words[run->file],
			.first_word = run->word,
		};
	}
	return st;
}

static enum weft_status
open_text(struct wf_env *env, struct wf_set *set)
{
	size_t *words = wf_zalloc_array(env, set->files.count, sizeof(*words));

	if (words == NULL) {
		return wf_fail(WEFT_NOMEM, "list of %zu files", set->files.count);
	}
	enum weft_status st = scan_files(env, set);
	if (st == WEFT_OK) {
		st = count_text(env, set, words);
	}
	if (st == WEFT_OK) {
		st = outline_text(env, set, words);
	}
	wf_free(env, words, set->files.count * sizeof(*words));
	return st;
}

/* Of rows that are lines. */
static enum weft_status
open_lines(struct wf_env *env, struct wf_set *set)
{
	bool is_all = false;

	enum weft_status st = read_first(env, set, set->window_bytes, &is_all);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_source about = set->source;
	wf_source_fini(env, &set->source);
	set->source = (struct wf_source){
		.kind = about.kind,
		.features = about.features,
		.classes = about.classes,
		.slots = about.slots,
		.key_count = about.key_count,
		.row_entries_max = about.row_entries_max,
	};
	st = alloc_files(env, set, set->files.count);
	if (st == WEFT_OK) {
		st = scan_files(env, set);
		set->source.train_rows = set->source.rows;
	}
	if (st == WEFT_OK && set->opts.open_sheet != NULL) {
		if (!set->opts.is_surveyed && wf_sheet_needs_survey(&set->sheet)) {
			st = survey(env, set);
		}
		set->source.classes = set->sheet.classes;
	}
	return st;
}

static enum weft_status
open_stream(struct wf_env *env, struct wf_set *set)
{
	set->is_streamed = true;
	set->window_bytes = stream_bytes(set);
	wf_source_fini(env, &set->source);
	enum weft_status st = set->opts.has_words ? open_text(env, set) : open_lines(env, set);
	return st == WEFT_OK ? split_rows(set) : st;
}

static enum weft_status
read_rows(struct wf_env *env, struct wf_set *set)
{
	const size_t window_bytes =
		set->opts.window_bytes != 0 ? (size_t)set->opts.window_bytes : WF_SET_MEMORY_BYTES;
	bool is_all = false;

	if (has_format(&set->opts, "idx")) {
		struct wf_source_opts opts = set->opts.source;
		if (set->opts.items != NULL) {
			opts.path = set->opts.items; /* a folder */
		}
		return name_option(&set->opts, set->opts.read(env, &opts, &set->source));
	}
	enum weft_status st = read_first(env, set, window_bytes, &is_all);
	if (st != WEFT_OK || is_all) {
		return st;
	}
	if (!set->opts.can_stream) {
		return wf_fail(WEFT_INVALID,
			       "data_window=%zu: %s and what follows it have more bytes, and this "
			       "model needs all rows in memory; give a larger --data_window",
			       window_bytes, set->files.file[0].path);
	}
	return open_stream(env, set);
}

enum weft_status
wf_set_open(struct wf_env *env, const struct wf_set_opts *opts, struct wf_set *out)
{
	struct wf_set set = {.opts = *opts};

	/* A folder of idx files is one data set, not a set of files. */
	enum weft_status st = has_format(opts, "idx") ? WEFT_OK : list_files(env, opts, &set);
	if (st == WEFT_OK) {
		st = read_rows(env, &set);
	}
	if (st != WEFT_OK) {
		const struct wf_error why = *wf_error_record();
		wf_set_close(env, &set);
		*wf_error_record() = why;
		return st;
	}
	*out = set;
	return WEFT_OK;
}

void
wf_set_close(struct wf_env *env, struct wf_set *set)
{
	wf_source_fini(env, &set->source);
	wf_sheet_fini(env, &set->sheet);
	wf_dictionary_destroy(env, set->dictionary);
	if (set->file != NULL) {
		wf_free(env, set->file, set->file_count * sizeof(*set->file));
	}
	wf_files_fini(env, &set->files);
	*set = (struct wf_set){0};
}

enum weft_status
wf_set_parse(struct wf_env *env, const struct wf_set *set, struct wf_text *text,
	     struct wf_words_place *place, struct wf_source *out)
{
	struct wf_source_opts opts = set->opts.source;

	WF_ASSERT(set->is_streamed);
	opts.text = text;
	opts.is_window = true;
	opts.place = place;
	opts.dictionary = dictionary_of(set);
	opts.sheet = set->opts.open_sheet != NULL ? &set->sheet : NULL;
	enum weft_status st = set->opts.read(env, &opts, out);
	if (st == WEFT_OK && set->file != NULL &&
	    out->row_entries_max > set->source.row_entries_max) {
		wf_source_fini(env, out);
		return wf_fail(WEFT_DATA,
			       "%s: has other rows than when it was opened: it must not change "
			       "while it is in use",
			       text->path);
	}
	return st;
}

void
wf_set_part(const struct wf_set *set, enum wf_part part, uint64_t *first, uint64_t *end)
{
	*first = part == WF_PART_TEST ? set->source.train_rows : 0;
	*end = part == WF_PART_TRAIN ? set->source.train_rows : set->source.rows;
}
