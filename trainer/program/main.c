/* SPDX-License-Identifier: Apache-2.0 */
/* weft-train: the program that `weft train` executes. Results go to stdout, a line at a time;
 * everything else to stderr. Thread: main. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "trainer/program/command.h"
#include "trainer/program/stop.h"
#include "base/exit_code.h"
#include "base/outlet.h"

#define UNDERSTOOD_BYTES 4000u

struct output {
	struct wf_env *env;
	bool has_dots; /* on the terminal's current line */
};

/* After the log lines that precede it, if both go to the same file. */
static enum weft_status
print_line(void *arg, const char *line)
{
	struct output *output = arg;

	wf_env_system_flush_log(output->env);
	if (output->has_dots) {
		(void)wf_outlet_write(STDERR_FILENO, "\r\033[K", 4, 0); /* they have served */
		output->has_dots = false;
	}
	if (printf("%s\n", line) < 0 || fflush(stdout) != 0) {
		return wf_fail_errno(WEFT_IO, errno, "standard output");
	}
	return WEFT_OK;
}

static void
print_dot(void *arg)
{
	struct output *output = arg;

	output->has_dots = wf_outlet_write(STDERR_FILENO, ".", 1, 0);
}

static enum weft_status
run(const struct wf_train_command *command, bool *is_out_of_time)
{
	struct output output = {0};
	const struct wf_train_sink sink = {
		.line = print_line,
		.arg = &output,
		.dot = isatty(STDERR_FILENO) ? print_dot : NULL,
		.watch = &wf_stop_watch,
		.is_out_of_time = is_out_of_time,
	};
	char understood[UNDERSTOOD_BYTES];

	enum weft_status st = wf_env_system_create(WF_LOG_INFO, STDERR_FILENO, &output.env);
	if (st != WEFT_OK) {
		return st;
	}
	struct wf_env *env = output.env;
	(void)wf_options_understood(&command->options, understood, sizeof(understood));
	wf_log_lines(env, WF_LOG_INFO, "understood ", understood);
	st = wf_train_run(&command->opts, env, &sink);
	wf_env_system_destroy(env);
	return st;
}

/* The exit code of what has only printed: a line that was lost before is an error, too. */
static int
end_output(void)
{
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? WF_EXIT_OK : WF_EXIT_IO;
}

int
main(int argc, char **argv)
{
	static struct wf_train_command command; /* too large for comfort on a stack */
	static struct wf_launcher launcher;

	wf_outlets_serve_program();
	signal(SIGPIPE, SIG_IGN); /* a closed stdout is an error of print_line */
	signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error of its write */
	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	wf_launcher_detect(&(struct wf_launcher_source){0}, WF_ROLE_TRAINER, &launcher);
	enum weft_status st = wf_train_command_parse(&command, &launcher, argc, argv);
	if (st != WEFT_OK) {
		wf_outlet_last_words("%s", weft_last_error()); /* opens with the program's name */
		return wf_exit_code(st);
	}
	if (command.options.help_wanted) {
		wf_train_command_help(&command, stdout);
		return end_output();
	}
	if (command.options.print_wanted) {
		wf_options_print(&command.options, stdout);
		return end_output();
	}
	bool is_out_of_time = false;
	st = run(&command, &is_out_of_time);
	if (st != WEFT_OK) {
		wf_outlet_last_words("weft train: %s", weft_last_error());
		wf_stop_die();
	}
	return is_out_of_time ? WF_EXIT_AGAIN : wf_exit_code(st);
}
