/* SPDX-License-Identifier: Apache-2.0 */
/* args: the argument list of a process to be started, with the memory of its texts. Adding never
 * fails at once: wf_args_check reports at the end whether everything fitted. Thread: any one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define WF_ARGS_MAX 256           /* arguments, with the closing NULL */
#define WF_ARGS_TEXT_BYTES 16384u /* of all texts, NULs included */

struct wf_args {
	char *argv[WF_ARGS_MAX]; /* NULL-terminated; pointers into text, or borrowed */
	unsigned count;
	bool overflow;
	size_t text_bytes;
	char text[WF_ARGS_TEXT_BYTES];
};

void wf_args_init(struct wf_args *args);
/* Formats and keeps a copy. */
void wf_args_add(struct wf_args *args, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Borrow `text` for as long as the list is used. */
void wf_args_borrow(struct wf_args *args, char *text);
void wf_args_borrow_all(struct wf_args *args, const struct wf_args *from);
/* WEFT_INVALID: too many, or too long. */
enum weft_status wf_args_check(const struct wf_args *args) WEFT_MUST_CHECK;
