/* SPDX-License-Identifier: Apache-2.0 */
/* recordio_memory: how much memory a reader of RecordIO may ask for. Thread: any. */
#pragma once

#include <stddef.h>

/* What a header alone can demand: a first step of 1 MiB for the stored bytes, and what unpacks. */
#define RECORDIO_ROOM_BYTES (4u << 20)
/* A byte of deflated data becomes at most so many. */
#define RECORDIO_RATIO_MAX 1032u

/* Of all allocations together, for a file of `bytes`. Each of the two buffers doubles, so what was
 * allocated for one is at most twice what it holds in the end. */
static inline size_t
recordio_memory_max(size_t bytes)
{
	return RECORDIO_ROOM_BYTES + (size_t)3 * RECORDIO_RATIO_MAX * bytes;
}
