/* SPDX-License-Identifier: Apache-2.0 */
/* command: what all subcommands share. Thread: main. */
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

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
