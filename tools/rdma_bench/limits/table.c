/* SPDX-License-Identifier: Apache-2.0 */
/* table: see table.h; the functions on many keys at a time are in form.c. */
#include "tools/rdma_bench/limits/table.h"

#include "tools/rdma_bench/limits/form.h"
#include "tools/rdma_bench/limits/memory.h"

static uint64_t
slots_for(uint64_t rows)
{
	uint64_t slots = 1;
	while (slots < 2 * rows) {
		slots *= 2;
	}
	return slots;
}

static size_t
rows_bytes(uint64_t rows, size_t dim)
{
	return rows * 2 * dim * sizeof(float);
}

uint64_t
wf_bare_table_bytes(uint64_t rows, size_t dim)
{
	return rows_bytes(rows, dim) + slots_for(rows) * sizeof(struct wf_bare_slot);
}

bool
wf_bare_table_open(struct wf_bare_table *table, uint64_t row_max, size_t dim)
{
	*table = (struct wf_bare_table){.form = wf_limit_form_best(),
					.row = wf_limit_map(rows_bytes(row_max, dim), false, -1),
					.dim = dim,
					.row_max = row_max};
	return table->row != NULL;
}

static void
unmap_slots(struct wf_bare_slot *slot, uint64_t slot_mask)
{
	wf_limit_unmap(slot, (slot_mask + 1) * sizeof(*slot));
}

void
wf_bare_table_close(struct wf_bare_table *table)
{
	unmap_slots(table->slot, table->slot_mask);
	wf_limit_unmap(table->row, rows_bytes(table->row_max, table->dim));
	*table = (struct wf_bare_table){0};
}

/* Room for the next keys: twice the slots where more than half would be used. */
static bool
make_room(struct wf_bare_table *table, size_t count)
{
	struct wf_bare_slot *old = table->slot;
	const uint64_t old_mask = table->slot_mask;
	const uint64_t slots = slots_for(table->row_count + count);

	if (old != NULL && slots <= old_mask + 1) {
		return true;
	}
	struct wf_bare_slot *slot = wf_limit_map(slots * sizeof(*slot), false, -1);
	if (slot == NULL) {
		return false;
	}
	table->form->grow(table, slot, slots);
	unmap_slots(old, old_mask);
	return true;
}

bool
wf_bare_table_insert(struct wf_bare_table *table, const uint64_t *key, size_t count)
{
	if (!make_room(table, count)) {
		return false;
	}
	table->form->insert(table, key, count);
	return true;
}
