/* SPDX-License-Identifier: Apache-2.0 */
/* args: see args.h. */
#include "tools/launch/args.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

void
wf_args_init(struct wf_args *args)
{
	args->argv[0] = NULL;
	args->count = 0;
	args->overflow = false;
	args->text_bytes = 0;
}

void
wf_args_borrow(struct wf_args *args, char *text)
{
	WF_ASSERT(text != NULL);
	if (args->count + 1 >= WF_ARGS_MAX) {
		args->overflow = true;
		return;
	}
	args->argv[args->count++] = text;
	args->argv[args->count] = NULL;
}

void
wf_args_borrow_all(struct wf_args *args, const struct wf_args *from)
{
	for (unsigned i = 0; i < from->count; i++) {
		wf_args_borrow(args, from->argv[i]);
	}
	args->overflow = args->overflow || from->overflow;
}

void
wf_args_add(struct wf_args *args, const char *format, ...)
{
	char *at = args->text + args->text_bytes;
	size_t room = sizeof(args->text) - args->text_bytes;
	va_list list;

	va_start(list, format);
	int wanted = vsnprintf(at, room, format, list);
	va_end(list);
	if (wanted < 0 || (size_t)wanted >= room) {
		args->overflow = true;
		return;
	}
	args->text_bytes += (size_t)wanted + 1;
	wf_args_borrow(args, at);
}

enum weft_status
wf_args_check(const struct wf_args *args)
{
	if (args->overflow) {
		return wf_fail(WEFT_INVALID,
			       "more than %d arguments, or %u bytes of them, for one process; set "
			       "options in the environment (WEFT_<NAME>) instead",
			       WF_ARGS_MAX - 1, WF_ARGS_TEXT_BYTES);
	}
	return WEFT_OK;
}
