/* SPDX-License-Identifier: Apache-2.0 */
/* lead: in a large table memory of rows is taken some way before its use, and made present by the
 * helper (ahead.h) in stretches of bounded length. When it is taken depends on the number of rows
 * alone, and not at all when the cap is near: what finds no memory does not depend on how far the
 * helper is. A fixed vocabulary has no order of use: all of it is got ready, from its beginning.
 * Rows are counted as in wf_slabs_nth. Thread: the lane's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sparse/table/ahead.h"
#include "sparse/table/slabs.h"

struct wf_lead {
	struct wf_ahead ahead;
	bool is_on;          /* there is a helper */
	size_t bytes_max;    /* memory is taken and made present so far before its use */
	bool no_more;        /* memory has ended once, or is ending */
	uint32_t look_at;    /* the next look is due at this number of rows */
	uint32_t asked_from; /* rows of the stretch under way, or of the last one */
	uint32_t asked_end;
	uint32_t ready_from, ready_end; /* ready; those before are used, or were never asked for */
	uint64_t
		cleared_bytes; /* of rows in use that were not ready: the lane touches them first */
	uint64_t readied_bytes; /* of rows made ready by the helper before they were used */
};

/* `env`: its helper makes memory present; NULL: nothing is allocated ahead of its use. */
void wf_lead_init(struct wf_lead *lead, struct wf_env *env, size_t bytes_max);
/* To be called before wf_slabs_fini. Sleeps while the helper works on a stretch. Accepts
 * zeroed. */
void wf_lead_fini(struct wf_lead *lead);
/* `used` rows are in use: looks how far the helper has got, allocates memory ahead, and requests
 * the next stretch. */
void wf_lead_look(struct wf_lead *lead, struct wf_slabs *slabs, uint32_t used);

/* The nth row is used for the first time. */
static inline void
wf_lead_note_use(struct wf_lead *lead, const struct wf_slabs *slabs, uint32_t n)
{
	bool is_ready = n >= lead->ready_from && n < lead->ready_end;
	lead->cleared_bytes += is_ready ? 0 : slabs->row_bytes;
}
