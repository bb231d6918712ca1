/* SPDX-License-Identifier: Apache-2.0 */
/* slabs: see slabs.h. Thread: the lane's. */
#include "sparse/table/slabs.h"

#include "base/assert.h"
#include "base/ahead.h"

#define SLABS_AT_FIRST 16u
#define HUGE_BYTES ((size_t)2 << 20)
#define RUN_SLABS_MAX 16u
/* Runs' worth of slabs that come one by one before runs begin: a run is a third more. */
#define RUNS_AT_ONCE 2u
#define SMALL_BYTES ((size_t)64 << 10) /* about, of the first slab */

WF_STATIC_ASSERT(RUN_SLABS_MAX <= SLABS_AT_FIRST, "one doubling makes room for a run");

size_t
wf_slabs_slab_bytes(const struct wf_slabs *slabs)
{
	return slabs->row_bytes << slabs->slab_shift;
}

/* Rows of slab `nth`. */
static uint32_t
rows_of_slab(const struct wf_slabs *slabs, uint32_t nth)
{
	return (uint32_t)1 << (nth < slabs->small_count ? slabs->small_shift + nth
							: slabs->slab_shift);
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
wf_slabs_init(struct wf_slabs *slabs, struct wf_budget *budget, size_t row_bytes, size_t slab_bytes,
	      unsigned node)
{
	WF_ASSERT(row_bytes > 0 && row_bytes % sizeof(uint64_t) == 0);
	*slabs = (struct wf_slabs){.budget = budget, .node = node, .row_bytes = row_bytes};
	while (2 * wf_slabs_slab_bytes(slabs) <= slab_bytes) {
		slabs->slab_shift++;
	}
	while (slabs->small_shift < slabs->slab_shift &&
	       2 * (row_bytes << slabs->small_shift) <= SMALL_BYTES) {
		slabs->small_shift++;
	}
	slabs->small_count = slabs->slab_shift - slabs->small_shift;
	slabs->run_slabs = run_of(wf_slabs_slab_bytes(slabs));
}

/* How many slabs from `first` on were allocated together with it. */
static uint32_t
slabs_taken_with(const struct wf_slabs *slabs, uint32_t first)
{
	return first >= slabs->run_first && first < slabs->run_end ? slabs->run_slabs : 1;
}

void
wf_slabs_fini(struct wf_slabs *slabs)
{
	if (wf_slabs_are_fixed(slabs)) {
		wf_budget_give(slabs->budget, slabs->slab[0], slabs->fixed_bytes);
		slabs->count = 0;
	}
	for (uint32_t i = 0; i < slabs->count;) {
		uint32_t taken = slabs_taken_with(slabs, i);
		wf_budget_give(slabs->budget, slabs->slab[i],
			       (size_t)taken * rows_of_slab(slabs, i) * slabs->row_bytes);
		i += taken;
	}
	if (slabs->slab != NULL) {
		wf_budget_give(slabs->budget, slabs->slab, slabs->capacity * sizeof(char *));
	}
	*slabs = (struct wf_slabs){0};
}

static bool
reserve_entries(struct wf_slabs *slabs, uint32_t more)
{
	const uint64_t needed = (uint64_t)slabs->count + more;
	if (needed <= slabs->capacity) {
		return true;
	}
	uint64_t capacity = slabs->capacity == 0 ? SLABS_AT_FIRST : 2 * (uint64_t)slabs->capacity;
	void *slab = slabs->slab;
	while (capacity < needed) {
		capacity *= 2;
	}
	capacity = capacity < UINT32_MAX ? capacity : UINT32_MAX;
	if (!wf_budget_grow(slabs->budget, &slab, slabs->capacity * sizeof(char *),
			    capacity * sizeof(char *))) {
		return false;
	}
	slabs->slab = slab;
	slabs->capacity = (uint32_t)capacity;
	return true;
}

/* Row numbers have 32 bits, and the last one means none. */
static bool
has_numbers(const struct wf_slabs *slabs, uint32_t more)
{
	return (uint64_t)slabs->count + more <= (uint64_t)WF_ROW_NONE >> slabs->slab_shift;
}

/* `rows` in `more` slabs, which follow each other. */
static bool
alloc_slabs(struct wf_slabs *slabs, uint32_t more, uint32_t rows)
{
	const size_t bytes = (size_t)rows * slabs->row_bytes;

	if (!reserve_entries(slabs, more)) {
		return false;
	}
	char *base = wf_budget_alloc(slabs->budget, bytes);
	if (base == NULL) {
		return false;
	}
	if (bytes >= WF_AHEAD_LEAST_BYTES) {
		wf_ahead_place(base, bytes, slabs->node);
	}
	for (uint32_t i = 0; i < more; i++) {
		slabs->slab[slabs->count++] = base + i * wf_slabs_slab_bytes(slabs);
	}
	slabs->room_count += rows;
	return true;
}

static bool
add_slabs(struct wf_slabs *slabs, uint32_t more)
{
	return has_numbers(slabs, more) &&
	       alloc_slabs(slabs, more, more * rows_of_slab(slabs, slabs->count));
}

static bool
add_run(struct wf_slabs *slabs)
{
	const uint32_t first = slabs->count;

	if (slabs->no_runs || slabs->run_slabs == 1 ||
	    first < slabs->small_count + RUNS_AT_ONCE * slabs->run_slabs) {
		return false;
	}
	if (!add_slabs(slabs, slabs->run_slabs)) {
		slabs->no_runs = true;
		return false;
	}
	slabs->run_first = slabs->run_end == 0 ? first : slabs->run_first;
	slabs->run_end = slabs->count;
	return true;
}

bool
wf_slabs_add(struct wf_slabs *slabs)
{
	return add_run(slabs) || add_slabs(slabs, 1);
}

bool
wf_slabs_add_all(struct wf_slabs *slabs, uint32_t count)
{
	const uint32_t more = (uint32_t)((((uint64_t)count - 1) >> slabs->slab_shift) + 1);

	WF_ASSERT(count > 0 && slabs->count == 0);
	slabs->small_shift = slabs->slab_shift;
	slabs->small_count = 0;
	if (!alloc_slabs(slabs, more, count)) {
		return false;
	}
	slabs->fixed_bytes = count * slabs->row_bytes;
	return true;
}

uint32_t
wf_slabs_piece_end(const struct wf_slabs *slabs, uint32_t n)
{
	const uint32_t row = wf_slabs_nth(slabs, n);
	const uint32_t slab = row >> slabs->slab_shift;
	const uint32_t slab_rows = rows_of_slab(slabs, slab);
	const uint32_t taken = slabs_taken_with(slabs, slab);
	const uint32_t behind = taken == 1 ? 0 : taken - 1 - (slab - slabs->run_first) % taken;

	if (wf_slabs_are_fixed(slabs)) {
		return slabs->room_count;
	}
	return n - (row & (slab_rows - 1)) + (1 + behind) * slab_rows;
}
