/* SPDX-License-Identifier: Apache-2.0 */
/* split: see split.h. */
#include "tools/launch/split.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define VALUE_BYTES 300u

/* What pservers or trainers get from launch: numbers and addresses of this very job. */
static const char *const given_by_launch[] = {
	"trainer_id",           "pservers", "port", "ports_num", "ports_num_for_sparse",
	"num_gradient_servers", "listen",
};

static bool
is_option(const char *argument)
{
	return argument[0] == '-' && argument[1] != '\0';
}

/* Whether an argument is this option, whatever the spelling ("--trainer-id 3"). */
static bool
same_name(const char *argument, const char *name)
{
	if (strncmp(argument, "--", 2) != 0) {
		return false;
	}
	for (argument += 2; *name != '\0'; argument++, name++) {
		if ((*argument == '-' ? '_' : *argument) != *name) {
			return false;
		}
	}
	return *argument == '\0' || *argument == '=';
}

static bool
is_given_by_launch(const char *argument)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(given_by_launch); i++) {
		if (same_name(argument, given_by_launch[i])) {
			return true;
		}
	}
	return false;
}

static enum weft_status
refuse_given(const char *what, const char *where, const char *giver)
{
	return wf_fail(WEFT_INVALID,
		       "%.300s%s: %s gives this to pservers and trainers itself; leave it out, or "
		       "change it before --",
		       what, where, giver);
}

enum weft_status
wf_split_check_trainer(char *const *argv, unsigned count, const char *giver)
{
	for (unsigned i = 0; i < count; i++) {
		if (is_given_by_launch(argv[i])) {
			return refuse_given(argv[i], " after --", giver);
		}
	}
	return WEFT_OK;
}

/* Refuses an unknown option, with the text of the parser that has a suggestion, if one has. */
static enum weft_status
refuse_unknown(const struct wf_split_tables *tables, const struct wf_options *trainer,
	       char *argument)
{
	const struct wf_options *all[] = {&tables->own, &tables->pserver, trainer};
	char *argv[] = {argument, argument, NULL};

	for (size_t i = 0; i < WF_ARRAY_COUNT(all); i++) {
		struct wf_options probe = *all[i];
		enum weft_status st = wf_options_parse(&probe, 2, argv);
		if (st != WEFT_OK && strstr(weft_last_error(), "did you mean") != NULL) {
			return st;
		}
	}
	if (trainer == &tables->program) {
		return wf_fail(WEFT_INVALID,
			       "unknown option %.80s: it is none of launch, of pservers or of a "
			       "session; the program's own arguments follow its name",
			       argument);
	}
	return wf_fail(WEFT_INVALID,
		       "unknown option %.80s: neither launch, pserver nor train has it; see: weft "
		       "help launch",
		       argument);
}

/* Sorts one option before "--", and its value if that is the next word; `*taken` counts words.
 * `trainer`: the table of the trainers' command. */
static enum weft_status
split_option(const struct wf_split_tables *tables, const struct wf_options *trainer_table,
	     char **argv, struct wf_split *out, int *taken)
{
	bool next = false;
	bool pserver_next = false;
	bool trainer_next = false;
	bool own = wf_options_is_help(argv[0]) || wf_options_knows(&tables->own, argv[0], &next);
	bool pserver = !own && wf_options_knows(&tables->pserver, argv[0], &pserver_next);
	bool trainer = !own && wf_options_knows(trainer_table, argv[0], &trainer_next);

	if (!own && !pserver && !trainer) {
		return refuse_unknown(tables, trainer_table, argv[0]);
	}
	if (!own && is_given_by_launch(argv[0])) {
		return wf_fail(WEFT_INVALID,
			       "%.80s: launch numbers the trainers itself, from 0; leave it out",
			       argv[0]);
	}
	if (own && same_name(argv[0], "config")) {
		pserver = trainer = true; /* one file, a section for each */
	}
	next = next || (pserver && pserver_next) || (trainer && trainer_next);
	/* As the parser does: a word with dashes is no value, the value was forgotten. */
	*taken = next && argv[1] != NULL && strncmp(argv[1], "--", 2) != 0 ? 2 : 1;
	for (int i = 0; i < *taken; i++) {
		if (own) {
			wf_args_borrow(&out->own, argv[i]);
		}
		if (pserver) {
			wf_args_borrow(&out->pserver, argv[i]);
		}
		if (trainer) {
			wf_args_borrow(&out->trainer, argv[i]);
		}
	}
	return WEFT_OK;
}

static bool
is_train(char **command)
{
	return command[0] != NULL && strcmp(command[0], "train") == 0;
}

static enum weft_status
split_program(char **argv, struct wf_split *out)
{
	if (argv[0] == NULL || argv[0][0] == '\0') {
		return wf_fail(WEFT_INVALID, "the command of the trainers is missing after --, as "
					     "in: -- train linear, or -- python3 train.py");
	}
	for (char **i = argv; *i != NULL; i++) {
		wf_args_borrow(&out->program, *i);
	}
	out->has_trainer = true;
	return wf_args_check(&out->program);
}

static enum weft_status
split_train(char **argv, struct wf_split *out)
{
	if (argv[1] == NULL || is_option(argv[1])) {
		return wf_fail(WEFT_INVALID, "'-- train' needs a model, as in: -- train linear");
	}
	for (char **i = argv + 2; *i != NULL; i++) {
		if (is_given_by_launch(*i)) {
			return refuse_given(*i, " after --", "launch");
		}
		wf_args_borrow(&out->trainer, *i);
	}
	out->has_trainer = true;
	return WEFT_OK;
}

enum weft_status
wf_split_arguments(const struct wf_split_tables *tables, int argc, char **argv,
		   struct wf_split *out)
{
	int end = 1;

	while (end < argc && strcmp(argv[end], "--") != 0) {
		end++;
	}
	char **command = end < argc ? argv + end + 1 : NULL;
	bool has_program = command != NULL && !is_train(command);
	const struct wf_options *trainer = has_program ? &tables->program : &tables->trainer;
	wf_args_init(&out->own);
	wf_args_init(&out->pserver);
	wf_args_init(&out->trainer);
	wf_args_init(&out->program);
	out->has_trainer = false;
	wf_args_add(&out->own, "launch");
	wf_args_add(&out->pserver, "pserver");
	wf_args_add(&out->trainer, "train");
	if (end + 2 < argc && !has_program) {
		wf_args_borrow(&out->trainer, argv[end + 2]); /* MODEL; checked below */
	}
	for (int i = 1, taken = 0; i < end; i += taken) {
		if (!is_option(argv[i])) {
			return wf_fail(WEFT_INVALID,
				       "unexpected '%s'; the command of the trainers follows --, "
				       "as in: -- train linear",
				       argv[i]);
		}
		enum weft_status st = split_option(tables, trainer, argv + i, out, &taken);
		if (st != WEFT_OK) {
			return st;
		}
	}
	enum weft_status st = WEFT_OK;
	if (command != NULL) {
		st = has_program ? split_program(command, out) : split_train(command, out);
	}
	if (st == WEFT_OK) {
		st = wf_args_check(&out->pserver);
	}
	return st == WEFT_OK ? wf_args_check(&out->trainer) : st;
}

/* Whether launch itself has this value for the setting. */
static bool
has_same_value(const struct wf_options *own, const struct wf_options *child, const char *name)
{
	const bool counts = strcmp(name, "num_gradient_servers") == 0;
	const char *own_name = counts ? "trainers" : name;
	const struct wf_option *mine = wf_option_find(own, own_name, strlen(own_name));
	const struct wf_option *other = wf_option_find(child, name, strlen(name));
	char value[VALUE_BYTES];
	char own_value[VALUE_BYTES];

	if (mine == NULL) {
		return false;
	}
	wf_option_value(mine, own->target, own_value, sizeof(own_value));
	wf_option_value(other, child->target, value, sizeof(value));
	return strcmp(value, own_value) == 0;
}

/* Whether launch itself has read the same line. */
static bool
has_same_line(const struct wf_options *own, const struct wf_options *child, const char *name)
{
	return wf_option_find(own, name, strlen(name)) != NULL &&
	       wf_options_line(own, name) == wf_options_line(child, name);
}

enum weft_status
wf_split_check_file(const struct wf_options *own, const struct wf_options *child)
{
	for (size_t i = 0; i < WF_ARRAY_COUNT(given_by_launch); i++) {
		const char *name = given_by_launch[i];
		const bool has = wf_option_find(child, name, strlen(name)) != NULL;
		const unsigned line = has ? wf_options_line(child, name) : 0;
		if (line != 0 && !has_same_value(own, child, name) &&
		    !has_same_line(own, child, name)) {
			char what[VALUE_BYTES];
			snprintf(what, sizeof(what), "%.200s:%u: %s", child->file->path, line,
				 name);
			return refuse_given(what, "", "launch");
		}
	}
	return WEFT_OK;
}

enum weft_status
wf_split_check_secret(const struct wf_options *own, const struct wf_options *child)
{
	static const char name[] = "secret_file";
	const enum wf_option_origin origin = wf_options_origin(child, name);
	const bool is_line = origin == WF_ORIGIN_FILE;
	char what[VALUE_BYTES] = "--secret_file after --";

	if ((!is_line && origin != WF_ORIGIN_ARGUMENT) || has_same_value(own, child, name) ||
	    (is_line && has_same_line(own, child, name))) {
		return WEFT_OK;
	}
	if (is_line) {
		snprintf(what, sizeof(what), "%.200s:%u: %s", child->file->path,
			 wf_options_line(child, name), name);
	}
	return wf_fail(WEFT_INVALID,
		       "%s: launch gives all processes of the job one secret; leave this out, and "
		       "give the file to launch: --secret_file=FILE before --",
		       what);
}
