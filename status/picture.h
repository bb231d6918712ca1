/* SPDX-License-Identifier: Apache-2.0 */
/* picture: the records of a pserver at one moment (wire/watch_messages.h), wherever they come from:
 * read from its lanes, or received. Thread: the owner's. */
#pragma once

#include "base/env.h"
#include "wire/watch_messages.h"

struct wf_picture {
	struct wf_watch_record *record; /* [count], in the order in which they came */
	uint32_t count, capacity;
};

/* A zeroed one is empty. WEFT_NOMEM */
enum weft_status wf_picture_add(struct wf_picture *picture,
				const struct wf_watch_record *record) WEFT_MUST_CHECK;
void wf_picture_clear(struct wf_picture *picture); /* its memory stays */
void wf_picture_fini(struct wf_picture *picture);
/* NULL: there is none. */
const struct wf_watch_record *wf_picture_find(const struct wf_picture *picture,
					      enum wf_watch_kind kind, uint64_t lane, uint64_t idx);
