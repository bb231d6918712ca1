/* SPDX-License-Identifier: Apache-2.0 */
/* rows: see rows.h. Thread: the lane's. */
#include "sparse/server/rows.h"

#include <string.h>

#include "base/assert.h"

#define ALIGN sizeof(uint64_t)
#define SLABS_AT_FIRST 16u

WF_STATIC_ASSERT(sizeof(struct wf_row_head) == 16, "two of them share a quarter of a line");

static size_t
slab_bytes_of(const struct wf_rows *rows)
{
	return rows->row_bytes << rows->slab_shift;
}

void
wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, size_t value_floats, bool with_score,
	     size_t slab_bytes)
{
	WF_ASSERT(value_floats > 0);
	*rows = (struct wf_rows){.budget = budget, .free_first = WF_ROW_NONE};
	rows->value_floats = value_floats;
	rows->head_offset = with_score ? sizeof(struct wf_row_score) : 0;
	size_t bytes =
		rows->head_offset + sizeof(struct wf_row_head) + value_floats * sizeof(float);
	rows->row_bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	while (2 * slab_bytes_of(rows) <= slab_bytes) {
		rows->slab_shift++;
	}
}

void
wf_rows_fini(struct wf_rows *rows)
{
	for (uint32_t i = 0; i < rows->slab_count; i++) {
		wf_budget_give(rows->budget, rows->slab[i], slab_bytes_of(rows));
	}
	if (rows->slab != NULL) {
		wf_budget_give(rows->budget, rows->slab, rows->slab_capacity * sizeof(char *));
	}
	*rows = (struct wf_rows){.free_first = WF_ROW_NONE};
}

static bool
grow_slab_table(struct wf_rows *rows)
{
	uint32_t capacity = rows->slab_capacity == 0 ? SLABS_AT_FIRST : 2 * rows->slab_capacity;
	void *slab = rows->slab;
	if (!wf_budget_grow(rows->budget, &slab, rows->slab_capacity * sizeof(char *),
			    capacity * sizeof(char *))) {
		return false;
	}
	rows->slab = slab;
	rows->slab_capacity = capacity;
	return true;
}

static bool
add_slab(struct wf_rows *rows)
{
	/* Row numbers have 32 bits, and the last one means none. */
	if ((uint64_t)rows->slab_count + 1 > (uint64_t)WF_ROW_NONE >> rows->slab_shift) {
		return false;
	}
	if (rows->slab_count == rows->slab_capacity && !grow_slab_table(rows)) {
		return false;
	}
	char *slab = wf_budget_take(rows->budget, slab_bytes_of(rows));
	if (slab == NULL) {
		return false;
	}
	rows->slab[rows->slab_count++] = slab;
	return true;
}

uint32_t
wf_rows_take(struct wf_rows *rows)
{
	uint32_t row = rows->free_first;

	if (row != WF_ROW_NONE) {
		struct wf_row_head *head = wf_row_at(rows, row);
		WF_ASSERT(head->born == 0);
		rows->free_first = (uint32_t)head->key;
		memset((char *)head - rows->head_offset, 0, rows->row_bytes);
	} else {
		if (rows->used_count == (uint64_t)rows->slab_count << rows->slab_shift &&
		    !add_slab(rows)) {
			return WF_ROW_NONE;
		}
		row = rows->used_count++;
	}
	rows->live_count++;
	return row;
}

void
wf_rows_give(struct wf_rows *rows, uint32_t row)
{
	struct wf_row_head *head = wf_row_at(rows, row);

	WF_ASSERT(row < rows->used_count);
	WF_ASSERT(rows->live_count > 0);
	*head = (struct wf_row_head){.key = rows->free_first};
	rows->free_first = row;
	rows->live_count--;
}

bool
wf_rows_take_all(struct wf_rows *rows, uint32_t count)
{
	WF_ASSERT(rows->used_count == 0);
	while ((uint64_t)rows->slab_count << rows->slab_shift < count) {
		if (!add_slab(rows)) {
			return false;
		}
	}
	rows->used_count = count;
	return true;
}
