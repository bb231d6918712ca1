/* SPDX-License-Identifier: Apache-2.0 */
/* weft export: one file of a saved model, in a format that others read. Thread: main. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "saved/saved.h"
#include "saved/snapshot.h"
#include "tools/command.h"
#include "tools/progress/progress.h"

#define PROGRAM "weft export"

struct export_opts {
	const char *format;
	const char *output;
	bool state;
};

#define AT(field) offsetof(struct export_opts, field)

static const struct wf_option table[] = {
	{.name = "format",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(format),
	 .initial = "safetensors",
	 .choices = "safetensors|npz|tar|paddle",
	 .help = "The format to write: safetensors, NumPy's npz, or the original's tar of "
		 "parameters, which Parameters.from_tar reads. paddle writes a folder of "
		 "the original's parameter files."},
	{.name = "output",
	 .type = WF_OPTION_STRING,
	 .offset = AT(output),
	 .metavar = "FILE",
	 .help = "The file to write, also -o FILE. It appears whole or not at all, so it "
		 "cannot be standard output. An existing file is replaced; a device or a "
		 "link is not. With --format=paddle it is a folder, which must be empty or "
		 "not exist."},
	{.name = "state",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(state),
	 .help = "Write the optimizer's state too, as tensors NAME.state0 and NAME.state1; "
		 "for a table as NAME.state, NAME.stamp, NAME.born, NAME.show and "
		 "NAME.click. Not with paddle and tar, which have no place for it."},
};

static const struct wf_help help = {
	.usage = "weft export DIR -o FILE [options]",
	.about = "Writes a saved model to one file. DIR is a pass that weft train saved, or a "
		 "snapshot of pservers; of a folder of snapshots (--snapshot_dir) it is the newest "
		 "one that is whole and belongs to the history that remains. Every file in it is "
		 "checked first. A table of rows becomes two arrays, NAME.keys and NAME.values, "
		 "row by row. Pservers do not know the shapes of tensors: those of a snapshot have "
		 "one dimension.",
	.examples = "  weft export out/pass-00004 --format=safetensors -o mlp.safetensors\n"
		    "  weft export out/pass-00004 --state -o mlp_with_state.safetensors\n"
		    "  weft export out/pass-00004 --format=npz -o mlp.npz\n"
		    "  weft export out/pass-00004 --format=tar -o mlp.tar\n"
		    "  weft export out/pass-00004 --format=paddle -o mlp\n"
		    "  weft export snapshots -o newest.safetensors\n"
		    "  weft export snapshots/epoch-00001-step-0000000180 -o step_180.safetensors",
	.exit_codes = "   0  the file is written\n"
		      "  64  an option or argument is wrong\n"
		      "  65  the saved model is damaged\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

static enum weft_status
check(const struct wf_options *options, const struct export_opts *opts)
{
	if (options->positional_count == 0) {
		return wf_fail(WEFT_INVALID,
			       "the folder of a saved model is missing; see weft help export");
	}
	if (opts->output == NULL || opts->output[0] == '\0') {
		return wf_fail(WEFT_INVALID, "the file to write is missing; give -o FILE");
	}
	if (strcmp(opts->output, "-") == 0) {
		return wf_fail(WEFT_INVALID,
			       "-o -: the file appears whole or not at all, so it cannot be "
			       "standard output; name a file");
	}
	return WEFT_OK;
}

static enum weft_status
export_saved(const struct wf_saved *saved, const struct export_opts *opts)
{
	static const struct {
		const char *format;
		enum weft_status (*export)(const struct wf_saved *saved, const char *path,
					   bool with_state);
	} formats[] = {
		{"safetensors", wf_saved_export_safetensors},
		{"npz", wf_saved_export_npz},
		{"tar", wf_saved_export_tar},
		{"paddle", wf_saved_export_paddle},
	};
	size_t i = 0;

	while (strcmp(formats[i].format, opts->format) != 0) {
		i++;
		WF_ASSERT(i < WF_ARRAY_COUNT(formats)); /* the option's table has the same */
	}
	return formats[i].export(saved, opts->output, opts->state);
}

/* What a folder meant. */
static void
log_snapshot(struct wf_env *env, const struct wf_saved *saved)
{
	struct wf_snapshot_id id;

	if (wf_saved_snapshot(saved, &id)) {
		wf_log(env, WF_LOG_INFO,
		       "exporting %s, the snapshot of step %" PRIu64 " in epoch %" PRIu64
		       ": its tensors come out flat, because pservers do not know their shapes",
		       wf_saved_path(saved), id.step, id.epoch);
	}
}

static enum weft_status
export_pass(const char *dir, const struct export_opts *opts)
{
	struct wf_env *env = NULL;
	struct wf_saved *saved = NULL;

	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &env);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_progress_opts shown = {
		.env = env, .program = PROGRAM, .what = "checking", .total = wf_progress_size(dir)};
	struct wf_progress *progress = wf_progress_start(&shown);
	st = wf_saved_open_newest(env, wf_saved_posix(), dir, &saved);
	wf_progress_stop(progress);
	if (st == WEFT_OK) {
		log_snapshot(env, saved);
		shown.what = "writing";
		shown.total = 0; /* it depends on the format, and on --state */
		shown.of_writes = true;
		progress = wf_progress_start(&shown);
		st = export_saved(saved, opts);
		wf_progress_stop(progress);
	}
	wf_saved_close(saved);
	wf_env_system_destroy(env);
	return st;
}

static enum weft_status
work(const struct wf_options *options)
{
	const struct export_opts *opts = options->target;

	enum weft_status st = check(options, opts);
	return st == WEFT_OK ? export_pass(options->positional[0], opts) : st;
}

int
wf_cmd_export(int argc, char **argv)
{
	struct export_opts opts = {0};
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	const char *dir[1] = {NULL};
	struct wf_option_file file;
	struct wf_options options = {
		.table = table,
		.option_count = WF_ARRAY_COUNT(table),
		.program = PROGRAM,
		.help = &help,
		.target = &opts,
		.origin = origin,
		.env_name = env_name,
		.file = &file,
		.positional = dir,
		.positional_max = WF_ARRAY_COUNT(dir),
	};

	wf_command_spell_out_output(argc, argv);
	return wf_command_run(work, &options, argc, argv);
}
