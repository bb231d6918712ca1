/* SPDX-License-Identifier: Apache-2.0 */
/* aside: arrays that a pass keeps for other programs, bit for bit: a file of each, which has its
 * elements and nothing else, little-endian and row by row. Private to this folder. Thread: the
 * caller's. */
#pragma once

#include "saved/file.h"

/* Writes `bytes`; `*crc` is the checksum that a reader has to find. WEFT_IO */
enum weft_status wf_aside_write(const struct wf_saved_spot *spot, const void *bytes, uint64_t count,
				uint32_t *crc) WEFT_MUST_CHECK;

/* The expected properties of a file. */
struct wf_aside_file {
	const char *path;
	uint64_t bytes;
	uint32_t crc;
};

/* Reads and checks. The bytes go to `out` [bytes] and `to`, each of which may be NULL. WEFT_DATA;
 * WEFT_IO */
enum weft_status wf_aside_read(const struct wf_saved_calls *calls, const struct wf_aside_file *file,
			       void *out, struct wf_saved_file *to) WEFT_MUST_CHECK;
