/* SPDX-License-Identifier: Apache-2.0 */
/* packer: a text on its way to a file, packed with gzip, with zstd or not at all. Thread: the
 * caller's. */
#pragma once

#include "base/env.h"
#include "saved/file.h"

enum wf_packing {
	WF_PACKING_NONE,
	WF_PACKING_GZIP,
	WF_PACKING_ZSTD,
};

struct wf_packer;

/* WEFT_NOMEM */
enum weft_status wf_packer_open(struct wf_env *env, enum wf_packing packing,
				struct wf_packer **out) WEFT_MUST_CHECK;
/* Begins a file, which is lent until wf_packer_finish. */
void wf_packer_begin(struct wf_packer *packer, struct wf_saved_file *file);
/* WEFT_IO */
enum weft_status wf_packer_write(struct wf_packer *packer, const void *bytes,
				 size_t count) WEFT_MUST_CHECK;
/* Writes what is left of the file. WEFT_IO */
enum weft_status wf_packer_finish(struct wf_packer *packer) WEFT_MUST_CHECK;
void wf_packer_close(struct wf_packer *packer); /* accepts NULL */
