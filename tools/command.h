/* SPDX-License-Identifier: Apache-2.0 */
/* command: what the front knows about a subcommand. Thread: main. */
#pragma once

#include "base/env.h"
#include "base/launcher.h"
#include "base/options.h"
#include "base/exit_code.h"

struct wf_command {
	const char *name;
	const char *summary; /* one line of the overview; NULL: it is not shown there */
	/* argv[0] is the subcommand's name. Returns the exit code. */
	int (*run)(int argc, char **argv);
};

int wf_cmd_ckpt(int argc, char **argv);
int wf_cmd_data(int argc, char **argv);
int wf_cmd_demo(int argc, char **argv);
int wf_cmd_doctor(int argc, char **argv);
int wf_cmd_drill(int argc, char **argv);
int wf_cmd_env(int argc, char **argv);
int wf_cmd_export(int argc, char **argv);
int wf_cmd_gen(int argc, char **argv);
int wf_cmd_import(int argc, char **argv);
int wf_cmd_launch(int argc, char **argv);
int wf_cmd_node(int argc, char **argv);
int wf_cmd_pserver(int argc, char **argv);
int wf_cmd_status(int argc, char **argv);
int wf_cmd_top(int argc, char **argv);
int wf_cmd_topo(int argc, char **argv);
int wf_cmd_trace(int argc, char **argv);
int wf_cmd_train(int argc, char **argv);
int wf_cmd_version(int argc, char **argv);
int wf_cmd_why(int argc, char **argv);

/* Before a command starts: prints a line about variables of weft's prefixes that no command knows,
 * and one if the environment has another role than `role` (unknown: any is right). Nothing in a
 * process that weft launch has started. Changes the recorded failure. */
void wf_cmd_env_warn(const char *program, enum wf_launcher_role role);

/* For a command that runs a job of its own, which settings of another job would change: removes
 * those from the environment, and reports that. */
void wf_command_drop_job_variables(const char *program);

/* Prints the recorded failure as "program: text" on stderr; returns the exit code of `status`. */
int wf_command_fail(const char *program, enum weft_status status);

/* Prints every option with its value and where that came from, for --print_options. Returns the
 * exit code. */
int wf_command_print_options(const struct wf_options *options);

/* Prints the page of --help. Returns the exit code. */
int wf_command_print_help(const struct wf_options *options);

/* Runs a command that does one piece of work and ends: reads the options into their target, then
 * prints the help or the options, if that was requested, or does the work. Returns the exit
 * code. */
int wf_command_run(enum weft_status (*work)(const struct wf_options *options),
		   struct wf_options *options, int argc, char **argv);

/* Turns `-o X` into `--output X`, which a table of options can have. */
void wf_command_spell_out_output(int argc, char **argv);

/* Checks that RDMA devices can be set as --verbs requires; NULL means that the option is not
 * given. */
enum weft_status wf_command_check_verbs(const char *settings) WEFT_MUST_CHECK;
