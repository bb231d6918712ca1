/* SPDX-License-Identifier: Apache-2.0 */
/* form: which form the files of a verb that writes shall have, and the line about them. Thread:
 * main. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/data/verb.h"

struct wf_target_form
wf_data_form(const struct wf_data_opts *opts, const struct wf_source_kind *first)
{
	bool is_same = strcmp(opts->to, "same") == 0;
	struct wf_target_form form = {
		.is_recordio = is_same ? first->is_recordio : strcmp(opts->to, "recordio") == 0,
		.compressor = opts->compressor,
	};

	if (strcmp(opts->compressor, "auto") == 0) {
		form.compressor = form.is_recordio ? "snappy" : "none";
		if (form.is_recordio == first->is_recordio) {
			form.compressor = first->compressor;
		}
	}
	return form;
}

enum weft_status
wf_data_first_kind(const struct wf_data_job *job, struct wf_source_kind *out)
{
	struct wf_source *source = NULL;
	struct wf_record unused;

	enum weft_status st = wf_source_open(job->env, job->files.file[0].path, &source);
	if (st == WEFT_OK) {
		st = wf_source_read(source, &unused); /* RecordIO shows its compressor then */
	}
	if (st == WEFT_OK) {
		*out = wf_source_kind(source);
	}
	wf_source_close(source);
	return st;
}

void
wf_data_print_written(const struct wf_data_job *job, uint32_t files, uint64_t records)
{
	wf_progress_hide(job->progress);
	printf("%" PRIu32 " file%s, %" PRIu64 " record%s: %s-00000-of-%05" PRIu32 "%s\n", files,
	       wf_data_plural(files), records, wf_data_plural(records), job->prefix, files,
	       files > 1 ? " and so on" : "");
}
