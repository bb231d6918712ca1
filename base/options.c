/* SPDX-License-Identifier: Apache-2.0 */
/* options: defaults, launcher, file, environment and arguments into one struct. Thread: the
 * caller's; the environment must not change meanwhile. */
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/options_internal.h"

#define SOURCE_BYTES 256 /* bytes of "file:line" */
#define QUOTE 80         /* bytes of a refused value that an error repeats */

/* A parsed argument. */
struct argument {
	const struct wf_option *option;     /* NULL: it is not in this table */
	const struct wf_original *original; /* a flag of the original that is no option, or NULL */
	const char *name;                   /* behind the dashes, not NUL-terminated */
	size_t name_bytes;
	const char *value; /* behind '='; NULL: no '=' */
	bool negated;      /* --no-name */
};

static bool
is_option_like(const char *text)
{
	return text[0] == '-' && text[1] == '-' && text[2] != '\0';
}

static bool
is_json_help(const char *text)
{
	return strcmp(text, "--help=json") == 0;
}

bool
wf_options_is_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0 ||
	       is_json_help(argument);
}

/* The answers to the original's flags. */
static bool
is_original_help(const struct wf_options *options, const char *text)
{
	return options->originals != NULL && strcmp(text, "--help=original") == 0;
}

static struct argument
split_argument(const struct wf_options *options, const char *text)
{
	struct argument arg = {.name = text + 2, .name_bytes = strcspn(text + 2, "=")};
	if (arg.name[arg.name_bytes] == '=') {
		arg.value = arg.name + arg.name_bytes + 1;
	}
	arg.option = wf_option_find(options, arg.name, arg.name_bytes);
	if (arg.option == NULL) {
		arg.option = wf_option_builtin(options, arg.name, arg.name_bytes);
	}
	if (arg.option == NULL) {
		arg.original = wf_original_find(options->originals, arg.name, arg.name_bytes);
	}
	if (arg.option == NULL && arg.original == NULL && arg.name_bytes > 3 &&
	    strncmp(arg.name, "no", 2) == 0 && (arg.name[2] == '-' || arg.name[2] == '_')) {
		const struct wf_option *option =
			wf_option_find(options, arg.name + 3, arg.name_bytes - 3);
		const struct wf_original *original =
			wf_original_find(options->originals, arg.name + 3, arg.name_bytes - 3);
		if (option != NULL && option->type == WF_OPTION_BOOL) {
			arg.option = option;
			arg.negated = true;
		} else if (option == NULL && original != NULL && original->is_switch) {
			arg.original = original;
			arg.negated = true;
		}
	}
	if (arg.original != NULL && arg.original->answer == WF_ORIGINAL_MAPPED) {
		arg.option = wf_option_find(options, arg.original->to, strlen(arg.original->to));
	}
	return arg;
}

static bool
takes_next(const struct argument *arg)
{
	bool wants_value = arg->option != NULL ? arg->option->type != WF_OPTION_BOOL
					       : arg->original != NULL && !arg->original->is_switch;
	return wants_value && arg->value == NULL;
}

static bool
is_in_table(const struct wf_options *options, const struct wf_option *option)
{
	return wf_option_find(options, option->name, strlen(option->name)) == option;
}

static unsigned
index_of(const struct wf_options *options, const struct wf_option *option)
{
	WF_ASSERT(option >= options->table);
	WF_ASSERT(option < options->table + options->option_count);
	return (unsigned)(option - options->table);
}

static enum weft_status
refuse_value(const struct wf_options *options, const struct wf_option *option, const char *value,
	     const char *variable)
{
	char allowed[WF_OPTION_ALLOWED_BYTES];
	wf_option_allowed(option, allowed, sizeof(allowed));
	if (variable != NULL) {
		return wf_fail(WEFT_INVALID,
			       "%s: %s=%.*s in the environment (sets --%s): must be %s",
			       options->program, variable, QUOTE, value, option->name, allowed);
	}
	return wf_fail(WEFT_INVALID, "%s: --%s=%.*s: must be %s", options->program, option->name,
		       QUOTE, value, allowed);
}

static enum weft_status
refuse_unknown(const struct wf_options *options, const char *text)
{
	const char *name = text + strspn(text, "-");
	size_t bytes = strcspn(name, "=");
	int dashes = (int)(name - text);
	int quoted = bytes < QUOTE ? (int)bytes : QUOTE;
	const struct wf_option *nearest = wf_option_nearest(options, name, bytes, true);
	if (nearest != NULL) {
		return wf_fail(WEFT_INVALID,
			       "%s: unknown option %.*s%.*s; did you mean --%s? (--help lists all)",
			       options->program, dashes, text, quoted, name, nearest->name);
	}
	return wf_fail(WEFT_INVALID, "%s: unknown option %.*s%.*s (--help lists all)",
		       options->program, dashes, text, quoted, name);
}

/* ---- defaults ---- */

void
wf_option_defaults(const struct wf_option *table, unsigned count, void *target)
{
	for (unsigned i = 0; i < count; i++) {
		const struct wf_option *option = &table[i];
		bool listed = option->type == WF_OPTION_CHOICE || option->type == WF_OPTION_ENUM;
		WF_ASSERT(strlen(option->name) < WF_OPTION_NAME_BYTES);
		WF_ASSERT(!listed || option->choices != NULL);
		memset((char *)target + option->offset, 0, wf_option_bytes(option));
		if (option->initial != NULL) {
			bool good = wf_option_store(option, option->initial, target);
			WF_ASSERT(good); /* the table contradicts itself */
		}
	}
}

static void
set_defaults(struct wf_options *options)
{
	wf_option_defaults(options->table, options->option_count, options->target);
	for (unsigned i = 0; i < options->option_count; i++) {
		options->origin[i] = WF_ORIGIN_DEFAULT;
		options->env_name[i] = NULL;
	}
}

/* ---- launchers ---- */

static enum weft_status
apply_launcher(struct wf_options *options)
{
	for (unsigned i = 0; i < options->option_count && options->launcher != NULL; i++) {
		const struct wf_option *option = &options->table[i];
		const struct wf_launcher_finding *said =
			wf_launcher_find_setting(options->launcher, option->name);
		if (said == NULL || options->origin[i] != WF_ORIGIN_DEFAULT) {
			continue;
		}
		enum weft_status st = wf_launcher_check(options->launcher, said);
		if (st != WEFT_OK) {
			const struct wf_error why = *wf_error_record();
			return wf_fail(st, "%s: %s", options->program, why.text);
		}
		if (!wf_option_store(option, said->value, options->target)) {
			char variable[WF_OPTION_VARIABLE_BYTES];
			(void)snprintf(variable, sizeof(variable), "%.*s",
				       (int)strcspn(said->text, "="), said->text);
			return refuse_value(options, option, said->value, variable);
		}
		options->origin[i] = WF_ORIGIN_LAUNCHER;
		options->env_name[i] = said->text;
	}
	return WEFT_OK;
}

/* ---- environment ---- */

static enum weft_status
parse_variable(struct wf_options *options, unsigned idx)
{
	static const char *const prefixes[] = {"WEFT_", "PADDLE_INIT_"};
	const struct wf_option *option = &options->table[idx];
	for (unsigned i = 0; i < WF_ARRAY_COUNT(prefixes); i++) {
		char variable[WF_OPTION_VARIABLE_BYTES];
		wf_option_variable(prefixes[i], option->name, variable);
		const char *value = getenv(variable);
		if (value == NULL || *value == '\0') {
			continue;
		}
		if (!wf_option_store(option, value, options->target)) {
			return refuse_value(options, option, value, variable);
		}
		options->origin[idx] = WF_ORIGIN_ENV;
		/* points into environ, which outlives this call, unlike `variable`
		 */
		options->env_name[idx] = value - strlen(variable) - 1;
		return WEFT_OK;
	}
	return WEFT_OK;
}

static enum weft_status
parse_environment(struct wf_options *options)
{
	enum weft_status st = WEFT_OK;
	for (unsigned i = 0; i < options->option_count && st == WEFT_OK; i++) {
		st = parse_variable(options, i);
	}
	return st == WEFT_OK ? wf_originals_read_environment(options) : st;
}

/* ---- arguments ---- */

static enum weft_status
add_positional(struct wf_options *options, const char *text)
{
	if (options->positional_count >= options->positional_max) {
		return wf_fail(WEFT_INVALID,
			       "%s: unexpected argument \"%.*s\"; options are written --name=value "
			       "(--help lists all)",
			       options->program, QUOTE, text);
	}
	options->positional[options->positional_count++] = text;
	return WEFT_OK;
}

static enum weft_status
parse_option(struct wf_options *options, const struct argument *arg, const char *value)
{
	const struct wf_option *option = arg->option;
	if (arg->negated && value != NULL) {
		return wf_fail(WEFT_INVALID, "%s: --no-%s takes no value; it means --%s=false",
			       options->program, option->name, option->name);
	}
	if (option->type == WF_OPTION_BOOL && value == NULL) {
		value = arg->negated ? "false" : "true";
	}
	if (value == NULL) {
		char allowed[WF_OPTION_ALLOWED_BYTES];
		wf_option_allowed(option, allowed, sizeof(allowed));
		return wf_fail(WEFT_INVALID, "%s: --%s needs a value: %s", options->program,
			       option->name, allowed);
	}
	bool own = is_in_table(options, option);
	if (!wf_option_store(option, value, own ? options->target : (void *)options)) {
		return refuse_value(options, option, value, NULL);
	}
	if (!own) {
		return WEFT_OK;
	}
	unsigned idx = index_of(options, option);
	options->origin[idx] = WF_ORIGIN_ARGUMENT;
	options->env_name[idx] = NULL;
	return WEFT_OK;
}

/* Parses a flag of the original that is no option. */
static enum weft_status
parse_original(struct wf_options *options, const struct argument *arg)
{
	const struct wf_original *original = arg->original;
	const char *value = arg->value;
	if (arg->negated && value != NULL) {
		return wf_fail(WEFT_INVALID, "%s: --no-%s takes no value", options->program,
			       original->name);
	}
	if (original->is_switch && value == NULL) {
		value = arg->negated ? "false" : "true";
	}
	if (value == NULL) {
		return wf_fail(WEFT_INVALID, "%s: --%s needs a value", options->program,
			       original->name);
	}
	return wf_original_accept(options, original, value, "argument");
}

/* Whether it has a single dash by mistake: "-" is a file, and "-1" a number. */
static bool
is_short_option(const char *text)
{
	return text[0] == '-' && text[1] != '\0' && text[1] != '-' && text[1] != '.' &&
	       (text[1] < '0' || text[1] > '9');
}

/* Parses one argument, and the next one if that is its value; `*used` is their number. */
static enum weft_status
parse_argument(struct wf_options *options, int left, char *const *argv, int *used)
{
	const char *text = argv[0];
	*used = 1;
	if (is_original_help(options, text)) {
		options->help_wanted = options->original_wanted = true;
		return WEFT_OK;
	}
	if (wf_options_is_help(text)) {
		options->help_wanted = true;
		options->json_wanted = is_json_help(text);
		return WEFT_OK;
	}
	if (is_short_option(text)) {
		return options->ignore_unknown ? WEFT_OK : refuse_unknown(options, text);
	}
	if (!is_option_like(text)) {
		return add_positional(options, text);
	}
	struct argument arg = split_argument(options, text);
	if (arg.option == NULL && arg.original == NULL) {
		return options->ignore_unknown ? WEFT_OK : refuse_unknown(options, text);
	}
	/* "--port --ports_num=2" is a forgotten value; "--name=--text" is not. */
	if (takes_next(&arg) && left > 1 && strncmp(argv[1], "--", 2) != 0) {
		*used = 2;
		arg.value = argv[1];
	}
	enum weft_status st = arg.original != NULL ? parse_original(options, &arg) : WEFT_OK;
	return st == WEFT_OK && arg.option != NULL ? parse_option(options, &arg, arg.value) : st;
}

static enum weft_status
parse_arguments(struct wf_options *options, int argc, char *const *argv)
{
	enum weft_status st = WEFT_OK;
	int i = 1;
	while (i < argc && st == WEFT_OK && strcmp(argv[i], "--") != 0) {
		int used = 0;
		st = parse_argument(options, argc - i, argv + i, &used);
		i += used;
	}
	for (i++; i < argc && st == WEFT_OK; i++) {
		st = add_positional(options, argv[i]);
	}
	return st;
}

/* ---- the file ---- */

/* The last --config among the arguments, otherwise the environment's; NULL or "": no file. */
static const char *
find_config(const struct wf_options *options, int argc, char *const *argv, const char **given_as)
{
	static const char *const variables[] = {"WEFT_CONFIG", "PADDLE_INIT_CONFIG"};
	const char *found = NULL;
	for (unsigned i = 0; i < WF_ARRAY_COUNT(variables); i++) {
		const char *value = getenv(variables[i]);
		if (value != NULL && *value != '\0' && found == NULL) {
			found = value;
			*given_as = variables[i];
		}
	}
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!is_option_like(argv[i])) {
			continue;
		}
		struct argument arg = split_argument(options, argv[i]);
		/* A missing value is refused when the arguments are parsed. */
		if (takes_next(&arg) && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0) {
			arg.value = argv[++i];
		}
		if (arg.value != NULL &&
		    arg.option == wf_option_builtin(options, "config", strlen("config"))) {
			found = arg.value;
			*given_as = "--config";
		}
	}
	return found;
}

static enum weft_status
parse_file(struct wf_options *options, int argc, char *const *argv)
{
	struct wf_option_file *file = options->file;
	if (file == NULL) {
		return WEFT_OK;
	}
	WF_ASSERT(options->option_count <= WF_OPTION_FILE_OPTIONS);
	file->path = NULL;
	file->bytes = 0;
	memset(file->line, 0, sizeof(file->line));
	const char *path = find_config(options, argc, argv, &file->given_as);
	if (path == NULL || *path == '\0') {
		return WEFT_OK;
	}
	options->config = path;
	return wf_option_file_read(options, path);
}

/* Whether the arguments request help, which is printed even if other arguments are wrong. */
static bool
asks_for_help(struct wf_options *options, int argc, char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		bool next = false;
		options->original_wanted = is_original_help(options, argv[i]);
		options->json_wanted = is_json_help(argv[i]);
		if (wf_options_is_help(argv[i]) || options->original_wanted) {
			return true;
		}
		if (wf_options_knows(options, argv[i], &next) && next) {
			i += i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0;
		}
	}
	return false;
}

enum weft_status
wf_options_parse(struct wf_options *options, int argc, char *const *argv)
{
	WF_ASSERT(options->option_count == 0 ||
		  (options->origin != NULL && options->env_name != NULL));
	WF_ASSERT(options->positional_max == 0 || options->positional != NULL);
	options->positional_count = 0;
	options->help_wanted = options->original_wanted = options->json_wanted = false;
	options->print_wanted = false;
	options->config = NULL;
	if (options->originals != NULL) {
		memset(options->originals->value, 0, sizeof(options->originals->value));
	}
	set_defaults(options);
	enum weft_status st = parse_file(options, argc, argv);
	if (st == WEFT_OK) {
		st = parse_environment(options);
	}
	if (st == WEFT_OK) {
		st = parse_arguments(options, argc, argv);
	}
	if (st == WEFT_OK) {
		st = apply_launcher(options); /* to what nothing else has set */
	}
	if (asks_for_help(options, argc, argv)) {
		options->help_wanted = true;
		return WEFT_OK;
	}
	return st;
}

/* ---- after parsing ---- */

enum wf_option_origin
wf_options_origin(const struct wf_options *options, const char *name)
{
	const struct wf_option *option = wf_option_find(options, name, strlen(name));
	WF_ASSERT(option != NULL);
	return options->origin[index_of(options, option)];
}

unsigned
wf_options_line(const struct wf_options *options, const char *name)
{
	const struct wf_option *option = wf_option_find(options, name, strlen(name));
	WF_ASSERT(option != NULL);
	return options->file != NULL && options->file->path != NULL
		       ? options->file->line[index_of(options, option)]
		       : 0;
}

void
wf_option_source(const struct wf_options *options, unsigned idx, char *out, size_t bytes)
{
	const char *variable = options->env_name[idx];
	switch (options->origin[idx]) {
	case WF_ORIGIN_DEFAULT:
		(void)snprintf(out, bytes, "default");
		break;
	case WF_ORIGIN_FILE:
		(void)snprintf(out, bytes, "%s:%u", options->file->path, options->file->line[idx]);
		break;
	case WF_ORIGIN_LAUNCHER:
	case WF_ORIGIN_ENV:
		(void)snprintf(out, bytes, "%.*s", (int)strcspn(variable, "="), variable);
		break;
	case WF_ORIGIN_ARGUMENT:
		(void)snprintf(out, bytes, "argument");
		break;
	}
}

bool
wf_options_knows(const struct wf_options *options, const char *argument, bool *next_is_value)
{
	if (!is_option_like(argument)) {
		return false;
	}
	struct argument arg = split_argument(options, argument);
	if (arg.option == NULL && arg.original == NULL) {
		return false;
	}
	*next_is_value = takes_next(&arg);
	return true;
}

unsigned
wf_options_understood(const struct wf_options *options, char *out, size_t bytes)
{
	unsigned count = 0;
	size_t used = 0;
	WF_ASSERT(bytes > 0);
	out[0] = '\0';
	for (unsigned i = 0; i < options->option_count; i++) {
		const struct wf_option *option = &options->table[i];
		if (option->means == NULL || options->origin[i] == WF_ORIGIN_DEFAULT) {
			continue;
		}
		char value[WF_ERROR_BYTES];
		char source[SOURCE_BYTES];
		wf_option_source(options, i, source, sizeof(source));
		wf_option_value(option, options->target, value, sizeof(value));
		int n = snprintf(out + used, bytes - used, "%s%s=%s (%s) %s",
				 count == 0 ? "" : "\n", option->name, value, source,
				 option->means);
		WF_ASSERT(n > 0);
		used = (size_t)n < bytes - used ? used + (size_t)n : bytes - 1;
		count++;
	}
	if (count > 0 && used + 1 < bytes) {
		out[used] = '\n';
		unsigned more = wf_originals_understood(options, out + used + 1, bytes - used - 1);
		out[used] = more > 0 ? '\n' : '\0';
		return count + more;
	}
	return count > 0 ? count : wf_originals_understood(options, out, bytes);
}
