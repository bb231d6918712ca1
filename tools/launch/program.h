/* SPDX-License-Identifier: Apache-2.0 */
/* program: a user's own program as the trainers of a job, as in `weft launch -- python3 train.py`.
 * Its session gets everything by environment variables: where the job's pservers are, which
 * trainer it is, and the settings of a session that were given to `weft launch`. The Python binding
 * reads these variables itself. Thread: any one. */
#pragma once

#include "base/settings.h"
#include "tools/launch/plan.h"

#define WF_PROGRAM_OPTIONS_MAX 64u /* settings of a session */

/* The settings of a session as options of `weft launch`. */
struct wf_program_options {
	struct wf_options options;
	struct wf_session_values values;
	struct wf_option table[WF_PROGRAM_OPTIONS_MAX];
	enum wf_option_origin origin[WF_PROGRAM_OPTIONS_MAX];
	const char *env_name[WF_PROGRAM_OPTIONS_MAX];
	struct wf_option_file file;
};

/* Fills in set->options, for looking names up. */
void wf_program_options_init(struct wf_program_options *set);

/* Reads the options, and checks what each may be and what two of them rule together. argv[0] is not
 * looked at. WEFT_INVALID, WEFT_IO: as of wf_options_parse and wf_session_rules_check; WEFT_INVALID
 * also for an empty text, which a variable cannot hand on. */
enum weft_status wf_program_options_parse(struct wf_program_options *set, int argc,
					  char *const *argv) WEFT_MUST_CHECK;

/* Adds a variable WEFT_<NAME>=value for each setting that an argument or the file of --config gave.
 * Those that the environment gave are inherited. `variables` is checked by the caller. */
void wf_program_options_export(const struct wf_program_options *set, struct wf_args *variables);

/**
 * Finds a program as a shell does: a name with a slash is a path, another one is looked up in the
 * folders of PATH.
 * @param out [bytes] the path
 * @return WEFT_OK; WEFT_INVALID: there is no such program, it cannot be executed, or it is a script
 *         whose interpreter does not exist
 */
enum weft_status wf_program_find(const char *name, char *out, size_t bytes) WEFT_MUST_CHECK;
