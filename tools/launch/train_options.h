/* SPDX-License-Identifier: Apache-2.0 */
/* train_options: what the launcher knows of the training program: its options, not its models. The
 * table is that of the training program, and so are the names of models. Thread: any one. */
#pragma once

#include "trainer/program/command.h"

/* Fills in command->options, for looking names up. */
void wf_train_options_open(struct wf_train_command *command);
/* Whether the training program will take these arguments; its words if not. argv[0] is not looked
 * at. What needs data or the model is found out by the trainers. */
enum weft_status wf_train_options_check(struct wf_train_command *command, int argc,
					char *const *argv) WEFT_MUST_CHECK;
/* Whether the training program has a model of this name, which may be NULL; its words if not. */
enum weft_status wf_train_options_check_model(const char *name) WEFT_MUST_CHECK;
