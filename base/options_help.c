/* SPDX-License-Identifier: Apache-2.0 */
/* options_help: the page that --help prints. Thread: the caller's. */
#include <ctype.h>
#include <string.h>

#include "base/help.h"
#include "base/options_internal.h"

#define INDENT 6u

#define NOTATION(then)                                                                             \
	"SIZE is a number of bytes, such as 4096, 64KiB, 8M or 1GiB. TIME is a number of "         \
	"seconds, a number with a unit: 50us, 20ms, 1.5s, 2m, or hours, minutes and seconds: "     \
	"00:30:00, 2-12:00:00 with days. An option that is not given is looked up in the "         \
	"environment as WEFT_NAME and PADDLE_INIT_NAME, in upper case" then "; an empty "          \
	"variable counts as not set."

const char *
wf_option_notation(const struct wf_options *options)
{
	return options->file != NULL ? NOTATION(", and then in the file of --config")
				     : NOTATION("");
}

const char *
wf_option_metavar(const struct wf_option *option)
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
print_name(struct wf_option_page *page, const struct wf_option *option, bool *choices_fit)
{
	size_t columns = strlen("  --=") + strlen(option->name) + strlen(wf_option_metavar(option));
	*choices_fit = !has_metavar_of_choices(option) || columns <= page->columns;
	if (option->type == WF_OPTION_BOOL) {
		(void)fprintf(page->out, "  --[no-]%s\n", option->name);
	} else {
		(void)fprintf(page->out, "  --%s=%s\n", option->name,
			      *choices_fit ? wf_option_metavar(option) : "NAME");
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

void
wf_option_describe(const struct wf_option *option, bool choices_shown, char *out, size_t bytes)
{
	char range[WF_OPTION_ALLOWED_BYTES];
	(void)snprintf(out, bytes, "%s\n", option->help == NULL ? "" : option->help);
	if (!choices_shown) {
		append_choices(option->choices, out, bytes);
	}
	wf_option_range(option, range, sizeof(range));
	size_t used = strlen(out);
	if (range[0] != '\0') {
		(void)snprintf(out + used, bytes - used, "%c%s.\n", toupper(range[0]), range + 1);
	}
	used = strlen(out);
	if (option->initial != NULL && option->initial[0] != '\0') {
		(void)snprintf(out + used, bytes - used, "Default: %s.", option->initial);
	}
}

static void
print_option(struct wf_option_page *page, const struct wf_option *option)
{
	char text[WF_OPTION_DESCRIBED_BYTES];
	bool choices_fit = true;
	print_name(page, option, &choices_fit);
	wf_option_describe(option, choices_fit, text, sizeof(text));
	wf_help_print_text(page->out, page->columns, INDENT, text);
}

static void
print_title(struct wf_option_page *page, const char *title)
{
	(void)fprintf(page->out, "\n%s:\n", title);
}

static void
print_flag(struct wf_option_page *page, const char *flag, const char *text)
{
	(void)fprintf(page->out, "  %s\n", flag);
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
walk_named(struct wf_option_page *page, const struct wf_options *options,
	   const struct wf_help_group *group)
{
	const char *at = group->options != NULL ? group->options : "";
	for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
		size_t bytes = strcspn(at, " ");
		const struct wf_option *option = wf_option_find(options, at, bytes);
		if (option != NULL) {
			page->print_option(page, option);
		}
		at += bytes;
	}
}

static void
walk_group(struct wf_option_page *page, const struct wf_options *options,
	   const struct wf_help *help, unsigned idx)
{
	const struct wf_help_group *group = &help->group[idx];
	page->print_title(page, group->title);
	walk_named(page, options, group);
	for (unsigned i = 0; i < options->option_count; i++) {
		const struct wf_option *option = &options->table[i];
		if (group_of(help, option) == idx && !is_named(group, option)) {
			page->print_option(page, option);
		}
	}
}

/* Options that belong to no group. */
static void
walk_others(struct wf_option_page *page, const struct wf_options *options,
	    const struct wf_help *help)
{
	bool titled = false;
	for (unsigned i = 0; i < options->option_count; i++) {
		if (group_of(help, &options->table[i]) < help->group_count) {
			continue;
		}
		if (!titled) {
			page->print_title(page,
					  help->group_count == 0 ? "Options" : "Other options");
			titled = true;
		}
		page->print_option(page, &options->table[i]);
	}
}

/* What every command has. */
static void
walk_general(struct wf_option_page *page, const struct wf_options *options)
{
	page->print_title(page, "General");
	if (options->file != NULL) {
		page->print_flag(page, "--config=FILE",
				 "Read options from a file with lines of name = value, where # "
				 "begins a comment. Lines under [train] are for weft train alone, "
				 "lines under [pserver train] for these two.");
		page->print_flag(page, "--print_options",
				 "Print every option with its value and where that came from, and "
				 "end. The output can be used as such a file.");
	}
	page->print_flag(page, "-h, --help", "Print this page and end.");
	if (options->originals != NULL) {
		page->print_flag(page, "--help=original",
				 "Print every flag of the original, and what happens if it is "
				 "given, and end.");
	}
}

void
wf_option_walk(const struct wf_options *options, struct wf_option_page *page)
{
	static const struct wf_help no_help;
	const struct wf_help *help = options->help != NULL ? options->help : &no_help;

	for (unsigned i = 0; i < help->group_count; i++) {
		walk_group(page, options, help, i);
	}
	walk_others(page, options, help);
	walk_general(page, options);
}

static void
print_opening(struct wf_option_page *page, const struct wf_help *help)
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
	struct wf_option_page page = {
		.out = out,
		.columns = columns,
		.print_title = print_title,
		.print_option = print_option,
		.print_flag = print_flag,
	};

	print_opening(&page, help);
	wf_option_walk(options, &page);
	if (options->option_count > 0) {
		(void)fputc('\n', out);
		wf_help_print_text(out, columns, 0, wf_option_notation(options));
	}
	if (help->exit_codes != NULL) {
		(void)fputs("\nExit codes:\n", out);
		wf_help_print_text(out, columns, 0, help->exit_codes);
	}
}
