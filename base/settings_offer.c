/* SPDX-License-Identifier: Apache-2.0 */
/* settings_offer: the settings of a session as options of programs, and as words for texts. Thread:
 * any. */
#include "base/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/options_internal.h"

static bool
has_row(const struct wf_option *rows, unsigned count, const char *name)
{
	const struct wf_options all = {.table = rows, .option_count = count};
	return wf_option_find(&all, name, strlen(name)) != NULL;
}

/* Offers a trainer the settings that have a help text, and a pserver those that it has too. */
static unsigned
offer(struct wf_option *rows, unsigned count, unsigned max, size_t shift, bool to_pserver)
{
	const unsigned own = count;
	unsigned all = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &all);
	for (unsigned i = 0; i < all; i++) {
		const char *name = wf_setting_option_name(table[i].name);
		bool wanted = to_pserver ? table[i].of_pserver : table[i].help != NULL;
		if (wanted && !has_row(rows, own, name)) {
			WF_ASSERT(count < max);
			rows[count] = table[i];
			rows[count].name = name;
			rows[count++].offset += shift;
		}
	}
	return count;
}

unsigned
wf_settings_offer(struct wf_option *rows, unsigned count, unsigned max, size_t shift)
{
	return offer(rows, count, max, shift, false);
}

unsigned
wf_settings_offer_pserver(struct wf_option *rows, unsigned count, unsigned max, size_t shift)
{
	return offer(rows, count, max, shift, true);
}

void
wf_settings_complete(struct wf_option *rows, unsigned count)
{
	struct wf_options all = {0};
	all.table = wf_settings_rows(WEFT_SETTINGS_SESSION, &all.option_count);
	for (unsigned i = 0; i < count; i++) {
		const struct wf_option own = rows[i];
		if (!own.is_setting) {
			continue;
		}
		const struct wf_option *setting = wf_option_find(&all, own.name, strlen(own.name));
		WF_ASSERT(setting != NULL);
		rows[i] = *setting;
		rows[i].offset = own.offset;
		rows[i].bytes = own.bytes;
		rows[i].help = own.help != NULL ? own.help : setting->help;
	}
}

/* The words so far: `used` of `bytes`. */
struct words {
	char *out;
	size_t bytes, used;
	char between;
};

/* Appends a word. Returns false if there is no room for it and for WF_SETTINGS_MORE behind it. */
static bool
append(struct words *w, const char *name, const char *value)
{
	size_t more = strlen(name) + strlen(value) + 2;
	if (w->used + more + strlen(" " WF_SETTINGS_MORE) >= w->bytes) {
		return false;
	}
	const char between[] = {w->used > 0 ? w->between : '\0', '\0'};
	w->used += (size_t)snprintf(w->out + w->used, w->bytes - w->used, "%s%s=%s", between, name,
				    value);
	return true;
}

void
wf_settings_describe(enum weft_settings_kind kind, const void *values, char between, char *out,
		     size_t bytes)
{
	struct words words = {.out = out, .bytes = bytes, .between = between};
	union wf_settings_values usual;
	bool whole = true;
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	wf_option_defaults(rows, count, &usual);
	out[0] = '\0';
	for (unsigned i = 0; i < count; i++) {
		char value[WF_ERROR_BYTES];
		char initial[WF_ERROR_BYTES];
		const char *name = kind == WEFT_SETTINGS_SESSION
					   ? wf_setting_option_name(rows[i].name)
					   : rows[i].name;
		wf_option_value(&rows[i], values, value, sizeof(value));
		wf_option_value(&rows[i], &usual, initial, sizeof(initial));
		if (rows[i].is_shared && strcmp(value, initial) != 0) {
			whole = append(&words, name, value) && whole;
		}
	}
	if (!whole) {
		const char last[] = {words.used > 0 ? between : '\0', '\0'};
		(void)snprintf(out + words.used, bytes - words.used, "%s" WF_SETTINGS_MORE, last);
	}
}

bool
wf_setting_initial(const char *name, size_t name_bytes, char *out, size_t bytes)
{
	struct wf_session_values usual;
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	wf_session_defaults(&usual);
	for (unsigned i = 0; i < count; i++) {
		const char *own = wf_setting_option_name(table[i].name);
		if (strlen(own) == name_bytes && strncmp(own, name, name_bytes) == 0) {
			wf_option_value(&table[i], &usual, out, bytes);
			return true;
		}
	}
	return false;
}
