/* SPDX-License-Identifier: Apache-2.0 */
/* weft import: a saved model out of a file that another program made. Thread: main. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "saved/import.h"
#include "tools/command.h"
#include "tools/progress/progress.h"

#define PROGRAM "weft import"

struct import_opts {
	const char *format;
	const char *output;
	const char *like;
	uint64_t pass;
	struct wf_option_list only, skip;
	bool convert;
};

#define AT(field) offsetof(struct import_opts, field)

static const struct wf_option table[] = {
	{.name = "format",
	 .type = WF_OPTION_CHOICE,
	 .offset = AT(format),
	 .initial = "auto",
	 .choices = "auto|paddle|tar|npz|npy|safetensors",
	 .help = "The format of the file: NumPy's npz or npy, safetensors, the original's tar of "
		 "parameters, or its parameter files, one or a folder of them. auto: decide "
		 "by its first bytes."},
	{.name = "output",
	 .type = WF_OPTION_STRING,
	 .offset = AT(output),
	 .metavar = "DIR",
	 .help = "The folder of passes in which to save, also -o DIR."},
	{.name = "pass",
	 .type = WF_OPTION_U64,
	 .offset = AT(pass),
	 .initial = "0",
	 .max = UINT64_MAX - 1, /* passes are listed below a number */
	 .help = "The number of the pass to create. It must not exist yet."},
	{.name = "like",
	 .type = WF_OPTION_STRING,
	 .offset = AT(like),
	 .metavar = "PASS",
	 .help = "Take the shapes of tensors from this saved pass; values are not "
		 "reordered. Parameter files do not contain shapes, and become columns "
		 "without it."},
	{.name = "only",
	 .type = WF_OPTION_LIST,
	 .offset = AT(only),
	 .metavar = "GLOB",
	 .help = "Import only arrays of such names, \"conv*\" or \"*.weight\"; may be given "
		 "more than once."},
	{.name = "skip",
	 .type = WF_OPTION_LIST,
	 .offset = AT(skip),
	 .metavar = "GLOB",
	 .help = "Leave out arrays of such names; may be given more than once."},
	{.name = "convert",
	 .type = WF_OPTION_BOOL,
	 .offset = AT(convert),
	 .help = "Make tensors of floats of 16 and 64 bits too: 16 bits are widened to 32, and "
		 "64 are rounded. Otherwise they are kept as they are."},
};

static const struct wf_help help = {
	.usage = "weft import FILE -o DIR [options]",
	.about =
		"Makes a saved pass, DIR/pass-00000, from the arrays in a file of another program. "
		"Arrays of floats of 32 bits become tensors, with their shapes. Others are kept in "
		"the pass as they are, and weft export writes them again, bit for bit. The state "
		"of an optimizer that weft export wrote beside them is left out. To train on from "
		"such a file, weft train --init_model_path reads it directly. FILE may also be a "
		"saved pass, or a snapshot of pservers, whose tensors have no shapes but those of "
		"--like.",
	.examples = "  weft import mlp.npz -o out\n"
		    "  weft import resnet.safetensors -o out --skip='*.num_batches_tracked'\n"
		    "  weft import model.tar -o out --pass=3\n"
		    "  weft import old/pass-00009 --format=paddle -o out --like=new/pass-00000",
	.exit_codes = "   0  the pass is saved\n"
		      "  64  an option or argument is wrong\n"
		      "  65  the file is damaged, or cannot be a model\n"
		      "  69  another job saves to DIR\n"
		      "  70  an internal error\n"
		      "  74  input or output failed",
};

static enum weft_status
check(const struct wf_options *options, const struct import_opts *opts)
{
	if (options->positional_count == 0) {
		return wf_fail(WEFT_INVALID, "the file to import is missing; see weft help import");
	}
	if (opts->output == NULL || opts->output[0] == '\0') {
		return wf_fail(WEFT_INVALID, "the folder to save in is missing; give -o DIR");
	}
	return WEFT_OK;
}

static enum weft_status
save(struct wf_import *import, struct wf_env *env, const struct import_opts *opts,
     struct wf_progress *progress)
{
	const struct wf_saved_place place = {
		.env = env, .calls = wf_saved_posix(), .dir = opts->output};
	const struct wf_import_save how = {
		.version = WEFT_PROJECT_VERSION,
		.pass = opts->pass,
		.like = opts->like != NULL && opts->like[0] != '\0' ? opts->like : NULL,
		.only = &opts->only,
		.skip = &opts->skip,
		.converts = opts->convert,
	};
	struct wf_import_saved saved;
	char path[WF_SAVED_PATH_BYTES];

	enum weft_status st = wf_import_save(import, &place, &how, &saved);
	wf_progress_hide(progress);
	if (st == WEFT_OK) {
		st = wf_saved_pass_path(opts->output, opts->pass, path);
	}
	if (st != WEFT_OK) {
		return st;
	}
	printf("%s: %" PRIu32 " tensors, %" PRIu64 " values, from %s\n", path, saved.tensor_count,
	       saved.value_count, wf_import_format_name(wf_import_format_of(import)));
	if (saved.aside_count > 0) {
		fprintf(stderr,
			PROGRAM ": %" PRIu32 " arrays that are not of f32 are kept as they are\n",
			saved.aside_count);
	}
	if (saved.skipped_count > 0) {
		fprintf(stderr, PROGRAM ": %" PRIu32 " arrays are left out by --only and --skip\n",
			saved.skipped_count);
	}
	if (saved.state_count > 0) {
		fprintf(stderr,
			PROGRAM ": %" PRIu32 " arrays of an optimizer's state are left out\n",
			saved.state_count);
	}
	return fflush(stdout) == 0 ? WEFT_OK
				   : wf_fail(WEFT_IO, "standard output: cannot be written");
}

static enum weft_status
import_file(const char *path, const struct import_opts *opts)
{
	enum wf_import_format format = WF_IMPORT_AUTO;
	struct wf_import *import = NULL;
	struct wf_env *env = NULL;

	enum weft_status st = wf_import_format_parse(opts->format, &format);
	if (st == WEFT_OK) {
		st = wf_env_system_create(WF_LOG_INFO, -1, &env);
	}
	if (st != WEFT_OK) {
		return st;
	}
	const struct wf_progress_opts shown = {
		.env = env,
		.program = PROGRAM,
		.what = "writing",
		.total = wf_progress_size(path),
		.of_writes = true,
	};
	struct wf_progress *progress = wf_progress_start(&shown);
	st = wf_import_open(env, wf_saved_posix(), path, format, &import);
	if (st == WEFT_OK) {
		st = save(import, env, opts, progress);
	}
	wf_progress_stop(progress);
	wf_import_close(import);
	wf_env_system_destroy(env);
	return st;
}

static enum weft_status
work(const struct wf_options *options)
{
	const struct import_opts *opts = options->target;

	enum weft_status st = check(options, opts);
	return st == WEFT_OK ? import_file(options->positional[0], opts) : st;
}

int
wf_cmd_import(int argc, char **argv)
{
	struct import_opts opts = {0};
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	const char *path[1] = {NULL};
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
		.positional = path,
		.positional_max = WF_ARRAY_COUNT(path),
	};

	wf_command_spell_out_output(argc, argv);
	return wf_command_run(work, &options, argc, argv);
}
