/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a run: which sets it opens, whose they are, and what goes together. Thread: the
 * run's. */
#include "trainer/program/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/status.h"
#include "trainer/readers/lines.h"

#define PLACE "{trainer}" /* of a trainer's number in the name of its own data */
#define ITEMS_BYTES_MAX (1u << 20)

static bool
is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static bool
is_idx(const struct wf_train_opts *opts)
{
	return opts->format != NULL && strcmp(opts->format, "idx") == 0;
}

/* Tables of numbers with a header: of models without keys. */
static bool
is_csv(const struct wf_run *job)
{
	return !job->kind->has_tables && job->opts->format != NULL &&
	       strcmp(job->opts->format, "csv") == 0;
}

static bool
is_scaled(const struct wf_train_opts *opts)
{
	return opts->scale != NULL && strcmp(opts->scale, "range") == 0;
}

/* What is done with all rows of a set, in a message; NULL: nothing. */
static const char *
whole_of(const struct wf_run *job)
{
	if (job->kind->has_words && is_given(job->opts->dictionary)) {
		return NULL;
	}
	if (!is_csv(job)) {
		return job->kind->whole;
	}
	return is_scaled(job->opts)
		       ? "with scale=range scales its columns by the ranges of all rows"
		       : NULL;
}

/* Each trainer can look at the files of the others for it. */
static bool
is_surveyed(const struct wf_run *job)
{
	return job->data.split == WF_SPLIT_FILES && whole_of(job) != NULL;
}

/* The other way out, where there is one. */
static const char *
unscaled(const struct wf_run *job)
{
	if (is_csv(job)) {
		return ", or leave scale=range out";
	}
	return job->kind->has_words ? ", or a dictionary, a file that has the numbers"
				    : ", or give format=csv, which takes columns as they stand";
}

/* Of the format of its default data the model's reader says itself what it must be. */
static enum weft_status
check_format(const struct wf_run *job)
{
	const struct wf_kind *kind = job->kind;
	const char *format = job->opts->format;
	const bool is_other = kind->other_format != NULL && format != NULL &&
			      strcmp(format, kind->other_format) == 0;

	return format == NULL || kind->data_format != NULL || is_csv(job) || is_other
		       ? WEFT_OK
		       : wf_fail(WEFT_INVALID,
				 "format=%.40s: the model %s does not read it; leave the option "
				 "out",
				 format, kind->name);
}

static enum weft_status
check_csv(const struct wf_run *job)
{
	const bool has_target = is_given(job->opts->target);

	if (is_csv(job) || (!has_target && !is_scaled(job->opts))) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_INVALID, "%s=%.80s: is for format=csv, which linear and mlp read",
		       has_target ? "target" : "scale",
		       has_target ? job->opts->target : job->opts->scale);
}

/* The numbers of words, if they are in a file. */
static enum weft_status
read_dictionary(struct wf_run *job)
{
	const char *path = job->opts->dictionary;

	if (!is_given(path)) {
		return WEFT_OK;
	}
	if (!job->kind->has_words) {
		return wf_fail(WEFT_INVALID,
			       "dictionary=%.200s: is for the model ngram; leave it out with %s",
			       path, job->kind->name);
	}
	enum weft_status st = wf_dictionary_read(job->env, path, &job->data.dictionary);
	if (st == WEFT_OK) {
		return WEFT_OK;
	}
	const struct wf_error why = *wf_error_record();
	return wf_fail(st, "%s (--dictionary)", why.text);
}

/* The numbers that the next set to be opened has; NULL: those of its own words. */
static const struct wf_dictionary *
dictionary_of(const struct wf_run *job)
{
	return job->data.dictionary != NULL ? job->data.dictionary
					    : job->data.set[0].source.words.dictionary;
}

/* The original's word is as good; both only if they say the same. */
static enum weft_status
train_items(const struct wf_train_opts *opts, const char **out)
{
	const char *data = is_given(opts->data) ? opts->data : NULL;
	const char *list = is_given(opts->train_list) ? opts->train_list : NULL;

	if (data != NULL && list != NULL && strcmp(data, list) != 0) {
		return wf_fail(WEFT_INVALID,
			       "train_list=%.200s: is another name for data, which is %.200s; give "
			       "one of them",
			       list, data);
	}
	*out = data != NULL ? data : list;
	return WEFT_OK;
}

static enum weft_status
read_split(struct wf_run *job)
{
	static const char *const names[] = {
		[WF_SPLIT_ROWS] = "rows", [WF_SPLIT_FILES] = "files", [WF_SPLIT_MINE] = "mine"};
	const char *given = job->opts->data_split;

	job->data.split = WF_SPLIT_ROWS;
	for (unsigned i = 0; given != NULL && i < WF_ARRAY_COUNT(names); i++) {
		if (strcmp(names[i], given) == 0) {
			job->data.split = (enum wf_split)i;
			return WEFT_OK;
		}
	}
	return given == NULL ? WEFT_OK
			     : wf_fail(WEFT_INVALID,
				       "data_split=%.40s: must be rows, files or mine", given);
}

static enum weft_status
check_window(const struct wf_train_opts *opts)
{
	const uint64_t bytes = opts->data_window;

	if (bytes != 0 && (bytes < WF_WINDOW_BYTES_MIN || bytes > WF_WINDOW_BYTES_MAX)) {
		return wf_fail(WEFT_INVALID,
			       "data_window=%" PRIu64 ": must be 0, or %u to %llu bytes", bytes,
			       WF_WINDOW_BYTES_MIN, WF_WINDOW_BYTES_MAX);
	}
	return WEFT_OK;
}

/* What a set that is not in one piece asks of the model. */
static enum weft_status
check_split(const struct wf_run *job, const char *items)
{
	const struct wf_train_opts *opts = job->opts;
	const bool has_place = items != NULL && strstr(items, PLACE) != NULL;

	if (job->data.split != WF_SPLIT_ROWS && whole_of(job) != NULL && !is_surveyed(job)) {
		return wf_fail(WEFT_INVALID,
			       "data_split=%s: the model %s %s, which have to be the same for all "
			       "trainers; give data_split=rows or files%s",
			       opts->data_split, job->kind->name, whole_of(job), unscaled(job));
	}
	if (job->data.split == WF_SPLIT_FILES && is_idx(opts)) {
		return wf_fail(WEFT_INVALID, "data_split=files: idx files are one data set, not a "
					     "set of files; give data_split=rows or mine");
	}
	if (has_place && job->data.split != WF_SPLIT_MINE) {
		return wf_fail(WEFT_INVALID,
			       "data=%.200s: " PLACE " is for data_split=mine, where each trainer "
			       "has data of its own; give that, or a name without " PLACE,
			       items);
	}
	if (job->data.split == WF_SPLIT_MINE && job->is_sequential && !has_place &&
	    opts->session.num_gradient_servers > 1) {
		return wf_fail(WEFT_INVALID,
			       "data_split=mine: one process plays %" PRIu32 " trainers; " PLACE
			       " in data stands for the number of each",
			       opts->session.num_gradient_servers);
	}
	return WEFT_OK;
}

static enum weft_status
check_test_list(const struct wf_run *job)
{
	if (!is_given(job->opts->test_list)) {
		return WEFT_OK;
	}
	if (is_idx(job->opts)) {
		return wf_fail(WEFT_INVALID,
			       "test_list=%.200s: a folder of idx files has test rows of its own; "
			       "leave this out",
			       job->opts->test_list);
	}
	if (whole_of(job) != NULL && !job->kind->has_words) {
		return wf_fail(WEFT_INVALID,
			       "test_list=%.200s: the model %s %s of data, those to test on "
			       "included; leave this out%s",
			       job->opts->test_list, job->kind->name, whole_of(job), unscaled(job));
	}
	return WEFT_OK;
}

/* `items` with a trainer's number in the place for it; ends with wf_free of *bytes. */
static enum weft_status
name_trainer(struct wf_env *env, const char *items, uint32_t trainer, char **out, size_t *bytes)
{
	char number[16];
	size_t places = 0;
	size_t used = 0;

	snprintf(number, sizeof(number), "%" PRIu32, trainer);
	for (const char *at = strstr(items, PLACE); at != NULL; at = strstr(at + 1, PLACE)) {
		places++;
	}
	if (strlen(items) > ITEMS_BYTES_MAX) {
		return wf_fail(WEFT_INVALID, "data: has more than %u bytes; write a list file",
			       ITEMS_BYTES_MAX);
	}
	*bytes = strlen(items) + places * sizeof(number) + 1;
	char *text = wf_zalloc(env, *bytes);
	if (text == NULL) {
		return wf_fail(WEFT_NOMEM, "data: %zu bytes", *bytes);
	}
	while (*items != '\0') {
		if (strncmp(items, PLACE, strlen(PLACE)) == 0) {
			memcpy(text + used, number, strlen(number));
			used += strlen(number);
			items += strlen(PLACE);
		} else {
			text[used++] = *items++;
		}
	}
	*out = text;
	return WEFT_OK;
}

/* The data of a model that the system has, not weft. */
static enum weft_status
find_other(const struct wf_kind *kind, char *out)
{
	if (access(kind->other_data, F_OK) != 0) {
		return wf_fail_errno(errno == ENOENT || errno == ENOTDIR ? WEFT_DATA : WEFT_IO,
				     errno,
				     "%s: install Debian's %s, or name the folder with --data=DIR",
				     kind->other_data, kind->other_package);
	}
	snprintf(out, WF_DATA_PATH_BYTES, "%s", kind->other_data);
	return WEFT_OK;
}

/* The data that a model has without --data. */
static enum weft_status
find_default(const struct wf_run *job, char *out)
{
	const struct wf_kind *kind = job->kind;
	const char *format = job->opts->format;

	if (kind->other_format != NULL && format != NULL &&
	    strcmp(format, kind->other_format) == 0) {
		return find_other(kind, out);
	}
	if (is_csv(job) || (kind->data_format != NULL && strcmp(format, kind->data_format) != 0)) {
		return wf_fail(WEFT_INVALID,
			       "format=%s: weft comes with no such file; give --data=FILE", format);
	}
	return wf_data_find(kind->data_file, out);
}

/* Says who has the data that could not be read, where there are several. */
static enum weft_status
name_failure(const struct wf_run *job, uint32_t trainer, enum weft_status st)
{
	const struct wf_error why = *wf_error_record();
	const bool is_shared = job->is_sequential && job->data.split == WF_SPLIT_ROWS;

	return job->opts->session.num_gradient_servers == 1 || is_shared || st == WEFT_INVALID
		       ? st
		       : wf_fail(st, "trainer %" PRIu32 ": %s", trainer, why.text);
}

static void
log_set(const struct wf_run *job, uint32_t trainer, const char *what, const struct wf_set *set)
{
	const char *own = job->data.split == WF_SPLIT_MINE ? ", its own" : "";
	char window[64] = "in memory";

	if (is_idx(job->opts)) {
		wf_log(job->env, WF_LOG_INFO,
		       "%s of trainer %" PRIu32 "%s: %zu rows in a folder of idx files, in memory",
		       what, trainer, own, set->source.rows);
		return;
	}
	if (set->is_streamed) {
		snprintf(window, sizeof(window), "read in windows of %zu bytes", set->window_bytes);
	}
	wf_log(job->env, WF_LOG_INFO,
	       "%s of trainer %" PRIu32 "%s: %zu rows in %zu file%s, %" PRIu64 " bytes of text, %s",
	       what, trainer, own, set->source.rows, set->files.count,
	       set->files.count == 1 ? "" : "s", set->bytes, window);
}

static enum weft_status
open_set(struct wf_run *job, const char *items, uint32_t trainer, struct wf_set *out)
{
	char path[WF_DATA_PATH_BYTES];
	char *named = NULL;
	size_t named_bytes = 0;
	struct wf_set_opts set = {
		.source = {.format = job->opts->format,
			   .target = job->opts->target,
			   .is_scaled = is_scaled(job->opts),
			   .vocabulary = job->opts->vocabulary,
			   .dictionary = dictionary_of(job),
			   .is_validating = job->opts->validate,
			   .is_whole = is_given(job->opts->test_list)},
		.read = job->kind->read,
		.open_sheet = job->kind->open_sheet,
		.can_stream = job->kind->can_stream,
		.has_words = job->kind->has_words,
		.split = job->data.split,
		.is_surveyed = is_surveyed(job),
		.trainer = trainer,
		.trainers = job->opts->session.num_gradient_servers,
		.window_bytes = job->opts->data_window,
	};
	enum weft_status st = WEFT_OK;

	if (items == NULL) {
		st = find_default(job, path);
		set.source.path = path;
	} else {
		st = name_trainer(job->env, items, trainer, &named, &named_bytes);
		set.items = named;
		set.option = is_given(job->opts->data) ? "data" : "train_list";
		set.source.path = named;
	}
	if (st == WEFT_OK) {
		st = wf_set_open(job->env, &set, out);
		st = st == WEFT_OK ? st : name_failure(job, trainer, st);
	}
	wf_free(job->env, named, named_bytes);
	if (st == WEFT_OK && items != NULL) {
		log_set(job, trainer, "data", out);
	}
	return st;
}

static enum weft_status
open_test(struct wf_run *job)
{
	const struct wf_set_opts set = {
		.items = job->opts->test_list,
		.option = "test_list",
		.source = {.path = job->opts->test_list,
			   .format = job->opts->format,
			   .target = job->opts->target,
			   .vocabulary = job->opts->vocabulary,
			   .dictionary = dictionary_of(job),
			   .is_whole = true},
		.read = job->kind->read,
		.open_sheet = job->kind->open_sheet,
		.can_stream = job->kind->can_stream,
		.has_words = job->kind->has_words,
		.window_bytes = job->opts->data_window,
	};

	/* A validating run leaves test rows alone. */
	if (!is_given(job->opts->test_list) || job->opts->validate || !wf_run_is_first(job)) {
		return WEFT_OK;
	}
	enum weft_status st = wf_set_open(job->env, &set, &job->data.test_set);
	if (st != WEFT_OK) {
		return name_failure(job, 0, st);
	}
	job->data.has_test_set = true;
	log_set(job, 0, "test data", &job->data.test_set);
	return WEFT_OK;
}

/* All sets of a run have the same kind of rows; batches have room for the longest of any. Rows to
 * test on need not be of all classes. */
static enum weft_status
match_set(const struct wf_source *first, const struct wf_source *other, bool is_test)
{
	const bool has_classes = is_test ? other->classes <= first->classes &&
						   (other->classes > 0) == (first->classes > 0)
					 : other->classes == first->classes;

	if (other->features == first->features && other->slots == first->slots && has_classes) {
		return WEFT_OK;
	}
	return wf_fail(WEFT_DATA,
		       "%s: rows have %" PRIu32 " features and %" PRIu32
		       " classes; in the first set of the run they have %" PRIu32 " and %" PRIu32,
		       is_test ? "test_list" : "data", other->features, other->classes,
		       first->features, first->classes);
}

/* As many columns under other names, or in another order, are other features. */
static enum weft_status
match_names(const struct wf_set *first, const struct wf_set *other)
{
	struct wf_sheet_names want = {.sheet = &first->sheet};
	struct wf_sheet_names names = {.sheet = &other->sheet};
	char why[WF_DATA_PATH_BYTES + 64];

	if (first->files.count == 0 || other->files.count == 0) {
		return WEFT_OK; /* idx files */
	}
	names.name.path = other->files.file[0].path;
	while (wf_sheet_next_name(&want) && wf_sheet_next_name(&names)) {
		if (want.name.count != names.name.count ||
		    memcmp(want.name.at, names.name.at, want.name.count) != 0) {
			snprintf(why, sizeof(why), "is another name than that of column %u of %s",
				 want.name.column, first->files.file[0].path);
			return wf_field_refuse(&names.name, why);
		}
	}
	return WEFT_OK;
}

static enum weft_status
match_sets(struct wf_run *job)
{
	struct wf_set *first = &job->data.set[0];
	enum weft_status st = WEFT_OK;

	for (uint32_t i = 1; st == WEFT_OK && i <= job->data.set_count; i++) {
		const bool is_test = i == job->data.set_count;
		const struct wf_set *other = is_test ? &job->data.test_set : &job->data.set[i];
		if (is_test && !job->data.has_test_set) {
			break;
		}
		st = match_set(&first->source, &other->source, is_test);
		if (st == WEFT_OK) {
			st = match_names(first, other);
		}
		if (other->source.row_entries_max > first->source.row_entries_max) {
			first->source.row_entries_max = other->source.row_entries_max;
		}
	}
	return st;
}

enum weft_status
wf_run_open_data(struct wf_run *job)
{
	const char *items = NULL;

	enum weft_status st = train_items(job->opts, &items);
	if (st == WEFT_OK) {
		st = read_split(job);
	}
	if (st == WEFT_OK) {
		st = check_window(job->opts);
	}
	if (st == WEFT_OK) {
		st = check_format(job);
	}
	if (st == WEFT_OK) {
		st = check_csv(job);
	}
	if (st == WEFT_OK) {
		st = check_split(job, items);
	}
	if (st == WEFT_OK) {
		st = check_test_list(job);
	}
	if (st != WEFT_OK) {
		return st;
	}
	const uint32_t own = (uint32_t)job->opts->session.trainer_id;
	st = read_dictionary(job);
	if (st != WEFT_OK) {
		return job->is_sequential ? st : name_failure(job, own, st);
	}
	const bool has_own = job->is_sequential && job->data.split != WF_SPLIT_ROWS;
	const uint32_t count = has_own ? (uint32_t)job->opts->session.num_gradient_servers : 1;
	job->data.set = wf_zalloc_array(job->env, count, sizeof(*job->data.set));
	if (job->data.set == NULL) {
		return wf_fail(WEFT_NOMEM, "data of %" PRIu32 " trainers", count);
	}
	job->data.set_count = count;
	job->data.source = &job->data.set[0].source;
	for (uint32_t i = 0; st == WEFT_OK && i < count; i++) {
		st = open_set(job, items, has_own ? i : own, &job->data.set[i]);
	}
	if (st == WEFT_OK) {
		st = open_test(job);
	}
	return st == WEFT_OK ? match_sets(job) : st;
}

void
wf_run_close_data(struct wf_run *job)
{
	for (uint32_t i = 0; i < job->data.set_count; i++) {
		wf_set_close(job->env, &job->data.set[i]);
	}
	wf_free(job->env, job->data.set, job->data.set_count * sizeof(*job->data.set));
	job->data.set = NULL;
	job->data.set_count = 0;
	wf_set_close(job->env, &job->data.test_set);
	wf_dictionary_destroy(job->env, job->data.dictionary);
	job->data.dictionary = NULL;
}

const struct wf_set *
wf_run_set_of(const struct wf_run *job, uint32_t trainer)
{
	return &job->data.set[job->data.set_count > 1 ? trainer : 0];
}

struct wf_shard_opts
wf_run_shard(const struct wf_run *job, uint32_t trainer)
{
	const bool has_own = job->data.split != WF_SPLIT_ROWS;

	return (struct wf_shard_opts){
		.trainer = trainer,
		.idx = has_own ? 0 : trainer,
		.count = has_own ? 1 : (uint32_t)job->opts->session.num_gradient_servers,
		.batch_size = job->opts->batch_size,
	};
}
