/* SPDX-License-Identifier: Apache-2.0 */
/* rows: see rows.h. Thread: the lane's. */
#include "sparse/table/rows.h"

#include <string.h>

#include "base/assert.h"

#define ALIGN sizeof(uint64_t)

static size_t
round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static size_t
row_bytes(size_t value_bytes, bool with_score)
{
	return sizeof(struct wf_row_head) + value_bytes +
	       (with_score ? sizeof(struct wf_row_score) : 0);
}

void
wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, const struct wf_rows_opts *opts)
{
	const size_t value_bytes = round_up(opts->value_floats * sizeof(float), ALIGN);

	WF_ASSERT(opts->value_floats > 0);
	*rows = (struct wf_rows){.value_bytes = value_bytes,
				 .with_score = opts->with_score,
				 .free_first = WF_ROW_NONE};
	wf_slabs_init(&rows->slabs, budget, row_bytes(value_bytes, opts->with_score),
		      opts->slab_bytes, opts->node);
	wf_lead_init(&rows->lead, opts->helper, opts->ahead_bytes_max);
}

void
wf_rows_fini(struct wf_rows *rows)
{
	wf_lead_fini(&rows->lead);
	wf_slabs_fini(&rows->slabs);
	*rows = (struct wf_rows){.free_first = WF_ROW_NONE};
}

void
wf_rows_look_ahead(struct wf_rows *rows)
{
	if (rows->lead.ready_end < rows->slabs.room_count) {
		wf_lead_look(&rows->lead, &rows->slabs, rows->used_count);
	}
}

void
wf_rows_first_use(struct wf_rows *rows, uint32_t row)
{
	wf_lead_note_use(&rows->lead, &rows->slabs, row);
	rows->live_count++;
}

static void
clear_row(const struct wf_rows *rows, struct wf_row_head *head)
{
	memset(wf_row_values(head), 0, rows->value_bytes);
	if (rows->with_score) {
		*wf_row_score(rows, head) = (struct wf_row_score){0};
	}
	*head = (struct wf_row_head){0};
}

uint32_t
wf_rows_alloc(struct wf_rows *rows)
{
	uint32_t row = rows->free_first;

	if (row != WF_ROW_NONE) {
		struct wf_row_head *head = wf_row_at(rows, row);
		WF_ASSERT(head->born == 0);
		rows->free_first = (uint32_t)head->key;
		clear_row(rows, head);
		rows->live_count++;
		return row;
	}
	if (rows->used_count == rows->slabs.room_count && !wf_slabs_add(&rows->slabs)) {
		return WF_ROW_NONE;
	}
	wf_lead_note_use(&rows->lead, &rows->slabs, rows->used_count);
	row = wf_rows_nth(rows, rows->used_count++);
	if (rows->used_count >= rows->lead.look_at) {
		wf_lead_look(&rows->lead, &rows->slabs, rows->used_count);
	}
	rows->live_count++;
	return row;
}

void
wf_rows_give(struct wf_rows *rows, uint32_t row)
{
	struct wf_row_head *head = wf_row_at(rows, row);

	WF_ASSERT(row >> rows->slabs.slab_shift < rows->slabs.count);
	WF_ASSERT(rows->live_count > 0);
	*head = (struct wf_row_head){.key = rows->free_first};
	rows->free_first = row;
	rows->live_count--;
}

bool
wf_rows_alloc_all(struct wf_rows *rows, uint32_t count)
{
	WF_ASSERT(rows->used_count == 0);
	if (!wf_slabs_add_all(&rows->slabs, count)) {
		return false;
	}
	rows->used_count = count;
	wf_lead_look(&rows->lead, &rows->slabs, count);
	return true;
}
