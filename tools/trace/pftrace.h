/* SPDX-License-Identifier: Apache-2.0 */
/* pftrace: a recording as a file that Perfetto shows (https://ui.perfetto.dev): a track for each
 * lane and trainer, and arrows from each push to its apply and to its answer. Beside these, in a
 * field of its own that Perfetto ignores, it has the recording itself, from which it is read again.
 * Thread: main. */
#pragma once

#include "tools/trace/pushes.h"

/* After wf_recording_align. WEFT_IO: the file cannot be written. */
enum weft_status wf_pftrace_write(const char *path, const struct wf_recording *recording,
				  const struct wf_pushes *pushes) WEFT_MUST_CHECK;
/* WEFT_DATA: it is no file of weft trace, or damaged. */
enum weft_status wf_pftrace_read(const char *path, struct wf_recording *recording) WEFT_MUST_CHECK;
