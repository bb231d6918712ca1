/* SPDX-License-Identifier: Apache-2.0 */
/* weft data convert: each file in another form. Thread: main. */
#include "base/assert.h"
#include "tools/data/verb.h"

static const struct wf_option table[] = {
	{.name = "to",
	 .type = WF_OPTION_CHOICE,
	 .offset = WF_DATA_AT(to),
	 .initial = "recordio",
	 .choices = "recordio|text",
	 .help = "The form of the files to write. A line of a text and a record of RecordIO become "
		 "each other; the line feed is not part of the record."},
	WF_DATA_COMPRESSOR,
	WF_DATA_FORCE,
};

static const struct wf_help help = {
	.usage = "weft data convert IN... FOLDER/PREFIX [options]",
	.about = "Writes each file in another form: text to RecordIO or back, plain or packed. The "
		 "files that it writes are called PREFIX-00000-of-00010 and so on, in the order of "
		 "IN. IN is a file, a folder, a pattern or a list file, as for --data of weft "
		 "train; text may be plain, gzip or zstd. Either all files appear, whole, or none. "
		 "FOLDER is made if it is not there.",
	.examples = "  weft data convert part-*.txt.gz out/part\n"
		    "  weft data convert out --to=text --compressor=zstd back/part",
	.exit_codes = "   0  the files are written\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is missing or damaged, or a record is no line\n"
		      "  70  an internal error\n"
		      "  74  input or output failed, or a file exists",
};

static enum weft_status
convert_file(const struct wf_data_job *job, const char *path, struct wf_target *target,
	     uint64_t *records)
{
	struct wf_source *source = NULL;
	struct wf_record record = {0};

	enum weft_status st = wf_source_open(job->env, path, &source);
	if (st == WEFT_OK) {
		st = wf_target_next(target);
	}
	do {
		if (st == WEFT_OK) {
			st = wf_source_read(source, &record);
		}
		if (st == WEFT_OK && record.bytes != NULL) {
			st = wf_target_write(target, &record);
			(*records)++;
		}
	} while (st == WEFT_OK && record.bytes != NULL);
	wf_source_close(source);
	return st;
}

static enum weft_status
work(struct wf_data_job *job)
{
	struct wf_source_kind first;
	struct wf_target *target = NULL;
	uint64_t records = 0;

	if (job->files.count > WF_TARGET_FILES_MAX) {
		return wf_fail(WEFT_INVALID, "%zu files: at most %u can be numbered",
			       job->files.count, WF_TARGET_FILES_MAX);
	}
	enum weft_status st = wf_data_first_kind(job, &first);
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_target_opts opts = {
		.prefix = job->prefix,
		.files = (uint32_t)job->files.count,
		.form = wf_data_form(job->opts, &first),
		.replaces = job->opts->force,
	};
	st = wf_target_open(job->env, &opts, &target);
	for (size_t i = 0; st == WEFT_OK && i < job->files.count; i++) {
		st = convert_file(job, job->files.file[i].path, target, &records);
	}
	if (st == WEFT_OK) {
		st = wf_target_finish(target);
	}
	wf_target_close(target);
	if (st == WEFT_OK) {
		wf_data_print_written(job, opts.files, records);
	}
	return st;
}

const struct wf_data_verb wf_data_convert = {
	.name = "convert",
	.summary = "write files in another form: text, RecordIO, packed or not",
	.program = "weft data convert",
	.table = table,
	.option_count = WF_ARRAY_COUNT(table),
	.help = &help,
	.writes = true,
	.work = work,
};
