/* SPDX-License-Identifier: Apache-2.0 */
/* own_path: where the file of the running program is. Thread: any. */
#pragma once

#include <stddef.h>

#include "base/status.h"

/* Writes the absolute path to `out`: as /proc names it, or, where /proc is not mounted, as the
 * kernel was asked to start it; a relative one counts from the current folder. WEFT_IO */
enum weft_status wf_own_path(char *out, size_t bytes) WEFT_MUST_CHECK;
