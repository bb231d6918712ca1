/* SPDX-License-Identifier: Apache-2.0 */
/* names: see names.h. Thread: the owner's. */
#include "base/names.h"

#include <string.h>

#include "base/assert.h"
#include "base/digest.h"

enum weft_status
wf_names_init(struct wf_env *env, uint32_t name_max, struct wf_names *out)
{
	struct wf_names names = {.name_max = name_max};
	if (name_max == 0) {
		*out = names;
		return WEFT_OK;
	}
	names.slot_count = 2;
	while (names.slot_count < 2 * (size_t)name_max) {
		names.slot_count *= 2;
	}
	names.name = wf_zalloc_array(env, name_max, sizeof(const char *));
	names.slot = wf_zalloc_array(env, names.slot_count, sizeof(*names.slot));
	if (names.name == NULL || names.slot == NULL) {
		wf_names_fini(env, &names);
		return wf_fail(WEFT_NOMEM, "names: no memory for %u", name_max);
	}
	*out = names;
	return WEFT_OK;
}

void
wf_names_fini(struct wf_env *env, struct wf_names *names)
{
	wf_free(env, names->name, names->name_max * sizeof(const char *));
	wf_free(env, names->slot, names->slot_count * sizeof(*names->slot));
	*names = (struct wf_names){0};
}

/* The slot of a name, or the free one where it would be; `*looks` is at how many it has looked. */
static uint32_t *
slot_of(const struct wf_names *names, const char *name, uint64_t *looks)
{
	size_t mask = names->slot_count - 1;
	size_t at = wf_digest_of(name, strlen(name)) & mask;

	*looks = 1;
	while (names->slot[at] != 0 && strcmp(names->name[names->slot[at] - 1], name) != 0) {
		at = (at + 1) & mask;
		++*looks;
	}
	return &names->slot[at];
}

uint32_t
wf_names_find(const struct wf_names *names, const char *name)
{
	uint64_t looks = 0;

	if (names->count == 0) {
		return WF_NAMES_NONE;
	}
	uint32_t slot = *slot_of(names, name, &looks);
	return slot == 0 ? WF_NAMES_NONE : slot - 1;
}

uint32_t
wf_names_add(struct wf_names *names, const char *name)
{
	uint64_t looks = 0;

	WF_ASSERT(names->count < names->name_max);
	uint32_t *slot = slot_of(names, name, &looks);
	WF_ASSERT(*slot == 0);
	names->looks += looks;
	names->name[names->count] = name;
	*slot = ++names->count;
	return *slot - 1;
}
