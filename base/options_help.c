/* SPDX-License-Identifier: Apache-2.0 */
/* options_help: the option part of --help. Thread: the caller's. */
#include <string.h>

#include "base/options_internal.h"

#define COLUMNS 80u
#define INDENT 6u
#define TEXT_BYTES 512

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
	(void)fputs("  -h, --help\n      Print this text and end.\n\n"
		    "An option that is not given is taken from the environment, as WEFT_NAME or\n"
		    "PADDLE_INIT_NAME in upper case; an empty variable counts as not set.\n",
		    out);
}
