/* SPDX-License-Identifier: Apache-2.0 */
/* command: what all subcommands share. Thread: main. */
#include "tools/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/outlet.h"
#include "transport/verbs/verbs_settings.h"

extern char **environ;

void
wf_command_drop_job_variables(const char *program)
{
	static const char prefix[] = "PADDLE_INIT_";
	unsigned dropped = 0;

	if (getenv("WEFT_CONFIG") != NULL) {
		fprintf(stderr, "%s: WEFT_CONFIG is not used here\n", program);
		unsetenv("WEFT_CONFIG");
	}

	for (char **i = environ; *i != NULL;) {
		char name[128];
		size_t bytes = strcspn(*i, "=");
		if (strncmp(*i, prefix, sizeof(prefix) - 1) != 0 || bytes >= sizeof(name)) {
			i++;
			continue;
		}
		memcpy(name, *i, bytes);
		name[bytes] = '\0';
		unsetenv(name); /* moves the next one here */
		dropped++;
	}
	if (dropped > 0) {
		fprintf(stderr, "%s: %u PADDLE_INIT_ variables are not used here\n", program,
			dropped);
	}
}

int
wf_command_fail(const char *program, enum weft_status status)
{
	WF_ASSERT(status != WEFT_OK);
	const char *text = weft_last_error();
	size_t program_bytes = strlen(program);
	bool named = strncmp(text, program, program_bytes) == 0 && text[program_bytes] == ':';

	if (text[0] == '\0') {
		text = weft_status_name(status);
	}
	if (named) {
		wf_outlet_last_words("%s", text);
	} else {
		wf_outlet_last_words("%s: %s", program, text);
	}
	return wf_exit_code(status);
}

int
wf_command_print_options(const struct wf_options *options)
{
	wf_options_print(options, stdout);
	return fflush(stdout) == 0 ? WF_EXIT_OK : WF_EXIT_IO;
}

int
wf_command_print_help(const struct wf_options *options)
{
	wf_options_print_help(options, stdout);
	return fflush(stdout) == 0 ? WF_EXIT_OK : WF_EXIT_IO;
}

int
wf_command_run(enum weft_status (*work)(const struct wf_options *options),
	       struct wf_options *options, int argc, char **argv)
{
	enum weft_status st = wf_options_parse(options, argc, argv);
	if (st == WEFT_OK && options->help_wanted) {
		return wf_command_print_help(options);
	}
	if (st == WEFT_OK && options->print_wanted) {
		return wf_command_print_options(options);
	}
	if (st == WEFT_OK) {
		st = work(options);
	}
	return st == WEFT_OK ? WF_EXIT_OK : wf_command_fail(options->program, st);
}

void
wf_command_spell_out_output(int argc, char **argv)
{
	static char output[] = "--output";

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "-o") == 0) {
			argv[i] = output;
		}
	}
}

enum weft_status
wf_command_check_verbs(const char *settings)
{
	static const char layer[] = "verbs: "; /* the prefix of the parser's messages */
	struct wf_verbs_settings unused;

	enum weft_status st = wf_verbs_settings_parse(settings, &unused);
	if (st == WEFT_OK) {
		return WEFT_OK;
	}
	const struct wf_error error = *wf_error_record();
	const char *why = error.text;
	if (strncmp(why, layer, sizeof(layer) - 1) == 0) {
		why += sizeof(layer) - 1;
	}
	return wf_fail(st, "--verbs=%.200s: %s", settings, why);
}
