/* SPDX-License-Identifier: Apache-2.0 */
/* options_help: the page that --help prints, and --print_options. Thread: the caller's. */
#include <ctype.h>
#include <string.h>

#include "base/help.h"
#include "base/options_internal.h"

#define INDENT 6u
#define TEXT_BYTES 512
#define VALUE_COLUMNS 48 /* columns of --print_options before the origin of a value */

struct page {
	FILE *out;
	unsigned columns;
};

static const char *
metavar(const struct wf_option *option)
{
	if (option->metavar != NULL) {
		return option->metavar;
	}
	switch (option->type) {
	case WF_OPTION_U64:
	case WF_OPTION_I32:
		return "N";
	case WF_OPTION_F64:
		return "X";
	case WF_OPTION_BYTES:
		return "SIZE";
	case WF_OPTION_DURATION:
		return "TIME";
	case WF_OPTION_STRING:
	case WF_OPTION_LIST:
		return "TEXT";
	case WF_OPTION_CHOICE:
	case WF_OPTION_ENUM:
		return option->choices;
	case WF_OPTION_BOOL:
		break;
	}
	return "";
}

static bool
has_metavar_of_choices(const struct wf_option *option)
{
	return option->type == WF_OPTION_CHOICE || option->type == WF_OPTION_ENUM;
}

/* Prints "--port=N"; a list of choices that does not fit is left to the text. */
static void
print_name(const struct page *page, const struct wf_option *option, bool *choices_fit)
{
	size_t columns = strlen("  --=") + strlen(option->name) + strlen(metavar(option));
	*choices_fit = !has_metavar_of_choices(option) || columns <= page->columns;
	if (option->type == WF_OPTION_BOOL) {
		(void)fprintf(page->out, "  --[no-]%s\n", option->name);
	} else {
		(void)fprintf(page->out, "  --%s=%s\n", option->name,
			      *choices_fit ? metavar(option) : "NAME");
	}
}

/* Appends "One of a, b and c." */
static void
append_choices(const char *choices, char *out, size_t bytes)
{
	const char *before = "One of ";
	while (*choices != '\0') {
		size_t used = strlen(out);
		int word = (int)strcspn(choices, "|");
		(void)snprintf(out + used, bytes - used, "%s%.*s", before, word, choices);
		choices += word;
		choices += *choices == '|';
		before = strchr(choices, '|') != NULL ? ", " : " and ";
	}
	size_t used = strlen(out);
	(void)snprintf(out + used, bytes - used, ".\n");
}

static void
print_option(const struct page *page, const struct wf_option *option)
{
	char text[4 * TEXT_BYTES];
	char range[WF_OPTION_ALLOWED_BYTES];
	bool choices_fit = true;
	print_name(page, option, &choices_fit);
	(void)snprintf(text, sizeof(text), "%s\n", option->help == NULL ? "" : option->help);
	if (!choices_fit) {
		append_choices(option->choices, text, sizeof(text));
	}
	wf_option_range(option, range, sizeof(range));
	size_t used = strlen(text);
	if (range[0] != '\0') {
		(void)snprintf(text + used, sizeof(text) - used, "%c%s.\n", toupper(range[0]),
			       range + 1);
	}
	used = strlen(text);
	if (option->initial != NULL && option->initial[0] != '\0') {
		(void)snprintf(text + used, sizeof(text) - used, "Default: %s.", option->initial);
	}
	wf_help_print_text(page->out, page->columns, INDENT, text);
}

static bool
is_named(const struct wf_help_group *group, const struct wf_option *option)
{
	size_t bytes = strlen(option->name);
	const char *at = group->options != NULL ? group->options : "";
	for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == bytes && memcmp(at, option->name, bytes) == 0) {
			return true;
		}
		at += word;
	}
	return false;
}

/* The first group that names the option, otherwise the one whose title is its heading; group_count
 * if there is none. */
static unsigned
group_of(const struct wf_help *help, const struct wf_option *option)
{
	for (unsigned i = 0; i < help->group_count; i++) {
		if (is_named(&help->group[i], option)) {
			return i;
		}
	}
	unsigned i = 0;
	while (i < help->group_count &&
	       (option->heading == NULL || strcmp(option->heading, help->group[i].title) != 0)) {
		i++;
	}
	return i;
}

static void
print_named(const struct page *page, const struct wf_options *options,
	    const struct wf_help_group *group)
{
	const char *at = group->options != NULL ? group->options : "";
	for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t bytes = strcspn(at, " ");
		const struct wf_option *option = wf_option_find(options, at, bytes);
		if (option != NULL) {
			print_option(page, option);
		}
		at += bytes;
	}
}

static void
print_group(const struct page *page, const struct wf_options *options, const struct wf_help *help,
	    unsigned idx)
{
	const struct wf_help_group *group = &help->group[idx];
	(void)fprintf(page->out, "\n%s:\n", group->title);
	print_named(page, options, group);
	for (unsigned i = 0; i < options->option_count; i++) {
		const struct wf_option *option = &options->table[i];
		if (group_of(help, option) == idx && !is_named(group, option)) {
			print_option(page, option);
		}
	}
}

/* Prints options that belong to no group. */
static void
print_others(const struct page *page, const struct wf_options *options, const struct wf_help *help)
{
	bool titled = false;
	for (unsigned i = 0; i < options->option_count; i++) {
		if (group_of(help, &options->table[i]) < help->group_count) {
			continue;
		}
		if (!titled) {
			(void)fprintf(page->out, "\n%s:\n",
				      help->group_count == 0 ? "Options" : "Other options");
			titled = true;
		}
		print_option(page, &options->table[i]);
	}
}

static void
print_general(const struct page *page, const struct wf_options *options)
{
	static const struct wf_option config = {
		.name = "config",
		.type = WF_OPTION_STRING,
		.metavar = "FILE",
		.help = "Read options from a file with lines of name = value, where # begins a "
			"comment. Lines under [train] are for weft train alone, lines under "
			"[pserver train] for these two."};
	static const char *const print[] = {
		"  --print_options\n",
		"Print every option with its value and where that came from, and end. The output "
		"can be used as such a file."};

	(void)fputs("\nGeneral:\n", page->out);
	if (options->file != NULL) {
		print_option(page, &config);
		(void)fputs(print[0], page->out);
		wf_help_print_text(page->out, page->columns, INDENT, print[1]);
	}
	(void)fputs("  -h, --help\n      Print this page and end.\n", page->out);
	if (options->originals != NULL) {
		(void)fputs("  --help=original\n", page->out);
		wf_help_print_text(page->out, page->columns, INDENT,
				   "Print every flag of the original, and what happens if it is "
				   "given, and end.");
	}
	(void)fputc('\n', page->out);
	wf_help_print_text(
		page->out, page->columns, 0,
		"SIZE is a number of bytes, such as 4096, 64KiB, 8M or 1GiB. TIME is a number of "
		"seconds, a number with a unit: 50us, 20ms, 1.5s, 2m, or hours, minutes and "
		"seconds: "
		"00:30:00, 2-12:00:00 with days. An option that is not given is looked up in the "
		"environment as WEFT_NAME and PADDLE_INIT_NAME, in upper "
		"case, and then in the file of --config; an empty variable counts as not set.");
}

static void
print_opening(const struct page *page, const struct wf_help *help)
{
	if (help->usage != NULL) {
		(void)fprintf(page->out, "Usage: %s\n", help->usage);
	}
	if (help->about != NULL) {
		(void)fputc('\n', page->out);
		wf_help_print_text(page->out, page->columns, 0, help->about);
	}
	if (help->examples != NULL) {
		(void)fputs("\nExamples:\n", page->out);
		wf_help_print_text(page->out, page->columns, 0, help->examples);
	}
	if (help->print_list != NULL) {
		(void)fprintf(page->out, "\n%s:\n", help->list_title);
		help->print_list(page->out);
	}
}

void
wf_option_print_page(const struct wf_options *options, FILE *out, unsigned columns)
{
	static const struct wf_help no_help;
	const struct wf_help *help = options->help != NULL ? options->help : &no_help;
	const struct page page = {.out = out, .columns = columns};

	print_opening(&page, help);
	for (unsigned i = 0; i < help->group_count; i++) {
		print_group(&page, options, help, i);
	}
	print_others(&page, options, help);
	print_general(&page, options);
	if (help->exit_codes != NULL) {
		(void)fputs("\nExit codes:\n", out);
		wf_help_print_text(out, columns, 0, help->exit_codes);
	}
}

void
wf_options_print_help(const struct wf_options *options, FILE *out)
{
	if (options->original_wanted) {
		wf_originals_print(options, out);
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
