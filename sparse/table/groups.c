/* SPDX-License-Identifier: Apache-2.0 */
/* groups: see groups.h. Thread: the lane's. */
#include "sparse/table/groups.h"

bool
wf_groups_init(struct wf_groups *groups, struct wf_budget *budget, uint32_t entries_max)
{
	const size_t entries = entries_max;

	*groups = (struct wf_groups){.entries_max = entries_max};
	groups->entry_row = wf_budget_alloc(budget, entries * sizeof(*groups->entry_row));
	groups->entry_group = wf_budget_alloc(budget, entries * sizeof(*groups->entry_group));
	groups->entry_grad = wf_budget_alloc(budget, entries * sizeof(*groups->entry_grad));
	groups->row = wf_budget_alloc(budget, entries * sizeof(*groups->row));
	groups->stamp = wf_budget_alloc(budget, entries * sizeof(*groups->stamp));
	groups->first = wf_budget_alloc(budget, (entries + 1) * sizeof(*groups->first));
	return groups->entry_row != NULL && groups->entry_group != NULL &&
	       groups->entry_grad != NULL && groups->row != NULL && groups->stamp != NULL &&
	       groups->first != NULL;
}

void
wf_groups_fini(struct wf_groups *groups, struct wf_budget *budget)
{
	const size_t entries = groups->entries_max;

	wf_budget_give(budget, groups->entry_row, entries * sizeof(*groups->entry_row));
	wf_budget_give(budget, groups->entry_group, entries * sizeof(*groups->entry_group));
	wf_budget_give(budget, groups->entry_grad, entries * sizeof(*groups->entry_grad));
	wf_budget_give(budget, groups->row, entries * sizeof(*groups->row));
	wf_budget_give(budget, groups->stamp, entries * sizeof(*groups->stamp));
	wf_budget_give(budget, groups->first, (entries + 1) * sizeof(*groups->first));
	*groups = (struct wf_groups){0};
}

static inline uint32_t
group_of(struct wf_groups *groups, struct wf_row_head *head)
{
	uint32_t group = head->stamp;

	if (group < groups->count && groups->row[group] == head) {
		return group;
	}
	group = groups->count++;
	groups->row[group] = head;
	groups->stamp[group] = head->stamp;
	head->stamp = group;
	return group;
}

uint32_t
wf_groups_of(struct wf_groups *groups, struct wf_row_head *head)
{
	return group_of(groups, head);
}

bool
wf_groups_gather(struct wf_groups *groups, size_t entries)
{
	bool straight = true;

	for (size_t e = 0; e < entries; e++) {
		struct wf_row_head *head = groups->entry_row[e];
		uint32_t group = head == NULL ? WF_ROW_NONE : group_of(groups, head);
		groups->entry_group[e] = group;
		straight &= group == e;
	}
	return straight;
}

void
wf_groups_list(struct wf_groups *groups, const struct wf_table_push *push, size_t dim)
{
	size_t e = 0;

	for (size_t b = 0; b < push->batch_count; b++) {
		const float *grad = push->batch[b].grad;
		for (size_t i = 0; i < push->batch[b].count; i++, grad += dim) {
			groups->entry_grad[e++] = grad;
		}
	}
}

/* By counting: entries come in trainer order and stay in it. */
void
wf_groups_sort(struct wf_groups *groups, const struct wf_table_push *push, size_t entries,
	       size_t dim)
{
	uint32_t *first = groups->first;
	size_t e = 0;

	for (uint32_t group = 0; group <= groups->count; group++) {
		first[group] = 0;
	}
	for (e = 0; e < entries; e++) {
		if (groups->entry_group[e] != WF_ROW_NONE) {
			first[groups->entry_group[e]]++;
		}
	}
	uint32_t sum = 0;
	for (uint32_t group = 0; group <= groups->count; group++) {
		sum += first[group];
		first[group] = sum; /* the end; filled from behind */
	}
	e = entries;
	for (size_t b = push->batch_count; b > 0; b--) {
		const struct wf_table_batch *batch = &push->batch[b - 1];
		for (size_t i = batch->count; i > 0; i--) {
			uint32_t group = groups->entry_group[--e];
			if (group != WF_ROW_NONE) {
				groups->entry_grad[--first[group]] = batch->grad + (i - 1) * dim;
			}
		}
	}
}
