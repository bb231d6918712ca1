/* SPDX-License-Identifier: Apache-2.0 */
/* guard: a mapping of a file with an inaccessible page behind it: an access beyond the end faults
 * there, instead of reaching other memory. Thread: any. */
#pragma once

#include <stddef.h>

/* Maps the first `bytes` of `fd`, shared, and the guard behind the last of their pages. Returns
 * NULL with errno set if it fails. */
void *wf_guard_map(int fd, size_t bytes, int protection);
/* Unmaps what wf_guard_map returned for the same `bytes`. */
void wf_guard_unmap(void *base, size_t bytes);
