/* SPDX-License-Identifier: Apache-2.0 */
/* overview: the page of a program that has commands, or of a command that has verbs. Thread: the
 * caller's. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct wf_overview_row {
	const char *name;    /* "verify"; NULL: behind the last one */
	const char *summary; /* one line; NULL: it is not shown */
};

struct wf_overview {
	const char *program;    /* "weft ckpt" */
	const char *usage;      /* "weft ckpt list|show|verify DIR"; NULL: none */
	const char *about;      /* what it is for */
	const char *examples;   /* lines that begin with a blank */
	const char *list_title; /* "Verbs" */
	struct wf_overview_row (*row)(unsigned idx);
	const char *closing; /* what follows the list */
};

void wf_overview_print(const struct wf_overview *overview, FILE *out);
/* Prints the page on stdout if `argument` asks for it: --help, -h, or --help=json, as one JSON
 * object. Returns false, and prints nothing, if it does not. */
bool wf_overview_answers(const struct wf_overview *overview, const char *argument);
