/* SPDX-License-Identifier: Apache-2.0 */
/* gone: see gone.h. Thread: the lane's. */
#include "sparse/table/gone.h"

#include <string.h>

#define FIRST_ROOM 1024u

void
wf_gone_fini(struct wf_gone *gone)
{
	wf_free(gone->env, gone->key, gone->room * sizeof(*gone->key));
	*gone = (struct wf_gone){.env = gone->env};
}

void
wf_gone_begin_full(struct wf_gone *gone, uint32_t border)
{
	gone->count = 0;
	gone->due = 0;
	gone->border = border;
	gone->is_short = false;
}

void
wf_gone_begin_delta(struct wf_gone *gone, uint32_t border)
{
	gone->due = gone->count;
	gone->border = border;
}

void
wf_gone_end(struct wf_gone *gone)
{
	gone->count -= gone->due;
	if (gone->count > 0) {
		memmove(gone->key, gone->key + gone->due, gone->count * sizeof(*gone->key));
	}
	gone->due = 0;
}

static bool
make_room(struct wf_gone *gone)
{
	const uint32_t room = gone->room == 0 ? FIRST_ROOM : 2 * gone->room;
	if (gone->count < gone->room) {
		return true;
	}
	uint64_t *more = room > WF_GONE_KEYS_MAX
				 ? NULL
				 : wf_zalloc_array(gone->env, room, sizeof(*gone->key));
	if (more == NULL) {
		gone->is_short = true;
		return false;
	}
	if (gone->count > 0) {
		memcpy(more, gone->key, gone->count * sizeof(*more));
	}
	wf_free(gone->env, gone->key, gone->room * sizeof(*gone->key));
	gone->key = more;
	gone->room = room;
	return true;
}

void
wf_gone_add(struct wf_gone *gone, uint64_t key, uint32_t born)
{
	if (born <= gone->border && make_room(gone)) {
		gone->key[gone->count++] = key;
	}
}

void
wf_gone_add_due(struct wf_gone *gone, uint64_t key)
{
	if (make_room(gone)) {
		gone->key[gone->count++] = gone->key[gone->due];
		gone->key[gone->due++] = key;
	}
}
