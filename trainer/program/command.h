/* SPDX-License-Identifier: Apache-2.0 */
/* command: the training program's options, from command line and environment into wf_train_opts.
 * Thread: the caller's. */
#pragma once

#include <stdio.h>

#include "base/options.h"
#include "trainer/program/train.h"

#define WF_TRAIN_OPTIONS_MAX 128u

struct wf_train_command {
	struct wf_train_opts opts;
	struct wf_option table[WF_TRAIN_OPTIONS_MAX];
	struct wf_options options;
	enum wf_option_origin origin[WF_TRAIN_OPTIONS_MAX];
	const char *env_name[WF_TRAIN_OPTIONS_MAX];
	const char *positional[1];
	struct wf_option_file file;
	struct wf_originals originals;
};

/* Parses argv[1..]. The command must not move afterwards, because it points into itself. WEFT_OK
 * also if only help is wanted (options.help_wanted; opts may then name no model); WEFT_INVALID:
 * option, value, remedy. `launcher`: as in struct wf_options. */
enum weft_status wf_train_command_parse(struct wf_train_command *command,
					const struct wf_launcher *launcher, int argc,
					char *const *argv) WEFT_MUST_CHECK;
/* What wf_train_command_help prints beside the options, and their groups. */
extern const struct wf_help wf_train_help;
void wf_train_command_help(struct wf_train_command *command, FILE *out);
