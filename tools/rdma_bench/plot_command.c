/* SPDX-License-Identifier: Apache-2.0 */
/* plot_command: the command rdma_bench plot; the drawing is in plot.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "tools/command.h"
#include "tools/rdma_bench/plot.h"

#define PROGRAM "rdma_bench plot"

struct settings {
	const char *output;
};

static const struct wf_option table[] = {
	{.name = "output",
	 .type = WF_OPTION_STRING,
	 .offset = offsetof(struct settings, output),
	 .metavar = "FILE",
	 .help = "The file to write, also -o FILE. An existing file is replaced. Without this "
		 "the picture is printed on stdout."},
};

static const struct wf_help help = {
	.usage = "rdma_bench plot A.json [-o FILE.svg]",
	.about = "Draws a result of rdma_bench --json as an SVG picture that is readable on light "
		 "and on dark ground. Of a run over several sizes (lat -a, bw -a) these are curves "
		 "of weft and of the raw loop beside it, with the range of the pairs; otherwise a "
		 "row for each figure: how much of its limit weft reaches, each pair as a dot, and "
		 "the fraction that is wanted.",
	.examples = "  rdma_bench self --json > self.json\n"
		    "  rdma_bench plot self.json -o self.svg\n"
		    "  rdma_bench lat -a --json localhost > lat.json\n"
		    "  rdma_bench plot lat.json -o lat.svg",
	.exit_codes = "   0  the picture is drawn\n"
		      "  64  an option or argument is wrong\n"
		      "  65  the file is no result of rdma_bench\n"
		      "  74  input or output failed",
};

static enum weft_status
write_picture(const struct wf_figures_file *file, const char *path)
{
	const bool is_stdout = path == NULL || path[0] == '\0' || strcmp(path, "-") == 0;
	FILE *out = is_stdout ? stdout : fopen(path, "we");

	if (out == NULL) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be written", path);
	}
	wf_plot_draw(file, out);
	const bool written = fflush(out) == 0 && ferror(out) == 0;
	const int why = errno;
	if (!is_stdout && fclose(out) != 0 && written) {
		return wf_fail_errno(WEFT_IO, errno, "%s: cannot be written", path);
	}
	return written ? WEFT_OK
		       : wf_fail_errno(WEFT_IO, why, "%s: cannot be written",
				       is_stdout ? "standard output" : path);
}

static enum weft_status
work(const struct wf_options *options)
{
	static struct wf_figures_file file; /* too large for a stack; there is one */
	const struct settings *set = options->target;

	if (options->positional_count == 0) {
		return wf_fail(WEFT_INVALID, "the file to draw is missing; see " PROGRAM " --help");
	}
	enum weft_status st = wf_figures_load(options->positional[0], &file);
	return st == WEFT_OK ? write_picture(&file, set->output) : st;
}

int
wf_plot_command(int argc, char **argv)
{
	struct settings set = {0};
	enum wf_option_origin origin[WF_ARRAY_COUNT(table)];
	const char *env_name[WF_ARRAY_COUNT(table)];
	const char *path[1] = {NULL};
	struct wf_options options = {
		.table = table,
		.option_count = (unsigned)WF_ARRAY_COUNT(table),
		.program = PROGRAM,
		.help = &help,
		.target = &set,
		.origin = origin,
		.env_name = env_name,
		.positional = path,
		.positional_max = 1,
	};

	wf_command_spell_out_output(argc, argv);
	return wf_command_run(work, &options, argc, argv);
}
