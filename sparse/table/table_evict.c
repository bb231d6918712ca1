/* SPDX-License-Identifier: Apache-2.0 */
/* table_evict: rows go: those whose time is over, and at the cap the worst of some. Only what goes
 * at the cap depends on what else this lane has, and so on the number of lanes. Thread: the lane's.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "sparse/table/table_internal.h"

/* Rows looked at for the worst of them when one has to go. */
#define LOOKED_AT 16u
/* Rows passed over for it, because they are part of the push in work, or free. */
#define PASSED_OVER 4096u
#define PASSED_OVER_NEAR 512u

static void
remove_row(struct wf_table *t, uint32_t row)
{
	struct wf_row_head *head = wf_row_at(&t->rows, row);
	uint64_t hash = wf_index_hash(&t->index, head->key);

	WF_ASSERT(head->born != 0);
	WF_ASSERT(!wf_table_is_fixed(t));
	if (t->capture != NULL) {
		wf_capture_remove(t->capture, row);
	}
	if (t->gone != NULL) {
		wf_gone_add(t->gone, head->key, head->born);
	}
	wf_index_remove(&t->index, hash, row);
	wf_rows_give(&t->rows, row);
}

void
wf_table_expire(struct wf_table *t, uint32_t row)
{
	bool old = wf_evict_is_too_old(&t->evict, wf_row_at(&t->rows, row), t->step);

	wf_stats_add(&t->stats, old ? WF_TABLE_EVICTED_BY_AGE : WF_TABLE_EVICTED_BY_SCORE, 1);
	remove_row(t, row);
}

enum weft_status
wf_table_drop(struct wf_table *t, uint64_t key)
{
	if (!wf_table_owns(t, key)) {
		return wf_table_refuse(t, &key, 1);
	}
	if (wf_table_is_fixed(t)) {
		return wf_fail(WEFT_INVALID,
			       "table %" PRIu32 ": the row of key %" PRIu64
			       " is gone, but rows of a vocabulary stay",
			       t->opts.init.table, key);
	}
	const uint32_t row = wf_table_find(t, key);
	if (row != WF_ROW_NONE) {
		remove_row(t, row);
		wf_table_update_stats(t);
	}
	return WEFT_OK;
}

void
wf_table_tend(struct wf_table *t, uint32_t rows)
{
	uint32_t used = t->rows.used_count;

	for (uint32_t i = 0; t->evict.can_expire && i < rows && i < used; i++) {
		t->tend_at = t->tend_at < used ? t->tend_at : 0;
		uint32_t row = wf_rows_nth(&t->rows, t->tend_at);
		struct wf_row_head *head = wf_row_at(&t->rows, row);
		if (head->born != 0 && wf_table_is_expired(t, head)) {
			if (t->capture != NULL && !wf_capture_may_remove(t->capture, 1)) {
				break; /* another time */
			}
			wf_table_expire(t, row);
		}
		t->tend_at++;
	}
	wf_stats_set(&t->stats, WF_TABLE_ROWS_LIVE, t->rows.live_count);
}

/* The worse of a row and the worst so far; rows that must stay count for nothing. */
static uint32_t
worse_of(const struct wf_table *t, uint32_t row, uint32_t worst)
{
	struct wf_row_head *head = wf_row_at(&t->rows, row);

	bool in_push = wf_groups_have(&t->groups, head) ||
		       (t->push_step != 0 && head->stamp == t->push_step);
	if (head->born == 0 || in_push) {
		return worst;
	}
	if (worst == WF_ROW_NONE ||
	    wf_evict_is_worse(&t->evict, head, wf_row_at(&t->rows, worst), t->step)) {
		return row;
	}
	return worst;
}

static bool
evict_worst(struct wf_table *t, uint32_t worst)
{
	if (worst == WF_ROW_NONE) {
		return false;
	}
	wf_stats_add(&t->stats, WF_TABLE_EVICTED_AT_CAP, 1);
	remove_row(t, worst);
	return true;
}

bool
wf_table_reclaim(struct wf_table *t)
{
	uint32_t used = t->rows.used_count;
	uint32_t worst = WF_ROW_NONE;

	if (!t->evict.opts.at_cap) {
		return false;
	}
	/* The first few, and on from there while there was none to spare. */
	for (uint32_t i = 0; i < used && i < PASSED_OVER; i++) {
		if (i >= LOOKED_AT && worst != WF_ROW_NONE) {
			break;
		}
		t->reclaim_at = t->reclaim_at + 1 < used ? t->reclaim_at + 1 : 0;
		worst = worse_of(t, wf_rows_nth(&t->rows, t->reclaim_at), worst);
	}
	return evict_worst(t, worst);
}

bool
wf_table_reclaim_near(struct wf_table *t, uint64_t hash)
{
	uint32_t row[PASSED_OVER_NEAR];
	uint32_t worst = WF_ROW_NONE;

	if (!t->evict.opts.at_cap) {
		return false;
	}
	uint32_t count = wf_index_near(&t->index, hash, row, PASSED_OVER_NEAR);
	for (uint32_t i = 0; i < count && (i < LOOKED_AT || worst == WF_ROW_NONE); i++) {
		worst = worse_of(t, row[i], worst);
	}
	return evict_worst(t, worst);
}
