/* SPDX-License-Identifier: Apache-2.0 */
/* weft: the front: finds the subcommand and hands over. Thread: main. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "base/overview.h"
#include "tools/command.h"

#define NAME_BYTES_MAX 64

static const struct wf_command commands[] = {
	{"pserver", "hold parameters, sum gradients, apply the optimizer", wf_cmd_pserver},
	{"train", "train a built-in model against pservers", wf_cmd_train},
	{"launch", "start pservers and trainers of one job together", wf_cmd_launch},
	{"_node", NULL, wf_cmd_node}, /* what weft launch starts on other hosts */
	{"demo", "train on real data and check the result", wf_cmd_demo},
	{"doctor", "check what works on this machine, and say what to do about the rest",
	 wf_cmd_doctor},
	{"drill", "try what happens to a job when something of it fails", wf_cmd_drill},
	{"ckpt", "list, show and verify snapshots and saved passes", wf_cmd_ckpt},
	{"status", "ask a running pserver how its job is", wf_cmd_status},
	{"top", "show how a job is, again and again", wf_cmd_top},
	{"data", "split, convert, list, print and verify files of data", wf_cmd_data},
	{"env", "show what the environment says about a process's place in a job", wf_cmd_env},
	{"gen", "write a script or manifest that starts a job on a cluster", wf_cmd_gen},
	{"export", "make one file of a saved model", wf_cmd_export},
	{"import", "make a saved model from another program's file", wf_cmd_import},
	{"topo", "show this machine, and where threads would be placed", wf_cmd_topo},
	{"why", "show where the time of a job's steps goes, and who is slow", wf_cmd_why},
	{"trace", "record a timeline of a running job", wf_cmd_trace},
	{"version", "print the version and what is compiled in", wf_cmd_version},
};

static struct wf_overview_row
overview_row(unsigned idx)
{
	static const struct wf_overview_row last = {
		"help", "print this text, or the help of a command: weft help pserver"};

	if (idx < WF_ARRAY_COUNT(commands)) {
		return (struct wf_overview_row){commands[idx].name, commands[idx].summary};
	}
	return idx == WF_ARRAY_COUNT(commands) ? last : (struct wf_overview_row){0};
}

static const struct wf_overview overview = {
	.program = "weft",
	.about = "weft: parameter exchange between pservers and trainers",
	.examples = "  weft demo                                    two pservers, two trainers, "
		    "real data\n"
		    "  weft launch --local --pservers=2 --trainers=2 -- train linear\n"
		    "  weft pserver --port=7164 --num_gradient_servers=1\n"
		    "  weft train linear --pservers=127.0.0.1:7164",
	.list_title = "Commands",
	.row = overview_row,
	.closing = "Every command has --help. Options can also be given as WEFT_<NAME> or "
		   "PADDLE_INIT_<NAME> in the environment, or in a file with --config.",
};

/* Levenshtein distance of two names; long ones are infinitely far apart. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned row[NAME_BYTES_MAX + 1];
	size_t a_bytes = strlen(a);
	size_t b_bytes = strlen(b);

	if (a_bytes > NAME_BYTES_MAX || b_bytes > NAME_BYTES_MAX) {
		return UINT_MAX;
	}
	for (size_t j = 0; j <= b_bytes; j++) {
		row[j] = (unsigned)j;
	}
	for (size_t i = 1; i <= a_bytes; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_bytes; j++) {
			unsigned replace = diagonal + (a[i - 1] != b[j - 1]);
			unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = replace < skip ? replace : skip;
		}
	}
	return row[b_bytes];
}

static const struct wf_command *
find_command(const char *name)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0) {
			return &commands[i];
		}
	}
	return NULL;
}

static int
unknown_command(const char *name)
{
	const char *nearest = NULL;
	unsigned best = 3; /* edits; more is no typo but another word */

	for (size_t i = 0; i < WF_ARRAY_COUNT(commands); i++) {
		unsigned edits = distance(name, commands[i].name);
		if (edits < best) {
			best = edits;
			nearest = commands[i].name;
		}
	}
	fprintf(stderr, "weft: there is no command '%s'", name);
	if (nearest != NULL) {
		fprintf(stderr, "; did you mean '%s'?\n", nearest);
	} else {
		fputs("; see: weft help\n", stderr);
	}
	return WF_EXIT_USAGE;
}

static int
help_command(int argc, char **argv)
{
	static char help[] = "--help";

	if (argc < 2) {
		wf_overview_print(&overview, stdout);
		return WF_EXIT_OK;
	}
	const struct wf_command *command = find_command(argv[1]);
	if (command == NULL) {
		return unknown_command(argv[1]);
	}
	char *args[] = {argv[1], help, NULL};
	return command->run(2, args);
}

static bool
is_one_of(const char *text, const char *a, const char *b)
{
	return strcmp(text, a) == 0 || strcmp(text, b) == 0;
}

static int
run(int argc, char **argv)
{
	if (argc < 2) {
		wf_overview_print(&overview, stderr);
		return WF_EXIT_USAGE;
	}
	if (argc == 2 && wf_overview_answers(&overview, argv[1])) {
		return WF_EXIT_OK;
	}
	if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
		return help_command(argc - 1, argv + 1);
	}
	if (strcmp(argv[1], "--version") == 0) {
		return wf_cmd_version(1, argv + 1);
	}
	const struct wf_command *command = find_command(argv[1]);
	if (command == NULL) {
		return unknown_command(argv[1]);
	}
	return command->run(argc - 1, argv + 1);
}

int
main(int argc, char **argv)
{
	wf_outlets_serve_program();
	/* A peer or a reader that goes away is a status of write, not the end of the process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* and so is a file over the limit */
	setvbuf(stdout, NULL, _IOLBF, 0);
	int code = run(argc, argv);
	bool written = fflush(stdout) == 0 && ferror(stdout) == 0;
	return code == WF_EXIT_OK && !written ? WF_EXIT_IO : code;
}
