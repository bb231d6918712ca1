/* SPDX-License-Identifier: Apache-2.0 */
/* help: the page that --help prints. A program declares its texts and the order of its options;
 * the lines are broken here, once, at the width of the terminal (80 columns elsewhere).
 *
 * A text is a sequence of paragraphs. A line break within a paragraph counts as a blank; an empty
 * line ends the paragraph. A line that begins with a blank is an example or a row of a table and
 * is printed as it is. Thread: the caller's. */
#pragma once

#include <stdio.h>

/* Options that a user looks for together. */
struct wf_help_group {
	const char *title; /* "Optimizer" */
	/* Their names in the order to print them, with blanks between. Options whose rows have the
	 * title for a heading follow, in the order of the table. NULL: these alone. */
	const char *options;
};

/* All parts may be NULL, and are then left out. */
struct wf_help {
	const char *usage;                 /* "weft pserver [options]" */
	const char *about;                 /* what the command does */
	const char *list_title;            /* "Models" */
	void (*print_list)(FILE *out);     /* prints rows that begin with a blank */
	const char *examples;              /* lines that begin with a blank */
	const struct wf_help_group *group; /* NULL: all options under one heading */
	unsigned group_count;
	const char *exit_codes; /* lines that begin with a blank */
};

/* Columns of the terminal that `out` is, at least 40 and at most 120; 80 if it is none. */
unsigned wf_help_columns(FILE *out);

/* Prints a text in lines of at most `columns`, each after `indent` blanks, with a newline at its
 * end. A word that is longer than a line stands alone on a line of its own. */
void wf_help_print_text(FILE *out, unsigned columns, unsigned indent, const char *text);
