/* SPDX-License-Identifier: Apache-2.0 */
/* assert: failed assertions. Thread: any. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/outlet.h"

void
wf_assert_failed(const char *condition, const char *file, int line)
{
	/* No stdio stream: its lock may be held, its buffer lost in abort. */
	wf_outlets_flush(WF_OUTLET_PATIENCE_NS); /* the log lines that led here */
	wf_outlet_last_words("%s:%d: assertion failed: %s", file, line, condition);
	abort();
}
