/* SPDX-License-Identifier: Apache-2.0 */
/* weft data ls: what the files of a set have in them, and whose they are. Thread: main. */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "tools/data/verb.h"

static const struct wf_option table[] = {
	{.name = "trainers",
	 .type = WF_OPTION_U64,
	 .offset = WF_DATA_AT(trainers),
	 .max = 65536,
	 .help = "Show which of this many trainers each file belongs to under "
		 "--data_split=files: the number at the end of its name modulo N where all names "
		 "have one, else its place among the sorted names modulo N. A numbered set that "
		 "was found in a folder or by a pattern has to be whole, as for training."},
};

static const struct wf_help help = {
	.usage = "weft data ls IN... [--trainers=N]",
	.about =
		"Reads the files of a set and shows for each one how many lines or records it has, "
		"its bytes as stored and unpacked, its form, and what it is packed with. IN is a "
		"file, a folder, a pattern or a list file, as for --data of weft train. A header "
		"counts as a line.",
	.examples = "  weft data ls parts\n"
		    "  weft data ls train.list --trainers=4",
	.exit_codes = "   0  all files were read\n"
		      "  64  an option or argument is wrong\n"
		      "  65  a file is missing or damaged\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

struct totals {
	uint64_t records, bytes, unpacked;
};

/* Reads all of it. */
static enum weft_status
list_file(const struct wf_data_job *job, const struct wf_file *file, const char *trainer,
	  struct totals *totals)
{
	struct wf_source *source = NULL;
	struct wf_record record = {0};
	uint64_t records = 0;

	enum weft_status st = wf_source_open(job->env, file->path, &source);
	if (st != WEFT_OK) {
		return st;
	}
	do {
		st = wf_source_read(source, &record);
		records += st == WEFT_OK && record.bytes != NULL;
	} while (st == WEFT_OK && record.bytes != NULL);
	if (st == WEFT_OK) {
		const struct wf_source_kind kind = wf_source_kind(source);
		const uint64_t unpacked = wf_source_unpacked_bytes(source);
		wf_progress_hide(job->progress);
		printf("%12" PRIu64 " %14" PRIu64 " %14" PRIu64 " %-8s %-10s %s%s\n", records,
		       file->bytes, unpacked, kind.is_recordio ? "recordio" : "text",
		       kind.compressor, trainer, file->path);
		totals->records += records;
		totals->bytes += file->bytes;
		totals->unpacked += unpacked;
	}
	wf_source_close(source);
	return st;
}

static enum weft_status
list_files(const struct wf_data_job *job, const uint32_t *owner)
{
	const struct wf_files *files = &job->files;
	struct totals totals = {0};
	enum weft_status st = WEFT_OK;
	char trainer[16] = "";

	printf("%12s %14s %14s %-8s %-10s %s%s\n", "records", "bytes", "unpacked", "form",
	       "compressor", owner != NULL ? "trainer " : "", "file");
	for (size_t i = 0; st == WEFT_OK && i < files->count; i++) {
		if (owner != NULL) {
			snprintf(trainer, sizeof(trainer), "%7" PRIu32 " ", owner[i]);
		}
		st = list_file(job, &files->file[i], trainer, &totals);
	}
	if (st == WEFT_OK) {
		printf("%12" PRIu64 " %14" PRIu64 " %14" PRIu64 " in %zu file%s\n", totals.records,
		       totals.bytes, totals.unpacked, files->count, wf_data_plural(files->count));
	}
	return st;
}

static enum weft_status
work(struct wf_data_job *job)
{
	const uint64_t trainers = job->opts->trainers;
	const size_t count = job->files.count;
	uint32_t *owner = NULL;
	enum weft_status st = WEFT_OK;

	wf_files_warn_mixed(job->env, &job->files, trainers > 0);
	if (trainers > 0) {
		owner = wf_zalloc_array(job->env, count, sizeof(*owner));
		st = owner == NULL ? wf_fail(WEFT_NOMEM, "list of %zu files", count)
				   : wf_files_check_whole(job->env, &job->files);
		if (st == WEFT_OK) {
			st = wf_files_owners(job->env, &job->files, (uint32_t)trainers, owner);
		}
	}
	if (st == WEFT_OK) {
		st = list_files(job, owner);
	}
	wf_free(job->env, owner, owner == NULL ? 0 : count * sizeof(*owner));
	return st;
}

const struct wf_data_verb wf_data_ls = {
	.name = "ls",
	.summary = "show the files of a set: records, bytes, form, and whose they are",
	.program = "weft data ls",
	.table = table,
	.option_count = WF_ARRAY_COUNT(table),
	.help = &help,
	.work = work,
};
