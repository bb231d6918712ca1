/* SPDX-License-Identifier: Apache-2.0 */
/* options_internal: what the files of options share. Thread: the caller's. */
#pragma once

#include "base/options.h"

#define WF_OPTION_NAME_BYTES 64 /* longest name of a table, with its NUL */
#define WF_OPTION_TEXT_BYTES 96 /* a formatted number, a range of allowed values */

/* options_value.c: text to value and back. */

/* false: `text` is no value of this option, or out of its range; nothing is written. */
bool wf_option_store(const struct wf_option *option, const char *text, void *target);
/* The value that `target` holds, as a user would write it; strings are not cut. */
void wf_option_format(const struct wf_option *option, const void *target, char *out, size_t bytes);
/* "a whole number from 1 to 64": what a refused value should have been. */
void wf_option_allowed(const struct wf_option *option, char *out, size_t bytes);

/* options_name.c: names as users write them. */

/* Whether `text` is the option's name; `-` and `_` are the same. */
bool wf_option_is_named(const struct wf_option *option, const char *text, size_t text_bytes);
/* The option of that name; NULL: none. */
const struct wf_option *wf_option_find(const struct wf_options *options, const char *text,
				       size_t text_bytes);
/* The option that was probably meant; NULL: nothing is near. */
const struct wf_option *wf_option_nearest(const struct wf_options *options, const char *text,
					  size_t text_bytes);
