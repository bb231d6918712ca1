/* SPDX-License-Identifier: Apache-2.0 */
/* split: sorts the options before "--", which are those of `weft launch`, of pservers and of
 * trainers, by the process whose table has them. Thread: any one. */
#pragma once

#include "base/options.h"
#include "tools/launch/args.h"

/* Tables that options are looked up in, by name only. */
struct wf_split_tables {
	struct wf_options own;
	struct wf_options pserver;
	struct wf_options trainer; /* of `weft train` */
	struct wf_options program; /* of a user's program: the settings of a session */
};

struct wf_split {
	struct wf_args own;     /* "launch", options */
	struct wf_args pserver; /* "pserver", options */
	/* "train", MODEL, options before "--", then those after it. For a user's program: "train"
	 * and the options before "--". */
	struct wf_args trainer;
	struct wf_args program; /* a user's program and its arguments, or empty */
	bool has_trainer;       /* "--" and a command of the trainers were there */
};

/* Sorts the arguments. An option of launch is for launch alone, except for --config, which goes to
 * all; an option that pservers and trainers have goes to both. The command after "--" is
 * `train MODEL` or any program. WEFT_INVALID: an unknown option, with a suggestion; words in the
 * wrong place; an option after "--" that launch itself passes to trainers. */
enum weft_status wf_split_arguments(const struct wf_split_tables *tables, int argc, char **argv,
				    struct wf_split *out) WEFT_MUST_CHECK;
/* Refuses a line of the file of --config that sets for pservers or trainers what launch gives them
 * itself, unless it is launch's own line or value, too. Both have parsed that file, if there is
 * one. WEFT_INVALID: file, line and name, in the words of the arguments' refusal. */
enum weft_status wf_split_check_file(const struct wf_options *own,
				     const struct wf_options *child) WEFT_MUST_CHECK;
/* Where launch gives its processes a secret: refuses one that pservers or trainers have from an
 * argument or that file, unless launch has the same. WEFT_INVALID. */
enum weft_status wf_split_check_secret(const struct wf_options *own,
				       const struct wf_options *child) WEFT_MUST_CHECK;
/* Refuses arguments of `weft train` that a job's starter, called `giver` in the message, gives to
 * every trainer itself. WEFT_INVALID. */
enum weft_status wf_split_check_trainer(char *const *argv, unsigned count,
					const char *giver) WEFT_MUST_CHECK;
