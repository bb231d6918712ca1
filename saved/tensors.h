/* SPDX-License-Identifier: Apache-2.0 */
/* tensors: one array in one file, in the original's parameter format: a header of 16 bytes (i32
 * version 0, u32 bytes of a value 4, u64 number of values), then the values, all little-endian.
 * Thread: the caller's. */
#pragma once

#include "saved/file.h"

#define WF_TENSOR_CHUNK_COUNT 8192u /* values that are converted at a time */

/* The expected properties of a file. */
struct wf_tensor_file {
	const char *path;
	uint64_t count;
	uint32_t crc;
};

/* Writes `value` [count]; `*crc` is the checksum that a reader has to find. */
enum weft_status wf_tensor_write(const struct wf_saved_spot *spot, const float *value,
				 uint64_t count, uint32_t *crc) WEFT_MUST_CHECK;
/* Where values that are read go. Both NULL: nowhere. */
struct wf_tensor_target {
	float *value;               /* [count] */
	struct wf_saved_file *file; /* their bytes are appended */
};
/* Little-endian values of a chunk, from value `first` on, to the target. WEFT_IO */
enum weft_status wf_tensor_store(const uint8_t *chunk, size_t count, uint64_t first,
				 const struct wf_tensor_target *to) WEFT_MUST_CHECK;
/* Reads and checks. WEFT_DATA; WEFT_IO */
enum weft_status wf_tensor_read(const struct wf_saved_calls *calls,
				const struct wf_tensor_file *file,
				const struct wf_tensor_target *to) WEFT_MUST_CHECK;
/* Appends the header of a file of `count` values to `to`. WEFT_IO */
enum weft_status wf_tensor_write_header(struct wf_saved_file *to, uint64_t count) WEFT_MUST_CHECK;
