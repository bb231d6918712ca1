/* SPDX-License-Identifier: Apache-2.0 */
/* lead: a large table allocates memory for rows some way ahead of its use, and the helper (ahead.h)
 * makes it present in stretches of bounded length. When it is allocated depends on the number of
 * rows alone, and near the cap it is not, so that how far the helper has got does not decide which
 * row finds no memory. A fixed vocabulary has no order of use: all of it is prepared, from its
 * beginning. Rows are counted as in wf_slabs_nth. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ahead.h"
#include "sparse/table/slabs.h"

struct wf_lead {
	struct wf_ahead ahead;
	bool is_on;          /* there is a helper */
	size_t bytes_max;    /* how far ahead of its use memory is made present */
	bool no_more;        /* an allocation has failed, or the cap is near */
	uint32_t look_at;    /* the next look is due at this number of rows */
	uint32_t asked_from; /* rows of the stretch under way, or of the last one */
	uint32_t asked_end;
	uint32_t ready_from, ready_end; /* rows that are ready; no earlier one is waiting */
	uint64_t
		cleared_bytes; /* of rows in use that were not ready: the lane touches them first */
	uint64_t readied_bytes; /* of rows made ready by the helper before they were used */
};

/* `env`: its helper makes memory present; NULL: nothing is allocated ahead of its use. */
void wf_lead_init(struct wf_lead *lead, struct wf_env *env, size_t bytes_max);
/* To be called before wf_slabs_fini. Sleeps while the helper works on a stretch. Accepts a zeroed
 * struct. */
void wf_lead_fini(struct wf_lead *lead);
/* Called when `used` rows are in use: looks how far the helper has got, allocates memory ahead, and
 * requests the next stretch. */
void wf_lead_look(struct wf_lead *lead, struct wf_slabs *slabs, uint32_t used);

/* Counts the first use of the nth row. */
static inline void
wf_lead_note_use(struct wf_lead *lead, const struct wf_slabs *slabs, uint32_t n)
{
	bool is_ready = n >= lead->ready_from && n < lead->ready_end;
	lead->cleared_bytes += is_ready ? 0 : slabs->row_bytes;
}
