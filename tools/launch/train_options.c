/* SPDX-License-Identifier: Apache-2.0 */
/* train_options: see train_options.h. The models need OpenBLAS, which this program does not link:
 * here are the functions that trainer/program/command.c calls about them. */
#include "tools/launch/train_options.h"

#include "trainer/program/kind.h"

static const struct wf_kind any_model = {.name = "MODEL", .summary = "see: weft train --help"};

enum weft_status
wf_kind_by_name(const char *name, const struct wf_kind **out)
{
	enum weft_status st = wf_kind_check_name(name);
	if (st == WEFT_OK) {
		*out = &any_model;
	}
	return st;
}

const struct wf_kind *
wf_kind_at(unsigned idx)
{
	return idx == 0 ? &any_model : NULL;
}

void
wf_train_options_open(struct wf_train_command *command)
{
	static char program[] = "train";
	static char model[] = "linear"; /* any one */
	char *argv[] = {program, model, NULL};

	/* A bad value in the environment is refused by wf_train_options_check, not here. */
	enum weft_status st = wf_train_command_parse(command, NULL, 2, argv);
	(void)st;
}

enum weft_status
wf_train_options_check(struct wf_train_command *command, int argc, char *const *argv)
{
	return wf_train_command_parse(command, NULL, argc, argv);
}

enum weft_status
wf_train_options_check_model(const char *name)
{
	return wf_kind_check_name(name);
}
