/* SPDX-License-Identifier: Apache-2.0 */
/* settings_named: settings that a program sets by name, and structs of options of other versions of
 * the library. Thread: the caller's. */
#include <string.h>

#include "base/assert.h"
#include "base/launcher.h"
#include "base/options_internal.h"
#include "base/settings.h"

#define SETTINGS_MAX 64u
#define TEXT_BYTES 1024 /* of a setting without a field */
#define STRUCT_BYTES_MAX 4096u
#define QUOTE 80 /* bytes of a refused name or value that an error repeats */

struct weft_settings {
	enum weft_settings_kind kind;
	union wf_settings_values value;
	struct wf_env *env; /* of a session */
	/* In the order of the table; false: the setting has its default. */
	bool is_given[SETTINGS_MAX];
	char *text[SETTINGS_MAX]; /* copies of values that are texts; NULL: the table's default */
};

enum weft_status
weft_settings_create(enum weft_settings_kind kind, struct weft_settings **out)
{
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(kind, &count);
	if (rows == NULL) {
		return wf_fail(WEFT_INVALID,
			       "settings of kind %d: give one of enum weft_settings_kind",
			       (int)kind);
	}
	WF_ASSERT(count <= SETTINGS_MAX);
	struct weft_settings *settings = wf_zalloc(wf_env_memory(), sizeof(*settings));
	if (settings == NULL) {
		return wf_fail(WEFT_NOMEM, "settings: %zu bytes", sizeof(*settings));
	}
	settings->kind = kind;
	wf_option_defaults(rows, count, &settings->value);
	*out = settings;
	return WEFT_OK;
}

static void
free_text(char **text)
{
	wf_free(wf_env_memory(), *text, *text != NULL ? strlen(*text) + 1 : 0);
	*text = NULL;
}

void
weft_settings_destroy(struct weft_settings *settings)
{
	if (settings == NULL) {
		return;
	}
	for (unsigned i = 0; i < SETTINGS_MAX; i++) {
		free_text(&settings->text[i]);
	}
	wf_free(wf_env_memory(), settings, sizeof(*settings));
}

static const char *
noun_of(enum weft_settings_kind kind)
{
	static const char *const noun[] = {[WEFT_SETTINGS_SESSION] = "a session",
					   [WEFT_SETTINGS_TENSOR] = "a tensor",
					   [WEFT_SETTINGS_TABLE] = "a table"};
	return noun[kind];
}

/* Finds a setting by name. WEFT_INVALID: there is none. */
static enum weft_status
find(const struct weft_settings *settings, const char *name, const struct wf_option **out)
{
	struct wf_options all = {0};
	all.table = wf_settings_rows(settings->kind, &all.option_count);
	size_t bytes = strlen(name);
	const struct wf_option *found = wf_option_find(&all, name, bytes);
	const char *ours = found == NULL ? wf_setting_of_original(name, bytes) : NULL;
	if (ours != NULL) {
		found = wf_option_find(&all, ours, strlen(ours));
	}
	if (found != NULL) {
		*out = found;
		return WEFT_OK;
	}
	const struct wf_option *nearest = wf_option_nearest(&all, name, bytes, false);
	return wf_fail(WEFT_INVALID, "%s has no setting \"%.*s\"%s%s%s", noun_of(settings->kind),
		       QUOTE, name, nearest != NULL ? "; did you mean " : "",
		       nearest != NULL ? nearest->name : "", nearest != NULL ? "?" : "");
}

/* Its index in the table. */
static unsigned
place_of(const struct weft_settings *settings, const struct wf_option *option)
{
	unsigned count = 0;
	return (unsigned)(option - wf_settings_rows(settings->kind, &count));
}

enum weft_status
weft_settings_set(struct weft_settings *settings, const char *name, const char *value)
{
	const struct wf_option *option = NULL;
	enum weft_status st = find(settings, name, &option);
	if (st != WEFT_OK) {
		return st;
	}
	const unsigned idx = place_of(settings, option);
	if (value == NULL) {
		wf_option_defaults(option, 1, &settings->value);
		settings->is_given[idx] = false;
		free_text(&settings->text[idx]);
		return WEFT_OK;
	}
	char *copy = NULL;
	if (wf_option_is_text(option)) {
		size_t bytes = strlen(value) + 1;
		copy = wf_zalloc(wf_env_memory(), bytes);
		if (copy == NULL) {
			return wf_fail(WEFT_NOMEM, "settings: %zu bytes", bytes);
		}
		memcpy(copy, value, bytes);
	}
	if (!wf_option_store(option, copy != NULL ? copy : value, &settings->value)) {
		char allowed[WF_OPTION_ALLOWED_BYTES];
		free_text(&copy);
		wf_option_allowed(option, allowed, sizeof(allowed));
		return wf_fail(WEFT_INVALID, "%s=%.*s: must be %s", name, QUOTE, value, allowed);
	}
	free_text(&settings->text[idx]);
	settings->text[idx] = copy;
	settings->is_given[idx] = true;
	return WEFT_OK;
}

/* The variable becomes part of a refusal. */
static enum weft_status
set_by(struct weft_settings *settings, const struct wf_launcher *launcher, const char *name,
       const struct wf_launcher_finding *said)
{
	enum weft_status st = wf_launcher_check(launcher, said);
	if (st != WEFT_OK) {
		return st;
	}
	st = weft_settings_set(settings, name, said->value);
	if (st != WEFT_INVALID) {
		return st;
	}
	const struct wf_error why = *wf_error_record();
	return wf_fail(st, "%.*s of %s: %s", (int)strcspn(said->text, "="), said->text,
		       said->launcher, why.text);
}

enum weft_status
weft_settings_set_by_launcher(struct weft_settings *settings)
{
	if (settings->kind != WEFT_SETTINGS_SESSION) {
		return wf_fail(WEFT_INVALID, "settings of %s: a launcher says nothing of them",
			       noun_of(settings->kind));
	}
	struct wf_launcher *launcher = wf_zalloc(wf_env_memory(), sizeof(*launcher));
	if (launcher == NULL) {
		return wf_fail(WEFT_NOMEM, "settings: %zu bytes", sizeof(*launcher));
	}
	wf_launcher_detect(&(struct wf_launcher_source){0}, WF_ROLE_TRAINER, launcher);
	enum weft_status st = WEFT_OK;
	unsigned count = 0;
	const struct wf_option *rows = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		const struct wf_launcher_finding *said =
			wf_launcher_find_setting(launcher, rows[i].name);
		if (said != NULL && !settings->is_given[i]) {
			st = set_by(settings, launcher, rows[i].name, said);
		}
	}
	wf_free(wf_env_memory(), launcher, sizeof(*launcher));
	return st;
}

enum weft_status
weft_settings_get(const struct weft_settings *settings, const char *name, char *out, size_t bytes)
{
	const struct wf_option *option = NULL;
	enum weft_status st = find(settings, name, &option);
	if (st == WEFT_OK) {
		wf_option_value(option, &settings->value, out, bytes);
	}
	return st;
}

const char *
weft_settings_name(enum weft_settings_kind kind, unsigned idx)
{
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(kind, &count);
	return idx < count ? table[idx].name : NULL;
}

enum weft_status
wf_settings_apply(const struct weft_settings *settings, enum weft_settings_kind kind, void *values)
{
	unsigned count = 0;
	const struct wf_option *table = wf_settings_rows(kind, &count);
	if (settings == NULL) {
		return WEFT_OK;
	}
	if (settings->kind != kind) {
		return wf_fail(WEFT_INVALID, "settings of %s are given to %s",
			       noun_of(settings->kind), noun_of(kind));
	}
	for (unsigned i = 0; i < count; i++) {
		if (settings->is_given[i]) {
			memcpy((char *)values + table[i].offset,
			       (const char *)&settings->value + table[i].offset,
			       wf_option_bytes(&table[i]));
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_settings_set_named(struct weft_settings *settings, const struct wf_session_values *values)
{
	unsigned count = 0;
	enum weft_status st = WEFT_OK;
	const struct wf_option *table = wf_settings_rows(WEFT_SETTINGS_SESSION, &count);
	for (unsigned i = 0; i < count && st == WEFT_OK; i++) {
		char text[TEXT_BYTES];
		if (table[i].offset >= sizeof(values->opts)) {
			wf_option_value(&table[i], values, text, sizeof(text));
			st = weft_settings_set(settings, table[i].name, text);
		}
	}
	return st;
}

void
wf_settings_set_env(struct weft_settings *settings, struct wf_env *env)
{
	settings->env = env;
}

struct wf_env *
wf_settings_env(const struct weft_settings *settings)
{
	return settings != NULL ? settings->env : NULL;
}

void
wf_opts_give(void *out, size_t out_bytes, const void *opts, size_t bytes)
{
	memset(out, 0, out_bytes);
	memcpy(out, opts, out_bytes < bytes ? out_bytes : bytes);
	if (out_bytes >= sizeof(out_bytes)) {
		memcpy(out, &out_bytes, sizeof(out_bytes)); /* struct_bytes, which comes first */
	}
}

enum weft_status
wf_opts_read(const char *name, const void *given, size_t least, void *own, size_t own_bytes)
{
	size_t bytes = 0;
	memcpy(&bytes, given, sizeof(bytes)); /* struct_bytes, which comes first */
	if (bytes < least || bytes > STRUCT_BYTES_MAX) {
		return wf_fail(WEFT_INVALID,
			       "%s of %zu bytes: its struct_bytes is not that of any version; call "
			       "%s_init first",
			       name, bytes, name);
	}
	for (size_t i = own_bytes; i < bytes; i++) {
		if (((const unsigned char *)given)[i] != 0) {
			return wf_fail(WEFT_INVALID,
				       "%s of %zu bytes has a value at byte %zu that this "
				       "library, whose struct has %zu, does not know; use a newer "
				       "library, or leave that field 0",
				       name, bytes, i, own_bytes);
		}
	}
	memcpy(own, given, bytes < own_bytes ? bytes : own_bytes);
	memcpy(own, &own_bytes, sizeof(own_bytes));
	return WEFT_OK;
}
