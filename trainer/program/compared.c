/* SPDX-License-Identifier: Apache-2.0 */
/* Settings that all trainers of a run must have in common, beside those that their sessions compare
 * themselves: the job's description and that of the tables. A difference in them would not be
 * detected, and would end with other bits. Thread: the run's. */
#include "trainer/program/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"

#define DATA_BYTES 160u
#define COLUMNS_WORD " columns="
#define FILES_WORD " data_files="
#define ROWS_WORD " data="

/* The names of a table's columns; what cannot be printed is a question mark. */
static void
mark_columns(const struct wf_set *set, struct wf_marks *out)
{
	struct wf_sheet_names names = {.sheet = &set->sheet};
	char name[sizeof(out->mark[0].name)];

	wf_marks_begin(out, set->sheet.format.columns);
	out->is_columns = true;
	for (size_t i = 0; wf_sheet_next_name(&names); i++) {
		wf_text_show(names.name.at, names.name.count, name, sizeof(name));
		wf_marks_add(out, i, name, 0, wf_digest_of(names.name.at, names.name.count));
	}
}

/* With whole files there is no room for more than a digest beside the code of these; where all
 * trainers look through all files, these have one header. */
static void
describe_names(const struct wf_run *job, char *out, size_t bytes)
{
	const struct wf_set *set = &job->data.set[0];
	char code[WF_MARKS_CODE_BYTES];
	struct wf_marks marks;

	if (set->sheet.header == NULL || job->data.split == WF_SPLIT_ROWS ||
	    set->opts.is_surveyed) {
		return;
	}
	mark_columns(set, &marks);
	wf_marks_code(&marks, code);
	if (job->data.split == WF_SPLIT_MINE) {
		snprintf(out, bytes, COLUMNS_WORD "%s", code);
	} else {
		snprintf(out, bytes, COLUMNS_WORD "%08" PRIx32, (uint32_t)marks.digest);
	}
}

/* Of a table whose rows no other trainer sees: how many classes it has, and which column is
 * learned. A name may have blanks in it, so its digest stands for it. */
static void
describe_columns(const struct wf_run *job, char *out, size_t bytes)
{
	const char *target = job->opts->target == NULL ? "" : job->opts->target;
	const struct wf_sheet *sheet = &job->data.set[0].sheet;

	if (job->data.source->kind != WF_SOURCE_DATASET) {
		return;
	}
	snprintf(out, bytes, " classes=%" PRIu32 " target=%08" PRIx32 "%s",
		 job->data.source->classes, (uint32_t)wf_digest_of(target, strlen(target)),
		 sheet->column != NULL ? " scale=range," : " scale=none");
	if (sheet->column != NULL) {
		const size_t used = strlen(out);
		snprintf(out + used, bytes - used, "%08" PRIx32,
			 (uint32_t)wf_digest_of(sheet->column,
						sheet->format.columns * sizeof(*sheet->column)));
	}
	const size_t used = strlen(out);
	describe_names(job, out + used, bytes - used);
}

/* Of a text whose words no other trainer sees: the words that have numbers. Of a table: its
 * columns. */
static enum weft_status
describe_rows(const struct wf_run *job, char *out, size_t bytes)
{
	uint64_t digest = 0;

	if (job->data.source->kind != WF_SOURCE_WORDS) {
		describe_columns(job, out, bytes);
		return WEFT_OK;
	}
	enum weft_status st =
		wf_source_digest_words(job->env, job->data.source->words.dictionary, &digest);
	if (st == WEFT_OK) {
		snprintf(out, bytes, " words=%08" PRIx32, (uint32_t)digest);
	}
	return st;
}

/* What is read. Of a set that all trainers share that is its content, wherever it lies; of whole
 * files, which each trainer reads a part of, what all see: their names and sizes. */
static enum weft_status
describe_data(const struct wf_run *job, char *out, size_t bytes)
{
	const struct wf_set *set = &job->data.set[0];
	const bool is_streamed = set->is_streamed;
	char code[WF_MARKS_CODE_BYTES];
	uint64_t digest = 0;
	int used = 0;

	if (job->data.split == WF_SPLIT_MINE) {
		used = snprintf(out, bytes,
				" data_split=mine data_window=%" PRIu64 " features=%" PRIu32
				",%" PRIu32,
				job->opts->data_window, job->data.source->features,
				job->data.source->slots);
		return describe_rows(job, out + used, bytes - (size_t)used);
	}
	if (job->data.split == WF_SPLIT_FILES) {
		wf_marks_code(&set->listed, code);
		used = snprintf(out, bytes,
				" data_split=files data_window=%" PRIu64 FILES_WORD "%zu,%s",
				job->opts->data_window, set->listed_count, code);
		return describe_rows(job, out + used, bytes - (size_t)used);
	}
	if (is_streamed) {
		wf_marks_code(&set->content, code);
		used = snprintf(out, bytes, " data_window=%zu", set->window_bytes);
		enum weft_status st = describe_rows(job, out + used, bytes - (size_t)used);
		if (st != WEFT_OK) {
			return st;
		}
		used = (int)strlen(out);
		snprintf(out + used, bytes - (size_t)used, ROWS_WORD "%zu,%s",
			 job->data.source->rows, code);
		return WEFT_OK;
	}
	enum weft_status st = wf_source_digest(job->env, job->data.source, &digest);
	if (st == WEFT_OK) {
		snprintf(out, bytes, ROWS_WORD "%zu,%016" PRIx64, job->data.source->rows, digest);
	}
	return st;
}

/* The last part of the value that `word` has somewhere in a refusal, where that is not `own`; "":
 * there is none. `out` has WF_MARKS_CODE_BYTES. */
static void
find_other_code(const char *text, const char *word, const char *own, char *out)
{
	out[0] = '\0';
	for (const char *at = strstr(text, word); at != NULL; at = strstr(at, word)) {
		at += strlen(word);
		const char *last = at;
		/* Commas are within the value, and behind it if more of the sentence follows. */
		for (; *at != '\0' && *at != ' ' && *at != ':'; at++) {
			last = *at == ',' && at[1] != ' ' ? at + 1 : last;
		}
		const size_t length = (size_t)(at - last) - (at > last && at[-1] == ',');
		if (length < WF_MARKS_CODE_BYTES &&
		    (strlen(own) != length || strncmp(last, own, length) != 0)) {
			memcpy(out, last, length);
			out[length] = '\0';
			return;
		}
	}
}

/* Which column is the first that is another one. */
static void
explain_columns(const struct wf_run *job, const char *refusal, char *out, size_t bytes)
{
	char own[WF_MARKS_CODE_BYTES];
	char other[WF_MARKS_CODE_BYTES] = "";
	struct wf_marks marks;

	mark_columns(&job->data.set[0], &marks);
	wf_marks_code(&marks, own);
	find_other_code(refusal, COLUMNS_WORD, own, other);
	wf_marks_explain(&marks, other, out, bytes);
}

bool
wf_run_explain_data(const struct wf_run *job, const char *refusal, char *out, size_t bytes)
{
	const struct wf_set *set = &job->data.set[0];
	const bool has_files = job->data.split == WF_SPLIT_FILES;
	const char *word = has_files ? FILES_WORD : ROWS_WORD;
	const struct wf_marks *marks = has_files ? &set->listed : &set->content;
	char own[WF_MARKS_CODE_BYTES];
	char other[WF_MARKS_CODE_BYTES] = "";

	if (strstr(refusal, COLUMNS_WORD) != NULL && job->data.split == WF_SPLIT_MINE) {
		explain_columns(job, refusal, out, bytes);
		return true;
	}
	if (strstr(refusal, word) == NULL) {
		return false;
	}
	/* Rows in memory are compared without regard to the files that they come from: which of
	 * these differs is not known. */
	if (marks->count == 0 || (!has_files && !set->is_streamed)) {
		out[0] = '\0';
		return true;
	}
	wf_marks_code(marks, own);
	find_other_code(refusal, word, own, other);
	wf_marks_explain(marks, other, out, bytes);
	return true;
}

enum weft_status
wf_run_compared(const struct wf_run *job, char *out)
{
	const struct wf_train_opts *opts = job->opts;
	char data[DATA_BYTES];
	enum weft_status st = describe_data(job, data, sizeof(data));
	if (st != WEFT_OK) {
		return st;
	}
	/* A setting that changes the ones after it precedes them: the first difference is the one
	 * that is reported. */
	int used =
		snprintf(out, WF_COMPARED_BYTES,
			 "model=%s seed=%" PRIu64 " batch_size=%" PRIu64 " start_pass=%" PRIu64
			 " start_batch=%" PRIu64 " num_passes=%" PRIu64 " validate=%s test_list=%s",
			 job->kind->name, job->seed, opts->batch_size, opts->start_pass,
			 opts->start_batch, opts->num_passes, opts->validate ? "true" : "false",
			 opts->test_list != NULL && opts->test_list[0] != '\0' ? "true" : "false");
	if (job->data.source->kind == WF_SOURCE_WORDS) {
		used += snprintf(out + used, WF_COMPARED_BYTES - (size_t)used,
				 " vocabulary=%" PRIu64,
				 job->data.dictionary != NULL ? job->data.dictionary->vocabulary
							      : opts->vocabulary);
	}
	used += snprintf(out + used, WF_COMPARED_BYTES - (size_t)used, "%s", data);
	if (used >= (int)WF_COMPARED_BYTES) {
		return wf_fail(
			WEFT_INVALID,
			"seed, batch_size, start_pass, start_batch, num_passes and data_window "
			"have too many digits together: trainers compare at most %u characters",
			WF_COMPARED_BYTES - 1);
	}
	return WEFT_OK;
}
