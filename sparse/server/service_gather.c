/* SPDX-License-Identifier: Apache-2.0 */
/* service_gather: what a pull holds, and how it is answered part by part: its keys, copied into
 * cells, and the rows that are gathered by them into buffers of the lane. service_pull.c decides
 * when, and service_ahead.c what comes before. Thread: the lane's. */
#include <string.h>

#include "base/assert.h"
#include "sparse/server/service_internal.h"

#define PAST_BYTES_MIN ((uint64_t)64 << 10)

/* Cells of keys. */

uint32_t
wf_keys_cells(uint64_t keys)
{
	return (uint32_t)((keys + WF_KEYS_OF_CELL - 1) / WF_KEYS_OF_CELL);
}

static uint32_t
pop_cell(struct wf_key_cells *cells)
{
	WF_ASSERT(cells->free_count > 0);
	cells->free_count--;
	uint32_t cell = cells->free_first;
	if (cell == WF_CELL_NONE) { /* the list is empty: use a cell for the first time */
		cell = cells->touched++;
	} else {
		cells->free_first = cells->cell[cell].next;
	}
	WF_ASSERT(cell < cells->count);
	cells->cell[cell].next = WF_CELL_NONE;
	return cell;
}

/* Puts the cell on the free list. Returns the one after it in the pull. */
static uint32_t
give_cell(struct wf_key_cells *cells, uint32_t cell)
{
	uint32_t next = cells->cell[cell].next;
	cells->cell[cell].next = cells->free_first;
	cells->free_first = cell;
	cells->free_count++;
	return next;
}

void
wf_keys_add(struct wf_key_cells *cells, struct wf_pull *pull, const uint64_t *key, uint32_t count)
{
	while (count > 0) {
		if (pull->last == WF_CELL_NONE || pull->write_at == WF_KEYS_OF_CELL) {
			uint32_t cell = pop_cell(cells);
			if (pull->last == WF_CELL_NONE) {
				pull->from.cell = cell;
			} else {
				cells->cell[pull->last].next = cell;
			}
			pull->last = cell;
			pull->write_at = 0;
		}
		uint32_t room = WF_KEYS_OF_CELL - pull->write_at;
		uint32_t n = count < room ? count : room;
		memcpy(&cells->cell[pull->last].key[pull->write_at], key, n * sizeof(*key));
		pull->write_at += n;
		key += n;
		count -= n;
	}
}

/* Pulls. */

void
wf_pull_drop(struct wf_sparse *sparse, struct wf_sparse_peer *own, uint32_t at)
{
	struct wf_pull *pull = own->pulls.order[at];
	WF_ASSERT(at < own->pulls.count);
	for (uint32_t cell = pull->from.cell; cell != WF_CELL_NONE;) {
		cell = give_cell(&own->pulls.cells, cell);
	}
	if (pull->is_due) {
		WF_ASSERT(sparse->due_pulls > 0);
		sparse->due_pulls--;
	}
	own->pulls.count--;
	memmove(&own->pulls.order[at], &own->pulls.order[at + 1],
		(own->pulls.count - at) * sizeof(own->pulls.order[0]));
	own->pulls.order[own->pulls.count] = pull;
}

/* Rows. */

static uint32_t
least_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Gathers a part of the rows whose keys begin at the cursor, and moves it. */
static enum weft_status
gather_some(struct wf_sparse *sparse, const struct wf_gather *what, struct wf_key_cursor *from,
	    uint32_t most, uint8_t *out, uint32_t *count)
{
	const struct wf_served *served = &sparse->served[what->table];
	const uint32_t dim = sparse->desc[what->table].set.dim;
	const uint32_t rows_most = served->half != NULL ? WF_WIDE_FLOATS / dim : UINT32_MAX;
	const uint32_t room = least_of(WF_KEYS_OF_CELL - from->at, rows_most);
	const struct wf_table_lookup lookup = {
		.key = &what->cells->cell[from->cell].key[from->at],
		.count = least_of(most, room),
		.out = served->half != NULL ? sparse->wide : (float *)(void *)out,
		.create = what->create,
		.past = what->past && served->half == NULL,
	};
	enum weft_status st = WEFT_OK;
	if (!what->ahead) {
		st = wf_table_lookup(served->table, &lookup);
	} else if (!wf_table_look_ahead(served->table, &lookup)) {
		st = WEFT_AGAIN;
	}
	if (served->half != NULL && st == WEFT_OK) {
		served->half->narrow((uint16_t *)(void *)out, sparse->wide, lookup.count * dim);
	}
	*count = (uint32_t)lookup.count;
	wf_keys_step(what->cells, from, *count);
	return st;
}

/* The keys of a part that is sent ahead count when all of them have rows: otherwise the part is
 * gathered once more when its step is applied. */
static void
count_ahead(const struct wf_sparse *sparse, const struct wf_gather *what, struct wf_key_cursor from)
{
	struct wf_table *table = sparse->served[what->table].table;
	for (uint32_t left = what->row_count, count = 0; left > 0; left -= count) {
		count = least_of(left, WF_KEYS_OF_CELL - from.at);
		wf_table_count_lookup(table, &what->cells->cell[from.cell].key[from.at], count);
		wf_keys_step(what->cells, &from, count);
	}
}

enum weft_status
wf_pull_gather(struct wf_sparse *sparse, const struct wf_gather *what, struct wf_key_cursor *from,
	       uint8_t *out)
{
	const struct wf_key_cursor first = *from;
	enum weft_status st = WEFT_OK;
	for (uint32_t left = what->row_count, count = 0; left > 0 && st == WEFT_OK; left -= count) {
		st = gather_some(sparse, what, from, left, out, &count);
		out += (size_t)count * sparse->served[what->table].row_bytes;
	}
	if (what->ahead && st == WEFT_OK) {
		count_ahead(sparse, what, first);
	}
	return st;
}

/* A trainer that copies rows out of this lane's memory does so on a core of its own: if the lane
 * wrote them into its own cache, each would wait for lines that the other has. A few rows are read
 * at once, and come sooner out of a cache. */
bool
wf_pull_goes_past(const struct wf_sparse *sparse, const struct wf_sparse_peer *own,
		  const struct wf_pull_part *part)
{
	return own->in_place &&
	       (uint64_t)part->row_count * sparse->served[part->table].row_bytes >= PAST_BYTES_MIN;
}

/* The keys before `to` are not needed any more. */
void
wf_pull_give_keys(struct wf_key_cells *cells, struct wf_pull *pull, struct wf_key_cursor to)
{
	while (pull->from.cell != to.cell) {
		pull->from.cell = give_cell(cells, pull->from.cell);
	}
	pull->from.at = to.at;
}

/* The pull's next part is answered. */
void
wf_pull_part_ends(struct wf_sparse *sparse, struct wf_sparse_peer *own, uint32_t at)
{
	struct wf_pull *pull = own->pulls.order[at];
	if (++pull->next == pull->part_count) {
		wf_pull_drop(sparse, own, at);
	}
}

void
wf_pull_answer(const struct wf_sparse *sparse, struct wf_sparse_peer *own,
	       const struct wf_pull *pull, uint32_t idx, uint32_t buffer, uint64_t step)
{
	const struct wf_pull_part *part = &pull->part[idx];
	own->answer = (struct wf_answer){
		.due = true,
		.buffer = buffer,
		.bytes = (uint64_t)part->row_count * sparse->served[part->table].row_bytes,
		.offset = part->offset,
		.tag = wf_sparse_answer_tag(pull->request_id, idx, step),
	};
}
