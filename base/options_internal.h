/* SPDX-License-Identifier: Apache-2.0 */
/* options_internal: what the files of options share. Thread: the caller's. */
#pragma once

#include "base/options.h"

#define WF_OPTION_TEXT_BYTES 96     /* a formatted number, a range of allowed values */
#define WF_OPTION_ALLOWED_BYTES 320 /* text of the allowed values */

/* options_value.c: text to value and back. */

static inline bool
wf_option_is_text(const struct wf_option *option)
{
	return option->type == WF_OPTION_STRING || option->type == WF_OPTION_CHOICE;
}

/* The size of the value in its struct. */
size_t wf_option_bytes(const struct wf_option *option);
/* Returns false if `text` is no value of this option, or is out of its range; nothing is written.
 */
bool wf_option_store(const struct wf_option *option, const char *text, void *target);
/* Writes the allowed values: "a whole number from 1 to 64". */
void wf_option_allowed(const struct wf_option *option, char *out, size_t bytes);
/* "from 1 to 64", the same without the kind of value; "": it has no limits. A bound that stands for
 * "any number" is left out. */
void wf_option_range(const struct wf_option *option, char *out, size_t bytes);

/* options_help.c: what the page has about options, in its order; each form of the page prints the
 * parts in its own way. */

#define WF_OPTION_DESCRIBED_BYTES 2048

struct wf_option_page {
	FILE *out;
	unsigned columns;
	unsigned title_count, count; /* titles so far, and what stands under the last one */
	void (*print_title)(struct wf_option_page *page, const char *title);
	void (*print_option)(struct wf_option_page *page, const struct wf_option *option);
	/* A flag that every command has, as it is written: "-h, --help". */
	void (*print_flag)(struct wf_option_page *page, const char *flag, const char *text);
};

void wf_option_walk(const struct wf_options *options, struct wf_option_page *page);
/* What stands for the value: "N", "FILE", "tcp|shm"; "" for a bool. */
const char *wf_option_metavar(const struct wf_option *option);
/* Writes the help with range and default, and the choices unless they are shown elsewhere. */
void wf_option_describe(const struct wf_option *option, bool choices_shown, char *out,
			size_t bytes);
/* How SIZE and TIME are written, and where an option is looked up. */
const char *wf_option_notation(const struct wf_options *options);

/* options_json.c: the parts of the page as one JSON object. */
void wf_option_print_json(const struct wf_options *options, FILE *out);

/* options_help.c: the page in lines of at most `columns`. */
void wf_option_print_page(const struct wf_options *options, FILE *out, unsigned columns);

/* options_name.c: names as users write them. */

/* Whether `text` is the option's name; `-` and `_` are the same. */
bool wf_option_is_named(const struct wf_option *option, const char *text, size_t text_bytes);
/* --config and --print_options, which every table has that comes with memory for a file; their
 * values are in struct wf_options itself. NULL: neither. */
const struct wf_option *wf_option_builtin(const struct wf_options *options, const char *text,
					  size_t text_bytes);

/* options_file.c: what options->file is about, which must not be NULL. */

/* Read the file and take it apart. */
enum weft_status wf_option_file_read(struct wf_options *options, const char *path) WEFT_MUST_CHECK;
/* Take text[0 .. bytes) apart, as if it had been read from `path`. */
enum weft_status wf_option_file_parse(struct wf_options *options) WEFT_MUST_CHECK;

/* options.c: the same as "job.conf:3", "WEFT_PORT", "argument" or "default". */
void wf_option_source(const struct wf_options *options, unsigned idx, char *out, size_t bytes);
