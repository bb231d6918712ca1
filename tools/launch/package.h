/* SPDX-License-Identifier: Apache-2.0 */
/* package: the content of a folder as one stream of bytes, a tar file. Thread: main. */
#pragma once

#include <stddef.h>

#include "base/env.h"

/* A piece of the stream, at most WF_PACKAGE_PIECE_BYTES. Not OK ends the packing with this status.
 */
typedef enum weft_status wf_package_fn(void *arg, const void *bytes, size_t count);
#define WF_PACKAGE_PIECE_BYTES 65536u

/* Packs what is in `folder`, with the permissions; links stay links. WEFT_IO: it cannot be read, as
 * a whole. */
enum weft_status wf_package_pack(struct wf_env *env, const char *folder, wf_package_fn *piece,
				 void *arg) WEFT_MUST_CHECK;
