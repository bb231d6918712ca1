/* SPDX-License-Identifier: Apache-2.0 */
/* guard: a mapping of a file with a page behind it that nobody may touch: whoever reads or writes
 * beyond the end faults there, and finds nobody else's bytes. Thread: any. */
#pragma once

#include <stddef.h>

/* Map the first `bytes` of `fd`, shared, and the guard behind the last of their pages. NULL: errno
 * says why. */
void *wf_guard_map(int fd, size_t bytes, int protection);
/* What wf_guard_map returned, with the same `bytes`. */
void wf_guard_unmap(void *base, size_t bytes);
