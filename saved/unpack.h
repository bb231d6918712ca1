/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: a range of a file as a stream of bytes: as they are stored, or inflated on the way.
 * Private to this folder. Thread: the caller's. */
#pragma once

#include <stdbool.h>

#include <zlib.h>

#include "saved/file.h"

#define WF_UNPACK_CHUNK_BYTES (16u << 10)
/* The most bytes that one byte of deflated data can become. */
#define WF_UNPACK_RATIO_MAX 1032u

struct wf_unpack {
	struct wf_saved_file *file;
	uint64_t at;      /* next stored byte to read */
	uint64_t left;    /* stored bytes from there on */
	uint32_t zip_crc; /* of the unpacked bytes */
	bool is_deflated;
	bool is_over; /* the deflated data are at their end */
	z_stream inflater;
	uint8_t chunk[WF_UNPACK_CHUNK_BYTES];
};

/* Begins at byte `at` of the file, which has `stored_bytes` from there on. `out` must not move, and
 * wf_unpack_close ends it. WEFT_NOMEM */
enum weft_status wf_unpack_open(struct wf_unpack *out, struct wf_saved_file *file, uint64_t at,
				uint64_t stored_bytes, bool is_deflated) WEFT_MUST_CHECK;
/* Exactly `count` bytes. WEFT_DATA: there are fewer, or they are damaged; WEFT_IO */
enum weft_status wf_unpack_read(struct wf_unpack *unpack, void *bytes,
				size_t count) WEFT_MUST_CHECK;
/* Everything has been read, and nothing is left over. WEFT_DATA; WEFT_IO */
enum weft_status wf_unpack_end(struct wf_unpack *unpack) WEFT_MUST_CHECK;
void wf_unpack_close(struct wf_unpack *unpack);
