/* SPDX-License-Identifier: Apache-2.0 */
/* own_file: a file to be written from its beginning, which is nobody else's. Thread: any. */
#pragma once

#include "base/status.h"

/**
 * Make the file, or empty the one that is there, and open it for writing. Folders on the way may be
 * links: they are the user's choice. What has the file's name has to be a regular file without
 * another name, for whoever may write to the folder could have laid a link there, to a file of ours
 * elsewhere.
 * @param flags more than that, of open(2): O_APPEND
 * @param out is closed on exec
 * @return WEFT_OK; WEFT_IO: path, and why not
 */
enum weft_status wf_own_file_open(const char *path, int flags, int *out) WEFT_MUST_CHECK;
