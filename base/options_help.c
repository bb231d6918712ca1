/* SPDX-License-Identifier: Apache-2.0 */
/* options_help: the option part of --help, and --print_options. Thread: the caller's. */
#include <string.h>

#include "base/options_internal.h"

#define COLUMNS 80u
#define INDENT 6u
#define TEXT_BYTES 512
#define VALUE_COLUMNS 48 /* of --print_options, before where a value came from */

static const char *
metavar(const struct wf_option *option)
{
	if (option->metavar != NULL) {
		return option->metavar;
	}
	switch (option->type) {
	case WF_OPTION_U64:
		return "N";
	case WF_OPTION_F64:
		return "X";
	case WF_OPTION_BYTES:
		return "SIZE";
	case WF_OPTION_DURATION:
		return "TIME";
	case WF_OPTION_STRING:
		return "TEXT";
	case WF_OPTION_CHOICE:
	case WF_OPTION_ENUM:
		return option->choices;
	case WF_OPTION_BOOL:
		break;
	}
	return "";
}

/* Words of `text` in lines of at most 80 columns; a newline in it stays one. A word longer than a
 * line stands alone on its own. Ends without a newline; `column` is where the line stands, and the
 * result where it stands then. */
static unsigned
print_wrapped(FILE *out, const char *text, unsigned column)
{
	while (*text != '\0') {
		if (*text == '\n') {
			(void)fputc('\n', out);
			column = 0;
			text++;
			continue;
		}
		text += strspn(text, " ");
		unsigned bytes = (unsigned)strcspn(text, " \n");
		if (bytes == 0) {
			continue;
		}
		if (column > INDENT && column + 1 + bytes > COLUMNS) {
			(void)fputc('\n', out);
			column = 0;
		}
		if (column == 0) {
			(void)fprintf(out, "%*s", (int)INDENT, "");
			column = INDENT;
		} else {
			(void)fputc(' ', out);
			column++;
		}
		(void)fprintf(out, "%.*s", (int)bytes, text);
		column += bytes;
		text += bytes;
	}
	return column;
}

static bool
has_range(const struct wf_option *option)
{
	return option->min != 0 || option->max != 0 || option->fmin < 0.0 || option->fmin > 0.0 ||
	       option->fmax < 0.0 || option->fmax > 0.0;
}

static void
print_option(FILE *out, const struct wf_option *option)
{
	char allowed[TEXT_BYTES];
	char last[TEXT_BYTES + 64];
	if (option->type == WF_OPTION_BOOL) {
		(void)fprintf(out, "  --[no-]%s\n", option->name);
	} else if (strlen(option->name) + strlen(metavar(option)) + 5 <= COLUMNS) {
		(void)fprintf(out, "  --%s=%s\n", option->name, metavar(option));
	} else {
		(void)fprintf(out, "  --%s=...\n", option->name);
	}
	unsigned column = print_wrapped(out, option->help == NULL ? "" : option->help, 0);
	if (has_range(option)) {
		wf_option_allowed(option, allowed, sizeof(allowed));
		(void)snprintf(last, sizeof(last), "Takes %s.", allowed);
		column = print_wrapped(out, last, column);
	}
	if (option->initial != NULL && option->initial[0] != '\0') {
		(void)snprintf(last, sizeof(last), "Default: %s.", option->initial);
		column = print_wrapped(out, last, column);
	}
	if (column > 0) {
		(void)fputc('\n', out);
	}
}

void
wf_options_print_help(const struct wf_options *options, FILE *out)
{
	for (unsigned i = 0; i < options->option_count; i++) {
		print_option(out, &options->table[i]);
	}
	if (options->file != NULL) {
		(void)fputs("  --config=FILE\n"
			    "      Options from a file: lines of name = value, # begins a comment. "
			    "What\n"
			    "      stands below [train], say, is for weft train alone, below\n"
			    "      [pserver train] for both.\n"
			    "  --print_options\n"
			    "      Print each option with its value, and where that came from, and "
			    "end.\n"
			    "      The output is such a file.\n",
			    out);
	}
	(void)fputs("  -h, --help\n      Print this text and end.\n\n"
		    "An option that is not given is taken from the environment, as WEFT_NAME or\n"
		    "PADDLE_INIT_NAME in upper case; an empty variable counts as not set.\n",
		    out);
	if (options->file != NULL) {
		(void)fputs("What is in neither is taken from the file.\n", out);
	}
}

/* Whether a file can hold the value only between quotes. */
static bool
needs_quotes(const char *value)
{
	size_t bytes = strlen(value);
	return bytes == 0 || value[0] == '"' || strchr(value, '#') != NULL || value[0] == ' ' ||
	       value[bytes - 1] == ' ';
}

/* Why it cannot hold it at all; NULL: it can. */
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

/* Text of any length as it is, all else in `number`. */
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
