/* SPDX-License-Identifier: Apache-2.0 */
/* command: what all subcommands share. Thread: main. */
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "transport/verbs/verbs_settings.h"

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
		fprintf(stderr, "%s\n", text);
	} else {
		fprintf(stderr, "%s: %s\n", program, text);
	}
	return wf_exit_code(status);
}

enum weft_status
wf_command_check_verbs(const char *settings)
{
	static const char layer[] = "verbs: "; /* begins what the parser says */
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

enum wf_log_level
wf_command_log_level(const char *name)
{
	static const struct {
		const char *name;
		enum wf_log_level level;
	} levels[] = {
		{"debug", WF_LOG_DEBUG},
		{"info", WF_LOG_INFO},
		{"warn", WF_LOG_WARN},
		{"error", WF_LOG_ERROR},
	};

	for (size_t i = 0; i < WF_ARRAY_COUNT(levels); i++) {
		if (strcmp(levels[i].name, name) == 0) {
			return levels[i].level;
		}
	}
	return WF_LOG_INFO;
}
