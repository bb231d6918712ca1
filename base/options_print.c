/* SPDX-License-Identifier: Apache-2.0 */
/* options_print: --help in the form that was asked for, and --print_options. Thread: the caller's.
 */
#include <string.h>

#include "base/help.h"
#include "base/options_internal.h"

#define TEXT_BYTES 512
#define VALUE_COLUMNS 48 /* columns of --print_options before the origin of a value */

void
wf_options_print_help(const struct wf_options *options, FILE *out)
{
	if (options->original_wanted) {
		wf_originals_print(options, out);
		return;
	}
	if (options->json_wanted) {
		wf_option_print_json(options, out);
		return;
	}
	wf_option_print_page(options, out, wf_help_columns(out));
}

/* Whether a file can hold the value only between quotes. */
static bool
needs_quotes(const char *value)
{
	size_t bytes = strlen(value);
	return bytes == 0 || value[0] == '"' || strchr(value, '#') != NULL || value[0] == ' ' ||
	       value[bytes - 1] == ' ';
}

/* Why a file cannot hold the value at all; NULL: it can. */
static const char *
cannot_hold(const char *value)
{
	for (const char *at = value; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f) {
			return "a value with control characters";
		}
	}
	if (needs_quotes(value) && strchr(value, '"') != NULL) {
		return "a value that needs quotes and has one";
	}
	return NULL;
}

/* The value as text: a text of any length itself, everything else formatted in `number`. */
static const char *
value_text(const struct wf_options *options, const struct wf_option *option,
	   char number[TEXT_BYTES])
{
	const char *text = NULL;
	if (wf_option_is_text(option)) {
		memcpy(&text, (const char *)options->target + option->offset, sizeof(text));
		return text;
	}
	wf_option_value(option, options->target, number, TEXT_BYTES);
	return number;
}

static void
print_row(const struct wf_options *options, unsigned idx, FILE *out)
{
	const struct wf_option *option = &options->table[idx];
	char number[TEXT_BYTES];
	char source[TEXT_BYTES];
	const char *text = value_text(options, option, number);
	const char *why_not = text == NULL ? NULL : cannot_hold(text);
	bool given = options->origin[idx] != WF_ORIGIN_DEFAULT && why_not == NULL;
	const char *quote = text != NULL && why_not == NULL && needs_quotes(text) ? "\"" : "";
	text = why_not != NULL ? why_not : text == NULL ? "" : text;
	int column =
		fprintf(out, "%s%s = %s%s%s", given ? "" : "# ", option->name, quote, text, quote);
	wf_option_source(options, idx, source, sizeof(source));
	(void)fprintf(out, "%*s# %s\n", column < VALUE_COLUMNS ? VALUE_COLUMNS - column : 1, "",
		      source);
}

void
wf_options_print(const struct wf_options *options, FILE *out)
{
	const char *section = strrchr(options->program, ' ');
	(void)fprintf(out, "# %s\n[%s]\n", options->program,
		      section == NULL ? options->program : section + 1);
	for (unsigned i = 0; i < options->option_count; i++) {
		print_row(options, i, out);
	}
}
