/* SPDX-License-Identifier: Apache-2.0 */
/* shell: see shell.h. */
#include "tools/gen/shell.h"

#include <stdbool.h>
#include <string.h>

/* '=' is harmless in an option alone: a first word that has it is an assignment. */
static bool
is_harmless(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_./:,@%+-";
	size_t bytes = strlen(text);

	if (text[0] == '-') {
		size_t name = strspn(text, letters);
		const char *value = text + name + (text[name] == '=');
		return value[strspn(value, letters)] == '\0';
	}
	return bytes > 0 && strspn(text, letters) == bytes;
}

void
wf_shell_word(FILE *out, const char *text)
{
	if (is_harmless(text)) {
		fputs(text, out);
		return;
	}
	fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			fputs("'\\''", out);
		} else {
			fputc(*text, out);
		}
	}
	fputc('\'', out);
}
