/* SPDX-License-Identifier: Apache-2.0 */
/* document: a summary as one JSON object, the same from `weft status --json` and from the page's
 * /api/v1/status. Its names: docs/observe.md. Thread: the caller's. */
#pragma once

#include "status/history.h"
#include "status/summary.h"

#define WF_DOCUMENT_SCHEMA "weft.status.1"

/* `history`: NULL: there is none. Ends with a newline. */
void wf_document_write(const struct wf_picture *picture, const struct wf_summary *summary,
		       const struct wf_history *history, FILE *out);
