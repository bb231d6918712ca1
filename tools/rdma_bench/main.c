/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_bench: the benchmark, a separate program. Thread: main; there is no other. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/overview.h"
#include "tools/command.h"
#include "tools/rdma_bench/compare.h"
#include "tools/rdma_bench/peer_command.h"
#include "tools/rdma_bench/plot.h"
#include "tools/rdma_bench/report.h"

#define PROGRAM "rdma_bench self"

static const struct wf_help_group groups[] = {
	{"What is measured", "only transport quick"},
	{WF_HEADING_MEASURED, "pairs seconds limit rows cpus"},
	{"Output", "json"},
};

static const struct wf_help help = {
	.usage = "rdma_bench self [options]",
	.about =
		"Measures the product and, in turn with it, what the machine itself reaches: bare "
		"loops, raw sockets, a cache line between two processes. `fraction` is how much of "
		"that limit the product reaches: the median over pairs that were measured side by "
		"side. A ! marks a fraction below the one that is wanted. docs/benchmark.md says "
		"what each figure means. The table or the JSON object is printed on stdout, "
		"everything else on stderr.",
	.examples = "  rdma_bench self            everything, in five to fifteen minutes\n"
		    "  rdma_bench self --only=exchange_latency --pairs=21\n"
		    "  rdma_bench self --transport=tcp --tcp_congestion=bbr --cpus=2,3\n"
		    "  rdma_bench self --json > result.json",
	.group = groups,
	.group_count = (unsigned)WF_ARRAY_COUNT(groups),
	.exit_codes = "   0  measured, whatever the figures are\n"
		      "  64  an option is wrong\n"
		      "  69  a process was lost, or --limit has passed\n"
		      "  70  an internal error\n"
		      "  74  input or output failed\n"
		      "  77  not permitted",
};

static enum weft_status
measure(const struct wf_self_settings *set)
{
	static struct wf_bench bench; /* too large for a stack; there is one run */
	enum weft_status st = wf_bench_open(&bench, set);
	if (st == WEFT_OK) {
		st = wf_bench_run(&bench);
	}
	if (st == WEFT_OK && set->json) {
		wf_report_json(&bench, stdout);
	} else if (st == WEFT_OK) {
		wf_report_table(&bench, stdout);
	}
	wf_bench_close(&bench);
	return st;
}

static int
self(int argc, char **argv)
{
	struct wf_self_settings set = {0};
	enum wf_option_origin origin[WF_SELF_OPTION_MAX];
	const char *env_name[WF_SELF_OPTION_MAX];
	struct wf_option_file file;
	struct wf_options options = {.program = PROGRAM,
				     .help = &help,
				     .target = &set,
				     .origin = origin,
				     .env_name = env_name,
				     .file = &file};

	options.table = wf_self_options(&options.option_count);
	enum weft_status st = wf_options_parse(&options, argc, argv);
	if (st == WEFT_OK && options.help_wanted) {
		return wf_command_print_help(&options);
	}
	if (st == WEFT_OK && options.print_wanted) {
		return wf_command_print_options(&options);
	}
	if (st == WEFT_OK) {
		st = measure(&set);
	}
	return st == WEFT_OK ? WF_EXIT_OK : wf_command_fail(PROGRAM, st);
}

static int
lat(int argc, char **argv)
{
	return wf_peer_command(WF_PEER_LAT, argc, argv);
}

static int
bw(int argc, char **argv)
{
	return wf_peer_command(WF_PEER_BW, argc, argv);
}

static int
rate(int argc, char **argv)
{
	return wf_peer_command(WF_PEER_RATE, argc, argv);
}

static const struct wf_command commands[] = {
	{"self", "measure this host: kernels, exchange over tcp and shm, scaling, idling", self},
	{"lat", "measure latency between two processes or hosts, over verbs, tcp or shm", lat},
	{"bw", "measure bandwidth between them", bw},
	{"rate", "measure small updates a second, plain and coalesced", rate},
	{"compare", "compare two results of --json, figure by figure", wf_compare_command},
	{"plot", "draw a result of --json as a picture", wf_plot_command},
};

static struct wf_overview_row
overview_row(unsigned idx)
{
	static const struct wf_overview_row last = {"help", "print this text"};

	if (idx < WF_ARRAY_COUNT(commands)) {
		return (struct wf_overview_row){commands[idx].name, commands[idx].summary};
	}
	return idx == WF_ARRAY_COUNT(commands) ? last : (struct wf_overview_row){0};
}

static const struct wf_overview overview = {
	.program = "rdma_bench",
	.about = "rdma_bench: measures weft, and beside it the limits of the machine",
	.examples =
		"  rdma_bench self                         everything, on two cores of this host\n"
		"  rdma_bench lat -d mlx5_0                on one host, and\n"
		"  rdma_bench lat -d mlx5_0 node7          on another: over RDMA between them\n"
		"  rdma_bench self --help",
	.list_title = "Commands",
	.row = overview_row,
	.closing = "Every command has --help.",
};

static int
run(int argc, char **argv)
{
	if (argc < 2) {
		wf_overview_print(&overview, stderr);
		return WF_EXIT_USAGE;
	}
	const char *command = argv[1];
	if (wf_overview_answers(&overview, command)) {
		return WF_EXIT_OK;
	}
	if (strcmp(command, "help") == 0) {
		wf_overview_print(&overview, stdout);
		return WF_EXIT_OK;
	}
	if (strcmp(command, "--version") == 0) {
		printf("rdma_bench %s\n", WEFT_PROJECT_VERSION);
		return WF_EXIT_OK;
	}
	for (size_t i = 0; i < WF_ARRAY_COUNT(commands); i++) {
		if (strcmp(command, commands[i].name) == 0) {
			return commands[i].run(argc - 1, argv + 1);
		}
	}
	fprintf(stderr, "rdma_bench: there is no command '%s'; see: rdma_bench help\n", command);
	return WF_EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is a status of write */
	int code = run(argc, argv);
	bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
	return code == WF_EXIT_OK && !written ? WF_EXIT_IO : code;
}
