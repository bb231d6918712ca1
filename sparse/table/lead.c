/* SPDX-License-Identifier: Apache-2.0 */
/* lead: see lead.h. Thread: the lane's. */
#include "sparse/table/lead.h"

/* Memory is got ready for this part of what is used, so that small tables stay small; in stretches
 * of a bounded length, and looked after each time so many bytes of rows were used. */
#define AHEAD_SHARE 8u
#define STRETCH_BYTES ((size_t)8 << 20)
#define LOOK_BYTES ((size_t)256 << 10)
#define LEAD_SHARE 4u /* part of that distance which is left to a lane that was faster */
/* Nothing is allocated ahead that would be more than this share of what the cap leaves. */
#define SPARE_SHARE 4u

void
wf_lead_init(struct wf_lead *lead, struct wf_env *env, size_t bytes_max)
{
	*lead = (struct wf_lead){.is_on = env != NULL, .bytes_max = bytes_max};
	wf_ahead_init(&lead->ahead, env);
}

void
wf_lead_fini(struct wf_lead *lead)
{
	wf_ahead_fini(&lead->ahead);
}

static uint32_t
rows_in(const struct wf_slabs *slabs, size_t bytes)
{
	return (uint32_t)(bytes / slabs->row_bytes);
}

/* Rows that shall be ready before they are used. */
static uint32_t
rows_ahead(const struct wf_lead *lead, const struct wf_slabs *slabs, uint32_t used)
{
	size_t bytes = used * slabs->row_bytes / AHEAD_SHARE;
	return rows_in(slabs, bytes < lead->bytes_max ? bytes : lead->bytes_max);
}

/* Take memory before it is needed. */
static void
alloc_ahead(struct wf_lead *lead, struct wf_slabs *slabs, uint32_t used, uint32_t ahead)
{
	const size_t next = slabs->run_slabs * wf_slabs_slab_bytes(slabs);
	const uint64_t left = slabs->budget->cap_bytes - slabs->budget->used_bytes;

	if (lead->no_more || slabs->room_count - used >= ahead) {
		return;
	}
	lead->no_more = next > left / SPARE_SHARE || !wf_slabs_add(slabs);
}

/* Note how far the helper has got with what it was asked for. */
static void
note_ready(struct wf_lead *lead, const struct wf_slabs *slabs, uint32_t used)
{
	uint32_t end = lead->asked_from + rows_in(slabs, wf_ahead_reached(&lead->ahead));

	end = end < lead->asked_end ? end : lead->asked_end;
	if (end <= lead->ready_end) {
		return;
	}
	if (lead->asked_from > lead->ready_end) { /* those between were used meanwhile */
		lead->ready_from = lead->asked_from;
		lead->ready_end = lead->asked_from;
	}
	/* Those that the lane was faster with are its own. */
	uint32_t first =
		!wf_slabs_are_fixed(slabs) && used > lead->ready_end ? used : lead->ready_end;
	lead->readied_bytes += first < end ? (uint64_t)(end - first) * slabs->row_bytes : 0;
	lead->ready_end = end;
}

/* To wake the helper costs as much as to clear some pages. */
static size_t
least_stretch(size_t ahead_bytes)
{
	const size_t most = WF_AHEAD_LEAST_BYTES;
	size_t bytes = ahead_bytes / LEAD_SHARE;

	bytes = bytes < most ? bytes : most;
	return bytes > LOOK_BYTES ? bytes : LOOK_BYTES;
}

/* Ask for the rows from `from` to `end`, as far as they lie in one piece; for few of them only at
 * its end. */
static void
ask_for(struct wf_lead *lead, const struct wf_slabs *slabs, uint32_t from, uint32_t end,
	size_t least_bytes)
{
	uint32_t most = from + rows_in(slabs, STRETCH_BYTES) + 1;
	uint32_t piece = wf_slabs_piece_end(slabs, from);
	bool is_end = piece <= end;

	end = piece < end ? piece : end;
	end = most < end ? most : end;
	size_t bytes = (size_t)(end - from) * slabs->row_bytes;
	if (bytes < least_bytes && !is_end) {
		return; /* there will be more */
	}
	lead->asked_from = from;
	lead->asked_end = end;
	wf_ahead_begin(&lead->ahead, wf_slabs_at(slabs, wf_slabs_nth(slabs, from)), bytes);
}

/* Where the next stretch begins of a table that grows. */
static uint32_t
next_stretch(const struct wf_lead *lead, uint32_t used, uint32_t ahead)
{
	if (lead->asked_end >= used) {
		return lead->asked_end;
	}
	/* Overtaken: to work on the same pages helps nobody, so some way before it. */
	return used + (lead->asked_end > 0 ? ahead / LEAD_SHARE : 0);
}

void
wf_lead_look(struct wf_lead *lead, struct wf_slabs *slabs, uint32_t used)
{
	const bool is_fixed = wf_slabs_are_fixed(slabs);
	const uint32_t ahead = rows_ahead(lead, slabs, used);
	const size_t ahead_bytes = ahead * slabs->row_bytes;

	lead->look_at = used + rows_in(slabs, LOOK_BYTES) + 1;
	if (!lead->is_on || wf_slabs_slab_bytes(slabs) < WF_AHEAD_LEAST_BYTES ||
	    (is_fixed ? slabs->fixed_bytes : ahead_bytes) < WF_AHEAD_LEAST_BYTES) {
		return;
	}
	if (!is_fixed) {
		alloc_ahead(lead, slabs, used, ahead);
	}
	note_ready(lead, slabs, used);
	if (!wf_ahead_is_free(&lead->ahead)) {
		return;
	}
	uint32_t from = is_fixed ? lead->asked_end : next_stretch(lead, used, ahead);
	uint32_t end =
		is_fixed || slabs->room_count - used < ahead ? slabs->room_count : used + ahead;
	if (from < end) {
		ask_for(lead, slabs, from, end, least_stretch(ahead_bytes));
	}
}
