/* SPDX-License-Identifier: Apache-2.0 */
/* rows: see rows.h. Thread: the lane's. */
#include "sparse/table/rows.h"

#include <string.h>

#include "base/assert.h"

#define ALIGN sizeof(uint64_t)
#define SLABS_AT_FIRST 16u
#define HUGE_BYTES ((size_t)2 << 20)
#define RUN_SLABS_MAX 16u
#define RUNS_AT_ONCE                                                                               \
	2u /* of slabs that are allocated one by one, before runs begin: a run is a third more */
#define SMALL_BYTES ((size_t)64 << 10) /* about, of the first slab */

/* Memory is got ready for this part of what is used, so that small tables stay small; in stretches
 * of a bounded length, and looked after each time so many bytes of rows were used. */
#define AHEAD_SHARE 8u
#define STRETCH_BYTES ((size_t)8 << 20)
#define LOOK_BYTES ((size_t)256 << 10)
#define LEAD_SHARE 4u /* part of that distance which is left to a lane that was faster */
/* Memory is not allocated ahead when it would be more than this part of the rest of the cap. */
#define SPARE_SHARE 4u

WF_STATIC_ASSERT(RUN_SLABS_MAX <= SLABS_AT_FIRST, "one doubling makes room for a run");
WF_STATIC_ASSERT(sizeof(struct wf_row_head) == 16, "two of them share a quarter of a line");

static size_t
slab_bytes_of(const struct wf_rows *rows)
{
	return rows->row_bytes << rows->slab_shift;
}

/* Rows of slab `nth`. */
static uint32_t
rows_of_slab(const struct wf_rows *rows, uint32_t nth)
{
	return (uint32_t)1 << (nth < rows->small_count ? rows->small_shift + nth
						       : rows->slab_shift);
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
wf_rows_init(struct wf_rows *rows, struct wf_budget *budget, const struct wf_rows_opts *opts)
{
	WF_ASSERT(opts->value_floats > 0);
	*rows = (struct wf_rows){.budget = budget, .opts = *opts, .free_first = WF_ROW_NONE};
	rows->head_offset = opts->with_score ? sizeof(struct wf_row_score) : 0;
	size_t bytes =
		rows->head_offset + sizeof(struct wf_row_head) + opts->value_floats * sizeof(float);
	rows->row_bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	while (2 * slab_bytes_of(rows) <= opts->slab_bytes) {
		rows->slab_shift++;
	}
	while (rows->small_shift < rows->slab_shift &&
	       2 * (rows->row_bytes << rows->small_shift) <= SMALL_BYTES) {
		rows->small_shift++;
	}
	rows->small_count = rows->slab_shift - rows->small_shift;
	rows->run_slabs = run_of(slab_bytes_of(rows));
}

void
wf_rows_fini(struct wf_rows *rows)
{
	for (uint32_t i = 0, slabs = 1; i < rows->slab_count && rows->fixed_bytes == 0;
	     i += slabs) {
		slabs = i >= rows->run_first && i < rows->run_end ? rows->run_slabs : 1;
		wf_budget_give(rows->budget, rows->slab[i],
			       (size_t)slabs * rows_of_slab(rows, i) * rows->row_bytes);
	}
	if (rows->fixed_bytes > 0) {
		wf_budget_give(rows->budget, rows->slab[0], rows->fixed_bytes);
	}
	if (rows->slab != NULL) {
		wf_budget_give(rows->budget, rows->slab, rows->slab_capacity * sizeof(char *));
	}
	*rows = (struct wf_rows){.free_first = WF_ROW_NONE};
}

static uint32_t
rows_in(const struct wf_rows *rows, size_t bytes)
{
	return (uint32_t)(bytes / rows->row_bytes);
}

/* Rows that shall be ready before they are used. */
static uint32_t
ahead_count(const struct wf_rows *rows)
{
	size_t bytes = rows->used_count * rows->row_bytes / AHEAD_SHARE;
	return rows_in(rows,
		       bytes < rows->opts.ahead_bytes_max ? bytes : rows->opts.ahead_bytes_max);
}

static bool
grow_slab_table(struct wf_rows *rows, uint32_t slabs)
{
	uint32_t capacity = rows->slab_capacity == 0 ? SLABS_AT_FIRST : 2 * rows->slab_capacity;
	void *slab = rows->slab;
	while (capacity < slabs) {
		capacity *= 2;
	}
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

/* `bytes` for `slabs` slabs, which follow each other. */
static char *
alloc_slabs(struct wf_rows *rows, uint32_t slabs, size_t bytes)
{
	if (rows->slab_count + slabs > rows->slab_capacity &&
	    !grow_slab_table(rows, rows->slab_count + slabs)) {
		return NULL;
	}
	char *base = wf_budget_alloc(rows->budget, bytes);
	if (base == NULL) {
		return NULL;
	}
	if (bytes >= WF_AHEAD_LEAST_BYTES) {
		wf_ahead_place(base, bytes, rows->opts.node);
	}
	for (uint32_t i = 0; i < slabs; i++) {
		rows->slab[rows->slab_count++] = base + i * slab_bytes_of(rows);
	}
	return base;
}

static bool
add_slabs(struct wf_rows *rows, uint32_t slabs)
{
	const uint32_t count = slabs * rows_of_slab(rows, rows->slab_count);

	if (!has_numbers(rows, slabs) ||
	    alloc_slabs(rows, slabs, (size_t)count * rows->row_bytes) == NULL) {
		return false;
	}
	rows->room_count += count;
	return true;
}

static bool
add_run(struct wf_rows *rows)
{
	const uint32_t first = rows->slab_count;

	if (rows->no_runs || rows->run_slabs == 1 ||
	    first < rows->small_count + RUNS_AT_ONCE * rows->run_slabs) {
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

/* Memory that is got ready. */

/* Take memory before it is needed. By the number of rows alone: what finds no memory at the end
 * does not depend on the helper. */
static void
alloc_ahead(struct wf_rows *rows, uint32_t ahead)
{
	const size_t next = rows->run_slabs * slab_bytes_of(rows);
	const uint64_t left = rows->budget->cap_bytes - rows->budget->used_bytes;

	if (rows->no_more_ahead || rows->room_count - rows->used_count >= ahead) {
		return;
	}
	rows->no_more_ahead = next > left / SPARE_SHARE || !add_slab(rows);
}

/* Records how far the helper has got with its request. */
static void
note_ready(struct wf_rows *rows)
{
	uint32_t end = rows->asked_from + rows_in(rows, wf_ahead_reached(rows->opts.ahead));

	end = end < rows->asked_end ? end : rows->asked_end;
	if (end <= rows->ready_end) {
		return;
	}
	if (rows->asked_from > rows->ready_end) { /* those between were used meanwhile */
		rows->ready_from = rows->asked_from;
		rows->ready_end = rows->asked_from;
	}
	/* Those that the lane was faster with are its own. */
	uint32_t first = rows->fixed_bytes == 0 && rows->used_count > rows->ready_end
				 ? rows->used_count
				 : rows->ready_end;
	rows->readied_bytes += first < end ? (uint64_t)(end - first) * rows->row_bytes : 0;
	rows->ready_end = end;
}

/* Where the piece of memory ends that the nth row is in. */
static uint32_t
piece_end(const struct wf_rows *rows, uint32_t n)
{
	uint32_t slab = wf_rows_nth(rows, n) >> rows->slab_shift;
	uint32_t slab_rows = rows_of_slab(rows, slab);
	uint32_t first = n - (wf_rows_nth(rows, n) & (slab_rows - 1));
	bool in_run = slab >= rows->run_first && slab < rows->run_end;
	uint32_t more =
		in_run ? (rows->run_slabs - 1 - (slab - rows->run_first) % rows->run_slabs) : 0;
	return rows->fixed_bytes > 0 ? rows->room_count : first + (1 + more) * slab_rows;
}

/* To wake the helper costs as much as to clear some pages. */
static size_t
least_stretch(const struct wf_rows *rows)
{
	const size_t most = WF_AHEAD_LEAST_BYTES;
	size_t bytes = ahead_count(rows) * rows->row_bytes / LEAD_SHARE;

	bytes = bytes < most ? bytes : most;
	return bytes > LOOK_BYTES ? bytes : LOOK_BYTES;
}

/* Ask for the rows from `from` to `end`, as far as they lie in one piece. */
static void
ask_for(struct wf_rows *rows, uint32_t from, uint32_t end)
{
	uint32_t most = from + rows_in(rows, STRETCH_BYTES) + 1;
	uint32_t piece = piece_end(rows, from);
	bool is_end = piece <= end;

	end = piece < end ? piece : end;
	end = most < end ? most : end;
	size_t bytes = (size_t)(end - from) * rows->row_bytes;
	if (bytes < least_stretch(rows) && !is_end) {
		return; /* there will be more */
	}
	rows->asked_from = from;
	rows->asked_end = end;
	struct wf_row_head *head = wf_row_at(rows, wf_rows_nth(rows, from));
	wf_ahead_begin(rows->opts.ahead, (char *)head - rows->head_offset, bytes);
}

void
wf_rows_look_ahead(struct wf_rows *rows)
{
	const bool is_fixed = rows->fixed_bytes > 0;
	const uint32_t ahead = is_fixed ? 0 : ahead_count(rows);
	const size_t reach = is_fixed ? rows->fixed_bytes : ahead * rows->row_bytes;

	rows->look_at = rows->used_count + rows_in(rows, LOOK_BYTES) + 1;
	if (rows->opts.ahead == NULL || reach < WF_AHEAD_LEAST_BYTES ||
	    slab_bytes_of(rows) < WF_AHEAD_LEAST_BYTES) {
		return;
	}
	if (!is_fixed) {
		alloc_ahead(rows, ahead);
	}
	note_ready(rows);
	if (!wf_ahead_is_free(rows->opts.ahead)) {
		return;
	}
	/* A fixed vocabulary has no order of use: all of it, from its beginning. */
	uint32_t from = rows->asked_end;
	uint32_t end = rows->room_count - rows->used_count < ahead ? rows->room_count
								   : rows->used_count + ahead;
	if (!is_fixed && from < rows->used_count) {
		/* The lane has overtaken the helper: working on the same pages helps neither, so it
		 * continues some way ahead. */
		from = rows->used_count + (from > 0 ? ahead / LEAD_SHARE : 0);
	}
	if (from < end) {
		ask_for(rows, from, end);
	}
}

void
wf_rows_first_use(struct wf_rows *rows, uint32_t row)
{
	rows->cleared_bytes += row < rows->ready_end ? 0 : rows->row_bytes;
	rows->live_count++;
}

/* The nth row is used for the first time. */
static void
note_first_use(struct wf_rows *rows, uint32_t n)
{
	bool is_ready = n >= rows->ready_from && n < rows->ready_end;
	rows->cleared_bytes += is_ready ? 0 : rows->row_bytes;
}

uint32_t
wf_rows_alloc(struct wf_rows *rows)
{
	uint32_t row = rows->free_first;

	if (row != WF_ROW_NONE) {
		struct wf_row_head *head = wf_row_at(rows, row);
		WF_ASSERT(head->born == 0);
		rows->free_first = (uint32_t)head->key;
		memset((char *)head - rows->head_offset, 0, rows->row_bytes);
		rows->live_count++;
		return row;
	}
	if (rows->used_count == rows->room_count && !add_slab(rows)) {
		return WF_ROW_NONE;
	}
	note_first_use(rows, rows->used_count);
	row = wf_rows_nth(rows, rows->used_count++);
	if (rows->used_count >= rows->look_at) {
		wf_rows_look_ahead(rows);
	}
	rows->live_count++;
	return row;
}

void
wf_rows_give(struct wf_rows *rows, uint32_t row)
{
	struct wf_row_head *head = wf_row_at(rows, row);

	WF_ASSERT(row >> rows->slab_shift < rows->slab_count);
	WF_ASSERT(rows->live_count > 0);
	*head = (struct wf_row_head){.key = rows->free_first};
	rows->free_first = row;
	rows->live_count--;
}

bool
wf_rows_alloc_all(struct wf_rows *rows, uint32_t count)
{
	const uint32_t slabs = (uint32_t)((((uint64_t)count - 1) >> rows->slab_shift) + 1);
	const size_t bytes = count * rows->row_bytes;

	WF_ASSERT(count > 0 && rows->used_count == 0);
	rows->small_shift = rows->slab_shift;
	rows->small_count = 0;
	if (alloc_slabs(rows, slabs, bytes) == NULL) {
		return false;
	}
	rows->fixed_bytes = bytes;
	rows->room_count = count;
	rows->used_count = count;
	wf_rows_look_ahead(rows);
	return true;
}
