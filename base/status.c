/* SPDX-License-Identifier: Apache-2.0 */
/* status: names of status codes and the thread's record of its last failure.
 * Thread: any; each has its own record. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static const char *const names[] = {
	[WEFT_OK] = "ok",
	[WEFT_AGAIN] = "again",
	[WEFT_INVALID] = "invalid",
	[WEFT_NOMEM] = "nomem",
	[WEFT_TIMEOUT] = "timeout",
	[WEFT_UNAVAILABLE] = "unavailable",
	[WEFT_REFUSED] = "refused",
	[WEFT_MISMATCH] = "mismatch",
	[WEFT_PROTOCOL] = "protocol",
	[WEFT_LOST] = "lost",
	[WEFT_ABORTED] = "aborted",
	[WEFT_CLOSED] = "closed",
	[WEFT_IO] = "io",
	[WEFT_DATA] = "data",
	[WEFT_PERM] = "perm",
	[WEFT_UNSUPPORTED] = "unsupported",
	[WEFT_INTERNAL] = "internal",
	[WEFT_ROLLED_BACK] = "rolled back",
};
WF_STATIC_ASSERT(WF_ARRAY_COUNT(names) == WEFT_STATUS_COUNT, "a name for each status");

static _Thread_local struct wf_error last_error;

const char *
weft_status_name(enum weft_status status)
{
	if ((unsigned)status >= WEFT_STATUS_COUNT) {
		return "unknown";
	}
	return names[status];
}

const char *
weft_last_error(void)
{
	return last_error.text;
}

struct wf_error *
wf_error_record(void)
{
	return &last_error;
}

/* The text may quote a peer or a user, which must not begin a line of its own. */
static void
keep_one_line(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f) {
			*text = ' ';
		}
	}
}

static void
record(enum weft_status status, const char *text)
{
	WF_ASSERT(status != WEFT_OK);
	WF_ASSERT(status != WEFT_AGAIN);
	last_error.status = status;
	(void)snprintf(last_error.text, sizeof(last_error.text), "%s", text);
	keep_one_line(last_error.text);
}

enum weft_status
wf_fail(enum weft_status status, const char *format, ...)
{
	/* Not the record itself, because an argument may be weft_last_error(). */
	char text[WF_ERROR_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	record(status, text);
	return status;
}

enum weft_status
wf_fail_errno(enum weft_status status, int err, const char *format, ...)
{
	char text[WF_ERROR_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	size_t used = strlen(text);
	char reason_buffer[128];
	const char *reason = strerror_r(err, reason_buffer, sizeof(reason_buffer));
	(void)snprintf(text + used, sizeof(text) - used, ": %s", reason);
	record(status, text);
	return status;
}
