/* SPDX-License-Identifier: Apache-2.0 */
/* zip: the directory of a zip file, as PKWARE's APPNOTE 6.3 has it, with 64-bit sizes. One file, no
 * encryption. Private to this folder. Thread: the caller's. */
#pragma once

#include <stdbool.h>

#include "base/env.h"
#include "saved/file.h"

#define WF_ZIP_NAME_BYTES 256u

struct wf_zip_member {
	char name[WF_ZIP_NAME_BYTES]; /* not ended */
	size_t name_bytes;            /* a longer one is truncated */
	bool is_deflated;
	bool is_utf8;          /* the name, by its flag; otherwise it is of the code page 437 */
	uint32_t crc;          /* of its bytes */
	uint64_t stored_bytes; /* from byte `at` on, within the file */
	uint64_t bytes;        /* unpacked: at most what deflate can make of the stored bytes */
	uint64_t at;
	const char *objection; /* why it cannot be read; NULL: it can */
};

/* Called for each member in the directory's order; a failure ends the walk with it. */
typedef enum weft_status wf_zip_fn(void *arg, const struct wf_zip_member *member);

/* WEFT_DATA: file, and what is wrong with it, such as members that overlap; WEFT_IO; WEFT_NOMEM */
enum weft_status wf_zip_each(struct wf_env *env, struct wf_saved_file *file, wf_zip_fn *each,
			     void *arg) WEFT_MUST_CHECK;
