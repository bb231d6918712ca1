/* SPDX-License-Identifier: Apache-2.0 */
/* weft data: its verbs. Thread: main. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/overview.h"
#include "tools/command.h"
#include "tools/data/verb.h"

#define OPTIONS_MAX 16u

static const struct wf_data_verb *const verbs[] = {
	&wf_data_convert, &wf_data_split,  &wf_data_ls,
	&wf_data_cat,     &wf_data_verify, &wf_data_words,
};

static struct wf_overview_row
overview_row(unsigned idx)
{
	return idx < WF_ARRAY_COUNT(verbs)
		       ? (struct wf_overview_row){verbs[idx]->name, verbs[idx]->summary}
		       : (struct wf_overview_row){0};
}

static const struct wf_overview overview = {
	.program = "weft data",
	.usage = "weft data convert|split|ls|cat|verify|words IN... [options]",
	.about = "Prepares files of data for training: plain text, gzip, zstd, and RecordIO.",
	.examples = "  weft data split train.txt --files=8 parts/train\n"
		    "  weft data ls parts --trainers=4",
	.list_title = "Verbs",
	.row = overview_row,
	.closing = "Each has --help: weft data split --help",
};

/* "a,b" of {"a", "b"}, as wf_files_list expects its items. The caller frees it. */
static char *
join_items(const char *const *item, unsigned count)
{
	size_t bytes = 1;

	for (unsigned i = 0; i < count; i++) {
		bytes += strlen(item[i]) + 1;
	}
	char *joined = malloc(bytes);
	char *at = joined;
	for (unsigned i = 0; joined != NULL && i < count; i++) {
		size_t length = strlen(item[i]);
		if (i > 0) {
			*at++ = ',';
		}
		memcpy(at, item[i], length);
		at += length;
	}
	if (joined != NULL) {
		*at = '\0';
	}
	return joined;
}

static enum weft_status
list_files(struct wf_data_job *job, const char *const *item, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (strchr(item[i], ',') != NULL) {
			return wf_fail(WEFT_INVALID,
				       "%.200s: a comma separates names; name the folder instead",
				       item[i]);
		}
	}
	char *items = join_items(item, count);
	if (items == NULL) {
		return wf_fail(WEFT_NOMEM, "%u names", count);
	}
	enum weft_status st = wf_files_list(job->env, items, &job->files);
	free(items);
	return st;
}

static struct wf_progress *
start_progress(const struct wf_data_verb *verb, const struct wf_data_job *job)
{
	struct wf_progress_opts shown = {
		.env = job->env, .program = verb->program, .what = "reading"};

	for (size_t i = 0; i < job->files.count; i++) {
		shown.total += job->files.file[i].bytes;
	}
	return wf_progress_start(&shown);
}

static enum weft_status
run_job(const struct wf_data_verb *verb, const struct wf_options *options)
{
	struct wf_data_job job = {.opts = options->target};
	unsigned count = options->positional_count;

	if (verb->writes && count > 0) {
		job.prefix = options->positional[--count];
	}
	if (count == 0) {
		return wf_fail(WEFT_INVALID, "%s missing; see weft data %s --help",
			       verb->writes ? "files to read and FOLDER/PREFIX to write are"
					    : "files to read are",
			       verb->name);
	}
	enum weft_status st = wf_env_system_create(WF_LOG_WARN, STDERR_FILENO, &job.env);
	if (st != WEFT_OK) {
		return st;
	}
	st = list_files(&job, options->positional, count);
	if (st == WEFT_OK) {
		job.progress = verb == &wf_data_cat ? NULL : start_progress(verb, &job);
		st = verb->work(&job);
		wf_progress_stop(job.progress);
		wf_files_fini(job.env, &job.files);
	}
	wf_env_system_destroy(job.env);
	return st;
}

static int
run_verb(const struct wf_data_verb *verb, int argc, char **argv)
{
	struct wf_data_opts opts = {0};
	enum wf_option_origin origin[OPTIONS_MAX];
	const char *env_name[OPTIONS_MAX];
	const char **positional = calloc((size_t)argc, sizeof(*positional));
	struct wf_options options = {
		.table = verb->table,
		.option_count = verb->option_count,
		.program = verb->program,
		.help = verb->help,
		.target = &opts,
		.origin = origin,
		.env_name = env_name,
		.positional = positional,
		.positional_max = (unsigned)argc,
	};

	WF_ASSERT(verb->option_count <= OPTIONS_MAX);
	if (positional == NULL) {
		return wf_command_fail(verb->program, wf_fail(WEFT_NOMEM, "%d names", argc));
	}
	enum weft_status st = wf_options_parse(&options, argc, argv);
	int code = WF_EXIT_OK;
	if (st == WEFT_OK && options.help_wanted) {
		code = wf_command_print_help(&options);
	} else {
		st = st == WEFT_OK ? run_job(verb, &options) : st;
		code = st == WEFT_OK ? WF_EXIT_OK : wf_command_fail(verb->program, st);
	}
	free(positional);
	return code;
}

int
wf_cmd_data(int argc, char **argv)
{
	if (argc < 2) {
		wf_overview_print(&overview, stderr);
		return WF_EXIT_USAGE;
	}
	if (wf_overview_answers(&overview, argv[1])) {
		return WF_EXIT_OK;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(verbs); i++) {
		if (strcmp(argv[1], verbs[i]->name) == 0) {
			return run_verb(verbs[i], argc - 1, argv + 1);
		}
	}
	fprintf(stderr, "weft data: there is no verb '%.100s'; see: weft data --help\n", argv[1]);
	return WF_EXIT_USAGE;
}
