/* SPDX-License-Identifier: Apache-2.0 */
/* budget: see budget.h. Thread: the lane's. */
#include "sparse/table/budget.h"

#include <string.h>

#include "base/assert.h"

#define ALIGN 128u /* pairs of lines, which processors fetch together */

void *
wf_budget_alloc(struct wf_budget *budget, size_t bytes)
{
	WF_ASSERT(bytes > 0);
	WF_ASSERT(budget->used_bytes <= budget->cap_bytes);
	if (bytes > budget->cap_bytes - budget->used_bytes) {
		budget->cap_refused = true;
		return NULL;
	}
	void *memory = budget->env->ops->alloc(budget->env, bytes, ALIGN);
	if (memory != NULL) {
		budget->used_bytes += bytes;
	}
	return memory;
}

void
wf_budget_give(struct wf_budget *budget, void *memory, size_t bytes)
{
	if (memory == NULL) {
		return;
	}
	WF_ASSERT(budget->used_bytes >= bytes);
	budget->used_bytes -= bytes;
	wf_free(budget->env, memory, bytes);
}

bool
wf_budget_grow(struct wf_budget *budget, void **array, size_t old_bytes, size_t bytes)
{
	WF_ASSERT(bytes > old_bytes);
	void *larger = wf_budget_alloc(budget, bytes);
	if (larger == NULL) {
		return false;
	}
	if (*array != NULL) {
		memcpy(larger, *array, old_bytes);
	}
	wf_budget_give(budget, *array, old_bytes);
	*array = larger;
	return true;
}
