/* SPDX-License-Identifier: Apache-2.0 */
/* originals: the flags of the original, and the answer to each. Most are options here under the
 * same name; the tables of the commands have those. Every other flag has a row here that says what
 * happens to a command line, variable or file that gives it: it is accepted without effect, it
 * sets an option of another name, or it is refused with what replaces it. Thread: any; the table
 * is constant. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

struct wf_options;

#define WF_ORIGINALS_MAX 96u /* rows */

enum wf_original_answer {
	WF_ORIGINAL_OPTION,  /* it is an option of the command, under its own name */
	WF_ORIGINAL_IGNORED, /* accepted without effect: no result depends on it */
	WF_ORIGINAL_MAPPED,  /* it sets the option `to` */
	WF_ORIGINAL_REFUSED, /* unless its value is `harmless` */
};

struct wf_original {
	const char *name;
	bool of_trainer, of_pserver; /* the commands that the original's users gave it to */
	bool is_switch;              /* may be given without a value, and as --no-NAME */
	enum wf_original_answer answer;
	const char *to;       /* MAPPED: the option */
	const char *harmless; /* REFUSED: a value that requests what happens anyway; NULL: none */
	const char *text;     /* why, or what replaces it; NULL for an OPTION */
};

/* The flags that one command was given; the caller's memory. */
struct wf_originals {
	bool serves; /* a pserver's command, otherwise a trainer's */
	/* By row; NULL: not given. Lent like the values of options. */
	const char *value[WF_ORIGINALS_MAX];
	/* "argument", a variable's "NAME=value", or the path of the file */
	const char *source[WF_ORIGINALS_MAX];
};

/* Row number `idx`; NULL: there are no more. */
const struct wf_original *wf_original_at(unsigned idx);
/* The flag of that name that the command answers itself and that is no option; NULL: none. `-` and
 * `_` are the same. `originals` may be NULL. */
const struct wf_original *wf_original_find(const struct wf_originals *originals, const char *text,
					   size_t text_bytes);
/* Notes that `options->originals` was given this value, or refuses it: WEFT_INVALID, with what
 * replaces it. */
enum weft_status wf_original_accept(struct wf_options *options, const struct wf_original *original,
				    const char *value, const char *source) WEFT_MUST_CHECK;
/* Reads PADDLE_INIT_<NAME> of each flag that is no option. */
enum weft_status wf_originals_read_environment(struct wf_options *options) WEFT_MUST_CHECK;
/* "use_mkldnn=true (argument) no effect: ...", a line for each flag that was given, with a newline
 * between two; at most `bytes`. Returns how many there were. */
unsigned wf_originals_understood(const struct wf_options *options, char *out, size_t bytes);
/* Prints every flag of the original that the command's users gave it, with its answer. */
void wf_originals_print(const struct wf_options *options, FILE *out);
