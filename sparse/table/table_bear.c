/* SPDX-License-Identifier: Apache-2.0 */
/* table_bear: new rows, one at a time or those of a chunk, with their first values. Thread: the
 * lane's. */
#include "base/assert.h"
#include "sparse/table/table_internal.h"

void
wf_table_first_values(const struct wf_table *t, uint64_t key, float *out)
{
	if (t->opts.init.kind == WF_INIT_UNIFORM) {
		t->rest.kernels->uniform(&t->uniform, &key, &out, 1, t->opts.dim);
	} else {
		wf_init_values(&t->opts.init, key, out, t->opts.dim);
	}
}

static void
fill_row(const struct wf_table *t, struct wf_row_head *head, uint64_t key)
{
	head->key = key;
	head->born = t->step + 1;
	if (t->opts.init.kind == WF_INIT_ZERO) {
		return; /* as all of a new row is */
	}
	if (wf_rest_is_half(&t->rest)) { /* state is 0 in both */
		wf_table_first_values(t, key, t->fresh);
		wf_rest_narrow(&t->rest, wf_row_values(head), t->fresh);
	} else {
		wf_table_first_values(t, key, wf_row_values(head));
	}
}

bool
wf_table_bears_chunks(const struct wf_table *t)
{
	return !wf_table_is_fixed(t) && !t->evict.can_expire && !t->evict.opts.at_cap;
}

#define ROWS_SOON 8u

/* A row that is in the index and has no first values yet. */
static struct wf_row_head *
bear_bare(struct wf_table *t, uint64_t key)
{
	uint32_t row = wf_rows_alloc(&t->rows);

	if (row == WF_ROW_NONE) {
		return NULL;
	}
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	/* New rows lie behind each other: the heads of some that will be born soon. */
	__builtin_prefetch((const void *)((uintptr_t)head + ROWS_SOON * t->rows.slabs.row_bytes),
			   1);
	head->key = key;
	if (!wf_index_insert(&t->index, &t->rows, wf_index_hash(&t->index, key), row)) {
		wf_rows_give(&t->rows, row);
		return NULL;
	}
	head->born = t->step + 1;
	return head;
}

/* First values of rows just born, which are all 0 so far. */
static void
fill_rows(const struct wf_table *t, const uint64_t *key, struct wf_row_head *const *row,
	  size_t count)
{
	float *values[WF_CHUNK_KEYS];

	if (t->opts.init.kind == WF_INIT_ZERO) {
		return;
	}
	if (t->opts.init.kind == WF_INIT_UNIFORM && !wf_rest_is_half(&t->rest)) {
		for (size_t i = 0; i < count; i++) {
			values[i] = wf_row_values(row[i]);
		}
		t->rest.kernels->uniform(&t->uniform, key, values, count, t->opts.dim);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		fill_row(t, row[i], key[i]);
	}
}

/* Missing keys of a chunk, one bit each: one without a bit occurs for the first time. */
#define SEEN_WORDS 16u

static bool
was_seen(uint64_t seen[SEEN_WORDS], uint64_t key)
{
	const uint64_t at = wf_key_mix(key) % (64u * SEEN_WORDS);
	const uint64_t bit = (uint64_t)1 << at % 64u;
	const bool was = (seen[at / 64u] & bit) != 0;

	seen[at / 64u] |= bit;
	return was;
}

size_t
wf_table_bear_chunk(struct wf_table *t, const uint64_t *key, size_t count, struct wf_row_head **row)
{
	uint64_t seen[SEEN_WORDS] = {0};
	uint64_t fresh_key[WF_CHUNK_KEYS];
	struct wf_row_head *fresh[WF_CHUNK_KEYS];
	size_t born = 0;
	size_t refused = 0;

	WF_ASSERT(count <= WF_CHUNK_KEYS && wf_table_bears_chunks(t));
	for (size_t i = 0; i < count; i++) {
		if (row[i] != NULL) {
			continue;
		}
		uint32_t number = was_seen(seen, key[i]) ? wf_table_find(t, key[i]) : WF_ROW_NONE;
		if (number != WF_ROW_NONE) { /* created just now: the key occurs twice */
			row[i] = wf_row_at(&t->rows, number);
			continue;
		}
		struct wf_row_head *head = bear_bare(t, key[i]);
		refused += head == NULL;
		if (head != NULL) {
			row[i] = head;
			fresh_key[born] = key[i];
			fresh[born++] = row[i];
		}
	}
	fill_rows(t, fresh_key, fresh, born);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_BORN, born);
	wf_stats_add(&t->stats, WF_TABLE_ROWS_REFUSED, refused);
	return refused;
}

/* A row that is in the index; where memory has ended, another goes for it if the table may. */
static struct wf_row_head *
bear_hashed(struct wf_table *t, uint64_t key)
{
	uint64_t hash = wf_index_hash(&t->index, key);
	uint32_t row = wf_rows_alloc(&t->rows);

	if (row == WF_ROW_NONE && wf_table_reclaim(t)) {
		row = wf_rows_alloc(&t->rows);
	}
	if (row == WF_ROW_NONE) {
		return NULL;
	}
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	head->key = key;
	bool placed = wf_index_insert(&t->index, &t->rows, hash, row);
	/* `row` is not born yet: it cannot be the one that goes. */
	if (!placed && wf_table_reclaim_near(t, hash)) {
		placed = wf_index_insert(&t->index, &t->rows, hash, row);
	}
	if (!placed) {
		wf_rows_give(&t->rows, row);
		return NULL;
	}
	fill_row(t, head, key);
	return head;
}

struct wf_row_head *
wf_table_bear(struct wf_table *t, uint64_t key)
{
	struct wf_row_head *head = NULL;

	if (wf_table_is_fixed(t)) {
		uint32_t row = wf_table_fixed_row(t, key);
		head = wf_row_at(&t->rows, row);
		wf_rows_first_use(&t->rows, row);
		fill_row(t, head, key);
	} else {
		head = bear_hashed(t, key);
	}
	wf_stats_add(&t->stats, head != NULL ? WF_TABLE_ROWS_BORN : WF_TABLE_ROWS_REFUSED, 1);
	return head;
}
