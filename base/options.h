/* SPDX-License-Identifier: Apache-2.0 */
/* options: one table drives the parser, the environment, the file of --config, the help text and
 * the "understood as" line, and knows where each value came from. Precedence: argument over
 * environment over file over launcher (base/launcher.h) over default.
 *
 * Spellings: --name=value, --name value, --name (bool true), --no-name (bool false); `-` and `_`
 * in names are the same. Environment: WEFT_<NAME>, then PADDLE_INIT_<NAME> (upper case);
 * an empty variable counts as not set. Given twice, the last one wins.
 * "--" ends options; what follows and what is no option is a positional argument.
 *
 * A file is lines of `name = value`; a value may stand between quotes, `#` begins a comment at the
 * start of a line or behind a blank. Lines above all sections are for every command that reads the
 * file, those under [train] for `weft train` alone, under [pserver train] for these two. A command
 * refuses a name that it has no option for; the sections of others it only looks over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/help.h"
#include "base/launcher.h"
#include "base/originals.h"
#include "base/status.h"

enum wf_option_type {
	WF_OPTION_BOOL,     /* bool; true/false/1/0/on/off/yes/no in any case */
	WF_OPTION_U64,      /* uint64_t, min..max */
	WF_OPTION_I32,      /* int32_t, any; may be negative */
	WF_OPTION_F64,      /* double, finite, fmin..fmax */
	WF_OPTION_BYTES,    /* uint64_t; suffix K, KiB, M, MiB, G, GiB (powers of 1024) */
	WF_OPTION_DURATION, /* uint64_t nanoseconds; suffix us, ms, s, m; a bare number is seconds;
			     * [DAYS-]HH:MM:SS */
	WF_OPTION_STRING,   /* const char *, borrowed from argv, environment or the table */
	WF_OPTION_CHOICE,   /* const char *, one of `choices` ("auto|tcp|sim") */
	/* An enum whose values are 0, 1, 2 ...: the number of the word in `choices`. */
	WF_OPTION_ENUM,
	WF_OPTION_LIST, /* struct wf_option_list: every value that is given, from wherever */
};

#define WF_OPTION_LIST_MAX 64u

/* Borrowed as a STRING is. */
struct wf_option_list {
	unsigned count;
	const char *text[WF_OPTION_LIST_MAX];
};

enum wf_option_origin {
	WF_ORIGIN_DEFAULT,
	WF_ORIGIN_LAUNCHER,
	WF_ORIGIN_FILE, /* the file of --config */
	WF_ORIGIN_ENV,
	WF_ORIGIN_ARGUMENT,
};

/* Where a setting stands in the description of a job or table. */
struct wf_option_wire {
	uint8_t at, bytes; /* its offset and its size; 0 bytes: it does not travel */
};

struct wf_option {
	const char *name; /* "ports_num" */
	enum wf_option_type type;
	size_t offset; /* offset of the value in the target struct */
	/* Size of the value if its field is narrower than the type's: 2 or 4 for U64, 4 for BOOL
	 * (an int). 0: the type's own. A number that does not fit is refused. */
	size_t bytes;
	const char *initial; /* the default as text, parsed like a value; NULL: zero or NULL */
	const char *metavar; /* "N"; NULL: derived from the type */
	const char *choices; /* CHOICE and ENUM only: "tcp|shm" */
	const char *help;    /* one or more lines */
	/* The meaning of an old name, such as "dense lanes per pserver"; NULL: none. */
	const char *means;
	uint64_t min, max; /* U64, BYTES, DURATION; max 0: no limit */
	uint64_t step;     /* for these types: values are multiples of it; 0: any value */
	/* For these types: a word that stands for UINT64_MAX ("auto"); NULL: none. */
	const char *word;
	double fmin, fmax; /* F64; both 0: no limit */
	/* The title of the group of --help that the option belongs to, unless a group names it;
	 * NULL: it is one of the "Other options" then. */
	const char *heading;
	bool is_shared;  /* a setting that has to be the same on all trainers of a job */
	bool of_pserver; /* a setting that pservers have too, with the same default and limits */
	bool is_setting; /* a program's row that wf_settings_complete completes */
	struct wf_option_wire wire;
};

#define WF_OPTION_NAME_BYTES 64 /* longest name of a table, with its NUL */
#define WF_OPTION_VARIABLE_BYTES (WF_OPTION_NAME_BYTES + 16)
#define WF_OPTION_FILE_BYTES 16384u
#define WF_OPTION_FILE_OPTIONS 256u /* the most options that a table can have */

/* A file of --config: its text, into which values point, and the line of each option. */
struct wf_option_file {
	const char *path;     /* as the user gave it; NULL: no file */
	const char *given_as; /* by "--config" or the variable of this name */
	size_t bytes;
	/* Lines from 1, in the table's order; 0: the file does not set it. */
	uint16_t line[WF_OPTION_FILE_OPTIONS];
	char text[WF_OPTION_FILE_BYTES + 1];
};

struct wf_options {
	const struct wf_option *table;
	unsigned option_count;
	const char *program; /* "weft pserver": opens error and help texts */
	const char *section; /* of a file, that is for it; NULL: the last word of `program` */
	void *target;        /* the struct that receives the values */
	/* Caller's memory, which has to live as long as the values; NULL: neither --config nor
	 * --print_options is offered. */
	struct wf_option_file *file;
	/* What launchers say, which ranks below the file; has to live as long as the values. NULL:
	 * they are not asked. */
	const struct wf_launcher *launcher;
	/* Written by parse. */
	enum wf_option_origin *origin; /* [option_count], caller's memory */
	/* [option_count], caller's memory: the variable's "NAME=value" in environ or in what
	 * launchers say; NULL: it did not come from there. */
	const char **env_name;
	const char **positional; /* [positional_max], caller's memory; may be NULL if max is 0 */
	unsigned positional_max;
	unsigned positional_count;
	const struct wf_help *help; /* the texts of the page of --help; NULL: only the options */
	/* Caller's memory for flags of the original that are no options (base/originals.h), which
	 * has to live as long as the values; NULL: they are unknown. */
	struct wf_originals *originals;
	bool help_wanted;     /* --help, -h, --help=original or --help=json was given */
	bool original_wanted; /* --help=original: the help is the flags of the original */
	bool json_wanted;     /* --help=json: the help is an object for programs */
	bool print_wanted;    /* --print_options was given: call wf_options_print and end */
	const char *config;   /* the file that was read; NULL: none */
	bool ignore_unknown;  /* ignore options that are not in the table (launch passes them on) */
};

/* Whether an argument asks for the page of help, in a form that every command has. */
bool wf_options_is_help(const char *argument);
/* Applies the defaults, then the file (named by an argument, otherwise by the environment), then
 * the environment, then the arguments (argv[0] is ignored). A value that is the next argument may
 * not begin with "--" (write --name=--text). With --help among the arguments, errors are ignored,
 * and the values are those read before the first error. WEFT_INVALID: unknown option (with the
 * nearest name: "did you mean"), bad value (option, value, what is allowed, where it came from),
 * too many positional arguments, a mistake in the file (by line); WEFT_IO: the file cannot be read;
 * WEFT_UNSUPPORTED: it is a Python script. */
enum weft_status wf_options_parse(struct wf_options *options, int argc,
				  char *const *argv) WEFT_MUST_CHECK;
/* Where the value of the option came from. `name` must be in the table. */
enum wf_option_origin wf_options_origin(const struct wf_options *options, const char *name);
/* The line of the file of --config that sets the option, whoever wins; 0: none does. `name` must be
 * in the table. */
unsigned wf_options_line(const struct wf_options *options, const char *name);
/* Prints every option with its value and origin in the format of a file for --config; options at
 * their default are comments. */
void wf_options_print(const struct wf_options *options, FILE *out);
/* Whether an argument text is an option of this table ("--ports_num=2"); `*takes_next` is whether
 * its value is the next argument. */
bool wf_options_knows(const struct wf_options *options, const char *argument, bool *takes_next);
/* The option of that name; NULL: there is none. `-` and `_` are the same. */
const struct wf_option *wf_option_find(const struct wf_options *options, const char *text,
				       size_t text_bytes);
/* The option that was probably meant; NULL: no name is near. `with_builtins`: --config and
 * --print_options are looked at, too. */
const struct wf_option *wf_option_nearest(const struct wf_options *options, const char *text,
					  size_t text_bytes, bool with_builtins);
/* The variable of an option: "WEFT_" and "ports-num" make "WEFT_PORTS_NUM". */
void wf_option_variable(const char *prefix, const char *name, char out[WF_OPTION_VARIABLE_BYTES]);
/* Sets every value of a struct to its default. */
void wf_option_defaults(const struct wf_option *table, unsigned count, void *target);
/* Checks that a struct that a program filled in holds values that the table allows; texts and
 * choices are not checked. WEFT_INVALID: the text names the first value that is not allowed, and
 * what is. */
enum weft_status wf_option_check(const struct wf_option *table, unsigned count,
				 const void *target) WEFT_MUST_CHECK;
/* Writes the value in `target` as a user would. `out` has `bytes`; a longer text is cut. */
void wf_option_value(const struct wf_option *option, const void *target, char *out, size_t bytes);
/* A value in `target` that is not a text, as a number; for F64 its bits. */
uint64_t wf_option_number(const struct wf_option *option, const void *target);
/* The inverse of wf_option_number, without any check. */
void wf_option_set_number(const struct wf_option *option, uint64_t number, void *target);
/* Prints the page of --help: the texts of options->help and a paragraph for each option, in lines
 * as wide as the terminal. With `original_wanted` it is the list of the original's flags. With
 * `json_wanted` it is one JSON object with the parts of the page, from which man pages and
 * completions are made (tools/manual). */
void wf_options_print_help(const struct wf_options *options, FILE *out);
/* "ports_num=2 (PADDLE_INIT_PORTS_NUM) dense lanes per pserver", a line for each option that has
 * `means` and was not left at its default, and for each other flag of the original, with a newline
 * between two. Returns how many there were. */
unsigned wf_options_understood(const struct wf_options *options, char *out, size_t bytes);
