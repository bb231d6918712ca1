/* SPDX-License-Identifier: Apache-2.0 */
/* program: see program.h. */
#include "tools/launch/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

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

enum weft_status
wf_program_options_parse(struct wf_program_options *set, int argc, char *const *argv)
{
	enum weft_status st = wf_options_parse(&set->options, argc, argv);
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
			return WEFT_OK;
		}
		return wf_fail(WEFT_INVALID, "%s: %s", name,
			       access(name, F_OK) == 0 ? "this file cannot be executed"
						       : strerror(errno));
	}
	const char *folders = getenv("PATH");
	for (const char *at = folders != NULL ? folders : PATH_DEFAULT; name[0] != '\0';) {
		size_t folder_bytes = strcspn(at, ":");
		if (find_in(at, folder_bytes, name, out, bytes)) {
			return WEFT_OK;
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
