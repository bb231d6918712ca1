/* SPDX-License-Identifier: Apache-2.0 */
/* weft data split: the records of files, dealt to as many files as are wanted. Two passes: names
 * say how many files there are, so records are counted first. Thread: main. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "tools/data/verb.h"
#include "tools/data/window.h"

static const struct wf_option table[] = {
	{.name = "files",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(files),
	 .max = WF_TARGET_FILES_MAX,
	 .help = "How many files to write. Their numbers of records differ by one at most. Give "
		 "this or --lines."},
	{.name = "lines",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(lines),
	 .help = "How many lines or records each file gets; the last one may get fewer."},
	{.name = "header",
	 .type = WF_OPTION_BOOL,
	 .offset = WF_DATA_AT(header),
	 .help = "The first line of each file is a header, as of CSV. It has to be the same in all "
		 "files, is put at the top of each file that is written, and does not count."},
	{.name = "shuffle_window",
	 .type = WF_OPTION_BYTES,
	 .offset = WF_DATA_AT(shuffle_window),
	 .initial = "0",
	 .max = (uint64_t)1 << 40,
	 .help = "Shuffle the records within windows of this many bytes, which is also the memory "
		 "that this takes. 0 keeps their order."},
	{.name = "seed",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(seed),
	 .initial = "1",
	 .help = "Decides the order of --shuffle_window: the same files, window and seed give the "
		 "same order."},
	{.name = "to",
	 .type = WF_OPTION_CHOICE,
	 .offset = WF_DATA_AT(to),
	 .initial = "same",
	 .choices = "same|recordio|text",
	 .help = "The form of the files to write. same: that of the first file."},
	WF_DATA_COMPRESSOR,
	WF_DATA_FORCE,
};

static const struct wf_help_group groups[] = {
	{"How the records are dealt", "files lines header shuffle_window seed"},
	{"What is written", "to compressor force"},
};

static const struct wf_help help = {
	.usage = "weft data split IN... FOLDER/PREFIX --files=N | --lines=K [options]",
	.about =
		"Cuts one file or several into files called PREFIX-00000-of-00010 and so on. "
		"Together they have every record once, in the order of IN. IN is a file, a folder, "
		"a pattern or a list file, as for --data of weft train. The files are read twice: "
		"once to count. Either all files appear, whole, or none. FOLDER is made if it is "
		"not there.",
	.examples = "  weft data split train.txt --files=8 parts/train\n"
		    "  weft data split a.csv b.csv --header --lines=100000 parts/rows\n"
		    "  weft data split day-*.gz --files=64 --shuffle_window=256MiB parts/day",
	.group = groups,
	.group_count = WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  the files are written\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is missing or damaged, or has another header\n"
		      "  70  an internal error\n"
		      "  74  input or output failed, or a file exists",
};

struct split {
	const struct wf_data_job *job;
	struct wf_target *target;
	struct wf_window window;
	struct wf_bytes header; /* without its line feed */
	bool has_header;
	uint64_t records; /* of all files, as counted */
	uint32_t files;   /* to write */
	uint32_t begun;   /* of them */
	uint64_t left;    /* records that the file that is open still gets */
	uint64_t dealt;
};

/* What is done with each record, or the header, which comes first. */
typedef enum weft_status record_fn(struct split *split, const struct wf_record *record);

static enum weft_status
check_header(struct split *split, const char *path, const struct wf_record *record)
{
	struct wf_bytes *header = &split->header;

	if (record->bytes == NULL) {
		return wf_fail(WEFT_DATA, "%s: is empty; --header needs a first line", path);
	}
	if (split->has_header) {
		bool is_same = record->count == header->count &&
			       memcmp(record->bytes, header->at, header->count) == 0;
		return is_same ? WEFT_OK
			       : wf_fail(WEFT_DATA,
					 "%s: its first line is another header than that of %s",
					 path, split->job->files.file[0].path);
	}
	enum weft_status st = wf_bytes_reserve(split->job->env, header, record->count + 1);
	if (st == WEFT_OK) {
		memcpy(header->at, record->bytes, record->count);
		header->count = record->count;
		split->has_header = true;
	}
	return st;
}

static enum weft_status
read_file(struct split *split, const char *path, record_fn *on_record)
{
	struct wf_source *source = NULL;
	struct wf_record record = {0};

	enum weft_status st = wf_source_open(split->job->env, path, &source);
	if (st == WEFT_OK && split->job->opts->header) {
		st = wf_source_read(source, &record);
		if (st == WEFT_OK) {
			st = check_header(split, path, &record);
		}
	}
	do {
		if (st == WEFT_OK) {
			st = wf_source_read(source, &record);
		}
		if (st == WEFT_OK && record.bytes != NULL) {
			st = on_record(split, &record);
		}
	} while (st == WEFT_OK && record.bytes != NULL);
	wf_source_close(source);
	return st;
}

static enum weft_status
read_files(struct split *split, record_fn *on_record)
{
	enum weft_status st = WEFT_OK;

	for (size_t i = 0; st == WEFT_OK && i < split->job->files.count; i++) {
		st = read_file(split, split->job->files.file[i].path, on_record);
	}
	return st;
}

static enum weft_status
count_record(struct split *split, const struct wf_record *record)
{
	split->records++;
	return WEFT_OK;
}

static enum weft_status
begin_file(struct split *split)
{
	uint64_t lines = split->job->opts->lines;
	enum weft_status st = wf_target_next(split->target);

	split->left = lines != 0 ? lines
				 : split->records / split->files +
					   (split->begun < split->records % split->files);
	split->begun++;
	if (st == WEFT_OK && split->has_header) {
		const struct wf_record header = {.bytes = split->header.at,
						 .count = split->header.count};
		st = wf_target_write(split->target, &header);
	}
	return st;
}

static enum weft_status
deal(struct split *split, const struct wf_record *record)
{
	if (split->dealt == split->records) {
		return wf_fail(WEFT_DATA, "a file has grown since its records were counted");
	}
	enum weft_status st = split->left > 0 ? WEFT_OK : begin_file(split);
	if (st == WEFT_OK) {
		split->left--;
		split->dealt++;
		st = wf_target_write(split->target, record);
	}
	return st;
}

static enum weft_status
deal_window(struct split *split)
{
	enum weft_status st = WEFT_OK;

	wf_window_shuffle(&split->window);
	for (size_t i = 0; st == WEFT_OK && i < split->window.count; i++) {
		const struct wf_record record = wf_window_record(&split->window, i);
		st = deal(split, &record);
	}
	wf_window_next(&split->window);
	return st;
}

static enum weft_status
collect(struct split *split, const struct wf_record *record)
{
	enum weft_status st = WEFT_OK;

	if (wf_window_is_full(&split->window, record->count)) {
		st = deal_window(split);
	}
	return st == WEFT_OK ? wf_window_add(&split->window, record) : st;
}

static enum weft_status
plan(struct split *split)
{
	const struct wf_data_opts *opts = split->job->opts;
	uint64_t files = opts->files;

	if ((opts->files != 0) == (opts->lines != 0)) {
		return wf_fail(WEFT_INVALID, "give either --files=N or --lines=K");
	}
	enum weft_status st = read_files(split, count_record);
	if (st != WEFT_OK) {
		return st;
	}
	if (opts->lines != 0) {
		files = split->records / opts->lines + (split->records % opts->lines != 0);
	}
	if (split->records == 0 || files > split->records) {
		return wf_fail(WEFT_DATA,
			       "there are %" PRIu64 " records, too few for %" PRIu64 " files",
			       split->records, files > 0 ? files : 1);
	}
	if (files > WF_TARGET_FILES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "--lines=%" PRIu64 ": makes %" PRIu64
			       " files; at most %u can be numbered",
			       opts->lines, files, WF_TARGET_FILES_MAX);
	}
	split->files = (uint32_t)files;
	return WEFT_OK;
}

static enum weft_status
deal_all(struct split *split)
{
	bool shuffles = split->job->opts->shuffle_window > 0;

	enum weft_status st = read_files(split, shuffles ? collect : deal);
	if (st == WEFT_OK && shuffles) {
		st = deal_window(split);
	}
	if (st == WEFT_OK && split->dealt < split->records) {
		st = wf_fail(WEFT_DATA, "a file has shrunk since its records were counted");
	}
	return st == WEFT_OK ? wf_target_finish(split->target) : st;
}

static enum weft_status
work(struct wf_data_job *job)
{
	const struct wf_data_opts *opts = job->opts;
	struct wf_source_kind first;
	struct split split = {
		.job = job,
		.window = {.env = job->env, .bytes_max = opts->shuffle_window, .seed = opts->seed},
	};

	enum weft_status st = plan(&split);
	if (st == WEFT_OK) {
		st = wf_data_first_kind(job, &first);
	}
	if (st == WEFT_OK) {
		const struct wf_target_opts target = {
			.prefix = job->prefix,
			.files = split.files,
			.form = wf_data_form(opts, &first),
			.replaces = opts->force,
		};
		st = wf_target_open(job->env, &target, &split.target);
	}
	if (st == WEFT_OK) {
		st = deal_all(&split);
	}
	wf_target_close(split.target);
	wf_window_fini(&split.window);
	wf_bytes_fini(job->env, &split.header);
	if (st == WEFT_OK) {
		wf_data_print_written(job, split.files, split.records);
	}
	return st;
}

const struct wf_data_verb wf_data_split = {
	.name = "split",
	.summary = "cut files into N files, or into files of K lines or records",
	.program = "weft data split",
	.table = table,
	.option_count = WF_ARRAY_COUNT(table),
	.help = &help,
	.writes = true,
	.work = work,
};
