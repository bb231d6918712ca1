/* SPDX-License-Identifier: Apache-2.0 */
/* rows: see rows.h. Thread: the lane's. */
#include "sparse/server/rows.h"

#include <string.h>

#include "base/assert.h"

#define ALIGN sizeof(uint64_t)
#define SLABS_AT_FIRST 16u
#define HUGE_BYTES ((size_t)2 << 20)
#define RUN_SLABS_MAX 16u
#define RUNS_AT_ONCE                                                                               \
	2u /* of slabs that came one by one, before runs begin: a run is a third more */

WF_STATIC_ASSERT(RUN_SLABS_MAX <= SLABS_AT_FIRST, "one doubling makes room for a run");
WF_STATIC_ASSERT(sizeof(struct wf_row_head) == 16, "two of them share a quarter of a line");

static size_t
slab_bytes_of(const struct wf_rows *rows)
{
	return rows->row_bytes << rows->slab_shift;
}

/* The fewest slabs that end with a huge page. */
static uint32_t
run_of(size_t slab_bytes)
{
	uint32_t slabs = 1;

	while (slabs < RUN_SLABS_MAX && slabs * slab_bytes % HUGE_BYTES != 0) {
		slabs *= 2;
	}
	return slab_bytes < HUGE_BYTES ? 1 : slabs;
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
	rows->run_slabs = run_of(slab_bytes_of(rows));
}

void
wf_rows_fini(struct wf_rows *rows)
{
	for (uint32_t i = 0, slabs = 1; i < rows->slab_count; i += slabs) {
		slabs = i >= rows->run_first && i < rows->run_end ? rows->run_slabs : 1;
		wf_budget_give(rows->budget, rows->slab[i], slabs * slab_bytes_of(rows));
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

/* Row numbers have 32 bits, and the last one means none. */
static bool
has_numbers(const struct wf_rows *rows, uint32_t slabs)
{
	return (uint64_t)rows->slab_count + slabs <= (uint64_t)WF_ROW_NONE >> rows->slab_shift;
}

static bool
add_slabs(struct wf_rows *rows, uint32_t slabs)
{
	const size_t bytes = slab_bytes_of(rows);

	if (!has_numbers(rows, slabs)) {
		return false;
	}
	if (rows->slab_count + slabs > rows->slab_capacity && !grow_slab_table(rows)) {
		return false;
	}
	char *base = wf_budget_take(rows->budget, slabs * bytes);
	if (base == NULL) {
		return false;
	}
	for (uint32_t i = 0; i < slabs; i++) {
		rows->slab[rows->slab_count++] = base + i * bytes;
	}
	return true;
}

static bool
add_run(struct wf_rows *rows)
{
	const uint32_t first = rows->slab_count;

	if (rows->no_runs || rows->run_slabs == 1 || first < RUNS_AT_ONCE * rows->run_slabs) {
		return false;
	}
	if (!add_slabs(rows, rows->run_slabs)) {
		rows->no_runs = true;
		return false;
	}
	rows->run_first = rows->run_end == 0 ? first : rows->run_first;
	rows->run_end = rows->slab_count;
	return true;
}

static bool
add_slab(struct wf_rows *rows)
{
	return add_run(rows) || add_slabs(rows, 1);
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
