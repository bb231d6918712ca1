/* SPDX-License-Identifier: Apache-2.0 */
/* cursors: see the header. Thread: the end's. */
#include "exchange/cursors.h"

#include "base/assert.h"

void
wf_cursor_fill(const struct wf_cursor *cursor, struct wf_msg_steps *out)
{
	uint32_t left = cursor->count - cursor->next;
	WF_ASSERT(cursor->open);
	*out = (struct wf_msg_steps){
		.last = left <= WF_STEPS_PER_MSG,
		.first = cursor->next,
		.count = left <= WF_STEPS_PER_MSG ? left : WF_STEPS_PER_MSG,
	};
}

void
wf_cursor_advance(struct wf_cursor *cursor, const struct wf_msg_steps *part)
{
	WF_ASSERT(cursor->open && part->first == cursor->next);
	WF_ASSERT(part->count <= cursor->count - cursor->next);
	cursor->next += part->count;
	cursor->open = !part->last;
}

enum weft_status
wf_cursor_recv(struct wf_cursor *cursor, const char *name, const struct wf_msg_steps *part)
{
	uint32_t left = cursor->count - cursor->next;
	bool next = cursor->open && part->first == cursor->next && part->count <= left;
	if (!next || part->last != (part->count == left) || (part->count == 0 && left > 0)) {
		return wf_fail(WEFT_PROTOCOL, "%s: units %u and %u more%s, %u of %u are there%s",
			       name, part->first, part->count, part->last ? ", the last" : "",
			       cursor->next, cursor->count,
			       cursor->open ? "" : ", and no more are waited for");
	}
	wf_cursor_advance(cursor, part);
	return WEFT_OK;
}
