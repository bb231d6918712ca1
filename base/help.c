/* SPDX-License-Identifier: Apache-2.0 */
/* help: see help.h. */
#include "base/help.h"

#include <string.h>
#include <sys/ioctl.h>

#define COLUMNS 80u
#define COLUMNS_MIN 40u
#define COLUMNS_MAX 120u

unsigned
wf_help_columns(FILE *out)
{
	struct winsize size;
	int fd = fileno(out); /* -1: memory */
	if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
		return COLUMNS;
	}
	return size.ws_col < COLUMNS_MIN   ? COLUMNS_MIN
	       : size.ws_col > COLUMNS_MAX ? COLUMNS_MAX
					   : size.ws_col;
}

/* Prints one word, on this line or on the next. Returns the column behind it. */
static unsigned
print_word(FILE *out, unsigned columns, unsigned indent, unsigned column, const char *word,
	   unsigned bytes)
{
	if (column > indent && column + 1 + bytes > columns) {
		(void)fputc('\n', out);
		column = 0;
	}
	if (column == 0) {
		(void)fprintf(out, "%*s", (int)indent, "");
		column = indent;
	} else {
		(void)fputc(' ', out);
		column++;
	}
	(void)fprintf(out, "%.*s", (int)bytes, word);
	return column + bytes;
}

void
wf_help_print_text(FILE *out, unsigned columns, unsigned indent, const char *text)
{
	unsigned column = 0;
	while (*text != '\0') {
		unsigned line = (unsigned)strcspn(text, "\n");
		if (line == 0 || *text == ' ') {
			if (column > 0) {
				(void)fputc('\n', out);
			}
			(void)fprintf(out, "%.*s\n", (int)line, text);
			column = 0;
		}
		for (unsigned at = 0; line > 0 && *text != ' ' && at < line;) {
			unsigned bytes = (unsigned)strcspn(text + at, " \n");
			column = print_word(out, columns, indent, column, text + at, bytes);
			at += bytes;
			at += (unsigned)strspn(text + at, " ");
		}
		text += line;
		text += *text == '\n';
	}
	if (column > 0) {
		(void)fputc('\n', out);
	}
}
