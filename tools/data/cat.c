/* SPDX-License-Identifier: Apache-2.0 */
/* weft data cat: records or lines to standard output. Thread: main. */
#include <errno.h>
#include <stdio.h>

#include "base/assert.h"
#include "tools/data/verb.h"

#define OUT_BYTES (256u << 10)

static const struct wf_option table[] = {
	{.name = "skip",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(skip),
	 .help = "How many records to leave out at the beginning of the first file."},
	{.name = "count",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(count),
	 .initial = "all",
	 .word = "all",
	 .help = "How many records to print, over all files."},
};

static const struct wf_help help = {
	.usage = "weft data cat IN... [--skip=N] [--count=N]",
	.about =
		"Prints the lines or records of files on standard output, unpacked, each with a "
		"line feed behind it. A record is printed as it is, whatever bytes it has. IN is a "
		"file, a folder, a pattern or a list file, as for --data of weft train.",
	.examples = "  weft data cat parts | wc -l\n"
		    "  weft data cat out/part-00003-of-00010 --skip=1000 --count=5",
	.exit_codes = "   0  the records are printed\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is missing or damaged\n"
		      "  70  an internal error\n"
		      "  74  input or output failed, or standard output was closed",
};

struct cat {
	uint64_t skip, count; /* still to leave out, and to print */
	bool is_closed;       /* nobody reads on */
};

static enum weft_status
print_record(struct cat *cat, const struct wf_record *record)
{
	if (cat->skip > 0) {
		cat->skip--;
		return WEFT_OK;
	}
	cat->count--;
	if (fwrite_unlocked(record->bytes, 1, record->count, stdout) == record->count &&
	    putc_unlocked('\n', stdout) != EOF) {
		return WEFT_OK;
	}
	cat->is_closed = true; /* main turns that into the exit code, and says nothing */
	return errno == EPIPE ? WEFT_OK : wf_fail_errno(WEFT_IO, errno, "standard output");
}

static enum weft_status
cat_file(const struct wf_data_job *job, const char *path, struct cat *cat)
{
	struct wf_source *source = NULL;
	struct wf_record record = {0};

	enum weft_status st = wf_source_open(job->env, path, &source);
	while (st == WEFT_OK && cat->count > 0 && !cat->is_closed) {
		st = wf_source_read(source, &record);
		if (st == WEFT_OK && record.bytes == NULL) {
			break;
		}
		if (st == WEFT_OK) {
			st = print_record(cat, &record);
		}
	}
	wf_source_close(source);
	return st;
}

static enum weft_status
work(struct wf_data_job *job)
{
	struct cat cat = {.skip = job->opts->skip, .count = job->opts->count};
	enum weft_status st = WEFT_OK;

	/* Nothing has been printed, so that a line need not leave at once. */
	(void)setvbuf(stdout, NULL, _IOFBF, OUT_BYTES);
	for (size_t i = 0; st == WEFT_OK && !cat.is_closed && i < job->files.count; i++) {
		st = cat_file(job, job->files.file[i].path, &cat);
	}
	return st;
}

const struct wf_data_verb wf_data_cat = {
	.name = "cat",
	.summary = "print lines or records",
	.program = "weft data cat",
	.table = table,
	.option_count = WF_ARRAY_COUNT(table),
	.help = &help,
	.work = work,
};
