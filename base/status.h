/* SPDX-License-Identifier: Apache-2.0 */
/* Recording failures. The record is thread-local: the one mutable global of weft. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

#include "weft/status.h"

#define WF_ERROR_BYTES 512

struct wf_error {
	enum weft_status status;
	char text[WF_ERROR_BYTES]; /* one line, NUL-terminated */
};

/* Records a failure and returns its status: `return wf_fail(WEFT_NOMEM, "lane %u: ...", idx)`. It
 * is a programming error to record WEFT_OK or WEFT_AGAIN. */
enum weft_status wf_fail(enum weft_status status, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3))); /* cold: no fast path leads here */

/* As wf_fail, with ": " and strerror(err) appended. */
enum weft_status wf_fail_errno(enum weft_status status, int err, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* The record of this thread. A simulated env swaps it when it switches to another process. */
struct wf_error *wf_error_record(void);
