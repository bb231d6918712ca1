/* SPDX-License-Identifier: Apache-2.0 */
/* options_name: comparing option names, finding the most similar one, and the variables that are
 * named after them. Thread: the caller's. */
#include "base/options_internal.h"

#include <string.h>

#include "base/assert.h"

static char
plain(char c)
{
	if (c >= 'A' && c <= 'Z') {
		return (char)(c - 'A' + 'a');
	}
	return c == '-' ? '_' : c;
}

bool
wf_option_is_named(const struct wf_option *option, const char *text, size_t text_bytes)
{
	for (size_t i = 0; i < text_bytes; i++) {
		char c = text[i] == '-' ? '_' : text[i];
		char expected = option->name[i] == '-' ? '_' : option->name[i];
		if (expected == '\0' || c != expected) {
			return false;
		}
	}
	return option->name[text_bytes] == '\0';
}

void
wf_option_variable(const char *prefix, const char *name, char out[WF_OPTION_VARIABLE_BYTES])
{
	(void)snprintf(out, WF_OPTION_VARIABLE_BYTES, "%s%s", prefix, name);
	for (char *at = out; *at != '\0'; at++) {
		if (*at == '-') {
			*at = '_';
		} else if (*at >= 'a' && *at <= 'z') {
			*at = (char)(*at - 'a' + 'A');
		}
	}
}

const struct wf_option *
wf_option_find(const struct wf_options *options, const char *text, size_t text_bytes)
{
	for (unsigned i = 0; i < options->option_count; i++) {
		if (wf_option_is_named(&options->table[i], text, text_bytes)) {
			return &options->table[i];
		}
	}
	return NULL;
}

static const struct wf_option builtins[] = {
	{.name = "config",
	 .type = WF_OPTION_STRING,
	 .offset = offsetof(struct wf_options, config),
	 .metavar = "FILE"},
	{.name = "print_options",
	 .type = WF_OPTION_BOOL,
	 .offset = offsetof(struct wf_options, print_wanted)},
};

const struct wf_option *
wf_option_builtin(const struct wf_options *options, const char *text, size_t text_bytes)
{
	for (unsigned i = 0; i < WF_ARRAY_COUNT(builtins) && options->file != NULL; i++) {
		if (wf_option_is_named(&builtins[i], text, text_bytes)) {
			return &builtins[i];
		}
	}
	return NULL;
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The number of insertions, deletions, replacements and swaps of neighbours between two names:
 * dynamic programming over prefixes with three rows ("optimal string alignment"). */
static unsigned
edit_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	unsigned rows[3][WF_OPTION_NAME_BYTES];
	unsigned *before = rows[0];
	unsigned *last = rows[1];
	unsigned *now = rows[2];
	WF_ASSERT(b_bytes < WF_OPTION_NAME_BYTES);
	for (unsigned j = 0; j <= b_bytes; j++) {
		before[j] = last[j] = j;
	}
	for (unsigned i = 1; i <= a_bytes; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b_bytes; j++) {
			bool same = plain(a[i - 1]) == plain(b[j - 1]);
			now[j] = least(last[j] + 1, now[j - 1] + 1);
			now[j] = least(now[j], last[j - 1] + (same ? 0 : 1));
			if (i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
			    plain(a[i - 2]) == plain(b[j - 1])) {
				now[j] = least(now[j], before[j - 2] + 1);
			}
		}
		unsigned *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_bytes];
}

static bool
is_start_of(const char *text, size_t text_bytes, const char *name)
{
	for (size_t i = 0; i < text_bytes; i++) {
		if (name[i] == '\0' || plain(text[i]) != plain(name[i])) {
			return false;
		}
	}
	return true;
}

/* The option of `table` with fewer than `*best` edits, which it lowers; otherwise `nearest`. */
static const struct wf_option *
nearer(const struct wf_option *table, unsigned count, const char *text, unsigned *best,
       const struct wf_option *nearest)
{
	size_t text_bytes = strlen(text);
	for (unsigned i = 0; i < count; i++) {
		unsigned distance =
			edit_distance(text, text_bytes, table[i].name, strlen(table[i].name));
		if (text_bytes >= 3 && is_start_of(text, text_bytes, table[i].name)) {
			distance = least(distance, 1); /* an abbreviation */
		}
		if (distance < *best) {
			*best = distance;
			nearest = &table[i];
		}
	}
	return nearest;
}

const struct wf_option *
wf_option_nearest(const struct wf_options *options, const char *text, size_t text_bytes,
		  bool with_builtins)
{
	char name[WF_OPTION_NAME_BYTES];
	/* More edits make another word. */
	unsigned limit = text_bytes < 3 ? 1 : (unsigned)text_bytes / 3;
	unsigned best = limit + 1;
	if (text_bytes == 0 || text_bytes >= sizeof(name)) {
		return NULL;
	}
	memcpy(name, text, text_bytes);
	name[text_bytes] = '\0';
	const struct wf_option *nearest =
		nearer(options->table, options->option_count, name, &best, NULL);
	if (with_builtins && options->file != NULL) {
		nearest = nearer(builtins, WF_ARRAY_COUNT(builtins), name, &best, nearest);
	}
	return nearest;
}
