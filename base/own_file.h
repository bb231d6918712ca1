/* SPDX-License-Identifier: Apache-2.0 */
/* own_file: opens a file for writing that no other name leads to. Thread: any. */
#pragma once

#include "base/status.h"

/**
 * Create the file, or truncate an existing one, and open it for writing. Folders on the way may be
 * links: they are the user's choice. An existing file must be regular and have no second name,
 * because whoever may write to the folder could have placed a link there to a file elsewhere.
 * @param flags further flags of open(2): O_APPEND
 * @param out   the descriptor, with close-on-exec
 * @return WEFT_OK; WEFT_IO: the text has the path and the reason
 */
enum weft_status wf_own_file_open(const char *path, int flags, int *out) WEFT_MUST_CHECK;
