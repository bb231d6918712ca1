/* SPDX-License-Identifier: Apache-2.0 */
/* weft data verify: reads everything, and reports whatever is wrong. Thread: main. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/data/verb.h"

static const struct wf_help help = {
	.usage = "weft data verify IN...",
	.about = "Reads all files to their ends, checks every checksum, length and count that they "
		 "have, and prints a line for each finding. What is behind a damaged chunk of "
		 "RecordIO is read too. Of files with names like NAME-00003-of-00010 it lists all "
		 "that are missing. IN is a file, a folder, a pattern or a list file, as for "
		 "--data of "
		 "weft train.",
	.examples = "  weft data verify parts",
	.exit_codes = "   0  nothing is wrong\n"
		      "  64  an option or argument is wrong\n"
		      "  65  something is wrong: each line of the output says what\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

struct verify {
	const struct wf_data_job *job;
	uint64_t records, findings;
};

/* Damage is a finding; everything else ends the work. */
static enum weft_status
report(void *arg, enum weft_status st)
{
	struct verify *verify = arg;

	if (st != WEFT_DATA) {
		return st;
	}
	verify->findings++;
	wf_progress_hide(verify->job->progress);
	printf("%s\n", weft_last_error());
	return WEFT_OK;
}

static enum weft_status
verify_file(struct verify *verify, const char *path)
{
	struct wf_source *source = NULL;
	struct wf_record record = {0};
	bool goes_on = true;

	enum weft_status st = wf_source_open(verify->job->env, path, &source);
	if (st != WEFT_OK) {
		return report(verify, st);
	}
	while (st == WEFT_OK && goes_on) {
		st = wf_source_read(source, &record);
		if (st == WEFT_OK) {
			goes_on = record.bytes != NULL;
			verify->records += goes_on;
		} else {
			goes_on = wf_source_skip_damage(source);
			st = report(verify, st);
		}
	}
	wf_source_close(source);
	return st;
}

static enum weft_status
work(struct wf_data_job *job)
{
	struct verify verify = {.job = job};
	struct wf_files *files = &job->files;

	for (size_t i = 0; i < files->count; i++) {
		files->file[i].is_found = true; /* a shell may have replaced a pattern by names */
	}
	enum weft_status st = wf_files_find_gaps(job->env, files, report, &verify);
	for (size_t i = 0; st == WEFT_OK && i < files->count; i++) {
		st = verify_file(&verify, files->file[i].path);
	}
	if (st != WEFT_OK) {
		return st;
	}
	wf_progress_hide(job->progress);
	printf("%zu file%s, %" PRIu64 " record%s, %" PRIu64 " finding%s\n", files->count,
	       wf_data_plural(files->count), verify.records, wf_data_plural(verify.records),
	       verify.findings, wf_data_plural(verify.findings));
	return verify.findings == 0 ? WEFT_OK
				    : wf_fail(WEFT_DATA, "%" PRIu64 " finding%s", verify.findings,
					      wf_data_plural(verify.findings));
}

const struct wf_data_verb wf_data_verify = {
	.name = "verify",
	.summary = "check every checksum and count, and that a numbered set is whole",
	.program = "weft data verify",
	.help = &help,
	.work = work,
};
