/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: memory that grows as needed and is used again, for a chunk of records. Thread: each object
 * belongs to its caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"

/* Start with {0}. */
struct wf_bytes {
	uint8_t *at; /* [room] */
	size_t count;
	size_t room;
};

/* Makes room for `room` bytes in all; `count` of them are kept. WEFT_NOMEM */
enum weft_status wf_bytes_reserve(struct wf_env *env, struct wf_bytes *bytes,
				  size_t room) WEFT_MUST_CHECK;
void wf_bytes_fini(struct wf_env *env, struct wf_bytes *bytes);
