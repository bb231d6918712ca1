/* SPDX-License-Identifier: Apache-2.0 */
/* recording: see recording.h. Thread: main. */
#include "tools/trace/recording.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

void
wf_recording_init(struct wf_recording *recording, struct wf_env *env)
{
	*recording = (struct wf_recording){.env = env};
}

void
wf_recording_fini(struct wf_recording *recording)
{
	for (uint32_t i = 0; i < recording->count; i++) {
		struct wf_recording_member *member = &recording->member[i];
		wf_free(recording->env, member->event, member->capacity * sizeof(*member->event));
	}
	wf_free(recording->env, recording->member,
		recording->capacity * sizeof(*recording->member));
	*recording = (struct wf_recording){.env = recording->env};
}

/* Twice as much memory of `item_bytes` each, with the first `count` kept. */
static void *
grow(struct wf_env *env, void *old, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
	uint32_t larger = *capacity == 0 ? 64 : *capacity * 2;
	void *fresh = wf_zalloc_array(env, larger, item_bytes);
	if (fresh == NULL) {
		return NULL;
	}
	if (old != NULL) {
		memcpy(fresh, old, count * item_bytes);
		wf_free(env, old, *capacity * item_bytes);
	}
	*capacity = larger;
	return fresh;
}

struct wf_recording_member *
wf_recording_member(struct wf_recording *recording, bool is_trainer, uint32_t pserver, uint32_t idx)
{
	for (uint32_t i = recording->count; i-- > 0;) { /* most often the last one */
		struct wf_recording_member *member = &recording->member[i];
		if (member->is_trainer == is_trainer && member->pserver == pserver &&
		    member->idx == idx) {
			return member;
		}
	}
	if (recording->count == WF_RECORDING_MEMBERS_MAX) {
		(void)wf_fail(WEFT_DATA, "more than %u members", WF_RECORDING_MEMBERS_MAX);
		return NULL;
	}
	if (recording->count == recording->capacity) {
		void *larger = grow(recording->env, recording->member, recording->count,
				    &recording->capacity, sizeof(*recording->member));
		if (larger == NULL) {
			(void)wf_fail(WEFT_NOMEM, "no memory for one more member");
			return NULL;
		}
		recording->member = larger;
	}
	struct wf_recording_member *member = &recording->member[recording->count++];
	*member = (struct wf_recording_member){
		.is_trainer = is_trainer, .pserver = pserver, .idx = idx};
	return member;
}

enum weft_status
wf_recording_add(struct wf_recording *recording, struct wf_recording_member *member,
		 const struct wf_trace_event *event)
{
	if (event->what == WF_TRACE_NOTHING || event->what >= WF_TRACE_KINDS) {
		return wf_fail(WEFT_DATA, "an event of kind %u, which this program does not know",
			       event->what);
	}
	if (member->count == WF_TRACE_EVENTS) {
		return wf_fail(WEFT_DATA, "more than %u events of one member", WF_TRACE_EVENTS);
	}
	if (member->count == member->capacity) {
		void *larger = grow(recording->env, member->event, member->count, &member->capacity,
				    sizeof(*member->event));
		if (larger == NULL) {
			return wf_fail(WEFT_NOMEM, "no memory for %u events", member->capacity);
		}
		member->event = larger;
	}
	member->event[member->count++] = *event;
	return WEFT_OK;
}

void
wf_recording_name(const struct wf_recording *recording, const struct wf_recording_member *member,
		  char *out, size_t bytes)
{
	bool has_others = false;
	for (uint32_t i = 0; i < recording->count; i++) {
		has_others = has_others || recording->member[i].pserver != 0;
	}
	if (member->is_trainer) {
		(void)snprintf(out, bytes, "trainer %u", member->idx);
	} else if (has_others) {
		(void)snprintf(out, bytes, "pserver %u lane %u", member->pserver, member->idx);
	} else {
		(void)snprintf(out, bytes, "lane %u", member->idx);
	}
}
