/* SPDX-License-Identifier: Apache-2.0 */
/* names: the name of a tensor, of any bytes but 0, as the name of a file, and back. A byte that
 * cannot be part of one is written as `%` and two digits, 0-9 and A-F, as in a URL ("conv 1/w" is
 * conv%201%2Fw): what is not printable ASCII, blanks, `/`, a `.` in front or before "state" and
 * "rows", the first letter of "manifest", and a `%` that two such digits follow. A `%` without them
 * stands for itself. So each name has one file, and each file one name.
 *
 * Thread: any; pure functions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define WF_SAVED_NAME_BYTES 240u /* of a file's name, with its NUL; a suffix has room behind it */

/* The file's name for a name; `out` is [WF_SAVED_NAME_BYTES]. WEFT_INVALID: it is empty, has a byte
 * of 0, or is too long. */
enum weft_status wf_saved_name_encode(const char *name, size_t bytes, char *out) WEFT_MUST_CHECK;
/* The name for a file's name; `out` is [WF_SAVED_NAME_BYTES]. Returns its bytes. */
size_t wf_saved_name_decode(const char *file, char *out);
/* The file's name for a tensor of a session, whose name may itself have such escapes, because
 * sessions have fewer names than files of other programs. */
enum weft_status wf_saved_name_settle(const char *name, char *out) WEFT_MUST_CHECK;
/* Whether the bytes are text in UTF-8. */
bool wf_saved_name_is_utf8(const char *name, size_t bytes);
/* Whether a file of a manifest may have this name; older passes have names with other escapes. */
bool wf_saved_name_is_file(const char *name);
