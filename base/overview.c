/* SPDX-License-Identifier: Apache-2.0 */
/* overview: see overview.h. */
#include "base/overview.h"

#include <string.h>

#include "base/help.h"
#include "base/json.h"
#include "base/options.h"

void
wf_overview_print(const struct wf_overview *overview, FILE *out)
{
	const unsigned columns = wf_help_columns(out);

	if (overview->usage != NULL) {
		(void)fprintf(out, "Usage: %s\n\n", overview->usage);
	}
	wf_help_print_text(out, columns, 0, overview->about);
	(void)fprintf(out, "\n%s\n\n%s:\n", overview->examples, overview->list_title);
	for (unsigned i = 0; overview->row(i).name != NULL; i++) {
		const struct wf_overview_row row = overview->row(i);
		if (row.summary != NULL) {
			(void)fprintf(out, "  %-10s %s\n", row.name, row.summary);
		}
	}
	(void)fputc('\n', out);
	wf_help_print_text(out, columns, 0, overview->closing);
}

/* What is not said is an empty text. */
static void
print_text(FILE *out, const char *key, const char *text)
{
	wf_json_print_member(out, key, text != NULL ? text : "");
}

static void
print_json(const struct wf_overview *overview, FILE *out)
{
	unsigned shown = 0;

	(void)fputc('{', out);
	print_text(out, "program", overview->program);
	print_text(out, "usage", overview->usage);
	print_text(out, "about", overview->about);
	print_text(out, "examples", overview->examples);
	print_text(out, "list_title", overview->list_title);
	print_text(out, "closing", overview->closing);
	(void)fputs("\"commands\": [", out);
	for (unsigned i = 0; overview->row(i).name != NULL; i++) {
		const struct wf_overview_row row = overview->row(i);
		if (row.summary == NULL) {
			continue;
		}
		(void)fputs(shown++ > 0 ? ",\n  [" : "\n  [", out);
		wf_json_print_text(out, row.name);
		(void)fputs(", ", out);
		wf_json_print_text(out, row.summary);
		(void)fputc(']', out);
	}
	(void)fputs("]}\n", out);
}

bool
wf_overview_answers(const struct wf_overview *overview, const char *argument)
{
	if (!wf_options_is_help(argument)) {
		return false;
	}
	if (strcmp(argument, "--help=json") == 0) {
		print_json(overview, stdout);
	} else {
		wf_overview_print(overview, stdout);
	}
	return true;
}
