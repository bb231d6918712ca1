/* SPDX-License-Identifier: Apache-2.0 */
/* groups: the entries of a push, (key, gradient) pairs in trainer order, gathered by the row that
 * they belong to. Thread: the lane's.
 *
 * Groups need no table of their own: while a push is applied, the stamp of a row is the number of
 * its group, and a row is in a group if and only if the group has the row, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sparse/table/budget.h"
#include "sparse/table/rows.h"
#include "sparse/table/table.h"

struct wf_groups {
	uint32_t entries_max;
	struct wf_row_head **entry_row; /* [entries_max] NULL: no row */
	uint32_t *entry_group;          /* [entries_max], WF_ROW_NONE: dropped */
	const float **entry_grad;       /* [entries_max] in order of groups, then of trainers */
	struct wf_row_head **row;       /* [entries_max] */
	uint32_t *stamp;                /* [entries_max] the stamp of the row before the push */
	uint32_t *first;                /* [entries_max + 1] of a group in entry_grad */
	uint32_t count;                 /* 0: no push is being applied */
};

/* false: no memory; fini frees what was allocated. */
bool wf_groups_init(struct wf_groups *groups, struct wf_budget *budget, uint32_t entries_max);
void wf_groups_fini(struct wf_groups *groups, struct wf_budget *budget); /* accepts zeroed */
/* The group of a row; a new one if it has none. */
uint32_t wf_groups_of(struct wf_groups *groups, struct wf_row_head *head);
/* Makes groups for the entries that have a row. Returns whether each entry has a group of its own,
 * with its own number. */
bool wf_groups_gather(struct wf_groups *groups, size_t entries);
/* Fills entry_grad where groups are numbered as their entries. */
void wf_groups_list(struct wf_groups *groups, const struct wf_table_push *push, size_t dim);
/* Fills entry_grad and first for any groups. */
void wf_groups_sort(struct wf_groups *groups, const struct wf_table_push *push, size_t entries,
		    size_t dim);

/* Whether the row is part of a group. */
static inline bool
wf_groups_have(const struct wf_groups *groups, const struct wf_row_head *head)
{
	return head->stamp < groups->count && groups->row[head->stamp] == head;
}
