/* SPDX-License-Identifier: Apache-2.0 */
/* program: see program.h. */
#include "tools/launch/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define INTERPRETER_BYTES 255u /* of a first line, as the kernel has it */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

void
wf_program_options_init(struct wf_program_options *set)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);

	WF_ASSERT(count <= WF_PROGRAM_OPTIONS_MAX);
	for (unsigned i = 0; i < count; i++) {
		set->table[i] = rows[i];
		set->table[i].name = wf_setting_option_name(rows[i].name);
	}
	wf_session_defaults(&set->values);
	set->options = (struct wf_options){
		.table = set->table,
		.option_count = count,
		.program = "the trainers' session",
		.section = "train",
		.target = &set->values,
		.file = &set->file,
		.origin = set->origin,
		.env_name = set->env_name,
	};
}

/* An empty text that was given: the program would get a variable that counts as not set. */
static enum weft_status
check_empty(const struct wf_program_options *set)
{
	for (unsigned i = 0; i < set->options.option_count; i++) {
		const struct wf_option *option = &set->table[i];
		char first[2];
		if ((option->type != WF_OPTION_STRING && option->type != WF_OPTION_CHOICE) ||
		    (set->origin[i] != WF_ORIGIN_ARGUMENT && set->origin[i] != WF_ORIGIN_FILE)) {
			continue;
		}
		wf_option_value(option, &set->values, first, sizeof(first));
		if (first[0] == '\0') {
			return wf_fail(WEFT_INVALID,
				       "--%s=: a program gets its settings by variables, where an "
				       "empty one counts as not set; leave the option out",
				       option->name);
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_program_options_parse(struct wf_program_options *set, int argc, char *const *argv)
{
	enum weft_status st = wf_options_parse(&set->options, argc, argv);
	if (st == WEFT_OK && !set->options.help_wanted) {
		st = check_empty(set);
	}
	return st == WEFT_OK ? wf_session_rules_check(&set->values) : st;
}

void
wf_program_options_export(const struct wf_program_options *set, struct wf_args *variables)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);

	for (unsigned i = 0; i < count; i++) {
		if (set->origin[i] == WF_ORIGIN_ARGUMENT || set->origin[i] == WF_ORIGIN_FILE) {
			char value[WF_ARGS_TEXT_BYTES]; /* one that is cut does not fit there */
			wf_option_value(&rows[i], &set->values, value, sizeof(value));
			wf_plan_variable(variables, rows[i].name, value);
		}
	}
}

static bool
is_executable(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* Refuses a script whose interpreter does not exist: exec would fail as if the script itself did
 * not. `path` is executable. */
static enum weft_status
check_interpreter(const char *path)
{
	char line[INTERPRETER_BYTES + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t got = fd >= 0 ? read(fd, line, sizeof(line) - 1) : 0;

	if (fd >= 0) {
		close(fd);
	}
	line[got > 0 ? got : 0] = '\0';
	if (strncmp(line, "#!", 2) != 0) {
		return WEFT_OK;
	}
	char *name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	if (name[0] == '\0' || is_executable(name)) {
		return WEFT_OK;
	}
	if (access(name, F_OK) == 0) {
		return wf_fail(WEFT_INVALID,
			       "%s: its first line names the interpreter %s, which cannot be "
			       "executed",
			       path, name);
	}
	size_t bytes = strlen(name);
	bool has_return = name[bytes - 1] == '\r';
	return wf_fail(WEFT_INVALID, "%s: its first line names the interpreter %.*s, which %s",
		       path, (int)(has_return ? bytes - 1 : bytes), name,
		       has_return ? "is followed by a carriage return: the line has the end of "
				    "another system"
				  : "does not exist");
}

/* The file `name` in the folder of `folder_bytes`; an empty folder is the current one. */
static bool
find_in(const char *folder, size_t folder_bytes, const char *name, char *out, size_t bytes)
{
	int wanted = folder_bytes == 0
			     ? snprintf(out, bytes, "./%s", name)
			     : snprintf(out, bytes, "%.*s/%s", (int)folder_bytes, folder, name);
	return wanted > 0 && (size_t)wanted < bytes && is_executable(out);
}

enum weft_status
wf_program_find(const char *name, char *out, size_t bytes)
{
	if (strchr(name, '/') != NULL) {
		int wanted = snprintf(out, bytes, "%s", name);
		if (wanted < 0 || (size_t)wanted >= bytes) {
			return wf_fail(WEFT_INVALID, "%.80s...: the path is longer than %zu bytes",
				       name, bytes - 1);
		}
		if (is_executable(out)) {
			return check_interpreter(out);
		}
		return wf_fail(WEFT_INVALID, "%s: %s", name,
			       access(name, F_OK) == 0 ? "this file cannot be executed"
						       : strerror(errno));
	}
	const char *folders = getenv("PATH");
	for (const char *at = folders != NULL ? folders : PATH_DEFAULT; name[0] != '\0';) {
		size_t folder_bytes = strcspn(at, ":");
		if (find_in(at, folder_bytes, name, out, bytes)) {
			return check_interpreter(out);
		}
		if (at[folder_bytes] == '\0') {
			break;
		}
		at += folder_bytes + 1;
	}
	return wf_fail(WEFT_INVALID,
		       "'%s' is no program in PATH; what follows -- is a program with its "
		       "arguments, or train MODEL for a built-in model",
		       name);
}
