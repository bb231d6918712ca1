/* SPDX-License-Identifier: Apache-2.0 */
/* table_read: what a table shows of itself: rows as they are stored, counters of admission, gauges.
 * Nothing here changes a row. Thread: the lane's. */
#include <string.h>

#include "sparse/table/table_internal.h"

void
wf_table_update_stats(struct wf_table *t)
{
	wf_stats_set(&t->stats, WF_TABLE_MEMORY_BYTES, t->budget.used_bytes);
	wf_stats_set(&t->stats, WF_TABLE_ROWS_LIVE, t->rows.live_count);
	wf_stats_set(&t->stats, WF_TABLE_INDEX_REBUILDS, t->index.rebuild_count);
	wf_stats_set(&t->stats, WF_TABLE_READIED_BYTES,
		     t->rows.lead.readied_bytes + t->index.chunks.readied_bytes);
	wf_stats_set(&t->stats, WF_TABLE_CLEARED_BYTES,
		     t->rows.lead.cleared_bytes + t->index.chunks.cleared_bytes);
	if (wf_table_is_fixed(t)) {
		wf_rows_look_ahead(&t->rows);
	}
}

size_t
wf_table_row_floats(const struct wf_table *t)
{
	return t->rest.wide_floats;
}

void
wf_table_read(const struct wf_table *t, struct wf_row_head *head, struct wf_table_row *out)
{
	*out = (struct wf_table_row){
		.key = head->key,
		.stamp = head->stamp,
		.born = head->born - 1,
		.floats = wf_rest_widen(&t->rest, wf_row_values(head)),
	};
	if (t->motions.varies) { /* its steps so far are known here only */
		memcpy(t->moved, out->floats, t->rest.wide_floats * sizeof(*t->moved));
		wf_motions_move(&t->motions, t->step - head->stamp, t->moved, t->opts.dim);
		out->floats = t->moved;
		out->stamp = t->step;
	}
	if (t->evict.has_score) {
		out->show = wf_row_score(&t->rows, head)->show;
		out->click = wf_row_score(&t->rows, head)->click;
	}
}

bool
wf_table_next(const struct wf_table *t, uint64_t *cursor, struct wf_table_row *out)
{
	for (; *cursor < t->rows.used_count; (*cursor)++) {
		uint32_t number = wf_rows_nth(&t->rows, (uint32_t)*cursor);
		struct wf_row_head *head = wf_row_at(&t->rows, number);
		if (head->born == 0 || (t->evict.can_expire && wf_table_is_expired(t, head))) {
			continue;
		}
		wf_table_read(t, head, out);
		(*cursor)++;
		return true;
	}
	return false;
}

const uint16_t *
wf_table_counters(const struct wf_table *t, uint32_t partition, uint32_t *count)
{
	*count = t->admit.slot_count;
	return t->admit.slot_count == 0 ? NULL : wf_admit_counters(&t->admit, partition);
}

uint64_t
wf_table_step(const struct wf_table *t)
{
	return t->step;
}

const struct wf_stats *
wf_table_stats(const struct wf_table *t)
{
	return &t->stats;
}

const struct wf_hot *
wf_table_hot(const struct wf_table *t)
{
	return &t->hot;
}

struct wf_row_shape
wf_table_shape(const struct wf_table *t)
{
	return (struct wf_row_shape){
		.dim = t->opts.dim,
		.state_floats = (uint32_t)wf_row_state_floats(t->opts.row.kind, t->opts.dim),
		.has_score = t->evict.has_score,
	};
}
