/* SPDX-License-Identifier: Apache-2.0 */
/* options_json: the page of --help as one JSON object, for programs: --help=json. Thread: the
 * caller's. */
#include <string.h>

#include "base/json.h"
#include "base/options_internal.h"

#define LIST_BYTES 8192u /* of the rows of a list, such as that of the models */

static void
print_key(FILE *out, const char *key)
{
	wf_json_print_text(out, key);
	(void)fputs(": ", out);
}

static void
print_title(struct wf_option_page *page, const char *title)
{
	(void)fputs(page->title_count++ > 0 ? "]},\n  {" : "\n  {", page->out);
	page->count = 0;
	wf_json_print_member(page->out, "title", title);
	(void)fputs("\"options\": [", page->out);
}

/* In front of an element of the list under a title. */
static void
print_comma(struct wf_option_page *page)
{
	(void)fputs(page->count++ > 0 ? ",\n   {" : "\n   {", page->out);
}

static void
print_choices(FILE *out, const char *choices)
{
	char word[WF_OPTION_NAME_BYTES];

	print_key(out, "choices");
	(void)fputc('[', out);
	for (const char *at = choices; at != NULL && *at != '\0';) {
		const size_t bytes = strcspn(at, "|");
		(void)snprintf(word, sizeof(word), "%.*s", (int)bytes, at);
		wf_json_print_text(out, word);
		at += bytes;
		if (*at == '|') {
			(void)fputs(", ", out);
			at++;
		}
	}
	(void)fputs("], ", out);
}

static void
print_option(struct wf_option_page *page, const struct wf_option *option)
{
	char text[WF_OPTION_DESCRIBED_BYTES];

	wf_option_describe(option, true, text, sizeof(text));
	print_comma(page);
	wf_json_print_member(page->out, "name", option->name);
	wf_json_print_member(page->out, "value", wf_option_metavar(option));
	print_choices(page->out, option->choices);
	(void)fprintf(page->out, "\"is_switch\": %s, ",
		      option->type == WF_OPTION_BOOL ? "true" : "false");
	print_key(page->out, "text");
	wf_json_print_text(page->out, text);
	(void)fputs("}", page->out);
}

static void
print_flag(struct wf_option_page *page, const char *flag, const char *text)
{
	print_comma(page);
	wf_json_print_member(page->out, "flag", flag);
	print_key(page->out, "text");
	wf_json_print_text(page->out, text);
	(void)fputs("}", page->out);
}

/* What print_list prints into a file, as one text. */
static void
print_list(FILE *out, const struct wf_help *help)
{
	char text[LIST_BYTES] = "";
	FILE *list = help->print_list != NULL ? fmemopen(text, sizeof(text), "w") : NULL;

	if (list != NULL) {
		help->print_list(list);
		(void)fclose(list);
	}
	wf_json_print_member(out, "list", list != NULL ? text : NULL);
}

void
wf_option_print_json(const struct wf_options *options, FILE *out)
{
	static const struct wf_help no_help;
	const struct wf_help *help = options->help != NULL ? options->help : &no_help;
	struct wf_option_page page = {
		.out = out,
		.print_title = print_title,
		.print_option = print_option,
		.print_flag = print_flag,
	};

	(void)fputc('{', out);
	wf_json_print_member(out, "program", options->program);
	wf_json_print_member(out, "usage", help->usage);
	wf_json_print_member(out, "about", help->about);
	wf_json_print_member(out, "examples", help->examples);
	wf_json_print_member(out, "list_title", help->list_title);
	print_list(out, help);
	wf_json_print_member(out, "notation",
			     options->option_count > 0 ? wf_option_notation(options) : NULL);
	wf_json_print_member(out, "exit_codes", help->exit_codes);
	(void)fputs("\"groups\": [", out);
	wf_option_walk(options, &page); /* the last title, "General", is always there */
	(void)fputs("]}]}\n", out);
}
