/* SPDX-License-Identifier: Apache-2.0 */
/* split: whose option is it: `weft launch` takes options of its own, of pservers and of trainers
 * before "--", and sorts them by who knows them. Thread: any one. */
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
	struct wf_args program; /* a user's program and its arguments; empty: there is none */
	bool has_trainer;       /* "--" and a command of the trainers were there */
};

/* An option that launch knows is launch's alone, but for --config, which goes to all; one that both
 * others know goes to both. The command after "--" is `train MODEL` or any program.
 * WEFT_INVALID: an option that nobody knows, with a suggestion; words in the wrong place; an option
 * after "--" that launch itself gives to trainers. */
enum weft_status wf_split_arguments(const struct wf_split_tables *tables, int argc, char **argv,
				    struct wf_split *out) WEFT_MUST_CHECK;
